"""Fields of the category structure, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class ArrayField(Field):
    """An array of values, each made by one field: tags, scores, readings.

    of: What the elements are: a field with type and options, and without a name.
    count: Elements of the array: a number, or min and max.
    """

    type_name = "array"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        of: dict[str, Any] | None = UNSET,
        count: dict[str, Any] | int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"of": of, "count": count})


class JsonField(Field):
    """An object, or an array of objects, with fields of its own, as one JSON text.

    fields: Field definitions, as in a template.
    array: Makes an array of objects.
    count: Elements of the array: a number, or min and max.
    """

    type_name = "json"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        fields: list[Any] = UNSET,
        array: bool = UNSET,
        count: dict[str, Any] | int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"fields": fields, "array": array, "count": count})


class NestedField(Field):
    """An object, or an array of objects, with fields of its own.

    fields: Field definitions, as in a template.
    array: Makes an array of objects.
    count: Elements of the array: a number, or min and max.
    """

    type_name = "nested"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        fields: list[Any] = UNSET,
        array: bool = UNSET,
        count: dict[str, Any] | int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"fields": fields, "array": array, "count": count})


class TemplateField(Field):
    """Rows of another template inside each row: its children, where it refers to this one by cardinality.

    template_id: The template; self for its own.
    foreign_key: Its reference to this template, which is left out.
    array: An array of rows, or one row.
    quantity: Rows of the array.
    count: Rows of the array, where that differs: min and max.
    max_depth: How deep templates stand in one another.
    """

    type_name = "template"

    def __init__(
        self,
        name: str,
        template_id: str,
        *,
        options: Mapping[str, Any] | None = None,
        foreign_key: str | None = UNSET,
        array: bool = UNSET,
        quantity: int | None = UNSET,
        count: dict[str, Any] | None = UNSET,
        max_depth: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {
                "template_id": template_id,
                "foreign_key": foreign_key,
                "array": array,
                "quantity": quantity,
                "count": count,
                "max_depth": max_depth,
            },
        )
