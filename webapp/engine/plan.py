"""Compiling a template into a `Plan`: columns in dependency order, all faults together, independent of any seed.

A `Plan` is immutable and may be shared by threads and kept for as long as its template version lives. Binding it
to a request (seed, now, overrides) gives a `BoundPlan` (see ``blocks.py``), which generates rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from webapp import limits
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.compiler import Compiler
from webapp.engine.errors import SpecError
from webapp.engine.external_values import ExternalRequest, ExternalResponse, LoadedSource
from webapp.engine.invalid_data.injector import compile_invalid_data
from webapp.engine.layers import Layer, RelatedPlan
from webapp.engine.relations.related_plans import TemplateLibrary
from webapp.engine.spec import FieldSpec, TemplateSpec
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Plan:
    """A template ready to be bound to a seed."""

    spec: TemplateSpec
    layer: Layer
    vocabulary: Vocabulary
    warnings: tuple[Fault, ...]
    max_cells_per_row: int
    """Cells of the largest array in one row; blocks have fewer rows accordingly."""
    related_plans: Mapping[str, RelatedPlan] = field(default_factory=dict)
    """The other templates that relations reach, by their addresses (see ``relations/related_plans.py``)."""
    rows: int = limits.DEFAULT_QUANTITY
    """Rows of the template: its quantity, the requested number, or as many as its parents have children."""
    external_requests: tuple[ExternalRequest, ...] = ()  # its external values
    compiled_with: tuple[str | None, TemplateLibrary] | None = (
        None  # locale and library, for types that need them
    )

    @property
    def loaded_source(self) -> LoadedSource | None:
        """Its source, if it has one that was loaded."""
        if self.spec.source is None or self.compiled_with is None:
            return None
        found = self.compiled_with[1].responses.get(self.spec.source.external_query().key)
        return None if found is None else found.loaded_source

    def with_responses(self, responses: Mapping[str, ExternalResponse]) -> Plan:
        """The same plan with these answers too, by the keys of their questions. Raises `SpecError`."""
        if self.compiled_with is None:
            return self
        locale, library = self.compiled_with
        answered_library = replace(library, responses={**library.responses, **responses})
        return compile_plan(self.spec, self.vocabulary, locale, answered_library)


def compile_plan(
    spec: TemplateSpec,
    vocabulary: Vocabulary,
    locale: str | None = None,
    library: TemplateLibrary | None = None,
) -> Plan:
    """Compile a template; ``locale`` overrides the template's, ``library`` contains the templates that its
    relations may reach. Raises `SpecError` with every fault."""
    compiler, layer = _compile_fields(spec, vocabulary, locale, library)
    if not compiler.faults:
        compiler.check_cost()
    invalid_data_plan = None if compiler.faults else compile_invalid_data(spec, layer, compiler.faults)
    if compiler.faults:
        raise SpecError(compiler.faults)
    layer = compiler.with_parent_group(layer)
    if invalid_data_plan is not None:
        layer = replace(layer, invalid_data_plan=invalid_data_plan)
    external_requests = compiler.requests_of_columns()
    return Plan(
        spec,
        layer,
        vocabulary,
        tuple(compiler.warnings),
        compiler.max_cells_per_row,
        compiler.compile_related_plans(),
        compiler.related_plans.row_count(""),
        external_requests,
        (locale, library or TemplateLibrary()) if external_requests else None,
    )


def _compile_fields(
    spec: TemplateSpec, vocabulary: Vocabulary, locale: str | None, library: TemplateLibrary | None
) -> tuple[Compiler, Layer]:
    """The compiler after it has compiled every field, with the faults it found."""
    requested = locale or spec.locale
    is_known = not requested or vocabulary.has_locale(requested)
    compiler = Compiler(
        spec, vocabulary, requested if is_known else None, library or TemplateLibrary(), bind_fields
    )
    if requested and not is_known:
        text = f'There is no locale "{requested}".'
        hint = did_you_mean(requested, vocabulary.locales)
        compiler.faults.append(Fault("locale", "unknown_locale", text, hint))
    layer = compiler.compile_fields()
    if compiler.max_cells_per_row > limits.MAX_ARRAY_PRODUCT:
        text = (
            f"One row may have up to {compiler.max_cells_per_row:,} elements; at most "
            f"{limits.MAX_ARRAY_PRODUCT:,} are allowed."
        )
        compiler.faults.append(
            Fault("fields", "too_many_cells", text, "Lower the maximum counts of the arrays.")
        )
    return compiler, layer


def bind_fields(
    fields: Sequence[FieldSpec], vocabulary: Vocabulary, locale: str | None, seed: str, now: datetime
) -> BoundPlan:
    """Bind a template of only these fields to a seed. Masking replaces real values by the values of such a plan.

    Raises `SpecError`.
    """
    plan = compile_plan(TemplateSpec("masking", tuple(fields)), vocabulary, locale)
    return BoundPlan(plan, GenerationContext(seed, now, locale))


# Errors that depend on related templates, or follow from a field that could not be parsed.
_NEEDS_LIBRARY = frozenset({"unknown_template", "no_cardinality", "no_parent", "related_fault"})


def value_faults(spec: TemplateSpec, vocabulary: Vocabulary, locale: str | None = None) -> list[Fault]:
    """Return what compiling a template finds that does not depend on other templates."""
    if any(field.has_errors for field in spec.walk()):
        faults = _compile_fields(spec, vocabulary, locale, None)[0].faults
    else:
        try:
            compile_plan(spec, vocabulary, locale)
        except SpecError as error:
            faults = error.faults
        else:
            faults = []
    return [fault for fault in faults if fault.code not in _NEEDS_LIBRARY]


def all_faults(error: SpecError, vocabulary: Vocabulary, locale: str | None = None) -> list[Fault]:
    """Return the faults of parsing (``error``) and those of the fields that could be parsed, by position."""
    faults = list(error.faults)
    if error.partial is not None and error.partial.fields:
        faults += value_faults(error.partial, vocabulary, locale)
    return sorted(faults, key=lambda fault: [int(number) for number in re.findall(r"\[(\d+)\]", fault.path)])
