"""Which rows of which tables belong to a subset: queries in SQL, each built upon those before it.

From some rows of one table the foreign keys are followed both ways: to children, so many steps as are asked for, and
from every row that is reached to its parents, always. Each step is a common table expression, so that a query stays
as long as the subset has steps, however many ways lead to a table. Where tables refer to one another in a ring, the way
up goes around it a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.shape import Entity, Relation
from webapp.connectors.sql import checked_condition, qualified
from webapp.engine.formats.sql_dialects import DIALECTS, Dialect
from webapp.errors import Fault, validation_error

KINDS = {
    "postgresql": "postgresql",
    "mysql": "mysql",
    "sqlite": "ansi",
    "mssql": "mssql",
    "oracle": "oracle",
    "db2": "db2",
}
"""Kinds of connections that subsets are read from, and the dialect of each."""
_FETCH_FIRST = ("oracle", "db2", "mssql")
_NOT_ORDERED = ("json", "binary", "array", "other", "interval")


def refused(code: str, text: str, hint: str, path: str = "table") -> Exception:
    """The `validation_error` of a subset."""
    return validation_error([Fault(path, code, text, hint)])


@dataclass(frozen=True, slots=True)
class Step:
    """Some rows of a table: those of which any condition holds; all of them where there is none."""

    name: str
    entity: Entity
    conditions: tuple[str, ...]
    needs: frozenset[str]
    """The steps that the conditions read."""


@dataclass(slots=True)
class Ways:
    """The steps of a subset. `found`: the last step of each table, which is its part of the subset."""

    tables: Mapping[str, Entity]
    kind: str
    steps: dict[str, Step] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    why: dict[str, list[str]] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        """How the target writes names."""
        return DIALECTS[KINDS[self.kind]]

    def add(self, table: str, conditions: Sequence[str], needs: Collection[str]) -> str:
        """Another step; its name. Error: validation_error where they become too many."""
        name = f"step_{len(self.steps)}"
        whole = () if "" in conditions else tuple(dict.fromkeys(conditions))
        self.steps[name] = Step(name, self.tables[table], whole, frozenset(needs if whole else ()))
        if len(self.steps) > limits.SUBSET_STEPS:
            text = f"The foreign keys lead over more than {limits.SUBSET_STEPS} steps to related rows."
            raise refused("too_many_steps", text, "Ask for fewer children: by name, or none.", "children")
        return name

    def tell(self, table: str, why: str) -> None:
        """How rows of a table came to be in the subset, for people."""
        told = self.why.setdefault(table, [])
        if why not in told:
            told.append(why)

    def among(self, columns: Sequence[str], step: str, shown: Sequence[str]) -> str:
        """The condition that some columns of a row hold what others show in the rows of a step."""
        left = self.listed(columns)
        return f"{left if len(columns) == 1 else f'({left})'} IN (SELECT {self.listed(shown)} FROM {step})"

    def listed(self, columns: Sequence[str]) -> str:
        """Names of columns as statements have them."""
        return ", ".join(self.dialect.quoted(one) for one in columns)

    def rows(self, step: Step, columns: str) -> str:
        """The SELECT of a step."""
        where = " OR ".join(f"({one})" for one in step.conditions)
        return f"SELECT {columns} FROM {qualified(self.dialect, step.entity.parts)}" + (
            f" WHERE {where}" if where else ""
        )

    def before(self, names: Collection[str]) -> str:
        """The common table expressions that steps read, themselves among them; nothing where there are none."""
        wanted, waiting = set(names), list(names)
        while waiting:
            fresh = self.steps[waiting.pop()].needs - wanted
            wanted |= fresh
            waiting.extend(fresh)
        made = [
            f"{name} AS ({self.rows(step, self.listed(self._linking(step.entity)))})"
            for name, step in self.steps.items()
            if name in wanted
        ]
        return f"WITH {', '.join(made)} " if made else ""

    def _linking(self, entity: Entity) -> list[str]:
        """The columns of a table that foreign keys lead from or to."""
        own = [name for relation in entity.relations for name in relation.columns]
        led = [
            name
            for other in self.tables.values()
            for relation in other.relations
            if relation.entity == entity.name
            for name in relation.entity_columns
        ]
        return list(dict.fromkeys([*entity.keys, *own, *led])) or [entity.fields[0].name]


# --- The steps --------------------------------------------------------------------------------------------------


def begun(tables: Mapping[str, Entity], kind: str, start: Entity, where: str, limit: int | None) -> Ways:
    """The first rows. Error: validation_error where there is no key to choose so many by."""
    ways = Ways(tables, kind)
    try:
        condition = where = checked_condition(kind, where) if where.strip() else ""
    except ConnectorError as error:
        raise refused("bad_query", error.message, error.hint, path="where") from None
    if limit is not None:
        if not start.keys:
            text = f'"{start.name}" has no primary key, so that nobody can say which {limit:,} of its rows are meant.'
            raise refused(
                "no_primary_key", text, "Choose its rows by where alone, or begin with another table."
            )
        condition = _first(ways, start, where, limit)
    ways.found[start.name] = ways.add(start.name, [condition], ())
    ways.tell(start.name, "The rows that were asked for.")
    return ways


def _first(ways: Ways, start: Entity, where: str, limit: int) -> str:
    """The condition of the first rows by the primary key."""
    _comparable(ways, start, start.keys)
    keys = ways.listed(start.keys)
    rows = f"SELECT {keys} FROM {qualified(ways.dialect, start.parts)}"
    rows += f" WHERE ({where}\n)" if where else ""
    offset = "OFFSET 0 ROWS " if ways.kind == "mssql" else ""
    last = f"{offset}FETCH FIRST {limit} ROWS ONLY" if ways.kind in _FETCH_FIRST else f"LIMIT {limit}"
    left = keys if len(start.keys) == 1 else f"({keys})"
    # In a table of its own, since MySQL takes no LIMIT right behind IN.
    return f"{left} IN (SELECT {keys} FROM ({rows} ORDER BY {keys} {last}) chosen)"


def _comparable(ways: Ways, entity: Entity, columns: Sequence[str]) -> None:
    if ways.kind == "mssql" and len(columns) > 1:
        text = f'"{entity.name}" has a key of several columns, which SQL Server cannot look for in a list.'
        raise refused("composite_key", text, "Begin with another table, or leave that one out of children.")


def follow(ways: Ways, children: Collection[str] | None, depth: int) -> None:
    """Every step from the first rows on. `children`: tables whose rows come along where they refer to such rows (None:
    all), so many steps down as `depth`. Error: validation_error."""
    parts = {name: [step] for name, step in ways.found.items()}
    level = dict(ways.found)
    for _ in range(depth):
        level = _down(ways, level, children)
        for name, step in level.items():
            parts.setdefault(name, []).append(step)
    _up(ways, parts)


def _down(ways: Ways, level: Mapping[str, str], children: Collection[str] | None) -> dict[str, str]:
    """The children of the rows of some steps, by table."""
    found = {}
    for entity in ways.tables.values():
        if entity.kind != "table" or not (children is None or entity.name in children):
            continue
        conditions, needs = [], []
        for relation in entity.relations:
            step = level.get(relation.entity)
            if step is None:
                continue
            _comparable(ways, entity, relation.columns)
            conditions.append(ways.among(relation.columns, step, relation.entity_columns))
            needs.append(step)
            ways.tell(
                entity.name, f"They refer to rows of {relation.entity} ({', '.join(relation.columns)})."
            )
        if conditions:
            found[entity.name] = ways.add(entity.name, conditions, needs)
    return found


def _up(ways: Ways, parts: Mapping[str, Sequence[str]]) -> None:
    """The parents of all rows: tables are gone through children first, those of a ring together and several times."""
    for ring in _rings(ways, list(parts)):
        rounds = limits.SUBSET_ROUNDS if len(ring) > 1 or _leads(ways, ring[0], ring[0]) else 0
        for name in ring:
            _gather(ways, name, parts.get(name, ()), [one for one in ways.found if one not in ring])
        for _ in range(rounds):
            before = {name: ways.found[name] for name in ring if name in ways.found}
            for name in ring:
                others = [one for one in ways.found if one not in ring]
                _gather(ways, name, parts.get(name, ()), others, before)


def _gather(
    ways: Ways,
    name: str,
    own: Sequence[str],
    children: Sequence[str],
    ring: Mapping[str, str] | None = None,
) -> None:
    """The step of a table: its own parts, and the rows that those of other steps refer to."""
    steps = {**{one: ways.found[one] for one in children}, **(ring or {})}
    conditions, needs = [], []
    for step in own:
        conditions += ways.steps[step].conditions or [""]
        needs += ways.steps[step].needs
    for child, step in steps.items():
        for relation in ways.tables[child].relations:
            if relation.entity == name:
                _comparable(ways, ways.tables[name], relation.entity_columns)
                conditions.append(ways.among(relation.entity_columns, step, relation.columns))
                needs.append(step)
                ways.tell(name, f"Rows of {child} refer to them ({', '.join(relation.columns)}).")
    if conditions:
        ways.found[name] = ways.add(name, conditions, needs)


def _leads(ways: Ways, child: str, parent: str) -> bool:
    return any(relation.entity == parent for relation in ways.tables[child].relations)


def _rings(ways: Ways, names: Sequence[str]) -> list[list[str]]:
    """The tables that may belong to a subset, children first; those that refer to one another in a ring together."""
    above: dict[str, set[str]] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in above:
            continue
        above[name] = {relation.entity for relation in ways.tables[name].relations}
        unseen = above[name] - ways.tables.keys()
        if unseen:
            text = f'"{name}" refers to "{unseen.pop()}", which the connection does not see.'
            raise refused("no_parent", text, "Let its account read that table.")
        waiting.extend(above[name])
    reach = {name: _reached(above, name) for name in above}
    left, found = list(above), []
    while left:
        ring = next(ring for ring in (_ring(reach, left, name) for name in left) if _free(above, left, ring))
        found.append(ring)
        left = [name for name in left if name not in ring]
    return found


def _reached(above: Mapping[str, set[str]], name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        fresh = above[waiting.pop()] - found
        found |= fresh
        waiting.extend(fresh)
    return found


def _ring(reach: Mapping[str, set[str]], left: Sequence[str], name: str) -> list[str]:
    return [other for other in left if other == name or (other in reach[name] and name in reach[other])]


def _free(above: Mapping[str, set[str]], left: Sequence[str], ring: Sequence[str]) -> bool:
    """Whether nothing else that is left refers to a ring."""
    return not any(above[other] & set(ring) for other in left if other not in ring)


# --- The queries ------------------------------------------------------------------------------------------------


def rows_of(ways: Ways, table: str) -> str:
    """The query of a table's rows, in a stable order. Error: validation_error where it becomes too long."""
    step, entity = ways.steps[ways.found[table]], ways.tables[table]
    every = [one.name for one in entity.fields]
    order = entity.keys or [one.name for one in entity.fields if one.type not in _NOT_ORDERED]
    tail = f" ORDER BY {ways.listed(order)}" if order else ""
    query = f"{ways.before(step.needs)}{ways.rows(step, ways.listed(every))}{tail}"
    if len(query) > limits.SOURCE_QUERY_CHARS:
        text = f'The query for the rows of "{table}" has more than {limits.SOURCE_QUERY_CHARS:,} characters.'
        raise refused("too_many_steps", text, "Ask for fewer children: by name, or none.", "children")
    return query


def counting(ways: Ways, table: str) -> str:
    """The query that counts a table's rows in the subset."""
    step = ways.steps[ways.found[table]]
    return f"{ways.before(step.needs)}{ways.rows(step, 'COUNT(*) AS n')}"


def missing(ways: Ways) -> Iterator[tuple[str, Relation, str]]:
    """(table, foreign key, query that counts the subset's rows whose parent is not in it), for each foreign key."""
    for name, step in ways.found.items():
        for relation in ways.tables[name].relations:
            parent = ways.found[relation.entity]
            some = " AND ".join(f"{ways.dialect.quoted(one)} IS NOT NULL" for one in relation.columns)
            there = ways.among(relation.columns, parent, relation.entity_columns)
            query = (
                f"{ways.before([step, parent])}SELECT COUNT(*) AS n FROM {step} WHERE {some} AND NOT {there}"
            )
            yield name, relation, query


def parents_first(ways: Ways) -> list[str]:
    """The tables of a subset, parents before their children as far as rings allow."""
    return [name for ring in reversed(_rings(ways, list(ways.found))) for name in ring if name in ways.found]
