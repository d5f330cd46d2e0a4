"""Compiled templates, kept in the process: a version never changes, so its plan is made once.

The memory is bounded by how many plans it holds and by the length of the templates they came from.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

import orjson

from webapp import limits
from webapp.engine import groups
from webapp.engine import plan as engine_plan
from webapp.engine import spec as engine_spec
from webapp.engine.data import vocabulary as vocabularies
from webapp.engine.data.vocabulary import Vocabulary, VocabularyError
from webapp.engine.errors import SpecError
from webapp.engine.plan import Plan
from webapp.engine.spec import TemplateSpec
from webapp.errors import ApiError, validation_error
from webapp.services import moments


@dataclass(frozen=True, slots=True)
class Source:
    """What rows are made from: a compiled plan, and what its template says beside the fields.

    `template_id` and `version` are None for a template that is not saved.
    """

    plan: Plan
    name: str
    quantity: int
    anchor: datetime | None = None
    template_id: str | None = None
    version: int | None = None


class PlanMemory:
    """The least recently used go first. Safe over threads; two may make the same plan, one is kept."""

    def __init__(self, entries: int = limits.PLAN_CACHE_ENTRIES, weight: int = limits.PLAN_CACHE_BYTES) -> None:
        self._entries, self._weight = entries, weight
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Source, int]] = OrderedDict()
        self._held = 0

    def get(self, key: Hashable) -> Source | None:
        """What is kept under `key`."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, source: Source, weight: int) -> None:
        """Keep `source`; `weight` is the length of its template as JSON, in bytes."""
        with self._lock:
            _, old = self._kept.pop(key, (None, 0))
            self._kept[key] = (source, weight)
            self._held += weight - old
            while self._kept and (len(self._kept) > self._entries or self._held > self._weight):
                _, (_, gone) = self._kept.popitem(last=False)
                self._held -= gone


MEMORY: Final = PlanMemory()


def of_version(
    template_id: str, version: int, locale: str | None, load: Callable[[], tuple[dict[str, Any], dict[str, Any]]]
) -> Source:
    """The compiled version of a template in a locale (None: its own). `load` answers its stored spec and pins,
    and is asked only where the plan is not kept.

    Errors: validation_error (a locale that is none, a template this engine cannot carry out), unavailable (its
    vocabulary is missing).
    """
    key = (template_id, version, locale)
    found = MEMORY.get(key)
    if found is None:
        spec, pins = load()
        found = _source(spec, vocabulary(pins.get("vocabulary")), locale, template_id, version)
        MEMORY.put(key, found, len(orjson.dumps(spec)))
    return found


def of_draft(name: str, fields: Any, quantity: int, anchor: datetime | None, locale: str | None) -> Source:
    """A template that is not saved, compiled; the same definition sent again is found compiled.

    Error: validation_error with every fault.
    """
    words = vocabulary()
    raw = orjson.dumps(fields)
    key = ("draft", blake2b(raw, digest_size=16).digest(), locale, words.id)
    found = MEMORY.get(key)
    if found is None:
        plan = compiled(groups.assign(parsed_fields(fields, locale=locale)), words)
        found = Source(plan, "", 0)
        MEMORY.put(key, found, len(raw))
    return Source(found.plan, name, quantity, anchor)


def _source(spec: dict[str, Any], words: Vocabulary, locale: str | None, template_id: str, version: int) -> Source:
    parsed = parsed_fields(spec["fields"], name=spec["name"], locale=spec["locale"])
    plan = compiled(parsed, words, locale)
    return Source(plan, spec["name"], spec["quantity"], anchor_of(spec), template_id, version)


def anchor_of(spec: dict[str, Any]) -> datetime | None:
    """The anchor of a stored spec."""
    return moments.parse(spec["anchor"]) if spec["anchor"] else None


def parsed_fields(fields: Any, *, name: str = "rows", locale: str | None = None) -> TemplateSpec:
    """Field definitions as the engine reads them; `validation_error` with every fault."""
    try:
        return engine_spec.parse(fields, name=name, locale=locale)
    except SpecError as error:
        raise validation_error(error.faults) from None


def compiled(spec: TemplateSpec, words: Vocabulary, locale: str | None = None) -> Plan:
    """The plan of a parsed template; `validation_error` with every fault."""
    try:
        return engine_plan.compile_plan(spec, words, locale)
    except SpecError as error:
        raise validation_error(error.faults) from None


def vocabulary(wanted: str | None = None) -> Vocabulary:
    """The present vocabulary, or the one a version was saved under. A missing one is never replaced.

    Error: unavailable, naming it.
    """
    try:
        present = vocabularies.default()
        if wanted in (None, present.id):
            return present
        return vocabularies.open_in(vocabularies.REPOSITORY / "var" / "vocab", wanted)
    except VocabularyError as error:
        raise ApiError("unavailable", str(error), {"vocabulary": wanted}) from None
