"""The changes that a file would make to a template, field by field, in the format of the service's diffs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from rowsmith.cli.console import clean
from rowsmith.cli.template_files import BODY, COMMON

Field = Mapping[str, Any]
Same = Callable[[str, str], bool]
"""Return whether two names refer to the same field type."""
_KEPT: Final = frozenset({"group"})
"""Keys that keep their current value if a file does not contain them."""


def compare(old: Mapping[str, Any], new: Mapping[str, Any], same: Same) -> dict[str, Any]:
    """Return the changes from a template to the body of a file: `{template: {key: {from, to}}, fields:
    {added, removed, changed, moved}}`. Template keys that the file does not contain stay unchanged."""
    head = {}
    for key in BODY:
        if key != "fields" and key in new and not _equal(key, old.get(key), new[key]):
            head[key] = {"from": old.get(key), "to": new[key]}
    found: dict[str, list[dict[str, Any]]] = {"added": [], "removed": [], "changed": [], "moved": []}
    _level(old["fields"], new["fields"], "", found, same)
    return {"template": head, "fields": found}


def any_of(changes: Mapping[str, Any]) -> bool:
    """Return whether there are any changes."""
    return bool(changes["template"]) or any(changes["fields"].values())


def _level(
    old: Sequence[Field],
    new: Sequence[Field],
    prefix: str,
    found: dict[str, list[dict[str, Any]]],
    same: Same,
) -> None:
    sent = {field.get("id") for field in new}
    by_id = {field["id"]: field for field in old}
    by_name = {field["name"]: field for field in old if field["id"] not in sent}
    pairs = [
        (by_id.get(field["id"]) if field.get("id") else by_name.get(field.get("name", "")), field)
        for field in new
    ]
    kept = {before["id"] for before, _ in pairs if before is not None}
    for field in old:
        if field["id"] not in kept:
            found["removed"].append({"id": field["id"], "path": prefix + field["name"], "field": dict(field)})
    places = {key: place for place, key in enumerate(field["id"] for field in old if field["id"] in kept)}
    place = 0
    for before, after in pairs:
        path = f"{prefix}{after.get('name', '?')}"
        if before is None:
            found["added"].append({"id": after.get("id"), "path": path, "field": dict(after)})
            continue
        if places[before["id"]] != place:
            moved = {"id": before["id"], "path": path, "from": places[before["id"]], "to": place}
            found["moved"].append(moved)
        place += 1
        changed = _changes(before, after, same)
        if changed:
            told = {"id": before["id"], "path": path, "name": after.get("name"), "changes": changed}
            found["changed"].append(told)
        _level(_inner(before), _inner(after), f"{path}.", found, same)


def _inner(field: Field) -> Sequence[Field]:
    found = (field.get("options") or {}).get("fields")
    return found if isinstance(found, list) else ()


def _changes(old: Field, new: Field, same: Same) -> dict[str, dict[str, Any]]:
    found = {}
    before, after = _plain(old), _plain(new)
    for key in ("name", "type", *COMMON):
        ours, theirs = after.get(key), before.get(key)
        if key == "type" and isinstance(ours, str) and same(str(theirs), ours):
            continue
        if key in _KEPT and not ours:
            continue
        if ours != theirs:
            found[key] = {"from": theirs, "to": ours}
    had, has = before["options"], after["options"]
    for key in dict.fromkeys([*had, *has]):
        if key != "fields" and had.get(key) != has.get(key):
            found[f"options.{key}"] = {"from": had.get(key), "to": has.get(key)}
    return found


def _plain(field: Field) -> dict[str, Any]:
    """Return a field with every common key filled in, including keys given among its options."""
    options = dict(field.get("options") or {})
    up = {key: options.pop(key) for key in [*options] if key in COMMON and key not in field}
    return {**COMMON, **field, **up, "options": options}


def normalize_type(name: str) -> str:
    """Reduce a type name to letters and digits, as the service does."""
    return re.sub(r"[\W_]+", "", name).casefold()


def _equal(key: str, old: Any, new: Any) -> bool:
    if key == "anchor" and isinstance(old, str) and isinstance(new, str):
        try:
            return _moment(old) == _moment(new)
        except ValueError:
            return False
    return bool(old == new)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))


def lines(changes: Mapping[str, Any]) -> list[str]:
    """Format changes as text, one per line: + added, - removed, ~ changed, > moved."""
    told = [
        f"~ {key}: {_display_text(item['from'])} -> {_display_text(item['to'])}"
        for key, item in changes["template"].items()
    ]
    fields = changes["fields"]
    told += [f"+ field {item['path']} ({item['field'].get('type')})" for item in fields["added"]]
    told += [f"- field {item['path']} ({item['field'].get('type')})" for item in fields["removed"]]
    for item in fields["changed"]:
        told += [
            f"~ field {item['path']}.{key}: {_display_text(change['from'])} -> {_display_text(change['to'])}"
            for key, change in item["changes"].items()
        ]
    told += [f"> field {item['path']}: place {item['from'] + 1} -> {item['to'] + 1}" for item in fields["moved"]]
    return [clean(line) for line in told]


def _display_text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 120 else f"{text[:117]}..."
