"""The newest version of a template is cached under the workspace's epoch, and read again after every change."""

from __future__ import annotations

import pytest

from tests.cast import Cast
from tests.conftest import close_app
from webapp import create_app
from webapp.generation.services import generate as generation_generate

FIELDS = [{"name": "n", "type": "row_number"}]


@pytest.fixture
def template(api, cast: Cast) -> str:
    """A template that this process has cached, as it has Edith's key."""
    found = api(cast.edith).post("/templates", json={"name": "t", "fields": FIELDS}).json["id"]
    for _ in range(3):
        assert version(api, cast, found) == "1"
    return found


@pytest.fixture
def reads(monkeypatch) -> list[str]:
    """Reads of templates' newest versions from the database."""
    calls: list[str] = []
    own = generation_generate.read_session
    monkeypatch.setattr(generation_generate, "read_session", lambda: calls.append("read") or own())
    return calls


def generate(api, cast, template):
    return api(cast.edith).post(f"/templates/{template}/generate", json={"count": 2})


def version(api, cast, template) -> str:
    answer = generate(api, cast, template)
    assert answer.status_code == 200
    return answer.headers["X-Template-Version"]


def test_a_cached_template_is_not_read_from_the_database(api, cast, template, reads):
    assert [version(api, cast, template) for _ in range(3)] == ["1", "1", "1"]
    assert reads == []


def test_a_change_applies_to_the_next_call(api, cast, template, reads):
    for number in range(2, 5):
        api(cast.edith).patch(f"/templates/{template}", json={"description": f"{number}"})
        assert [version(api, cast, template) for _ in range(3)] == [str(number)] * 3
    assert len(reads) == 6  # twice after each change: the call that finds a new epoch does not cache


def test_a_change_in_another_process_applies_to_the_next_call(app, api, cast, template):
    other = create_app(app.config["SETTINGS"])
    answer = other.test_client().patch(
        f"/templates/{template}",
        json={"description": "by another"},
        headers={"Authorization": f"Bearer {cast.edith.key}"},
    )
    close_app(other)
    assert answer.status_code == 200
    assert version(api, cast, template) == "2"


def test_a_deleted_template_is_404_until_it_is_restored(api, cast, template):
    api(cast.edith).delete(f"/templates/{template}")
    assert generate(api, cast, template).status_code == 404
    api(cast.edith).post(f"/templates/{template}/restore")
    assert version(api, cast, template) == "1"


def test_a_cached_template_is_not_visible_to_another_workspace(api, cast, template):
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
