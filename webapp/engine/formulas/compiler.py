"""Compile a syntax tree to nodes: resolve names, infer types, check calls."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.formulas import operators, parser, reductions, text_kernels, types, vectors
from webapp.engine.formulas.declarations import Call, Function
from webapp.engine.formulas.functions import BY_NAME, find
from webapp.engine.formulas.functions.date import present, today
from webapp.engine.formulas.functions.text import sliced
from webapp.engine.formulas.nodes import Frame, Node, as_text, elementwise, literal
from webapp.engine.formulas.types import FormulaError, FormulaErrors, Kind
from webapp.engine.formulas.uniqueness import MAX_DISTINCT_COUNT, UniquenessProof
from webapp.engine.formulas.vectors import Lists, Vector
from webapp.errors import did_you_mean

BUILT_IN = {
    "this": "The generated value of the field, in the key `formula` of a field.",
    "row": "The row number, starting at 1.",
    "now": "The time `now` of the request.",
    "today": "The date of `now`.",
}
"""Names that need no field. A field of the same name goes before them, but not before `this`."""

CONSTANTS = {"true": True, "false": False, "null": None}


class NameResolver(Protocol):
    """Resolves the names of a formula."""

    def has_field(self, name: str) -> bool:
        """Return whether there is a field with this name."""

    def column(self, name: str, at: int) -> Node:
        """The field ``name``. Raises `FormulaError`, or `AlreadyReportedError` if the fault is recorded already."""

    def this(self, at: int) -> Node:
        """The field's own value. Raises `FormulaError`."""


class AlreadyReportedError(Exception):
    """A name cannot be used, and its fault is recorded already."""


class FormulaBuilder:
    """Compiles one formula. ``salts`` counts the random calls of a field, so that each has a different salt."""

    def __init__(self, source: str, names: NameResolver, salts: list[int]) -> None:
        self._source = parser.parse(source)
        self._names, self._salts = names, salts
        self._columns: dict[str, Node] = {}
        self.required_fields: dict[str, Kind] = {}

    def next_salt(self) -> int:
        """Return an unused salt for a random call."""
        self._salts.append(len(self._salts))
        return -10_000 - self._salts[-1]

    def build(self) -> Node:
        """The compiled formula. Raises `FormulaErrors`, or `AlreadyReportedError`."""
        errors: list[FormulaError] = []
        has_reported_fault = False
        nodes = list(ast.walk(self._source.tree))
        roots = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        roots |= {
            id(node.value) for node in nodes if isinstance(node, ast.Attribute) and self._dotted_name(node)
        }
        # Names and functions come first, so that all unknown ones are reported together.
        for node in nodes:
            if id(node) in roots:
                continue
            try:
                if isinstance(node, ast.Call):
                    self._function(node)
                elif isinstance(node, ast.Attribute):
                    self._dotted(node)
                elif isinstance(node, ast.Name):
                    self._name(node)
            except FormulaError as error:
                errors.append(error)
            except AlreadyReportedError:
                has_reported_fault = True
        if errors:
            raise FormulaErrors(sorted(errors, key=lambda error: error.position))
        if has_reported_fault:
            raise AlreadyReportedError
        try:
            return self._compile(self._source.tree)
        except FormulaError as error:
            raise FormulaErrors([error]) from None

    def _at(self, node: parser.PositionedNode) -> int:
        return self._source.position_of(node)

    def _compile(self, node: ast.expr) -> Node:
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                column = self._dotted(node)
                return (
                    column
                    if column is not None
                    else member(self._compile(node.value), node.attr, self._at(node))
                )
            case ast.Call():
                found = self._function(node)
                if isinstance(found, Node):
                    return found
                return found.build(
                    Call(self, found, [self._compile(arg) for arg in node.args], self._at(node))
                )
            case ast.Subscript():
                return self._subscript(node)
            case ast.List():
                elements = [self._compile(elt) for elt in node.elts]
                result = reductions.list_literal(elements, self._at(node))
                if elements and all(element.is_constant for element in elements):
                    # For `in`, which then looks them up instead of comparing with each.
                    result.const = elements
                return result
            case ast.UnaryOp():
                operand, at = self._compile(node.operand), self._at(node)
                if isinstance(node.op, ast.Not):
                    return operators.logical_not(operand, at)
                return (
                    operators.negate(operand, at)
                    if isinstance(node.op, ast.USub)
                    else operators.as_number(operand)
                )
            case ast.BinOp():
                return _BINARY[type(node.op)](
                    self._compile(node.left), self._compile(node.right), self._at(node)
                )
            case ast.BoolOp():
                combine = operators.logical_and if isinstance(node.op, ast.And) else operators.logical_or
                return combine([self._compile(value) for value in node.values], self._at(node))
            case ast.IfExp():
                test, yes, no = (self._compile(item) for item in (node.test, node.body, node.orelse))
                return operators.conditional(test, yes, no, self._at(node))
            case ast.Compare():
                at, sides = self._at(node), [node.left, *node.comparators]
                pairs = [
                    self._comparison(a, b, op, at)
                    for a, b, op in zip(sides, sides[1:], node.ops, strict=False)
                ]
                return pairs[0] if len(pairs) == 1 else operators.logical_and(pairs, at)
        raise TypeError(f"the parser lets no {type(node).__name__} through")

    def _constant(self, node: ast.Constant) -> Node:
        at, value = self._at(node), node.value
        if value is None:
            return literal(types.NULL, None, at)
        if isinstance(value, bool):
            return literal(types.BOOLEAN, value, at)
        if isinstance(value, str):
            return literal(types.text(), value, at)
        if at in self._source.stars:
            raise FormulaError("not_allowed", "[*] can only follow a list.", at, "Such as lines[*].amount.")
        integer_part, _, fraction = self._source.numbers[at].partition(".")
        return literal(types.number(len(fraction)), int((integer_part or "0") + fraction), at)

    def _name(self, node: ast.Name) -> Node:
        name, at = node.id, self._at(node)
        if name == "this":
            return self._names.this(at)
        if name in CONSTANTS:
            return self._constant(ast.copy_location(ast.Constant(CONSTANTS[name]), node))
        if not self._names.has_field(name):
            if name == "row":
                return Node(
                    types.number(0),
                    lambda frame: Vector((frame.context.rows + np.uint64(1)).view(np.int64)),
                    at,
                    proof=UniquenessProof(MAX_DISTINCT_COUNT, is_nonnegative=True),
                )
            if name == "now":
                return present(at)
            if name == "today":
                return today.build(Call(self, today, [], at))
        return self._column(name, at)

    def _column(self, name: str, at: int) -> Node:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = self._names.column(name, at)
            if name != "this":
                self.required_fields[name] = column.kind
        return Node(column.kind, column.run, at, column.const, column.proof)

    def _dotted_name(self, node: ast.Attribute) -> str | None:
        """Return the whole name if it is a field of the parent, or a field whose own name contains a dot."""
        if not isinstance(node.value, ast.Name):
            return None
        name = f"{node.value.id}.{node.attr}"
        parent = node.value.id == "parent" and not self._names.has_field("parent")
        return name if parent or self._names.has_field(name) else None

    def _dotted(self, node: ast.Attribute) -> Node | None:
        name = self._dotted_name(node)
        return None if name is None else self._column(name, self._at(node))

    def _function(self, node: ast.Call) -> Function | Node:
        assert isinstance(node.func, ast.Name)  # the parser lets nothing else be called
        name, at = node.func.id, self._at(node)
        if name == "field":
            argument = node.args[0] if len(node.args) == 1 else None
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise FormulaError(
                    "wrong_arguments", "field(...) needs the name of a field.", at, 'field("first name")'
                )
            return self._column(argument.value, at)
        found = find(name)
        if found is None:
            hint = did_you_mean(name.lower(), [*BY_NAME, "field"]) or "The reference lists all functions."
            raise FormulaError("unknown_function", f"There is no function {name}.", at, hint)
        return found

    def _subscript(self, node: ast.Subscript) -> Node:
        value, at = self._compile(node.value), self._at(node)
        if isinstance(node.slice, ast.Slice):
            cut = node.slice
            if cut.step is not None:
                raise FormulaError(
                    "not_allowed",
                    "Slices with a step are not supported.",
                    self._at(cut.step),
                    "Use `text[0:3]`.",
                )
            if value.kind.name in ("list", "object"):
                raise FormulaError(
                    "wrong_type",
                    f"{value.kind.label.capitalize()} cannot be sliced.",
                    at,
                    "Take one element: [0].",
                )
            start = 0 if cut.lower is None else self._index(cut.lower)
            return sliced(as_text(value), start, None if cut.upper is None else self._index(cut.upper), at)
        if isinstance(node.slice, ast.Constant) and self._at(node.slice) in self._source.stars:
            if value.kind.name != "list":
                raise FormulaError("wrong_type", f"[*] works on lists, not on {value.kind.label}.", at)
            return value
        index = self._index(node.slice)
        if value.kind.name == "list":
            return reductions.element(value, index, at)
        if value.kind.name == "object":
            raise FormulaError(
                "wrong_type",
                "An object has no elements.",
                at,
                "Select one of its fields with a dot, such as address.city.",
            )
        return sliced(as_text(value), index, index + 1 if index != -1 else None, at, 1)

    def _index(self, node: ast.expr) -> int:
        index = self._compile(node)
        if (
            not index.is_constant
            or index.kind.name != "integer"
            or index.const is None
            or abs(index.const) > 2**30
        ):
            hint = "Positions start at 0, or at -1 from the end: [0], [-1]."
            raise FormulaError("not_fixed", "A position must be a literal integer.", index.position, hint)
        return index.const

    def _comparison(self, left: ast.expr, right: ast.expr, op: ast.cmpop, at: int) -> Node:
        a, b = self._compile(left), self._compile(right)
        if isinstance(op, ast.In | ast.NotIn):
            found = _contains(a, b, at)
            return operators.logical_not(found, at) if isinstance(op, ast.NotIn) else found
        if isinstance(op, ast.Is | ast.IsNot):
            if not (b.is_constant and b.const is None):
                raise FormulaError(
                    "not_allowed", "`is` can only be used with null.", at, "Use `==` to compare."
                )
            return operators.compare(a, b, "==" if isinstance(op, ast.Is) else "!=", at)
        return operators.compare(a, b, _SIGNS[type(op)], at)


def member(node: Node, name: str, at: int) -> Node:
    """A field of an object, or of each object of a list."""
    kind = node.element_kind
    if kind.name != "object":
        raise FormulaError(
            "wrong_type", f"{kind.label.capitalize()} has no field {name}.", at, "Only objects have fields."
        )
    names = [item for item, _ in kind.members]
    if name not in names:
        raise FormulaError(
            "unknown_field", f'The object has no field "{name}".', at, did_you_mean(name, names)
        )
    position = names.index(name)
    inner = kind.members[position][1]
    if node.kind.name != "list":
        return Node(inner, lambda frame: vectors.member(node.vector(frame), position, inner), at)
    if inner.name == "list":
        raise FormulaError(
            "wrong_type", "A field of nested lists cannot be read in one step.", at, "Take one element: [0]."
        )

    def run(frame: Frame) -> Lists:
        value = node.lists(frame)
        return Lists(value.offsets, vectors.member(value.vector, position, inner), value.valid)

    return Node(types.list_of(inner, node.kind.origin, node.kind.max_items), run, at)


def _is_one_of(a: Node, elements: list[Node], at: int) -> Node:
    """Return a test whether ``a`` is one of some literals."""
    (a, *elements), kind = operators.with_common_type(
        [a, *(operators.parse_date_constant(element, a) for element in elements)], at
    )
    values = [element.const for element in elements if element.const is not None]
    if kind.name == "text":
        pool = pa.array(values, pa.string())
        kernel = text_kernels.value_kernel(lambda texts: pc.is_in(texts, value_set=pool))
        return elementwise(
            [a], types.BOOLEAN, lambda n, value: Vector(operators.is_true(kernel(n, value))), at
        )
    candidates = np.array(values, np.int64)
    return elementwise(
        [a],
        types.BOOLEAN,
        lambda n, value: Vector(operators.is_true(Vector(np.isin(value.data, candidates), value.valid))),
        at,
    )


def _contains(a: Node, b: Node, at: int) -> Node:
    """``a in b``: an element of a list, or a part of a text."""
    if isinstance(b.const, list):
        return _is_one_of(a, b.const, at)
    if b.kind.name == "list":
        return reductions.any_of(operators.compare(a, b, "==", at), at, every=False)
    if b.kind.name != "text":
        raise operators.wrong_type(b, "a list or a text")
    if not a.is_constant or a.kind.name != "text" or a.const is None:
        hint = 'Use "part" in text, or value in [a, b].'
        raise FormulaError("not_fixed", "The text to search for must be a literal.", a.position, hint)
    part = a.const
    kernel = text_kernels.value_kernel(lambda texts: pc.match_substring(texts, part))
    return elementwise([b], types.BOOLEAN, lambda n, value: Vector(operators.is_true(kernel(n, value))), at)


_SIGNS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_BINARY: dict[type, Callable[[Node, Node, int], Node]] = {
    ast.Add: operators.add,
    ast.Sub: operators.subtract,
    ast.Mult: operators.multiply,
    ast.Div: operators.divide,
    ast.FloorDiv: operators.floor_divide,
    ast.Mod: operators.modulo,
    ast.Pow: operators.power,
}
