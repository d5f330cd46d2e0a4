"""API keys: create, list and revoke them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Select, and_, func, not_, select

from webapp import clock, limits
from webapp.access import actors, tenancy
from webapp.access.actors import KEY_SCOPES, Actor
from webapp.access.models import ApiKey, Project, User
from webapp.audit.services import audit_log
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.security import keys


def _check_may_manage(actor: Actor) -> None:
    """Check that the actor may manage keys: members may, and API keys with scopes need the scope `admin`."""
    if actor.role_for("member") is None:
        raise ApiError(
            "forbidden",
            "Only members of the workspace can manage API keys.",
            {"needs": "member", "role": "viewer"},
        )
    if actor.scopes is not None and "admin" not in actor.scopes:
        message = "This key is missing the `admin` scope, which managing keys requires."
        raise ApiError("forbidden", message, {"needs": "admin", "scope": "admin"})


def create(
    actor: Actor,
    name: str,
    *,
    api_version: str,
    scopes: Sequence[str] | None = None,
    expires_at: datetime | None = None,
    project_id: str | None = None,
    user_id: str | None = None,
) -> tuple[ApiKey, str]:
    """Create an API key for the actor (or, if the service calls this, for `user_id`). Return it with its text, which is
    shown only once; commits.

    `scopes` None: all permissions of the user's role. A key with scopes cannot create one with more permissions.
    Errors: validation_error (scopes, expiry, project), forbidden.
    """
    _check_may_manage(actor)
    owner_id = actor.user_id or user_id
    if owner_id is None:
        raise ValueError("a key needs a user")
    wanted_project_id = project_id or tenancy.current_scope(actor)["project_id"]
    project = db.session.scalar(
        tenancy.listing(actor, Project, project=False).where(Project.id == wanted_project_id)
    )
    if project is None:
        raise validation_error(
            [Fault("project_id", "unknown", "There is no such project in this workspace.")]
        )
    text, handle, secret_hash = keys.new_key(os.urandom)
    allowed = _scopes(actor, scopes)
    if expires_at is not None and expires_at <= clock.now():
        raise validation_error([Fault("expires_at", "out_of_range", "The expiry must be in the future.")])
    key = ApiKey(
        workspace_id=actor.workspace_id,
        project_id=project.id,
        team_id=project.team_id,
        name=name.strip(),
        handle=handle,
        secret_hash=secret_hash,
        scopes=allowed,
        created_by=owner_id,
        api_version=api_version,
        expires_at=expires_at,
    )
    db.session.add(key)
    db.session.flush()
    audit_log.record(actor, "api_key.create", key, join=True, name=key.name, scopes=key.scopes)
    db.session.commit()
    return key, text


def _scopes(actor: Actor, scopes: Sequence[str] | None) -> list[str] | None:
    if scopes is None:
        return None if actor.scopes is None else sorted(actor.scopes)
    faults = [
        Fault(f"scopes[{i}]", "not_allowed", f"There is no scope `{scope}`.", did_you_mean(scope, KEY_SCOPES))
        for i, scope in enumerate(scopes)
        if scope not in KEY_SCOPES
    ]
    if not scopes:
        faults.append(
            Fault("scopes", "too_short", "Specify at least one scope, or omit `scopes` to allow all.")
        )
    if actor.scopes is not None:
        faults += [
            Fault(f"scopes[{i}]", "not_allowed", f"The API key in use is missing the `{scope}` scope itself.")
            for i, scope in enumerate(scopes)
            if scope in KEY_SCOPES and scope not in actor.scopes
        ]
    if faults:
        raise validation_error(faults)
    return [scope for scope in KEY_SCOPES if scope in scopes]


def listing(actor: Actor, *, created_by: str | None = None, unused: bool | None = None) -> Select[ApiKey]:
    """Return a select of the keys that the actor may manage: their own, or for admins all of the workspace.
    `created_by`: only those of one user. `unused`: only unused ones, or only used ones."""
    _check_may_manage(actor)
    statement = tenancy.listing(actor, ApiKey, project=False).where(ApiKey.run_id.is_(None))
    if created_by is not None:
        statement = statement.where(ApiKey.created_by == created_by)
    if unused is not None:
        idle = and_(
            ApiKey.revoked_at.is_(None), func.coalesce(ApiKey.last_used_at, ApiKey.created_at) < _idle_since()
        )
        statement = statement.where(idle if unused else not_(idle))
    return statement if actor.can("admin") else statement.where(ApiKey.created_by == actor.user_id)


def is_unused(key: ApiKey) -> bool:
    """Return whether a valid key has not been used for KEY_UNUSED_DAYS."""
    return key.revoked_at is None and (key.last_used_at or key.created_at) < _idle_since()


def _idle_since() -> datetime:
    return clock.now() - timedelta(days=limits.KEY_UNUSED_DAYS)


def creators(actor: Actor) -> list[User]:
    """Return the users who created the keys of `listing`, by e-mail address."""
    creator_ids = listing(actor).with_only_columns(ApiKey.created_by)
    return list(db.session.scalars(select(User).where(User.id.in_(creator_ids)).order_by(User.email)))


def get(actor: Actor, key_id: str, *, lock: bool = False) -> ApiKey:
    """Return one of those keys. Error: not_found."""
    statement = listing(actor).where(ApiKey.id == key_id)
    found = db.session.scalar(statement.with_for_update() if lock else statement)
    if found is None:
        raise tenancy.not_found("API key", key_id)
    return found


def revoke_all(actor: Actor, user_id: str) -> list[ApiKey]:
    """Revoke every valid key of a user, and commit. Return those keys.

    Error: not_found for a user with no key that the actor can manage.
    """
    if "\0" in user_id or db.session.scalar(listing(actor, created_by=user_id).limit(1)) is None:
        raise tenancy.not_found("user with keys", user_id)
    revoked = revoke_all_in_transaction(actor, user_id)
    db.session.commit()
    return revoked


def revoke_all_in_transaction(actor: Actor, user_id: str) -> list[ApiKey]:
    """Like `revoke_all`, in the caller's transaction."""
    valid = listing(actor, created_by=user_id).where(ApiKey.revoked_at.is_(None)).order_by(ApiKey.id)
    revoked = list(db.session.scalars(valid.with_for_update()))
    for key in revoked:
        key.revoked_at = clock.now()
        audit_log.record(actor, "api_key.revoke", key, join=True, name=key.name)
    if revoked:
        actors.announce_permission_change(db.session(), actor.workspace_id)
    return revoked


def revoke(actor: Actor, key: ApiKey) -> None:
    """Revoke a key, effective immediately, and commit. Repeating it does nothing."""
    if key.revoked_at is None:
        key.revoked_at = clock.now()
        audit_log.record(actor, "api_key.revoke", key, join=True, name=key.name)
        actors.announce_permission_change(db.session(), actor.workspace_id)
    db.session.commit()


# Versions of the API. A key keeps the version that was the newest when it was created.
