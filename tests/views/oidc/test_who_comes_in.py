"""Who comes in through a provider: whom it has named, of which domain, into which workspace."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from tests.views.oidc.coming import come, entries, invite, told
from webapp import clock
from webapp.access.models import BrowserSession, Identity, Membership, User
from webapp.extensions import db

# --- Who comes in -------------------------------------------------------------------------------------------


def test_without_an_account_and_an_invitation_access_is_denied(app, browser, cast, provider):
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
        told(edith, come(edith, provider, "edith")) == "Your account is closed. Contact your administrator."
    )
    assert entries(app, "session.refuse") == [("session.refuse", {"how": "oidc", "reason": "closed"})]


def test_a_reassigned_address_does_not_open_the_account(app, browser, provider):
    first = browser()
    assert come(first, provider, "edith").headers["Location"] == "/"
    first.submit("/sign-out")
    with app.app_context():
        db.session.execute(sa.delete(BrowserSession))
        db.session.commit()
    provider.people["edith"]["sub"] = "edith-2"
    second = browser()
    assert "is linked to another account at Acme SSO" in told(second, come(second, provider, "edith"))


def test_an_account_without_a_workspace_is_reported(browser, cast, provider):
    provider.people["nora"] = {"sub": "nora-1", "email": cast.nora.email, "email_verified": True}
    nora = browser()
    assert told(nora, come(nora, provider, "nora")).startswith(
        "Your account is not a member of any workspace."
    )


def test_users_can_only_unlink_their_own_account(app, browser, cast, provider):
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
        assert "domain of your e-mail address" in told(edith, come(edith, provider, "edith"))

    @pytest.mark.parametrize(
        "address", ["ada@evil.acme.example", "ada@acme.example.org", "ada@xacme.example"]
    )
    def test_a_domain_is_compared_whole(self, browser, provider, address):
        provider.people["ada"]["email"] = address
        ada = browser()
        assert "domain of your e-mail address" in told(ada, come(ada, provider))

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
