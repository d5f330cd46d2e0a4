"""Making an export's file, or one part of it: the recipe's bytes, hashed on their way into the storage."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from flask import Flask, current_app

from jobs.lease import Lease, leased
from webapp import limits, storage
from webapp.generation.services import export_files, export_parts, exports
from webapp.generation.services.exports import Order
from webapp.generation.services.rows import Stream
from webapp.operations import metrics


def run(export_id: str) -> None:
    """Do one export, or go on with one that was lost: the same bytes, whoever makes them."""
    with leased(exports.KIND, export_id, may=export_parts.whole(export_id)) as work:
        _make(work, exports.order(work.id), work.save)
    exports.settle(export_id)


def run_part(part_id: str) -> None:
    """Do one part of an export, while others do the other parts."""

    def tell(**values: Any) -> None:
        work.save(**values)
        export_parts.progress(part_id)

    with leased(export_parts.KIND, part_id, may=export_parts.may_start(part_id)) as work:
        _make(work, exports.part_order(work.id), tell)
    exports.settle_part(part_id)


class Digest:
    """A stream that is hashed as it passes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._hash = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        """The pieces as they are."""
        for piece in self._pieces:
            self._hash.update(piece)
            yield piece

    @property
    def sha256(self) -> str:
        """Of what has passed so far, in hexadecimal."""
        return self._hash.hexdigest()


def _make(work: Lease, order: Order, tell: Callable[..., None]) -> None:
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    output = order.recipe.open()
    # Each attempt has its own name: one that wakes up too late cannot touch the file of the one after it.
    key = f"{order.folder}/{work.epoch}.{order.extension}"
    watched = _watched(app, work, output, tell)
    digest = Digest(export_files.reserved(app, order.folder.split("/")[1], key, watched))
    try:
        _put(work, order, output, key, digest)
    finally:
        export_files.release(key)


def _put(work: Lease, order: Order, output: Stream, key: str, digest: Digest) -> None:
    store = storage.of(current_app)
    size = store.put(key, digest)
    try:
        seen = {"leaks": output.leaks} if output.leaks else {}
        work.finish(rows_done=output.rows_made, bytes=size, sha256=digest.sha256, storage_key=key, **seen)
        metrics.count("rows_generated", output.rows_made, format=order.recipe.format.name)
    except BaseException:
        store.delete(key)
        raise


def _watched(app: Flask, work: Lease, output: Stream, tell: Callable[..., None]) -> Iterator[bytes]:
    """The output's pieces; between them the lease is checked and the rows done are told.

    The store may ask for pieces from a thread of its own, which has no application at hand.
    """
    told = float("-inf")
    for piece in output:
        with app.app_context():
            work.check()
            if time.monotonic() - told >= limits.EXPORT_PROGRESS_SECONDS:
                tell(rows_done=output.rows_made)
                told = time.monotonic()
        yield piece
