"""What the families of tools share: arguments with their words, lists, and choosing keys of an object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from rowsmith_mcp.bounds import MAX_PAGE, PAGE
from rowsmith_mcp.box import Work
from rowsmith_mcp.shapes import Listing

Query = Annotated[str, Field(description="Part of a name; empty for all.")]
Cursor = Annotated[str, Field(description="`next_cursor` of the page before; empty for the first.")]
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE, description="How many.")]
Seed = Annotated[
    str, Field(description="The same seed makes the same rows. Empty: a new one, told in the answer.")
]
Locale = Annotated[str, Field(description="Such as de_DE; empty for the template's own.")]
Overrides = Annotated[
    dict[str, Any] | None, Field(description="Values that fields are to have in every row, by field name.")
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
        description="Each {name, type, options?, percent_blank? (0-100), unique?, hidden?, group?, formula?, prefix?, "
        "suffix?, text_case?, locale?, sensitive?, description?}. `type` is a name of list_field_types, `options` fit "
        "the schema of get_field_type. Fields of one `group` fit together (first name, last name, e-mail)."
    ),
]

_ID = re.compile(r"[a-z]{2,5}_[0-9A-Za-z]{26}")


def given(**values: Any) -> dict[str, Any]:
    """What was said: without None and empty texts, lists and objects."""
    return {name: value for name, value in values.items() if value is not None and value not in ("", {}, [])}


def some(item: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """These keys of an object, those that it has."""
    return {name: item[name] for name in names if name in item}


def lean(item: Mapping[str, Any]) -> dict[str, Any]:
    """An object without keys that say nothing: null, an empty text or list."""
    return {name: value for name, value in item.items() if value is not None and value not in ("", [], {})}


def known(value: str, prefix: str) -> str:
    """An id that goes into a path. ToolError where it is none."""
    if not _ID.fullmatch(value) or not value.startswith(f"{prefix}_"):
        raise ToolError(f"{value!r} is no id of that kind; it looks like {prefix}_ and 26 characters.")
    return value


def listing(
    work: Work, path: str, names: Iterable[str], *, cursor: str = "", limit: int = PAGE, **query: object
) -> Listing:
    """A page of a list, of each object these keys."""
    asked = {**given(**query), "limit": limit, **given(cursor=cursor)}
    page = work.api.request("GET", path, query=asked)
    chosen = list(names)
    return {
        "items": [some(one, chosen) for one in page["items"]],
        "next_cursor": page.get("next_cursor"),
        "total": page.get("total"),
    }
