"""Flat columns out of nested ones: dotted names for objects, numbered ones for arrays, if requested.

The columns depend only on the schema, never on the data: an array has as many as its declared maximum
(field metadata ``max_items``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine.formats.base import FormatError
from webapp.errors import Fault

Step = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One flat column: its field, whose name is the dotted path, and the way to its values."""

    field: pa.Field
    root: int
    steps: tuple[Step, ...]

    def of_type(self, dtype: pa.DataType) -> Leaf:
        """The same column, were its values of another type."""
        return replace(self, field=self.field.with_type(dtype))

    def of(self, block: Sequence[pa.Array]) -> pa.Array:
        """The column's values in a block."""
        column = block[self.root]
        for step in self.steps:
            column = step(column)
        return column


def flatten(schema: pa.Schema, *, objects: bool, arrays: bool) -> list[Leaf]:
    """The flat columns of ``schema``; ``objects`` and ``arrays``: whether these are taken apart.

    Raises `FormatError` where an array to be taken apart declares no maximum, and beyond
    ``limits.MAX_FLAT_COLUMNS`` columns if arrays are taken apart.
    """
    faults: list[Fault] = []
    leaves: list[Leaf] = []
    for root, field in enumerate(schema):
        for leaf in _leaves(field, root, (), objects, arrays, faults):
            leaves.append(leaf)
            if arrays and len(leaves) > limits.MAX_FLAT_COLUMNS:
                text = f"Arrays as columns would make more than {limits.MAX_FLAT_COLUMNS} columns."
                raise FormatError(
                    [Fault("arrays", "too_many_columns", text, 'Use "json", or lower the maxima.')]
                )
    if not leaves and not faults:
        faults.append(Fault("arrays", "no_columns", "No array may hold anything, so there is no column."))
    if faults:
        raise FormatError(faults)
    return leaves


def _leaves(
    field: pa.Field, root: int, steps: tuple[Step, ...], objects: bool, arrays: bool, faults: list[Fault]
) -> Iterator[Leaf]:
    kind = field.type
    if pa.types.is_struct(kind) and objects and kind.num_fields:
        for index, child in enumerate(kind):
            named = child.with_name(f"{field.name}.{child.name}")
            yield from _leaves(named, root, (*steps, _member(index)), objects, arrays, faults)
    elif pa.types.is_list(kind) and arrays:
        # Where the engine makes the array, its item says so; the array's own field may say it as well.
        most = (kind.value_field.metadata or field.metadata or {}).get(b"max_items")
        if most is None:
            faults.append(
                Fault(field.name, "no_maximum", "This array declares no largest count.", 'Use "json".')
            )
            return
        for index in range(int(most)):
            named = kind.value_field.with_name(f"{field.name}.{index}")
            yield from _leaves(named, root, (*steps, _element(index, int(most))), objects, arrays, faults)
    else:
        yield Leaf(field, root, steps)


def _member(index: int) -> Step:
    return lambda column: column.flatten()[index]


def _element(index: int, most: int) -> Step:
    def step(column: pa.Array) -> pa.Array:
        sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        if int(sizes.max(initial=0)) > most:
            raise FormatError(
                [Fault("arrays", "value_does_not_fit", f"An array holds more than its {most} items.")]
            )
        starts = np.cumsum(sizes) - sizes
        return column.flatten().take(pa.array(starts + index, mask=sizes <= index))

    return step
