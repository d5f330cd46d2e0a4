"""Groups: fields that describe one person, place, company, card or product share one such thing in every row.

A kind of thing is declared once as a subclass of `GroupKind` and registered next to the field types. Fields that say
nothing about their group are put into one by `assign` when a template is saved, so that an e-mail address follows the
row's name by default, and users can see and change the group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from webapp.engine.spec import FieldSpec, TemplateSpec
from webapp.engine.types.agreement import RULES, find_group, would_follow
from webapp.engine.types.base import FieldType, GroupKind
from webapp.engine.types.codes import CodeType
from webapp.engine.types.registry import GROUP_KINDS
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.random import RandomStream


@dataclass(frozen=True, slots=True)
class Group:
    """A compiled group: its kind, and the names of its fields."""

    name: str
    kind: GroupKind
    fields: tuple[str, ...]
    stable_id: str
    """The key of the group: the id of its oldest field (the smallest), so that a new field does not change the others;
    or the group's name if fields have no ids."""

    def key(self, seed: str, prefix: str) -> np.uint64:
        """The group's key under ``seed``; every kind of one group has its own."""
        return self.kind.key(seed, prefix, self.stable_id)

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[Any, list[Fault]]:
        """See `GroupKind.prepare`."""
        return self.kind.prepare(env, fixed)

    def draw(self, stream: RandomStream, state: Any) -> Any:
        """See `GroupKind.draw`."""
        return self.kind.draw(stream, state)


def fields_by_group(
    fields: Iterable[FieldSpec], compiler: Compiler | None = None
) -> dict[tuple[str, str], tuple[FieldSpec, ...]]:
    """Return the fields of one level by their group, (name, kind), followed by fields of other kinds that read it.
    ``compiler`` gets the faults of fields that set a group but share nothing."""
    fields_by_key: dict[tuple[str, str], list[FieldSpec]] = {}
    readers: dict[tuple[str, str], list[FieldSpec]] = {}
    for field in fields:
        key = key_of(field)
        if key is not None:
            fields_by_key.setdefault(key, []).append(field)
            for other in field.type.referenced_groups(key[0]):
                readers.setdefault(other, []).append(field)
        elif field.type.group_kind is None and field.group and compiler and field.type.name not in RULES:
            text = f"{field.type.label} does not support groups."
            compiler.fault(field, "group", "not_for_this_type", text, "Remove group.")
    for key, reading in readers.items():
        if key in fields_by_key or GROUP_KINDS[key[1]].is_created_by_readers:
            fields_by_key.setdefault(key, []).extend(reading)
    return {key: tuple(group) for key, group in fields_by_key.items()}


def key_of(field: FieldSpec) -> tuple[str, str] | None:
    """Return the group of a field, (name, kind); None if it is in no group."""
    kind = field.type.group_kind
    if kind is None or (field.type.requires_named_group and field.group is None):
        return None
    return field.group or kind, kind


def compile_group(key: tuple[str, str], group: tuple[FieldSpec, ...], compiler: Compiler) -> Group:
    """One group, ready to be drawn."""
    name, kind = key
    own = tuple(field for field in group if field.type.group_kind == kind)
    founders = group if GROUP_KINDS[kind].is_created_by_readers else own
    ids = [field.id for field in founders if field.id]
    founder = min(ids) if ids else f"name:{name}"
    group_kind = GROUP_KINDS[kind](founders, compiler)
    group_kind.readers = group[len(own) :]
    return Group(name, group_kind, tuple(field.name for field in group), founder)


LATEST_ENGINE = 3
"""The engine whose rules decide which fields share a group, where no other is named."""


def assign(
    spec: TemplateSpec, ungrouped_ids: Collection[str] = (), engine: int = LATEST_ENGINE
) -> TemplateSpec:
    """Assign a group to each field that supports groups and has none: ``person`` for the first name, e-mail and
    so on, ``person_2`` for the second of the same type.

    ``ungrouped_ids`` are ids of fields that had no group before: they do not join groups of fields added later.
    ``engine`` is that of the vocabulary the template is compiled with.
    """
    return replace(spec, fields=_assign(spec.fields, ungrouped_ids, engine))


def _assign(
    fields: tuple[FieldSpec, ...], ungrouped_ids: Collection[str], engine: int
) -> tuple[FieldSpec, ...]:
    taken = {(field.group, field.type.group_attribute(field.options)) for field in fields if field.group}
    subjects = {field.group: field.type.group_constraint(field.options) for field in fields if field.group}
    result = list(fields)
    for position, field in enumerate(fields):
        if (
            field.type.group_kind is not None
            and not field.group
            and field.type.grouped_since_engine <= engine
            and not _lacks_group_partner(field, fields, ungrouped_ids, engine)
        ):
            part, subject = (
                field.type.group_attribute(field.options),
                field.type.group_constraint(field.options),
            )
            group = next(
                name
                for name in _candidate_group_names(field, result)
                if (name, part) not in taken and subjects.get(name, subject) == subject
            )
            taken.add((group, part))
            subjects[group] = subject
            field = replace(field, common=field.common.model_copy(update={"group": group}))
        result[position] = (
            replace(field, children=_assign(field.children, ungrouped_ids, engine))
            if field.children
            else field
        )
    for position, field in enumerate(result):
        if engine >= 3 and field.id not in ungrouped_ids and (row := find_group(field, result)):
            result[position] = replace(field, common=field.common.model_copy(update={"group": row}))
    return tuple(result)


def _lacks_group_partner(
    field: FieldSpec, fields: Sequence[FieldSpec], ungrouped_ids: Collection[str], engine: int
) -> bool:
    """Return whether a field of a type that needs another group member finds none. From engine 2 on, the member may be
    such a field too, or one of a group that it reads."""
    if not field.type.joins_existing_groups_only:
        return False
    if field.id in ungrouped_ids:
        return True
    if field.common.unique:
        own = set(_related_group_kinds(field))
        # Unique values decide those of the others, which must not change if they were saved earlier.
        saved = any(other.group and own.intersection(_related_group_kinds(other)) for other in fields)
        if saved or engine < 3 or not field.type.joins_groups_if_unique:
            return True
    if engine < 2:
        kind = field.type.group_kind
        return not any(
            kind in _related_group_kinds(other) and not other.type.joins_existing_groups_only
            for other in fields
        )
    kinds = set(_related_group_kinds(field))
    return not any(other is not field and kinds.intersection(_related_group_kinds(other)) for other in fields)


def may_contradict_if_unique(
    field: FieldSpec, field_type: FieldType, fields: Sequence[FieldSpec], has_fixed_country: bool
) -> bool:
    """Return whether a field of a level may contradict the others because its values are unique. ``has_fixed_country``:
    its country is decided by a locale or an option."""
    if field.group or not field.common.unique:
        return False
    own = set(_related_group_kinds(field)) if field.type.joins_existing_groups_only else set()
    if (
        has_fixed_country
        and field.type.group_kind != "company"
        and not (isinstance(field_type, CodeType) and field_type.code.inputs)
    ):
        own = set()  # it has nothing to contradict
    related = any(other is not field and own.intersection(_related_group_kinds(other)) for other in fields)
    return related or would_follow(field, fields)


def _related_group_kinds(field: FieldSpec) -> tuple[str | None, ...]:
    """Kinds of the groups that a field is in or reads."""
    kind = field.type.group_kind
    read = field.type.referenced_groups(field.group or kind) if kind else ()
    return (kind, *(other for _, other in read))


def _candidate_group_names(field: FieldSpec, fields: Sequence[FieldSpec]) -> Iterator[str]:
    """Names of groups that a field may be put into, best first; ``fields`` are those of its level, with the groups
    that they have got so far."""
    kind = field.type.group_kind
    assert kind is not None  # only such fields are put into groups
    if field.type.companion_group_kind is not None:
        same = [other for other in fields if other.type.group_kind == kind]
        named = [other.group for other in same if other.group]
        kinds = (
            (field.type.companion_group_kind,)
            if isinstance(field.type.companion_group_kind, str)
            else field.type.companion_group_kind
        )
        adjacent = [
            other.group or kind for kind in kinds for other in fields if other.type.group_kind == kind
        ]
        if named:
            yield named[0]
        elif adjacent and not any(other.common.unique for other in same):
            yield adjacent[0]
    yield kind
    for number in count(2):
        yield f"{kind}_{number}"
