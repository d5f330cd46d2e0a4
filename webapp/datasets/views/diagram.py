"""The diagram of a dataset's relations: boxes in columns, parents left of their children, connected by lines with
crow's feet between the fields. Positions in pixels; the page renders them as SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from webapp.row_templates.services import relations
from webapp.row_templates.services.field_ids import Stored
from webapp.row_templates.services.relations import Edge

_WIDTH: Final = 200  # of a box
_HEAD: Final = 46  # its name and rows
_LINE: Final = 20  # one field
_FOOT: Final = 6  # below the last field
_ACROSS: Final = 112  # between columns: room for a line, its feet and its label
_DOWN: Final = 30  # between boxes of a column
_MARGIN: Final = 14
_LOOP: Final = 64  # how far a line to the same column bends out
_FEET: Final = 22  # the symbol at the end of a line
_CHAR: Final = 6  # of a label, on average
_LANE: Final = 5  # between parallel lines next to a box
_MOST_FIELDS: Final = 8  # fields of one box
_ACROSS_ALONE: Final = 24
_MOST_CHARS: Final = 25


Lanes = Counter[tuple[int, float]]
"""Number of lines between two boxes so far, by the column's left edge and the height."""


@dataclass(slots=True)
class Row:
    """One field of a box; `y` is its middle, from the top of the picture."""

    text: str
    mark: str  # PK, FK or ""
    y: int = 0


@dataclass(slots=True)
class Box:
    """One table."""

    template_id: str
    name: str
    rows: str
    fields: list[Row]
    x: int = 0
    y: int = 0
    width: int = _WIDTH

    @property
    def short(self) -> str:
        """The name as far as there is room."""
        return short(self.name)

    @property
    def height(self) -> int:
        """In pixels."""
        return _HEAD + _LINE * len(self.fields) + (_FOOT if self.fields else 0)

    def port(self, path: str) -> int:
        """Return where a line to a field meets the box; the last line if the field is not shown."""
        return next(
            (row.y for row in self.fields if row.text == path), self.y + self.height - _FOOT - _LINE // 2
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One relation: its path, the symbols at its ends, and its label in the middle."""

    path: str
    label: str
    x: float
    y: float
    ends: str
    ring: tuple[float, float] | None
    back: bool


@dataclass(slots=True)
class Diagram:
    """The whole picture."""

    boxes: list[Box]
    lines: list[Line] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Properties of a table: its name, its stored fields, its number of rows (None: unknown)."""

    template_id: str
    name: str
    fields: Sequence[Stored]
    count: int | None


def of(tables: Sequence[Table]) -> Diagram:
    """Return the diagram of some tables, given in the order of their dataset."""
    known = {table.template_id: table for table in tables}
    edges = relations.among(relations.edges({one.template_id: one.fields for one in tables}), list(known))
    boxes = {table.template_id: _box(table, edges) for table in tables}
    diagram = Diagram(list(boxes.values()))
    depths = relations.depths(list(known), edges)
    related = {one for edge in edges for one in (edge.child_template_id, edge.parent_template_id)}
    columns: list[list[Box]] = [[] for _ in range(1 + max(depths.values(), default=0))]
    for one in relations.order(list(known), edges).template_ids:
        if one in related:
            columns[depths[one]].append(boxes[one])
    _place(columns, edges, diagram)
    _place_alone([box for box in diagram.boxes if box.template_id not in related], diagram)
    broken = set(map(id, relations.order(list(known), edges).broken))
    lanes: Lanes = Counter()
    for edge in edges:
        diagram.lines.append(_line(edge, boxes, columns, lanes, id(edge) in broken))
        child, parent = known[edge.child_template_id].name, known[edge.parent_template_id].name
        diagram.texts.append(
            f"{child}.{edge.child_field} refers to {parent}.{edge.parent_field}, {label_of(edge)}"
        )
    return diagram


def label_of(edge: Edge) -> str:
    """Return the number of children per parent as text: `1 : 1..9`, `1 : 0..1`, `1 : n`."""
    if edge.cardinality is not None:
        least, most = edge.cardinality.get("min", 0), edge.cardinality.get("max")
        if least == most:
            return f"1 : {_count(least)}"
        return f"1 : {_count(least)}..{_count(most)}"
    return "1 : 0..1" if edge.unique else "1 : n"


def _count(number: Any) -> str:
    return f"{number:,}" if isinstance(number, int) else "n"


def short(text: str) -> str:
    """A text as far as a box has room."""
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS - 1] + "…"


def _box(table: Table, edges: Sequence[Edge]) -> Box:
    """Its key, the fields that refer, and those that are referred to, in the order of the fields."""
    out = {edge.child_field for edge in edges if edge.child_template_id == table.template_id}
    into = [edge.parent_field for edge in edges if edge.parent_template_id == table.template_id]
    key = relations.primary_key(table.fields, into)
    rows = []
    for path, _ in relations.walk(table.fields):
        if path in out or path in into or path == key:
            rows.append(Row(path, "PK" if path == key else "FK" if path in out else ""))
    shown = rows[:_MOST_FIELDS]
    if len(rows) > len(shown):
        shown[-1] = Row(f"{len(rows) - len(shown) + 1} more", "")
    count = "" if table.count is None else f"{table.count:,} row{'' if table.count == 1 else 's'}"
    return Box(table.template_id, table.name, count, shown)


# --- Places -------------------------------------------------------------------------------------------------


def _place(columns: Sequence[Sequence[Box]], edges: Sequence[Edge], diagram: Diagram) -> None:
    """Place columns next to each other, each centred vertically; the boxes of a column follow the order of their
    parents."""
    heights = [sum(box.height + _DOWN for box in column) - _DOWN for column in columns]
    tallest = max(heights, default=0)
    placed: dict[str, float] = {}
    for at, (column, height) in enumerate(zip(columns, heights, strict=True)):
        x, y = _MARGIN + at * (_WIDTH + _ACROSS), _MARGIN + (tallest - height) // 2

        def weight(box: Box) -> float:
            above = [
                placed[edge.parent_template_id]
                for edge in edges
                if edge.child_template_id == box.template_id and edge.parent_template_id in placed
            ]
            return sum(above) / len(above) if above else 0

        for box in sorted(column, key=weight):
            _put(box, x, y)
            placed[box.template_id] = y + box.height / 2
            y += box.height + _DOWN
    if any(columns):
        diagram.width = 2 * _MARGIN + len(columns) * (_WIDTH + _ACROSS) - _ACROSS
        diagram.height = 2 * _MARGIN + tallest
        if any(edge.to_itself for edge in edges):
            diagram.width += _LOOP + _MARGIN


def _place_alone(boxes: Sequence[Box], diagram: Diagram) -> None:
    """Tables without relations, in rows below the others."""
    if not boxes:
        return
    step = _WIDTH + _ACROSS_ALONE
    across = max(2, (diagram.width - 2 * _MARGIN + _ACROSS_ALONE) // step)
    y = diagram.height + _MARGIN
    for start in range(0, len(boxes), across):
        line = boxes[start : start + across]
        for at, box in enumerate(line):
            _put(box, _MARGIN + at * step, y)
        y += max(box.height for box in line) + _DOWN
    diagram.height = y - _DOWN + _MARGIN
    diagram.width = max(diagram.width, 2 * _MARGIN + min(across, len(boxes)) * step - _ACROSS_ALONE)


def _put(box: Box, x: int, y: int) -> None:
    box.x, box.y = x, y
    for at, row in enumerate(box.fields):
        row.y = y + _HEAD + at * _LINE + _LINE // 2


# --- Lines --------------------------------------------------------------------------------------------------


def _line(
    edge: Edge, boxes: Mapping[str, Box], columns: Sequence[Sequence[Box]], lanes: Lanes, back: bool
) -> Line:
    parent, child = boxes[edge.parent_template_id], boxes[edge.child_template_id]
    y1, y2 = parent.port(edge.parent_field), child.port(edge.child_field)
    label = label_of(edge)
    if parent.x == child.x:  # out to the right and back
        x1 = x2 = parent.x + _WIDTH
        if y1 == y2:
            y1 -= 6
        bend = x1 + _LOOP
        path = f"M{x1} {y1}C{bend} {y1} {bend} {y2} {x2} {y2}"
        ends, ring = _ends(x1, y1, 1, x2, y2, 1, edge)
        beside = x2 + _FEET + _CHAR * len(label) / 2
        return Line(path, label, beside, y2 + 17, ends, ring, back and parent is not child)
    way = 1 if parent.x < child.x else -1
    x1, x2 = (parent.x + _WIDTH, child.x) if way > 0 else (parent.x, child.x + _WIDTH)
    points = [(x1, y1), *_around(x1, y1, x2, y2, columns, lanes), (x2, y2)]
    ends, ring = _ends(x1, y1, way, x2, y2, -way, edge)
    # The label is at the child's end, where no two lines end at the same field.
    beside = x2 - way * (_FEET + _CHAR * len(label) / 2)
    return Line(_path(points, way), label, beside, y2, ends, ring, back)


def _around(
    x1: int, y1: int, x2: int, y2: int, columns: Sequence[Sequence[Box]], lanes: Lanes
) -> list[tuple[float, float]]:
    """Points by which a line passes between the boxes of the columns on its way: into and out of each column."""
    passed = [
        column
        for column in columns
        if column and min(x1, x2) < column[0].x and column[0].x + _WIDTH < max(x1, x2)
    ]
    out: list[tuple[float, float]] = []
    for column in passed if x1 < x2 else passed[::-1]:
        left = column[0].x
        wanted = y1 + (y2 - y1) * (left + _WIDTH / 2 - x1) / (x2 - x1)
        ordered = sorted(column, key=lambda box: box.y)
        free = [ordered[0].y - _DOWN / 2.5, *(box.y + box.height + _DOWN / 2 for box in ordered)]
        y = min(free, key=lambda at: abs(at - wanted))
        lane = lanes[left, y]
        lanes[left, y] += 1
        y = max(4.0, y + _LANE * ((lane + 1) // 2) * (-1) ** lane)
        sides = (left - 8, left + _WIDTH + 8)
        out += [(side, y) for side in (sides if x1 < x2 else sides[::-1])]
    return out


def _path(points: Sequence[tuple[float, float]], way: int) -> str:
    """Curves between columns, straight lines along them."""
    made = f"M{points[0][0]:g} {points[0][1]:g}"
    for at in range(1, len(points)):
        (ax, ay), (bx, by) = points[at - 1], points[at]
        if at % 2:
            bend = way * max(abs(bx - ax) / 2, 20)
            made += f"C{ax + bend:g} {ay:g} {bx - bend:g} {by:g} {bx:g} {by:g}"
        else:
            made += f"L{bx:g} {by:g}"
    return made


def _ends(
    x1: int, y1: int, way1: int, x2: int, y2: int, way2: int, edge: Edge
) -> tuple[str, tuple[float, float] | None]:
    """Return the symbols: a bar at the parent; at the child a crow's foot, or a bar for a single child; a circle if it
    is optional.

    `way` is 1 if the line leaves to the right.
    """
    bar = x1 + 8 * way1
    made = f"M{bar} {y1 - 5}V{y1 + 5}"
    alone = edge.unique and edge.cardinality is None
    tip = x2 + 11 * way2
    if alone or (edge.cardinality is not None and edge.cardinality.get("max") == 1):
        made += f"M{x2 + 8 * way2} {y2 - 5}V{y2 + 5}"
    else:
        made += f"M{tip} {y2}L{x2} {y2 - 6}M{tip} {y2}L{x2} {y2 + 6}"
    least = edge.cardinality.get("min", 0) if edge.cardinality is not None else 0
    return made, (tip + 4 * way2, y2) if not least else None
