"""Signing in and out: passwords, one-time links, invitations, browser sessions, the second step.

Failures are counted (`login_attempts`), and unknown accounts take as long as known ones. A user with a second factor is
prompted for it after every kind of sign-in; until then the sign-in is pending and there is no session.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import orjson
from flask import current_app
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from webapp import clock, limits
from webapp.access import actors
from webapp.access.actors import Actor
from webapp.access.models import BrowserSession, Identity, Membership, SignInLink, User, Workspace
from webapp.accounts.services import people, sessions, two_factor
from webapp.audit.services import audit_log
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db, redis_client
from webapp.security import keys, passwords, sealing

_PURPOSE: Final = "sign-in"


def store_pending(kind: str, data: dict[str, Any], extra: str = "") -> str:
    """Store small JSON data temporarily and return a token for it. `extra` must be given again to read it."""
    token, _ = keys.new_token(os.urandom)
    sealed = sealing.seal(_encryption_key(kind, token, extra), orjson.dumps(data))
    redis_client().set(_redis_key(kind, token), sealed, ex=limits.SIGN_IN_WAIT_SECONDS)
    return token


def peek_pending(kind: str, token: str, extra: str = "") -> dict[str, Any] | None:
    """Return stored data without deleting it; None if it was used, has expired, or `extra` differs."""
    return _decrypted(kind, token, extra, redis_client().get(_redis_key(kind, token)))


def take_pending(kind: str, token: str, extra: str = "") -> dict[str, Any] | None:
    """Return and delete the pending sign-in; None as for `peek_pending`."""
    return _decrypted(kind, token, extra, redis_client().getdel(_redis_key(kind, token)))


def _decrypted(kind: str, token: str, extra: str, sealed: Any) -> dict[str, Any] | None:
    data = sealing.unseal(_encryption_key(kind, token, extra), sealed) if sealed is not None else None
    return orjson.loads(data) if data is not None else None


def _encryption_key(kind: str, token: str, extra: str) -> bytes:
    return sealing.derive(str(current_app.secret_key), f"{_PURPOSE} {kind}", f"{token}\0{extra}")


def _redis_key(kind: str, token: str) -> str:
    return f"rowsmith:{_PURPOSE}:{kind}:{keys.digest(token)}"


_STEP: Final = "step"


@dataclass(frozen=True, slots=True)
class Visitor:
    """The browser that signs in."""

    address: str
    user_agent: str
    request_id: str


@dataclass(frozen=True, slots=True)
class SignInResult:
    """The result of the first step: the `token` of a new browser session, or a `step` that still needs a code.

    `without_password`: the account came by a link and has no password yet.
    """

    token: str = ""
    step: str = ""
    without_password: bool = False


@dataclass(frozen=True, slots=True)
class ProviderAccount:
    """An account at an identity provider, with the claims that it sent."""

    issuer: str
    subject: str
    email: str


def by_password(email: str, password: str, visitor: Visitor, target: str = "/") -> SignInResult:
    """Sign in by e-mail address and password; commits. `target` is where to go after the second step.

    Errors: rate_limited, validation_error (one answer for unknown account and wrong password).
    """
    started, account = time.monotonic(), email.strip().lower()
    attempt = sessions.begin_attempt(account, visitor.address)
    user = people.find_user(account)
    usable = user is not None and user.disabled_at is None
    stored = user.password_hash if usable and user else None
    password = password[: limits.PASSWORD_MAX_CHARS + 1]
    db.session.rollback()  # no connection is held while the password is hashed
    if not passwords.verify(password, stored) or user is None:
        record_failure(user, visitor)
        time.sleep(max(0.0, started + limits.LOGIN_REFUSAL_SECONDS - time.monotonic()))
        raise _password_error("The e-mail address or the password is incorrect.")
    attempt.mark_succeeded()
    user = db.session.get_one(User, user.id)
    if stored is not None and passwords.needs_rehash(stored):
        user.password_hash = passwords.hash_password(password)
    return complete_first_step(user, visitor, "password", target=target)


def _password_error(message: str) -> ApiError:
    return validation_error([Fault("password", "invalid", message)])


def record_failure(user: User | None, visitor: Visitor, **details: Any) -> None:
    """Record a failed sign-in in the audit log of the account's workspaces; without an account it is not recorded."""
    if user is None:
        return
    workspace_ids = select(Membership.workspace_id).where(Membership.user_id == user.id).distinct()
    for workspace_id in db.session.scalars(workspace_ids).all():
        actor = replace(
            actors.system_actor(workspace_id), address=visitor.address, request_id=visitor.request_id
        )
        audit_log.record(actor, "session.refuse", ("user", user.id), join=True, **details)
    db.session.commit()


def complete_first_step(
    user: User,
    visitor: Visitor,
    method: str,
    *,
    target: str = "/",
    skip_second_factor: bool = False,
    account: ProviderAccount | None = None,
) -> SignInResult:
    """Start a session after the first step, or the second step for users with a second factor; commits.

    `skip_second_factor`: the provider has seen a second factor itself. `account` is linked to the user when they are
    in. Error: forbidden when the user is not a member of any workspace.
    """
    if skip_second_factor or not two_factor.is_enabled(user.id):
        return SignInResult(
            create_session(user, visitor, method, used_second_factor=skip_second_factor, account=account)
        )
    state: dict[str, Any] = {
        "user": user.id,
        "how": method,
        "target": target,
        "mark": _password_fingerprint(user),
    }
    if account is not None:
        state["account"] = [account.issuer, account.subject, account.email]
    db.session.commit()  # an invitation that was accepted, a password hash that was updated
    return SignInResult(step=store_pending(_STEP, state))


def _password_fingerprint(user: User) -> str:
    """Return a value that changes with the password, which invalidates pending second steps."""
    return keys.digest(f"{user.id} {user.password_hash}")


def step_is_open(step: str) -> bool:
    """Return whether a second step still needs its code."""
    return peek_pending(_STEP, step) is not None


def by_code(step: str, code: str, visitor: Visitor) -> tuple[str, str, int | None]:
    """Complete the second step. Return the token of a new browser session, the page to open, and if the code was a
    recovery code, the number of remaining ones; commits.

    Errors: not_found (begun too long ago, or finished), rate_limited, validation_error.
    """
    stored = peek_pending(_STEP, step)
    user = db.session.get(User, stored["user"]) if stored else None
    if (
        stored is None
        or user is None
        or user.disabled_at is not None
        or stored["mark"] != _password_fingerprint(user)
    ):
        raise _expired_error()
    if not two_factor.is_enabled(user.id):  # turned off in the meantime
        raise _expired_error()
    attempt = sessions.begin_attempt(user.email, visitor.address, code=True)
    used = two_factor.use_code(user.id, code)
    if used is None:
        db.session.rollback()
        record_failure(user, visitor, step="code")
        raise validation_error([Fault("code", "invalid", two_factor.WRONG_CODE_MESSAGE)])
    if take_pending(_STEP, step) is None:  # another request was faster; this code remains valid
        db.session.rollback()
        raise _expired_error()
    attempt.mark_succeeded()
    account = ProviderAccount(*stored["account"]) if "account" in stored else None
    token = create_session(user, visitor, stored["how"], used_second_factor=True, account=account, code=used)
    codes_left = two_factor.get_state(user.id).codes_left if used == "recovery" else None
    return token, stored["target"], codes_left


def _expired_error() -> ApiError:
    return ApiError("not_found", "This sign-in has expired. Start again.")


def create_session(
    user: User,
    visitor: Visitor,
    method: str,
    *,
    used_second_factor: bool = False,
    account: ProviderAccount | None = None,
    **details: Any,
) -> str:
    """Create a browser session for a user in their first workspace, and return its token; commits.
    `used_second_factor`: with a second factor. `account` as in `complete_first_step`.

    Error: forbidden when the user is not a member of any workspace.
    """
    now = clock.now()
    workspace_ids = (
        select(Membership.workspace_id)
        .join(Workspace, Workspace.id == Membership.workspace_id)
        .where(Membership.user_id == user.id, Workspace.deleted_at.is_(None))
        .order_by(Membership.id)
        .limit(1)
    )
    workspace_id = db.session.scalar(workspace_ids)
    if workspace_id is None:
        raise ApiError("forbidden", "This account is not a member of any workspace.", {"needs": "member"})
    actor = replace(
        actors.system_actor(workspace_id),
        user_id=user.id,
        address=visitor.address,
        request_id=visitor.request_id,
    )
    if account is not None:
        _link_account(actor, user, account)
    token, token_hash = keys.new_token(os.urandom)
    browser = BrowserSession(
        token_hash=token_hash,
        user_id=user.id,
        workspace_id=workspace_id,
        address=visitor.address,
        user_agent=visitor.user_agent[:200],
        last_seen_at=now,
        expires_at=now + timedelta(days=limits.SESSION_DAYS),
        how=method[:16],
        two_factor=used_second_factor,
    )
    db.session.add(browser)
    db.session.flush()
    audit_log.record(actor, "session.start", browser, join=True, how=method, **details)
    db.session.commit()
    return token


def _link_account(actor: Actor, user: User, account: ProviderAccount) -> None:
    """Link a user to an account at the provider, in the caller's transaction. Error: conflict if the account was linked
    to another user in the meantime."""
    statement = select(Identity).where(Identity.issuer == account.issuer, Identity.subject == account.subject)
    found = db.session.scalar(statement)
    if found is None:
        identity = Identity(
            user_id=user.id,
            issuer=account.issuer,
            subject=account.subject,
            email=account.email,
            last_used_at=clock.now(),
        )
        try:
            with db.session.begin_nested():
                db.session.add(identity)
        except IntegrityError:  # the same person in another window, as a rule
            found = db.session.scalars(statement).one()
        else:
            audit_log.record(
                actor, "identity.link", identity, join=True, issuer=account.issuer, email=account.email
            )
    if found is not None:
        if found.user_id != user.id:
            raise ApiError("conflict", "This account at the provider is already linked to another user.")
        found.last_used_at = clock.now()


def linked_accounts(actor: Actor) -> list[Identity]:
    """Return the accounts at providers that are linked to the actor."""
    return list(
        db.session.scalars(select(Identity).where(Identity.user_id == actor.user_id).order_by(Identity.id))
    )


def unlink(actor: Actor, identity_id: str) -> Identity:
    """Unlink an account at a provider from the actor; commits. It may be linked again by its e-mail address.

    Error: not_found for the account of another user.
    """
    found = db.session.get(Identity, identity_id)
    if found is None or found.user_id != actor.user_id:
        raise ApiError("not_found", "There is no such linked account.", {"id": identity_id})
    audit_log.record(actor, "identity.unlink", found, join=True, issuer=found.issuer, email=found.email)
    db.session.delete(found)
    db.session.commit()
    return found


def sign_out(actor: Actor) -> None:
    """End the actor's own browser session; commits."""
    if actor.session_id is not None:
        sessions.end(actor, db.session.get_one(BrowserSession, actor.session_id))


def create_link(user: User) -> str:
    """Create a one-time sign-in link and return its token; commits."""
    token, token_hash = keys.new_token(os.urandom)
    expires = clock.now() + timedelta(hours=limits.SIGN_IN_LINK_HOURS)
    db.session.add(SignInLink(token_hash=token_hash, user_id=user.id, expires_at=expires))
    db.session.commit()
    return token


def link_is_open(token: str) -> bool:
    """Return whether a one-time link can still be used, without using it."""
    now = clock.now()
    statement = select(SignInLink.id).where(
        SignInLink.token_hash == keys.digest(token), SignInLink.used_at.is_(None), SignInLink.expires_at > now
    )
    return db.session.scalar(statement) is not None


def by_link(token: str, visitor: Visitor) -> SignInResult:
    """Use a one-time link; commits.

    Of parallel attempts exactly one succeeds. Error: not_found for a used, expired or unknown link.
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
    without_password = user.password_hash is None
    return replace(complete_first_step(user, visitor, "link"), without_password=without_password)


def by_invitation(token: str, name: str, password: str, visitor: Visitor) -> SignInResult:
    """Accept an invitation with a new account, or with the password of the one the address has; commits.

    Errors: not_found, validation_error, rate_limited.
    """
    invitation = people.invitation_by_token(token, lock=True)
    user = people.find_user(invitation.email)
    if user is None:
        workspace = db.session.get_one(Workspace, invitation.workspace_id)
        user = people.add_user(invitation.email, name, password, workspace.name)
        stored = None
    else:
        stored = user.password_hash
        attempt = sessions.begin_attempt(user.email, visitor.address)
        if user.disabled_at is not None or not passwords.verify(password, stored):
            raise _password_error("This address already has an account, and the password is incorrect.")
        attempt.mark_succeeded()
    member = people.accept_invitation(invitation, user)
    actor = replace(
        actors.system_actor(member.workspace_id),
        user_id=user.id,
        address=visitor.address,
        request_id=visitor.request_id,
    )
    audit_log.record(actor, "invitation.accept", invitation, join=True, role=member.role)
    return complete_first_step(user, visitor, "invitation")


def has_password(actor: Actor) -> bool:
    """Return whether a user can sign in with a password."""
    return db.session.get_one(User, actor.user_id).password_hash is not None


def change_password(actor: Actor, old: str, new: str) -> None:
    """Set a new password and end the user's other sessions; commits.

    An account without a password (it came by link) sets its first one without `old`, after a recent sign-in.
    Errors: validation_error (both passwords), rate_limited, forbidden.
    """
    user = db.session.get_one(User, actor.user_id)
    workspace = db.session.get_one(Workspace, actor.workspace_id)
    faults = people.password_faults(new, "new_password", (user.email, user.name, workspace.name))
    if user.password_hash is not None:
        stored, account = user.password_hash, user.email
        db.session.rollback()
        attempt = sessions.begin_attempt(account, actor.address)
        if passwords.verify(old, stored):
            attempt.mark_succeeded()
        else:
            faults.insert(0, Fault("old_password", "invalid", "This password is incorrect."))
    else:
        sessions.require_fresh_sign_in(actor)
    if faults:
        raise validation_error(faults)
    hashed = passwords.hash_password(new)
    user = db.session.get_one(User, actor.user_id, with_for_update=True)
    user.password_hash, user.updated_at = hashed, clock.now()
    sessions.end_all(user.id, actor.session_id)
    audit_log.record(actor, "password.change", user, join=True)
    db.session.commit()
