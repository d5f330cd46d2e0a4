"""Create the file of an export or of one of its parts: generate the bytes, hash them and store them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from flask import Flask, current_app

from jobs.lease import Lease, leased
from webapp import limits, storage
from webapp.engine.formats import Piece
from webapp.exports import export_files
from webapp.exports import services as exports
from webapp.exports.services import ExportJob
from webapp.extensions import application
from webapp.generation.services.rows import Recipe, Stream, processes_for
from webapp.monitoring import metrics


def run(export_id: str) -> None:
    """Create an export's file, or start again if a worker was lost. Every attempt produces the same bytes."""
    with leased(exports.KIND, export_id, condition=exports.single_file_condition(export_id)) as work:
        _create_file(work, exports.load_job(work.id), work.save)
    exports.return_unused_quota(export_id)


def run_part(part_id: str) -> None:
    """Create one part of an export, in parallel with other parts."""

    def save_progress(**values: Any) -> None:
        work.save(**values)
        exports.update_progress(part_id)

    with leased(exports.PART_KIND, part_id, condition=exports.part_start_condition(part_id)) as work:
        _create_file(work, exports.load_part_job(work.id), save_progress)
    exports.update_after_part(part_id)


class HashingStream:
    """A stream that calculates the SHA-256 of the bytes that pass through it."""

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self._pieces = pieces
        self._hash = hashlib.sha256()

    def __iter__(self) -> Iterator[Piece]:
        """Yield the pieces unchanged."""
        for piece in self._pieces:
            self._hash.update(piece)
            yield piece

    @property
    def sha256(self) -> str:
        """The hexadecimal digest of the bytes so far."""
        return self._hash.hexdigest()


def _create_file(work: Lease, job: ExportJob, save_progress: Callable[..., None]) -> None:
    app = application()
    recipe = job.recipe
    output = recipe.open(processes_for(recipe)) if isinstance(recipe, Recipe) else recipe.open()
    # Each attempt has its own key, so that a late worker cannot overwrite the file of the next attempt.
    key = f"{job.folder}/{work.epoch}.{job.extension}"
    pieces = _with_progress(app, work, output, save_progress)
    digest = HashingStream(export_files.reserve_pieces(app, job.folder.split("/")[1], key, pieces))
    try:
        _store(work, job, output, key, digest)
    finally:
        export_files.release(key)


def _store(work: Lease, job: ExportJob, output: Stream, key: str, digest: HashingStream) -> None:
    store = storage.get_storage(current_app)
    size = store.put(key, digest)
    try:
        seen: dict[str, Any] = {"leaks": output.leaks} if output.leaks else {}
        work.finish(
            rows_done=output.rows_generated, bytes=size, sha256=digest.sha256, storage_key=key, **seen
        )
        metrics.count("rows_generated", output.rows_generated, format=job.recipe.format.name)
    except BaseException:
        store.delete(key)
        raise


def _with_progress(
    app: Flask, work: Lease, output: Stream, save_progress: Callable[..., None]
) -> Iterator[Piece]:
    """Yield the pieces of the output. Between pieces, check the lease and save the progress.

    The storage may read pieces in its own thread, which has no application context.
    """
    saved_at = float("-inf")
    for piece in output:
        with app.app_context():
            work.check()
            if time.monotonic() - saved_at >= limits.EXPORT_PROGRESS_SECONDS:
                save_progress(rows_done=output.rows_generated)
                saved_at = time.monotonic()
        yield piece
