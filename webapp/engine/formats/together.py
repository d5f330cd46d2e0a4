"""Several tables in one file: a ZIP archive of files, a workbook of sheets, a script of SQL. All are streamed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import pyarrow as pa

from webapp.engine.formats.base import Format
from webapp.engine.formats.xlsx_book import Workbook
from webapp.engine.formats.xlsx_format import XlsxFormat
from webapp.engine.formats.zipstream import ZipStream

OptionsT = TypeVar("OptionsT", bound=Format.Options)


@dataclass(frozen=True, slots=True)
class Table:
    """One of the tables. ``title`` names its file, sheet or table, and is no other's."""

    title: str
    schema: pa.Schema
    options: Format.Options

    def options_of(self, kind: type[OptionsT]) -> OptionsT:
        """The options, which are of type ``kind``. Raises TypeError where they are another format's."""
        if not isinstance(self.options, kind):
            raise TypeError(f"{self.title} has the options of another format")
        return self.options


class Together(ABC):
    """One file of several tables, used once.

    Its bytes are ``start()``, then those of each of ``tables`` in turn (a format's ``start``, ``block`` ...
    ``finish``), then ``finish()``. What cannot be held is raised by the constructor wherever the schemas show it.
    """

    media_type: ClassVar[str]
    extension: ClassVar[str]

    def __init__(self, tables: Sequence[Format]) -> None:
        self.tables = tables

    @abstractmethod
    def start(self) -> bytes:
        """What stands before the first table."""

    @abstractmethod
    def finish(self) -> bytes:
        """What stands after the last one."""


class ZipArchive(Together):
    """A file of its own for each table."""

    media_type = "application/zip"
    extension = "zip"

    def __init__(self, kind: type[Format], tables: Sequence[Table]) -> None:
        self._zip = ZipStream()
        made = [kind(table.schema, table.options, title=table.title) for table in tables]
        super().__init__(
            [
                _Packed(writer, self._zip, f"{table.title}.{kind.extension}")
                for writer, table in zip(made, tables, strict=True)
            ]
        )

    def start(self) -> bytes:
        """Nothing."""
        return b""

    def finish(self) -> bytes:
        """The archive's directory."""
        return self._zip.finish()


class _Packed(Format):
    """A format's bytes as an entry of an archive."""

    def __init__(self, inner: Format, archive: ZipStream, name: str) -> None:
        super().__init__(inner.schema, inner.options, title=inner.title)
        self._inner, self._zip, self._name = inner, archive, name

    def start(self) -> bytes:
        return self._zip.open(self._name) + self._zip.write(self._inner.start())

    def block(self, columns: list[pa.Array]) -> Iterator[bytes]:
        return self._written(self._inner.block(columns))

    def finish(self) -> Iterator[bytes]:
        yield from self._written(self._inner.finish())
        yield self._zip.close()

    def _written(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if packed := self._zip.write(piece):
                yield packed


class Sheets(Together):
    """A sheet for each table, more where its rows need them."""

    media_type = XlsxFormat.media_type
    extension = XlsxFormat.extension

    def __init__(self, tables: Sequence[Table]) -> None:
        options = [table.options_of(XlsxFormat.Options) for table in tables]
        schemas = [table.schema for table in tables]
        self._book = Workbook(XlsxFormat.places(zip(schemas, options, strict=True)))
        super().__init__(
            [
                XlsxFormat(table.schema, said, title=table.title, book=self._book)
                for table, said in zip(tables, options, strict=True)
            ]
        )

    def start(self) -> bytes:
        """The parts that do not depend on the tables."""
        return self._book.start()

    def finish(self) -> bytes:
        """The list of sheets, and the archive's directory."""
        return self._book.finish()
