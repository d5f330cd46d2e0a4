"""A column of text: how its values are written, and the literals around them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa

from webapp.engine.formats.base import FormatError
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.formats.layout import Slot

PLAIN: Final = 0
NULL: Final = 1
MARKED: Final = 2
STATES: Final = 3


@dataclass(frozen=True, slots=True)
class Wrapping:
    """The literals before and after a value that is plain, null or marked; a null value itself is empty."""

    before: tuple[str, str, str]
    after: tuple[str, str, str]

    @property
    def null_is_plain(self) -> bool:
        """Whether a null has the same literals as a value."""
        return self.before[PLAIN] == self.before[NULL] and self.after[PLAIN] == self.after[NULL]


@dataclass(frozen=True, slots=True)
class Frame:
    """The literals around rows: ``opening`` and one of ``closings`` around each, one of ``separators`` before it."""

    opening: str = ""
    closings: tuple[str, ...] = ("",)
    separators: tuple[str, ...] = ("",)


class Codec(Protocol):
    """Converts values of one type to text. ``key`` identifies everything that the result depends on."""

    @property
    def key(self) -> Hashable:
        """Equal keys mean equal texts of equal values."""

    @property
    def width(self) -> int:
        """The pieces that a value is written in."""

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        """Write ``column``, which is not a dictionary, into ``slot``; return ``bool[n]`` of the marked rows, or None.

        The text of nulls does not matter.
        """

    def pool(self, values: pa.Array) -> pa.Array | None:
        """``values``, without nulls, as one text each; None if some cannot be spelled without a mark."""

    def part(self, values: pa.Array) -> pa.Array | None:
        """``values``, which are parts of longer texts, as they are written; None if that depends on the other parts."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the text: ``name`` for messages."""

    name: str
    codec: Codec
    wrapping: Wrapping


def does_not_fit(column: Column, problem: Exception) -> FormatError:
    """The refusal of a value of ``column``."""
    return FormatError([Fault(column.name, "value_does_not_fit", str(problem))])


def numbers(array: pa.Array, dtype: type) -> np.ndarray:
    """``dtype[n]``: the values of a fixed-width array, nulls included, not copied."""
    kind = np.dtype(dtype)
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * kind.itemsize)


def null_mask(array: pa.Array) -> np.ndarray | None:
    """Return ``bool[n]``, or None without nulls."""
    if not array.null_count:
        return None
    bitmap = array.buffers()[0]
    if bitmap is None:
        return np.ones(len(array), bool)
    end = array.offset + len(array)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8, (end + 7) // 8), count=end, bitorder="little")
    return bits[array.offset :] == 0
