"""Import a document: read it in a separate process, report the progress, and save the templates."""

from __future__ import annotations

from jobs.lease import leased
from webapp.extensions import db
from webapp.imports.services import background
from webapp.imports.services.imports import WorkerOptions


def run(import_id: str) -> None:
    """Run an import. It is started again if its worker is lost before it saves templates."""
    with leased(background.KIND, import_id) as work, background.progress_file() as file:
        progress: dict[str, int] = {}

        def report_progress() -> None:
            nonlocal progress
            work.check()
            if (now := background.read_progress(file)) != progress:
                progress = now
                work.save(**progress)

        def before_saving() -> None:
            report_progress()
            work.save(saving=True)

        order = background.ImportTask(import_id)
        if order.was_interrupted:
            text = (
                "The worker was lost while it was saving templates. The list of templates shows the ones "
                "that were saved."
            )
            work.finish("failed", error={"code": "worker_lost", "message": text, "details": {}})
            return
        try:
            key = order.run(WorkerOptions(str(file), report_progress), before_saving)
        finally:
            db.session.remove()
        work.save(**background.read_progress(file))
        work.finish(result_key=key)
    background.settle(import_id)
