"""What a template's relations and groups come to while it is edited, in words: for people who build it.

A draft is told of as far as it can be read: fields with faults are left out, and what they break is told elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select

from webapp import limits
from webapp.engine import groups, picks
from webapp.engine.errors import SpecError
from webapp.engine.fields.structure import Count
from webapp.engine.kinship import Kin, Unrelated
from webapp.engine.spec import FieldSpec, TemplateSpec
from webapp.engine.spec import parse as parse_fields
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.models import Template, TemplateVersion
from webapp.services import kin, plans, tenancy
from webapp.services.actors import Actor
from webapp.services.catalogue import options_schema


@dataclass(frozen=True, slots=True)
class Told:
    """One relation in words. `template_id` is the other template; "" for the template's own rows."""

    text: str
    template_id: str = ""
    name: str = ""
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Shared:
    """The group of a field, and the names of the fields that are in it. `tone` tells groups of two and more apart:
    they count from 1; 0 is a field that shares with none."""

    name: str
    kind: str
    members: tuple[str, ...]
    tone: int = 0


@dataclass(frozen=True, slots=True)
class Look:
    """A draft as its builder should see it; both by field id."""

    relations: Mapping[str, Told]
    groups: Mapping[str, Shared]


NOTHING: Final = Look({}, {})


def choices(actor: Actor) -> dict[str, str]:
    """Names of the project's templates by id, in the order of the names; a bounded number of them."""
    listed = tenancy.listing(actor, Template).with_only_columns(Template.id, Template.name)
    rows = db.session.execute(listed.order_by(Template.name, Template.id).limit(limits.PICKED_TEMPLATES))
    return {row.id: row.name for row in rows}


def names_of(actor: Actor, ids: Sequence[str]) -> dict[str, tuple[str, list[str]]]:
    """Name and field names of those templates that the actor may read, by id."""
    found = kin.newest(actor, ids)
    return {
        one: (spec["name"], [field["name"] for field in spec["fields"]])
        for one, (_, spec, _) in found.items()
    }


def children_of(own: str, ids: Sequence[str]) -> set[str]:
    """Those of the templates `ids` whose rows are children of the template `own` by cardinality."""
    statement = (
        select(Template.id, TemplateVersion.spec)
        .join(TemplateVersion, TemplateVersion.template_id == Template.id)
        .where(Template.id.in_(ids), TemplateVersion.number == Template.version)
    )
    return {
        row.id
        for row in db.session.execute(statement)
        if any(
            one["options"].get("cardinality") and one["options"].get("template_id") == own
            for one in row.spec["fields"]
        )
    }


def role_of(field: FieldSpec) -> str:
    """What the rows of the other template are to a field's own (see ``engine/picks.py``); "" where there is none."""
    properties = options_schema(field.type).get("properties", {})
    return properties.get("template_id", {}).get(picks.KEY, {}).get("role", "")


def look(
    actor: Actor, given: Mapping[str, Any], own: str = "", before: Sequence[Mapping[str, Any]] = ()
) -> Look:
    """A draft's relations and groups. `own` is the id of the saved template it is a draft of, `before` its fields."""
    from webapp.services import template_fields

    asked = {one for _, one in kin.reached(given["fields"])} - {own}
    there = kin.newest(actor, asked)
    strange = asked - there.keys()
    fields = [one for one in given["fields"] if not strange & {found for _, found in kin.reached([one])}]
    spec = _readable(fields)
    if spec is None:
        return NOTHING
    if before:
        spec = template_fields.carry_over(spec, before)
    spec = groups.assign(spec, template_fields.settled(before))
    try:
        found = kin.gather(fields, own, lambda wanted: kin.newest(actor, wanted))
        quantity = given.get("quantity")
        rows = quantity if type(quantity) is int and quantity > 0 else limits.DEFAULT_QUANTITY
        around = Kin(spec, plans.vocabulary(), kin.library(found, own, rows, {}))
    except ApiError:
        return Look({}, shared(spec))
    return Look(
        {one.id or one.path: told for one in spec.walk() if (told := _told(one, around))}, shared(spec)
    )


def _readable(fields: list[Any]) -> TemplateSpec | None:
    """The fields that can be read."""
    try:
        return parse_fields(fields)
    except SpecError as error:
        broken = {fault.path.partition("]")[0].removeprefix("fields[") for fault in error.faults}
    try:
        return parse_fields([one for place, one in enumerate(fields) if str(place) not in broken])
    except SpecError:
        return None


# --- Groups -----------------------------------------------------------------------------------------------


def shared(spec: TemplateSpec) -> dict[str, Shared]:
    """The groups of a template's fields, by field id."""
    found: dict[str, Shared] = {}
    tones = iter(range(1, limits.MAX_FIELDS + 1))
    for level in _levels(spec.fields):
        for (name, kind), members in groups.members(level).items():
            own = [field for field in members if groups.key_of(field) == (name, kind)]
            names = tuple(field.name for field in members)
            made = Shared(name, kind, names, next(tones) if len(names) > 1 else 0)
            found |= {field.id or field.path: made for field in own}
    return found


def _levels(fields: tuple[FieldSpec, ...]) -> Iterator[tuple[FieldSpec, ...]]:
    yield fields
    for field in fields:
        if field.children:
            yield from _levels(field.children)


# --- Relations --------------------------------------------------------------------------------------------


def _told(field: FieldSpec, around: Kin) -> Told | None:
    tell = _TELLERS.get(role_of(field))
    if tell is None:
        return None
    asked = field.options.template_id
    address = around.address(asked, "")
    if address is None:
        return None
    other = "" if address == "" else asked
    try:
        text, bad = tell(field, around, address)
    except Unrelated as error:
        text, bad = str(error), True
    return Told(text, other, around.known(address).name if other else "", bad)


def _called(around: Kin, address: str) -> str:
    return around.known(address).name if address else "this template"


def _each(low: int, high: int) -> str:
    return f"{low:,} to {high:,} rows" if low != high else f"{low:,} {'row' if low == 1 else 'rows'}"


def _parent(field: FieldSpec, around: Kin, address: str) -> tuple[str, bool]:
    name, rows = _called(around, address), around.rows(address)
    fields = around.known("").spec.fields
    beside = [one for one in fields if one.type is field.type and one.group == field.group]
    if not any(
        one is field for one in beside
    ):  # inside another field, whose elements are dealt out to nobody
        beside = [field]
    owner = around.owner("")
    if owner is not None and any(one is owner[0] for one in beside):
        if owner[0].name != field.name:
            return f"of the same row as {owner[0].name}", False
        counts = around.counts("")
        each = _each(owner[1].min, owner[1].max)
        return f"{each} for each of {rows:,} {name}: {counts.total if counts else 0:,} rows", False
    if beside[0] is not field:
        return f"of the same row as {beside[0].name}", False
    if not address:
        return "an earlier row of this template; the first have none", False
    if field.common.unique:
        return f"each of {rows:,} rows of {name} once", False
    return f"one of {rows:,} rows of {name}", False


def _child(field: FieldSpec, around: Kin, address: str) -> tuple[str, bool]:
    owner = around.children(address, "")
    name = _called(around, address)
    if owner is None:
        return f"{name} has no reference with cardinality to this template", True
    most = owner.options.cardinality
    return f"over {_each(most.min, most.max)} of {name} for each of {around.rows(''):,} rows", False


def _inside(field: FieldSpec, around: Kin, address: str) -> tuple[str, bool]:
    owner = around.children(address, "")
    name = _called(around, address)
    if owner is not None:
        most = owner.options.cardinality
        return f"the {_each(most.min, most.max)} of {name} that belong to each row", False
    options = field.options
    if not options.array:
        return f"one row of {name} in each row", False
    count = options.count or Count()
    low, high = (options.quantity,) * 2 if options.quantity is not None else (count.min, count.max)
    return f"{_each(low, high)} of {name} in each row", False


_TELLERS: Final = {"parent": _parent, "child": _child, "inside": _inside}
