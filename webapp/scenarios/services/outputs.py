"""Store the files in a run's output folder as files of its project under `outputs/<run id>/`.

The folder was written by an untrusted program. Only regular files are stored. Each is opened relative to the
open folder, without following links; the reason for every rejected entry is reported.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select

from webapp import limits
from webapp.access import actors
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.files import names
from webapp.files.models import WorkspaceFile
from webapp.files.services import file_store
from webapp.files.services.files import type_of
from webapp.scenarios.models import Run

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LINK: Final = "It is a link, and links are not followed."
_OTHER: Final = "It is neither a file nor a folder."


@dataclass(slots=True)
class Stored:
    """The result of storing outputs: `files` in the format of the run ([{name, size, file_id}], where `name` is the
    full name of the workspace file), `refused` with pairs of the name in the folder and the reason, and the total
    `bytes`."""

    files: list[dict[str, Any]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    bytes: int = 0


def store_outputs(run: Run, folder: Path) -> Stored:
    """Store the files of a run's folder under `outputs/<run id>/`, ordered by name. Each is committed separately, and
    replaces a file from an earlier attempt.

    `db.session` must not have pending changes. Entries that cannot be stored are added to `refused` and do not
    affect the others: links, devices, invalid names, and files beyond the quota, RUN_OUTPUTS_BYTES or
    MAX_OUTPUT_FILES. If the storage fails, the remaining files are rejected for that reason. A missing folder
    counts as empty.
    """
    run_id, created_by = run.id, run.created_by
    actor = actors.system(run.workspace_id, run.project_id, run.team_id)
    db.session.rollback()  # No transaction stays open during storage operations
    done = Stored()
    taken: set[str] = set()
    try:
        root = os.open(folder, _DIRECTORY)
    except FileNotFoundError:
        return done
    except OSError as error:  # The program replaced it with a link or a file
        reason = os.strerror(error.errno or 0)
        _refuse(done.refused, folder.name, f"The folder of outputs cannot be read: {reason}.")
        return done
    walk = _walk(root, "", done.refused)
    try:
        for path, handle in walk:
            with os.fdopen(handle, "rb") as file:
                told = _store(actor, run_id, created_by, path, file, taken, done)
            if not told:
                break
    finally:
        walk.close()
        os.close(root)
    return done


def _store(
    actor: actors.Actor,
    run_id: str,
    created_by: str | None,
    path: str,
    file: Any,
    taken: set[str],
    done: Stored,
) -> bool:
    """Store one open file. Return False if storing further files would fail too."""
    shown = _shown(path)
    if len(done.files) >= limits.MAX_OUTPUT_FILES:
        _refuse(
            done.refused,
            shown,
            f"{limits.MAX_OUTPUT_FILES:,} files are kept of a run: this and more are left out.",
        )
        return False
    name = f"{names.OUTPUTS}/{run_id}/{names.cleaned(shown)}"
    wrong = names.faults(name)
    if wrong:
        _refuse(done.refused, shown, " ".join(fault.message for fault in wrong))
        return True
    if name in taken:
        _refuse(done.refused, shown, f"Another file of this run is stored as `{name}` already.")
        return True
    # The size in the storage: a sparse file occupies fewer bytes on the disk, and a hard-linked file counts once for
    # each name.
    size = os.fstat(file.fileno()).st_size
    if done.bytes + size > limits.RUN_OUTPUTS_BYTES:
        most = limits.RUN_OUTPUTS_BYTES
        text = f"The outputs of a run may have {most:,} bytes; {done.bytes:,} are kept, and this file has {size:,}."
        _refuse(done.refused, shown, text)
        return True
    here = file_store.seen(actor.workspace_id, actor.project_id) & (WorkspaceFile.name == name)
    try:
        replaces = db.session.scalar(select(WorkspaceFile.size).where(here))
        file_store.refuse_over(actor.workspace_id, size, replaces=replaces)
        db.session.rollback()
        held = file_store.put(actor, size, _pieces(file, size), replaces=replaces)
        row, _ = file_store.keep(
            actor, name, held, content_type=_type(name), run_id=run_id, created_by=created_by
        )
    except ApiError as error:
        db.session.rollback()
        _refuse(done.refused, shown, error.message)
        return error.status < 500
    taken.add(name)
    done.bytes += row.size
    done.files.append({"name": name, "size": row.size, "file_id": row.id})
    return True


def _type(name: str) -> str:
    return type_of(name)


def _pieces(file: Any, size: int) -> Iterator[bytes]:
    """Yield the content of a file, up to its size when it was listed."""
    left = size
    while left > 0 and (chunk := file.read(min(limits.STORAGE_CHUNK_BYTES, left))):
        left -= len(chunk)
        yield chunk


def _walk(directory: int, prefix: str, refused: list[tuple[str, str]]) -> Generator[tuple[str, int]]:
    """Yield every regular file under an open folder as (path, descriptor that the caller closes), by name."""
    with os.scandir(directory) as entries:
        found = sorted(entry.name for entry in entries)
    for name in found:
        path = prefix + name
        try:
            kind = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            if stat.S_ISDIR(kind):
                if len(path) > limits.MAX_FILE_NAME_CHARS:
                    _refuse(refused, _shown(path), "The name of this folder is too long for a file in it.")
                    continue
                inner = os.open(name, _DIRECTORY, dir_fd=directory)
                try:
                    yield from _walk(inner, f"{path}/", refused)
                finally:
                    os.close(inner)
            elif stat.S_ISREG(kind):
                handle = os.open(name, _FILE, dir_fd=directory)
                if not stat.S_ISREG(os.fstat(handle).st_mode):  # It was replaced after it was listed
                    os.close(handle)
                    _refuse(refused, _shown(path), _OTHER)
                    continue
                yield path, handle
            else:
                _refuse(refused, _shown(path), _LINK if stat.S_ISLNK(kind) else _OTHER)
        except OSError as error:
            _refuse(refused, _shown(path), f"It cannot be read: {os.strerror(error.errno or 0)}.")


def _refuse(refused: list[tuple[str, str]], path: str, why: str) -> None:
    """Add a rejected entry; beyond MAX_FAULTS, report only that there are more."""
    if len(refused) < limits.MAX_FAULTS:
        refused.append((path, why))
    elif len(refused) == limits.MAX_FAULTS:
        refused.append(("…", "More than these are not kept."))


def _shown(path: str) -> str:
    """Return a path as text, with bytes that are not UTF-8 replaced by U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")
