"""Fields of the category logic, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AggregateField(Field):
    """The sum, count, minimum, maximum, average or first value over the rows of a child template.

    template_id: The child template. It must have a reference with cardinality to this template.
    function: Aggregate function for the children's values.
    field: Field of the child template. Not needed for count.
    decimals: Decimal places of an average. Default: two more than the values.
    """

    type_name = "aggregate"

    def __init__(
        self,
        name: str,
        template_id: str,
        *,
        options: Mapping[str, Any] | None = None,
        function: Literal["sum", "count", "min", "max", "avg", "first", "any", "span"] = UNSET,
        field: str | None = UNSET,
        decimals: int | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {"template_id": template_id, "function": function, "field": field, "decimals": decimals},
        )


class CaseField(Field):
    """A value that depends on conditions on other fields.

    cases: Conditions with values, checked in order: {when, then} or {when, then_formula}.
    else_: Value if no condition is true. Default: blank.
    else_formula: Formula for the value, as an alternative to else.
    """

    type_name = "case"

    def __init__(
        self,
        name: str,
        cases: list[dict[str, Any]],
        *,
        options: Mapping[str, Any] | None = None,
        else_: Any = UNSET,
        else_formula: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"cases": cases, "else": else_, "else_formula": else_formula})


class ConstantField(Field):
    """The same value in every row.

    value: Any JSON value.
    """

    type_name = "constant"

    def __init__(
        self, name: str, value: Any, *, options: Mapping[str, Any] | None = None, **common: Unpack[Common]
    ) -> None:
        self._set(name, options, common, {"value": value})


class DerivedField(Field):
    """Text derived from other fields of the row, such as {{first}}.{{last}}.

    value: Text with {{field}} or {{formula}} placeholders. Filters: json, upper, lower, date('YYYY-MM-
        DD'). Without braces: a formula.
    """

    type_name = "derived"

    def __init__(
        self, name: str, value: str, *, options: Mapping[str, Any] | None = None, **common: Unpack[Common]
    ) -> None:
        self._set(name, options, common, {"value": value})


class FormulaField(Field):
    """A value calculated from other fields, such as price * quantity or upper(name).

    expression: A formula with field names, numbers, texts, + - * / // %, comparisons, and, or, not, and
        functions: round(price * 1.19, 2).
    """

    type_name = "formula"

    def __init__(
        self,
        name: str,
        expression: str,
        *,
        options: Mapping[str, Any] | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"expression": expression})


class NullField(Field):
    """Blank in every row.

    value: Always null.
    """

    type_name = "null"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        value: None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"value": value})


class PreviousField(Field):
    """Another field's value in the previous row, or in an earlier row.

    field: Name of the field to read.
    step: Number of rows to go back.
    default: Value for the first rows, which have no earlier row. Default: blank.
    """

    type_name = "previous"

    def __init__(
        self,
        name: str,
        field: str,
        *,
        options: Mapping[str, Any] | None = None,
        step: int = UNSET,
        default: Any = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"field": field, "step": step, "default": default})


class RunningTotalField(Field):
    """Running total: the sum of another field from the first row to this one.

    field: Name of the field to sum up: integers, or decimals with a fixed number of decimal places.
    within: Where the total starts: at the first row, or at the first child of each parent.
    """

    type_name = "running_total"

    def __init__(
        self,
        name: str,
        field: str,
        *,
        options: Mapping[str, Any] | None = None,
        within: Literal["table", "parent"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"field": field, "within": within})


class TemplateStringField(Field):
    """Text with placeholders for other fields of the row, such as Dear {{first}} {{last}}.

    value: Text with {{field}} or {{formula}} placeholders. Filters: json, upper, lower, date('YYYY-MM-
        DD').
    """

    type_name = "template_string"

    def __init__(
        self, name: str, value: str, *, options: Mapping[str, Any] | None = None, **common: Unpack[Common]
    ) -> None:
        self._set(name, options, common, {"value": value})
