"""A template's head is remembered with the key, and forgotten the moment anybody changes it."""

from __future__ import annotations

import pytest

from tests.cast import Cast
from tests.conftest import close_app
from webapp import create_app
from webapp.generation.services import generate as generation_generate

FIELDS = [{"name": "n", "type": "row_number"}]


@pytest.fixture
def template(api, cast: Cast) -> str:
    """A template whose head, and Edith's key, this process remembers."""
    found = api(cast.edith).post("/templates", json={"name": "t", "fields": FIELDS}).json["id"]
    for _ in range(3):
        assert version(api, cast, found) == "1"
    return found


@pytest.fixture
def read(monkeypatch) -> list[str]:
    """The templates whose heads are read from the database."""
    asked: list[str] = []
    own = generation_generate._HEAD.row
    monkeypatch.setattr(generation_generate._HEAD, "row", lambda **of: asked.append(of["id"]) or own(**of))
    return asked


def generate(api, cast, template):
    return api(cast.edith).post(f"/templates/{template}/generate", json={"count": 2})


def version(api, cast, template) -> str:
    answer = generate(api, cast, template)
    assert answer.status_code == 200
    return answer.headers["X-Template-Version"]


def test_a_known_key_and_template_ask_the_database_for_nothing(api, cast, template, read):
    assert [version(api, cast, template) for _ in range(3)] == ["1", "1", "1"]
    assert read == []


def test_a_change_is_seen_by_the_very_next_call(api, cast, template, read):
    for number in range(2, 5):
        api(cast.edith).patch(f"/templates/{template}", json={"description": f"{number}"})
        assert [version(api, cast, template) for _ in range(3)] == [str(number)] * 3
    assert read


def test_a_change_in_another_process_is_seen_by_the_very_next_call(app, api, cast, template):
    other = create_app(app.config["SETTINGS"])
    answer = other.test_client().patch(
        f"/templates/{template}",
        json={"description": "by another"},
        headers={"Authorization": f"Bearer {cast.edith.key}"},
    )
    close_app(other)
    assert answer.status_code == 200
    assert version(api, cast, template) == "2"


def test_a_deleted_template_is_gone_at_once_and_back_when_it_is_restored(api, cast, template):
    api(cast.edith).delete(f"/templates/{template}")
    assert generate(api, cast, template).status_code == 404
    api(cast.edith).post(f"/templates/{template}/restore")
    assert version(api, cast, template) == "1"


def test_what_is_remembered_for_one_workspace_is_not_there_for_another(api, cast, template):
    answer = api(cast.mallory).post(f"/templates/{template}/generate", json={"count": 2})
    assert answer.status_code == 404


def test_a_change_that_is_rolled_back_leaves_nothing_remembered_wrongly(app, api, cast, template):
    from webapp.extensions import db
    from webapp.row_templates.models import Template

    with app.app_context():
        db.session.get_one(Template, template).version = 7
        db.session.flush()
        db.session.rollback()
    assert version(api, cast, template) == "1"
