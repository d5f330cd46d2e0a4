"""Plan a push: the columns of each table, their sources, the keys, and the order of the tables.

A plan is `Push.tables`, one JSON object for each table in the order of sending:

    {name, template_id, version, target, count, offset, mode, key_columns, columns, capture, from_parent, later,
     references, unchecked, numbered, create, definition, recipe, given, bad, asked, rounds}

`columns` are `{column, field | formula | object_id, list, nested, mixed}`. `from_parent` are columns whose value is a
key that the target generates for the parent's row. `references` are all columns that refer to a table of the push, as
`{table, field, parent_field}`. `unchecked` are references to rows that are sent later although the columns are not
nullable: the target does not check foreign keys of this table during the push. `numbered` are keys that the target
could generate but that the push numbers itself: by column, the last number before the first key. `later` are columns
that are inserted as null and updated in a second pass. `definition` are the columns of a table that the push creates;
`recipe` is the index of the row maker, `given` the storage key of rows that came with the request; `bad` says that some
rows contain injected invalid data. `asked` is the planned `count` if rows were added in place of rejected ones, and
`rounds` how often.

Keys that a target generated are stored by chunk and found by row number: child tables read their parents' keys, and an
undo finds the rows to delete, both one chunk at a time and in constant memory. A chunk's file is written before the
chunk is committed, so a crash loses no keys. Rows that were sent twice have two files, of which the later one is valid:
file names contain the push, the epoch of its sender and a number.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from flask import current_app

from webapp import limits, storage
from webapp.connections.models import Connection, Endpoint
from webapp.connections.services import access
from webapp.connectors import KINDS
from webapp.connectors.base import Capabilities, OpenConnection, WriteSpec
from webapp.connectors.schema import Column, Entity, Relation
from webapp.engine.formulas import types as formulas_types
from webapp.engine.types.formulas import Formula
from webapp.errors import ApiError, Fault, did_you_mean
from webapp.extensions import application, db, read_session
from webapp.generation.services.row_makers import Field, InvalidRowsError, RowGenerator, unknown_field_fault
from webapp.pushes.models import Push
from webapp.pushes.services import mapping, rows, targets
from webapp.pushes.services.ledger import read
from webapp.pushes.services.mapping import RequestedMapping, TableMapping
from webapp.pushes.services.rows import TableRows
from webapp.row_templates.services import relations
from webapp.row_templates.services.relations import Edge
from webapp.storage import Storage

ROW_NUMBER_COLUMN: Final = (
    " row"  # The column of row numbers; the leading space distinguishes it from a target's columns
)


@dataclass(frozen=True, slots=True, order=True)
class _KeyFile:
    """The keys of one chunk. Files are ordered from the earliest sender to the latest."""

    push_id: str
    epoch: int
    sequence_number: int
    first: int
    last: int
    key: str


class KeySpool:
    """The captured keys of a push and of its retries. `folder` is their folder in the storage. Rows are counted from 0,
    with the offset, as in `TableRows.batch`. Thread-safe."""

    def __init__(self, store: Storage, folder: str) -> None:
        self._store, self._folder = store, folder
        self._files: dict[int, list[_KeyFile]] = {}
        self._cache: OrderedDict[str, pa.Table] = OrderedDict()
        self._bytes = 0
        self._sequence_number = 0
        self._lock = threading.Lock()

    def put(self, table: int, rows: np.ndarray, keys: pa.RecordBatch, push_id: str, epoch: int) -> None:
        """Store the keys of a chunk: one row of `keys` for each of `rows` (``uint64[n]``), null for rows without a
        key."""
        if not len(rows):  # A chunk in which no row could be sent
            return
        order = np.argsort(rows)
        stored = pa.Table.from_batches([keys]).append_column(
            ROW_NUMBER_COLUMN, pa.array(rows.astype(np.uint64))
        )
        stored = stored.take(pa.array(order))
        self._sequence_number += 1
        name = f"{int(rows.min())}-{int(rows.max())}.{push_id}.{epoch}.{self._sequence_number}"
        key = f"{self._folder}/{table}/{name}"
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, stored.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
            file.write_table(stored)
        self._store.put(key, [sink.getvalue().to_pybytes()])
        with self._lock:
            files = [item for item in self._files_of(table) if item.key != key]
            self._files[table] = sorted([*files, _parse_key(key)])
            self._evict(key)

    def take(self, table: int, column: str, rows: np.ndarray) -> pa.Array:
        """Return the keys of some rows (``uint64[n]``, any order) of a table, null for rows without a key."""
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        positions = np.full(len(rows), -1, np.int64)
        pieces: list[pa.Array] = []
        count = 0
        with self._lock:
            for file in self._files_of(table):
                start, end = np.searchsorted(ordered, [file.first, file.last + 1])
                if start == end:
                    continue
                piece, found = self._keys_in(file, column, ordered[start:end])
                if piece is None:
                    continue
                slots = order[start:end][found]
                positions[slots] = count + np.arange(len(slots))
                pieces.append(piece)
                count += len(piece)
        if not pieces:
            return pa.nulls(len(rows))
        # An API may return numbers for some rows and texts for others.
        kind = pieces[0].type if len({piece.type for piece in pieces}) == 1 else pa.string()
        values = pa.concat_arrays([piece if piece.type == kind else piece.cast(kind) for piece in pieces])
        return values.take(pa.array(positions, mask=positions < 0))

    def _keys_in(self, file: _KeyFile, column: str, rows: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        """Return the keys in a file for some ascending rows, and a mask (``bool[n]``) of the rows that have one."""
        table = self._load(file)
        if column not in table.column_names:
            return None, np.zeros(len(rows), np.bool_)
        stored_rows = table.column(ROW_NUMBER_COLUMN).to_numpy()
        values = table.column(column).combine_chunks()
        at = np.minimum(np.searchsorted(stored_rows, rows), len(stored_rows) - 1)
        valid = np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), np.bool_)
        found = (stored_rows[at] == rows) & valid[at]
        return (values.take(pa.array(at[found])), found) if found.any() else (None, found)

    def _load(self, file: _KeyFile) -> pa.Table:
        if file.key in self._cache:
            self._cache.move_to_end(file.key)
            return self._cache[file.key]
        raw = b"".join(self._store.get(file.key))
        table = pa.ipc.open_file(pa.BufferReader(raw)).read_all()
        self._cache[file.key] = table
        self._bytes += table.nbytes
        while self._bytes > limits.PUSH_SPOOL_BYTES and len(self._cache) > 1:
            self._evict(next(iter(self._cache)))
        return table

    def _evict(self, key: str) -> None:
        removed = self._cache.pop(key, None)
        if removed is not None:
            self._bytes -= removed.nbytes

    def _files_of(self, table: int) -> list[_KeyFile]:
        if table not in self._files:
            found = self._store.listing(f"{self._folder}/{table}")
            self._files[table] = sorted(_parse_key(item.key) for item in found)
        return self._files[table]


def _parse_key(key: str) -> _KeyFile:
    name, push_id, epoch, turn = key.rpartition("/")[2].split(".")
    first, _, last = name.partition("-")
    return _KeyFile(push_id, int(epoch), int(turn), int(first), int(last), key)


def keys_folder(workspace_id: str, first_push_id: str) -> str:
    """Return the storage folder of the keys of a push and its retries."""
    return f"pushes/{workspace_id}/{first_push_id}/keys"


# --- Plan ---------------------------------------------------------------------------------------------------

_UNIQUE_TYPES: Final = frozenset({"row_number", "sequence", "uuid", "ulid", "mongodb_objectid"})


def new_entity(
    target: str, maker: RowGenerator, count: int, requested: RequestedMapping, can: Capabilities
) -> Entity:
    """The table that the rows would fill: a column for each visible field, and for each formula."""
    columns = []
    named = {
        name.partition(".")[0] for name, to in requested.mapping.items() if to and not can.sql and "." in name
    }
    for item in maker.fields.values():
        if item.name in named - requested.mapping.keys() and pa.types.is_struct(item.dtype):
            continue
        name = requested.mapping.get(
            item.name, item.name if "." not in item.name and not item.hidden else None
        )
        if name is not None:
            columns.append(_new_column(name, item, count))
    for name, source in requested.computed.items():
        try:
            expression = maker.compile_formula(source, "")
            dtype, longest = expression.dtype, expression.max_length
        except InvalidRowsError:  # reported when the mapping is created
            dtype, longest = pa.string(), None
        columns.append(_new_column(name, Field(name, dtype, max_length=longest), count))
    keys = tuple(requested.key_columns) or _new_key(maker.fields, columns, requested)
    fields = tuple(
        replace(item, key=True, nullable=False) if item.name in keys else item
        for item in {column.name: column for column in columns}.values()
    )
    if not can.sql:
        return Entity(target, (target,), fields, "collection", keys=keys)
    return Entity(target, tuple(target.split(".", 1)), fields, keys=keys)


def name_length_faults(entity: Entity, requested: RequestedMapping, can: Capabilities) -> list[Fault]:
    """Return faults for names that are too long for the target."""
    text = f"Names in this target can have at most {can.name_chars} characters."
    long = [column.name for column in entity.fields if len(column.name) > can.name_chars]
    found = [
        Fault(requested.mapping_path, "too_long", f'"{item[:60]}…": {text}', "Map it to a shorter name.")
        for item in long
    ]
    if max(map(len, entity.parts)) > can.name_chars:
        found.insert(0, Fault("target", "too_long", text, "Use a shorter name."))
    return found


def _new_column(name: str, source_field: Field, rows: int) -> Column:
    kind = mapping.suitable_column_types(source_field)[0]
    if kind == "timestamptz" and source_field.dtype.tz is None:
        kind = "timestamp"
    precision = scale = None
    if kind == "decimal":
        scale = source_field.dtype.scale
        bounds = source_field.column.bounds(rows) if source_field.column is not None else None
        digits = max(len(str(abs(end))) for end in bounds or (formulas_types.MAX_INTEGER,))
        precision = min(38, max(digits, scale + 1))
    length = source_field.max_length if kind == "text" else None
    bits = 64 if kind == "integer" else None
    return Column(
        name,
        "text" if kind == "other" else kind,
        "",
        True,
        length,
        precision=precision,
        scale=scale,
        bits=bits,
    )


def _new_key(
    fields: Mapping[str, Field], columns: Sequence[Column], requested: RequestedMapping
) -> tuple[str, ...]:
    """Return the column that identifies rows: one whose values never repeat."""
    for item in fields.values():
        column = item.column
        if column is None or column.blank_share is not None or item.hidden or "." in item.name:
            continue
        is_unique = column.type.name in _UNIQUE_TYPES and column.formula is None
        name = requested.mapping.get(item.name, item.name)
        if name is not None and (is_unique or column.type.is_primary_key or column.spec.common.unique):
            return (name,)
    return ()


def column_definition(column: Column) -> dict[str, Any]:
    """Return a column as JSON, without unset attributes."""
    definition = {
        "name": column.name,
        "type": column.type,
        "declared": "",
        "nullable": column.nullable,
        "max_length": column.max_length,
        "precision": column.precision,
        "scale": column.scale,
        "bits": column.bits,
        "key": column.key,
    }
    return {key: value for key, value in definition.items() if value is not None}


@dataclass(frozen=True, slots=True)
class RequestedTable:
    """One table of a push, as requested. `entity` is None if the push creates the table."""

    name: str
    target: str
    maker: RowGenerator
    count: int
    mapping: RequestedMapping
    entity: Entity | None
    offset: int = 0
    template_id: str | None = None
    version: int | None = None
    recipe: int = 0
    uploaded_key: str | None = None
    path: str = ""
    """Prefix for the paths of errors: `tables.orders.`."""


@dataclass(slots=True)
class TablePlan:
    """One planned table: its object in `Push.tables`, and its inputs."""

    request: RequestedTable
    entity: Entity
    mapped: TableMapping
    spec: dict[str, Any]
    faults: list[Fault] = field(default_factory=list)

    def rows(self, table_index: int) -> TableRows:
        """Its rows."""
        return TableRows(table_index, self.spec, self.request.maker)


def plan_table(
    requested_table: RequestedTable, can: Capabilities, push_id: str, table_index: int
) -> TablePlan:
    """Plan one table on its own; see `link_tables` for keys from parents."""
    entity = requested_table.entity or new_entity(
        requested_table.target, requested_table.maker, requested_table.count, requested_table.mapping, can
    )
    requested = requested_table.mapping
    faults: list[Fault] = []
    if requested.mode not in can.modes:
        message = f"This kind of connection does not support mode {requested.mode}."
        faults.append(
            Fault(
                f"{requested_table.path}mode",
                "not_allowed",
                message,
                f"Supported modes: {', '.join(can.modes)}.",
            )
        )
    key_columns, key_faults = _resolve_key_columns(
        requested.key_columns, entity, f"{requested_table.path}key_columns"
    )
    faults += key_faults
    if not key_columns and requested.mode != "insert":
        key_columns = list(entity.keys)
    found = mapping.map_columns(
        requested_table.maker.fields, entity, replace(requested, key_columns=key_columns)
    )
    faults += found.faults
    nested = entity.kind in mapping.DOCUMENT_KINDS
    columns = [
        _column_spec(cell, requested_table.maker, faults, requested, nested)
        for cell in found.column_mappings
        if cell.is_mapped
    ]
    spec: dict[str, Any] = {
        "name": requested_table.name,
        "template_id": requested_table.template_id,
        "version": requested_table.version,
        "target": entity.name,
        "count": requested_table.count,
        "offset": requested_table.offset,
        "mode": requested.mode,
        "key_columns": [],
        "columns": columns,
        "capture": [],
        "from_parent": {},
        "later": [],
        "references": {},
        "unchecked": [],
        "numbered": {},
        "create": requested_table.entity is None,
        "recipe": requested_table.recipe,
    }
    if requested_table.maker.has_invalid_values(item["field"] for item in columns if "field" in item):
        spec["bad"] = True
    if requested_table.entity is None:
        spec["definition"] = [column_definition(column) for column in entity.fields]
        faults += name_length_faults(entity, requested, can)
    if requested_table.uploaded_key is not None:
        spec["given"] = requested_table.uploaded_key
    planned = TablePlan(requested_table, entity, found, spec, faults)
    if entity.kind == "collection" and "_id" not in found.mapped_columns() and requested.mode == "insert":
        # Rows of targets without transactions carry keys of ours, so that sending one twice does not double it.
        columns.insert(0, {"column": "_id", "object_id": f"{push_id}:{table_index}"})
        spec["key_columns"] = ["_id"]
    elif not faults:
        _choose_key_columns(planned, key_columns, can)
        captured = bool(spec["capture"])  # rules of a table can prevent that it returns keys
        if (
            can.sql
            and requested.mode == "insert"
            and requested_table.entity is not None
            and (captured or not spec["key_columns"])
        ):
            spec["undo_columns"] = _undo_columns(planned)
    return planned


def _column_spec(
    cell: mapping.ColumnMapping,
    maker: RowGenerator,
    faults: list[Fault],
    requested: RequestedMapping,
    nested: bool,
) -> dict[str, Any]:
    name = cell.column.name
    if cell.formula is not None:
        try:
            dtype = maker.compile_formula(cell.formula, f"{requested.computed_path}.{name}").dtype
        except InvalidRowsError as error:
            faults += error.faults
            dtype = pa.null()
        spec: dict[str, Any] = {"column": name, "formula": cell.formula}
    else:
        assert cell.field is not None
        dtype, spec = maker.fields[cell.field].dtype, {"column": name, "field": cell.field}
    if nested and cell.field is not None and maker.fields[cell.field].mixed:
        spec["mixed"] = True
    if nested and (pa.types.is_nested(dtype) or (cell.field is not None and maker.fields[cell.field].json)):
        spec["nested"] = True
    elif cell.column.type == "array" and pa.types.is_list(dtype) and not pa.types.is_nested(dtype.value_type):
        spec["list"] = True
    return spec


def field_faults(maker: RowGenerator, requested: RequestedMapping) -> list[Fault]:
    """Return the errors of a mapping and its formulas that do not depend on the table: unknown fields, and formulas
    with syntax errors."""
    visible = [item.name for item in maker.fields.values() if not item.hidden]
    faults = [
        unknown_field_fault(f"{requested.mapping_path}.{name}", name, visible)
        for name in requested.mapping
        if name not in maker.fields
    ]
    for name, formula in requested.computed.items():
        try:
            maker.compile_formula(formula, f"{requested.computed_path}.{name}")
        except InvalidRowsError as error:
            faults += error.faults
    return faults


def new_table_write_spec(planned: TablePlan) -> WriteSpec:
    """Return the columns of a table that does not exist yet."""
    cells = planned.mapped.mapped_columns()
    names = [column["column"] for column in planned.spec["columns"]]
    columns = tuple(cells[name].column if name in cells else Column(name, "objectid", "") for name in names)
    return WriteSpec(planned.entity, columns, "insert", tuple(planned.spec["key_columns"]))


# --- Keys -------------------------------------------------------------------------------------------------------


def _resolve_key_columns(names: Iterable[str], entity: Entity, path: str) -> tuple[list[str], list[Fault]]:
    found, faults = [], []
    known = {column.name.casefold(): column.name for column in entity.fields}
    for position, name in enumerate(names):
        real = entity.column(name)
        if real is not None or name.casefold() in known or entity.kind == "collection":
            found.append(real.name if real else known.get(name.casefold(), name))
        else:
            text = f'The table "{entity.name}" has no column "{name}".'
            faults.append(
                Fault(f"{path}[{position}]", "unknown_column", text, did_you_mean(name, known.values()))
            )
    return list(dict.fromkeys(found)), faults


def _choose_key_columns(planned: TablePlan, key_columns: Sequence[str], can: Capabilities) -> None:
    """Choose the columns that identify rows: for upsert and update, for undo, and for the ledger."""
    entity, spec, mode = planned.entity, planned.spec, planned.spec["mode"]
    filled, requested = planned.mapped.mapped_columns(), planned.request.mapping
    path = f"{planned.request.path}key_columns"
    unique_keys = [entity.keys, *entity.uniques, *((c.name,) for c in entity.fields if c.unique)]
    if requested.key_columns:
        for position, name in enumerate(key_columns):
            if name not in filled:
                text = f'No field is mapped to the key column "{name}".'
                planned.faults.append(
                    Fault(f"{path}[{position}]", "missing_column", text, "Map a field to it.")
                )
        is_unique = any(key and set(key) == set(key_columns) for key in unique_keys)
        if mode == "upsert" and can.sql and not is_unique:
            text = (
                f"The columns {', '.join(key_columns)} are not a key of the table: an upsert needs a "
                "unique constraint."
            )
            planned.faults.append(Fault(path, "not_a_key", text, _keys_hint(entity)))
        spec["key_columns"] = list(key_columns)
    elif mode == "insert" and entity.keys and can.capture and _has_generated_key(entity, filled):
        spec["key_columns"] = list(entity.keys)
        spec["capture"] = [name for name in entity.keys if name not in filled]
    else:
        fit = next((list(names) for names in unique_keys if names and set(names) <= filled.keys()), [])
        spec["key_columns"] = fit
        if not fit and mode != "insert":
            text = f"No field is mapped to a key of the table, which {mode} needs to find the rows."
            planned.faults.append(Fault(path, "missing_keys", text, _keys_hint(entity)))
    if mode == "update" and set(filled) <= set(spec["key_columns"]):
        text = "Only key columns are mapped, so there is nothing to update."
        planned.faults.append(Fault(requested.mapping_path, "nothing_mapped", text, "Map more fields."))


_COMPARABLE_TYPES: Final = frozenset({"integer", "decimal", "text", "boolean", "date", "uuid"})
"""Types whose values are equal to what was sent, in every database."""


def _undo_columns(planned: TablePlan) -> list[str]:
    """Return the columns by which rows of a table without a key are found again for undo, if the table was empty."""
    found = [
        cell.column
        for name, cell in planned.mapped.mapped_columns().items()
        if cell.is_mapped
        and name not in planned.spec["from_parent"]
        and cell.column.type in _COMPARABLE_TYPES
    ]
    never_null = [column.name for column in found if not column.nullable]
    return never_null or [column.name for column in found]


def _has_generated_key(entity: Entity, filled: Mapping[str, Any]) -> bool:
    """Return whether the target generates the primary key columns that rows do not have."""
    missing = [entity.column(name) for name in entity.keys if name not in filled]
    return bool(missing) and all(
        column is not None and (column.generated == "identity" or column.default is not None)
        for column in missing
    )


def _keys_hint(entity: Entity) -> str:
    known = [entity.keys, *entity.uniques, *((c.name,) for c in entity.fields if c.unique)]
    keys = [" + ".join(item) for item in dict.fromkeys(known) if item]
    return f"Keys of the table: {'; '.join(keys)}." if keys else "The table has no key. Use insert."


# --- Keys from parents ------------------------------------------------------------------------------------------


def sort_tables(tables: list[TablePlan], edges: Sequence[Edge]) -> list[Edge]:
    """Sort tables for sending, parents first. A circular reference is broken at a nullable column. Returns the foreign
    keys that this order cannot satisfy."""
    by_id = {item.request.template_id: item for item in tables}

    def can_defer(edge: Edge) -> bool:
        child = by_id[edge.child_template_id]
        cell = _column_mapping(child, edge)
        return cell is None or (cell.column.nullable and bool(child.spec["key_columns"]))

    found = relations.sort_tables([item for item in by_id if item is not None], edges, can_defer)
    tables.sort(key=lambda item: found.template_ids.index(item.request.template_id or ""))
    return list(found.cyclic_edges)


def _column_mapping(child: TablePlan, edge: Edge) -> mapping.ColumnMapping | None:
    """Return the mapping of a reference; None if it is skipped."""
    return next((cell for cell in child.mapped.column_mappings if cell.field == edge.child_field), None)


class ForeignKeyChecks(Protocol):
    """Queries to the target that are needed if foreign keys form a cycle whose columns are not nullable."""

    def can_suspend(self) -> bool:
        """Return whether rows may be written before the rows that they refer to."""

    def highest(self, entity: Entity, column: str) -> int:
        """Return the highest value of an integer column, 0 for an empty table."""


def link_tables(
    tables: Sequence[TablePlan],
    edges: Sequence[Edge],
    broken: Sequence[Edge],
    can: Capabilities,
    checks: ForeignKeyChecks | None = None,
) -> None:
    """Pass keys that the target generates to child tables, and defer references that close a cycle. `tables` are in the
    order of sending; `broken` are the edges that this order cannot satisfy. `checks` is needed for cycles whose columns
    are not nullable."""
    if checks is not None:
        for item in tables:
            _number_own_rows(item, checks)
    positions = {item.request.template_id: at for at, item in enumerate(tables)}
    cycles = {(edge.child_template_id, edge.child_field) for edge in broken if not edge.is_self_reference}
    # Circular references come first, because they may require that the push numbers a key that the target would
    # generate.
    for edge in sorted(edges, key=lambda item: (item.child_template_id, item.child_field) not in cycles):
        if edge.child_template_id not in positions or edge.parent_template_id not in positions:
            continue
        child, parent = tables[positions[edge.child_template_id]], tables[positions[edge.parent_template_id]]
        cell = _column_mapping(child, edge)
        if cell is None:
            continue
        in_cycle = (edge.child_template_id, edge.child_field) in cycles
        is_unchecked = (
            in_cycle
            and not (cell.column.nullable and child.spec["key_columns"])
            and checks is not None
            and can.transactions
            and checks.can_suspend()
        )
        generated_key = _generated_key(child.entity, cell.column.name, parent, edge.parent_field)
        if generated_key is not None and is_unchecked:
            assert checks is not None
            _number_keys(parent, generated_key, checks)
            generated_key = None
        child.spec["references"][cell.column.name] = {
            "table": positions[edge.parent_template_id], "field": edge.child_field, "parent_field": edge.parent_field,
        }  # fmt: skip
        if is_unchecked:
            child.spec["unchecked"].append(cell.column.name)
            continue
        if generated_key is not None and can.capture and parent.spec["mode"] == "insert":
            if generated_key not in parent.spec["capture"]:
                parent.spec["capture"].append(generated_key)
            at = positions[edge.parent_template_id]
            child.spec["from_parent"][cell.column.name] = {
                "table": at, "column": generated_key, "field": edge.child_field,
            }  # fmt: skip
        if in_cycle or (edge.is_self_reference and generated_key is not None):
            _defer_column(child, cell.column, can)


_LINK_KEYS: Final = ("columns", "capture", "from_parent", "later", "references", "unchecked", "numbered")


def links_of(one: TablePlan) -> dict[str, Any]:
    """Return what `link_tables` changes of a table, for `restore_links`."""
    return {key: copy(one.spec[key]) for key in _LINK_KEYS}


def restore_links(one: TablePlan, links: Mapping[str, Any]) -> None:
    """Undo the changes of `link_tables` to a table. Faults remain."""
    one.spec.update(links)


def tables_without_parents(
    tables: Sequence[TablePlan], edges: Sequence[Edge], names: Mapping[str, str], skipped: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the tables whose rows need a row of a table that is left out, with the reason by name.

    If the referring column is nullable, it is removed from the table's columns instead. `names` are the dataset's names
    of tables by template, `skipped` those that are left out already.
    """
    by_id = {item.request.template_id: item for item in tables}
    missing = {template_id: name for template_id, name in names.items() if name in skipped}
    orphaned: dict[str, dict[str, Any]] = {}
    changed = True
    while changed:
        changed = False
        for edge in edges:
            child = by_id.get(edge.child_template_id)
            if child is None or edge.is_self_reference or edge.parent_template_id not in missing:
                continue
            cell = _column_mapping(child, edge)
            if cell is None or not any(
                column["column"] == cell.column.name for column in child.spec["columns"]
            ):
                continue
            if cell.column.nullable and cell.column.name not in child.spec["key_columns"]:
                child.spec["columns"] = [
                    column for column in child.spec["columns"] if column["column"] != cell.column.name
                ]
                continue
            parent = missing[edge.parent_template_id]
            text = f'Its column "{cell.column.name}" needs a row of "{parent}", which is left out.'
            orphaned[child.request.name] = {"code": "parent_skipped", "message": text, "hint": ""}
            missing[edge.child_template_id] = child.request.name
            del by_id[edge.child_template_id]
            changed = True
    return orphaned


def optional_columns(entity: Entity, table: TableRows) -> list[str]:
    """Return the columns of a table that may be left out of its rows: those that have a default or may be null, are not
    part of its key, and are not referenced by another table."""
    read = {
        (parent["table"], column)
        for sibling in table.push_tables
        for columns, key in ((sibling.from_parent, "column"), (sibling.references, "parent_field"))
        for parent in columns.values()
        for column in (parent[key], sibling.push_tables[parent["table"]].column_of(parent[key]))
    }
    found = []
    for name in table.columns:
        column = entity.column(name)
        if column is None or column.required or name in entity.keys or (table.index, name) in read:
            continue
        if name not in (
            *table.key_columns,
            *table.captured_columns,
            *table.stored_columns,
            *table.deferred_columns,
            *table.numbered_columns,
        ):
            found.append(name)
    return found if len(found) < len(table.columns) else found[1:]


def remove_columns(spec: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return an object of `Push.tables` without some columns."""

    def remaining(of: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in of.items() if name not in names}

    return {
        **spec,
        "columns": [column for column in spec["columns"] if column["column"] not in names],
        "from_parent": remaining(spec["from_parent"]),
        "references": remaining(spec.get("references") or {}),
        "undo_columns": [column for column in spec.get("undo_columns") or () if column not in names],
    }


def _number_keys(parent: TablePlan, key: str, checks: ForeignKeyChecks) -> None:
    """Send the key that the target would generate: numbers after its highest existing one."""
    if key in parent.spec["numbered"]:
        return
    column = parent.entity.column(key)
    field = next(
        (cell.field for cell in parent.mapped.column_mappings if cell.column.name == key and cell.field), None
    )
    source = parent.request.maker.fields.get(field or key)
    if column is None or column.type != "integer" or source is None:
        return
    parent.spec["columns"].insert(0, {"column": key, "field": source.name})
    parent.spec["numbered"][key] = checks.highest(parent.entity, key)
    parent.spec["capture"] = [name for name in parent.spec["capture"] if name != key]


def _number_own_rows(table: TablePlan, checks: ForeignKeyChecks) -> None:
    """Send the key of a table whose rows refer to themselves, because it must be known before a row is inserted, and of
    a table that has no other column."""
    columns = [table.entity.column(item["column"]) for item in table.spec["columns"]]
    if len(columns) == 1 and columns[0] is not None and columns[0].generated == "identity":
        table.spec["numbered"][columns[0].name] = checks.highest(table.entity, columns[0].name)
    for relation in table.entity.relations:
        if relation.entity != table.entity.name or len(relation.columns) != 1:
            continue
        (column,), (key,) = relation.columns, relation.entity_columns
        cell = next(
            (item for item in table.mapped.column_mappings if item.column.name == column and item.field), None
        )
        source = table.request.maker.fields.get((cell and cell.field) or "")
        key_column = table.entity.column(key)
        kind = source.column.type if source is not None and source.column is not None else None
        is_copy = isinstance(kind, Formula) and kind.options.expression == key
        if cell is None or not is_copy or key_column is None or key_column.generated != "identity":
            continue
        _number_keys(table, key, checks)
        if key in table.spec["numbered"]:
            table.spec["numbered"][column] = table.spec["numbered"][key]


def _generated_key(child: Entity, column: str, parent: TablePlan, parent_field: str) -> str | None:
    """Return the column of the parent's table whose value the target generates and a child's column uses; None if the
    rows contain it."""
    relation = relation_of(child, column)
    filled = parent.mapped.mapped_columns()
    if relation is not None and relation.entity == parent.entity.name:
        name = relation.entity_columns[relation.columns.index(column)]
    elif any(cell.field == parent_field for cell in filled.values()):
        return None
    elif parent.entity.kind == "endpoint":
        returned = [item.name for item in parent.entity.fields if not item.name.startswith("@")]
        name = parent_field if parent_field in returned else returned[0] if len(returned) == 1 else ""
    elif len(parent.entity.keys) != 1:
        return None
    else:
        name = parent.entity.keys[0]
    key_column = parent.entity.column(name)
    if name in filled or key_column is None or name in parent.spec["numbered"]:
        return None
    return name if key_column.generated == "identity" or key_column.default is not None else None


def relation_of(entity: Entity, column: str) -> Relation | None:
    """The foreign key that a column is part of."""
    return next((relation for relation in entity.relations if column in relation.columns), None)


def _defer_column(child: TablePlan, column: Column, can: Capabilities) -> None:
    path = child.request.mapping.mapping_path
    if can.by_row:
        text = (
            f'"{column.name}" references rows that do not exist yet, and cannot be set afterwards over HTTP.'
        )
        hint = (
            "Leave it out by mapping it to null, or remove one of the references of the circular reference."
        )
        child.faults.append(Fault(path, "cycle", text, hint))
    elif not column.nullable:
        text = (
            f'The column "{column.name}" must not be null, and the rows that it references do not exist yet.'
        )
        hint = "Allow null in the column, or remove one of the references of the circular reference."
        child.faults.append(Fault(path, "cycle", text, hint))
    elif not child.spec["key_columns"]:
        text = f'The column "{column.name}" cannot be written afterwards, because the table has no key.'
        child.faults.append(Fault(path, "missing_keys", text, "Add a primary key to the table."))
    elif column.name not in child.spec["later"]:
        child.spec["later"].append(column.name)


# What a worker needs to run a push: its rows, its target, and where captured keys are stored.


@dataclass(frozen=True, slots=True)
class PushJob:
    """A push that a worker runs. `open` connects to its target and raises `ConnectorError`."""

    push: Push
    tables: list[TableRows]
    open: Callable[[], OpenConnection]
    capabilities: Capabilities
    key_spool: KeySpool

    @property
    def has_transactions(self) -> bool:
        """A chunk of this target is all or nothing."""
        return self.capabilities.transactions

    @property
    def request_body(self) -> dict[str, Any]:
        """The body as accepted."""
        ask: dict[str, Any] = self.push.request["ask"]
        return ask

    @property
    def canary_rows(self) -> int:
        """Number of canary rows; 0 without a canary."""
        requested = self.request_body.get("canary") if self.push.kind == "push" else None
        return limits.PUSH_CANARY_ROWS if requested is True else int(requested or 0)

    def idempotency_keys(self, table_index: int, numbers: Sequence[int]) -> list[str]:
        """Return the idempotency keys of some rows: see `ledger.read.idempotency_keys`."""
        with read_session() as session:
            keys = read.idempotency_keys(session, self.push, table_index, numbers)
        return [keys[number] for number in numbers]

    @property
    def target_wait_seconds(self) -> int:
        """How long the push waits for an unavailable target, in seconds."""
        requested = self.request_body.get("target_wait_seconds")
        return int(current_app.config["SETTINGS"].target_wait_seconds if requested is None else requested)

    @property
    def stops_on_error(self) -> bool:
        """Whether the first rejected row stops the push."""
        return self.request_body.get("on_error") == "stop"

    @property
    def stops_when_all_fail(self) -> bool:
        """Whether a table whose first rows all fail for one reason stops the push."""
        return self.request_body.get("on_error") == "stop_when_all_fail"


def load_push_job(push_id: str) -> PushJob:
    """Load everything needed to run a push. Does not need a request.

    Errors: not_found (its connection or template was deleted), those of `push_rows.tables`.
    """
    with read_session() as session:
        push = session.get_one(Push, push_id)
        first = read.original_push(session, push)
        connection = session.get(Connection, push.connection_id) if push.connection_id else None
        endpoint = session.get(Endpoint, push.endpoint_id) if push.endpoint_id else None
    if connection is None or connection.deleted_at is not None:
        raise ApiError("not_found", "The connection of this push no longer exists.")
    app = application()
    spool = KeySpool(storage.get_storage(app), keys_folder(first.workspace_id, first.id))
    changed = targets.setting_overrides(endpoint, push.request["ask"])
    return PushJob(
        push,
        rows.load_tables(push),
        lambda: _open_link(connection, changed),
        KINDS[connection.type].can,
        spool,
    )


def _open_link(connection: Connection, changed: Mapping[str, Any]) -> OpenConnection:
    """Connect to the target, and close our own database session, because a push can take long."""
    try:
        return access.open_connection(connection, changed=changed)
    finally:
        db.session.remove()
