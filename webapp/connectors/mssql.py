"""SQL Server, through pymssql: settings, the way there, and its verification."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Field, model_validator

from webapp import limits
from webapp.connectors.base import (
    Capabilities,
    Connector,
    ConnectorError,
    DriverMissing,
    Lost,
    Settings,
    Stage,
)
from webapp.connectors.stages import bad_settings, of_gate, staged
from webapp.net.gate import GateError

if TYPE_CHECKING:
    from webapp.connectors.mssql_link import MssqlLink
    from webapp.connectors.mssql_session import MssqlSession

_SCHEMES: Final = ("mssql", "sqlserver")
_ENCRYPTION: Final = {"disable": "off", "require": "require"}
# Keys of ADO.NET and ODBC strings.
_KEYS: Final = {
    "server": "host", "data source": "host", "address": "host", "database": "database", "initial catalog": "database",
    "user id": "username", "uid": "username", "user": "username", "password": "password", "pwd": "password",
    "encrypt": "encrypt",
}  # fmt: skip
_PAIR: Final = re.compile(r"\s*([^=;]+?)\s*=\s*(\{(?:[^}]|\}\})*\}|[^;]*)(?:;|$)")
_login: Final = threading.Lock()


class MssqlSettings(Settings):
    """`connection_string` is a URL or an ADO.NET or ODBC string; the parts given beside it win."""

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
    tls: Literal["disable", "require"] | None = Field(None, json_schema_extra={"group": "tls", "order": 7})

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if not self.connection_string and not self.host:
            raise ValueError("give a connection_string or a host")
        return self


class Way(NamedTuple):
    """Where the settings lead."""

    host: str
    port: int
    database: str
    username: str
    password: str
    tls: str


class MssqlConnector(Connector):
    """See `Connector`."""

    kind: ClassVar[str] = "mssql"
    title: ClassVar[str] = "SQL Server"
    extra: ClassVar[str] = "mssql"
    default_port: ClassVar[int | None] = 1433
    can: ClassVar[Capabilities] = Capabilities(name_chars=128)
    Settings: ClassVar[type[Settings]] = MssqlSettings
    settings: MssqlSettings

    @classmethod
    def driver(cls) -> ModuleType:
        """See `Connector.driver`."""
        try:
            import pymssql
        except ImportError:
            raise DriverMissing(cls.title, cls.extra) from None
        return pymssql

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
            given.tls or said.get("tls") or "require",
        )

    def open(self, timeout: float | None = None) -> MssqlSession:
        """See `Connector.open`."""
        self.driver()
        from webapp.connectors.mssql_session import MssqlSession

        seconds = timeout or limits.TARGET_CONNECT_SECONDS
        link = self._link(seconds)
        try:
            return MssqlSession(link, lambda: self._link(seconds), self.read_only)
        except BaseException:
            link.close()
            raise

    def _link(self, seconds: float) -> MssqlLink:
        """A connection to an address that the guard judged. The driver keeps its time limit for the whole process."""
        from pymssql import _mssql

        from webapp.connectors.mssql_link import MssqlLink
        from webapp.connectors.mssql_session import SET_UP

        way = self.way()
        try:
            with self.gate.connect(way.host, way.port, seconds) as answering:
                address = answering.getpeername()[0]
        except GateError as error:
            raise of_gate(error) from None
        with _login:
            _mssql.login_timeout = max(1, int(seconds))
            try:
                return MssqlLink(
                    address,
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
                raise ConnectorError(
                    f"No connection came about: {error.message}",
                    code=error.code,
                    reason="tls_failed" if way.tls == "require" and "TLS" in error.message.upper() else "refused",
                    hint="Does SQL Server listen there, and does it speak TLS as set?",
                    transient=True,
                ) from None

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`. The driver signs in and agrees on TLS in one go."""
        opened: list[MssqlSession] = []
        way: list[Way] = []

        def resolve() -> str:
            way.append(self.way())
            return f"{way[0].host} is {', '.join(self.gate.addresses(way[0].host, way[0].port))}."

        def connect() -> str:
            self.gate.connect(way[0].host, way[0].port, limits.TARGET_CONNECT_SECONDS).close()
            return f"Port {way[0].port} answers."

        def auth() -> str:
            opened.append(self.open())
            how = "Without TLS, as set." if way[0].tls == "disable" else "With TLS, certificate not verified."
            return f"Signed in to {opened[0].title}. {how}"

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
    text = text.strip().removeprefix("jdbc:")
    scheme, mark, rest = text.partition("://")
    try:
        if mark and scheme.partition("+")[0].lower() in _SCHEMES and ";" not in rest:
            return _of_url(rest)
        if mark and scheme.lower() in _SCHEMES:  # jdbc:sqlserver://host:1433;databaseName=shop;user=...
            server, _, tail = rest.partition(";")
            return _of_pairs(f"server={server.replace(':', ',')};{tail.replace('databaseName=', 'database=')}")
        if not mark and "=" in text:
            return _of_pairs(text)
    except ValueError:
        pass
    raise bad_settings(
        "The connection string cannot be read.",
        "Write mssql://user:password@host:1433/database or Server=host,1433;Database=...;User Id=...;Password=...",
    )


def _of_url(rest: str) -> dict[str, Any]:
    parts = urlsplit(f"mssql://{rest}")
    found: dict[str, Any] = {"host": parts.hostname, "port": parts.port}
    for name, value in (("database", parts.path.removeprefix("/")), ("username", parts.username)):
        if value:
            found[name] = unquote(value)
    if parts.password is not None:
        found["password"] = unquote(parts.password)
    encrypt = {name.lower(): value for name, value in parse_qsl(parts.query)}.get("encrypt")
    return found | ({"tls": _tls(encrypt)} if encrypt else {})


def _of_pairs(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for match in _PAIR.finditer(text):
        name, value = _KEYS.get(match[1].lower()), match[2].strip()
        if value.startswith("{"):
            value = value[1:-1].replace("}}", "}")
        if name == "encrypt":
            found["tls"] = _tls(value)
        elif name == "host":
            host, _, port = value.removeprefix("tcp:").partition(",")
            found |= {"host": host.strip(), **({"port": int(port)} if port else {})}
        elif name:
            found[name] = value
    if "host" not in found:
        raise ValueError
    return found


def _tls(word: str) -> str:
    return "disable" if word.lower() in ("false", "no", "0", "optional", "disable") else "require"
