"""The columns of the builder's grid and the lines of its list: the fields of a draft with rows and state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from webapp.builder.forms.fields import Place, place_faults, places, same, sentence
from webapp.builder.services.draft_rows import Sample
from webapp.builder.views.builder_context import Around
from webapp.engine.types.base import FieldType
from webapp.errors import Fault
from webapp.web.row_tables import cell

# Category of types: family, which has a colour, and icon. Some types have an icon of their own.
_FAMILIES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "number": ("number", "hash"),
        "identity": ("key", "key"),
        "text": ("text", "text"),
        "choice": ("text", "enum"),
        "logic": ("logic", "fx"),
        "structure": ("logic", "code"),
        "external": ("logic", "plug"),
        "person": ("person", "user"),
        "contact": ("person", "mail"),
        "place": ("place", "pin"),
        "finance": ("finance", "card"),
        "government": ("person", "shield"),
        "company": ("finance", "building"),
        "internet": ("text", "globe"),
        "time": ("time", "calendar"),
        "misc": ("text", "text"),
    }
)
_ICONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "phone_number": "phone", "country": "globe", "country_code": "globe", "boolean": "bool", "time": "clock",
        "reference": "link", "product_name": "cart", "sku": "cart", "department_retail": "cart",
    }
)  # fmt: skip
_TOGETHER: Final = {"person": ("One person", "person"), "place": ("One address", "place")}
_CHAR, _HEAD, _NARROWEST, _WIDEST = (
    7.2,
    62,
    76,
    280,
)  # pixels of a character, of the icon and status, of a column


def icon_of(kind: type[FieldType] | None) -> tuple[str, str]:
    """Return the family and the icon of a type."""
    if kind is None:
        return "text", "help"
    family, icon = _FAMILIES.get(kind.category, ("text", "text"))
    return family, _ICONS.get(kind.name, icon)


@dataclass(slots=True)
class Line:
    """One field: its place, its state, its values."""

    place: Place
    family: str
    icon: str
    cells: Sequence[Mapping[str, Any]]
    width: int
    changed: bool
    faults: list[Fault]
    waiting: str
    group: str = ""
    group_id: str = ""
    group_family: str = ""
    relation: str = ""

    @property
    def statuses(self) -> list[tuple[str, str]]:
        """Icon and text of what is special about the field."""
        given = self.place.given
        found = [
            ("one", "Unique", bool(given.get("unique"))),
            ("shield", "Sensitive", bool(given.get("sensitive"))),
            ("eye-off", "Hidden from output", bool(given.get("hidden"))),
        ]
        return [(icon, text) for icon, text, is_so in found if is_so]

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers, which are aligned to the right."""
        return any(one["kind"] == "n" for one in self.cells)

    @property
    def sentences(self) -> list[str]:
        """Its errors."""
        return [sentence(fault) for fault in self.faults]

    @property
    def summary(self) -> str:
        """Its options in a few words."""
        given = self.place.given
        found = [f"{key.replace('_', ' ')} {_brief(value)}" for key, value in self.place.options.items()]
        if given.get("percent_blank"):
            found.append(f"{given['percent_blank']} % blank")
        return ", ".join(found)


def _brief(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def lines(
    draft: Mapping[str, Any],
    sample: Sample,
    saved: Mapping[str, Any] | None,
    around: Around | None,
    *,
    nested: bool = False,
) -> list[Line]:
    """Return the fields of the first level, or with `nested` all fields, with their values. `saved` is the template as
    it is saved; None for a new one."""
    found = places(draft.get("fields"))
    place_faults(found, sample.faults)
    before = {one.id: one.given for one in places(saved["fields"])} if saved else None
    inner: dict[str, list[Fault]] = {}
    for one in found:
        inner.setdefault(one.top.id, []).extend(one.faults)
    bad = {(one["row"], one["field"].partition(".")[0].partition("[")[0]): one for one in sample.bad}
    made = []
    for one in found:
        if one.parent is not None and not nested:
            continue
        faults = one.faults if nested else inner[one.id]
        hidden = one.top.id in sample.empty
        cells = [] if hidden else [_cell(row, number, one, bad) for number, row in enumerate(sample.rows, 1)]
        family, icon = icon_of(one.kind)
        line = Line(
            place=one,
            family=family,
            icon=icon,
            cells=cells,
            width=_width(one, cells),
            changed=before is not None and not same(one.given, before.get(one.id, {})),
            faults=faults,
            waiting=sample.waiting.get(one.top.id, ""),
        )
        shared = around.group(one) if around else None
        if shared is not None and shared.tone:
            line.group_id = shared.name
            text, line.group_family = _TOGETHER.get(shared.kind, (f"One {shared.kind}", "finance"))
            line.group = text if shared.name == shared.kind else shared.name.replace("_", " ").capitalize()
        told = around.told(one) if around else None
        line.relation = told.text if told else ""
        made.append(line)
    return made


def _cell(row: Mapping[str, Any], number: int, place: Place, bad: Mapping[Any, Any]) -> dict[str, Any]:
    value: Any = row
    for name in place.names:
        value = value.get(name) if isinstance(value, Mapping) else None
    made: dict[str, Any] = cell(value)
    wrong = bad.get((number, place.name)) if place.parent is None else None
    if wrong is not None:
        good = cell(wrong["good"])
        made |= {"bad": wrong["kind"].replace("_", " "), "good": good["full"] or good["text"]}
    return made


def _width(place: Place, cells: Sequence[Mapping[str, Any]]) -> int:
    lengths = sorted(len(one["text"]) for one in cells)
    longest = lengths[max(0, len(lengths) * 9 // 10 - 1)] if lengths else 0
    head = max(len(place.name), len(place.label) * 0.85) * _CHAR + _HEAD
    return round(min(_WIDEST, max(_NARROWEST, head, longest * _CHAR + 24)))


def strips(shown: Sequence[Line]) -> list[tuple[str, str, int]]:
    """Neighbouring columns that share a person, a place and so on: text, family, number of columns. Columns without a
    group, and groups of one column, have no text."""
    found: list[tuple[str, str, int]] = []
    for line in shown:
        last = found[-1] if found else None
        if line.group_id and last is not None and last[0] == line.group_id:
            found[-1] = (last[0], last[1], last[2] + 1)
        else:
            found.append((line.group_id, line.group_family, 1))
    names = {line.group_id: line.group for line in shown if line.group_id}
    return [(names.get(name, "") if span > 1 else "", family, span) for name, family, span in found]
