"""Metadata of a target: tables, columns, keys and relations, the same for every kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

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
    """A unique index that is no plain constraint: over expressions, or only of the rows that satisfy a condition. An
    exclusion constraint counts as one, because rows that differ in these columns satisfy it."""

    columns: tuple[str, ...]
    """The columns that it compares, those inside expressions included."""
    condition: str = ""
    """The rows that it applies to, as SQL; empty for all rows."""


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
    filled_by: str = ""
    """The table whose trigger inserts a row here for each of its own rows, if the target says so."""

    def column(self, name: str) -> Column | None:
        """Return the column with this name, or None."""
        return next((column for column in self.fields if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Metadata:
    """All metadata of a target."""

    kind: str
    version: str
    """The server's version as users see it, such as `PostgreSQL 15.4`."""
    entities: tuple[Entity, ...]
    base_url: str = ""
    """The base URL that an API description declares."""
