"""Whether there are as many rows as somebody asks for, told before the first is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Bound
    from webapp.engine.layers import Layer


def of_source(bound: Bound, offset: int, count: int) -> list[Fault]:
    """What is wrong with ``count`` rows after ``offset`` of a template whose source has fewer."""
    taken = bound.plan.taken
    if taken is None or offset + count <= taken.real.rows:
        return []
    most = taken.real.rows
    text = f"The source has {most:,} rows; row {offset + count:,} was asked for."
    return [Fault("source", "not_enough_rows", text, f"Ask for at most {max(0, most - offset):,} rows.")]


def check(bound: Bound, layer: Layer, prefix: str, offset: int, count: int, faults: list[Fault]) -> None:
    """Adds to ``faults`` what there is too little of for ``count`` rows after ``offset``, in one level and those
    inside it: values that never repeat, children, rows that a type has values for."""
    last = (offset + count) * (layer.expansion // bound.layer.expansion)
    for group in layer.groups.values():
        most = group.kind.most_rows()
        if most is not None and offset + count > most:
            text = f"There are {most:,} rows, as many as their parents bear; row {offset + count:,} was asked for."
            hint = f"Ask for at most {max(0, most - offset):,} rows, or raise the cardinality or the parent's rows."
            faults.append(Fault(group.kind.fields[0].path, "not_enough_rows", text, hint))
    together = {made.name: made for made, _ in layer.together.values()}
    for made in together.values():
        fault = made.fault(last, bound.states[f"{prefix}together:{made.name}"])
        if fault is not None:
            faults.append(fault)
    for name, column in layer.columns.items():
        inner = getattr(column.type, "layer", None)
        if inner is not None:
            check(bound, inner, f"{prefix}{name}.", offset, count, faults)
        path = f"{prefix}{name}"
        unique = column.spec.common.unique
        if (unique or column.type.primary) and path in bound.overrides and count > 1:
            text = "A unique field cannot have one fixed value in several rows."
            faults.append(
                Fault(f"overrides.{path}", "not_unique", text, "Ask for one row, or drop the override.")
            )
            continue
        size = column.type.space_in(bound.states[path]) if unique else None
        if size is not None and last > size:
            text = f'"{path}" must be unique: {last:,} values were asked for and {size:,} exist.'
            hint = "Widen the field's options, ask for fewer rows, or take unique away."
            faults.append(Fault(f"{column.spec.path}.unique", "not_enough_values", text, hint))
            continue
        rows = column.type.rows_in(bound.states[path])
        if rows is not None and last > rows:
            text = f'"{path}" has values for the first {rows:,} rows; row {last:,} was asked for.'
            faults.append(Fault(column.spec.path, "too_far", text, column.type.far_hint()))
