"""Connections to the outside: one file for each kind, itself imported where it is first asked for, as its driver is:
the child that looks at one target (apart.py) starts in half the time without the other ten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webapp.connectors.base import Connector

# Every kind of connection, by its wire name, in the order people are shown: its file here, and its class.
_CLASSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "postgresql": "postgresql.PostgresqlConnector",
        "sqlite": "sqlite.SqliteConnector",
        "mysql": "mysql.MysqlConnector",
        "mssql": "mssql.MssqlConnector",
        "oracle": "oracle.OracleConnector",
        "db2": "db2.Db2Connector",
        "mongodb": "mongodb.MongodbConnector",
        "rest": "rest.RestConnector",
        "odata": "odata.OdataConnector",
        "openapi": "openapi.OpenapiConnector",
        "ai": "ai.AiConnector",
    }
)


class _Kinds(Mapping[str, "type[Connector]"]):
    """The classes by the wire names of their kinds."""

    def __getitem__(self, name: str) -> type[Connector]:
        file, _, connector = _CLASSES[name].partition(".")
        return getattr(import_module(f"{__name__}.{file}"), connector)

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


KINDS: Final = _Kinds()
