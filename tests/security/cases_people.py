"""Permissions for managing members and keys, teams and projects, the trash, and moves between projects."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.access import actors
from webapp.access.models import Invitation, Membership, Team
from webapp.accounts.services import people, workspaces
from webapp.connections.services import secrets
from webapp.extensions import db
from webapp.row_templates.services import templates

FIELDS = [{"name": "id", "type": "row_number"}]


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    empty = workspaces.create_team(acme, "Empty")
    gone = workspaces.create_team(acme, "Gone")
    workspaces.delete_team(acme, db.session.get_one(Team, gone.id))
    people.invite(acme, "again@example.org", "viewer")
    of_edith = sa.select(Membership.id).where(Membership.user_id == cast.edith.user_id)
    return {
        "empty_team": empty.id,
        "trashed_team": gone.id,
        "open_invitation": db.session.scalar(
            sa.select(Invitation.id).where(Invitation.email == "again@example.org")
        ),
        "ediths_membership": db.session.scalar(of_edith),
        "movable": templates.create(acme, name="Movable", fields=FIELDS)["id"],
        "kept_secret": secrets.put(acme, "matrix_used_by", "v")[0].id,
        "edith_id": cast.edith.user_id,
        "victor_id": cast.victor.user_id,
    }


MOVE = "/projects/{project}/move"
CASES = [
    # People
    Case("GET", "/members", "viewer", url="/members?sort=name", scope="read"),
    Case(
        "POST",
        "/members",
        "admin",
        body={"user_id": "{edith_id}"},
        ok=409,
        expect={"victor": 403, "edith": 403},
    ),
    Case(
        "POST",
        "/members",
        "admin",
        body={"user_id": "{edith_id}", "team_id": "{team}", "role": "viewer"},
        ok=201,
        scope="admin",
    ),
    Case(
        "POST",
        "/members",
        "owner",
        body={"user_id": "{edith_id}", "team_id": "{team}", "role": "owner"},
        ok=201,
    ),
    Case(
        "DELETE",
        "/members/<member_id>",
        "admin",
        url="/members/{ediths_membership}?everywhere=true&revoke_keys=true",
        scope="admin",
    ),
    Case(
        "POST",
        "/invitations/<invitation_id>/resend",
        "admin",
        url="/invitations/{open_invitation}/resend",
        scope="admin",
    ),
    # Keys
    Case(
        "DELETE",
        "/api-keys",
        "viewer",
        url="/api-keys?created_by={victor_id}",
        expect={"edith": 404},
    ),
    Case("GET", "/api-keys", "viewer", url="/api-keys?unused=true", scope="admin"),
    # Teams and projects
    Case("DELETE", "/teams/<team_id>", "admin", url="/teams/{empty_team}", scope="admin"),
    Case("DELETE", "/teams/<team_id>", "admin", url="/teams/{team}", ok=409),
    Case("POST", "/teams/<team_id>/restore", "admin", url="/teams/{trashed_team}/restore", scope="admin"),
    Case("PATCH", "/projects/<project_id>", "admin", url="/projects/{project}", body={"team_id": "{team}"}),
    Case(
        "POST",
        "/projects/<project_id>/move",
        "editor",
        url=MOVE,
        body={"objects": ["{movable}"]},
        scope="write",
    ),
    # What all kinds have
    Case("GET", "/trash", "viewer", scope="read"),
    Case("GET", "/used-by/<object_id>", "viewer", url="/used-by/{movable}", scope="read"),
    Case("GET", "/used-by/<object_id>", "admin", url="/used-by/{kept_secret}"),
    # The end
    Case("DELETE", "/workspace", "owner", body={"confirm": "Acme"}, scope="admin"),
    Case("DELETE", "/workspace", "owner", body={"confirm": "Akme"}, ok=422),
]
