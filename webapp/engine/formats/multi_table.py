"""Several tables in one file: a ZIP archive, a workbook, or an SQL script with foreign keys. All are streamed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import pyarrow as pa

from webapp.engine.formats.base import Format, Piece
from webapp.engine.formats.sql_dialects import DIALECTS
from webapp.engine.formats.sql_format import ForeignKey, SqlFormat, TableKeys
from webapp.engine.formats.xlsx_format import Workbook, XlsxFormat
from webapp.engine.formats.zipstream import ZipStream

OptionsT = TypeVar("OptionsT", bound=Format.Options)


@dataclass(frozen=True, slots=True)
class FileTable:
    """One of the tables. ``title`` names its file, sheet or table, and is no other's."""

    title: str
    schema: pa.Schema
    options: Format.Options

    def options_of(self, kind: type[OptionsT]) -> OptionsT:
        """Return the options, which must be of type ``kind``. Raises TypeError if they belong to another format."""
        if not isinstance(self.options, kind):
            raise TypeError(f"{self.title} has the options of another format")
        return self.options


class MultiTableFile(ABC):
    """One file of several tables, used once.

    Its bytes are ``start()``, then those of each of ``tables`` in turn (a format's ``start``, ``block`` ...
    ``finish``), then ``finish()``. The constructor raises errors that are visible in the schemas.
    """

    media_type: ClassVar[str]
    extension: ClassVar[str]

    def __init__(self, tables: Sequence[Format]) -> None:
        self.tables = tables

    @abstractmethod
    def start(self) -> bytes:
        """Return the bytes before the first table."""

    @abstractmethod
    def finish(self) -> bytes:
        """Return the bytes after the last table."""


class ZipArchive(MultiTableFile):
    """A separate file for each table."""

    media_type = "application/zip"
    extension = "zip"

    def __init__(self, kind: type[Format], tables: Sequence[FileTable]) -> None:
        self._zip = ZipStream()
        writers = [kind(table.schema, table.options, title=table.title) for table in tables]
        super().__init__(
            [
                _ZippedFormat(writer, self._zip, f"{table.title}.{kind.extension}")
                for writer, table in zip(writers, tables, strict=True)
            ]
        )

    def start(self) -> bytes:
        """Nothing."""
        return b""

    def finish(self) -> bytes:
        """The archive's directory."""
        return self._zip.finish()


class _ZippedFormat(Format):
    """A format's bytes as an entry of an archive."""

    def __init__(self, inner: Format, archive: ZipStream, name: str) -> None:
        super().__init__(inner.schema, inner.options, title=inner.title)
        self._inner, self._zip, self._name = inner, archive, name

    def start(self) -> bytes:
        return self._zip.open(self._name) + self._zip.write(self._inner.start())

    def write_block(self, columns: Sequence[pa.Array]) -> Iterator[Piece]:
        return self._compressed(self._inner.write_block(columns))

    def finish(self) -> Iterator[Piece]:
        yield from self._compressed(self._inner.finish())
        yield self._zip.close()

    def _compressed(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            if packed := self._zip.write(piece):
                yield packed


class WorkbookFile(MultiTableFile):
    """A sheet for each table, and further sheets if the rows need them."""

    media_type = XlsxFormat.media_type
    extension = XlsxFormat.extension

    def __init__(self, tables: Sequence[FileTable]) -> None:
        options = [table.options_of(XlsxFormat.Options) for table in tables]
        schemas = [table.schema for table in tables]
        self._book = Workbook(XlsxFormat.decimal_places(zip(schemas, options, strict=True)))
        super().__init__(
            [
                XlsxFormat(table.schema, table_options, title=table.title, book=self._book)
                for table, table_options in zip(tables, options, strict=True)
            ]
        )

    def start(self) -> bytes:
        """The parts that do not depend on the tables."""
        return self._book.start()

    def finish(self) -> bytes:
        """The list of sheets, and the archive's directory."""
        return self._book.finish()


@dataclass(frozen=True, slots=True)
class TableReference:
    """A column that refers to another table's; tables by their places in the file."""

    child: int
    child_column: str
    parent: int
    parent_column: str


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The columns that identify the rows of each table (None: no columns do), and the references between tables."""

    primary: Sequence[str | None]
    references: Sequence[TableReference]


class SqlScript(MultiTableFile):
    """One table after another, parents first, each with CREATE TABLE if requested.

    A foreign key to a later table is added at the end, when the rows of both exist; for a dialect that cannot alter
    tables, it is left out, with a comment in the file. A key on a column that cannot have one in the dialect (unlimited
    text, an object) is left out, and so are the foreign keys that refer to it.
    """

    media_type = SqlFormat.media_type
    extension = SqlFormat.extension

    def __init__(self, tables: Sequence[FileTable], keys: KeyColumns) -> None:
        self._writers = [
            _ScriptTable(table.schema, table.options_of(SqlFormat.Options), title=table.title)
            for table in tables
        ]
        super().__init__(self._writers)
        options = tables[0].options_of(SqlFormat.Options)
        self._dialect = DIALECTS[options.dialect]
        self._closing_statements: list[str] = []
        if options.create_table:
            self._assign_keys(keys)

    def _assign_keys(self, keys: KeyColumns) -> None:
        types: list[dict[str, str]] = [{} for _ in self._writers]
        foreign: list[list[ForeignKey]] = [[] for _ in self._writers]
        unique: list[list[str]] = [[] for _ in self._writers]
        primary = [
            name if name and writer.key_type(name) else None
            for name, writer in zip(keys.primary, self._writers, strict=True)
        ]
        for relation in sorted(keys.references, key=lambda item: item.parent):
            parent, child = self._writers[relation.parent], self._writers[relation.child]
            of_parent, of_child = (
                parent.key_type(relation.parent_column),
                child.key_type(relation.child_column),
            )
            if of_parent is None or of_child is None or of_parent[0] != of_child[0]:
                continue
            names = (primary[relation.parent], *unique[relation.parent])
            if relation.parent_column not in names:
                unique[relation.parent].append(relation.parent_column)
            sql_type = types[relation.parent].get(relation.parent_column, of_parent[1])
            types[relation.child][relation.child_column] = sql_type
            key = ForeignKey(relation.child_column, parent.table, relation.parent_column)
            # In a table that refers to itself, rows come after those they refer to; but a key that can be added later
            # does not depend on this.
            is_self_reference = relation.parent == relation.child
            if relation.parent < relation.child or (is_self_reference and not self._dialect.can_alter_tables):
                foreign[relation.child].append(key)
            elif self._dialect.can_alter_tables:
                self._closing_statements.append(
                    f"ALTER TABLE {child.table} ADD {key.clause(self._dialect)};\n"
                )
            else:
                self._closing_statements.append(
                    f"-- {child.table}: {key.clause(self._dialect)} would create a circular reference\n"
                )
        for index, writer in enumerate(self._writers):
            writer.keys = TableKeys(primary[index], tuple(unique[index]), tuple(foreign[index]), types[index])

    def start(self) -> bytes:
        """Return the session settings."""
        return self._dialect.preamble.encode()

    def finish(self) -> bytes:
        """Return the keys that create a circular reference."""
        return "".join(self._closing_statements).encode()


class _ScriptTable(SqlFormat):
    """One table of the file."""

    keys: TableKeys | None = None

    def start(self) -> bytes:
        """Return the CREATE TABLE statement if requested."""
        return self.create_table_sql(self.keys).encode() if self.options.create_table else b""
