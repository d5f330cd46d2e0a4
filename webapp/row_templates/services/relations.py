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
from webapp.row_templates.services.field_ids import StoredField, children

REFERENCE: Final = "reference"  # the field type that refers
SELF: Final = "self"  # as `template_id`: the field's own template
# Types whose values never repeat, regardless of their options.
_NEVER_REPEAT: Final = frozenset({"row_number", "uuid", "ulid", "mongodb_objectid"})

Templates = Mapping[str, Sequence[StoredField]]
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
    def is_self_reference(self) -> bool:
        """Whether parent and child are the same table."""
        return self.child_template_id == self.parent_template_id


def find_edges(templates: Templates) -> list[Edge]:
    """Return all references of some templates, including those to other templates, in the order of the fields."""
    found = []
    for template_id, fields in templates.items():
        # References of one group use the same row, so the cardinality of one of them applies to all.
        cardinalities = {
            field["group"]: field["options"].get("cardinality") for field in fields if has_cardinality(field)
        }
        for path, field in walk(fields):
            options = field["options"]
            parent = options.get("template_id")
            if field["type"] != REFERENCE or not isinstance(parent, str):
                continue
            parent = template_id if parent == SELF else parent
            field_id = str(options.get("field") or "")
            names = {item["id"]: at for at, item in walk(templates.get(parent, ()))}
            found.append(
                Edge(
                    child_template_id=template_id,
                    child_field=path,
                    parent_template_id=parent,
                    parent_field=names.get(field_id, field_id),
                    cardinality=options.get("cardinality") or cardinalities.get(field.get("group")),
                    unique=bool(field.get("unique")),
                )
            )
    return found


def has_cardinality(field: StoredField) -> bool:
    """Return whether a field sets the number of rows per row of the other template."""
    return (
        field["type"] == REFERENCE
        and field.get("group") is not None
        and bool(field["options"].get("cardinality"))
    )


def edges_among(edges: Sequence[Edge], template_ids: Sequence[str]) -> list[Edge]:
    """Return the edges with both ends among some templates."""
    known = set(template_ids)
    return [edge for edge in edges if {edge.child_template_id, edge.parent_template_id} <= known]


def walk(fields: Sequence[StoredField], prefix: str = "") -> Iterator[tuple[str, StoredField]]:
    """Yield every stored field with its path, parents before children."""
    for field in fields:
        path = prefix + field["name"]
        yield path, field
        yield from walk(children(field), f"{path}.")


@dataclass(frozen=True, slots=True)
class TableOrder:
    """An order of tables in which parents come before their children.

    `cyclic_edges` are the edges that no order can keep, since their tables refer to each other in a ring, or to
    themselves: their child's rows are there before their parent's, or at the same time.
    """

    template_ids: tuple[str, ...]
    cyclic_edges: tuple[Edge, ...]


def sort_tables(
    template_ids: Sequence[str],
    edges: Sequence[Edge],
    is_deferrable: Callable[[Edge], bool] = lambda _: False,
) -> TableOrder:
    """Sort tables: parents first, otherwise in the given order. A cycle is broken before its first table, so
    the same dataset always has the same order; of its tables, those go first whose references into the cycle
    may wait, if `is_deferrable` says so of any."""
    relevant = edges_among(edges, template_ids)
    inside = [edge for edge in relevant if not edge.is_self_reference]
    parents = _parents_of(template_ids, inside)
    strict = _parents_of(template_ids, [edge for edge in inside if not is_deferrable(edge)])
    children: dict[str, list[str]] = {}
    for child, above in parents.items():
        for parent in above:
            children.setdefault(parent, []).append(child)
    pending = {item: len(above) for item, above in parents.items()}  # parents that are not yet in the order
    position = {item: at for at, item in enumerate(template_ids)}
    free = [position[item] for item in template_ids if not pending[item]]
    ordered: list[str] = []
    while pending:
        if free:
            item = template_ids[heappop(free)]
        else:
            cycle = _first_cycle([item for item in template_ids if item in pending], parents)
            item = next((item for item in cycle if strict[item].isdisjoint(pending)), cycle[0])
        del pending[item]
        ordered.append(item)
        for child in children.get(item, ()):
            if child in pending:
                pending[child] -= 1
                if not pending[child]:
                    heappush(free, position[child])
    rank = {item: at for at, item in enumerate(ordered)}
    broken = [edge for edge in relevant if rank[edge.parent_template_id] >= rank[edge.child_template_id]]
    return TableOrder(tuple(ordered), tuple(broken))


def _parents_of(template_ids: Sequence[str], found: Sequence[Edge]) -> dict[str, set[str]]:
    parents: dict[str, set[str]] = {template_id: set() for template_id in template_ids}
    for edge in found:
        parents[edge.child_template_id].add(edge.parent_template_id)
    return parents


def _first_cycle(remaining: Sequence[str], parents: Mapping[str, set[str]]) -> list[str]:
    """Return the templates of the first cycle that depends on nothing else. Templates that only depend on a
    cycle are not part of it."""
    remaining_set = set(remaining)
    cycle_of: dict[str, int] = {}
    for number, cycle in enumerate(
        _cycles(remaining, {item: parents[item] & remaining_set for item in remaining})
    ):
        cycle_of |= dict.fromkeys(cycle, number)
    dependent = {
        cycle_of[item]
        for item in remaining
        if any(cycle_of[parent] != cycle_of[item] for parent in parents[item] & remaining_set)
    }
    first = next(item for item in remaining if cycle_of[item] not in dependent)
    return [item for item in remaining if cycle_of[item] == cycle_of[first]]


def _cycles(items: Sequence[str], parents: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """Yield the strongly connected components of a graph (R. Tarjan, 1972), without recursion."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    stack_position: dict[str, int] = {}  # of the templates on the stack
    for start in items:
        path = [] if start in number else [(start, iter(parents[start]))]
        while path:
            item, rest = path[-1]
            if item not in number:
                number[item] = lowest[item] = len(number)
                stack_position[item] = len(stack)
                stack.append(item)
            parent = next(rest, None)
            if parent is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[item])
                if lowest[item] == number[item]:
                    at = stack_position[item]
                    cycle, stack[at:] = stack[at:], []
                    for member in cycle:
                        del stack_position[member]
                    yield cycle
            elif parent not in number:
                path.append((parent, iter(parents[parent])))
            elif parent in stack_position:
                lowest[item] = min(lowest[item], number[parent])


def table_depths(template_ids: Sequence[str], found: Sequence[Edge]) -> dict[str, int]:
    """Return the maximum number of ancestors of each template, along the edges that the order keeps."""
    ordering = sort_tables(template_ids, found)
    broken = set(map(id, ordering.cyclic_edges))
    parents = _parents_of(
        template_ids, [edge for edge in edges_among(found, template_ids) if id(edge) not in broken]
    )
    result: dict[str, int] = {}
    for template_id in ordering.template_ids:
        result[template_id] = 1 + max((result[parent] for parent in parents[template_id]), default=-1)
    return result


def identifies_rows(field: StoredField) -> bool:
    """Return whether a stored field's values identify its rows: never null, never repeated."""
    if field.get("percent_blank"):
        return False
    options = field["options"]
    key = options.get("primaryKey") or options.get("primary_key")
    return bool(key or field.get("unique") or (field["type"] in _NEVER_REPEAT and not field.get("formula")))


def find_primary_key(fields: Sequence[StoredField], referenced_paths: Sequence[str] = ()) -> str | None:
    """Return the path of the field that identifies a table's rows: an explicit one, else one that others
    reference, else the first whose values never repeat; None without any."""
    unique = {
        path: field for path, field in walk(fields) if identifies_rows(field) and not field.get("hidden")
    }
    explicit = [path for path, field in unique.items() if field["options"].get("primaryKey")]
    referenced = [path for path in referenced_paths if path in unique]
    generated = [path for path, field in unique.items() if field["type"] in _NEVER_REPEAT and "." not in path]
    return next(iter([*explicit, *referenced, *generated]), None)


# Describes a template's relations and groups in words while it is edited. A draft is described as far as it
# can be read: fields with faults are left out, and their faults are reported elsewhere.


@dataclass(frozen=True, slots=True)
class DescribedRelation:
    """One relation in words. `template_id` is the other template; "" for the template's own rows."""

    text: str
    template_id: str = ""
    name: str = ""
    is_faulty: bool = False


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """The group of a field, and the names of its fields. `color_number` numbers groups of two or more fields from 1; 0
    is a field without a group."""

    name: str
    kind: str
    members: tuple[str, ...]
    color_number: int = 0


@dataclass(frozen=True, slots=True)
class DraftRelations:
    """A draft as its builder should see it; both by field id."""

    relations: Mapping[str, DescribedRelation]
    groups: Mapping[str, FieldGroup]


NO_RELATIONS: Final = DraftRelations({}, {})


def template_names(actor: Actor) -> dict[str, str]:
    """Return the names of the project's templates by id, sorted by name, up to a limit."""
    listed = tenancy.listing(actor, Template).with_only_columns(Template.id, Template.name)
    rows = db.session.execute(listed.order_by(Template.name, Template.id).limit(limits.SELECT_TEMPLATES))
    return {row.id: row.name for row in rows}


def names_of(actor: Actor, ids: Sequence[str]) -> dict[str, tuple[str, list[str]]]:
    """Return name and field names of the templates that the actor may read, by id."""
    found = related_templates.newest_versions(actor, ids)
    return {
        item: (spec["name"], [field["name"] for field in spec["fields"]])
        for item, (_, spec, _) in found.items()
    }


def children_of(template_id: str, ids: Sequence[str]) -> set[str]:
    """Return those of the templates `ids` whose rows are children of the template `template_id` by cardinality."""
    statement = (
        select(Template.id, TemplateVersion.spec)
        .join(TemplateVersion, TemplateVersion.template_id == Template.id)
        .where(Template.id.in_(ids), TemplateVersion.number == Template.version)
    )
    return {
        row.id
        for row in db.session.execute(statement)
        if any(
            field["options"].get("cardinality") and field["options"].get("template_id") == template_id
            for field in row.spec["fields"]
        )
    }


def role_of(field: FieldSpec) -> str:
    """Return the relation between rows of the other template and those of a field (see ``engine/form_hints.py``), or
    ""."""
    properties = options_schema(field.type).get("properties", {})
    role: str = properties.get("template_id", {}).get(form_hints.KEY, {}).get("role", "")
    return role


def describe_draft(
    actor: Actor,
    draft: Mapping[str, Any],
    template_id: str = "",
    previous_fields: Sequence[Mapping[str, Any]] = (),
) -> DraftRelations:
    """Return a draft's relations and groups. `template_id` is the id of the saved template, `previous_fields` its
    fields."""
    related_ids = {item for _, item in related_templates.find_references(draft["fields"])} - {template_id}
    available = related_templates.newest_versions(actor, related_ids)
    unknown = related_ids - available.keys()
    fields = [
        field
        for field in draft["fields"]
        if not unknown & {found for _, found in related_templates.find_references([field])}
    ]
    spec = _parse_readable(fields)
    if spec is None:
        return NO_RELATIONS
    if previous_fields:
        spec = field_ids.carry_over(spec, previous_fields)
    spec = groups.assign(spec, field_ids.ungrouped_ids(previous_fields))
    try:
        found = related_templates.collect_related(
            fields, template_id, lambda ids: related_templates.newest_versions(actor, ids)
        )
        quantity = draft.get("quantity")
        rows = quantity if type(quantity) is int and quantity > 0 else limits.DEFAULT_QUANTITY
        plans = RelatedPlans(
            spec, compilation.vocabulary(), related_templates.build_library(found, template_id, rows, {})
        )
    except ApiError:
        return DraftRelations({}, field_groups(spec))
    return DraftRelations(
        {item.id or item.path: described for item in spec.walk() if (described := _describe(item, plans))},
        field_groups(spec),
    )


def _parse_readable(fields: list[Any]) -> TemplateSpec | None:
    """Parse the fields without errors. Return None if there are none."""
    try:
        return parse_fields(fields)
    except SpecError as error:
        broken = {fault.path.partition("]")[0].removeprefix("fields[") for fault in error.faults}
    try:
        return parse_fields([field for index, field in enumerate(fields) if str(index) not in broken])
    except SpecError:
        return None


# --- Groups -----------------------------------------------------------------------------------------------


def field_groups(spec: TemplateSpec) -> dict[str, FieldGroup]:
    """Return the groups of a template's fields, by field id."""
    found: dict[str, FieldGroup] = {}
    tones = iter(range(1, limits.MAX_FIELDS + 1))
    for level in _levels(spec.fields):
        for (name, kind), members in groups.fields_by_group(level).items():
            named = [field for field in members if groups.key_of(field) == (name, kind)]
            names = tuple(field.name for field in members)
            group = FieldGroup(name, kind, names, next(tones) if len(names) > 1 else 0)
            found |= {field.id or field.path: group for field in named}
    return found


def _levels(fields: tuple[FieldSpec, ...]) -> Iterator[tuple[FieldSpec, ...]]:
    yield fields
    for field in fields:
        if field.children:
            yield from _levels(field.children)


# --- Relations --------------------------------------------------------------------------------------------


def _describe(field: FieldSpec, plans: RelatedPlans) -> DescribedRelation | None:
    describe = _DESCRIBERS.get(role_of(field))
    if describe is None:
        return None
    template_id = _options(field).template_id
    address = plans.address(template_id, "")
    if address is None:
        return None
    other_id = "" if address == "" else template_id
    try:
        text, is_faulty = describe(field, plans, address)
    except RowCountError as error:
        text, is_faulty = str(error), True
    return DescribedRelation(text, other_id, plans.template(address).name if other_id else "", is_faulty)


def _options(field: FieldSpec) -> Any:
    """Return the options of a field that has a role. Each type has its own model, whose schema contains the role."""
    return field.options


def _name_of(plans: RelatedPlans, address: str) -> str:
    return plans.template(address).name if address else "this template"


def _rows_text(low: int, high: int) -> str:
    return f"{low:,} to {high:,} rows" if low != high else f"{low:,} {'row' if low == 1 else 'rows'}"


def _describe_parent(field: FieldSpec, plans: RelatedPlans, address: str) -> tuple[str, bool]:
    name, rows = _name_of(plans, address), plans.row_count(address)
    fields = plans.template("").spec.fields
    siblings = [item for item in fields if item.type is field.type and item.group == field.group]
    if not any(
        item is field for item in siblings
    ):  # nested in another field, whose elements have no children
        siblings = [field]
    owner = plans.parent_field("")
    if owner is not None and any(item is owner[0] for item in siblings):
        if owner[0].name != field.name:
            return f"of the same row as {owner[0].name}", False
        counts = plans.child_counts("")
        each = _rows_text(owner[1].min, owner[1].max)
        return f"{each} for each of {rows:,} {name}: {counts.total if counts else 0:,} rows", False
    if siblings[0] is not field:
        return f"of the same row as {siblings[0].name}", False
    if not address:
        return "an earlier row of this template; the first have none", False
    if field.common.unique:
        return f"each of {rows:,} rows of {name} once", False
    return f"one of {rows:,} rows of {name}", False


def _describe_child(field: FieldSpec, plans: RelatedPlans, address: str) -> tuple[str, bool]:
    owner = plans.child_field(address, "")
    name = _name_of(plans, address)
    if owner is None:
        return f"{name} has no reference with cardinality to this template", True
    cardinality = _options(owner).cardinality
    return (
        f"over {_rows_text(cardinality.min, cardinality.max)} of {name} for each of {plans.row_count(''):,} rows",
        False,
    )


def _describe_inside(field: FieldSpec, plans: RelatedPlans, address: str) -> tuple[str, bool]:
    owner = plans.child_field(address, "")
    name = _name_of(plans, address)
    if owner is not None:
        cardinality = _options(owner).cardinality
        return f"the {_rows_text(cardinality.min, cardinality.max)} of {name} that belong to each row", False
    options = _options(field)
    if not options.array:
        return f"one row of {name} in each row", False
    count = options.count or Count()
    low, high = (options.quantity,) * 2 if options.quantity is not None else (count.min, count.max)
    return f"{_rows_text(low, high)} of {name} in each row", False


_DESCRIBERS: Final = {"parent": _describe_parent, "child": _describe_child, "inside": _describe_inside}
