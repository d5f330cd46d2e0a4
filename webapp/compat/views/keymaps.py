"""Key maps: old keys of a source system and the new keys of a target system."""

from __future__ import annotations

from typing import Annotated, Any, Final

from flask import Response
from pydantic import BeforeValidator, Field

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.compat.services import key_maps
from webapp.compat.views.routing import ROOT, call
from webapp.compat.views.words import Anything, Wire, placed
from webapp.errors import ApiError
from webapp.web.responses import reply

MAP: Final = f"{ROOT}/keymaps/<path:map_name>"

MapName = Annotated[str, Field(min_length=1, max_length=limits.KEY_MAP_NAME_CHARS)]
Key = Annotated[str, Field(min_length=1, max_length=limits.KEY_MAP_KEY_CHARS)]


class Entry(Wire):
    """A key of the source system and the one that it became."""

    read_only = frozenset()

    old_key: Key
    new_key: Key


class _OfMap(Wire):
    map_name: MapName
    object: MapName
    project_id: str | None = None
    team_id: str | None = None


class EntriesIn(_OfMap):
    """Entries to write; those that there are get the new key."""

    entries: Annotated[list[Entry], Field(min_length=1, max_length=limits.KEY_MAP_BATCH)]
    run_id: Annotated[str, Field(max_length=limits.KEY_MAP_NAME_CHARS)] | None = None


class LookupIn(_OfMap):
    """Keys to translate."""

    old_keys: Annotated[list[Key], Field(min_length=1, max_length=limits.KEY_MAP_BATCH)]


class ObjectQuery(Anything):
    """The entries of one object; of all without."""

    object: str | None = None


def _capped(value: Any) -> Any:
    """Return a page size as the hosted service reads it: a larger one is its largest."""
    text = str(value)
    return min(int(text), limits.KEY_MAP_PAGE) if text.isdecimal() and len(text) < 10 else value


class PageQuery(ObjectQuery):
    """Which page of the entries, from 1."""

    page: Annotated[int, Field(ge=1, le=limits.MAX_KEY_MAP_ENTRIES)] = 1
    pageSize: Annotated[int, BeforeValidator(_capped), Field(ge=1)] = 100  # noqa: N815 - the wire's own name


@call(f"{ROOT}/keymaps", scope="read")
def maps_list(actor: Actor, query: Anything) -> Response:
    """List the key maps of the project: a row for each map and object."""
    here = placed(actor, "read", query.projectId, query.teamId)
    return reply(
        [
            {
                "mapName": row.map_name,
                "object": row.object_name,
                "entryCount": row.entries,
                "updatedAt": clock.to_text(row.updated_at),
            }
            for row in key_maps.maps(here)
        ]
    )


@call(f"{ROOT}/keymaps/entries", ["POST"], scope="write", body=EntriesIn, idempotent=True)
def entries_put(actor: Actor, body: EntriesIn) -> Response:
    """Write entries of a key map. Of an old key that is sent twice the last new key counts."""
    here = placed(actor, "write", body.project_id, body.team_id)
    keys = {entry.old_key: entry.new_key for entry in body.entries}
    count = key_maps.put(here, body.map_name, body.object, keys, body.run_id)
    return reply({"mapName": body.map_name, "object": body.object, "upserted": count})


@call(f"{ROOT}/keymaps/lookup", ["POST"], scope="read", body=LookupIn, reads=True)
def entries_lookup(actor: Actor, body: LookupIn) -> Response:
    """Translate old keys, and name those that have no new key."""
    here = placed(actor, "read", body.project_id, body.team_id)
    found = key_maps.lookup(here, body.map_name, body.object, body.old_keys)
    asked = dict.fromkeys(body.old_keys)
    return reply(
        {
            "mapName": body.map_name,
            "object": body.object,
            "mappings": {key: found[key] for key in asked if key in found},
            "missing": [key for key in asked if key not in found],
        }
    )


@call(f"{MAP}/entries", scope="read", query=PageQuery)
def entries_list(actor: Actor, map_name: str, query: PageQuery) -> Response:
    """A page of a key map's entries, in the order of object and old key."""
    here = placed(actor, "read", query.projectId, query.teamId)
    start = (query.page - 1) * query.pageSize
    found, total = key_maps.entries(here, _name(map_name), query.object or None, start, query.pageSize)
    return reply(
        {
            "mapName": map_name,
            "page": query.page,
            "pageSize": query.pageSize,
            "total": total,
            "entries": [
                {
                    "object": entry.object_name,
                    "oldKey": entry.old_key,
                    "newKey": entry.new_key,
                    "runId": entry.run_id,
                    "updatedAt": clock.to_text(entry.updated_at),
                }
                for entry in found
            ],
        }
    )


@call(MAP, ["DELETE"], scope="write", query=ObjectQuery)
def map_delete(actor: Actor, map_name: str, query: ObjectQuery) -> Response:
    """Delete a key map, or its entries of one object."""
    here = placed(actor, "write", query.projectId, query.teamId)
    gone = key_maps.drop(here, _name(map_name), query.object or None)
    return reply({"message": f"Key map {map_name} deleted", "deleted": gone})


def _name(text: str) -> str:
    if "\0" in text:  # PostgreSQL would reject it
        raise ApiError("not_found", "There is no such key map.")
    return text
