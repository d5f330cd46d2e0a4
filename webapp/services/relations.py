"""How templates hang together: which field of which refers to which, and in what order their tables can be filled.

Read from the stored fields alone, so that it can be told without compiling anything: for the order of an export,
for the keys of an SQL file and for the diagram of a dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webapp.services.template_fields import Stored, children

REFERENCE: Final = "reference"  # the field type that refers
SELF: Final = "self"  # as `template_id`: the field's own template
# Types whose values never repeat, whatever their options.
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
        """Whether parent and child are one table."""
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
            names = {one["id"]: at for at, one in walk(templates.get(parent, ()))}
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
    """Whether a field says how many rows of its template each row of the other one has."""
    return (
        field["type"] == REFERENCE
        and field.get("group") is not None
        and bool(field["options"].get("cardinality"))
    )


def among(found: Sequence[Edge], template_ids: Sequence[str]) -> list[Edge]:
    """The edges with both ends among some templates."""
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
    """Parents first; as the templates stand where relations leave it open. A ring is opened before the table of it
    that stands first, so the same dataset always has the same order; of its tables those go before all others whose
    every reference into the ring may wait, where `may_wait` says so of any."""
    inside = [edge for edge in among(found, template_ids) if not edge.to_itself]
    parents = _parents(template_ids, inside)
    strict = _parents(template_ids, [edge for edge in inside if not may_wait(edge)])
    left, made = list(template_ids), []
    while left:
        free = next((one for one in left if not parents[one] & set(left)), None)
        if free is None:
            ring = _ring(left, parents)
            free = next((one for one in ring if not strict[one] & set(left)), ring[0])
        made.append(free)
        left.remove(free)
    place = {one: at for at, one in enumerate(made)}
    broken = [
        edge
        for edge in among(found, template_ids)
        if place[edge.parent_template_id] >= place[edge.child_template_id]
    ]
    return Order(tuple(made), tuple(broken))


def _parents(template_ids: Sequence[str], found: Sequence[Edge]) -> dict[str, set[str]]:
    return {
        one: {edge.parent_template_id for edge in found if edge.child_template_id == one}
        for one in template_ids
    }


def _ring(left: Sequence[str], parents: Mapping[str, set[str]]) -> list[str]:
    """The templates of the first ring that waits for nothing but itself; what merely hangs on a ring is not one."""

    def above(one: str) -> set[str]:
        seen: set[str] = set()
        pending = [one]
        while pending:
            new = (parents[pending.pop()] & set(left)) - seen
            seen |= new
            pending += new
        return seen

    all_above = {one: above(one) for one in left}
    first = next(one for one in left if all(one in all_above[other] for other in all_above[one]))
    return [one for one in left if one in all_above[first]]


def depths(template_ids: Sequence[str], found: Sequence[Edge]) -> dict[str, int]:
    """How many parents stand above each template at most, over the edges that the order keeps: 0 for none."""
    kept = order(template_ids, found)
    broken = set(map(id, kept.broken))
    out: dict[str, int] = {}
    for one in kept.template_ids:
        above = [
            out[edge.parent_template_id]
            for edge in among(found, template_ids)
            if edge.child_template_id == one and id(edge) not in broken
        ]
        out[one] = 1 + max(above, default=-1)
    return out


def never_repeats(field: Stored) -> bool:
    """Whether a stored field's values identify its rows: never blank, never twice the same."""
    if field.get("percent_blank"):
        return False
    options = field["options"]
    key = options.get("primaryKey") or options.get("primary_key")
    return bool(key or field.get("unique") or (field["type"] in _NEVER_REPEAT and not field.get("formula")))


def primary_key(fields: Sequence[Stored], referred_to: Sequence[str] = ()) -> str | None:
    """The path of the field that identifies a table's rows: one that says so, else one that others refer to, else
    the first whose values are made never to repeat. None where there is none."""
    fit = {path: field for path, field in walk(fields) if never_repeats(field) and not field.get("hidden")}
    said = [path for path, field in fit.items() if field["options"].get("primaryKey")]
    known = [path for path in referred_to if path in fit]
    made = [path for path, field in fit.items() if field["type"] in _NEVER_REPEAT and "." not in path]
    return next(iter([*said, *known, *made]), None)
