"""SQL Server, through pymssql: settings, the way there, and its verification."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

from webapp.connectors.base import Capabilities, ConnectorError, Lost, Settings, Stage
from webapp.connectors.server import (
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
from webapp.connectors.stages import bad_settings, unknown_option

if TYPE_CHECKING:
    from webapp.connectors.mssql_link import MssqlLink
    from webapp.connectors.mssql_session import MssqlSession

_SCHEMES: Final = ("mssql", "sqlserver")
_ENCRYPTION: Final = {"disable": "off", "require": "require", "verify-full": "require"}
# Keys of ADO.NET and ODBC strings.
_KEYS: Final = {
    "server": "host", "data source": "host", "address": "host", "database": "database", "initial catalog": "database",
    "user id": "username", "uid": "username", "user": "username", "password": "password", "pwd": "password",
    "encrypt": "encrypt", "trustservercertificate": "trust", "trust server certificate": "trust",
}  # fmt: skip
# Those that say how a program talks to the server, which is ours to say.
_IGNORED: Final = (
    "driver", "application name", "app", "connection timeout", "connect timeout", "timeout", "logintimeout",
    "persist security info", "multipleactiveresultsets", "mars_connection", "pooling", "charset",
)  # fmt: skip
_NO: Final = ("false", "no", "0", "optional", "disable")
_YES: Final = ("true", "yes", "1", "mandatory", "require")
_PAIR: Final = re.compile(r"\s*([^=;]+?)\s*=\s*(\{(?:[^}]|\}\})*\}|[^;]*)(?:;|$)")
_login: Final = threading.Lock()


class MssqlSettings(ServerSettings):
    """`connection_string` is a URL or an ADO.NET or ODBC string; the parts given beside it win."""

    tls: Literal["disable", "require", "verify-full"] | None = tls_part()


class Way(NamedTuple):
    """Where the settings lead."""

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

    # --- the way there ---

    def way(self) -> Way:
        """Where the settings lead. Raises `ConnectorError` (reason `bad_settings`)."""
        given = self.settings
        said = _read(given.connection_string) if given.connection_string else {}
        host = given.host or said.get("host") or ""
        if not host or "/" in host or "\\" in host:
            raise bad_settings(
                "There is no host name.", "Give host and port; named instances are reached by their port."
            )
        return Way(
            host,
            given.port or said.get("port") or 1433,
            given.database or said.get("database") or "",
            said.get("username", "sa") if given.username is None else given.username,
            said.get("password", "") if given.password is None else given.password,
            given.tls or said.get("tls") or ("verify-full" if given.ca_certificate else "require"),
        )

    def open(self, timeout: float | None = None) -> MssqlSession:
        """See `Connector.open`."""
        self.driver()
        from webapp.connectors.mssql_session import MssqlSession

        return entered(self._link, lambda *links: MssqlSession(*links, self.read_only), timeout)

    def _link(self, seconds: float) -> MssqlLink:
        """A connection to an address that the guard judged. The driver keeps its time limit for the whole process."""
        from pymssql import _mssql

        from webapp.connectors.mssql_link import MssqlLink, configured
        from webapp.connectors.mssql_session import SET_UP

        way = self.way()
        address = answering(self.gate, way.host, way.port, seconds)
        with _login, configured(way, address, self.settings.ca_certificate) as server:
            _mssql.login_timeout = max(1, int(seconds))
            try:
                return MssqlLink(
                    server,
                    way.port,
                    user=way.username,
                    password=way.password,
                    database=way.database,
                    appname="rowsmith",
                    charset="UTF-8",
                    tds_version="7.4",
                    encryption=_ENCRYPTION[way.tls],
                    use_datetime2=True,
                    conn_properties=SET_UP,
                )
            except Lost as error:
                raise _at_arrival(error, way) from None

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`."""
        return in_one_go(self.gate, self.way, self.open, SPOKEN)


def _read(text: str) -> dict[str, Any]:
    """What a connection string says."""
    text = text.strip().removeprefix("jdbc:")
    scheme, mark, rest = text.partition("://")
    try:
        if mark and scheme.partition("+")[0].lower() in _SCHEMES and ";" not in rest:
            found, options = of_url(rest)
            return found | _more(options)
        if mark and scheme.lower() in _SCHEMES:  # jdbc:sqlserver://host:1433;databaseName=shop;user=...
            server, _, tail = rest.partition(";")
            return _of_pairs(
                f"server={server.replace(':', ',')};{tail.replace('databaseName=', 'database=')}"
            )
        if not mark and "=" in text:
            return _of_pairs(text)
    except ValueError:
        pass
    raise bad_settings(
        "The connection string cannot be read.",
        "Write mssql://user:password@host:1433/database or Server=host,1433;Database=...;User Id=...;Password=...",
    )


def _of_pairs(text: str) -> dict[str, Any]:
    pairs = []
    for match in _PAIR.finditer(text):
        value = match[2].strip()
        pairs.append((match[1], value[1:-1].replace("}}", "}") if value.startswith("{") else value))
    found = _more(pairs)
    host, _, port = found.pop("host", "").removeprefix("tcp:").partition(",")
    if not host:
        raise ValueError
    return {"host": host.strip(), **({"port": int(port)} if port else {}), **found}


def _more(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """What the keys of ADO.NET, ODBC and JDBC say. Encryption without trust in any certificate is one that verifies
    (Microsoft, "SqlConnectionStringBuilder.TrustServerCertificate")."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        key = _KEYS.get(name.lower())
        if key:
            found[key] = value
        elif name.lower() not in _IGNORED:
            raise unknown_option(name, _KEYS)
    trust, encrypt = found.pop("trust", None), found.pop("encrypt", None)
    trusts = trust is not None and _said("TrustServerCertificate", trust)
    if encrypt is not None:
        found["tls"] = ("require" if trusts else "verify-full") if _said("Encrypt", encrypt) else "disable"
    elif trust is not None and not trusts:
        found["tls"] = "verify-full"
    return found


def _said(name: str, word: str) -> bool:
    if word.lower() not in (*_YES, *_NO):
        strict = " TDS 8.0 is not spoken here." if word.lower() == "strict" else ""
        raise bad_settings(f"{name} does not take {word!r}.", f"It takes yes or no.{strict}")
    return word.lower() in _YES


def _at_arrival(error: Lost, way: Way) -> ConnectorError:
    """Why no connection came about; the driver does not tell a certificate apart that is not accepted."""
    said = error.message.replace("(rowsmith:", f"({way.host}:")
    if way.tls == "verify-full" and error.code != "target_timeout":
        return ConnectorError(
            f"No connection with a verified certificate came about: {said}",
            reason="tls_failed",
            hint="Give the certificate of the authority that signed the server's, and the host name that it is for."
            " With tls set to require, the certificate is not verified.",
        )
    return unanswered(said, "Does SQL Server listen there, and does it speak TLS as set?", error.code)
