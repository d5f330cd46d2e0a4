"""What the page of a dataset shows of its tables: columns, relations, row counts, the order of sending, and a diagram.

A version of a template never changes, so what is read from it is cached in the process. Row counts follow from the
relations without compiling the templates, so that a dataset with 2,000 tables is shown as quickly as one with 2.

The diagram has cards in columns, parents left of their children, connected by lines with crow's feet. Positions are in
pixels. The page lays the cards out in the same columns with CSS, so that they are a list on narrow screens; only the
lines are drawn at these positions. The sizes here are those of `static/css/dataset.css`.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import select

from webapp import limits
from webapp.access.actors import Actor
from webapp.engine.relations.cardinality import ChildCountError, ChildCounts, TooManyRowsError
from webapp.engine.types.registry import find
from webapp.engine.types.relations import Cardinality
from webapp.extensions import db
from webapp.row_templates.models import Template, TemplateVersion
from webapp.row_templates.services import related_templates, relations
from webapp.row_templates.services.relations import Edge

_BATCH: Final = 200  # versions that are read together


@dataclass(frozen=True, slots=True)
class FieldColumn:
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
    columns: tuple[FieldColumn, ...]
    paths: Mapping[str, str]
    edges: tuple[Edge, ...]
    keys: tuple[str | None, frozenset[str], str | None]

    def key_path(self, referenced_paths: Iterable[str]) -> str | None:
        """Return the path of the field that identifies the rows; `referenced_paths` are those that others reference."""
        declared, unique, fallback = self.keys
        return declared or next((path for path in referenced_paths if path in unique), None) or fallback


@dataclass(slots=True)
class Table:
    """One table of a dataset. `count` is the number of rows that was entered; `rows` the number that results, None if
    it is unknown; `parent` the name of the table that the number follows from; `order` its place in the load order,
    from 1; `is_child`: the rows are children of another table's by cardinality; `outside`: references to templates that
    are not in the dataset."""

    index: int
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
    columns: Sequence[FieldColumn] = ()
    sourced: bool = False
    is_child: bool = False
    quantity: int = 0
    outside: int = 0


@dataclass(slots=True)
class Overview:
    """The tables of a dataset in its order, and the relations between them."""

    tables: list[Table] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    by_id: dict[str, Table] = field(default_factory=dict)
    load_order: list[Table] = field(default_factory=list)
    cyclic_edge_ids: frozenset[int] = frozenset()
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
        down = [
            edge
            for edge in self.edges
            if edge.parent_template_id == template_id and not edge.is_self_reference
        ]
        return up + down

    def edge(self, template_id: str, path: str) -> Edge | None:
        """Return the relation of a field."""
        of_child = (edge for edge in self.edges if edge.child_template_id == template_id)
        return next((edge for edge in of_child if edge.child_field == path), None)


def build_overview(actor: Actor, data: Mapping[str, Any]) -> Overview:
    """Return the overview of a dataset as the API shows it."""
    template_ids = [str(item["template_id"]) for item in data["templates"]]
    templates_by_id = {
        template.id: template
        for template in db.session.scalars(
            select(Template).where(
                Template.id.in_(template_ids),
                Template.workspace_id == actor.workspace_id,
                Template.deleted_at.is_(None),
            )
        )
        if actor.can("read", template.team_id)
    }
    overview = Overview()
    for position, item in enumerate(data["templates"]):
        head = templates_by_id.get(item["template_id"])
        template_name = head.name if head else "deleted template"
        overview.tables.append(
            Table(
                position, item["template_id"], item.get("name") or template_name, template_name, item.get("name") or "",
                item["version"], head.version if head else item["version"], item.get("count"), head is None,
            )
        )  # fmt: skip
    present = [table for table in overview.tables if not table.missing]
    overview.by_id = {table.template_id: table for table in overview.tables}
    contents = read_contents({table.template_id: table.version for table in present})
    _set_relations(overview, contents)
    _set_row_counts(actor, overview, contents)
    return overview


def _set_relations(overview: Overview, contents: Mapping[str, Contents]) -> None:
    ids = [table.template_id for table in overview.tables]
    all_edges = [edge for content in contents.values() for edge in content.edges]
    resolved = [
        replace(
            edge,
            parent_field=contents[edge.parent_template_id].paths.get(edge.parent_field, edge.parent_field),
        )
        if edge.parent_template_id in contents
        else edge
        for edge in all_edges
    ]
    overview.edges = relations.edges_among(resolved, list(contents))
    for edge in resolved:
        if edge.parent_template_id not in contents:
            overview.by_id[edge.child_template_id].outside += 1
    referred: dict[str, list[str]] = {}
    for edge in overview.edges:
        referred.setdefault(edge.parent_template_id, []).append(edge.parent_field)
    for table in overview.tables:
        if (table_contents := contents.get(table.template_id)) is not None:
            table.columns, table.key = (
                table_contents.columns,
                table_contents.key_path(referred.get(table.template_id, ())),
            )
            table.sourced, table.quantity = table_contents.sourced, table_contents.quantity
    order = relations.sort_tables(ids, overview.edges)
    overview.cyclic_edge_ids = frozenset(id(edge) for edge in order.cyclic_edges)
    overview.depths = relations.table_depths(ids, overview.edges)
    overview.load_order = [overview.by_id[template_id] for template_id in order.template_ids]
    for position, table in enumerate(overview.load_order, 1):
        table.order = position


# --- Row counts ----------------------------------------------------------------------------------------------


def _set_row_counts(actor: Actor, overview: Overview, contents: Mapping[str, Contents]) -> None:
    """Set the number of rows of each table, as the engine does: see `engine/relations/related_plans.py`."""
    known = dict(contents)
    counting_edges = {key: _counting_edge(found) for key, found in known.items()}
    unread = {edge.parent_template_id for edge in counting_edges.values() if edge is not None} - known.keys()
    names = {table.template_id: table.name for table in overview.tables}
    while unread:  # parents that are not in the dataset
        heads = related_templates.newest_versions(actor, sorted(unread))
        found = read_contents({key: version for key, (version, *_) in heads.items()})
        names |= {key: spec["name"] for key, (_, spec, _) in heads.items()}
        known |= found
        counting_edges |= {key: _counting_edge(contents) for key, contents in found.items()}
        unread = {edge.parent_template_id for item in found if (edge := counting_edges[item])} - known.keys()
    stated = {table.template_id: table.count for table in overview.tables if table.count is not None}
    results: dict[str, tuple[int | None, str]] = {}

    def resolve(start: str) -> None:
        pending = [start]
        while pending:
            template_id = pending[-1]
            edge = counting_edges.get(template_id)
            parent = edge.parent_template_id if edge else ""
            if edge and parent in known and parent not in results:
                if parent in pending:
                    results[parent] = (None, "The row counts depend on each other.")
                else:
                    pending.append(parent)
                    continue
            pending.pop()
            if template_id not in results:
                results[template_id] = _row_count(
                    known[template_id],
                    edge,
                    results.get(parent),
                    stated.get(template_id),
                    names.get(parent, ""),
                )

    for table in overview.tables:
        if table.missing:
            table.problem = "This template was deleted. Restore it, or remove the table."
            continue
        if table.template_id not in results:
            resolve(table.template_id)
        table.rows, table.problem = results[table.template_id]
        if (owner := counting_edges.get(table.template_id)) is not None:
            table.is_child, table.parent = True, names.get(owner.parent_template_id, "another template")


def _counting_edge(contents: Contents) -> Edge | None:
    """Return the relation that counts the rows of a table, if any."""
    return next((edge for edge in contents.edges if edge.cardinality and "." not in edge.child_field), None)


def _row_count(
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
        return ChildCounts(
            parent[0], Cardinality.model_validate(dict(edge.cardinality)).spread(), stated
        ).total, ""
    except ChildCountError as error:
        return (
            None,
            f"{parent[0]:,} rows of {name} have {error.least:,} to {error.most:,} rows in this table.",
        )
    except TooManyRowsError:
        return None, "The number of rows would exceed the maximum."


# --- Contents of versions --------------------------------------------------------------------------------------


class _Cache:
    """An LRU cache of contents by template and version. Thread-safe."""

    def __init__(self, entries: int) -> None:
        self._entries, self._lock = entries, threading.Lock()
        self._contents: OrderedDict[tuple[str, int], Contents] = OrderedDict()

    def get(self, key: tuple[str, int]) -> Contents | None:
        with self._lock:
            if (found := self._contents.get(key)) is not None:
                self._contents.move_to_end(key)
            return found

    def put(self, key: tuple[str, int], contents: Contents) -> None:
        with self._lock:
            self._contents[key] = contents
            while len(self._contents) > self._entries:
                self._contents.popitem(last=False)


_CACHE: Final = _Cache(limits.DATASET_CONTENTS_CACHED)


def read_contents(versions: Mapping[str, int]) -> dict[str, Contents]:
    """Return the contents of versions of templates (`{id: number}`), in the same order. Missing ones are left out."""
    found = {key: _CACHE.get((key, number)) for key, number in versions.items()}
    missing = [key for key, contents in found.items() if contents is None]
    for start in range(0, len(missing), _BATCH):
        batch = missing[start : start + _BATCH]
        statement = select(TemplateVersion.template_id, TemplateVersion.number, TemplateVersion.spec).where(
            TemplateVersion.template_id.in_(batch),
            TemplateVersion.number.in_({versions[item] for item in batch}),
        )
        related_templates.check_size(statement)
        for template_id, number, spec in db.session.execute(statement):
            if versions[template_id] == number:
                found[template_id] = contents = _parse_contents(template_id, spec)
                _CACHE.put((template_id, number), contents)
    return {key: contents for key, contents in found.items() if contents is not None}


def _parse_contents(template_id: str, spec: Mapping[str, Any]) -> Contents:
    fields = spec["fields"]
    walked = list(relations.walk(fields))
    columns = []
    for path, stored in walked:
        if "." not in path:
            kind = find(stored["type"])
            columns.append(FieldColumn(path, stored["type"], kind.label if kind else stored["type"]))
    unique = {
        path: stored
        for path, stored in walked
        if relations.identifies_rows(stored) and not stored.get("hidden")
    }
    declared = next((path for path, stored in unique.items() if stored["options"].get("primaryKey")), None)
    return Contents(
        quantity=spec["quantity"],
        sourced=spec.get("source") is not None,
        columns=tuple(columns),
        paths={stored["id"]: path for path, stored in walked if stored.get("id")},
        edges=tuple(relations.find_edges({template_id: fields})),
        keys=(declared, frozenset(unique), relations.find_primary_key(fields) if declared is None else None),
    )


# --- Diagram ------------------------------------------------------------------------------------------------

_WIDTH: Final = 220  # of a card
_HEAD: Final = 81  # its border, name and rows
_LINE: Final = 24  # one field
_FOOT: Final = 5  # below the last field, and its border
_COLUMN_GAP: Final = 132  # between columns: room for a line, its feet and its label
_ROW_GAP: Final = 28  # between cards of a column
_MARGIN: Final = 24
_LOOP: Final = 72  # how far a line to the same column bends out
_FEET: Final = 20  # the symbol at the end of a line
_CHAR: Final = 6.2  # of a label, on average
_PAD: Final = 8  # of a label, on both sides
_LANE: Final = 5  # between parallel lines next to a card
_MAX_FIELDS: Final = 6  # fields of a card
_ROWS: Final = 42  # middle of the row count, where lines meet a card without fields


Lanes = Counter[tuple[int, float]]
"""Number of lines between two boxes so far, by the column's left edge and the height."""


@dataclass(slots=True)
class FieldRow:
    """One field of a card; `y` is its middle, from the top of the diagram."""

    column: FieldColumn
    mark: str  # key, link or ""
    edge: Edge | None = None
    parent: str = ""
    y: int = 0


@dataclass(slots=True)
class TableCard:
    """The card of one table. `more` is the number of fields that it does not show, `beyond` the number of related
    tables that the diagram does not show."""

    table: Table
    fields: list[FieldRow]
    more: int = 0
    beyond: int = 0
    x: int = 0
    y: int = 0
    width: int = _WIDTH

    @property
    def height(self) -> int:
        """In pixels."""
        lines = len(self.fields) + bool(self.more)
        return _HEAD + _LINE * lines + (_FOOT if lines else 0)

    def line_height(self, path: str) -> int:
        """Return where a line to a field meets the card; the row count if the field is not shown."""
        return next((row.y for row in self.fields if row.column.path == path), self.y + _ROWS)


@dataclass(frozen=True, slots=True)
class RelationLine:
    """One relation: its path, the symbols at its ends, and its label."""

    edge: Edge
    path: str
    label: str
    text: str
    x: float
    y: float
    ends: str
    ring: tuple[float, float] | None
    back: bool

    @property
    def label_width(self) -> float:
        """In pixels."""
        return _label_width(self.label)


@dataclass(slots=True)
class Diagram:
    """The whole diagram: columns of cards, and the cards of tables that are related to none."""

    columns: list[list[TableCard]] = field(default_factory=list)
    alone: list[TableCard] = field(default_factory=list)
    lines: list[RelationLine] = field(default_factory=list)
    width: int = 0
    height: int = 0

    @property
    def boxes(self) -> list[TableCard]:
        """All cards."""
        return [box for column in self.columns for box in column] + self.alone


def build_diagram(
    overview: Overview, visible: Collection[str] | None = None, *, folded: bool = False
) -> Diagram:
    """Return the diagram of the tables of a dataset, or of those that are `visible`. `folded`: without fields."""
    tables = [table for table in overview.tables if visible is None or table.template_id in visible]
    ids = [table.template_id for table in tables]
    edges = relations.edges_among(overview.edges, ids)
    boxes = {table.template_id: _build_card(table, overview, folded) for table in tables}
    hidden: dict[str, set[str]] = {}
    for edge in overview.edges:
        for template_id, related_id in _pairs_of(edge):
            if template_id in boxes and related_id not in boxes:
                hidden.setdefault(template_id, set()).add(related_id)
    for template_id, related_ids in hidden.items():
        boxes[template_id].beyond = len(related_ids)
    diagram = Diagram()
    order = relations.sort_tables(ids, edges)
    depths = relations.table_depths(ids, edges)
    related = {template_id for edge in edges for template_id, _ in _pairs_of(edge)}
    columns: list[list[TableCard]] = [
        [] for _ in range(1 + max((depths[template_id] for template_id in related), default=-1))
    ]
    for template_id in order.template_ids:
        if template_id in related:
            columns[depths[template_id]].append(boxes[template_id])
    _layout_cards(columns, edges, diagram)
    diagram.alone = [boxes[template_id] for template_id in ids if template_id not in related]
    broken = set(map(id, order.cyclic_edges))
    lanes: Lanes = Counter()
    for edge in edges:
        diagram.lines.append(_build_line(edge, boxes, diagram.columns, lanes, id(edge) in broken))
    return diagram


def _pairs_of(edge: Edge) -> tuple[tuple[str, str], tuple[str, str]]:
    child, parent = edge.child_template_id, edge.parent_template_id
    return (child, parent), (parent, child)


def describe_relation(overview: Overview, edge: Edge) -> str:
    """Return a relation as a sentence."""
    child, parent = overview.by_id[edge.child_template_id].name, overview.by_id[edge.parent_template_id].name
    field_name = f".{edge.parent_field}" if edge.parent_field else ""
    return f"{child}.{edge.child_field} references {parent}{field_name}, {label_of(edge)}"


def label_of(edge: Edge) -> str:
    """Return the number of children per parent as text: `1 : 1..9`, `1 : 0..1`, `1 : n`."""
    if edge.cardinality is not None:
        minimum, maximum = edge.cardinality.get("min", 0), edge.cardinality.get("max")
        if minimum == maximum:
            return f"1 : {_label_count(minimum)}"
        return f"1 : {_label_count(minimum)}..{_label_count(maximum)}"
    return "1 : 0..1" if edge.unique else "1 : n"


def _label_count(number: Any) -> str:
    return f"{number:,}" if isinstance(number, int) else "n"


def _label_width(label: str) -> float:
    return round(_CHAR * len(label) + 2 * _PAD, 1)


def _build_card(table: Table, overview: Overview, folded: bool) -> TableCard:
    """Return the card of a table: first its key, foreign keys and referenced fields, then others up to a limit."""
    references = {
        edge.child_field: edge for edge in overview.edges if edge.child_template_id == table.template_id
    }
    referenced = {
        edge.parent_field for edge in overview.edges if edge.parent_template_id == table.template_id
    }
    if folded:
        return TableCard(table, [])
    rows = []
    paths = {column.path for column in table.columns}
    nested = [FieldColumn(path, "", "") for path in references if path not in paths]
    for column in [*table.columns, *nested]:
        edge = references.get(column.path)
        parent = overview.by_id[edge.parent_template_id].name if edge else ""
        mark = "key" if column.path == table.key else "link" if edge else ""
        rows.append(FieldRow(column, mark, edge, parent))
    important = [row for row in rows if row.mark or row.column.path in referenced]
    ordered = important + [row for row in rows if row not in important]
    limit = _MAX_FIELDS if len(ordered) <= _MAX_FIELDS else _MAX_FIELDS - 1
    visible = ordered[: max(limit, min(len(important), 2 * _MAX_FIELDS))]
    return TableCard(table, visible, len(ordered) - len(visible))


# --- Places -------------------------------------------------------------------------------------------------


def _layout_cards(columns: Sequence[Sequence[TableCard]], edges: Sequence[Edge], diagram: Diagram) -> None:
    """Place columns next to each other, each centred vertically; the cards of a column follow the order of their
    parents."""
    heights = [sum(box.height + _ROW_GAP for box in column) - _ROW_GAP for column in columns]
    tallest = max(heights, default=0)
    placed: dict[str, float] = {}
    parents: dict[str, list[str]] = {}
    for edge in edges:
        parents.setdefault(edge.child_template_id, []).append(edge.parent_template_id)
    for index, (column, height) in enumerate(zip(columns, heights, strict=True)):
        x, y = _MARGIN + index * (_WIDTH + _COLUMN_GAP), _MARGIN + (tallest - height) // 2

        def weight(box: TableCard) -> float:
            above = [placed[parent] for parent in parents.get(box.table.template_id, ()) if parent in placed]
            return sum(above) / len(above) if above else 0

        ordered = sorted(column, key=weight)
        diagram.columns.append(ordered)
        for box in ordered:
            box.x, box.y = x, y
            for line, row in enumerate(box.fields):
                row.y = y + _HEAD + line * _LINE + _LINE // 2 + 1
            placed[box.table.template_id] = y + box.height / 2
            y += box.height + _ROW_GAP
    if columns:
        diagram.width = 2 * _MARGIN + len(columns) * (_WIDTH + _COLUMN_GAP) - _COLUMN_GAP
        diagram.height = 2 * _MARGIN + tallest
        last_ids = {box.table.template_id for box in columns[-1]}
        if any({edge.child_template_id, edge.parent_template_id} <= last_ids for edge in edges):
            diagram.width += _LOOP + _MARGIN


# --- Lines --------------------------------------------------------------------------------------------------


def _build_line(
    edge: Edge,
    boxes: Mapping[str, TableCard],
    columns: Sequence[Sequence[TableCard]],
    lanes: Lanes,
    is_broken: bool,
) -> RelationLine:
    parent, child = boxes[edge.parent_template_id], boxes[edge.child_template_id]
    y1, y2 = (
        parent.line_height(edge.parent_field or parent.table.key or ""),
        child.line_height(edge.child_field),
    )
    label = label_of(edge)
    description = f"{child.table.name}.{edge.child_field}: {label} per row of {parent.table.name}"
    half_width = _label_width(label) / 2
    if parent.x == child.x:  # out to the right and back
        x1 = x2 = parent.x + _WIDTH
        if y1 == y2:
            y1 -= 6
        bend = x1 + _LOOP
        path = f"M{x1} {y1}C{bend} {y1} {bend} {y2} {x2} {y2}"
        ends, circle = _end_symbols(x1, y1, 1, x2, y2, 1, edge)
        return RelationLine(
            edge,
            path,
            label,
            description,
            x2 + _FEET + half_width,
            y2 + 15,
            ends,
            circle,
            is_broken and parent is not child,
        )
    direction = 1 if parent.x < child.x else -1
    x1, x2 = (parent.x + _WIDTH, child.x) if direction > 0 else (parent.x, child.x + _WIDTH)
    points = [(x1, y1), *_route_between(x1, y1, x2, y2, columns, lanes), (x2, y2)]
    path = f"M{x1:g} {y1:g}"
    for index in range(1, len(points)):
        (ax, ay), (bx, by) = points[index - 1], points[index]
        if index % 2:  # a curve between columns
            pull = direction * max(abs(bx - ax) / 2, 20)
            path += f"C{ax + pull:g} {ay:g} {bx - pull:g} {by:g} {bx:g} {by:g}"
        else:  # a straight line along one
            path += f"L{bx:g} {by:g}"
    ends, circle = _end_symbols(x1, y1, direction, x2, y2, -direction, edge)
    # The label is at the child's end, where no two lines end at the same field.
    label_x = x2 - direction * (_FEET + half_width)
    return RelationLine(edge, path, label, description, label_x, y2, ends, circle, is_broken)


def _route_between(
    x1: int, y1: int, x2: int, y2: int, columns: Sequence[Sequence[TableCard]], lanes: Lanes
) -> list[tuple[float, float]]:
    """Return the points at which a line enters and leaves each column that it passes between boxes."""
    passed = [
        column
        for column in columns
        if column and min(x1, x2) < column[0].x and column[0].x + _WIDTH < max(x1, x2)
    ]
    lowest = max((box.y + box.height for column in columns for box in column), default=0) + _MARGIN - 4.0
    points: list[tuple[float, float]] = []
    for column in passed if x1 < x2 else passed[::-1]:
        left = column[0].x
        straight_y = y1 + (y2 - y1) * (left + _WIDTH / 2 - x1) / (x2 - x1)
        ordered = sorted(column, key=lambda box: box.y)
        free = [ordered[0].y - _ROW_GAP / 2.5, *(box.y + box.height + _ROW_GAP / 2 for box in ordered)]
        y = min(free, key=lambda at: abs(at - straight_y))
        lane = lanes[left, y]
        lanes[left, y] += 1
        y = min(max(4.0, y + _LANE * ((lane + 1) // 2) * (-1) ** lane), lowest)
        sides = (left - 8, left + _WIDTH + 8)
        points += [(side, y) for side in (sides if x1 < x2 else sides[::-1])]
    return points


def _end_symbols(
    x1: int, y1: int, direction1: int, x2: int, y2: int, direction2: int, edge: Edge
) -> tuple[str, tuple[float, float] | None]:
    """Return the symbols: a bar at the parent; at the child a crow's foot, or a bar for a single child; a circle if it
    is optional.

    A direction is 1 if the line leaves to the right, else -1.
    """
    bar = x1 + 8 * direction1
    path = f"M{bar} {y1 - 5}V{y1 + 5}"
    is_single = edge.unique and edge.cardinality is None
    tip = x2 + 11 * direction2
    if is_single or (edge.cardinality is not None and edge.cardinality.get("max") == 1):
        path += f"M{x2 + 8 * direction2} {y2 - 5}V{y2 + 5}"
    else:
        path += f"M{tip} {y2}L{x2} {y2 - 6}M{tip} {y2}L{x2} {y2 + 6}"
    minimum = edge.cardinality.get("min", 0) if edge.cardinality is not None else 0
    return path, (tip + 4 * direction2, y2) if not minimum else None
