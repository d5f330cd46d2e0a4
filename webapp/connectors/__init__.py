"""Connections to databases and services: one package for each kind.

A kind's module is imported when the kind is first used, as is its driver: the child process that inspects one target
(`driver_process`) starts in half the time without the other ten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webapp.connectors.base import Connector

# Each kind of connection in the order in which pages list them: its wire name, its package here and its class.
_CLASSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "postgresql": "postgresql.PostgresqlConnector",
        "sqlite": "sqlite.SqliteConnector",
        "mysql": "mysql.MysqlConnector",
        "mssql": "sqlserver.MssqlConnector",
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
    """Connector classes by the wire names of their kinds, imported on first use."""

    def __getitem__(self, name: str) -> type[Connector]:
        package, _, class_name = _CLASSES[name].partition(".")
        found: type[Connector] = getattr(import_module(f"{__name__}.{package}.connector"), class_name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


KINDS: Final = _Kinds()
