"""Fields of the category identity, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class ForeignKeyField(Field):
    """A key that exists already in a table of a connection: each row draws one.

    on_empty: What to do where the answer has no rows.
    default: The value where the answer has no rows and on_empty is default.
    kind: What the values are taken as; as the target has them, if not said.
    decimals: Places after the point, where kind is decimal.
    connection_id: The connection to the database.
    table: The table whose keys are drawn.
    column: The column that is shown.
    filter: Which rows may be drawn: a condition in the target's own language, as after WHERE.
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


class MongodbObjectidField(Field):
    """A 24-digit MongoDB ObjectId; it rises from row to row."""

    type_name = "mongodb_objectid"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class NanoidField(Field):
    """A short URL-safe random identifier.

    size: Letters.
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
    """The place of a row among its parent's children: 1, 2, 3 and so on, for rows with a cardinality.

    start: What the first child has.
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
    """A field of a row of another template: a foreign key, or any other field of the same row.

    template_id: The template whose rows are taken; self for its own.
    field: Which of its fields is shown; its key, if not said.
    cardinality: How many rows of this template each row of the other one has.
    layout: With cardinality: whether the children of a row lie beside each other.
    distribution: How rows are chosen: evenly, a few often, or around the middle.
    exponent: How steep zipf is; 1 if not said.
    roots: For self: how many first rows have none above.
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
            },
        )


class ULIDField(Field):
    """A 26-character identifier that sorts by time."""

    type_name = "ulid"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UUIDField(Field):
    """A universally unique identifier, random (version 4) or ordered by time (version 7).

    version: 4: random. 7: rises from row to row, starting at now.
    primary_key: The key of the row: unique, and never blank.
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
