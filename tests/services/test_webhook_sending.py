"""Webhook deliveries: payloads, handling of responses, no lost deliveries, and no leaked secrets."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import datetime, timedelta
from email.utils import format_datetime

import pytest

from tests.fakes.echo_target import Answer, EchoTarget, busy, redirect
from webapp import clock, limits
from webapp.access import actors
from webapp.audit.models import AuditEntry
from webapp.exports.models import Export
from webapp.extensions import db, write_session
from webapp.mail.models import Mail
from webapp.net.gate import Gate
from webapp.notifications.models import Delivery, Webhook
from webapp.notifications.services import notifications, webhooks
from webapp.pushes.models import Push
from webapp.scenarios.models import Run


@pytest.fixture
def target():
    with EchoTarget() as result:
        result.on("/hook", Answer(204))
        yield result


class Hooked:
    """A webhook of Acme's project Main, work that ends, and a present that tests move."""

    def __init__(self, app, cast, target, events=("*",)):
        self.app, self.cast, self.ahead = app, cast, timedelta()
        with app.app_context():
            adam = actors.system_actor(cast.acme, cast.main, cast.blue)
            hook, self.secret = webhooks.create(adam, target.url("/hook?token=topsecrettoken"), list(events))
            self.id = hook.id
            hook.created_by = cast.edith.user_id
            db.session.commit()

    def now(self):
        return clock.now() + self.ahead

    def ends(self, kind="export", status="completed", **columns):
        """A piece of work that has ended; returns its id."""
        result = {
            "export": lambda: Export(
                format="csv", count=3, rows_done=3, file_name="people.csv", request={}, pins={}
            ),
            "push": lambda: Push(target="people", total=3, request={"settled": True}, pins={}, tables=[]),
            "run": lambda: Run(
                scenario_id=columns.pop("scenario_id"),
                scenario_version=1,
                trigger="api",
                closed_at=clock.now(),
            ),
        }[kind]()
        place = {"workspace_id": self.cast.acme, "project_id": self.cast.main, "team_id": self.cast.blue}
        ended = {"status": status, "finished_at": clock.now(), "created_by": self.cast.edith.user_id}
        for name, value in {**place, **ended, **columns}.items():
            setattr(result, name, value)
        with self.app.app_context(), write_session() as session:
            session.add(result)
            session.flush()
            return result.id

    def tell(self):
        with self.app.app_context():
            return notifications.notify_finished(self.now)

    def send(self, later=0.0):
        """Send all that is due; returns the outcomes."""
        self.ahead += timedelta(seconds=later)
        found = []
        with self.app.app_context():
            while delivery := webhooks.claim(self.now()):
                found.append(webhooks.deliver(delivery, self.now).verdict)
        return found

    def deliveries(self):
        with self.app.app_context(), write_session() as session:
            return session.query(Delivery).order_by(Delivery.id).all()

    def row(self):
        with self.app.app_context(), write_session() as session:
            return session.get_one(Webhook, self.id)


@pytest.fixture
def hooked(app, cast, target):
    return Hooked(app, cast, target)


def test_finished_work_is_reported_once_with_names_and_numbers_and_no_message(hooked, target):
    work_id = hooked.ends(
        status="failed", error={"code": "target_failed", "message": "row 3: ann@example.org"}
    )
    assert (hooked.tell(), hooked.tell()) == (1, 0)
    assert hooked.send() == ["delivered"]
    (call,) = target.calls("/hook")
    result = call.json
    assert (result["event"], result["workspace_id"], result["project_id"]) == (
        "export.failed",
        hooked.cast.acme,
        hooked.cast.main,
    )
    assert (result["id"], result["object"]["id"]) == (call.headers["webhook-id"], work_id)
    assert result["object"]["error"] == {"code": "target_failed"}
    assert "ann@example.org" not in call.body.decode()
    assert (call.method, call.headers["content-type"]) == ("POST", "application/json")
    (delivery,) = hooked.deliveries()
    assert (delivery.status, delivery.attempts, delivery.response_status) == ("delivered", 1, 204)


def test_the_signature_is_that_of_standard_webhooks(hooked, target):
    hooked.ends()
    hooked.tell()
    hooked.send()
    (call,) = target.calls("/hook")
    stamp = call.headers["webhook-timestamp"]
    assert abs(int(stamp) - clock.epoch()) < 60
    key = base64.b64decode(hooked.secret.removeprefix("whsec_"))
    signed = f"{call.headers['webhook-id']}.{stamp}.".encode() + call.body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert call.headers["webhook-signature"] == expected


def test_the_example_of_standard_webhooks_has_its_signature():
    # https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
    secret, message = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    result = webhooks.signature(secret, message, 1614265330, b'{"test": 2432232314}')
    assert result == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("events", "heard"),
    [
        (["*"], ["export.completed", "push.failed"]),
        (["push.*"], ["push.failed"]),
        (["export.completed"], ["export.completed"]),
        (["export.failed", "push.completed"], []),
    ],
)
def test_a_webhook_only_gets_its_events(app, cast, target, events, heard):
    hooked = Hooked(app, cast, target, events)
    hooked.ends()
    hooked.ends("push", "failed")
    assert hooked.tell() == 2
    hooked.send()
    assert sorted(call.json["event"] for call in target.calls("/hook")) == heard


def test_a_webhook_of_a_project_gets_only_its_events_and_disabled_or_deleted_ones_get_none(hooked, target):
    hooked.ends(project_id=hooked.cast.side)
    hooked.ends(
        workspace_id=hooked.cast.mallory_inc, project_id=hooked.cast.mallorys, team_id=hooked.cast.red
    )
    assert hooked.tell() == 2
    assert hooked.deliveries() == []
    hooked.ends()
    hooked.tell()
    with hooked.app.app_context(), write_session() as session:
        session.get_one(Webhook, hooked.id).active = False
    hooked.ends()
    hooked.tell()
    assert hooked.send() == ["failed"], "what waited when it was turned off"
    assert [delivery.reason for delivery in hooked.deliveries()] == [webhooks.DISABLED_MESSAGE]
    assert target.seen == []


@pytest.mark.parametrize("answer", [Answer(500), Answer(503), busy(1), Answer(408), Answer(200, cut="read")])
def test_temporary_errors_are_retried_with_the_same_id_and_body(hooked, target, answer):
    target.on("/hook", answer, Answer(200))
    hooked.ends()
    hooked.tell()
    assert hooked.send() == ["again"]
    assert hooked.send(limits.WEBHOOK_RETRY_SECONDS[0] - 1) == []
    assert hooked.send(2) == ["delivered"]
    first, second = target.calls("/hook")
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"], (
        "the timestamp has moved on"
    )
    (delivery,) = hooked.deliveries()
    assert (delivery.attempts, [item["response_status"] for item in delivery.tries][-1]) == (2, 200)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(hooked, target, status):
    target.on("/hook", redirect(target.url("/elsewhere"), status))
    hooked.ends()
    hooked.tell()
    assert hooked.send() == ["failed"]
    assert target.calls("/elsewhere") == []
    assert "redirect" in hooked.deliveries()[0].reason


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_refusal_is_not_repeated(hooked, target, status):
    target.on("/hook", Answer(status, {"why": "no"}))
    hooked.ends()
    hooked.tell()
    assert hooked.send() == ["failed"]
    assert hooked.send(10 * 86_400) == []
    assert hooked.deliveries()[0].head == '{"why": "no"}'


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_honoured_and_capped(hooked, target, form):
    until = clock.now() + timedelta(seconds=300)
    target.on(
        "/hook",
        busy(300 if form == "seconds" else format_datetime(until, usegmt=True)),
        busy(10**9),
        Answer(200),
    )
    hooked.ends()
    hooked.tell()
    assert hooked.send() == ["again"]
    assert hooked.send(290) == []
    assert hooked.send(15) == ["again"]
    assert hooked.send(limits.WEBHOOK_RETRY_AFTER_SECONDS - 10) == []
    assert hooked.send(15) == ["delivered"]


@pytest.mark.parametrize("text", ["", "soon", "-5", "1e9", "٣", "Wed, 99 Foo 2026"])
def test_a_retry_after_that_cannot_be_read_asks_for_nothing(text):
    assert webhooks._retry_after(text, clock.now()) == 0


def test_a_delivery_that_always_fails_is_finally_given_up(hooked, target):
    target.on("/hook", Answer(500))
    hooked.ends()
    hooked.tell()
    for wait in (0, *limits.WEBHOOK_RETRY_SECONDS):
        assert len(hooked.send(wait)) == 1
    (delivery,) = hooked.deliveries()
    assert (delivery.status, delivery.attempts, delivery.next_at) == (
        "failed",
        1 + len(limits.WEBHOOK_RETRY_SECONDS),
        None,
    )


def test_gone_turns_the_webhook_off_with_an_entry_in_the_trail(hooked, target):
    target.on("/hook", Answer(410))
    hooked.ends()
    hooked.tell()
    assert hooked.send() == ["gone"]
    row = hooked.row()
    assert (row.active, row.off_reason) == (False, "gone")
    with hooked.app.app_context(), write_session() as session:
        entries = session.query(AuditEntry).filter_by(action="webhook.off").all()
    assert [(entry.object_id, entry.details["reason"]) for entry in entries] == [(hooked.id, "gone")]


def test_a_webhook_that_fails_for_a_day_is_turned_off_and_its_maker_is_mailed(hooked, target, monkeypatch):
    settings = hooked.app.config["SETTINGS"]
    monkeypatch.setitem(settings.__dict__, "mail_server", object())
    target.on("/hook", Answer(404))
    for _ in range(limits.WEBHOOK_FAILURES):
        hooked.ends()
    hooked.tell()
    hooked.send()
    assert (hooked.row().active, hooked.row().failures) == (True, limits.WEBHOOK_FAILURES), (
        "it may be back tomorrow"
    )
    hooked.ends()
    hooked.tell()
    hooked.send(limits.WEBHOOK_FAILING_SECONDS)
    assert (hooked.row().active, hooked.row().off_reason) == (False, "failing")
    with hooked.app.app_context(), write_session() as session:
        (mail,) = session.query(Mail).filter_by(about=hooked.id).all()
    assert (mail.recipient, mail.kind) == (hooked.cast.edith.email, "webhook.off")
    assert "topsecrettoken" not in mail.subject


def test_one_success_forgets_the_failures(hooked, target):
    target.on("/hook", Answer(404), Answer(404), Answer(200))
    for _ in range(3):
        hooked.ends()
    hooked.tell()
    hooked.send()
    assert (hooked.row().failures, hooked.row().failing_since) == (0, None)


def test_a_delivery_whose_sender_died_is_sent_again_with_the_same_id(hooked, target, monkeypatch):
    hooked.ends()
    hooked.tell()
    with monkeypatch.context() as patch:
        patch.setattr(webhooks, "_store_outcome", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            hooked.send()
    assert hooked.send() == [], "another sender has it in hand"
    assert hooked.send(limits.WEBHOOK_CLAIM_SECONDS + 1) == ["delivered"]
    assert len({call.headers["webhook-id"] for call in target.calls("/hook")}) == 1
    assert len(target.calls("/hook")) == 2


def test_a_sender_that_was_thought_dead_notes_nothing(hooked, target):
    hooked.ends()
    hooked.tell()
    with hooked.app.app_context():
        slow = webhooks.claim(hooked.now())
    target.on("/hook", Answer(500))
    assert hooked.send(limits.WEBHOOK_CLAIM_SECONDS + 1) == ["again"]
    with hooked.app.app_context():
        target.on("/hook", Answer(200))
        webhooks.deliver(slow, hooked.now)
    assert hooked.deliveries()[0].status == "pending"


def test_rolled_back_ends_are_not_notified(hooked):
    with pytest.raises(RuntimeError), hooked.app.app_context(), write_session() as session:
        session.add(
            Export(
                workspace_id=hooked.cast.acme, project_id=hooked.cast.main, team_id=hooked.cast.blue, format="csv",
                count=1, status="completed",
            )
        )  # fmt: skip
        session.flush()
        raise RuntimeError
    assert hooked.tell() == 0


def test_the_old_secret_also_signs_for_a_day_after_a_rotation(hooked, target):
    with hooked.app.app_context():
        system = actors.system_actor(hooked.cast.acme, hooked.cast.main, hooked.cast.blue)
        fresh = webhooks.new_secret(system, webhooks.get(system, hooked.id, lock=True))
    hooked.ends()
    hooked.tell()
    hooked.send()
    (call,) = target.calls("/hook")
    message, stamp = call.headers["webhook-id"], int(call.headers["webhook-timestamp"])
    assert call.headers["webhook-signature"].split() == [
        webhooks.signature(item, message, stamp, call.body) for item in (fresh, hooked.secret)
    ]
    hooked.ends()
    hooked.tell()
    hooked.send(limits.WEBHOOK_ROTATION_SECONDS + 1)
    assert len(target.calls("/hook")[1].headers["webhook-signature"].split()) == 1


def test_no_secret_is_in_a_log_a_row_or_an_entry_of_the_trail(hooked, target, caplog, database_bytes):
    caplog.set_level("DEBUG")
    bare = hooked.secret.removeprefix("whsec_")
    target.on("/hook", Answer(500, f"you sent {hooked.secret} and topsecrettoken and {bare}"), Answer(410))
    hooked.ends()
    hooked.tell()
    hooked.send()
    hooked.send(10)
    assert hooked.deliveries()[0].tries[0]["response_status"] == 500
    stored = database_bytes()
    for form in (hooked.secret, bare, base64.b64decode(bare).hex()):
        assert form not in caplog.text
        assert form.encode() not in stored
    assert "topsecrettoken" not in caplog.text
    assert stored.count(b"topsecrettoken") == stored.count(b"/hook?token=topsecrettoken"), "only in the URL"


def test_events_are_those_of_the_documentation_and_a_body_has_no_more_than_it_says():
    assert set(webhooks.EVENTS) == {
        *(
            f"{kind}.{end}"
            for kind in ("export", "push", "run")
            for end in ("completed", "failed", "cancelled")
        ),
        "run.timed_out",
        "limit.warning",
    }
    delivery = Delivery(
        id="dlv_1", event="export.completed", created_at=datetime.fromisoformat("2026-01-01T00:00:00Z")
    )
    assert json.loads(webhooks.build_body(delivery, "ws_1", None, {"id": "exp_1"})) == {
        "id": "dlv_1",
        "event": "export.completed",
        "created_at": "2026-01-01T00:00:00Z",
        "workspace_id": "ws_1",
        "project_id": None,
        "object": {"id": "exp_1"},
    }


def test_a_closed_address_is_not_tried_again(target):
    outcome = webhooks.send(target.url("/hook"), ["whsec_AAAA"], "dlv_1", "{}", clock.now(), Gate())
    assert (outcome.verdict, target.opened) == ("failed", 0)
