"""Functions that all SQL kinds share: error reasons, names, readable statements, CREATE TABLE, and
parameters.

Dialects (quoting, literals, types) are those of SQL files (`engine.formats.sql_dialects`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeVar

import pyarrow as pa

from webapp import limits
from webapp.connectors.base import ConnectorError, WriteSpec
from webapp.connectors.column_values import convert_to_column
from webapp.connectors.schema import Column, Entity
from webapp.engine import placeholders
from webapp.engine.formats import codecs
from webapp.engine.formats.base import Column as FormattedColumn
from webapp.engine.formats.base import RowLiterals, ValueLiterals
from webapp.engine.formats.layout import Layout
from webapp.engine.formats.nested import scalar_codec
from webapp.engine.formats.sql_dialects import Dialect, SqlEscape

Row = TypeVar("Row")

# --- Why rows are rejected
# -------------------------------------------------------------------------------------

# SQLSTATE (ISO/IEC 9075-2, 24.1, and PostgreSQL, "Error Codes"). The longest matching prefix counts.
_REASONS: Final[Mapping[str, str]] = {
    "23505": "unique",
    "23P01": "unique",  # exclusion constraints
    "23503": "foreign_key",
    "23001": "foreign_key",
    "23502": "not_null",
    "23514": "check",
    "23513": "check",
    "44000": "check",  # WITH CHECK OPTION
    "22001": "too_long",
    "22026": "too_long",
    "54000": "too_long",  # a key too long for its index
    "22003": "out_of_range",
    "22008": "out_of_range",
    "22015": "out_of_range",
    "22004": "not_null",
    "22": "wrong_type",
}
# Classes that concern the statement, the session or the server, not a row.
_NON_ROW_CLASSES: Final = (
    "08",
    "0A",
    "25",
    "26",
    "28",
    "2D",
    "3D",
    "3F",
    "40",
    "42",
    "53",
    "55",
    "57",
    "58",
    "F0",
    "XX",
)


def is_row_error(state: str) -> bool:
    """Return whether a SQLSTATE concerns a row's values. States that triggers define do."""
    return bool(state) and not state.startswith(_NON_ROW_CLASSES)


def reason_of(state: str) -> str:
    """Return the `base.REASONS` entry for the SQLSTATE of a rejected row."""
    return _REASONS.get(state) or _REASONS.get(state[:2], "refused")


def shorten_message(message: str) -> str:
    """Return a target's message, shortened to the length that is stored."""
    text = " ".join(message.split())
    return text if len(text) <= limits.PUSH_MESSAGE_CHARS else text[: limits.PUSH_MESSAGE_CHARS - 1] + "…"


# --- Names -----------------------------------------------------------------------------------------------------


def qualified_name(dialect: Dialect, parts: Iterable[str]) -> str:
    """Return a table's qualified name with every part quoted."""
    return ".".join(map(dialect.quote_name, parts))


def column_list(dialect: Dialect, names: Iterable[str], prefix: str = "") -> str:
    """Return quoted column names, separated by commas, each with the prefix `prefix` (such as `s.`)."""
    return ", ".join(prefix + dialect.quote_name(name) for name in names)


def order_by_clause(dialect: Dialect, columns: Sequence[str], order: Sequence[str] | None) -> str:
    """Return an ORDER BY clause for `order`, or else for `columns`; "" without columns."""
    names = column_list(dialect, columns if order is None else order)
    return f" ORDER BY {names}" if names else ""


def find_entity(entities: Iterable[Entity], name: str) -> Entity | None:
    """Return the entity with this name, or else the only one whose name differs only in case."""
    candidates = list(entities)
    exact = next((candidate for candidate in candidates if candidate.name == name), None)
    matches = [candidate for candidate in candidates if candidate.name.casefold() == name.casefold()]
    return exact or (matches[0] if len(matches) == 1 else None)


_NUMBER: Final = re.compile(r"'-?\d+(\.\d+)?'")

# --- Readable statements
# ---------------------------------------------------------------------------------------


def literals(dialect: Dialect, array: pa.Array, column: Column) -> list[str]:
    """Return `array` as literals for `column`. Raises `FormatError` for a text that the dialect cannot
    express."""
    values = convert_to_column(array, column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_string(kind) and column.type in ("integer", "decimal", "float"):
        words = literals(dialect, values, replace(column, type="text"))
        return [word[1:-1] if _NUMBER.fullmatch(word) else word for word in words]
    if pa.types.is_binary(kind):
        prefix, suffix = {
            "postgresql": ("'\\x", "'"),
            "mssql": ("0x", ""),
            "oracle": ("HEXTORAW('", "')"),
            "db2": ("BX'", "'"),
        }.get(dialect.name, ("X'", "'"))
        return ["NULL" if value is None else f"{prefix}{value.hex()}{suffix}" for value in values.to_pylist()]
    escape = SqlEscape(dialect)
    start = suffix = ""
    codec = scalar_codec(kind, escape)
    if pa.types.is_string(kind):
        start, suffix = dialect.text_lead, "'"
    elif pa.types.is_date(kind):
        start, suffix = dialect.date_lead, "'"
    elif pa.types.is_time(kind):
        start, suffix = "'", "'"
    elif pa.types.is_timestamp(kind):
        start, suffix = dialect.timestamp_lead, (dialect.utc_suffix if kind.tz else "") + "'"
        codec = codecs.TimestampCodec(dialect.date_time_separator.encode())
    elif pa.types.is_boolean(kind):
        false, true = dialect.booleans
        codec = codecs.BoolCodec(false.encode(), true.encode())
    wrapping = ValueLiterals((start, "NULL", ""), (suffix, "", ""))
    if not len(values):
        return []
    texts = Layout([FormattedColumn(column.name, codec, wrapping)], RowLiterals(), joint=False).texts_of(
        [values]
    )
    literal: list[str] = texts.to_pylist()
    return literal


def statements(dialect: Dialect, spec: WriteSpec, batch: pa.RecordBatch) -> list[str]:
    """Return one statement for each row, for users to read."""
    names = [column.name for column in spec.columns]
    cells = [
        literals(dialect, array, column) for array, column in zip(batch.columns, spec.columns, strict=True)
    ]
    table = qualified_name(dialect, spec.entity.parts)
    make: Callable[[Dialect, str, WriteSpec, dict[str, str]], str] = {
        "insert": _insert,
        "upsert": _upsert,
        "update": _update,
    }[spec.mode]
    return [
        make(dialect, table, spec, dict(zip(names, row, strict=True))) for row in zip(*cells, strict=True)
    ]


def _insert(dialect: Dialect, table: str, spec: WriteSpec, row: dict[str, str]) -> str:
    override = ""
    if dialect.name == "postgresql" and any(column.generated == "identity" for column in spec.columns):
        override = " OVERRIDING SYSTEM VALUE"
    return f"INSERT INTO {table} ({column_list(dialect, row)}){override} VALUES ({', '.join(row.values())});"


def _update(dialect: Dialect, table: str, spec: WriteSpec, row: dict[str, str]) -> str:
    keys = spec.key_columns
    pairs = {name: f"{dialect.quote_name(name)} = {value}" for name, value in row.items()}
    setting = ", ".join(pair for name, pair in pairs.items() if name not in keys)
    condition = " AND ".join(pairs[name] for name in keys)
    return f"UPDATE {table} SET {setting} WHERE {condition};"


def _upsert(dialect: Dialect, table: str, spec: WriteSpec, row: dict[str, str]) -> str:
    keys = spec.key_columns
    others = [name for name in row if name not in keys] or list(keys[:1])
    quoted = dialect.quote_name
    if dialect.name in ("postgresql", "ansi"):
        setting = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
        insert = _insert(dialect, table, spec, row).removesuffix(";")
        return f"{insert} ON CONFLICT ({column_list(dialect, keys)}) DO UPDATE SET {setting};"
    if dialect.name == "mysql":
        setting = ", ".join(f"{quoted(name)} = VALUES({quoted(name)})" for name in others)
        return f"{_insert(dialect, table, spec, row).removesuffix(';')} ON DUPLICATE KEY UPDATE {setting};"
    source = ", ".join(f"{value} AS {quoted(name)}" for name, value in row.items())
    origin = {"oracle": " FROM DUAL", "db2": " FROM SYSIBM.SYSDUMMY1"}.get(dialect.name, "")
    condition = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in keys)
    parts = [f"MERGE INTO {table} t USING (SELECT {source}{origin}) s ON ({condition})"]
    if any(name not in keys for name in row):
        setting = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in others)
        parts.append(f"WHEN MATCHED THEN UPDATE SET {setting}")
    parts.append(
        f"WHEN NOT MATCHED THEN INSERT ({column_list(dialect, row)}) VALUES ({column_list(dialect, row, 's.')});"
    )
    return " ".join(parts)


# --- CREATE TABLE
# ----------------------------------------------------------------------------------------------

# Types that the dialects of SQL files do not need, because they write such values as text.
_TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    "postgresql": {"uuid": "uuid", "binary": "bytea", "interval": "interval"},
    "mysql": {"uuid": "CHAR(36)", "binary": "LONGBLOB"},
    "mssql": {"uuid": "uniqueidentifier", "binary": "varbinary(max)"},
    "oracle": {"uuid": "VARCHAR2(36 CHAR)", "binary": "BLOB"},
    "db2": {"uuid": "VARCHAR(36)", "binary": "BLOB(2G)"},
    "ansi": {"uuid": "VARCHAR(36)", "binary": "BLOB"},
}
_KINDS: Final[Mapping[str, str]] = {
    "integer": "integer", "float": "float", "boolean": "boolean", "date": "date", "time": "time",
    "timestamp": "timestamp", "timestamptz": "instant", "json": "json",
}  # fmt: skip


def sql_type(dialect: Dialect, column: Column, *, key: bool = False) -> str:
    """Return the type of a column in CREATE TABLE. `key` columns get short texts where the target requires
    it."""
    if column.declared:
        return column.declared
    own_type = _TYPES[dialect.name].get(column.type)
    if own_type:
        return own_type
    if column.type == "array" and dialect.name == "postgresql" and column.items:
        return sql_type(dialect, Column("", column.items, "")) + "[]"
    if column.type == "decimal":
        precision = min(column.precision or 38, 31 if dialect.name == "db2" else 38)
        name = dialect.types["decimal"].partition("(")[0]
        return f"{name}({precision},{min(column.scale or 0, precision)})"
    if column.type in ("array", "json"):
        return dialect.types["json"]
    if column.type == "integer" and column.unsigned:
        return dialect.types["unsigned"]
    if column.type in _KINDS:
        return dialect.types[_KINDS[column.type]]
    length = column.max_length
    if key and dialect.key_chars is not None:
        length = min(length or dialect.key_chars, dialect.key_chars)
    return dialect.type_of(pa.string(), length)


def create_statement(
    dialect: Dialect, parts: Sequence[str], columns: Sequence[Column], keys: Sequence[str]
) -> str:
    """Return the CREATE TABLE statement without a semicolon. Raises `ConnectorError` for an invalid name."""
    for name in (*parts, *(column.name for column in columns)):
        if fault := dialect.name_fault(name):
            raise ConnectorError(fault, reason="bad_name", hint="Choose another name.")
    lines = []
    for column in columns:
        tail = " NOT NULL" if not column.nullable or column.name in keys else ""
        lines.append(
            f"  {dialect.quote_name(column.name)} {sql_type(dialect, column, key=column.name in keys)}{tail}"
        )
    if keys:
        lines.append(f"  PRIMARY KEY ({column_list(dialect, keys)})")
    return (
        f"CREATE TABLE {qualified_name(dialect, parts)} (\n" + ",\n".join(lines) + f"\n){dialect.table_tail}"
    )


# --- How many rows are read together
# ---------------------------------------------------------------------------


def result_too_large_error() -> ConnectorError:
    """Return the error for a query of a field whose rows exceed the limit."""
    mb = limits.QUERY_RESULT_BYTES // limits.MB
    return ConnectorError(
        f"The result is larger than {mb:,} MB.", reason="too_large", hint="Read fewer rows or shorter values."
    )


def estimate_size(value: Any) -> int:
    """Estimate the bytes of a driver's value: the length of text and bytes, 16 for any other value."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + estimate_size(inner) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return sum(map(estimate_size, value))
    return 16


def group_rows(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Group rows into lists of up to `limits.QUERY_BATCH_BYTES`, or `limits.TARGET_READ_ROWS` rows."""
    group: list[Row] = []
    size = 0
    for row in rows:
        group.append(row)
        size += estimate_size(row)
        if size >= limits.QUERY_BATCH_BYTES or len(group) == limits.TARGET_READ_ROWS:
            yield group
            group, size = [], 0
    if group:
        yield group


def next_count(count: int, rows: int, size: int) -> int:
    """Return how many rows to read next from a driver that buffers them, after reading `rows` rows of `size`
    bytes."""
    fit = int(limits.QUERY_BATCH_BYTES * rows / max(1, size))
    return max(1, min(8 * count, fit, limits.QUERY_BATCH_ROWS))


def take_rows(rows: Iterable[Row], limit: int | None) -> list[Row]:
    """Return the first rows of a query for a field. Raises `ConnectorError` if they exceed
    `limits.QUERY_RESULT_BYTES`."""
    result, size = [], 0
    for row in islice(rows, limit):
        result.append(row)
        size += estimate_size(row)
        if size > limits.QUERY_RESULT_BYTES:
            raise result_too_large_error()
    return result


def take_sample(rows: Iterable[Row]) -> list[Row]:
    """Return the rows up to the one that exceeds `limits.SAMPLE_BYTES`."""
    result, size = [], 0
    for row in rows:
        result.append(row)
        size += estimate_size(row)
        if size > limits.SAMPLE_BYTES:
            break
    return result


# --- Queries with placeholders
# ---------------------------------------------------------------------------------


def bind_parameters(
    text: str, values: Mapping[str, Any], placeholder_format: str, *, doubled_chars: str = ""
) -> tuple[str, list[Any]]:
    """Return a query with each `{{name}}` replaced by the driver's `placeholder_format`, and the values for them in
    order.

    `doubled_chars` are characters that the driver needs doubled (`%`). Quotation marks directly around a
    placeholder are removed, because a parameter is never inside a literal. Raises `ConnectorError` (reason
    `bad_query`).
    """
    try:
        parts = list(placeholders.parse(text.strip().rstrip(";")).parts)
    except placeholders.PlaceholderError as problem:
        raise ConnectorError(f"The query is invalid: {problem}", reason="bad_query") from None
    for index in range(1, len(parts) - 1):
        before, placeholder, after = parts[index - 1 : index + 2]
        if not isinstance(before, str) or isinstance(placeholder, str) or not isinstance(after, str):
            continue
        if before.endswith("'") and after.startswith("'"):
            parts[index - 1], parts[index + 1] = before[:-1], after[1:]
    parameters: list[Any] = []
    pieces: list[str] = []
    for part in parts:
        if isinstance(part, str):
            for char in doubled_chars:
                part = part.replace(char, char + char)
            pieces.append(part)
            continue
        if part.name not in values:
            raise ConnectorError(
                f"The query uses {part.name}, which has no value.",
                reason="bad_query",
                hint=f"Available values: {', '.join(map(str, values)) or 'none'}.",
            )
        value = values[part.name]
        if part.filters and value is not None:
            column = pa.array([value])
            for step in part.filters:
                column = step(column)
            value = column[0].as_py()
        parameters.append(value)
        pieces.append(placeholder_format.format(len(parameters)))
    return "".join(pieces), parameters


# Names of the dialects in sqlglot. The others are tokenized as standard SQL.
_TOKENIZERS: Final[Mapping[str, str]] = {
    "postgresql": "postgres", "mysql": "mysql", "mssql": "tsql", "oracle": "oracle", "sqlite": "sqlite",
}  # fmt: skip


def checked_condition(kind: str, text: str) -> str:
    """Return a user's condition if it cannot leave the parentheses that surround it in a statement.

    Raises `ConnectorError` (reason `bad_query`) for unbalanced parentheses, a second statement, an
    unterminated text or comment, and MySQL's executable comments.
    """
    import sqlglot  # takes a while to import, and most references have no condition
    from sqlglot.tokenizer_core import TokenType

    problem = ""
    depth = 0
    try:
        tokens = sqlglot.tokenize(text, read=_TOKENIZERS.get(kind))
    except sqlglot.errors.TokenError:
        tokens, problem = [], "It contains a quoted text or a comment that is not closed."
    for token in tokens:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth < 0:
            problem = "It closes a parenthesis that was not opened."
        elif token.token_type == TokenType.SEMICOLON:
            problem = "It contains a semicolon."
        if problem:
            break
    if depth > 0:
        problem = "It opens a parenthesis that is not closed."
    if kind == "mysql" and EXECUTABLE_COMMENT.search(text):
        problem = "It contains a comment that MySQL executes."
    if problem:
        raise ConnectorError(
            f"The condition must be a single expression. {problem}",
            reason="bad_query",
            hint="Enter the part after WHERE, for example: status = 'active'.",
        )
    return text


EXECUTABLE_COMMENT: Final = re.compile(r"/\*M?!")


def where_clause(kind: str, condition: str) -> str:
    """Return ` WHERE (...)` for a user's condition, or "" if it is empty. Raises as `checked_condition`."""
    return f" WHERE ({checked_condition(kind, condition)}\n)" if condition.strip() else ""
