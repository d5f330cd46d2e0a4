"""Warnings that 80 % of a plan's limit is used: webhooks, an e-mail to those who can act on it, and the
browser. At most once an hour for each limit of a workspace, by mail at most once a day."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from webapp import clock, ids, limits
from webapp.access.actors import Actor
from webapp.access.models import Membership, User, Workspace
from webapp.errors import ApiError
from webapp.extensions import writing
from webapp.mail import mail
from webapp.mail.models import Mail, NoticeChoice
from webapp.metering import limit_warnings
from webapp.notifications.models import Delivery, LimitWarning, Webhook
from webapp.notifications.services import events

log = logging.getLogger(__name__)

_WORDS: Final = {"requests": ("requests", "minute"), "rows": ("rows", "hour")}
_SECONDS: Final = {"requests": limits.RATE_WINDOW_SECONDS, "rows": limits.ROWS_WINDOW_SECONDS}


def send_pending(now: Callable[[], datetime] = clock.now) -> int:
    """Send pending warnings. Return their number. Called by the notifier; safe in parallel processes."""
    sent = 0
    for near in limit_warnings.pending():
        try:
            sent += _send(near, now())
            limit_warnings.delete(near)
        except Exception:  # one failure must not block the others; it is retried
            log.exception("warning about %s of workspace %s could not be sent", near.limit, near.workspace_id)
    return sent


def _send(near: limit_warnings.LimitWarning, now: datetime) -> bool:
    with writing() as session:
        # The workspace row is locked, so that two notifiers do not both send the warning.
        workspace = session.get(Workspace, near.workspace_id, with_for_update=True)
        if workspace is None or workspace.deleted_at is not None:
            return False
        since = now - timedelta(seconds=limits.LIMIT_WARNING_SECONDS)
        lately = select(LimitWarning.id).where(
            LimitWarning.workspace_id == workspace.id,
            LimitWarning.limit_name == near.limit,
            LimitWarning.created_at > since,
        )
        if session.scalar(lately.limit(1)) is not None:
            return False
        warning = LimitWarning(
            id=ids.new("lim"),
            workspace_id=workspace.id,
            limit_name=near.limit,
            used=near.used,
            most=near.maximum,
            crossed_at=datetime.fromtimestamp(near.at, UTC),
            created_at=now,
        )
        session.add(warning)
        _to_webhooks(session, warning, now)
        try:
            _to_admins(session, workspace, warning, now)
        except ApiError as error:  # no key to encrypt an e-mail with: webhooks are still sent
            log.warning("%s: no mail: %s", warning.id, error.message)
    return True


def _to_webhooks(session: Session, warning: LimitWarning, now: datetime) -> None:
    """A limit is the whole workspace's, so the webhooks of each of its projects hear of it too."""
    hooks = select(Webhook).where(
        Webhook.workspace_id == warning.workspace_id, Webhook.deleted_at.is_(None), Webhook.active.is_(True)
    )
    for hook in session.scalars(hooks.order_by(Webhook.id)):
        if events.wanted(hook.events, events.LIMIT):
            delivery = Delivery(
                id=ids.new("dlv"),
                webhook_id=hook.id,
                event=events.LIMIT,
                object_id=warning.id,
                created_at=now,
                next_at=now,
            )
            delivery.body = events.body(delivery, warning.workspace_id, hook.project_id, shown(warning))
            session.add(delivery)


def shown(warning: LimitWarning) -> dict[str, Any]:
    """Return a warning as it appears in events."""
    return {
        "type": "limit",
        "id": warning.id,
        "limit": warning.limit_name,
        "used": warning.used,
        "most": warning.most,
        "window_seconds": _SECONDS[warning.limit_name],
        "crossed_at": clock.to_text(warning.crossed_at),
    }


def sentence(warning: LimitWarning) -> str:
    """A warning in words."""
    what, window = _WORDS[warning.limit_name]
    return f"{warning.used:,} of the {warning.most:,} {what} of this {window} are used."


# --- Mail to admins and owners ------------------------------------------------------------------------------


def _to_admins(session: Session, workspace: Workspace, warning: LimitWarning, now: datetime) -> None:
    if not mail.configured():
        return
    kind = f"limit.{warning.limit_name}"
    since = now - timedelta(seconds=limits.LIMIT_MAIL_SECONDS)
    lately = select(Mail.id).where(
        Mail.workspace_id == workspace.id, Mail.kind == kind, Mail.created_at > since
    )
    if session.scalar(lately.limit(1)) is not None:
        return
    people = (
        select(User)
        .join(Membership, Membership.user_id == User.id)
        .outerjoin(NoticeChoice, NoticeChoice.user_id == User.id)
        .where(
            Membership.workspace_id == workspace.id,
            Membership.team_id.is_(None),
            Membership.role.in_(("admin", "owner")),
            User.disabled_at.is_(None),
            or_(NoticeChoice.mail.is_(None), NoticeChoice.mail != "never"),
        )
    )
    for user in session.scalars(people.order_by(User.id)):
        letter = _letter(kind, workspace, warning, user)
        mail.post(session, letter, workspace_id=workspace.id, user_id=user.id, about=warning.id)


def _letter(kind: str, workspace: Workspace, warning: LimitWarning, user: User) -> mail.Letter:
    what, window = _WORDS[warning.limit_name]
    share, name = round(100 * limits.USAGE_WARN_SHARE), mail.plain(workspace.name)
    return mail.Letter(
        kind=kind,
        to=user.email,
        name=user.name,
        subject=f"{name} has used {share} % of its {what} for this {window}",
        lines=[
            sentence(warning),
            f"Requests above the limit are rejected until capacity is available again, within one {window}.",
            "You get this e-mail at most once a day.",
        ],
        facts=[("Workspace", name), ("Plan", workspace.plan.capitalize())],
        link=("See what is used, and by whom", mail.link("/usage")),
        because=f"You get this as an admin of the workspace. When you get mail is set at {mail.link('/me')}",
    )


# --- Notices in the browser ----------------------------------------------------------------------------------


def lately(
    session: Session, actor: Actor, since: datetime, now: datetime
) -> list[tuple[datetime, dict[str, str]]]:
    """Return the warnings of the actor's workspace sent after `since` and up to `now`, for notices in the browser."""
    mine = select(LimitWarning).where(
        LimitWarning.workspace_id == actor.workspace_id,
        LimitWarning.created_at > since,
        LimitWarning.created_at <= now,
    )
    newest = mine.order_by(LimitWarning.created_at.desc()).limit(limits.NOTICE_BROWSER_ITEMS)
    return [
        (one.created_at, {"id": one.id, "text": sentence(one), "href": "/usage"})
        for one in session.scalars(newest)
    ]
