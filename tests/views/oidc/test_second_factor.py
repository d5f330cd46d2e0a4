"""Signing in through a provider with a second factor: what the provider reports in `amr`, and what the operator set."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from tests.cast import PASSWORD
from tests.views.oidc.coming import come
from tests.views.test_two_factor import set_up
from webapp import clock
from webapp.access.models import BrowserSession, Workspace
from webapp.extensions import db


@pytest.fixture(autouse=True)
def still(monkeypatch):
    """Stop the clock, so that the time step cannot change during a test."""
    present = clock.epoch()
    monkeypatch.setattr(clock, "source", lambda: present)


@pytest.fixture
def phone(browser, cast):
    """Edith's authenticator."""
    return set_up(browser(cast.edith))


@pytest.fixture
def required(app, cast):
    """The workspace requires a second factor of everyone."""
    with app.app_context():
        workspace = db.session.get_one(Workspace, cast.acme)
        workspace.settings = {**workspace.settings, "require_two_factor": True}
        db.session.commit()


def newest(app):
    with app.app_context():
        row = db.session.scalars(sa.select(BrowserSession).order_by(BrowserSession.id.desc())).first()
        return (row.how, row.two_factor)


NOT_MFA = {
    "no claim": {},
    "empty": {"amr": []},
    "a password": {"amr": ["pwd"]},
    "two methods that are not mfa": {"amr": ["pwd", "otp"]},
    "a longer word": {"amr": ["mfa2", "xmfa", " mfa"]},
    "another case": {"amr": ["MFA"]},
    "a list of other types": {"amr": [["mfa"], {"mfa": True}, None, 1]},
    "another claim": {"amr_values": ["mfa"], "mfa": True, "acr": "mfa"},
}


@pytest.mark.parametrize("claims", NOT_MFA.values(), ids=NOT_MFA)
def test_a_provider_that_does_not_report_mfa_does_not_replace_the_second_factor(
    app, browser, provider, phone, claims
):
    provider.lies = replace(provider.lies, claims=claims)
    edith = browser()
    assert come(edith, provider, "edith", "/projects").headers["Location"] == "/sign-in/code"
    assert edith.get("/projects").status_code == 303, "not signed in yet"
    answer = edith.submit("/sign-in/code", {"code": phone.code()})
    assert answer.headers["Location"] == "/projects"
    assert newest(app) == ("oidc", True)


@pytest.mark.parametrize("claim", ["mfa", {"mfa": True}])
def test_a_claim_of_another_type_lets_no_one_in(browser, provider, phone, claim):
    provider.lies = replace(provider.lies, claims={"amr": claim})
    edith = browser()
    assert (
        come(edith, provider, "edith").headers["Location"].startswith(("/sign-in?problem=", "/sign-in/code"))
    )
    assert edith.get("/projects").status_code == 303


def test_a_provider_that_reports_mfa_replaces_the_second_factor(app, browser, provider, phone):
    provider.lies = replace(provider.lies, claims={"amr": ["pwd", "mfa"]})
    edith = browser()
    assert come(edith, provider, "edith", "/projects").headers["Location"] == "/projects"
    assert edith.get("/projects").status_code == 200
    assert newest(app) == ("oidc", True)


def test_mfa_in_userinfo_that_the_signed_token_does_not_have_is_ignored(app, browser, provider, phone):
    result = {**provider.people["edith"], "amr": ["mfa"]}
    provider.lies = replace(provider.lies, userinfo=result)
    assert come(browser(), provider, "edith").headers["Location"] == "/sign-in/code"


def test_a_workspace_that_requires_it_has_no_one_in_whose_provider_does_not_report_mfa(
    browser, provider, required
):
    edith = browser()
    come(edith, provider, "edith")
    answer = edith.get("/projects")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/me/two-factor")
    provider.lies = replace(provider.lies, claims={"amr": ["mfa"]})
    again = browser()
    come(again, provider, "edith")
    assert again.get("/projects").status_code == 200


class TestTrusted:
    """OIDC_SECOND_FACTOR=trust."""

    @pytest.fixture
    def more(self):
        return {"oidc_second_factor": "trust"}

    def test_every_sign_in_through_the_provider_counts_as_two_factor(
        self, app, browser, provider, phone, required
    ):
        edith = browser()
        assert come(edith, provider, "edith", "/projects").headers["Location"] == "/projects"
        assert edith.get("/projects").status_code == 200
        assert newest(app) == ("oidc", True)

    def test_a_password_still_needs_the_second_factor(self, browser, cast, phone):
        form = {"email": cast.edith.email, "password": PASSWORD, "next": "/"}
        answer = browser().submit("/sign-in", form)
        assert answer.headers["Location"] == "/sign-in/code"
