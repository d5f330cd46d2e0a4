"""Connections and endpoints: where rows go. Their settings are not shown: secrets stand among them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from rowsmith_mcp.bounds import MAX_PAGE, PAGE
from rowsmith_mcp.box import Box, Work
from rowsmith_mcp.shapes import Listing, MadeTemplates, Metadata, Verified
from rowsmith_mcp.tools.parts import ConnectionId, Cursor, Limit, Query, given, lean, listing, some
from rowsmith_mcp.tools.templates import BRIEF as TEMPLATE

box = Box()
CONNECTION = ("id", "name", "type", "environment", "read_only")
ENDPOINT = ("id", "name", "method", "connection_id", "environment", "push_mode")


@box.reads("List connections")
def list_connections(work: Work, q: Query = "", cursor: Cursor = "", limit: Limit = PAGE) -> Listing:
    """Databases and APIs that rows can be pushed to, and whether they answered when last tried. No settings."""
    page = work.api.request("GET", "/connections", query={**given(q=q, cursor=cursor), "limit": limit})
    items = [
        {**some(one, CONNECTION), "verified": (one["verification"] or {}).get("status", "never tried")}
        for one in page["items"]
    ]
    return {"items": items, "next_cursor": page["next_cursor"], "total": page["total"]}


@box.reads("List endpoints")
def list_endpoints(work: Work, q: Query = "", cursor: Cursor = "", limit: Limit = PAGE) -> Listing:
    """Requests of APIs that a row each can be sent with. No address, headers or bodies."""
    return listing(work, "/endpoints", ENDPOINT, q=q, cursor=cursor, limit=limit)


@box.reads("Try a connection", outside=True)
def verify_connection(work: Work, connection_id: ConnectionId) -> Verified:
    """Try whether a connection answers, stage by stage, with a hint where it does not."""
    found: Any = work.api.connections.verify(connection_id)
    return {"status": found["status"], "stages": found["stages"], "checked_at": found["checked_at"]}


@box.reads("Tables of a connection", outside=True)
def get_connection_metadata(
    work: Work,
    connection_id: ConnectionId,
    q: Annotated[str, Field(description="Part of a table's name.")] = "",
    entity: Annotated[str, Field(description="One table or entity set, with its columns.")] = "",
    refresh: Annotated[bool, Field(description="Ask the target again.")] = False,
) -> Metadata:
    """Names of tables or entity sets; with `entity` one of them with columns, keys and relations."""
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
            {"name": one["name"], "fields": len(one["fields"]), "keys": one["keys"]} for one in entities
        ]
    else:
        entities = [{**lean(one), "fields": [lean(column) for column in one["fields"]]} for one in entities]
    return {"kind": found.get("kind"), "version": found.get("version"), "entities": entities}


@box.makes("Templates from tables")
def create_templates_from_tables(
    work: Work,
    connection_id: ConnectionId,
    entities: Annotated[
        list[str], Field(description="Names as get_connection_metadata has them.", min_length=1)
    ],
    quantity: Annotated[int | None, Field(description="Rows each makes if nothing is said.", ge=1)] = None,
) -> MadeTemplates:
    """Make a linked template for each table. The report says of each column whether every value will fit (green),
    one should look at it (yellow), or it needs a value (red)."""
    made: Any = work.api.connections.make_templates(
        connection_id, entities=entities, **given(quantity=quantity)
    )
    return {"templates": [some(one, TEMPLATE) for one in made["templates"]], "report": made["report"]}
