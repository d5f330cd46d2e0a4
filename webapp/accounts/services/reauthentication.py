"""Sensitive actions require authentication again: with the password, or without one by a recent sign-in.

This prevents someone with an unattended or stolen session from changing how the user signs in, or ending their other
sessions.
"""

from __future__ import annotations

from datetime import timedelta

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.access.models import BrowserSession, User
from webapp.accounts.services import login_attempts
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.security import passwords


def is_fresh(actor: Actor) -> bool:
    """Return whether the actor has signed in recently; API keys authenticate with every request."""
    if actor.session_id is None:
        return True
    begun = db.session.get_one(BrowserSession, actor.session_id).created_at
    return clock.now() - begun < timedelta(minutes=limits.FRESH_SIGN_IN_MINUTES)


def must_be_fresh(actor: Actor) -> None:
    """Check a user without a password. Error: forbidden."""
    if not is_fresh(actor):
        needs = f"a sign-in of the last {limits.FRESH_SIGN_IN_MINUTES} minutes"
        text = f"You have no password to say again, so this needs {needs}: sign out, sign in, and do it then."
        raise ApiError("forbidden", text, {"needs": needs})


def by_password(actor: Actor, password: str, *, code: bool = False) -> login_attempts.Attempt:
    """Check the password and return the attempt, which the caller marks as successful after all checks. With `code`, it
    also counts toward the daily limit. A user without a password must have signed in recently.

    Errors: validation_error (password), rate_limited, forbidden.
    """
    user = db.session.get_one(User, actor.user_id)
    stored, account = user.password_hash, user.email
    if stored is None:
        must_be_fresh(actor)
    db.session.rollback()  # nothing is held while the password is computed
    attempt = login_attempts.begin(account, actor.address, code=code)
    if stored is not None and not passwords.verify(password, stored):
        raise validation_error([Fault("password", "invalid", "This is not your password.")])
    return attempt


def again(actor: Actor, password: str) -> None:
    """Require a recent sign-in or the password. Errors as `by_password`."""
    if not is_fresh(actor):
        by_password(actor, password).succeeded()
