"""Read and fill the forms of scenarios: program, settings and run parameters.

Variables are rows with a name and a value; empty rows are ignored. Browsers send line breaks as CR LF.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from wtforms.form import BaseForm

from webapp.errors import Fault
from webapp.web.forms.controls import Line, Text

Rows = list[dict[str, str]]
PROGRAM: Final = ("name", "code")
BLANK_ROWS: Final = 2
"""Empty rows appended for use without JavaScript."""


def normalize_line_breaks(value: Any) -> str:
    """Return a text field with line breaks normalized to LF."""
    return value.replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else ""


def parse_program(values: Mapping[str, Any]) -> dict[str, str]:
    """Return name and code, if they are in the form."""
    return {key: normalize_line_breaks(values[key]) for key in PROGRAM if isinstance(values.get(key), str)}


def submitted_rows(values: Mapping[str, Any], key: str) -> Rows:
    """Return the rows of variables as entered: `[{name, value}]`."""
    found = values.get(key)
    entries = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    variables = [
        {
            "name": normalize_line_breaks(entry.get("name")).strip(),
            "value": normalize_line_breaks(entry.get("value")),
        }
        for entry in entries
    ]
    return [variable for variable in variables if variable["name"] or variable["value"]]


def variables_to_rows(variables: Mapping[str, Any]) -> Rows:
    """Convert variables to rows."""
    return [{"name": name, "value": str(value)} for name, value in variables.items()]


def pad_rows(entries: Rows) -> Rows:
    """Append empty rows."""
    return [*entries, *({"name": "", "value": ""} for _ in range(BLANK_ROWS))]


def variable_controls(
    entries: Rows, key: str, label: str, errors: Mapping[str, str], path: str
) -> list[BaseForm]:
    """Return rows of variables as form controls, `name` and `value` for each, with errors at the name. `errors` are
    messages by path, of `variables` and of the service."""
    rows = []
    for index, entry in enumerate(entries):
        common = {"spellcheck": "false", "class": "mono"}
        name = {**common, "placeholder": "NAME", "maxlength": 100, "autocapitalize": "off"}
        value = {**common, "rows": 1, **({} if entry["name"] else {"placeholder": "value"})}
        fields: dict[str, Any] = {
            "name": Line(f"Name of {label} {index + 1}", render_kw=name),
            "value": Text(f"Value of {label} {index + 1}", render_kw=value),
        }
        row = BaseForm(fields, prefix=f"{key}[{index}].")
        row.process(data=entry)
        found = errors.get(f"{path}[{index}]") or (
            errors.get(f"{path}.{entry['name']}") if entry["name"] else None
        )
        row["name"].errors = [found] if found else []
        rows.append(row)
    return rows


def rows_to_variables(entries: Rows, path: str) -> tuple[dict[str, str], list[Fault]]:
    """Convert rows to variables, and return the faults of the rows: a value without a name, or a duplicate name."""
    values: dict[str, str] = {}
    faults = []
    for index, entry in enumerate(entries):
        if not entry["name"]:
            faults.append(
                Fault(f"{path}[{index}]", "missing", f'The value "{entry["value"][:40]}" has no name.')
            )
        elif entry["name"] in values:
            faults.append(
                Fault(f"{path}.{entry['name'][:60]}", "duplicate", f"{entry['name'][:60]} is set twice.")
            )
        else:
            values[entry["name"]] = entry["value"]
    return values, faults


def parse_settings(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """Return the settings in the format of the service, and the faults of the rows."""
    env, faults = rows_to_variables(submitted_rows(values, "env"), "env")
    params, params_faults = rows_to_variables(submitted_rows(values, "params"), "schedule.params")
    result: dict[str, Any] = {
        "description": normalize_line_breaks(values.get("description")),
        "timeout_seconds": values.get("timeout_seconds", ""),
        "network": values.get("network", "full"),
        "env": env,
        "secrets": _to_list(values.get("secrets")),
        "writable_secrets": _to_list(values.get("writable_secrets")),
        "schedule": None,
    }
    cron = normalize_line_breaks(values.get("cron")).strip()
    if cron:
        result["schedule"] = {
            "cron": cron,
            "timezone": normalize_line_breaks(values.get("timezone")).strip() or "UTC",
            "enabled": values.get("enabled") == "yes",
            "params": params,
        }
    return result, faults + params_faults


def _to_list(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    return [item for item in value if isinstance(item, str) and item] if isinstance(value, Sequence) else []
