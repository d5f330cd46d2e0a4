"""Browser sessions of a user: list them, end one or all others, and require authentication again.

Sensitive actions require the password again, or without one a recent sign-in. This prevents someone with an unattended
or stolen session from changing how the user signs in, or from ending their other sessions.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from datetime import timedelta

from flask import current_app
from sqlalchemy import Select, select, update

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.access.models import BrowserSession, User
from webapp.accounts.services.identity import rate_limiter
from webapp.audit.services import audit_log
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import affected_row_count, db
from webapp.net import addresses
from webapp.rate_limiting import RateLimitResult
from webapp.security import passwords

# Rate limit of failed sign-in attempts: ten in five minutes, by account and by address.


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """An attempt that counts as a failure until `mark_succeeded` is called."""

    hits: tuple[tuple[str, RateLimitResult], ...]

    def mark_succeeded(self) -> None:
        """Remove the attempt from its windows."""
        for log, hit in self.hits:
            rate_limiter().undo_hit(log, hit)


def begin_attempt(account: str, address: str, *, code: bool = False) -> SignInAttempt:
    """Count an attempt to sign in to an account (its e-mail address). A code also counts toward the limit of a day.

    Errors: rate_limited, with Retry-After; forbidden for programs of runs, which have an API key and could otherwise
    block the sign-in of others.
    """
    if addresses.is_scenario_run(address):
        text = "Scenario runs can't sign in. Use the API key in SERVICE_API_KEY."
        raise ApiError("forbidden", text, {"needs": "person"})
    hashed = hashlib.blake2b(
        account.encode("utf-8", "replace"), key=str(current_app.secret_key).encode()[:64], digest_size=12
    ).hexdigest()
    windows: list[tuple[str, int, int]] = [
        (f"rowsmith:sign-in:account:{hashed}", limits.LOGIN_FAILURES, limits.LOGIN_WINDOW_SECONDS),
        (f"rowsmith:sign-in:address:{address}", limits.LOGIN_FAILURES, limits.LOGIN_WINDOW_SECONDS),
    ]
    if code:
        day = (limits.CODE_FAILURES_PER_DAY, limits.CODE_DAY_SECONDS)
        windows.append((f"rowsmith:sign-in:codes:{hashed}", *day))
    hits: list[tuple[str, RateLimitResult]] = []
    for log, limit, window in windows:
        result = rate_limiter().hit(log, limit, window)
        if not result.accepted:
            SignInAttempt(tuple(hits)).mark_succeeded()
            wait = max(1, math.ceil(result.reset - clock.epoch()))
            raise ApiError(
                "rate_limited",
                f"Too many failed attempts. Try again in {wait} s, or request a sign-in link.",
                {"retry_after": wait},
                headers={"Retry-After": str(wait)},
            )
        hits.append((log, result))
    return SignInAttempt(tuple(hits))


def is_fresh(actor: Actor) -> bool:
    """Return whether the actor has signed in recently; API keys authenticate with every request."""
    if actor.session_id is None:
        return True
    started_at = db.session.get_one(BrowserSession, actor.session_id).created_at
    return clock.now() - started_at < timedelta(minutes=limits.FRESH_SIGN_IN_MINUTES)


def require_fresh_sign_in(actor: Actor) -> None:
    """Check a user without a password. Error: forbidden."""
    if not is_fresh(actor):
        needs = f"a sign-in in the last {limits.FRESH_SIGN_IN_MINUTES} minutes"
        text = f"This requires {needs}, because you have no password to confirm. Sign out, sign in, and try again."
        raise ApiError("forbidden", text, {"needs": needs})


def verify_password(actor: Actor, password: str, *, code: bool = False) -> SignInAttempt:
    """Check the password and return the attempt, which the caller marks as successful after all checks. With `code`, it
    also counts toward the daily limit. A user without a password must have signed in recently.

    Errors: validation_error (password), rate_limited, forbidden.
    """
    user = db.session.get_one(User, actor.user_id)
    stored, account = user.password_hash, user.email
    if stored is None:
        require_fresh_sign_in(actor)
    db.session.rollback()  # no connection is held while the password is hashed
    attempt = begin_attempt(account, actor.address, code=code)
    if stored is not None and not passwords.verify(password, stored):
        raise validation_error([Fault("password", "invalid", "This password is incorrect.")])
    return attempt


def require_reauthentication(actor: Actor, password: str) -> None:
    """Require a recent sign-in or the password. Errors as `verify_password`."""
    if not is_fresh(actor):
        verify_password(actor, password).mark_succeeded()


# --- Browser sessions ---------------------------------------------------------------------------------------


def own_sessions(actor: Actor) -> Select[BrowserSession]:
    """Return a query for the actor's active sessions. Error: forbidden for a key with fewer permissions than its
    user."""
    _check_unrestricted(actor)
    now = clock.now()
    return select(BrowserSession).where(
        BrowserSession.user_id == actor.user_id,
        BrowserSession.ended_at.is_(None),
        BrowserSession.expires_at > now,
        BrowserSession.last_seen_at > now - timedelta(hours=limits.SESSION_IDLE_HOURS),
    )


def _check_unrestricted(actor: Actor) -> None:
    """Check that the actor may manage the sessions of its user: keys with scopes and keys of runs may not."""
    if actor.scopes is not None or actor.run_id is not None:
        message = "Only an API key without scopes can list and end sessions."
        raise ApiError("forbidden", message, {"needs": "a key without scopes"})


def check_may_end(actor: Actor, session_id: str | None, password: str) -> None:
    """Check that the actor may end this session (None: all other sessions). The current session can always be ended;
    others need a recent sign-in or the password. Errors: validation_error, rate_limited, forbidden."""
    _check_unrestricted(actor)
    if session_id is None or session_id != actor.session_id:
        require_reauthentication(actor, password)


def load(actor: Actor, session_id: str) -> BrowserSession:
    """Return one of the actor's sessions, including ended ones, locked. Errors: not_found, forbidden."""
    _check_unrestricted(actor)
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
    _check_unrestricted(actor)
    assert actor.user_id is not None
    ended = end_all(actor.user_id, actor.session_id)
    if ended:
        audit_log.record(actor, "session.end_others", ("user", actor.user_id), join=True, ended=ended)
    db.session.commit()
    return ended


def end_all(user_id: str, except_id: str | None = None) -> int:
    """End a user's sessions in the caller's transaction, optionally except one, and return their number."""
    statement = update(BrowserSession).where(
        BrowserSession.user_id == user_id,
        BrowserSession.ended_at.is_(None),
        BrowserSession.id != (except_id or ""),
    )
    return affected_row_count(db.session.execute(statement.values(ended_at=clock.now())))
