"""The admin's day with people: roles in the workspace and in teams, invitations, leaving, keys of those who leave."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.cast import Program
from tests.conftest import close_app, settings_for
from tests.jobs.waiting import eventually
from webapp import clock, create_app, limits
from webapp.access.models import ApiKey
from webapp.extensions import db
from webapp.mail.models import Mail


def code(answer):
    return answer.status_code, answer.json["error"]["code"]


def membership(program, person, team_id=None):
    found = program.get(f"/members?user_id={person.user_id}").json["items"]
    return next(item for item in found if item["team_id"] == team_id)


@pytest.fixture
def adam(api, cast):
    return api(cast.adam)


# --- Members ------------------------------------------------------------------------------------------------


def test_members_are_found_by_name_and_address_narrowed_and_sorted(adam, cast):
    assert [item["email"] for item in adam.get("/members?q=TESS").json["items"]] == [cast.tessa.email]
    assert [item["email"] for item in adam.get("/members?q=tessa@").json["items"]] == [cast.tessa.email]
    assert adam.get("/members?q=%25").json["total"] == 0
    assert [item["user_id"] for item in adam.get(f"/members?team_id={cast.blue}").json["items"]] == [
        cast.tessa.user_id
    ]
    forth = [item["email"] for item in adam.get("/members?sort=email").json["items"]]
    back = [item["email"] for item in adam.get("/members?sort=-email").json["items"]]
    assert forth == sorted(forth) == back[::-1]


def test_pages_sorted_by_address_follow_each_other(adam):
    seen, cursor = [], ""
    while cursor is not None:
        page = adam.get(f"/members?sort=email&limit=2{cursor and '&cursor=' + cursor}").json
        seen += [item["email"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert seen == sorted(seen)
    assert len(seen) == page["total"] == 5


def test_a_role_in_a_team_is_given_in_addition_to_the_one_in_the_workspace(api, adam, cast):
    body = {"user_id": cast.victor.user_id, "team_id": cast.red, "role": "editor"}
    created = adam.post("/members", json=body)
    assert (created.status_code, created.json["role"], created.json["team_id"]) == (201, "editor", cast.red)
    assert code(adam.post("/members", json=body)) == (409, "conflict")
    there = {"X-Project-Id": cast.red_project}
    assert api(cast.victor, **there).get("/me").json["role"] == "editor"
    assert api(cast.victor).get("/me").json["role"] == "viewer"


def test_a_team_member_is_given_the_whole_workspace(api, adam, cast):
    assert api(cast.tessa).get(f"/projects/{cast.red_project}").status_code == 404
    assert adam.post("/members", json={"user_id": cast.tessa.user_id, "role": "viewer"}).status_code == 201
    assert api(cast.tessa).get(f"/projects/{cast.red_project}").status_code == 200


def test_other_workspaces_and_teams_are_not_mentioned(api, adam, cast):
    outside = {"user_id": cast.mallory.user_id, "team_id": cast.blue}
    assert code(adam.post("/members", json=outside)) == (404, "not_found")
    assert code(adam.post("/members", json={"user_id": "usr_\u0000"})) == (400, "invalid_request")
    theirs = api(cast.mallory).get("/teams").json["items"][0]["id"]
    assert code(adam.post("/members", json={"user_id": cast.edith.user_id, "team_id": theirs})) == (
        404,
        "not_found",
    )
    owner = {"user_id": cast.edith.user_id, "team_id": cast.blue, "role": "owner"}
    assert code(adam.post("/members", json=owner)) == (403, "forbidden")


def test_leaving_all_teams_removes_all_roles_and_optionally_the_keys(api, adam, cast):
    adam.post("/members", json={"user_id": cast.edith.user_id, "team_id": cast.blue, "role": "viewer"})
    whole = membership(adam, cast.edith)
    gone = adam.delete(f"/members/{whole['id']}?everywhere=true&revoke_keys=true")
    assert gone.status_code == 200
    assert adam.get(f"/members?user_id={cast.edith.user_id}").json["total"] == 0
    assert api(cast.edith).get("/me").json["error"]["details"]["reason"] == "revoked"


def test_leaving_a_team_keeps_the_other_roles(adam, cast):
    adam.post("/members", json={"user_id": cast.edith.user_id, "team_id": cast.blue, "role": "viewer"})
    adam.delete(f"/members/{membership(adam, cast.edith, cast.blue)['id']}")
    assert [item["team_id"] for item in adam.get(f"/members?user_id={cast.edith.user_id}").json["items"]] == [
        None
    ]


def test_the_last_owner_does_not_leave_by_any_way(api, cast):
    olivia = api(cast.olivia)
    whole = membership(olivia, cast.olivia)
    olivia.post("/members", json={"user_id": cast.olivia.user_id, "team_id": cast.blue, "role": "owner"})
    of_team = membership(olivia, cast.olivia, cast.blue)
    assert code(olivia.delete(f"/members/{whole['id']}")) == (409, "conflict")
    assert code(olivia.delete(f"/members/{of_team['id']}?everywhere=true")) == (409, "conflict")
    assert olivia.get(f"/members?user_id={cast.olivia.user_id}").json["total"] == 2
    assert olivia.delete(f"/members/{of_team['id']}").status_code == 200


def test_a_role_lowered_is_lower_in_every_process_at_the_very_next_request(
    api, adam, cast, database_url, shared_redis, tmp_path
):
    """Both processes remember the key; nothing of what they remember outlives the change."""
    other = create_app(settings_for(database_url, shared_redis, tmp_path))
    here, elsewhere = api(cast.edith), Program(other, cast.edith.key)
    new = {"name": "T", "fields": [{"name": "id", "type": "row_number"}]}
    for program in (here, elsewhere):
        assert program.post("/templates", json=new).status_code == 201
    adam.patch(f"/members/{membership(adam, cast.edith)['id']}", json={"role": "viewer"})
    refused = [program.post("/templates", json=new) for program in (elsewhere, here)]
    assert [code(item) for item in refused] == [(403, "forbidden")] * 2
    assert refused[0].json["error"]["details"] == {"needs": "write", "role": "editor"}
    close_app(other)


def test_the_page_shows_people_with_their_teams_and_only_admins_change_them(browser, cast):
    page = browser(cast.adam).get("/members").text
    assert "Blue: editor" in page
    assert 'name="role"' in page
    assert f"created_by={cast.edith.user_id}" in page
    seen = browser(cast.victor).get("/members").text
    assert "Blue: editor" in seen
    assert 'name="role"' not in seen


def test_an_error_is_shown_on_the_page(browser, api, cast):
    whole = membership(api(cast.olivia), cast.olivia)
    answer = browser(cast.olivia).submit(f"/members/{whole['id']}", {"role": "viewer"}, "PATCH")
    assert answer.status_code == 409
    assert "This is the last owner of the workspace." in answer.text
    assert "Blue: editor" in answer.text


# --- Invitations --------------------------------------------------------------------------------------------


def test_an_invitation_sent_again_has_another_link_and_the_old_one_ends(api, adam, browser):
    first = adam.post("/invitations", json={"email": "new@example.org"}).json
    again = adam.post(f"/invitations/{first['id']}/resend").json
    assert again["id"] == first["id"]
    assert again["expires_at"] > first["expires_at"]
    assert again["mailed"] is False
    old, new = (item["url"].removeprefix("http://localhost") for item in (first, again))
    assert browser().get(old).status_code == 404
    assert browser().get(new).status_code == 200
    adam.delete(f"/invitations/{first['id']}")
    assert code(adam.post(f"/invitations/{first['id']}/resend")) == (409, "conflict")


@pytest.fixture
def mailing(app, monkeypatch):
    """E-mail is configured; the number of mails in the outbox."""
    monkeypatch.setitem(app.config["SETTINGS"].__dict__, "mail_server", object())

    def posted():
        with app.app_context():
            return db.session.scalar(sa.select(sa.func.count()).select_from(Mail))

    return posted


def test_an_address_is_not_flooded_by_resending_an_invitation(adam, mailing):
    invitation = adam.post("/invitations", json={"email": "victim@example.org"}).json
    most = limits.INVITATION_MAILS_PER_HOUR
    answers = [adam.post(f"/invitations/{invitation['id']}/resend") for _ in range(most + 3)]
    assert [answer.status_code for answer in answers] == [200] * (most - 1) + [429] * 4
    assert code(answers[-1]) == (429, "rate_limited")
    assert 0 < int(answers[-1].headers["Retry-After"]) <= limits.INVITATION_MAILS_SECONDS + 1
    assert "victim@example.org" in answers[-1].json["error"]["message"]
    assert mailing() == most


def test_an_address_is_not_flooded_by_inviting_and_withdrawing_or_by_subaddresses(adam, mailing):
    most = limits.INVITATION_MAILS_PER_HOUR
    for number in range(most + 3):
        answer = adam.post("/invitations", json={"email": f"victim+{number}@example.org"})
        if number < most:
            adam.delete(f"/invitations/{answer.json['id']}")
        else:
            assert code(answer) == (429, "rate_limited")
    assert mailing() == most
    assert adam.get("/invitations").json["total"] == 0, "what was rejected is not saved"
    assert adam.post("/invitations", json={"email": "other@example.org"}).status_code == 201


def test_a_link_that_is_not_sent_again_stays_valid(adam, mailing, browser):
    invitation = adam.post("/invitations", json={"email": "victim@example.org"}).json
    for _ in range(limits.INVITATION_MAILS_PER_HOUR + 1):
        answer = adam.post(f"/invitations/{invitation['id']}/resend")
        url = answer.json.get("url", invitation["url"])
        invitation["url"] = url
    assert answer.status_code == 429
    assert browser().get(url.removeprefix("http://localhost")).status_code == 200


def test_without_email_links_are_created_without_this_limit(adam):
    invitation = adam.post("/invitations", json={"email": "new@example.org"}).json
    for _ in range(limits.INVITATION_MAILS_PER_HOUR + 2):
        assert adam.post(f"/invitations/{invitation['id']}/resend").status_code == 200


def test_only_admins_see_invitations_in_conflict_errors(adam, browser, cast):
    adam.post("/invitations", json={"email": "hidden@example.org"})
    answer = browser(cast.victor).submit("/invitations", {"email": "x@example.org"})
    assert answer.status_code == 403
    assert "hidden@example.org" not in answer.text


def test_with_mail_set_up_the_link_goes_to_the_address_too(cast, database_url, shared_redis, tmp_path):
    app = create_app(
        settings_for(
            database_url, shared_redis, tmp_path, smtp_url="smtp://127.0.0.1:2525", mail_from="r@example.org"
        )
    )
    created = Program(app, cast.adam.key).post("/invitations", json={"email": "new@example.org"}).json
    assert created["mailed"] is True
    with app.app_context():
        mail = db.session.query(Mail).filter_by(about=created["id"]).one()
        assert (mail.recipient, mail.status, mail.kind) == ("new@example.org", "queued", "invitation")
        token = created["url"].rsplit("/", 1)[1].encode()
        assert token not in mail.sealed
    close_app(app)


# --- Keys ---------------------------------------------------------------------------------------------------


def unused_since(app, key_id, days):
    with app.app_context():
        key = db.session.get_one(ApiKey, key_id)
        key.created_at = clock.now() - timedelta(days=200)
        key.last_used_at = None if days is None else clock.now() - timedelta(days=days)
        db.session.commit()


def test_keys_unused_for_90_days_are_marked_and_can_be_filtered(app, adam, cast):
    for person, days in ((cast.edith, 91), (cast.victor, None), (cast.tessa, 89)):
        unused_since(app, person.key_id, days)
    marked = {item["id"]: item["unused"] for item in adam.get("/api-keys").json["items"]}
    assert [marked[who.key_id] for who in (cast.edith, cast.victor, cast.tessa, cast.olivia)] == [
        True, True, False, False,
    ]  # fmt: skip
    assert {item["id"] for item in adam.get("/api-keys?unused=true").json["items"]} == {
        cast.edith.key_id, cast.victor.key_id,
    }  # fmt: skip
    assert cast.tessa.key_id in {item["id"] for item in adam.get("/api-keys?unused=false").json["items"]}
    adam.delete(f"/api-keys/{cast.edith.key_id}")
    assert adam.get(f"/api-keys/{cast.edith.key_id}").json["unused"] is False


def test_the_address_of_the_last_use_is_noted(api, adam, cast):
    api(cast.edith).get("/me")

    def noted():
        return adam.get(f"/api-keys/{cast.edith.key_id}").json["last_used_address"] == "127.0.0.1"

    eventually(noted)


def test_removing_a_user_only_revokes_their_keys(api, adam, cast):
    more = api(cast.edith).post("/api-keys", json={"name": "More"}).json
    assert adam.get(f"/api-keys?created_by={cast.edith.user_id}").json["total"] == 2
    gone = adam.delete(f"/api-keys?created_by={cast.edith.user_id}").json
    assert {item["id"] for item in gone["items"]} == {cast.edith.key_id, more["id"]}
    for key in (cast.edith.key, more["key"]):
        assert api(key).get("/me").json["error"]["details"]["reason"] == "revoked"
    assert api(cast.victor).get("/me").status_code == 200
    assert adam.delete(f"/api-keys?created_by={cast.edith.user_id}").json["total"] == 0


def test_users_can_only_revoke_their_own_keys_and_outsiders_none(api, cast):
    assert code(api(cast.edith).delete(f"/api-keys?created_by={cast.victor.user_id}")) == (404, "not_found")
    assert code(api(cast.mallory).delete(f"/api-keys?created_by={cast.victor.user_id}")) == (404, "not_found")
    assert code(api(cast.edith).delete("/api-keys")) == (400, "invalid_request")
    assert api(cast.edith).delete(f"/api-keys?created_by={cast.edith.user_id}").json["total"] == 1


def test_the_page_of_the_keys_names_their_makers_to_admins(browser, cast):
    page = browser(cast.adam).get("/api-keys").text
    assert cast.edith.email in page
    one = browser(cast.adam).get(f"/api-keys?created_by={cast.edith.user_id}").text
    assert "Revoke all of" in one
    assert "Made by" not in browser(cast.edith).get("/api-keys").text
    done = browser(cast.adam).submit(f"/api-keys?created_by={cast.edith.user_id}", {}, "DELETE")
    assert done.status_code == 303
