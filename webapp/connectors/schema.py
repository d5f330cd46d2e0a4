"""Metadata of a target: tables, columns, keys and relations, the same for every kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

# Column types that all kinds of targets are mapped to.
ColumnType = Literal[
    "text", "integer", "decimal", "float", "boolean", "date", "time", "timestamp", "timestamptz", "interval",
    "uuid", "binary", "json", "array", "enum", "objectid", "other",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, a property of an OData entity or a key of MongoDB documents."""

    name: str
    type: ColumnType
    declared: str
    """The type as the target declares it, such as `character varying(40)`."""
    nullable: bool = True
    max_length: int | None = None
    """In characters for text, in bytes for binary."""
    precision: int | None = None
    scale: int | None = None
    bits: int | None = None
    """Size of integers: 16, 32 or 64; see `unsigned`."""
    unsigned: bool = False
    key: bool = False
    """Whether it is part of the primary key."""
    unique: bool = False
    """Whether it has a unique constraint on this column only."""
    generated: str = ""
    """`identity` (the target generates a number if no value is given), `computed` (cannot be written) or
    empty."""
    default: str | None = None
    """The default as an expression of the target."""
    choices: tuple[str, ...] = ()
    """The values of an enum."""
    items: ColumnType | None = None
    """The type of an array's items."""
    comment: str = ""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the value, if the target provides one."""
    characters: str = ""
    """The characters that a text can have, if not all of Unicode: `ascii`, a code page of Python such as `cp1252`, or
    `bmp`, which are the characters up to U+FFFF."""

    @property
    def required(self) -> bool:
        """Whether a row cannot be inserted without a value for it."""
        return not self.nullable and self.default is None and not self.generated


@dataclass(frozen=True, slots=True)
class Relation:
    """A foreign key: these columns contain the key of a row of another table."""

    name: str
    columns: tuple[str, ...]
    entity: str
    """`Entity.name` of the other table."""
    entity_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    """A unique index that is not a plain constraint: over expressions, or only for rows that satisfy a condition. An
    exclusion constraint counts as one, because rows that differ in these columns satisfy it."""

    columns: tuple[str, ...]
    """The columns that it compares, including those inside expressions."""
    condition: str = ""
    """The rows that it applies to, as SQL; empty for all rows."""


_NAME: Final = re.compile(r"\"(?:[^\"]|\"\")+\"|`(?:[^`]|``)+`|\[[^\]]+\]|[^\W\d][\w$#]*")


def named_columns(expressions: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that SQL expressions name, quoted or not, in the order of `names`."""
    mentioned = {
        word.strip('"`[]').replace('""', '"').replace("``", "`")
        for expression in expressions
        for word in _NAME.findall(re.sub(r"'(?:[^']|'')*'", "''", expression))
    }
    return tuple(name for name in names if name in mentioned)


@dataclass(frozen=True, slots=True)
class Entity:
    """A table, view, collection or entity set.

    `name` is shown to users and is the `target` of a push: the plain name in the connection's own schema,
    otherwise `schema.name`. `parts` are the parts of the name that SQL quotes.
    """

    name: str
    parts: tuple[str, ...]
    fields: tuple[Column, ...]
    kind: Literal["table", "view", "collection", "entity_set", "operation", "endpoint"] = "table"
    keys: tuple[str, ...] = ()
    """Columns of the primary key, in its order."""
    uniques: tuple[tuple[str, ...], ...] = ()
    """Other unique constraints, and unique indexes without a condition."""
    relations: tuple[Relation, ...] = ()
    checks: tuple[str, ...] = ()
    comment: str = ""
    unique_indexes: tuple[UniqueIndex, ...] = ()
    obstacle: str = ""
    """Why rows cannot be written to the table, such as a partitioned table without partitions; empty if it can."""
    filled_by: str = ""
    """The table whose trigger inserts a row here for each of its own rows, if the target says so."""

    def column(self, name: str) -> Column | None:
        """Return the column with this name, or None."""
        return next((column for column in self.fields if column.name == name), None)


def by_stored_columns(entity: Entity, computed: Mapping[str, str]) -> Entity:
    """Return a table whose unique constraints over computed columns are unique indexes over the columns that their
    expressions name. `computed` are the expressions by column."""
    names = [column.name for column in entity.fields]
    uniques, indexes = [], []

    def stored(columns: tuple[str, ...]) -> tuple[str, ...]:
        parts = (named_columns([computed[item]], names) if item in computed else (item,) for item in columns)
        return tuple(dict.fromkeys(name for part in parts for name in part))

    for columns in entity.uniques:
        if computed.keys() & set(columns):
            indexes.append(UniqueIndex(stored(columns)))
        else:
            uniques.append(columns)
    indexes += [UniqueIndex(stored(index.columns), index.condition) for index in entity.unique_indexes]
    unique_indexes = tuple(dict.fromkeys(item for item in indexes if item.columns))
    return replace(entity, uniques=tuple(uniques), unique_indexes=unique_indexes)


@dataclass(frozen=True, slots=True)
class Metadata:
    """All metadata of a target."""

    kind: str
    version: str
    """The server's version as users see it, such as `PostgreSQL 15.4`."""
    entities: tuple[Entity, ...]
    base_url: str = ""
    """The base URL that an API description declares."""
