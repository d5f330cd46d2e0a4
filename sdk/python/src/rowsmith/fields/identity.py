"""Fields of the category identity, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class DoiField(Field):
    """A digital object identifier, such as 10.5281/zk4821."""

    type_name = "doi"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ForeignKeyField(Field):
    """An existing key, drawn for each row from a table of a connection.

    on_empty: What to do if the query returns no rows.
    default: Value if the query returns no rows and on_empty is default.
    kind: Data type of the values. Default: the type in the source.
    decimals: Decimal places, if kind is decimal.
    connection_id: The connection to the database.
    table: Table that contains the keys.
    column: Column with the value.
    filter: Optional filter: a condition in the target's query language (the part after WHERE).
    """

    type_name = "foreign_key"

    def __init__(
        self,
        name: str,
        connection_id: str,
        table: str,
        column: str,
        *,
        options: Mapping[str, Any] | None = None,
        on_empty: Literal["error", "blank", "default"] = UNSET,
        default: str | int | float | bool | None = UNSET,
        kind: Literal["text", "integer", "decimal", "float", "boolean", "date", "datetime"] | None = UNSET,
        decimals: int = UNSET,
        filter: str = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {
                "on_empty": on_empty,
                "default": default,
                "kind": kind,
                "decimals": decimals,
                "connection_id": connection_id,
                "table": table,
                "column": column,
                "filter": filter,
            },
        )


class ImeiField(Field):
    """An International Mobile Equipment Identity with a valid check digit."""

    type_name = "imei"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MongodbObjectidField(Field):
    """A 24-digit MongoDB ObjectId that increases from row to row."""

    type_name = "mongodb_objectid"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class NanoidField(Field):
    """A short URL-safe random identifier.

    size: Number of characters.
    """

    type_name = "nanoid"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        size: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"size": size})


class PositionInParentField(Field):
    """Position of a row among its parent's children (1, 2, 3 ...). Requires a reference with cardinality.

    start: Value of the first child.
    """

    type_name = "position_in_parent"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        start: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"start": start})


class ReferenceField(Field):
    """A field of a row in another template: a foreign key, or any other field of the referenced row.

    template_id: The referenced template, or self.
    field: Field of the referenced row. Default: its key.
    cardinality: Number of rows of this template per row of the referenced template.
    layout: With cardinality: whether the children of a parent are consecutive rows.
    distribution: How rows are chosen: uniform, zipf (a few often) or normal (around the middle).
    exponent: Exponent of zipf. Default: 1.
    roots: For self: number of root rows (the first rows, without a parent).
    differs_from: Another reference to the same template, whose row this one never takes.
    """

    type_name = "reference"

    def __init__(
        self,
        name: str,
        template_id: str,
        *,
        options: Mapping[str, Any] | None = None,
        field: str | None = UNSET,
        cardinality: dict[str, Any] | None = UNSET,
        layout: Literal["together", "mixed"] = UNSET,
        distribution: Literal["uniform", "zipf", "normal"] = UNSET,
        exponent: float | str | None = UNSET,
        roots: int = UNSET,
        differs_from: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {
                "template_id": template_id,
                "field": field,
                "cardinality": cardinality,
                "layout": layout,
                "distribution": distribution,
                "exponent": exponent,
                "roots": roots,
                "differs_from": differs_from,
            },
        )


class ULIDField(Field):
    """A 26-character identifier that sorts by time."""

    type_name = "ulid"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UUIDField(Field):
    """A universally unique identifier, random (version 4) or ordered by time (version 7).

    version: 4: random. 7: ordered by time, increasing from row to row, starting at now.
    primary_key: Primary key: unique and never blank.
    """

    type_name = "uuid"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        version: Literal[4, 7] = UNSET,
        primary_key: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"version": version, "primaryKey": primary_key})


class UuidV1Field(Field):
    """An identifier in the form of UUID version 1."""

    type_name = "uuid_v1"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})
