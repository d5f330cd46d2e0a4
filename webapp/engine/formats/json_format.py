"""JSON: one array of objects, an object a line; and NDJSON, one object per line without the array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import pyarrow as pa

from webapp.engine.formats.base import Format, for_schema
from webapp.engine.formats.column import Column, Frame
from webapp.engine.formats.layout import Layout, TextFormat
from webapp.engine.formats.nested import json_column, json_key
from webapp.engine.text_parts import Composed


class NdjsonFormat(TextFormat):
    """One JSON object (RFC 8259) a line, UTF-8."""

    name: ClassVar[str] = "ndjson"
    media_type: ClassVar[str] = "application/x-ndjson"
    extension: ClassVar[str] = "ndjson"
    continues: ClassVar[bool] = True
    _between: ClassVar[str] = ""
    _closing: ClassVar[str] = "}\n"

    class Options(Format.Options):
        """NDJSON has no options."""

    def __init__(self, schema: pa.Schema, options: Format.Options, *, title: str) -> None:
        super().__init__(schema, options, title=title)
        columns = for_schema(schema, "json", lambda: _columns(schema))
        self._rows = Layout(columns, Frame("{", (self._closing,), (self._between,)), joint=True)
        self._first = ""

    def start(self) -> bytes:
        """Nothing."""
        return b""

    def _text(self, columns: Sequence[pa.Array | Composed], count: int) -> bytes | memoryview:
        text = self._rows.render(columns, self._first)
        self._first = self._between
        return text

    def resume(self) -> bytes:
        """Nothing: what sets two rows apart comes with the second."""
        self._first = self._between
        return b""

    def finish(self) -> Iterator[bytes]:
        """Nothing."""
        return iter(())


class JsonFormat(NdjsonFormat):
    """One JSON array (RFC 8259) of objects, UTF-8; integers and decimals are numbers with all their digits."""

    name: ClassVar[str] = "json"
    media_type: ClassVar[str] = "application/json"
    extension: ClassVar[str] = "json"
    _between: ClassVar[str] = ",\n"
    _closing: ClassVar[str] = "}"

    class Options(Format.Options):
        """JSON has no options."""

    def __init__(self, schema: pa.Schema, options: Format.Options, *, title: str) -> None:
        super().__init__(schema, options, title=title)
        self._first = "\n"

    def start(self) -> bytes:
        """The array's opening."""
        return b"["

    def finish(self) -> Iterator[bytes]:
        """The array's end."""
        yield b"\n]\n"


def _columns(schema: pa.Schema) -> list[Column]:
    return [
        json_column(field, ("," if index else "") + json_key(field.name) + ":", one_line=True)
        for index, field in enumerate(schema)
    ]
