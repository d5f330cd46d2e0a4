"""MySQL and MariaDB, through PyMySQL: settings, the way there, and its verification."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import model_validator

from webapp import limits
from webapp.connectors.base import Capabilities, ConnectorError, Settings, Stage
from webapp.connectors.server import ServerConnector, ServerSettings, more_part, of_url, part, tls_part
from webapp.connectors.stages import bad_settings, staged, unknown_option

if TYPE_CHECKING:
    from webapp.connectors.mysql_link import Link, Way
    from webapp.connectors.mysql_session import MysqlSession

_SCHEMES: Final = ("mysql", "mariadb")
# How connection strings of other programs name the modes (MySQL, "Connecting to the Server Using URI-Like Strings").
_TLS: Final = {
    "disabled": "disable", "disable": "disable", "false": "disable",
    "preferred": "prefer", "prefer": "prefer",
    "required": "require", "require": "require", "true": "require", "trust": "require", "skip-verify": "require",
    "verify_ca": "verify-ca", "verify-ca": "verify-ca",
    "verify_identity": "verify-full", "verify-full": "verify-full",
}  # fmt: skip
_TLS_KEYS: Final = ("ssl-mode", "ssl_mode", "sslmode", "usessl", "ssl", "tls")
# Options of connection strings, without case: those that are read, and those that say how a program talks to the
# server, which is ours to say.
_READ: Final = (*_TLS_KEYS, "user", "password")
_IGNORED: Final = (
    "charset", "characterencoding", "connectioncollation", "collation", "useunicode", "connecttimeout",
    "connect_timeout", "sockettimeout", "read_timeout", "write_timeout", "servertimezone", "connectiontimezone",
    "autoreconnect", "rewritebatchedstatements", "allowpublickeyretrieval", "tinyint1isbit", "parsetime", "loc",
)  # fmt: skip
# Session variables that how rows are written and read relies on.
_OURS: Final = frozenset(
    "autocommit sql_mode time_zone character_set_client character_set_connection character_set_results names"
    " collation_connection sql_safe_updates foreign_key_checks unique_checks sql_log_bin tx_read_only"
    " transaction_read_only max_statement_time max_execution_time sql_select_limit sql_auto_is_null".split()
)
_VARIABLE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


class MysqlSettings(ServerSettings):
    """`connection_string` is a URL; the parts given beside it win. `options` are session variables."""

    database: str | None = part(4, 64)
    tls: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] | None = tls_part()
    options: dict[str, str] = more_part()

    @model_validator(mode="after")
    def _sets_what_may_be_set(self) -> Self:
        for name in self.options:
            if not _VARIABLE.fullmatch(name) or name in _OURS:
                raise ValueError(f"options: {name} cannot be set here; other session variables can")
        return self


class MysqlConnector(ServerConnector):
    """See `Connector`."""

    kind: ClassVar[str] = "mysql"
    title: ClassVar[str] = "MySQL, MariaDB"
    extra: ClassVar[str] = "mysql"
    module: ClassVar[str] = "pymysql"
    default_port: ClassVar[int | None] = 3306
    can: ClassVar[Capabilities] = Capabilities(name_chars=64)
    Settings: ClassVar[type[Settings]] = MysqlSettings
    settings: MysqlSettings

    # --- the way there ---

    def way(self) -> Way:
        """Where the settings lead. Raises `ConnectorError` (reason `bad_settings`)."""
        self.driver()
        from webapp.connectors.mysql_link import Way

        given = self.settings
        said = _read(given.connection_string) if given.connection_string else {}
        host = given.host or said.get("host")
        if not host or host.startswith("/"):
            raise bad_settings(
                "There is no host name.", "Give a host; sockets in the file system are not taken."
            )
        return Way(
            host=host,
            port=given.port or said.get("port") or 3306,
            database=given.database or said.get("database") or None,
            username=given.username or said.get("username") or "root",
            password=(said.get("password") or "") if given.password is None else given.password,
            tls=given.tls or said.get("tls") or ("verify-full" if given.ca_certificate else "prefer"),
            authority=given.ca_certificate,
            options=given.options,
        )

    def open(self, timeout: float | None = None) -> MysqlSession:
        """See `Connector.open`."""
        way = self.way()
        from webapp.connectors.mysql_link import sign_in, wire

        seconds = timeout or limits.TARGET_CONNECT_SECONDS
        return self.session(way, sign_in(way, wire(way, self.gate, seconds), seconds))

    def session(self, way: Way, link: Link) -> MysqlSession:
        """A connection that was just made, set up for our use."""
        from webapp.connectors.mysql_link import sign_in, wire
        from webapp.connectors.mysql_session import MysqlSession

        def another(seconds: float) -> Link:
            return sign_in(way, wire(way, self.gate, seconds), seconds)

        try:
            return MysqlSession(link, way, another, self.read_only)
        except BaseException:
            link.cut()
            link.close()
            raise

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`. `sample` reads one row of the first table that may be read."""
        visit = _Visit(self)
        try:
            yield from staged(
                (
                    ("resolve", visit.resolve),
                    ("connect", visit.connect),
                    ("tls", visit.tls),
                    ("auth", visit.auth),
                    ("permission", visit.permission),
                    ("sample", visit.sample),
                )
            )
        finally:
            visit.end()


class _Visit:
    """One verification, stage by stage, over one connection: a server counts those that break off, and in the end
    blocks the host they come from. So the driver signs in while TLS is looked at, and what it says of that is told
    at its own stage."""

    def __init__(self, connector: MysqlConnector) -> None:
        self._connector = connector
        self._socket: socket.socket | None = None
        self._link: Link | None = None
        self._refused: ConnectorError | None = None
        self._session: MysqlSession | None = None

    def resolve(self) -> str:
        way = self._connector.way()
        return f"{way.host} is {', '.join(self._connector.gate.addresses(way.host, way.port))}."

    def connect(self) -> str:
        from webapp.connectors.mysql_link import wire

        way = self._connector.way()
        self._socket = wire(way, self._connector.gate, limits.TARGET_CONNECT_SECONDS)
        return f"Port {way.port} answers."

    def tls(self) -> str:
        from webapp.connectors.mysql_link import VERIFYING, sign_in

        way = self._connector.way()
        assert self._socket is not None
        try:
            self._link = sign_in(way, self._socket, limits.TARGET_CONNECT_SECONDS)
        except ConnectorError as error:
            if error.reason in ("tls_failed", "not_mysql", "bad_settings", "timeout", "refused"):
                raise
            self._refused = error
            return "The server does not object; the next stage says what it refuses."
        if self._link.encrypted:
            return f"{self._link.encrypted}, certificate {'' if way.tls in VERIFYING else 'not '}verified."
        if way.tls == "disable":
            return "Without TLS, as set."
        return "The server offers no TLS; passwords and rows go unencrypted."

    def auth(self) -> str:
        if self._refused is not None:
            raise self._refused
        assert self._link is not None
        self._session = self._connector.session(self._connector.way(), self._link)
        return f"Signed in to {self._session.server.title}."

    def permission(self) -> str:
        assert self._session is not None
        return self._session.permitted()

    def sample(self) -> str:
        assert self._session is not None
        return self._session.sampled()

    def end(self) -> None:
        if self._session is not None:
            self._session.close()
        elif self._link is not None:
            self._link.cut()
        elif self._socket is not None:
            self._socket.close()


def _read(text: str) -> dict[str, Any]:
    """What a connection string says."""
    scheme, mark, rest = text.strip().removeprefix("jdbc:").partition("://")
    try:
        if not mark or scheme.partition("+")[0].lower() not in _SCHEMES:
            raise ValueError
        found, pairs = of_url(rest)
    except ValueError:
        raise bad_settings(
            "The connection string cannot be read.",
            "Write mysql://user:password@host:3306/database; signs like @ / : in a password are percent-encoded.",
        ) from None
    options = {name.lower(): value for name, value in pairs}
    for name in options:
        if name not in (*_READ, *_IGNORED):
            raise unknown_option(name, _READ, "Session variables are set in options.")
    mode = next((options[key] for key in _TLS_KEYS if key in options), None)
    if mode is not None and mode.lower() not in _TLS:
        known = ", ".join(dict.fromkeys(_TLS.values()))
        raise bad_settings("The connection string names an unknown TLS mode.", f"There are {known}.")
    of_options = {
        "username": options.get("user"),
        "password": options.get("password"),
        "tls": _TLS[mode.lower()] if mode else None,
    }
    return of_options | found
