"""Rows of other templates that a request reaches: whether there are values for all of them.

A reference may take any row of the other template, a total reads a row's children, an array of a template's rows
counts on from row to row. What the other templates cannot give is refused before the first row is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from webapp.engine.fields.relation_group import Relation
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Bound
    from webapp.engine.layers import Layer


def faults(bound: Bound, rows: int) -> list[Fault]:
    """What the templates around ``bound`` lack for its first ``rows`` rows; each fault has the path of the field that
    reads them."""
    most = {"": rows}
    waiting = [("", rows, "")]
    found: dict[tuple[str, str], Fault] = {}
    while waiting:
        address, wanted, path = waiting.pop()
        here = bound.relatives[address]
        if path:
            for fault in here.lacking(wanted):
                text = f'"{here.name}" has too little: {fault.message}'
                found.setdefault((address, fault.path), Fault(path, fault.code, text, fault.hint))
        for where, reached, further in _reached(here.layer, wanted, here.layer.expansion):
            if further > most.get(reached, 0):
                most[reached] = further
                waiting.append((reached, further, path or where))
    return list(found.values())


def _reached(layer: Layer, rows: int, base: int) -> Iterator[tuple[str, str, int]]:
    """(path of the reader, address, rows) of the other templates that a level reads."""
    for group in layer.groups.values():
        kind = group.kind
        if isinstance(kind, Relation) and kind.address is not None and kind.parents:
            yield kind.fields[0].path, kind.address, kind.parents
    for column in layer.columns.values():
        further = column.type.reaches(rows * (layer.expansion // base))
        if further is not None:
            yield column.spec.path, *further
        inner = getattr(column.type, "layer", None)
        if inner is not None:
            yield from _reached(inner, rows, base)
