"""Edits of a draft: what the inputs of the builder's page say, and what its buttons do.

A draft is a template as a client would send it. These functions accept everything that a browser can send: the template
parser validates the result and reports all errors together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from werkzeug.datastructures import MultiDict

from webapp import ids, limits
from webapp.builder.forms.fields import COMMON_NAMES, HEAD, NewId, holds_fields, places, same, shown_options
from webapp.document_process import DocumentError, check_depth
from webapp.engine import guess
from webapp.engine.invalid_data.settings import Invalid
from webapp.engine.source_data import SourceSpec
from webapp.engine.spec import ELEMENT, CommonKeys
from webapp.engine.types.registry import find
from webapp.errors import Fault, validation_error
from webapp.web.forms import controls
from webapp.web.forms.from_model import bound, keys

Values = MultiDict[str, str]
Field = dict[str, Any]
INVALID: Final = "invalid."
"""Prefix of the inputs for invalid data of the template."""


def new_id() -> str:
    """A field's id; it is kept when the draft is saved, and the field's values with it."""
    return ids.new("fld")


def with_ids(fields: Any, new_id: NewId = new_id) -> list[Any]:
    """Return field definitions in which every field has an id, so that its values stay when others change."""
    found = []
    for one in fields if isinstance(fields, list) else ():
        if isinstance(one, Mapping):
            one = {"id": new_id(), **one}
            options = one.get("options")
            if isinstance(options, Mapping) and isinstance(options.get("fields"), list):
                one["options"] = {**options, "fields": with_ids(options["fields"], new_id)}
        found.append(one)
    return found


def check_size(spec: Mapping[str, Any]) -> None:
    """Check that a draft is small enough for a page: it has at most as many fields as a template, and is not nested
    deeper. Other errors are allowed in a draft. Error: validation_error."""
    level, number = [spec.get("fields")], 0
    for _ in range(limits.MAX_NESTING + 1):
        found = [one for fields in level if isinstance(fields, list) for one in fields]
        number += len(found)
        if number > limits.MAX_FIELDS:
            text = f"A template has at most {limits.MAX_FIELDS} fields; this one has {number:,} or more."
            raise validation_error([Fault("fields", "too_many", text)])
        options = [one.get("options") for one in found if isinstance(one, Mapping)]
        level = [one.get("fields") for one in options if isinstance(one, Mapping)]
    try:
        check_depth(spec, limits.DRAFT_LEVELS)
    except DocumentError:
        text = "The template is nested too deeply. Flatten it."
        raise validation_error([Fault("fields", "too_deep", text)]) from None


# --- Inputs -----------------------------------------------------------------------------------------------


def read(form: Values, draft: dict[str, Any]) -> dict[str, Any]:
    """Return the draft with what the inputs of a form say: the name, the settings and the field in the inspector. What
    the form does not show stays as it is."""
    changed = dict(draft)
    if "settings" in form:
        changed = {key: value for key, value in changed.items() if key not in ("invalid", "source")}
        changed |= (
            {"invalid": bad} if (bad := bound(Invalid, formdata=form, prefix=INVALID).payload()) else {}
        )
        changed |= {"source": source} if (source := read_source(form)) else {}
    for key in HEAD:
        text = form.get(key, "").strip()
        if key in form and (text or key in ("name", "description")):
            changed[key] = controls.integer(text) if key == "quantity" else text
        elif key in form:
            changed.pop(key, None)
    if form.get("row"):
        key, field_id, drawn = (*form["row"].split(" "), "", "")[:3]

        def read_it(one: Mapping[str, Any]) -> list[Mapping[str, Any]]:
            found = read_field(form, key, drawn, one)
            return [one if same(one, found) else found]  # what is the same stays as it was written

        changed["fields"] = replaced(changed.get("fields"), field_id, read_it)
    return changed


def read_field(form: Values, key: str, drawn: str, field: Mapping[str, Any]) -> Field:
    """Return a field with what its form says. `drawn` is the type whose options the form shows."""
    found: Field = {name: value for name, value in field.items() if name not in COMMON_NAMES}
    found |= {"name": form.get(f"{key}.name", "").strip(), "type": form.get(f"{key}.type", "").strip()}
    options = dict(field["options"]) if isinstance(field.get("options"), Mapping) else {}
    kind = find(drawn)
    if kind is not None:
        shown = shown_options(kind, options)
        read = bound(kind.Options, formdata=form, prefix=f"{key}.o.", names=shown).payload()
        options = {name: value for name, value in options.items() if name not in keys(kind.Options)} | read
        taken = shown_options(kind, options)  # the parameters of a distribution go when another one is chosen
        options = {
            name: value for name, value in options.items() if name not in keys(kind.Options) or name in taken
        }
    now = find(found["type"])
    if now is not None and now is not kind:
        options = {name: value for name, value in options.items() if name in (*keys(now.Options), "fields")}
    if now is not None:
        options = {name: value for name, value in options.items() if name != "fields" or holds_fields(now)}
        if holds_fields(now):
            options.setdefault("fields", [])
    common = bound(CommonKeys, formdata=form, prefix=f"{key}.", names=COMMON_NAMES).payload()
    if common.get("masking") == {"consistent": False}:
        del common["masking"]  # an unchecked box, where masking is not possible
    return found | {"options": options} | _unique(common, field.get("unique"))


def _unique(common: dict[str, Any], before: Any) -> dict[str, Any]:
    """Return the checkbox and the label next to it as one value: a field that is unique in combination with others has
    both. Clearing the checkbox also clears the label, unless another label was entered."""
    word = common.pop("unique_together", None)
    if isinstance(word, str) and word and (common.get("unique") or word != before):
        common["unique"] = word
    return common


def field_id(draft: Mapping[str, Any], key: str) -> str:
    """Return the id of the field with this key; the text itself if there is none."""
    return next((one.id for one in places(draft.get("fields")) if one.key == key), key)


def key_for(draft: Mapping[str, Any], field_id: str) -> str:
    """Return the key of the field with this id; "" if there is none."""
    return next((one.key for one in places(draft.get("fields")) if one.id == field_id), "")


# --- Buttons ----------------------------------------------------------------------------------------------


def pasted(text: str) -> list[Field]:
    """New fields from a list of names, each `name` or `name: type`."""
    found = []
    for line in re.split(r"[\n,;\t]+", text)[: limits.MAX_FIELDS]:
        name, _, kind = (part.strip().strip('"`') for part in line.partition(":"))
        if name:
            made = blank(new_id, name[: limits.MAX_NAME_CHARS])
            found.append({**made, "type": kind or made["type"]})
    return found


def edit(
    fields: list[Field], verb: str, field_id: str, more: str = "", new_id: NewId = new_id
) -> tuple[list[Field], str]:
    """Return the fields after one press of a button, and the id of the field that the user then works on.

    Verbs: `add` (a field called `more`), `insert` and `inside` (an empty one, after the field or in it), `remove`,
    `left`, `right`, `first`, `last`, `duplicate`, `type` (`more` is the name of a type, with options as JSON after it).
    """
    fields = json.loads(json.dumps(fields, default=str))
    if verb == "add":
        made = blank(new_id, more)
        return [*fields, made], made["id"]
    siblings = _siblings(fields, field_id)
    if siblings is None:
        return fields, field_id
    at = next(i for i, one in enumerate(siblings) if one["id"] == field_id)
    to = {"left": at - 1, "right": at + 1, "first": 0, "last": len(siblings) - 1}.get(verb)
    if verb == "remove":
        del siblings[at]
        return fields, siblings[min(at, len(siblings) - 1)]["id"] if siblings else ""
    if to is not None:
        siblings.insert(max(0, to), siblings.pop(at))
    elif verb == "duplicate":
        made = copy_of(siblings[at], new_id, {str(one.get("name")) for one in siblings})
        siblings.insert(at + 1, made)
        return fields, made["id"]
    elif verb == "insert":
        siblings.insert(at + 1, made := blank(new_id))
        return fields, made["id"]
    elif verb == "inside":
        siblings[at].setdefault("options", {}).setdefault("fields", []).append(made := blank(new_id))
        return fields, made["id"]
    elif verb == "type":
        siblings[at] = _retyped(siblings[at], more)
    return fields, field_id


def _retyped(given: Field, word: str) -> Field:
    word, brace, more = word.partition(" {")  # a suggestion brings its options
    kind = find(word)
    if kind is None:
        return {**given, "type": word}
    known = {"fields", *keys(kind.Options)} if holds_fields(kind) else set(keys(kind.Options))
    options = {name: value for name, value in (given.get("options") or {}).items() if name in known}
    if brace:
        options = {name: value for name, value in _json(f"{{{more}").items() if name in known}
    if holds_fields(kind):
        options.setdefault("fields", [])
    return {**given, "type": kind.name, "options": options or dict(guess.STARTERS.get(kind.name, {}))}


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def blank(new_id: NewId, name: str = "") -> Field:
    """A new field; its type is guessed from its name."""
    kind = guess.type_of(name)
    return {"id": new_id(), "name": name, "type": kind, "options": dict(guess.STARTERS.get(kind, {}))}


def copy_of(given: Mapping[str, Any], new_id: NewId, taken: set[str]) -> Field:
    """Copy a field, including its nested fields, with a new id and an unused name."""
    base, number = str(given["name"]) or "field", 2
    while f"{base}_{number}" in taken:
        number += 1
    return {**_fresh(given, new_id), "name": f"{base}_{number}"}


def _fresh(given: Mapping[str, Any], new_id: NewId) -> Field:
    options = dict(given.get("options") or {})
    if isinstance(options.get("fields"), list):
        options["fields"] = [_fresh(inner, new_id) for inner in options["fields"]]
    if isinstance(options.get(ELEMENT), Mapping):
        options[ELEMENT] = _fresh(options[ELEMENT], new_id)
    return {**given, "id": new_id(), "options": options}


def _siblings(fields: list[Field], field_id: str) -> list[Field] | None:
    if any(one.get("id") == field_id for one in fields if isinstance(one, dict)):
        return fields
    for one in fields:
        inner = one.get("options", {}).get("fields") if isinstance(one, dict) else None
        found = _siblings(inner, field_id) if isinstance(inner, list) else None
        if found is not None:
            return found
    return None


def replaced(fields: Any, field_id: str, change: Any) -> list[Any]:
    """Return the fields with one of them, on any level, replaced by what `change` returns for it."""
    found: list[Any] = []
    for one in fields if isinstance(fields, list) else ():
        options = one.get("options") if isinstance(one, Mapping) else None
        if isinstance(one, Mapping) and one.get("id") == field_id:
            found += change(one)
        elif isinstance(options, Mapping) and isinstance(options.get("fields"), list):
            found.append(
                {**one, "options": {**options, "fields": replaced(options["fields"], field_id, change)}}
            )
        else:
            found.append(one)
    return found


def without(fields: Sequence[Any], field_ids: set[str]) -> list[Any]:
    """Return the fields without those with these ids, on all levels."""
    found = list(fields)
    for one in field_ids:
        found = replaced(found, one, lambda _: [])
    return found


# --- The source of the rows ----------------------------------------------------------------------------------

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
