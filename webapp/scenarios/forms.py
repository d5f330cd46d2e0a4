"""What the forms of a scenario hold: its program, how it is run, the parameters of a run.

Variables are rows of a name and a value; a row without either is none. Browsers send line breaks as CR LF.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from webapp.errors import Fault

Rows = list[dict[str, str]]
PROGRAM: Final = ("name", "code")
BLANK_ROWS: Final = 2
"""Empty rows after the filled ones, so that there is room without a script."""


def text(value: Any) -> str:
    """One text as it was typed, its line breaks as programs have them."""
    return value.replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else ""


def program(values: Mapping[str, Any]) -> dict[str, str]:
    """Name and code, as far as the form has them."""
    return {key: text(values[key]) for key in PROGRAM if isinstance(values.get(key), str)}


def rows(values: Mapping[str, Any], key: str) -> Rows:
    """The rows of some variables as they were typed: `[{name, value}]`."""
    found = values.get(key)
    given = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    made = [{"name": text(one.get("name")).strip(), "value": text(one.get("value"))} for one in given]
    return [one for one in made if one["name"] or one["value"]]


def rows_of(variables: Mapping[str, Any]) -> Rows:
    """Variables as rows."""
    return [{"name": name, "value": str(value)} for name, value in variables.items()]


def padded(given: Rows) -> Rows:
    """Rows with empty ones after them."""
    return [*given, *({"name": "", "value": ""} for _ in range(BLANK_ROWS))]


def variables(given: Rows, path: str) -> tuple[dict[str, str], list[Fault]]:
    """Rows as variables, and what is wrong with the rows themselves: a value without a name, a name twice."""
    made: dict[str, str] = {}
    faults = []
    for one in given:
        if not one["name"]:
            faults.append(Fault(path, "missing", f'The value "{one["value"][:40]}" has no name.'))
        elif one["name"] in made:
            faults.append(
                Fault(f"{path}.{one['name'][:60]}", "duplicate", f"{one['name'][:60]} stands here twice.")
            )
        else:
            made[one["name"]] = one["value"]
    return made, faults


def settings(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """How a scenario is run, as the service takes it, from the form of its settings; and the faults of its rows."""
    env, faults = variables(rows(values, "env"), "env")
    params, more = variables(rows(values, "params"), "schedule.params")
    made: dict[str, Any] = {
        "description": text(values.get("description")),
        "timeout_seconds": values.get("timeout_seconds", ""),
        "network": values.get("network", "full"),
        "env": env,
        "secrets": _names(values.get("secrets")),
        "writable_secrets": _names(values.get("writable_secrets")),
        "schedule": None,
    }
    cron = text(values.get("cron")).strip()
    if cron:
        made["schedule"] = {
            "cron": cron,
            "timezone": text(values.get("timezone")).strip() or "UTC",
            "enabled": values.get("enabled") == "yes",
            "params": params,
        }
    return made, faults + more


def _names(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    return [one for one in value if isinstance(one, str) and one] if isinstance(value, Sequence) else []
