"""Warnings at 80 % of a plan's limit: recipients, and one warning per period."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
import redis
import sqlalchemy as sa

from tests.cast import Program
from webapp import clock, limits
from webapp.access.models import Membership, User, Workspace
from webapp.extensions import db, redis_client, write_session
from webapp.mail.models import Mail, NoticeChoice
from webapp.metering import limit_warnings
from webapp.notifications.models import Delivery, LimitWarning
from webapp.notifications.services import notifications
from webapp.operations.purge import purge

ID = [{"name": "id", "type": "row_number"}]


@pytest.fixture
def small(app, cast):
    """Acme on a plan of 10 requests a minute and 1,000 rows an hour; Edith's program."""
    with app.app_context(), write_session() as session:
        workspace = session.get_one(Workspace, cast.acme)
        workspace.plan = "enterprise"
        workspace.own_limits = {"requests_per_minute": 10, "rows_per_hour": 1_000}
    return Program(app, cast.edith.key)


@pytest.fixture
def mailing(app, monkeypatch):
    """The application, as if a mail server were set."""
    monkeypatch.setitem(app.config["SETTINGS"].__dict__, "mail_server", object())
    return app


def generate(program, rows):
    answer = program.post("/generate", json={"name": "T", "fields": ID, "count": rows})
    assert answer.status_code == 200, answer.text
    answer.get_data()


def told(app, now=clock.now):
    """What the courier tells of; all warnings so far, as (limit, used, most)."""
    with app.app_context():
        notifications.send_limit_warnings(now)
        with write_session() as session:
            found = session.scalars(sa.select(LimitWarning).order_by(LimitWarning.id)).all()
            return [(warning.limit_name, warning.used, warning.most) for warning in found]


def test_warnings_are_sent_once_from_80_percent_on(app, small):
    generate(small, 799)
    assert told(app) == []
    generate(small, 1)
    assert told(app) == [("rows", 800, 1_000)]
    generate(small, 100)
    assert told(app) == [("rows", 800, 1_000)]


def test_one_call_far_beyond_the_limit_is_reported_with_its_usage(app, small):
    generate(small, 990)
    assert told(app) == [("rows", 990, 1_000)]


def test_requests_per_minute_are_reported_too(app, small):
    for number in range(7):
        assert small.get("/me").status_code == 200, number
    assert told(app) == []
    small.get("/me")
    assert told(app) == [("requests", 8, 10)]
    for _ in range(5):
        small.get("/me")
    assert told(app) == [("requests", 8, 10)]


def test_it_is_reported_again_after_an_hour_and_not_before(app, small):
    generate(small, 800)
    assert len(told(app)) == 1
    for minutes, most in ((59, 1), (61, 2)):
        with app.app_context():
            limit_warnings._record(_acme(app), "rows", 900, 1_000)
        assert len(told(app, lambda minutes=minutes: clock.now() + timedelta(minutes=minutes))) == most
        with app.app_context():
            assert limit_warnings.pending() == [], "warnings that were sent are removed"


def _acme(app):
    from webapp.access import actors

    with app.app_context(), write_session() as session:
        return actors.system_actor(
            session.scalars(sa.select(Workspace.id).where(Workspace.name == "Acme")).one()
        )


def test_webhooks_that_ask_for_it_hear_of_it(app, api, cast, small):
    adam = api(cast.adam)
    created = {
        name: adam.post(
            "/webhooks", json={"url": f"https://example.org/{name}", "events": events, **more}
        ).json["id"]
        for name, events, more in (
            ("asked", ["limit.warning"], {"scope": "workspace"}),
            ("all", ["*"], {}),
            ("other", ["push.*", "run.failed"], {"scope": "workspace"}),
        )
    }
    generate(small, 850)
    told(app)
    with app.app_context(), write_session() as session:
        found = {delivery.webhook_id: delivery for delivery in session.scalars(sa.select(Delivery))}
        warning = session.scalars(sa.select(LimitWarning)).one()
        assert set(found) == {created["asked"], created["all"]}
        body = json.loads(found[created["asked"]].body)
    assert (body["event"], body["workspace_id"], body["project_id"]) == ("limit.warning", cast.acme, None)
    assert body["object"] == {
        "type": "limit",
        "id": warning.id,
        "limit": "rows",
        "used": 850,
        "most": 1_000,
        "window_seconds": 3_600,
        "crossed_at": clock.to_text(warning.crossed_at),
    }


def test_admins_get_one_mail_a_day_unless_disabled(app, mailing, cast, small):
    with app.app_context(), write_session() as session:
        session.merge(NoticeChoice(user_id=cast.olivia.user_id, mail="never", minutes=0))
    generate(small, 800)
    told(app)
    with app.app_context():
        limit_warnings._record(_acme(app), "rows", 900, 1_000)
    told(app, lambda: clock.now() + timedelta(hours=2))
    with app.app_context(), write_session() as session:
        sent = [(mail.recipient, mail.subject) for mail in session.scalars(sa.select(Mail))]
        assert session.scalar(sa.select(sa.func.count()).select_from(LimitWarning)) == 2
    assert sent == [(cast.adam.email, "Acme has used 80 % of its rows for this hour")]


def test_users_without_access_get_no_mail(app, mailing, cast, small):
    with app.app_context(), write_session() as session:
        session.get_one(User, cast.olivia.user_id).disabled_at = clock.now()
        session.execute(sa.delete(Membership).where(Membership.user_id == cast.adam.user_id))
    generate(small, 800)
    told(app)
    with app.app_context(), write_session() as session:
        assert session.scalars(sa.select(Mail)).all() == []


def test_only_browsers_of_members_show_it(app, browser, cast, small):
    edith, mallory = browser(cast.edith), browser(cast.mallory)
    since = edith.get("/notices").json["now"]
    generate(small, 900)
    assert told(app, lambda: clock.now() - timedelta(seconds=limits.NOTICE_BROWSER_LAG_SECONDS))
    (shown,) = edith.get(f"/notices?since={since}").json["items"]
    assert (shown["text"], shown["href"]) == ("900 of the 1,000 rows for this hour are used.", "/usage")
    assert mallory.get(f"/notices?since={since}").json["items"] == []


def test_a_redis_that_is_away_costs_the_warning_and_not_the_rows(app, cast, small, monkeypatch):
    class Away:
        def hsetnx(self, *_):
            raise redis.ConnectionError

    with app.app_context():
        monkeypatch.setattr(limit_warnings, "redis_client", Away)
    generate(small, 900)
    monkeypatch.undo()
    assert told(app) == []


def test_a_notification_that_fails_does_not_block_others_and_is_retried(app, small, cast, monkeypatch):
    with app.app_context():
        redis_client().hset(limit_warnings.KEY, "ws_gone rows", "8 10 1.0")
        assert notifications.send_limit_warnings() == 0
        assert limit_warnings.pending() == []
        generate(small, 800)

        def broken(*_):
            raise RuntimeError

        with monkeypatch.context() as patched:
            patched.setattr(notifications, "_warn_webhooks", broken)
            assert notifications.send_limit_warnings() == 0
        assert notifications.send_limit_warnings() == 1


def test_warnings_are_kept_as_long_as_deliveries(app, small):
    generate(small, 800)
    told(app)
    with app.app_context():
        purge(clock.now() + timedelta(days=limits.WEBHOOK_DELIVERY_DAYS - 1))
        assert db.session.scalar(sa.select(sa.func.count()).select_from(LimitWarning)) == 1
        db.session.rollback()
        purge(clock.now() + timedelta(days=limits.WEBHOOK_DELIVERY_DAYS + 1))
        assert db.session.scalar(sa.select(sa.func.count()).select_from(LimitWarning)) == 0
