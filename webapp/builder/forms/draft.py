"""The template builder's form read back: a template as it would be sent, and edits of it on the server.

See `forms.field_rows` for how a row of the form is named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from werkzeug.datastructures import MultiDict

from webapp import limits
from webapp.builder.forms.field_rows import FOLDED, HEAD, MORE, OWN, NewId, holds_fields, shown_of
from webapp.engine import guess
from webapp.engine.invalid_data.settings import Invalid
from webapp.engine.source_data import SourceSpec
from webapp.engine.spec import ELEMENT, CommonKeys
from webapp.engine.types.registry import find
from webapp.web.forms import controls
from webapp.web.forms.from_model import bound, inline, keys

Values = MultiDict[str, str]
INVALID: Final = "invalid."
"""Prefix of the inputs for invalid data of the template."""


def read(form: Values) -> dict[str, Any]:
    """The template that a form holds, as it would be sent: head keys and field definitions.

    This function accepts everything. The template parser validates the result and reports all errors together.
    """
    template: dict[str, Any] = {}
    for key in HEAD:
        text = form.get(key, "").strip()
        if text or (key in ("name", "description") and key in form):
            template[key] = controls.integer(text) if key == "quantity" else text
    bad = bound(Invalid, formdata=form, prefix=INVALID).payload()
    if bad:
        template["invalid"] = bad
    source = read_source(form)
    if source is not None:
        template["source"] = source
    template["fields"] = _read_fields(form)
    return template


@dataclass(frozen=True, slots=True)
class Mark:
    """A row of the form: its key, its field's id, the type whose options the browser has, the row around it, and
    whether it has but the name and the type, and holds the rest."""

    key: str
    id: str
    drawn: str
    parent: str
    folded: bool = False


def marks(form: Values) -> list[Mark]:
    """The rows of a form in their order, a little more of them at most than a template may have fields."""
    found = []
    for text in form.getlist("row")[: limits.MAX_FIELDS + 1]:
        key, field_id, drawn, parent, *_ = *text.split(" "), "", "", ""
        found.append(Mark(key, field_id or key, drawn.removeprefix(FOLDED), parent, drawn.startswith(FOLDED)))
    return found


def field_id(form: Values, key: str) -> str:
    """Return the id of the field whose row has this key; the key itself if the form has no such row."""
    return next((mark.id for mark in marks(form) if mark.key == key), key)


def _read_fields(form: Values) -> list[dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}
    top: list[dict[str, Any]] = []
    for mark in marks(form):
        found = made[mark.key] = _read_row(form, mark)
        owner = made.get(mark.parent)
        if owner is None or owner is found:
            top.append(found)
        else:
            owner["options"].setdefault("fields", []).append(found)
    for found in made.values():
        kind = find(found["type"])
        if "fields" in found["options"] and not holds_fields(kind):
            del found["options"]["fields"]
        elif kind is not None and holds_fields(kind):
            found["options"].setdefault("fields", [])
    return top


def _read_row(form: Values, mark: Mark) -> dict[str, Any]:
    key = mark.key
    held = _held(form.get(f"{key}.held", ""))
    common: dict[str, Any] = {
        "id": mark.id,
        "name": form.get(f"{key}.name", "").strip(),
        "type": form.get(f"{key}.type", "").strip(),
    }
    drawn = find(mark.drawn)
    is_open = f"{key}.open" in form
    options: dict[str, Any] = dict(held.get("options", {}))
    if drawn is not None and not mark.folded:
        names = keys(drawn.Options) if is_open else inline(drawn.Options)
        options |= bound(drawn.Options, formdata=form, prefix=f"{key}.o.", names=names).payload()
    kind = find(common["type"])
    if kind is not None and kind is not drawn:
        options = {name: value for name, value in options.items() if name in keys(kind.Options)}
    on_row = shown_of(drawn)
    shown = tuple(dict.fromkeys((*on_row, *MORE))) if is_open else () if mark.folded else on_row
    common |= {name: value for name, value in held.items() if name not in OWN and name not in shown}
    common |= bound(CommonKeys, formdata=form, prefix=f"{key}.", names=shown).payload()
    if common.get("masking") == {"consistent": False}:
        del common["masking"]  # an unchecked box, where masking is not possible
    common["options"] = options
    return _unique(common, held.get("unique_together"), is_open)


def _unique(common: dict[str, Any], before: Any, is_open: bool) -> dict[str, Any]:
    """Return the checkbox and the label next to it as one value: a field that is unique in combination with others has
    both. Clearing the checkbox also clears the label, unless another label was entered."""
    word = common.pop("unique_together", None)
    if isinstance(word, str) and word and (common.get("unique") or (is_open and word != before)):
        common["unique"] = word
    return common


def _held(text: str) -> dict[str, Any]:
    found = _json(text)
    return found if isinstance(found.get("options", {}), dict) else {}


def _json(text: str) -> dict[str, Any]:
    """Return a JSON object, or an empty one if the text is not a JSON object."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def edit(fields: list[dict[str, Any]], do: str, new_id: NewId) -> tuple[list[dict[str, Any]], set[str]]:
    """The fields after one press of a button (`up:<field id>`, `add`, ...), and the ids of those to open."""
    verb, _, rest = do.partition(":")
    row_id, _, word = rest.partition(":")
    if verb == "add" and not row_id:
        fields.append(blank(new_id))
        return fields, set()
    siblings = _siblings(fields, row_id)
    if siblings is None:
        return fields, set()
    at = next(i for i, one in enumerate(siblings) if one["id"] == row_id)
    if verb == "remove":
        del siblings[at]
    elif verb in ("up", "down"):
        to = at - 1 if verb == "up" else at + 1
        if 0 <= to < len(siblings):
            siblings[at], siblings[to] = siblings[to], siblings[at]
    elif verb == "duplicate":
        siblings.insert(at + 1, copy_of(siblings[at], new_id, {one["name"] for one in siblings}))
    elif verb == "insert":
        siblings.insert(at + 1, blank(new_id))
    elif verb == "inside":
        siblings[at].setdefault("options", {}).setdefault("fields", []).append(blank(new_id))
    elif verb == "type":
        siblings[at] = _retyped(siblings[at], word)
    return fields, {row_id} if verb == "open" else set()


def _retyped(given: dict[str, Any], word: str) -> dict[str, Any]:
    word, brace, more = word.partition(" {")  # a suggestion brings its options
    kind = find(word)
    if kind is None:
        return {**given, "type": word}
    known = {"fields", *keys(kind.Options)} if holds_fields(kind) else set(keys(kind.Options))
    options = {name: value for name, value in given["options"].items() if name in known}
    if brace:
        options = {name: value for name, value in _json(f"{{{more}").items() if name in known}
    return {**given, "type": kind.name, "options": options or dict(guess.STARTERS.get(kind.name, {}))}


def blank(new_id: NewId, name: str = "") -> dict[str, Any]:
    """A field that says nothing yet."""
    kind = guess.type_of(name)
    return {"id": new_id(), "name": name, "type": kind, "options": dict(guess.STARTERS.get(kind, {}))}


def copy_of(given: Mapping[str, Any], new_id: NewId, taken: set[str]) -> dict[str, Any]:
    """Copy a field, including its nested fields, with a new id and an unused name."""
    base, number = str(given["name"]) or "field", 2
    while f"{base}_{number}" in taken:
        number += 1
    return {**_fresh(given, new_id), "name": f"{base}_{number}"}


def _fresh(given: Mapping[str, Any], new_id: NewId) -> dict[str, Any]:
    options = dict(given.get("options") or {})
    if isinstance(options.get("fields"), list):
        options["fields"] = [_fresh(inner, new_id) for inner in options["fields"]]
    if isinstance(options.get(ELEMENT), Mapping):
        options[ELEMENT] = _fresh(options[ELEMENT], new_id)
    return {**given, "id": new_id(), "options": options}


def _siblings(fields: list[dict[str, Any]], row_id: str) -> list[dict[str, Any]] | None:
    for one in fields:
        if one["id"] == row_id:
            return fields
        inner = one["options"].get("fields")
        found = _siblings(inner, row_id) if isinstance(inner, list) else None
        if found is not None:
            return found
    return None


PREFIX: Final = "source."
WAY: Final = "source.from"
"""The input that says which way: "" for none."""
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "file": ("file", "sheet", "limit"),
    "table": ("connection_id", "table", "where", "limit"),
    "query": ("connection_id", "query", "limit"),
}
"""Return the options of the selected source; inputs of the other sources are ignored."""


def read_source(form: Any) -> dict[str, Any] | None:
    """The source that a form holds, as it would be sent; None for none. One that is half filled in is sent so, for its
    model to say what is missing."""
    names = KEYS.get(form.get(WAY, ""))
    if names is None:
        return None
    found = bound(SourceSpec, formdata=form, prefix=PREFIX, names=names).payload()
    return {name: value.strip() if isinstance(value, str) else value for name, value in found.items()}


def way_of(given: Mapping[str, Any] | None) -> str:
    """Which way a source takes; "" for none."""
    if not given:
        return ""
    return next((way for way in ("file", "query", "table") if given.get(way)), "table")
