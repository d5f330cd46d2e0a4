"""With several machines, a file on the disk of one of them is no database."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from tests.conftest import close_app, settings_for
from webapp import create_app
from webapp.connections.models import Connection
from webapp.connections.services import access
from webapp.errors import ApiError
from webapp.extensions import db, redis_client
from webapp.operations import demo_workspace
from webapp.scenarios.models import Scenario

SHOP = {"name": "Shop", "type": "sqlite", "settings": {"file": "shop.db"}}


@pytest.fixture
def several(app):
    """Say that the service runs on two machines."""
    return lambda: object.__setattr__(app.config["SETTINGS"], "hosts", 2)


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


def test_a_sqlite_connection_cannot_be_created(edith, several):
    several()
    answer = edith.post("/connections", json=SHOP)
    assert answer.status_code == 422, answer.text
    assert "this service runs on several" in answer.text


def test_an_old_descriptor_is_rejected_with_a_message_and_not_opened(app, edith, several):
    created = edith.post("/connections", json=SHOP)
    assert created.status_code == 201, created.text
    several()
    assert "this service runs on several" in edith.get(f"/connections/{created.json['id']}/metadata").text
    with app.app_context():
        found = db.session.get_one(Connection, created.json["id"])
        with pytest.raises(ApiError) as refused:
            access.create_connector(found)
    assert refused.value.code == "validation_error"


def test_the_demo_leaves_its_database_out(shared_redis, tmp_path):
    settings = settings_for(f"sqlite:///{tmp_path / 'empty.db'}", shared_redis, tmp_path)
    object.__setattr__(settings, "hosts", 2)
    app = create_app(settings)
    with app.app_context():
        redis_client().flushdb()
        db.create_all()
        assert demo_workspace.ensure_demo().created
        assert db.session.scalars(select(Connection.id)).all() == []
        assert db.session.scalars(select(Scenario.id)).all()
    close_app(app)
