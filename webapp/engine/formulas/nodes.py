"""Compiled expressions: their types, and how they are evaluated for all rows of a block together."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from webapp.engine import processor_time
from webapp.engine.budget import MemoryMeter
from webapp.engine.formulas import types, vectors
from webapp.engine.formulas.types import FormulaError, FormulaValueError, Kind
from webapp.engine.formulas.uniqueness import Part, UniquenessProof
from webapp.engine.formulas.vectors import Lists, Value, Vector

if TYPE_CHECKING:
    from webapp.engine.blocks import GenerationContext

V = TypeVar("V", bound=Value)

NOT_CONSTANT = object()
"""Stands for the value of an expression that is not the same in every row."""


class RowContext(Protocol):
    """The rows and columns that an expression reads."""

    rows: np.ndarray

    @property
    def n(self) -> int:
        """The number of rows."""

    @property
    def env(self) -> GenerationContext:
        """Seed and now of the request."""

    def bits(self, salt: int = 0) -> np.ndarray:
        """``uint64[n]`` of random bits."""

    def column(self, name: str) -> pa.Array:
        """A field of the rows, finished."""


class Frame:
    """The rows that an expression is evaluated for. Columns are read once."""

    __slots__ = ("_context", "_loaded", "_meter", "n", "this")

    def __init__(self, context: RowContext | None, n: int, this: pa.Array | None = None) -> None:
        self._context, self.n, self.this = context, n, this
        self._loaded: dict[str, Value] = {}
        self._meter = MemoryMeter()

    @property
    def context(self) -> RowContext:
        """The fields of the rows. Raises TypeError if no rows are set, which only constants do not need."""
        if self._context is None:
            raise TypeError("a constant reads no fields")
        return self._context

    def charge(self, value: V) -> V:
        """Return ``value`` after adding its memory to the formula's total. Raises `MemoryBudgetError`,
        `CpuBudgetError`."""
        processor_time.check()
        self._meter.add(vectors.size_of(value))
        return value

    def column(self, name: str, kind: Kind) -> Value:
        """Another field of the same rows."""
        values = self._loaded.get(name)
        if values is None:
            values = self._loaded[name] = load_column(self.context.column(name), kind, name)
        return values


def load_column(column: pa.Array, kind: Kind, name: str) -> Value:
    """A column with its declared type; a fixed value of another type is converted if possible."""
    dtype = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    expected = types.to_arrow(kind)
    if dtype == expected or pa.types.is_nested(dtype) == pa.types.is_nested(expected) is True:
        return vectors.load(column, kind)
    if pa.types.is_float64(dtype) and kind.is_numeric:
        if not pa.types.is_dictionary(column.type):
            return vectors.load_vector(column, kind)
        pool = vectors.load_vector(column.dictionary, kind)
        indices = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
        valid = (
            column.indices.is_valid().to_numpy(zero_copy_only=False) if column.indices.null_count else None
        )
        return Vector(pool.data[indices], valid)
    if kind.name == "text" and not pa.types.is_list(dtype):
        actual = types.from_arrow(dtype)
        return vectors.to_text(actual, vectors.load_vector(column, actual), len(column))
    if kind.name == "decimal" and pa.types.is_int64(dtype):
        return vectors.convert(vectors.load(column, types.number(0)), types.number(0), kind, len(column))
    text = f'"{name}" is fixed to a value that is not {kind.label}, but the formula expects {kind.label}.'
    raise FormulaValueError("wrong_type", text, "Use a value of the field's type.")


@dataclass(slots=True)
class Node:
    """One compiled expression."""

    kind: Kind
    run: Callable[[Frame], Value]
    position: int = 1
    """Its position in the formula, in characters from 1."""
    const: Any = NOT_CONSTANT
    """Its value in every row (see `vectors.constant`), if known."""
    proof: UniquenessProof | None = None
    """Why its values never repeat, if this can be proven."""
    parts: tuple[Part, ...] | None = None
    """Of a text put together: what of."""
    quotient: Callable[[int], Node] | None = None
    """A division to this many decimal places, so that rounding it rounds only once."""

    @property
    def is_constant(self) -> bool:
        """Whether the value is known before any row is generated."""
        return self.const is not NOT_CONSTANT and self.kind.name != "list"

    @property
    def element_kind(self) -> Kind:
        """The type of a value, or of the elements of a list."""
        return self.kind.element if self.kind.name == "list" else self.kind

    def vector(self, frame: Frame) -> Vector:
        """Return the result of `run` as single values. Raises TypeError if they are lists."""
        value = self.run(frame)
        if not isinstance(value, Vector):
            raise TypeError(f"single values expected, not {self.kind.label}")
        return value

    def lists(self, frame: Frame) -> Lists:
        """Return the result of `run` as lists. Raises TypeError if they are single values."""
        value = self.run(frame)
        if not isinstance(value, Lists):
            raise TypeError(f"lists expected, not {self.kind.label}")
        return value


def literal(kind: Kind, value: Any, at: int) -> Node:
    """A constant in the formula."""
    if value is not None and kind.is_numeric:
        kind = replace(kind, low=value, high=value)
    elif kind.name == "text":
        kind = types.text(len(value or ""))
    vector = vectors.constant(kind, value)
    return Node(kind, lambda frame: vector, at, value)


Kernel = Callable[..., Value]
"""From the number of rows and one `Value` for each argument to a `Value`."""


def elementwise(
    args: list[Node], kind: Kind, kernel: Kernel, at: int, proof: UniquenessProof | None = None
) -> Node:
    """Apply ``kernel`` to each row; if an argument is a list, to each of its elements."""
    lists = [arg for arg in args if arg.kind.name == "list"]
    if lists:
        return _elementwise_lists(args, lists, kind, kernel, at)
    if all(arg.is_constant for arg in args) and kind.name not in ("list", "object"):
        alone = Frame(None, 1)
        try:
            value = vectors.single_value(kind, kernel(1, *[arg.run(alone) for arg in args]))
        except FormulaValueError as fault:
            raise FormulaError(fault.code, fault.message, at, fault.hint) from None
        if isinstance(value, str):
            FOLDED.bytes += 2 * sys.getsizeof(value)  # the text, and the column of it
        return literal(kind, value, at)

    def run(frame: Frame) -> Value:
        return frame.charge(kernel(frame.n, *[arg.run(frame) for arg in args]))

    return Node(kind, run, at, proof=proof)


class _Folded(threading.local):
    bytes = 0


FOLDED: Final = _Folded()
"""The size of the texts that were computed while compiling in this thread. The text of `repeat("x", 10000)` is much
larger than the formula, so a cache of compiled formulas counts it."""


def _elementwise_lists(args: list[Node], lists: list[Node], kind: Kind, kernel: Kernel, at: int) -> Node:
    origin = lists[0].kind.origin
    if any(other.kind.origin != origin for other in lists):
        text = "Elements of two different lists cannot be combined."
        raise FormulaError("different_lists", text, at, "Sum or join one of them first.")
    if kind.name == "list":
        raise FormulaError("wrong_type", "Lists of lists are not supported.", at, "Take one element: [0].")
    first = args.index(lists[0])
    if any(arg.kind.name == "object" for arg in args):
        raise FormulaError("wrong_type", "An object is not a single value.", at, "Select one of its fields.")

    def run(frame: Frame) -> Lists:
        values = [arg.run(frame) for arg in args]
        first_list = values[first]
        assert isinstance(first_list, Lists)  # args[first] is a list
        spread = [
            value.items if isinstance(value, Lists) else frame.charge(_broadcast(arg.kind, value, first_list))
            for arg, value in zip(args, values, strict=True)
        ]
        return frame.charge(
            Lists(first_list.offsets, kernel(int(first_list.offsets[-1]), *spread), first_list.valid)
        )

    return Node(types.list_of(kind, origin, lists[0].kind.max_items), run, at)


def _broadcast(kind: Kind, value: Vector, lists: Lists) -> Vector:
    is_constant = isinstance(value.data, pa.Scalar) or (
        isinstance(value.data, np.ndarray) and not value.data.ndim
    )
    return value if is_constant else vectors.take(kind, value, lists.owner)


def convert_node(node: Node, target: Kind) -> Node:
    """``node`` as the wider type ``target``."""
    kind = node.element_kind
    if kind.name == target.name and kind.places == target.places:
        return node
    proof = node.proof.as_text(kind) if node.proof and target.name == "text" else node.proof
    if kind.is_numeric and target.is_numeric:
        bounds = types.scaled(kind, target.places)
        target = types.number(target.places, *(bounds or (None, None)))
        check_bounds(target, node.position)
    return elementwise(
        [node], target, lambda n, value: vectors.convert(value, kind, target, n), node.position, proof
    )


def as_text(node: Node) -> Node:
    """``node`` spelled as a text."""
    if node.element_kind.name in ("list", "object"):
        text = f"A single value is required here, not {node.element_kind.label}."
        raise FormulaError("wrong_type", text, node.position, "Select one of its fields, or join the list.")
    return convert_node(node, types.text(types.text_length(node.element_kind)))


def check_bounds(kind: Kind, at: int) -> None:
    """Reject a number that may exceed 64 bits."""
    if (
        kind.low is None
        or kind.high is None
        or (kind.low >= types.MIN_INTEGER and kind.high <= types.MAX_INTEGER)
    ):
        return
    digits = len(str(max(abs(kind.low), abs(kind.high))))
    text = f"This number may have {digits} digits, including decimal places; the maximum is 18."
    raise FormulaError("too_large", text, at, "Round to fewer decimal places, or use smaller numbers.")


def check_length(longest: int | None, at: int) -> None:
    """Reject a text that may exceed the maximum length of a formula's result."""
    if types.is_too_long(longest):
        from webapp import limits

        text = f"This text may have {longest:,} characters; the maximum is {limits.MAX_FORMULA_TEXT:,}."
        raise FormulaError("too_long", text, at, "Shorten it, for example with left(...).")
