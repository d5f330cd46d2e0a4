"""The rows of a push by number, as its tables write them.

    for table in push_rows.tables(push):
        writing = table.writing(session)
        batch = table.batch(numbers, keys)     # any numbers, in any order

Nothing is cached: a row is generated again from its number with the pins of the push, or read from the rows in the
request. Numbers count from 0 and include the push's offset; those of the ledger count from 1, see
`TableRows.first_row`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, Protocol

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits, storage
from webapp.access import tenancy
from webapp.connectors.base import ConnectorError, OpenConnection, WriteSpec
from webapp.connectors.schema import Column, Entity
from webapp.datasets.services import rows as datasets_rows
from webapp.engine import ENGINE, ENGINES, budget, mixed_columns
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.budget import MemoryBudgetError
from webapp.engine.errors import SpecError
from webapp.engine.formats.nested import json_texts, mixed_texts
from webapp.engine.formulas.expression import Expression
from webapp.engine.text import decode_dictionary
from webapp.errors import ApiError, validation_error
from webapp.extensions import application, db, read_session
from webapp.generation.services import external_values, generate
from webapp.generation.services.pins import Pins
from webapp.generation.services.row_makers import (
    JSON_TEXT,
    FormulaContext,
    InvalidRowsError,
    RowBatch,
    RowGenerator,
    SubmittedRows,
    TemplateRows,
)
from webapp.pushes.models import Push
from webapp.pushes.services.ledger import read

HIDDEN: Final = "********"
"""Replaces a sensitive value."""


class GeneratedKeys(Protocol):
    """The keys that targets generated for the rows of the push's tables."""

    def take(self, table: int, column: str, rows: np.ndarray) -> pa.Array:
        """Return the keys of rows (``uint64[n]``, from 0) of a table, null for rows without a key."""


class TableRows:
    """One table of a push: the columns written for each row, and the target table. `spec` is its object in
    `Push.tables`."""

    def __init__(self, index: int, spec: Mapping[str, Any], maker: RowGenerator) -> None:
        self.index, self.maker = index, maker
        self.load_spec(spec)
        self.stored_columns: tuple[str, ...] = ()
        """Columns whose values as sent are stored with the captured keys: keys that refer to rows of other tables.
        Which row that is depends on the rows that were delivered at the time."""
        self.push_tables: Sequence[TableRows] = ()
        """All tables of the push, by their places."""
        self.delivered_rows: DeliveredRows | None = None
        self.block_rows = maker.block_rows
        self._formulas: dict[str, Expression] = {}

    def load_spec(self, spec: Mapping[str, Any]) -> None:
        """Take everything from an object of `Push.tables`."""
        self.spec = spec
        self.name: str = spec["name"]
        self.target: str = spec["target"]
        self.count: int = spec["count"]
        self.offset: int = spec["offset"]
        self.mode = spec["mode"]
        self.key_columns: tuple[str, ...] = tuple(spec["key_columns"])
        self.lookup_columns: tuple[str, ...] = self.key_columns or tuple(spec.get("undo_columns") or ())
        """Columns by which an undo finds the rows; none if it leaves them."""
        self.captured_columns: tuple[str, ...] = tuple(spec["capture"])
        self.deferred_columns: tuple[str, ...] = tuple(spec["later"])
        self.from_parent: Mapping[str, Mapping[str, Any]] = spec["from_parent"]
        self.references: Mapping[str, Mapping[str, Any]] = spec.get("references") or {}
        self.unchecked_columns: tuple[str, ...] = tuple(spec.get("unchecked") or ())
        self.numbered_columns: Mapping[str, int] = spec.get("numbered") or {}

    @property
    def first_row(self) -> int:
        """The number of the row that the ledger calls row 1."""
        return self.offset

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns written for each row, in the order of the batches."""
        return tuple(column["column"] for column in self.spec["columns"])

    def column_of(self, field: str) -> str:
        """Return the column that a field is written to, or "" for an unmapped field."""
        return next((column["column"] for column in self.spec["columns"] if column.get("field") == field), "")

    @property
    def sensitive(self) -> frozenset[str]:
        """Columns whose values are never shown."""
        hidden = {name for name, field in self.maker.fields.items() if field.sensitive}
        return frozenset(
            column["column"] for column in self.spec["columns"] if hidden & self._source_fields(column)
        )

    def _source_fields(self, column_spec: Mapping[str, Any]) -> set[str]:
        if "formula" in column_spec:
            return set(self._formula(column_spec).required_fields)
        return {column_spec["field"]} if "field" in column_spec else set()

    def count_nested_records(self) -> int:
        """The objects in arrays that are written with the rows and count as rows."""
        read = set[str]().union(*map(self._source_fields, self.spec["columns"]))
        return self.maker.count_records(self.offset, self.count, read)

    # --- Destination of the rows --------------------------------------------------------------------------------

    def entity(self, session: OpenConnection) -> Entity:
        """Return the current metadata of the table. Raise `ConnectorError` (reason `no_table`)."""
        found = session.entity(self.target)
        if found is None:
            message = f'There is no table "{self.target}".'
            raise ConnectorError(message, reason="no_table", hint="It existed when the push was created.")
        return found

    def write_spec(self, session: OpenConnection) -> WriteSpec:
        """Return what the push writes. Raise `ConnectorError` (reasons `no_table`, `no_column`)."""
        entity = self.entity(session)
        columns = tuple(_column(entity, name) for name in self.columns)
        return WriteSpec(entity, columns, self.mode, self.key_columns, self.captured_columns)

    def deferred_write_spec(self, session: OpenConnection) -> WriteSpec:
        """Return what the second pass writes: the `deferred_columns` columns, with rows identified by key. Raises the
        errors of `write_spec`."""
        entity = self.entity(session)
        columns = tuple(_column(entity, name) for name in (*self.key_columns, *self.deferred_columns))
        return WriteSpec(entity, columns, "update", self.key_columns)

    def key_write_spec(self, session: OpenConnection) -> WriteSpec:
        """Return the argument of `Target.delete`: only the columns of `lookup_columns`. Raises the errors of
        `write_spec`."""
        entity = self.entity(session)
        columns = tuple(_column(entity, name) for name in self.lookup_columns)
        return WriteSpec(entity, columns, self.mode, self.lookup_columns)

    @property
    def new_columns(self) -> tuple[list[Column], tuple[str, ...]]:
        """Return the columns and the key for creating a missing table (`spec["create"]`)."""
        return [Column(**item) for item in self.spec["definition"]], self.key_columns

    # --- The rows ---------------------------------------------------------------------------------------------

    def batch(
        self, rows: np.ndarray, keys: GeneratedKeys | None = None, names: Sequence[str] | None = None
    ) -> pa.RecordBatch:
        """Return some rows (``uint64[n]``, from 0) with the columns `columns` or `names`: nested values as JSON text,
        columns of `deferred_columns` as null. `keys` are those of the parents, for columns in `from_parent`. For
        targets that support objects and arrays, values stay nested, and text fields marked as JSON are parsed
        (`engine.formats.nested.is_json_text`).

        Error: validation_error for a formula that cannot be evaluated. Raises `MemoryBudgetError` if the rows exceed
        PUSH_CHUNK_BYTES, or one of them exceeds BLOCK_BYTES.
        """
        return self._build_batch(rows, self.columns if names is None else names, keys, self.deferred_columns)

    def deferred_batch(self, rows: np.ndarray, keys: GeneratedKeys | None = None) -> pa.RecordBatch:
        """Return the rows of the second pass: key columns, followed by the `deferred_columns` columns."""
        return self._build_batch(rows, (*self.key_columns, *self.deferred_columns), keys, (), as_sent=True)

    def key_batch(self, rows: np.ndarray, keys: GeneratedKeys | None = None) -> pa.RecordBatch:
        """Return the columns of `lookup_columns` of some rows, as sent or captured."""
        return self._build_batch(rows, self.lookup_columns, keys, (), as_sent=True)

    def orphan_mask(self, rows: np.ndarray, keys: GeneratedKeys) -> np.ndarray:
        """Return a mask (``bool[n]``) of rows whose parent was not delivered and therefore has no key. They cannot be
        sent: their reason is `foreign_key`."""
        view, mask = self.maker.batch_at(rows), np.zeros(rows.size, np.bool_)
        for name, parent in self.from_parent.items():
            if name in self.deferred_columns:
                continue
            parent_rows, valid = self._parent_rows(view, parent)
            missing = ~keys.take(parent["table"], parent["column"], parent_rows).is_valid().to_numpy(False)
            mask |= missing if valid is None else missing & valid
        for name, parent in self.references.items():
            if self.delivered_rows is None or name in self.from_parent or name in self.deferred_columns:
                continue
            delivered = self.delivered_rows.rows(parent["table"])
            if delivered is not None and not delivered.size:
                valid = view.parent_rows(parent["field"])[1]
                mask |= True if valid is None else valid
        return mask

    def undelivered_parents(self) -> dict[str, str]:
        """Return the columns that need a row of a table of which no row was delivered, with the name of that table."""
        found = {}
        for name, parent in {**self.references, **self.from_parent}.items():
            if self.delivered_rows is None or name in self.deferred_columns or parent["table"] == self.index:
                continue
            delivered = self.delivered_rows.rows(parent["table"])
            if delivered is not None and not delivered.size:
                found[name] = self.push_tables[parent["table"]].name
        return found

    def _parent_rows(self, view: RowBatch, parent: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the parent's row for each row (``uint64[n]``), and which rows have one. A parent that was not
        delivered is replaced by another that was."""
        rows, valid = view.parent_rows(parent["field"])
        delivered = self.delivered_rows.rows(parent["table"]) if self.delivered_rows is not None else None
        if delivered is None or not delivered.size:
            return rows, valid
        positions = np.minimum(np.searchsorted(delivered, rows), delivered.size - 1)
        is_delivered = delivered[positions] == rows
        return np.where(is_delivered, rows, delivered[rows % delivered.size]), valid

    def masked_objects(self, rows: np.ndarray, keys: GeneratedKeys | None = None) -> list[dict[str, Any]]:
        """Return some rows as JSON with sensitive values masked. Raises the errors of `batch`."""
        batch, sensitive = self.batch(rows, keys), self.sensitive
        objects = [
            orjson.loads(_json_objects(batch.slice(position, 1))) for position in range(batch.num_rows)
        ]
        return [
            {name: HIDDEN if name in sensitive else value for name, value in row.items()} for row in objects
        ]

    def _build_batch(
        self,
        rows: np.ndarray,
        names: Sequence[str],
        keys: GeneratedKeys | None,
        null_columns: Sequence[str],
        *,
        as_sent: bool = False,
    ) -> pa.RecordBatch:
        """`as_sent`: take columns of `kept` as they were sent instead of generating them."""
        specs_by_column = {column["column"]: column for column in self.spec["columns"]}
        specs = [specs_by_column.get(name, {"column": name}) for name in names]
        parts = list(self._parts(rows, specs, keys, null_columns))
        arrays = parts[0]
        if len(parts) > 1:
            arrays = [
                pa.concat_arrays(list(map(decode_dictionary, pieces))) for pieces in zip(*parts, strict=True)
            ]
        if as_sent and keys is not None:
            arrays = [
                self._values_as_sent(name, rows, values, keys)
                for name, values in zip(names, arrays, strict=True)
            ]
        arrays = [_to_single_type(values, spec) for values, spec in zip(arrays, specs, strict=True)]
        fields = [
            pa.field(spec["column"], values.type, metadata=self._metadata(spec, values.type))
            for spec, values in zip(specs, arrays, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _values_as_sent(self, name: str, rows: np.ndarray, values: pa.Array, keys: GeneratedKeys) -> pa.Array:
        """Return the stored values of a column, and the given ones where none are stored."""
        if name not in self.stored_columns:
            return values
        stored = keys.take(self.index, name, rows)
        if stored.null_count == len(stored):
            return values
        values = decode_dictionary(values)
        return stored if not stored.null_count else pc.coalesce(stored, values.cast(stored.type))

    def _parts(
        self,
        rows: np.ndarray,
        specs: Sequence[Mapping[str, Any]],
        keys: GeneratedKeys | None,
        null_columns: Sequence[str],
    ) -> Iterator[list[pa.Array]]:
        """Split the columns into parts whose rows fit the memory limit of a block."""
        start, size, step = 0, 0, self.block_rows
        while start < max(1, rows.size):
            part_rows = rows[start : start + step]
            try:
                part = self._part(part_rows, specs, keys, null_columns)
            except MemoryBudgetError as error:
                if part_rows.size < 2:
                    raise MemoryBudgetError(error.size, error.path) from None
                step = max(1, part_rows.size // limits.BLOCK_STEP)
                continue
            size += sum(map(budget.size_of, part))
            if size > limits.PUSH_CHUNK_BYTES and rows.size > 1:
                raise MemoryBudgetError(size, rows=rows.size)
            yield part
            start += step

    def _metadata(self, column_spec: Mapping[str, Any], dtype: pa.DataType) -> Mapping[bytes, bytes] | None:
        """Return the metadata of a column in a batch, in addition to its type."""
        field = self.maker.fields.get(column_spec.get("field", "")) if column_spec.get("nested") else None
        return JSON_TEXT if field is not None and field.json and not pa.types.is_nested(dtype) else None

    def _part(
        self,
        rows: np.ndarray,
        specs: Sequence[Mapping[str, Any]],
        keys: GeneratedKeys | None,
        null_columns: Sequence[str],
    ) -> list[pa.Array]:
        view = self.maker.batch_at(rows)
        try:
            return [
                pa.nulls(rows.size)
                if spec["column"] in null_columns
                else self._column_values(view, spec, keys)
                for spec in specs
            ]
        except MemoryBudgetError:
            raise
        except SpecError as error:
            raise validation_error(error.faults) from None

    def _column_values(
        self, view: RowBatch, column_spec: Mapping[str, Any], keys: GeneratedKeys | None
    ) -> pa.Array:
        name = column_spec["column"]
        parent = self.from_parent.get(name)
        if parent is not None:
            rows, valid = self._parent_rows(view, parent)
            return _null_invalid(_require_keys(keys).take(parent["table"], parent["column"], rows), valid)
        if name in self.references:
            replaced = self._reference_values(view, name, keys)
            if replaced is not None:
                return replaced
        if name in self.numbered_columns:
            return pc.add(
                view.output_column(column_spec["field"]).cast(pa.int64()), self.numbered_columns[name]
            )
        if "formula" in column_spec:
            return _flatten(
                self._formula(column_spec).column(FormulaContext(view, self.maker.env, name)), column_spec
            )
        if "object_id" in column_spec:
            # 24 hexadecimal digits, which are the same in each attempt
            prefix = blake2b(column_spec["object_id"].encode(), digest_size=6).hexdigest()
            return pa.array([f"{prefix}{row:012x}" for row in view.rows.tolist()], pa.string())
        if "field" not in column_spec:  # A key that the target generated
            return _require_keys(keys).take(self.index, name, view.rows)
        return _flatten(view.output_column(column_spec["field"]), column_spec)

    def _reference_values(self, view: RowBatch, name: str, keys: GeneratedKeys | None) -> pa.Array | None:
        """Return the values sent for a reference if they differ from the generated ones because the parent's row was
        not delivered or its key was changed while sending. Return None if there is no difference."""
        parent = self.references[name]
        if not self.push_tables:
            return None
        table = self.push_tables[parent["table"]]
        column = table.column_of(parent["parent_field"])
        is_stored = keys is not None and column in table.stored_columns and table is not self
        differs = self.delivered_rows is not None and self.delivered_rows.has_other_values(
            parent["table"], column
        )
        if not column or not (is_stored or differs):
            return None
        rows, valid = self._parent_rows(view, parent)
        values = decode_dictionary(table.batch(rows, keys, [column]).column(0))
        return _null_invalid(
            table._values_as_sent(column, rows, values, keys) if keys and is_stored else values, valid
        )

    def _formula(self, column_spec: Mapping[str, Any]) -> Expression:
        name = column_spec["column"]
        if name not in self._formulas:
            try:
                self._formulas[name] = self.maker.compile_formula(column_spec["formula"], f"computed.{name}")
            except InvalidRowsError as error:
                raise validation_error(error.faults) from None
        return self._formulas[name]


class DeliveredRows:
    """Tracks the delivered rows of each table of a push, so that references can avoid the others."""

    def __init__(self, push: Push, tables: Sequence[TableRows]) -> None:
        self.push, self.tables = push, tables
        self._rows: dict[int, np.ndarray | None] = {}

    def rows(self, table_index: int) -> np.ndarray | None:
        """Return the delivered rows of a table (``uint64[n]``, ascending, from 0), or None if all were delivered or
        some have not been sent yet."""
        if table_index not in self._rows:
            table = self.tables[table_index]
            with read_session() as session:
                if not read.has_undelivered_rows(session, self.push, table_index):
                    return None
                numbers = read.final_delivered_row_numbers(session, self.push, table_index, table.count)
            if numbers is None:
                return None
            self._rows[table_index] = (numbers - 1 + table.first_row).astype(np.uint64)
        return self._rows[table_index]

    def invalidate(self, table_index: int) -> None:
        """Read the delivered rows of a table again when they are needed, because more rows are sent."""
        self._rows.pop(table_index, None)

    def has_other_values(self, table_index: int, column: str) -> bool:
        """Return whether values sent to a column may differ from those its template generates, or rows are missing."""
        seen: set[int] = set()
        while table_index not in seen:
            seen.add(table_index)
            table = self.tables[table_index]
            if (
                column in table.numbered_columns
                or column in table.from_parent
                or self.rows(table_index) is not None
            ):
                return True
            parent = table.references.get(column)
            if parent is None:
                return False
            table_index = parent["table"]
            specs = self.tables[table_index].spec["columns"]
            column = next(
                (spec["column"] for spec in specs if spec.get("field") == parent["parent_field"]), ""
            )
        return False


def _require_keys(keys: GeneratedKeys | None) -> GeneratedKeys:
    if keys is None:
        raise ValueError("keys are needed for this table")
    return keys


def _null_invalid(values: pa.Array, valid: np.ndarray | None) -> pa.Array:
    return values if valid is None else pc.if_else(pa.array(valid), values, pa.scalar(None, values.type))


def _flatten(values: pa.Array, column_spec: Mapping[str, Any]) -> pa.Array:
    """Convert nested values to JSON text. Lists are kept if the target's column is an array, and all nested values are
    kept if the target supports them."""
    if not pa.types.is_nested(values.type) or (column_spec.get("list") and pa.types.is_list(values.type)):
        return values
    if column_spec.get("nested"):
        return values.cast(_without_dictionaries(values.type))
    return pc.if_else(values.is_valid(), json_texts(values), pa.scalar(None, pa.string()))


def _to_single_type(values: pa.Array, column_spec: Mapping[str, Any]) -> pa.Array:
    """Convert a column to a single type for targets that need one: to text if any cell contains text as injected
    invalid data."""
    if not mixed_columns.is_mixed(values.type) or column_spec.get("mixed"):
        return values
    typed, texts = mixed_columns.split(values)
    if texts.null_count == len(texts):
        return typed
    if pa.types.is_boolean(typed.type):
        as_text = typed.cast(pa.int64()).cast(pa.string())
    else:
        as_text = mixed_texts(mixed_columns.create(typed))
    if pa.types.is_timestamp(typed.type):
        as_text = pc.replace_substring(pc.replace_substring(as_text, "T", " "), "Z", "+00:00")
    return pc.coalesce(texts, as_text)


def _without_dictionaries(dtype: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries at any depth, so that parts can be concatenated."""
    if pa.types.is_struct(dtype):
        return pa.struct([field.with_type(_without_dictionaries(field.type)) for field in dtype])
    if pa.types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(_without_dictionaries(dtype.value_type)))
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _json_objects(batch: pa.RecordBatch) -> bytes:
    fields = [field.with_type(_without_dictionaries(field.type)) for field in batch.schema]
    struct = pa.StructArray.from_arrays(
        [decode_dictionary(column) for column in batch.columns], fields=fields
    )
    text: str = json_texts(struct)[0].as_py()
    return text.encode()


def _column(entity: Entity, name: str) -> Column:
    found = entity.column(name)
    if found is not None:
        return found
    if entity.kind in ("collection", "endpoint"):
        return Column(name, "other", "")
    message = f'The table "{entity.name}" has no column "{name}".'
    raise ConnectorError(message, reason="no_column", hint="It existed when the push was created.")


# --- Reading them from a push -----------------------------------------------------------------------------------


def load_tables(push: Push) -> list[TableRows]:
    """Return the tables of a push, in the order of sending. Needs no request context and reads only columns of `push`.

    Raise unavailable (the vocabulary of the push is missing, or the engine has changed since) or not_found (its
    template was deleted).
    """
    if push.pins["engine"] not in ENGINES:
        message = f"This push was created with engine {push.pins['engine']}, but this is engine {ENGINE}."
        raise ApiError("unavailable", message, {"pinned": push.pins["engine"], "present": ENGINE})
    makers = row_generators(push)
    db.session.remove()
    found = [
        TableRows(table_index, table, makers[table.get("recipe", 0)])
        for table_index, table in enumerate(push.tables)
    ]
    arrivals = DeliveredRows(push, found) if push.kind == "push" else None
    referenced = {
        (parent["table"], found[parent["table"]].column_of(parent["parent_field"]))
        for rows in found
        for parent in rows.references.values()
    }
    for rows in found:
        rows.delivered_rows, rows.push_tables = arrivals, found
        rows.stored_columns = tuple(
            name
            for name in rows.columns
            if (name in rows.from_parent or name in rows.references)
            and name not in rows.deferred_columns
            and (name in rows.lookup_columns or (rows.index, name) in referenced)
        )
    return found


def row_generators(push: Push, request: Mapping[str, Any] | None = None) -> Sequence[RowGenerator]:
    """Return the row generators of a push, in the order of its pins; `request` replaces the push's own. Raises the
    errors of `load_tables`."""
    pins = push.pins
    if request is None:
        request = push.request["ask"]
    if "tables" in pins:
        return [
            TemplateRows(recipe.bound) for recipe in datasets_rows.bundle_from_pins(pins, {}, "json").recipes
        ]
    stored_pins = Pins.from_json(pins)
    if (
        push.tables and (storage_key := push.tables[0].get("given")) is not None
    ):  # rows that came with the request
        return [SubmittedRows(load_rows(storage_key), stored_pins.seed, stored_pins.now)]
    if stored_pins.template_id is None or stored_pins.version is None:
        raise tenancy.not_found("template", stored_pins.template_id or "")
    template = generate.TemplateRef(stored_pins.template_id, stored_pins.version, "", "")
    source = generate.saved_source(template, stored_pins.locale, row_counts=request.get("rows") or {})
    source = external_values.with_pinned_answers(source, stored_pins)
    env = GenerationContext(
        stored_pins.seed, stored_pins.now, stored_pins.locale, stored_pins.now == source.anchor
    )
    try:
        bound = BoundPlan(source.plan, env, request.get("overrides") or {})
    except SpecError as error:
        raise validation_error(error.faults) from None
    return [TemplateRows(bound)]


def load_rows(key: str) -> pa.Table:
    """Return the stored rows of a request. Raise unavailable if they are missing in the storage."""
    try:
        raw = b"".join(storage.get_storage(application()).get(key))
    except storage.MissingError:
        raise ApiError("unavailable", "The rows of this push are no longer stored.") from None
    return pa.ipc.open_file(pa.BufferReader(raw)).read_all()


def store_rows(key: str, table: pa.Table) -> None:
    """Store the rows of a request."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    storage.get_storage(application()).put(key, [sink.getvalue().to_pybytes()])
