"""Find values that do not fit their columns before anything is sent, from the definitions of fields and columns and
from generated values.

The values are those of the first rows, one block at most. Problems that only the whole push can show (such as a value
that repeats in row 90,000) are reported if the definitions of the fields allow them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.connectors.base import Session
from webapp.connectors.schema import Column, Entity
from webapp.engine import processor_time
from webapp.engine.budget import MemoryBudgetError
from webapp.engine.text import decode_dictionary
from webapp.generation.services.row_makers import Field
from webapp.pushes.services.mapping import suitable_column_types
from webapp.pushes.services.planning import TablePlan
from webapp.pushes.services.rows import HIDDEN, TableRows

ColumnMismatch = tuple[str, pa.Array, str, str]
"""Reason, where, message, hint."""


# MySQL 8.0 Reference Manual, 11.2.4 The YEAR Type; 0000 aside.
_YEAR: Final = (Decimal(1901), Decimal(2155))


def number_range(column: Column) -> tuple[Decimal, Decimal] | None:
    """Return the smallest and the largest number that a column accepts, or None without a limit."""
    if column.type == "integer" and column.declared.casefold().startswith("year"):
        return _YEAR
    if column.type == "integer" and column.bits:
        if column.unsigned:
            return Decimal(0), Decimal(2**column.bits - 1)
        half = 2 ** (column.bits - 1)
        return Decimal(-half), Decimal(half - 1)
    if column.type == "decimal" and column.precision is not None:
        maximum = Decimal(10) ** (column.precision - (column.scale or 0)) - Decimal(10) ** -(
            column.scale or 0
        )
        return -maximum, maximum
    return None


def column_mismatches(column: Column, values: pa.Array, kind: str) -> Iterator[ColumnMismatch]:
    """Yield the reasons why values do not fit a column: reason, mask, message, hint. `kind` is the connection's."""
    dtype = values.type
    if pa.types.is_string(dtype):
        yield from _text_mismatches(column, values)
    elif pa.types.is_integer(dtype) or pa.types.is_decimal(dtype) or pa.types.is_floating(dtype):
        yield from _number_mismatches(column, values)
    elif pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
        yield from _date_mismatches(column, values, kind)
    if column.type in _STRICT_TYPES and not pa.types.is_string(dtype) and not pa.types.is_null(dtype):
        from_boolean = pa.types.is_boolean(dtype) and column.type == "integer"
        if column.type not in suitable_column_types(Field("", dtype)) and not from_boolean:
            text = f"The column has the type {column.declared or column.type}."
            yield "wrong_type", values.is_valid(), text, "Map another field, or use a formula in computed."


_STRICT_TYPES: Final = frozenset({"integer", "decimal", "float", "date", "timestamp", "timestamptz", "uuid"})


def _text_mismatches(column: Column, values: pa.Array) -> Iterator[ColumnMismatch]:
    length = column.max_length
    if length is not None and column.type in ("text", "other"):
        text = f"The column accepts at most {length:,} characters."
        yield "too_long", pc.greater(pc.utf8_length(values), length), text, "Shorten the texts of the field."
    if length is not None and column.type == "binary":
        long = pc.greater(pc.binary_length(values), length)
        yield (
            "too_long",
            long,
            f"The column accepts at most {length:,} bytes.",
            "Shorten the texts of the field.",
        )
    if column.choices:
        unknown = pc.invert(pc.is_in(values, value_set=pa.array(column.choices)))
        hint = f"Allowed values: {', '.join(column.choices[:20])}."
        yield (
            "enum",
            pc.and_(values.is_valid(), unknown),
            "The value is not one of the column's allowed values.",
            hint,
        )
    pattern = _TEXT_PATTERNS.get(column.type)
    if pattern is not None:
        invalid = pc.invert(pc.match_substring_regex(values, pattern))
        text = f"The value cannot be converted to {column.declared or column.type}."
        yield "wrong_type", invalid, text, "Map another field, or use a formula in computed."
    if column.type == "json":
        invalid = pa.array([value is not None and not _is_json(value) for value in values.to_pylist()])
        yield (
            "wrong_type",
            invalid,
            "The value is not valid JSON.",
            "Map an object or an array, or quote the text.",
        )


# How texts must be written for a column; RE2.
_TEXT_PATTERNS: Final[Mapping[str, str]] = {
    "integer": r"^\s*[-+]?\d+\s*$",
    "decimal": r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$",
    "float": r"(?i)^\s*[-+]?(\d+\.?\d*|\.\d+|inf(inity)?|nan)(e[-+]?\d+)?\s*$",
    "uuid": r"(?i)^\{?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\}?$",
    "date": r"^\s*\d{4}-\d\d?-\d\d?",
    "timestamp": r"^\s*\d{4}-\d\d?-\d\d?",
    "timestamptz": r"^\s*\d{4}-\d\d?-\d\d?",
    "boolean": r"(?i)^\s*(t|true|y|yes|on|1|f|false|n|no|off|0)\s*$",
}


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _number_mismatches(column: Column, values: pa.Array) -> Iterator[ColumnMismatch]:
    limit, decimal = number_range(column), pa.types.is_decimal(values.type)
    if limit is not None:
        low, high = limit
        # Comparing doubles is exact enough: the target reports values at the very limit of 38 digits.
        numbers = values.cast(pa.float64()) if not pa.types.is_integer(values.type) else values
        ends: tuple[float, float]
        if pa.types.is_integer(values.type):
            ends = (max(int(low), -(2**63)), min(int(high), 2**63 - 1))
        else:
            ends = (float(low), float(high))
        bad = pc.or_(pc.less(numbers, ends[0]), pc.greater(numbers, ends[1]))
        text = f"The column accepts values from {low:f} to {high:f}."
        yield "out_of_range", bad, text, "Narrow the field's min and max."
    is_integer = column.type == "integer"
    scale = 0 if is_integer else column.scale
    if scale is not None and decimal and column.type in ("integer", "decimal") and values.type.scale > scale:
        lost = pc.not_equal(pc.round(values, scale), values)
        text = (
            "The column accepts only whole numbers."
            if is_integer
            else f"The column stores only {scale} digits after the decimal point."
        )
        yield ("wrong_type" if is_integer else "precision"), lost, text, "Set the field's decimals."
    if is_integer and pa.types.is_floating(values.type):
        lost = pc.not_equal(pc.floor(values), values)
        yield (
            "wrong_type",
            lost,
            "The column accepts only whole numbers.",
            "Round the field, for example with the formula round(this).",
        )


# The years of types that do not support all years of four digits: MySQL 8.0 Reference Manual, 11.2.2; SQL
# Server, "datetime" and "smalldatetime".
_YEARS: Final[Mapping[tuple[str, str], tuple[int, int]]] = {
    ("mysql", "datetime"): (1000, 9999),
    ("mysql", "timestamp"): (1970, 2037),
    ("mssql", "datetime"): (1753, 9999),
    ("mssql", "smalldatetime"): (1900, 2078),
}


def _date_mismatches(column: Column, values: pa.Array, kind: str) -> Iterator[ColumnMismatch]:
    years = _YEARS.get((kind, column.declared.partition("(")[0].casefold()))
    if years is not None:
        found = pc.year(values)
        bad = pc.or_(pc.less(found, years[0]), pc.greater(found, years[1]))
        text = f"The column accepts only the years {years[0]} to {years[1]}."
        yield "out_of_range", bad, text, "Narrow the field's dates."


@dataclass(frozen=True, slots=True)
class ValueMismatch:
    """A value that does not fit, or (`row` None) a definition that allows one. `row` is counted from 1. `reason` is one
    of `connectors.REASONS`, or `precision` (digits are rounded away), or `enum`."""

    table: str
    column: str
    field: str | None
    reason: str
    message: str
    hint: str
    row: int | None = None
    value: Any = None

    def as_json(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "table": self.table,
            "column": self.column,
            "field": self.field,
            "row": self.row,
            "value": self.value,
            "reason": self.reason,
            "message": self.message,
            "hint": self.hint,
        }


def check(
    planned: TablePlan, rows: TableRows, session: Session | None, sent_tables: Sequence[str], kind: str
) -> tuple[list[ValueMismatch], int]:
    """Return the misfits of one table, and how many rows were checked. `sent_tables` are the targets of the same push,
    whose rows do not exist yet; `kind` is the kind of connection. Without a session, the target is not queried. Raises
    `ConnectorError`."""
    count = min(rows.count, limits.BLOCK_ROWS)
    while True:
        try:
            with processor_time.table_budget():
                row_indexes = np.arange(rows.offset, rows.offset + count, dtype=np.uint64)
                batch = rows.batch(row_indexes, PlaceholderKeys())
            break
        except MemoryBudgetError:  # as many rows as fit the budget of a block
            if count < 2:
                raise
        count = max(1, count // limits.BLOCK_STEP)
    table_check = _TableCheck(planned, rows, batch, kind)
    found = list(table_check.find_invalid_values())
    found += table_check.find_duplicates()
    if session is not None:
        found += table_check.find_missing_references(session, sent_tables)
    if session is not None and planned.spec["mode"] == "insert" and not planned.spec["create"]:
        found += table_check.existing_unique_values(session)
    reported = {(mismatch.column, mismatch.reason) for mismatch in found}
    return [
        mismatch
        for mismatch in schema_mismatches(planned)
        if (mismatch.column, mismatch.reason) not in reported
    ] + found, count


class PlaceholderKeys:
    """Placeholder for keys that the target has not generated yet."""

    def take(self, table: int, column: str, rows: np.ndarray) -> pa.Array:
        """Nulls."""
        return pa.nulls(rows.size)


# --- From the definitions of fields and columns ---------------------------------------------------------------


def schema_mismatches(planned: TablePlan) -> Iterator[ValueMismatch]:
    """Yield what may not fit according to the definitions, independent of values. A column of a composite key may
    repeat."""
    for cell in planned.mapped.column_mappings:
        if cell.field is None:
            continue
        field, column = planned.request.maker.fields[cell.field], cell.column
        is_unique = column.unique or planned.entity.keys == (column.name,)
        is_unique = is_unique and not _has_unique_partner(field, planned.request.maker.fields.values())
        for reason, message, hint in _possible_mismatches(
            field, column, planned.request.count, planned.spec["mode"], is_unique
        ):
            yield ValueMismatch(planned.request.name, column.name, cell.field, reason, message, hint)


def _possible_mismatches(
    field: Field, column: Column, rows: int, mode: str, is_unique: bool
) -> Iterator[tuple[str, str, str]]:
    length, generator = column.max_length, field.column
    if (
        length is not None
        and field.max_length is not None
        and field.max_length > length
        and column.type == "text"
    ):
        text = f"Texts can have up to {field.max_length:,} characters; the column accepts at most {length:,}."
        yield (
            "too_long",
            text,
            "Shorten the texts of the field, for example with the formula left(this, n).",
        )
    if not column.nullable and generator is not None and generator.blank_share is not None:
        share = generator.blank_share[0] / generator.blank_share[1]
        yield (
            "not_null",
            f"{share:g} % of the values are blank, but the column does not accept null.",
            "Set percent_blank to 0.",
        )
    kinds = suitable_column_types(field)
    is_compatible = column.type in ("other", "text", "enum", *kinds) or pa.types.is_string(field.dtype)
    if not is_compatible and kinds != ["other"]:
        text = (
            f"The field has {kinds[0]} values, but the column has the type {column.declared or column.type}."
        )
        yield "wrong_type", text, "Map another field, or use a formula in computed."
    bounds = generator.bounds(rows) if generator is not None else None
    limit = number_range(column)
    if bounds is not None and limit is not None:
        scale = field.dtype.scale if pa.types.is_decimal(field.dtype) else 0
        low, high = (Decimal(end).scaleb(-scale) for end in bounds)
        if low < limit[0] or high > limit[1]:
            text = (
                f"The field's values range from {low:f} to {high:f}; the column accepts {limit[0]:f} to "
                f"{limit[1]:f}."
            )
            yield "out_of_range", text, "Narrow the field's min and max."
    if (
        is_unique
        and generator is not None
        and not _has_unique_values(field)
        and rows > 1
        and mode == "insert"
    ):
        yield (
            "unique",
            "The column must be unique, but the field's values can repeat.",
            "Set unique on the field.",
        )


def _has_unique_values(field: Field) -> bool:
    generator = field.column
    assert generator is not None
    if generator.spec.common.unique or generator.spec.common.unique_together:
        return True
    return generator.formula is None and (
        generator.type.is_primary_key
        or generator.type.name in ("row_number", "sequence", "uuid", "ulid", "mongodb_objectid", "reference")
    )


_COUNTRY_TYPES: Final = frozenset({"country", "country_code"})


def _has_unique_partner(field: Field, fields: Iterable[Field]) -> bool:
    """Return whether a country field belongs to a group whose other country field never repeats, or vice versa."""
    if field.column is None or field.column.type.name not in _COUNTRY_TYPES:
        return False
    others = [other for other in fields if other is not field and other.column is not None]
    return any(
        other.column.type.name in _COUNTRY_TYPES
        and other.column.spec.common.group == field.column.spec.common.group
        and _has_unique_values(other)
        for other in others
        if other.column is not None
    )


# --- From generated values ------------------------------------------------------------------------------------


class _TableCheck:
    """One check of the first rows of a table."""

    def __init__(self, planned: TablePlan, rows: TableRows, batch: pa.RecordBatch, kind: str) -> None:
        self.planned, self.sensitive_columns, self.kind = planned, rows.sensitive, kind
        self.entity: Entity = planned.entity
        self.pending_columns = {*rows.from_parent, *rows.deferred_columns}
        self.columns: dict[str, pa.Array] = {
            name: decode_dictionary(values)
            for name, values in zip(batch.schema.names, batch.columns, strict=True)
        }
        self.fields = {column["column"]: column.get("field") for column in planned.spec["columns"]}

    def find_invalid_values(self) -> Iterator[ValueMismatch]:
        """Yield values that do not fit their column."""
        for name, values in self.columns.items():
            column = self.entity.column(name)
            if column is None or name in self.pending_columns:
                continue
            if not column.nullable and not column.generated and values.null_count:
                yield from self._mismatches(
                    name, values.is_null(), "not_null", "The column does not accept null.", _BLANK_HINT
                )
            for reason, bad, text, hint in column_mismatches(column, values, self.kind):
                yield from self._mismatches(name, bad, reason, text, hint)

    def find_duplicates(self) -> Iterator[ValueMismatch]:
        """Yield values of unique columns that occur twice in the rows."""
        for names in self._unique_keys():
            encoded = _encode_keys([self.columns[name] for name in names])
            if encoded is None:
                continue
            codes, valid = encoded
            _, firsts, back = np.unique(codes, return_index=True, return_inverse=True)
            first = firsts[back]
            bad = valid & (first != np.arange(codes.size))
            for row in np.flatnonzero(bad)[: limits.LISTED_MISFITS].tolist():
                text = f"The value is the same as in row {first[row] + 1:,}, but {' + '.join(names)} must be unique."
                yield self._mismatch(names[0], row, "unique", text, "Set unique on the field.")

    def find_missing_references(
        self, session: Session, sent_tables: Sequence[str]
    ) -> Iterator[ValueMismatch]:
        """Yield foreign keys of rows that are not in the target."""
        for relation in self.entity.relations:
            names = relation.columns
            if relation.entity in (*sent_tables, self.entity.name) or not set(names) <= self.columns.keys():
                continue
            parent = None if self.pending_columns & set(names) else session.entity(relation.entity)
            if parent is None:
                continue
            exists, valid = self._find_existing(session, parent, relation.entity_columns, names)
            text = f"The referenced row does not exist in {relation.entity}."
            hint = f"Use a field of type foreign_key, or send rows of {relation.entity} first."
            yield from self._mismatches(names[0], pa.array(valid & ~exists), "foreign_key", text, hint)

    def existing_unique_values(self, session: Session) -> Iterator[ValueMismatch]:
        """Yield values of unique columns that already exist in the target."""
        for names in self._unique_keys():
            exists, valid = self._find_existing(session, self.entity, names, names)
            text = f"A row with this {' + '.join(names)} already exists."
            hint = "Use another seed or offset, or mode upsert."
            yield from self._mismatches(names[0], pa.array(valid & exists), "unique", text, hint)

    def _unique_keys(self) -> list[tuple[str, ...]]:
        known = [self.entity.keys, *self.entity.uniques, *((c.name,) for c in self.entity.fields if c.unique)]
        fit = [item for item in known if item and set(item) <= self.columns.keys() - self.pending_columns]
        return list({frozenset(item): item for item in fit}.values())

    def _find_existing(
        self, session: Session, entity: Entity, columns: Sequence[str], names: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ``bool[n]`` twice: whether a row's values exist in a table, and whether it has values. Each
        combination is queried once."""
        arrays = [self.columns[name] for name in names]
        valid = np.ones(len(arrays[0]), np.bool_)
        for values in arrays:
            valid &= values.is_valid().to_numpy(zero_copy_only=False)
        encoded = _encode_keys(arrays)
        if encoded is None or not valid.any():
            return np.zeros(valid.size, np.bool_), np.zeros(valid.size, np.bool_)
        positions = np.flatnonzero(valid)
        _, firsts, back = np.unique(encoded[0][positions], return_index=True, return_inverse=True)
        take = pa.array(positions[firsts])
        queried = pa.RecordBatch.from_arrays([values.take(take) for values in arrays], names=list(columns))
        answer = session.contains(entity, list(columns), queried)
        exists = np.zeros(valid.size, np.bool_)
        exists[positions] = answer.fill_null(False).to_numpy(zero_copy_only=False)[back]
        return exists, valid

    def _mismatches(
        self, name: str, bad: pa.Array, reason: str, text: str, hint: str
    ) -> Iterator[ValueMismatch]:
        positions = np.flatnonzero(pc.fill_null(bad, False).to_numpy(zero_copy_only=False))
        for row in positions[: limits.LISTED_MISFITS].tolist():
            yield self._mismatch(name, row, reason, text, hint)

    def _mismatch(self, name: str, row: int, reason: str, text: str, hint: str) -> ValueMismatch:
        value = HIDDEN if name in self.sensitive_columns else _short_value(self.columns[name][row].as_py())
        return ValueMismatch(
            self.planned.request.name, name, self.fields.get(name), reason, text, hint, row + 1, value
        )


_BLANK_HINT: Final = "Set percent_blank to 0, or leave the column out."


def _encode_keys(arrays: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return ``int64[n]``: a number for each combination of values, equal for equal combinations; and ``bool[n]``:
    which rows have all values. None for values that cannot be compared."""
    if not len(arrays[0]):
        return None
    codes = np.zeros(len(arrays[0]), np.int64)
    valid = np.ones(codes.size, np.bool_)
    for values in arrays:
        if pa.types.is_nested(values.type) or pa.types.is_null(values.type):
            return None
        encoded = values.dictionary_encode()
        valid &= values.is_valid().to_numpy(zero_copy_only=False)
        codes = codes * (len(encoded.dictionary) + 1) + encoded.indices.fill_null(0).to_numpy(
            zero_copy_only=False
        )
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return np.where(valid, codes, np.arange(codes.size) + codes.size + 1), valid


def _short_value(value: Any) -> Any:
    """Return a value as JSON, shortened if it is long."""
    if isinstance(value, str) and len(value) > limits.PUSH_KEY_CHARS:
        return value[: limits.PUSH_KEY_CHARS] + "…"
    if isinstance(value, dict | list):
        return _short_value(orjson.dumps(value, default=str).decode())
    if isinstance(value, date | datetime):
        return value.isoformat()
    return value if isinstance(value, bool | int | float | str | type(None)) else str(value)
