"""IBM Db2 for Linux, UNIX and Windows, through ibm_db: settings, the way there, and its verification."""

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
from webapp.connectors.server import (
    ServerConnector,
    ServerSettings,
    answering,
    entered,
    in_one_go,
    of_url,
    part,
    tls_part,
    unanswered,
)
from webapp.connectors.stages import bad_settings, unknown_option

if TYPE_CHECKING:
    from webapp.connectors.db2_link import Db2Link
    from webapp.connectors.db2_session import Db2Session

_SCHEMES: Final = ("db2", "db2+ibm_db", "ibm_db_sa")
# Keys of the driver's own strings, of JDBC's and of URLs' queries, without case.
_KEYS: Final = {
    "hostname": "host", "port": "port", "database": "database", "uid": "username", "user": "username",
    "pwd": "password", "password": "password", "currentschema": "schema", "security": "tls", "sslconnection": "tls",
}  # fmt: skip
# How a program talks to the server, which is ours to say.
_IGNORED: Final = (
    "protocol", "connecttimeout", "logintimeout", "querytimeout", "sslclienthostnamevalidation", "clientapplname",
    "driver", "autocommit",
)  # fmt: skip
_JDBC: Final = re.compile(
    r"jdbc:db2://(?P<host>\[[^\]]+\]|[^:/\s]+)(?::(?P<port>\d+))?/(?P<database>[^:;\s]+)(?::(?P<rest>.*))?"
)
# What the driver would read as further keywords, some of which name files.
_UNTAKEN: Final = re.compile(r"[;{}\x00-\x1f]")


class Db2Settings(ServerSettings):
    """`connection_string` is a URL, the driver's `KEY=value;` pairs or a JDBC URL; the parts given beside it win."""

    db_schema: str | None = part(7, 128, alias="schema")
    tls: Literal["disable", "verify-ca"] | None = tls_part()


@dataclass(frozen=True, slots=True)
class Way:
    """Where the settings lead."""

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
        """See `Connector.driver`. It reads this from the environment alone: a server that it loses may not send it on
        to another one, whose address nobody has judged."""
        os.environ["DB2_MAX_CLIENT_CONNRETRIES"] = "0"
        return super().driver()

    # --- the way there ---

    def way(self) -> Way:
        """Where the settings lead. Raises `ConnectorError` (reason `bad_settings`)."""
        given = self.settings
        said = _read(given.connection_string) if given.connection_string else {}
        host, database = given.host or said.get("host") or "", given.database or said.get("database") or ""
        if not host or not database:
            raise bad_settings(
                "Host or database are missing.", "Give both; Db2 has no database of its own accord."
            )
        username = said.get("username", "") if given.username is None else given.username
        password = said.get("password", "") if given.password is None else given.password
        named = {"host": host, "database": database, "user name": username, "password": password}
        if not username:
            raise bad_settings("The user name is missing.", "Give an account; Db2 takes nobody without one.")
        for name, value in named.items():
            if _UNTAKEN.search(value):
                raise bad_settings(
                    f"The {name} has a sign that the driver cannot take: ; {{ }}", "Use another one."
                )
        return Way(
            host,
            given.port or said.get("port") or 50_000,
            database,
            username,
            password,
            given.db_schema or said.get("schema"),
            given.tls or said.get("tls") or ("verify-ca" if given.ca_certificate else "disable"),
        )

    def open(self, timeout: float | None = None) -> Db2Session:
        """See `Connector.open`."""
        self.driver()
        from webapp.connectors.db2_session import Db2Session

        def session(link: Db2Link, another: Callable[[], Db2Link]) -> Db2Session:
            return Db2Session(link, another, self.read_only, self.way().schema)

        return entered(self._link, session, timeout)

    def _link(self, seconds: float) -> Db2Link:
        """A connection to an address that the guard judged."""
        from webapp.connectors.db2_link import Db2Link

        way = self.way()
        address = answering(self.gate, way.host, way.port, seconds)
        try:
            with self._authority(way) as file:
                return Db2Link(dsn(way, address, seconds, file), address, way.port)
        except base.Lost as error:
            raise unanswered(error.message, "Does Db2 listen there, with or without TLS as set?") from None

    @contextmanager
    def _authority(self, way: Way) -> Iterator[str | None]:
        """The CA certificate as a file, which is what the driver reads, for as long as it connects."""
        text = self.settings.ca_certificate
        if way.tls == "disable" or not text:
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
        """See `Connector.stages`. The driver signs in and agrees on TLS in one go."""
        spoken = {
            "disable": "Without TLS, as set.",
            "verify-ca": "With TLS, certificate verified, its name not.",
        }
        yield from in_one_go(self.gate, self.way, self.open, spoken)


def dsn(way: Way, address: str, seconds: float, authority: str | None) -> str:
    """The driver's string for an address; `authority` is a file of certificates."""
    pairs = {"HOSTNAME": address, "PORT": str(way.port), "PROTOCOL": "TCPIP"}
    pairs["ConnectTimeout"] = str(max(1, int(seconds)))
    if way.tls != "disable":
        # The driver knows the address alone, which is no name that the certificate could be for.
        pairs |= {"SECURITY": "SSL", "SSLClientHostnameValidation": "Off"}
    if authority is not None:
        pairs["SSLServerCertificate"] = authority
    # Last is what people choose: however the driver reads its signs, it hides none of the above.
    pairs |= {"DATABASE": way.database, "UID": way.username, "PWD": way.password}
    return "".join(f"{key}={value};" for key, value in pairs.items())


def _read(text: str) -> dict[str, Any]:
    """What a connection string says."""
    text = text.strip()
    scheme, mark, rest = text.partition("://")
    try:
        if mark and scheme.lower() in _SCHEMES:
            found, options = of_url(rest)
            query = _named(options)
            return found | {name: query[name] for name in ("schema", "tls") if name in query}
        if jdbc := _JDBC.fullmatch(text):
            found = {"host": jdbc["host"].strip("[]"), "database": jdbc["database"]}
            port = {"port": int(jdbc["port"])} if jdbc["port"] else {}
            return found | port | _of_pairs(jdbc["rest"] or "")
        if not mark and "=" in text:
            return _of_pairs(text)
    except ValueError:
        pass
    raise bad_settings(
        "The connection string cannot be read.",
        "Write db2://user:password@host:50000/database or DATABASE=...;HOSTNAME=...;PORT=50000;UID=...;PWD=...;",
    )


def _of_pairs(text: str) -> dict[str, Any]:
    found = _named(pair.partition("=")[::2] for pair in text.split(";") if "=" in pair)
    if "port" in found:
        found["port"] = int(found["port"])
    return found


def _named(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        word = key.strip().lower()
        name = _KEYS.get(word)
        if name is None and word not in _IGNORED:
            raise unknown_option(key.strip(), _KEYS, "A certificate goes into ca_certificate.")
        if name == "tls":
            found["tls"] = "verify-ca" if value.strip().lower() in ("ssl", "true") else "disable"
        elif name:
            found[name] = value.strip()
    return found
