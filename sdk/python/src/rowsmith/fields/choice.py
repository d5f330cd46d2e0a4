"""Fields of the category choice, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class CartesianField(Field):
    """Every combination of several lists, one after the other.

    lists: The lists.
    separator: Stands between the parts.
    part: Writes the value from this list alone (1 is the first), so that several fields with the same
        lists share the combinations.
    """

    type_name = "cartesian"

    def __init__(
        self,
        name: str,
        lists: list[list[Any]],
        *,
        options: Mapping[str, Any] | None = None,
        separator: str = UNSET,
        part: int | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"lists": lists, "separator": separator, "part": part})


class CustomField(Field):
    """One of your own values, each as likely.

    values: The values: texts, numbers, true and false, null, or whole JSON values. One kind for all keeps
        its type; mixed kinds become text.
    """

    type_name = "custom"

    def __init__(
        self,
        name: str,
        values: list[Any],
        *,
        options: Mapping[str, Any] | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"values": values})


class DatasetColumnField(Field):
    """A value of a column of a workspace file: drawn, row by row, or looked up by another field.

    on_empty: What to do where the answer has no rows.
    default: The value where the answer has no rows and on_empty is default.
    kind: What the values are taken as; as the target has them, if not said.
    decimals: Places after the point, where kind is decimal.
    file: A workspace file: CSV, JSON, NDJSON, XLSX or Parquet.
    column: The column whose values are taken.
    mode: random: any row of the file; sequential: row by row, from the first again after the last;
        lookup: the first row whose key_column has the value of the field key.
    key: Of lookup: a field of the row.
    key_column: Of lookup: the column of the file that is compared with it; the one of the field's name,
        if not said.
    sheet: Of a workbook; else the first.
    """

    type_name = "dataset_column"

    def __init__(
        self,
        name: str,
        file: str,
        column: str,
        *,
        options: Mapping[str, Any] | None = None,
        on_empty: Literal["error", "blank", "default"] = UNSET,
        default: str | int | float | bool | None = UNSET,
        kind: Literal["text", "integer", "decimal", "float", "boolean", "date", "datetime"] | None = UNSET,
        decimals: int = UNSET,
        mode: Literal["random", "sequential", "lookup"] = UNSET,
        key: str | None = UNSET,
        key_column: str | None = UNSET,
        sheet: str | None = UNSET,
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
                "file": file,
                "column": column,
                "mode": mode,
                "key": key,
                "key_column": key_column,
                "sheet": sheet,
            },
        )


class EnumField(Field):
    """One of several values, with a weight each if you like.

    values: The values, as in a custom list.
    weights: A weight for each value, in the same order; any scale. As likely as each other if left out.
    """

    type_name = "enum"

    def __init__(
        self,
        name: str,
        values: list[Any],
        *,
        options: Mapping[str, Any] | None = None,
        weights: list[float] | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"values": values, "weights": weights})


class ListSequentialField(Field):
    """Your own values in order, over and over.

    values: The values, as in a custom list.
    """

    type_name = "list_sequential"

    def __init__(
        self,
        name: str,
        values: list[Any],
        *,
        options: Mapping[str, Any] | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"values": values})


class MappedField(Field):
    """Another field's value, looked up in a map of your own.

    field: Name of the field to look up.
    map: What to write for each value of the field; values are compared as text.
    default: Written where the map says nothing, blank values included.
    """

    type_name = "mapped"

    def __init__(
        self,
        name: str,
        field: str,
        map: dict[str, Any],
        *,
        options: Mapping[str, Any] | None = None,
        default: Any = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"field": field, "map": map, "default": default})


class WeightedListField(Field):
    """One of several values, each with a weight.

    values: The values, as in a custom list.
    weights: A weight for each value, in the same order; any scale.
    """

    type_name = "weighted_list"

    def __init__(
        self,
        name: str,
        values: list[Any],
        weights: list[float],
        *,
        options: Mapping[str, Any] | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"values": values, "weights": weights})
