"""Connections and endpoints: targets of rows. Their settings are not shown, because they contain secrets."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from rowsmith_mcp.limits import MAX_PAGE, PAGE
from rowsmith_mcp.registry import Registry, Work
from rowsmith_mcp.shapes import Listing, MadeTemplates, Metadata, Verified
from rowsmith_mcp.tools.parts import ConnectionId, Cursor, Limit, Query, given, lean, listing, some
from rowsmith_mcp.tools.templates import BRIEF as TEMPLATE

registry = Registry()
CONNECTION = ("id", "name", "type", "environment", "read_only")
ENDPOINT = ("id", "name", "method", "connection_id", "environment", "push_mode")


@registry.reads("List connections")
def list_connections(work: Work, q: Query = "", cursor: Cursor = "", limit: Limit = PAGE) -> Listing:
    """List databases and APIs that rows can be pushed to, and the result of their last test. Settings are not
    included."""
    page = work.api.request("GET", "/connections", query={**given(q=q, cursor=cursor), "limit": limit})
    items = [
        {**some(item, CONNECTION), "verified": (item["verification"] or {}).get("status", "never tested")}
        for item in page["items"]
    ]
    return {"items": items, "next_cursor": page["next_cursor"], "total": page["total"]}


@registry.reads("List endpoints")
def list_endpoints(work: Work, q: Query = "", cursor: Cursor = "", limit: Limit = PAGE) -> Listing:
    """List API requests that can send one row each. URLs, headers and bodies are not included."""
    return listing(work, "/endpoints", ENDPOINT, q=q, cursor=cursor, limit=limit)


@registry.reads("Test a connection", outside=True)
def verify_connection(work: Work, connection_id: ConnectionId) -> Verified:
    """Test a connection stage by stage, with a hint for failures."""
    found: Any = work.api.connections.verify(connection_id)
    return {"status": found["status"], "stages": found["stages"], "checked_at": found["checked_at"]}


@registry.reads("Tables of a connection", outside=True)
def get_connection_metadata(
    work: Work,
    connection_id: ConnectionId,
    q: Annotated[str, Field(description="Part of a table's name.")] = "",
    entity: Annotated[str, Field(description="One table or entity set, with its columns.")] = "",
    refresh: Annotated[bool, Field(description="Read the metadata from the target again.")] = False,
) -> Metadata:
    """List names of tables or entity sets; with `entity`, return one of them with columns, keys and
    relations."""
    found = work.api.connections.metadata(
        connection_id,
        refresh=refresh or None,
        entity=entity or None,
        q=q or None,
        limit=None if entity else MAX_PAGE,
    )
    entities = found["entities"]
    if not entity:
        entities = [
            {"name": item["name"], "fields": len(item["fields"]), "keys": item["keys"]} for item in entities
        ]
    else:
        entities = [{**lean(item), "fields": [lean(column) for column in item["fields"]]} for item in entities]
    return {"kind": found.get("kind"), "version": found.get("version"), "entities": entities}


@registry.makes("Templates from tables")
def create_templates_from_tables(
    work: Work,
    connection_id: ConnectionId,
    entities: Annotated[
        list[str], Field(description="Names from get_connection_metadata.", min_length=1)
    ],
    quantity: Annotated[int | None, Field(description="Default number of rows per template.", ge=1)] = None,
) -> MadeTemplates:
    """Create related templates from tables. The report says for each column whether every value will fit
    (green), needs a check (yellow), or needs a value (red)."""
    result: Any = work.api.connections.make_templates(
        connection_id, entities=entities, **given(quantity=quantity)
    )
    return {"templates": [some(template, TEMPLATE) for template in result["templates"]], "report": result["report"]}
