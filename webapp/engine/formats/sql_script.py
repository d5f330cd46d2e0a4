"""Several tables in one SQL file, with the keys that hold them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.engine.formats.sql_dialects import DIALECTS
from webapp.engine.formats.sql_format import ForeignKey, SqlFormat, TableKeys
from webapp.engine.formats.together import Table, Together


@dataclass(frozen=True, slots=True)
class Relation:
    """A column that refers to another table's; tables by their places in the file."""

    child: int
    child_column: str
    parent: int
    parent_column: str


@dataclass(frozen=True, slots=True)
class Keys:
    """What identifies the rows of each table (None: nothing does), and which columns refer to which."""

    primary: Sequence[str | None]
    relations: Sequence[Relation]


class SqlScript(Together):
    """One table after another, parents first, each with CREATE TABLE where that is wanted.

    A key to a table that comes later is added at the end, when the rows of both are there; a dialect that cannot
    alter tables goes without it, and the file says so. A key on a column that the dialect can have none on (a text
    without bound, an object) is left out, and so are those that refer to it.
    """

    media_type = SqlFormat.media_type
    extension = SqlFormat.extension

    def __init__(self, tables: Sequence[Table], keys: Keys) -> None:
        self._writers = [
            _Part(table.schema, table.options_of(SqlFormat.Options), title=table.title) for table in tables
        ]
        super().__init__(self._writers)
        options = tables[0].options_of(SqlFormat.Options)
        self._dialect = DIALECTS[options.dialect]
        self._late: list[str] = []
        if options.create_table:
            self._hold_together(keys)

    def _hold_together(self, keys: Keys) -> None:
        types: list[dict[str, str]] = [{} for _ in self._writers]
        foreign: list[list[ForeignKey]] = [[] for _ in self._writers]
        unique: list[list[str]] = [[] for _ in self._writers]
        primary = [
            name if name and writer.key_type(name) else None
            for name, writer in zip(keys.primary, self._writers, strict=True)
        ]
        for relation in sorted(keys.relations, key=lambda one: one.parent):
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
            wanted = types[relation.parent].get(relation.parent_column, of_parent[1])
            types[relation.child][relation.child_column] = wanted
            key = ForeignKey(relation.child_column, parent.table, relation.parent_column)
            if self._at_once(relation):
                foreign[relation.child].append(key)
            else:
                self._late.append(self._added(child, key))
        for place, writer in enumerate(self._writers):
            writer.keys = TableKeys(primary[place], tuple(unique[place]), tuple(foreign[place]), types[place])

    def _at_once(self, relation: Relation) -> bool:
        """Whether the key can stand in the CREATE TABLE. Of a table that refers to itself, rows come after those
        they refer to; where the key can be added later, even that need not be relied on."""
        if relation.parent == relation.child:
            return not self._dialect.alters
        return relation.parent < relation.child

    def _added(self, child: SqlFormat, key: ForeignKey) -> str:
        clause = key.clause(self._dialect)
        if not self._dialect.alters:
            return f"-- {child.table}: {clause} would close a ring\n"
        return f"ALTER TABLE {child.table} ADD {clause};\n"

    def start(self) -> bytes:
        """What the session needs."""
        return self._dialect.preamble.encode()

    def finish(self) -> bytes:
        """The keys that close a ring."""
        return "".join(self._late).encode()


class _Part(SqlFormat):
    """One table of the file."""

    keys: TableKeys | None = None

    def start(self) -> bytes:
        """The CREATE TABLE, where it is wanted."""
        return self.create(self.keys).encode() if self.options.create_table else b""
