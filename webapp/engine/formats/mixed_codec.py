"""Write mixed columns (`engine.mixed_columns`) in text formats: values by their type, the other cells as text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import mixed_columns
from webapp.engine.formats.codecs import BaseCodec
from webapp.engine.formats.column import NULL, PLAIN, Codec, Column, Frame, Wrapping
from webapp.engine.formats.escape import Escape
from webapp.engine.formats.layout import Layout, Slot


def mixed_column(value: Column, text: Column, *, marks: bool = False, escape: Escape | None = None) -> Column:
    """The column that writes values as ``value`` does and texts as ``text`` does. ``marks``: what ``value`` marks is
    written as text too. ``escape`` treats the texts."""
    before, after = value.wrapping.before, value.wrapping.after
    wrapping = Wrapping(
        (before[PLAIN], before[NULL], text.wrapping.before[PLAIN]),
        (after[PLAIN], after[NULL], text.wrapping.after[PLAIN]),
    )
    return Column(value.name, MixedCodec(value.codec, marks, escape), wrapping)


class MixedCodec(BaseCodec):
    """Values by another codec and, one piece behind them, texts, treated by ``escape``. Texts are marked."""

    def __init__(self, codec: Codec, marks: bool, escape: Escape | None) -> None:
        self._codec, self._marks, self._escape = codec, marks, escape
        self.width = codec.width + 1
        self.key = ("mixed", codec.key, marks, escape.key if escape else None)

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray:
        """See `column.Codec`."""
        values, texts = mixed_columns.parts(column)
        inner = self._codec.fill(values, slot)
        marked = mixed_columns.texts_of(column)
        if marked.any():
            for piece in range(self._codec.width):
                slot.punch(piece, marked)
            slot.text(self._codec.width, texts, self._escape)
        else:
            slot.blank(self._codec.width)
        return marked if inner is None or not self._marks else marked | inner


def as_text(column: pa.Array, spelled: Column) -> pa.Array:
    """Return a mixed column as text; ``spelled`` are its values as written, without quotes."""
    if not len(column):
        return pa.array([], pa.string())
    values, texts = mixed_columns.parts(column)
    written = Layout([spelled], Frame(), joint=False).texts_of([values])
    return pc.coalesce(texts, pc.if_else(values.is_valid(), written, pa.scalar(None, pa.string())))
