"""Key maps: which key of a source system became which key of a target system, by map and kind of object.

A project has any number of maps. An entry is found by (map, object, old key); writing it again replaces its new key, so
programs that load in parallel need no lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Select, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from webapp import clock, limits
from webapp.access import tenancy
from webapp.access.actors import Actor, require
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.extensions import changed_rows, db
from webapp.files import services as files
from webapp.files.models import KeyMapEntry


def maps(actor: Actor) -> list[Any]:
    """Return a row for each map and object of the actor's project: map_name, object_name, entries, updated_at."""
    newest = func.max(KeyMapEntry.updated_at)
    statement = _of(actor).with_only_columns(
        KeyMapEntry.map_name,
        KeyMapEntry.object_name,
        func.count().label("entries"),
        newest.label("updated_at"),
    )
    names = (KeyMapEntry.map_name, KeyMapEntry.object_name)
    return list(
        db.session.execute(statement.group_by(*names).order_by(*names).limit(limits.COMPAT_LIST_ROWS))
    )


def put(
    actor: Actor, map_name: str, object_name: str, keys: Mapping[str, str], run_id: str | None = None
) -> int:
    """Write new keys by their old ones, in place of those that there are; commits. Returns how many.

    Errors: forbidden, validation_error (no project), quota_exceeded.
    """
    require(actor, "write")
    place = tenancy.here(actor)
    sizes = {old: entry_bytes(map_name, object_name, old, new, run_id) for old, new in keys.items()}
    removed = _make_room(actor, map_name, object_name, sizes)
    shared = {**place, "map_name": map_name, "object_name": object_name, "run_id": run_id}
    now = clock.now()
    # In the order of the keys, so that two programs that write the same ones never wait for each other.
    values = [
        {**shared, "old_key": old, "new_key": keys[old], "size": sizes[old], "updated_at": now}
        for old in sorted(keys)
    ]
    kind = sqlite if db.session.get_bind().dialect.name == "sqlite" else postgresql
    statement = kind.insert(KeyMapEntry)
    unique = ["project_id", "map_name", "object_name", "old_key"]
    newest = {name: statement.excluded[name] for name in ("new_key", "run_id", "size", "updated_at")}
    db.session.execute(statement.on_conflict_do_update(index_elements=unique, set_=newest), values)
    audit_log.record(
        actor, "key_map.put", ("project", place["project_id"]), join=True,
        map=map_name, object=object_name, entries=len(values),
    )  # fmt: skip
    db.session.commit()
    for key in removed:
        files.drop(key)
    return len(values)


def entry_bytes(map_name: str, object_name: str, old_key: str, new_key: str, run_id: str | None) -> int:
    """Return the size of an entry in the database. The texts that it is found by are also in an index."""
    indexed = len(f"{map_name}{object_name}{old_key}".encode())
    return limits.KEY_MAP_ENTRY_BYTES + 2 * indexed + len(f"{new_key}{run_id or ''}".encode())


def lookup(actor: Actor, map_name: str, object_name: str, old_keys: Iterable[str]) -> dict[str, str]:
    """Return the new keys of those old keys that have one, by old key."""
    statement = _of(actor, map_name, object_name).where(KeyMapEntry.old_key.in_(set(old_keys)))
    found = db.session.execute(statement.with_only_columns(KeyMapEntry.old_key, KeyMapEntry.new_key))
    return {row.old_key: row.new_key for row in found}


def entries(
    actor: Actor, map_name: str, object_name: str | None, offset: int, limit: int
) -> tuple[list[KeyMapEntry], int]:
    """Return a page of a map's entries, in the order of object and old key, and how many entries there are."""
    statement = _of(actor, map_name, object_name)
    total = db.session.scalar(statement.with_only_columns(func.count()))
    page = statement.order_by(KeyMapEntry.object_name, KeyMapEntry.old_key).offset(offset).limit(limit)
    return list(db.session.scalars(page)), total or 0


def drop(actor: Actor, map_name: str, object_name: str | None = None) -> int:
    """Delete a map, or its entries of one object; commits. Returns the number of entries. Error: forbidden."""
    require(actor, "write")
    place = tenancy.here(actor)
    chosen = _of(actor, map_name, object_name).with_only_columns(KeyMapEntry.id)
    statement = delete(KeyMapEntry).where(KeyMapEntry.id.in_(chosen))
    gone = changed_rows(db.session.execute(statement.execution_options(synchronize_session=False)))
    audit_log.record(
        actor, "key_map.delete", ("project", place["project_id"]), join=True,
        map=map_name, object=object_name, entries=gone,
    )  # fmt: skip
    db.session.commit()
    return int(gone)


def _of(actor: Actor, map_name: str | None = None, object_name: str | None = None) -> Select[Any]:
    statement = tenancy.listing(actor, KeyMapEntry)
    if map_name is not None:
        statement = statement.where(KeyMapEntry.map_name == map_name)
    if object_name is not None:
        statement = statement.where(KeyMapEntry.object_name == object_name)
    return statement


def _make_room(actor: Actor, map_name: str, object_name: str, sizes: Mapping[str, int]) -> list[str]:
    """Make room for entries of these sizes, by old key. Raise `quota_exceeded` if the workspace would have too many
    entries, or its files, sets and key maps together would exceed the quota of files. Locks the workspace's row, so
    that concurrent requests cannot both use the last of it. Returns the storage keys of deleted files that were purged
    to free space, to be removed after the commit."""
    files.lock(actor.workspace_id)
    mine = KeyMapEntry.workspace_id == actor.workspace_id
    count = db.session.scalar(select(func.count()).select_from(KeyMapEntry).where(mine)) or 0
    replaced = _of(actor, map_name, object_name).where(KeyMapEntry.old_key.in_(sizes))
    entries, taken = db.session.execute(
        replaced.with_only_columns(func.count(), func.coalesce(func.sum(KeyMapEntry.size), 0))
    ).one()
    if count + len(sizes) - entries > limits.MAX_KEY_MAP_ENTRIES:
        text = f"The key maps of a workspace can have at most {limits.MAX_KEY_MAP_ENTRIES:,} entries."
        details = {"limit_entries": limits.MAX_KEY_MAP_ENTRIES, "used_entries": count}
        raise ApiError("quota_exceeded", f"{text} Delete a map that is no longer needed.", details)
    size = sum(sizes.values()) - taken
    if size <= 0:
        return []
    return [key for _, key in files.make_room(actor, size, replaces=0, what="these keys need")]
