"""Webhooks over the API and in the browser: create, test, disable, enable; and notifications of users."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.fakes.echo_target import Answer, EchoTarget
from webapp import clock
from webapp.connections.services import access
from webapp.exports.models import Export
from webapp.extensions import write_session
from webapp.mail.models import NoticeChoice
from webapp.net.gate import Gate
from webapp.notifications.models import Delivery
from webapp.notifications.services import webhooks

NEW = {
    "url": "http://127.0.0.1:9/hook",
    "events": ["export.completed", "push.*"],
    "description": "Nightly build",
}


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def target():
    with EchoTarget() as made:
        made.on("/hook", Answer(204))
        yield made


def made(program, **more):
    answer = program.post("/webhooks", json={**NEW, **more})
    assert answer.status_code == 201, answer.json
    return answer.json


def fault_of(answer):
    assert answer.status_code == 422, answer.json
    return [(field["path"], field["code"]) for field in answer.json["error"]["details"]["fields"]]


def test_the_secret_is_in_the_first_answer_and_in_no_other(edith):
    hook = made(edith)
    secret = hook.pop("secret")
    assert (hook["id"][:4], secret[:6]) == ("whk_", "whsec_")
    seen = [
        edith.get(f"/webhooks/{hook['id']}"),
        edith.get("/webhooks"),
        edith.patch(f"/webhooks/{hook['id']}", json={"description": "Other"}),
        edith.delete(f"/webhooks/{hook['id']}"),
        edith.post(f"/webhooks/{hook['id']}/restore"),
    ]
    assert [item.status_code for item in seen] == [200] * 5
    assert not any(secret[6:] in item.text for item in seen)
    assert seen[0].json == hook
    other = edith.post(f"/webhooks/{hook['id']}/secret").json
    assert other["secret"] != secret
    assert other["old_secret_until"] > clock.to_text(clock.now())


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({"events": ["export.done"]}, [("events[0]", "not_allowed")]),
        ({"events": []}, [("events", "too_short")]),
        ({"url": "ftp://example.org"}, [("url", "wrong_form")]),
        ({"url": "https://me:pass@example.org/hook"}, [("url", "wrong_form")]),
        ({"url": "https://example.org/a b\n"}, [("url", "wrong_form")]),
        ({"url": ""}, [("url", "too_short")]),
        ({"secret": "mine"}, [("secret", "unknown_key")]),
        ({"active": False}, [("active", "unknown_key")]),
        ({"scope": "world"}, [("scope", "not_allowed")]),
    ],
)
def test_an_invalid_webhook_is_rejected_by_name(edith, body, faults):
    assert fault_of(edith.post("/webhooks", json={**NEW, **body})) == faults


def test_a_blocked_address_is_rejected_when_it_is_entered(edith, monkeypatch):
    monkeypatch.setattr(access, "create_gate", Gate)
    answer = edith.post("/webhooks", json={**NEW, "url": "http://169.254.169.254/latest"})
    assert (answer.status_code, answer.json["error"]["code"]) == (403, "target_not_allowed")


def test_the_workspaces_key_is_only_for_admins(api, cast, edith):
    whole = made(api(cast.adam), scope="workspace")
    assert (whole["scope"], whole["project_id"]) == ("workspace", None)
    assert edith.post("/webhooks", json={**NEW, "scope": "workspace"}).status_code == 403
    assert [item["id"] for item in edith.get("/webhooks").json["items"]] == []
    assert [item["id"] for item in api(cast.adam).get("/webhooks").json["items"]] == [whole["id"]]


def test_a_test_immediately_returns_the_response_of_the_receiver(edith, target):
    hook = made(edith, url=target.url("/hook"))
    edith.patch(f"/webhooks/{hook['id']}", json={"active": False})
    target.on("/hook", Answer(204), Answer(500, "broken"))
    good, bad = (edith.post(f"/webhooks/{hook['id']}/test").json for _ in range(2))
    assert (good["status"], good["response_status"], good["event"]) == ("delivered", 204, "webhook.test")
    assert (bad["status"], bad["response_status"], bad["response_head"]) == ("failed", 500, "broken")
    assert target.calls("/hook")[0].json["object"]["id"] == hook["id"]
    assert edith.get(f"/webhooks/{hook['id']}").json["failures"] == 0


def test_deliveries_are_listed_and_sent_again(app, edith, target):
    hook = made(edith, url=target.url("/hook"))
    sent = edith.post(f"/webhooks/{hook['id']}/test").json
    at = f"/webhooks/{hook['id']}/deliveries"
    assert edith.get(at).json["items"] == [sent]
    assert edith.get(f"{at}?status=failed").json["total"] == 0
    again = edith.post(f"{at}/{sent['id']}/redeliver").json
    assert (again["status"], again["id"]) == ("pending", sent["id"])
    assert edith.post(f"{at}/{sent['id']}/redeliver").json["error"]["code"] == "conflict"
    with app.app_context():
        webhooks.deliver(webhooks.claim(clock.now()))
    first, second = target.calls("/hook")
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    edith.patch(f"/webhooks/{hook['id']}", json={"active": False})
    assert edith.post(f"{at}/{sent['id']}/redeliver").status_code == 409


def test_a_delivery_of_another_webhook_is_not_there(app, edith, target):
    mine, other = made(edith, url=target.url("/hook")), made(edith)
    sent = edith.post(f"/webhooks/{mine['id']}/test").json
    assert edith.get(f"/webhooks/{other['id']}/deliveries/{sent['id']}").status_code == 404
    assert edith.post(f"/webhooks/{other['id']}/deliveries/{sent['id']}/redeliver").status_code == 404


def test_turned_on_again_a_webhook_has_a_clean_record(app, edith, target):
    target.on("/hook", Answer(410))
    hook = made(edith, url=target.url("/hook"))
    with app.app_context(), write_session() as session:
        session.add(Delivery(webhook_id=hook["id"], event="run.failed", body="{}", next_at=clock.now()))
    with app.app_context():
        webhooks.deliver(webhooks.claim(clock.now()))
    assert edith.get(f"/webhooks/{hook['id']}").json["off_reason"] == "gone"
    on = edith.patch(f"/webhooks/{hook['id']}", json={"active": True}).json
    assert (on["active"], on["off_reason"], on["failures"], on["failing_since"]) == (True, None, 0, None)


def test_in_the_browser_a_webhook_is_created_tested_disabled_and_deleted(browser, cast, target):
    edith = browser(cast.edith)
    page = edith.submit(
        "/webhooks", data={"url": target.url("/hook"), "events": "export.*", "description": "Build"}
    )
    assert (page.status_code, "whsec_" in page.text) == (201, True)
    listed = edith.get("/webhooks").text
    assert ("Build" in listed, "whsec_" in listed) == (True, False)
    at = listed.split('href="/webhooks/whk_')[1].split('"')[0]
    at = f"/webhooks/whk_{at}"
    assert edith.submit(f"{at}/test").status_code == 303
    shown = edith.get(at).text
    assert ("webhook.test" in shown, "delivered" in shown) == (True, True)
    assert edith.submit(at, {"active": "false"}, "PATCH").status_code == 303
    assert ">Turn on<" in edith.get(at).text
    wrong = edith.submit(at, {"url": "ftp://x", "events": "export.*"}, "PATCH")
    assert (wrong.status_code, "A URL must start with https" in wrong.text) == (422, True)
    assert edith.submit(at, method="DELETE").status_code == 303
    assert edith.get(at).status_code == 404


# --- Notifications about a user's own work ---------------------------------------------------------------------


def test_a_person_chooses_when_there_is_mail(app, browser, cast, monkeypatch):
    monkeypatch.setitem(app.config["SETTINGS"].__dict__, "mail_server", object())
    edith = browser(cast.edith)
    assert 'value="failed" checked' in edith.get("/me").text
    assert edith.submit("/me/notices", data={"mail": "always", "minutes": "0"}).status_code == 303
    page = edith.get("/me").text
    assert 'value="always" checked' in page
    for wrong in (
        {"mail": "sometimes", "minutes": "1"},
        {"mail": "always", "minutes": "-1"},
        {"mail": "always"},
    ):
        assert edith.submit("/me/notices", data=wrong).status_code == 422
    with app.app_context(), write_session() as session:
        assert session.get_one(NoticeChoice, cast.edith.user_id).minutes == 0


def test_without_a_mail_server_the_profile_says_so(browser, cast):
    assert "E-mail isn't configured" in browser(cast.edith).get("/me").text


def test_a_browser_is_only_notified_about_the_users_own_longer_jobs(app, browser, cast, monkeypatch):
    edith = browser(cast.edith)
    begun = edith.get("/notices").json
    assert begun["items"] == []
    now = clock.now()

    def ended(who, seconds, name):
        place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
        with app.app_context(), write_session() as session:
            session.add(
                Export(
                    **place, format="csv", count=1, status="completed", file_name=name, created_by=who.user_id,
                    created_at=datetime.fromtimestamp(now.timestamp() - seconds, UTC), finished_at=now,
                    noticed_at=now,
                )
            )  # fmt: skip

    ended(cast.edith, 60, "long.csv")
    ended(cast.edith, 1, "short.csv")
    ended(cast.adam, 60, "his.csv")
    monkeypatch.setattr(clock, "source", lambda: now.timestamp() + 10)
    heard = edith.get(f"/notices?since={begun['now']}").json
    assert [item["text"] for item in heard["items"]] == ["Export long.csv is complete."]
    assert heard["items"][0]["href"].startswith("/exports/exp_")
    assert edith.get(f"/notices?since={heard['now']}").json["items"] == []
    assert browser().get("/notices").status_code in (302, 303, 401)
