"""`./rowsmith setup`: the first workspace of a new service, without the demo."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select

from webapp import limits
from webapp.access.models import Membership, Project, User, Workspace
from webapp.accounts.services import sign_in
from webapp.cli import accounts
from webapp.cli.datadir import CliError
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.row_templates.models import Template


@pytest.fixture
def here(app):
    with app.app_context():
        yield replace(app.config["SETTINGS"], public_url="http://127.0.0.1:8000")
        db.session.remove()


def test_it_makes_a_workspace_with_its_owner_and_a_link_that_lets_them_in(here):
    url = accounts.create_workspace(here, " New.Owner@Example.org ", "Fresh", "pro", "Main")
    user = db.session.scalars(select(User).where(User.email == "new.owner@example.org")).one()
    workspace = db.session.scalars(select(Workspace).where(Workspace.name == "Fresh")).one()
    member = db.session.scalars(select(Membership).where(Membership.user_id == user.id)).one()
    assert (workspace.plan, member.workspace_id, member.role, member.team_id) == (
        "pro",
        workspace.id,
        "owner",
        None,
    )
    project = db.session.scalars(select(Project).where(Project.workspace_id == workspace.id)).one()
    assert project.name == "Main"
    assert db.session.scalars(select(Template).where(Template.workspace_id == workspace.id)).all() == []
    base, _, token = url.rpartition("/sign-in/")
    assert base == "http://127.0.0.1:8000"
    assert sign_in.link_is_open(token)


def test_a_user_with_an_account_can_own_another_workspace(here, cast):
    accounts.create_workspace(here, cast.olivia.email, "Another", "free", "Main")
    mine = select(Membership.workspace_id).where(Membership.user_id == cast.olivia.user_id)
    assert len(set(db.session.scalars(mine))) == 2


def test_given_twice_it_makes_nothing_more(here, cast):
    accounts.create_workspace(here, "twice@example.org", "Once", "free", "Main")
    with pytest.raises(CliError, match="already owns a workspace Once"):
        accounts.create_workspace(here, "twice@example.org", "Once", "free", "Main")
    assert len(db.session.scalars(select(Workspace).where(Workspace.name == "Once")).all()) == 1


@pytest.mark.parametrize(
    ("email", "name", "fault"),
    [
        ("nobody", "W", ApiError),
        ("a@b.example", "  ", CliError),
        ("a@b.example", "x" * (limits.MAX_NAME_CHARS + 1), CliError),
        ("a@b.example", "two\nlines", CliError),
    ],
)
def test_impossible_options_are_rejected_and_nothing_is_created(here, email, name, fault):
    before = len(db.session.scalars(select(Workspace)).all())
    with pytest.raises(fault):
        accounts.create_workspace(here, email, name, "free", "Main")
    assert len(db.session.scalars(select(Workspace)).all()) == before


def test_without_a_public_url_it_is_rejected(here):
    with pytest.raises(CliError, match="PUBLIC_URL"):
        accounts.create_workspace(replace(here, public_url=""), "a@b.example", "W", "free", "Main")
