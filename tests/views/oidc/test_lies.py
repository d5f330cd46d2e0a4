"""Sign-in fails if the identity provider sends invalid data, is unavailable, or is impersonated."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa

from tests.views.oidc.coming import begun, come, told
from webapp.access.models import Identity
from webapp.extensions import db

# --- Invalid responses ---------------------------------------------------------------------------------------

REFUSED = "The response of Acme SSO could not be verified."
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
    "userinfo of another user": {"userinfo": {"sub": "edith-2", "email": "edith@example.org", "email_verified": True}},
}  # fmt: skip


def test_a_response_that_is_not_from_the_provider_for_this_sign_in_is_rejected(app, browser, provider):
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
def test_an_unverified_address_does_not_grant_access(browser, provider, claims):
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
def test_metadata_of_another_issuer_or_without_tls_do_not_start_a_sign_in(browser, provider, metadata):
    provider.lies.metadata = metadata
    edith = browser()
    assert told(edith, edith.get("/sign-in/oidc")).startswith("Acme SSO is not responding correctly")


@pytest.mark.parametrize("path", ["openid-configuration", "/token", "/keys"])
def test_an_unavailable_provider_is_reported(browser, provider, path):
    edith = browser()
    provider.lies.down = path
    answer = edith.get("/sign-in/oidc") if path.startswith("open") else come(edith, provider, "edith")
    expected = REFUSED if path == "/token" else "Acme SSO is not responding correctly"
    assert told(edith, answer).startswith(expected)


# --- State --------------------------------------------------------------------------------------------------


def back(provider, browser, who="edith"):
    return provider.visit(begun(browser), who).removeprefix("http://localhost")


def test_an_answer_counts_once(browser, provider):
    edith = browser()
    path = back(provider, edith)
    assert edith.get(path).headers["Location"] == "/"
    assert edith.get(path).headers["Location"] == "/sign-in?problem=stale"


def test_a_sign_in_response_only_counts_in_the_same_browser(browser, provider):
    edith, mallory = browser(), browser()
    begun(mallory)
    path = back(provider, edith)
    assert "This sign-in has expired" in told(mallory, mallory.get(path))
    assert edith.get(path).headers["Location"] == "/sign-in?problem=stale"  # and who tried has spent it


@pytest.mark.parametrize("query", ["", "?code=x", "?state=made-up&code=x", "?state=../x&code=x"])
def test_an_unexpected_response_is_rejected_without_contacting_the_provider(browser, provider, query):
    edith = browser()
    begun(edith)
    provider.asked.clear()
    assert "This sign-in has expired" in told(edith, edith.get(f"/sign-in/oidc/callback{query}"))
    assert provider.asked == []


def test_a_code_of_another_sign_in_does_not_fit_this_ones_verifier(browser, provider):
    edith, mallory = browser(), browser()
    stolen = parse_qs(urlsplit(back(provider, edith)).query)["code"][0]
    state = parse_qs(urlsplit(begun(mallory)).query)["state"][0]
    answer = mallory.get("/sign-in/oidc/callback", query_string={"code": stolen, "state": state})
    assert told(mallory, answer).startswith(REFUSED)


def test_a_response_from_another_issuer_is_rejected(browser, provider):
    edith = browser()
    path = back(provider, edith) + "&iss=https://evil.example.org"
    assert told(edith, edith.get(path)).startswith(REFUSED)


def test_cancelling_at_the_provider_is_reported_and_not_repeated(browser, provider):
    edith = browser()
    answer = come(edith, provider, "edith", deny=True)
    assert told(edith, answer).startswith("Acme SSO rejected the sign-in, or you cancelled it.")


def test_waiting_data_are_encrypted(app, browser, provider):
    request = parse_qs(urlsplit(begun(browser())).query)
    with app.app_context():
        client = app.extensions["rowsmith.redis"]
        stored = b" ".join(key + (client.get(key) or b"") for key in client.scan_iter("rowsmith:sign-in:*"))
    assert b"rowsmith:sign-in:oidc:" in stored
    assert request["nonce"][0].encode() not in stored
    assert request["state"][0].encode() not in stored
