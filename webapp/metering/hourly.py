"""Save usage by the hour: rows when audit entries are sealed, requests from Redis.

Row counts are exact: they change in the transaction that seals the entries. Requests are counted in Redis by the rate
limiter's script, and moved to the database by the sweeper. If Redis is emptied, the counts since the last move are lost
(`limits.USAGE_FLUSH_SECONDS`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import redis
from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from webapp import ids, limits
from webapp.access.models import Workspace
from webapp.extensions import affected_row_count, read_session, redis_client, write_session
from webapp.metering.models import UsageFold, UsageHour

UsageKey = tuple[datetime, str, str, str, str]
"""`(hour, project, template, key, person)`."""
RETURNING_ACTIONS: Final = ("template.generate_cut", "export.end", "push.end")
"""Actions whose entries may give rows back: `details.given_back` of them."""
_TEMPLATE_KINDS: Final = frozenset({"template", "dataset"})
_FOLD: Final = b"fold"

# Set the counts aside with an id, unless some are set aside already. KEYS: counts, counts set aside. ARGV: the id.
# -> the counts that are ready to be moved, as HGETALL returns them.
_SET_ASIDE_LUA: Final = """
if redis.call('EXISTS', KEYS[2]) == 0 then
  if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
  redis.call('RENAME', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[2], 'fold', ARGV[1])
  redis.call('PERSIST', KEYS[2])
end
return redis.call('HGETALL', KEYS[2])
"""


def hour_of(at: datetime) -> datetime:
    """Return the beginning of the hour of a time."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def net_rows(entry: Mapping[Any, Any]) -> int:
    """Return the rows that an entry adds to the usage: negative if rows were returned to the quota."""
    details = entry["details"] or {}
    return int(entry["rows"] or 0) - int(details.get("given_back") or 0)


def usage_key(entry: Mapping[Any, Any]) -> UsageKey:
    """Return the key under which the rows of an entry are counted."""
    template = (entry["details"] or {}).get("template_id") or (
        entry["object_id"] if entry["object_type"] in _TEMPLATE_KINDS else ""
    )
    others = (entry["project_id"] or "", str(template)[:40], entry["key_id"] or "", entry["user_id"] or "")
    return (hour_of(entry["at"]), *others)


def add_rows(session: Session, entries: Iterable[Mapping[str, Any]]) -> None:
    """Add the rows of entries, all of one workspace, to its hours, in the caller's transaction."""
    found: dict[tuple[str, UsageKey], int] = defaultdict(int)
    for entry in entries:
        if rows := net_rows(entry):
            found[entry["workspace_id"], usage_key(entry)] += rows
    _upsert(session, [{**_hour_key(*target), "rows": rows, "requests": 0} for target, rows in found.items()])


def _hour_key(workspace_id: str, part: UsageKey) -> dict[str, Any]:
    hour, project, template, key, person = part
    return {
        "workspace_id": workspace_id,
        "hour": hour,
        "project_id": project,
        "template_id": template,
        "key_id": key,
        "user_id": person,
    }


def _upsert(session: Session, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    statement = sqlite.insert(UsageHour) if is_sqlite else postgresql.insert(UsageHour)
    sums = {
        "rows": UsageHour.rows + statement.excluded.rows,
        "requests": UsageHour.requests + statement.excluded.requests,
    }
    upsert = statement.on_conflict_do_update(index_elements=list(UsageHour.__table__.primary_key), set_=sums)
    session.execute(upsert, rows)


# --- Requests -----------------------------------------------------------------------------------------------


def counts_key(workspace_id: str) -> str:
    """Return the Redis key of a workspace's requests that have not been moved yet: a hash, see `counts_field`."""
    return f"rowsmith:{{{workspace_id}}}:asked"


def counts_field(project_id: str | None, key_id: str | None, user_id: str | None) -> str:
    """Return the hash field for a caller's requests; Redis prepends the hour: `489123|prj|key|usr`."""
    return f"{project_id or ''}|{key_id or ''}|{user_id or ''}"


def flush_requests() -> int:
    """Move the requests counted in Redis to the database, for every workspace. Return the number of workspaces that
    had any."""
    client = redis_client()
    with read_session() as session:
        workspaces = session.scalars(select(Workspace.id)).all()
    with client.pipeline(transaction=False) as pipeline:
        for workspace_id in workspaces:
            key = counts_key(workspace_id)
            pipeline.exists(key, f"{key}:apart")
        exists = pipeline.execute()
    return sum(
        _flush_workspace(client, workspace)
        for workspace, any_ in zip(workspaces, exists, strict=True)
        if any_
    )


def _flush_workspace(client: redis.Redis, workspace_id: str) -> bool:
    """Move the requests of one workspace exactly once: counts that were set aside have an id, and the database stores
    the last id that it has added."""
    key, apart = counts_key(workspace_id), f"{counts_key(workspace_id)}:apart"
    flat = client.eval(_SET_ASIDE_LUA, 2, key, apart, ids.new("req"))
    counts = dict(zip(flat[::2], flat[1::2], strict=True))
    fold = counts.pop(_FOLD, b"").decode()
    if not fold:
        return False
    with write_session() as session:
        last_fold = session.get(UsageFold, workspace_id, with_for_update=True)
        if last_fold is None or last_fold.fold != fold:
            session.merge(UsageFold(workspace_id=workspace_id, fold=fold))
            rows = [_hour_key(workspace_id, _parse_usage_key(name.decode())) for name in counts]
            _upsert(
                session,
                [
                    {**row, "rows": 0, "requests": int(n)}
                    for row, n in zip(rows, counts.values(), strict=True)
                ],
            )
    client.delete(apart)
    return True


def _parse_usage_key(name: str) -> UsageKey:
    hour, project, key, person = name.split("|")
    return (datetime.fromtimestamp(int(hour) * 3_600, UTC), project, "", key, person)


def unflushed_requests(client: redis.Redis, workspace_id: str, fold: str) -> list[tuple[UsageKey, int]]:
    """Return the requests of a workspace that have not been moved yet; `fold` is the id of the last move."""
    key = counts_key(workspace_id)
    with client.pipeline(transaction=False) as pipeline:
        pipeline.hgetall(key)
        pipeline.hgetall(f"{key}:apart")
        counts, apart = pipeline.execute()
    if apart.pop(_FOLD, b"").decode() == fold:
        apart = {}
    return [
        (_parse_usage_key(name.decode()), int(number))
        for item in (counts, apart)
        for name, number in item.items()
    ]


def purge(session: Session, now: datetime) -> int:
    """Remove hours that are kept no longer. Returns the number of rows."""
    old = UsageHour.hour < now - timedelta(days=limits.USAGE_RETENTION_DAYS)
    return affected_row_count(
        session.execute(delete(UsageHour).where(old).execution_options(synchronize_session=False))
    )
