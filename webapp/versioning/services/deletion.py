"""Deleting objects and restoring them within 30 days."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.access.tenancy import not_found
from webapp.audit.services import audit_log
from webapp.extensions import db


def soft_delete(actor: Actor, row: Any) -> None:
    """Mark a row deleted, with its audit entry, and commit. Doing it twice changes nothing."""
    if row.deleted_at is None:
        row.deleted_at = clock.now()
        audit_log.record(actor, f"{audit_log.name_of(row)}.delete", row, join=True)
    db.session.commit()


def restore(actor: Actor, row: Any) -> None:
    """Take a deletion back within 30 days, and commit. Error: not_found after that."""
    if row.deleted_at is not None:
        if clock.now() - row.deleted_at > timedelta(days=limits.RESTORE_DAYS):
            raise not_found(type(row).__name__.lower(), row.id)
        row.deleted_at = None
        audit_log.record(actor, f"{audit_log.name_of(row)}.restore", row, join=True)
    db.session.commit()
