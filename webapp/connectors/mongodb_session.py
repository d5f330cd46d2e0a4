"""An open MongoDB connection: looking around and reading."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from bson import json_util

from webapp import limits
from webapp.connectors import mongodb_catalog as catalog
from webapp.connectors import sql
from webapp.connectors.base import ConnectorError, Session, Target, Writing
from webapp.connectors.mongodb_link import Link, conversing
from webapp.connectors.mongodb_values import batch_of, got, rendered, same
from webapp.connectors.shape import Column, Entity, Metadata

_MS = int(limits.TARGET_QUERY_SECONDS * 1000)


class MongodbSession(Session):
    """One client of one database. `told` is what the server says of itself."""

    def __init__(self, link: Link, told: Mapping[str, Any], read_only: bool) -> None:
        self.link, self.read_only = link, read_only
        self.database = link.database
        self.title = f"MongoDB {told.get('version', '')}".rstrip()

    # --- the connection ---

    def close(self) -> None:
        """See `Session.close`."""
        self.link.close()

    def cancel(self) -> None:
        """See `Session.cancel`."""
        self.link.cut()

    # --- verification ---

    def permitted(self) -> str:
        """What the account may do, for people. Raises `ConnectorError` where it may not write."""
        with conversing():
            count = len(self.database.list_collection_names())
            told = self.database.command("connectionStatus", showPrivileges=True)["authInfo"]
        grants = [
            one for one in told.get("authenticatedUserPrivileges", ()) if self._is_ours(one["resource"])
        ]
        users = told.get("authenticatedUsers")
        if (
            users
            and not self.read_only
            and not any({"insert", "anyAction"} & set(one["actions"]) for one in grants)
        ):
            raise ConnectorError(
                f"The account may not write to {self.database.name}.",
                reason="no_permission",
                hint="Grant it readWrite there, or mark the connection read-only.",
            )
        return f"{count:,} collections of {self.database.name} are visible."

    def _is_ours(self, resource: Mapping[str, Any]) -> bool:
        return bool(resource.get("anyResource")) or resource.get("db") in ("", self.database.name)

    def sampled(self) -> str:
        """One document of the first collection is read, for people."""
        with conversing():
            found = catalog.listed(self.database)
            if not found:
                return "There is no collection yet."
            self.database[found[0]["name"]].find_one(max_time_ms=_MS)
        return f"{found[0]['name']} was read."

    # --- looking around ---

    def metadata(self) -> Metadata:
        """See `Session.metadata`. Two questions for each collection: its indexes, and some of its documents."""
        with conversing():
            found = tuple(catalog.entity(self.database, one) for one in catalog.listed(self.database))
        return Metadata("mongodb", self.title, found)

    def entity(self, name: str) -> Entity | None:
        """See `Session.entity`."""
        if not name:
            return None
        with conversing():
            told = catalog.listed(self.database, name)
            exact = [one for one in told if one["name"] == name]
            found = [catalog.entity(self.database, one) for one in (exact or told)[:2]]
        return sql.matched(found, name)

    # --- reading ---

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        if limit < 1:
            return batch_of([], [column.name for column in entity.fields])
        with conversing(), self.database[entity.name].find(limit=int(limit), max_time_ms=_MS) as cursor:
            found = sql.first(cursor)
        return batch_of(found, [column.name for column in entity.fields])

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`."""
        with conversing():
            cursor = self.database[entity.name].find(
                _condition(where),
                _chosen(columns),
                sort=[(name, 1) for name in (columns if order is None else order)] or None,
                allow_disk_use=True,
                batch_size=limits.TARGET_READ_ROWS,
            )
            with cursor:
                for piece in sql.grouped(cursor):
                    yield batch_of(piece, columns)

    def known(self, entity: Entity, columns: Sequence[str], wanted: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.known`."""
        fields = [entity.column(name) or Column(name, "other", "") for name in columns]
        cells = [rendered(array, field)[0] for array, field in zip(wanted.columns, fields, strict=True)]
        rows = list(zip(*cells, strict=True))
        return pa.array(self.there(entity.name, columns, rows), pa.bool_())

    def there(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[bool]:
        """Whether a collection has documents of these values; None is nowhere."""
        found: set[Any] = set()
        asked = [row for row in rows if None not in row]
        for at in range(0, len(asked), limits.MONGODB_KNOWN_ROWS):
            some = asked[at : at + limits.MONGODB_KNOWN_ROWS]
            either = [dict(zip(columns, row, strict=True)) for row in some]
            if len(columns) == 1:
                query: dict[str, Any] = {columns[0]: {"$in": [row[0] for row in some]}}
            else:
                query = {"$or": either}
            with conversing():
                documents = self.database[name].find(query, _chosen(columns), max_time_ms=_MS)
                found.update(tuple(same(got(one, column)) for column in columns) for one in documents)
        return [None not in row and tuple(map(same, row)) in found for row in rows]

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `Session.query`; MongoDB has none of that form."""
        raise ConnectorError(
            "MongoDB takes no queries in SQL.",
            reason="unsupported",
            hint="List keys of a collection instead.",
        )

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`; MongoDB has no statements."""
        self.may_write()
        raise ConnectorError("MongoDB takes no SQL.", reason="unsupported", hint="Leave the statements out.")

    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create`: the collection, and a unique index on keys other than `_id`."""
        statement = self.create_statement(name, columns, keys)
        self.may_write()
        with conversing():
            self.database.create_collection(name, check_exists=False)
            if keys and tuple(keys) != (catalog.ID,):
                self.database[name].create_index([(key, 1) for key in keys], unique=True)
        return statement

    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create_statement`: what a person would type into the shell."""
        if not name or "$" in name or "\0" in name or name.startswith(("system.", ".")) or name.endswith("."):
            raise ConnectorError(
                f"{name!r} cannot be a collection.", reason="bad_name", hint="Give it another name."
            )
        if len(name) > 120:
            raise ConnectorError(
                "The name is too long.", reason="bad_name", hint="120 characters are enough."
            )
        lines = [f"db.createCollection({json.dumps(name, ensure_ascii=False)})"]
        if keys and tuple(keys) != (catalog.ID,):
            told = json.dumps(dict.fromkeys(keys, 1), ensure_ascii=False)
            collection = json.dumps(name, ensure_ascii=False)
            lines.append(f"db.getCollection({collection}).createIndex({told}, {{unique: true}})")
        return ";\n".join(lines)

    def target(self, writing: Writing) -> Target:
        """See `Session.target`."""
        from webapp.connectors.mongodb_target import MongodbTarget

        self.may_write()
        if writing.entity.kind == "view":
            raise ConnectorError(
                f"{writing.entity.name} is a view.", reason="unsupported", hint="Pick its collection."
            )
        return MongodbTarget(self, writing)

    def settled(self, entity: Entity, proof: Mapping[str, Any]) -> bool | None:
        """See `Session.settled`. There are no transactions; rows carry keys, and are sent again."""
        return None


def _chosen(columns: Sequence[str]) -> dict[str, int]:
    return {catalog.ID: 0, **dict.fromkeys(columns, 1)}


_CODE: Final = frozenset({"$where", "$function", "$accumulator"})


def _operators(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from _operators(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _operators(inner)


def _condition(where: str) -> dict[str, Any]:
    """A condition as JSON, MongoDB's extended one too ({"$oid": ...})."""
    if not where.strip():
        return {}
    try:
        found = json_util.loads(where)
        runs_code = bool(_CODE.intersection(_operators(found)))
    except (ValueError, TypeError, RecursionError) as error:
        found, runs_code = error, False
    if runs_code:
        raise ConnectorError(
            "The condition runs JavaScript on the server.",
            reason="bad_query",
            hint=f"Do without {', '.join(sorted(_CODE))}.",
        )
    if not isinstance(found, dict):
        raise ConnectorError(
            "The condition is not a JSON object.",
            reason="bad_query",
            hint='Write it like {"status": "active"}.',
        )
    return found
