"""Oracle through python-oracledb in thin mode: settings, connecting, and verification."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from webapp.connectors import base
from webapp.connectors.base import Capabilities, Stage
from webapp.connectors.sql.server import (
    SPOKEN,
    ServerConnector,
    ServerSettings,
    answering,
    entered,
    in_one_go,
    of_url,
    tls_part,
    unanswered,
)
from webapp.connectors.verification import bad_settings, unknown_option

if TYPE_CHECKING:
    from webapp.connectors.oracle.connection import OracleLink


from collections.abc import Callable, Mapping, Sequence

from webapp import limits
from webapp.connectors.base import ConnectorError, Target, WriteSpec
from webapp.connectors.oracle import catalog
from webapp.connectors.oracle.connection import OracleLink
from webapp.connectors.schema import Entity
from webapp.connectors.sql.statements import StatementSession
from webapp.engine.formats.sql_dialects import DIALECTS, Dialect

# A connection to Oracle.


class OracleSession(StatementSession):
    """See `StatementSession`. Oracle opens a transaction with the first change. `open_another` opens a second
    connection."""

    dialect: ClassVar[Dialect] = DIALECTS["oracle"]
    origin: ClassVar[str] = " FROM DUAL"
    marker: ClassVar[str] = ":{}"
    link: OracleLink

    def __init__(self, link: OracleLink, another: Callable[[], OracleLink], read_only: bool) -> None:
        _, ((home,),) = link.ask("SELECT SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') FROM DUAL")
        super().__init__(link, f"Oracle {link.version}", home, read_only)
        self._another = another

    def another(self) -> OracleLink:
        """See `StatementSession.another`."""
        return self._another()

    def entities(self, like: str = "") -> list[Entity]:
        """See `StatementSession.entities`."""
        return catalog.entities(lambda text, values: self.link.ask(text, values)[1], self.home, like)

    def begin_reading(self, link: Any) -> None:
        """See `StatementSession.begin_reading`."""
        link.rollback()
        link.run("SET TRANSACTION READ ONLY")

    def reading(
        self, link: Any, text: str, values: Sequence[Any], limit: int
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `StatementSession.reading`. A read-only transaction cannot change anything."""
        self.begin_reading(link)
        link.patience(limits.TARGET_QUERY_SECONDS)
        try:
            answer: tuple[list[str], list[Sequence[Any]]] = link.ask(text, values, limit)
            return answer
        finally:
            try:
                link.patience(None)
                link.rollback()
            except ConnectorError:
                pass  # the connection is lost, and the transaction with it

    def execute(self, statement: str) -> None:
        """See `Session.execute`."""
        super().execute(statement)
        self.link.commit()

    def target(self, writing: WriteSpec) -> Target:
        """See `Session.target`."""
        from webapp.connectors.oracle.target import OracleTarget

        self.writable(writing)
        return OracleTarget(self.link, writing)

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`. Oracle's readers do not wait for writers, so the table is locked
        until they are done."""
        if not {"keys", "rows"} <= commit_token.keys():
            return None
        try:
            wait = int(limits.TARGET_LOCK_SECONDS)
            self.link.run(f"LOCK TABLE {self.table(entity)} IN SHARE MODE WAIT {wait}")
            return super().commit_outcome(entity, commit_token)
        except ConnectorError as error:
            if error.reason != "locked":
                raise
            return None
        finally:
            self.link.rollback()


# host:1521/service, tcps://host/service, jdbc:oracle:thin:user/password@//host:1521/service
_EASY: Final = re.compile(
    r"(?:(?P<user>[^/@]+)/(?P<password>.*)@)?(?:(?P<protocol>tcps?):)?(?://)?"
    r"(?P<host>\[[^\]]+\]|[^:/\s()=]+)(?::(?P<port>\d+))?/(?P<service>[\w.$#-]+)"
)


class OracleSettings(ServerSettings):
    """`connection_string` is a URL or an easy connect string. Separate settings override its parts.
    `database` is the service name."""

    tls: Literal["disable", "require", "verify-full"] | None = tls_part()


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """Connect options that are combined from all settings."""

    host: str
    port: int
    service: str
    username: str
    password: str = field(repr=False)
    tls: str = "disable"


class OracleConnector(ServerConnector):
    """See `Connector`."""

    kind: ClassVar[str] = "oracle"
    title: ClassVar[str] = "Oracle"
    extra: ClassVar[str] = "oracle"
    module: ClassVar[str] = "oracledb"
    default_port: ClassVar[int | None] = 1521
    can: ClassVar[Capabilities] = Capabilities(name_chars=128)
    Settings: ClassVar[type[base.Settings]] = OracleSettings
    settings: OracleSettings

    # --- connecting ---

    def connect_options(self) -> ConnectOptions:
        """Return the connect options from the settings. Raises `ConnectorError` (reason `bad_settings`)."""
        given = self.settings
        said = _read(given.connection_string) if given.connection_string else {}
        host, service = given.host or said.get("host") or "", given.database or said.get("service") or ""
        if not host or not service or re.search(r"[\s()=/]", host + service):
            raise bad_settings(
                "A host and a service name are required.", "Enter a host, and the service name as database."
            )
        tls = given.tls or said.get("tls") or ("verify-full" if given.ca_certificate else "disable")
        return ConnectOptions(
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

        return entered(
            self._link, lambda link, another: OracleSession(link, another, self.read_only), timeout
        )

    def _link(self, seconds: float) -> OracleLink:
        """Connect to an address that the guard allowed."""
        from webapp.connectors.oracle.connection import OracleLink

        params = self.connect_options()
        address = answering(self.gate, params.host, params.port, seconds)
        how: dict[str, Any] = {"protocol": "tcp"}
        if params.tls != "disable":
            how = {
                "protocol": "tcps",
                "ssl_server_dn_match": False,
                "ssl_context": self._context(params),
            }
        try:
            return OracleLink(
                self.gate,
                user=params.username,
                password=params.password,
                host=address,
                port=params.port,
                service_name=params.service,
                tcp_connect_timeout=seconds,
                retry_count=0,
                **how,
            )
        except base.ConnectionLost as error:
            hint = (
                "Check that an Oracle listener responds on this address, with or without TLS as configured."
            )
            raise unanswered(error.message, hint) from None

    def _context(self, params: ConnectOptions) -> ssl.SSLContext:
        """Return a TLS context for the host name in the settings, because the driver only knows the address."""

        class Named(ssl.SSLContext):
            def wrap_socket(self, sock: socket.socket, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
                self.check_hostname = self.verify_mode == ssl.CERT_REQUIRED  # the driver turns it off
                return super().wrap_socket(sock, *args, **{**kwargs, "server_hostname": params.host})

        context = Named(ssl.PROTOCOL_TLS_CLIENT)
        if params.tls == "require":
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return context
        try:
            if self.settings.ca_certificate:
                context.load_verify_locations(cadata=self.settings.ca_certificate)
            else:
                context.load_default_certs()
        except ssl.SSLError as error:
            said = f"The CA certificate is invalid: {error.reason}."
            raise bad_settings(said, "Enter it in PEM format.") from None
        return context

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`."""
        return in_one_go(self.gate, self.connect_options, self.open, SPOKEN)


def _read(text: str) -> dict[str, Any]:
    """Parse a connection string."""
    plain = text.strip().removeprefix("jdbc:oracle:thin:").removeprefix("@")
    try:
        if plain.lower().startswith(("oracle://", "oracle+oracledb://")):
            said, options = of_url(plain.partition("://")[2])
            query = dict(options)
            for name in query.keys() - {"service_name"}:
                raise unknown_option(name, ("service_name",))
            return {**said, "service": said.get("database") or query.get("service_name", "")}
    except ValueError:
        pass
    found = _EASY.fullmatch(plain)
    if found is None:
        raise bad_settings(
            "The connection string is invalid.",
            "Use oracle://user:password@host:1521/service or host:1521/service.",
        )
    return {
        "host": found["host"].strip("[]"),
        "port": int(found["port"]) if found["port"] else None,
        "service": found["service"],
        "username": found["user"] or "",
        "password": found["password"] or "",
        "tls": "verify-full" if found["protocol"] == "tcps" else None,
    }
