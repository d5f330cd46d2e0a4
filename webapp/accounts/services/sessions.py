"""Browser sessions of a user: list, end one, end all others."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Select, select, update

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.access.models import BrowserSession
from webapp.accounts.services import reauthentication
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.extensions import changed_rows, db


def mine(actor: Actor) -> Select[BrowserSession]:
    """Return a query for the actor's active sessions. Error: forbidden for a key with fewer permissions than its
    user."""
    _must_be_whole(actor)
    now = clock.now()
    return select(BrowserSession).where(
        BrowserSession.user_id == actor.user_id,
        BrowserSession.ended_at.is_(None),
        BrowserSession.expires_at > now,
        BrowserSession.last_seen_at > now - timedelta(hours=limits.SESSION_IDLE_HOURS),
    )


def _must_be_whole(actor: Actor) -> None:
    """Keys with scopes and keys of runs have a limited purpose, and must not manage their user's browsers."""
    if actor.scopes is not None or actor.run_id is not None:
        message = "Only an API key without scopes can list and end sessions."
        raise ApiError("forbidden", message, {"needs": "a key without scopes"})


def prove(actor: Actor, session_id: str | None, password: str) -> None:
    """Check that the actor may end this session (None: all other sessions). The current session can always be ended;
    others need a recent sign-in or the password. Errors: validation_error, rate_limited, forbidden."""
    _must_be_whole(actor)
    if session_id is None or session_id != actor.session_id:
        reauthentication.again(actor, password)


def load(actor: Actor, session_id: str) -> BrowserSession:
    """Return one of the actor's sessions, including ended ones, locked. Errors: not_found, forbidden."""
    _must_be_whole(actor)
    statement = select(BrowserSession).where(
        BrowserSession.id == session_id, BrowserSession.user_id == actor.user_id
    )
    found = db.session.scalar(statement.with_for_update())
    if found is None:
        raise ApiError("not_found", "There is no such session.", {"id": session_id})
    return found


def end(actor: Actor, browser: BrowserSession) -> None:
    """End one of the actor's sessions, and commit."""
    if browser.ended_at is None:
        browser.ended_at = clock.now()
        audit_log.record(actor, "session.end", browser, join=True)
    db.session.commit()


def end_others(actor: Actor) -> int:
    """End all sessions except the current one (for a key, all), and return their number; commits. Error: forbidden."""
    _must_be_whole(actor)
    assert actor.user_id is not None
    ended = close(actor.user_id, actor.session_id)
    if ended:
        audit_log.record(actor, "session.end_others", ("user", actor.user_id), join=True, ended=ended)
    db.session.commit()
    return ended


def close(user_id: str, but: str | None = None) -> int:
    """End a user's sessions in the caller's transaction, optionally except one, and return their number."""
    statement = update(BrowserSession).where(
        BrowserSession.user_id == user_id,
        BrowserSession.ended_at.is_(None),
        BrowserSession.id != (but or ""),
    )
    return changed_rows(db.session.execute(statement.values(ended_at=clock.now())))
