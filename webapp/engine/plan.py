"""Compiling a template into a `Plan`: columns in dependency order, every fault at once, nothing tied to a seed.

A `Plan` is immutable and may be shared by threads and kept for as long as its template version lives. Binding it
to a request (seed, now, overrides) gives a `Bound` (see ``block.py``), which makes rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa

from webapp import limits
from webapp.engine import groups, postprocess
from webapp.engine.errors import SpecError
from webapp.engine.fields.base import FieldType
from webapp.engine.spec import FieldSpec, TemplateSpec
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary

ENGINE = 1
"""Rises only when a golden hash changes; part of every pins record."""


@dataclass(frozen=True, slots=True)
class Column:
    """One compiled field: what it is, how it is filled and what is done to the values afterwards."""

    spec: FieldSpec
    type: FieldType
    dtype: pa.DataType
    blank: tuple[int, int] | None
    """Blanks in every hundred rows as a fraction of integers; None where there are none."""
    after: postprocess.Text | None
    """Case, prefix and suffix, where any is asked for."""

    @property
    def name(self) -> str:
        return self.spec.name

    def arrow_field(self) -> pa.Field:
        """Name, type and what formats want to know of the column, as Arrow carries it."""
        meta = {}
        longest = self.type.max_length
        if longest is not None:
            meta[b"max_length"] = str(self.after.longest(longest) if self.after else longest).encode()
        if self.type.json_text and self.after is None:
            meta[b"json"] = b"1"
        return pa.field(self.name, self.dtype, metadata=meta or None)


@dataclass(frozen=True, slots=True)
class Layer:
    """The compiled fields of one level: the template's own, or those inside one nested field."""

    columns: dict[str, Column]
    groups: dict[tuple[str, str], groups.Group]
    visible: tuple[str, ...]
    schema: pa.Schema
    """Of the visible columns, while nothing is overridden."""
    expansion: int
    """Elements at this level that one row of the template bears at most."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A template ready to be bound to a seed."""

    spec: TemplateSpec
    layer: Layer
    vocabulary: Vocabulary
    warnings: tuple[Fault, ...]
    leaves: int
    """Cells of the widest array one row may bear; blocks shrink by it."""


@dataclass
class Compiler:
    """What field types see while they are constructed: other columns, the vocabulary, and where to put faults."""

    vocabulary: Vocabulary
    locale: str | None
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    leaves: int = 1
    _scope: _Scope | None = None

    def fault(self, spec: FieldSpec, option: str, code: str, message: str, hint: str = "") -> None:
        """Records what is wrong with ``option`` of a field (``""`` for the field itself)."""
        path = spec.path + (f".{option}" if option else "")
        self.faults.append(Fault(path, code, message, hint))

    def warn(self, spec: FieldSpec, code: str, message: str, hint: str = "") -> None:
        """Records what will surprise, but can be carried out."""
        self.warnings.append(Fault(spec.path, code, message, hint))

    def locale_of(self, spec: FieldSpec) -> str | None:
        """The field's own locale, else the template's, as the vocabulary spells it; None where neither says, or the
        vocabulary has none such (which is reported when the column is made)."""
        asked = spec.common.locale or self.locale
        return self.vocabulary.resolve(asked) if asked else None

    def group_of(self, spec: FieldSpec) -> list[FieldSpec]:
        """The fields of this level that share a thing with ``spec``, itself among them."""
        kind = spec.type.group_kind
        name = spec.group or kind
        fields = self._scope.fields.values()
        return [field for field in fields if field.type.group_kind == kind and (field.group or kind) == name]

    def require(self, spec: FieldSpec, option: str, name: str) -> Column | None:
        """The column ``name`` that ``spec`` reads, compiled; None after a fault (unknown, or a cycle)."""
        scope = self._scope
        while scope is not None:
            if name in scope.fields:
                return self._compile(scope, name, spec, option)
            scope = scope.parent
        known = [name for name in self._scope.fields if name != spec.name]
        text = f'There is no field "{name}" here.'
        self.fault(spec, option, "unknown_field", text, did_you_mean(name, known))
        return None

    def nested(self, fields: Sequence[FieldSpec], factor: int) -> Layer:
        """Compiles the fields inside a nested field, of which a row of this level bears at most ``factor``."""
        outer = self._scope
        expansion = outer.expansion * factor
        self._scope = _Scope({f.name: f for f in fields}, parent=outer, expansion=expansion)
        self.leaves = max(self.leaves, expansion)
        try:
            return self._layer(self._scope)
        finally:
            self._scope = outer

    def _layer(self, scope: _Scope) -> Layer:
        kinds = groups.compile_groups(scope.fields.values(), self)
        for name in scope.fields:
            self._compile(scope, name, None, "")
        order = {name: scope.columns[name] for name in scope.fields if name in scope.columns}
        visible = tuple(name for name, spec in scope.fields.items() if not spec.common.hidden)
        if not visible and scope.parent is None:
            self.faults.append(Fault("fields", "all_hidden", "At least one field must be visible.", ""))
        schema = pa.schema([order[name].arrow_field() for name in visible if name in order])
        return Layer(order, kinds, visible, schema, scope.expansion)

    def _compile(self, scope: _Scope, name: str, reader: FieldSpec | None, option: str) -> Column | None:
        if name in scope.columns or name in scope.failed:
            return scope.columns.get(name)
        if name in scope.pending:
            cycle = " -> ".join([*scope.pending[scope.pending.index(name) :], name])
            self.fault(reader, option, "cycle", f"These fields wait for each other: {cycle}.", "Break the circle.")
            return None
        scope.pending.append(name)
        inner, self._scope = self._scope, scope
        before = len(self.faults)
        spec = scope.fields[name]
        made = spec.type(spec, spec.options, self)
        self._scope = inner
        scope.pending.pop()
        if len(self.faults) > before:
            scope.failed.add(name)
            return None
        scope.columns[name] = column = self._column(spec, made)
        return column

    def _column(self, spec: FieldSpec, made: FieldType) -> Column:
        common = spec.common
        after = postprocess.text_steps(common)
        structured = pa.types.is_struct(made.dtype) or pa.types.is_list(made.dtype)
        if after is not None and structured:
            self.fault(spec, "prefix", "not_for_this_type", "Case, prefix and suffix are for single values.")
        if common.locale and not spec.type.localised:
            text = f"{spec.type.label} has the same values in every locale."
            self.fault(spec, "locale", "not_for_this_type", text, "Remove locale.")
        elif common.locale and not self.vocabulary.knows_locale(common.locale):
            text = f'There is no locale "{common.locale}".'
            self.fault(spec, "locale", "unknown_locale", text, did_you_mean(common.locale, self.vocabulary.locales))
        if common.unique and made.space() is None:
            text = f"{spec.type.label} cannot be kept unique as it is set."
            self.fault(spec, "unique", "not_unique", text, made.unique_hint())
        if common.formula is not None:
            self.fault(spec, "formula", "not_for_this_type", "Formulas are not available for this field.")
        share = Fraction(common.percent_blank)
        blank = (share.numerator, share.denominator) if share else None
        return Column(spec, made, pa.string() if after else made.dtype, blank, after)


@dataclass
class _Scope:
    fields: dict[str, FieldSpec]
    parent: _Scope | None = None
    expansion: int = 1
    columns: dict[str, Column] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)


def compile_plan(spec: TemplateSpec, vocabulary: Vocabulary, locale: str | None = None) -> Plan:
    """Compiles a template; ``locale`` stands in for the template's own. Raises `SpecError` with every fault."""
    compiler = Compiler(vocabulary, locale or spec.locale)
    if compiler.locale and not vocabulary.knows_locale(compiler.locale):
        text = f'There is no locale "{compiler.locale}".'
        raise SpecError([Fault("locale", "unknown_locale", text, did_you_mean(compiler.locale, vocabulary.locales))])
    compiler._scope = _Scope({f.name: f for f in spec.fields})
    layer = compiler._layer(compiler._scope)
    if compiler.leaves > limits.MAX_ARRAY_PRODUCT:
        text = f"One row may bear up to {compiler.leaves:,} elements; {limits.MAX_ARRAY_PRODUCT:,} is the most."
        compiler.faults.append(Fault("fields", "too_many_cells", text, "Lower the largest counts of the arrays."))
    if compiler.faults:
        raise SpecError(compiler.faults)
    return Plan(spec, layer, vocabulary, tuple(compiler.warnings), compiler.leaves)
