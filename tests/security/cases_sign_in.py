"""Who may see and end whose sessions, change whose second factor, and come in how."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp import clock
from webapp.access.models import Identity
from webapp.extensions import db

FOREIGN = {"edith": 404, "adam": 404, "olivia": 404}
PROOF = {"password": "wrong", "code": "000000"}


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    db.session.add(
        Identity(
            user_id=cast.victor.user_id,
            issuer="https://login.example.org",
            subject="victor",
            email=cast.victor.email,
            last_used_at=clock.now(),
        )
    )
    db.session.commit()
    return {"victors_identity": db.session.scalar(sa.select(Identity.id))}


CASES = [
    # The way in
    Case("GET", "/sign-in/code", "public", ok=303),
    Case("POST", "/sign-in/code", "public", body={"code": "000000"}, ok=303, person=True),
    Case("GET", "/sign-in/oidc", "public", ok=404),
    Case("GET", "/sign-in/oidc/callback", "public", ok=404),
    # One's own sessions; `victors_session` is of cases_core
    Case("GET", "/me/sessions", "anyone"),
    Case("DELETE", "/me/sessions", "anyone"),
    Case(
        "DELETE",
        "/me/sessions/<session_id>",
        "anyone",
        url="/me/sessions/{victors_session}",
        expect=FOREIGN,
    ),
    # One's own second factor
    Case("GET", "/me/two-factor", "anyone", person=True),
    Case("POST", "/me/two-factor", "anyone", ok=303, person=True),
    Case("DELETE", "/me/two-factor", "anyone", body=PROOF, ok=409, person=True),
    Case("POST", "/me/two-factor/confirm", "anyone", body=PROOF, ok=409, person=True),
    Case("POST", "/me/two-factor/codes", "anyone", body=PROOF, ok=409, person=True),
    Case(
        "DELETE",
        "/me/identities/<identity_id>",
        "anyone",
        url="/me/identities/{victors_identity}",
        ok=303,
        expect=FOREIGN,
        person=True,
    ),
]
