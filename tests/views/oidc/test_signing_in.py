"""Signing in through a provider of OpenID Connect: a real one that behaves, and none."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa

from tests.views.oidc.coming import begun, come, entries, invite
from webapp import limits
from webapp.access.models import BrowserSession, Identity, Membership, User
from webapp.accounts.services import oidc
from webapp.extensions import db

# --- The good way -------------------------------------------------------------------------------------------


def test_the_button_is_there_where_a_provider_is_set(browser):
    assert "Sign in with Acme SSO" in browser().get("/sign-in").text


def test_a_user_signs_in_by_their_verified_address_and_then_by_their_identity(app, browser, cast, provider):
    edith = browser()
    answer = come(edith, provider, "edith", "/projects?q=x")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/projects?q=x")
    assert edith.get("/projects").status_code == 200
    with app.app_context():
        linked = db.session.scalars(sa.select(Identity)).one()
        assert (linked.user_id, linked.issuer, linked.subject) == (
            cast.edith.user_id,
            provider.issuer,
            "edith-1",
        )
        row = db.session.scalars(sa.select(BrowserSession)).one()
        assert (row.how, row.two_factor) == ("oidc", False)
    provider.people["edith"]["email"] = "e.changed@example.org"  # the address is no key any more
    assert come(browser(), provider, "edith").headers["Location"] == "/"
    assert entries(app, "identity.link", "session.start") == [
        ("identity.link", {"issuer": provider.issuer, "email": "edith@example.org"}),
        ("session.start", {"how": "oidc"}),
        ("session.start", {"how": "oidc"}),
    ]


def test_the_request_to_the_provider_uses_the_code_flow_with_pkce_state_and_nonce(browser, provider):
    request = parse_qs(urlsplit(begun(browser())).query)
    assert (request["response_type"], request["code_challenge_method"]) == (["code"], ["S256"])
    assert request["scope"] == ["openid email profile"]
    assert request["redirect_uri"] == ["http://localhost/sign-in/oidc/callback"]
    again = parse_qs(urlsplit(begun(browser())).query)
    for name in ("state", "nonce", "code_challenge"):
        assert len(request[name][0]) == 43
        assert request[name] != again[name]


def test_an_open_invitation_for_the_verified_address_makes_the_account(app, browser, cast, provider):
    invite(app, cast)
    ada = browser()
    assert come(ada, provider).headers["Location"] == "/"
    assert ada.get("/projects").status_code == 200
    with app.app_context():
        user = db.session.scalars(sa.select(User).where(User.email == "ada@example.org")).one()
        assert (user.name, user.password_hash) == ("Ada L.", None)
        member = db.session.scalars(sa.select(Membership).where(Membership.user_id == user.id)).one()
        assert (member.workspace_id, member.role) == (cast.acme, "viewer")
    assert entries(app, "invitation.accept")[0][1] == {"role": "viewer", "how": "oidc"}


def test_the_session_is_a_new_one_and_the_one_before_has_ended(app, browser, cast, provider):
    edith = browser(cast.edith)
    with edith.client.session_transaction() as cookie:
        before = cookie["sid"]
    come(edith, provider, "edith")
    with edith.client.session_transaction() as cookie:
        assert cookie["sid"] != before
        assert "oidc" not in cookie
    thief = browser()
    with thief.client.session_transaction() as cookie:
        cookie["sid"] = before
    assert thief.get("/projects").status_code == 303


def test_address_and_name_come_from_userinfo_if_the_token_has_none(app, browser, cast, provider):
    invite(app, cast)
    provider.lies.userinfo = dict(provider.people["ada"])
    assert come(browser(), provider).headers["Location"] == "/"
    assert "/realm/userinfo" in provider.asked


def test_a_provider_that_wants_the_secret_in_the_body_gets_it_there(app, browser, cast, provider):
    provider.client.auth_methods = ("client_secret_post",)
    assert come(browser(), provider, "edith").headers["Location"] == "/"


def test_a_provider_may_change_its_key(browser, cast, provider, monkeypatch):
    assert come(browser(), provider, "edith").headers["Location"] == "/"
    monkeypatch.setattr(limits, "OIDC_KEYS_REFRESH_SECONDS", 0)
    provider.change_key()
    assert come(browser(), provider, "edith").headers["Location"] == "/"


@pytest.mark.parametrize(
    "target", ["//evil.example.org", "https://evil.example.org", "/\\evil", "javascript:x"]
)
def test_the_provider_callback_does_not_redirect_to_other_sites(browser, provider, target):
    assert come(browser(), provider, "edith", target).headers["Location"] == "/"


# --- Nothing set, and what the pages say -----------------------------------------------------------------------


class TestWithoutAProvider:
    @pytest.fixture
    def settings(self, database_url, shared_redis, data_dir):
        from tests.conftest import settings_for

        return settings_for(database_url, shared_redis, data_dir)

    def test_there_is_neither_button_nor_way(self, browser):
        assert "Sign in with" not in browser().get("/sign-in").text
        assert browser().get("/sign-in/oidc").status_code == 404
        assert browser().get("/sign-in/oidc/callback").status_code == 404


def test_every_problem_is_one_sentence_or_nothing(browser):
    for code in (*oidc.SIGN_IN_ERRORS, "made-up", "<script>"):
        text = browser().get("/sign-in", query_string={"problem": code}).text
        assert ('role="alert"' in text) is (code in oidc.SIGN_IN_ERRORS)
        assert "<script>" not in text
        assert "{name}" not in text


def test_metadata_and_keys_of_a_provider_are_requested_once(app, browser, provider):
    come(browser(), provider, "edith")
    provider.asked.clear()
    come(browser(), provider, "edith")
    assert provider.asked == ["/realm/authorize", "/realm/authorize", "/realm/token"]


@pytest.mark.parametrize("url", ["http://169.254.169.254/realm", "http://[fd00:ec2::254]/realm"])
def test_metadata_services_of_clouds_are_not_accepted_as_providers(settings, url):
    with pytest.raises(oidc.ProviderError):
        oidc.Provider(replace(settings, oidc_issuer=url.replace("http:", "https:"))).metadata()
