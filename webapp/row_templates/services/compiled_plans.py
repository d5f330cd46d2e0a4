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
from webapp.errors import ErrorCollector
from webapp.row_templates.services import compilation, field_ids, related_templates
from webapp.row_templates.services.compilation import PlanCache

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CompiledTemplate:
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

    def row_count(self, requested: int | None) -> int:
        """Return the number of rows of a request: the requested number, else all rows of the source, else the
        template's quantity, or fewer if its parents have fewer children."""
        if requested is not None:
            return requested
        if self.plan.loaded_source is not None:
            return self.plan.loaded_source.table.row_count
        kinds = [group.kind.max_rows() for group in self.plan.layer.groups.values()]
        return min([self.quantity, *(rows for rows in kinds if rows is not None)])


CACHE: Final[PlanCache[CompiledTemplate]] = PlanCache()


def _weight(json_bytes: int, folded_before: int) -> int:
    """Return the weight of a plan that this thread has compiled since `FOLDED` counted `folded_before`."""
    return json_bytes + (FOLDED.bytes - folded_before) // limits.COMPILED_SIZE_FACTOR


def compile_version(
    template_id: str,
    version: int,
    locale: str | None,
    load: Callable[[], tuple[dict[str, Any], dict[str, Any]]],
    row_counts: Mapping[str, int] = EMPTY,
    version_overrides: Mapping[str, int] = EMPTY,
) -> CompiledTemplate:
    """Return the compiled version of a template in a locale (None: its own). `load` returns its stored spec and pins,
    and is called only if the plan is not cached. `row_counts` are the row counts of templates in a request or a
    dataset; `version_overrides` are the versions pinned by a dataset, which take precedence over those pinned by the
    template's version.

    Errors: validation_error (an unknown locale, a template that this engine cannot run, a related template that was
    deleted), unavailable (its vocabulary is missing).
    """
    key = (
        template_id,
        version,
        locale,
        tuple(sorted(row_counts.items())),
        tuple(sorted(version_overrides.items())),
    )
    found = CACHE.get(key)
    if found is not None and (not found.related or related_templates.all_exist(found.related)):
        return found
    spec, pins = load()
    versions = related_templates.collect_related(
        spec["fields"], template_id, related_templates.pinned_versions_reader(pins, version_overrides)
    )
    if not version_overrides:  # a template of a dataset does not reach all others
        related_templates.check_row_counts(row_counts, versions, template_id)
    library = related_templates.build_library(versions, template_id, spec["quantity"], row_counts)
    parsed = compilation.parse_fields(
        spec["fields"],
        name=spec["name"],
        locale=spec["locale"],
        source=spec.get("source"),
        invalid=spec.get("invalid"),
    )
    folded = FOLDED.bytes
    plan = compilation.compile_template(
        parsed, compilation.vocabulary(pins.get("vocabulary")), locale, library
    )
    related = related_templates.related_pins(versions, library)
    found = CompiledTemplate(
        plan, spec["name"], spec["quantity"], compilation.anchor_of(spec), template_id, version, related
    )
    CACHE.put(key, found, _weight(len(orjson.dumps(spec)) * (1 + len(versions)), folded))
    return found


def compile_draft(
    name: str,
    fields: Any,
    quantity: int,
    anchor: datetime | None,
    locale: str | None,
    template_id: str = "",
    related_versions: Mapping[str, Any] = EMPTY,
    row_counts: Mapping[str, int] = EMPTY,
    source: Mapping[str, Any] | None = None,
    invalid: Mapping[str, Any] | None = None,
    stored_fields: Sequence[field_ids.StoredField] = (),
) -> CompiledTemplate:
    """Compile an unsaved template, or return the cached result for the same definition. `related_versions` are the
    versions of related templates; `stored_fields` are the stored fields of the template that it is a draft of.

    Error: validation_error with all errors.
    """
    vocabulary = compilation.vocabulary()
    raw = orjson.dumps(fields if source is None and invalid is None else [fields, source, invalid])
    related = tuple((item, version[0]) for item, version in sorted(related_versions.items()))
    if stored_fields:
        raw += orjson.dumps(stored_fields)
    context = (
        (template_id, quantity, related, tuple(sorted(row_counts.items())))
        if b'"template_id"' in raw or row_counts
        else ()
    )
    key = ("draft", blake2b(raw, digest_size=16).digest(), locale, vocabulary.id, context)
    found = CACHE.get(key)
    if found is None:
        errors, folded = ErrorCollector(), FOLDED.bytes
        with errors.check():
            related_templates.check_row_counts(row_counts, related_versions, template_id)
        with errors.check():
            library = related_templates.build_library(related_versions, template_id, quantity, row_counts)
            parsed = compilation.parse_fields(fields, locale=locale, source=source, invalid=invalid)
            if stored_fields:
                parsed = field_ids.carry_over(parsed, stored_fields)
            grouped = groups.assign(parsed, field_ids.ungrouped_ids(stored_fields), engine=vocabulary.engine)
            plan = compilation.compile_template(grouped, vocabulary, None, library)
        errors.raise_all()
        found = CompiledTemplate(
            plan, "", 0, related=related_templates.related_pins(related_versions, library)
        )
        CACHE.put(key, found, _weight(len(raw) * (1 + len(related_versions)), folded))
    return replace(found, name=name, quantity=quantity, anchor=anchor)
