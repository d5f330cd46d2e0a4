"""Fields of the category choice, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class CartesianField(Field):
    """All combinations of several lists, in order.

    lists: The lists.
    separator: Separator between the parts.
    part: Outputs only the value from this list (1 is the first), so that several fields with the same
        lists form the combinations.
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
    """A random value from a custom list, with equal probability.

    values: The values: texts, numbers, booleans, null or JSON values. If all have one type, it is kept;
        mixed types become text.
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
    """A value from a column of a workspace file: random, row by row, or looked up by another field.

    on_empty: What to do if the query returns no rows.
    default: Value if the query returns no rows and on_empty is default.
    kind: Data type of the values. Default: the type in the source.
    decimals: Decimal places, if kind is decimal.
    file: A workspace file: CSV, JSON, NDJSON, XLSX or Parquet.
    column: Column with the values.
    mode: random: any row of the file. sequential: row by row, starting over after the last. lookup: the
        first row whose key_column equals the value of the field in key.
    key: For lookup: a field of the row.
    key_column: For lookup: the column of the file to compare with. Default: the column with the field's
        name.
    sheet: Sheet of a workbook. Default: the first.
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
    """A random value from a list, with optional weights.

    values: The values, as for a custom list.
    weights: A relative weight for each value, in the same order. Default: equal weights.
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
    """Custom values in order, repeated.

    values: The values, as for a custom list.
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
    """Another field's value, translated with a lookup map.

    field: Name of the field to look up.
    map: Output for each value of the field. Values are compared as text.
    default: Output for values that are not in the map, including blanks.
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
    """A random value from a list with weights.

    values: The values, as for a custom list.
    weights: A relative weight for each value, in the same order.
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
