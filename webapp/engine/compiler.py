"""Compile the fields of a template: the interface for field types, and the order of the columns.

`Compiler` is what field types see while they are compiled, `ExternalRequests` collects the values that have to be
fetched, and `ColumnReads` limits what one column costs.

A column of the same row is computed once, however many fields read it. Rows of another template, or other rows of
this one, need a separate block for each group of references that leads to them: if every row reads two others, which
each read two, the number of blocks doubles at every step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from webapp import limits
from webapp.engine import groups, postprocess
from webapp.engine.external_values import ExternalQuery, ExternalRequest, ExternalResponse
from webapp.engine.formulas.expression import compile_formula
from webapp.engine.formulas.uniqueness import UNIQUE_HINT
from webapp.engine.layers import Column, Layer, RelatedPlan, Scope
from webapp.engine.relations import PARENT, RELATION
from webapp.engine.relations.related_plans import RelatedPlans, TemplateLibrary
from webapp.engine.relations.unique_together import compile_unique_together
from webapp.engine.spec import FieldSpec, TemplateSpec
from webapp.engine.types import sourced
from webapp.engine.types.agreement import compile_agreement
from webapp.engine.types.base import FieldType
from webapp.engine.types.relations import ReferenceOptions
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.masking.replace import BindFields


def _is_possible_consequence(fault: Fault, spec: FieldSpec) -> bool:
    """Return whether a fault may follow from another option of the field that is wrong itself."""
    of_one_value = fault.code.startswith(("bad_", "unknown_")) or fault.code == "wrong_format"
    return fault.path.startswith(spec.path) and not of_one_value


class Compiler:
    """The context of field types during construction: other columns, the vocabulary, and a function to report errors.

    ``related_plans`` has the other templates that relations reach.
    """

    def __init__(
        self,
        spec: TemplateSpec,
        vocabulary: Vocabulary,
        locale: str | None,
        library: TemplateLibrary,
        bind_fields: BindFields,
    ) -> None:
        self.bind_fields = bind_fields
        self.related_plans, self.library = RelatedPlans(spec, vocabulary, library), library
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []
        self.max_cells_per_row = 1
        self.lookbacks: set[tuple[str, int]] = set()
        own = Scope("", vocabulary, locale, {f.name: f for f in spec.fields})
        self._scope = own
        self._root_scopes = {"": own}
        self._source_query = spec.source.external_query() if spec.source is not None else None
        self.external_requests = ExternalRequests()
        self._pending: list[tuple[Scope, str]] = []
        self._column_reads = ColumnReads()

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the template whose field is being compiled."""
        return self._scope.vocabulary

    @property
    def locale(self) -> str | None:
        """The locale of that template."""
        return self._scope.locale

    @property
    def address(self) -> str:
        """Which template that is; see ``relations/related_plans.py``."""
        return self._scope.address

    @property
    def is_nested(self) -> bool:
        """Whether the field being compiled is nested in another one."""
        return self._scope.parent is not None

    @property
    def in_array(self) -> bool:
        """Whether the field being compiled is in the elements of an array, which have no previous rows."""
        return self._scope.is_in_array

    def fault(self, spec: FieldSpec, option: str, code: str, message: str, hint: str | None = "") -> None:
        """Records what is wrong with ``option`` of a field (``""`` for the field itself)."""
        path = spec.path + (f".{option}" if option else "")
        self.faults.append(Fault(path, code, message, hint))

    def warn(self, spec: FieldSpec, code: str, message: str, hint: str = "") -> None:
        """Record a warning: the field works, but may surprise."""
        self.warnings.append(Fault(spec.path, code, message, hint))

    def warn_english(self, spec: FieldSpec, locale: str | None) -> None:
        """Record that a type has no words in the language of a locale, so that its values are English."""
        text = f"{spec.type.label}: no words are available for {locale}; English words are used."
        self.warn(spec, "other_language", text)

    def response(
        self, spec: FieldSpec, question: ExternalQuery, keyed: bool = False
    ) -> ExternalResponse | None:
        """Return the answer to a question; None if it is not known yet. ``keyed``: it depends on values of the row."""
        return self.library.responses.get(
            self.external_requests.add(question, spec.path, keyed, (self._scope, spec.name))
        )

    @property
    def source_query(self) -> ExternalQuery | None:
        """The question that fetches the rows of the current template; None if its rows are generated, and for nested
        fields."""
        return self._source_query if self._scope is self._root_scopes[""] else None

    def source_column(self, name: str) -> str | None:
        """Return the source's column that the field ``name`` reads; None for a generated field."""
        answer = (
            self.library.responses.get(self._source_query.key) if self._source_query is not None else None
        )
        found = self._root_scopes[""].fields.get(name)
        if answer is None or answer.loaded_source is None or found is None:
            return None
        return sourced.source_column_name(found, answer.loaded_source.table.column_names)

    def _apply_source(self, spec: FieldSpec, field_type: FieldType) -> FieldType:
        """Return ``field_type``, or its replacement if the template has a source."""
        if self.source_query is None:
            if spec.common.column is not None:
                text = "column is only available in templates with a source."
                self.fault(
                    spec, "column", "no_source", text, "Remove column, or add a source to the template."
                )
            return field_type
        answer = self.response(spec, self.source_query)
        return (
            field_type
            if answer is None or answer.loaded_source is None
            else sourced.read_from_source(field_type, answer.loaded_source, self)
        )

    def required_fields(self) -> list[FieldSpec]:
        """Return all fields that the current field has required so far."""
        current = self._pending[-1]
        found: list[FieldSpec] = []
        for column_ref in self._column_reads.dependencies(current) - {current}:
            assert isinstance(column_ref, tuple)
            scope, name = column_ref
            found.append(scope.fields[name])
        return found

    def locale_of(self, spec: FieldSpec) -> str | None:
        """Return the field's own locale, else the template's, with the vocabulary's spelling; None if neither is set,
        or if the vocabulary does not have it (which is reported when the column is constructed)."""
        locale = spec.common.locale or self.locale
        return self.vocabulary.resolve(locale) if locale else None

    def fields_of_same_group(self, spec: FieldSpec) -> list[FieldSpec]:
        """The fields of this level that share a thing with ``spec``, itself among them."""
        key = groups.key_of(spec)
        return [field for field in self._scope.fields.values() if groups.key_of(field) == key]

    def group_members(self, name: str, kind: str) -> tuple[FieldSpec, ...]:
        """Return the fields of this level that are in a group or read it; empty if the group does not exist."""
        return self._scope.members.get((name, kind), ())

    def sibling(self, name: str) -> FieldSpec | None:
        """The field ``name`` of this level, or None."""
        return self._scope.fields.get(name)

    @property
    def level_fields(self) -> list[FieldSpec]:
        """The fields of this level."""
        return list(self._scope.fields.values())

    def require_group(self, key: tuple[str, str]) -> Any:
        """Return the compiled kind of a group of this level, (name, kind), which a field reads."""
        self._compile_group(self._scope, key)
        return self._scope.groups[key].kind

    def require_column(self, spec: FieldSpec, option: str, name: str) -> Column | None:
        """The column ``name`` that ``spec`` reads, compiled; None after a fault (unknown, or a cycle)."""
        scope: Scope | None = self._scope
        while scope is not None:
            if name in scope.fields:
                return self._compile_column(scope, name, spec, option)
            scope = scope.parent
        if name.startswith(PARENT):
            found = self.parent_relation(spec, option)
            if found is None:
                return None
            group, address = found
            root = self._root_scopes[self.address]
            root.parent_group = group
            self._compile_group(root, (group, RELATION))
            return self.related_column(spec, option, address, name.removeprefix(PARENT), group)
        names = [name for name in self._scope.fields if name != spec.name]
        text = f'There is no field "{name}" here.'
        self.fault(spec, option, "unknown_field", text, did_you_mean(name, names))
        return None

    def related_column(
        self, spec: FieldSpec, option: str, address: str, name: str, group: str = ""
    ) -> Column | None:
        """Return the compiled column ``name`` of the template at ``address``; None after an error. ``group`` names the
        references that lead there if they are not those of the field itself."""
        scope = self._root_scope(address)
        if name not in scope.fields:
            text = f'"{self.related_plans.template(address).name}" has no field "{name}".'
            self.fault(spec, option, "unknown_field", text, did_you_mean(name, scope.fields))
            return None
        before = len(self.faults)
        if not group:
            group = spec.group or RELATION if spec.type.group_kind == RELATION else spec.name
        column = self._compile_column(scope, name, spec, option, (self._scope, group))
        if address != self.address and len(self.faults) > before:
            path = f"{spec.path}.{option}"  # theirs are those of fields of the other template
            reported = [replace(fault, path=path) for fault in self.faults[before:] if fault.code == "cycle"]
            if not reported:
                text = f'"{name}" of "{self.related_plans.template(address).name}": {self.faults[before].message}'
                reported = [Fault(path, "related_fault", text, "Correct that template first.")]
            self.faults[before:] = reported
        return column

    def related_visible_columns(self, spec: FieldSpec, option: str, address: str) -> list[Column]:
        """The visible columns of the template at ``address``, compiled."""
        names = [field.name for field in self._root_scope(address).fields.values() if not field.common.hidden]
        columns = [self.related_column(spec, option, address, name) for name in names]
        return [column for column in columns if column is not None]

    def parent_relation(self, spec: FieldSpec, option: str) -> tuple[str, str] | None:
        """Group and address of what ``parent`` means to the fields of this template: its owner, else the one template
        it refers to; None after a fault."""
        scope = self._root_scopes[self.address]
        owner = self.related_plans.parent_field(self.address)
        names = {name for name, kind in scope.members if kind == RELATION}
        if owner is not None:
            names = {owner[0].group or RELATION}
        if len(names) != 1:
            text = (
                "This template has no parent."
                if not names
                else "This template has several parents, and none of them has cardinality."
            )
            hint = "Add a field of type reference. The reference with cardinality is the parent."
            self.fault(spec, option, "no_parent", text, hint)
            return None
        name = names.pop()
        first = scope.members[name, RELATION][0]
        assert isinstance(first.options, ReferenceOptions)
        address = self.related_plans.address(first.options.template_id, self.address)
        return None if address is None else (name, address)

    def level_of(self, name: str) -> int | None:
        """Return how many levels out the field ``name`` is: 0 is this level; None if there is no such field."""
        scope: Scope | None = self._scope
        level = 0
        while scope is not None:
            if name in scope.fields:
                return level
            scope, level = scope.parent, level + 1
        return None

    def _root_scope(self, address: str) -> Scope:
        found = self._root_scopes.get(address)
        if found is None:
            related = self.related_plans.template(address)
            fields = {field.name: field for field in related.spec.fields}
            found = self._root_scopes[address] = Scope(
                address, related.vocabulary, related.spec.locale, fields
            )
            found.members = groups.fields_by_group(fields.values())
        return found

    def add_expansion(self, address: str, factor: int) -> None:
        """Record that a row of the current level has up to ``factor`` rows of the template at ``address``."""
        scope = self._root_scope(address)
        scope.expansion = self._scope.expansion * factor
        self.max_cells_per_row = max(self.max_cells_per_row, scope.expansion)

    def group_kind_of(self, spec: FieldSpec) -> Any:
        """The compiled kind of the group that ``spec`` is in."""
        kind = spec.type.group_kind
        assert kind is not None
        return self._scope.groups[spec.group or kind, kind].kind

    def relation_of(self, address: str, name: str) -> Any:
        """The compiled relation ``name`` (a group of references) of the template at ``address``."""
        scope = self._root_scope(address)
        self._compile_group(scope, (name, RELATION))
        return scope.groups[name, RELATION].kind

    def _compile_group(self, scope: Scope, key: tuple[str, str]) -> None:
        if key in scope.groups:
            return
        inner, self._scope = self._scope, scope
        scope.groups[key] = groups.compile_group(key, scope.members[key], self)
        self._scope = inner

    def compile_fields(self) -> Layer:
        """Compile all fields of the template."""
        return self._compile_layer(self._scope)

    def compile_nested(self, fields: Sequence[FieldSpec], factor: int, array: bool = True) -> Layer:
        """Compile the fields nested in a field. A row of this level has at most ``factor`` of them; without ``array``
        it has exactly one."""
        outer = self._scope
        expansion = outer.expansion * factor
        named = {f.name: f for f in fields}
        self._scope = Scope(
            outer.address, outer.vocabulary, outer.locale, named, parent=outer, expansion=expansion
        )
        self._scope.is_in_array = array or outer.is_in_array
        self.max_cells_per_row = max(self.max_cells_per_row, expansion)
        try:
            return self._compile_layer(self._scope)
        finally:
            self._scope = outer

    def _compile_layer(self, scope: Scope) -> Layer:
        scope.members = groups.fields_by_group(scope.fields.values(), self)
        for key in scope.members:
            self._compile_group(scope, key)
        for name in scope.fields:
            self._compile_column(scope, name, None, "")
        visible = tuple(name for name, spec in scope.fields.items() if not spec.common.hidden)
        if not visible and scope.parent is None:
            self.faults.append(Fault("fields", "all_hidden", "At least one field must be visible.", ""))
        return scope.to_layer(visible)

    def _compile_column(
        self,
        scope: Scope,
        name: str,
        reader: FieldSpec | None,
        option: str,
        reference: tuple[Scope, str] | None = None,
    ) -> Column | None:
        """The column ``name``; ``reference`` is the group or the field by which it is read in other rows."""
        if self._pending:
            self._column_reads.add_read(self._pending[-1], (scope, name), reference)
        if name in scope.columns or name in scope.failed:
            return scope.columns.get(name)
        if scope.fields[name].checkable == "no" and scope.fields[name].has_errors:
            scope.failed.add(name)
            return None
        positions = [
            position
            for position, (pending_scope, field) in enumerate(self._pending)
            if pending_scope is scope and field == name
        ]
        if positions:
            names = [
                f"{self.related_plans.template(pending_scope.address).name}.{field}"
                if pending_scope.address
                else field
                for pending_scope, field in self._pending[positions[0] :]
            ]
            cycle = " -> ".join([*names, names[0]])
            assert reader is not None  # fields that are waiting are read
            self.fault(
                reader,
                option,
                "cycle",
                f"These fields depend on each other: {cycle}.",
                "Remove one of these dependencies.",
            )
            return None
        if len(self._pending) >= limits.MAX_CHAIN:
            text = f"More than {limits.MAX_CHAIN} fields depend on each other in a chain."
            self.fault(
                scope.fields[name],
                "",
                "too_deep",
                text,
                "Let the last fields of the chain read one of the first fields directly.",
            )
            return None
        self._pending.append((scope, name))
        outer_scope, self._scope = self._scope, scope
        fault_count = len(self.faults)
        spec = scope.fields[name]
        key = groups.key_of(spec)
        if key is not None:
            self._compile_group(scope, key)
            for read in spec.type.referenced_groups(key[0]):
                if read in scope.members:
                    self._compile_group(scope, read)
        field_type = self._apply_source(spec, spec.type(spec, spec.options, self))
        if field_type.expansion > 1:
            self._column_reads.set_rows_per_row((scope, name), field_type.expansion)
        column = None
        if len(self.faults) == fault_count:
            column = replace(
                self._build_column(spec, field_type), agreement=compile_agreement(spec, field_type, self)
            )
            located = bool(self.locale_of(spec) or getattr(spec.options, "country", None))
            if self.vocabulary.engine >= 3 and groups.may_contradict_if_unique(
                spec, field_type, self.level_fields, located
            ):
                text = f"{spec.type.label}: unique values do not match the other columns of the row."
                self.warn(spec, "independent", text, "Remove unique.")
        self._scope = outer_scope
        self._pending.pop()
        if spec.has_errors and spec.checkable == "values":
            self.faults[fault_count:] = [
                fault for fault in self.faults[fault_count:] if not _is_possible_consequence(fault, spec)
            ]
        if column is None or spec.has_errors or len(self.faults) > fault_count:
            scope.failed.add(name)
            return None
        scope.columns[name] = column
        combination = spec.common.unique_together
        if combination is not None and combination not in scope.compiled_combinations:
            self._compile_unique_together(scope, combination)
        return column

    def check_cost(self) -> None:
        """Reject columns that need too many other cells. Called after all fields were compiled without errors."""
        for name, spec in self._scope.fields.items():
            blocks, rows = self._column_reads.cost((self._scope, name))
            if rows > limits.MAX_CELL_COST or blocks > limits.MAX_LOOKBACK_COLUMNS:
                maximum = limits.MAX_CELL_COST if rows > limits.MAX_CELL_COST else limits.MAX_LOOKBACK_COLUMNS
                text = f"One value needs up to {max(rows, blocks):,} other rows; the maximum is {maximum:,}."
                hint = "Lower the cardinality of its children, or use shorter chains of references."
                self.fault(spec, "", "too_many_cells", text, hint)

    def _compile_unique_together(self, scope: Scope, name: str) -> None:
        """Compiles the fields that are unique together as ``name``."""
        scope.compiled_combinations.add(name)
        members = [spec for spec in scope.fields.values() if spec.common.unique_together == name]
        found = [self._compile_column(scope, spec.name, None, "") for spec in members]
        columns = [column for column in found if column is not None]
        if len(columns) < len(found):
            return
        outer_scope, self._scope = self._scope, scope
        combination = compile_unique_together(name, members, columns, self)
        self._scope = outer_scope
        if combination is not None:
            for position, member_key in enumerate(combination.member_keys):
                scope.unique_combinations[member_key] = (combination, position)

    def compile_related_plans(self) -> dict[str, RelatedPlan]:
        """Return the plans of the templates that relations reach, by their addresses."""
        return {address: self._related_plan(scope) for address, scope in self._root_scopes.items() if address}

    def with_parent_group(self, layer: Layer) -> Layer:
        """Return the layer of the template's fields with the group of its parent, which a template that relates to it
        may have added after they were compiled."""
        return (
            layer if self._scope.parent_group == layer.parent_group else self._scope.to_layer(layer.visible)
        )

    def requests_of_columns(self) -> tuple[ExternalRequest, ...]:
        """Return the requests for external values that the template's columns need, sorted by dependency."""
        own = {name: (self._scope, name) for name in self._scope.columns}
        return self.external_requests.requests(own, self._column_reads.dependencies)

    def _related_plan(self, scope: Scope) -> RelatedPlan:
        related = self.related_plans.template(scope.address)
        salt = self.related_plans.salt(scope.address)
        return RelatedPlan(
            scope.to_layer(()),
            related.anchor,
            related.name,
            self.related_plans.row_count(scope.address),
            salt,
        )

    def _build_column(self, spec: FieldSpec, field_type: FieldType) -> Column:
        common = spec.common
        after = postprocess.text_transform(common)
        formula = None
        if common.formula is not None:
            formula = compile_formula(self, spec, "formula", common.formula, own_type=field_type)
        dtype = field_type.dtype if formula is None else formula.dtype
        structured = pa.types.is_struct(dtype) or pa.types.is_list(dtype)
        if after is not None and structured:
            self.fault(
                spec,
                "prefix",
                "not_for_this_type",
                "text_case, prefix and suffix are only available for single values.",
            )
        if common.locale and not spec.type.localised:
            text = f"{spec.type.label} has the same values in every locale."
            self.fault(spec, "locale", "not_for_this_type", text, "Remove locale.")
        elif common.locale and not self.vocabulary.has_locale(common.locale):
            text = f'There is no locale "{common.locale}".'
            self.fault(
                spec, "locale", "unknown_locale", text, did_you_mean(common.locale, self.vocabulary.locales)
            )
        if common.unique and spec.type.localised and postprocess.merges_letters(common, self.locale_of(spec)):
            text = "In uppercase, the Turkish letters ı and i are the same, so names may repeat."
            self.fault(spec, "unique", "not_unique", text, "Remove text_case, or remove unique.")
        elif common.unique and field_type.distinct_count() is None:
            text = f"{spec.type.label} cannot be unique with these options."
            self.fault(spec, "unique", "not_unique", text, field_type.unique_hint())
        elif common.unique and formula is not None and formula.proof is None:
            self.fault(
                spec,
                "unique",
                "not_unique",
                "The formula may produce the same value more than once.",
                UNIQUE_HINT,
            )
        blank_share = Fraction(0 if field_type.blank_together else common.percent_blank)
        blank = (blank_share.numerator, blank_share.denominator) if blank_share else None
        return Column(spec, field_type, pa.string() if after else dtype, blank, after, formula)


class ExternalRequests:
    """The external requests of one plan, with the columns that need them."""

    def __init__(self) -> None:
        self._requests: dict[str, tuple[ExternalRequest, set[ColumnRef]]] = {}

    def add(self, question: ExternalQuery, path: str, keyed: bool, column_ref: ColumnRef) -> str:
        """Takes a question down; answers its key."""
        key = question.key
        _, column_refs = self._requests.setdefault(key, (ExternalRequest(question, path, keyed), set()))
        column_refs.add(column_ref)
        return key

    def requests(
        self, own: Mapping[str, ColumnRef], reached: Callable[[ColumnRef], set[ColumnRef]]
    ) -> tuple[ExternalRequest, ...]:
        """Return all requests, sorted by dependency. ``own`` are the template's columns, ``reached`` returns the
        columns that a column depends on."""
        if not self._requests:
            return ()
        dependencies = {name: reached(column_ref) for name, column_ref in own.items()}
        needs = {
            key: set().union(*map(reached, column_refs)) for key, (_, column_refs) in self._requests.items()
        }
        required = {
            key: [
                other
                for other, (_, column_refs) in self._requests.items()
                if other != key and needs[key] & column_refs
            ]
            for key in self._requests
        }
        levels: dict[str, int] = {}

        def level(key: str) -> int:
            if key not in levels:
                levels[key] = 0  # where questions of several columns wait for one another
                levels[key] = 1 + max(map(level, required[key]), default=-1)
            return levels[key]

        requests = [
            replace(
                ask,
                level=level(key),
                columns=tuple(name for name, column_ref in dependencies.items() if column_ref & column_refs),
            )
            for key, (ask, column_refs) in self._requests.items()
        ]
        return tuple(sorted(requests, key=lambda ask: ask.level))


ColumnRef = Hashable
"""A column: its level and its name."""


@dataclass(slots=True)
class _Step:
    """Other rows that are read over one group of references, or by one field."""

    factor: int = 1
    columns: set[ColumnRef] = field(default_factory=set)


class ColumnReads:
    """The dependencies between columns. Columns never depend on each other circularly."""

    def __init__(self) -> None:
        self._same_row: defaultdict[ColumnRef, set[ColumnRef]] = defaultdict(set)
        self._steps: defaultdict[ColumnRef, dict[ColumnRef, set[ColumnRef]]] = defaultdict(dict)
        self._factors: dict[ColumnRef, int] = {}
        self._costs: dict[frozenset[ColumnRef], tuple[int, int]] = {}

    def add_read(self, reader: ColumnRef, column: ColumnRef, reference: ColumnRef | None) -> None:
        """Record that ``reader`` reads ``column``: in the same row or in others, reached ``reference`` a group or a
        field."""
        if reference is None:
            self._same_row[reader].add(column)
        else:
            self._steps[reader].setdefault(reference, set()).add(column)

    def set_rows_per_row(self, reader: ColumnRef, maximum: int) -> None:
        """Record that ``reader`` reads up to ``maximum`` other rows for each row."""
        self._factors[reader] = maximum

    def dependencies(self, column: ColumnRef) -> set[ColumnRef]:
        """Return every column that this one depends on, in any row or template, itself included."""
        found, pending = {column}, [column]
        while pending:
            column_ref = pending.pop()
            new = self._same_row[column_ref].union(*self._steps[column_ref].values()) - found
            found |= new
            pending.extend(new)
        return found

    def cost(self, column: ColumnRef) -> tuple[int, int]:
        """Return how many blocks a column needs, and how many of their rows for each of its rows."""
        return self._cost_of(frozenset([column]))

    def _cost_of(self, columns: frozenset[ColumnRef]) -> tuple[int, int]:
        found = self._costs.get(columns)
        if found is not None:
            return found
        if len(self._costs) > limits.MAX_LOOKBACK_COLUMNS:  # more blocks than this are rejected in any case
            return limits.MAX_LOOKBACK_COLUMNS, limits.MAX_CELL_COST
        together, pending = set(columns), list(columns)
        while pending:
            new = self._same_row[pending.pop()] - together
            together |= new
            pending.extend(new)
        steps: defaultdict[ColumnRef, _Step] = defaultdict(_Step)
        for reader in together:
            for over, read in self._steps[reader].items():
                step = steps[over]
                step.columns |= read
                step.factor = max(step.factor, self._factors.get(reader, 1))
        blocks, rows = 1, 1
        for step in steps.values():
            more, each = self._cost_of(frozenset(step.columns))
            blocks, rows = blocks + more, rows + step.factor * each
        self._costs[columns] = blocks, rows
        return blocks, rows
