"""Resources: templates and the catalogue, for clients that let users attach them to a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp_types import Resource

from rowsmith import error
from rowsmith_mcp.callers import ToolContext
from rowsmith_mcp.limits import MAX_PAGE
from rowsmith_mcp.registry import Work, guarded, result_of
from rowsmith_mcp.tools import catalogue, templates
from rowsmith_mcp.truncation import compact

JSON = "application/json"


def add(server: MCPServer[Any], context: ToolContext) -> None:
    """Register the resources."""

    @server.resource(
        "rowsmith://field-types",
        name="field-types",
        title="Field types",
        description="The catalogue: every field type by category.",
        mime_type=JSON,
    )
    async def field_types() -> str:
        return await _read(context, _catalogue)

    @server.resource(
        "rowsmith://field-types/{name}",
        name="field-type",
        title="A field type",
        description="One field type with the schema of its options.",
        mime_type=JSON,
    )
    async def field_type(name: str) -> str:
        return await _read(context, lambda work: catalogue.get_field_type(work, name))

    @server.resource(
        "rowsmith://templates/{template_id}",
        name="template",
        title="A template",
        description="A template with its fields.",
        mime_type=JSON,
    )
    async def template(template_id: str) -> str:
        return await _read(context, lambda work: templates.get_template(work, template_id))


async def listed(context: ToolContext) -> list[Resource]:
    """The newest templates of the caller's project as resources."""

    def work() -> list[Resource]:
        with context.api() as api:
            found = api.request("GET", "/templates", query={"limit": MAX_PAGE, "sort": "-updated"})["items"]
        return [
            Resource(
                uri=f"rowsmith://templates/{item['id']}",
                name=item["id"],
                title=item["name"],
                description=item["description"][:200] or None,
                mime_type=JSON,
            )
            for item in found
        ]

    result: list[Resource] = await anyio.to_thread.run_sync(guarded(work, context), abandon_on_cancel=True)
    return result


def _catalogue(work: Work) -> dict[str, Any]:
    """Return the names of all types by category. The whole catalogue would exceed the size of a result."""
    by_category: dict[str, list[str]] = {}
    for item in work.api.fields.list():
        by_category.setdefault(item["category"], []).append(item["name"])
    return {"categories": by_category, "one": "See rowsmith://field-types/{name} for its options"}


async def _read(context: ToolContext, read: Callable[[Work], Any]) -> str:
    def work() -> str:
        with context.api() as api:
            try:
                return compact(result_of(read(Work(api, context)), context.caller.key))
            except error.NotFound as failure:
                raise ResourceNotFoundError(failure.message) from None

    try:
        result: str = await anyio.to_thread.run_sync(guarded(work, context), abandon_on_cancel=True)
    except ToolError as failure:
        raise ResourceError(str(failure)) from None
    return result
