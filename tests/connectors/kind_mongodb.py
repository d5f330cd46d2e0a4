"""A database in a MongoDB of this process (`tests.fakes.mongo_wire`), which the real driver talks to over TCP."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from typing import Any

from tests.connectors.kinds import GATE, Kind, Table
from tests.fakes.mongo_wire import MongoWire
from webapp.connectors.base import Connector
from webapp.connectors.mongodb.connector import MongodbConnector

TYPES = {
    "integer": ["long"], "decimal": ["decimal"], "float": ["double"], "boolean": ["bool"], "date": ["date"],
    "timestamp": ["date"], "timestamptz": ["date"], "text": ["string"], "binary": ["binData"], "uuid": ["string"],
    "array": ["array"], "json": ["object", "array", "string"],
}  # fmt: skip
WRITER, READER = ("writer", "for this test only"), ("reader", "for this test only")


class MongodbKind(Kind):
    name = "mongodb"
    lacks = frozenset(
        {"foreign_key", "identity", "cut", "held", "create", "defaults", "transactions", "keys", "precision"}
    )
    added = ("_id",)
    other_names = frozenset({"dot.ted"})

    @classmethod
    def unavailable(cls) -> str | None:
        return None

    def start(self) -> None:
        self.server = MongoWire({name: (password, name == "writer") for name, password in (WRITER, READER)})

    def stop(self) -> None:
        self.server.stop()

    def connector(self, *, read_only: bool = False, account: tuple[str, str] = WRITER) -> Connector:
        settings = MongodbConnector.Settings(
            host="127.0.0.1",
            port=self.server.port,
            database="shop",
            username=account[0],
            password=account[1],
            options={"authMechanism": "PLAIN"},
        )
        return MongodbConnector(settings, GATE, read_only=read_only)

    def stranger(self) -> Connector:
        return self.connector(account=READER)

    def make(self, table: Table) -> None:
        rules: dict[str, Any] = {}
        for name, col in table.columns.items():
            rules[name] = {"bsonType": [*TYPES[col.type], *(["null"] if col.null else [])]}
            if col.length:
                rules[name]["maxLength"] = col.length
            if col.least is not None:
                rules[name]["minimum"] = col.least
        needed = [name for name, col in table.columns.items() if not col.null]
        schema = {"properties": rules, "required": needed}
        run = self.server._answer
        user = [WRITER[0]]
        run({"create": table.name, "validator": {"$jsonSchema": schema}, "$db": "shop"}, user)
        keys = [name for name, col in table.columns.items() if col.key]
        for columns in [keys, *([name] for name, col in table.columns.items() if col.unique)]:
            if columns:
                index = {"key": dict.fromkeys(columns, 1), "name": "_".join(columns), "unique": True}
                run({"createIndexes": table.name, "indexes": [index], "$db": "shop"}, user)

    def documents(self, table: str) -> list[dict[str, Any]]:
        found = self.server.databases["shop"].get(table)
        return list(found.documents.values()) if found else []

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        names = columns or tuple(
            dict.fromkeys(name for document in self.documents(table) for name in document if name != "_id")
        )
        found = [tuple(_plain(document.get(name)) for name in names) for document in self.documents(table)]
        return sorted(found, key=lambda row: row[0])

    def kept(self, type: str, value: Any) -> Any:
        if value is None:
            return None
        if type == "json":
            return json.loads(value)
        if type == "timestamp":
            return value.replace(tzinfo=dt.UTC)
        return dt.datetime.combine(value, dt.time(), dt.UTC) if type == "date" else value

    def told(self, type: str) -> str:
        return "timestamptz" if type == "timestamp" else type


def _plain(value: Any) -> Any:
    if hasattr(value, "to_decimal"):
        found = value.to_decimal()
        return Decimal(found)
    return uuid.UUID(bytes=bytes(value)) if getattr(value, "subtype", 0) == 4 else value
