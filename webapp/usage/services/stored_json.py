"""How much JSON a workspace keeps in the database: the versions of its templates, datasets and scenarios, and the
requests of its exports and pushes. One of them may have 10 MB, and every change of a template is a version.

The sum is read from the database once a day and counted on in Redis. What was deleted counts until it is removed.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
from sqlalchemy import Text, cast, func, select

from webapp import limits
from webapp.accounts.actors import Actor
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.errors import ApiError
from webapp.extensions import reading, redis_client
from webapp.generation.models import Export
from webapp.pushes.models import Push
from webapp.row_templates.models import Template, TemplateVersion
from webapp.scenarios.models import Scenario, ScenarioVersion

_VERSIONS: Final = (
    (Template, TemplateVersion, TemplateVersion.template_id),
    (Dataset, DatasetVersion, DatasetVersion.dataset_id),
    (Scenario, ScenarioVersion, ScenarioVersion.scenario_id),
)
_REQUESTS: Final = (Export, Push)


def take(actor: Actor, *documents: Any) -> None:
    """Count documents that are about to be stored. Error: quota_exceeded, where the workspace keeps too much."""
    size = sum(len(orjson.dumps(one, default=str)) for one in documents)
    most = limits.STORED_JSON_BYTES[actor.plan]
    redis, name = redis_client(), f"rowsmith:stored-json:{{{actor.workspace_id}}}"
    kept = redis.get(name)
    used = int(kept) if kept is not None else None
    again = limits.STORED_JSON_AGAIN_SECONDS
    if used is None or (used + size > most and redis.set(f"{name}:read", 1, nx=True, ex=again)):
        used = stored(actor.workspace_id)
        redis.set(name, used, ex=limits.STORED_JSON_SECONDS)
    if used + size > most:
        text = (
            f"The templates, datasets and scenarios of the workspace, with all their versions, and the requests of its "
            f"exports and pushes can take at most {most // limits.MB:,} MB. Delete some that you no longer need; "
            "they count until they leave the trash."
        )
        raise ApiError("quota_exceeded", text, {"limit_bytes": most, "used_bytes": used})
    redis.incrby(name, size)


def stored(workspace_id: str) -> int:
    """The bytes that a workspace keeps, read from the database."""

    def length(*columns: Any) -> Any:
        return func.coalesce(func.sum(sum(func.length(cast(one, Text)) for one in columns)), 0)

    total = 0
    with reading() as session:
        for head, version, owner in _VERSIONS:
            of_head = select(length(version.spec, version.pins)).join(head, head.id == owner)
            total += int(session.scalar(of_head.where(head.workspace_id == workspace_id)) or 0)
        for model in _REQUESTS:
            requests = select(length(model.request, model.pins)).where(model.workspace_id == workspace_id)
            total += int(session.scalar(requests) or 0)
    return total
