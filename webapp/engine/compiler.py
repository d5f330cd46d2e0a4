"""What field types see while a template is compiled, and the order in which its columns are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from webapp import limits
from webapp.engine import groups, postprocess
from webapp.engine.asking import Asking
from webapp.engine.expressions.expression import compile_formula
from webapp.engine.expressions.unique import ADVICE
from webapp.engine.fields import sourced
from webapp.engine.fields.base import RELATION, FieldType
from webapp.engine.fields.relation_group import ReferenceOptions
from webapp.engine.kinship import Kin, Library
from webapp.engine.layers import Column, Layer, Relative, Scope
from webapp.engine.outside import Answer, Question
from webapp.engine.reads import Reads
from webapp.engine.spec import FieldSpec, TemplateSpec
from webapp.engine.together import compile_together
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary

PARENT = "parent."
"""What stands before a field of the parent where a field of the child reads it."""


class Compiler:
    """What field types see while they are constructed: other columns, the vocabulary, and where to put faults.

    ``kin`` answers for the other templates that relations reach.
    """

    def __init__(
        self, spec: TemplateSpec, vocabulary: Vocabulary, locale: str | None, library: Library
    ) -> None:
        self.kin, self.library = Kin(spec, vocabulary, library), library
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []
        self.leaves = 1
        self.lookbacks: set[tuple[str, int]] = set()
        own = Scope("", vocabulary, locale, {f.name: f for f in spec.fields})
        self._scope = own
        self._roots = {"": own}
        self._source = spec.source.question() if spec.source is not None else None
        self.asking = Asking()
        self._pending: list[tuple[Scope, str]] = []
        self._reads = Reads()

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
        """Which template that is; see ``kinship.py``."""
        return self._scope.address

    @property
    def nested_here(self) -> bool:
        """Whether the field being compiled lies inside another one."""
        return self._scope.parent is not None

    @property
    def in_array(self) -> bool:
        """Whether the field being compiled belongs to the elements of an array, which have no row before them."""
        return self._scope.array

    def fault(self, spec: FieldSpec, option: str, code: str, message: str, hint: str | None = "") -> None:
        """Records what is wrong with ``option`` of a field (``""`` for the field itself)."""
        path = spec.path + (f".{option}" if option else "")
        self.faults.append(Fault(path, code, message, hint))

    def warn(self, spec: FieldSpec, code: str, message: str, hint: str = "") -> None:
        """Records what will surprise, but can be carried out."""
        self.warnings.append(Fault(spec.path, code, message, hint))

    def ask(self, spec: FieldSpec, question: Question, keyed: bool = False) -> Answer | None:
        """What a question was answered with; None: not yet. ``keyed``: it hangs on values of the row."""
        return self.library.answers.get(
            self.asking.note(question, spec.path, keyed, (self._scope, spec.name))
        )

    @property
    def source(self) -> Question | None:
        """What is asked for the rows of the template whose field is being compiled; None where they are made, and for
        fields inside others."""
        return self._source if self._scope is self._roots[""] else None

    def source_column(self, name: str) -> str | None:
        """The source's column that the field ``name`` takes; None where it is made."""
        answer = self.library.answers.get(self._source.key) if self._source is not None else None
        found = self._roots[""].fields.get(name)
        if answer is None or answer.taken is None or found is None:
            return None
        return sourced.column_of(found, answer.taken.real.columns)

    def _taken(self, spec: FieldSpec, made: FieldType) -> FieldType:
        """``made``, or what takes its place where the template has a source."""
        if self.source is None:
            if spec.common.column is not None:
                text = "Only a field of a template with a source can name a column of it."
                self.fault(
                    spec, "column", "no_source", text, "Take column away, or give the template a source."
                )
            return made
        answer = self.ask(spec, self.source)
        return made if answer is None or answer.taken is None else sourced.take(made, answer.taken, self)

    def read_so_far(self) -> list[FieldSpec]:
        """Every field that the one being compiled is made of, by what it has required until now."""
        here = self._pending[-1]
        found: list[FieldSpec] = []
        for spot in self._reads.reached(here) - {here}:
            assert isinstance(spot, tuple)
            scope, name = spot
            found.append(scope.fields[name])
        return found

    def locale_of(self, spec: FieldSpec) -> str | None:
        """The field's own locale, else the template's, as the vocabulary spells it; None where neither says, or the
        vocabulary has none such (which is reported when the column is made)."""
        asked = spec.common.locale or self.locale
        return self.vocabulary.resolve(asked) if asked else None

    def group_of(self, spec: FieldSpec) -> list[FieldSpec]:
        """The fields of this level that share a thing with ``spec``, itself among them."""
        key = groups.key_of(spec)
        return [field for field in self._scope.fields.values() if groups.key_of(field) == key]

    def members(self, name: str, kind: str) -> tuple[FieldSpec, ...]:
        """The fields of this level that are in a group or read it; none where there is no such group."""
        return self._scope.members.get((name, kind), ())

    def require(self, spec: FieldSpec, option: str, name: str) -> Column | None:
        """The column ``name`` that ``spec`` reads, compiled; None after a fault (unknown, or a cycle)."""
        scope: Scope | None = self._scope
        while scope is not None:
            if name in scope.fields:
                return self._compile(scope, name, spec, option)
            scope = scope.parent
        if name.startswith(PARENT):
            return self._of_parent(spec, option, name.removeprefix(PARENT))
        known = [name for name in self._scope.fields if name != spec.name]
        text = f'There is no field "{name}" here.'
        self.fault(spec, option, "unknown_field", text, did_you_mean(name, known))
        return None

    def related(
        self, spec: FieldSpec, option: str, address: str, name: str, group: str = ""
    ) -> Column | None:
        """The column ``name`` of the template at ``address``, compiled; None after a fault. ``group`` names the
        references that lead there, where they are not those of the field itself."""
        scope = self._root(address)
        if name not in scope.fields:
            text = f'"{self.kin.known(address).name}" has no field "{name}".'
            self.fault(spec, option, "unknown_field", text, did_you_mean(name, scope.fields))
            return None
        before = len(self.faults)
        if not group:
            group = spec.group or RELATION if spec.type.group_kind == RELATION else spec.name
        made = self._compile(scope, name, spec, option, (self._scope, group))
        if address != self.address and len(self.faults) > before:
            path = f"{spec.path}.{option}"  # theirs are those of fields of the other template
            told = [replace(fault, path=path) for fault in self.faults[before:] if fault.code == "cycle"]
            if not told:
                text = f'"{name}" of "{self.kin.known(address).name}": {self.faults[before].message}'
                told = [Fault(path, "related_fault", text, "Correct that template first.")]
            self.faults[before:] = told
        return made

    def visible_of(self, spec: FieldSpec, option: str, address: str) -> list[Column]:
        """The visible columns of the template at ``address``, compiled."""
        shown = [field.name for field in self._root(address).fields.values() if not field.common.hidden]
        made = [self.related(spec, option, address, name) for name in shown]
        return [column for column in made if column is not None]

    def relation(self, spec: FieldSpec, option: str) -> tuple[str, str] | None:
        """Group and address of what ``parent`` means to the fields of this template: its owner, else the one template
        it refers to; None after a fault."""
        scope = self._roots[self.address]
        owner = self.kin.owner(self.address)
        names = {name for name, kind in scope.members if kind == RELATION}
        if owner is not None:
            names = {owner[0].group or RELATION}
        if len(names) != 1:
            text = (
                "There is no parent here."
                if not names
                else "There are several parents here; none has cardinality."
            )
            hint = "Add a field of type reference; the one with cardinality is the parent."
            self.fault(spec, option, "no_parent", text, hint)
            return None
        name = names.pop()
        first = scope.members[name, RELATION][0]
        assert isinstance(first.options, ReferenceOptions)
        address = self.kin.address(first.options.template_id, self.address)
        return None if address is None else (name, address)

    def _of_parent(self, spec: FieldSpec, option: str, name: str) -> Column | None:
        found = self.relation(spec, option)
        if found is None:
            return None
        group, address = found
        root = self._roots[self.address]
        root.relation = group
        self._group(root, (group, RELATION))
        return self.related(spec, option, address, name, group)

    def level_of(self, name: str) -> int | None:
        """How many levels out there is a field ``name``: 0 is this one; None: nowhere."""
        scope: Scope | None = self._scope
        level = 0
        while scope is not None:
            if name in scope.fields:
                return level
            scope, level = scope.parent, level + 1
        return None

    def _root(self, address: str) -> Scope:
        found = self._roots.get(address)
        if found is None:
            known = self.kin.known(address)
            fields = {field.name: field for field in known.spec.fields}
            found = self._roots[address] = Scope(address, known.vocabulary, known.spec.locale, fields)
            found.members = groups.members(fields.values())
        return found

    def widen(self, address: str, factor: int) -> None:
        """Says that a row of the level being compiled bears up to ``factor`` rows of the template at ``address``."""
        scope = self._root(address)
        scope.expansion = self._scope.expansion * factor
        self.leaves = max(self.leaves, scope.expansion)

    def kind_of(self, spec: FieldSpec) -> Any:
        """The compiled kind of the group that ``spec`` is in."""
        kind = spec.type.group_kind
        assert kind is not None
        return self._scope.groups[spec.group or kind, kind].kind

    def relation_of(self, address: str, name: str) -> Any:
        """The compiled relation ``name`` (a group of references) of the template at ``address``."""
        scope = self._root(address)
        self._group(scope, (name, RELATION))
        return scope.groups[name, RELATION].kind

    def _group(self, scope: Scope, key: tuple[str, str]) -> None:
        if key in scope.groups:
            return
        inner, self._scope = self._scope, scope
        scope.groups[key] = groups.compiled(key, scope.members[key], self)
        self._scope = inner

    def nested(self, fields: Sequence[FieldSpec], factor: int, array: bool = True) -> Layer:
        """Compiles the fields inside a nested field, of which a row of this level bears at most ``factor``; without
        ``array`` it bears exactly one."""
        outer = self._scope
        expansion = outer.expansion * factor
        named = {f.name: f for f in fields}
        self._scope = Scope(
            outer.address, outer.vocabulary, outer.locale, named, parent=outer, expansion=expansion
        )
        self._scope.array = array or outer.array
        self.leaves = max(self.leaves, expansion)
        try:
            return self._layer(self._scope)
        finally:
            self._scope = outer

    def _layer(self, scope: Scope) -> Layer:
        scope.members = groups.members(scope.fields.values(), self)
        for key in scope.members:
            self._group(scope, key)
        for name in scope.fields:
            self._compile(scope, name, None, "")
        visible = tuple(name for name, spec in scope.fields.items() if not spec.common.hidden)
        if not visible and scope.parent is None:
            self.faults.append(Fault("fields", "all_hidden", "At least one field must be visible.", ""))
        return scope.layer(visible)

    def _compile(
        self,
        scope: Scope,
        name: str,
        reader: FieldSpec | None,
        option: str,
        over: tuple[Scope, str] | None = None,
    ) -> Column | None:
        """The column ``name``; ``over`` is the group or the field by which it is read in other rows."""
        if self._pending:
            self._reads.note(self._pending[-1], (scope, name), over)
        if name in scope.columns or name in scope.failed:
            return scope.columns.get(name)
        if scope.fields[name].invalid:
            scope.failed.add(name)
            return None
        waiting = [
            place for place, (where, field) in enumerate(self._pending) if where is scope and field == name
        ]
        if waiting:
            circle = [self._called(where, field) for where, field in self._pending[waiting[0] :]]
            cycle = " -> ".join([*circle, circle[0]])
            assert reader is not None  # what waits is read
            self.fault(
                reader, option, "cycle", f"These fields wait for each other: {cycle}.", "Break the circle."
            )
            return None
        if len(self._pending) >= limits.MAX_CHAIN:
            text = f"More than {limits.MAX_CHAIN} fields wait for one another."
            self.fault(
                scope.fields[name], "", "too_deep", text, "Let fields read the first ones of the chain."
            )
            return None
        self._pending.append((scope, name))
        inner, self._scope = self._scope, scope
        before = len(self.faults)
        spec = scope.fields[name]
        key = groups.key_of(spec)
        if key is not None:
            self._group(scope, key)
            read = spec.type.reads(key[0])
            if read in scope.members:
                self._group(scope, read)
        made = self._taken(spec, spec.type(spec, spec.options, self))
        if made.expansion > 1:
            self._reads.children((scope, name), made.expansion)
        column = None if len(self.faults) > before else self._column(spec, made)
        self._scope = inner
        self._pending.pop()
        if column is None or len(self.faults) > before:
            scope.failed.add(name)
            return None
        scope.columns[name] = column
        word = spec.common.unique_together
        if word is not None and word not in scope.joined:
            self._unite(scope, word)
        return column

    def weigh(self) -> None:
        """Refuses columns that take too many others to be made. Asked once all are compiled without a fault."""
        for name, spec in self._scope.fields.items():
            blocks, rows = self._reads.cost((self._scope, name))
            if rows > limits.MAX_CELL_COST or blocks > limits.MAX_LOOKBACKS:
                most = limits.MAX_CELL_COST if rows > limits.MAX_CELL_COST else limits.MAX_LOOKBACKS
                text = f"One value takes up to {max(rows, blocks):,} rows to be made; {most:,} is the most."
                hint = "Lower the cardinality of the children that it is made of, or read fewer references in a row."
                self.fault(spec, "", "too_many_cells", text, hint)

    def _unite(self, scope: Scope, word: str) -> None:
        """Compiles the fields that are unique together as ``word``."""
        scope.joined.add(word)
        members = [spec for spec in scope.fields.values() if spec.common.unique_together == word]
        found = [self._compile(scope, spec.name, None, "") for spec in members]
        columns = [column for column in found if column is not None]
        if len(columns) < len(found):
            return
        inner, self._scope = self._scope, scope
        made = compile_together(word, members, columns, self)
        self._scope = inner
        if made is not None:
            for place, spot in enumerate(made.spots):
                scope.together[spot] = (made, place)

    def _relative(self, scope: Scope) -> Relative:
        known = self.kin.known(scope.address)
        salt = self.kin.salt(scope.address)
        return Relative(scope.layer(()), known.anchor, known.name, self.kin.rows(scope.address), salt)

    def _called(self, scope: Scope, name: str) -> str:
        return f"{self.kin.known(scope.address).name}.{name}" if scope.address else name

    def _column(self, spec: FieldSpec, made: FieldType) -> Column:
        common = spec.common
        after = postprocess.text_steps(common)
        formula = None
        if common.formula is not None:
            formula = compile_formula(self, spec, "formula", common.formula, made=made)
        dtype = made.dtype if formula is None else formula.dtype
        structured = pa.types.is_struct(dtype) or pa.types.is_list(dtype)
        if after is not None and structured:
            self.fault(spec, "prefix", "not_for_this_type", "Case, prefix and suffix are for single values.")
        if common.locale and not spec.type.localised:
            text = f"{spec.type.label} has the same values in every locale."
            self.fault(spec, "locale", "not_for_this_type", text, "Remove locale.")
        elif common.locale and not self.vocabulary.knows_locale(common.locale):
            text = f'There is no locale "{common.locale}".'
            self.fault(
                spec, "locale", "unknown_locale", text, did_you_mean(common.locale, self.vocabulary.locales)
            )
        if common.unique and spec.type.localised and postprocess.merges_letters(common, self.locale_of(spec)):
            text = "In capitals the Turkish letters ı and i are one, so that names may come out alike."
            self.fault(spec, "unique", "not_unique", text, "Take text_case away, or take unique away.")
        elif common.unique and made.space() is None:
            text = f"{spec.type.label} cannot be kept unique as it is set."
            self.fault(spec, "unique", "not_unique", text, made.unique_hint())
        elif common.unique and formula is not None and formula.proof is None:
            self.fault(spec, "unique", "not_unique", "Its formula may give the same value twice.", ADVICE)
        share = Fraction(0 if made.blank_together else common.percent_blank)
        blank = (share.numerator, share.denominator) if share else None
        return Column(spec, made, pa.string() if after else dtype, blank, after, formula)
