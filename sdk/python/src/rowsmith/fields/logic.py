"""Fields of the category logic, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AggregateField(Field):
    """A sum, count, least, largest, average or first value over the rows of a child template.

    template_id: The child template: one with a reference with cardinality to this one.
    function: What is made of the children's values.
    field: Which of the child's fields; count needs none.
    decimals: Places of an average; two more than its values.
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
    """One value or another, by conditions on other fields.

    cases: Conditions with their values, tried in order: {when, then} or {when, then_formula}.
    else_: The value where no condition holds; blank if left out.
    else_formula: Instead of else: a formula for the value.
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
    """Text built from other fields of the row, such as {{first}}.{{last}}.

    value: Text with {{field}} or {{formula}} in it; filters: json, upper, lower, date('YYYY-MM-DD').
        Without braces: a formula.
    """

    type_name = "derived"

    def __init__(
        self, name: str, value: str, *, options: Mapping[str, Any] | None = None, **common: Unpack[Common]
    ) -> None:
        self._set(name, options, common, {"value": value})


class FormulaField(Field):
    """A value reckoned from other fields, such as price * quantity or upper(name).

    expression: Field names, numbers, texts, + - * / // %, comparisons, and, or, not, functions:
        round(price * 1.19, 2).
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
    """Another field's value in the row before, or some rows before.

    field: Name of the field to read.
    step: How many rows back.
    default: Written in the first rows, which have none so far back; blank if left out.
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
    """The sum of another field from the first row up to this one.

    field: Name of the field to add up: whole numbers, or decimals with a fixed number of places.
    within: Where it begins: with the first row, or with the first child of each parent.
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
    """A text with other fields of the row in it, such as Dear {{first}} {{last}}.

    value: Text with {{field}} or {{formula}} in it; filters: json, upper, lower, date('YYYY-MM-DD').
    """

    type_name = "template_string"

    def __init__(
        self, name: str, value: str, *, options: Mapping[str, Any] | None = None, **common: Unpack[Common]
    ) -> None:
        self._set(name, options, common, {"value": value})
