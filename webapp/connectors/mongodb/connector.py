"""MongoDB through PyMongo: settings, connecting, and verification."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self
from urllib.parse import parse_qsl

from pydantic import model_validator

from webapp import limits
from webapp.connectors.base import Capabilities, Settings, Stage
from webapp.connectors.sql.server import (
    ServerConnector,
    ServerSettings,
    address_field,
    options_field,
    tls_field,
)
from webapp.connectors.verification import (
    bad_settings_error,
    from_gate_error,
    run_stages,
    unknown_option_error,
)
from webapp.net.gate import GateError

if TYPE_CHECKING:
    from webapp.connectors.mongodb.connection import ConnectOptions, MongodbConnection
    from webapp.connectors.mongodb.session import MongodbSession


def _parse_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def _one_of(*choices: str) -> Callable[[str], str]:
    def chosen(text: str) -> str:
        if text not in choices:
            raise ValueError(", ".join(choices))
        return text

    return chosen


def _write_concern(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


# Options of connection strings (MongoDB, "Connection String Options") that may be set here, in the driver's spelling.
# Options that name files of this machine, or that authenticate as this machine (AWS, Kerberos), are not supported.
_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "authSource": str,
    "authMechanism": _one_of("DEFAULT", "SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN"),
    "replicaSet": str,
    "directConnection": _parse_bool,
    "loadBalanced": _parse_bool,
    "retryWrites": _parse_bool,
    "retryReads": _parse_bool,
    "w": _write_concern,
    "journal": _parse_bool,
    "wTimeoutMS": int,
    "readPreference": _one_of("primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"),
    "readConcernLevel": _one_of("local", "available", "majority", "linearizable", "snapshot"),
    "compressors": _one_of("zlib"),
}
_OPTIONS: Final = {name.lower(): (name, read) for name, read in _PARSERS.items()}
_TLS_KEYS: Final = ("tls", "ssl", "tlsinsecure", "tlsallowinvalidcertificates", "tlsallowinvalidhostnames")
_IGNORED: Final = ("appname", "maxpoolsize", "minpoolsize", "maxidletimems", "connecttimeoutms", "uuidrepresentation",
                   "serverselectiontimeoutms", "sockettimeoutms", "waitqueuetimeoutms", "retryablewrites")  # fmt: skip
_STRING: Final = re.compile(r"mongodb(?:\+srv)?://\S+")


class MongodbSettings(ServerSettings):
    """`connection_string` is a URL. Separate settings override its parts. `options` are options of connection
    strings."""

    database: str | None = address_field(4, 63)
    tls: Literal["disable", "require", "verify-ca", "verify-full"] | None = tls_field()
    options: dict[str, str] = options_field()

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        for name, value in self.options.items():
            if name.lower() not in _OPTIONS:
                known = ", ".join(item for item, _ in _OPTIONS.values())
                raise ValueError(f"options: {name} is not supported; supported are {known}")
            try:
                _OPTIONS[name.lower()][1](value)
            except ValueError as error:
                raise ValueError(f"options: {name} does not accept {value!r}: {error}") from None
        return self


class MongodbConnector(ServerConnector):
    """See `Connector`."""

    kind: ClassVar[str] = "mongodb"
    title: ClassVar[str] = "MongoDB"
    extra: ClassVar[str] = "mongodb"
    module: ClassVar[str] = "pymongo"
    default_port: ClassVar[int | None] = 27017
    can: ClassVar[Capabilities] = Capabilities(sql=False, transactions=False, schemas=False, name_chars=120)
    Settings: ClassVar[type[Settings]] = MongodbSettings
    settings: MongodbSettings

    # --- connecting ---

    def connect_options(self) -> ConnectOptions:
        """Return the connect options from the settings. Raises `ConnectorError` (reason `bad_settings`)."""
        self.driver()
        from webapp.connectors.mongodb.connection import ConnectOptions

        settings = self.settings
        parsed = _parse_connection_string(settings.connection_string) if settings.connection_string else {}
        hosts = tuple(parsed.get("hosts") or ())
        if settings.host:
            hosts = ((settings.host, settings.port or 27017),)
        if any("/" in host or host.endswith(".sock") for host, _ in hosts):
            raise bad_settings_error(
                "This is not a host name.", "Enter a host. Unix sockets are not supported."
            )
        database = settings.database or parsed.get("database")
        if not database:
            raise bad_settings_error(
                "A database name is required.",
                "Enter it in `database`, or after the host in the connection string.",
            )
        options = {**parsed.get("options", {})}
        for name, value in settings.options.items():
            option, read = _OPTIONS[name.lower()]
            options[option] = read(value)
        if len(hosts) == 1 and not options.keys() & {"replicaSet", "loadBalanced"}:
            options.setdefault("directConnection", not parsed.get("srv", False))
        return ConnectOptions(
            hosts=hosts,
            database=database,
            username=parsed.get("username") if settings.username is None else settings.username,
            password=parsed.get("password") if settings.password is None else settings.password,
            tls=settings.tls
            or parsed.get("tls")
            or ("verify-full" if settings.ca_certificate else "disable"),
            authority=settings.ca_certificate,
            options=options,
        )

    def open(self, timeout: float | None = None) -> MongodbSession:
        """See `Connector.open`."""
        params = self.connect_options()
        from webapp.connectors.mongodb.connection import MongodbConnection, handshake
        from webapp.connectors.mongodb.session import MongodbSession

        seconds = timeout or limits.TARGET_CONNECT_SECONDS
        self._resolve_hosts(params)
        link = MongodbConnection(params, self.gate, seconds)
        try:
            return MongodbSession(link, handshake(link), self.read_only)
        except BaseException:
            link.close()
            raise

    def _resolve_hosts(self, params: ConnectOptions) -> str:
        """Return the addresses of the hosts, as a message. Raises `ConnectorError` if none of them is
        allowed."""
        messages, refused = [], None
        for host, port in params.hosts:
            try:
                messages.append(f"{host} resolves to {', '.join(self.gate.addresses(host, port))}")
            except GateError as error:
                refused = error
        if refused is not None and not messages:
            raise from_gate_error(refused)
        return f"{'; '.join(messages)}."

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`. `sample` reads one document of the first collection."""
        verification = _Verification(self)
        try:
            yield from run_stages(
                (
                    ("resolve", lambda: self._resolve_hosts(self.connect_options())),
                    ("connect", verification.connect),
                    ("tls", verification.tls),
                    ("auth", verification.auth),
                    ("permission", lambda: verification.session.check_permission()),
                    ("sample", lambda: verification.session.check_sample()),
                )
            )
        finally:
            verification.end()


class _Verification:
    """A verification, stage by stage."""

    session: MongodbSession

    def __init__(self, connector: MongodbConnector) -> None:
        self._connector = connector
        self._link: MongodbConnection | None = None

    def connect(self) -> str:
        refused: GateError | None = None
        for host, port in self._connector.connect_options().hosts:
            try:
                self._connector.gate.connect(host, port, limits.TARGET_CONNECT_SECONDS).close()
            except GateError as error:
                refused = error
            else:
                return f"{host}:{port} accepts connections."
        assert refused is not None
        raise from_gate_error(refused)

    def tls(self) -> str:
        """Connect without an account."""
        from dataclasses import replace

        from webapp.connectors.mongodb.connection import MongodbConnection, handshake

        params = self._connector.connect_options()
        auth_options = ("authSource", "authMechanism")
        options = {name: value for name, value in params.options.items() if name not in auth_options}
        anonymous = replace(params, username=None, options=options)
        link = MongodbConnection(anonymous, self._connector.gate, limits.TARGET_CONNECT_SECONDS)
        try:
            handshake(link)
        finally:
            link.close()
        if not link.encrypted:
            return "Without TLS; passwords and documents are sent unencrypted."
        return f"{link.encrypted}, certificate {'not ' if params.tls == 'require' else ''}verified."

    def auth(self) -> str:
        self.session = self._connector.open()
        self._link = self.session.link
        return f"Signed in to {self.session.title}."

    def end(self) -> None:
        if self._link is not None:
            self._link.close()


def _parse_connection_string(text: str) -> dict[str, Any]:
    """Parse a connection string."""
    from pymongo.errors import ConfigurationError, InvalidURI
    from pymongo.synchronous.uri_parser import parse_uri

    text = text.strip()
    if not _STRING.fullmatch(text):
        raise bad_settings_error(
            "The connection string is invalid.",
            "Use mongodb://user:password@host:27017/database, with characters such as @ / : in the password "
            "percent-encoded.",
        )
    options, tls = _parse_options(text.partition("?")[2], srv=text.startswith("mongodb+srv:"))
    try:
        # The driver only reads the options that the string itself leads to, such as a cluster's name in DNS.
        parsed = parse_uri(text.partition("?")[0], validate=True, warn=False, srv_service_name=None)
    except (InvalidURI, ConfigurationError, ValueError) as error:
        raise bad_settings_error(
            f"The connection string is invalid: {error}", "Check the host and the database."
        ) from None
    for name in ("authSource", "replicaSet", "loadBalanced"):
        if name in parsed["options"]:
            options.setdefault(name, parsed["options"][name])
    return {
        "hosts": [(host, port or 27017) for host, port in parsed["nodelist"]],
        "srv": text.startswith("mongodb+srv:"),
        "database": parsed["database"],
        "username": parsed["username"],
        "password": parsed["password"],
        "options": options,
        "tls": tls,
    }


def _parse_options(query: str, srv: bool) -> tuple[dict[str, Any], str | None]:
    """Return the options of a connection string, and the TLS mode that follows from them."""
    parsed: dict[str, Any] = {}
    flags: dict[str, bool] = {"tls": True} if srv else {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        lowered = name.lower()
        try:
            if lowered in _TLS_KEYS:
                flags["tls" if lowered == "ssl" else lowered] = _parse_bool(value)
            elif lowered in _OPTIONS:
                option, read = _OPTIONS[lowered]
                parsed[option] = read(value)
            elif lowered not in _IGNORED:
                raise unknown_option_error(name, ("tls", *(item for item, _ in _OPTIONS.values())))
        except ValueError as error:
            raise bad_settings_error(
                f"The option {name} does not accept {value!r}.", f"Supported: {error}."
            ) from None
    if "tls" not in flags:
        return parsed, None
    if not flags["tls"]:
        return parsed, "disable"
    if flags.get("tlsinsecure") or flags.get("tlsallowinvalidcertificates"):
        return parsed, "require"
    return parsed, "verify-ca" if flags.get("tlsallowinvalidhostnames") else "verify-full"
