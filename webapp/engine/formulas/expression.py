"""Formulas of fields: compiled against the other fields of a template, evaluated for the rows of a block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from webapp import limits
from webapp.engine.errors import SpecError
from webapp.engine.formulas import types, vectors
from webapp.engine.formulas.compiler import BUILT_IN, AlreadyReportedError, FormulaBuilder, NameResolver
from webapp.engine.formulas.nodes import Frame, Node, RowContext, load_column
from webapp.engine.formulas.types import FormulaError, FormulaErrors, FormulaValueError, Kind
from webapp.engine.formulas.uniqueness import UniquenessProof, prove_column
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.compiler import Compiler
    from webapp.engine.layers import Column
    from webapp.engine.spec import FieldSpec
    from webapp.engine.types.base import FieldType

_NESTED = ("object", "list")


@dataclass(frozen=True, slots=True)
class Expression:
    """One compiled formula. ``path`` is its position in the template."""

    node: Node
    kinds: dict[str, Kind]
    """The fields that it reads, with their expected types."""
    path: str = ""

    @property
    def required_fields(self) -> tuple[str, ...]:
        """The fields it reads."""
        return tuple(self.kinds)

    @property
    def kind(self) -> Kind:
        """Its static type."""
        return self.node.kind

    @property
    def dtype(self) -> pa.DataType:
        """The Arrow type of its columns."""
        return types.to_arrow(self.node.kind)

    @property
    def max_length(self) -> int | None:
        """The length of the longest possible text, if known."""
        return self.node.kind.max_length if self.node.kind.name == "text" else None

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The minimum and maximum of its numbers, in units of the last decimal, if known."""
        return self.node.kind.bounds if self.node.kind.is_numeric else None

    @property
    def proof(self) -> UniquenessProof | None:
        """Why its values never repeat, if this can be proven."""
        return self.node.proof

    def column(self, context: RowContext, this: pa.Array | None = None) -> pa.Array:
        """The column for the rows of ``context``; ``this`` is the field's own column. Raises `SpecError` for a number
        or text that is too large."""
        frame = Frame(context, context.n, this)
        return self.run_with_error_path(lambda: vectors.store(self.node.kind, self.node.run(frame), frame.n))

    def run_with_error_path(self, work: Callable[[], pa.Array]) -> pa.Array:
        """Return the result of ``work``; its errors are reported with the path of the formula."""
        try:
            return work()
        except FormulaValueError as fault:
            raise SpecError([Fault(self.path, fault.code, fault.message, fault.hint)]) from None


class FieldResolver:
    """The names that a field's formula may use: fields of its row, of the levels around it, of the parent."""

    def __init__(
        self,
        compiler: Compiler,
        spec: FieldSpec,
        option: str,
        field_type: FieldType | None = None,
        offset: int = 0,
    ) -> None:
        self._compiler, self._spec, self._option, self._offset = compiler, spec, option, offset
        self._field_type = field_type
        """The field's own values, if the formula is its key ``formula``."""

    def has_field(self, name: str) -> bool:
        return self._compiler.level_of(name) is not None and name != self._spec.name

    def this(self, at: int) -> Node:
        if self._field_type is None:
            text = "`this` is only available in the formula key of a field."
            raise FormulaError("not_for_this_type", text, at, "Use the name of a field.")
        field_type, unique = self._field_type, self._spec.common.unique or self._field_type.is_primary_key
        kind = _bounded(_kind(field_type.dtype, field_type.max_length, "this", at), field_type)
        proof = (
            UniquenessProof(field_type.distinct_count() or types.MAX_INTEGER)
            if unique and field_type.distinct_count() is not None
            else None
        )
        return Node(kind, lambda frame: load_column(frame.this, kind, "this"), at, proof=proof)

    def column(self, name: str, at: int) -> Node:
        if self._field_type is not None and name == self._spec.name:
            return self.this(at)
        before = len(self._compiler.faults)
        column = self._compiler.require_column(self._spec, self._option, name)
        self._add_position(before, at + self._offset)
        if column is None:
            raise AlreadyReportedError
        kind = kind_of(column, name, at)
        own = self._compiler.level_of(name) == 0
        return Node(
            kind, lambda frame: frame.column(name, kind), at, proof=prove_column(column) if own else None
        )

    def _add_position(self, before: int, at: int) -> None:
        """Add the position in the formula to faults recorded since."""
        faults = self._compiler.faults
        path = f"{self._spec.path}.{self._option}"
        for index in range(before, len(faults)):
            fault = faults[index]
            if fault.path == path and fault.position is None:
                hint = fault.hint
                if fault.code == "unknown_field" and not hint:
                    name = fault.message.partition('"')[2].partition('"')[0]
                    hint = did_you_mean(name, BUILT_IN) or (
                        "Use a field of this template, or call a function: upper(name)."
                    )
                faults[index] = replace(
                    fault, message=_with_position(fault.message, at), hint=hint, position=at
                )


def kind_of(column: Column, name: str, at: int = 1) -> Kind:
    """The static type of a field. Raises `FormulaError` where formulas cannot read it."""
    meta = column.arrow_field().metadata or {}
    message = meta.get(b"max_length")
    return _bounded(_kind(column.dtype, int(message) if message else None, name, at), column)


def _kind(dtype: pa.DataType, longest: int | None, name: str, at: int) -> Kind:
    try:
        return types.from_arrow(dtype, longest, origin=name)
    except TypeError:
        message = f'"{name}" has values that formulas cannot read.'
        raise FormulaError("not_for_this_type", message, at) from None


def _bounded(kind: Kind, column: FieldType | Column) -> Kind:
    """Return it with the bounds of a column's numbers, if they do not grow with the rows."""
    if not kind.is_numeric or pa.types.is_float64(column.dtype):
        return kind
    bounds = column.bounds(limits.MAX_OFFSET)
    if bounds is None or bounds != column.bounds(1) or max(map(abs, bounds)) > types.MAX_INTEGER:
        return kind
    return replace(kind, low=bounds[0], high=bounds[1])


def _with_position(message: str, at: int) -> str:
    return f"{message} (character {at})"


def compile_formula(
    compiler: Compiler,
    spec: FieldSpec,
    option: str,
    source: str,
    *,
    own_type: FieldType | None = None,
    salts: list[int] | None = None,
    offset: int = 0,
    single: bool = True,
) -> Expression | None:
    """Compile the formula in ``option`` of a field; return None after errors, each with its position.

    ``own_type`` is the field's own type if the formula transforms its values. ``salts`` is shared by all formulas of
    one field. ``offset`` is the position of the formula in a longer text. ``single`` rejects objects and lists of them.
    """
    names = FieldResolver(compiler, spec, option, own_type, offset)
    try:
        found = compile_with(names, source, salts, f"{spec.path}.{option}")
        kind = found.kind
        if single and (kind.name == "object" or (kind.name == "list" and kind.element.name in _NESTED)):
            raise FormulaErrors(
                [
                    FormulaError(
                        "wrong_type", "A formula cannot return an object.", 1, "Select one of its fields."
                    )
                ]
            )
        return found
    except FormulaErrors as errors:
        for error in errors.errors:
            at = error.position + offset
            path = f"{spec.path}.{option}"
            fault = Fault(path, error.code, _with_position(error.message, at), error.hint, position=at)
            compiler.faults.append(fault)
    except AlreadyReportedError:
        pass
    return None


def compile_with(
    names: NameResolver, source: str, salts: list[int] | None = None, path: str = ""
) -> Expression:
    """Compiles a formula against any ``names``. Raises `FormulaErrors`, or `AlreadyReportedError`."""
    try:
        builder = FormulaBuilder(source, names, [] if salts is None else salts)
    except FormulaError as error:
        raise FormulaErrors([error]) from None
    node = builder.build()
    return Expression(node, builder.required_fields, path)


class ColumnResolver:
    """Names for given columns: for formulas outside templates, such as filters and mappings."""

    def __init__(self, kinds: dict[str, Kind]) -> None:
        self._kinds = kinds

    def has_field(self, name: str) -> bool:
        return name in self._kinds

    def this(self, at: int) -> Node:
        raise FormulaError(
            "not_for_this_type", "`this` is not available here.", at, "Use the name of a column."
        )

    def column(self, name: str, at: int) -> Node:
        kind = self._kinds.get(name)
        if kind is None:
            hint = did_you_mean(name, [*self._kinds, *BUILT_IN])
            raise FormulaError("unknown_field", f'There is no field "{name}" here.', at, hint)
        return Node(kind, lambda frame: frame.column(name, kind), at)
