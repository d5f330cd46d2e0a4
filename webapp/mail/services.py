"""E-mails: written to an outbox with their subject, sent by the notifier, retried, and given up with a reason.

    mail.post(session, Letter(kind="invitation", to=address, subject="...", lines=["..."], link=("Accept it", url)),
              workspace_id=..., about=invitation.id)

`enqueue` is part of the caller's transaction. An e-mail is stored encrypted until it is sent or given up, because its
link may sign someone in; then its text is deleted. No e-mail contains a password, an API key or generated data.

An e-mail is sent once, as far as SMTP allows: if the sender is killed between the server's confirmation and the commit,
the e-mail is sent again with the same Message-ID, which many mailboxes deduplicate (RFC 5321, section 6.1).

Users choose which e-mails they get about jobs that they started.
"""

from __future__ import annotations

import logging
import textwrap
import threading
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from typing import Any, Final

from flask import current_app
from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session, scoped_session

from webapp import app_vault, clock, ids, limits
from webapp.access.actors import Actor
from webapp.access.models import User
from webapp.audit.services import audit_log
from webapp.config import Settings
from webapp.config.values import sender
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import affected_row_count, db, read_session, write_session
from webapp.mail.models import MAIL_CHOICES, Mail, NoticeChoice
from webapp.net import smtp
from webapp.security.sealing import VaultError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MailPreference:
    """A user's setting for e-mails about jobs that they started: `mail` is never, failed or always, and only applies to
    jobs that took longer than `minutes`."""

    mail: str
    minutes: int


DEFAULT_PREFERENCE: Final = MailPreference(
    "failed", limits.NOTICE_MINUTES
)  # default of users without a setting; applies if mail is configured


def _load_preference(session: Session, user_id: str) -> MailPreference:
    row = session.get(NoticeChoice, user_id)
    return MailPreference(row.mail, row.minutes) if row is not None else DEFAULT_PREFERENCE


def get_preference(user_id: str) -> MailPreference:
    """Return a user's notification settings, or the defaults."""
    return _load_preference(db.session(), user_id)


def save_preference(actor: Actor, preference: MailPreference) -> None:
    """Save the actor's notification settings; commits. Error: validation_error."""
    faults = []
    if preference.mail not in MAIL_CHOICES:
        faults.append(Fault("mail", "not_allowed", f"Choose one of {', '.join(MAIL_CHOICES)}."))
    if not 0 <= preference.minutes <= limits.NOTICE_MAX_MINUTES:
        message = f"Enter whole minutes from 0 to {limits.NOTICE_MAX_MINUTES:,}."
        faults.append(Fault("minutes", "out_of_range", message))
    if faults:
        raise validation_error(faults)
    # The user's row is locked, so that two parallel forms do not both insert.
    user = db.session.get_one(User, actor.user_id, with_for_update=True)
    row = db.session.get(NoticeChoice, user.id)
    if row is None:
        db.session.add(NoticeChoice(user_id=user.id, mail=preference.mail, minutes=preference.minutes))
    else:
        row.mail, row.minutes = preference.mail, preference.minutes
    user.updated_at = clock.now()
    audit_log.record(actor, "user.notices", user, join=True, mail=preference.mail, minutes=preference.minutes)
    db.session.commit()


# --- E-mails ------------------------------------------------------------------------------------------------

INVALID_ADDRESS_MESSAGE: Final = "E-mail cannot be sent to this address."


@dataclass(frozen=True, slots=True)
class MailContent:
    """The content of an e-mail. `details` is a list of names and values; `link` is an action
    with its URL. `reason`: why the user gets it. User-provided texts (names) must be passed through `single_line`
    first."""

    kind: str
    recipient: str
    subject: str
    paragraphs: Sequence[str]
    details: Sequence[tuple[str, str]] = ()
    link: tuple[str, str] | None = None
    reason: str = ""
    recipient_name: str = ""
    """For the greeting."""


def is_configured() -> bool:
    """Return whether mail is configured."""
    return _settings().mail_server is not None


def absolute_url(path: str) -> str:
    """Return the absolute URL of a page, for e-mails that are created outside of a request."""
    return f"{_settings().link_url}{path}"


def single_line(text: str, maximum: int = limits.MAIL_NAME_CHARS) -> str:
    """Return user input for an e-mail: one line without invisible or bidirectional control characters, shortened."""
    visible = "".join(
        " " if char.isspace() or unicodedata.category(char)[0] in "CZ" else char for char in text
    )
    visible = " ".join(visible.split())
    return visible if len(visible) <= maximum else visible[: maximum - 1] + "…"


def is_valid_address(address: str) -> bool:
    """Return whether an e-mail can be sent to the address."""
    return _parse_address(address) is not None


def enqueue(
    session: Session | scoped_session[Any],
    content: MailContent,
    *,
    workspace_id: str | None = None,
    user_id: str | None = None,
    about: str | None = None,
) -> Mail | None:
    """Add an e-mail to the outbox, in the caller's transaction. Return None without an e-mail if mail is not
    configured. An e-mail to an invalid address is added as failed. Error: unavailable without a key for encryption."""
    if not is_configured():
        return None
    now, good = clock.now(), is_valid_address(content.recipient)
    mail = Mail(
        id=ids.new("mai"),
        workspace_id=workspace_id,
        user_id=user_id,
        kind=content.kind,
        about=about,
        recipient=content.recipient,
        subject=single_line(content.subject, limits.MAIL_SUBJECT_CHARS),
        sealed=app_vault.seal(render_text(content)) if good else None,
        status="queued" if good else "failed",
        next_at=now,
        created_at=now,
        ended_at=None if good else now,
        reason="" if good else INVALID_ADDRESS_MESSAGE,
    )
    session.add(mail)
    return mail


def latest(about: str) -> Mail | None:
    """Return the newest e-mail about an object. Read in the request's session."""
    return db.session.scalar(select(Mail).where(Mail.about == about).order_by(Mail.id.desc()).limit(1))


def render_text(content: MailContent) -> str:
    """Return the text of an e-mail. All e-mails have the same layout."""
    parts = [
        f"Hello {single_line(content.recipient_name)}," if single_line(content.recipient_name) else "Hello,"
    ]
    parts += [_wrap(" ".join(line.split())) for line in content.paragraphs]
    if content.details:
        width = max(len(name) for name, _ in content.details)
        parts.append(
            "\n".join(f"  {name:<{width}}  {single_line(value, 200)}" for name, value in content.details)
        )
    if content.link is not None:
        parts.append(f"{content.link[0]}:\n{content.link[1]}")
    because = [_wrap(content.reason)] if content.reason else []
    parts.append(
        "\n".join(["-- ", f"Rowsmith, {_settings().link_url}", *because])
    )  # RFC 3676, 4.3: the signature
    return "\n\n".join(parts)[: limits.MAIL_TEXT_CHARS] + "\n"


def _wrap(text: str) -> str:
    return textwrap.fill(text, limits.MAIL_LINE_CHARS, break_long_words=False, break_on_hyphens=False)


# --- Sending ------------------------------------------------------------------------------------------------


def send_due(now: Callable[[], datetime] = clock.now, stopping: threading.Event | None = None) -> int:
    """Send the due e-mails one after the other, until none is left or `stopping` is set. Returns how many e-mails the
    server has accepted. Called by the notifier, in any number of processes."""
    server = _settings().mail_server
    sent = 0
    while server is not None and not (stopping is not None and stopping.is_set()):
        mail = _claim_next(now())
        if mail is None:
            break
        try:
            email = build_message(mail, app_vault.vault().open(mail.sealed or b""))
            with smtp.open_mail_server(server) as connection:
                connection.send(email, sender(_settings().mail_from).addr_spec, mail.recipient)
        except smtp.MailError as error:
            _record_failure(mail, now(), error)
        except VaultError as error:
            _record_failure(mail, now(), smtp.MailError(str(error), permanent=True))
        else:
            _update_claimed(mail, status="sent", ended_at=now(), sealed=None, claimed_until=None, reason="")
            log.info("mail %s (%s): sent", mail.id, mail.kind)
            sent += 1
    return sent


def _claim_next(now: datetime) -> Mail | None:
    """Return the next e-mail that is due, claimed for this sender."""
    free = or_(Mail.claimed_until.is_(None), Mail.claimed_until < now)
    due = select(Mail.id).where(Mail.status == "queued", Mail.next_at <= now, free).order_by(Mail.next_at)
    with read_session() as session:
        found = session.scalars(due.limit(limits.NOTIFIER_BATCH)).all()
    until = now + timedelta(seconds=limits.MAIL_CLAIM_SECONDS)
    for mail_id in found:
        claim = (
            update(Mail)
            .where(Mail.id == mail_id, Mail.status == "queued", free)
            .values(claimed_until=until, attempts=Mail.attempts + 1)
            .execution_options(synchronize_session=False)
        )
        with write_session() as session:
            if affected_row_count(session.execute(claim)) == 1:
                return session.get_one(Mail, mail_id)
    return None


def _record_failure(mail: Mail, now: datetime, error: smtp.MailError) -> None:
    if error.permanent or mail.attempts > len(limits.MAIL_RETRY_SECONDS):
        reason = (
            error.message if error.permanent else f"Given up after {mail.attempts} attempts. {error.message}"
        )
        _update_claimed(
            mail, status="failed", ended_at=now, sealed=None, claimed_until=None, reason=reason[:500]
        )
        log.warning("mail %s (%s): given up: %s", mail.id, mail.kind, error.message)
        return
    next_at = now + timedelta(seconds=limits.MAIL_RETRY_SECONDS[mail.attempts - 1])
    _update_claimed(mail, next_at=next_at, claimed_until=None, reason=error.message[:500])
    log.warning("mail %s (%s): attempt %d: %s", mail.id, mail.kind, mail.attempts, error.message)


def _update_claimed(mail: Mail, **values: Any) -> None:
    """Update an e-mail, only while this sender has claimed it."""
    statement = update(Mail).where(
        Mail.id == mail.id, Mail.status == "queued", Mail.claimed_until == mail.claimed_until
    )
    with write_session() as session:
        session.execute(statement.values(**values).execution_options(synchronize_session=False))


def build_message(mail: Mail, text: str) -> EmailMessage:
    """Return an e-mail to send. Headers cannot be injected: the library rejects a line break in a value, and no value
    has one, not even in encoded words. Raises MailError for an invalid address."""
    recipient = _parse_address(mail.recipient)
    if recipient is None:
        raise smtp.MailError(INVALID_ADDRESS_MESSAGE, permanent=True)
    origin = sender(_settings().mail_from)
    ascii_only = mail.recipient.isascii() and origin.addr_spec.isascii()
    email = EmailMessage(policy=SMTP if ascii_only else SMTPUTF8)
    email["From"], email["To"] = origin, recipient
    # The library decodes encoded words (RFC 2047) in what it is given, also those that hold a line break.
    email["Subject"] = single_line(mail.subject, limits.MAIL_SUBJECT_CHARS).replace("=?", "= ?")
    email["Date"] = mail.created_at
    email["Message-ID"] = f"<{mail.id}@{origin.domain}>"  # the same at every attempt
    email["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office answers this
    email.set_content(text, cte="quoted-printable")
    return email


def _parse_address(text: str) -> Address | None:
    if not text.isprintable() or any(char.isspace() for char in text):
        return None
    try:
        address = Address(addr_spec=text)
    except (
        ValueError,
        IndexError,
        HeaderParseError,
    ):  # the library's parser runs off the end of some broken addresses
        return None
    return address if address.username and address.domain and address.addr_spec == text else None


# --- Upkeep -------------------------------------------------------------------------------------------------


def reseal() -> None:
    """Encrypt waiting e-mails with the newest key of the ring; commits. Error: unavailable if some cannot be
    decrypted."""
    waiting = select(Mail).where(Mail.sealed.is_not(None)).with_for_update()
    lost = 0
    for mail in db.session.scalars(waiting).all():
        try:
            mail.sealed = app_vault.vault().reencrypt(mail.sealed or b"") or mail.sealed
        except VaultError:
            lost += 1
    db.session.commit()
    if lost:
        raise ApiError(
            "unavailable", f"{lost} waiting e-mail(s) cannot be decrypted with any key in VAULT_KEYS."
        )


def count_queued() -> int:
    """Return the number of waiting e-mails."""
    with read_session() as session:
        return session.scalar(select(func.count()).select_from(Mail).where(Mail.status == "queued")) or 0


def _settings() -> Settings:
    settings: Settings = current_app.config["SETTINGS"]
    return settings
