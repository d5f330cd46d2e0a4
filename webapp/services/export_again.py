"""An export in parts once more: what was made is taken over, the rest is made."""

from __future__ import annotations

from webapp.errors import ApiError
from webapp.models import Export
from webapp.services import export_parts, exports
from webapp.services.actors import Actor


def retry(actor: Actor, export_id: str) -> Export:
    """A new export of the same rows, queued, that shares the files of the parts that were made; commits, and rings for
    workers. The rows of the other parts were given back when the export ended, and are spent now.

    Errors: not_found, forbidden, conflict (it goes on, was completed, or was not made in parts), unavailable (its pins
    cannot be kept any more), row_limit_exceeded, quota_exceeded.
    """
    _checked(exports.get(actor, export_id, "generate"))
    exports.order(export_id)  # what cannot be made any more is refused here and not by a worker
    before = _checked(exports.get(actor, export_id, "generate", lock=True))
    made = [part for part in export_parts.of(before) if part.status == "completed" and part.storage_key]
    again = Export(
        project_id=before.project_id,
        team_id=before.team_id,
        template_id=before.template_id,
        template_version=before.template_version,
        format=before.format,
        count=before.count,
        file_name=before.file_name,
        request={"ask": before.request["ask"], "bad": before.request.get("bad", False)},
        pins=before.pins,
        part_rows=before.part_rows,
        of_id=before.id,
    )
    left = before.count - sum(part.count for part in made)
    told = {"version": before.template_version, "seed": before.pins["seed"], "format": before.format}
    of = ("template", before.template_id or "")
    inside = before.request.get("quota", {}).get("records", 0) * left // max(1, before.count)
    return exports.queue(
        actor, again, "export.retry", of, largest=left, made=made, records=inside, of_export=before.id, **told
    )


def _checked(export: Export) -> Export:
    """An export whose parts can be made again."""
    if export.part_rows is None:
        text = "This export is one file, not parts; ask for it again with its `request`."
    elif not export.ended:
        text = "This export goes on. Cancel it first, or wait for its end."
    elif export.status == "completed":
        text = "All parts of this export are made."
    else:
        return export
    raise ApiError("conflict", text, {"id": export.id, "status": export.status})
