"""Webhooks: URLs that are notified of finished work.

One of a project is its editors' to keep; one of the whole workspace, which hears of every project, an admin's. Viewers
see neither: an address often holds a key of its receiver's.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import func, or_, select

from webapp import app_vault, clock, ids, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor, require
from webapp.audit.services import audit_log
from webapp.connections.services import access
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.net import urls
from webapp.net.gate import GateError
from webapp.notifications.models import Delivery, Webhook
from webapp.notifications.services import events as notifications_events
from webapp.notifications.services import webhook_delivery
from webapp.notifications.services.webhook_delivery import SECRET_PREFIX
from webapp.security.vault import VaultError
from webapp.versioning.services import versions

SCOPES: Final = ("project", "workspace")


def as_json(hook: Webhook) -> dict[str, Any]:
    """A webhook as the API shows it: never its secret."""
    return {
        "id": hook.id,
        "scope": "project" if hook.project_id else "workspace",
        "project_id": hook.project_id,
        "team_id": hook.team_id,
        "description": hook.description,
        "url": hook.url,
        "events": hook.events,
        "active": hook.active,
        "off_reason": hook.off_reason,
        "failures": hook.failures,
        "failing_since": clock.to_text(hook.failing_since),
        "old_secret_until": clock.to_text(hook.before_until),
        "created_by": hook.created_by,
        "created_at": clock.to_text(hook.created_at),
        "updated_at": clock.to_text(hook.updated_at),
    }


def delivery_json(delivery: Delivery) -> dict[str, Any]:
    """Return a delivery as the API shows it; `attempts` counts those since it was last requested, `tries` lists the
    latest."""
    return {
        "id": delivery.id,
        "webhook_id": delivery.webhook_id,
        "event": delivery.event,
        "object_id": delivery.object_id,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "response_status": delivery.response_status,
        "response_head": delivery.head,
        "ms": delivery.ms,
        "reason": delivery.reason,
        "tries": delivery.tries,
        "next_attempt_at": clock.to_text(delivery.next_at),
        "created_at": clock.to_text(delivery.created_at),
        "ended_at": clock.to_text(delivery.ended_at),
    }


# --- Webhooks ------------------------------------------------------------------------------------------------


def create(
    actor: Actor, url: str, events: Sequence[str], *, description: str = "", scope: str = "project"
) -> tuple[Webhook, str]:
    """A webhook and its secret, shown once; commits.

    Errors: forbidden, validation_error, target_not_allowed (the address guard), conflict (too many), unavailable.
    """
    require(actor, "admin" if scope == "workspace" else "write")
    if scope == "workspace":
        place: dict[str, Any] = {"workspace_id": actor.workspace_id, "project_id": None, "team_id": None}
    else:
        place = tenancy.here(actor)
    events = _checked(url, events)
    secret = _new_secret()
    _room(actor)
    now = clock.now()
    hook = Webhook(
        **place,
        url=url,
        events=list(events),
        description=description.strip(),
        sealed=app_vault.seal(secret),
        created_by=actor.user_id,
        created_at=now,
        updated_at=now,
    )
    db.session.add(hook)
    db.session.flush()
    audit_log.record(
        actor, "webhook.create", hook, join=True, url=urls.shown(url), events=list(events), scope=scope
    )
    db.session.commit()
    return hook, secret


def _room(actor: Actor) -> None:
    """Check the number of webhooks. Error: conflict if the workspace has reached the maximum."""
    count = select(func.count()).where(
        Webhook.workspace_id == actor.workspace_id, Webhook.deleted_at.is_(None)
    )
    if (db.session.scalar(count) or 0) >= limits.WEBHOOKS:
        raise ApiError("conflict", f"A workspace has at most {limits.WEBHOOKS} webhooks. Delete one first.")


def get(actor: Actor, webhook_id: str, *, lock: bool = False, deleted: bool = False) -> Webhook:
    """One webhook. Errors: not_found, forbidden."""
    hook = tenancy.get(actor, Webhook, webhook_id, "write", lock=lock, deleted=deleted)
    if hook.project_id is None:
        require(actor, "admin")
    return hook


def listing(
    actor: Actor, *, cursor: str | None = None, limit: int = limits.PAGE_LIMIT_DEFAULT, q: str | None = None
) -> pagination.Page[Webhook]:
    """A page of the present project's webhooks, and for admins those of the workspace; `q` searches descriptions."""
    require(actor, "write")
    mine = Webhook.project_id == actor.project_id
    seen = or_(mine, Webhook.project_id.is_(None)) if actor.can("admin") else mine
    statement = select(Webhook).where(
        Webhook.workspace_id == actor.workspace_id, Webhook.deleted_at.is_(None), seen
    )
    return pagination.page(
        statement,
        name="webhooks",
        identity=Webhook.id,
        cursor=cursor,
        limit=limit,
        search=(q, Webhook.description),
        context=f"{actor.workspace_id} {actor.project_id} {actor.can('admin')}",
    )


def change(actor: Actor, hook: Webhook, changes: Mapping[str, Any]) -> Webhook:
    """Change `url`, `events`, `description`, `active` of a locked webhook; commits. Turned on again it has a clean
    record. Errors: validation_error, target_not_allowed."""
    url, events = changes.get("url", hook.url), changes.get("events", hook.events)
    if {"url", "events"} & changes.keys():
        events = _checked(url, events)
    if "active" in changes and changes["active"] != hook.active:
        hook.active, hook.off_reason = changes["active"], None
        hook.failures, hook.failing_since = 0, None
    hook.url, hook.events = url, list(events)
    hook.description = changes.get("description", hook.description).strip()
    hook.updated_at = clock.now()
    told = {key: urls.shown(value) if key == "url" else value for key, value in changes.items()}
    audit_log.record(actor, "webhook.change", hook, join=True, changes=told)
    db.session.commit()
    return hook


def delete(actor: Actor, hook: Webhook) -> None:
    """Soft-delete a webhook; commits."""
    versions.soft_delete(actor, hook)


def restore(actor: Actor, hook: Webhook) -> None:
    """Take a deletion back; commits. Errors: not_found after 30 days, conflict (too many)."""
    if hook.deleted_at is not None:
        _room(actor)
    versions.restore(actor, hook)


def new_secret(actor: Actor, hook: Webhook) -> str:
    """Another secret for a locked webhook, shown once; commits. The one before signs too for a day."""
    secret, now = _new_secret(), clock.now()
    hook.sealed_before, hook.sealed = hook.sealed, app_vault.seal(secret)
    hook.before_until = now + timedelta(seconds=limits.WEBHOOK_BOTH_SECONDS)
    hook.updated_at = now
    audit_log.record(actor, "webhook.secret", hook, join=True)
    db.session.commit()
    return secret


def _new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(os.urandom(limits.WEBHOOK_SECRET_BYTES)).decode()


def _checked(url: str, events: Sequence[str]) -> list[str]:
    """Validate the URL and the events, without duplicates. Errors: validation_error, target_not_allowed: reported now
    instead of at the first event."""
    known = (*notifications_events.WILD, *notifications_events.EVENTS)
    faults = [
        Fault(
            f"events[{place}]",
            "not_allowed",
            f"There is no event {event[:80]!r}.",
            did_you_mean(event, known),
        )
        for place, event in enumerate(events)
        if event not in known
    ]
    if not events:
        faults.append(Fault("events", "too_short", "Choose at least one event.", "`*` is every event."))
    if said := urls.fault(url):
        faults.append(Fault("url", "wrong_form", said))
    if faults:
        raise validation_error(faults)
    _, host, port = urls.origin(url)
    try:
        access.gate().addresses(host, port)
    except GateError as error:
        if error.reason == "not_allowed":
            raise ApiError("target_not_allowed", error.message, {"host": host}) from None
        # A name that is not known yet may be at the first event.
    return list(dict.fromkeys(events))


# --- Deliveries ----------------------------------------------------------------------------------------------


def deliveries(
    hook: Webhook,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    status: str | None = None,
) -> pagination.Page[Delivery]:
    """A page of a webhook's deliveries, newest first."""
    statement = select(Delivery).where(Delivery.webhook_id == hook.id)
    if status is not None:
        statement = statement.where(Delivery.status == status)
    return pagination.page(
        statement,
        name="deliveries",
        identity=Delivery.id,
        cursor=cursor,
        limit=limit,
        context=f"{hook.id} {status}",
    )


def delivery(hook: Webhook, delivery_id: str, *, lock: bool = False) -> Delivery:
    """One delivery of a webhook. Error: not_found."""
    wanted = select(Delivery).where(Delivery.id == delivery_id, Delivery.webhook_id == hook.id)
    if lock:
        wanted = wanted.with_for_update().execution_options(populate_existing=True)
    found = db.session.scalar(wanted) if "\0" not in delivery_id else None
    if found is None:
        raise tenancy.not_found("delivery", delivery_id)
    return found


def test(actor: Actor, hook: Webhook) -> Delivery:
    """Send a `webhook.test` now, once, even if the webhook is disabled; returns the finished delivery; commits."""
    now = clock.now()
    made = Delivery(
        id=ids.new("dlv"),
        webhook_id=hook.id,
        event=notifications_events.TEST,
        object_id=hook.id,
        created_at=now,
        next_at=now,
    )
    told = {"type": "webhook", "id": hook.id, "events": hook.events}
    made.body = notifications_events.body(made, hook.workspace_id, hook.project_id, told)
    # Claimed from the start: the notifier only takes it if this process dies.
    made.claimed_until = now + timedelta(seconds=limits.WEBHOOK_CLAIM_SECONDS)
    made.attempts = 1
    db.session.add(made)
    audit_log.record(actor, "webhook.test", hook, join=True, delivery=made.id)
    db.session.commit()
    webhook_delivery.deliver(made, once=True)
    db.session.refresh(made)
    db.session.commit()  # lets go of the writers' lock
    return made


def redeliver(actor: Actor, hook: Webhook, found: Delivery) -> Delivery:
    """Send a locked delivery again, with the same id and the same body; commits. Errors: conflict (it is on its way,
    or its webhook is off)."""
    if found.status == "pending":
        raise ApiError("conflict", "This delivery is on its way already.", {"id": found.id})
    if not hook.active:
        raise ApiError("conflict", "This webhook is turned off. Turn it on first.", {"id": hook.id})
    found.status, found.attempts, found.next_at, found.ended_at = "pending", 0, clock.now(), None
    audit_log.record(actor, "webhook.redeliver", hook, join=True, delivery=found.id)
    db.session.commit()
    return found


# --- Upkeep --------------------------------------------------------------------------------------------------


def reseal() -> tuple[int, int]:
    """Encrypt every secret with the newest key of the vault again; commits. Return the number of secrets that were
    encrypted again, and their total number. Error: unavailable if some cannot be decrypted."""
    vault, renewed, total, lost = app_vault.vault(), 0, 0, 0
    for hook in db.session.scalars(select(Webhook).order_by(Webhook.id).with_for_update()).all():
        for column in ("sealed", "sealed_before"):
            sealed = getattr(hook, column)
            if sealed is None:
                continue
            total += 1
            try:
                fresh = vault.renewed(sealed)
            except VaultError:
                lost += 1
                continue
            if fresh is not None:
                setattr(hook, column, fresh)
                renewed += 1
    db.session.commit()
    if lost:
        raise ApiError(
            "unavailable", f"{lost} webhook secret(s) cannot be opened with any key of VAULT_KEYS."
        )
    return renewed, total


def count() -> int:
    """Return the number of webhooks with a secret."""
    return db.session.scalar(select(func.count()).select_from(Webhook)) or 0
