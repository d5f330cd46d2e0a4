"""The fields of a draft: where each is, what is wrong with it, and one of them as the form of the inspector.

The names of the inputs of a field begin with its key (`r7K2M9X.name`, `r7K2M9X.o.min`), which is the end of its id.
The hidden input `row` says which field the form shows and with which type (see `FieldForm.mark`). Values that the form
does not show stay as they are in the draft.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from webapp.engine.spec import CommonKeys
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import find
from webapp.errors import Fault
from webapp.web.forms.from_model import ModelForm, bound, keys, label_of

NewId = Callable[[], str]
Kind = type[FieldType]

HEAD: Final = ("name", "description", "quantity", "locale", "anchor")
TABS: Final = (("values", "Values"), ("format", "Format"), ("rules", "Rules"), ("privacy", "Privacy"))
COMMON: Final[Mapping[str, tuple[str, ...]]] = {
    "values": ("percent_blank", "formula"),
    "format": ("prefix", "suffix", "text_case", "locale"),
    "rules": ("unique", "unique_together", "group", "hidden", "invalid", "description"),
    "privacy": ("sensitive", "masking", "column"),
}
"""The keys that fields of all types have, by the tab that shows them."""
COMMON_NAMES: Final = tuple(name for names in COMMON.values() for name in names)
FORMAT_OPTIONS: Final = frozenset(
    {"format", "decimals", "precision", "stringify", "separator", "case", "symbol"}
)
"""Options of types that say how a value is written; the tab Format shows them."""
OWN: Final = frozenset({"id", "name", "type", "options", "label"})
_KEY_CHARS: Final = 6


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
class Place:
    """A field of a draft, at its place."""

    key: str  # prefix of the names of its inputs
    id: str
    parent: Place | None
    path: str  # of its fault paths: `fields[3].options.fields[0]`
    given: Mapping[str, Any]
    kind: Kind | None
    faults: list[Fault] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name as it was entered."""
        return str(self.given.get("name", ""))

    @property
    def type(self) -> str:
        """The name of its type; the text as entered for an unknown type."""
        return self.kind.name if self.kind else str(self.given.get("type", ""))

    @property
    def label(self) -> str:
        """The title of its type; the text as entered for an unknown type."""
        return self.kind.label if self.kind else self.type

    @property
    def depth(self) -> int:
        """How many fields are around it."""
        return self.parent.depth + 1 if self.parent else 0

    @property
    def top(self) -> Place:
        """The field of the first level that contains it."""
        return self.parent.top if self.parent else self

    @property
    def names(self) -> list[str]:
        """The names that lead to it: its own last."""
        return [*(self.parent.names if self.parent else ()), self.name]

    @property
    def holds_fields(self) -> bool:
        """Whether fields of its type have nested fields."""
        return holds_fields(self.kind)

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options without nested fields."""
        raw = self.given.get("options")
        return (
            {name: value for name, value in raw.items() if name != "fields"}
            if isinstance(raw, Mapping)
            else {}
        )

    @property
    def group(self) -> str:
        """The group that it names; "" for none."""
        named = self.given.get("group")
        return named if isinstance(named, str) else ""

    def options_value(self, name: str) -> Any:
        """Return the value of an option; None if it has none."""
        return self.options.get(name)


def holds_fields(kind: Kind | None) -> bool:
    """Return whether fields of this type have nested fields."""
    return kind is not None and "fields" in kind.Options.model_fields


def places(fields: Any) -> list[Place]:
    """Return all fields, nested ones after the field that contains them. What is not an object is left out: the parser
    reports it with its path."""
    return list(_places(fields, None, "fields", set()))


def _places(fields: Any, parent: Place | None, path: str, taken: set[str]) -> Iterator[Place]:
    for number, given in enumerate(fields if isinstance(fields, list) else ()):
        if not isinstance(given, Mapping):
            continue
        found = Place(
            key=key_of(str(given.get("id", "")), taken),
            id=str(given.get("id", "")),
            parent=parent,
            path=f"{path}[{number}]",
            given=given,
            kind=find(str(given.get("type", ""))),
        )
        yield found
        if found.holds_fields and isinstance(given.get("options"), Mapping):
            yield from _places(given["options"].get("fields"), found, f"{found.path}.options.fields", taken)


def key_of(field_id: str, taken: set[str]) -> str:
    """The key of a field: the end of its id, which is random, so that its inputs have short names."""
    key = "r" + "".join(ch for ch in field_id if ch.isalnum())[-_KEY_CHARS:]
    while key in taken:
        key += "_"
    taken.add(key)
    return key


def place_faults(found: Sequence[Place], faults: Iterable[Fault]) -> list[tuple[Place | None, Fault]]:
    """Add each fault to its field. Return all of them in order with their fields; None for those of the template."""
    by_path = {one.path: one for one in found}
    placed = []
    for fault in faults:
        path, owner = fault.path, None
        while path and owner is None:
            owner = by_path.get(path)
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        if owner is not None:
            owner.faults.append(fault)
        placed.append((owner, fault))
    return placed


_DEFAULTS: Final[tuple[Any, ...]] = ({}, None, False, "", 0, "0")


def same(field: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two fields are the same; the label, which the service adds, and defaults do not count."""
    return _plain(field) == _plain(other)


def _plain(field: Mapping[str, Any]) -> dict[str, Any]:
    options = field.get("options")
    options = dict(options) if isinstance(options, Mapping) else {}
    nested = [_plain(one) for one in options.pop("fields", None) or () if isinstance(one, Mapping)]
    found = {
        key: _text(value)
        for key, value in field.items()
        if key not in ("label", "options") and value not in _DEFAULTS
    }
    return found | {"options": {key: _text(value) for key, value in options.items()}, "fields": nested}


def _text(value: Any) -> Any:
    """Decimals are numbers or text, which mean the same."""
    if isinstance(value, Mapping):
        return {key: _text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_text(item) for item in value]
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def sentence(fault: Fault) -> str:
    """A fault and its advice. An option that is missing is called by its name: a field may lack several."""
    if fault.code == "required" and ".options." in fault.path:
        return f"{label_of(fault.path.rpartition('.')[2]).removesuffix(' id')} is required."
    return f"{fault.message} {fault.hint}" if fault.hint else fault.message


class FieldForm:
    """One field as the form of the inspector. `given` are the fields of the draft."""

    def __init__(self, place: Place, given: Sequence[Any] = ()) -> None:
        self.place, self.kind = place, place.kind
        self.key, self.id = place.key, place.id
        self.name, self.type, self.label = place.name, place.type, place.label
        common = {
            name: value for name, value in place.given.items() if name not in OWN and value not in (None, "")
        }
        if isinstance(common.get("unique"), str):
            common |= {"unique": True, "unique_together": common["unique"]}
        self.common = bound(CommonKeys, common, prefix=f"{self.key}.", names=COMMON_NAMES)
        self.options: ModelForm | None = None
        if self.kind is not None:
            shown = shown_options(self.kind, place.options)
            self.options = bound(self.kind.Options, place.options, prefix=f"{self.key}.o.", names=shown)
        self.faults: dict[str, str] = {}  # by input name; "" for the field as a whole
        self.marks: dict[str, Marked] = {}  # by input name: position of an error in a formula
        for fault in place.faults:
            name = self.input_name(fault.path[len(place.path) :])
            if name not in self.faults:
                self.faults[name] = sentence(fault)
                mark = marked(at_path({"fields": given}, fault.path), fault.position)
                self.marks |= {name: mark} if mark else {}

    @property
    def mark(self) -> str:
        """The value of the hidden input `row`: key, field id, and the type whose options the form shows."""
        return f"{self.key} {self.id} {self.kind.name if self.kind else '-'}"

    @property
    def group(self) -> str:
        """The group that the field names; "" for none."""
        return self.place.group

    def options_value(self, name: str) -> Any:
        """Return the value of an option; None if it has none."""
        return self.place.options_value(name)

    def of(self, tab: str) -> list[Any]:
        """The controls of a tab: options of the type first."""
        options = [
            one for one in self.options or () if (one.short_name in FORMAT_OPTIONS) == (tab == "format")
        ]
        return [
            *(options if tab in ("values", "format") else ()),
            *(self.common[name] for name in COMMON[tab]),
        ]

    def wrong(self, tab: str) -> int:
        """How many errors are on a tab."""
        names = [one.name for one in self.of(tab)]
        extra = tab == "values" and sum(
            name in ("", f"{self.key}.name", f"{self.key}.type") for name in self.faults
        )
        return int(extra) + sum(
            any(fault == name or fault.startswith(f"{name}.") for name in names) for fault in self.faults
        )

    def input_name(self, rest: str) -> str:
        """Return the name of the input for the end of an error's path: `.options.min` is `r1.o.min`. "" if the form has
        none."""
        rest = rest.lstrip(".")
        if rest in ("name", "type"):
            return f"{self.key}.{rest}"
        form = self.options if rest.startswith("options.") else self.common
        key = rest.removeprefix("options.")
        short = key.replace("[", ".").split(".")[0]
        if form is None or short not in form:
            return ""
        inner = getattr(form[short], "form", None)
        deeper = key[len(short) + 1 :]
        return form[short].name + (f".{deeper}" if inner is not None and deeper in inner else "")


def shown_options(kind: Kind, options: Mapping[str, Any]) -> tuple[str, ...]:
    """The options that the form shows: without the parameters of other distributions than the chosen one."""
    hidden: set[str] = set()
    for name, by_value in kind.Options.parameters.items():
        default = kind.Options.model_fields[name].default
        taken = by_value.get(str(options.get(name) or default), ())
        hidden |= {one for names in by_value.values() for one in names} - set(taken)
    return tuple(name for name in keys(kind.Options) if name not in hidden)
