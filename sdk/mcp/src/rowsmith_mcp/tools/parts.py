"""Shared parts of the tools: common arguments with descriptions, lists, and selecting keys of an object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from rowsmith_mcp.limits import MAX_PAGE, PAGE
from rowsmith_mcp.registry import Work
from rowsmith_mcp.shapes import Listing

Query = Annotated[str, Field(description="Part of a name; empty for all.")]
Cursor = Annotated[str, Field(description="`next_cursor` of the previous page; empty for the first page.")]
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE, description="Number of objects.")]
Seed = Annotated[
    str, Field(
        description="The same seed produces the same rows. Empty: a new seed, which the result contains.")
]
Locale = Annotated[str, Field(description="Locale such as de_DE; empty for the template's locale.")]
Overrides = Annotated[
    dict[str, Any] | None, Field(description="Fixed values for all rows, by field name.")
]
TemplateId = Annotated[str, Field(description="tpl_...")]
DatasetId = Annotated[str, Field(description="dst_...")]
ConnectionId = Annotated[str, Field(description="con_...")]
ScenarioId = Annotated[str, Field(description="scn_...")]
RunId = Annotated[str, Field(description="run_...")]
PushId = Annotated[str, Field(description="psh_...")]
FieldList = Annotated[
    list[dict[str, Any]],
    Field(
        description="List of {name, type, options?, percent_blank? (0-100), unique?, hidden?, group?, "
                    "formula?, prefix?, suffix?, text_case?, locale?, sensitive?, description?}. "
                    "`type` is a name from list_field_types, `options` must match the schema from "
                    "get_field_type. Fields in the same `group` are consistent (first name, last name, "
                    "e-mail)."
    ),
]

_ID = re.compile(r"[a-z]{2,5}_[0-9A-Za-z]{26}")


def given(**values: Any) -> dict[str, Any]:
    """Return the given arguments without None and empty texts, lists and objects."""
    return {name: value for name, value in values.items() if value is not None and value not in ("", {}, [])}


def some(item: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return these keys of an object, if it has them."""
    return {name: item[name] for name in names if name in item}


def lean(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without null values, empty texts and empty lists."""
    return {name: value for name, value in item.items() if value is not None and value not in ("", [], {})}


def known(value: str, prefix: str) -> str:
    """Return an ID for a path. Raises ToolError if it is invalid."""
    if not _ID.fullmatch(value) or not value.startswith(f"{prefix}_"):
        raise ToolError(f"{value!r} is not a valid ID. Expected {prefix}_ and 26 characters.")
    return value


def listing(
    work: Work, path: str, names: Iterable[str], *, cursor: str = "", limit: int = PAGE, **query: object
) -> Listing:
    """Return a page of a list with these keys of each object."""
    request = {**given(**query), "limit": limit, **given(cursor=cursor)}
    page = work.api.request("GET", path, query=request)
    chosen = list(names)
    return {
        "items": [some(item, chosen) for item in page["items"]],
        "next_cursor": page.get("next_cursor"),
        "total": page.get("total"),
    }
