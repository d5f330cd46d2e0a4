"""The repair form of a push: convert the corrections that a user enters for failed rows to a retry request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from webapp.pushes.models import Push

LINES: Final = 3  # chosen: columns that can be repaired in one step
WAYS: Final = (
    ("value", "a fixed value"),
    ("formula", "a formula"),
    ("field", "another field"),
    ("nothing", "nothing"),
)


def body(push: Push, given: Mapping[str, Any]) -> dict[str, Any]:
    """The form `{states, table, r: [{column, how, to}], confirm}` as the body of `POST /pushes/{id}/retry`.

    A fixed value goes to the field of its column where rows of a template are sent, else it is a formula.
    """
    states, confirm, table = (
        given.get("states") or [],
        given.get("confirm") or None,
        given.get("table") or None,
    )
    asked: dict[str, Any] = {
        "states": [states] if isinstance(states, str) else states,
        "confirm": confirm,
        "mapping": {},
        "computed": {},
        "overrides": {},
    }
    lines = given.get("r")
    changed = (
        [one for one in lines if isinstance(one, dict) and one.get("column")]
        if isinstance(lines, list)
        else []
    )
    if table and (changed or len(push.tables) > 1):
        asked["table"] = table
    names = {one["name"]: one for one in push.tables}
    columns = names.get(str(table), push.tables[0])["columns"]
    fields = {one["column"]: one.get("field") for one in columns}
    for one in changed:
        column, how, to = (str(one.get(key, "")) for key in ("column", "how", "to"))
        field = fields.get(column)
        if how == "value" and field and push.template_id:
            asked["overrides"][field] = _value(to)
        elif how == "value":
            asked["computed"][column] = orjson.dumps(_value(to)).decode()
        elif how == "formula":
            asked["computed"][column] = to.strip() or "null"
        elif how == "field":
            asked["mapping"][to] = column
        elif field:
            asked["mapping"][field] = None
    return {key: value for key, value in asked.items() if value}


def _value(text: str) -> Any:
    """Convert user input: a number, true, false, null or a quoted text is parsed as JSON; anything else is a text."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return text if isinstance(found, dict | list) else found


def fields(push: Mapping[str, Any]) -> list[str]:
    """Fields that a column may get instead, as far as the push names them."""
    named = {one["field"]: None for table in push["tables"] for one in table["columns"] if one["field"]}
    return list({**named, **dict.fromkeys(push["request"].get("mapping") or {})})
