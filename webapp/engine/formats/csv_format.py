"""CSV by RFC 4180: NULL is an empty field, the empty text is ``""``, lines end in CR LF."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import pyarrow as pa
from pydantic import Field

from webapp.engine.formats.base import Arrays, Format
from webapp.engine.formats.codecs import mixed_column
from webapp.engine.formats.column import Column, Frame, Wrapping
from webapp.engine.formats.escape import CsvEscape, FormulaEscape
from webapp.engine.formats.flat import Leaf, flatten
from webapp.engine.formats.layout import Layout, TextFormat
from webapp.engine.formats.nested import NestedCodec, scalar_codec, value_type
from webapp.engine.mixed_columns import clean_type, is_mixed
from webapp.engine.text_parts import Composed

_LINE_END = "\r\n"


class CsvFormat(TextFormat):
    """Comma-separated values (RFC 4180), UTF-8 without a byte order mark.

    Values are written as they are, unless ``escape_formulas`` is set. Objects become dotted columns, arrays JSON text
    or numbered columns. A row of one NULL in a file of one column is an empty line.
    """

    name: ClassVar[str] = "csv"
    media_type: ClassVar[str] = "text/csv"
    extension: ClassVar[str] = "csv"
    continues: ClassVar[bool] = True

    class Options(Format.Options):
        """``quote``: ``minimal`` quotes only values that need it, ``all`` every value that is not NULL.

        ``escape_formulas`` puts a ``'`` before texts and column names that a spreadsheet would run as a formula.
        Numbers are not changed.
        """

        delimiter: Literal[",", ";", "\t", "|", "^", "~"] = ","
        header: bool = True
        quote: Literal["minimal", "all"] = "minimal"
        escape_formulas: bool = Field(
            default=False,
            description="Escape values that spreadsheets run as formulas by putting a ' before them.",
        )
        arrays: Arrays = "json"

    options: Options

    def __init__(self, schema: pa.Schema, options: Options, *, title: str) -> None:
        super().__init__(schema, options, title=title)
        self._leaves = flatten(schema, objects=True, arrays=options.arrays == "columns")
        always = options.quote == "all"
        self._formulas = FormulaEscape() if options.escape_formulas else None
        lone = len(self._leaves) == 1
        self._escape = CsvEscape(options.delimiter, always=always, lone=lone, formulas=self._formulas)
        columns = [self._column(leaf, index) for index, leaf in enumerate(self._leaves)]
        self._rows = Layout(columns, Frame(closings=(_LINE_END,)), joint=True)

    def _column(self, leaf: Leaf, index: int) -> Column:
        kind = value_type(leaf.field)
        if is_mixed(kind):
            value, text = (
                self._column(leaf.of_type(each), index) for each in (clean_type(kind), pa.string())
            )
            return mixed_column(value, text, escape=self._formulas)
        codec = (
            NestedCodec(leaf.field, self._escape, one_line=True)
            if pa.types.is_nested(kind)
            else scalar_codec(kind, self._escape)
        )
        lead = self.options.delimiter if index else ""
        plain = '"' if self.options.quote == "all" else ""
        zone = "Z" if pa.types.is_timestamp(kind) and kind.tz else ""
        return Column(
            leaf.field.name,
            codec,
            Wrapping((lead + plain, lead, lead + '"'), (zone + plain, "", '"')),
        )

    def start(self) -> bytes:
        """The header line, unless it is not wanted."""
        if not self.options.header:
            return b""
        names = self._escape.pool(
            pa.array([leaf.field.name for leaf in self._leaves], pa.string())
        ).to_pylist()
        if self.options.quote == "all":
            names = [f'"{name}"' for name in names]
        return (self.options.delimiter.join(names) + _LINE_END).encode()

    def _text(self, columns: Sequence[pa.Array | Composed], count: int) -> bytes | memoryview:
        return self._rows.render([leaf.of(columns) for leaf in self._leaves], "")

    def finish(self) -> Iterator[bytes]:
        """Nothing."""
        return iter(())
