"""Shared by the text formats: blocks are written with `Layout`, and split if their texts are long."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterator

import pyarrow as pa

from webapp.engine.budget import TooLarge
from webapp.engine.formats.base import Format
from webapp.engine.formats.layout import Oversize


class TextFormat(Format):
    """A format whose rows are laid out by `layout.Layout`."""

    def __init__(self, schema: pa.Schema, options: Format.Options, *, title: str) -> None:
        super().__init__(schema, options, title=title)
        self._most_rows = sys.maxsize

    def block(self, columns: list[pa.Array]) -> Iterator[bytes]:
        """The next rows."""
        for text in self._texts(columns):
            yield bytes(text)

    def _texts(self, columns: list[pa.Array]) -> Iterator[bytes | memoryview]:
        """The rows' text, in as few parts as memory allows; what was too much once is not tried again."""
        count, at = len(columns[0]), 0
        while at < count:
            size = min(self._most_rows, count - at)
            part = columns if size == count else [column.slice(at, size) for column in columns]
            try:
                text = self._text(part, size)
            except Oversize:
                self._most_rows = size // 2
                continue
            except TooLarge:
                if size == 1:
                    raise
                self._most_rows = size // 2
                continue
            yield text
            at += size

    @abstractmethod
    def _text(self, columns: list[pa.Array], count: int) -> bytes | memoryview:
        """The text of ``count`` >= 1 rows. Counts nothing unless it succeeds. May raise `Oversize` or `TooLarge`."""
