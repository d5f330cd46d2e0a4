"""Who speaks in most tests of this folder, to what, and the worker that does what they ordered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select

from jobs import exports
from tests.cast import VERSION, Cast, Person, Program
from tests.views.speak import make
from webapp import limits, storage
from webapp.access import actors
from webapp.accounts.services import api_keys, people
from webapp.exports.models import ExportPart
from webapp.extensions import db, write_session


@pytest.fixture
def edith(api: Callable[..., Program], cast: Cast) -> Program:
    """A program of Edith's, an editor."""
    return api(cast.edith)


@pytest.fixture
def rita(app: Flask, cast: Cast) -> Program:
    """An API client of Rita, an editor who is only in team Red. Tessa is only in team Blue."""
    with app.app_context():
        here = actors.system_actor(cast.acme)
        user = people.create_user(here, "rita@example.org", name="Rita")
        people.add_member(here, user, "editor", team_id=cast.red)
        _, text = api_keys.create(
            here, "Rita's key", api_version=VERSION, project_id=cast.red_project, user_id=user.id
        )
        db.session.remove()
    return Program(app, text)


@pytest.fixture
def tessa(api: Callable[..., Program], cast: Cast) -> Program:
    """An API client of Tessa, an editor who is only in team Blue."""
    return api(cast.tessa)


@pytest.fixture
def path(edith: Program) -> str:
    """The address of a template."""
    return f"/templates/{make(edith)['id']}"


@pytest.fixture
def work(app: Flask) -> Callable[[str], None]:
    """Do an export as a worker would."""

    def do(export_id: str) -> None:
        with app.app_context():
            exports.run(export_id)
            db.session.remove()

    return do


# --- Exports in parts ---------------------------------------------------------------------------------------------


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are made in parts too."""
    monkeypatch.setattr(limits, "PARTS_FROM_ROWS", 1_000)


@pytest.fixture
def parts_of(app: Flask) -> Callable[[str], list[str]]:
    """The ids of an export's parts, in order."""

    def read(export_id: str) -> list[str]:
        with app.app_context(), write_session() as session:
            found = select(ExportPart.id).where(ExportPart.export_id == export_id)
            return list(session.scalars(found.order_by(ExportPart.number)))

    return read


@pytest.fixture
def do(app: Flask) -> Callable[..., None]:
    """Do parts as workers would."""

    def each(*part_ids: str) -> None:
        with app.app_context():
            for part_id in part_ids:
                exports.run_part(part_id)
                db.session.remove()

    return each


@pytest.fixture
def row(app: Flask) -> Callable[..., Any]:
    """Change or read a row behind everybody's back."""

    def touch(model: Any, identity: str, **columns: Any) -> Any:
        with app.app_context(), write_session() as session:
            found = session.get_one(model, identity)
            for name, value in columns.items():
                setattr(found, name, value)
            session.flush()
            session.refresh(found)
            session.expunge(found)
            return found

    return touch


@pytest.fixture
def stored(app: Flask) -> Callable[[], list[str]]:
    """The keys of all workspace files' bytes in the storage."""

    def keys() -> list[str]:
        with app.app_context():
            return [item.key for item in storage.get_storage(app).listing("files")]

    return keys


@pytest.fixture
def client(app: Flask, cast: Cast) -> Callable[..., Program]:
    """What `datamaker-py` sends with each request: the key, and a content type also where there is no body."""

    def make(person: Person | None = None) -> Program:
        key = (person or cast.edith).key
        return Program(app, "", **{"X-API-Key": key, "Content-Type": "application/json"})

    return make


@pytest.fixture
def dm(client: Callable[..., Program]) -> Program:
    return client()
