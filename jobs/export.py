"""Making an export's file: the recipe's bytes, hashed on their way into the storage."""

from __future__ import annotations

import time
from collections.abc import Iterator

from flask import Flask, current_app

from jobs.lease import Lease, leased
from webapp import limits, storage
from webapp.services import exports
from webapp.services.rows import Output


def run(export_id: str) -> None:
    """Do one export, or go on with one that was lost: the same bytes, whoever makes them."""
    with leased(exports.KIND, export_id) as work:
        _make(work)
    exports.settle(export_id)


def _make(work: Lease) -> None:
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    store = storage.of(app)
    order = exports.order(work.id)
    output = order.recipe.open()
    # Each attempt has its own name: one that wakes up too late cannot touch the file of the one after it.
    key = f"{order.folder}/{work.epoch}.{order.extension}"
    digest = exports.Digest(_watched(app, work, output))
    size = store.put(key, digest)
    try:
        work.finish(rows_done=output.rows_made, bytes=size, sha256=digest.sha256, storage_key=key)
    except BaseException:
        store.delete(key)
        raise


def _watched(app: Flask, work: Lease, output: Output) -> Iterator[bytes]:
    """The output's pieces; between them the lease is checked and the rows done are told.

    The store may ask for pieces from a thread of its own, which has no application at hand.
    """
    told = float("-inf")
    for piece in output:
        with app.app_context():
            work.check()
            if time.monotonic() - told >= limits.EXPORT_PROGRESS_SECONDS:
                work.save(rows_done=output.rows_made)
                told = time.monotonic()
        yield piece
