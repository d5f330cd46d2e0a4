"""Who may do what with the workspace itself: keys, teams, projects, members, audit, one's own account."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.access import actors
from webapp.access.models import BrowserSession, Membership, User
from webapp.accounts.services import people, sign_in
from webapp.accounts.services.sign_in import Visitor
from webapp.extensions import db


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    invitation, invitation_token = people.invite(acme, "guest@example.org", "viewer")
    link = sign_in.create_link(db.session.get_one(User, cast.victor.user_id))
    sign_in.create_session(
        db.session.get_one(User, cast.victor.user_id), Visitor("127.0.0.1", "", ""), "test"
    )
    session_id = db.session.scalar(
        sa.select(BrowserSession.id).where(BrowserSession.user_id == cast.victor.user_id)
    )
    member = sa.select(Membership.id).where(Membership.user_id == cast.tessa.user_id)
    return {
        "project": cast.side,
        "team": cast.red,
        "victors_key": cast.victor.key_id,
        "invitation": invitation.id,
        "invitation_token": invitation_token,
        "link": link,
        "victors_session": session_id,
        "member": db.session.scalar(member),
    }


NAME = {"name": "New"}
FORM = {"email": "nobody@example.org", "password": "wrong"}

CASES = [
    # Open to all
    Case("GET", "/health/live", "public"),
    Case("GET", "/health/ready", "public", ok=503),
    Case("GET", "/openapi.json", "public"),
    Case("GET", "/favicon.ico", "public"),
    Case("GET", "/sign-in", "public"),
    Case("POST", "/sign-in", "public", body=FORM, ok=422, person=True),
    Case("GET", "/sign-in/<token>", "public", url="/sign-in/unknown"),
    Case("POST", "/sign-in/<token>", "public", url="/sign-in/unknown", ok=404, person=True),
    Case("GET", "/invitations/accept/<token>", "public", url="/invitations/accept/unknown", ok=404),
    Case(
        "POST",
        "/invitations/accept/<token>",
        "public",
        url="/invitations/accept/unknown",
        body={"password": "x"},
        ok=404,
        person=True,
    ),
    # One's own account
    Case("GET", "/me", "anyone"),
    Case("PATCH", "/me", "anyone", body=NAME, ok=303, person=True),
    Case("POST", "/me/password", "anyone", body={"new_password": "x"}, ok=422, person=True),
    Case("POST", "/sign-out", "anyone", ok=303, person=True),
    Case("POST", "/session/project", "anyone", body={"project_id": "{project}"}, ok=303, person=True),
    # Keys: everybody their own, admins all
    Case("GET", "/api-keys", "viewer", scope="admin"),
    Case("POST", "/api-keys", "viewer", body=NAME, ok=201, scope="admin"),
    Case("GET", "/api-keys/<key_id>", "viewer", url="/api-keys/{victors_key}", expect={"edith": 404}),
    Case("DELETE", "/api-keys/<key_id>", "viewer", url="/api-keys/{victors_key}", expect={"edith": 404}),
    # Teams and projects
    Case("GET", "/teams", "viewer", scope="read"),
    Case("POST", "/teams", "admin", body=NAME, ok=201, scope="admin"),
    Case("GET", "/teams/<team_id>", "viewer", url="/teams/{team}", scope="read"),
    Case("PATCH", "/teams/<team_id>", "admin", url="/teams/{team}", body=NAME, scope="admin"),
    Case("GET", "/projects", "viewer", scope="read"),
    Case("POST", "/projects", "admin", body=NAME, ok=201, scope="admin"),
    Case("GET", "/projects/<project_id>", "viewer", url="/projects/{project}", scope="read"),
    Case("PATCH", "/projects/<project_id>", "admin", url="/projects/{project}", body=NAME, scope="admin"),
    Case("DELETE", "/projects/<project_id>", "admin", url="/projects/{project}", scope="admin"),
    Case("POST", "/projects/<project_id>/restore", "admin", url="/projects/{project}/restore", scope="admin"),
    # The workspace
    Case("GET", "/workspace", "viewer", scope="read"),
    Case("PATCH", "/workspace", "admin", body=NAME, scope="admin"),
    Case("PATCH", "/workspace", "owner", body={"plan": "pro"}, scope="admin"),
    Case("GET", "/members", "viewer", scope="read"),
    Case("GET", "/members/<member_id>", "viewer", url="/members/{member}", scope="read"),
    Case(
        "PATCH",
        "/members/<member_id>",
        "admin",
        url="/members/{member}",
        body={"role": "viewer"},
        scope="admin",
    ),
    Case(
        "PATCH",
        "/members/<member_id>",
        "owner",
        url="/members/{member}",
        body={"role": "owner"},
        scope="admin",
    ),
    Case("DELETE", "/members/<member_id>", "admin", url="/members/{member}", scope="admin"),
    Case("GET", "/invitations", "admin", scope="admin"),
    Case("POST", "/invitations", "admin", body={"email": "x@example.org"}, ok=201, scope="admin"),
    Case("POST", "/invitations", "owner", body={"email": "x@example.org", "role": "owner"}, ok=201),
    Case("DELETE", "/invitations/<invitation_id>", "admin", url="/invitations/{invitation}", scope="admin"),
    Case("GET", "/usage", "viewer", scope="read"),
    Case("GET", "/audit", "admin", scope="admin"),
    Case("GET", "/audit/seals", "admin", scope="admin"),
]
