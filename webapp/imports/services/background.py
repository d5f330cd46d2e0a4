"""Imports that run in a worker, because reading a large document takes longer than a request may.

The document is stored, the worker reads it within larger limits and reports how many tables are finished, and the
result is stored as JSON. Both files are deleted with the row a day after the end.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final

import orjson
from flask import current_app
from sqlalchemy import delete, func, or_, select

from webapp import clock, ids, limits, storage
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.access.models import Workspace
from webapp.accounts.services import identity
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.extensions import db, read_session, redis_client, write_session
from webapp.files import services as files
from webapp.imports.models import ImportJob
from webapp.imports.services import imports
from webapp.imports.services.imports import ImportResult, SubmittedDocument, WorkerOptions
from webapp.storage import MissingError
from webapp.work import jobs_queue
from webapp.work.models import END_STATES

KIND: Final = "import"
FOLDER: Final = "imports"
"""The folder of documents and results in the storage: `imports/<workspace id>/<an id>`."""


def start(
    actor: Actor,
    submitted: SubmittedDocument,
    form: str,
    *,
    quantity: int,
    save: bool,
    types: Sequence[str],
    samples: bool,
) -> ImportJob:
    """Store a document and queue its import; commits. Errors: quota_exceeded if the workspace has too many open
    imports, unavailable if the storage fails."""
    scope = tenancy.current_scope(actor)
    if actor.user_id is None:
        raise ApiError("forbidden", "Only a user can import in the background.")
    _check_quota(actor.workspace_id)
    db.session.commit()  # storing the document takes a while
    key = f"{FOLDER}/{actor.workspace_id}/{ids.new('imp')}"
    with files.translated_errors():
        storage.get_storage(current_app).put(key, _chunks(submitted.document))
    try:
        _check_quota(actor.workspace_id)
        job = ImportJob(
            request={
                "format": form, "name": submitted.name, "quantity": quantity, "save": save, "types": list(types),
                "samples": samples,
            },
            document_key=key,
            created_by=actor.user_id,
            created_at=clock.now(),
            **scope,
        )  # fmt: skip
        db.session.add(job)
        db.session.flush()
        audit_log.record(actor, "import.create", job, join=True, name=submitted.name, save=save)
        jobs_queue.enqueue_after_commit(db.session, redis_client(), KIND, job.id)
        db.session.commit()
    except BaseException:
        db.session.rollback()
        storage.get_storage(current_app).delete(key)
        raise
    return job


def _check_quota(workspace_id: str) -> None:
    """Raise quota_exceeded if a workspace has too many open imports. Its row is locked to keep the count valid."""
    db.session.get_one(Workspace, workspace_id, with_for_update={"key_share": True}, populate_existing=True)
    conditions = ImportJob.workspace_id == workspace_id, ImportJob.status.not_in(END_STATES)
    count = db.session.scalar(select(func.count()).where(*conditions)) or 0
    if count >= limits.OPEN_IMPORTS:
        text = f"A workspace can have {limits.OPEN_IMPORTS} imports running or queued. Wait until one has finished."
        raise ApiError("quota_exceeded", text, {"limit": limits.OPEN_IMPORTS, "used": count})


def _chunks(document: bytes | IO[bytes]) -> Iterator[bytes]:
    if isinstance(document, bytes):
        yield document
        return
    document.seek(0)
    while chunk := document.read(limits.MB):
        yield chunk


def get(actor: Actor, import_id: str, *, lock: bool = False) -> ImportJob:
    """Return an import. Error: not_found."""
    return tenancy.get(actor, ImportJob, import_id, "write", lock=lock)


def as_json(job: ImportJob) -> dict[str, Any]:
    """Return an import for the API, without its result."""
    return {
        "id": job.id,
        "status": job.status,
        "name": job.request["name"],
        "save": job.request["save"],
        "tables": job.tables,
        "tables_done": job.tables_done,
        "error": job.error,
        "created_at": clock.to_text(job.created_at),
        "started_at": clock.to_text(job.started_at),
        "finished_at": clock.to_text(job.finished_at),
    }


def result(job: ImportJob) -> ImportResult | None:
    """Return the result of a completed import; None for any other, and if the result has been deleted."""
    if job.result_key is None:
        return None
    try:
        return ImportResult(**orjson.loads(b"".join(storage.get_storage(current_app).get(job.result_key))))
    except MissingError:
        return None


@contextmanager
def open_document(job: ImportJob) -> Iterator[SubmittedDocument]:
    """Yield the document of an import. Error: not_found if it has been deleted."""
    with tempfile.TemporaryFile() as copy:
        try:
            for piece in storage.get_storage(current_app).get(job.document_key):
                copy.write(piece)
        except MissingError:
            text = "The document of this import was deleted. Start a new import."
            raise ApiError("not_found", text, {"import_id": job.id}) from None
        yield SubmittedDocument(copy, job.request["name"])


def cancel(actor: Actor, job: ImportJob) -> ImportJob:
    """Cancel a locked import; commits. A queued one ends immediately, a running one within a second. Error:
    run_finished."""
    if job.has_ended:
        raise ApiError("run_finished", "This import has already finished.", {"status": job.status})
    if job.cancel_requested_at is None:
        job.cancel_requested_at = clock.now()
        audit_log.record(actor, "import.cancel", job, join=True)
    if job.status == "queued":
        job.status, job.finished_at = "cancelled", clock.now()
    db.session.commit()
    settle(job.id)
    return job


# --- For workers ---


class ImportTask:
    """One import in a worker."""

    def __init__(self, import_id: str) -> None:
        with read_session() as session:
            self._job = session.get_one(ImportJob, import_id)
        self.request: Mapping[str, Any] = self._job.request
        self.was_interrupted = self._job.saving
        """Whether an earlier worker was lost while it saved templates. They would be saved a second time."""

    def run(self, worker_options: WorkerOptions, before_saving: Any) -> str:
        """Import the document, and return the storage key of the result. Errors: those of `imports.create`; forbidden
        if the person who started the import has lost access."""
        actor = identity.actor_of_user(self._job.created_by, self._job.project_id)
        if actor is None:
            raise ApiError(
                "forbidden", "The user who started this import no longer has access to the project."
            )
        options = self.request
        with open_document(self._job) as submitted:
            result = imports.create(
                actor,
                submitted,
                options["format"],
                quantity=options["quantity"],
                save=options["save"],
                types=options["types"],
                samples=options["samples"],
                worker_options=worker_options,
                before_saving=before_saving,
            )
        key = f"{self._job.document_key}.json"
        storage.get_storage(current_app).put(key, [orjson.dumps(asdict(result))])
        return key


@contextmanager
def progress_file() -> Iterator[Path]:
    """Yield the path of a file to which the process that reads a document writes its progress."""
    folder = tempfile.mkdtemp(prefix="rowsmith-import-")
    try:
        yield Path(folder) / "progress"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_progress(file: Path) -> dict[str, int]:
    """Return `tables` and `tables_done` from a progress file; nothing if it is not there or not complete."""
    with suppress(OSError, ValueError):
        done, tables = map(int, file.read_text().split())
        return {"tables": tables, "tables_done": done}
    return {}


def settle(import_id: str) -> None:
    """Delete the document of an import that has ended, unless templates can still be created from it."""
    with read_session() as session:
        job = session.get(ImportJob, import_id)
    if job is not None and job.has_ended and (job.request["save"] or job.status != "completed"):
        storage.get_storage(current_app).delete(job.document_key)


def purge(now: datetime) -> int:
    """Delete imports that ended a day ago, and those that no worker started for a week, with their files. Called by the
    sweeper."""
    expired = or_(
        ImportJob.finished_at < now - timedelta(hours=limits.IMPORT_HOURS),
        ImportJob.created_at < now - timedelta(days=limits.IMPORT_DAYS),
    )
    with read_session() as session:
        found = session.execute(
            select(ImportJob.id, ImportJob.document_key, ImportJob.result_key).where(expired)
        ).all()
    for import_id, *keys in found:
        for key in keys:
            if key is not None:
                storage.get_storage(current_app).delete(key)
        with write_session() as session:
            session.execute(delete(ImportJob).where(ImportJob.id == import_id))
    return len(found)
