"""What a target holds: tables, their columns, keys and relations, whatever kind of target it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

# What a column holds, whatever the target calls it.
ColumnType = Literal[
    "text", "integer", "decimal", "float", "boolean", "date", "time", "timestamp", "timestamptz", "interval",
    "uuid", "binary", "json", "array", "enum", "objectid", "other",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, a property of an entity, a key of a collection's documents."""

    name: str
    type: ColumnType
    declared: str
    """As the target writes it: `character varying(40)`."""
    nullable: bool = True
    max_length: int | None = None
    """Characters of text, bytes of binary."""
    precision: int | None = None
    scale: int | None = None
    bits: int | None = None
    """Of integers: 16, 32, 64; unsigned ones have `unsigned`."""
    unsigned: bool = False
    key: bool = False
    """Part of the primary key."""
    unique: bool = False
    """Unique by itself."""
    generated: str = ""
    """`identity` (the target counts it where it is left out), `computed` (never to be written), or empty."""
    default: str | None = None
    """The target's own expression."""
    choices: tuple[str, ...] = ()
    """Of an enum."""
    items: ColumnType | None = None
    """Of an array: what it holds."""
    comment: str = ""
    schema: Mapping[str, Any] | None = None
    """JSON Schema of what it takes, where the target tells one."""

    @property
    def required(self) -> bool:
        """A row cannot be inserted without it."""
        return not self.nullable and self.default is None and not self.generated


@dataclass(frozen=True, slots=True)
class Relation:
    """A foreign key: these columns hold the key of a row of another table."""

    name: str
    columns: tuple[str, ...]
    entity: str
    """The other table's `Entity.name`."""
    entity_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entity:
    """A table, view, collection or entity set. `name` is what a person picks and a push names as its `target`:
    the plain name in the connection's own schema, `schema.name` elsewhere. `parts` is what SQL quotes."""

    name: str
    parts: tuple[str, ...]
    fields: tuple[Column, ...]
    kind: Literal["table", "view", "collection", "entity_set", "operation", "endpoint"] = "table"
    keys: tuple[str, ...] = ()
    """Columns of the primary key, in its order."""
    uniques: tuple[tuple[str, ...], ...] = ()
    """Other unique constraints and unique indexes without conditions."""
    relations: tuple[Relation, ...] = ()
    checks: tuple[str, ...] = ()
    comment: str = ""

    def column(self, name: str) -> Column | None:
        """The column of that name."""
        return next((one for one in self.fields if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a target holds."""

    kind: str
    version: str
    """The server's own, for people: `PostgreSQL 15.4`."""
    entities: tuple[Entity, ...]
    base_url: str = ""
    """Where an API says that it is."""
