"""SQL Server through pymssql: settings, connecting, and verification."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

from webapp.connectors.base import Capabilities, ConnectionLost, ConnectorError, Settings, Stage
from webapp.connectors.sql.server import (
    TLS_MESSAGES,
    ServerConnector,
    ServerSettings,
    connect_session,
    connection_failed_error,
    parse_url,
    reachable_address,
    single_call_stages,
    tls_field,
)
from webapp.connectors.verification import bad_settings_error, unknown_option_error

if TYPE_CHECKING:
    from webapp.connectors.sqlserver.connection import MssqlConnection
    from webapp.connectors.sqlserver.session import MssqlSession

_SCHEMES: Final = ("mssql", "sqlserver")
_ENCRYPTION: Final = {"disable": "off", "require": "require", "verify-full": "require"}
# Keys of ADO.NET and ODBC connection strings.
_KEYS: Final = {
    "server": "host", "data source": "host", "address": "host", "database": "database", "initial catalog": "database",
    "user id": "username", "uid": "username", "user": "username", "password": "password", "pwd": "password",
    "encrypt": "encrypt", "trustservercertificate": "trust", "trust server certificate": "trust",
}  # fmt: skip
# Options that Rowsmith sets itself.
_IGNORED: Final = (
    "driver", "application name", "app", "connection timeout", "connect timeout", "timeout", "logintimeout",
    "persist security info", "multipleactiveresultsets", "mars_connection", "pooling", "charset",
)  # fmt: skip
_NO: Final = ("false", "no", "0", "optional", "disable")
_YES: Final = ("true", "yes", "1", "mandatory", "require")
_PAIR: Final = re.compile(r"\s*([^=;]+?)\s*=\s*(\{(?:[^}]|\}\})*\}|[^;]*)(?:;|$)")
_login: Final = threading.Lock()


class MssqlSettings(ServerSettings):
    """`connection_string` is a URL or an ADO.NET or ODBC string. Separate settings override its parts."""

    tls: Literal["disable", "require", "verify-full"] | None = tls_field()


class ConnectOptions(NamedTuple):
    """Connect options that are combined from all settings."""

    host: str
    port: int
    database: str
    username: str
    password: str
    tls: str


class MssqlConnector(ServerConnector):
    """See `Connector`."""

    kind: ClassVar[str] = "mssql"
    title: ClassVar[str] = "SQL Server"
    extra: ClassVar[str] = "mssql"
    module: ClassVar[str] = "pymssql"
    default_port: ClassVar[int | None] = 1433
    can: ClassVar[Capabilities] = Capabilities(name_chars=128)
    Settings: ClassVar[type[Settings]] = MssqlSettings
    settings: MssqlSettings

    # --- connecting ---

    def connect_options(self) -> ConnectOptions:
        """Return the connect options from the settings. Raises `ConnectorError` (reason `bad_settings`)."""
        settings = self.settings
        parsed = _parse_connection_string(settings.connection_string) if settings.connection_string else {}
        host = settings.host or parsed.get("host") or ""
        if not host or "/" in host or "\\" in host:
            raise bad_settings_error(
                "A host name is required.",
                "Enter a host and a port. Named instances are reached by their port.",
            )
        return ConnectOptions(
            host,
            settings.port or parsed.get("port") or 1433,
            settings.database or parsed.get("database") or "",
            parsed.get("username", "sa") if settings.username is None else settings.username,
            parsed.get("password", "") if settings.password is None else settings.password,
            settings.tls or parsed.get("tls") or ("verify-full" if settings.ca_certificate else "require"),
        )

    def open(self, timeout: float | None = None) -> MssqlSession:
        """See `Connector.open`."""
        self.driver()
        from webapp.connectors.sqlserver.session import MssqlSession

        return connect_session(
            self._link, lambda link, another: MssqlSession(link, another, self.read_only), timeout
        )

    def _link(self, seconds: float) -> MssqlConnection:
        """Connect to an address that the guard allowed. The driver's time limit applies to the whole process."""
        from pymssql import _mssql

        from webapp.connectors.sqlserver.connection import MssqlConnection, configured
        from webapp.connectors.sqlserver.session import SET_UP

        params = self.connect_options()
        address = reachable_address(self.gate, params.host, params.port, seconds)
        with (
            _login,
            configured(
                params.host,
                params.port,
                params.tls,
                address,
                self.settings.ca_certificate,
            ) as server,
        ):
            _mssql.login_timeout = max(1, int(seconds))
            try:
                return MssqlConnection(
                    server,
                    params.port,
                    user=params.username,
                    password=params.password,
                    database=params.database,
                    appname="rowsmith",
                    charset="UTF-8",
                    tds_version="7.4",
                    encryption=_ENCRYPTION[params.tls],
                    use_datetime2=True,
                    conn_properties=SET_UP,
                )
            except ConnectionLost as error:
                raise _connection_error(error, params) from None

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`."""
        return single_call_stages(self.gate, self.connect_options, self.open, TLS_MESSAGES)


def _parse_connection_string(text: str) -> dict[str, Any]:
    """Parse a connection string."""
    text = text.strip().removeprefix("jdbc:")
    scheme, mark, rest = text.partition("://")
    try:
        if mark and scheme.partition("+")[0].lower() in _SCHEMES and ";" not in rest:
            parsed, options = parse_url(rest)
            return parsed | _parse_options(options)
        if mark and scheme.lower() in _SCHEMES:  # jdbc:sqlserver://host:1433;databaseName=shop;user=...
            server, _, tail = rest.partition(";")
            return _parse_pairs(
                f"server={server.replace(':', ',')};{tail.replace('databaseName=', 'database=')}"
            )
        if not mark and "=" in text:
            return _parse_pairs(text)
    except ValueError:
        pass
    raise bad_settings_error(
        "The connection string is invalid.",
        "Use mssql://user:password@host:1433/database or Server=host,1433;Database=...;User Id=...;Password=...",
    )


def _parse_pairs(text: str) -> dict[str, Any]:
    pairs = []
    for match in _PAIR.finditer(text):
        value = match[2].strip()
        pairs.append((match[1], value[1:-1].replace("}}", "}") if value.startswith("{") else value))
    parsed = _parse_options(pairs)
    host, _, port = parsed.pop("host", "").removeprefix("tcp:").partition(",")
    if not host:
        raise ValueError
    return {"host": host.strip(), **({"port": int(port)} if port else {}), **parsed}


def _parse_options(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Interpret keys of ADO.NET, ODBC and JDBC.

    Encryption without trust in any certificate verifies the certificate (Microsoft,
    "SqlConnectionStringBuilder.TrustServerCertificate").
    """
    parsed: dict[str, Any] = {}
    for name, value in pairs:
        key = _KEYS.get(name.lower())
        if key:
            parsed[key] = value
        elif name.lower() not in _IGNORED:
            raise unknown_option_error(name, _KEYS)
    trust, encrypt = parsed.pop("trust", None), parsed.pop("encrypt", None)
    is_trusted = trust is not None and _is_yes("TrustServerCertificate", trust)
    if encrypt is not None:
        parsed["tls"] = (
            ("require" if is_trusted else "verify-full") if _is_yes("Encrypt", encrypt) else "disable"
        )
    elif trust is not None and not is_trusted:
        parsed["tls"] = "verify-full"
    return parsed


def _is_yes(name: str, value: str) -> bool:
    if value.lower() not in (*_YES, *_NO):
        strict = " TDS 8.0 is not supported." if value.lower() == "strict" else ""
        raise bad_settings_error(f"{name} does not accept {value!r}.", f"Use yes or no.{strict}")
    return value.lower() in _YES


def _connection_error(error: ConnectionLost, params: ConnectOptions) -> ConnectorError:
    """Return the error of a failed connection. The driver does not distinguish a rejected certificate."""
    message = error.message.replace("(rowsmith:", f"({params.host}:")
    if params.tls == "verify-full" and error.code != "target_timeout":
        return ConnectorError(
            f"A connection with a verified certificate could not be established: {message}",
            reason="tls_failed",
            hint="Enter the certificate of the authority that signed the server's, and the host name it was issued for."
            " With tls set to require, the certificate is not verified.",
        )
    return connection_failed_error(
        message, "Check that SQL Server listens on this address, with TLS as configured.", error.code
    )
