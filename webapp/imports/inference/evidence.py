"""What is known about a column of a database when its field is chosen."""

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
    """One column, and what is known about it."""

    entity: Entity
    column: Column
    rule: Rule
    values: Sequence[Any]
    """Of the sample, without blanks."""
    nulls: int
    unique: bool
    is_part_of_composite_key: bool
    """Unique together with other columns."""
    vocabulary: Vocabulary
    rows: int = limits.DEFAULT_QUANTITY
    """Of the template, if no number is requested."""
    notes: list[str] = field(default_factory=list)
    locale: str | None = None
    """Of the language that the names of the table are in, if they are not in English."""
    is_guessed: bool = False
    """Whether neither names nor values nor constraints decided: any other field would do as well."""

    @property
    def max_chars(self) -> int | None:
        """The maximum number of characters."""
        lengths = [item for item in (self.column.max_length, self.rule.max_length) if item is not None]
        return min(lengths) if lengths else None


def definition(name: str, kind: str, options: Mapping[str, Any] | None = None, **common: Any) -> Field:
    """Return a field definition without the keys that are false."""
    present = {key: value for key, value in common.items() if value is not False}
    return {"name": name, "type": kind, "options": dict(options or {}), **present}


def to_json_number(value: Decimal) -> int | float | str:
    """Return a number for JSON; as text if it exceeds 64 bits."""
    if abs(value) >= 2**63:
        return format(value, "f")
    return int(value) if value == value.to_integral_value() else float(value)
