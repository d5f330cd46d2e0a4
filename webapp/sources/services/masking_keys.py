"""A workspace's masking keys: created when first needed, encrypted like its secrets, rotated, and never
shown.

The newest version is used for masking. Older ones are kept for fields that name one (`key_version`).
"""

from __future__ import annotations

import base64
import secrets as random
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.exc import IntegrityError

from webapp import app_vault, clock, limits
from webapp.access.actors import Actor, require_scope
from webapp.access.models import User
from webapp.audit.services import audit_log
from webapp.connections.models import MaskingKey
from webapp.engine.masking import KeyRing
from webapp.engine.masking.keys import KEY_BYTES
from webapp.errors import ApiError
from webapp.extensions import db, read_session, write_session
from webapp.security.sealing import VaultError


def load_keys(workspace_id: str) -> KeyRing:
    """Return the keys of a workspace. The first one is created in a separate transaction, so call this before
    you write. Raises unavailable if they cannot be decrypted."""
    found = _decrypted_keys(workspace_id)
    if not found:
        _add(workspace_id, 1, None)
        found = _decrypted_keys(workspace_id)
    return KeyRing(max(found), found)


def rotate(actor: Actor) -> MaskingKey:
    """Rotate: create a new version and commit. Older versions are kept. Raises unavailable, too_many."""
    require_scope(actor, "secrets")
    with read_session() as session:
        newest = max((item.version for item in session.scalars(_select_keys(actor.workspace_id))), default=0)
    if newest >= limits.MAX_MASKING_KEYS:
        message = f"A workspace can have at most {limits.MAX_MASKING_KEYS:,} versions of its masking key."
        raise ApiError("conflict", message)
    if not _add(actor.workspace_id, newest + 1, actor.user_id):
        raise ApiError(
            "conflict", "Another user rotated the key at the same time. Check the versions, then try again."
        )
    newest_of = _select_keys(actor.workspace_id).order_by(MaskingKey.version.desc()).limit(1)
    key = db.session.scalars(newest_of).one()
    audit_log.record(actor, "masking_key.rotate", key, join=True, version=key.version)
    db.session.commit()
    return key


def listing(actor: Actor) -> list[MaskingKey]:
    """Return the versions, newest first."""
    require_scope(actor, "secrets")
    return list(db.session.scalars(_select_keys(actor.workspace_id).order_by(MaskingKey.version.desc())))


def creator_names(keys: Sequence[MaskingKey]) -> dict[str, str]:
    """Return the names of their creators by user id."""
    user_ids = {key.created_by for key in keys if key.created_by}
    found = db.session.scalars(select(User).where(User.id.in_(user_ids))) if user_ids else ()
    return {item.id: item.name or item.email for item in found}


def as_json(key: MaskingKey) -> dict[str, Any]:
    """Return a version for the API, without the key."""
    return {"version": key.version, "created_by": key.created_by, "created_at": clock.to_text(key.created_at)}


def reencrypt_all() -> tuple[int, int]:
    """Encrypt every key with the newest vault key and commit. Return how many were re-encrypted and how many
    there are. Raises unavailable if some cannot be decrypted."""
    vault, resealed, total, failed, last = app_vault.vault(), 0, 0, 0, ""
    while True:
        statement = select(MaskingKey).where(MaskingKey.id > last).order_by(MaskingKey.id)
        batch = db.session.scalars(statement.limit(limits.VAULT_BATCH).with_for_update()).all()
        for key in batch:
            try:
                sealed = vault.reencrypt(key.sealed)
            except VaultError:
                failed += 1
                continue
            if sealed is not None:
                key.sealed = sealed
                resealed += 1
        total += len(batch)
        db.session.commit()
        if len(batch) < limits.VAULT_BATCH:
            break
        last = batch[-1].id
    if failed:
        raise ApiError(
            "unavailable", f"{failed} masking key(s) cannot be decrypted with any key in VAULT_KEYS."
        )
    return resealed, total


def count() -> int:
    """Return the number of stored keys."""
    return db.session.scalar(select(func.count()).select_from(MaskingKey)) or 0


def _select_keys(workspace_id: str) -> Select[MaskingKey]:
    return select(MaskingKey).where(MaskingKey.workspace_id == workspace_id)


def _decrypted_keys(workspace_id: str) -> dict[int, bytes]:
    with read_session() as session:
        stored = {item.version: item.sealed for item in session.scalars(_select_keys(workspace_id))}
    try:
        return {
            version: base64.b64decode(app_vault.vault().open(sealed)) for version, sealed in stored.items()
        }
    except VaultError as error:
        raise ApiError("unavailable", f"A masking key cannot be decrypted. {error}") from None


def _add(workspace_id: str, version: int, user_id: str | None) -> bool:
    """Create and store a key. Return False if another process was faster."""
    sealed = app_vault.seal(base64.b64encode(random.token_bytes(KEY_BYTES)).decode())
    try:
        with write_session() as session:
            session.add(
                MaskingKey(workspace_id=workspace_id, version=version, sealed=sealed, created_by=user_id)
            )
    except IntegrityError:
        return False
    return True
