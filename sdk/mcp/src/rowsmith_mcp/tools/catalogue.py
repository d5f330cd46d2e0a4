"""Field types, and the caller's permissions."""

from __future__ import annotations

import difflib
from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from rowsmith_mcp.limits import PAGE
from rowsmith_mcp.registry import Registry, Work
from rowsmith_mcp.shapes import Account, FieldType, Listing, Suggestions
from rowsmith_mcp.tools.parts import Cursor, Limit, given, listing, some

registry = Registry()
BRIEF = ("name", "label", "category", "description", "example")
WHOLE = (*BRIEF, "aliases", "options_schema", "capacity")
Words = Annotated[
    str, Field(description="Search terms such as `e-mail`, `price` or `postal code`; empty for all types.")
]


@registry.reads("Who am I")
def get_account(work: Work) -> Account:
    """Return the key's owner, its permissions (role and scopes; null scopes mean full access), and the
    limits."""
    me, usage = work.api.workspace.me(), work.api.workspace.usage()
    return {
        "user": me["user_name"],
        "role": me["role"],
        "scopes": me["scopes"],
        "workspace_id": me["workspace_id"],
        "project_id": me["project_id"],
        "plan": me["plan"],
        "rows_this_hour": {"limit": usage["rows"]["limit"], "used": usage["rows"]["used"]},
        "rows_per_generation": usage["rows_per_generation"],
    }


@registry.reads("Search field types")
def list_field_types(work: Work, q: Words = "", cursor: Cursor = "", limit: Limit = PAGE) -> Listing:
    """Search the field types of the catalogue, best match first: name, description, example. For options, use
    get_field_type."""
    return listing(work, "/field-types", BRIEF, q=q, cursor=cursor, limit=limit)


@registry.reads("One field type")
def get_field_type(
    work: Work, name: Annotated[str, Field(description="A type's name or alias, such as `email`.")]
) -> FieldType:
    """Return one field type with the JSON Schema of its options."""
    found: list[Any] = work.api.fields.list(q=name).page()["items"] if name.strip() else []
    same = [item for item in found if _plain(name) in {_plain(word) for word in (item["name"], *item["aliases"])}]
    exact = [item for item in same if _plain(item["name"]) == _plain(name)]
    if not same:
        raise ToolError(f"There is no field type {name!r}. {_near(work, name)}")
    return some((exact or same)[0], WHOLE)  # type: ignore[return-value]


@registry.reads("Suggest field types")
def suggest_field_types(
    work: Work,
    name: Annotated[str, Field(description="Name of the field or column.")],
    sample: Annotated[list[Any] | None, Field(description="Some of its values.")] = None,
) -> Suggestions:
    """Suggest types with options for a field with that name and such values."""
    found = work.api.fields.suggest(**given(name=name, sample=sample))
    return {"suggestions": [dict(suggestion) for suggestion in found["suggestions"]]}


def _near(work: Work, name: str) -> str:
    names = [item["name"] for item in work.api.fields.list()]
    near = difflib.get_close_matches(_plain(name), names, n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(near)}?" if near else "Search with list_field_types."


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
