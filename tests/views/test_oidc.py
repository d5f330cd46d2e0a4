"""Signing in through a provider of OpenID Connect: a real one, which also lies."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa

from tests.fakes.oidc_provider import OidcProvider
from webapp import clock, limits
from webapp.extensions import db
from webapp.models import AuditEntry, BrowserSession, Identity, Invitation, Membership, User
from webapp.services import oidc, oidc_provider


@pytest.fixture(scope="module")
def running():
    made = OidcProvider()
    yield made
    made.stop()


@pytest.fixture
def provider(running):
    running.behave()
    return running


@pytest.fixture
def more():
    """Further settings of a test's own."""
    return {}


@pytest.fixture
def settings(settings, provider, more):
    return replace(settings, **provider.settings, **more)


def begun(browser, target="/"):
    """The address at the provider that a browser is sent to."""
    answer = browser.get("/sign-in/oidc", query_string={"next": target})
    assert answer.status_code == 303
    return answer.headers["Location"]


def come(browser, provider, who="ada", target="/", **how):
    """Sign in through the provider: the answer to the browser that comes back."""
    return browser.get(provider.visit(begun(browser, target), who, **how).removeprefix("http://localhost"))


def told(browser, answer):
    """The sentence on the sign-in page that one is sent back to; nobody is signed in."""
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith("/sign-in?problem=")
    page = browser.get(answer.headers["Location"])
    assert page.status_code == 200
    assert browser.get("/projects").status_code == 303
    with browser.app.app_context():
        assert db.session.scalar(sa.select(sa.func.count()).select_from(BrowserSession)) == 0
    return unescape(page.text.partition('role="alert"')[2].partition("<div>")[2].partition("</div>")[0])


def invite(app, cast, email="ada@example.org", **columns):
    with app.app_context():
        made = {"workspace_id": cast.acme, "email": email, "role": "viewer", "token_hash": email, **columns}
        db.session.add(Invitation(**{"expires_at": clock.now().replace(year=2100), **made}))
        db.session.commit()


def entries(app, *actions):
    with app.app_context():
        found = sa.select(AuditEntry).where(AuditEntry.action.in_(actions)).order_by(AuditEntry.id)
        return [(one.action, one.details) for one in db.session.scalars(found)]


# --- The good way -------------------------------------------------------------------------------------------


def test_the_button_is_there_where_a_provider_is_set(browser):
    assert "Sign in with Acme SSO" in browser().get("/sign-in").text


def test_somebody_with_an_account_comes_in_by_their_verified_address_and_then_by_who_they_are(
    app, browser, cast, provider
):
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


def test_what_goes_to_the_provider_is_the_code_flow_with_pkce_state_and_nonce(browser, provider):
    asked = parse_qs(urlsplit(begun(browser())).query)
    assert (asked["response_type"], asked["code_challenge_method"]) == (["code"], ["S256"])
    assert asked["scope"] == ["openid email profile"]
    assert asked["redirect_uri"] == ["http://localhost/sign-in/oidc/callback"]
    again = parse_qs(urlsplit(begun(browser())).query)
    for name in ("state", "nonce", "code_challenge"):
        assert len(asked[name][0]) == 43
        assert asked[name] != again[name]


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


def test_address_and_name_come_from_userinfo_where_the_token_has_none(app, browser, cast, provider):
    invite(app, cast)
    provider.lies.userinfo = dict(provider.people["ada"])
    assert come(browser(), provider).headers["Location"] == "/"
    assert "/realm/userinfo" in provider.asked


def test_a_provider_that_wants_the_secret_in_the_body_gets_it_there(app, browser, cast, provider):
    provider.client.auth_methods = ("client_secret_post",)
    assert come(browser(), provider, "edith").headers["Location"] == "/"


def test_a_provider_may_change_its_key(browser, cast, provider, monkeypatch):
    assert come(browser(), provider, "edith").headers["Location"] == "/"
    monkeypatch.setattr(limits, "OIDC_KEYS_AGAIN_SECONDS", 0)
    provider.change_key()
    assert come(browser(), provider, "edith").headers["Location"] == "/"


@pytest.mark.parametrize(
    "target", ["//evil.example.org", "https://evil.example.org", "/\\evil", "javascript:x"]
)
def test_nobody_is_sent_to_another_site_after_the_provider(browser, provider, target):
    assert come(browser(), provider, "edith", target).headers["Location"] == "/"


# --- Lies ---------------------------------------------------------------------------------------------------

REFUSED = "What Acme SSO answered could not be trusted, so nobody was signed in."
LIES = {
    "another nonce": {"claims": {"nonce": "another"}},
    "no nonce": {"claims": {"nonce": None}},
    "a nonce among others": {"claims": {"nonce": ["x"]}},
    "another audience": {"claims": {"aud": "another"}},
    "no audience": {"claims": {"aud": None}},
    "two audiences and no party": {"claims": {"aud": ["rowsmith", "another"]}},
    "another party": {"claims": {"azp": "another"}},
    "another issuer": {"claims": {"iss": "https://evil.example.org"}},
    "expired": {"claims": {"exp": 1_000_000_000}},
    "no end": {"claims": {"exp": None}},
    "made tomorrow": {"claims": {"iat": 9_999_999_999}},
    "not yet": {"claims": {"nbf": 9_999_999_999}},
    "no subject": {"claims": {"sub": None}},
    "an empty subject": {"claims": {"sub": ""}},
    "an endless subject": {"claims": {"sub": "x" * 256}},
    "a subject that is no text": {"claims": {"sub": 7}},
    "another access token": {"claims": {"at_hash": "AAAA"}},
    "alg none": {"alg": "none"},
    "alg none, and announced": {
        "alg": "none",
        "metadata": {"id_token_signing_alg_values_supported": ["none", "RS256"]},
    },
    "signed with the public key": {"alg": "HS256"},
    "signed with the public key, and announced": {
        "alg": "HS256",
        "metadata": {"id_token_signing_alg_values_supported": ["HS256", "RS256"]},
    },
    "an algorithm that was not announced": {"alg": "RS512"},
    "signed by a stranger": {"forged": True},
    "userinfo of somebody else": {"userinfo": {"sub": "edith-2", "email": "edith@example.org", "email_verified": True}},
}  # fmt: skip


def test_an_answer_that_is_not_the_providers_word_for_this_sign_in_lets_nobody_in(app, browser, provider):
    found = {}
    for lie, parts in LIES.items():
        provider.behave()
        for name, value in parts.items():
            setattr(provider.lies, name, value)
        edith = browser()
        found[lie] = told(edith, come(edith, provider, "edith"))[: len(REFUSED)]
    assert found == dict.fromkeys(LIES, REFUSED)
    with app.app_context():
        assert db.session.scalars(sa.select(Identity)).all() == []


@pytest.mark.parametrize(
    "claims",
    [{"email_verified": False}, {"email_verified": None}, {"email_verified": "false"}, {"email": "nobody"}],
    ids=str,
)
def test_an_address_that_the_provider_has_not_verified_lets_nobody_in(browser, provider, claims):
    provider.lies.claims = claims
    edith = browser()
    assert told(edith, come(edith, provider, "edith")).startswith(
        "Acme SSO has not verified your e-mail address"
    )


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example.org"},
        {"token_endpoint": "http://login.example.org/token"},
        {"jwks_uri": None},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
    ids=str,
)
def test_metadata_of_another_issuer_or_without_tls_begin_nothing(browser, provider, metadata):
    provider.lies.metadata = metadata
    edith = browser()
    assert told(edith, edith.get("/sign-in/oidc")).startswith("Acme SSO does not answer as it should")


@pytest.mark.parametrize("path", ["openid-configuration", "/token", "/keys"])
def test_a_provider_that_is_down_is_told_so(browser, provider, path):
    edith = browser()
    provider.lies.down = path
    answer = edith.get("/sign-in/oidc") if path.startswith("open") else come(edith, provider, "edith")
    wanted = REFUSED if path == "/token" else "Acme SSO does not answer as it should"
    assert told(edith, answer).startswith(wanted)


# --- State --------------------------------------------------------------------------------------------------


def back(provider, browser, who="edith"):
    return provider.visit(begun(browser), who).removeprefix("http://localhost")


def test_an_answer_counts_once(browser, provider):
    edith = browser()
    path = back(provider, edith)
    assert edith.get(path).headers["Location"] == "/"
    assert edith.get(path).headers["Location"] == "/sign-in?problem=stale"


def test_an_answer_counts_in_the_browser_that_asked_alone(browser, provider):
    edith, mallory = browser(), browser()
    begun(mallory)
    path = back(provider, edith)
    assert "begun too long ago" in told(mallory, mallory.get(path))
    assert edith.get(path).headers["Location"] == "/sign-in?problem=stale"  # and who tried has spent it


@pytest.mark.parametrize("query", ["", "?code=x", "?state=made-up&code=x", "?state=../x&code=x"])
def test_an_answer_to_nothing_is_refused_without_a_word_to_the_provider(browser, provider, query):
    edith = browser()
    begun(edith)
    provider.asked.clear()
    assert "begun too long ago" in told(edith, edith.get(f"/sign-in/oidc/callback{query}"))
    assert provider.asked == []


def test_a_code_of_another_sign_in_does_not_fit_this_ones_verifier(browser, provider):
    edith, mallory = browser(), browser()
    stolen = parse_qs(urlsplit(back(provider, edith)).query)["code"][0]
    state = parse_qs(urlsplit(begun(mallory)).query)["state"][0]
    answer = mallory.get("/sign-in/oidc/callback", query_string={"code": stolen, "state": state})
    assert told(mallory, answer).startswith(REFUSED)


def test_an_answer_that_names_another_issuer_is_refused(browser, provider):
    edith = browser()
    path = back(provider, edith) + "&iss=https://evil.example.org"
    assert told(edith, edith.get(path)).startswith(REFUSED)


def test_who_stops_at_the_provider_is_told_so_and_nothing_is_repeated(browser, provider):
    edith = browser()
    answer = come(edith, provider, "edith", deny=True)
    assert told(edith, answer).startswith("Acme SSO did not let you in, or you stopped there.")


def test_what_waits_lies_sealed(app, browser, provider):
    asked = parse_qs(urlsplit(begun(browser())).query)
    with app.app_context():
        client = app.extensions["rowsmith.redis"]
        kept = b" ".join(key + (client.get(key) or b"") for key in client.scan_iter("rowsmith:sign-in:*"))
    assert b"rowsmith:sign-in:oidc:" in kept
    assert asked["nonce"][0].encode() not in kept
    assert asked["state"][0].encode() not in kept


# --- Who comes in -------------------------------------------------------------------------------------------


def test_nobody_without_an_account_and_an_invitation_comes_in(app, browser, cast, provider):
    past, revoked = clock.now(), clock.now()
    invite(app, cast, expires_at=past)
    invite(app, cast, token_hash="2", revoked_at=revoked)
    invite(app, cast, token_hash="3", accepted_at=revoked)
    invite(app, cast, email="other@example.org")
    ada = browser()
    assert told(ada, come(ada, provider)).startswith("There is no account and no open invitation")
    with app.app_context():
        assert db.session.scalar(sa.select(User.id).where(User.email == "ada@example.org")) is None


def test_a_closed_account_stays_closed(app, browser, cast, provider):
    with app.app_context():
        db.session.get_one(User, cast.edith.user_id).disabled_at = clock.now()
        db.session.commit()
    edith = browser()
    assert (
        told(edith, come(edith, provider, "edith"))
        == "Your account here is closed. Ask whoever runs this service."
    )
    assert entries(app, "session.refuse") == [("session.refuse", {"how": "oidc", "reason": "closed"})]


def test_an_address_that_was_given_to_somebody_else_does_not_open_the_account(app, browser, provider):
    first = browser()
    assert come(first, provider, "edith").headers["Location"] == "/"
    first.submit("/sign-out")
    with app.app_context():
        db.session.execute(sa.delete(BrowserSession))
        db.session.commit()
    provider.people["edith"]["sub"] = "edith-2"
    second = browser()
    assert "belongs to another account at Acme SSO" in told(second, come(second, provider, "edith"))


def test_an_account_of_no_workspace_is_told_so(browser, cast, provider):
    provider.people["nora"] = {"sub": "nora-1", "email": cast.nora.email, "email_verified": True}
    nora = browser()
    assert told(nora, come(nora, provider, "nora")).startswith("Your account is a member of no workspace.")


def test_a_person_unlinks_their_own_account_and_nobody_elses(app, browser, cast, provider):
    edith = browser()
    come(edith, provider, "edith")
    with app.app_context():
        linked = db.session.scalars(sa.select(Identity.id)).one()
    assert provider.issuer in edith.get("/me").text
    assert browser(cast.adam).submit(f"/me/identities/{linked}", method="DELETE").status_code == 404
    assert edith.submit(f"/me/identities/{linked}", method="DELETE").status_code == 303
    assert provider.issuer not in edith.get("/me").text


class TestOfOneDomain:
    @pytest.fixture
    def more(self):
        return {"oidc_domains": ("acme.example",), "oidc_new_people": "editor"}

    def test_others_stay_outside_even_with_an_account(self, browser, provider):
        edith = browser()
        assert "not of a domain" in told(edith, come(edith, provider, "edith"))

    @pytest.mark.parametrize(
        "address", ["ada@evil.acme.example", "ada@acme.example.org", "ada@xacme.example"]
    )
    def test_a_domain_is_compared_whole(self, browser, provider, address):
        provider.people["ada"]["email"] = address
        ada = browser()
        assert "not of a domain" in told(ada, come(ada, provider))

    def test_everybody_of_it_comes_in_with_that_role(self, app, browser, cast, provider):
        provider.people["ada"]["email"] = "Ada@ACME.example"
        ada = browser()
        assert come(ada, provider).headers["Location"] == "/"
        with app.app_context():
            member = db.session.execute(
                sa.select(Membership.workspace_id, Membership.role)
                .join(User, User.id == Membership.user_id)
                .where(User.email == "ada@acme.example")
            ).one()
        assert tuple(member) == (cast.acme, "editor")


class TestOfANamedWorkspace:
    @pytest.fixture
    def more(self):
        domain = ("example.org",)
        return {"oidc_domains": domain, "oidc_new_people": "viewer", "oidc_workspace": "Mallory Inc"}

    def test_new_people_go_there(self, app, browser, cast, provider):
        come(browser(), provider)
        with app.app_context():
            assert db.session.scalars(sa.select(BrowserSession.workspace_id)).one() == cast.mallory_inc


# --- Nothing set, and what the pages say -----------------------------------------------------------------------


class TestWithoutAProvider:
    @pytest.fixture
    def settings(self, database_url, shared_redis, tmp_path):
        from tests.conftest import settings_for

        return settings_for(database_url, shared_redis, tmp_path)

    def test_there_is_neither_button_nor_way(self, browser):
        assert "Sign in with" not in browser().get("/sign-in").text
        assert browser().get("/sign-in/oidc").status_code == 404
        assert browser().get("/sign-in/oidc/callback").status_code == 404


def test_every_problem_is_one_sentence_or_nothing(browser):
    for code in (*oidc.PROBLEMS, "made-up", "<script>"):
        text = browser().get("/sign-in", query_string={"problem": code}).text
        assert ('role="alert"' in text) is (code in oidc.PROBLEMS)
        assert "<script>" not in text
        assert "{name}" not in text


def test_a_provider_is_asked_for_its_metadata_and_keys_once(app, browser, provider):
    come(browser(), provider, "edith")
    provider.asked.clear()
    come(browser(), provider, "edith")
    assert provider.asked == ["/realm/authorize", "/realm/authorize", "/realm/token"]


@pytest.mark.parametrize("url", ["http://169.254.169.254/realm", "http://[fd00:ec2::254]/realm"])
def test_what_clouds_tell_their_machines_is_no_provider(settings, url):
    with pytest.raises(oidc_provider.Unreachable):
        oidc_provider.Provider(replace(settings, oidc_issuer=url.replace("http:", "https:"))).metadata()
