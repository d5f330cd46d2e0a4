"""The rows of a push by their numbers, as its tables write them.

    for table in push_rows.tables(push):
        writing = table.writing(session)
        batch = table.batch(numbers, keys)     # any numbers, in any order

Nothing is kept: a row is made again from its number under the push's pins, or taken from the rows that came with the
request. Numbers count from 0 and hold the push's offset; the ledger's count from 1, see `TableRows.first`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, Protocol

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from flask import current_app

from webapp import limits, storage
from webapp.accounts.services import tenancy
from webapp.connectors.base import ConnectorError, Session, Writing
from webapp.connectors.shape import Column, Entity
from webapp.datasets.services import rows as datasets_rows
from webapp.engine import budget, mixed
from webapp.engine.block import Bound, Env
from webapp.engine.budget import TooLarge
from webapp.engine.errors import SpecError
from webapp.engine.expressions.expression import Expression
from webapp.engine.formats.nested import json_texts, mixed_texts
from webapp.engine.plan import ENGINE
from webapp.errors import ApiError, validation_error
from webapp.extensions import db
from webapp.generation.services import external_values, generate
from webapp.generation.services.pins import Pins
from webapp.generation.services.row_makers import (
    JSON_TEXT,
    Faulty,
    GivenRows,
    Maker,
    Reckoned,
    TemplateRows,
    View,
)
from webapp.pushes.models import Push

HIDDEN: Final = "********"
"""What stands for a sensitive value."""


class Keys(Protocol):
    """The keys that targets made for the rows of the push's tables."""

    def take(self, table: int, column: str, rows: np.ndarray) -> pa.Array:
        """The keys of rows (``uint64[n]``, from 0) of a table; null for those that have none."""


class TableRows:
    """One table of a push: what is written of each of its rows, and where. `spec` is its object in `Push.tables`."""

    def __init__(self, place: int, spec: Mapping[str, Any], maker: Maker) -> None:
        self.place, self.spec, self.maker = place, spec, maker
        self.name: str = spec["name"]
        self.target: str = spec["target"]
        self.count: int = spec["count"]
        self.offset: int = spec["offset"]
        self.mode = spec["mode"]
        self.key_columns: tuple[str, ...] = tuple(spec["key_columns"])
        self.capture: tuple[str, ...] = tuple(spec["capture"])
        self.later: tuple[str, ...] = tuple(spec["later"])
        self.from_parent: Mapping[str, Mapping[str, Any]] = spec["from_parent"]
        self.block_rows = maker.block_rows
        self._formulas: dict[str, Expression] = {}

    @property
    def first(self) -> int:
        """The number of the row that the ledger calls row 1."""
        return self.offset

    @property
    def columns(self) -> tuple[str, ...]:
        """What is written of each row, in the order of the batches."""
        return tuple(one["column"] for one in self.spec["columns"])

    @property
    def sensitive(self) -> frozenset[str]:
        """Columns whose values are never shown."""
        hidden = {name for name, field in self.maker.fields.items() if field.sensitive}
        return frozenset(one["column"] for one in self.spec["columns"] if hidden & self._reads(one))

    def _reads(self, one: Mapping[str, Any]) -> set[str]:
        if "formula" in one:
            return set(self._formula(one).needs)
        return {one["field"]} if "field" in one else set()

    def records(self) -> int:
        """The objects in arrays that are written with the rows: they count as rows."""
        read = set[str]().union(*map(self._reads, self.spec["columns"]))
        return self.maker.records(self.offset, self.count, read)

    # --- Where the rows go ------------------------------------------------------------------------------------

    def entity(self, session: Session) -> Entity:
        """The table as it is now. Raises `ConnectorError` (reason `no_table`)."""
        found = session.entity(self.target)
        if found is None:
            told = f'There is no table "{self.target}".'
            raise ConnectorError(told, reason="no_table", hint="It was there when the push was asked for.")
        return found

    def writing(self, session: Session) -> Writing:
        """What the push writes. Raises `ConnectorError` (reasons `no_table`, `no_column`)."""
        entity = self.entity(session)
        columns = tuple(_column(entity, name) for name in self.columns)
        return Writing(entity, columns, self.mode, self.key_columns, self.capture)

    def later_writing(self, session: Session) -> Writing:
        """What the second pass writes: the columns of `later`, found by the key. As `writing`."""
        entity = self.entity(session)
        columns = tuple(_column(entity, name) for name in (*self.key_columns, *self.later))
        return Writing(entity, columns, "update", self.key_columns)

    def key_writing(self, session: Session) -> Writing:
        """What `Target.delete` is given: the key columns alone. As `writing`."""
        entity = self.entity(session)
        columns = tuple(_column(entity, name) for name in self.key_columns)
        return Writing(entity, columns, self.mode, self.key_columns)

    @property
    def new_columns(self) -> tuple[list[Column], tuple[str, ...]]:
        """Columns and key of the table that is made where it is missing (`spec["create"]`)."""
        return [Column(**one) for one in self.spec["definition"]], self.key_columns

    # --- The rows ---------------------------------------------------------------------------------------------

    def batch(
        self, rows: np.ndarray, keys: Keys | None = None, names: Sequence[str] | None = None
    ) -> pa.RecordBatch:
        """Some rows (``uint64[n]``, from 0), a column for each of `columns`, or of `names`: nested values as JSON text,
        columns of `later` null. `keys` are those of the parents, where `from_parent` asks for any. Targets that take
        objects and arrays get them nested, and text that is JSON in fields that say so
        (`engine.formats.nested.is_json_text`).

        Error: validation_error for a formula that cannot be carried out. Raises `TooLarge` where the rows exceed
        PUSH_CHUNK_BYTES, or one of them exceeds BLOCK_BYTES.
        """
        return self._batch(rows, self.columns if names is None else names, keys, self.later)

    def later_batch(self, rows: np.ndarray, keys: Keys | None = None) -> pa.RecordBatch:
        """The rows of the second pass: key columns, then those of `later`."""
        return self._batch(rows, (*self.key_columns, *self.later), keys, ())

    def key_batch(self, rows: np.ndarray, keys: Keys | None = None) -> pa.RecordBatch:
        """The key columns of some rows: as they were sent, or captured."""
        return self._batch(rows, self.key_columns, keys, ())

    def orphans(self, rows: np.ndarray, keys: Keys) -> np.ndarray:
        """``bool[n]``: rows that would have a parent, which has no key because it did not arrive. They cannot be
        sent: their reason is `foreign_key`."""
        view, found = self.maker.at(rows), np.zeros(rows.size, np.bool_)
        for name, parent in self.from_parent.items():
            if name in self.later:
                continue
            wanted, valid = view.parents(parent["field"])
            lacking = ~keys.take(parent["table"], parent["column"], wanted).is_valid().to_numpy(False)
            found |= lacking if valid is None else lacking & valid
        return found

    def shown(self, rows: np.ndarray, keys: Keys | None = None) -> list[dict[str, Any]]:
        """Some rows as JSON, values of sensitive fields cut. Error as of `batch`."""
        batch, cut = self.batch(rows, keys), self.sensitive
        told = [orjson.loads(_objects(batch.slice(place, 1))) for place in range(batch.num_rows)]
        return [{name: HIDDEN if name in cut else value for name, value in row.items()} for row in told]

    def _batch(
        self, rows: np.ndarray, names: Sequence[str], keys: Keys | None, empty: Sequence[str]
    ) -> pa.RecordBatch:
        specs = {one["column"]: one for one in self.spec["columns"]}
        wanted = [specs.get(name, {"column": name}) for name in names]
        parts = list(self._parts(rows, wanted, keys, empty))
        arrays = parts[0] if len(parts) == 1 else [_joined(pieces) for pieces in zip(*parts, strict=True)]
        arrays = [_settled(values, one) for values, one in zip(arrays, wanted, strict=True)]
        fields = [
            pa.field(one["column"], values.type, metadata=self._told(one, values.type))
            for one, values in zip(wanted, arrays, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _parts(
        self, rows: np.ndarray, wanted: Sequence[Mapping[str, Any]], keys: Keys | None, empty: Sequence[str]
    ) -> Iterator[list[pa.Array]]:
        """The columns in parts of as many rows as fit the budget of a block."""
        start, size, step = 0, 0, self.block_rows
        while start < max(1, rows.size):
            some = rows[start : start + step]
            try:
                part = self._part(some, wanted, keys, empty)
            except TooLarge as error:
                if some.size < 2:
                    raise TooLarge(error.size, error.path) from None
                step = max(1, some.size // limits.BLOCK_STEP)
                continue
            size += sum(map(budget.size_of, part))
            if size > limits.PUSH_CHUNK_BYTES and rows.size > 1:
                raise TooLarge(size, rows=rows.size)
            yield part
            start += step

    def _told(self, one: Mapping[str, Any], dtype: pa.DataType) -> Mapping[bytes, bytes] | None:
        """What the batch says of a column beside its type."""
        field = self.maker.fields.get(one.get("field", "")) if one.get("nested") else None
        return JSON_TEXT if field is not None and field.json and not pa.types.is_nested(dtype) else None

    def _part(
        self, rows: np.ndarray, wanted: Sequence[Mapping[str, Any]], keys: Keys | None, empty: Sequence[str]
    ) -> list[pa.Array]:
        view = self.maker.at(rows)
        try:
            return [
                pa.nulls(rows.size) if one["column"] in empty else self._values(view, one, keys)
                for one in wanted
            ]
        except TooLarge:
            raise
        except SpecError as error:
            raise validation_error(error.faults) from None

    def _values(self, view: View, one: Mapping[str, Any], keys: Keys | None) -> pa.Array:
        name = one["column"]
        parent = self.from_parent.get(name)
        if parent is not None:
            rows, valid = view.parents(parent["field"])
            return _where(_given(keys).take(parent["table"], parent["column"], rows), valid)
        if "formula" in one:
            return _flat(self._formula(one).column(Reckoned(view, self.maker.env, name)), one)
        if "object_id" in one:
            return _object_ids(one["object_id"], view.rows)
        if "field" not in one:  # a key that the target made
            return _given(keys).take(self.place, name, view.rows)
        return _flat(view.shown(one["field"]), one)

    def _formula(self, one: Mapping[str, Any]) -> Expression:
        name = one["column"]
        if name not in self._formulas:
            try:
                self._formulas[name] = self.maker.formula(one["formula"], f"computed.{name}")
            except Faulty as error:
                raise validation_error(error.faults) from None
        return self._formulas[name]


def _given(keys: Keys | None) -> Keys:
    if keys is None:
        raise ValueError("keys are needed for this table")
    return keys


def _where(values: pa.Array, valid: np.ndarray | None) -> pa.Array:
    return values if valid is None else pc.if_else(pa.array(valid), values, pa.scalar(None, values.type))


def _flat(values: pa.Array, one: Mapping[str, Any]) -> pa.Array:
    """Nested values as JSON text; lists stay where the target's column is an array, all where it takes them."""
    if not pa.types.is_nested(values.type) or (one.get("list") and pa.types.is_list(values.type)):
        return values
    if one.get("nested"):
        return values.cast(_undivided(values.type))
    return pc.if_else(values.is_valid(), json_texts(values), pa.scalar(None, pa.string()))


def _joined(pieces: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays([_decoded(piece) for piece in pieces])


def _settled(values: pa.Array, one: Mapping[str, Any]) -> pa.Array:
    """A column of one type for targets that know no other: where a cell is text that is bad on purpose, all are."""
    if not mixed.is_mixed(values.type) or one.get("mixed"):
        return values
    made, texts = mixed.parts(values)
    if texts.null_count == len(texts):
        return made
    if pa.types.is_boolean(made.type):
        spelled = made.cast(pa.int64()).cast(pa.string())
    else:
        spelled = mixed_texts(mixed.mixed(made))
    if pa.types.is_timestamp(made.type):
        spelled = pc.replace_substring(pc.replace_substring(spelled, "T", " "), "Z", "+00:00")
    return pc.coalesce(texts, spelled)


def _undivided(dtype: pa.DataType) -> pa.DataType:
    """A type without dictionaries, however deep: pieces of such can be joined."""
    if pa.types.is_struct(dtype):
        return pa.struct([field.with_type(_undivided(field.type)) for field in dtype])
    if pa.types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(_undivided(dtype.value_type)))
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _decoded(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _object_ids(salt: str, rows: np.ndarray) -> pa.Array:
    """Keys of ours for targets without transactions: 24 hexadecimal digits, the same whenever a row is sent."""
    front = blake2b(salt.encode(), digest_size=6).hexdigest()
    return pa.array([f"{front}{row:012x}" for row in rows.tolist()], pa.string())


def _objects(batch: pa.RecordBatch) -> bytes:
    fields = [field.with_type(_undivided(field.type)) for field in batch.schema]
    struct = pa.StructArray.from_arrays([_decoded(column) for column in batch.columns], fields=fields)
    return json_texts(struct)[0].as_py().encode()


def _column(entity: Entity, name: str) -> Column:
    found = entity.column(name)
    if found is not None:
        return found
    if entity.kind in ("collection", "endpoint"):
        return Column(name, "other", "")
    told = f'The table "{entity.name}" has no column "{name}".'
    raise ConnectorError(told, reason="no_column", hint="It was there when the push was asked for.")


# --- Reading them from a push -----------------------------------------------------------------------------------


def tables(push: Push) -> list[TableRows]:
    """The tables of a push, in the order of sending. Needs no request and reads only columns of `push`.

    Errors: unavailable (the vocabulary it was asked for under is missing, or the engine has changed since),
    not_found (its template is gone).
    """
    if push.pins["engine"] != ENGINE:
        told = f"This push was asked for under engine {push.pins['engine']}; this is engine {ENGINE}."
        raise ApiError("unavailable", told, {"pinned": push.pins["engine"], "present": ENGINE})
    makers = makers_of(push.pins, push.request["ask"], [one.get("given") for one in push.tables])
    db.session.remove()
    return [TableRows(place, one, makers[one.get("recipe", 0)]) for place, one in enumerate(push.tables)]


def makers_of(
    pins: Mapping[str, Any], ask: Mapping[str, Any], given: Sequence[str | None]
) -> Sequence[Maker]:
    """What makes the rows of stored pins, in their order; `given` are the storage's keys of rows that came with the
    request. Errors as of `tables`."""
    if "tables" in pins:
        return [TemplateRows(one.bound) for one in datasets_rows.again(pins, {}, "json").recipes]
    kept = Pins.from_json(pins)
    if given and given[0] is not None:
        return [GivenRows(stored_rows(given[0]), kept.seed, kept.now)]
    if kept.template_id is None or kept.version is None:
        raise tenancy.not_found("template", kept.template_id or "")
    found = generate.Head(kept.template_id, kept.version, "", "")
    source = generate.saved_source(found, kept.locale, rows_of=ask.get("rows") or {})
    source = external_values.pinned(source, kept)
    env = Env(kept.seed, kept.now, kept.locale, kept.now == source.anchor)
    try:
        bound = Bound(source.plan, env, ask.get("overrides") or {})
    except SpecError as error:
        raise validation_error(error.faults) from None
    return [TemplateRows(bound)]


def stored_rows(key: str) -> pa.Table:
    """Rows that came with a request. Error: unavailable where the storage has lost them."""
    try:
        raw = b"".join(storage.of(current_app._get_current_object()).get(key))  # type: ignore[attr-defined]
    except storage.MissingError:
        raise ApiError("unavailable", "The rows of this push are no longer stored.") from None
    return pa.ipc.open_file(pa.BufferReader(raw)).read_all()


def store_rows(key: str, table: pa.Table) -> None:
    """Keep rows that came with a request."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    storage.of(current_app._get_current_object()).put(key, [sink.getvalue().to_pybytes()])  # type: ignore[attr-defined]
