"""Webhooks: URLs that are notified of finished work, the events, and their delivery (standardwebhooks.com).

Editors manage the webhooks of a project, and admins those of the whole workspace, which receive the events of every
project. Viewers see neither, because an address often contains a key of its receiver.

An event contains names, statuses and counts of the work, never rows, parameters, messages of a target or anything else
that could hold data or a secret.

A delivery is claimed, sent, and its result recorded. If a sender dies in between, another one sends it again, so it
arrives at least once, always with the same `webhook-id` and the same bytes; only the timestamp changes between
attempts, and with it the signature. Every attempt is checked by the address guard, and no redirect is followed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

import orjson
from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from webapp import app_vault, clock, ids, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.access.models import User
from webapp.audit.models import AuditEntry
from webapp.audit.services import audit_log
from webapp.connections.services import access
from webapp.connectors import redaction
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.exports.models import Export
from webapp.extensions import affected_row_count, db, read_session, write_session
from webapp.mail import services as mail
from webapp.net import urls
from webapp.net.gate import Gate, GateError
from webapp.net.session import NetError, send_single
from webapp.notifications.models import Delivery, Webhook
from webapp.pushes.models import Push
from webapp.pushes.services.ledger import read
from webapp.scenarios.models import Run
from webapp.security.sealing import VaultError
from webapp.versioning import services as versioning
from webapp.work.models import END_STATES, Work

log = logging.getLogger(__name__)

MODELS: Final[Mapping[str, Any]] = MappingProxyType({"export": Export, "push": Push, "run": Run})
# Exports and pushes have no time limit.
END_EVENTS: Final = tuple(
    f"{kind}.{end}" for kind in MODELS for end in END_STATES if end != "timed_out" or kind == "run"
)
LIMIT_EVENT: Final = "limit.warning"  # four fifths of a plan's limit are used
EVENTS: Final = (*END_EVENTS, LIMIT_EVENT)
WILDCARDS: Final = ("*", *(f"{kind}.*" for kind in MODELS))
TEST_EVENT: Final = "webhook.test"  # sent by the test of a webhook; cannot be subscribed to


def is_subscribed(events: Iterable[str], event: str) -> bool:
    """Return whether a webhook subscribed to these events gets this one."""
    return not {"*", event, f"{event.partition('.')[0]}.*"}.isdisjoint(events)


def build_body(
    delivery: Delivery, workspace_id: str, project_id: str | None, details: Mapping[str, Any] | None
) -> str:
    """Return the payload, which is the same for every attempt."""
    return orjson.dumps(
        {
            "id": delivery.id,
            "event": delivery.event,
            "created_at": clock.to_text(delivery.created_at),
            "workspace_id": workspace_id,
            "project_id": project_id,
            "object": details,
        }
    ).decode()


def job_event(kind: str, work: Work) -> dict[str, Any]:
    """Return a job as it appears in events."""
    details = _DETAILS[kind](work)
    duration = (work.finished_at - work.started_at) if work.finished_at and work.started_at else None
    return {
        "type": kind,
        "id": work.id,
        "status": work.status,
        **details,
        "attempt": work.attempt,
        "error": {"code": work.error.get("code")} if work.error else None,
        "created_by": work.created_by,  # type: ignore[attr-defined]  # a column of every kind of work
        "created_at": clock.to_text(work.created_at),
        "started_at": clock.to_text(work.started_at),
        "finished_at": clock.to_text(work.finished_at),
        "duration_ms": max(0, round(duration.total_seconds() * 1000)) if duration is not None else None,
    }


def _export_details(row: Any) -> dict[str, Any]:
    return {
        "template_id": row.template_id,
        "template_version": row.template_version,
        "dataset_id": row.dataset_id,
        "dataset_version": row.dataset_version,
        "format": row.format,
        "file_name": row.file_name,
        "count": row.count,
        "rows_done": row.rows_done,
        "bytes": row.bytes,
        "sha256": row.sha256,
    }


def _push_details(row: Any) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "of_id": row.of_id,
        "connection_id": row.connection_id,
        "endpoint_id": row.endpoint_id,
        "template_id": row.template_id,
        "template_version": row.template_version,
        "dataset_id": row.dataset_id,
        "dataset_version": row.dataset_version,
        "target": row.target,
        "counts": read.counts(row),
    }


def _run_details(row: Any) -> dict[str, Any]:
    return {
        "scenario_id": row.scenario_id,
        "scenario_version": row.scenario_version,
        "trigger": row.trigger,
        "exit_code": row.exit_code,
        "rows_generated": row.rows_generated,
    }


_DETAILS: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = MappingProxyType(
    {"export": _export_details, "push": _push_details, "run": _run_details}
)


# --- Delivery -----------------------------------------------------------------------------------------------

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - Standard Webhooks: what a secret begins with
DISABLED_MESSAGE: Final = "The webhook is turned off."
Verdict = Literal["delivered", "again", "failed", "gone"]
# Errors in the URL itself, which do not disappear with time.
_PERMANENT: Final = frozenset({"not_allowed", "bad_url"})


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """The result of one attempt. `asked`: the number of seconds that the receiver requested us to wait."""

    verdict: Verdict
    reason: str = ""
    status: int | None = None
    ms: int | None = None
    head: str = ""
    retry_after: float = 0.0


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return `v1,` and the base64 of the HMAC-SHA256 of `<id>.<timestamp>.<body>` under the secret's bytes."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    message = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode()


def send(
    url: str, keys: Sequence[str], message_id: str, text: str, at: datetime, gate: Gate
) -> DeliveryOutcome:
    """Make one attempt. `keys` are the secrets for the signatures. Never raises: errors are part of the outcome."""
    body, timestamp = text.encode(), int(at.timestamp())
    headers = {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(key, message_id, timestamp, body) for key in keys),
    }
    try:
        reply = send_single(
            gate,
            "POST",
            url,
            headers=headers,
            body=body,
            timeout_seconds=limits.WEBHOOK_TIMEOUT_SECONDS,
            max_bytes=limits.WEBHOOK_RESPONSE_BYTES,
        )
    except NetError as error:
        return DeliveryOutcome("failed" if error.reason in _PERMANENT else "again", error.message)
    # Only the beginning of the response, in one line: receivers may echo what they were sent, secrets among it.
    query_values = [value for _, value in parse_qsl(urlsplit(url).query) if len(value) >= 8]
    unprefixed = [key.removeprefix(SECRET_PREFIX) for key in keys]
    redacted = redaction.redact(reply.body.decode("utf-8", "replace"), [*keys, *unprefixed, *query_values])
    head = mail.single_line(redacted, limits.WEBHOOK_STORED_CHARS)
    response = DeliveryOutcome(
        "failed", f"The receiver responded with status {reply.status}.", reply.status, reply.ms, head
    )
    if 200 <= reply.status < 300:
        return replace(response, verdict="delivered", reason="")
    if reply.status == 410:
        return replace(response, verdict="gone", reason="The receiver responded with status 410 (Gone).")
    if reply.status in (408, 429) or reply.status >= 500:
        retry_after = _retry_after(reply.headers.get("Retry-After", ""), at)
        return replace(response, verdict="again", retry_after=retry_after)
    if 300 <= reply.status < 400:
        reason = f"The receiver responded with a redirect ({reply.status}), which Rowsmith does not follow."
        return replace(response, reason=reason)
    return response


def _retry_after(text: str, at: datetime) -> float:
    """Return Retry-After in seconds, capped; 0 if there is none or it is invalid (RFC 9110, 10.2.3)."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:10])
    else:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, TypeError):
            return 0.0
        seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - at).total_seconds()
    return min(max(0.0, seconds), limits.WEBHOOK_RETRY_AFTER_SECONDS)


# --- Claiming a delivery, and recording its result ------------------------------------------------------------


def claim(now: datetime, busy_webhooks: Collection[str] = ()) -> Delivery | None:
    """Return the next delivery that is due, claimed for this sender, except those of the webhooks in
    `busy_webhooks`."""
    unclaimed = or_(Delivery.claimed_until.is_(None), Delivery.claimed_until < now)
    due = select(Delivery.id).where(Delivery.status == "pending", Delivery.next_at <= now, unclaimed)
    if busy_webhooks:
        due = due.where(Delivery.webhook_id.not_in(list(busy_webhooks)))
    with read_session() as session:
        found = session.scalars(due.order_by(Delivery.next_at).limit(limits.WEBHOOK_PARALLEL)).all()
    for delivery_id in found:
        if claimed := claim_by_id(delivery_id, now):
            return claimed
    return None


def claim_by_id(delivery_id: str, now: datetime) -> Delivery | None:
    """Return one delivery, claimed for this sender; None if another sender has it, or it is finished."""
    statement = (
        update(Delivery)
        .where(
            Delivery.id == delivery_id,
            Delivery.status == "pending",
            or_(Delivery.claimed_until.is_(None), Delivery.claimed_until < now),
        )
        .values(
            claimed_until=now + timedelta(seconds=limits.WEBHOOK_CLAIM_SECONDS),
            attempts=Delivery.attempts + 1,
        )
        .execution_options(synchronize_session=False)
    )
    with write_session() as session:
        if affected_row_count(session.execute(statement)) != 1:
            return None
        return session.get_one(Delivery, delivery_id)


def deliver(
    delivery: Delivery, now: Callable[[], datetime] = clock.now, *, once: bool = False
) -> DeliveryOutcome:
    """Send a delivery that was claimed, and store the outcome. `once`: a test, which is not retried, is also sent if
    the webhook is disabled, and does not count as a failure of the webhook."""
    with read_session() as session:
        hook = session.get_one(Webhook, delivery.webhook_id)
    started = now()
    if not once and (not hook.active or hook.deleted_at is not None):
        outcome = DeliveryOutcome("failed", DISABLED_MESSAGE)
    else:
        try:
            outcome = send(
                hook.url,
                signing_secrets(hook, started),
                delivery.id,
                delivery.body,
                started,
                access.create_gate(),
            )
        except VaultError as error:
            outcome = DeliveryOutcome("again", str(error))
    if once and outcome.verdict == "again":
        outcome = DeliveryOutcome("failed", outcome.reason, outcome.status, outcome.ms, outcome.head)
    _store_outcome(delivery, hook.id, outcome, started, now(), tested=once)
    log.info(
        "delivery %s: attempt %d: %s %s",
        delivery.id,
        delivery.attempts,
        outcome.verdict,
        outcome.status or "",
    )
    return outcome


def signing_secrets(hook: Webhook, now: datetime) -> list[str]:
    """Return the secrets for signatures: the current one, and for a while the previous one. Raises VaultError."""
    sealed = [hook.sealed]
    if hook.sealed_before is not None and hook.before_until is not None and hook.before_until > now:
        sealed.append(hook.sealed_before)
    return [app_vault.vault().open(item) for item in sealed]


def _store_outcome(
    delivery: Delivery,
    hook_id: str,
    outcome: DeliveryOutcome,
    started: datetime,
    now: datetime,
    *,
    tested: bool,
) -> None:
    """Store the result of an attempt, unless another sender has claimed the delivery since."""
    with write_session() as session:
        # Lock the webhook first, like all code that changes both, so that two of its deliveries cannot deadlock.
        hook = session.get(Webhook, hook_id, with_for_update=True)
        row = session.get(Delivery, delivery.id, with_for_update=True)
        if (
            hook is None
            or row is None
            or row.claimed_until != delivery.claimed_until
            or row.status != "pending"
        ):
            return
        row.claimed_until = None
        row.response_status, row.ms = outcome.status, outcome.ms
        row.reason, row.head = outcome.reason[:500], outcome.head
        attempt = {
            "at": clock.to_text(started),
            "response_status": outcome.status,
            "ms": outcome.ms,
            "reason": outcome.reason[: limits.WEBHOOK_STORED_CHARS],
        }
        row.tries = [*row.tries, attempt][-limits.WEBHOOK_LISTED_ATTEMPTS :]
        if outcome.verdict == "again" and row.attempts <= len(limits.WEBHOOK_RETRY_SECONDS):
            seconds = max(limits.WEBHOOK_RETRY_SECONDS[row.attempts - 1], outcome.retry_after)
            row.next_at = now + timedelta(seconds=seconds)
        else:
            row.status = "delivered" if outcome.verdict == "delivered" else "failed"
            row.ended_at, row.next_at = now, None
        if tested or outcome.reason == DISABLED_MESSAGE:
            return
        if outcome.verdict == "delivered":
            hook.failures, hook.failing_since = 0, None
            return
        hook.failures += 1
        hook.failing_since = hook.failing_since or started
        failing = now - hook.failing_since >= timedelta(seconds=limits.WEBHOOK_FAILING_SECONDS)
        if outcome.verdict == "gone":
            _disable(session, hook, "gone", now)
        elif hook.failures >= limits.WEBHOOK_FAILURES and failing:
            _disable(session, hook, "failing", now)


def _disable(session: Session, hook: Webhook, reason: str, now: datetime) -> None:
    """Disable the webhook, with an audit entry and an e-mail to its creator. Waiting deliveries fail when they are
    due."""
    if not hook.active:
        return
    hook.active, hook.off_reason, hook.updated_at = False, reason, now
    details: dict[str, Any] = {"reason": reason, "failures": hook.failures}
    session.add(
        AuditEntry(
            id=ids.new("aud"),
            at=now,
            workspace_id=hook.workspace_id,
            action="webhook.off",
            object_type="webhook",
            object_id=hook.id,
            project_id=hook.project_id,
            details=details,
        )
    )
    creator = session.get(User, hook.created_by) if hook.created_by else None
    if creator is not None and creator.disabled_at is None and mail.is_configured():
        explanations = {
            "gone": "Its receiver responded with status 410: it no longer exists.",
            "failing": f"{hook.failures:,} attempts in a row have failed, and none has succeeded for a day.",
        }
        letter = mail.MailContent(
            kind="webhook.off",
            recipient=creator.email,
            recipient_name=creator.name,
            subject=f"A webhook to {_host(hook.url)} was turned off",
            paragraphs=[
                f"Rowsmith has turned off a webhook that you created. {explanations[reason]}",
                "New events are not recorded for it while it is turned off. When the receiver works "
                "again, turn the webhook on and resend the deliveries that it missed from its list of deliveries.",
            ],
            details=[("Receiver", _host(hook.url)), ("Description", hook.description)],
            link=("View webhook", mail.absolute_url(f"/webhooks/{hook.id}")),
            reason="You receive this e-mail because you created the webhook.",
        )
        mail.enqueue(session, letter, workspace_id=hook.workspace_id, user_id=creator.id, about=hook.id)


def _host(url: str) -> str:
    """Return only the host name: a URL may contain a secret."""
    return mail.single_line(urlsplit(url).hostname or "")


# --- Webhooks -----------------------------------------------------------------------------------------------

SCOPES: Final = ("project", "workspace")


def as_json(hook: Webhook) -> dict[str, Any]:
    """Return a webhook as the API shows it, without its secret."""
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
    """Create a webhook, and return it with its secret, which is shown once; commits.

    Errors: forbidden, validation_error, target_not_allowed (the address guard), conflict (too many), unavailable.
    """
    require_scope(actor, "admin" if scope == "workspace" else "write")
    if scope == "workspace":
        place: dict[str, Any] = {"workspace_id": actor.workspace_id, "project_id": None, "team_id": None}
    else:
        place = tenancy.current_scope(actor)
    events = _validated_events(url, events)
    secret = _new_secret()
    _check_limit(actor)
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
        actor, "webhook.create", hook, join=True, url=urls.display_url(url), events=list(events), scope=scope
    )
    db.session.commit()
    return hook, secret


def _check_limit(actor: Actor) -> None:
    """Check the number of webhooks. Error: conflict if the workspace has reached the maximum."""
    count = select(func.count()).where(
        Webhook.workspace_id == actor.workspace_id, Webhook.deleted_at.is_(None)
    )
    if (db.session.scalar(count) or 0) >= limits.WEBHOOKS:
        raise ApiError(
            "conflict", f"A workspace can have at most {limits.WEBHOOKS} webhooks. Delete one first."
        )


def get(actor: Actor, webhook_id: str, *, lock: bool = False, deleted: bool = False) -> Webhook:
    """Return one webhook. Errors: not_found, forbidden."""
    hook = tenancy.get(actor, Webhook, webhook_id, "write", lock=lock, deleted=deleted)
    if hook.project_id is None:
        require_scope(actor, "admin")
    return hook


def listing(
    actor: Actor, *, cursor: str | None = None, limit: int = limits.PAGE_LIMIT_DEFAULT, q: str | None = None
) -> pagination.Page[Webhook]:
    """Return a page of the current project's webhooks, and for admins those of the workspace; `q` searches
    descriptions."""
    require_scope(actor, "write")
    own_project = Webhook.project_id == actor.project_id
    visible = or_(own_project, Webhook.project_id.is_(None)) if actor.can("admin") else own_project
    statement = select(Webhook).where(
        Webhook.workspace_id == actor.workspace_id, Webhook.deleted_at.is_(None), visible
    )
    return pagination.paginate(
        statement,
        name="webhooks",
        id_column=Webhook.id,
        cursor=cursor,
        limit=limit,
        search=(q, Webhook.description),
        context=f"{actor.workspace_id} {actor.project_id} {actor.can('admin')}",
    )


def change(actor: Actor, hook: Webhook, changes: Mapping[str, Any]) -> Webhook:
    """Change `url`, `events`, `description`, `active` of a locked webhook; commits. Activating it
    resets its failures. Errors: validation_error, target_not_allowed."""
    url, events = changes.get("url", hook.url), changes.get("events", hook.events)
    if {"url", "events"} & changes.keys():
        events = _validated_events(url, events)
    if "active" in changes and changes["active"] != hook.active:
        hook.active, hook.off_reason = changes["active"], None
        hook.failures, hook.failing_since = 0, None
    hook.url, hook.events = url, list(events)
    hook.description = changes.get("description", hook.description).strip()
    hook.updated_at = clock.now()
    changed = {key: urls.display_url(value) if key == "url" else value for key, value in changes.items()}
    audit_log.record(actor, "webhook.change", hook, join=True, changes=changed)
    db.session.commit()
    return hook


def delete(actor: Actor, hook: Webhook) -> None:
    """Soft-delete a webhook; commits."""
    versioning.soft_delete(actor, hook)


def restore(actor: Actor, hook: Webhook) -> None:
    """Take a deletion back; commits. Errors: not_found after 30 days, conflict (too many)."""
    if hook.deleted_at is not None:
        _check_limit(actor)
    versioning.restore(actor, hook)


def new_secret(actor: Actor, hook: Webhook) -> str:
    """Create and return a new secret for a locked webhook; commits. The previous one also signs for one more day."""
    secret, now = _new_secret(), clock.now()
    hook.sealed_before, hook.sealed = hook.sealed, app_vault.seal(secret)
    hook.before_until = now + timedelta(seconds=limits.WEBHOOK_ROTATION_SECONDS)
    hook.updated_at = now
    audit_log.record(actor, "webhook.secret", hook, join=True)
    db.session.commit()
    return secret


def _new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(os.urandom(limits.WEBHOOK_SECRET_BYTES)).decode()


def _validated_events(url: str, events: Sequence[str]) -> list[str]:
    """Validate the URL and the events, without duplicates. Errors: validation_error, target_not_allowed: reported now
    instead of at the first event."""
    known = (*WILDCARDS, *EVENTS)
    faults = [
        Fault(
            f"events[{index}]",
            "not_allowed",
            f"Unknown event {event[:80]!r}.",
            did_you_mean(event, known),
        )
        for index, event in enumerate(events)
        if event not in known
    ]
    if not events:
        faults.append(Fault("events", "too_short", "Choose at least one event.", "Use `*` for all events."))
    if problem := urls.url_error(url):
        faults.append(Fault("url", "wrong_form", problem))
    if faults:
        raise validation_error(faults)
    _, host, port = urls.origin(url)
    try:
        access.create_gate().addresses(host, port)
    except GateError as error:
        if error.reason == "not_allowed":
            raise ApiError("target_not_allowed", error.message, {"host": host}) from None
        # A name that cannot be resolved yet may exist at the first event.
    return list(dict.fromkeys(events))


# --- Deliveries ----------------------------------------------------------------------------------------------


def deliveries(
    hook: Webhook,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    status: str | None = None,
) -> pagination.Page[Delivery]:
    """Return a page of a webhook's deliveries, newest first."""
    statement = select(Delivery).where(Delivery.webhook_id == hook.id)
    if status is not None:
        statement = statement.where(Delivery.status == status)
    return pagination.paginate(
        statement,
        name="deliveries",
        id_column=Delivery.id,
        cursor=cursor,
        limit=limit,
        context=f"{hook.id} {status}",
    )


def delivery(hook: Webhook, delivery_id: str, *, lock: bool = False) -> Delivery:
    """Return one delivery of a webhook. Error: not_found."""
    statement = select(Delivery).where(Delivery.id == delivery_id, Delivery.webhook_id == hook.id)
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    found = db.session.scalar(statement) if "\0" not in delivery_id else None
    if found is None:
        raise tenancy.not_found("delivery", delivery_id)
    return found


def send_test(actor: Actor, hook: Webhook) -> Delivery:
    """Send a `webhook.test` now, once, even if the webhook is disabled; returns the finished delivery; commits."""
    now = clock.now()
    delivery = Delivery(
        id=ids.new("dlv"),
        webhook_id=hook.id,
        event=TEST_EVENT,
        object_id=hook.id,
        created_at=now,
        next_at=now,
    )
    details = {"type": "webhook", "id": hook.id, "events": hook.events}
    delivery.body = build_body(delivery, hook.workspace_id, hook.project_id, details)
    # Claimed from the start: the notifier only takes it if this process dies.
    delivery.claimed_until = now + timedelta(seconds=limits.WEBHOOK_CLAIM_SECONDS)
    delivery.attempts = 1
    db.session.add(delivery)
    audit_log.record(actor, "webhook.test", hook, join=True, delivery=delivery.id)
    db.session.commit()
    deliver(delivery, once=True)
    db.session.refresh(delivery)
    db.session.commit()  # releases the writers' lock
    return delivery


def redeliver(actor: Actor, hook: Webhook, found: Delivery) -> Delivery:
    """Send a locked delivery again, with the same id and the same body; commits. Errors: conflict (it is on its way,
    or its webhook is off)."""
    if found.status == "pending":
        raise ApiError("conflict", "This delivery is already being sent.", {"id": found.id})
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
                fresh = vault.reencrypt(sealed)
            except VaultError:
                lost += 1
                continue
            if fresh is not None:
                setattr(hook, column, fresh)
                renewed += 1
    db.session.commit()
    if lost:
        raise ApiError(
            "unavailable", f"{lost} webhook secret(s) cannot be decrypted with any key in VAULT_KEYS."
        )
    return renewed, total


def count() -> int:
    """Return the number of webhooks with a secret."""
    return db.session.scalar(select(func.count()).select_from(Webhook)) or 0
