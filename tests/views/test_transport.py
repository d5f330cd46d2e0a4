"""TLS outside this machine, also where a proxy speaks for it."""

from __future__ import annotations

import pytest

from tests.conftest import SECRET_KEY
from webapp import limits
from webapp.config import Settings


def test_plain_http_from_outside_is_rejected_for_api_clients(api, cast):
    answer = api(cast.edith).get("/me", environ_base={"REMOTE_ADDR": "10.1.2.3"})
    assert (answer.status_code, answer.json["error"]["code"]) == (403, "https_required")


def test_plain_http_from_outside_sends_browsers_to_https(browser):
    answer = browser().get(
        "/sign-in?next=/x", environ_base={"REMOTE_ADDR": "10.1.2.3"}, base_url="http://d.example.org"
    )
    assert (answer.status_code, answer.headers["Location"]) == (308, "https://d.example.org/sign-in?next=/x")


def test_plain_http_by_an_unknown_proxy_is_rejected(api, cast):
    """A proxy on this machine connects from loopback, but what it carries came from outside."""
    answer = api(cast.edith).get("/me", headers={"X-Forwarded-For": "10.1.2.3"})
    assert answer.json["error"]["code"] == "https_required"


def test_plain_http_to_another_name_than_loopback_is_rejected(api, cast):
    """DNS can point any name at 127.0.0.1; a page under that name must not reach us."""
    answer = api(cast.edith).get("/me", base_url="http://evil.example.org")
    assert answer.json["error"]["code"] == "https_required"


@pytest.mark.parametrize("host", ["[::1]evil", "[::1].example.org"])
def test_a_host_that_only_begins_with_loopback_is_rejected(app, host):
    answer = app.test_client().get("/me", headers={"Host": host})
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
    def settings(self, database_url, shared_redis, data_dir):
        return Settings(
            secret_key=SECRET_KEY,
            database_url=database_url,
            redis_url=shared_redis,
            data_dir=data_dir,
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
        result = app.test_client().get(
            "/sign-in",
            headers={"Accept": "text/html", "X-Forwarded-Proto": "https"},
            environ_base={"REMOTE_ADDR": "10.0.0.1"},
            base_url="http://data.example.org",
        )
        cookie = result.headers["Set-Cookie"]
        assert cookie.startswith("__Host-rowsmith=")
        for part in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"):
            assert part in cookie


def test_the_session_cookie_is_closed_to_scripts_and_other_sites(browser):
    cookie = browser().get("/sign-in").headers["Set-Cookie"]
    assert cookie.startswith("rowsmith=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
