"""Compiling a template into a `Plan`: columns in dependency order, every fault at once, nothing tied to a seed.

A `Plan` is immutable and may be shared by threads and kept for as long as its template version lives. Binding it
to a request (seed, now, overrides) gives a `Bound` (see ``block.py``), which makes rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from webapp import limits
from webapp.engine.bad.plan import compiled as compiled_bad
from webapp.engine.compiler import Compiler
from webapp.engine.errors import SpecError
from webapp.engine.kinship import Library
from webapp.engine.layers import Layer, Relative
from webapp.engine.outside import Answer, Ask, Taken
from webapp.engine.spec import TemplateSpec
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary

ENGINE = 1
"""Rises only when a golden hash changes; part of every pins record."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A template ready to be bound to a seed."""

    spec: TemplateSpec
    layer: Layer
    vocabulary: Vocabulary
    warnings: tuple[Fault, ...]
    leaves: int
    """Cells of the widest array one row may bear; blocks shrink by it."""
    relatives: Mapping[str, Relative] = field(default_factory=dict)
    """The other templates that relations reach, by their addresses (see ``kinship.py``)."""
    rows: int = limits.DEFAULT_QUANTITY
    """Rows it has by itself: its quantity, those it was given, or as many as its parents bear."""
    asks: tuple[Ask, ...] = ()  # what it takes from outside
    made_from: tuple[str | None, Library] | None = None  # locale and library, where there is something to ask

    @property
    def taken(self) -> Taken | None:
        """Its source, where it has one that has been read."""
        if self.spec.source is None or self.made_from is None:
            return None
        found = self.made_from[1].answers.get(self.spec.source.question().key)
        return None if found is None else found.taken

    def answered(self, answers: Mapping[str, Answer]) -> Plan:
        """The same plan with these answers too, by the keys of their questions. Raises `SpecError`."""
        if self.made_from is None:
            return self
        locale, library = self.made_from
        known = replace(library, answers={**library.answers, **answers})
        return compile_plan(self.spec, self.vocabulary, locale, known)


def compile_plan(
    spec: TemplateSpec, vocabulary: Vocabulary, locale: str | None = None, library: Library | None = None
) -> Plan:
    """Compiles a template; ``locale`` stands in for the template's own, ``library`` holds the templates that its
    relations may reach. Raises `SpecError` with every fault."""
    compiler, layer = _compiled_fields(spec, vocabulary, locale, library)
    if not compiler.faults:
        compiler.weigh()
    bad = None if compiler.faults else compiled_bad(spec, layer, compiler.faults)
    if compiler.faults:
        raise SpecError(compiler.faults)
    relatives = {address: compiler._relative(scope) for address, scope in compiler._roots.items() if address}
    layer = compiler._scope.layer(layer.visible) if compiler._scope.relation != layer.relation else layer
    layer = layer if bad is None else replace(layer, bad=bad)
    own = {name: (compiler._scope, name) for name in compiler._scope.columns}
    rows, asks = compiler.kin.rows(""), compiler.asking.asks(own, compiler._reads.reached)
    made_from = (locale, library or Library()) if asks else None
    told, leaves = tuple(compiler.warnings), compiler.leaves
    return Plan(spec, layer, vocabulary, told, leaves, relatives, rows, asks, made_from)


def _compiled_fields(
    spec: TemplateSpec, vocabulary: Vocabulary, locale: str | None, library: Library | None
) -> tuple[Compiler, Layer]:
    """The compiler after it has compiled every field, with the faults it found."""
    asked = locale or spec.locale
    known = not asked or vocabulary.knows_locale(asked)
    compiler = Compiler(spec, vocabulary, asked if known else None, library or Library())
    if asked and not known:
        text = f'There is no locale "{asked}".'
        hint = did_you_mean(asked, vocabulary.locales)
        compiler.faults.append(Fault("locale", "unknown_locale", text, hint))
    layer = compiler._layer(compiler._scope)
    if compiler.leaves > limits.MAX_ARRAY_PRODUCT:
        text = (
            f"One row may bear up to {compiler.leaves:,} elements; {limits.MAX_ARRAY_PRODUCT:,} is the most."
        )
        compiler.faults.append(
            Fault("fields", "too_many_cells", text, "Lower the largest counts of the arrays.")
        )
    return compiler, layer


# What is only known with the templates that relations reach, or follows from a field that could not be parsed.
_NEEDS_LIBRARY = frozenset({"unknown_template", "no_cardinality", "no_parent", "related_fault"})


def value_faults(spec: TemplateSpec, vocabulary: Vocabulary, locale: str | None = None) -> list[Fault]:
    """Return what compiling a template finds that does not depend on other templates."""
    if any(field.invalid for field in spec.walk()):
        faults = _compiled_fields(spec, vocabulary, locale, None)[0].faults
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
