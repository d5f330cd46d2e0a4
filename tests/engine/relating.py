"""Templates that relate to each other, for tests: bound to a seed, and their rows as Python values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from webapp.engine import groups, text
from webapp.engine.blocks import Block, BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.relations.related_plans import RelatedTemplate, TemplateLibrary
from webapp.engine.spec import TemplateSpec, parse
from webapp.errors import Fault

NOW = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
Fields = list[dict[str, Any]]


class World:
    """Templates by their ids: ``World(customers=(1000, [...]), orders=(10_000, [...]))``.

    The number is a template's quantity; ``stated`` are the rows that a dataset or a request says instead.
    """

    def __init__(self, *, stated: Mapping[str, int] | None = None, **templates: tuple[int, Fields]) -> None:
        self.stated = dict(stated or {})
        self._quantity = {name: rows for name, (rows, _) in templates.items()}
        self.fields = {name: fields for name, (_, fields) in templates.items()}

    def spec(self, name: str) -> TemplateSpec:
        """One template, parsed; every field has an id that follows from the names."""
        return groups.assign(parse(_with_ids(self.fields[name], name), name=name))

    def library(self, own: str) -> TemplateLibrary:
        """What the template ``own`` sees of the others."""
        words = vocabulary.open_default()
        others = {
            name: RelatedTemplate(name, self.spec(name), self._rows(name), words, name in self.stated)
            for name in self.fields
            if name != own
        }
        return TemplateLibrary(others, own, self._rows(own), own in self.stated)

    def bound(self, own: str, seed: str = "s", overrides: dict[str, Any] | None = None) -> BoundPlan:
        """One template of them, bound."""
        return BoundPlan(
            compile_plan(self.spec(own), vocabulary.open_default(), library=self.library(own)),
            GenerationContext(seed, NOW),
            overrides,
        )

    def rows(self, own: str, count: int, start: int = 0, **how: Any) -> list[dict[str, Any]]:
        """Rows as they would be generated, block by block."""
        source = self.bound(own, **how)
        source.check(start, count)
        result: list[dict[str, Any]] = []
        for block in source.blocks(start, count):
            result += as_rows(source, block)
        return result

    def all_rows(self, own: str, **how: Any) -> list[dict[str, Any]]:
        """Every row that a template has."""
        return self.rows(own, self.total(own), **how)

    def total(self, own: str) -> int:
        """How many rows a template has."""
        kinds = [group.kind.max_rows() for group in self.bound(own).layer.groups.values()]
        return next((most for most in kinds if most is not None), self._rows(own))

    def at(self, own: str, rows: Iterable[int], **how: Any) -> list[dict[str, Any]]:
        """The rows of any numbers, in any order."""
        source = self.bound(own, **how)
        block = Block(source, source.layer, np.array(list(rows), np.uint64))
        return as_rows(source, [block.column(name) for name in source.layer.visible])

    def faults(self, own: str) -> dict[str, Fault]:
        """What is wrong with a template, by path."""
        try:
            self.bound(own)
        except SpecError as error:
            return {fault.path: fault for fault in error.faults}
        return {}

    def refused(self, own: str, count: int, start: int = 0) -> list[Fault]:
        """What is wrong with asking for these rows."""
        try:
            self.rows(own, count, start)
        except SpecError as error:
            return list(error.faults)
        return []

    def _rows(self, name: str) -> int:
        return self.stated.get(name, self._quantity[name])


def as_rows(source: BoundPlan, columns: list[pa.Array]) -> list[dict[str, Any]]:
    """Columns as rows."""
    decoded = [text.decode_dictionary(column) for column in columns]
    for column, field in zip(decoded, source.schema, strict=True):
        column.validate(full=True)
        assert column.type == field.type, field.name
    return pa.table(decoded, names=source.schema.names).to_pylist()


def _with_ids(fields: Fields, path: str) -> Fields:
    result = []
    for field in fields:
        here = f"{path}.{field['name']}"
        number = int.from_bytes(here.encode()[-10:], "big")
        field = {"id": f"fld_{number:026d}", **field}
        inner = field.get("options", {}).get("fields")
        if inner:
            field["options"] = {**field["options"], "fields": _with_ids(inner, here)}
        result.append(field)
    return result


def reference(name: str, to: str, field: str | None = None, **more: Any) -> dict[str, Any]:
    """A field of type reference; what is not an option of it is a key of the field."""
    common = {
        key: more.pop(key) for key in ("unique", "percent_blank", "group", "hidden", "prefix") if key in more
    }
    options = {"template_id": to, **({} if field is None else {"field": field}), **more}
    return {"name": name, "type": "reference", "options": options, **common}


def aggregate(
    name: str, of: str, field: str | None = None, function: str = "sum", **more: Any
) -> dict[str, Any]:
    """A field of type aggregate."""
    options = {"template_id": of, "function": function, **({} if field is None else {"field": field}), **more}
    return {"name": name, "type": "aggregate", "options": options}


def template(name: str, of: str, **options: Any) -> dict[str, Any]:
    """A field of type template."""
    return {"name": name, "type": "template", "options": {"template_id": of, **options}}
