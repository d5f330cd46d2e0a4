"""Relations between templates: which field references which, and in what order their tables can be filled.

Read from the stored fields without compiling: for the order of an export, the keys of an SQL file and the
diagram of a dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final

from sqlalchemy import select

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.engine import form_hints, groups
from webapp.engine.errors import SpecError
from webapp.engine.relations.related_plans import RelatedPlans, RowCountError
from webapp.engine.spec import FieldSpec, TemplateSpec
from webapp.engine.spec import parse as parse_fields
from webapp.engine.types.structure import Count
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.row_templates.models import Template, TemplateVersion
from webapp.row_templates.services import compilation, field_ids, related_templates
from webapp.row_templates.services.catalogue import options_schema
from webapp.row_templates.services.field_ids import Stored, children

REFERENCE: Final = "reference"  # the field type that refers
SELF: Final = "self"  # as `template_id`: the field's own template
# Types whose values never repeat, regardless of their options.
_NEVER_REPEAT: Final = frozenset({"row_number", "uuid", "ulid", "mongodb_objectid"})

Templates = Mapping[str, Sequence[Stored]]
"""The stored fields of each template, by its id, in the order of the tables."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One field that refers to another template's: a child's row belongs to a parent's.

    Fields are named by their paths (`customer.id`). `cardinality` is `{min, max, ...}`, children of one parent, where
    the children are counted by their parents; None for a reference that chooses freely. `unique`: no two children
    refer to the same parent.
    """

    child_template_id: str
    child_field: str
    parent_template_id: str
    parent_field: str
    cardinality: Mapping[str, Any] | None = None
    unique: bool = False

    @property
    def to_itself(self) -> bool:
        """Whether parent and child are the same table."""
        return self.child_template_id == self.parent_template_id


def edges(templates: Templates) -> list[Edge]:
    """Every reference of some templates, also to templates that are not among them, in the order of the fields."""
    found = []
    for template_id, fields in templates.items():
        # References of one group take the same row, so what one of them says of the number goes for all.
        dealt = {field["group"]: field["options"].get("cardinality") for field in fields if said(field)}
        for path, field in walk(fields):
            options = field["options"]
            parent = options.get("template_id")
            if field["type"] != REFERENCE or not isinstance(parent, str):
                continue
            parent = template_id if parent == SELF else parent
            wanted = str(options.get("field") or "")
            names = {item["id"]: at for at, item in walk(templates.get(parent, ()))}
            found.append(
                Edge(
                    child_template_id=template_id,
                    child_field=path,
                    parent_template_id=parent,
                    parent_field=names.get(wanted, wanted),
                    cardinality=options.get("cardinality") or dealt.get(field.get("group")),
                    unique=bool(field.get("unique")),
                )
            )
    return found


def said(field: Stored) -> bool:
    """Return whether a field sets the number of rows per row of the other template."""
    return (
        field["type"] == REFERENCE
        and field.get("group") is not None
        and bool(field["options"].get("cardinality"))
    )


def among(found: Sequence[Edge], template_ids: Sequence[str]) -> list[Edge]:
    """Return the edges with both ends among some templates."""
    known = set(template_ids)
    return [edge for edge in found if {edge.child_template_id, edge.parent_template_id} <= known]


def walk(fields: Sequence[Stored], prefix: str = "") -> Iterator[tuple[str, Stored]]:
    """Every stored field with its path, parents before children."""
    for field in fields:
        path = prefix + field["name"]
        yield path, field
        yield from walk(children(field), f"{path}.")


@dataclass(frozen=True, slots=True)
class Order:
    """An order of tables in which parents come before their children.

    `broken` are the edges that no order can keep, since their tables refer to each other in a ring, or to themselves:
    their child's rows are there before their parent's, or at the same time.
    """

    template_ids: tuple[str, ...]
    broken: tuple[Edge, ...]


def order(
    template_ids: Sequence[str], found: Sequence[Edge], may_wait: Callable[[Edge], bool] = lambda _: False
) -> Order:
    """Sort tables: parents first, otherwise in the given order. A cycle is broken before its first table, so
    the same dataset always has the same order; of its tables, those go first whose references into the cycle
    may wait, if `may_wait` says so of any."""
    kept = among(found, template_ids)
    inside = [edge for edge in kept if not edge.to_itself]
    parents = _parents(template_ids, inside)
    strict = _parents(template_ids, [edge for edge in inside if not may_wait(edge)])
    children: dict[str, list[str]] = {}
    for child, above in parents.items():
        for parent in above:
            children.setdefault(parent, []).append(child)
    left = {item: len(above) for item, above in parents.items()}  # parents that are not yet in the order
    position = {item: at for at, item in enumerate(template_ids)}
    free = [position[item] for item in template_ids if not left[item]]
    made: list[str] = []
    while left:
        if free:
            item = template_ids[heappop(free)]
        else:
            ring = _ring([item for item in template_ids if item in left], parents)
            item = next((item for item in ring if strict[item].isdisjoint(left)), ring[0])
        del left[item]
        made.append(item)
        for child in children.get(item, ()):
            if child in left:
                left[child] -= 1
                if not left[child]:
                    heappush(free, position[child])
    place = {item: at for at, item in enumerate(made)}
    broken = [edge for edge in kept if place[edge.parent_template_id] >= place[edge.child_template_id]]
    return Order(tuple(made), tuple(broken))


def _parents(template_ids: Sequence[str], found: Sequence[Edge]) -> dict[str, set[str]]:
    parents: dict[str, set[str]] = {template_id: set() for template_id in template_ids}
    for edge in found:
        parents[edge.child_template_id].add(edge.parent_template_id)
    return parents


def _ring(left: Sequence[str], parents: Mapping[str, set[str]]) -> list[str]:
    """Return the templates of the first cycle that depends on nothing else. Templates that only depend on a
    cycle are not part of it."""
    known = set(left)
    cycle_of: dict[str, int] = {}
    for number, cycle in enumerate(_cycles(left, {item: parents[item] & known for item in left})):
        cycle_of |= dict.fromkeys(cycle, number)
    dependent = {
        cycle_of[item]
        for item in left
        if any(cycle_of[parent] != cycle_of[item] for parent in parents[item] & known)
    }
    first = next(item for item in left if cycle_of[item] not in dependent)
    return [item for item in left if cycle_of[item] == cycle_of[first]]


def _cycles(items: Sequence[str], parents: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """Yield the strongly connected components of a graph (R. Tarjan, 1972), without recursion."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    place: dict[str, int] = {}  # of the templates on the stack
    for start in items:
        path = [] if start in number else [(start, iter(parents[start]))]
        while path:
            item, rest = path[-1]
            if item not in number:
                number[item] = lowest[item] = len(number)
                place[item] = len(stack)
                stack.append(item)
            parent = next(rest, None)
            if parent is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[item])
                if lowest[item] == number[item]:
                    at = place[item]
                    cycle, stack[at:] = stack[at:], []
                    for member in cycle:
                        del place[member]
                    yield cycle
            elif parent not in number:
                path.append((parent, iter(parents[parent])))
            elif parent in place:
                lowest[item] = min(lowest[item], number[parent])


def depths(template_ids: Sequence[str], found: Sequence[Edge]) -> dict[str, int]:
    """Return the maximum number of ancestors of each template, along the edges that the order keeps."""
    kept = order(template_ids, found)
    broken = set(map(id, kept.broken))
    parents = _parents(template_ids, [edge for edge in among(found, template_ids) if id(edge) not in broken])
    out: dict[str, int] = {}
    for template_id in kept.template_ids:
        out[template_id] = 1 + max((out[parent] for parent in parents[template_id]), default=-1)
    return out


def never_repeats(field: Stored) -> bool:
    """Return whether a stored field's values identify its rows: never null, never repeated."""
    if field.get("percent_blank"):
        return False
    options = field["options"]
    key = options.get("primaryKey") or options.get("primary_key")
    return bool(key or field.get("unique") or (field["type"] in _NEVER_REPEAT and not field.get("formula")))


def primary_key(fields: Sequence[Stored], referred_to: Sequence[str] = ()) -> str | None:
    """Return the path of the field that identifies a table's rows: an explicit one, else one that others
    reference, else the first whose values never repeat; None without any."""
    fit = {path: field for path, field in walk(fields) if never_repeats(field) and not field.get("hidden")}
    said = [path for path, field in fit.items() if field["options"].get("primaryKey")]
    known = [path for path in referred_to if path in fit]
    made = [path for path, field in fit.items() if field["type"] in _NEVER_REPEAT and "." not in path]
    return next(iter([*said, *known, *made]), None)


# Describes a template's relations and groups in words while it is edited. A draft is described as far as it
# can be read: fields with faults are left out, and their faults are reported elsewhere.


@dataclass(frozen=True, slots=True)
class DescribedRelation:
    """One relation in words. `template_id` is the other template; "" for the template's own rows."""

    text: str
    template_id: str = ""
    name: str = ""
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Shared:
    """The group of a field, and the names of its fields. `tone` numbers groups of two or more fields from 1; 0 is a
    field without a group."""

    name: str
    kind: str
    members: tuple[str, ...]
    tone: int = 0


@dataclass(frozen=True, slots=True)
class Look:
    """A draft as its builder should see it; both by field id."""

    relations: Mapping[str, DescribedRelation]
    groups: Mapping[str, Shared]


NOTHING: Final = Look({}, {})


def choices(actor: Actor) -> dict[str, str]:
    """Names of the project's templates by id, in the order of the names; a bounded number of them."""
    listed = tenancy.listing(actor, Template).with_only_columns(Template.id, Template.name)
    rows = db.session.execute(listed.order_by(Template.name, Template.id).limit(limits.PICKED_TEMPLATES))
    return {row.id: row.name for row in rows}


def names_of(actor: Actor, ids: Sequence[str]) -> dict[str, tuple[str, list[str]]]:
    """Name and field names of those templates that the actor may read, by id."""
    found = related_templates.newest(actor, ids)
    return {
        item: (spec["name"], [field["name"] for field in spec["fields"]])
        for item, (_, spec, _) in found.items()
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
            field["options"].get("cardinality") and field["options"].get("template_id") == own
            for field in row.spec["fields"]
        )
    }


def role_of(field: FieldSpec) -> str:
    """Return the relation between rows of the other template and those of a field (see ``engine/form_hints.py``), or
    ""."""
    properties = options_schema(field.type).get("properties", {})
    role: str = properties.get("template_id", {}).get(form_hints.KEY, {}).get("role", "")
    return role


def look(
    actor: Actor, given: Mapping[str, Any], own: str = "", before: Sequence[Mapping[str, Any]] = ()
) -> Look:
    """A draft's relations and groups. `own` is the id of the saved template it is a draft of, `before` its fields."""
    asked = {item for _, item in related_templates.reached(given["fields"])} - {own}
    there = related_templates.newest(actor, asked)
    strange = asked - there.keys()
    fields = [
        field
        for field in given["fields"]
        if not strange & {found for _, found in related_templates.reached([field])}
    ]
    spec = _readable(fields)
    if spec is None:
        return NOTHING
    if before:
        spec = field_ids.carry_over(spec, before)
    spec = groups.assign(spec, field_ids.settled(before))
    try:
        found = related_templates.gather(fields, own, lambda wanted: related_templates.newest(actor, wanted))
        quantity = given.get("quantity")
        rows = quantity if type(quantity) is int and quantity > 0 else limits.DEFAULT_QUANTITY
        around = RelatedPlans(spec, compilation.vocabulary(), related_templates.library(found, own, rows, {}))
    except ApiError:
        return Look({}, shared(spec))
    return Look(
        {item.id or item.path: told for item in spec.walk() if (told := _told(item, around))}, shared(spec)
    )


def _readable(fields: list[Any]) -> TemplateSpec | None:
    """The fields that can be read."""
    try:
        return parse_fields(fields)
    except SpecError as error:
        broken = {fault.path.partition("]")[0].removeprefix("fields[") for fault in error.faults}
    try:
        return parse_fields([field for place, field in enumerate(fields) if str(place) not in broken])
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


def _told(field: FieldSpec, around: RelatedPlans) -> DescribedRelation | None:
    tell = _TELLERS.get(role_of(field))
    if tell is None:
        return None
    asked = _options(field).template_id
    address = around.address(asked, "")
    if address is None:
        return None
    other = "" if address == "" else asked
    try:
        text, bad = tell(field, around, address)
    except RowCountError as error:
        text, bad = str(error), True
    return DescribedRelation(text, other, around.known(address).name if other else "", bad)


def _options(field: FieldSpec) -> Any:
    """The options of a field that has a role: each type has its own model, which says the role in its schema."""
    return field.options


def _called(around: RelatedPlans, address: str) -> str:
    return around.known(address).name if address else "this template"


def _each(low: int, high: int) -> str:
    return f"{low:,} to {high:,} rows" if low != high else f"{low:,} {'row' if low == 1 else 'rows'}"


def _parent(field: FieldSpec, around: RelatedPlans, address: str) -> tuple[str, bool]:
    name, rows = _called(around, address), around.rows(address)
    fields = around.known("").spec.fields
    beside = [item for item in fields if item.type is field.type and item.group == field.group]
    if not any(item is field for item in beside):  # nested in another field, whose elements have no children
        beside = [field]
    owner = around.owner("")
    if owner is not None and any(item is owner[0] for item in beside):
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


def _child(field: FieldSpec, around: RelatedPlans, address: str) -> tuple[str, bool]:
    owner = around.children(address, "")
    name = _called(around, address)
    if owner is None:
        return f"{name} has no reference with cardinality to this template", True
    most = _options(owner).cardinality
    return f"over {_each(most.min, most.max)} of {name} for each of {around.rows(''):,} rows", False


def _inside(field: FieldSpec, around: RelatedPlans, address: str) -> tuple[str, bool]:
    owner = around.children(address, "")
    name = _called(around, address)
    if owner is not None:
        most = _options(owner).cardinality
        return f"the {_each(most.min, most.max)} of {name} that belong to each row", False
    options = _options(field)
    if not options.array:
        return f"one row of {name} in each row", False
    count = options.count or Count()
    low, high = (options.quantity,) * 2 if options.quantity is not None else (count.min, count.max)
    return f"{_each(low, high)} of {name} in each row", False


_TELLERS: Final = {"parent": _parent, "child": _child, "inside": _inside}
