"""The rows of the template builder's form, created from field definitions, with errors assigned to inputs.

Every field is one row. The names of its inputs begin with the row's key (`r7K2M9X.name`, `r7K2M9X.o.min`), which is the
end of the field's id. The hidden input `row` lists the rows in their order (see `Row.mark`), so a row that is moved on
the page moves in the template. Values that a row does not show (rare options, common keys) are in one hidden input
`held` as JSON, so that a closed row is small and loses nothing. The ids are assigned here, when a row is created: a
field keeps its id from its first preview on, and its values with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from markupsafe import Markup

from webapp.engine.spec import CommonKeys
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import find
from webapp.errors import Fault
from webapp.web.forms import controls
from webapp.web.forms.from_model import ModelForm, bound, form_class, inline, keys, label_of

NewId = Callable[[], str]
Kind = type[FieldType]

HEAD: Final = ("name", "description", "quantity", "locale", "anchor")
SHOWN: Final = ("percent_blank", "unique", "sensitive")  # common keys that every row shows
SOURCED: Final = "source_column"
MORE: Final = (
    "group",
    "unique_together",
    "prefix",
    "suffix",
    "text_case",
    "locale",
    "formula",
    "description",
    "hidden",
    "column",
    "masking",
    "invalid",
)
OWN: Final = frozenset({"id", "name", "type", "options", "label"})
FOLDED: Final = "~"
_KEY_CHARS: Final = 6
_NOTE_CHARS: Final = 28
_UNTOLD: Final = frozenset({"description", "group"})  # the group has its own chip


@dataclass(frozen=True, slots=True)
class Marked:
    """The line of a text at which something is wrong, cut at the character: `line` counts from 1."""

    line: int
    before: str
    at: str
    after: str

    @property
    def space(self) -> str:
        """Whitespace as wide as `before`, which aligns a caret in the next line."""
        return "".join("\t" if one == "\t" else " " for one in self.before)


def marked(text: Any, position: int | None) -> Marked | None:
    """Split a text at `position`, in characters from 1. A position beyond the end is treated as the end."""
    if position is None or not isinstance(text, str):
        return None
    text = text.replace("\r\n", "\n")
    at = max(0, min(position - 1, len(text)))
    begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    end = len(text) if end < 0 else end
    return Marked(
        text.count("\n", 0, at) + 1, text[begin:at], text[at : at + 1].strip("\n") or " ", text[at + 1 : end]
    )


def at_path(given: Any, path: str) -> Any:
    """Return the value at the path of an error (`fields[3].options.cases[0].when`), or None."""
    for step in path.replace("[", ".").replace("]", "").split("."):
        if isinstance(given, Mapping):
            given = given.get(step)
        elif isinstance(given, list) and step.isdecimal() and int(step) < len(given):
            given = given[int(step)]
        else:
            return None
    return given


@dataclass(slots=True)
class Row:
    """One field as a row of the form: what its template needs to draw it."""

    key: str  # prefix of the names of its inputs
    id: str
    parent: str  # key of the row that contains it
    depth: int
    path: str  # of its fault paths: `fields[3].options.fields[0]`
    name: str
    type: str
    kind: Kind | None
    shown: ModelForm  # common keys on the row
    options: ModelForm | None  # options on the row
    more: ModelForm | None = None  # common keys of an open row
    rest: ModelForm | None = None  # further options of an open row
    held: dict[str, Any] = field(default_factory=dict)
    holds_fields: bool = False
    folded: bool = (
        False  # only name and type are rendered, for a page with many rows; all other values are in `held`
    )
    fresh: bool = False  # a new field: its type is guessed from its name
    faults: dict[str, str] = field(default_factory=dict)  # by input name; "" for the row as a whole
    marks: dict[str, Marked] = field(default_factory=dict)  # by input name: position of an error in a formula

    @property
    def mark(self) -> str:
        """The value of the hidden input `row`: key, field id, the type whose options are shown (`~` before it: none are
        shown), and key of the parent row."""
        drawn = (FOLDED if self.folded else "") + (self.kind.name if self.kind else "-")
        return " ".join((self.key, self.id, drawn, self.parent)).rstrip()

    @property
    def label(self) -> str:
        """The title of the type; the text as entered for an unknown type."""
        return self.kind.label if self.kind else self.type

    @property
    def is_open(self) -> bool:
        """Whether the row shows all inputs."""
        return self.more is not None

    @property
    def group(self) -> str:
        """The group that the field names; "" for none."""
        named = self.held.get("group") if self.more is None else self.more["group"].data
        return named if isinstance(named, str) else ""

    def options_value(self, name: str) -> Any:
        """Return the value of an option from any form of the row."""
        for form in (self.options, self.rest):
            if form is not None and name in form:
                return form[name].data
        return self.held.get("options", {}).get(name)

    @property
    def ranges(self) -> list[controls.Range]:
        """The ranges on the row, whose rarer keys an open row shows."""
        return [one for one in self.options or () if isinstance(one, controls.Range)]

    @property
    def relates(self) -> bool:
        """Return whether one of its options selects other templates, or connections."""
        return self.kind is not None and any(
            pick["kind"] in ("template", "connection")
            for pick in form_class(self.kind.Options).picks.values()
        )

    @property
    def held_attribute(self) -> Markup:
        """`held_json`, escaped for an attribute in single quotes, which keeps the double quotes of JSON readable."""
        text = (
            self.held_json.replace("&", "&amp;")
            .replace("'", "&#39;")
            .replace("<", "&lt;")
            .replace(">", "&gt;")
        )
        return Markup(text)  # noqa: S704 - escaped in the line above

    @property
    def held_json(self) -> str:
        """The values that the row does not show."""
        return (
            json.dumps(self.held, ensure_ascii=False, separators=(",", ":"), default=str) if self.held else ""
        )

    @property
    def notes(self) -> list[str]:
        """In a few words, what a closed row holds that one should know of."""
        held = self.held if self.more is None else {}
        options = held.get("options", {})
        found = [_note(key, held[key]) for key in MORE if key in held and key not in _UNTOLD]
        return [*(f"{key} {_brief(value)}" for key, value in options.items()), *found]


def _note(key: str, value: Any) -> str:
    if key == "invalid" and isinstance(value, Mapping):
        return _bad(value)
    if key == "masking" and isinstance(value, Mapping):
        value = value.get("strategy")
    return f"{key.replace('_', ' ')} {_brief(value)}".removesuffix(" yes")


def _bad(said: Mapping[str, Any]) -> str:
    """A summary of a field's invalid data: its share in percent."""
    try:
        return f"invalid {Decimal(str(said.get('rate'))) * 100:f} %".replace(".00 %", " %")
    except ArithmeticError:
        return "invalid data"


def _brief(value: Any) -> str:
    text = "yes" if value is True else "no" if value is False else controls.as_text(value)
    return text if len(text) <= _NOTE_CHARS else text[: _NOTE_CHARS - 1] + "…"


def rows(
    fields: Sequence[Mapping[str, Any]],
    new_id: NewId,
    *,
    opened: Iterable[str] = (),
    faults: Iterable[Fault] = (),
    most: int | None = None,
) -> list[Row]:
    """Return the rows of a template's fields, nested ones after their parent. Rows from number `most` on are folded,
    unless they are open or have errors."""
    found = list(_rows(fields, "", 0, "fields", new_id, frozenset(opened), set()))
    place_faults(found, faults, fields)
    for made in found[most:] if most is not None else ():
        if not made.is_open and not made.faults:
            _fold(made)
    return found


def _fold(made: Row) -> None:
    options = {**made.held.get("options", {}), **(made.options.payload() if made.options is not None else {})}
    made.held |= made.shown.payload() | ({"options": options} if options else {})
    made.folded = True


def _rows(
    fields: Sequence[Any],
    parent: str,
    depth: int,
    path: str,
    new_id: NewId,
    opened: frozenset[str],
    taken: set[str],
) -> Iterator[Row]:
    for number, given in enumerate(fields):
        if not isinstance(given, Mapping):
            continue  # the parser reports it with its path
        made = row(
            given, new_id, parent=parent, depth=depth, path=f"{path}[{number}]", opened=opened, taken=taken
        )
        yield made
        inner = given.get("options", {}).get("fields") if isinstance(given.get("options"), Mapping) else None
        if made.holds_fields and isinstance(inner, Sequence) and not isinstance(inner, str):
            yield from _rows(inner, made.key, depth + 1, f"{made.path}.options.fields", new_id, opened, taken)


def row(
    given: Mapping[str, Any],
    new_id: NewId,
    *,
    parent: str = "",
    depth: int = 0,
    path: str = "",
    opened: Iterable[str] = (),
    taken: set[str] | None = None,
) -> Row:
    """One field definition as a row, open if its id is among `opened`. `taken` are the keys of the other rows."""
    row_id = str(given.get("id") or new_id())
    key = key_of(row_id, taken)
    kind = find(str(given.get("type", "")))
    raw = given.get("options")
    options = (
        {name: value for name, value in raw.items() if name != "fields"} if isinstance(raw, Mapping) else {}
    )
    common = {name: value for name, value in given.items() if name not in OWN and _is_said(name, value)}
    if isinstance(common.get("unique"), str):
        common |= {"unique": True, "unique_together": common["unique"]}
    made = Row(
        key=key,
        id=row_id,
        parent=parent,
        depth=depth,
        path=path,
        name=str(given.get("name", "")),
        type=kind.name if kind else str(given.get("type", "")),
        kind=kind,
        shown=bound(CommonKeys, common, prefix=f"{key}.", names=shown_of(kind)),
        options=None,
        holds_fields=holds_fields(kind),
    )
    on_row: tuple[str, ...] = ()
    if kind is not None:
        on_row = inline(kind.Options)
        made.options = bound(kind.Options, options, prefix=f"{key}.o.", names=on_row)
    if row_id in opened:
        others = tuple(name for name in MORE if name not in shown_of(kind))
        made.more = bound(CommonKeys, common, prefix=f"{key}.", names=others)
        if kind is not None:
            assert made.options is not None
            drawn = made.options
            on_row = tuple(name for name in on_row if drawn[name].pick.get("kind") != "formula")
            made.options = bound(kind.Options, options, prefix=f"{key}.o.", names=on_row)
            others = tuple(name for name in keys(kind.Options) if name not in on_row)
            made.rest = bound(kind.Options, options, prefix=f"{key}.o.", names=others) if others else None
            on_row = keys(kind.Options)
    seen = {*shown_of(kind), *(MORE if made.is_open else ())}
    made.held = {
        name: value for name, value in common.items() if name not in seen or name == "unique_together"
    }
    kept = {name: value for name, value in options.items() if name not in on_row}
    if kept:
        made.held["options"] = kept
    return made


def shown_of(kind: Kind | None) -> tuple[str, ...]:
    """The common keys that a closed row of this type shows: of a column of the source, which one it is too."""
    return (*SHOWN, "column") if kind is not None and kind.name == SOURCED else SHOWN


def names_to(row: Row, among: Sequence[Row]) -> list[str]:
    """The names that lead to a row's field: its own last, those of the fields around it before."""
    by_key = {one.key: one for one in among}
    names = [row.name]
    while row.parent:
        row = by_key[row.parent]
        names.insert(0, row.name)
    return names


def key_of(field_id: str, taken: set[str] | None = None) -> str:
    """The key of a field's row: the end of its id, which is random, so that a row's inputs have short names."""
    key = "r" + "".join(ch for ch in field_id if ch.isalnum())[-_KEY_CHARS:]
    while taken is not None and key in taken:
        key += "_"
    if taken is not None:
        taken.add(key)
    return key


_DEFAULTS: Final = {name: info.default for name, info in CommonKeys.model_fields.items()}


def _is_said(key: str, value: Any) -> bool:
    return value not in (None, "") and not (key in _DEFAULTS and value == _DEFAULTS[key])


def holds_fields(kind: Kind | None) -> bool:
    """Return whether fields of this type have nested fields."""
    return kind is not None and "fields" in kind.Options.model_fields


def place_faults(
    found: Sequence[Row], faults: Iterable[Fault], given: Sequence[Any] = ()
) -> list[tuple[str, Fault]]:
    """Puts each fault at its row; answers `(input name or row's key or "", fault)` for all of them, in order. `given`
    are the fields that the rows show."""
    by_path = {one.path: one for one in found}
    placed = []
    for fault in faults:
        owner = _owner(fault.path, by_path)
        if owner is None:
            placed.append((fault.path if fault.path in HEAD else "", fault))
            continue
        name = _input_name(owner, fault.path[len(owner.path) :])
        if name not in owner.faults:
            owner.faults[name] = sentence(fault)
            mark = marked(at_path({"fields": given}, fault.path), fault.position)
            owner.marks |= {name: mark} if mark else {}
        placed.append((name or owner.key, fault))
    return placed


def _owner(path: str, by_path: Mapping[str, Row]) -> Row | None:
    while path:
        if path in by_path:
            return by_path[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return None


def _input_name(owner: Row, rest: str) -> str:
    """Return the name of the input for the path of an error, if the row shows it: `.options.min` -> `fld_1.o.min`."""
    rest = rest.lstrip(".")
    if rest in ("name", "type"):
        return f"{owner.key}.{rest}"
    forms = (owner.options, owner.rest) if rest.startswith("options.") else (owner.shown, owner.more)
    key = rest.removeprefix("options.")
    short = key.replace("[", ".").split(".")[0]
    for form in forms:
        if form is not None and short in form:
            inner = getattr(form[short], "form", None)
            deeper = key[len(short) + 1 :]
            return form[short].name + (f".{deeper}" if inner is not None and deeper in inner else "")
    return ""


def sentence(fault: Fault) -> str:
    """A fault and its advice. An option that is missing is called by its name: a row may lack several."""
    if fault.code == "required" and ".options." in fault.path:
        return f"{label_of(fault.path.rpartition('.')[2]).removesuffix(' id')} is required."
    return f"{fault.message} {fault.hint}" if fault.hint else fault.message
