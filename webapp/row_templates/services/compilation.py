"""Parse and compile templates for the engine, and a cache of them, limited by their number and by their memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from webapp import limits, timestamps
from webapp.engine import plan as engine_plan
from webapp.engine import source_data
from webapp.engine import spec as engine_spec
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.invalid_data.settings import Invalid
from webapp.engine.plan import Plan
from webapp.engine.relations.related_plans import TemplateLibrary
from webapp.engine.spec import TemplateSpec
from webapp.errors import Fault, validation_error
from webapp.row_templates.services import vocabularies

T = TypeVar("T")


class PlanCache(Generic[T]):
    """An LRU cache. Thread-safe: two threads may compile the same plan, of which one is cached."""

    def __init__(
        self, entries: int = limits.PLAN_CACHE_ENTRIES, weight: int = limits.PLAN_CACHE_BYTES
    ) -> None:
        self._entries, self._weight = entries, weight
        self._lock = threading.Lock()
        self._plans: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._total_weight = 0

    def get(self, key: Hashable) -> T | None:
        """Return the cached plan for `key`."""
        with self._lock:
            found = self._plans.get(key)
            if found is None:
                return None
            self._plans.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, plan: T, weight: int) -> None:
        """Keep `plan`; `weight` is its memory in bytes, divided by `limits.COMPILED_SIZE_FACTOR`."""
        with self._lock:
            _, old = self._plans.pop(key, (None, 0))
            self._plans[key] = (plan, weight)
            self._total_weight += weight - old
            while self._plans and (len(self._plans) > self._entries or self._total_weight > self._weight):
                _, (_, removed) = self._plans.popitem(last=False)
                self._total_weight -= removed


# --- Compilation --------------------------------------------------------------------------------------------


def anchor_of(spec: Mapping[str, Any]) -> datetime | None:
    """Return the anchor of a stored spec."""
    return timestamps.parse(spec["anchor"]) if spec["anchor"] else None


def parse_fields(
    fields: Any,
    *,
    name: str = "rows",
    locale: str | None = None,
    source: Mapping[str, Any] | None = None,
    invalid: Mapping[str, Any] | None = None,
    request_locale: str | None = None,
) -> TemplateSpec:
    """Parse field definitions and the template's source and invalid-data settings. Raises `validation_error`
    with all faults, including those between values (`min` above `max`). `request_locale`: the locale of a request."""
    settings = None if invalid is None else Invalid.model_validate(invalid)
    try:
        return engine_spec.parse(
            fields, name=name, locale=locale, source=source_data.parse_stored(source), invalid_data=settings
        )
    except SpecError as error:
        raise validation_error(engine_plan.all_faults(error, vocabulary(), request_locale)) from None


def field_faults(fields: Any, locale: str | None = None) -> list[Fault]:
    """Return the faults of field definitions, and of their locale, that do not depend on other templates."""
    try:
        return engine_plan.value_faults(engine_spec.parse(fields, locale=locale), vocabulary())
    except SpecError as error:
        return engine_plan.all_faults(error, vocabulary())


def compile_template(
    spec: TemplateSpec,
    vocabulary: Vocabulary,
    locale: str | None = None,
    library: TemplateLibrary | None = None,
) -> Plan:
    """Return the plan of a parsed template. Raises `validation_error` with all faults."""
    try:
        return engine_plan.compile_plan(spec, vocabulary, locale, library)
    except SpecError as error:
        raise validation_error(error.faults) from None


def vocabulary(vocabulary_id: str | None = None) -> Vocabulary:
    """Return the present vocabulary, or the one of a version. Raises unavailable, as `vocabularies.open_vocabulary`
    does."""
    return vocabularies.open_vocabulary(vocabulary_id)
