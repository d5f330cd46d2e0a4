"""One table of a script on its way, and the names in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from webapp.connectors.shape import Column


@dataclass(slots=True)
class Made:
    """One table on its way."""

    parts: tuple[str, ...]
    columns: dict[str, Column] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    uniques: list[tuple[str, ...]] = field(default_factory=list)
    relations: list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    reds: dict[str, str] = field(default_factory=dict)
    comment: str = ""
    folded: dict[str, str] = field(default_factory=dict)
    """The names of columns by what they are without regard to case, as far as `own` has looked."""

    def own(self, name: str) -> str:
        """A column's name as its definition spells it."""
        if name in self.columns:
            return name
        if len(self.folded) != len(self.columns):
            self.folded = {one.casefold(): one for one in self.columns}
        return self.folded.get(name.casefold(), name)


def parts_in(table: Any) -> tuple[str, ...]:
    """The parts of a table's name, its schema first."""
    if not isinstance(table, exp.Table):
        return (str(getattr(table, "name", "")),)
    return tuple(one.name for one in (table.args.get("db"), table.this) if one is not None and one.name)


def names_in(made: Made, parts: list[Any]) -> tuple[str, ...]:
    """Columns that a key or an index names, each once, as their definitions spell them."""
    plain = [one.this if isinstance(one, exp.Ordered) else one for one in parts]
    return tuple(dict.fromkeys(made.own(one.name) for one in plain if getattr(one, "name", "")))
