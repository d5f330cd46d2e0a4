"""What the page of a dataset shows of its tables: columns, relations, row counts, the order in which they are sent.

A version of a template never changes, so what is read from it is cached in the process. Row counts follow from the
relations without compiling the templates, so that a dataset with 2,000 tables is shown as quickly as one with 2.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import select

from webapp import limits
from webapp.access.actors import Actor
from webapp.engine.relations.cardinality import Counts, OutOfRange, TooMany
from webapp.engine.types.registry import find
from webapp.engine.types.relations import Cardinality
from webapp.extensions import db
from webapp.row_templates.models import Template, TemplateVersion
from webapp.row_templates.services import related_templates, relations
from webapp.row_templates.services.relations import Edge

_BATCH: Final = 200  # versions that are read together


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a table, by its path; `label` is the name of its type."""

    path: str
    type: str
    label: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What a version of a template says of its table.

    `edges` name the fields of other templates by their ids, which `paths` resolve. `keys` are the paths whose values
    identify a row: the declared key, all candidates, and the first that is always unique.
    """

    quantity: int
    sourced: bool
    columns: tuple[Column, ...]
    paths: Mapping[str, str]
    edges: tuple[Edge, ...]
    keys: tuple[str | None, frozenset[str], str | None]

    def key(self, referred_to: Iterable[str]) -> str | None:
        """Return the path of the field that identifies the rows; `referred_to` are those that others reference."""
        declared, fit, first = self.keys
        return declared or next((path for path in referred_to if path in fit), None) or first


@dataclass(slots=True)
class Table:
    """One table of a dataset. `count` is the number of rows that was entered; `rows` the number that results, None if
    it is unknown; `parent` the name of the table that the number follows from; `order` its place in the load order,
    from 1; `owned`: the rows are children of another table's by cardinality; `outside`: references to templates that
    are not in the dataset."""

    place: int
    template_id: str
    name: str
    template_name: str
    file_name: str
    version: int
    newest: int
    count: int | None
    missing: bool = False
    rows: int | None = None
    parent: str = ""
    problem: str = ""
    order: int = 0
    key: str | None = None
    columns: Sequence[Column] = ()
    sourced: bool = False
    owned: bool = False
    quantity: int = 0
    outside: int = 0


@dataclass(slots=True)
class Overview:
    """The tables of a dataset in its order, and the relations between them."""

    tables: list[Table] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    by_id: dict[str, Table] = field(default_factory=dict)
    load_order: list[Table] = field(default_factory=list)
    broken: frozenset[int] = frozenset()
    depths: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int | None:
        """Rows of all tables; None if one is unknown."""
        counts = [table.rows for table in self.tables]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def approximate(self) -> bool:
        """Whether the number of rows of a table is only known once its source is read."""
        return any(table.rows is None and not table.problem for table in self.tables)

    def related(self, template_id: str) -> list[Edge]:
        """Return the relations of a table, those to its parents first."""
        up = [edge for edge in self.edges if edge.child_template_id == template_id]
        down = [edge for edge in self.edges if edge.parent_template_id == template_id and not edge.to_itself]
        return up + down

    def edge(self, template_id: str, path: str) -> Edge | None:
        """Return the relation of a field."""
        own = (edge for edge in self.edges if edge.child_template_id == template_id)
        return next((edge for edge in own if edge.child_field == path), None)


def of(actor: Actor, shown: Mapping[str, Any]) -> Overview:
    """Return the overview of a dataset as the API shows it."""
    wanted = [str(one["template_id"]) for one in shown["templates"]]
    heads = {
        head.id: head
        for head in db.session.scalars(
            select(Template).where(
                Template.id.in_(wanted),
                Template.workspace_id == actor.workspace_id,
                Template.deleted_at.is_(None),
            )
        )
        if actor.can("read", head.team_id)
    }
    made = Overview()
    for place, one in enumerate(shown["templates"]):
        head = heads.get(one["template_id"])
        named = head.name if head else "deleted template"
        made.tables.append(
            Table(
                place, one["template_id"], one.get("name") or named, named, one.get("name") or "",
                one["version"], head.version if head else one["version"], one.get("count"), head is None,
            )
        )  # fmt: skip
    there = [table for table in made.tables if not table.missing]
    made.by_id = {table.template_id: table for table in made.tables}
    contents = read({table.template_id: table.version for table in there})
    _relate(made, contents)
    _count(actor, made, contents)
    return made


def _relate(made: Overview, contents: Mapping[str, Contents]) -> None:
    ids = [table.template_id for table in made.tables]
    everything = [edge for one in contents.values() for edge in one.edges]
    resolved = [
        replace(
            edge,
            parent_field=contents[edge.parent_template_id].paths.get(edge.parent_field, edge.parent_field),
        )
        if edge.parent_template_id in contents
        else edge
        for edge in everything
    ]
    made.edges = relations.among(resolved, list(contents))
    for edge in resolved:
        if edge.parent_template_id not in contents:
            made.by_id[edge.child_template_id].outside += 1
    referred: dict[str, list[str]] = {}
    for edge in made.edges:
        referred.setdefault(edge.parent_template_id, []).append(edge.parent_field)
    for table in made.tables:
        if (one := contents.get(table.template_id)) is not None:
            table.columns, table.key = one.columns, one.key(referred.get(table.template_id, ()))
            table.sourced, table.quantity = one.sourced, one.quantity
    order = relations.order(ids, made.edges)
    made.broken = frozenset(id(edge) for edge in order.broken)
    made.depths = relations.depths(ids, made.edges)
    made.load_order = [made.by_id[one] for one in order.template_ids]
    for at, table in enumerate(made.load_order, 1):
        table.order = at


# --- Row counts ----------------------------------------------------------------------------------------------


def _count(actor: Actor, made: Overview, contents: Mapping[str, Contents]) -> None:
    """Set the number of rows of each table, as the engine does: see `engine/relations/related_plans.py`."""
    known = dict(contents)
    owners = {one: _owner(found) for one, found in known.items()}
    wanted = {edge.parent_template_id for edge in owners.values() if edge is not None} - known.keys()
    names = {table.template_id: table.name for table in made.tables}
    while wanted:  # parents that are not in the dataset
        heads = related_templates.newest(actor, sorted(wanted))
        found = read({one: version for one, (version, *_) in heads.items()})
        names |= {one: spec["name"] for one, (_, spec, _) in heads.items()}
        known |= found
        owners |= {one: _owner(contents) for one, contents in found.items()}
        wanted = {edge.parent_template_id for one in found if (edge := owners[one])} - known.keys()
    stated = {table.template_id: table.count for table in made.tables if table.count is not None}
    results: dict[str, tuple[int | None, str]] = {}

    def resolve(start: str) -> None:
        pending = [start]
        while pending:
            one = pending[-1]
            edge = owners.get(one)
            parent = edge.parent_template_id if edge else ""
            if edge and parent in known and parent not in results:
                if parent in pending:
                    results[parent] = (None, "The numbers of rows depend on each other.")
                else:
                    pending.append(parent)
                    continue
            pending.pop()
            if one not in results:
                results[one] = _rows(
                    known[one], edge, results.get(parent), stated.get(one), names.get(parent, "")
                )

    for table in made.tables:
        if table.missing:
            table.problem = "This template was deleted. Restore it, or remove the table."
            continue
        if table.template_id not in results:
            resolve(table.template_id)
        table.rows, table.problem = results[table.template_id]
        if (owner := owners.get(table.template_id)) is not None:
            table.owned, table.parent = True, names.get(owner.parent_template_id, "another template")


def _owner(contents: Contents) -> Edge | None:
    """Return the relation that counts the rows of a table, if any."""
    return next((edge for edge in contents.edges if edge.cardinality and "." not in edge.child_field), None)


def _rows(
    contents: Contents,
    edge: Edge | None,
    parent: tuple[int | None, str] | None,
    stated: int | None,
    name: str,
) -> tuple[int | None, str]:
    """Return the number of rows of one table, and what is wrong with it."""
    if edge is None or edge.cardinality is None:
        return (stated, "") if stated is not None else (None if contents.sourced else contents.quantity, "")
    if parent is None or parent[0] is None:
        return stated, ""
    try:
        return Counts(
            parent[0], Cardinality.model_validate(dict(edge.cardinality)).spread(), stated
        ).total, ""
    except OutOfRange as error:
        return None, f"{parent[0]:,} rows of {name} have {error.least:,} to {error.most:,} rows here."
    except TooMany:
        return None, "There would be more rows than can be numbered."


# --- Contents of versions --------------------------------------------------------------------------------------


class _Memory:
    """An LRU cache of contents by template and version. Thread-safe."""

    def __init__(self, entries: int) -> None:
        self._entries, self._lock = entries, threading.Lock()
        self._kept: OrderedDict[tuple[str, int], Contents] = OrderedDict()

    def get(self, key: tuple[str, int]) -> Contents | None:
        with self._lock:
            if (found := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: tuple[str, int], contents: Contents) -> None:
        with self._lock:
            self._kept[key] = contents
            while len(self._kept) > self._entries:
                self._kept.popitem(last=False)


_MEMORY: Final = _Memory(limits.DATASET_CONTENTS_CACHED)


def read(versions: Mapping[str, int]) -> dict[str, Contents]:
    """Return the contents of versions of templates (`{id: number}`), in the same order. Missing ones are left out."""
    found = {one: _MEMORY.get((one, number)) for one, number in versions.items()}
    missing = [one for one, contents in found.items() if contents is None]
    for start in range(0, len(missing), _BATCH):
        batch = missing[start : start + _BATCH]
        statement = select(TemplateVersion.template_id, TemplateVersion.number, TemplateVersion.spec).where(
            TemplateVersion.template_id.in_(batch),
            TemplateVersion.number.in_({versions[one] for one in batch}),
        )
        related_templates.check_size(statement)
        for template_id, number, spec in db.session.execute(statement):
            if versions[template_id] == number:
                found[template_id] = contents = _contents(template_id, spec)
                _MEMORY.put((template_id, number), contents)
    return {one: contents for one, contents in found.items() if contents is not None}


def _contents(template_id: str, spec: Mapping[str, Any]) -> Contents:
    fields = spec["fields"]
    walked = list(relations.walk(fields))
    fit = {path: one for path, one in walked if relations.never_repeats(one) and not one.get("hidden")}
    declared = next((path for path, one in fit.items() if one["options"].get("primaryKey")), None)
    return Contents(
        quantity=spec["quantity"],
        sourced=spec.get("source") is not None,
        columns=tuple(
            Column(path, one["type"], _label(one["type"])) for path, one in walked if "." not in path
        ),
        paths={one["id"]: path for path, one in walked if one.get("id")},
        edges=tuple(relations.edges({template_id: fields})),
        keys=(declared, frozenset(fit), relations.primary_key(fields) if declared is None else None),
    )


def _label(name: str) -> str:
    kind = find(name)
    return kind.label if kind else name
