"""Lists folded to one value a row: sums, extremes, averages, joins. Sums are exact; blanks are left out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import budget
from webapp.engine.formulas import operators, text_kernels, types, vectors
from webapp.engine.formulas.nodes import Frame, Node, as_text, check_length
from webapp.engine.formulas.types import FormulaError, FormulaValueError, Kind
from webapp.engine.formulas.vectors import Lists, Value, Vector


def _reduction_node(node: Node, kind: Kind, at: int, kernel: Callable[[int, Lists], Value]) -> Node:
    return Node(kind, lambda frame: frame.charge(kernel(frame.n, node.lists(frame))), at)


def sum_values(node: Node, at: int) -> Node:
    """The sum of a list; 0 of an empty one."""
    kind = _number_kind(node)
    max_items = node.kind.max_items
    low = high = None
    if kind.bounds and max_items is not None:
        low, high = min(0, kind.bounds[0] * max_items), max(0, kind.bounds[1] * max_items)
    return _reduction_node(node, types.number(kind.places, low, high), at, lambda n, value: _sums(value))


def _number_kind(node: Node) -> Kind:
    if not node.kind.element.is_numeric:
        raise operators.wrong_type(node, "a list of numbers")
    return node.kind.element


def _sums(value: Lists) -> Vector:
    items = value.vector
    data = vectors.broadcast(items, int(value.offsets[-1]))
    if items.valid is not None:
        data = np.where(items.valid, data, 0)
    counts = value.counts
    longest = int(counts.max(initial=0))
    low, high = (int(data.min()), int(data.max())) if data.size else (0, 0)
    if not vectors.fits(min(0, low) * longest, max(0, high) * longest):
        numbers = data.tolist()
        sums = [sum(numbers[start:end]) for start, end in pairwise(value.offsets.tolist())]
        if sums and not vectors.fits(min(sums), max(sums)):
            raise FormulaValueError(
                "too_large", "A sum is too large for 64 bits.", "Round the elements to fewer decimal places."
            )
        return Vector(np.array(sums, np.int64), value.valid)
    # Running totals may wrap; their differences are right again, since every sum fits.
    running = np.zeros(data.size + 1, np.int64)
    np.cumsum(data, out=running[1:])
    return Vector(running[value.offsets[1:]] - running[value.offsets[:-1]], value.valid)


def count_values(node: Node, at: int) -> Node:
    """Return the number of elements that are not null."""
    kind = node.kind.element

    def kernel(n: int, value: Lists) -> Vector:
        return Vector(_counts(value, kind), value.valid)

    return _reduction_node(node, types.number(0, 0, node.kind.max_items or 2**31), at, kernel)


def _counts(value: Lists, kind: Kind) -> np.ndarray:
    size = int(value.offsets[-1])
    cumulative = np.zeros(size + 1, np.int64)
    np.cumsum(vectors.is_valid(kind, value.items, size), out=cumulative[1:])
    return cumulative[value.offsets[1:]] - cumulative[value.offsets[:-1]]


def average(node: Node, at: int) -> Node:
    """The sum divided by how many there are, half to even; blank of none."""
    kind = _number_kind(node)

    def to(places: int) -> Node:
        def kernel(n: int, value: Lists) -> Vector:
            sums, counts = _sums(value), _counts(value, kind)
            return vectors.divide(sums, Vector(counts), places - kind.places)

        return _reduction_node(node, types.number(places), at, kernel)

    result = to(max(operators.QUOTIENT_PLACES, kind.places))
    result.quotient = to
    return result


def extreme(node: Node, at: int, *, least: bool) -> Node:
    """The least or greatest element; blank of none."""
    kind = node.kind.element
    if kind.name in ("list", "object", "boolean", "null"):
        raise operators.wrong_type(node, "a list of numbers, texts or dates")
    pick = np.minimum if least else np.maximum
    if kind.name == "text":
        return _reduction_node(node, kind, at, lambda n, value: _extreme_text(value, least=least))

    def kernel(n: int, value: Lists) -> Vector:
        counts = _counts(value, kind)
        filled = np.flatnonzero(counts)
        size = int(value.offsets[-1])
        is_valid = vectors.is_valid(kind, value.items, size)
        data = vectors.broadcast(value.vector, size)[is_valid]
        out = np.zeros(counts.size, np.int64)
        if filled.size:
            starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts[filled])[:-1]))
            out[filled] = pick.reduceat(data, starts)
        return Vector(out, None if filled.size == counts.size else counts > 0)

    return _reduction_node(node, kind, at, kernel)


def _extreme_text(value: Lists, *, least: bool) -> Vector:
    rows = value.offsets.size - 1
    texts = vectors.broadcast_text(value.vector, int(value.offsets[-1]))
    name = "min" if least else "max"
    # Strings have no grouped extremes in Arrow: their ranks do.
    words = texts.dictionary_encode()
    order = pc.array_sort_indices(words.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    word_indices = words.indices
    ranks = pa.array(rank).take(word_indices)
    grouped = (
        pa.table({"row": pa.array(value.owner), "rank": ranks}).group_by("row").aggregate([("rank", name)])
    )
    ranks_by_row = np.full(rows, -1, np.int64)
    found = grouped[f"rank_{name}"].combine_chunks()
    ranks_by_row[grouped["row"].to_numpy()] = found.fill_null(-1).to_numpy(zero_copy_only=False)
    indices = np.append(order.to_numpy().astype(np.int64), -1)[ranks_by_row]
    return Vector(words.dictionary.take(pa.array(indices, mask=indices < 0)))


def any_of(node: Node, at: int, *, every: bool) -> Node:
    """Return whether some, or all, elements are true."""
    if node.kind.element.name != "boolean":
        raise operators.wrong_type(node, "a list of conditions", "Such as lines[*].quantity > 1.")

    def kernel(n: int, value: Lists) -> Vector:
        items = value.vector
        is_true = operators.is_true(Vector(vectors.broadcast(items, int(value.offsets[-1])), items.valid))
        running = np.zeros(is_true.size + 1, np.int64)
        np.cumsum(is_true, out=running[1:])
        true_counts = running[value.offsets[1:]] - running[value.offsets[:-1]]
        return Vector(true_counts == value.counts if every else true_counts > 0)

    return _reduction_node(node, types.BOOLEAN, at, kernel)


def element_count(node: Node, at: int) -> Node:
    """Return the number of elements of a list."""
    kind = types.number(0, 0, node.kind.max_items or 2**31)
    return _reduction_node(node, kind, at, lambda n, value: Vector(value.counts, value.valid))


def element(node: Node, index: int, at: int) -> Node:
    """Return one element, counted from 0, or from the end from -1; blank if it does not exist."""
    kind = node.kind
    return _reduction_node(node, kind.element, at, lambda n, value: vectors.element(value, kind, index))


def join(node: Node, separator: str, at: int) -> Node:
    """The elements as one text; blank ones are left out."""
    texts_node = as_text(node)
    longest = texts_node.kind.element.max_length
    max_items = node.kind.max_items
    max_length = None if longest is None or max_items is None else max_items * (longest + len(separator))
    check_length(max_length, at)

    def kernel(n: int, value: Lists) -> Vector:
        texts = vectors.broadcast_text(value.vector, int(value.offsets[-1]))
        is_valid = texts.is_valid().to_numpy(zero_copy_only=False)
        counts = _counts(value, types.text())
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))).astype(np.int32)
        present = texts.filter(pa.array(is_valid)) if not is_valid.all() else texts
        sizes = Vector(text_kernels.char_lengths(present) + len(separator))
        text_kernels.check_lengths(_sums(Lists(offsets.astype(np.int64), sizes)).data)
        joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), present), separator)
        if value.valid is None:
            return Vector(joined)
        return Vector(pc.if_else(pa.array(value.valid), joined, pa.scalar(None, pa.string())))

    return _reduction_node(texts_node, types.text(max_length), at, kernel)


def distinct_count(node: Node, at: int) -> Node:
    """Return the number of distinct elements, without nulls."""
    kind = node.kind.element
    if kind.name in ("list", "object"):
        raise operators.wrong_type(node, "a list of single values", "Select one of the fields: lines[*].sku.")

    def kernel(n: int, value: Lists) -> Vector:
        size = int(value.offsets[-1])
        is_valid = vectors.is_valid(kind, value.items, size)
        if kind.name == "text":
            codes = vectors.broadcast_text(value.vector, size).dictionary_encode().indices
            data = codes.fill_null(0).to_numpy(zero_copy_only=False)
        else:
            data = vectors.broadcast(value.vector, size)
        owner, data = value.owner[is_valid], data[is_valid]
        order = np.lexsort((data, owner))  # stable, so equal values keep their order
        owner, data = owner[order], data[order]
        new = np.ones(owner.size, bool)
        new[1:] = (owner[1:] != owner[:-1]) | (data[1:] != data[:-1])
        return Vector(np.bincount(owner[new], minlength=value.offsets.size - 1).astype(np.int64), value.valid)

    return _reduction_node(node, types.number(0, 0, node.kind.max_items or 2**31), at, kernel)


def list_literal(nodes: list[Node], at: int) -> Node:
    """A list that is written out."""
    if any(node.kind.name == "list" for node in nodes):
        raise FormulaError("wrong_type", "Lists of lists are not supported.", at)
    nodes, kind = operators.with_common_type(nodes, at)
    width = len(nodes)
    if kind.name == "object":
        raise FormulaError("wrong_type", "A list of objects cannot be converted to text.", at)

    def run(frame: Frame) -> Lists:
        n = frame.n
        offsets = (
            np.arange(0, n * width + 1, width or 1, dtype=np.int64)[: n + 1]
            if width
            else np.zeros(n + 1, np.int64)
        )
        return frame.charge(Lists(offsets, _interleaved(kind, [node.vector(frame) for node in nodes], n)))

    return Node(types.list_of(kind, object(), width), run, at)


def _interleaved(kind: Kind, values: list[Vector], n: int) -> Vector:
    width = len(values)
    budget.check(n * width * np.dtype(np.int64).itemsize)
    if kind.name == "null" or not width:
        return Vector(np.zeros(n * width, np.int64), np.zeros(n * width, bool))
    if kind.name == "text":
        scalars = (value.data for value in values if isinstance(value.data, pa.Scalar))
        budget.check(sum(map(vectors.size_of, values)) + n * sum(map(budget.size_of, scalars)))
        flat = pa.concat_arrays([vectors.broadcast_text(value, n) for value in values])
        return Vector(flat.take(pa.array(np.arange(n * width).reshape(width, n).T.reshape(-1))))
    data = np.stack([vectors.broadcast(value, n) for value in values], axis=1).reshape(-1)
    if all(value.valid is None for value in values):
        return Vector(data)
    valid = np.stack([vectors.is_valid(kind, value, n) for value in values], axis=1).reshape(-1)
    return Vector(data, valid)
