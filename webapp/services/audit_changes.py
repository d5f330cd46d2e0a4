"""What an entry of the trail tells of a change: the old and the new of what changed, short, and no secret.

`{key: {"from": old, "to": new}}` for plain values; of documents within (fields, headers, variables) only which of
their keys or names changed, since those may hold anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from webapp import limits

MASK: Final = "********"
_NAMES: Final = ("name", "template_id", "id")  # what a part of a list is called by, the first that it has
_SAME: Final = ("id", "template_id", "name")  # and what tells that it is the same one
_QUIET: Final = frozenset({"warnings", "updated_at", "version", "created_at"})


def between(
    before: Mapping[str, Any], after: Mapping[str, Any], sent: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What changed from one state to another, as they are shown: secrets are masked in both. `sent`: what was asked
    for; a secret of it that is none of the mask was replaced."""
    out: dict[str, Any] = {}
    for key in dict.fromkeys([*before, *after]):
        if key in _QUIET:
            continue
        old, new = before.get(key), after.get(key)
        given = sent.get(key) if sent is not None else None
        if old != new:
            out[key] = _told(key, old, new, given)
        elif secrets := _secrets(new, given):
            out[key] = {"from": MASK, "to": MASK} if secrets == [""] else {"changed": secrets}
        if len(out) >= limits.AUDIT_CHANGES:
            break
    return out


def _told(key: str, old: Any, new: Any, given: Any) -> Any:
    if key == "code":
        return {"lines": {"from": _lines(old), "to": _lines(new)}}
    if _is_parts(old) and _is_parts(new) and (old or new):
        return _parts(old or [], new or [])
    if isinstance(old, Mapping) or isinstance(new, Mapping):
        old, new = (one if isinstance(one, Mapping) else {} for one in (old, new))
        changed = {name for name in {*old, *new} if old.get(name) != new.get(name)} | set(
            _secrets(new, given)
        )
        return {"changed": sorted(str(name) for name in changed)[: limits.AUDIT_CHANGES]}
    return {"from": _short(old), "to": _short(new)}


def _secrets(shown: Any, given: Any, path: str = "") -> list[str]:
    """The paths of secrets that were sent anew, below a value; [""] where it is one itself."""
    if isinstance(shown, str) and MASK in shown:  # also within a connection string
        return [path] if given is not None and MASK not in str(given) else []
    if isinstance(shown, Mapping) and isinstance(given, Mapping):
        return [
            one
            for name in shown
            for one in _secrets(shown[name], given.get(name), f"{path}.{name}" if path else str(name))
        ]
    return []


def _lines(text: Any) -> int:
    return len(str(text or "").splitlines())


def _is_parts(value: Any) -> bool:
    return value is None or (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(one, Mapping) for one in value)
    )


def _parts(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Names of the fields (or tables) that were added, removed, changed, or only moved."""
    same = next((key for key in _SAME if all(key in one for one in [*old, *new])), None)
    if same is None:
        return {"changed": []}
    before, after = {one[same]: one for one in old}, {one[same]: one for one in new}
    told = {
        "added": [_name(after[key]) for key in after if key not in before],
        "removed": [_name(before[key]) for key in before if key not in after],
        "changed": [_name(after[key]) for key in after if key in before and after[key] != before[key]],
    }
    stay = [key for key in after if key in before]
    stayed = [key for key in before if key in after]
    told["moved"] = [_name(after[now]) for now, was in zip(stay, stayed, strict=True) if now != was]
    return {key: names[: limits.AUDIT_CHANGES] for key, names in told.items() if names}


def _name(part: Mapping[str, Any]) -> str:
    return _cut(str(next((part[key] for key in _NAMES if part.get(key)), "")))


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, list | tuple):
        return [_short(one) for one in value[: limits.AUDIT_CHANGES]]
    return value


def _cut(text: str) -> str:
    return text if len(text) <= limits.AUDIT_VALUE_CHARS else text[: limits.AUDIT_VALUE_CHARS - 1] + "…"
