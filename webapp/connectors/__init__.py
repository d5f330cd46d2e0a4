"""Connections to the outside: one file for each kind, drivers imported where they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from webapp.connectors.ai import AiConnector
from webapp.connectors.base import Connector
from webapp.connectors.db2 import Db2Connector
from webapp.connectors.mongodb import MongodbConnector
from webapp.connectors.mssql import MssqlConnector
from webapp.connectors.mysql import MysqlConnector
from webapp.connectors.odata import OdataConnector
from webapp.connectors.openapi import OpenapiConnector
from webapp.connectors.oracle import OracleConnector
from webapp.connectors.postgresql import PostgresqlConnector
from webapp.connectors.rest import RestConnector
from webapp.connectors.sqlite import SqliteConnector

# Every kind of connection, by its wire name, in the order people are shown.
KINDS: Final[Mapping[str, type[Connector]]] = MappingProxyType(
    {
        "postgresql": PostgresqlConnector,
        "sqlite": SqliteConnector,
        "mysql": MysqlConnector,
        "mssql": MssqlConnector,
        "oracle": OracleConnector,
        "db2": Db2Connector,
        "mongodb": MongodbConnector,
        "rest": RestConnector,
        "odata": OdataConnector,
        "openapi": OpenapiConnector,
        "ai": AiConnector,
    }
)
