"""What the SQL kinds share: names, readable statements, tables from columns, parameters, and what a refusal means.

Dialects (quoting, literals, types) are the ones that SQL files are written in (`engine.formats.sql_dialects`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeVar

import pyarrow as pa

from webapp import limits
from webapp.connectors.base import ConnectorError, Writing
from webapp.connectors.shape import Column, Entity
from webapp.connectors.sql_values import fitted
from webapp.engine import placeholders
from webapp.engine.formats import codecs
from webapp.engine.formats.column import Column as Spelled
from webapp.engine.formats.column import Frame, Wrapping
from webapp.engine.formats.nested import scalar_codec
from webapp.engine.formats.rows import Rows
from webapp.engine.formats.sql_dialects import Dialect, SqlEscape

Row = TypeVar("Row")

# --- What a refusal means --------------------------------------------------------------------------------------

# SQLSTATE (ISO/IEC 9075-2, 24.1, and PostgreSQL, "Error Codes"): the longest beginning that fits decides.
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
# Classes that speak of the statement, the session or the server, not of one row.
_NOT_OF_ROW: Final = (
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


def is_of_row(state: str) -> bool:
    """Whether a SQLSTATE tells of a row's values. States of triggers' own making do."""
    return bool(state) and not state.startswith(_NOT_OF_ROW)


def reason_of(state: str) -> str:
    """The `base.REASONS` word for the SQLSTATE of a refused row."""
    return _REASONS.get(state) or _REASONS.get(state[:2], "refused")


def shortened(message: str) -> str:
    """A target's words, as long as the ledger keeps them."""
    text = " ".join(message.split())
    return text if len(text) <= limits.PUSH_MESSAGE_CHARS else text[: limits.PUSH_MESSAGE_CHARS - 1] + "…"


# --- Names -----------------------------------------------------------------------------------------------------


def qualified(dialect: Dialect, parts: Iterable[str]) -> str:
    """A table's name, every part of it quoted."""
    return ".".join(map(dialect.quoted, parts))


def listed(dialect: Dialect, names: Iterable[str], lead: str = "") -> str:
    """Column names, quoted, with commas between; `lead` stands before each (`s.`)."""
    return ", ".join(lead + dialect.quoted(name) for name in names)


def ordered(dialect: Dialect, columns: Sequence[str], order: Sequence[str] | None) -> str:
    """The end of a query whose rows are in the order of some columns, or of those that `order` names; "" for none."""
    names = listed(dialect, columns if order is None else order)
    return f" ORDER BY {names}" if names else ""


def matched(entities: Iterable[Entity], name: str) -> Entity | None:
    """The one of that name, else the only one whose name differs in case alone."""
    every = list(entities)
    exact = next((one for one in every if one.name == name), None)
    alike = [one for one in every if one.name.casefold() == name.casefold()]
    return exact or (alike[0] if len(alike) == 1 else None)


_NUMBER: Final = re.compile(r"'-?\d+(\.\d+)?'")

# --- Statements for people to read -----------------------------------------------------------------------------


def literals(dialect: Dialect, array: pa.Array, column: Column) -> list[str]:
    """`array` as literals for `column`, one by one. Raises `FormatError` for a text the dialect cannot write."""
    values = fitted(array, column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_string(kind) and column.type in ("integer", "decimal", "float"):
        words = literals(dialect, values, replace(column, type="text"))
        return [word[1:-1] if _NUMBER.fullmatch(word) else word for word in words]
    if pa.types.is_binary(kind):
        return [_binary(dialect, one) for one in values.to_pylist()]
    escape = SqlEscape(dialect)
    start = end = ""
    codec = scalar_codec(kind, escape)
    if pa.types.is_string(kind):
        start, end = dialect.text_lead, "'"
    elif pa.types.is_date(kind):
        start, end = dialect.date_lead, "'"
    elif pa.types.is_time(kind):
        start, end = "'", "'"
    elif pa.types.is_timestamp(kind):
        start, end = dialect.timestamp_lead, (dialect.zone if kind.tz else "") + "'"
        codec = codecs.TimestampCodec(dialect.between.encode())
    elif pa.types.is_boolean(kind):
        false, true = dialect.booleans
        codec = codecs.BoolCodec(false.encode(), true.encode())
    wrapping = Wrapping((start, "NULL", ""), (end, "", ""))
    return Rows([Spelled(column.name, codec, wrapping)], Frame(), joint=False).words_of([values])


def _binary(dialect: Dialect, value: bytes | None) -> str:
    if value is None:
        return "NULL"
    text = value.hex()
    return {
        "postgresql": f"'\\x{text}'",
        "mssql": f"0x{text}",
        "oracle": f"HEXTORAW('{text}')",
        "db2": f"BX'{text}'",
    }.get(dialect.name, f"X'{text}'")


def statements(dialect: Dialect, writing: Writing, batch: pa.RecordBatch) -> list[str]:
    """One statement for each row, as a person would write it."""
    names = [column.name for column in writing.columns]
    cells = [
        literals(dialect, array, column) for array, column in zip(batch.columns, writing.columns, strict=True)
    ]
    table = qualified(dialect, writing.entity.parts)
    make: Callable[[Dialect, str, Writing, dict[str, str]], str] = {
        "insert": _insert,
        "upsert": _upsert,
        "update": _update,
    }[writing.mode]
    return [
        make(dialect, table, writing, dict(zip(names, row, strict=True))) for row in zip(*cells, strict=True)
    ]


def _insert(dialect: Dialect, table: str, writing: Writing, row: dict[str, str]) -> str:
    override = ""
    if dialect.name == "postgresql" and any(one.generated == "identity" for one in writing.columns):
        override = " OVERRIDING SYSTEM VALUE"
    return f"INSERT INTO {table} ({listed(dialect, row)}){override} VALUES ({', '.join(row.values())});"


def _update(dialect: Dialect, table: str, writing: Writing, row: dict[str, str]) -> str:
    keys = writing.key_columns
    pairs = {name: f"{dialect.quoted(name)} = {value}" for name, value in row.items()}
    setting = ", ".join(pair for name, pair in pairs.items() if name not in keys)
    found = " AND ".join(pairs[name] for name in keys)
    return f"UPDATE {table} SET {setting} WHERE {found};"


def _upsert(dialect: Dialect, table: str, writing: Writing, row: dict[str, str]) -> str:
    keys = writing.key_columns
    others = [name for name in row if name not in keys] or list(keys[:1])
    quoted = dialect.quoted
    if dialect.name in ("postgresql", "ansi"):
        setting = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
        insert = _insert(dialect, table, writing, row).removesuffix(";")
        return f"{insert} ON CONFLICT ({listed(dialect, keys)}) DO UPDATE SET {setting};"
    if dialect.name == "mysql":
        setting = ", ".join(f"{quoted(name)} = VALUES({quoted(name)})" for name in others)
        return f"{_insert(dialect, table, writing, row).removesuffix(';')} ON DUPLICATE KEY UPDATE {setting};"
    source = ", ".join(f"{value} AS {quoted(name)}" for name, value in row.items())
    origin = {"oracle": " FROM DUAL", "db2": " FROM SYSIBM.SYSDUMMY1"}.get(dialect.name, "")
    found = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in keys)
    parts = [f"MERGE INTO {table} t USING (SELECT {source}{origin}) s ON ({found})"]
    if any(name not in keys for name in row):
        setting = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in others)
        parts.append(f"WHEN MATCHED THEN UPDATE SET {setting}")
    parts.append(
        f"WHEN NOT MATCHED THEN INSERT ({listed(dialect, row)}) VALUES ({listed(dialect, row, 's.')});"
    )
    return " ".join(parts)


# --- Tables from columns ---------------------------------------------------------------------------------------

# Types that the dialects of SQL files do not need, for each dialect; the others write them as text.
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


def declared(dialect: Dialect, column: Column, *, key: bool = False) -> str:
    """The type of a column in a CREATE TABLE; `key`: it is part of one, which some targets want short texts for."""
    if column.declared:
        return column.declared
    own = _TYPES[dialect.name].get(column.type)
    if own:
        return own
    if column.type == "array" and dialect.name == "postgresql" and column.items:
        return declared(dialect, Column("", column.items, "")) + "[]"
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
    """The CREATE TABLE of these columns, without a semicolon. Raises `ConnectorError` for a name that cannot be one."""
    for name in (*parts, *(column.name for column in columns)):
        if fault := dialect.name_fault(name):
            raise ConnectorError(fault, reason="bad_name", hint="Give it another name.")
    lines = []
    for column in columns:
        tail = " NOT NULL" if not column.nullable or column.name in keys else ""
        lines.append(
            f"  {dialect.quoted(column.name)} {declared(dialect, column, key=column.name in keys)}{tail}"
        )
    if keys:
        lines.append(f"  PRIMARY KEY ({listed(dialect, keys)})")
    return f"CREATE TABLE {qualified(dialect, parts)} (\n" + ",\n".join(lines) + f"\n){dialect.table_tail}"


# --- How much is read at once ----------------------------------------------------------------------------------


def answer_too_large() -> ConnectorError:
    """The error for a query for a field whose rows are larger than the limit."""
    mb = limits.QUERY_ANSWER_BYTES // limits.MB
    return ConnectorError(
        f"The answer is larger than {mb:,} MB.", reason="too_large", hint="Read fewer rows or shorter values."
    )


def size_of(value: Any) -> int:
    """About the bytes of a driver's value: characters and bytes as they are, all else as a number."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + size_of(inner) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    return 16


def grouped(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in lists of up to `limits.QUERY_BATCH_BYTES`, or `limits.TARGET_READ_ROWS` rows."""
    piece: list[Row] = []
    size = 0
    for row in rows:
        piece.append(row)
        size += size_of(row)
        if size >= limits.QUERY_BATCH_BYTES or len(piece) == limits.TARGET_READ_ROWS:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def next_count(count: int, rows: int, size: int) -> int:
    """How many rows to read next from a driver that holds them all, after `count` rows of `size` bytes."""
    fit = int(limits.QUERY_BATCH_BYTES * rows / max(1, size))
    return max(1, min(8 * count, fit, limits.QUERY_BATCH_ROWS))


def answer(rows: Iterable[Row], limit: int | None) -> list[Row]:
    """The first rows of a query for a field. Raises `ConnectorError` where they have more than
    `limits.QUERY_ANSWER_BYTES`."""
    found, size = [], 0
    for row in islice(rows, limit):
        found.append(row)
        size += size_of(row)
        if size > limits.QUERY_ANSWER_BYTES:
            raise answer_too_large()
    return found


def first(rows: Iterable[Row]) -> list[Row]:
    """As many of the rows as have `limits.SAMPLE_BYTES`, and one more."""
    found, size = [], 0
    for row in rows:
        found.append(row)
        size += size_of(row)
        if size > limits.SAMPLE_BYTES:
            break
    return found


# --- Queries with places for values ----------------------------------------------------------------------------


def bound(text: str, values: Mapping[str, Any], marker: str, *, doubled: str = "") -> tuple[str, list[Any]]:
    """A query whose `{{name}}` have become the driver's `marker`, and the values for them, in order.

    `doubled` are signs the driver wants twice where they stand for themselves (`%`). Quotation marks right around a
    place are taken away: a parameter is never inside a literal. Raises `ConnectorError` (reason `bad_query`).
    """
    try:
        parts = list(placeholders.parse(text.strip().rstrip(";")).parts)
    except placeholders.PlaceholderError as problem:
        raise ConnectorError(f"The query cannot be read: {problem}", reason="bad_query") from None
    for at in range(1, len(parts) - 1):
        before, hole, after = parts[at - 1 : at + 2]
        texts = isinstance(before, str) and isinstance(after, str)
        if texts and not isinstance(hole, str) and before.endswith("'") and after.startswith("'"):
            parts[at - 1], parts[at + 1] = before[:-1], after[1:]
    found: list[Any] = []
    pieces: list[str] = []
    for part in parts:
        if isinstance(part, str):
            for sign in doubled:
                part = part.replace(sign, sign + sign)
            pieces.append(part)
            continue
        if part.name not in values:
            raise ConnectorError(
                f"The query asks for {part.name}, which has no value.",
                reason="bad_query",
                hint=f"There are: {', '.join(map(str, values)) or 'no values'}.",
            )
        found.append(_filtered(part, values[part.name]))
        pieces.append(marker.format(len(found)))
    return "".join(pieces), found


# Dialects as the tokenizer calls them; the others are read by standard SQL.
_TOKENIZERS: Final[Mapping[str, str]] = {
    "postgresql": "postgres", "mysql": "mysql", "mssql": "tsql", "oracle": "oracle", "sqlite": "sqlite",
}  # fmt: skip


def checked_condition(kind: str, text: str) -> str:
    """Return a condition that a user wrote, if it stays inside the parentheses it is put in.

    Raises `ConnectorError` (reason `bad_query`) for a parenthesis that closes what it did not open, a second statement,
    a text or comment without an end, and MySQL's comments that are carried out.
    """
    import sqlglot  # takes a while to import, and most references have no condition
    from sqlglot.tokens import TokenType

    problem = ""
    depth = 0
    try:
        tokens = sqlglot.tokenize(text, read=_TOKENIZERS.get(kind))
    except sqlglot.errors.TokenError:
        tokens, problem = [], "A quoted text or a comment in it has no end."
    for token in tokens:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth < 0:
            problem = "It closes a parenthesis that it does not open."
        elif token.token_type == TokenType.SEMICOLON:
            problem = "It contains a semicolon."
        if problem:
            break
    if depth > 0:
        problem = "It opens a parenthesis that it does not close."
    if kind == "mysql" and EXECUTABLE_COMMENT.search(text):
        problem = "It contains a comment that MySQL executes."
    if problem:
        raise ConnectorError(
            f"The condition is not one expression. {problem}",
            reason="bad_query",
            hint="Write the part after WHERE, for example: status = 'active'.",
        )
    return text


EXECUTABLE_COMMENT: Final = re.compile(r"/\*M?!")


def where_clause(kind: str, condition: str) -> str:
    """Return ` WHERE (...)` of a user's condition, or "" without one. Raises as `checked_condition`."""
    return f" WHERE ({checked_condition(kind, condition)}\n)" if condition.strip() else ""


def _filtered(hole: placeholders.Hole, value: Any) -> Any:
    if not hole.filters or value is None:
        return value
    column = pa.array([value])
    for step in hole.filters:
        column = step(column)
    return column[0].as_py()
