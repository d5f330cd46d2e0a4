"""Ways through the provider, and what came of them."""

from __future__ import annotations

from html import unescape

import sqlalchemy as sa

from webapp import clock
from webapp.access.models import BrowserSession, Invitation
from webapp.audit.models import AuditEntry
from webapp.extensions import db


def begun(browser, target="/"):
    """The address at the provider that a browser is sent to."""
    answer = browser.get("/sign-in/oidc", query_string={"next": target})
    assert answer.status_code == 303
    return answer.headers["Location"]


def come(browser, provider, who="ada", target="/", **how):
    """Sign in through the provider: the answer to the browser that comes back."""
    return browser.get(provider.visit(begun(browser, target), who, **how).removeprefix("http://localhost"))


def told(browser, answer):
    """The error message on the sign-in page after a redirect, with no user signed in."""
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
        result = {"workspace_id": cast.acme, "email": email, "role": "viewer", "token_hash": email, **columns}
        db.session.add(Invitation(**{"expires_at": clock.now().replace(year=2100), **result}))
        db.session.commit()


def entries(app, *actions):
    with app.app_context():
        found = sa.select(AuditEntry).where(AuditEntry.action.in_(actions)).order_by(AuditEntry.id)
        return [(entry.action, entry.details) for entry in db.session.scalars(found)]
