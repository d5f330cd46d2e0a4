"""A masked copy of a file, a table or a query: detect personal columns, and create the template that masks them.

`proposed` analyzes a sample and proposes a masking for each column; users can change it; `fields` creates the field
definitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webapp import limits
from webapp.access.actors import Actor, require
from webapp.engine.masking import STRATEGIES, fitting
from webapp.engine.source_data import SourceSpec
from webapp.engine.types.registry import find
from webapp.errors import Fault, validation_error
from webapp.real_data.services import detection
from webapp.sources.services import sources

AS_IT_IS: Final = "source_column"
"""The field type that copies a column unchanged."""
_DATES: Final = "date_of_birth"
_UNKNOWN: Final = "redact"
"""The masking strategy for columns of unknown kind."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The masking of one column: `strategy` applies if it is `sensitive`, `person` (a column) if the strategy is
    shift."""

    name: str
    taken: bool = True
    sensitive: bool = False
    type: str = AS_IT_IS
    strategy: str = _UNKNOWN
    person: str = ""
    format: str = ""
    """Of the dates of the column, if they are not ISO 8601."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A column, its classification, and its proposed masking."""

    choice: Choice
    confidence: float
    reason: str
    told: str
    """The kind of personal data as text: `e-mail addresses`; "" if none was detected."""


def proposed(actor: Actor, spec: SourceSpec) -> list[Proposal]:
    """The columns of a source, in their order. Errors: validation_error, payload_too_large, those of connections."""
    require(actor, "write")
    sample = sources.sample(actor, spec, limits.CLASSIFY_ROWS)
    if len(sample.column_names) > limits.MAX_FIELDS:
        text = f"The source has {len(sample.column_names):,} columns; a template has at most {limits.MAX_FIELDS}."
        raise validation_error(
            [Fault("source", "too_many", text, "Take a query or a file of fewer columns.")]
        )
    name = spec.table or (spec.file or "").rpartition("/")[2].partition(".")[0]
    return [_proposal(item) for item in detection.of_sample(name, sample)]


def _proposal(found: detection.Found) -> Proposal:
    asked = found.masking or {}
    kind = found.type if found.sensitive and found.type else AS_IT_IS
    choice = Choice(
        found.name,
        sensitive=found.sensitive,
        type=kind,
        strategy=str(asked.get("strategy", _UNKNOWN)),
        person=str(asked.get("person", "")),
        format=str((found.options or {}).get("format", "")),
    )
    told = detection.KINDS[found.kind].told if found.kind else ""
    return Proposal(choice, found.confidence, found.reason, told)


def quantity(actor: Actor, spec: SourceSpec) -> int:
    """Return the number of rows that a copy has by default: all of the source, as far as they are counted."""
    return sources.rows_of(actor, spec, limits.ENTERPRISE_MAX.rows_per_generation) or limits.DEFAULT_QUANTITY


def types() -> list[tuple[str, str]]:
    """The types that a column of personal values may be read as, and their names for people."""
    known = dict.fromkeys([AS_IT_IS, *(kind.type for kind in detection.KINDS.values())])
    return [(name, kind.label) for name in known if (kind := find(name)) is not None]


def strategies(type_name: str) -> tuple[str, ...]:
    """Return the masking strategies of a field type."""
    kind = find(type_name)
    return STRATEGIES if kind is None else fitting(kind)


def fields(chosen: Sequence[Choice]) -> list[dict[str, Any]]:
    """Return the field definitions of the selected columns. Error: validation_error if none is selected."""
    taken = [item for item in chosen if item.taken]
    if not taken:
        text = "No column is taken."
        raise validation_error([Fault("fields", "too_few", text, "Tick the ones that the copy is to have.")])
    return [_field(item) for item in taken]


def _field(chosen: Choice) -> dict[str, Any]:
    if not chosen.sensitive:
        return {"name": chosen.name, "type": AS_IT_IS}
    masking: Mapping[str, Any] = {"strategy": chosen.strategy}
    if chosen.strategy == "shift":
        masking = {**masking, "person": chosen.person or None}
    made = {"name": chosen.name, "type": chosen.type, "sensitive": True, "masking": dict(masking)}
    return made | ({"options": {"format": chosen.format}} if chosen.format and chosen.type == _DATES else {})
