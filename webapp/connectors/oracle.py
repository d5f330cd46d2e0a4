"""Oracle, through python-oracledb in its thin mode: settings, the way there, and its verification."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator

from webapp import limits
from webapp.connectors import base
from webapp.connectors.base import Capabilities, Connector, ConnectorError, DriverMissing, Stage
from webapp.connectors.stages import bad_settings, of_gate, staged
from webapp.net.gate import GateError

if TYPE_CHECKING:
    from webapp.connectors.oracle_link import OracleLink
    from webapp.connectors.oracle_session import OracleSession

# host:1521/service, tcps://host/service, jdbc:oracle:thin:user/password@//host:1521/service
_EASY: Final = re.compile(
    r"(?:(?P<user>[^/@]+)/(?P<password>.*)@)?(?:(?P<protocol>tcps?):)?(?://)?"
    r"(?P<host>\[[^\]]+\]|[^:/\s()=]+)(?::(?P<port>\d+))?/(?P<service>[\w.$#-]+)"
)


class OracleSettings(base.Settings):
    """`connection_string` is a URL or an easy connect string; the parts given beside it win. `database` is the
    service name."""

    connection_string: str | None = Field(
        None, max_length=2_000, json_schema_extra={"secret": True, "group": "string", "order": 1}
    )
    host: str | None = Field(
        None, min_length=1, max_length=255, json_schema_extra={"group": "server", "order": 2}
    )
    port: int | None = Field(None, ge=1, le=65_535, json_schema_extra={"group": "server", "order": 3})
    database: str | None = Field(
        None, min_length=1, max_length=128, json_schema_extra={"group": "server", "order": 4}
    )
    username: str | None = Field(None, max_length=128, json_schema_extra={"group": "server", "order": 5})
    password: str | None = Field(
        None, max_length=1_000, json_schema_extra={"secret": True, "group": "server", "order": 6}
    )
    tls: Literal["disable", "require", "verify-full"] | None = Field(
        None, json_schema_extra={"group": "tls", "order": 7}
    )
    ca_certificate: str | None = Field(
        None, max_length=100_000, json_schema_extra={"group": "tls", "order": 8, "multiline": True}
    )

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if not self.connection_string and not self.host:
            raise ValueError("give a connection_string or a host")
        if self.ca_certificate and "-----BEGIN CERTIFICATE-----" not in self.ca_certificate:
            raise ValueError("ca_certificate: give the certificate as PEM text (-----BEGIN CERTIFICATE-----)")
        return self


@dataclass(frozen=True, slots=True)
class Way:
    """Where the settings lead."""

    host: str
    port: int
    service: str
    username: str
    password: str = field(repr=False)
    tls: str = "disable"


class OracleConnector(Connector):
    """See `Connector`."""

    kind: ClassVar[str] = "oracle"
    title: ClassVar[str] = "Oracle"
    extra: ClassVar[str] = "oracle"
    default_port: ClassVar[int | None] = 1521
    can: ClassVar[Capabilities] = Capabilities(name_chars=128)
    Settings: ClassVar[type[base.Settings]] = OracleSettings
    settings: OracleSettings

    @classmethod
    def driver(cls) -> ModuleType:
        """See `Connector.driver`."""
        try:
            import oracledb
        except ImportError:
            raise DriverMissing(cls.title, cls.extra) from None
        return oracledb

    # --- the way there ---

    def way(self) -> Way:
        """Where the settings lead. Raises `ConnectorError` (reason `bad_settings`)."""
        given = self.settings
        said = _read(given.connection_string) if given.connection_string else {}
        host, service = given.host or said.get("host") or "", given.database or said.get("service") or ""
        if not host or not service or re.search(r"[\s()=/]", host + service):
            raise bad_settings("Host or service name are missing.", "Give a host, and the service name as database.")
        tls = given.tls or said.get("tls") or ("verify-full" if given.ca_certificate else "disable")
        return Way(
            host,
            given.port or said.get("port") or (1521 if tls == "disable" else 2484),
            service,
            (said.get("username") or "") if given.username is None else given.username,
            (said.get("password") or "") if given.password is None else given.password,
            tls,
        )

    def open(self, timeout: float | None = None) -> OracleSession:
        """See `Connector.open`."""
        self.driver()
        from webapp.connectors.oracle_session import OracleSession

        seconds = timeout or limits.TARGET_CONNECT_SECONDS
        link = self._link(seconds)
        try:
            return OracleSession(link, lambda: self._link(seconds), self.read_only)
        except BaseException:
            link.close()
            raise

    def _link(self, seconds: float) -> OracleLink:
        """A connection to an address that the guard judged."""
        from webapp.connectors.oracle_link import OracleLink

        way = self.way()
        try:
            with self.gate.connect(way.host, way.port, seconds) as answering:
                address = answering.getpeername()[0]
        except GateError as error:
            raise of_gate(error) from None
        how: dict[str, Any] = {"protocol": "tcp"}
        if way.tls != "disable":
            how = {"protocol": "tcps", "ssl_server_dn_match": False, "ssl_context": self._context(way)}
        try:
            return OracleLink(
                user=way.username,
                password=way.password,
                host=address,
                port=way.port,
                service_name=way.service,
                tcp_connect_timeout=seconds,
                retry_count=0,
                **how,
            )
        except base.Lost as error:
            raise ConnectorError(
                f"No connection came about: {error.message}",
                reason="refused",
                hint="Does an Oracle listener answer there, with or without TLS as set?",
                transient=True,
            ) from None

    def _context(self, way: Way) -> ssl.SSLContext:
        """TLS for the name that the settings say, whichever address the driver was given."""

        class Named(ssl.SSLContext):
            def wrap_socket(self, sock: socket.socket, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
                return super().wrap_socket(sock, *args, **{**kwargs, "server_hostname": way.host})

        context = Named(ssl.PROTOCOL_TLS_CLIENT)
        if way.tls == "require":
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return context
        try:
            if self.settings.ca_certificate:
                context.load_verify_locations(cadata=self.settings.ca_certificate)
            else:
                context.load_default_certs()
        except ssl.SSLError as error:
            said = f"The CA certificate cannot be read: {error.reason}."
            raise bad_settings(said, "Paste it in PEM format.") from None
        return context

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`. The driver signs in and agrees on TLS in one go."""
        opened: list[OracleSession] = []
        way: list[Way] = []

        def resolve() -> str:
            way.append(self.way())
            return f"{way[0].host} is {', '.join(self.gate.addresses(way[0].host, way[0].port))}."

        def connect() -> str:
            self.gate.connect(way[0].host, way[0].port, limits.TARGET_CONNECT_SECONDS).close()
            return f"Port {way[0].port} answers."

        def auth() -> str:
            opened.append(self.open())
            how = {"disable": "Without TLS, as set.", "require": "With TLS, certificate not verified."}
            return f"Signed in to {opened[0].title}. {how.get(way[0].tls, 'With TLS, certificate verified.')}"

        try:
            yield from staged(
                (
                    ("resolve", resolve),
                    ("connect", connect),
                    ("auth", auth),
                    ("permission", lambda: opened[0].permitted()),
                    ("sample", lambda: opened[0].sampled()),
                )
            )
        finally:
            for one in opened:
                one.close()


def _read(text: str) -> dict[str, Any]:
    """What a connection string says."""
    plain = text.strip().removeprefix("jdbc:oracle:thin:").removeprefix("@")
    try:
        if plain.lower().startswith(("oracle://", "oracle+oracledb://")):
            parts = urlsplit(f"oracle://{plain.partition('://')[2]}")
            query = dict(pair.partition("=")[::2] for pair in parts.query.split("&"))
            return {
                "host": parts.hostname,
                "port": parts.port,
                "service": unquote(parts.path.removeprefix("/")) or query.get("service_name", ""),
                "username": unquote(parts.username or ""),
                "password": unquote(parts.password or ""),
            }
    except ValueError:
        pass
    found = _EASY.fullmatch(plain)
    if found is None:
        raise bad_settings(
            "The connection string cannot be read.",
            "Write oracle://user:password@host:1521/service or host:1521/service.",
        )
    return {
        "host": found["host"].strip("[]"),
        "port": int(found["port"]) if found["port"] else None,
        "service": found["service"],
        "username": found["user"] or "",
        "password": found["password"] or "",
        "tls": "verify-full" if found["protocol"] == "tcps" else None,
    }
