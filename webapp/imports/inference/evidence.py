"""A column of a database, and all that is known of it when a field is to be made for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from webapp import limits
from webapp.connectors.schema import Column, Entity
from webapp.engine.data.vocabulary import Vocabulary
from webapp.imports.inference.checks import Rule

Field = dict[str, Any]


@dataclass(slots=True)
class ColumnEvidence:
    """One column, and all that is known of it."""

    entity: Entity
    column: Column
    rule: Rule
    values: Sequence[Any]
    """Of the sample, without blanks."""
    nulls: int
    unique: bool
    joined: bool
    """Unique together with other columns."""
    vocabulary: Vocabulary
    rows: int = limits.DEFAULT_QUANTITY
    """Of the template, when none are asked for."""
    notes: list[str] = field(default_factory=list)
    locale: str | None = None
    """Of the language that the names of the table are in, if they are not in English."""
    guessed: bool = False
    """Whether neither names nor values nor constraints decided: any other field would do as well."""

    @property
    def longest(self) -> int | None:
        """Characters that fit."""
        ends = [one for one in (self.column.max_length, self.rule.longest) if one is not None]
        return min(ends) if ends else None


def definition(name: str, kind: str, options: Mapping[str, Any] | None = None, **common: Any) -> Field:
    """A field definition; keys that are false are left out."""
    said = {key: value for key, value in common.items() if value is not False}
    return {"name": name, "type": kind, "options": dict(options or {}), **said}


def jsonable(value: Decimal) -> int | float | str:
    """A number as JSON has it; as text where it is beyond 64 bits."""
    if abs(value) >= 2**63:
        return format(value, "f")
    return int(value) if value == value.to_integral_value() else float(value)
