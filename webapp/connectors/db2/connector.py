"""IBM Db2 for Linux, UNIX and Windows through ibm_db: settings, connecting, and verification."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from webapp.connectors import base
from webapp.connectors.base import Capabilities, Stage
from webapp.connectors.sql.server import (
    ServerConnector,
    ServerSettings,
    address_field,
    connect_session,
    connection_failed_error,
    parse_url,
    reachable_address,
    single_call_stages,
    tls_field,
)
from webapp.connectors.verification import bad_settings_error, unknown_option_error

if TYPE_CHECKING:
    from webapp.connectors.db2.connection import Db2Connection
    from webapp.connectors.db2.session import Db2Session

_SCHEMES: Final = ("db2", "db2+ibm_db", "ibm_db_sa")
# Keys of the driver's connection strings, of JDBC and of URL queries, in lower case.
_KEYS: Final = {
    "hostname": "host", "port": "port", "database": "database", "uid": "username", "user": "username",
    "pwd": "password", "password": "password", "currentschema": "schema", "security": "tls", "sslconnection": "tls",
}  # fmt: skip
# Options that Rowsmith sets itself.
_IGNORED: Final = (
    "protocol", "connecttimeout", "logintimeout", "querytimeout", "sslclienthostnamevalidation", "clientapplname",
    "driver", "autocommit",
)  # fmt: skip
_JDBC: Final = re.compile(
    r"jdbc:db2://(?P<host>\[[^\]]+\]|[^:/\s]+)(?::(?P<port>\d+))?/(?P<database>[^:;\s]+)(?::(?P<rest>.*))?"
)
# Characters that start further keywords for the driver, some of which name files.
_UNSUPPORTED: Final = re.compile(r"[;{}\x00-\x1f]")


class Db2Settings(ServerSettings):
    """`connection_string` is a URL, the driver's `KEY=value;` pairs or a JDBC URL. Separate settings override
    its parts."""

    db_schema: str | None = address_field(7, 128, alias="schema")
    tls: Literal["disable", "verify-ca"] | None = tls_field()


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """Connect options that are combined from all settings."""

    host: str
    port: int
    database: str
    username: str
    password: str = field(repr=False)
    schema: str | None = None
    tls: str = "disable"


class Db2Connector(ServerConnector):
    """See `Connector`."""

    kind: ClassVar[str] = "db2"
    title: ClassVar[str] = "IBM Db2"
    extra: ClassVar[str] = "db2"
    module: ClassVar[str] = "ibm_db"
    default_port: ClassVar[int | None] = 50_000
    can: ClassVar[Capabilities] = Capabilities(name_chars=128)
    Settings: ClassVar[type[base.Settings]] = Db2Settings
    settings: Db2Settings

    @classmethod
    def driver(cls) -> ModuleType:
        """See `Connector.driver`. Sets an option that the driver reads only from the environment.

        After losing a server, it must not follow a redirect to another one, whose address has not been
        checked.
        """
        os.environ["DB2_MAX_CLIENT_CONNRETRIES"] = "0"
        return super().driver()

    # --- connecting ---

    def connect_options(self) -> ConnectOptions:
        """Return the connect options from the settings. Raises `ConnectorError` (reason `bad_settings`)."""
        settings = self.settings
        parsed = _parse_connection_string(settings.connection_string) if settings.connection_string else {}
        host, database = (
            settings.host or parsed.get("host") or "",
            settings.database or parsed.get("database") or "",
        )
        if not host or not database:
            raise bad_settings_error(
                "A host and a database are required.", "Enter both. Db2 has no default database."
            )
        username = parsed.get("username", "") if settings.username is None else settings.username
        password = parsed.get("password", "") if settings.password is None else settings.password
        checked = {"host": host, "database": database, "user name": username, "password": password}
        if not username:
            raise bad_settings_error(
                "A user name is required.", "Enter an account. Db2 does not allow anonymous access."
            )
        for name, value in checked.items():
            if _UNSUPPORTED.search(value):
                raise bad_settings_error(
                    f"The {name} contains a character that the driver does not support: ; {{ }}",
                    "Use a value without it.",
                )
        return ConnectOptions(
            host,
            settings.port or parsed.get("port") or 50_000,
            database,
            username,
            password,
            settings.db_schema or parsed.get("schema"),
            settings.tls or parsed.get("tls") or ("verify-ca" if settings.ca_certificate else "disable"),
        )

    def open(self, timeout: float | None = None) -> Db2Session:
        """See `Connector.open`."""
        self.driver()
        from webapp.connectors.db2.session import Db2Session

        def session(link: Db2Connection, another: Callable[[], Db2Connection]) -> Db2Session:
            return Db2Session(link, another, self.read_only, self.connect_options().schema)

        return connect_session(self._link, session, timeout)

    def _link(self, seconds: float) -> Db2Connection:
        """Connect to an address that the guard allowed."""
        from webapp.connectors.db2.connection import Db2Connection

        params = self.connect_options()
        address = reachable_address(self.gate, params.host, params.port, seconds)
        try:
            with self._certificate_file(params) as file:
                return Db2Connection(dsn(params, address, seconds, file), address, params.port)
        except base.ConnectionLost as error:
            raise connection_failed_error(
                error.message, "Check that Db2 listens on this address, with or without TLS as configured."
            ) from None

    @contextmanager
    def _certificate_file(self, params: ConnectOptions) -> Iterator[str | None]:
        """Write the CA certificate to a temporary file for the driver while it connects."""
        text = self.settings.ca_certificate
        if params.tls == "disable" or not text:
            yield None
            return
        descriptor, name = tempfile.mkstemp(prefix="rowsmith-", suffix=".pem")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
            yield name
        finally:
            os.unlink(name)

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`. The driver connects, agrees on TLS and signs in with one call."""
        tls_messages = {
            "disable": "Without TLS, as configured.",
            "verify-ca": "With TLS, certificate verified, but not its host name.",
        }
        yield from single_call_stages(self.gate, self.connect_options, self.open, tls_messages)


def dsn(params: ConnectOptions, address: str, seconds: float, authority: str | None) -> str:
    """Return the driver's connection string for an address. `authority` is the path of a certificate file."""
    pairs = {"HOSTNAME": address, "PORT": str(params.port), "PROTOCOL": "TCPIP"}
    pairs["ConnectTimeout"] = str(max(1, int(seconds)))
    if params.tls != "disable":
        # The driver knows only the address, which the certificate cannot be issued for.
        pairs |= {"SECURITY": "SSL", "SSLClientHostnameValidation": "Off"}
    if authority is not None:
        pairs["SSLServerCertificate"] = authority
    # Values that users choose come last: however the driver parses them, they cannot hide the options above.
    pairs |= {
        "DATABASE": params.database,
        "UID": params.username,
        "PWD": params.password,
    }
    return "".join(f"{key}={value};" for key, value in pairs.items())


def _parse_connection_string(text: str) -> dict[str, Any]:
    """Parse a connection string."""
    text = text.strip()
    scheme, mark, rest = text.partition("://")
    try:
        if mark and scheme.lower() in _SCHEMES:
            parsed, options = parse_url(rest)
            query = _parse_options(options)
            return parsed | {name: query[name] for name in ("schema", "tls") if name in query}
        if jdbc := _JDBC.fullmatch(text):
            parsed = {"host": jdbc["host"].strip("[]"), "database": jdbc["database"]}
            port = {"port": int(jdbc["port"])} if jdbc["port"] else {}
            return parsed | port | _parse_pairs(jdbc["rest"] or "")
        if not mark and "=" in text:
            return _parse_pairs(text)
    except ValueError:
        pass
    raise bad_settings_error(
        "The connection string is invalid.",
        "Use db2://user:password@host:50000/database or DATABASE=...;HOSTNAME=...;PORT=50000;UID=...;PWD=...;",
    )


def _parse_pairs(text: str) -> dict[str, Any]:
    parsed = _parse_options(pair.partition("=")[::2] for pair in text.split(";") if "=" in pair)
    if "port" in parsed:
        parsed["port"] = int(parsed["port"])
    return parsed


def _parse_options(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for key, value in pairs:
        lowered = key.strip().lower()
        name = _KEYS.get(lowered)
        if name is None and lowered not in _IGNORED:
            raise unknown_option_error(
                key.strip(), _KEYS, "Use the setting ca_certificate for a certificate."
            )
        if name == "tls":
            parsed["tls"] = "verify-ca" if value.strip().lower() in ("ssl", "true") else "disable"
        elif name:
            parsed[name] = value.strip()
    return parsed
