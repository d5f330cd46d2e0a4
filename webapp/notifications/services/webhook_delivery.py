"""Send deliveries to webhooks as specified by Standard Webhooks (standardwebhooks.com).

A delivery is claimed, sent, and its result recorded. If a sender dies in between, another one sends it again, so it
arrives at least once, always with the same `webhook-id` and the same bytes; only the timestamp changes between
attempts, and with it the signature. Every attempt is checked by the address guard, and no redirect is followed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from webapp import app_vault, clock, ids, limits
from webapp.access.models import User
from webapp.audit.models import AuditEntry
from webapp.connections.services import access
from webapp.connectors import redaction
from webapp.extensions import changed_rows, reading, writing
from webapp.mail import mail
from webapp.net.gate import Gate
from webapp.net.session import NetError, Reply, ask
from webapp.notifications.models import Delivery, Webhook
from webapp.security.vault import VaultError

log = logging.getLogger(__name__)

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - Standard Webhooks: what a secret begins with
OFF: Final = "The webhook is turned off."
Verdict = Literal["delivered", "again", "failed", "gone"]
# Errors in the URL itself, which do not disappear with time.
_LASTING: Final = frozenset({"not_allowed", "bad_url"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one attempt. `asked`: the number of seconds that the receiver requested us to wait."""

    verdict: Verdict
    reason: str = ""
    status: int | None = None
    ms: int | None = None
    head: str = ""
    asked: float = 0.0


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """`v1,` and the base64 of the HMAC-SHA256 of `<id>.<timestamp>.<body>` under the secret's bytes."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def send(url: str, keys: Sequence[str], message_id: str, text: str, at: datetime, gate: Gate) -> Outcome:
    """One attempt. `keys` are the secrets that sign. Never raises: what goes wrong is the outcome."""
    body, timestamp = text.encode(), int(at.timestamp())
    headers = {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(key, message_id, timestamp, body) for key in keys),
    }
    try:
        reply = ask(
            gate,
            "POST",
            url,
            headers=headers,
            body=body,
            timeout_seconds=limits.WEBHOOK_TIMEOUT_SECONDS,
            max_bytes=limits.WEBHOOK_ANSWER_BYTES,
        )
    except NetError as error:
        return Outcome("failed" if error.reason in _LASTING else "again", error.message)
    return _judged(reply, _head(reply.body, url, keys), at)


def _judged(reply: Reply, head: str, at: datetime) -> Outcome:
    answered = Outcome("failed", f"The receiver answered {reply.status}.", reply.status, reply.ms, head)
    if 200 <= reply.status < 300:
        return replace(answered, verdict="delivered", reason="")
    if reply.status == 410:
        return replace(answered, verdict="gone", reason="The receiver says that it is gone (410).")
    if reply.status in (408, 429) or reply.status >= 500:
        asked = _asked(reply.headers.get("Retry-After", ""), at)
        return replace(answered, verdict="again", asked=asked)
    if 300 <= reply.status < 400:
        reason = f"The receiver redirects ({reply.status}), which is not followed."
        return replace(answered, reason=reason)
    return answered


def _asked(text: str, at: datetime) -> float:
    """Retry-After in seconds, capped; 0 for none, or one that cannot be read (RFC 9110, 10.2.3)."""
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


def _head(body: bytes, url: str, keys: Sequence[str]) -> str:
    """Return the beginning of a response in one line, with secrets redacted, because receivers may echo what they were
    sent."""
    private = [value for _, value in parse_qsl(urlsplit(url).query) if len(value) >= 8]
    bare = [key.removeprefix(SECRET_PREFIX) for key in keys]
    text = redaction.without(body.decode("utf-8", "replace"), [*keys, *bare, *private])
    return mail.plain(text, limits.WEBHOOK_HEAD_CHARS)


# --- Claiming a delivery, and recording its result ------------------------------------------------------------


def claim(now: datetime, full: Collection[str] = ()) -> Delivery | None:
    """Return the next delivery that is due, claimed for this sender, except those of the webhooks in `full`."""
    free = or_(Delivery.claimed_until.is_(None), Delivery.claimed_until < now)
    due = select(Delivery.id).where(Delivery.status == "pending", Delivery.next_at <= now, free)
    if full:
        due = due.where(Delivery.webhook_id.not_in(list(full)))
    with reading() as session:
        found = session.scalars(due.order_by(Delivery.next_at).limit(limits.WEBHOOK_AT_ONCE)).all()
    for delivery_id in found:
        if taken := take(delivery_id, now):
            return taken
    return None


def take(delivery_id: str, now: datetime) -> Delivery | None:
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
    with writing() as session:
        if changed_rows(session.execute(statement)) != 1:
            return None
        return session.get_one(Delivery, delivery_id)


def deliver(delivery: Delivery, now: Callable[[], datetime] = clock.now, *, once: bool = False) -> Outcome:
    """Send a delivery that was taken, and note what became of it. `once`: a test, which is not tried again, is sent
    though its webhook is turned off, and says nothing of how the webhook fares."""
    with reading() as session:
        hook = session.get_one(Webhook, delivery.webhook_id)
    began = now()
    if not once and (not hook.active or hook.deleted_at is not None):
        outcome = Outcome("failed", OFF)
    else:
        try:
            outcome = send(hook.url, keys_of(hook, began), delivery.id, delivery.body, began, access.gate())
        except VaultError as error:
            outcome = Outcome("again", str(error))
    if once and outcome.verdict == "again":
        outcome = Outcome("failed", outcome.reason, outcome.status, outcome.ms, outcome.head)
    _note(delivery, hook.id, outcome, began, now(), tested=once)
    log.info(
        "delivery %s: attempt %d: %s %s",
        delivery.id,
        delivery.attempts,
        outcome.verdict,
        outcome.status or "",
    )
    return outcome


def keys_of(hook: Webhook, now: datetime) -> list[str]:
    """The secrets that sign: the present one, and for a while the one before. Raises VaultError."""
    sealed = [hook.sealed]
    if hook.sealed_before is not None and hook.before_until is not None and hook.before_until > now:
        sealed.append(hook.sealed_before)
    return [app_vault.vault().open(one) for one in sealed]


def _note(
    delivery: Delivery, hook_id: str, outcome: Outcome, began: datetime, now: datetime, *, tested: bool
) -> None:
    """Written only while this sender holds the delivery."""
    with writing() as session:
        # The webhook first, as everybody does who changes both: two deliveries of it must not wait for each other.
        hook = session.get(Webhook, hook_id, with_for_update=True)
        row = session.get(Delivery, delivery.id, with_for_update=True)
        if (
            hook is None
            or row is None
            or row.claimed_until != delivery.claimed_until
            or row.status != "pending"
        ):
            return
        _write(row, outcome, began, now)
        if tested or outcome.reason == OFF:
            return
        if outcome.verdict == "delivered":
            hook.failures, hook.failing_since = 0, None
            return
        hook.failures += 1
        hook.failing_since = hook.failing_since or began
        failing = now - hook.failing_since >= timedelta(seconds=limits.WEBHOOK_FAILING_SECONDS)
        if outcome.verdict == "gone":
            _turn_off(session, hook, "gone", now)
        elif hook.failures >= limits.WEBHOOK_FAILURES and failing:
            _turn_off(session, hook, "failing", now)


def _write(row: Delivery, outcome: Outcome, began: datetime, now: datetime) -> None:
    row.claimed_until = None
    row.response_status, row.ms = outcome.status, outcome.ms
    row.reason, row.head = outcome.reason[:500], outcome.head
    tried = {
        "at": clock.to_text(began),
        "response_status": outcome.status,
        "ms": outcome.ms,
        "reason": outcome.reason[: limits.WEBHOOK_HEAD_CHARS],
    }
    row.tries = [*row.tries, tried][-limits.WEBHOOK_TRIES_KEPT :]
    if outcome.verdict == "again" and row.attempts <= len(limits.WEBHOOK_WAITS):
        wait = max(limits.WEBHOOK_WAITS[row.attempts - 1], outcome.asked)
        row.next_at = now + timedelta(seconds=wait)
        return
    row.status = "delivered" if outcome.verdict == "delivered" else "failed"
    row.ended_at, row.next_at = now, None


def _turn_off(session: Session, hook: Webhook, why: str, now: datetime) -> None:
    """Disable the webhook, with an audit entry and an e-mail to its creator. Waiting deliveries fail when they are
    due."""
    if not hook.active:
        return
    hook.active, hook.off_reason, hook.updated_at = False, why, now
    details: dict[str, Any] = {"reason": why, "failures": hook.failures}
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
    maker = session.get(User, hook.created_by) if hook.created_by else None
    if maker is not None and maker.disabled_at is None and mail.configured():
        mail.post(
            session,
            _letter(hook, maker, why),
            workspace_id=hook.workspace_id,
            user_id=maker.id,
            about=hook.id,
        )


def _letter(hook: Webhook, maker: User, why: str) -> mail.Letter:
    told = {
        "gone": "Its receiver answered 410: it is gone for good.",
        "failing": f"{hook.failures:,} attempts in a row have failed, and none has succeeded for a day.",
    }
    return mail.Letter(
        kind="webhook.off",
        to=maker.email,
        name=maker.name,
        subject=f"A webhook to {_host(hook.url)} was turned off",
        lines=[
            f"Rowsmith has turned off a webhook that you created. {told[why]}",
            "Events that end from now on are not kept for it. When the receiver works again, turn it on and send "
            "again what it has missed, from its list of deliveries.",
        ],
        facts=[("Receiver", _host(hook.url)), ("Description", hook.description)],
        link=("View webhook", mail.link(f"/webhooks/{hook.id}")),
        because="You receive this e-mail because you created the webhook.",
    )


def _host(url: str) -> str:
    """Return only the host name: a URL may contain a secret."""
    return mail.plain(urlsplit(url).hostname or "")
