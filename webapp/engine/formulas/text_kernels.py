"""Kernels over texts. A column that is a dictionary over a small pool is treated pool by pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine import budget
from webapp.engine.formulas.types import FormulaValueError
from webapp.engine.formulas.vectors import Vector, decode_dictionary

TextFunction = Callable[[pa.Array], pa.Array]

_COMPARE = {
    "==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


def decoded_texts(value: Vector) -> Any:
    """Texts without a dictionary: an array, or the scalar they all are."""
    data = value.data
    return data if isinstance(data, pa.Scalar) else decode_dictionary(data)


def text_kernel(function: TextFunction) -> Callable[[int, Vector], Vector]:
    """A kernel of one text from a function of arrays."""

    def kernel(n: int, value: Vector) -> Vector:
        data = value.data
        if isinstance(data, pa.Scalar):
            return Vector(function(pa.array([data.as_py()], pa.string()))[0])
        if pa.types.is_dictionary(data.type) and len(data.dictionary) <= n:
            return Vector(pa.DictionaryArray.from_arrays(data.indices, function(data.dictionary), safe=False))
        return Vector(function(decoded_texts(value)))

    return kernel


def value_kernel(function: TextFunction) -> Callable[[int, Vector], Vector]:
    """A kernel from one text to a number or truth value, from a function of arrays."""

    def kernel(n: int, value: Vector) -> Vector:
        data = value.data
        if isinstance(data, pa.Scalar):
            result = to_vector(function(pa.array([data.as_py()], pa.string())))
            return Vector(result.data.reshape(()), None if result.valid is None else result.valid.reshape(()))
        if pa.types.is_dictionary(data.type):
            if len(data.dictionary) <= n:
                return _by_index(function(data.dictionary), data.indices)
            data = decode_dictionary(data)
        return to_vector(function(data))

    return kernel


def to_vector(values: pa.Array) -> Vector:
    """An Arrow array of integers or truth values as a `Vector`."""
    valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None
    if values.null_count:
        values = values.fill_null(False if pa.types.is_boolean(values.type) else 0)
    data = values.to_numpy(zero_copy_only=False)
    return Vector(data if data.dtype == bool else data.astype(np.int64), valid)


def _by_index(pool: pa.Array, indices: pa.Array) -> Vector:
    pool_values = to_vector(pool)
    valid = indices.is_valid().to_numpy(zero_copy_only=False) if indices.null_count else None
    positions = (indices.fill_null(0) if indices.null_count else indices).to_numpy(zero_copy_only=False)
    if not pool_values.data.size:
        return Vector(np.zeros(positions.size, pool_values.data.dtype), valid)
    inner = None if pool_values.valid is None else pool_values.valid[positions]
    return Vector(
        pool_values.data[positions], inner if valid is None else valid if inner is None else inner & valid
    )


def compare(sign: str, n: int, a: Vector, b: Vector) -> Vector:
    """Truth values; false if one of the two is null."""
    operation = _COMPARE[sign]
    for vector, other, is_swapped in ((a, b, False), (b, a, True)):
        fixed = other.data
        if isinstance(fixed, pa.Scalar) and not isinstance(vector.data, pa.Scalar):
            result = value_kernel(
                partial(operation, fixed) if is_swapped else partial(_swapped, operation, fixed)
            )(n, vector)
            return Vector(
                result.data.astype(bool) if result.valid is None else result.data.astype(bool) & result.valid
            )
    result = operation(decoded_texts(a), decoded_texts(b))
    if isinstance(result, pa.Scalar):
        return Vector(np.array(bool(result.as_py())))
    result = to_vector(result)
    return Vector(result.data if result.valid is None else result.data & result.valid)


def _swapped(operation: Callable[[Any, Any], pa.Array], fixed: pa.Scalar, data: pa.Array) -> pa.Array:
    return operation(data, fixed)


def concat(n: int, values: Sequence[Vector], blank: str | None) -> Vector:
    """Join texts; ``blank`` replaces nulls; without it, a null text makes the result null."""
    pieces = [decoded_texts(value) for value in values]
    sizes = [byte_lengths(piece) for piece in pieces]
    budget.check(sum(int(size.sum()) if size.size > 1 else int(size[0]) * n for size in sizes))
    if sum(int(size.max()) for size in sizes) > limits.MAX_FORMULA_TEXT:
        check_lengths(sum((char_lengths(piece) for piece in pieces), np.zeros(1, np.int64)))
    if blank is None:
        return Vector(pc.binary_join_element_wise(*pieces, ""))
    joined = pc.binary_join_element_wise(*pieces, "", null_handling="replace", null_replacement=blank)
    return Vector(joined)


def byte_lengths(piece: Any) -> np.ndarray:
    """The bytes of each text, which are at least its characters."""
    if isinstance(piece, pa.Scalar):
        return np.array([len((piece.as_py() or "").encode())])
    if not len(piece):
        return np.zeros(1, np.int64)
    ends = np.frombuffer(piece.buffers()[1], np.int32)[piece.offset : piece.offset + len(piece) + 1]
    return np.diff(ends).astype(np.int64)


def char_lengths(piece: Any) -> np.ndarray:
    """Return the number of characters of each text, 0 for blank ones."""
    if isinstance(piece, pa.Scalar):
        return np.array([len(piece.as_py() or "")])
    return pc.fill_null(pc.utf8_length(piece), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def check_lengths(sizes: np.ndarray) -> None:
    """Reject texts that are longer than the maximum; ``sizes`` are their lengths. Raises `MemoryBudgetError` if all of
    them together exceed the budget of a block."""
    budget.check(int(sizes.sum()))
    if sizes.size and int(sizes.max()) > limits.MAX_FORMULA_TEXT:
        text = f"The text would have {int(sizes.max()):,} characters; the maximum is {limits.MAX_FORMULA_TEXT:,}."
        raise FormulaValueError("too_long", text, "Shorten the text with left(...) first.")
