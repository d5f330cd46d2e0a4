"""The second factor: codes of an authenticator app, and recovery codes in case it is lost.

Codes are those of RFC 6238. The secret is stored encrypted, recovery codes as hashes. A code is accepted once: its time
step is stored by the same statement that checks that it is later than the last one. If a workspace requires a second
factor, its members must set one up before they can open other pages (`views.identify`).
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyotp
import segno
from flask import current_app
from sqlalchemy import delete, func, select, update

from webapp import app_vault, clock, limits
from webapp.access import actors
from webapp.access.actors import Actor
from webapp.access.models import BrowserSession, Membership, RecoveryCode, SecondFactor, User, Workspace
from webapp.accounts.services import sessions
from webapp.audit.services import audit_log
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import affected_row_count, db
from webapp.security.keys import Random
from webapp.security.sealing import VaultError

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32, which has no i, l, o and u
_GROUP: Final = 4
_BLANKS: Final = re.compile(r"[\s-]+")
_MISREAD: Final = str.maketrans("ilo", "110")


def new_secret() -> str:
    """Return a new secret in base 32."""
    return pyotp.random_base32(limits.TOTP_SECRET_CHARS)


def otpauth_url(secret: str, account: str, issuer: str) -> str:
    """Return the `otpauth://` URL that authenticators read."""
    return _totp(secret).provisioning_uri(name=account, issuer_name=issuer)


def qr_code(text: str) -> str:
    """Return a text as a QR code: an inline `<svg>` without style or script, with a title for screen readers."""
    code = segno.make(text, micro=False, error="m")
    return str(
        code.svg_inline(
            border=0, svgclass="qr", lineclass=None, title="QR code for your authenticator", omitsize=True
        )
    )


def matching_time_step(secret: str, code: str, now: float, drift: int) -> int | None:
    """Return the time step of a code: the current one or an adjacent one, up to `drift` steps away. None for an invalid
    code. Every candidate is compared in constant time. `now` is in seconds since 1970."""
    totp, present, found = _totp(secret), int(now) // limits.TOTP_STEP_SECONDS, None
    for step in range(present - drift, present + drift + 1):
        if pyotp.utils.strings_equal(totp.generate_otp(step), code):
            found = step
    return found


def _totp(secret: str) -> pyotp.TOTP:
    return pyotp.TOTP(secret, digits=limits.TOTP_DIGITS, interval=limits.TOTP_STEP_SECONDS)


def is_code(text: str) -> bool:
    """Return whether a text has the form of an authenticator's code."""
    return len(text) == limits.TOTP_DIGITS and text.isascii() and text.isdigit()


def normalize_code(text: str) -> str:
    """Return an entered code in lower case, without whitespace and hyphens."""
    return _BLANKS.sub("", text).casefold()


def new_recovery_code(random: Random) -> str:
    """Return a new recovery code: six groups of four characters, 120 bits. `random(n)` gives n bytes."""
    number = int.from_bytes(random(limits.RECOVERY_CODE_BYTES), "big")
    chars = ""
    for _ in range(limits.RECOVERY_CODE_BYTES * 8 // 5):
        number, digit = divmod(number, len(_ALPHABET))
        chars += _ALPHABET[digit]
    return "-".join(chars[at : at + _GROUP] for at in range(0, len(chars), _GROUP))


def recovery_hash(user_id: str, code: str) -> str:
    """Return the stored hash of a recovery code: 120 random bits need one round. The user's id is the salt."""
    return hashlib.sha256(
        f"{user_id} {normalize_code(code).translate(_MISREAD)}".encode("utf-8", "surrogateescape")
    ).hexdigest()


# --- The second factor of a user ----------------------------------------------------------------------------

WRONG_CODE_MESSAGE = "This code is incorrect or was already used. Wait for the next one."
REQUIRED_SETTING = "require_two_factor"  # the switch in a workspace's settings


@dataclass(frozen=True, slots=True)
class TwoFactorState:
    """The second factor of a user. `since` None: not set up."""

    since: datetime | None
    codes_left: int


def get_state(user_id: str) -> TwoFactorState:
    """Return when a user has set up the second factor, and the number of remaining recovery codes."""
    since = db.session.scalar(select(SecondFactor.confirmed_at).where(SecondFactor.user_id == user_id))
    unused = select(func.count()).where(RecoveryCode.user_id == user_id, RecoveryCode.used_at.is_(None))
    return TwoFactorState(since, (db.session.scalar(unused) or 0) if since else 0)


def is_enabled(user_id: str) -> bool:
    """Return whether a user must enter a second factor when signing in."""
    return get_state(user_id).since is not None


def users_with_second_factor(user_ids: list[str]) -> set[str]:
    """Return the ids of those users who have a second factor."""
    statement = select(SecondFactor.user_id).where(
        SecondFactor.user_id.in_(user_ids), SecondFactor.confirmed_at.is_not(None)
    )
    return set(db.session.scalars(statement))


# --- Setting up and turning off -----------------------------------------------------------------------------


def begin(actor: Actor) -> None:
    """Create a new secret, which takes effect when a code is confirmed; commits. Errors: conflict, unavailable."""
    assert actor.user_id is not None
    found = _lock(actor.user_id)
    if found is not None and found.confirmed_at is not None:
        raise ApiError(
            "conflict", "Two-factor sign-in is already on. Turn it off first to move it to another device."
        )
    sealed = app_vault.seal(new_secret())
    if found is None:
        db.session.add(SecondFactor(user_id=actor.user_id, sealed=sealed))
    else:
        found.sealed = sealed
    db.session.commit()


def _lock(user_id: str) -> SecondFactor | None:
    """Return a user's second factor, locked. The user's row is locked if there is none yet."""
    db.session.get_one(User, user_id, with_for_update=True)
    return db.session.get(SecondFactor, user_id, with_for_update=True)


@dataclass(frozen=True, slots=True)
class PendingSecret:
    """The secret to add to an authenticator app."""

    secret: str
    picture: str
    """An inline `<svg>`."""


def pending_secret(actor: Actor) -> PendingSecret | None:
    """Return the secret that is being set up, or None."""
    found = db.session.get(SecondFactor, actor.user_id)
    if found is None or found.confirmed_at is not None:
        return None
    secret, user = _decrypted_secret(found), db.session.get_one(User, actor.user_id)
    return PendingSecret(secret, qr_code(otpauth_url(secret, user.email, "Rowsmith")))


def _decrypted_secret(factor: SecondFactor) -> str:
    try:
        return app_vault.vault().open(factor.sealed)
    except VaultError as error:
        raise ApiError("unavailable", str(error)) from None


def confirm(actor: Actor, password: str, code: str) -> list[str]:
    """Enable the second factor with a first code, end the user's other sessions, and return recovery codes; commits.

    Errors: validation_error (password, code), rate_limited, conflict.
    """
    found = db.session.get(SecondFactor, actor.user_id)
    if found is None or found.confirmed_at is not None:
        raise ApiError("conflict", "No setup is in progress. Start again.")
    secret, sealed = _decrypted_secret(found), found.sealed
    attempt = sessions.verify_password(actor, password, code=True)
    step = _matching_time_step(secret, normalize_code(code))
    if step is None:
        raise validation_error(
            [Fault("code", "invalid", "This code is incorrect. Check the clock of your device.")]
        )
    attempt.mark_succeeded()
    found = _lock(actor.user_id or "")
    if found is None or found.confirmed_at is not None or found.sealed != sealed:
        db.session.rollback()
        raise ApiError(
            "conflict", "The setup was completed or restarted elsewhere. Reload the page and try again."
        )
    found.confirmed_at, found.last_step = clock.now(), step
    ended = sessions.end_all(found.user_id, actor.session_id)
    if actor.session_id is not None:
        db.session.get_one(BrowserSession, actor.session_id).two_factor = True
    audit_log.record(actor, "two_factor.on", ("user", found.user_id), join=True, ended=ended)
    codes = _create_codes(found.user_id)
    db.session.commit()
    return codes


def new_codes(actor: Actor, password: str, code: str) -> list[str]:
    """Replace the recovery codes and return the new ones; commits. Errors as `turn_off`."""
    _check_password_and_code(actor, password, code)
    codes = _create_codes(actor.user_id or "")
    audit_log.record(actor, "two_factor.codes", ("user", actor.user_id or ""), join=True)
    db.session.commit()
    return codes


def turn_off(actor: Actor, password: str, code: str) -> None:
    """Turn off the second factor, and commit.

    Errors: validation_error (password, code), rate_limited, conflict (not on, or a workspace requires it).
    """
    names = workspaces_requiring(actor.user_id or "")
    if names:
        raise ApiError("conflict", f"The workspace {names[0]} requires two-factor sign-in, so it stays on.")
    _check_password_and_code(actor, password, code)
    _delete_factor(actor.user_id or "")
    audit_log.record(actor, "two_factor.off", ("user", actor.user_id or ""), join=True)
    db.session.commit()


def workspaces_requiring(user_id: str) -> list[str]:
    """Return the names of a user's workspaces that require a second factor."""
    workspace_ids = select(Membership.workspace_id).where(Membership.user_id == user_id)
    found = db.session.execute(
        select(Workspace.name, Workspace.settings).where(Workspace.id.in_(workspace_ids))
    )
    return sorted(name for name, settings in found if settings.get(REQUIRED_SETTING))


def reset(user: User) -> bool:
    """Remove a user's second factor and end their sessions, and commit. For operators, when all codes are lost.
    Return whether there was one."""
    was_on = _lock(user.id) is not None
    _delete_factor(user.id)
    sessions.end_all(user.id)
    workspace_ids = select(Membership.workspace_id).where(Membership.user_id == user.id).distinct()
    for workspace_id in db.session.scalars(workspace_ids).all():
        audit_log.record(actors.system_actor(workspace_id), "two_factor.reset", user, join=True, had=was_on)
    db.session.commit()
    return was_on


def _delete_factor(user_id: str) -> None:
    db.session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user_id))
    db.session.execute(delete(SecondFactor).where(SecondFactor.user_id == user_id))


def _create_codes(user_id: str) -> list[str]:
    db.session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user_id))
    codes = [new_recovery_code(os.urandom) for _ in range(limits.RECOVERY_CODES)]
    hashes = [recovery_hash(user_id, code) for code in codes]
    db.session.add_all(RecoveryCode(user_id=user_id, code_hash=digest) for digest in hashes)
    return codes


# --- Codes --------------------------------------------------------------------------------------------------


def use_code(user_id: str, code: str) -> str | None:
    """Use a code in the caller's transaction. Return "totp", "recovery", or None for an invalid or used code."""
    code = normalize_code(code)
    if not is_code(code):
        used: Any = update(RecoveryCode).where(
            RecoveryCode.user_id == user_id,
            RecoveryCode.code_hash == recovery_hash(user_id, code),
            RecoveryCode.used_at.is_(None),
        )
        return "recovery" if _updates_one_row(used.values(used_at=clock.now())) else None
    found = db.session.get(SecondFactor, user_id)
    if found is None or found.confirmed_at is None:
        return None
    step = _matching_time_step(_decrypted_secret(found), code)
    if step is None:
        return None
    later: Any = update(SecondFactor).where(SecondFactor.user_id == user_id, SecondFactor.last_step < step)
    return "totp" if _updates_one_row(later.values(last_step=step)) else None


def _matching_time_step(secret: str, code: str) -> int | None:
    return matching_time_step(secret, code, clock.epoch(), current_app.config["SETTINGS"].code_drift)


def _updates_one_row(statement: Any) -> bool:
    return affected_row_count(db.session.execute(statement.execution_options(synchronize_session=False))) == 1


def _check_password_and_code(actor: Actor, password: str, code: str) -> None:
    """Check password and code, and invalidate the code. Errors: validation_error, rate_limited, conflict if it is not
    enabled."""
    if not is_enabled(actor.user_id or ""):
        raise ApiError("conflict", "Two-factor sign-in is not on.")
    attempt = sessions.verify_password(actor, password, code=True)
    if use_code(actor.user_id or "", code) is None:
        raise validation_error([Fault("code", "invalid", WRONG_CODE_MESSAGE)])
    attempt.mark_succeeded()


# --- Rotation of the vault's keys ---------------------------------------------------------------------------


def reseal() -> tuple[int, int]:
    """Encrypt every secret with the newest key of the ring, and commit. Return the number of secrets that were
    encrypted again, and their total number. Error: unavailable if some cannot be decrypted."""
    vault, renewed, total, lost, last = app_vault.vault(), 0, 0, 0, ""
    while True:
        statement = select(SecondFactor).where(SecondFactor.user_id > last).order_by(SecondFactor.user_id)
        batch = db.session.scalars(statement.limit(limits.VAULT_BATCH).with_for_update()).all()
        for factor in batch:
            try:
                sealed = vault.reencrypt(factor.sealed)
            except VaultError:
                lost += 1
                continue
            if sealed is not None:
                factor.sealed = sealed
                renewed += 1
        total += len(batch)
        db.session.commit()
        if len(batch) < limits.VAULT_BATCH:
            break
        last = batch[-1].user_id
    if lost:
        raise ApiError(
            "unavailable", f"{lost} second factor(s) cannot be decrypted with any key in VAULT_KEYS."
        )
    return renewed, total


def count() -> int:
    """Return the number of stored secrets."""
    return db.session.scalar(select(func.count()).select_from(SecondFactor)) or 0
