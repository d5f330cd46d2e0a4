"""The key of a run: made when its program starts, revoked in the transaction that writes its end, in no list of keys.

It may do what whoever asked for the run may do now, within five scopes; beyond that it sets the secrets that the
scenario names as writable. It is never remembered by a web process (see `identity`), so its end holds at once.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import update
from sqlalchemy.orm import Session

from webapp import limits
from webapp.accounts.models import ApiKey
from webapp.scenarios.models import Run
from webapp.security import keys

SCOPES: Final = ("read", "write", "generate", "push", "run")
API_VERSION: Final = "2026-11-21"  # the newest; a test compares it with what the views know


def issue(session: Session, run: Run, maker: str, now: datetime) -> str:
    """A fresh key for a run, in the caller's transaction; its text. An older one of the same run, which was handed back
    by its first worker, ends. `maker`: the user whose role it has."""
    revoke(session, run.id, now)
    text, handle, secret_hash = keys.new_key(os.urandom)
    seconds = run.settings["timeout_seconds"] + limits.RUN_KEY_MARGIN_SECONDS
    session.add(
        ApiKey(
            workspace_id=run.workspace_id,
            project_id=run.project_id,
            team_id=run.team_id,
            name=run.id,
            handle=handle,
            secret_hash=secret_hash,
            scopes=list(SCOPES),
            created_by=maker,
            api_version=API_VERSION,
            expires_at=now + timedelta(seconds=seconds),
            run_id=run.id,
            writable_secrets=list(run.settings["writable_secrets"]),
        )
    )
    return text


def revoke(session: Session, run_id: str, now: datetime) -> None:
    """End the key of a run, in the caller's transaction. Doing it twice changes nothing."""
    session.execute(
        update(ApiKey)
        .where(ApiKey.run_id == run_id, ApiKey.revoked_at.is_(None))
        .values(revoked_at=now)
        .execution_options(synchronize_session=False)
    )
