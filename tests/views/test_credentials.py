"""Who is asking: keys in both headers, cookies, strangers, and the project they work in."""

from __future__ import annotations

import pytest


def reason(answer):
    assert answer.status_code == 401, answer.text
    assert answer.json["error"]["code"] == "unauthenticated"
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    return answer.json["error"]["details"]["reason"]


# --- Keys and cookies ---------------------------------------------------------------------------------------


def test_both_headers_carry_a_key(api, cast):
    assert api(cast.edith).get("/me").json["key_id"] == cast.edith.key_id
    assert api("", **{"X-API-Key": cast.edith.key}).get("/me").json["key_id"] == cast.edith.key_id


def test_no_credential_is_401_missing(api):
    assert reason(api().get("/projects")) == "missing"


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Basic YTpi",
        "rws_abc_def",
        "Bearer rws_x_y",
        "Bearer a b",
        "\x7f",
        "Bearer é",
    ],
)
def test_a_malformed_authorization_is_401_malformed(api, header):
    assert reason(api("", Authorization=header).get("/projects")) == "malformed"


def test_an_unknown_key_is_401_unknown(api, cast):
    other_handle = "rws_" + "0" * 12 + cast.edith.key[16:]
    assert reason(api(other_handle).get("/me")) == "unknown"


def test_a_wrong_secret_is_401_unknown_also_when_the_key_is_remembered(api, cast):
    assert api(cast.edith).get("/me").status_code == 200
    assert (
        reason(api(cast.edith.key[:-1] + ("0" if cast.edith.key[-1] != "0" else "1")).get("/me")) == "unknown"
    )


def test_unknown_paths_need_a_credential_too(api):
    assert reason(api().get("/no/such/thing")) == "missing"


def test_a_stranger_with_a_browser_is_led_to_the_sign_in_page_and_back(browser):
    answer = browser().get("/projects?limit=5")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/sign-in?next=%2Fprojects%3Flimit%3D5")


def test_a_strangers_htmx_request_leads_the_whole_page_to_sign_in(browser):
    answer = browser().get("/projects", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (401, "/sign-in?next=%2Fprojects")


def test_a_key_decides_over_a_cookie(app, browser, cast):
    signed_in = browser(cast.edith)
    answer = signed_in.get("/me", headers={"Authorization": f"Bearer {cast.victor.key}"})
    assert answer.json["user_id"] == cast.victor.user_id


def test_a_cookie_gets_pages(browser, cast):
    assert browser(cast.edith).get("/projects").mimetype == "text/html"


def test_a_cookie_never_authenticates_a_json_write(browser, cast):
    signed_in = browser(cast.adam)
    answer = signed_in.client.post(
        "/teams", json={"name": "X"}, headers={"X-CSRFToken": signed_in.csrf(), "Origin": "http://localhost"}
    )
    assert reason(answer) == "missing"


# --- Projects -----------------------------------------------------------------------------------------------


def test_a_key_works_in_its_own_project_or_in_the_one_named(api, cast):
    assert api(cast.edith).get("/me").json["project_id"] == cast.main
    assert api(cast.edith, **{"X-Project-Id": cast.side}).get("/me").json["project_id"] == cast.side


def test_a_project_of_another_workspace_is_404(api, cast):
    answer = api(cast.edith, **{"X-Project-Id": cast.mallorys}).get("/me")
    assert (answer.status_code, answer.json["error"]["code"]) == (404, "not_found")


def test_a_project_of_a_team_one_is_not_in_is_404(api, cast):
    assert api(cast.tessa, **{"X-Project-Id": cast.side}).get("/me").json["role"] == "editor"
    assert api(cast.tessa, **{"X-Project-Id": cast.red_project}).get("/me").status_code == 404
