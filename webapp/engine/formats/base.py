"""What every file format is: a class, its options, and a stream of bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from webapp.engine.errors import SpecError
from webapp.errors import Fault


class FormatError(SpecError):
    """Rows that this format cannot hold. Raised before the first byte wherever the schema alone shows it."""


class Format(ABC):
    """One stream of rows in one format. An instance is used once, by one thread.

    The bytes are ``start()``, then ``block()`` of each block in turn, then ``finish()``. Nothing is kept of earlier
    blocks but counts. ``schema`` holds the visible columns; a block's arrays stand in its order, all of one length,
    any scalar one of them possibly dictionary-encoded. ``title`` names the table or sheet where no option does.
    Raises `FormatError` from any of its methods.
    """

    name: ClassVar[str]
    media_type: ClassVar[str]
    extension: ClassVar[str]

    class Options(BaseModel):
        """What a request may say about this format; defaults make a usable file."""

        model_config = ConfigDict(extra="forbid", frozen=True)

    def __init__(self, schema: pa.Schema, options: Options, *, title: str) -> None:
        if not len(schema):
            raise FormatError([Fault("fields", "all_hidden", "At least one field must be visible.")])
        self.schema, self.options, self.title = schema, options, title

    @abstractmethod
    def start(self) -> bytes:
        """What stands before the first row."""

    @abstractmethod
    def block(self, columns: list[pa.Array]) -> Iterator[bytes]:
        """The next rows."""

    @abstractmethod
    def finish(self) -> Iterator[bytes]:
        """What stands after the last row."""


Arrays = Literal["json", "columns"]
