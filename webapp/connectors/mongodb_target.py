"""Documents into a MongoDB collection.

There are no transactions here, so a chunk may be sent again: every inserted document carries an `_id` that is the same
whenever its row is sent. A document that is there already, to the last field as it is sent and under an ObjectId, was
delivered by the attempt before; under any other key it might be anybody's, and is refused as a duplicate, unless the
rows are known to be sent again (`Writing.again`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import bson
import pyarrow as pa
import pymongo
from bson import ObjectId, json_util
from bson.errors import InvalidDocument
from bson.raw_bson import RawBSONDocument
from pymongo import errors

from webapp import limits
from webapp.connectors.base import ConnectorError, Failure, Sent, Target, Writing
from webapp.connectors.mongodb_catalog import ID
from webapp.connectors.mongodb_errors import failure
from webapp.connectors.mongodb_link import conversing, converted
from webapp.connectors.mongodb_session import MongodbSession
from webapp.connectors.mongodb_values import column_of, got, put, rendered, same
from webapp.engine.formats.nested import is_json_text

_DUPLICATE: Final = 11000


class MongodbTarget(Target):
    """See `Target`."""

    def __init__(self, session: MongodbSession, writing: Writing) -> None:
        self.writing = writing
        self._session = session
        self._collection = session.database[writing.entity.name]
        self._names = [column.name for column in writing.columns]
        _judge(self._names, writing)

    # --- transactions, of which there are none ---

    def begin(self) -> None:
        """See `Target.begin`."""

    def proof(self) -> dict[str, Any]:
        """See `Target.proof`: what was sent is there already, and may be sent again."""
        return {}

    def commit(self) -> None:
        """See `Target.commit`."""

    def rollback(self) -> None:
        """See `Target.rollback`: nothing can be taken back."""

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`: as the shell takes them."""
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

    def send(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.send`."""
        rows, failures = self._rows(batch)
        bad = {one.index for one in failures}
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
        return Sent(failures, self._captured(rows, ids, failures) if self.writing.capture else None)

    def delete(self, batch: pa.RecordBatch) -> Sent:
        """See `Target.delete`."""
        keys = self.writing.key_columns
        rows, failures = self._rows(batch)
        cells = [tuple(row[self._names.index(key)] for key in keys) for row in rows]
        there = self._session.there(self.writing.entity.name, keys, cells)
        bad, done, operations = {one.index for one in failures}, set(), []
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
        return Sent(sorted(failures, key=lambda one: one.index))

    def _rows(self, batch: pa.RecordBatch) -> tuple[list[tuple[Any, ...]], list[Failure]]:
        cells, failures = [], {}
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

    def _insert(self, documents: dict[int, dict[str, Any]]) -> list[Failure]:
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
            raise converted(error) from error
        return failures

    def _encoded(
        self, documents: dict[int, dict[str, Any]]
    ) -> tuple[dict[int, RawBSONDocument], list[Failure]]:
        """Documents as they go over the wire, and those that the server would not even look at."""
        encoded, failures = {}, []
        for place, document in documents.items():
            try:
                octets = bson.encode(document)
            except (InvalidDocument, OverflowError, RecursionError) as error:
                failures.append(Failure(place, "wrong_type", f"This is no document for MongoDB: {error}"))
                continue
            if len(octets) > limits.MONGODB_DOCUMENT_BYTES:
                message = f"The document takes {len(octets):,} bytes; {limits.MONGODB_DOCUMENT_BYTES:,} are the most."
                failures.append(Failure(place, "too_long", message))
                continue
            encoded[place] = RawBSONDocument(octets)
        return encoded, failures

    def _told(self, error: errors.BulkWriteError) -> list[dict[str, Any]]:
        """What is said of each row; raises where it is not of rows."""
        details = error.details or {}
        for one in details.get("writeErrors", ()):
            whole = converted(errors.OperationFailure(one.get("errmsg", ""), one.get("code"), one))
            if whole.reason not in ("failed", "bad_query"):
                raise whole from error
        if concern := details.get("writeConcernErrors"):
            raise ConnectorError(
                f"Not acknowledged as the write concern wants it: {concern[0].get('errmsg')}",
                reason="failed",
                hint="The rows may be there; they are sent again safely.",
                transient=True,
            ) from error
        return list(details.get("writeErrors", ()))

    def _delivered(self, told: dict[int, dict[str, Any]], documents: dict[int, dict[str, Any]]) -> set[int]:
        """Of the rows refused as duplicates, those that an earlier attempt delivered."""
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
        with conversing():
            keys = [documents[place][ID] for place in asked.values()]
            there = {same(one[ID]): one for one in self._collection.find({ID: {"$in": keys}})}
        return {place for mark, place in asked.items() if _alike(there.get(mark, {}), documents[place])}

    # --- changes ---

    def _change(self, row: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Which document, and what becomes of it."""
        keys, pairs = self.writing.key_columns, dict(zip(self._names, row, strict=True))
        others = {name: value for name, value in pairs.items() if name not in keys}
        change: dict[str, Any] = {}
        if ID in others:
            made = others.pop(ID)
            if made is not None and self.writing.mode == "upsert":
                change["$setOnInsert"] = {ID: made}
        change["$set"] = others or {keys[0]: pairs[keys[0]]}
        return {name: pairs[name] for name in keys}, change

    def _changed(self, places: Sequence[int], rows: Sequence[Sequence[Any]]) -> list[Failure]:
        upsert = self.writing.mode == "upsert"
        missing: list[Failure] = []
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

    def _written(self, operations: list[tuple[int, Any]]) -> list[Failure]:
        """Carried out in their order; those that are refused are left out, and the rest goes on behind them."""
        failures: list[Failure] = []
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
                    failures.append(Failure(operations[0][0], reason, str(error)))
                    break
                half = len(operations) // 2
                failures += self._written(operations[:half])
                operations = operations[half:]
            except (errors.PyMongoError, OSError) as error:
                raise converted(error) from error
        return failures

    def _missing(self, place: int) -> Failure:
        return Failure(place, "missing_row", f"There is no such document in {self.writing.entity.name}.")

    # --- what is brought back ---

    def _captured(
        self, rows: Sequence[Sequence[Any]], ids: Sequence[Any], failures: Sequence[Failure]
    ) -> pa.RecordBatch:
        bad, arrays = {one.index for one in failures}, []
        for name in self.writing.capture:
            made = ids if name == ID else [row[self._names.index(name)] for row in rows]
            arrays.append(column_of([None if place in bad else one for place, one in enumerate(made)]))
        return pa.RecordBatch.from_arrays(arrays, list(self.writing.capture))


def _judge(names: Sequence[str], writing: Writing) -> None:
    """Raises `ConnectorError` for fields that no document can have together, and what cannot be brought back."""
    for name in names:
        parts = name.split(".")
        if not all(parts) or any(part.startswith("$") or "\0" in part for part in parts):
            raise ConnectorError(
                f"{name!r} cannot be a field.", reason="bad_name", hint="Give it another name."
            )
        if any(".".join(parts[:at]) in names for at in range(1, len(parts))):
            raise ConnectorError(
                f"{name} lies in a field that is written as a whole.",
                reason="bad_name",
                hint="Map one of the two.",
            )
    if (lost := set(writing.capture) - {ID, *names}) or (writing.capture and writing.mode != "insert"):
        raise ConnectorError(
            f"MongoDB does not bring back {', '.join(lost or writing.capture)}.",
            reason="unsupported",
            hint="Of documents that are inserted it tells _id.",
        )


def _alike(stored: dict[str, Any], sent: dict[str, Any]) -> bool:
    return all(same(got(stored, name)) == same(value) for name, value in sent.items()) and len(stored) == len(
        sent
    )


def _shell(document: dict[str, Any]) -> str:
    return f"EJSON.deserialize({json_util.dumps(document, ensure_ascii=False)})"
