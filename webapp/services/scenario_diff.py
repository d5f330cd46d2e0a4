"""What changed between two versions of a scenario."""

from __future__ import annotations

import difflib
from typing import Any, Final

from webapp import limits
from webapp.models import Scenario
from webapp.services import scenarios

_HEAD: Final = ("name", "description")
_CONTEXT: Final = 3


def between(scenario: Scenario, old: int, new: int) -> dict[str, Any]:
    """The differences from version `old` to `new`.

    `scenario`: attributes that differ, `{key: {from, to}}`. `code`: the difference of the two texts in the unified
    form that `diff -u` and git have, "" where they are equal. `packages`: `{name: {from, to}}` of those whose
    version differs, null where one is not there. Error: not_found.
    """
    before, after = (scenarios.show(scenario, number) for number in (old, new))
    return {
        "scenario_id": scenario.id,
        "from": old,
        "to": new,
        "scenario": _changes({key: before[key] for key in _HEAD}, {key: after[key] for key in _HEAD}),
        "requirements": {
            "added": [one for one in after["requirements"] if one not in before["requirements"]],
            "removed": [one for one in before["requirements"] if one not in after["requirements"]],
        },
        "packages": _changes(_packages(before), _packages(after)),
        "code": unified(before["code"], after["code"], f"v{old}/main.py", f"v{new}/main.py"),
    }


def _packages(version: dict[str, Any]) -> dict[str, str]:
    return version["lock"]["packages"] if version["lock"] else {}


def _changes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        key: {"from": old.get(key), "to": new.get(key)}
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    }


def unified(old: str, new: str, old_name: str, new_name: str) -> str:
    """Two texts' difference in unified form. What has changed is looked through line by line up to DIFF_LINES; a longer
    change is one piece that takes another's place."""
    before, after = old.split("\n"), new.split("\n")
    if before == after:
        return ""
    front = _alike(before, after)
    back = _alike(before[front:][::-1], after[front:][::-1])
    changed = (before[front : len(before) - back], after[front : len(after) - back])
    if max(map(len, changed)) <= limits.DIFF_LINES:
        pieces = list(difflib.unified_diff(before, after, old_name, new_name, n=_CONTEXT, lineterm=""))
        return "\n".join(pieces) + "\n"
    lead, tail = before[max(0, front - _CONTEXT) : front], before[len(before) - back :][:_CONTEXT]
    first, around = front - len(lead) + 1, len(lead) + len(tail)
    lines = [
        f"--- {old_name}",
        f"+++ {new_name}",
        f"@@ -{first},{len(changed[0]) + around} +{first},{len(changed[1]) + around} @@",
        *(f" {line}" for line in lead),
        *(f"-{line}" for line in changed[0]),
        *(f"+{line}" for line in changed[1]),
        *(f" {line}" for line in tail),
    ]
    return "\n".join(lines) + "\n"


def _alike(one: list[str], other: list[str]) -> int:
    """How many first lines two lists have in common."""
    pairs = zip(one, other, strict=False)
    return next(
        (place for place, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other))
    )
