"""A connection to MongoDB: metadata, reading, and writing documents.

There are no transactions, so a chunk may be sent again: every inserted document has an `_id` that is the same
each time its row is sent. A document that already exists with exactly the same fields under an ObjectId was
delivered by an earlier attempt. Under any other key it might come from somewhere else, and is rejected as a
duplicate, unless the rows are known to be sent again (`WriteSpec.again`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import bson
import pyarrow as pa
import pymongo
from bson import ObjectId, json_util
from bson.errors import InvalidDocument
from bson.raw_bson import RawBSONDocument
from pymongo import errors

from webapp import limits
from webapp.connectors.base import ConnectorError, RowError, Session, Target, WriteResult, WriteSpec
from webapp.connectors.mongodb import catalog
from webapp.connectors.mongodb.catalog import ID
from webapp.connectors.mongodb.connection import Link, convert_error, converting_errors
from webapp.connectors.mongodb.values import batch_of, column_of, got, put, rendered, same
from webapp.connectors.schema import Column, Entity, Metadata
from webapp.connectors.sql import base as sql
from webapp.connectors.sql.base import shortened
from webapp.engine.formats.nested import is_json_text

# Convert errors of rejected documents: duplicates in a unique index, and violations of the validator.

_DUPLICATE_KEY: Final = 11000
_INVALID: Final = 121
# Reasons for rules of validators (MongoDB, "$jsonSchema").
_RULES: Final = {
    "required": "not_null", "bsonType": "wrong_type", "type": "wrong_type", "maxLength": "too_long",
    "maxItems": "too_long", "minimum": "check", "maximum": "check", "minLength": "check", "pattern": "check",
    "enum": "check", "multipleOf": "check", "minItems": "check", "uniqueItems": "check",
}  # fmt: skip


def failure(place: int, told: Mapping[str, Any], entity: Entity) -> RowError:
    """Return the error of one row of a bulk write."""
    code, message = told.get("code"), shortened(str(told.get("errmsg", "")))
    if code == _DUPLICATE_KEY:
        pattern = told.get("keyPattern") or {}
        column = next(iter(pattern)) if len(pattern) == 1 else None
        return RowError(place, "unique", message, str(code), column)
    if code == _INVALID:
        for name, rule in _broken(told.get("errInfo") or {}):
            word, value = str(rule.get("operatorName", "")), rule.get("consideredValue")
            if word == "required":
                reason, said = "not_null", f"{name} is required"
            elif word in ("bsonType", "type") and value is None and "consideredType" in rule:
                reason, said = "not_null", f"{name} cannot be null"
            else:
                reason, said = (
                    _RULES.get(word, "refused"),
                    f"{name}: {word} {rule.get('specifiedAs', {}).get(word)}",
                )
            known = name if entity.column(name) else None
            return RowError(place, reason, shortened(f"{message}: {said}"), str(code), known)
    return RowError(place, "refused", message or "The server rejected the document.", str(code or ""))


def _broken(info: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield fields with the rules that they violate (MongoDB 5.0, "Schema Validation", the error output)."""
    for rule in (info.get("details") or {}).get("schemaRulesNotSatisfied") or ():
        for field in rule.get("propertiesNotSatisfied") or ():
            for detail in field.get("details") or ():
                yield str(field.get("propertyName")), detail
        for name in rule.get("missingProperties") or ():
            yield str(name), rule


_MS = int(limits.TARGET_QUERY_SECONDS * 1000)


class MongodbSession(Session):
    """A client of one database. `server_info` is the server's description of itself."""

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
        """Return what the account can see, as a message. Raises `ConnectorError` if it may not write.

        Compatible servers may list no privileges at all: then it is unknown whether it may write.
        """
        with converting_errors():
            count = len(self.database.list_collection_names())
            told = self.database.command("connectionStatus", showPrivileges=True)["authInfo"]
        privileges = told.get("authenticatedUserPrivileges") or ()
        grants = [one for one in privileges if self._is_ours(one["resource"])]
        if (
            told.get("authenticatedUsers")
            and privileges
            and not self.read_only
            and not any({"insert", "anyAction"} & set(grant["actions"]) for grant in grants)
        ):
            raise ConnectorError(
                f"The account is not allowed to write to {self.database.name}.",
                reason="no_permission",
                hint="Grant it readWrite on the database, or mark the connection as read-only.",
            )
        return f"{count:,} collections in {self.database.name} are visible."

    def _is_ours(self, resource: Mapping[str, Any]) -> bool:
        return bool(resource.get("anyResource")) or resource.get("db") in ("", self.database.name)

    def sampled(self) -> str:
        """Read one document of the first collection, and return a message."""
        with converting_errors():
            found = catalog.listed(self.database)
            if not found:
                return "No collections yet."
            self.database[found[0]["name"]].find_one(max_time_ms=_MS)
        return f"Read from {found[0]['name']}."

    # --- metadata ---

    def metadata(self) -> Metadata:
        """See `Session.metadata`. Uses two requests for each collection: its indexes, and some of its
        documents."""
        with converting_errors():
            found = tuple(catalog.entity(self.database, one) for one in catalog.listed(self.database))
        return Metadata("mongodb", self.title, found)

    def entity(self, name: str) -> Entity | None:
        """See `Session.entity`."""
        if not name:
            return None
        with converting_errors():
            told = catalog.listed(self.database, name)
            exact = [one for one in told if one["name"] == name]
            found = [catalog.entity(self.database, one) for one in (exact or told)[:2]]
        return sql.matched(found, name)

    # --- reading ---

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        if limit < 1:
            return batch_of([], [column.name for column in entity.fields])
        with (
            converting_errors(),
            self.database[entity.name].find(limit=int(limit), max_time_ms=_MS) as cursor,
        ):
            found = sql.first(cursor)
        return batch_of(found, [column.name for column in entity.fields])

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`."""
        with converting_errors():
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

    def contains(self, entity: Entity, columns: Sequence[str], wanted: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.contains`."""
        fields = [entity.column(name) or Column(name, "other", "") for name in columns]
        cells = [rendered(array, field)[0] for array, field in zip(wanted.columns, fields, strict=True)]
        rows = list(zip(*cells, strict=True))
        return pa.array(self.there(entity.name, columns, rows), pa.bool_())

    def there(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[bool]:
        """Return for each combination of values whether the collection contains it. None is never contained."""
        found: set[Any] = set()
        asked = [row for row in rows if None not in row]
        for at in range(0, len(asked), limits.MONGODB_KNOWN_ROWS):
            some = asked[at : at + limits.MONGODB_KNOWN_ROWS]
            either = [dict(zip(columns, row, strict=True)) for row in some]
            if len(columns) == 1:
                query: dict[str, Any] = {columns[0]: {"$in": [row[0] for row in some]}}
            else:
                query = {"$or": either}
            with converting_errors():
                documents = self.database[name].find(query, _chosen(columns), max_time_ms=_MS)
                found.update(
                    tuple(same(got(document, column)) for column in columns) for document in documents
                )
        return [None not in row and tuple(map(same, row)) in found for row in rows]

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `Session.query`, which MongoDB does not support."""
        raise ConnectorError(
            "MongoDB does not support SQL queries.",
            reason="unsupported",
            hint="Use the keys of a collection instead.",
        )

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`, which MongoDB does not support."""
        self.may_write()
        raise ConnectorError(
            "MongoDB does not support SQL.", reason="unsupported", hint="Remove the statements."
        )

    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create`: creates the collection, and a unique index on keys other than `_id`."""
        statement = self.create_statement(name, columns, keys)
        self.may_write()
        with converting_errors():
            self.database.create_collection(name, check_exists=False)
            if keys and tuple(keys) != (catalog.ID,):
                self.database[name].create_index([(key, 1) for key in keys], unique=True)
        return statement

    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create_statement`: returns commands for the MongoDB shell."""
        if not name or "$" in name or "\0" in name or name.startswith(("system.", ".")) or name.endswith("."):
            raise ConnectorError(
                f"{name!r} is not a valid collection name.", reason="bad_name", hint="Choose another name."
            )
        if len(name) > 120:
            raise ConnectorError(
                "The name is too long.", reason="bad_name", hint="Use at most 120 characters."
            )
        lines = [f"db.createCollection({json.dumps(name, ensure_ascii=False)})"]
        if keys and tuple(keys) != (catalog.ID,):
            told = json.dumps(dict.fromkeys(keys, 1), ensure_ascii=False)
            collection = json.dumps(name, ensure_ascii=False)
            lines.append(f"db.getCollection({collection}).createIndex({told}, {{unique: true}})")
        return ";\n".join(lines)

    def target(self, writing: WriteSpec) -> Target:
        """See `Session.target`."""

        self.may_write()
        if writing.entity.kind == "view":
            raise ConnectorError(
                f"{writing.entity.name} is a view.",
                reason="unsupported",
                hint="Select the underlying collection.",
            )
        return MongodbTarget(self, writing)

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`. There are no transactions; rows have keys, and are sent again."""
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
    """Parse a condition in JSON or MongoDB's Extended JSON ({"$oid": ...})."""
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
            hint=f"Remove {', '.join(sorted(_CODE))}.",
        )
    if not isinstance(found, dict):
        raise ConnectorError(
            "The condition is not a JSON object.",
            reason="bad_query",
            hint='Use a form such as {"status": "active"}.',
        )
    return found


_DUPLICATE: Final = 11000


class MongodbTarget(Target):
    """See `Target`."""

    def __init__(self, session: MongodbSession, writing: WriteSpec) -> None:
        self.writing = writing
        self._session = session
        self._collection = session.database[writing.entity.name]
        self._names = [column.name for column in writing.columns]
        _judge(self._names, writing)

    # --- transactions (not supported) ---

    def begin(self) -> None:
        """See `Target.begin`."""

    def commit_token(self) -> dict[str, Any]:
        """See `Target.commit_token`: empty, because rows are visible immediately and may be sent again."""
        return {}

    def commit(self) -> None:
        """See `Target.commit`."""

    def rollback(self) -> None:
        """See `Target.rollback`: does nothing, because nothing can be rolled back."""

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`: returns commands for the MongoDB shell."""
        rows, _ = self._rows(batch)
        collection = f"db.getCollection({json_util.dumps(self.writing.entity.name, ensure_ascii=False)})"
        told = []
        for row in rows:
            if self.writing.mode == "insert":
                told.append(f"{collection}.insertOne({_shell(self._document(row))})")
                continue
            found, change = self._change(row)
            tail = ", {upsert: true}" if self.writing.mode == "upsert" else ""
            told.append(f"{collection}.updateOne({_shell(found)}, {_shell(change)}{tail})")
        return told

    def send(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.send`."""
        rows, failures = self._rows(batch)
        bad = {error.index for error in failures}
        places = [place for place in range(len(rows)) if place not in bad]
        ids: list[Any] = [None] * len(rows)
        if self.writing.mode == "insert":
            documents = {place: self._document(rows[place]) for place in places}
            for place, document in documents.items():
                ids[place] = document.setdefault(ID, ObjectId())
            failures += self._insert(documents)
        else:
            failures += self._changed(places, rows)
        failures = sorted(failures, key=lambda one: one.index)
        return WriteResult(failures, self._captured(rows, ids, failures) if self.writing.capture else None)

    def delete(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.delete`."""
        keys = self.writing.key_columns
        rows, failures = self._rows(batch)
        cells = [tuple(row[self._names.index(key)] for key in keys) for row in rows]
        there = self._session.there(self.writing.entity.name, keys, cells)
        bad, done, operations = {error.index for error in failures}, set(), []
        for place, cell in enumerate(cells):
            mark = tuple(map(same, cell))
            if place in bad:
                continue
            if not there[place] or mark in done:
                failures.append(self._missing(place))
                continue
            done.add(mark)
            operations.append((place, pymongo.DeleteOne(dict(zip(keys, cell, strict=True)))))
        failures += self._written(operations)
        return WriteResult(sorted(failures, key=lambda one: one.index))

    def _rows(self, batch: pa.RecordBatch) -> tuple[list[tuple[Any, ...]], list[RowError]]:
        cells: list[list[Any]] = []
        failures: dict[int, RowError] = {}
        for array, told, column in zip(batch.columns, batch.schema, self.writing.columns, strict=True):
            values, found = rendered(array, column, is_json_text(told))
            cells.append(values)
            failures |= {one.index: one for one in found}
        return list(zip(*cells, strict=True)), list(failures.values())

    def _document(self, row: Sequence[Any]) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for name, value in zip(self._names, row, strict=True):
            if not (name == ID and value is None):
                put(document, name, value)
        return document

    # --- inserts ---

    def _insert(self, documents: dict[int, dict[str, Any]]) -> list[RowError]:
        encoded, failures = self._encoded(documents)
        places = list(encoded)
        if not places:
            return failures
        try:
            self._collection.insert_many(encoded.values(), ordered=False)
        except errors.BulkWriteError as error:
            told = self._told(error)
            twice = self._delivered({places[one["index"]]: one for one in told}, documents)
            failures += [
                failure(places[one["index"]], one, self.writing.entity)
                for one in told
                if places[one["index"]] not in twice
            ]
        except (errors.PyMongoError, OSError) as error:
            raise convert_error(error) from error
        return failures

    def _encoded(
        self, documents: dict[int, dict[str, Any]]
    ) -> tuple[dict[int, RawBSONDocument], list[RowError]]:
        """Encode documents to BSON, and return errors for those that cannot be encoded or are too large."""
        encoded, failures = {}, []
        for place, document in documents.items():
            try:
                octets = bson.encode(document)
            except (InvalidDocument, OverflowError, RecursionError) as error:
                failures.append(RowError(place, "wrong_type", f"MongoDB cannot store this document: {error}"))
                continue
            if len(octets) > limits.MONGODB_DOCUMENT_BYTES:
                most = limits.MONGODB_DOCUMENT_BYTES
                message = f"The document has {len(octets):,} bytes; at most {most:,} are allowed."
                failures.append(RowError(place, "too_long", message))
                continue
            encoded[place] = RawBSONDocument(octets)
        return encoded, failures

    def _told(self, error: errors.BulkWriteError) -> list[dict[str, Any]]:
        """Return the server's errors of single rows. Raises errors that do not concern single rows."""
        details = error.details or {}
        for one in details.get("writeErrors", ()):
            whole = convert_error(errors.OperationFailure(one.get("errmsg", ""), one.get("code"), one))
            if whole.reason not in ("failed", "bad_query"):
                raise whole from error
        if concern := details.get("writeConcernErrors"):
            raise ConnectorError(
                f"The write concern was not satisfied: {concern[0].get('errmsg')}",
                reason="failed",
                hint="The rows may have been written. They can safely be sent again.",
                transient=True,
            ) from error
        return list(details.get("writeErrors", ()))

    def _delivered(self, told: dict[int, dict[str, Any]], documents: dict[int, dict[str, Any]]) -> set[int]:
        """Return the rows that were rejected as duplicates because an earlier attempt delivered them."""
        seen: set[Any] = set()
        asked: dict[Any, int] = {}
        for place, document in documents.items():
            key = document[ID]
            if not (self.writing.again or isinstance(key, ObjectId)):
                continue
            mark = same(key)
            if mark not in seen and place in told and told[place].get("code") == _DUPLICATE:
                asked[mark] = place
            seen.add(mark)
        if not asked:
            return set()
        with converting_errors():
            keys = [documents[place][ID] for place in asked.values()]
            there = {same(one[ID]): one for one in self._collection.find({ID: {"$in": keys}})}
        return {place for mark, place in asked.items() if _alike(there.get(mark, {}), documents[place])}

    # --- changes ---

    def _change(self, row: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the filter and the update of a row."""
        keys, pairs = self.writing.key_columns, dict(zip(self._names, row, strict=True))
        others = {name: value for name, value in pairs.items() if name not in keys}
        change: dict[str, Any] = {}
        if ID in others:
            made = others.pop(ID)
            if made is not None and self.writing.mode == "upsert":
                change["$setOnInsert"] = {ID: made}
        change["$set"] = others or {keys[0]: pairs[keys[0]]}
        return {name: pairs[name] for name in keys}, change

    def _changed(self, places: Sequence[int], rows: Sequence[Sequence[Any]]) -> list[RowError]:
        upsert = self.writing.mode == "upsert"
        missing: list[RowError] = []
        if not upsert:
            keys = self.writing.key_columns
            cells = [[rows[place][self._names.index(key)] for key in keys] for place in places]
            there = self._session.there(self.writing.entity.name, keys, cells)
            missing = [
                self._missing(place) for place, is_there in zip(places, there, strict=True) if not is_there
            ]
            places = [place for place, is_there in zip(places, there, strict=True) if is_there]
        operations = [
            (place, pymongo.UpdateOne(*self._change(rows[place]), upsert=upsert)) for place in places
        ]
        return missing + self._written(operations)

    def _written(self, operations: list[tuple[int, Any]]) -> list[RowError]:
        """Run operations in order. After a rejected one, the following ones are sent again."""
        failures: list[RowError] = []
        while operations:
            try:
                self._collection.bulk_write([one for _, one in operations], ordered=True)
                break
            except errors.BulkWriteError as error:
                (told,) = self._told(error)
                failures.append(failure(operations[told["index"]][0], told, self.writing.entity))
                operations = operations[told["index"] + 1 :]
            except (InvalidDocument, OverflowError, errors.DocumentTooLarge) as error:
                if len(operations) == 1:
                    reason = "too_long" if isinstance(error, errors.DocumentTooLarge) else "wrong_type"
                    failures.append(RowError(operations[0][0], reason, str(error)))
                    break
                half = len(operations) // 2
                failures += self._written(operations[:half])
                operations = operations[half:]
            except (errors.PyMongoError, OSError) as error:
                raise convert_error(error) from error
        return failures

    def _missing(self, place: int) -> RowError:
        return RowError(place, "missing_row", f"No such document exists in {self.writing.entity.name}.")

    # --- captured values ---

    def _captured(
        self, rows: Sequence[Sequence[Any]], ids: Sequence[Any], failures: Sequence[RowError]
    ) -> pa.RecordBatch:
        bad, arrays = {error.index for error in failures}, []
        for name in self.writing.capture:
            made = ids if name == ID else [row[self._names.index(name)] for row in rows]
            arrays.append(column_of([None if place in bad else one for place, one in enumerate(made)]))
        return pa.RecordBatch.from_arrays(arrays, list(self.writing.capture))


def _judge(names: Sequence[str], writing: WriteSpec) -> None:
    """Raise `ConnectorError` for fields that a document cannot contain together, and values that cannot be
    captured."""
    for name in names:
        parts = name.split(".")
        if not all(parts) or any(part.startswith("$") or "\0" in part for part in parts):
            raise ConnectorError(
                f"{name!r} is not a valid field name.", reason="bad_name", hint="Choose another name."
            )
        if any(".".join(parts[:at]) in names for at in range(1, len(parts))):
            raise ConnectorError(
                f"{name} is part of a field that is written as a whole.",
                reason="bad_name",
                hint="Map only one of the two.",
            )
    if (lost := set(writing.capture) - {ID, *names}) or (writing.capture and writing.mode != "insert"):
        raise ConnectorError(
            f"MongoDB does not return {', '.join(lost or writing.capture)}.",
            reason="unsupported",
            hint="For inserted documents, _id can be captured.",
        )


def _alike(stored: dict[str, Any], sent: dict[str, Any]) -> bool:
    return all(same(got(stored, name)) == same(value) for name, value in sent.items()) and len(stored) == len(
        sent
    )


def _shell(document: dict[str, Any]) -> str:
    return f"EJSON.deserialize({json_util.dumps(document, ensure_ascii=False)})"
