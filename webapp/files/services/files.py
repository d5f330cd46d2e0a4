"""Manage workspace files: the inputs of scenarios and the outputs of their runs.

A file belongs to the project that it was uploaded to, and only members of that project's team see it. Files without a
project are shared with the whole workspace: every project reads them, and only editors of the workspace change them. A
file is found by name, among those of the actor's project and the shared files, or by id in any project of the actor's
teams. A name never has the form of an id. For names, see `workspace_files_names`.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from mimetypes import guess_type
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

from flask import current_app
from sqlalchemy import select

from webapp import clock, document_process, limits, pagination, storage
from webapp.access import tenancy
from webapp.access.actors import Actor, require
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.extensions import db, reading
from webapp.files import names
from webapp.files.models import WorkspaceFile
from webapp.files.names import OUTPUTS
from webapp.files.services import file_store
from webapp.files.services.file_store import Check
from webapp.files.workbooks import brief, cell
from webapp.storage import MissingError
from webapp.work.models import MODELS

_TYPE: Final = re.compile(
    rf"[a-z0-9][a-z0-9!#$&^_.+-]{{0,{limits.FILE_TYPE_CHARS - 1}}}/[a-z0-9][a-z0-9!#$&^_.+-]{{0,70}}"
)
_ANY: Final = "application/octet-stream"
# Media types that `mimetypes` does not know, or reports differently, on some machines.
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
    """A subfolder: its full name, and the contents at any depth below it."""

    name: str
    files: int
    bytes: int

    @property
    def last(self) -> str:
        """The name of the folder without its parents."""
        return names.last_part(self.name)


def as_json(file: WorkspaceFile) -> dict[str, Any]:
    """Return a file as the API shows it; `download_url` is a path in this function."""
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
    """Return the ETag of a file: the SHA-256 of its content, independent of its name."""
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
    """Return a page of the live files of the project and the shared files: newest first, or ordered by `name`, `size`
    or `updated` (with `-` for descending order).

    `folder` returns files at any depth below it; with `flat=False`, only direct children ("": files outside of any
    folder).
    `run_id` returns the files of a run: those outside of `outputs/`, which it reads, and those that it stored.
    Raise not_found for a run that the actor may not read.
    """
    statement = select(WorkspaceFile).where(file_store.seen(actor.workspace_id, actor.project_id))
    prefix = prefix_of(folder)
    if prefix:
        statement = statement.where(file_store.begins(prefix))
    if not flat:
        statement = statement.where(~_rest(prefix).contains("/", autoescape=True))
    if run_id is not None:
        runs: Any = MODELS["run"]  # A model with this mixin, which its type does not declare
        tenancy.get(actor, runs, run_id)
        own = WorkspaceFile.run_id == run_id
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
    """Return the prefix of all file names in a folder, "" for the root of the workspace."""
    text = names.normal(folder or "").strip("/")
    return f"{text}/" if text else ""


def folders(actor: Actor, folder: str | None = None) -> list[Folder]:
    """Return the direct subfolders of a folder (None: of the root of the workspace), by name."""
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
    """Find a file by name or id, and check that the actor has the right `scope`. `deleted` also finds deleted files, by
    id.

    Names are those of `project_id` (default: the actor's own project) and of shared files.
    Raise not_found or forbidden.
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
    """Return the 404 error for a file that does not exist for the actor."""
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
    """Store a file under a name, replacing any file with that name, and commit. Return the file and whether it replaced
    another. A file that a run uploads is recorded as an output of the run.

    A new file belongs to the actor's project, or, with `shared`, to the whole workspace. `content` is read in pieces
    from its beginning. No transaction is open while the content is transferred to the storage. Deleted files that were
    removed permanently to free space are added to `purged` if the actor may see them.
    Raise validation_error, forbidden, payload_too_large, quota_exceeded, conflict, unavailable, or an error of `check`.
    """
    require(actor, "write")
    name = names.checked(name)
    size = content.seek(0, 2)
    content.seek(0)
    if size > limits.MAX_UPLOAD_BYTES:
        raise too_large(size)
    present = file_store.named(actor, name, shared=shared)
    if check is not None:
        check(present)  # Fail early, before the transfer
    if present is None:
        file_store.refuse_clash(actor.workspace_id, name, None if shared else actor.project_id)
    replaces = present.size if present else None
    file_store.refuse_over(actor.workspace_id, size, replaces=replaces)
    db.session.rollback()
    removed: list[file_store.Purged] = []
    held = file_store.put(actor, size, _pieces(content), replaces=replaces, purged=removed)
    if purged is not None:
        purged += [
            item for item in removed if item.team_id is None or actor.role_in(item.team_id) is not None
        ]
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
    """Return `payload_too_large` with the limit and the size. `size` is None if the limit was exceeded and the total is
    unknown."""
    most = limits.MAX_UPLOAD_BYTES
    has = f"this one has {size:,}" if size is not None else "this one has more"
    told = {"max_bytes": most, **({"bytes": size} if size is not None else {})}
    return ApiError("payload_too_large", f"A file may have {most:,} bytes (50 MB); {has}.", told)


def type_of(name: str, claimed: str | None = None) -> str:
    """Return a file's media type: the one that the uploader declared, else one based on the file extension."""
    told = (claimed or "").partition(";")[0].strip().casefold()
    if told != _ANY and _TYPE.fullmatch(told):
        return told
    ending = names.last_part(name).rpartition(".")[2].casefold()
    return _BY_ENDING.get(ending) or guess_type(f"x.{ending}")[0] or _ANY


def delete(actor: Actor, file: WorkspaceFile) -> WorkspaceFile:
    """Soft-delete a locked file and commit. Its name is free immediately. Its bytes count towards the quota until it is
    removed permanently: after 30 days, or as soon as an upload needs the space."""
    if file.deleted_at is None:
        file.deleted_at = clock.now()
        audit_log.record(actor, "workspace_file.delete", file, join=True, name=file.name)
    db.session.commit()
    return file


def restore(actor: Actor, file_id: str) -> WorkspaceFile:
    """Restore a file within 30 days of its deletion and commit.

    Raise not_found, quota_exceeded, or conflict if another file or folder has the name in the meantime.
    """
    require(actor, "write")
    if not names.is_id(file_id):  # Several deleted files can have the same name
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
    """Return the content of a file as read from the database. Raise storage.MissingError (the file was replaced in the
    meantime) or unavailable, both immediately."""
    require(actor, "read", file.team_id)
    return file_store.pieces(file.storage_key, start, end)


Missing = storage.MissingError


_XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_BINARY: Final = ("image/", "audio/", "video/", "font/")
_DELIMITERS: Final = ",;\t|"


@dataclass(frozen=True, slots=True)
class Head:
    """A file preview: a table (`columns`, `rows` of texts), or `text`, or only a `note` with the reason why there is no
    preview."""

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    text: str = ""
    note: str = ""
    more: bool = field(default=False)


def head(file: WorkspaceFile) -> Head:
    """Return the preview of a file. Invalid content and storage failures never raise an error."""
    if file.size == 0:
        return Head(note="The file is empty.")
    kind, ending = file.content_type, file.name.rpartition(".")[2].casefold()
    try:
        if kind == _XLSX or ending == "xlsx":
            return _workbook(file)
        if kind.startswith(_BINARY):
            return Head(note="There is no preview of this kind of file.")
        raw = b"".join(file_store.pieces(file.storage_key, 0, limits.FILE_PREVIEW_BYTES))
    except (ApiError, MissingError):
        return Head(note="The storage does not give the file just now.")
    text = _decoded(raw)
    if text is None:
        return Head(note="There is no preview of this kind of file.")
    cut = file.size > len(raw)
    if cut:
        text = text.rpartition("\n")[0] or text
    if kind == "text/csv" or ending in ("csv", "tsv"):
        return _csv(text, cut) or _text(text, cut)
    if kind in ("application/json", "application/x-ndjson") or ending in ("json", "ndjson", "jsonl"):
        return _json(text, cut) or _text(text, cut)
    return _text(text, cut)


def _decoded(raw: bytes) -> str | None:
    """Decode bytes by their byte order mark, else as UTF-8, else as Windows-1252. Return None for binary data."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    if b"\0" in raw:
        return None
    for dropped in range(4):  # The preview may end in the middle of a character
        try:
            return raw[: len(raw) - dropped].decode()
        except UnicodeDecodeError:
            continue
    return raw.decode("cp1252", "replace")


def _text(text: str, cut: bool) -> Head:
    lines = text.splitlines()
    shown = [brief(line) for line in lines[: limits.FILE_PREVIEW_LINES]]
    return Head(text="\n".join(shown), more=cut or len(lines) > len(shown))


def _csv(text: str, cut: bool) -> Head | None:
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    rows = []
    try:
        for row in csv.reader(io.StringIO(text), delimiter=delimiter):
            if row:
                rows.append(row)
            if len(rows) > limits.FILE_PREVIEW_ROWS + 1:
                break
    except csv.Error:
        return None
    return _table(rows[0], rows[1:], cut) if rows else None


def _json(text: str, cut: bool) -> Head | None:
    try:
        found, more = _elements(text.lstrip("\ufeff \t\r\n"))
    except (ValueError, RecursionError):
        return None
    if not found:
        return None
    if not all(isinstance(item, Mapping) for item in found):
        return _table(["value"], [[cell(item)] for item in found], cut or more)
    columns = list(dict.fromkeys(str(key) for item in found for key in item))
    return _table(columns, [[cell(item.get(key)) for key in columns] for item in found], cut or more)


def _elements(text: str) -> tuple[list[Any], bool]:
    """Return the first elements of a JSON array or of a sequence of JSON values, and whether there are more."""
    decoder, array = json.JSONDecoder(), text.startswith("[")
    found: list[Any] = []
    place = 1 if array else 0
    while len(found) <= limits.FILE_PREVIEW_ROWS:
        while place < len(text) and text[place] in " \t\r\n,":
            place += 1
        if place >= len(text) or (array and text[place] == "]"):
            break
        try:
            value, place = decoder.raw_decode(text, place)
        except ValueError:
            if found:  # The preview ends within this element, or the rest is not JSON
                break
            raise
        found.append(value)
    if len(found) == 1 and isinstance(found[0], list):
        return found[0][: limits.FILE_PREVIEW_ROWS], len(found[0]) > limits.FILE_PREVIEW_ROWS
    return found[: limits.FILE_PREVIEW_ROWS], len(found) > limits.FILE_PREVIEW_ROWS


def _workbook(file: WorkspaceFile) -> Head:
    with tempfile.TemporaryFile() as copy:
        for piece in file_store.pieces(file.storage_key):
            copy.write(piece)
        try:
            found = document_process.run("webapp.files.workbooks:first_rows", copy)
        except document_process.DocumentError as error:
            return Head(note=f"There is no preview. {error.message}")
    if "note" in found:
        return Head(note=found["note"])
    rows = found["rows"]
    return _table(rows[0], rows[1:], False) if rows else Head(note="The first sheet is empty.")


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], more: bool) -> Head:
    most = limits.FILE_PREVIEW_COLUMNS
    note = f"The first {most} columns are shown." if max(map(len, [columns, *rows])) > most else ""
    shown = [[brief(cell) for cell in row[:most]] for row in rows[: limits.FILE_PREVIEW_ROWS]]
    wide = min(most, max(map(len, [columns, *rows])))
    heads = [brief(cell) for cell in columns[:most]]
    return Head(
        columns=[*heads, *[""] * (wide - len(heads))],
        rows=[[*row, *[""] * (wide - len(row))] for row in shown],
        note=note,
        more=more or len(rows) > len(shown),
    )


_READ_ONLY: Final = 0o444
_COPIED: Final = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}
)
_ABANDONED_SECONDS: Final = limits.FILE_ORPHAN_SECONDS


@dataclass(frozen=True, slots=True)
class _Wanted:
    id: str
    name: str
    size: int
    sha256: str
    key: str


def sync(workspace_id: str, project_id: str | None, folder: Path, *, link: bool = True) -> None:
    """Write every live file of a project, and those shared with the workspace, to a folder under its name, except files
    under `outputs/`.

    Files are read-only and may be hard links into the cache. `link=False` creates copies, for programs that can write
    to read-only files. A file that is replaced during the call has either its old or its new content, never a mixture;
    a file that is deleted during the call may be missing. Raise `unavailable` if the storage does not respond or the
    disk is full.
    """
    wanted = _listed(workspace_id, project_id)
    cache = Path(current_app.config["SETTINGS"].data_dir) / "cache" / "files"
    with file_store.reachable():
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        for item in wanted:
            target = folder / item.name
            target.parent.mkdir(parents=True, exist_ok=True)
            _place(cache, item, target, link=link)
        _trim(cache)


def _listed(workspace_id: str, project_id: str | None) -> list[_Wanted]:
    table = WorkspaceFile
    columns = table.id, table.name, table.size, table.sha256, table.storage_key
    with reading() as session:
        statement = select(*columns).where(
            file_store.seen(workspace_id, project_id), ~file_store.begins(f"{OUTPUTS}/")
        )
        return [_Wanted(*row) for row in session.execute(statement.order_by(table.name))]


def _place(cache: Path, wanted: _Wanted, target: Path, *, link: bool) -> None:
    """Place one file into the folder. If it was replaced or evicted in the meantime, read it again."""
    one = wanted
    for _ in range(limits.FILE_CACHE_TRIES):
        try:
            _put(_cached(cache, one), target, link=link)
            return
        except storage.MissingError:
            found = _again(one)
            if found is None:
                return
            one = found
        except FileNotFoundError:
            continue  # Evicted between the lookup and the link
    raise ApiError("unavailable", f"`{wanted.name}` changes too often to be read.", {"reason": "storage"})


def _again(one: _Wanted) -> _Wanted | None:
    """Return the current version of a file, or None if it was deleted or renamed. Raise `unavailable` if its content is
    missing although the row is unchanged."""
    table = WorkspaceFile
    columns = table.id, table.name, table.size, table.sha256, table.storage_key
    with reading() as session:
        statement = select(*columns).where(
            table.id == one.id, table.deleted_at.is_(None), table.name == one.name
        )
        row = session.execute(statement).one_or_none()
    if row is None:
        return None
    now = _Wanted(*row)
    if now.key == one.key:
        raise ApiError(
            "unavailable", f"The bytes of `{one.name}` are not in the storage.", {"reason": "storage"}
        )
    return now


def _cached(cache: Path, one: _Wanted) -> Path:
    """Return the file in the cache, fetching it if necessary. Raise storage.MissingError, unavailable or OSError."""
    path = cache / one.sha256[:2] / one.sha256
    with suppress(FileNotFoundError):
        there = path.stat()
        if there.st_size == one.size:
            # Update the access time only: programs may rely on the modification time.
            os.utime(path, ns=(int(clock.epoch() * 1e9), there.st_mtime_ns))
            return path
        path.unlink(missing_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    pieces = file_store.pieces(one.key)
    digest = hashlib.sha256()
    handle, name = tempfile.mkstemp(prefix=".new-", dir=cache)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
            os.fchmod(file.fileno(), _READ_ONLY)
        if digest.hexdigest() != one.sha256:
            raise ApiError("unavailable", f"The bytes of `{one.name}` are damaged.", {"reason": "storage"})
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
    return path


def _put(path: Path, target: Path, *, link: bool) -> None:
    """Place the cached file into the folder under its name, replacing any existing file."""
    target.unlink(missing_ok=True)
    if link:
        try:
            os.link(path, target)
            return
        except OSError as error:
            if error.errno not in _COPIED:
                raise
    shutil.copyfile(path, target)
    target.chmod(_READ_ONLY)


def _trim(cache: Path) -> None:
    """Evict the least recently used files until the cache is small enough. Return immediately if another process is
    doing this."""
    with (cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        now = clock.epoch()
        for left in cache.glob(".new-*"):
            with suppress(FileNotFoundError):
                if now - left.stat().st_mtime > _ABANDONED_SECONDS:
                    left.unlink()
        held = []
        for path in cache.glob("??/*"):
            with suppress(FileNotFoundError):
                told = path.stat()
                held.append((told.st_atime_ns, told.st_size, path))
        total = sum(size for _, size, _ in held)
        for _, size, path in sorted(held):
            if total <= limits.FILE_CACHE_BYTES:
                return
            path.unlink(missing_ok=True)
            total -= size
