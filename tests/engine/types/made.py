"""Rows and faults for tests of field types: what a person would type, and what comes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from webapp.engine import groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse

NOW = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)


def bound(
    fields: list[dict], *, locale: str | None = None, overrides: dict[str, Any] | None = None
) -> BoundPlan:
    """``fields`` bound to a fixed seed and now."""
    plan = compile_plan(groups.assign(parse(fields, locale=locale)), vocabulary.open_default())
    return BoundPlan(plan, GenerationContext("a seed", NOW), overrides)


def table(source: BoundPlan, start: int, count: int) -> dict[str, list]:
    """Columns of rows ``start`` and on, by name, as Python values."""
    found: dict[str, list] = {name: [] for name in source.schema.names}
    for block in source.blocks(start, count):
        for name, column in zip(found, block, strict=True):
            found[name] += column.to_pylist()
    return found


def values(kind: str, count: int = 1000, start: int = 0, options: dict | None = None, **common: Any) -> list:
    """Values of one field with ``options`` and common keys."""
    locale = common.pop("of_template", None)
    field = {"name": "x", "type": kind, "options": options or {}, **common}
    return table(bound([field], locale=locale), start, count)["x"]


def faults(kind: str, options: dict | None = None, **common: Any) -> dict[str, str]:
    """Code of every fault of one field, by path without ``fields[0].``."""
    try:
        bound([{"name": "x", "type": kind, "options": options or {}, **common}])
    except SpecError as error:
        return {fault.path.removeprefix("fields[0]."): fault.code for fault in error.faults}
    return {}


def assert_laws(kind: str, options: dict | None = None, **common: Any) -> None:
    """Any window of rows equals the same rows of the whole, no text is longer than announced, and where values can
    be unique they are, over as many rows as exist up to 10,000."""
    field = {"name": "x", "type": kind, "options": options or {}, **common}
    source = bound([field])
    whole = table(source, 0, 700)["x"]
    for start, count in ((0, 1), (0, 10), (256, 300), (691, 9)):
        assert table(source, start, count)["x"] == whole[start : start + count]
    column = source.plan.layer.columns["x"].type
    if column.max_length is not None and whole and isinstance(whole[0], str):
        assert max(map(len, whole)) <= column.max_length
    space = column.distinct_count()
    if space is not None:
        assert_unique(field, min(space, 10_000))


def assert_unique(field: dict, count: int) -> None:
    """``count`` rows of ``field`` made unique differ, and read the same row by row as in the whole."""
    source = bound([{**field, "unique": True}])
    source.check(0, count)
    whole = table(source, 0, count)["x"]
    assert len(set(whole)) == count
    assert table(source, count - 1, 1)["x"] == whole[-1:]
