"""Groups: fields that describe one person, place, company, card or product share one such thing in every row.

A kind of thing is declared once as a subclass of `GroupKind` and registered beside the field types. Fields that say
nothing about their group are put into one by `assign` when a template is saved, so that an e-mail address follows the
row's name without anybody asking, and the choice is there to see and to change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from webapp.engine import cells
from webapp.engine.fields.base import GroupKind
from webapp.engine.spec import FieldSpec, TemplateSpec
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Draws, Env
    from webapp.engine.plan import Compiler


@dataclass(frozen=True, slots=True)
class Group:
    """A compiled group: its kind, and the names of its fields."""

    name: str
    kind: GroupKind
    fields: tuple[str, ...]
    founder: str
    """What keys the group: its oldest field's id (the smallest), so that a new field leaves the rest as it was;
    or the group's name where fields have no ids."""

    def key(self, seed: str, prefix: str) -> np.uint64:
        """The group's key under ``seed``; every kind of one group has its own."""
        return cells.key(seed, "group", self.kind.kind, prefix, self.founder)

    def prepare(self, env: Env, fixed: dict[str, Any]) -> tuple[Any, list[Fault]]:
        """See `GroupKind.prepare`."""
        return self.kind.prepare(env, fixed)

    def draw(self, draws: Draws, state: Any) -> Any:
        """See `GroupKind.draw`."""
        return self.kind.draw(draws, state)


def compile_groups(fields: Iterable[FieldSpec], compiler: Compiler) -> dict[tuple[str, str], Group]:
    """The groups of one level, by (name, kind)."""
    from webapp.engine.fields import GROUP_KINDS

    members: dict[tuple[str, str], list[FieldSpec]] = {}
    for field in fields:
        kind = field.type.group_kind
        if kind is not None:
            members.setdefault((field.group or kind, kind), []).append(field)
        elif field.group is not None:
            text = f"{field.type.label} shares nothing with other fields."
            compiler.fault(field, "group", "not_for_this_type", text, "Remove group.")
    made = {}
    for (name, kind), group in members.items():
        ids = [field.id for field in group if field.id]
        founder = min(ids) if ids else f"name:{name}"
        compiled = GROUP_KINDS[kind](tuple(group), compiler)
        made[name, kind] = Group(name, compiled, tuple(field.name for field in group), founder)
    return made


def assign(spec: TemplateSpec) -> TemplateSpec:
    """Gives each field that can share a thing, and names no group, one: ``person`` for the first name, e-mail and
    so on, ``person_2`` for the second of the same type."""
    return replace(spec, fields=_assign(spec.fields))


def _assign(fields: tuple[FieldSpec, ...]) -> tuple[FieldSpec, ...]:
    taken = {(field.group, field.type.name) for field in fields if field.group}
    made = []
    for field in fields:
        kind = field.type.group_kind
        if kind is not None and not field.group:
            group, number = kind, 1
            while (group, field.type.name) in taken:
                number += 1
                group = f"{kind}_{number}"
            taken.add((group, field.type.name))
            field = replace(field, common=field.common.model_copy(update={"group": group}))
        made.append(replace(field, children=_assign(field.children)) if field.children else field)
    return tuple(made)
