"""API keys: shown once, stored as a hash, limited to the permissions of their owner, invalid after revocation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from lxml import html

from tests.conftest import close_app, settings_for
from webapp import clock, create_app
from webapp.access.models import ApiKey
from webapp.extensions import db, redis_client


def code(answer):
    return answer.status_code, answer.json["error"]["code"]


def make(program, **body):
    answer = program.post("/api-keys", json={"name": "K", **body})
    assert answer.status_code == 201, answer.text
    return answer.json


def test_a_key_is_shown_once(api, cast):
    created = make(api(cast.edith))
    assert created["key"].startswith(created["prefix"] + "_")
    shown = api(cast.edith).get(f"/api-keys/{created['id']}").json
    assert "key" not in shown
    assert created["key"].rsplit("_", 1)[1] not in api(cast.edith).get("/api-keys").text
    assert api(created["key"]).get("/me").json["user_id"] == cast.edith.user_id


def test_a_persons_new_key_is_on_the_page_that_answers_and_nowhere_else(browser, cast):
    edith = browser(cast.edith)
    answer = edith.submit("/api-keys", {"name": "By hand"})
    assert answer.status_code == 201
    assert "rws_" in answer.text
    assert "no-cache" in answer.headers["Cache-Control"]


def test_an_expired_key_is_401_with_reason(app, api, cast):
    created = make(api(cast.edith), expires_at=clock.to_text(clock.now() + timedelta(hours=1)))
    assert api(created["key"]).get("/me").status_code == 200
    with app.app_context():
        db.session.get_one(ApiKey, created["id"]).expires_at = clock.now() - timedelta(seconds=1)
        db.session.commit()
        redis_client().flushdb()  # so that it is read again
    answer = api(created["key"]).get("/me")
    assert code(answer) == (401, "unauthenticated")
    assert answer.json["error"]["details"]["reason"] == "expired"


def test_a_remembered_key_expires_on_time(api, cast, monkeypatch):
    moment = clock.now() + timedelta(hours=1)
    created = make(api(cast.edith), expires_at=clock.to_text(moment))
    assert api(created["key"]).get("/me").status_code == 200
    monkeypatch.setattr(clock, "source", lambda: moment.timestamp() + 0.001)
    assert api(created["key"]).get("/me").json["error"]["details"]["reason"] == "expired"


@pytest.mark.parametrize("when", ["2001-01-01T00:00:00Z", "2099-01-01T00:00:00", "tomorrow", 5])
def test_an_expiry_in_the_past_without_zone_or_unreadable_is_422(api, cast, when):
    answer = api(cast.edith).post("/api-keys", json={"name": "K", "expires_at": when})
    assert code(answer) == (422, "validation_error")
    assert answer.json["error"]["details"]["fields"][0]["path"] == "expires_at"


def test_a_revoked_key_is_immediately_401_in_every_process(
    app, api, cast, database_url, shared_redis, tmp_path
):
    created = make(api(cast.edith))
    other = create_app(
        settings_for(database_url, shared_redis, tmp_path)
    )  # another process, as far as this goes
    from tests.cast import Program

    elsewhere = Program(other, created["key"])
    assert elsewhere.get("/me").status_code == 200
    gone = api(cast.edith).delete(f"/api-keys/{created['id']}")
    assert gone.status_code == 200
    assert gone.json["revoked_at"]
    answer = elsewhere.get("/me")
    assert answer.json["error"]["details"]["reason"] == "revoked"
    assert api(cast.edith).delete(f"/api-keys/{created['id']}").json["revoked_at"] == gone.json["revoked_at"]
    close_app(other)


def test_a_key_does_what_its_maker_may_do_now(api, cast):
    created = make(api(cast.edith))
    assert api(created["key"]).get("/me").json["role"] == "editor"
    member = next(
        m for m in api(cast.adam).get("/members").json["items"] if m["user_id"] == cast.edith.user_id
    )
    api(cast.adam).patch(f"/members/{member['id']}", json={"role": "viewer"})
    assert api(created["key"]).get("/me").json["role"] == "viewer"
    api(cast.adam).patch(f"/members/{member['id']}", json={"role": "admin"})
    assert api(created["key"]).get("/me").json["role"] == "admin"
    api(cast.adam).delete(f"/members/{member['id']}")
    assert code(api(created["key"]).get("/projects")) == (403, "forbidden")


def test_scopes_narrow_a_key(api, cast):
    created = make(api(cast.adam), scopes=["read"])
    assert api(created["key"]).get("/projects").status_code == 200
    refused = api(created["key"]).post("/teams", json={"name": "X"})
    assert code(refused) == (403, "forbidden")
    assert refused.json["error"]["details"] == {"needs": "admin", "scope": "admin"}


def test_scopes_never_widen_a_key(api, cast):
    created = make(api(cast.edith), scopes=["read", "admin"])
    assert code(api(created["key"]).post("/teams", json={"name": "X"})) == (403, "forbidden")


def test_a_key_with_scopes_cannot_create_or_list_keys(api, cast):
    created = make(api(cast.adam), scopes=["read", "write"])
    assert code(api(created["key"]).post("/api-keys", json={"name": "K"})) == (403, "forbidden")
    assert code(api(created["key"]).get("/api-keys")) == (403, "forbidden")


def test_a_narrowed_key_with_admin_makes_none_wider_than_itself(api, cast):
    created = make(api(cast.adam), scopes=["read", "admin"])
    wider = api(created["key"]).post("/api-keys", json={"name": "K", "scopes": ["read", "push"]})
    assert wider.json["error"]["details"]["fields"][0]["path"] == "scopes[1]"
    assert make(api(created["key"]))["scopes"] == ["admin", "read"]


def test_an_unknown_scope_is_422_with_a_hint(api, cast):
    answer = api(cast.edith).post("/api-keys", json={"name": "K", "scopes": ["read", "wrote"]})
    (fault,) = answer.json["error"]["details"]["fields"]
    assert (fault["path"], fault["code"], fault["hint"]) == (
        "scopes[1]",
        "not_allowed",
        "Did you mean `write`?",
    )


def test_people_see_their_own_keys_and_admins_all(api, cast):
    assert {k["created_by"] for k in api(cast.edith).get("/api-keys").json["items"]} == {cast.edith.user_id}
    assert api(cast.adam).get("/api-keys").json["total"] == 5
    assert api(cast.edith).get(f"/api-keys/{cast.victor.key_id}").status_code == 404
    assert api(cast.adam).delete(f"/api-keys/{cast.victor.key_id}").status_code == 200
    assert api(cast.victor).get("/me").json["error"]["details"]["reason"] == "revoked"


def test_a_key_for_a_project_of_others_cannot_be_created(api, cast):
    answer = api(cast.mallory).post("/api-keys", json={"name": "K", "project_id": cast.main})
    assert code(answer) == (422, "validation_error")


def test_mass_assignment_does_nothing(app, api, cast):
    answer = api(cast.victor).post("/api-keys", json={"name": "K", "workspace_id": cast.mallory_inc})
    assert answer.status_code == 201  # a read-only key: ignored
    for key in ("role", "user_id", "secret_hash", "handle", "revoked_at"):
        assert code(api(cast.victor).post("/api-keys", json={"name": "K", key: "x"})) == (
            422,
            "validation_error",
        )
    with app.app_context():
        assert db.session.get_one(ApiKey, answer.json["id"]).workspace_id == cast.acme


def test_the_last_use_is_noted(app, api, cast):
    before = datetime.now(UTC)
    api(cast.edith).get("/me")
    from tests.jobs.waiting import eventually

    def noted():
        with app.app_context():
            used = db.session.get_one(ApiKey, cast.edith.key_id).last_used_at
            db.session.rollback()
            return used is not None and used >= before

    eventually(noted)


def test_a_stolen_database_holds_no_key_password_or_token(api, browser, cast, database_bytes):
    from tests.cast import PASSWORD

    created = make(api(cast.edith))
    signed_in = browser(cast.edith)
    with signed_in.client.session_transaction() as cookie:
        token = cookie["sid"]
    invited = (
        api(cast.adam).post("/invitations", json={"email": "new@example.org"}).json["url"].rsplit("/", 1)[1]
    )
    everything = database_bytes()
    assert b"K" in everything
    for secret in (
        created["key"],
        created["key"].rsplit("_", 1)[1],
        cast.edith.key.rsplit("_", 1)[1],
        token,
        invited,
        PASSWORD,
    ):
        assert secret.encode() not in everything


def test_the_page_offers_a_key_that_reads_and_expires_in_90_days(browser, cast):
    page = html.fromstring(browser(cast.adam).get("/api-keys").text)
    assert page.xpath("//input[@name='scopes'][@checked]/@value") == ["read"]
    assert page.xpath("//select[@name='expires_at']/option[@selected]/text()") == ["In 90 days"]


def test_a_form_without_scopes_makes_a_key_that_only_reads(browser, api, cast):
    assert browser(cast.adam).submit("/api-keys", {"name": "Forgotten"}).status_code == 201
    result = next(key for key in api(cast.adam).get("/api-keys").json["items"] if key["name"] == "Forgotten")
    assert result["scopes"] == ["read"]
