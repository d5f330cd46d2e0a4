"""What happens around every request: id, transport, version, credentials, faces, safety headers."""

from __future__ import annotations

import io

import pytest

from tests.conftest import SECRET_KEY, close_app
from webapp import create_app, limits
from webapp.config import Settings

RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


def reason(answer):
    assert answer.status_code == 401, answer.text
    assert answer.json["error"]["code"] == "unauthenticated"
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    return answer.json["error"]["details"]["reason"]


# --- Request id, version -------------------------------------------------------------------------------------


def test_the_callers_request_id_is_kept_where_well_formed(api):
    assert api().get("/health/live", headers={"X-Request-Id": "my-id.7"}).headers["X-Request-Id"] == "my-id.7"


@pytest.mark.parametrize("sent", ["", "a b", "x" * 129, "<script>", "ä"])
def test_another_request_id_is_replaced_by_ours(api, sent):
    found = api().get("/health/live", headers={"X-Request-Id": sent}).headers["X-Request-Id"]
    assert found.startswith("req_")


def test_the_api_version_is_echoed(api, cast):
    answer = api(cast.edith).get("/me", headers={"Api-Version": "2026-11-21"})
    assert answer.headers["Api-Version"] == "2026-11-21"
    assert api(cast.edith).get("/me").headers["Api-Version"] == "2026-11-21"


def test_an_unknown_api_version_is_400(api, cast):
    answer = api(cast.edith).get("/me", headers={"Api-Version": "2020-01-01"})
    assert (answer.status_code, answer.json["error"]["code"]) == (400, "unsupported_version")
    assert answer.json["error"]["details"]["known"] == ["2026-11-21"]


# --- Credentials ---------------------------------------------------------------------------------------------


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


# --- Projects ------------------------------------------------------------------------------------------------


def test_a_key_works_in_its_own_project_or_in_the_one_named(api, cast):
    assert api(cast.edith).get("/me").json["project_id"] == cast.main
    assert api(cast.edith, **{"X-Project-Id": cast.side}).get("/me").json["project_id"] == cast.side


def test_a_project_of_another_workspace_is_404(api, cast):
    answer = api(cast.edith, **{"X-Project-Id": cast.mallorys}).get("/me")
    assert (answer.status_code, answer.json["error"]["code"]) == (404, "not_found")


def test_a_project_of_a_team_one_is_not_in_is_404(api, cast):
    assert api(cast.tessa, **{"X-Project-Id": cast.side}).get("/me").json["role"] == "editor"
    assert api(cast.tessa, **{"X-Project-Id": cast.red_project}).get("/me").status_code == 404


# --- Transport -----------------------------------------------------------------------------------------------


def test_plain_http_from_outside_is_refused_for_programs(api, cast):
    answer = api(cast.edith).get("/me", environ_base={"REMOTE_ADDR": "10.1.2.3"})
    assert (answer.status_code, answer.json["error"]["code"]) == (403, "https_required")


def test_plain_http_from_outside_sends_browsers_to_https(browser):
    answer = browser().get(
        "/sign-in?next=/x", environ_base={"REMOTE_ADDR": "10.1.2.3"}, base_url="http://d.example.org"
    )
    assert (answer.status_code, answer.headers["Location"]) == (308, "https://d.example.org/sign-in?next=/x")


def test_plain_http_by_a_proxy_nobody_named_is_refused(api, cast):
    """A proxy on this machine connects from loopback, but what it carries came from outside."""
    answer = api(cast.edith).get("/me", headers={"X-Forwarded-For": "10.1.2.3"})
    assert answer.json["error"]["code"] == "https_required"


def test_plain_http_to_another_name_than_loopback_is_refused(api, cast):
    """DNS can point any name at 127.0.0.1; a page under that name must not reach us."""
    answer = api(cast.edith).get("/me", base_url="http://evil.example.org")
    assert answer.json["error"]["code"] == "https_required"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "app.localhost"])
def test_plain_http_on_loopback_is_allowed(api, cast, host):
    assert api(cast.edith).get("/me", base_url=f"http://{host}").status_code == 200


def test_https_answers_carry_hsts_and_plain_ones_do_not(api, cast):
    secure = api(cast.edith).get(
        "/me", base_url="https://data.example.org", environ_base={"REMOTE_ADDR": "10.1.2.3"}
    )
    assert secure.status_code == 200
    assert secure.headers["Strict-Transport-Security"].startswith(f"max-age={limits.HSTS_SECONDS}")
    assert "Strict-Transport-Security" not in api(cast.edith).get("/me").headers


class TestBehindAProxy:
    """TLS ends at a proxy that is named as trusted."""

    @pytest.fixture
    def settings(self, database_url, shared_redis, tmp_path):
        return Settings(
            secret_key=SECRET_KEY,
            database_url=database_url,
            redis_url=shared_redis,
            data_dir=tmp_path,
            public_url="https://data.example.org",
            trusted_proxies=("10.0.0.0/8",),
        )

    def ask(self, api, cast, peer="10.0.0.1", **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return api(cast.edith).get("/me", environ_base={"REMOTE_ADDR": peer}, headers=sent)

    def test_its_word_about_tls_counts(self, api, cast):
        answer = self.ask(api, cast, X_Forwarded_For="203.0.113.9", X_Forwarded_Proto="https")
        assert answer.status_code == 200
        assert "Strict-Transport-Security" in answer.headers

    def test_its_word_that_it_was_plain_counts(self, api, cast):
        answer = self.ask(api, cast, X_Forwarded_For="203.0.113.9", X_Forwarded_Proto="http")
        assert answer.json["error"]["code"] == "https_required"

    def test_a_strangers_word_does_not_count(self, api, cast):
        answer = self.ask(api, cast, peer="203.0.113.9", X_Forwarded_Proto="https")
        assert answer.json["error"]["code"] == "https_required"

    def test_the_session_cookie_is_tied_to_the_host(self, app):
        made = app.test_client().get(
            "/sign-in",
            headers={"Accept": "text/html", "X-Forwarded-Proto": "https"},
            environ_base={"REMOTE_ADDR": "10.0.0.1"},
            base_url="http://data.example.org",
        )
        cookie = made.headers["Set-Cookie"]
        assert cookie.startswith("__Host-rowsmith=")
        for part in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"):
            assert part in cookie


def test_the_session_cookie_is_closed_to_scripts_and_other_sites(browser):
    cookie = browser().get("/sign-in").headers["Set-Cookie"]
    assert cookie.startswith("rowsmith=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie


# --- Headers of every answer ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "who"),
    [("/me", "edith"), ("/projects?limit=0", "edith"), ("/nope", "edith"), ("/me", ""), ("/health/live", "")],
)
def test_every_answer_has_rate_and_safety_headers(api, cast, path, who):
    answer = api(cast.people[who] if who else "").get(path)
    for name in (*RATE_HEADERS, "X-Request-Id", "Api-Version"):
        assert len(answer.headers.getlist(name)) == 1, name
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_answers_to_a_key_are_not_stored_by_shared_caches(api, cast):
    assert api(cast.edith).get("/me").headers["Cache-Control"] == "private, no-cache"


# --- Bodies and queries --------------------------------------------------------------------------------------


def code_of(answer):
    return answer.status_code, answer.json["error"]["code"]


def test_bad_json_is_400_and_says_where(api, cast):
    answer = api(cast.adam).post("/teams", data='{"name": ', content_type="application/json")
    assert code_of(answer) == (400, "invalid_request")
    assert answer.json["error"]["details"] == {"line": 1, "column": 10}


@pytest.mark.parametrize("body", ["[]", "null", "3", '"x"'])
def test_a_body_that_is_no_object_is_422(api, cast, body):
    assert code_of(api(cast.adam).post("/teams", data=body, content_type="application/json")) == (
        422,
        "validation_error",
    )


def test_a_body_of_another_type_is_415(api, cast):
    answer = api(cast.adam).post("/teams", data="<x/>", content_type="application/xml")
    assert code_of(answer) == (415, "unsupported_media_type")


def test_a_form_of_a_program_is_read_too(api, cast):
    assert api(cast.adam).post("/teams", data={"name": "By form"}).status_code == 201


def test_a_body_past_10_mb_is_413(api, cast):
    body = b'{"name": "' + b"x" * 11_000_000 + b'"}'
    assert code_of(api(cast.adam).post("/teams", data=body, content_type="application/json")) == (
        413,
        "payload_too_large",
    )


def test_a_body_past_10_mb_that_tells_no_length_is_413(api, cast):
    body = b'{"name": "' + b"x" * 11_000_000 + b'"}'
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    answer = api(cast.adam).post(
        "/teams", input_stream=io.BytesIO(body), content_type="application/json", environ_overrides=chunked
    )
    assert code_of(answer) == (413, "payload_too_large")
    assert answer.json["error"]["details"]["max_bytes"] == limits.MAX_BODY_BYTES


def test_unknown_keys_are_refused_by_name_and_all_faults_come_at_once(api, cast):
    answer = api(cast.adam).post("/projects", json={"nme": "x", "description": 5})
    assert code_of(answer) == (422, "validation_error")
    found = {f["path"]: (f["code"], f.get("hint")) for f in answer.json["error"]["details"]["fields"]}
    assert found == {
        "name": ("missing", None),
        "nme": ("unknown_key", "Did you mean `name`?"),
        "description": ("wrong_type", None),
    }


@pytest.mark.parametrize("name", ["", "   ", "x" * 201])
def test_a_name_is_not_empty_blank_or_endless(api, cast, name):
    answer = api(cast.adam).post("/teams", json={"name": name})
    assert code_of(answer) == (422, "validation_error")
    assert answer.json["error"]["details"]["fields"][0]["path"] == "name"


def test_read_only_keys_sent_back_are_ignored(api, cast):
    made = api(cast.adam).post(
        "/projects", json={"name": "P", "id": "prj_mine", "created_at": "then", "version": 7}
    )
    assert made.status_code == 201
    assert made.json["id"] != "prj_mine"


def test_a_text_is_no_number(api, cast):
    answer = api(cast.olivia).patch("/workspace", json={"limits": {"rows_per_hour": "5"}})
    assert answer.json["error"]["details"]["fields"][0]["path"] == "limits.rows_per_hour"


def test_the_character_zero_is_refused_everywhere(api, cast):
    assert code_of(api(cast.adam).post("/teams", json={"name": "a\0b"})) == (400, "invalid_request")
    assert code_of(api(cast.adam).get("/teams?q=a%00b")) == (400, "invalid_request")


def test_a_body_nested_without_end_is_400(api, cast):
    deep = "[" * 500 + "]" * 500
    answer = api(cast.adam).post("/teams", data=f'{{"name": {deep}}}', content_type="application/json")
    assert code_of(answer) == (400, "invalid_request")


def test_an_unknown_query_parameter_is_400_with_a_hint(api, cast):
    answer = api(cast.adam).get("/teams?limt=5")
    assert code_of(answer) == (400, "invalid_request")
    assert answer.json["error"]["details"]["fields"][0]["hint"] == "Did you mean `limit`?"


def test_a_parameter_where_none_is_taken_is_400(api, cast):
    assert code_of(api(cast.adam).get("/me?x=1")) == (400, "invalid_request")


# --- Health --------------------------------------------------------------------------------------------------


def test_readiness_names_what_is_missing(api):
    answer = api().get("/health/ready")
    assert code_of(answer) == (503, "unavailable")
    details = answer.json["error"]["details"]
    assert (details["database"], details["redis"], details["storage"], details["worker"]) == (
        True,
        True,
        True,
        False,
    )
    assert details["request_id"] == answer.headers["X-Request-Id"]


def test_readiness_is_good_once_a_worker_was_heard(api, app):
    from webapp import clock
    from webapp.extensions import redis_client
    from webapp.services import heartbeat

    with app.app_context():
        heartbeat.beat(redis_client(), heartbeat.WORKER, "host:1", clock.epoch())
    assert api().get("/health/ready").json == {
        "status": "ok",
        "database": True,
        "redis": True,
        "storage": True,
        "worker": True,
    }


class TestWithoutRedis:
    """Redis is away: what must be counted is refused, the process lives."""

    @pytest.fixture
    def app(self, settings):
        import dataclasses

        made = create_app(dataclasses.replace(settings, redis_url="redis://127.0.0.1:1/0"))
        yield made
        close_app(made)

    def test_the_process_lives(self, api):
        assert api().get("/health/live").status_code == 200

    def test_a_key_is_503_with_retry_after(self, api, cast):
        answer = api(cast.edith).get("/me")
        assert code_of(answer) == (503, "unavailable")
        assert answer.headers["Retry-After"] == "2"
        assert answer.json["error"]["details"]["request_id"] == answer.headers["X-Request-Id"]

    def test_public_pages_still_answer(self, api):
        assert api().get("/openapi.json").status_code == 200

    def test_readiness_says_so(self, api):
        assert api().get("/health/ready").json["error"]["details"]["redis"] is False
