"""Compiled templates, cached in the process: a version never changes, so its plan is compiled once.

The cache is limited by the number of plans and by the total length of their templates, to which the texts that their
formulas computed count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final

import orjson

from webapp import limits
from webapp.engine import groups
from webapp.engine.formulas.nodes import FOLDED
from webapp.engine.plan import Plan
from webapp.errors import Gathered
from webapp.row_templates.services import compilation, field_ids, related_templates
from webapp.row_templates.services.compilation import PlanMemory

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Source:
    """What rows are generated from: a compiled plan, and the attributes of its template other than the fields.

    `template_id` and `version` are None for an unsaved template.
    """

    plan: Plan
    name: str
    quantity: int
    anchor: datetime | None = None
    template_id: str | None = None
    version: int | None = None
    related: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The templates that relations reach, by id: the version and how many rows each has."""

    def count(self, requested: int | None) -> int:
        """Return the number of rows of a request: the requested number, else all rows of the source, else the
        template's quantity, or fewer if its parents have fewer children."""
        if requested is not None:
            return requested
        if self.plan.taken is not None:
            return self.plan.taken.real.rows
        kinds = [group.kind.most_rows() for group in self.plan.layer.groups.values()]
        return min([self.quantity, *(rows for rows in kinds if rows is not None)])


MEMORY: Final[PlanMemory[Source]] = PlanMemory()


def _weight(json_bytes: int, folded_before: int) -> int:
    """Return the weight of a plan that this thread has compiled since `FOLDED` counted `folded_before`."""
    return json_bytes + (FOLDED.bytes - folded_before) // limits.COMPILED_TIMES


def of_version(
    template_id: str,
    version: int,
    locale: str | None,
    load: Callable[[], tuple[dict[str, Any], dict[str, Any]]],
    stated: Mapping[str, int] = NOTHING,
    instead: Mapping[str, int] = NOTHING,
) -> Source:
    """Return the compiled version of a template in a locale (None: its own). `load` returns its stored spec and pins,
    and is called only if the plan is not cached. `stated` are the row counts of templates in a request or a dataset;
    `instead` are the versions pinned by a dataset, which take precedence over those pinned by the template's version.

    Errors: validation_error (an unknown locale, a template that this engine cannot run, a related template that was
    deleted), unavailable (its vocabulary is missing).
    """
    key = template_id, version, locale, tuple(sorted(stated.items())), tuple(sorted(instead.items()))
    found = MEMORY.get(key)
    if found is not None and (not found.related or related_templates.all_exist(found.related)):
        return found
    spec, pins = load()
    versions = related_templates.gather(spec["fields"], template_id, related_templates.pinned(pins, instead))
    if not instead:  # a template of a dataset does not reach all others
        related_templates.check_stated(stated, versions, template_id)
    library = related_templates.library(versions, template_id, spec["quantity"], stated)
    parsed = compilation.parsed_fields(
        spec["fields"],
        name=spec["name"],
        locale=spec["locale"],
        source=spec.get("source"),
        invalid=spec.get("invalid"),
    )
    folded = FOLDED.bytes
    plan = compilation.compiled(parsed, compilation.vocabulary(pins.get("vocabulary")), locale, library)
    related = related_templates.related_of(versions, library)
    found = Source(
        plan, spec["name"], spec["quantity"], compilation.anchor_of(spec), template_id, version, related
    )
    MEMORY.put(key, found, _weight(len(orjson.dumps(spec)) * (1 + len(versions)), folded))
    return found


def of_draft(
    name: str,
    fields: Any,
    quantity: int,
    anchor: datetime | None,
    locale: str | None,
    own: str = "",
    gathered: Mapping[str, Any] = NOTHING,
    stated: Mapping[str, int] = NOTHING,
    source: Mapping[str, Any] | None = None,
    invalid: Mapping[str, Any] | None = None,
    before: Sequence[field_ids.Stored] = (),
) -> Source:
    """Compile an unsaved template, or return the cached result for the same definition. `gathered` are the versions of
    related templates; `before` are the stored fields of the template that it is a draft of.

    Error: validation_error with all errors.
    """
    vocabulary = compilation.vocabulary()
    raw = orjson.dumps(fields if source is None and invalid is None else [fields, source, invalid])
    related = tuple((item, version[0]) for item, version in sorted(gathered.items()))
    if before:
        raw += orjson.dumps(before)
    context = (
        (own, quantity, related, tuple(sorted(stated.items()))) if b'"template_id"' in raw or stated else ()
    )
    key = ("draft", blake2b(raw, digest_size=16).digest(), locale, vocabulary.id, context)
    found = MEMORY.get(key)
    if found is None:
        errors, folded = Gathered(), FOLDED.bytes
        with errors.check():
            related_templates.check_stated(stated, gathered, own)
        with errors.check():
            library = related_templates.library(gathered, own, quantity, stated)
            parsed = compilation.parsed_fields(fields, locale=locale, source=source, invalid=invalid)
            if before:
                parsed = field_ids.carry_over(parsed, before)
            grouped = groups.assign(parsed, field_ids.settled(before), engine=vocabulary.engine)
            plan = compilation.compiled(grouped, vocabulary, None, library)
        errors.raise_all()
        found = Source(plan, "", 0, related=related_templates.related_of(gathered, library))
        MEMORY.put(key, found, _weight(len(raw) * (1 + len(gathered)), folded))
    return replace(found, name=name, quantity=quantity, anchor=anchor)
