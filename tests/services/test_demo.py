"""The demo is created once, in an empty service, and everything in it works."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import sqlalchemy as sa
from flask import Flask

from jobs.pushes import push as job
from tests.conftest import settings_for, shared_app
from webapp import limits
from webapp.access import actors, tenancy
from webapp.access.models import Project, Workspace
from webapp.accounts.services import people, workspaces
from webapp.config import Settings
from webapp.connections.services import access, connections, inspection
from webapp.datasets.schemas import DatasetPreviewInput
from webapp.datasets.services import datasets
from webapp.datasets.services import rows as datasets_rows
from webapp.extensions import db
from webapp.generation.services import generate
from webapp.model_base import Base
from webapp.operations import demo_workspace
from webapp.pushes.schemas import DatasetPushInput
from webapp.pushes.services import preparation, pushes
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import PreviewInput
from webapp.row_templates.services import templates
from webapp.scenarios.services import scenarios


@pytest.fixture
def empty(
    shared_redis: str, data_dir: Path, applications: dict[Settings, Flask], empty_database: Path
) -> Iterator[Flask]:
    """An application without a single row."""
    path = data_dir / "empty.db"
    shutil.copyfile(empty_database, path)
    settings = settings_for(f"sqlite:///{path}", shared_redis, data_dir)
    with shared_app(settings, applications) as app, app.app_context():
        yield app
        db.session.remove()


def counts() -> dict[str, int]:
    return {
        table.name: db.session.scalar(sa.select(sa.func.count()).select_from(table)) or 0
        for table in Base.metadata.sorted_tables
    }


def test_an_empty_service_gets_a_workspace_a_project_and_its_templates(empty):
    info = demo_workspace.ensure_demo("enterprise")
    assert info.created
    workspace = db.session.get_one(Workspace, info.workspace_id)
    assert workspace.plan == "enterprise"
    assert workspace.limits == limits.PLANS["enterprise"]
    result = db.session.scalars(sa.select(Template).order_by(Template.id)).all()
    assert [template.name for template in result] == ["Customers", "Orders", "Order lines", "Order documents"]
    assert [template.id for template in result] == list(info.template_ids)
    assert {template.project_id for template in result} == {info.project_id}
    owner = people.find_user(info.email)
    assert {template.created_by for template in result} == {owner.id}
    assert [item.id for item in tenancy.workspaces_of(owner.id)] == [info.workspace_id]


def test_its_templates_are_sound_and_make_rows(empty):
    info = demo_workspace.ensure_demo()
    actor = actors.system_actor(info.workspace_id, info.project_id)
    for template_id in info.template_ids:
        shown = templates.show(templates.get(actor, template_id))
        assert shown["warnings"] == []
        rows = orjson.loads(generate.preview(actor, template_id, PreviewInput(seed="s")).rows)
        assert len(rows) == limits.PREVIEW_ROWS
        assert list(rows[0]) == [field["name"] for field in shown["fields"] if not field["hidden"]]


def test_its_dataset_holds_the_templates_that_are_linked(empty):
    info = demo_workspace.ensure_demo()
    actor = actors.system_actor(info.workspace_id, info.project_id)
    (shown,) = datasets.listing(actor).items
    assert (shown["name"], shown["seed"], shown["warnings"]) == ("Shop", "shop", [])
    assert [template["template_id"] for template in shown["templates"]] == list(info.template_ids)[:3]
    members = datasets_rows.read_table_specs(
        shown, {template["template_id"]: template["version"] for template in shown["templates"]}
    )
    looks = datasets_rows.preview(shown, members, DatasetPreviewInput()).tables
    assert [(look.member.name, look.count) for look in looks] == [
        ("Customers", 100),
        ("Orders", 300),
        ("Order lines", 900),
    ]


def test_its_database_takes_the_whole_dataset_at_the_first_press(empty):
    info = demo_workspace.ensure_demo()
    actor = actors.system_actor(info.workspace_id, info.project_id)
    (target,) = connections.listing(actor).items
    assert (target.name, target.verification["status"]) == ("Shop database", "verified")
    names = {entity.name for entity in inspection.metadata(actor, target).entities}
    assert names == {"customers", "orders", "order_lines"}
    (shop,) = datasets.listing(actor).items
    ask = DatasetPushInput(connection_id=target.id)
    plan = pushes.plan(preparation.prepare_dataset(actor, shop["id"], ask))
    assert [table["target"] for table in plan["tables"]] == ["customers", "orders", "order_lines"]
    assert [table["unused"] for table in plan["tables"]] == [[], [], []]
    assert [cell["misfits"] for table in plan["tables"] for cell in table["columns"] if cell["misfits"]] == []
    push = pushes.queue(actor, preparation.prepare_dataset(actor, shop["id"], ask), "dataset.push")
    job.run(push.id)
    push = pushes.get(actor, push.id)
    assert (push.status, push.delivered, push.total) == ("completed", 1300, 1300)


def test_a_customer_does_not_contradict_itself(empty):
    info = demo_workspace.ensure_demo()
    actor = actors.system_actor(info.workspace_id, info.project_id)
    for row in orjson.loads(generate.preview(actor, info.template_ids[0], PreviewInput(seed="s")).rows):
        assert row["country"] == "United States"
        assert row["phone"].startswith("+1")
        assert row["last_name"].lower() in row["email"]


def test_seeding_again_does_not_change_what_users_did(empty):
    info = demo_workspace.ensure_demo("pro")
    actor = actors.system_actor(info.workspace_id, info.project_id)
    templates.delete(actor, templates.get(actor, info.template_ids[0], "write", lock=True))
    before = counts()
    again = demo_workspace.ensure_demo("free")
    assert counts() == before
    assert not again.created
    assert again.template_ids == info.template_ids[1:]
    assert db.session.get_one(Workspace, info.workspace_id).plan == "pro"


@pytest.mark.parametrize("at", range(1, 15))
def test_a_seeding_that_was_cut_off_is_finished(empty, monkeypatch, at):
    class Cut(BaseException):
        """The power went."""

    steps = iter(range(1, 100))

    def cutting(real):
        def step(*args, **more):
            if next(steps) == at:
                raise Cut
            return real(*args, **more)

        return step

    for module, name in [
        (workspaces, "create_workspace"),
        (workspaces, "create_team"),
        (workspaces, "create_project"),
        (templates, "create"),
        (templates, "change"),
        (datasets, "create"),
        (connections, "create"),
        (access, "open_session"),
        (scenarios, "create"),
        (scenarios, "change"),
    ]:
        monkeypatch.setattr(module, name, cutting(getattr(module, name)))
    with pytest.raises(Cut):
        demo_workspace.ensure_demo()
    db.session.remove()
    info = demo_workspace.ensure_demo()
    assert info.created
    assert len(info.template_ids) == 4
    result = counts()
    assert (result["workspaces"], result["projects"], result["templates"], result["datasets"]) == (1, 1, 4, 1)
    assert result["connections"] == 1
    assert (result["scenarios"], result["scenario_versions"]) == (3, 4)


def test_a_service_that_is_in_use_gets_no_demo(empty):
    workspaces.create_workspace(actors.system_actor(), "Ours")
    assert demo_workspace.ensure_demo() is None
    assert db.session.scalar(sa.select(sa.func.count()).select_from(Project)) == 0
