"""Key maps, and objects that only the clients of the hosted service create; see `webapp.compat.models`.

A key map says which key of a source system became which key of a target system, by map and kind of object. A project
has any number of maps. An entry is found by (map, object, old key); writing it again replaces its new key, so programs
that load in parallel need no lock.

The objects have what every object of a project has: the tenancy check, roles and scopes, an entry in the audit log for
each change. Deleting one removes it: objects that no page shows have no trash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from sqlalchemy import Select, Text, cast, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from webapp import clock, limits
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.access.models import Project, User
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.extensions import affected_row_count, db
from webapp.files import services as files
from webapp.files.models import CompatObject, KeyMapEntry


def list_maps(actor: Actor) -> list[Any]:
    """Return a row for each map and object of the actor's project: map_name, object_name, entries, updated_at."""
    newest = func.max(KeyMapEntry.updated_at)
    statement = _select_entries(actor).with_only_columns(
        KeyMapEntry.map_name,
        KeyMapEntry.object_name,
        func.count().label("entries"),
        newest.label("updated_at"),
    )
    names = (KeyMapEntry.map_name, KeyMapEntry.object_name)
    return list(
        db.session.execute(statement.group_by(*names).order_by(*names).limit(limits.COMPAT_LIST_ROWS))
    )


def put_entries(
    actor: Actor, map_name: str, object_name: str, keys: Mapping[str, str], run_id: str | None = None
) -> int:
    """Store new keys by old keys, replacing existing entries; commits. Returns the number of entries.

    Errors: forbidden, validation_error (no project), quota_exceeded.
    """
    require_scope(actor, "write")
    place = tenancy.current_scope(actor)
    sizes = {old: entry_bytes(map_name, object_name, old, new, run_id) for old, new in keys.items()}
    removed = _make_room_for_keys(actor, map_name, object_name, sizes)
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
        files.delete_content(key)
    return len(values)


def entry_bytes(map_name: str, object_name: str, old_key: str, new_key: str, run_id: str | None) -> int:
    """Return the size of an entry in the database. The texts that it is found by are also in an index."""
    indexed = len(f"{map_name}{object_name}{old_key}".encode())
    return limits.KEY_MAP_ENTRY_BYTES + 2 * indexed + len(f"{new_key}{run_id or ''}".encode())


def lookup(actor: Actor, map_name: str, object_name: str, old_keys: Iterable[str]) -> dict[str, str]:
    """Return the new keys of those old keys that have one, by old key."""
    statement = _select_entries(actor, map_name, object_name).where(KeyMapEntry.old_key.in_(set(old_keys)))
    found = db.session.execute(statement.with_only_columns(KeyMapEntry.old_key, KeyMapEntry.new_key))
    return {row.old_key: row.new_key for row in found}


def list_entries(
    actor: Actor, map_name: str, object_name: str | None, offset: int, limit: int
) -> tuple[list[KeyMapEntry], int]:
    """Return a page of a map's entries, in the order of object and old key, and how many entries there are."""
    statement = _select_entries(actor, map_name, object_name)
    total = db.session.scalar(statement.with_only_columns(func.count()))
    page = statement.order_by(KeyMapEntry.object_name, KeyMapEntry.old_key).offset(offset).limit(limit)
    return list(db.session.scalars(page)), total or 0


def delete_entries(actor: Actor, map_name: str, object_name: str | None = None) -> int:
    """Delete a map, or its entries of one object; commits. Returns the number of entries. Error: forbidden."""
    require_scope(actor, "write")
    place = tenancy.current_scope(actor)
    chosen = _select_entries(actor, map_name, object_name).with_only_columns(KeyMapEntry.id)
    statement = delete(KeyMapEntry).where(KeyMapEntry.id.in_(chosen))
    deleted = affected_row_count(db.session.execute(statement.execution_options(synchronize_session=False)))
    audit_log.record(
        actor, "key_map.delete", ("project", place["project_id"]), join=True,
        map=map_name, object=object_name, entries=deleted,
    )  # fmt: skip
    db.session.commit()
    return int(deleted)


def _select_entries(actor: Actor, map_name: str | None = None, object_name: str | None = None) -> Select[Any]:
    statement = tenancy.listing(actor, KeyMapEntry)
    if map_name is not None:
        statement = statement.where(KeyMapEntry.map_name == map_name)
    if object_name is not None:
        statement = statement.where(KeyMapEntry.object_name == object_name)
    return statement


def _make_room_for_keys(actor: Actor, map_name: str, object_name: str, sizes: Mapping[str, int]) -> list[str]:
    """Make room for entries of these sizes, by old key. Raise `quota_exceeded` if the workspace would have too many
    entries, or its files, sets and key maps together would exceed the quota of files. Locks the workspace's row, so
    that concurrent requests cannot both use the last of it. Returns the storage keys of deleted files that were purged
    to free space, to be removed after the commit."""
    files.lock(actor.workspace_id)
    in_workspace = KeyMapEntry.workspace_id == actor.workspace_id
    count = db.session.scalar(select(func.count()).select_from(KeyMapEntry).where(in_workspace)) or 0
    replaced = _select_entries(actor, map_name, object_name).where(KeyMapEntry.old_key.in_(sizes))
    replaced_count, replaced_bytes = db.session.execute(
        replaced.with_only_columns(func.count(), func.coalesce(func.sum(KeyMapEntry.size), 0))
    ).one()
    if count + len(sizes) - replaced_count > limits.MAX_KEY_MAP_ENTRIES:
        text = f"The key maps of a workspace can have at most {limits.MAX_KEY_MAP_ENTRIES:,} entries."
        details = {"limit_entries": limits.MAX_KEY_MAP_ENTRIES, "used_entries": count}
        raise ApiError("quota_exceeded", f"{text} Delete a map that is no longer needed.", details)
    size = sum(sizes.values()) - replaced_bytes
    if size <= 0:
        return []
    return [key for _, key in files.free_space(actor, size, replaces=0, what="these keys need")]


# --- Objects ------------------------------------------------------------------------------------------------

KIND_LABELS: Final = {
    "set": "set",
    "custom_data_type": "custom data type",
    "masking_policy": "masking policy",
    "plan": "plan",
    "template_folder": "template folder",
    "endpoint_folder": "endpoint folder",
}
"""The name of a kind in messages."""
_UNCHANGED: Final = object()


def get(
    actor: Actor, kind: str, object_id: str, scope: str = "read", *, lock: bool = False, rows: bool = False
) -> CompatObject:
    """Return one object with the right to do `scope` to it. `rows` also loads the rows of a set.

    Errors: not_found, forbidden.
    """
    try:
        found = tenancy.get(actor, CompatObject, object_id, scope, lock=lock)
    except ApiError as error:
        if error.code == "not_found":
            raise tenancy.not_found(KIND_LABELS[kind], object_id) from None
        raise
    if found.kind != kind:
        raise tenancy.not_found(KIND_LABELS[kind], object_id)
    if rows:
        db.session.refresh(found, ["rows"])
    return found


def listing(actor: Actor, kind: str) -> list[CompatObject]:
    """Return the objects of a kind in the actor's project, newest first, without rows."""
    statement = tenancy.listing(actor, CompatObject).where(CompatObject.kind == kind)
    newest = statement.order_by(CompatObject.id.desc()).limit(limits.COMPAT_LIST_ROWS)
    return list(db.session.scalars(newest))


def find_by_name(actor: Actor, kind: str, name: str) -> CompatObject | None:
    """Return the object of that name in the actor's project."""
    statement = tenancy.listing(actor, CompatObject)
    return db.session.scalars(
        statement.where(CompatObject.kind == kind, CompatObject.name == name).limit(1)
    ).first()


def names_by_id(project_id: str, kind: str) -> dict[str, str]:
    """Return the names of a kind's objects in a project, by id. The caller has checked the right to read there."""
    columns = select(CompatObject.id, CompatObject.name)
    found = db.session.execute(
        columns.where(CompatObject.project_id == project_id, CompatObject.kind == kind)
    )
    return {row.id: row.name for row in found}


def lock(actor: Actor) -> None:
    """Lock the actor's project until the transaction ends, so that the names and the number of its objects do not
    change."""
    db.session.execute(select(Project.id).where(Project.id == actor.project_id).with_for_update())


def create(actor: Actor, kind: str, name: str, document: Mapping[str, Any], rows: Any = None) -> CompatObject:
    """Create an object in the actor's project; commits.

    Errors: forbidden, validation_error (no project), quota_exceeded, invalid_request (it is too large).
    """
    require_scope(actor, "write")
    place = tenancy.current_scope(actor)
    lock(actor)
    count = select(func.count()).where(
        CompatObject.project_id == place["project_id"], CompatObject.kind == kind
    )
    if (db.session.scalar(count) or 0) >= limits.COMPAT_OBJECTS:
        text = f"A project can have at most {limits.COMPAT_OBJECTS:,} objects of type {KIND_LABELS[kind]}."
        raise ApiError("quota_exceeded", f"{text} Delete some first.", {"limit": limits.COMPAT_OBJECTS})
    row = CompatObject(**place, kind=kind, name=name, document=dict(document), created_by=actor.user_id)
    _check_document(row, document)
    removed = _put_rows(actor, row, rows)
    db.session.add(row)
    db.session.flush()
    audit_log.record(actor, f"{kind}.create", (kind, row.id), join=True, name=name)
    db.session.commit()
    _delete_files(removed)
    return row


def change(
    actor: Actor,
    row: CompatObject,
    *,
    name: str | None = None,
    document: Mapping[str, Any] | None = None,
    rows: Any = _UNCHANGED,
) -> CompatObject:
    """Change the given attributes of a locked object; the others are unchanged. Commits.

    Errors: quota_exceeded, invalid_request (it is too large).
    """
    if document:
        db.session.execute(select(Project.id).where(Project.id == row.project_id).with_for_update())
        _check_document(row, {**row.document, **document})
    new_document = {**row.document, **(document or {})}
    changes = audit_log.changes_between(
        {"name": row.name, **row.document}, {"name": name or row.name, **new_document}
    )
    removed = _put_rows(actor, row, rows) if rows is not _UNCHANGED else []
    row.name, row.document, row.updated_at = name or row.name, new_document, clock.now()
    audit_log.record(actor, f"{row.kind}.change", (row.kind, row.id), join=True, changes=changes)
    db.session.commit()
    _delete_files(removed)
    return row


def delete_object(actor: Actor, row: CompatObject) -> None:
    """Remove a locked object; commits."""
    db.session.delete(row)
    audit_log.record(actor, f"{row.kind}.delete", (row.kind, row.id), join=True, name=row.name)
    db.session.commit()


def creator_name(row: CompatObject) -> str | None:
    """Return the name of the user who created an object."""
    user = db.session.get(User, row.created_by) if row.created_by else None
    return user.name if user else None


def _check_document(row: CompatObject, document: Mapping[str, Any]) -> None:
    """Check that an object's document, and those of its kind in the locked project, are not too large: lists have no
    pages. Errors: invalid_request, quota_exceeded."""
    size, kind = len(orjson.dumps(document)), KIND_LABELS[row.kind]
    if size > limits.MAX_COMPAT_BYTES:
        limit_mb = limits.MAX_COMPAT_BYTES // limits.MB
        text = f"A {kind} can have at most {limit_mb} MB of JSON; this one has {size:,} bytes."
        raise ApiError("invalid_request", text, {"bytes": size, "limit_bytes": limits.MAX_COMPAT_BYTES})
    others = select(func.coalesce(func.sum(func.length(cast(CompatObject.document, Text))), 0)).where(
        CompatObject.project_id == row.project_id, CompatObject.kind == row.kind, CompatObject.id != row.id
    )
    with db.session.no_autoflush:
        used_bytes = int(db.session.scalar(others) or 0)
    if used_bytes + size > limits.MAX_COMPAT_LIST_BYTES:
        limit_mb = limits.MAX_COMPAT_LIST_BYTES // limits.MB
        text = f"All objects of type {kind} in a project can use at most {limit_mb} MB. Delete some first."
        details = {"limit_bytes": limits.MAX_COMPAT_LIST_BYTES, "used_bytes": used_bytes}
        raise ApiError("quota_exceeded", text, details)


def _put_rows(actor: Actor, row: CompatObject, rows: Any) -> list[str]:
    """Store the rows of a set. Raise `quota_exceeded` if the sets of the workspace would exceed their limit, or its
    files, sets and key maps together the quota of files. Returns the storage keys of deleted files that were purged to
    free space, to be removed after the commit."""
    count = len(rows) if isinstance(rows, list) else 0
    size = 0 if rows is None else len(orjson.dumps(rows))
    if count > limits.MAX_SET_ROWS or size > limits.MAX_SET_BYTES:
        limit_mb = limits.MAX_SET_BYTES // limits.MB
        text = f"A set can have at most {limits.MAX_SET_ROWS:,} rows and {limit_mb} MB of JSON; this one has {count:,}"
        text += f" rows and {size:,} bytes. Store larger sets in a workspace file (POST /scenario-files)."
        raise ApiError("invalid_request", text, {"rows": count, "bytes": size})
    more = size - (row.size or 0)
    removed: list[str] = []
    if more > 0:
        files.lock(actor.workspace_id)
        used = select(func.coalesce(func.sum(CompatObject.size), 0)).where(
            CompatObject.workspace_id == actor.workspace_id
        )
        used_bytes = db.session.scalar(used) or 0
        if used_bytes + more > limits.MAX_SETS_BYTES:
            limit_mb = limits.MAX_SETS_BYTES // limits.MB
            text = f"The sets of a workspace can use at most {limit_mb} MB. "
            text += "Delete some, or store rows in workspace files."
            details = {"limit_bytes": limits.MAX_SETS_BYTES, "used_bytes": used_bytes}
            raise ApiError("quota_exceeded", text, details)
        removed = [key for _, key in files.free_space(actor, more, replaces=0, what="this set needs")]
    row.rows, row.size = rows, size
    return removed


def _delete_files(keys: Iterable[str]) -> None:
    for key in keys:
        files.delete_content(key)
