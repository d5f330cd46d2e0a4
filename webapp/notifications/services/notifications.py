"""Notifications of finished work and of limits that are almost used up, to webhooks and by e-mail.

A finished export, push or run without `noticed_at` still has to be notified. This mark is part of the row, so a worker,
a cancellation or the sweeper sets it in the transaction that ends the work, and no notification is lost if a process
dies. `notify_finished` finds such rows, and writes the notifications together with the mark, so they are created once.

When 80 % of a plan's limit is used, webhooks, an e-mail to those who can act on it, and the browser warn of it: at most
once an hour for each limit of a workspace, by e-mail at most once a day.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from webapp import clock, ids, limits
from webapp.access.actors import Actor
from webapp.access.models import ApiKey, Membership, Project, User, Workspace
from webapp.errors import CODES, ApiError
from webapp.extensions import read_session, write_session
from webapp.mail import services as mail
from webapp.mail.models import Mail, NoticeChoice
from webapp.mail.services import _load_preference
from webapp.metering import limit_warnings
from webapp.notifications.models import Delivery, LimitWarning, Webhook
from webapp.notifications.services import webhooks
from webapp.pushes.services import completion
from webapp.scenarios.models import Scenario
from webapp.scenarios.services import run_completion
from webapp.work.models import END_STATES

log = logging.getLogger(__name__)

MAIL_KIND: Final = "work"


def notify_finished(now: Callable[[], datetime] = clock.now) -> int:
    """Create notifications about finished work, and return the number of jobs. Called by the notifier; several
    processes can call it concurrently."""
    count = 0
    for kind, model in webhooks.MODELS.items():
        ended = select(model.id).where(model.noticed_at.is_(None), model.status.in_(END_STATES))
        with read_session() as session:
            found = session.scalars(ended.order_by(model.id).limit(limits.NOTIFIER_BATCH)).all()
        for work_id in found:
            try:
                count += _notify(kind, model, work_id, now())
            except Exception:  # one failure must not block the others; it is retried
                log.exception("notification of %s %s could not be sent", kind, work_id)
    return count


def _notify(kind: str, model: Any, work_id: str, now: datetime) -> bool:
    # The counts must be final: the process that ended the work may have died before updating them.
    with read_session() as session:
        work = session.get_one(model, work_id)
    if kind == "push" and not work.request.get(completion.END_RECORDED):
        completion.settle(work_id)
    elif kind == "run" and work.closed_at is None:
        run_completion.settle(work_id)
    with write_session() as session:
        work = session.get(model, work_id, with_for_update=True)
        if work is None or work.noticed_at is not None:
            return False
        work.noticed_at = now
        event = f"{kind}.{work.status}"
        hooks = select(Webhook).where(
            Webhook.workspace_id == work.workspace_id,
            Webhook.deleted_at.is_(None),
            Webhook.active.is_(True),
            or_(Webhook.project_id.is_(None), Webhook.project_id == work.project_id),
        )
        for hook in session.scalars(hooks.order_by(Webhook.id)):
            if webhooks.is_subscribed(hook.events, event):
                delivery = Delivery(
                    id=ids.new("dlv"),
                    webhook_id=hook.id,
                    event=event,
                    object_id=work.id,
                    created_at=now,
                    next_at=now,
                )
                details = webhooks.job_event(kind, work)
                delivery.body = webhooks.build_body(delivery, work.workspace_id, work.project_id, details)
                session.add(delivery)
        try:
            _mail_creator(session, kind, work, now)
        except ApiError as error:  # no key to encrypt an e-mail with: webhooks are still sent
            log.warning("%s %s: could not create an e-mail: %s", kind, work_id, error.message)
    return True


# --- E-mail to the user who started the work ------------------------------------------------------------------------


def _mail_creator(session: Session, kind: str, work: Any, now: datetime) -> None:
    if not mail.is_configured() or work.created_by is None:
        return
    choice = _load_preference(session, work.created_by)
    duration = (work.finished_at or now) - work.created_at
    has_failed = work.status in ("failed", "timed_out") or bool(kind == "push" and work.failed + work.unknown)
    is_wanted = choice.mail == "always" or (choice.mail == "failed" and has_failed)
    if not is_wanted or duration <= timedelta(minutes=choice.minutes) or _is_from_run(session, work.key_id):
        return
    user = session.get(User, work.created_by)
    if user is None or user.disabled_at is not None:
        return
    memberships = select(
        func.count()
    ).where(  # a former member of the workspace, or of the team, gets no mail
        Membership.workspace_id == work.workspace_id,
        Membership.user_id == work.created_by,
        or_(Membership.team_id.is_(None), Membership.team_id == work.team_id),
    )
    if not session.scalar(memberships):
        return
    since = now - timedelta(hours=1)
    recent = select(func.count()).where(
        Mail.user_id == user.id, Mail.created_at > since, Mail.kind == MAIL_KIND
    )
    count = session.scalar(recent) or 0
    if count >= limits.NOTICE_MAILS_PER_HOUR:
        return
    letter = _mail_content(session, kind, work, user, last=count + 1 == limits.NOTICE_MAILS_PER_HOUR)
    mail.enqueue(session, letter, workspace_id=work.workspace_id, user_id=user.id, about=work.id)


def _is_from_run(session: Session, key_id: str | None) -> bool:
    """Return whether a scenario run started it, which has its own e-mail."""
    key = session.get(ApiKey, key_id) if key_id else None
    return key is not None and key.run_id is not None


_OUTCOMES: Final = {
    "completed": "is complete",
    "failed": "has failed",
    "cancelled": "was cancelled",
    "timed_out": "timed out",
}


def _mail_content(session: Session, kind: str, work: Any, user: User, last: bool) -> mail.MailContent:
    subject, page = _subject_and_path(session, kind, work)
    outcome = _outcome_text(kind, work)
    lines = [f"{subject} {outcome}."]
    # The meaning of the error code: the message itself may include data from a target.
    code = work.error.get("code", "") if work.error else ""
    if kind == "run" and code in run_completion.ERROR_MESSAGES:
        lines.append(run_completion.ERROR_MESSAGES[code])
    elif code == "worker_lost":
        lines.append("Its workers were lost too often, so it will not be retried.")
    elif code in CODES:
        lines.append(CODES[code][1])
    if last:
        lines.append(
            "This is the last e-mail of this kind for an hour, because many of your jobs are finishing."
        )
    workspace, project = session.get(Workspace, work.workspace_id), session.get(Project, work.project_id)
    facts = [
        ("Workspace", workspace.name if workspace else ""),
        ("Project", project.name if project else ""),
        ("Requested", f"{work.created_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("Ended", f"{work.finished_at:%Y-%m-%d %H:%M:%S} UTC" if work.finished_at else ""),
    ]
    return mail.MailContent(
        kind=MAIL_KIND,
        recipient=user.email,
        recipient_name=user.name,
        subject=f"{subject} {outcome}",
        paragraphs=lines,
        details=[fact for fact in facts if fact[1]],
        link=("View details", mail.absolute_url(page)),
        reason=(
            "You received this e-mail because you started this job. Change your e-mail settings at "
            f"{mail.absolute_url('/me')}"
        ),
    )


def _outcome_text(kind: str, work: Any) -> str:
    missing = work.failed + work.unknown if kind == "push" else 0
    return _OUTCOMES[work.status] + (f", {missing:,} rows were not delivered" if missing else "")


def _subject_and_path(session: Session, kind: str, work: Any) -> tuple[str, str]:
    """Return what finished, in words, and the path of its page."""
    if kind == "export":
        return f"Export {mail.single_line(work.file_name or work.id)}", f"/exports/{work.id}"
    if kind == "push":
        title = {"retry": "Retry of a push", "undo": "Undo of a push"}.get(work.kind, "Push")
        return f"{title} to {mail.single_line(work.target)}", f"/pushes/{work.id}"
    scenario = session.get(Scenario, work.scenario_id)
    name = mail.single_line(scenario.name if scenario else work.scenario_id)
    return f"Run of {name}", f"/scenarios/{work.scenario_id}/runs/{work.id}"


# --- Notices in the browser ------------------------------------------------------------------------------------


def recently_finished(actor: Actor, since: datetime | None) -> dict[str, Any]:
    """Return `{now, items: [{id, text, href}]}`: the actor's longer jobs that have finished, and limits of the
    workspace that were reached, since a moment, newest last. Without a moment, only `now` is returned, as a starting
    point."""
    # Stay slightly in the past, because the latest notifications may not be committed yet.
    now = clock.now() - timedelta(seconds=limits.NOTICE_BROWSER_LAG_SECONDS)
    since = now if since is None else max(since, now - timedelta(seconds=limits.NOTICE_BROWSER_AGE_SECONDS))
    found = []
    with read_session() as session:
        for kind, model in webhooks.MODELS.items():
            statement = select(model).where(
                model.noticed_at > since,
                model.noticed_at <= now,
                model.workspace_id == actor.workspace_id,
                model.created_by == actor.user_id,
            )
            for work in session.scalars(
                statement.order_by(model.noticed_at.desc()).limit(limits.NOTICE_BROWSER_ITEMS)
            ):
                duration = (work.finished_at or now) - work.created_at
                if duration.total_seconds() >= limits.NOTICE_BROWSER_SECONDS and not _is_from_run(
                    session, work.key_id
                ):
                    subject, page = _subject_and_path(session, kind, work)
                    item = {"id": work.id, "text": f"{subject} {_outcome_text(kind, work)}.", "href": page}
                    found.append((work.noticed_at, item))
        found += recent_warnings(session, actor, since, now)
    found.sort(key=lambda entry: entry[0])
    return {"now": clock.to_text(now), "items": [item for _, item in found]}


# --- Notification settings --------------------------------------------------------------------------------


# --- Limits that are almost used up -------------------------------------------------------------------------

_LIMITS: Final = {"requests": ("requests", "minute"), "rows": ("rows", "hour")}
_SECONDS: Final = {"requests": limits.RATE_WINDOW_SECONDS, "rows": limits.ROWS_WINDOW_SECONDS}


def send_limit_warnings(now: Callable[[], datetime] = clock.now) -> int:
    """Send pending warnings. Return their number. Called by the notifier; safe in parallel processes."""
    sent = 0
    for crossed in limit_warnings.pending():
        try:
            sent += _send_warning(crossed, now())
            limit_warnings.delete(crossed)
        except Exception:  # one failure must not block the others; it is retried
            log.exception(
                "warning about %s of workspace %s could not be sent", crossed.limit, crossed.workspace_id
            )
    return sent


def _send_warning(crossed: limit_warnings.LimitWarning, now: datetime) -> bool:
    with write_session() as session:
        # The workspace row is locked, so that two notifiers do not both send the warning.
        workspace = session.get(Workspace, crossed.workspace_id, with_for_update=True)
        if workspace is None or workspace.deleted_at is not None:
            return False
        since = now - timedelta(seconds=limits.LIMIT_WARNING_SECONDS)
        recent = select(LimitWarning.id).where(
            LimitWarning.workspace_id == workspace.id,
            LimitWarning.limit_name == crossed.limit,
            LimitWarning.created_at > since,
        )
        if session.scalar(recent.limit(1)) is not None:
            return False
        warning = LimitWarning(
            id=ids.new("lim"),
            workspace_id=workspace.id,
            limit_name=crossed.limit,
            used=crossed.used,
            most=crossed.maximum,
            crossed_at=datetime.fromtimestamp(crossed.at, UTC),
            created_at=now,
        )
        session.add(warning)
        _warn_webhooks(session, warning, now)
        try:
            _mail_admins(session, workspace, warning, now)
        except ApiError as error:  # no key to encrypt an e-mail with: webhooks are still sent
            log.warning("%s: could not create an e-mail: %s", warning.id, error.message)
    return True


def _warn_webhooks(session: Session, warning: LimitWarning, now: datetime) -> None:
    """Send a warning to the webhooks of the workspace and of all its projects, because the limit applies to all."""
    hooks = select(Webhook).where(
        Webhook.workspace_id == warning.workspace_id, Webhook.deleted_at.is_(None), Webhook.active.is_(True)
    )
    for hook in session.scalars(hooks.order_by(Webhook.id)):
        if webhooks.is_subscribed(hook.events, webhooks.LIMIT_EVENT):
            delivery = Delivery(
                id=ids.new("dlv"),
                webhook_id=hook.id,
                event=webhooks.LIMIT_EVENT,
                object_id=warning.id,
                created_at=now,
                next_at=now,
            )
            delivery.body = webhooks.build_body(
                delivery, warning.workspace_id, hook.project_id, warning_event(warning)
            )
            session.add(delivery)


def warning_event(warning: LimitWarning) -> dict[str, Any]:
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


def warning_text(warning: LimitWarning) -> str:
    """Return a warning as a sentence."""
    unit, window = _LIMITS[warning.limit_name]
    return f"{warning.used:,} of the {warning.most:,} {unit} for this {window} are used."


# --- Mail to admins and owners ------------------------------------------------------------------------------


def _mail_admins(session: Session, workspace: Workspace, warning: LimitWarning, now: datetime) -> None:
    if not mail.is_configured():
        return
    kind = f"limit.{warning.limit_name}"
    since = now - timedelta(seconds=limits.LIMIT_MAIL_SECONDS)
    recent = select(Mail.id).where(
        Mail.workspace_id == workspace.id, Mail.kind == kind, Mail.created_at > since
    )
    if session.scalar(recent.limit(1)) is not None:
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
    unit, window = _LIMITS[warning.limit_name]
    share, name = round(100 * limits.USAGE_WARN_SHARE), mail.single_line(workspace.name)
    for user in session.scalars(people.order_by(User.id)):
        letter = mail.MailContent(
            kind=kind,
            recipient=user.email,
            recipient_name=user.name,
            subject=f"{name} has used {share} % of its {unit} for this {window}",
            paragraphs=[
                warning_text(warning),
                f"Requests above the limit are rejected until capacity is available again, within one {window}.",
                "You receive this e-mail at most once a day.",
            ],
            details=[("Workspace", name), ("Plan", workspace.plan.capitalize())],
            link=("View usage by user", mail.absolute_url("/usage")),
            reason=(
                "You received this e-mail because you are an admin of the workspace. Change your e-mail "
                f"settings at {mail.absolute_url('/me')}"
            ),
        )
        mail.enqueue(session, letter, workspace_id=workspace.id, user_id=user.id, about=warning.id)


# --- Notices in the browser ----------------------------------------------------------------------------------


def recent_warnings(
    session: Session, actor: Actor, since: datetime, now: datetime
) -> list[tuple[datetime, dict[str, str]]]:
    """Return the warnings of the actor's workspace sent after `since` and up to `now`, for notices in the browser."""
    statement = select(LimitWarning).where(
        LimitWarning.workspace_id == actor.workspace_id,
        LimitWarning.created_at > since,
        LimitWarning.created_at <= now,
    )
    newest = statement.order_by(LimitWarning.created_at.desc()).limit(limits.NOTICE_BROWSER_ITEMS)
    return [
        (warning.created_at, {"id": warning.id, "text": warning_text(warning), "href": "/usage"})
        for warning in session.scalars(newest)
    ]
