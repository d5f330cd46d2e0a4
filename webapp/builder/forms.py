"""The forms of the builder's page: one field in the inspector, and the edits of a whole draft.

The names of the inputs of a field begin with its key (`r7K2M9X.name`, `r7K2M9X.o.min`), which is the end of its id.
The hidden input `row` says which field the form shows and with which type (see `FieldForm.mark`). Values that the form
does not show stay as they are in the draft.

A draft is a template as a client would send it. These functions accept everything that a browser can send: the template
parser validates the result and reports all errors together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from werkzeug.datastructures import MultiDict

from webapp import ids, limits
from webapp.document_process import DocumentError, check_depth
from webapp.engine import guess
from webapp.engine.invalid_data.settings import Invalid
from webapp.engine.source_data import SourceSpec
from webapp.engine.spec import ELEMENT, CommonKeys
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import find
from webapp.errors import Fault, validation_error
from webapp.web.forms import controls
from webapp.web.forms.from_model import ModelForm, bind_form, control_names, label_of

NewId = Callable[[], str]
Kind = type[FieldType]

HEADER_KEYS: Final = ("name", "description", "quantity", "locale", "anchor")
TABS: Final = (("values", "Values"), ("format", "Format"), ("rules", "Rules"), ("privacy", "Privacy"))
COMMON_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "values": ("percent_blank", "formula"),
    "format": ("prefix", "suffix", "text_case", "locale"),
    "rules": ("unique", "unique_together", "group", "hidden", "invalid", "description"),
    "privacy": ("sensitive", "masking", "column"),
}
"""The keys that fields of all types have, by the tab that shows them."""
COMMON_NAMES: Final = tuple(name for names in COMMON_KEYS.values() for name in names)
FORMAT_OPTIONS: Final = frozenset(
    {"format", "decimals", "precision", "stringify", "separator", "case", "symbol"}
)
"""Options of types that say how a value is written; the tab Format shows them."""
IDENTITY_KEYS: Final = frozenset({"id", "name", "type", "options", "label"})
_KEY_CHARS: Final = 6


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """The line of a text at which something is wrong, cut at the character: `line` counts from 1."""

    line: int
    before: str
    at: str
    after: str

    @property
    def space(self) -> str:
        """Whitespace as wide as `before`, which aligns a caret in the next line."""
        return "".join("\t" if item == "\t" else " " for item in self.before)


def mark_position(text: Any, position: int | None) -> MarkedLine | None:
    """Split a text at `position`, in characters from 1. A position beyond the end is treated as the end."""
    if position is None or not isinstance(text, str):
        return None
    text = text.replace("\r\n", "\n")
    at = max(0, min(position - 1, len(text)))
    begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    end = len(text) if end < 0 else end
    return MarkedLine(
        text.count("\n", 0, at) + 1, text[begin:at], text[at : at + 1].strip("\n") or " ", text[at + 1 : end]
    )


def value_at_path(value: Any, path: str) -> Any:
    """Return the value at the path of an error (`fields[3].options.cases[0].when`), or None."""
    for step in path.replace("[", ".").replace("]", "").split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


@dataclass(slots=True)
class DraftField:
    """A field of a draft, at its place."""

    key: str  # prefix of the names of its inputs
    id: str
    parent: DraftField | None
    path: str  # of its fault paths: `fields[3].options.fields[0]`
    submitted: Mapping[str, Any]
    kind: Kind | None
    faults: list[Fault] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name as it was entered."""
        return str(self.submitted.get("name", ""))

    @property
    def type(self) -> str:
        """The name of its type; the text as entered for an unknown type."""
        return self.kind.name if self.kind else str(self.submitted.get("type", ""))

    @property
    def label(self) -> str:
        """The title of its type; the text as entered for an unknown type."""
        return self.kind.label if self.kind else self.type

    @property
    def depth(self) -> int:
        """How many fields are around it."""
        return self.parent.depth + 1 if self.parent else 0

    @property
    def top(self) -> DraftField:
        """The field of the first level that contains it."""
        return self.parent.top if self.parent else self

    @property
    def names(self) -> list[str]:
        """The names that lead to it: its own last."""
        return [*(self.parent.names if self.parent else ()), self.name]

    @property
    def has_nested_fields(self) -> bool:
        """Whether fields of its type have nested fields."""
        return has_nested_fields(self.kind)

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options without nested fields."""
        raw = self.submitted.get("options")
        return (
            {name: value for name, value in raw.items() if name != "fields"}
            if isinstance(raw, Mapping)
            else {}
        )

    @property
    def group(self) -> str:
        """The group that it names; "" for none."""
        named = self.submitted.get("group")
        return named if isinstance(named, str) else ""

    def options_value(self, name: str) -> Any:
        """Return the value of an option; None if it has none."""
        return self.options.get(name)


def has_nested_fields(kind: Kind | None) -> bool:
    """Return whether fields of this type have nested fields."""
    return kind is not None and "fields" in kind.Options.model_fields


def draft_fields(fields: Any) -> list[DraftField]:
    """Return all fields, nested ones after the field that contains them. What is not an object is left out: the parser
    reports it with its path."""
    return list(_walk_fields(fields, None, "fields", set()))


def _walk_fields(fields: Any, parent: DraftField | None, path: str, taken: set[str]) -> Iterator[DraftField]:
    for number, item in enumerate(fields if isinstance(fields, list) else ()):
        if not isinstance(item, Mapping):
            continue
        found = DraftField(
            key=create_key(str(item.get("id", "")), taken),
            id=str(item.get("id", "")),
            parent=parent,
            path=f"{path}[{number}]",
            submitted=item,
            kind=find(str(item.get("type", ""))),
        )
        yield found
        if found.has_nested_fields and isinstance(item.get("options"), Mapping):
            yield from _walk_fields(
                item["options"].get("fields"), found, f"{found.path}.options.fields", taken
            )


def create_key(field_id: str, taken: set[str]) -> str:
    """Return the key of a field: the end of its random id, so that its inputs have short names."""
    key = "r" + "".join(ch for ch in field_id if ch.isalnum())[-_KEY_CHARS:]
    while key in taken:
        key += "_"
    taken.add(key)
    return key


def assign_faults(
    found: Sequence[DraftField], faults: Iterable[Fault]
) -> list[tuple[DraftField | None, Fault]]:
    """Add each fault to its field. Return all of them in order with their fields; None for those of the template."""
    by_path = {place.path: place for place in found}
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


def is_same_field(field: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two fields are the same; the label, which the service adds, and defaults do not count."""
    return _comparable(field) == _comparable(other)


def _comparable(field: Mapping[str, Any]) -> dict[str, Any]:
    options = field.get("options")
    options = dict(options) if isinstance(options, Mapping) else {}
    nested = [_comparable(child) for child in options.pop("fields", None) or () if isinstance(child, Mapping)]
    found = {
        key: _numbers_as_text(value)
        for key, value in field.items()
        if key not in ("label", "options") and value not in _DEFAULTS
    }
    return found | {
        "options": {key: _numbers_as_text(value) for key, value in options.items()},
        "fields": nested,
    }


def _numbers_as_text(value: Any) -> Any:
    """Return a value with numbers as text, because decimals may be either."""
    if isinstance(value, Mapping):
        return {key: _numbers_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers_as_text(item) for item in value]
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def fault_text(fault: Fault) -> str:
    """Return the text of a fault with its hint. A missing option is named, because a field may lack several."""
    if fault.code == "required" and ".options." in fault.path:
        return f"{label_of(fault.path.rpartition('.')[2]).removesuffix(' id')} is required."
    return f"{fault.message} {fault.hint}" if fault.hint else fault.message


class FieldForm:
    """One field as the form of the inspector. `fields` are those of the draft."""

    def __init__(self, place: DraftField, fields: Sequence[Any] = ()) -> None:
        self.place, self.kind = place, place.kind
        self.key, self.id = place.key, place.id
        self.name, self.type, self.label = place.name, place.type, place.label
        common = {
            name: value
            for name, value in place.submitted.items()
            if name not in IDENTITY_KEYS and value not in (None, "")
        }
        if isinstance(common.get("unique"), str):
            common |= {"unique": True, "unique_together": common["unique"]}
        self.common = bind_form(CommonKeys, common, prefix=f"{self.key}.", names=COMMON_NAMES)
        self.options: ModelForm | None = None
        if self.kind is not None:
            names = visible_options(self.kind, place.options)
            self.options = bind_form(self.kind.Options, place.options, prefix=f"{self.key}.o.", names=names)
        self.faults: dict[str, str] = {}  # by input name; "" for the field as a whole
        self.marks: dict[str, MarkedLine] = {}  # by input name: position of an error in a formula
        for fault in place.faults:
            name = self.input_name(fault.path[len(place.path) :])
            if name not in self.faults:
                self.faults[name] = fault_text(fault)
                mark = mark_position(value_at_path({"fields": fields}, fault.path), fault.position)
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
        """Return the controls of a tab: options of the type first."""
        options = [
            option
            for option in self.options or ()
            if (option.short_name in FORMAT_OPTIONS) == (tab == "format")
        ]
        return [
            *(options if tab in ("values", "format") else ()),
            *(self.common[name] for name in COMMON_KEYS[tab]),
        ]

    def wrong(self, tab: str) -> int:
        """Return the number of errors on a tab."""
        names = [item.name for item in self.of(tab)]
        extra = tab == "values" and sum(
            name in ("", f"{self.key}.name", f"{self.key}.type") for name in self.faults
        )
        return int(extra) + sum(
            any(fault == name or fault.startswith(f"{name}.") for name in names) for fault in self.faults
        )

    def input_name(self, path: str) -> str:
        """Return the name of the input for the end of an error's path: `.options.min` is `r1.o.min`. "" if the form has
        none."""
        path = path.lstrip(".")
        if path in ("name", "type"):
            return f"{self.key}.{path}"
        form = self.options if path.startswith("options.") else self.common
        key = path.removeprefix("options.")
        short = key.replace("[", ".").split(".")[0]
        if form is None or short not in form:
            return ""
        inner = getattr(form[short], "form", None)
        deeper = key[len(short) + 1 :]
        return form[short].name + (f".{deeper}" if inner is not None and deeper in inner else "")


def visible_options(kind: Kind, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options that the form shows: without parameters of distributions that are not selected."""
    hidden: set[str] = set()
    for name, by_value in kind.Options.parameters.items():
        default = kind.Options.model_fields[name].default
        used = by_value.get(str(options.get(name) or default), ())
        hidden |= {item for names in by_value.values() for item in names} - set(used)
    return tuple(name for name in control_names(kind.Options) if name not in hidden)


# --- Edits of a draft ---------------------------------------------------------------------------------------

Values = MultiDict[str, str]
Field = dict[str, Any]
INVALID_PREFIX: Final = "invalid."
"""Prefix of the inputs for invalid data of the template."""


def new_id() -> str:
    """Create an id for a field. It does not change when the draft is saved, so the field's values stay the same."""
    return ids.new("fld")


def with_ids(fields: Any, new_id: NewId = new_id) -> list[Any]:
    """Return field definitions in which every field has an id, so that its values stay when others change."""
    found = []
    for item in fields if isinstance(fields, list) else ():
        if isinstance(item, Mapping):
            item = {"id": new_id(), **item}
            options = item.get("options")
            if isinstance(options, Mapping) and isinstance(options.get("fields"), list):
                item["options"] = {**options, "fields": with_ids(options["fields"], new_id)}
        found.append(item)
    return found


def check_size(spec: Mapping[str, Any]) -> None:
    """Check that a draft is small enough for a page: it has at most as many fields as a template, and is not nested
    deeper. Other errors are allowed in a draft. Error: validation_error."""
    level, number = [spec.get("fields")], 0
    for _ in range(limits.MAX_NESTING + 1):
        found = [item for fields in level if isinstance(fields, list) for item in fields]
        number += len(found)
        if number > limits.MAX_FIELDS:
            text = f"A template has at most {limits.MAX_FIELDS} fields; this one has {number:,} or more."
            raise validation_error([Fault("fields", "too_many", text)])
        options = [item.get("options") for item in found if isinstance(item, Mapping)]
        level = [option.get("fields") for option in options if isinstance(option, Mapping)]
    try:
        check_depth(spec, limits.DRAFT_LEVELS)
    except DocumentError:
        text = "The template is nested too deeply. Flatten it."
        raise validation_error([Fault("fields", "too_deep", text)]) from None


# --- Inputs -----------------------------------------------------------------------------------------------


def read_form(form: Values, draft: dict[str, Any]) -> dict[str, Any]:
    """Return the draft with the values of a form: the name, the settings and the field in the inspector. Values that
    the form does not show stay as they are."""
    changed = dict(draft)
    if "settings" in form:
        changed = {key: value for key, value in changed.items() if key not in ("invalid", "source")}
        changed |= (
            {"invalid": invalid}
            if (invalid := bind_form(Invalid, formdata=form, prefix=INVALID_PREFIX).payload())
            else {}
        )
        changed |= {"source": source} if (source := read_source(form)) else {}
    for key in HEADER_KEYS:
        text = form.get(key, "").strip()
        if key in form and (text or key in ("name", "description")):
            changed[key] = controls.parse_integer(text) if key == "quantity" else text
        elif key in form:
            changed.pop(key, None)
    if form.get("row"):
        key, field_id, shown_type = (*form["row"].split(" "), "", "")[:3]

        def read_shown_field(field: Mapping[str, Any]) -> list[Mapping[str, Any]]:
            found = read_field(form, key, shown_type, field)
            return [field if is_same_field(field, found) else found]  # an equal value stays as it was entered

        changed["fields"] = replace_field(changed.get("fields"), field_id, read_shown_field)
    return changed


def read_field(form: Values, key: str, shown_type: str, field: Mapping[str, Any]) -> Field:
    """Return a field with what its form says. `shown_type` is the type whose options the form shows."""
    found: Field = {name: value for name, value in field.items() if name not in COMMON_NAMES}
    found |= {"name": form.get(f"{key}.name", "").strip(), "type": form.get(f"{key}.type", "").strip()}
    options = dict(field["options"]) if isinstance(field.get("options"), Mapping) else {}
    kind = find(shown_type)
    if kind is not None:
        names = visible_options(kind, options)
        read = bind_form(kind.Options, formdata=form, prefix=f"{key}.o.", names=names).payload()
        options = {
            name: value for name, value in options.items() if name not in control_names(kind.Options)
        } | read
        applicable = visible_options(
            kind, options
        )  # without the parameters of a distribution that is no longer selected
        options = {
            name: value
            for name, value in options.items()
            if name not in control_names(kind.Options) or name in applicable
        }
    now = find(found["type"])
    if now is not None and now is not kind:
        options = {
            name: value for name, value in options.items() if name in (*control_names(now.Options), "fields")
        }
    if now is not None:
        options = {
            name: value for name, value in options.items() if name != "fields" or has_nested_fields(now)
        }
        if has_nested_fields(now):
            options.setdefault("fields", [])
    common = bind_form(CommonKeys, formdata=form, prefix=f"{key}.", names=COMMON_NAMES).payload()
    if common.get("masking") == {"consistent": False}:
        del common["masking"]  # an unchecked box, where masking is not possible
    # The checkbox and the label next to it are one value: a field that is unique in combination with others has both.
    # Clearing the checkbox also clears the label, unless another label was entered.
    label = common.pop("unique_together", None)
    if isinstance(label, str) and label and (common.get("unique") or label != field.get("unique")):
        common["unique"] = label
    return found | {"options": options} | common


def find_field_id(draft: Mapping[str, Any], key: str) -> str:
    """Return the id of the field with this key; the text itself if there is none."""
    return next((place.id for place in draft_fields(draft.get("fields")) if place.key == key), key)


def find_key(draft: Mapping[str, Any], field_id: str) -> str:
    """Return the key of the field with this id; "" if there is none."""
    return next((place.key for place in draft_fields(draft.get("fields")) if place.id == field_id), "")


# --- Buttons ----------------------------------------------------------------------------------------------


def parse_names(text: str) -> list[Field]:
    """Return new fields from a list of names, each `name` or `name: type`."""
    found = []
    for line in re.split(r"[\n,;\t]+", text)[: limits.MAX_FIELDS]:
        name, _, kind = (part.strip().strip('"`') for part in line.partition(":"))
        if name:
            field = new_field(new_id, name[: limits.MAX_NAME_CHARS])
            found.append({**field, "type": kind or field["type"]})
    return found


def apply_button(
    fields: list[Field], verb: str, field_id: str, more: str = "", new_id: NewId = new_id
) -> tuple[list[Field], str]:
    """Return the fields after one press of a button, and the id of the field that the user then works on.

    Verbs: `add` (a field called `more`), `insert` and `inside` (an empty one, after the field or in it), `remove`,
    `left`, `right`, `first`, `last`, `duplicate`, `type` (`more` is the name of a type, with options as JSON after it).
    """
    fields = json.loads(json.dumps(fields, default=str))
    if verb == "add":
        field = new_field(new_id, more)
        return [*fields, field], field["id"]
    siblings = _siblings(fields, field_id)
    if siblings is None:
        return fields, field_id
    index = next(i for i, sibling in enumerate(siblings) if sibling["id"] == field_id)
    to = {"left": index - 1, "right": index + 1, "first": 0, "last": len(siblings) - 1}.get(verb)
    if verb == "remove":
        del siblings[index]
        return fields, siblings[min(index, len(siblings) - 1)]["id"] if siblings else ""
    if to is not None:
        siblings.insert(max(0, to), siblings.pop(index))
    elif verb == "duplicate":
        field = copy_field(siblings[index], new_id, {str(sibling.get("name")) for sibling in siblings})
        siblings.insert(index + 1, field)
        return fields, field["id"]
    elif verb == "insert":
        siblings.insert(index + 1, field := new_field(new_id))
        return fields, field["id"]
    elif verb == "inside":
        siblings[index].setdefault("options", {}).setdefault("fields", []).append(field := new_field(new_id))
        return fields, field["id"]
    elif verb == "type":
        siblings[index] = _with_type(siblings[index], more)
    return fields, field_id


def _with_type(field: Field, type_name: str) -> Field:
    type_name, brace, more = type_name.partition(" {")  # a suggestion includes its options
    kind = find(type_name)
    if kind is None:
        return {**field, "type": type_name}
    known = (
        {"fields", *control_names(kind.Options)}
        if has_nested_fields(kind)
        else set(control_names(kind.Options))
    )
    options = {name: value for name, value in (field.get("options") or {}).items() if name in known}
    if brace:
        try:
            suggested = json.loads(f"{{{more}")
        except ValueError:
            suggested = {}
        options = {name: value for name, value in suggested.items() if name in known}
    if has_nested_fields(kind):
        options.setdefault("fields", [])
    return {
        **field,
        "type": kind.name,
        "options": options or dict(guess.STARTER_OPTIONS.get(kind.name, {})),
    }


def new_field(new_id: NewId, name: str = "") -> Field:
    """Return a new field; its type is guessed from its name."""
    kind = guess.suggest_type(name)
    return {
        "id": new_id(),
        "name": name,
        "type": kind,
        "options": dict(guess.STARTER_OPTIONS.get(kind, {})),
    }


def copy_field(field: Mapping[str, Any], new_id: NewId, taken: set[str]) -> Field:
    """Copy a field, including its nested fields, with a new id and an unused name."""
    base, number = str(field["name"]) or "field", 2
    while f"{base}_{number}" in taken:
        number += 1
    return {**_with_new_ids(field, new_id), "name": f"{base}_{number}"}


def _with_new_ids(field: Mapping[str, Any], new_id: NewId) -> Field:
    options = dict(field.get("options") or {})
    if isinstance(options.get("fields"), list):
        options["fields"] = [_with_new_ids(inner, new_id) for inner in options["fields"]]
    if isinstance(options.get(ELEMENT), Mapping):
        options[ELEMENT] = _with_new_ids(options[ELEMENT], new_id)
    return {**field, "id": new_id(), "options": options}


def _siblings(fields: list[Field], field_id: str) -> list[Field] | None:
    if any(item.get("id") == field_id for item in fields if isinstance(item, dict)):
        return fields
    for item in fields:
        inner = item.get("options", {}).get("fields") if isinstance(item, dict) else None
        found = _siblings(inner, field_id) if isinstance(inner, list) else None
        if found is not None:
            return found
    return None


def replace_field(fields: Any, field_id: str, change: Any) -> list[Any]:
    """Return the fields with one of them, on any level, replaced by what `change` returns for it."""
    found: list[Any] = []
    for item in fields if isinstance(fields, list) else ():
        options = item.get("options") if isinstance(item, Mapping) else None
        if isinstance(item, Mapping) and item.get("id") == field_id:
            found += change(item)
        elif isinstance(options, Mapping) and isinstance(options.get("fields"), list):
            found.append(
                {**item, "options": {**options, "fields": replace_field(options["fields"], field_id, change)}}
            )
        else:
            found.append(item)
    return found


def remove_fields(fields: Sequence[Any], field_ids: set[str]) -> list[Any]:
    """Return the fields without those with these ids, on all levels."""
    found = list(fields)
    for field_id in field_ids:
        found = replace_field(found, field_id, lambda _: [])
    return found


# --- The source of the rows ----------------------------------------------------------------------------------

SOURCE_PREFIX: Final = "source."
SOURCE_KIND_INPUT: Final = "source.from"
"""The input that says which way: "" for none."""
SOURCE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "file": ("file", "sheet", "limit"),
    "table": ("connection_id", "table", "where", "limit"),
    "query": ("connection_id", "query", "limit"),
}
"""The options of each kind of source; inputs of the other sources are ignored."""


def read_source(form: Any) -> dict[str, Any] | None:
    """Return the source in a form as the API accepts it; None for none. Incomplete input is returned as it is, so that
    the model reports what is missing."""
    names = SOURCE_KEYS.get(form.get(SOURCE_KIND_INPUT, ""))
    if names is None:
        return None
    found = bind_form(SourceSpec, formdata=form, prefix=SOURCE_PREFIX, names=names).payload()
    return {name: value.strip() if isinstance(value, str) else value for name, value in found.items()}


def source_kind(source: Mapping[str, Any] | None) -> str:
    """Return the kind of a source: `file`, `query` or `table`; "" for none."""
    if not source:
        return ""
    return next((way for way in ("file", "query", "table") if source.get(way)), "table")
