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
from webapp.connectors.base import Capabilities, Link, WriteSpec
from webapp.connectors.schema import Column, Entity, Relation
from webapp.engine.formulas import types as formulas_types
from webapp.engine.types.formulas import Formula
from webapp.errors import ApiError, Fault, did_you_mean
from webapp.extensions import application, db, reading
from webapp.generation.services.row_makers import Field, InvalidRows, RowGenerator, unknown_field
from webapp.pushes.models import Push
from webapp.pushes.services import mapping, rows, targets
from webapp.pushes.services.ledger import read
from webapp.pushes.services.mapping import Mapped, RequestedMapping
from webapp.pushes.services.rows import TableRows
from webapp.row_templates.services import relations
from webapp.row_templates.services.relations import Edge
from webapp.storage import Storage

ROW: Final = " row"  # The column of row numbers; the leading space distinguishes it from a target's columns


@dataclass(frozen=True, slots=True, order=True)
class _File:
    """The keys of one chunk. Files are ordered from the earliest sender to the latest."""

    push_id: str
    epoch: int
    turn: int
    first: int
    last: int
    key: str


class KeySpool:
    """The captured keys of a push and of its retries. `folder` is their folder in the storage. Rows are counted from 0,
    with the offset, as in `TableRows.batch`. Thread-safe."""

    def __init__(self, store: Storage, folder: str) -> None:
        self._store, self._folder = store, folder
        self._files: dict[int, list[_File]] = {}
        self._held: OrderedDict[str, pa.Table] = OrderedDict()
        self._bytes = 0
        self._turn = 0
        self._lock = threading.Lock()

    def put(self, table: int, rows: np.ndarray, keys: pa.RecordBatch, push_id: str, epoch: int) -> None:
        """Store the keys of a chunk: one row of `keys` for each of `rows` (``uint64[n]``), null for rows without a
        key."""
        if not len(rows):  # A chunk in which no row could be sent
            return
        order = np.argsort(rows)
        held = pa.Table.from_batches([keys]).append_column(ROW, pa.array(rows.astype(np.uint64)))
        held = held.take(pa.array(order))
        self._turn += 1
        name = f"{int(rows.min())}-{int(rows.max())}.{push_id}.{epoch}.{self._turn}"
        key = f"{self._folder}/{table}/{name}"
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, held.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
            file.write_table(held)
        self._store.put(key, [sink.getvalue().to_pybytes()])
        with self._lock:
            files = [one for one in self._of(table) if one.key != key]
            self._files[table] = sorted([*files, _parsed(key)])
            self._forget(key)

    def take(self, table: int, column: str, rows: np.ndarray) -> pa.Array:
        """Return the keys of some rows (``uint64[n]``, any order) of a table, null for rows without a key."""
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        places = np.full(len(rows), -1, np.int64)
        pieces: list[pa.Array] = []
        held = 0
        with self._lock:
            for file in self._of(table):
                start, end = np.searchsorted(ordered, [file.first, file.last + 1])
                if start == end:
                    continue
                piece, found = self._piece(file, column, ordered[start:end])
                if piece is None:
                    continue
                slots = order[start:end][found]
                places[slots] = held + np.arange(len(slots))
                pieces.append(piece)
                held += len(piece)
        if not pieces:
            return pa.nulls(len(rows))
        # An API may return numbers for some rows and texts for others.
        kind = pieces[0].type if len({piece.type for piece in pieces}) == 1 else pa.string()
        values = pa.concat_arrays([piece if piece.type == kind else piece.cast(kind) for piece in pieces])
        return values.take(pa.array(places, mask=places < 0))

    def _piece(self, file: _File, column: str, wanted: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        """Return the keys in a file for some ascending rows, and a mask (``bool[n]``) of the rows that have one."""
        table = self._load(file)
        if column not in table.column_names:
            return None, np.zeros(len(wanted), np.bool_)
        known = table.column(ROW).to_numpy()
        values = table.column(column).combine_chunks()
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        valid = np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), np.bool_)
        found = (known[at] == wanted) & valid[at]
        return (values.take(pa.array(at[found])), found) if found.any() else (None, found)

    def _load(self, file: _File) -> pa.Table:
        if file.key in self._held:
            self._held.move_to_end(file.key)
            return self._held[file.key]
        raw = b"".join(self._store.get(file.key))
        table = pa.ipc.open_file(pa.BufferReader(raw)).read_all()
        self._held[file.key] = table
        self._bytes += table.nbytes
        while self._bytes > limits.PUSH_SPOOL_BYTES and len(self._held) > 1:
            self._forget(next(iter(self._held)))
        return table

    def _forget(self, key: str) -> None:
        gone = self._held.pop(key, None)
        if gone is not None:
            self._bytes -= gone.nbytes

    def _of(self, table: int) -> list[_File]:
        if table not in self._files:
            found = self._store.listing(f"{self._folder}/{table}")
            self._files[table] = sorted(_parsed(one.key) for one in found)
        return self._files[table]


def _parsed(key: str) -> _File:
    name, push_id, epoch, turn = key.rpartition("/")[2].split(".")
    first, _, last = name.partition("-")
    return _File(push_id, int(epoch), int(turn), int(first), int(last), key)


def folder_of(workspace_id: str, first_push_id: str) -> str:
    """Return the storage folder of the keys of a push and its retries."""
    return f"pushes/{workspace_id}/{first_push_id}/keys"


# --- Plan ---------------------------------------------------------------------------------------------------

_NUMBERED: Final = frozenset({"row_number", "sequence", "uuid", "ulid", "mongodb_objectid"})


def new_entity(
    target: str, maker: RowGenerator, count: int, asked: RequestedMapping, can: Capabilities
) -> Entity:
    """The table that the rows would fill: a column for each visible field, and for each formula."""
    columns = []
    named = {
        name.partition(".")[0] for name, to in asked.mapping.items() if to and not can.sql and "." in name
    }
    for one in maker.fields.values():
        if one.name in named - asked.mapping.keys() and pa.types.is_struct(one.dtype):
            continue
        name = asked.mapping.get(one.name, one.name if "." not in one.name and not one.hidden else None)
        if name is not None:
            columns.append(_new_column(name, one, count))
    for name, source in asked.computed.items():
        try:
            expression = maker.formula(source, "")
            dtype, longest = expression.dtype, expression.longest
        except InvalidRows:  # reported when the mapping is created
            dtype, longest = pa.string(), None
        columns.append(_new_column(name, Field(name, dtype, longest=longest), count))
    keys = tuple(asked.key_columns) or _new_key(maker.fields, columns, asked)
    fields = tuple(
        replace(one, key=True, nullable=False) if one.name in keys else one
        for one in {one.name: one for one in columns}.values()
    )
    if not can.sql:
        return Entity(target, (target,), fields, "collection", keys=keys)
    return Entity(target, tuple(target.split(".", 1)), fields, keys=keys)


def long_names(entity: Entity, asked: RequestedMapping, can: Capabilities) -> list[Fault]:
    """Faults of names that the target would cut."""
    text = f"Names have {can.name_chars} characters there at most."
    long = [column.name for column in entity.fields if len(column.name) > can.name_chars]
    found = [
        Fault(asked.mapping_path, "too_long", f'"{one[:60]}…": {text}', "Map it to a shorter one.")
        for one in long
    ]
    if max(map(len, entity.parts)) > can.name_chars:
        found.insert(0, Fault("target", "too_long", text, "Take a shorter one."))
    return found


def _new_column(name: str, one: Field, rows: int) -> Column:
    kind = mapping.kinds_of(one)[0]
    if kind == "timestamptz" and one.dtype.tz is None:
        kind = "timestamp"
    precision = scale = None
    if kind == "decimal":
        scale = one.dtype.scale
        bounds = one.column.bounds(rows) if one.column is not None else None
        digits = max(len(str(abs(end))) for end in bounds or (formulas_types.MOST,))
        precision = min(38, max(digits, scale + 1))
    length = one.longest if kind == "text" else None
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
    fields: Mapping[str, Field], columns: Sequence[Column], asked: RequestedMapping
) -> tuple[str, ...]:
    """Return the column that identifies rows: one whose values never repeat."""
    for one in fields.values():
        made = one.column
        if made is None or made.blank is not None or one.hidden or "." in one.name:
            continue
        numbered = made.type.name in _NUMBERED and made.formula is None
        name = asked.mapping.get(one.name, one.name)
        if name is not None and (numbered or made.type.primary or made.spec.common.unique):
            return (name,)
    return ()


def defined(column: Column) -> dict[str, Any]:
    """Return a column as JSON, without unset attributes."""
    told = {
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
    return {key: value for key, value in told.items() if value is not None}


@dataclass(frozen=True, slots=True)
class RequestedTable:
    """One table of a push, as requested. `entity` is None if the push creates the table."""

    name: str
    target: str
    maker: RowGenerator
    count: int
    asked: RequestedMapping
    entity: Entity | None
    offset: int = 0
    template_id: str | None = None
    version: int | None = None
    recipe: int = 0
    given: str | None = None
    path: str = ""
    """Prefix for the paths of errors: `tables.orders.`."""


@dataclass(slots=True)
class Planned:
    """One planned table: its object in `Push.tables`, and its inputs."""

    wanted: RequestedTable
    entity: Entity
    mapped: Mapped
    spec: dict[str, Any]
    faults: list[Fault] = field(default_factory=list)

    def rows(self, place: int) -> TableRows:
        """Its rows."""
        return TableRows(place, self.spec, self.wanted.maker)


def table(wanted: RequestedTable, can: Capabilities, push_id: str, place: int) -> Planned:
    """One table, by itself; see `related` for keys from parents."""
    entity = wanted.entity or new_entity(wanted.target, wanted.maker, wanted.count, wanted.asked, can)
    asked = wanted.asked
    faults: list[Fault] = []
    if asked.mode not in can.modes:
        message = f"This kind of connection does not support the mode {asked.mode}."
        faults.append(Fault(f"{wanted.path}mode", "not_allowed", message, f"It has {', '.join(can.modes)}."))
    named, more = _named(asked.key_columns, entity, f"{wanted.path}key_columns")
    faults += more
    if not named and asked.mode != "insert":
        named = list(entity.keys)
    found = mapping.mapped(wanted.maker.fields, entity, replace(asked, key_columns=named))
    faults += found.faults
    nested = entity.kind in mapping.DOCUMENTS
    columns = [_column(cell, wanted.maker, faults, asked, nested) for cell in found.cells if cell.filled]
    spec: dict[str, Any] = {
        "name": wanted.name,
        "template_id": wanted.template_id,
        "version": wanted.version,
        "target": entity.name,
        "count": wanted.count,
        "offset": wanted.offset,
        "mode": asked.mode,
        "key_columns": [],
        "columns": columns,
        "capture": [],
        "from_parent": {},
        "later": [],
        "references": {},
        "unchecked": [],
        "numbered": {},
        "create": wanted.entity is None,
        "recipe": wanted.recipe,
    }
    if wanted.maker.spoils(one["field"] for one in columns if "field" in one):
        spec["bad"] = True
    if wanted.entity is None:
        spec["definition"] = [defined(column) for column in entity.fields]
        faults += long_names(entity, asked, can)
    if wanted.given is not None:
        spec["given"] = wanted.given
    planned = Planned(wanted, entity, found, spec, faults)
    if entity.kind == "collection" and "_id" not in found.columns() and asked.mode == "insert":
        # Rows of targets without transactions carry keys of ours, so that sending one twice does not double it.
        columns.insert(0, {"column": "_id", "object_id": f"{push_id}:{place}"})
        spec["key_columns"] = ["_id"]
    elif not faults:
        _key(planned, named, can)
        captured = bool(spec["capture"])  # rules of a table can prevent that it returns keys
        if (
            can.sql
            and asked.mode == "insert"
            and wanted.entity is not None
            and (captured or not spec["key_columns"])
        ):
            spec["undo_columns"] = _comparable(planned)
    return planned


def _column(
    cell: mapping.Cell, maker: RowGenerator, faults: list[Fault], asked: RequestedMapping, nested: bool
) -> dict[str, Any]:
    name = cell.column.name
    if cell.formula is not None:
        try:
            dtype = maker.formula(cell.formula, f"{asked.computed_path}.{name}").dtype
        except InvalidRows as error:
            faults += error.faults
            dtype = pa.null()
        made: dict[str, Any] = {"column": name, "formula": cell.formula}
    else:
        assert cell.field is not None
        dtype, made = maker.fields[cell.field].dtype, {"column": name, "field": cell.field}
    if nested and cell.field is not None and maker.fields[cell.field].mixed:
        made["mixed"] = True
    if nested and (pa.types.is_nested(dtype) or (cell.field is not None and maker.fields[cell.field].json)):
        made["nested"] = True
    elif cell.column.type == "array" and pa.types.is_list(dtype) and not pa.types.is_nested(dtype.value_type):
        made["list"] = True
    return made


def field_faults(maker: RowGenerator, asked: RequestedMapping) -> list[Fault]:
    """Return the errors of a mapping and its formulas that do not depend on the table: unknown fields, and formulas
    with syntax errors."""
    shown = [one.name for one in maker.fields.values() if not one.hidden]
    faults = [
        unknown_field(f"{asked.mapping_path}.{name}", name, shown)
        for name in asked.mapping
        if name not in maker.fields
    ]
    for name, formula in asked.computed.items():
        try:
            maker.formula(formula, f"{asked.computed_path}.{name}")
        except InvalidRows as error:
            faults += error.faults
    return faults


def writing_of_new(planned: Planned) -> WriteSpec:
    """Return the columns of a table that does not exist yet."""
    cells = planned.mapped.columns()
    names = [one["column"] for one in planned.spec["columns"]]
    columns = tuple(cells[name].column if name in cells else Column(name, "objectid", "") for name in names)
    return WriteSpec(planned.entity, columns, "insert", tuple(planned.spec["key_columns"]))


# --- Keys -------------------------------------------------------------------------------------------------------


def _named(wanted: Iterable[str], entity: Entity, path: str) -> tuple[list[str], list[Fault]]:
    found, faults = [], []
    known = {column.name.casefold(): column.name for column in entity.fields}
    for place, name in enumerate(wanted):
        real = entity.column(name)
        if real is not None or name.casefold() in known or entity.kind == "collection":
            found.append(real.name if real else known.get(name.casefold(), name))
        else:
            text = f'The table "{entity.name}" has no column "{name}".'
            faults.append(
                Fault(f"{path}[{place}]", "unknown_column", text, did_you_mean(name, known.values()))
            )
    return list(dict.fromkeys(found)), faults


def _key(planned: Planned, named: Sequence[str], can: Capabilities) -> None:
    """By which columns rows are found again: for upsert and update, for undo, for the ledger."""
    entity, spec, mode = planned.entity, planned.spec, planned.spec["mode"]
    filled, asked = planned.mapped.columns(), planned.wanted.asked
    path = f"{planned.wanted.path}key_columns"
    known = [entity.keys, *entity.uniques, *((c.name,) for c in entity.fields if c.unique)]
    if asked.key_columns:
        for place, name in enumerate(named):
            if name not in filled:
                text = f'No field goes into the key column "{name}".'
                planned.faults.append(Fault(f"{path}[{place}]", "missing_column", text, "Map a field to it."))
        identifies = any(one and set(one) == set(named) for one in known)
        if mode == "upsert" and can.sql and not identifies:
            text = f"The columns {', '.join(named)} are no key of the table: an upsert needs a unique constraint."
            planned.faults.append(Fault(path, "not_a_key", text, _keys_hint(entity)))
        spec["key_columns"] = list(named)
    elif mode == "insert" and entity.keys and can.capture and _made_there(entity, filled):
        spec["key_columns"] = list(entity.keys)
        spec["capture"] = [name for name in entity.keys if name not in filled]
    else:
        fit = next((list(names) for names in known if names and set(names) <= filled.keys()), [])
        spec["key_columns"] = fit
        if not fit and mode != "insert":
            text = f"No field goes into a key of the table, by which {mode} could find its rows."
            planned.faults.append(Fault(path, "missing_keys", text, _keys_hint(entity)))
    if mode == "update" and set(filled) <= set(spec["key_columns"]):
        text = "Only key columns are written: there is nothing to update."
        planned.faults.append(Fault(asked.mapping_path, "nothing_mapped", text, "Map more fields."))


_COMPARED: Final = frozenset({"integer", "decimal", "text", "boolean", "date", "uuid"})
"""Types whose values are equal to what was sent, in every database."""


def _comparable(planned: Planned) -> list[str]:
    """Return the columns by which rows of a table without a key are found again for undo, if the table was empty."""
    found = [
        cell.column
        for name, cell in planned.mapped.columns().items()
        if cell.filled and name not in planned.spec["from_parent"] and cell.column.type in _COMPARED
    ]
    never_null = [one.name for one in found if not one.nullable]
    return never_null or [one.name for one in found]


def _made_there(entity: Entity, filled: Mapping[str, Any]) -> bool:
    """Return whether the target generates the primary key columns that rows do not have."""
    lacking = [entity.column(name) for name in entity.keys if name not in filled]
    return bool(lacking) and all(
        one is not None and (one.generated == "identity" or one.default is not None) for one in lacking
    )


def _keys_hint(entity: Entity) -> str:
    known = [entity.keys, *entity.uniques, *((c.name,) for c in entity.fields if c.unique)]
    told = [" + ".join(one) for one in dict.fromkeys(known) if one]
    return f"Its keys: {'; '.join(told)}." if told else "It has no key; use insert."


# --- Keys from parents ------------------------------------------------------------------------------------------


def ordered(tables: list[Planned], edges: Sequence[Edge]) -> list[Edge]:
    """Sort tables for sending, parents first. A circular reference is broken at a nullable column. Returns the foreign
    keys that this order cannot satisfy."""
    by_id = {one.wanted.template_id: one for one in tables}

    def may_wait(edge: Edge) -> bool:
        child = by_id[edge.child_template_id]
        cell = _cell(child, edge)
        return cell is None or (cell.column.nullable and bool(child.spec["key_columns"]))

    found = relations.order([one for one in by_id if one is not None], edges, may_wait)
    tables.sort(key=lambda one: found.template_ids.index(one.wanted.template_id or ""))
    return list(found.broken)


def _cell(child: Planned, edge: Edge) -> mapping.Cell | None:
    """Return the mapping of a reference; None if it is skipped."""
    return next((one for one in child.mapped.cells if one.field == edge.child_field), None)


class ForeignKeyChecks(Protocol):
    """Queries to the target that are needed if foreign keys form a cycle whose columns are not nullable."""

    def may_suspend(self) -> bool:
        """Return whether rows may be written before the rows that they refer to."""

    def highest(self, entity: Entity, column: str) -> int:
        """Return the highest value of an integer column, 0 for an empty table."""


def related(
    tables: Sequence[Planned],
    edges: Sequence[Edge],
    broken: Sequence[Edge],
    can: Capabilities,
    checks: ForeignKeyChecks | None = None,
) -> None:
    """Feeds keys that the target makes to the children, and puts off what closes a ring. `tables` stand in the order
    of sending; `broken` are the edges that this order cannot keep. `checks` answers for rings that cannot be opened
    by null."""
    if checks is not None:
        for one in tables:
            _number_own_rows(one, checks)
    place = {one.wanted.template_id: at for at, one in enumerate(tables)}
    rings = {(edge.child_template_id, edge.child_field) for edge in broken if not edge.to_itself}
    # Circular references come first, because they may require that the push numbers a key that the target would
    # generate.
    for edge in sorted(edges, key=lambda one: (one.child_template_id, one.child_field) not in rings):
        if edge.child_template_id not in place or edge.parent_template_id not in place:
            continue
        child, parent = tables[place[edge.child_template_id]], tables[place[edge.parent_template_id]]
        cell = _cell(child, edge)
        if cell is None:
            continue
        ring = (edge.child_template_id, edge.child_field) in rings
        closed = (
            ring
            and not (cell.column.nullable and child.spec["key_columns"])
            and checks is not None
            and can.transactions
            and checks.may_suspend()
        )
        made = _key_made(child.entity, cell.column.name, parent, edge.parent_field)
        if made is not None and closed:
            assert checks is not None
            _number(parent, made, checks)
            made = None
        child.spec["references"][cell.column.name] = {
            "table": place[edge.parent_template_id], "field": edge.child_field, "parent_field": edge.parent_field,
        }  # fmt: skip
        if closed:
            child.spec["unchecked"].append(cell.column.name)
            continue
        if made is not None and can.capture and parent.spec["mode"] == "insert":
            if made not in parent.spec["capture"]:
                parent.spec["capture"].append(made)
            at = place[edge.parent_template_id]
            child.spec["from_parent"][cell.column.name] = {
                "table": at, "column": made, "field": edge.child_field,
            }  # fmt: skip
        if ring or (edge.to_itself and made is not None):
            _put_off(child, cell.column, can)


_LINKS: Final = ("columns", "capture", "from_parent", "later", "references", "unchecked", "numbered")


def links_of(one: Planned) -> dict[str, Any]:
    """Return what `related` changes of a table, for `restore_links`."""
    return {key: copy(one.spec[key]) for key in _LINKS}


def restore_links(one: Planned, links: Mapping[str, Any]) -> None:
    """Take back what `related` changed of a table. Faults stay."""
    one.spec.update(links)


def without_parents(
    tables: Sequence[Planned], edges: Sequence[Edge], names: Mapping[str, str], out: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the tables whose rows need a row of a table that is left out, with the reason by name.

    If the referring column is nullable, it is removed from the table's columns instead. `names` are the dataset's names
    of tables by template, `out` those that are left out already.
    """
    by_id = {one.wanted.template_id: one for one in tables}
    gone = {template_id: name for template_id, name in names.items() if name in out}
    found: dict[str, dict[str, Any]] = {}
    again = True
    while again:
        again = False
        for edge in edges:
            child = by_id.get(edge.child_template_id)
            if child is None or edge.to_itself or edge.parent_template_id not in gone:
                continue
            cell = _cell(child, edge)
            if cell is None or not any(one["column"] == cell.column.name for one in child.spec["columns"]):
                continue
            if cell.column.nullable and cell.column.name not in child.spec["key_columns"]:
                child.spec["columns"] = [
                    one for one in child.spec["columns"] if one["column"] != cell.column.name
                ]
                continue
            parent = gone[edge.parent_template_id]
            text = f'Its column "{cell.column.name}" needs a row of "{parent}", which is left out.'
            found[child.wanted.name] = {"code": "parent_skipped", "message": text, "hint": ""}
            gone[edge.child_template_id] = child.wanted.name
            del by_id[edge.child_template_id]
            again = True
    return found


def optional_columns(entity: Entity, table: TableRows) -> list[str]:
    """Return the columns of a table that may be left out of its rows: those that have a default or may be null, are no
    part of its key, and that no row of another table refers to."""
    read = {
        (parent["table"], column)
        for one in table.siblings
        for columns, key in ((one.from_parent, "column"), (one.references, "parent_field"))
        for parent in columns.values()
        for column in (parent[key], one.siblings[parent["table"]].column_of(parent[key]))
    }
    found = []
    for name in table.columns:
        column = entity.column(name)
        if column is None or column.required or name in entity.keys or (table.place, name) in read:
            continue
        if name not in (*table.key_columns, *table.capture, *table.kept, *table.later, *table.numbered):
            found.append(name)
    return found if len(found) < len(table.columns) else found[1:]


def without_columns(spec: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return an object of `Push.tables` without some columns."""

    def kept(of: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in of.items() if name not in names}

    return {
        **spec,
        "columns": [one for one in spec["columns"] if one["column"] not in names],
        "from_parent": kept(spec["from_parent"]),
        "references": kept(spec.get("references") or {}),
        "undo_columns": [one for one in spec.get("undo_columns") or () if one not in names],
    }


def _number(parent: Planned, key: str, checks: ForeignKeyChecks) -> None:
    """Send the key that the target would generate: numbers after its highest existing one."""
    if key in parent.spec["numbered"]:
        return
    column = parent.entity.column(key)
    field = next((one.field for one in parent.mapped.cells if one.column.name == key and one.field), None)
    made = parent.wanted.maker.fields.get(field or key)
    if column is None or column.type != "integer" or made is None:
        return
    parent.spec["columns"].insert(0, {"column": key, "field": made.name})
    parent.spec["numbered"][key] = checks.highest(parent.entity, key)
    parent.spec["capture"] = [name for name in parent.spec["capture"] if name != key]


def _number_own_rows(table: Planned, checks: ForeignKeyChecks) -> None:
    """Send the key of a table whose rows refer to themselves, because it must be known before a row is inserted, and of
    a table that has no other column."""
    only = [table.entity.column(one["column"]) for one in table.spec["columns"]]
    if len(only) == 1 and only[0] is not None and only[0].generated == "identity":
        table.spec["numbered"][only[0].name] = checks.highest(table.entity, only[0].name)
    for relation in table.entity.relations:
        if relation.entity != table.entity.name or len(relation.columns) != 1:
            continue
        (column,), (key,) = relation.columns, relation.entity_columns
        cell = next((one for one in table.mapped.cells if one.column.name == column and one.field), None)
        made = table.wanted.maker.fields.get((cell and cell.field) or "")
        there = table.entity.column(key)
        kind = made.column.type if made is not None and made.column is not None else None
        copied = isinstance(kind, Formula) and kind.options.expression == key
        if cell is None or not copied or there is None or there.generated != "identity":
            continue
        _number(table, key, checks)
        if key in table.spec["numbered"]:
            table.spec["numbered"][column] = table.spec["numbered"][key]


def _key_made(child: Entity, column: str, parent: Planned, parent_field: str) -> str | None:
    """Return the column of the parent's table whose value the target generates and a child's column uses; None if the
    rows contain it."""
    relation = relation_of(child, column)
    filled = parent.mapped.columns()
    if relation is not None and relation.entity == parent.entity.name:
        name = relation.entity_columns[relation.columns.index(column)]
    elif any(cell.field == parent_field for cell in filled.values()):
        return None
    elif parent.entity.kind == "endpoint":
        brought = [one.name for one in parent.entity.fields if not one.name.startswith("@")]
        name = parent_field if parent_field in brought else brought[0] if len(brought) == 1 else ""
    elif len(parent.entity.keys) != 1:
        return None
    else:
        name = parent.entity.keys[0]
    there = parent.entity.column(name)
    if name in filled or there is None or name in parent.spec["numbered"]:
        return None
    return name if there.generated == "identity" or there.default is not None else None


def relation_of(entity: Entity, column: str) -> Relation | None:
    """The foreign key that a column is part of."""
    return next((one for one in entity.relations if column in one.columns), None)


def _put_off(child: Planned, column: Column, can: Capabilities) -> None:
    path = child.wanted.asked.mapping_path
    if can.by_row:
        text = (
            f'"{column.name}" refers to rows that are not there yet, and cannot be set afterwards over HTTP.'
        )
        hint = "Leave it out by mapping it to null, or take one of the references of the ring away."
        child.faults.append(Fault(path, "cycle", text, hint))
    elif not column.nullable:
        text = f'The column "{column.name}" may not be null, and the rows it refers to are not there yet.'
        hint = "Let it be null, or take one of the references of the ring away."
        child.faults.append(Fault(path, "cycle", text, hint))
    elif not child.spec["key_columns"]:
        text = f'Without a key the column "{column.name}" cannot be written afterwards.'
        child.faults.append(Fault(path, "missing_keys", text, "Give the table a key."))
    elif column.name not in child.spec["later"]:
        child.spec["later"].append(column.name)


# What a worker needs to run a push: its rows, its target, and where captured keys are stored.


@dataclass(frozen=True, slots=True)
class Order:
    """A push that a worker runs. `open` connects to its target and raises `ConnectorError`."""

    push: Push
    tables: list[TableRows]
    open: Callable[[], Link]
    can: Capabilities
    spool: KeySpool

    @property
    def transactions(self) -> bool:
        """A chunk of this target is all or nothing."""
        return self.can.transactions

    @property
    def ask(self) -> dict[str, Any]:
        """The body as accepted."""
        ask: dict[str, Any] = self.push.request["ask"]
        return ask

    @property
    def canary(self) -> int:
        """Number of canary rows; 0 without a canary."""
        asked = self.ask.get("canary") if self.push.kind == "push" else None
        return limits.PUSH_CANARY_ROWS if asked is True else int(asked or 0)

    def idempotency_keys(self, place: int, numbers: Sequence[int]) -> list[str]:
        """The columns that identify a row at the target: see `ledger_rows.sent_as`."""
        with reading() as session:
            keys = read.sent_as(session, self.push, place, numbers)
        return [keys[number] for number in numbers]

    @property
    def wait_seconds(self) -> int:
        """How long the push waits for an unavailable target, in seconds."""
        asked = self.ask.get("target_wait_seconds")
        return int(current_app.config["SETTINGS"].target_wait_seconds if asked is None else asked)

    @property
    def stops(self) -> bool:
        """Whether the first rejected row stops the push."""
        return self.ask.get("on_error") == "stop"

    @property
    def stops_when_all_fail(self) -> bool:
        """Whether a table whose first rows all fail for one reason stops the push."""
        return self.ask.get("on_error") == "stop_when_all_fail"


def order(push_id: str) -> Order:
    """Load everything needed to run a push. Does not need a request.

    Errors: not_found (its connection or template was deleted), those of `push_rows.tables`.
    """
    with reading() as session:
        push = session.get_one(Push, push_id)
        first = read.first_of(session, push)
        connection = session.get(Connection, push.connection_id) if push.connection_id else None
        endpoint = session.get(Endpoint, push.endpoint_id) if push.endpoint_id else None
    if connection is None or connection.deleted_at is not None:
        raise ApiError("not_found", "The connection of this push is gone.")
    app = application()
    spool = KeySpool(storage.of(app), folder_of(first.workspace_id, first.id))
    changed = targets.changed_settings(endpoint, push.request["ask"])
    return Order(
        push, rows.tables(push), lambda: _opened(connection, changed), KINDS[connection.type].can, spool
    )


def _opened(connection: Connection, changed: Mapping[str, Any]) -> Link:
    """Connect to the target, and close our own database session, because a push can take long."""
    try:
        return access.open_link(connection, changed=changed)
    finally:
        db.session.remove()
