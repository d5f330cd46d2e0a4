"""E-mail notifications about finished work: recipients and conditions."""

from __future__ import annotations

from datetime import timedelta

import pytest

from webapp import clock, limits
from webapp.access.models import Membership, User
from webapp.exports.models import Export
from webapp.extensions import write_session
from webapp.mail.models import Mail, NoticeChoice
from webapp.notifications.services import notifications
from webapp.operations.purge import purge
from webapp.pushes.models import Push


@pytest.fixture
def mailing(app, monkeypatch):
    """The application, as if a mail server were set."""
    monkeypatch.setitem(app.config["SETTINGS"].__dict__, "mail_server", object())
    return app


def ended(app, cast, status="failed", minutes=10.0, kind=Export, **columns):
    """Finish a job of Edith after some minutes, and send notifications; return the subjects of all e-mails."""
    now = clock.now()
    own = {"format": "csv", "count": 1, "file_name": "people.csv", "request": {}, "pins": {}}
    if kind is Push:
        own = {"target": "people", "total": 9, "request": {"settled": True}}
    place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
    with app.app_context():
        with write_session() as session:
            created = {**own, **place, "created_by": cast.edith.user_id, **columns}
            session.add(
                kind(**created, status=status, finished_at=now, created_at=now - timedelta(minutes=minutes))
            )
        notifications.notify_finished()
        with write_session() as session:
            return [mail.subject for mail in session.query(Mail).order_by(Mail.id)]


def chosen(app, cast, mail, minutes):
    with app.app_context(), write_session() as session:
        session.merge(NoticeChoice(user_id=cast.edith.user_id, mail=mail, minutes=minutes))


def test_by_default_users_get_mail_about_long_work_that_failed(mailing, cast):
    assert ended(mailing, cast, "completed") == []
    assert ended(mailing, cast, "cancelled") == []
    assert ended(mailing, cast, minutes=limits.NOTICE_MINUTES - 1) == []
    assert ended(mailing, cast) == ["Export people.csv has failed"]


def test_a_push_whose_rows_did_not_all_arrive_counts_as_failed(mailing, cast):
    assert ended(mailing, cast, "completed", kind=Push, delivered=9) == []
    assert ended(mailing, cast, "completed", kind=Push, delivered=6, failed=2, unknown=1) == [
        "Push to people is complete, 3 rows were not delivered"
    ]


def test_a_users_choice_is_kept(mailing, cast):
    chosen(mailing, cast, "never", 0)
    assert ended(mailing, cast) == []
    chosen(mailing, cast, "always", 20)
    assert ended(mailing, cast, "completed") == []
    assert ended(mailing, cast, "completed", minutes=21) == ["Export people.csv is complete"]


def test_former_and_locked_members_get_no_mail(mailing, cast):
    with mailing.app_context(), write_session() as session:
        session.query(Membership).filter_by(user_id=cast.edith.user_id).delete()
    assert ended(mailing, cast) == []
    with mailing.app_context(), write_session() as session:
        session.get_one(User, cast.adam.user_id).disabled_at = clock.now()
    assert ended(mailing, cast, created_by=cast.adam.user_id) == []
    assert ended(mailing, cast, created_by=None) == []


def test_the_number_of_mails_is_limited_and_the_last_mail_mentions_it(mailing, cast):
    for _ in range(limits.NOTICE_MAILS_PER_HOUR):
        ended(mailing, cast)
    assert len(ended(mailing, cast)) == limits.NOTICE_MAILS_PER_HOUR


def test_without_a_mail_server_no_mail_is_sent_but_work_is_still_marked(app, cast):
    assert ended(app, cast) == []
    with app.app_context(), write_session() as session:
        assert session.query(Export).one().noticed_at is not None


def test_a_name_cannot_add_lines_to_a_mail(mailing, cast):
    (subject,) = ended(mailing, cast, file_name="x\r\nBcc: all@example.org\u202e.csv")
    assert subject == "Export x Bcc: all@example.org .csv has failed"


def test_old_finished_work_is_removed(mailing, cast):
    ended(mailing, cast)
    later = clock.now() + timedelta(days=limits.MAIL_DAYS + 1)
    with mailing.app_context():
        with write_session() as session:
            session.query(Mail).update({"status": "sent", "ended_at": clock.now()})
        purge(clock.now())
        with write_session() as session:
            assert session.query(Mail).count() == 1
        purge(later)
        with write_session() as session:
            assert session.query(Mail).count() == 0
