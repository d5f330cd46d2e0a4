"""Tables that a push makes where they are missing: their columns and keys, from what the rows hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from webapp.connectors.base import Capabilities
from webapp.connectors.shape import Column, Entity
from webapp.engine.expressions import types
from webapp.errors import Fault
from webapp.services import mapping
from webapp.services.mapping import Asked
from webapp.services.row_makers import Faulty, Field, Maker

_NUMBERED: Final = frozenset({"row_number", "sequence", "uuid", "ulid", "mongodb_objectid"})


def new_entity(target: str, maker: Maker, count: int, asked: Asked, can: Capabilities) -> Entity:
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
        except Faulty:  # told where the mapping is made
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


def long_names(entity: Entity, asked: Asked, can: Capabilities) -> list[Fault]:
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
        digits = max(len(str(abs(end))) for end in bounds or (types.MOST,))
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


def _new_key(fields: Mapping[str, Field], columns: Sequence[Column], asked: Asked) -> tuple[str, ...]:
    """The column by which rows are known: one whose values are made never to repeat."""
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
    """A column as JSON, what is not said left out."""
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
