"""MySQL and MariaDB through PyMySQL: settings, connecting, and verification."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import model_validator

from webapp import limits
from webapp.connectors.base import Capabilities, ConnectorError, Settings, Stage
from webapp.connectors.sql.server import (
    ServerConnector,
    ServerSettings,
    address_field,
    options_field,
    parse_url,
    tls_field,
)
from webapp.connectors.verification import bad_settings_error, run_stages, unknown_option_error

if TYPE_CHECKING:
    from webapp.connectors.mysql.connection import ConnectOptions, MysqlConnection
    from webapp.connectors.mysql.session import MysqlSession

_SCHEMES: Final = ("mysql", "mariadb")
# Names of TLS modes in connection strings of other programs (MySQL, "Connecting to the Server Using URI-Like
# Strings").
_TLS: Final = {
    "disabled": "disable", "disable": "disable", "false": "disable",
    "preferred": "prefer", "prefer": "prefer",
    "required": "require", "require": "require", "true": "require", "trust": "require", "skip-verify": "require",
    "verify_ca": "verify-ca", "verify-ca": "verify-ca",
    "verify_identity": "verify-full", "verify-full": "verify-full",
}  # fmt: skip
_TLS_KEYS: Final = ("ssl-mode", "ssl_mode", "sslmode", "usessl", "ssl", "tls")
# Options of connection strings in lower case: those that are used, and those that Rowsmith sets itself.
_USED: Final = (*_TLS_KEYS, "user", "password")
_IGNORED: Final = (
    "charset", "characterencoding", "connectioncollation", "collation", "useunicode", "connecttimeout",
    "connect_timeout", "sockettimeout", "read_timeout", "write_timeout", "servertimezone", "connectiontimezone",
    "autoreconnect", "rewritebatchedstatements", "allowpublickeyretrieval", "tinyint1isbit", "parsetime", "loc",
)  # fmt: skip
# Session variables that reading and writing rows relies on.
_RESERVED_VARIABLES: Final = frozenset(
    "autocommit sql_mode time_zone character_set_client character_set_connection character_set_results names"
    " collation_connection sql_safe_updates foreign_key_checks unique_checks sql_log_bin tx_read_only"
    " transaction_read_only max_statement_time max_execution_time sql_select_limit sql_auto_is_null".split()
)
_VARIABLE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


class MysqlSettings(ServerSettings):
    """`connection_string` is a URL. Separate settings override its parts. `options` are session variables."""

    database: str | None = address_field(4, 64)
    tls: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] | None = tls_field()
    options: dict[str, str] = options_field()

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        for name in self.options:
            if not _VARIABLE.fullmatch(name) or name in _RESERVED_VARIABLES:
                raise ValueError(f"options: {name} is not supported; other session variables are")
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

    # --- connecting ---

    def connect_options(self) -> ConnectOptions:
        """Return the connect options from the settings. Raises `ConnectorError` (reason `bad_settings`)."""
        self.driver()
        from webapp.connectors.mysql.connection import ConnectOptions

        settings = self.settings
        parsed = _parse_connection_string(settings.connection_string) if settings.connection_string else {}
        host = settings.host or parsed.get("host")
        if not host or host.startswith("/"):
            raise bad_settings_error(
                "A host name is required.", "Enter a host. Unix sockets are not supported."
            )
        return ConnectOptions(
            host=host,
            port=settings.port or parsed.get("port") or 3306,
            database=settings.database or parsed.get("database") or None,
            username=settings.username or parsed.get("username") or "root",
            password=(parsed.get("password") or "") if settings.password is None else settings.password,
            tls=settings.tls or parsed.get("tls") or ("verify-full" if settings.ca_certificate else "prefer"),
            authority=settings.ca_certificate,
            options=settings.options,
        )

    def open(self, timeout: float | None = None) -> MysqlSession:
        """See `Connector.open`."""
        params = self.connect_options()
        from webapp.connectors.mysql.connection import open_socket, sign_in

        seconds = timeout or limits.TARGET_CONNECT_SECONDS
        return self.session(params, sign_in(params, open_socket(params, self.gate, seconds), seconds))

    def session(self, params: ConnectOptions, link: MysqlConnection) -> MysqlSession:
        """Return a session for a new connection."""
        from webapp.connectors.mysql.connection import open_socket, sign_in
        from webapp.connectors.mysql.session import MysqlSession

        def another(seconds: float) -> MysqlConnection:
            return sign_in(params, open_socket(params, self.gate, seconds), seconds)

        try:
            return MysqlSession(link, params, another, self.read_only)
        except BaseException:
            link.abort()
            link.close()
            raise

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`. `sample` reads one row of the first readable table."""
        verification = _Verification(self)
        try:
            yield from run_stages(
                (
                    ("resolve", verification.resolve),
                    ("connect", verification.connect),
                    ("tls", verification.tls),
                    ("auth", verification.auth),
                    ("permission", verification.permission),
                    ("sample", verification.sample),
                )
            )
        finally:
            verification.end()


class _Verification:
    """A verification over a single connection.

    A server counts aborted connections, and eventually blocks the host. Therefore the driver signs in during
    the TLS stage, and an error of the sign-in is reported by its own stage.
    """

    def __init__(self, connector: MysqlConnector) -> None:
        self._connector = connector
        self._socket: socket.socket | None = None
        self._link: MysqlConnection | None = None
        self._sign_in_error: ConnectorError | None = None
        self._session: MysqlSession | None = None

    def resolve(self) -> str:
        params = self._connector.connect_options()
        return f"{params.host} resolves to {', '.join(self._connector.gate.addresses(params.host, params.port))}."

    def connect(self) -> str:
        from webapp.connectors.mysql.connection import open_socket

        params = self._connector.connect_options()
        self._socket = open_socket(params, self._connector.gate, limits.TARGET_CONNECT_SECONDS)
        return f"Port {params.port} accepts connections."

    def tls(self) -> str:
        from webapp.connectors.mysql.connection import VERIFYING, sign_in

        params = self._connector.connect_options()
        assert self._socket is not None
        try:
            self._link = sign_in(params, self._socket, limits.TARGET_CONNECT_SECONDS)
        except ConnectorError as error:
            if error.reason in ("tls_failed", "not_mysql", "bad_settings", "timeout", "refused"):
                raise
            self._sign_in_error = error
            return "TLS succeeded, but signing in failed: see the next stage."
        if self._link.tls_version:
            return (
                f"{self._link.tls_version}, certificate {'' if params.tls in VERIFYING else 'not '}verified."
            )
        if params.tls == "disable":
            return "Without TLS, as configured."
        return "The server does not support TLS; passwords and rows are sent unencrypted."

    def auth(self) -> str:
        if self._sign_in_error is not None:
            raise self._sign_in_error
        assert self._link is not None
        self._session = self._connector.session(self._connector.connect_options(), self._link)
        return f"Signed in to {self._session.server.title}."

    def permission(self) -> str:
        assert self._session is not None
        return self._session.check_permission()

    def sample(self) -> str:
        assert self._session is not None
        return self._session.check_sample()

    def end(self) -> None:
        if self._session is not None:
            self._session.close()
        elif self._link is not None:
            self._link.abort()
        elif self._socket is not None:
            self._socket.close()


def _parse_connection_string(text: str) -> dict[str, Any]:
    """Parse a connection string."""
    scheme, mark, rest = text.strip().removeprefix("jdbc:").partition("://")
    try:
        if not mark or scheme.partition("+")[0].lower() not in _SCHEMES:
            raise ValueError
        parsed, pairs = parse_url(rest)
    except ValueError:
        raise bad_settings_error(
            "The connection string is invalid.",
            "Use mysql://user:password@host:3306/database, with characters such as @ / : in the password "
            "percent-encoded.",
        ) from None
    options = {name.lower(): value for name, value in pairs}
    for name in options:
        if name not in (*_USED, *_IGNORED):
            raise unknown_option_error(name, _USED, "Use the setting options for session variables.")
    mode = next((options[key] for key in _TLS_KEYS if key in options), None)
    if mode is not None and mode.lower() not in _TLS:
        known = ", ".join(dict.fromkeys(_TLS.values()))
        raise bad_settings_error(
            "The connection string has an unknown TLS mode.", f"Supported modes: {known}."
        )
    from_options = {
        "username": options.get("user"),
        "password": options.get("password"),
        "tls": _TLS[mode.lower()] if mode else None,
    }
    return from_options | parsed
