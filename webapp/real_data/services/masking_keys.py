"""A workspace's masking keys: made when first needed, sealed like its secrets, rotated, and never shown.

The newest version masks. Older ones are kept: a field that names one (`key_version`) is masked as it was before.
"""

from __future__ import annotations

import base64
import secrets as random
from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from webapp import clock, limits
from webapp.accounts.actors import Actor, require
from webapp.accounts.models import User
from webapp.audit.services import audit_log
from webapp.connections.models import MaskingKey
from webapp.connections.services import secrets
from webapp.engine.masking import Keys
from webapp.engine.masking.keys import KEY_BYTES
from webapp.errors import ApiError
from webapp.extensions import db, reading, writing
from webapp.security.vault import VaultError


def ring(workspace_id: str) -> Keys:
    """The keys of a workspace. The first is made where there is none, in a transaction of its own: call it before you
    write. Error: unavailable, without the key that they are sealed by."""
    found = _opened(workspace_id)
    if not found:
        _add(workspace_id, 1, None)
        found = _opened(workspace_id)
    return Keys(max(found), found)


def rotate(actor: Actor) -> MaskingKey:
    """A new version, which masks from now on; commits. The older ones are kept. Errors: unavailable, too_many."""
    require(actor, "secrets")
    newest = max(_versions(actor.workspace_id), default=0)
    if newest >= limits.MAX_MASKING_KEYS:
        told = f"A workspace has at most {limits.MAX_MASKING_KEYS:,} versions of its masking key."
        raise ApiError("conflict", told)
    if not _add(actor.workspace_id, newest + 1, actor.user_id):
        raise ApiError("conflict", "Somebody else has changed the key at this moment. Look, then try again.")
    made = db.session.scalars(_mine(actor.workspace_id).order_by(MaskingKey.version.desc()).limit(1)).one()
    audit_log.record(actor, "masking_key.rotate", made, join=True, version=made.version)
    db.session.commit()
    return made


def listing(actor: Actor) -> list[MaskingKey]:
    """The versions that there are, newest first."""
    require(actor, "secrets")
    return list(db.session.scalars(_mine(actor.workspace_id).order_by(MaskingKey.version.desc())))


def makers(keys: Sequence[MaskingKey]) -> dict[str, str]:
    """Who made them, by the user's id, for people to read."""
    wanted = {one.created_by for one in keys if one.created_by}
    found = db.session.scalars(select(User).where(User.id.in_(wanted))) if wanted else ()
    return {one.id: one.name or one.email for one in found}


def as_json(key: MaskingKey) -> dict[str, Any]:
    """A version as the API shows it: never the key."""
    return {"version": key.version, "created_by": key.created_by, "created_at": clock.to_text(key.created_at)}


def reseal() -> tuple[int, int]:
    """Seal every key by the newest of the vault's ring; commits. Returns how many were sealed anew, and how many there
    are. Error: unavailable, where some cannot be opened."""
    vault, renewed, total, lost, last = secrets.vault(), 0, 0, 0, ""
    while True:
        statement = select(MaskingKey).where(MaskingKey.id > last).order_by(MaskingKey.id)
        batch = db.session.scalars(statement.limit(limits.VAULT_BATCH).with_for_update()).all()
        for key in batch:
            try:
                sealed = vault.renewed(key.sealed)
            except VaultError:
                lost += 1
                continue
            if sealed is not None:
                key.sealed = sealed
                renewed += 1
        total += len(batch)
        db.session.commit()
        if len(batch) < limits.VAULT_BATCH:
            break
        last = batch[-1].id
    if lost:
        raise ApiError("unavailable", f"{lost} masking key(s) cannot be opened with any key of VAULT_KEYS.")
    return renewed, total


def count() -> int:
    """How many keys are stored."""
    return db.session.scalar(select(func.count()).select_from(MaskingKey)) or 0


def _mine(workspace_id: str) -> Any:
    return select(MaskingKey).where(MaskingKey.workspace_id == workspace_id)


def _versions(workspace_id: str) -> list[int]:
    with reading() as session:
        return [one.version for one in session.scalars(_mine(workspace_id))]


def _opened(workspace_id: str) -> dict[int, bytes]:
    with reading() as session:
        stored = {one.version: one.sealed for one in session.scalars(_mine(workspace_id))}
    try:
        return {version: base64.b64decode(secrets.vault().open(sealed)) for version, sealed in stored.items()}
    except VaultError as error:
        raise ApiError("unavailable", f"A masking key cannot be opened. {error}") from None


def _add(workspace_id: str, version: int, user_id: str | None) -> bool:
    """A fresh key, stored; false where somebody else was quicker."""
    sealed = secrets.seal(base64.b64encode(random.token_bytes(KEY_BYTES)).decode())
    try:
        with writing() as session:
            session.add(
                MaskingKey(workspace_id=workspace_id, version=version, sealed=sealed, created_by=user_id)
            )
    except IntegrityError:
        return False
    return True
