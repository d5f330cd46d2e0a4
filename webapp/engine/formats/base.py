"""The interface of file formats: a class, its options, and a stream of bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from webapp.engine.errors import SpecError
from webapp.errors import Fault

T = TypeVar("T")


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
    continues: ClassVar[bool] = False
    """Whether an instance can continue where another stopped: together they write the same bytes as one."""
    composes: ClassVar[bool] = False
    """Whether `block` accepts texts in parts."""

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
    def block(self, columns: Sequence[Any]) -> Iterator[bytes]:
        """The next rows: an Arrow array for each column, or a `Composed` where the format ``composes``."""

    @abstractmethod
    def finish(self) -> Iterator[bytes]:
        """Return the bytes after the last row."""

    @property
    def together(self) -> int:
        """A stream may be cut after every multiple of this many rows."""
        return 1

    def resume(self) -> bytes:
        """Continue after the rows of another instance, instead of calling ``start()``."""
        return b""

    def pause(self) -> Iterator[bytes]:
        """Return the bytes after the last row if another instance continues, instead of calling ``finish()``."""
        return iter(())


Arrays = Literal["json", "columns"]

_SCHEMAS_KEPT = 256
_SCHEMAS: dict[tuple[int, Hashable], tuple[pa.Schema, Any]] = {}


def for_schema(schema: pa.Schema, key: Hashable, make: Callable[[], T]) -> T:
    """Return the result of ``make()`` for a schema, cached for the latest schemas; a plan returns the same schema each
    time. Only for objects that streams can share: not for codecs of arrays and objects, which have state."""
    place = (id(schema), key)
    known = _SCHEMAS.get(place)
    if known is not None and known[0] is schema:
        return known[1]
    made = make()
    if not any(pa.types.is_nested(field.type) for field in schema):
        if len(_SCHEMAS) >= _SCHEMAS_KEPT:
            _SCHEMAS.clear()
        # The schema is kept too, so that its id is not given to another.
        _SCHEMAS[place] = (schema, made)
    return made
