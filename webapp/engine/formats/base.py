"""The interface of file formats: a class, its options, and a stream of bytes; and columns of text.

A column of text says how its values are written, and which literals are around them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from webapp.engine.errors import SpecError
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.formats.layout import Slot


T = TypeVar("T")

Piece = bytes | memoryview
"""Bytes of a file; the rows of a block are a view of the buffer that they were written to."""


class FormatError(SpecError):
    """This format cannot represent the rows. Raised before the first byte if the schema shows it."""


class Format(ABC):
    """One stream of rows in one format. An instance is used once, by one thread.

    The bytes are ``start()``, then ``block()`` for each block, then ``finish()``. Only counters are kept of earlier
    blocks. ``schema`` has the visible columns; a block's arrays are in its order and have the same length, and scalar
    ones may be dictionary-encoded. ``title`` is the name of the table or sheet if no option sets it. All methods can
    raise `FormatError`.
    """

    name: ClassVar[str]
    media_type: ClassVar[str]
    extension: ClassVar[str]
    is_resumable: ClassVar[bool] = False
    """Whether an instance can continue where another stopped: together they write the same bytes as one."""
    accepts_text_parts: ClassVar[bool] = False
    """Whether `write_block` accepts texts in parts."""

    class Options(BaseModel):
        """The options of this format; the defaults give a usable file."""

        model_config = ConfigDict(extra="forbid", frozen=True)

    def __init__(self, schema: pa.Schema, options: Options, *, title: str) -> None:
        if not len(schema):
            raise FormatError([Fault("fields", "all_hidden", "At least one field must be visible.")])
        self.schema, self.options, self.title = schema, options, title

    @abstractmethod
    def start(self) -> bytes:
        """Return the bytes before the first row."""

    @abstractmethod
    def write_block(self, columns: Sequence[Any]) -> Iterator[Piece]:
        """The next rows: an Arrow array for each column, or a `TextParts` where the format ``accepts_text_parts``."""

    @abstractmethod
    def finish(self) -> Iterator[Piece]:
        """Return the bytes after the last row."""

    @property
    def rows_per_split(self) -> int:
        """A stream may be cut after every multiple of this many rows."""
        return 1

    def resume(self) -> bytes:
        """Continue after the rows of another instance, instead of calling ``start()``, or after ``pause()``."""
        return b""

    def pause(self) -> Iterator[Piece]:
        """Return the bytes after the last row if another instance continues, instead of calling ``finish()``."""
        return iter(())


Arrays = Literal["json", "columns"]

_MAX_SCHEMAS = 256
_SCHEMAS: dict[tuple[int, Hashable], tuple[pa.Schema, Any]] = {}


def cached_for_schema(schema: pa.Schema, key: Hashable, create: Callable[[], T]) -> T:
    """Return the result of ``make()`` for a schema, cached for the latest schemas; a plan returns the same schema each
    time. Only for objects that streams can share: not for codecs of arrays and objects, which have state."""
    cache_key = (id(schema), key)
    cached = _SCHEMAS.get(cache_key)
    if cached is not None and cached[0] is schema:
        return cached[1]
    result = create()
    if not any(pa.types.is_nested(field.type) for field in schema):
        if len(_SCHEMAS) >= _MAX_SCHEMAS:
            _SCHEMAS.clear()
        # The schema is kept too, so that its id is not given to another.
        _SCHEMAS[cache_key] = (schema, result)
    return result


# --- Columns of text ----------------------------------------------------------------------------------------

PLAIN: Final = 0
NULL: Final = 1
MARKED: Final = 2
STATES: Final = 3


@dataclass(frozen=True, slots=True)
class ValueLiterals:
    """The literals before and after a value that is plain, null or marked; a null value itself is empty."""

    before: tuple[str, str, str]
    after: tuple[str, str, str]

    @property
    def is_null_plain(self) -> bool:
        """Whether a null has the same literals as a value."""
        return self.before[PLAIN] == self.before[NULL] and self.after[PLAIN] == self.after[NULL]


@dataclass(frozen=True, slots=True)
class RowLiterals:
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
    def piece_count(self) -> int:
        """The pieces that a value is written in."""

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        """Write ``column``, which is not a dictionary, into ``slot``; return ``bool[n]`` of the marked rows, or None.

        The text of nulls does not matter.
        """

    def encode_pool(self, values: pa.Array) -> pa.Array | None:
        """``values``, without nulls, as one text each; None if some cannot be spelled without a mark."""

    def encode_part(self, values: pa.Array) -> pa.Array | None:
        """``values``, which are parts of longer texts, as they are written; None if that depends on the other parts."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the text: ``name`` for messages."""

    name: str
    codec: Codec
    wrapping: ValueLiterals


def value_error(column: Column, problem: Exception) -> FormatError:
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
