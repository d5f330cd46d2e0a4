"""Users' settings for e-mails about jobs that they started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.access.models import User
from webapp.audit.services import audit_log
from webapp.errors import Fault, validation_error
from webapp.extensions import db
from webapp.mail.models import MAIL_CHOICES, NoticeChoice


@dataclass(frozen=True, slots=True)
class Choice:
    """A user's setting for e-mails about jobs that they started: `mail` is never, failed or always, and only applies to
    jobs that took longer than `minutes`."""

    mail: str
    minutes: int


DEFAULT: Final = Choice(
    "failed", limits.NOTICE_MINUTES
)  # default of users without a setting; applies if mail is configured


def _choice(session: Session, user_id: str) -> Choice:
    said = session.get(NoticeChoice, user_id)
    return Choice(said.mail, said.minutes) if said is not None else DEFAULT


def choice_of(user_id: str) -> Choice:
    """Return a user's notification settings, or the defaults."""
    return _choice(db.session(), user_id)


def choose(actor: Actor, chosen: Choice) -> None:
    """Set when one gets mail about one's own work; commits. Error: validation_error."""
    faults = []
    if chosen.mail not in MAIL_CHOICES:
        faults.append(Fault("mail", "not_allowed", f"Choose one of {', '.join(MAIL_CHOICES)}."))
    if not 0 <= chosen.minutes <= limits.NOTICE_MOST_MINUTES:
        message = f"Give whole minutes from 0 to {limits.NOTICE_MOST_MINUTES:,}."
        faults.append(Fault("minutes", "out_of_range", message))
    if faults:
        raise validation_error(faults)
    # The user's row is locked, so that two parallel forms do not both insert.
    user = db.session.get_one(User, actor.user_id, with_for_update=True)
    said = db.session.get(NoticeChoice, user.id)
    if said is None:
        db.session.add(NoticeChoice(user_id=user.id, mail=chosen.mail, minutes=chosen.minutes))
    else:
        said.mail, said.minutes = chosen.mail, chosen.minutes
    user.updated_at = clock.now()
    audit_log.record(actor, "user.notices", user, join=True, mail=chosen.mail, minutes=chosen.minutes)
    db.session.commit()
