"""Who asks for what matters is proven once more: by their password, or where they have none by a sign-in of just now.

An unattended or stolen session then cannot change how the user signs in, or end their other sessions.
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
    """Whether the actor has signed in within the last minutes; a key says who it is with every request."""
    if actor.session_id is None:
        return True
    begun = db.session.get_one(BrowserSession, actor.session_id).created_at
    return clock.now() - begun < timedelta(minutes=limits.FRESH_SIGN_IN_MINUTES)


def must_be_fresh(actor: Actor) -> None:
    """For a person without a password. Error: forbidden."""
    if not is_fresh(actor):
        needs = f"a sign-in of the last {limits.FRESH_SIGN_IN_MINUTES} minutes"
        text = f"You have no password to say again, so this needs {needs}: sign out, sign in, and do it then."
        raise ApiError("forbidden", text, {"needs": needs})


def by_password(actor: Actor, password: str, *, code: bool = False) -> login_attempts.Attempt:
    """The attempt, still open: its caller says when all was right. With `code` it counts against the day too. A person
    without a password has to have signed in just now.

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
    """Nothing, where the actor signed in just now or says the right password. Errors as `by_password`."""
    if not is_fresh(actor):
        by_password(actor, password).succeeded()
