"""Workspace files: what scenarios read, and what their runs leave behind.

A file belongs to the project that it was uploaded in, and only members of that project's team see it. Files without a
project are shared with the whole workspace: every project reads them, and only editors of the workspace change them.
A file is found by its name, among those of the actor's project and the shared ones, or by its id in any project of the
actor's teams; no name has the form of an id. Names: see `workspace_files_names`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from mimetypes import guess_type
from typing import IO, Any, Final
from urllib.parse import quote

from sqlalchemy import select

from webapp import clock, limits, pagination, storage
from webapp.accounts.actors import Actor, require
from webapp.accounts.services import tenancy
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.files import names
from webapp.files.models import WorkspaceFile
from webapp.files.services import file_store
from webapp.files.services.file_store import Check, Usage, usage
from webapp.files.services.outputs import Stored, store_outputs
from webapp.files.services.sync import sync
from webapp.scenarios.models import Run

__all__ = ["Folder", "Stored", "Usage", "store_outputs", "sync", "usage"]

_TYPE: Final = re.compile(
    rf"[a-z0-9][a-z0-9!#$&^_.+-]{{0,{limits.FILE_TYPE_CHARS - 1}}}/[a-z0-9][a-z0-9!#$&^_.+-]{{0,70}}"
)
_ANY: Final = "application/octet-stream"
# What mimetypes of some machines do not know, or know otherwise.
_BY_ENDING: Final = {
    "csv": "text/csv",
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "jsonl": "application/x-ndjson",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "parquet": "application/vnd.apache.parquet",
    "sql": "application/sql",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "md": "text/markdown",
    "py": "text/x-python",
    "txt": "text/plain",
    "log": "text/plain",
}
SORTS: Final = {"name": WorkspaceFile.name, "size": WorkspaceFile.size, "updated": WorkspaceFile.updated_at}


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that lies in the one looked at: its whole name, and what lies in it at any depth."""

    name: str
    files: int
    bytes: int

    @property
    def last(self) -> str:
        """Its name without the folders around it."""
        return names.last_part(self.name)


def as_json(file: WorkspaceFile) -> dict[str, Any]:
    """A file as the API shows it; `download_url` is a path here."""
    return {
        "id": file.id,
        "name": file.name,
        "size": file.size,
        "content_type": file.content_type,
        "sha256": file.sha256,
        "run_id": file.run_id,
        "project_id": file.project_id,
        "team_id": file.team_id,
        "download_url": f"/workspace/files/{quote(file.name, safe='/')}",
        "created_by": file.created_by,
        "created_at": clock.to_text(file.created_at),
        "updated_at": clock.to_text(file.updated_at),
        "deleted_at": clock.to_text(file.deleted_at),
    }


def tag(file: WorkspaceFile) -> str:
    """The ETag of a file: the SHA-256 of its content, under whatever name."""
    return f'"{file.sha256}"'


def listing(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    folder: str | None = None,
    sort: str | None = None,
    flat: bool = True,
    run_id: str | None = None,
) -> pagination.Page[WorkspaceFile]:
    """A page of the live files of the project and the shared ones: newest first, or by `name`, `size` or `updated`
    (`-`: backwards).

    `folder`: those under it, at any depth; with `flat=False` those that lie in it themselves ("": in none).
    `run_id`: the files of a run: those outside of `outputs/`, which it reads, and those that it stored.
    Error: not_found for a run that the actor may not read.
    """
    statement = select(WorkspaceFile).where(file_store.seen(actor.workspace_id, actor.project_id))
    prefix = prefix_of(folder)
    if prefix:
        statement = statement.where(file_store.begins(prefix))
    if not flat:
        statement = statement.where(~_rest(prefix).contains("/", autoescape=True))
    if run_id is not None:
        run = tenancy.get(actor, Run, run_id)
        own = WorkspaceFile.run_id == run.id
        statement = statement.where(own | ~file_store.begins(f"{names.OUTPUTS}/"))
    key = (sort or "").removeprefix("-")
    return pagination.page(
        statement,
        name="workspace_files",
        identity=WorkspaceFile.id,
        cursor=cursor,
        limit=limit,
        search=(names.normal(q) if q else None, WorkspaceFile.name),
        order=SORTS.get(key),
        descending=sort is None or sort.startswith("-"),
        context=f"{actor.workspace_id} {actor.project_id} {prefix} {flat} {run_id or ''}",
    )


def prefix_of(folder: str | None) -> str:
    """What the names of the files under a folder begin with; "" for the workspace itself."""
    text = names.normal(folder or "").strip("/")
    return f"{text}/" if text else ""


def folders(actor: Actor, folder: str | None = None) -> list[Folder]:
    """The folders that lie in one (None: in the workspace itself), by name."""
    prefix = prefix_of(folder)
    statement = select(WorkspaceFile.name, WorkspaceFile.size).where(
        file_store.seen(actor.workspace_id, actor.project_id)
    )
    statement = statement.where(_rest(prefix).contains("/", autoescape=True))
    if prefix:
        statement = statement.where(file_store.begins(prefix))
    found: dict[str, tuple[int, int]] = {}
    for name, size in db.session.execute(statement):
        first = name[len(prefix) :].partition("/")[0]
        files, total = found.get(first, (0, 0))
        found[first] = files + 1, total + size
    return [
        Folder(prefix + name, *told)
        for name, told in sorted(found.items(), key=lambda one: one[0].casefold())
    ]


def _rest(prefix: str) -> Any:
    from sqlalchemy import func

    return func.substr(WorkspaceFile.name, len(prefix) + 1)


def find(
    actor: Actor,
    key: str,
    scope: str = "read",
    *,
    lock: bool = False,
    deleted: bool = False,
    project_id: str | None = None,
) -> WorkspaceFile:
    """The file of a name or an id, with the right to do `scope`. `deleted` also finds deleted ones, by id.

    Names are those of `project_id` (default: the actor's own project) and of shared files.
    Errors: not_found, forbidden.
    """
    statement = select(WorkspaceFile)
    if names.is_id(key):
        statement = statement.where(WorkspaceFile.workspace_id == actor.workspace_id, WorkspaceFile.id == key)
        if not deleted:
            statement = statement.where(WorkspaceFile.deleted_at.is_(None))
    elif names.faults(key):
        raise missing(key)
    else:
        here = file_store.seen(actor.workspace_id, project_id or actor.project_id)
        statement = statement.where(here, WorkspaceFile.name == names.normal(key))
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    file = db.session.scalar(statement)
    if file is None or (file.team_id is not None and actor.role_in(file.team_id) is None):
        raise missing(key)
    if file.project_id is None and scope == "write":
        file_store.require_shared(actor)
    require(actor, scope, file.team_id)
    return file


def missing(key: str) -> ApiError:
    """404 for a file that is not there for the actor."""
    kind = "id" if names.is_id(key) else "name"
    return ApiError("not_found", "There is no such file.", {kind: key[: limits.MAX_FILE_NAME_CHARS]})


def upload(
    actor: Actor,
    name: str,
    content: IO[bytes],
    *,
    content_type: str | None = None,
    check: Check | None = None,
    shared: bool = False,
    purged: list[file_store.Purged] | None = None,
) -> tuple[WorkspaceFile, bool]:
    """Store a file under a name, in place of the one that has it; commits. Returns it, and whether it replaced one.
    A file that a run uploads is recorded as one of its outputs.

    A new file belongs to the actor's project, or, with `shared`, to the whole workspace. `content` is read from its
    beginning in pieces. No transaction is open while the storage takes it. Deleted files that had to go for good to
    make room are added to `purged`, as far as the actor may see them.
    Errors: validation_error, forbidden, payload_too_large, quota_exceeded, conflict, unavailable, those of `check`.
    """
    require(actor, "write")
    name = names.checked(name)
    size = content.seek(0, 2)
    content.seek(0)
    if size > limits.MAX_UPLOAD_BYTES:
        raise too_large(size)
    present = file_store.named(actor, name, shared=shared)
    if check is not None:
        check(present)  # what can be told now is told before the bytes travel on
    if present is None:
        file_store.refuse_clash(actor.workspace_id, name, None if shared else actor.project_id)
    replaces = present.size if present else None
    file_store.refuse_over(actor.workspace_id, size, replaces=replaces)
    db.session.rollback()
    removed: list[file_store.Purged] = []
    held = file_store.put(actor, size, _pieces(content), replaces=replaces, purged=removed)
    if purged is not None:
        purged += [one for one in removed if one.team_id is None or actor.role_in(one.team_id) is not None]
    told = type_of(name, content_type)
    return file_store.keep(
        actor,
        name,
        held,
        content_type=told,
        run_id=actor.run_id,
        created_by=actor.user_id,
        check=check,
        shared=shared,
    )


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    while chunk := content.read(limits.STORAGE_CHUNK_BYTES):
        yield chunk


def too_large(size: int | None = None) -> ApiError:
    """`payload_too_large` with the numbers; `size` None: more than may be, and nobody counted on."""
    most = limits.MAX_UPLOAD_BYTES
    has = f"this one has {size:,}" if size is not None else "this one has more"
    told = {"max_bytes": most, **({"bytes": size} if size is not None else {})}
    return ApiError("payload_too_large", f"A file may have {most:,} bytes (50 MB); {has}.", told)


def type_of(name: str, claimed: str | None = None) -> str:
    """A file's media type: as the uploader says, else by the name's ending."""
    told = (claimed or "").partition(";")[0].strip().casefold()
    if told != _ANY and _TYPE.fullmatch(told):
        return told
    ending = names.last_part(name).rpartition(".")[2].casefold()
    return _BY_ENDING.get(ending) or guess_type(f"x.{ending}")[0] or _ANY


def delete(actor: Actor, file: WorkspaceFile) -> WorkspaceFile:
    """Soft-delete a locked file; commits. Its name is free immediately. Its bytes count towards the quota until it is
    removed for good: after 30 days, or as soon as an upload needs the space."""
    if file.deleted_at is None:
        file.deleted_at = clock.now()
        audit_log.record(actor, "workspace_file.delete", file, join=True, name=file.name)
    db.session.commit()
    return file


def restore(actor: Actor, file_id: str) -> WorkspaceFile:
    """Take a deletion back within 30 days; commits.

    Errors: not_found, conflict (the name is another file's or a folder's by now), quota_exceeded.
    """
    require(actor, "write")
    if not names.is_id(file_id):  # a name may be that of many deleted files
        raise missing(file_id)
    file_store.lock(actor.workspace_id)
    file = find(actor, file_id, "write", lock=True, deleted=True)
    if file.deleted_at is None:
        db.session.commit()
        return file
    if clock.now() - file.deleted_at > timedelta(days=limits.RESTORE_DAYS):
        raise missing(file_id)
    rivals = file_store.rivals(actor.workspace_id, file.project_id)
    taken = db.session.scalar(select(WorkspaceFile.id).where(rivals, WorkspaceFile.name == file.name))
    if taken is not None:
        text = f"Another file is called `{file.name}` by now. Delete that one first."
        raise ApiError("conflict", text, {"name": file.name, "id": taken})
    file_store.refuse_clash(actor.workspace_id, file.name, file.project_id)
    file_store.refuse_over(actor.workspace_id, file.size)
    file.deleted_at = None
    audit_log.record(actor, "workspace_file.restore", file, join=True, name=file.name)
    db.session.commit()
    return file


def open_file(actor: Actor, file: WorkspaceFile, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The bytes of a file as it was read from the database. Errors: storage.MissingError (it was replaced since),
    unavailable, at once."""
    require(actor, "read", file.team_id)
    return file_store.pieces(file.storage_key, start, end)


Missing = storage.MissingError
