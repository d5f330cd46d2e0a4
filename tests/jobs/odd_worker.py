"""A worker whose exports are slow and leave their pid in a file: run as a program by the tests."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from webapp.work import jobs_queue


def slow(export_id: str) -> None:
    """Holds its work for long, checking every few milliseconds."""
    from jobs.lease import leased

    with leased("export", export_id) as work:
        Path(os.environ["PID_FILE"]).write_text(str(os.getpid()))
        for _ in range(6_000):
            work.check()
            threading.Event().wait(0.01)
        work.finish()


def quick(export_id: str) -> None:
    """Complete the work immediately."""
    from jobs.lease import leased

    with leased("export", export_id) as work:
        work.finish(bytes=1)


if __name__ == "__main__":
    job = f"tests.jobs.odd_worker.{os.environ['JOB']}"
    settle = "webapp.exports.services.return_unused_quota"
    jobs_queue.KINDS = {"export": jobs_queue.WorkKind("export", job, settle, "exports", 3)}
    from jobs import worker

    worker.main()
