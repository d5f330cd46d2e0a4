"""What the conformance suite wants of a kind of connection. Every test of `test_*_everywhere.py` runs over every kind.

To add a kind:

1. Write `tests/connectors/kind_<name>.py` with one subclass of `Kind` (or of `SqlKind`, which writes the DDL and needs
   only types, a way to run a statement and quoting). It makes a database, schema or file with a unique name in
   `start` and drops it in `stop`; it reads delivered rows through a separate connection (`rows`), never
   through the connector under test.
2. Say in `lacks` what the target itself cannot do, in the words of `ABILITIES`: those tests are then skipped with the
   reason. Nothing is listed there because our connector cannot do it.
3. Say in `kept` how a value comes back where the target keeps it otherwise than it was sent (Oracle's empty text is
   NULL, MySQL's DATETIME has no zone).
4. Add the class to `ALL` at the end of `tests/connectors/conftest.py`.

The tests also run over a MongoDB server that we did not write: tests/mongodb.

Db2 is not among them, for want of a server: `test_db2*.py` hold its statements as text, and what is made of answers in
their documented shape. Oracle's statements are run apart, by `test_oracle.py`.

`unavailable()` answers why the target is not there on this machine; the tests are then skipped with that reason.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from webapp.connectors.base import Connector, Session
from webapp.net.gate import Gate

ABILITIES = {
    "foreign_key": "has no foreign keys",
    "check": "has no checks",
    "not_null": "has no required columns",
    "unique": "has no unique constraints",
    "too_long": "does not limit the length of text",
    "identity": "makes no keys by itself",
    "permission": "has no accounts with fewer rights",
    "cut": "has no connection that a server could cut",
    "held": "cannot be queried while the old session exists",
    "create": "needs no tables",
    "defaults": "has no defaults",
    "arrays": "has no arrays",
    "transactions": "has no transactions",
    "types": "takes values of any type in any column",
    "keys": "has no key but its own",
    "precision": "keeps no precision of decimals",
}
GATE = Gate(["127.0.0.0/8", "::1/128"])


@dataclass(frozen=True)
class Col:
    """A column of a test's table. `type` is a `base.ColumnType`."""

    type: str = "integer"
    length: int | None = None
    precision: int = 12
    scale: int = 2
    null: bool = True
    key: bool = False
    unique: bool = False
    identity: bool = False
    refers: tuple[str, str] | None = None
    """Table and column."""
    least: int | None = None
    """A check: no value below it."""
    default: str | None = None
    """As SQL writes it."""


@dataclass(frozen=True)
class Table:
    """A test's table, which a kind makes in its own way."""

    name: str
    columns: dict[str, Col] = field(default_factory=dict)


class Kind(ABC):
    """One kind of target for one test."""

    name: str
    lacks: frozenset[str] = frozenset()
    added: tuple[str, ...] = ()
    """Columns that every table has."""
    other_names: frozenset[str] = frozenset()
    """Names that mean something else to the target."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = f"rowsmith_{uuid.uuid4().hex[:16]}"

    @classmethod
    @abstractmethod
    def unavailable(cls) -> str | None:
        """Why it cannot be had on this machine; None where it can."""

    @abstractmethod
    def start(self) -> None:
        """Make the empty database."""

    @abstractmethod
    def stop(self) -> None:
        """Drop it, even if other sessions are still connected."""

    @abstractmethod
    def connector(self, *, read_only: bool = False) -> Connector:
        """The connector under test."""

    def stranger(self) -> Connector:
        """A connector whose account may sign in, and may not write to the test's tables."""
        raise NotImplementedError

    def cut(self, session: Session) -> None:
        """End a session's connection as the server does."""
        raise NotImplementedError

    @abstractmethod
    def make(self, table: Table) -> None:
        """Make a table."""

    @abstractmethod
    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """All committed rows of a table, ordered by their first column, as the kind's own driver gives them."""

    def kept(self, type: str, value: Any) -> Any:
        """How `rows` gives back a value that was sent for a column of this type."""
        return value

    def told(self, type: str) -> str:
        """What metadata call a column that was made with this type."""
        return type


class SqlKind(Kind):
    """A kind that speaks SQL. `types` are by `base.ColumnType`; `{n}`, `{p}`, `{s}` are length, precision, scale."""

    types: ClassVar[dict[str, str]]
    identity: str
    """What follows the name of a column whose values the target counts."""
    quotes = ('"', '"')
    table_tail = ""

    @abstractmethod
    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Carry out a statement over a connection of the test's own, committed; its rows, if any."""

    def quoted(self, name: str) -> str:
        start, end = self.quotes
        return start + name.replace(end, end + end) + end

    def declared(self, col: Col) -> str:
        word = "varchar" if col.type == "text" and col.length else col.type
        return self.types[word].format(n=col.length, p=col.precision, s=col.scale)

    def make(self, table: Table) -> None:
        lines = []
        for name, col in table.columns.items():
            line = f"{self.quoted(name)} {self.identity if col.identity else self.declared(col)}"
            if col.default is not None:
                line += f" DEFAULT {col.default}"
            if not (col.null or col.identity):
                line += " NOT NULL"
            if col.unique:
                line += " UNIQUE"
            if col.least is not None:
                line += f" CHECK ({self.quoted(name)} >= {col.least})"
            lines.append(line)
        if keys := [self.quoted(name) for name, col in table.columns.items() if col.key]:
            lines.append(f"PRIMARY KEY ({', '.join(keys)})")
        for name, col in table.columns.items():
            if col.refers:
                other, column = map(self.quoted, col.refers)
                lines.append(f"FOREIGN KEY ({self.quoted(name)}) REFERENCES {other} ({column})")
        self.run(f"CREATE TABLE {self.quoted(table.name)} ({', '.join(lines)}){self.table_tail}")

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        names = ", ".join(map(self.quoted, columns)) or "*"
        return [tuple(row) for row in self.run(f"SELECT {names} FROM {self.quoted(table)} ORDER BY 1")]
