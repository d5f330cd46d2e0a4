"""Rows: a preview of three, or the first of many."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, cast

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from rowsmith_mcp.limits import MAX_ROWS
from rowsmith_mcp.registry import Registry, Work
from rowsmith_mcp.rest import command
from rowsmith_mcp.shapes import Generated, Preview
from rowsmith_mcp.tools.parts import Locale, Overrides, Seed, given
from rowsmith_mcp.truncation import fit_to_limit, without_keys

registry = Registry()
Which = Annotated[str, Field(description="tpl_...; leave empty if `fields` is given.")]
Draft = Annotated[
    list[dict[str, Any]] | None,
    Field(description="Fields of an unsaved draft, in the format of create_template."),
]
ROOM = 64
"""Bytes by which counts can grow after the rows were fitted."""


@registry.reads("Preview rows")
def preview_rows(
    work: Work,
    template_id: Which = "",
    fields: Draft = None,
    seed: Seed = "",
    overrides: Overrides = None,
    locale: Locale = "",
) -> Preview:
    """Return the first three rows of a template or a draft. Use this to check a template. The rows do not
    count toward the quota.

    With both `template_id` and `fields`: the template with these fields instead of its own.
    """
    request = given(seed=seed, overrides=overrides, locale=locale)
    if template_id:
        found = work.api.templates.preview(template_id, **request, **given(fields=fields))
    elif fields:
        found = work.api.templates.preview({"name": "Draft", "fields": fields}, **request)
    else:
        raise ToolError("Pass template_id, or the fields of a draft.")
    return {"rows": found["rows"], "seed": found["seed"], "warnings": found["warnings"]}


@registry.reads("Generate rows")
def generate_rows(
    work: Work,
    template_id: Which = "",
    fields: Draft = None,
    count: Annotated[
        int, Field(ge=1, description="Number of rows; the result contains at most the first 50.")
    ] = 10,
    seed: Seed = "",
    overrides: Overrides = None,
    locale: Locale = "",
    format: Annotated[
        Literal["csv", "json", "ndjson", "sql", "xlsx", "parquet"],
        Field(description="File format for `rest`."),
    ] = "csv",
) -> Generated:
    """Return the first rows of a generation, its schema and seed, and in `rest` how the user gets all rows as
    a file.

    Only the rows in the result are generated and counted. To load rows into a database or API, use plan_push.
    """
    shown_count = min(count, MAX_ROWS)
    request = {**given(seed=seed, overrides=overrides, locale=locale), "count": shown_count, "format": "json"}
    if template_id:
        saved: Any = work.api.templates.get(template_id)
        schema = [{"name": field["name"], "type": field["type"]} for field in saved["fields"] if not field["hidden"]]
        result = work.api.templates.stream(template_id, **request)
    elif fields:
        schema = [some_field(field) for field in fields if not field.get("hidden")]
        result = work.api.templates.stream({"name": "Draft", "fields": fields}, **request)
    else:
        raise ToolError("Pass template_id, or the fields of a draft.")
    with result:
        rows = json.loads(result.read())
    pins = given(seed=result.seed, now=result.now, overrides=overrides, locale=locale)
    if template_id:
        rest = command(
            work.context.url, template_id, {"count": count, "format": format, **pins}, work.context.caller.project
        )
    else:
        rest = (
            "Save the draft with create_template; then generate_rows with its ID says how to get all rows."
        )
    answer = {
        "schema": schema, "rows": rows, "shown": len(rows), "count": count, "truncated": False, "seed": result.seed,
        "template_version": result.version, "rest": rest,
    }  # fmt: skip
    cut: Any = fit_to_limit(without_keys({**answer, "notes": ["x" * ROOM]}, work.context.caller.key))
    cut["notes"] = [note for note in cut["notes"] if not note.startswith("xxx")]
    shown = len(cut["rows"])
    return cast(Generated, {**cut, "shown": shown, "truncated": shown < count})


def some_field(field: dict[str, Any]) -> dict[str, Any]:
    """Return name and type of a draft's field."""
    return {"name": field.get("name"), "type": field.get("type")}
