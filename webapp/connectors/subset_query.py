"""SQL queries that select the rows of a subset.

Starting from rows of one table, foreign keys are followed in both directions: to children, for the requested
number of steps, and from every row to its parents, always. Each step is a common table expression, so the
length of a query grows with the number of steps, not with the number of paths to a table. Circular foreign
keys are followed a limited number of times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.schema import Entity, Relation
from webapp.connectors.sql.base import checked_condition, qualified_name
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
"""Kinds of connections that support subsets, and their dialects."""
_FETCH_FIRST = ("oracle", "db2", "mssql")
_NOT_ORDERED = ("json", "binary", "array", "other", "interval")


def subset_error(code: str, text: str, hint: str, path: str = "table") -> Exception:
    """Return the `validation_error` of a subset."""
    return validation_error([Fault(path, code, text, hint)])


@dataclass(frozen=True, slots=True)
class Step:
    """Rows of a table that match any of the conditions, or all rows if there are no conditions."""

    name: str
    entity: Entity
    conditions: tuple[str, ...]
    needs: frozenset[str]
    """The steps that the conditions use."""


@dataclass(slots=True)
class SubsetSteps:
    """The steps of a subset. `final` is the last step of each table, which selects its rows in the subset."""

    tables: Mapping[str, Entity]
    kind: str
    steps: dict[str, Step] = field(default_factory=dict)
    final: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the connection."""
        return DIALECTS[KINDS[self.kind]]

    def add(self, table: str, conditions: Sequence[str], needs: Collection[str]) -> str:
        """Add a step, and return its name. Error: validation_error if there are too many."""
        name = f"step_{len(self.steps)}"
        unique_conditions = () if "" in conditions else tuple(dict.fromkeys(conditions))
        self.steps[name] = Step(
            name, self.tables[table], unique_conditions, frozenset(needs if unique_conditions else ())
        )
        if len(self.steps) > limits.SUBSET_STEPS:
            text = f"Following the foreign keys takes more than {limits.SUBSET_STEPS} steps."
            raise subset_error(
                "too_many_steps", text, "Select fewer child tables by name, or none.", "children"
            )
        return name

    def add_reason(self, table: str, reason: str) -> None:
        """Record why rows of a table are in the subset, for users."""
        reasons = self.reasons.setdefault(table, [])
        if reason not in reasons:
            reasons.append(reason)

    def in_step_condition(self, columns: Sequence[str], step: str, selected: Sequence[str]) -> str:
        """Return the condition that `columns` of a row equal `selected` of a row in the step."""
        left = self.column_list(columns)
        return f"{left if len(columns) == 1 else f'({left})'} IN (SELECT {self.column_list(selected)} FROM {step})"

    def column_list(self, columns: Sequence[str]) -> str:
        """Return column names for a statement."""
        return ", ".join(self.dialect.quote_name(column) for column in columns)

    def select_statement(self, step: Step, columns: str) -> str:
        """Return the SELECT statement of a step."""
        where = " OR ".join(f"({condition})" for condition in step.conditions)
        return f"SELECT {columns} FROM {qualified_name(self.dialect, step.entity.parts)}" + (
            f" WHERE {where}" if where else ""
        )

    def with_clause(self, names: Collection[str]) -> str:
        """Return the WITH clause for these steps and all steps they use; "" if there are none."""
        required, pending = set(names), list(names)
        while pending:
            new = self.steps[pending.pop()].needs - required
            required |= new
            pending.extend(new)
        clauses = [
            f"{name} AS ({self.select_statement(step, self.column_list(self._linked_columns(step.entity)))})"
            for name, step in self.steps.items()
            if name in required
        ]
        return f"WITH {', '.join(clauses)} " if clauses else ""

    def _linked_columns(self, entity: Entity) -> list[str]:
        """Return the columns of a table that foreign keys use."""
        referencing = [name for relation in entity.relations for name in relation.columns]
        referenced = [
            name
            for other in self.tables.values()
            for relation in other.relations
            if relation.entity == entity.name
            for name in relation.entity_columns
        ]
        return list(dict.fromkeys([*entity.keys, *referencing, *referenced])) or [entity.fields[0].name]


# --- The steps --------------------------------------------------------------------------------------------------


def start_subset(
    tables: Mapping[str, Entity], kind: str, start: Entity, where: str, limit: int | None
) -> SubsetSteps:
    """Select the first rows. Error: validation_error if the table has no key for choosing a limited number of
    rows."""
    subset = SubsetSteps(tables, kind)
    try:
        condition = where = checked_condition(kind, where) if where.strip() else ""
    except ConnectorError as error:
        raise subset_error("bad_query", error.message, error.hint, path="where") from None
    if limit is not None:
        if not start.keys:
            text = f'"{start.name}" has no primary key, so a limit of {limit:,} rows is not well-defined.'
            raise subset_error(
                "no_primary_key", text, "Select its rows only with `where`, or start with another table."
            )
        _check_comparable(subset, start, start.keys)
        keys = subset.column_list(start.keys)
        rows = f"SELECT {keys} FROM {qualified_name(subset.dialect, start.parts)}"
        rows += f" WHERE ({where}\n)" if where else ""
        offset = "OFFSET 0 ROWS " if kind == "mssql" else ""
        last = f"{offset}FETCH FIRST {limit} ROWS ONLY" if kind in _FETCH_FIRST else f"LIMIT {limit}"
        left = keys if len(start.keys) == 1 else f"({keys})"
        # MySQL allows LIMIT in a derived table, but not directly in an IN subquery.
        condition = f"{left} IN (SELECT {keys} FROM ({rows} ORDER BY {keys} {last}) chosen)"
    subset.final[start.name] = subset.add(start.name, [condition], ())
    subset.add_reason(start.name, "Requested rows.")
    return subset


def _check_comparable(subset: SubsetSteps, entity: Entity, columns: Sequence[str]) -> None:
    if subset.kind == "mssql" and len(columns) > 1:
        text = f'"{entity.name}" has a key of several columns, which SQL Server does not support in an IN subquery.'
        raise subset_error(
            "composite_key", text, "Start with another table, or remove that one from `children`."
        )


def follow(subset: SubsetSteps, children: Collection[str] | None, depth: int) -> None:
    """Add all steps after the first rows. Error: validation_error.

    Rows of the tables `children` (None: all tables) are included if they reference selected rows, up to
    `depth` levels down.
    """
    parts = {name: [step] for name, step in subset.final.items()}
    level = dict(subset.final)
    for _ in range(depth):
        level = _add_children(subset, level, children)
        for name, step in level.items():
            parts.setdefault(name, []).append(step)
    # The parents of all rows. Tables come after their children; circular ones are visited several times.
    for group in _circular_groups(subset, list(parts)):
        circular = len(group) > 1 or any(
            relation.entity == group[0] for relation in subset.tables[group[0]].relations
        )
        for name in group:
            _add_step(subset, name, parts.get(name, ()), [item for item in subset.final if item not in group])
        for _ in range(limits.SUBSET_ROUNDS if circular else 0):
            before = {name: subset.final[name] for name in group if name in subset.final}
            for name in group:
                others = [item for item in subset.final if item not in group]
                _add_step(subset, name, parts.get(name, ()), others, before)


def _add_children(
    subset: SubsetSteps, level: Mapping[str, str], children: Collection[str] | None
) -> dict[str, str]:
    """Add steps for the children of these steps' rows, and return them by table."""
    added = {}
    for entity in subset.tables.values():
        if entity.kind != "table" or not (children is None or entity.name in children):
            continue
        conditions, needs = [], []
        for relation in entity.relations:
            step = level.get(relation.entity)
            if step is None:
                continue
            _check_comparable(subset, entity, relation.columns)
            conditions.append(subset.in_step_condition(relation.columns, step, relation.entity_columns))
            needs.append(step)
            subset.add_reason(
                entity.name, f"They reference rows of {relation.entity} ({', '.join(relation.columns)})."
            )
        if conditions:
            added[entity.name] = subset.add(entity.name, conditions, needs)
    return added


def _add_step(
    subset: SubsetSteps,
    name: str,
    parts: Sequence[str],
    children: Sequence[str],
    previous: Mapping[str, str] | None = None,
) -> None:
    """Add the step of a table: its own parts, and the rows that the rows of other steps refer to."""
    steps = {**{item: subset.final[item] for item in children}, **(previous or {})}
    conditions: list[str] = []
    needs: list[str] = []
    for step in parts:
        conditions += subset.steps[step].conditions or [""]
        needs += subset.steps[step].needs
    for child, step in steps.items():
        for relation in subset.tables[child].relations:
            if relation.entity == name:
                _check_comparable(subset, subset.tables[name], relation.entity_columns)
                conditions.append(subset.in_step_condition(relation.entity_columns, step, relation.columns))
                needs.append(step)
                subset.add_reason(name, f"Rows of {child} reference them ({', '.join(relation.columns)}).")
    if conditions:
        subset.final[name] = subset.add(name, conditions, needs)


def _circular_groups(subset: SubsetSteps, names: Sequence[str]) -> list[list[str]]:
    """Return groups of tables that may be in the subset, children first. Tables in a circular reference form
    one group."""
    parents: dict[str, set[str]] = {}
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in parents:
            continue
        parents[name] = {relation.entity for relation in subset.tables[name].relations}
        unseen = parents[name] - subset.tables.keys()
        if unseen:
            text = f'"{name}" references "{unseen.pop()}", which the account of the connection cannot see.'
            raise subset_error("no_parent", text, "Allow the account to read that table.")
        pending.extend(parents[name])
    reachable: dict[str, set[str]] = {name: set() for name in parents}
    for name, reached in reachable.items():
        pending = [name]
        while pending:
            new = parents[pending.pop()] - reached
            reached.update(new)
            pending.extend(new)
    remaining, groups = list(parents), []
    while remaining:
        for name in remaining:
            group = [
                item
                for item in remaining
                if item == name or (item in reachable[name] and name in reachable[item])
            ]
            if not any(parents[item] & set(group) for item in remaining if item not in group):
                break  # no other remaining table references this group
        groups.append(group)
        remaining = [name for name in remaining if name not in group]
    return groups


# --- The queries ------------------------------------------------------------------------------------------------


def rows_query(subset: SubsetSteps, table: str) -> str:
    """Return the query for a table's rows in a stable order. Error: validation_error if it is too long."""
    step, entity = subset.steps[subset.final[table]], subset.tables[table]
    names = [column.name for column in entity.fields]
    order = entity.keys or [column.name for column in entity.fields if column.type not in _NOT_ORDERED]
    tail = f" ORDER BY {subset.column_list(order)}" if order else ""
    query = (
        f"{subset.with_clause(step.needs)}{subset.select_statement(step, subset.column_list(names))}{tail}"
    )
    if len(query) > limits.SOURCE_QUERY_CHARS:
        text = f'The query for the rows of "{table}" has more than {limits.SOURCE_QUERY_CHARS:,} characters.'
        raise subset_error("too_many_steps", text, "Select fewer child tables by name, or none.", "children")
    return query


def count_query(subset: SubsetSteps, table: str) -> str:
    """Return the query that counts a table's rows in the subset."""
    step = subset.steps[subset.final[table]]
    return f"{subset.with_clause(step.needs)}{subset.select_statement(step, 'COUNT(*) AS n')}"


def missing_parent_queries(subset: SubsetSteps) -> Iterator[tuple[str, Relation, str]]:
    """Yield for each foreign key: the table, the key, and a query that counts rows whose parent is not in the
    subset."""
    for name, step in subset.final.items():
        for relation in subset.tables[name].relations:
            parent = subset.final[relation.entity]
            not_null = " AND ".join(
                f"{subset.dialect.quote_name(column)} IS NOT NULL" for column in relation.columns
            )
            exists = subset.in_step_condition(relation.columns, parent, relation.entity_columns)
            query = (
                f"{subset.with_clause([step, parent])}SELECT COUNT(*) AS n FROM {step} WHERE {not_null} "
                f"AND NOT {exists}"
            )
            yield name, relation, query


def parents_first(subset: SubsetSteps) -> list[str]:
    """Return the tables of a subset, parents before children except in circular references."""
    return [
        name
        for group in reversed(_circular_groups(subset, list(subset.final)))
        for name in group
        if name in subset.final
    ]
