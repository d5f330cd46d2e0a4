"""Templates as the engine reads them: parsed, with their vocabulary, and compiled."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from webapp import timestamps
from webapp.engine import plan as engine_plan
from webapp.engine import real
from webapp.engine import spec as engine_spec
from webapp.engine.bad.invalid import Invalid
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.kinship import Library
from webapp.engine.plan import Plan
from webapp.engine.spec import TemplateSpec
from webapp.errors import Fault, validation_error
from webapp.row_templates.services import vocabularies


def anchor_of(spec: dict[str, Any]) -> datetime | None:
    """The anchor of a stored spec."""
    return timestamps.parse(spec["anchor"]) if spec["anchor"] else None


def parsed_fields(
    fields: Any,
    *,
    name: str = "rows",
    locale: str | None = None,
    source: Mapping[str, Any] | None = None,
    invalid: Mapping[str, Any] | None = None,
) -> TemplateSpec:
    """Field definitions as the engine reads them, and the template's source and bad values as they are stored;
    `validation_error` with every fault, those of values (`min` above `max`) included."""
    bad = None if invalid is None else Invalid.model_validate(invalid)
    try:
        return engine_spec.parse(fields, name=name, locale=locale, source=real.stored(source), invalid=bad)
    except SpecError as error:
        raise validation_error(engine_plan.all_faults(error, vocabulary())) from None


def field_faults(fields: Any) -> list[Fault]:
    """Return the faults of field definitions that do not depend on other templates."""
    try:
        return engine_plan.value_faults(engine_spec.parse(fields), vocabulary())
    except SpecError as error:
        return engine_plan.all_faults(error, vocabulary())


def compiled(
    spec: TemplateSpec, words: Vocabulary, locale: str | None = None, library: Library | None = None
) -> Plan:
    """The plan of a parsed template; `validation_error` with every fault."""
    try:
        return engine_plan.compile_plan(spec, words, locale, library)
    except SpecError as error:
        raise validation_error(error.faults) from None


def vocabulary(wanted: str | None = None) -> Vocabulary:
    """The present vocabulary, or the one a version was saved under. Error: unavailable, as `vocabularies.opened`."""
    return vocabularies.opened(wanted)
