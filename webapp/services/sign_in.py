"""Signing in and out: passwords, one-time links, invitations, browser sessions.

Ten failures in five minutes, by account and by address, close the door for the rest of the five minutes, whether
the account exists or not. An attempt takes its place before the password is looked at and gives it back when it
was right, so that attempts at the same time cannot slip through. Unknown accounts take the time known ones do.
"""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass, replace
from datetime import timedelta

from flask import current_app
from sqlalchemy import select, update

from webapp import clock, limits
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.models import BrowserSession, Membership, SignInLink, User
from webapp.security import keys, passwords
from webapp.services import actors, audit, people
from webapp.services.actors import Actor
from webapp.services.identity import windows
from webapp.services.windows import Passage


@dataclass(frozen=True, slots=True)
class Visitor:
    """The browser somebody signs in from."""

    address: str
    user_agent: str
    request_id: str


def by_password(email: str, password: str, visitor: Visitor) -> str:
    """The token of a new browser session; commits.

    Errors: rate_limited, validation_error (one answer for unknown account and wrong password).
    """
    account = email.strip().lower()
    places = _take_places(account, visitor.address)
    user = people.find_user(account)
    usable = user is not None and user.disabled_at is None
    stored = user.password_hash if usable and user else None
    password = password[: limits.PASSWORD_MAX_CHARS + 1]
    db.session.rollback()  # nothing is held while the password is computed
    if not passwords.verify(password, stored) or user is None:
        _note_failure(user, visitor)
        raise _refused("E-mail address or password is wrong.")
    for log, place in places:
        windows().give_back(log, place)
    user = db.session.get_one(User, user.id)
    if stored is not None and passwords.outdated(stored):
        user.password_hash = passwords.hash_password(password)
    return start(user, visitor, "password")


def _refused(message: str) -> ApiError:
    return validation_error([Fault("password", "invalid", message)])


def _take_places(account: str, address: str) -> list[tuple[str, Passage]]:
    hashed = hashlib.blake2b(
        account.encode("utf-8", "replace"), key=str(current_app.secret_key).encode()[:64], digest_size=12
    ).hexdigest()
    places = []
    for log in (f"rowsmith:sign-in:account:{hashed}", f"rowsmith:sign-in:address:{address}"):
        place = windows().enter(log, limits.LOGIN_FAILURES, limits.LOGIN_WINDOW_SECONDS)
        if not place.accepted:
            for taken, earlier in places:
                windows().give_back(taken, earlier)
            wait = max(1, math.ceil(place.reset - clock.epoch()))
            raise ApiError(
                "rate_limited",
                f"Too many failures. Try again in {wait} s, or ask for a sign-in link.",
                {"retry_after": wait},
                headers={"Retry-After": str(wait)},
            )
        places.append((log, place))
    return places


def _note_failure(user: User | None, visitor: Visitor) -> None:
    """Failures on an account are in the trail of its workspaces; those on no account are nobody's."""
    if user is None:
        return
    mine = select(Membership.workspace_id).where(Membership.user_id == user.id).distinct()
    for workspace_id in db.session.scalars(mine).all():
        who = replace(actors.system(workspace_id), address=visitor.address, request_id=visitor.request_id)
        audit.record(who, "session.refuse", ("user", user.id), join=True)
    db.session.commit()


def start(user: User, visitor: Visitor, how: str) -> str:
    """A new browser session for a user in their first workspace; its token; commits.

    Error: forbidden when the user is a member of no workspace.
    """
    now = clock.now()
    mine = (
        select(Membership.workspace_id).where(Membership.user_id == user.id).order_by(Membership.id).limit(1)
    )
    workspace_id = db.session.scalar(mine)
    if workspace_id is None:
        raise ApiError("forbidden", "This account is a member of no workspace.", {"needs": "member"})
    token, token_hash = keys.new_token(os.urandom)
    browser = BrowserSession(
        token_hash=token_hash,
        user_id=user.id,
        workspace_id=workspace_id,
        address=visitor.address,
        user_agent=visitor.user_agent[:200],
        last_seen_at=now,
        expires_at=now + timedelta(days=limits.SESSION_DAYS),
    )
    db.session.add(browser)
    db.session.flush()
    who = replace(
        actors.system(workspace_id), user_id=user.id, address=visitor.address, request_id=visitor.request_id
    )
    audit.record(who, "session.start", browser, join=True, how=how)
    db.session.commit()
    return token


def sign_out(actor: Actor) -> None:
    """End the actor's own browser session; commits."""
    if actor.session_id is not None:
        end(actor, db.session.get_one(BrowserSession, actor.session_id))


def end(actor: Actor, browser: BrowserSession) -> None:
    """End one of the actor's sessions at once; commits. Error: not_found for somebody else's."""
    if browser.user_id != actor.user_id:
        raise ApiError("not_found", "There is no such session.", {"id": browser.id})
    if browser.ended_at is None:
        browser.ended_at = clock.now()
        audit.record(actor, "session.end", browser, join=True)
    db.session.commit()


def make_link(user: User) -> str:
    """The token of a one-time sign-in link; commits."""
    token, token_hash = keys.new_token(os.urandom)
    expires = clock.now() + timedelta(hours=limits.SIGN_IN_LINK_HOURS)
    db.session.add(SignInLink(token_hash=token_hash, user_id=user.id, expires_at=expires))
    db.session.commit()
    return token


def link_is_open(token: str) -> bool:
    """Whether a one-time link can still be used. Asking does not use it."""
    now = clock.now()
    statement = select(SignInLink.id).where(
        SignInLink.token_hash == keys.digest(token), SignInLink.used_at.is_(None), SignInLink.expires_at > now
    )
    return db.session.scalar(statement) is not None


def by_link(token: str, visitor: Visitor) -> str:
    """Use a one-time link: the token of a new browser session; commits.

    Of several at once exactly one gets in. Error: not_found for a used, expired or unknown link.
    """
    now = clock.now()
    used = (
        update(SignInLink)
        .where(
            SignInLink.token_hash == keys.digest(token),
            SignInLink.used_at.is_(None),
            SignInLink.expires_at > now,
        )
        .values(used_at=now)
        .returning(SignInLink.user_id)
    )
    user_id = db.session.scalar(used)
    user = db.session.get(User, user_id) if user_id else None
    if user is None or user.disabled_at is not None:
        db.session.rollback()
        raise ApiError("not_found", "This sign-in link has been used or has expired.")
    return start(user, visitor, "link")


def by_invitation(token: str, name: str, password: str, visitor: Visitor) -> str:
    """Accept an invitation with a new account, or with the password of the one the address has; commits.

    The token of a new browser session. Errors: not_found, validation_error, rate_limited.
    """
    invitation = people.invitation_by_token(token, lock=True)
    user = people.find_user(invitation.email)
    if user is None:
        user = people.add_user(invitation.email, name, password)
        stored = None
    else:
        stored = user.password_hash
        places = _take_places(user.email, visitor.address)
        if user.disabled_at is not None or not passwords.verify(password, stored):
            raise _refused("The address has an account, and this is not its password.")
        for log, place in places:
            windows().give_back(log, place)
    member = people.accept(invitation, user)
    who = replace(
        actors.system(member.workspace_id),
        user_id=user.id,
        address=visitor.address,
        request_id=visitor.request_id,
    )
    audit.record(who, "invitation.accept", invitation, join=True, role=member.role)
    return start(user, visitor, "invitation")


def change_password(actor: Actor, old: str, new: str) -> None:
    """Set a new password and end the person's other sessions; commits.

    An account without a password (it came by link) sets its first one without `old`. Errors: validation_error,
    rate_limited.
    """
    user = db.session.get_one(User, actor.user_id)
    people.check_password(new, "new_password")
    if user.password_hash is not None:
        stored, account = user.password_hash, user.email
        db.session.rollback()
        places = _take_places(account, actor.address)
        if not passwords.verify(old, stored):
            raise validation_error([Fault("old_password", "invalid", "This is not your password.")])
        for log, place in places:
            windows().give_back(log, place)
    hashed = passwords.hash_password(new)
    user = db.session.get_one(User, actor.user_id, with_for_update=True)
    now = clock.now()
    user.password_hash, user.updated_at = hashed, now
    others = update(BrowserSession).where(
        BrowserSession.user_id == user.id,
        BrowserSession.ended_at.is_(None),
        BrowserSession.id != (actor.session_id or ""),
    )
    db.session.execute(others.values(ended_at=now))
    audit.record(actor, "password.change", user, join=True)
    db.session.commit()
