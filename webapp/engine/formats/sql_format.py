"""SQL: INSERT statements, preceded by a CREATE TABLE if requested."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from webapp import limits
from webapp.engine.formats import codecs
from webapp.engine.formats.base import (
    Arrays,
    Codec,
    Column,
    Format,
    FormatError,
    Piece,
    RowLiterals,
    ValueLiterals,
)
from webapp.engine.formats.codecs import mixed_column
from webapp.engine.formats.layout import Layout, TextFormat
from webapp.engine.formats.nested import NestedCodec, is_json_text, scalar_codec, value_type
from webapp.engine.formats.sql_dialects import DIALECTS, Dialect, SqlEscape
from webapp.engine.formats.text_formats import FlatColumn, flatten
from webapp.engine.mixed_columns import clean_type, is_mixed
from webapp.engine.text_parts import TextParts
from webapp.errors import Fault

_MAX_SLUG = 63  # the shortest limit of a name among the dialects


def slug(title: str) -> str:
    """A table name out of a title: small ASCII letters, digits and underscores."""
    plain = unicodedata.normalize("NFKD", title.casefold()).encode("ascii", "ignore").decode()
    return re.sub("[^a-z0-9]+", "_", plain).strip("_")[:_MAX_SLUG] or "rows"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A column that refers to another table's. ``table`` is that table's name, quoted."""

    column: str
    table: str
    referenced_column: str

    def clause(self, dialect: Dialect) -> str:
        """Return the constraint for a CREATE or ALTER TABLE."""
        quoted = dialect.quote_name
        return (
            f"FOREIGN KEY ({quoted(self.column)}) REFERENCES {self.table} ({quoted(self.referenced_column)})"
        )


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The keys of one table among others; ``types`` are of columns that must have that of the column they refer to."""

    primary: str | None = None
    unique: tuple[str, ...] = ()
    foreign: tuple[ForeignKey, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    def constraints(self, dialect: Dialect) -> Iterator[str]:
        """The lines of a CREATE TABLE that follow its columns."""
        if self.primary is not None:
            yield f"PRIMARY KEY ({dialect.quote_name(self.primary)})"
        for name in self.unique:
            yield f"UNIQUE ({dialect.quote_name(name)})"
        for key in self.foreign:
            yield key.clause(dialect)


class SqlFormat(TextFormat):
    """INSERT statements of ``rows_per_statement`` rows each, counted over the whole stream.

    Arrays and objects are JSON text, or separate columns with ``arrays: columns``.
    """

    name: ClassVar[str] = "sql"
    media_type: ClassVar[str] = "application/sql"
    extension: ClassVar[str] = "sql"
    is_resumable: ClassVar[bool] = True

    class Options(Format.Options):
        """``table`` can have a schema before a dot. Default: derived from the template's name."""

        table: str | None = Field(default=None, min_length=1, max_length=300)
        dialect: Literal["ansi", "postgresql", "mysql", "mssql", "oracle", "db2"] = "ansi"
        create_table: bool = False
        rows_per_statement: int | None = Field(default=None, ge=1, le=limits.SQL_MAX_ROWS_PER_STATEMENT)
        arrays: Arrays = "json"

        @model_validator(mode="after")
        def _fits_dialect(self) -> Self:
            dialect = DIALECTS[self.dialect]
            if self.rows_per_statement and self.rows_per_statement > dialect.max_rows_per_statement:
                raise ValueError(
                    f"{self.dialect} allows at most {dialect.max_rows_per_statement} row(s) in one INSERT"
                )
            for part in (self.table or "rows").split("."):
                if problem := dialect.name_fault(part):
                    raise ValueError(f"table: {problem}")
            return self

    options: Options

    def __init__(self, schema: pa.Schema, options: Options, *, title: str) -> None:
        super().__init__(schema, options, title=title)
        self._dialect = DIALECTS[options.dialect]
        self._escape = SqlEscape(self._dialect)
        in_columns = options.arrays == "columns"
        self._leaves = flatten(schema, objects=in_columns, arrays=in_columns)
        self._check_names()
        self._row_is_wide = False
        bounds = [self._max_length(leaf) or 0 for leaf in self._leaves]
        self._row_is_wide = self._dialect.is_wide(bounds)
        self.table = ".".join(map(self._dialect.quote_name, (options.table or slug(title)).split(".")))
        self._rows_per_statement = options.rows_per_statement or self._dialect.rows_per_statement
        names = ", ".join(self._dialect.quote_name(leaf.field.name) for leaf in self._leaves)
        self._insert_head = f"INSERT INTO {self.table} ({names}) VALUES" + (
            "\n" if self._rows_per_statement > 1 else " "
        )
        separators = (
            (",\n", ";\n" + self._insert_head)
            if self._rows_per_statement > 1
            else (";\n" + self._insert_head,)
        )
        columns = [self._column(leaf.field, "," if index else "") for index, leaf in enumerate(self._leaves)]
        self._rows = Layout(columns, RowLiterals("(", (")",), separators), joint=True)
        self._separators = separators
        self._rows_written = 0

    def _check_names(self) -> None:
        dialect = self._dialect
        names = [leaf.field.name for leaf in self._leaves]
        folded = [name.casefold() if dialect.names_fold_case else name for name in names]
        uses = Counter(folded)
        faults = [
            Fault(name, "name_does_not_fit", problem)
            for name in names
            if (problem := dialect.name_fault(name))
        ]
        faults += [
            Fault(
                name, "duplicate_name", f"{dialect.name} treats this column name and another one as the same."
            )
            for name, fold in zip(names, folded, strict=True)
            if uses[fold] > 1
        ]
        if faults:
            raise FormatError(faults)

    # --- values ---

    def _column(self, field: pa.Field, lead: str) -> Column:
        dialect, kind = self._dialect, value_type(field)
        if is_mixed(kind):
            value, text = (
                self._column(field.with_type(each), lead) for each in (clean_type(kind), pa.string())
            )
            return mixed_column(value, text)
        start = end = ""
        tail = dialect.exponent_tail if pa.types.is_floating(kind) else ""
        if pa.types.is_string(kind) or pa.types.is_nested(kind):
            start, end = dialect.text_lead, "'"
        elif pa.types.is_date(kind):
            start, end = dialect.date_lead, "'"
        elif pa.types.is_time(kind):
            start, end = "'", "'"
        elif pa.types.is_timestamp(kind):
            start, end = dialect.timestamp_lead, (dialect.utc_suffix if kind.tz else "") + "'"
        return Column(
            field.name,
            self._codec(field, kind),
            ValueLiterals((lead + start, lead + "NULL", lead), (end, "", tail)),
        )

    def _codec(self, field: pa.Field, kind: pa.DataType) -> Codec:
        if pa.types.is_nested(kind):
            return NestedCodec(field, self._escape, one_line=True)
        if pa.types.is_boolean(kind):
            false, true = self._dialect.booleans
            return codecs.BoolCodec(false.encode(), true.encode())
        if pa.types.is_timestamp(kind):
            return codecs.TimestampCodec(self._dialect.date_time_separator.encode())
        if pa.types.is_floating(kind):
            return codecs.FloatCodec(exponents=bool(self._dialect.exponent_tail))
        return scalar_codec(kind, self._escape)

    # --- the stream ---

    def start(self) -> bytes:
        """Return the session settings, and the CREATE TABLE if requested."""
        return (
            self._dialect.preamble + (self.create_table_sql() if self.options.create_table else "")
        ).encode()

    def create_table_sql(self, keys: TableKeys | None = None) -> str:
        """The CREATE TABLE, with the keys of a table among others."""
        keys = keys or TableKeys()
        lines = [
            f"  {self._dialect.quote_name(leaf.field.name)} {keys.types.get(leaf.field.name) or self._type(leaf)}"
            f"{' NOT NULL' if leaf.field.name in (keys.primary, *keys.unique) else ''}"
            for leaf in self._leaves
        ]
        lines += [f"  {line}" for line in keys.constraints(self._dialect)]
        return f"CREATE TABLE {self.table} (\n" + ",\n".join(lines) + f"\n){self._dialect.table_tail};\n"

    def key_type(self, name: str) -> tuple[pa.DataType, str] | None:
        """The Arrow and the SQL type of a column that this dialect can have a key on; None for any other."""
        leaf = next((leaf for leaf in self._leaves if leaf.field.name == name), None)
        if leaf is None or is_json_text(leaf.field):
            return None
        kind, length = clean_type(value_type(leaf.field)), self._max_length(leaf)
        max_chars = self._dialect.key_chars
        if pa.types.is_nested(kind) or pa.types.is_null(kind):
            return None
        if max_chars is not None and pa.types.is_string(kind) and (length is None or length > max_chars):
            return None
        return kind, self._type(leaf)

    def _type(self, leaf: FlatColumn) -> str:
        if is_json_text(leaf.field):
            return self._dialect.types["json"]
        return self._dialect.type_of(clean_type(value_type(leaf.field)), self._max_length(leaf))

    def _max_length(self, leaf: FlatColumn) -> int | None:
        length = (leaf.field.metadata or {}).get(b"max_length")
        return None if length is None or self._row_is_wide else int(length)

    def _render_rows(self, columns: Sequence[pa.Array | TextParts], count: int) -> Piece:
        block = [leaf.values_in(columns) for leaf in self._leaves]
        if self._rows_per_statement == 1:
            text = self._rows.render(block, self._separators[0] if self._rows_written else self._insert_head)
        else:
            edges = ((self._rows_written + np.arange(count)) % self._rows_per_statement == 0).astype(np.uint8)
            text = self._rows.render(
                block, self._separators[edges[0]] if self._rows_written else self._insert_head, edges
            )
        self._rows_written += count
        return text

    def resume(self) -> bytes:
        """Nothing: the first row begins a statement."""
        self._rows_written = 0
        return b""

    def finish(self) -> Iterator[Piece]:
        """The end of the last statement."""
        if self._rows_written:
            yield b";\n"

    @property
    def rows_per_split(self) -> int:
        """The rows of a statement: what is cut between statements is a script on both sides."""
        return self._rows_per_statement

    def pause(self) -> Iterator[Piece]:
        """The end of the last statement."""
        return self.finish()
