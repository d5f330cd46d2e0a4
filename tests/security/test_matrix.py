"""Every route with every role: who may gets in, who may not is refused, an outsider finds and changes nothing."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from tests.cast import Browser, Program, session_token
from tests.conftest import ON_POSTGRES, settings_for
from tests.security import trail
from tests.security.matrix import ROLES, Case, cases, prepares
from webapp import create_app
from webapp.access import actors
from webapp.access.actors import KEY_SCOPES
from webapp.access.models import Membership
from webapp.accounts.services import api_keys, identity
from webapp.audit.services import audit_log
from webapp.builder.models import TemplateDraft
from webapp.datasets.models import Dataset
from webapp.extensions import db, redis_client
from webapp.model_base import Base
from webapp.row_templates.models import Template
from webapp.scenarios.models import Scenario
from webapp.web.routing import declaration_of

pytestmark = pytest.mark.skipif(ON_POSTGRES, reason="puts a database file back after each call")
ALL = cases()
VOLATILE = {"last_used_at", "last_seen_at", "metadata_key", "metadata_at"}
# Traces that a refused or a reading request may leave.
TRACES = {"audit_entries", "audit_pending", "idempotency_records", "browser_sessions"}


def belonging() -> dict[str, sa.Select]:
    """For each table the statement that reads what of it belongs to `:workspace`."""
    workspace, out = sa.bindparam("workspace"), {}
    owners = {
        "dataset_id": Dataset,
        "scenario_id": Scenario,
        "template_id": Template,
        "draft_id": TemplateDraft,
    }
    for table in Base.metadata.sorted_tables:
        if table.name in TRACES:
            continue
        columns = [c for c in table.columns if c.name not in VOLATILE]
        statement = sa.select(*columns).order_by(*table.primary_key.columns)
        owner = next((name for name in owners if name in table.c), None)
        if "workspace_id" in table.c:
            statement = statement.where(table.c.workspace_id == workspace)
        elif table.name == "users":
            members = sa.select(Membership.user_id).where(Membership.workspace_id == workspace)
            statement = statement.where(table.c.id.in_(members))
        elif "user_id" in table.c:
            members = sa.select(Membership.user_id).where(Membership.workspace_id == workspace)
            statement = statement.where(table.c.user_id.in_(members))
        elif table.name == "workspaces":
            statement = statement.where(table.c.id == workspace)
        elif owner:
            own = sa.select(owners[owner].id).where(owners[owner].workspace_id == workspace)
            statement = statement.where(table.c[owner].in_(own))
        out[table.name] = statement
    return out


BELONGING = belonging()
_SQLITE = sqlite.dialect(paramstyle="named")
STATEMENTS = {table: str(statement.compile(dialect=_SQLITE)) for table, statement in BELONGING.items()}


class Stage:
    """The application on a database that is put back after each call that changed it.

    `world["sessions"]` has the tokens of browser sessions that are in the database.
    """

    def __init__(self, folder: Path, prepared: Path, world: dict, redis_url: str) -> None:
        self._prepared, self._path = prepared, folder / "stage.db"
        self.world = world
        self.app = create_app(settings_for(f"sqlite:///{self._path}", redis_url, folder))
        self._first: dict[str, str] = {}
        self._put_back()

    def _put_back(self) -> None:
        shutil.copyfile(self._prepared, self._path)
        # A separate connection, so that it sees what others have committed (SQLite's PRAGMA data_version).
        self._watch = sqlite3.connect(self._path)
        self._digests, self._begun = self._first, self._version()
        self._at = self._begun
        with self.app.app_context():
            redis_client().flushdb()

    def _version(self) -> int:
        return self._watch.execute("PRAGMA data_version").fetchone()[0]

    def close(self) -> None:
        audit_log.close(self.app)
        self._watch.close()
        with self.app.app_context():
            db.session.remove()
            db.engine.dispose()

    def reset(self) -> None:
        audit_log.close(self.app)
        if self._version() == self._begun:
            with self.app.app_context():
                redis_client().flushdb()
            return
        self.close()
        for suffix in ("-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        self._put_back()

    def state(self, workspace_id: str) -> str:
        """Return a digest of everything that belongs to a workspace; calculated again after each commit."""
        if (version := self._version()) != self._at:
            self._digests, self._at = {}, version
        if workspace_id not in self._digests:
            self._digests[workspace_id] = self._digest(workspace_id)
        return self._digests[workspace_id]

    def _digest(self, workspace_id: str) -> str:
        found = hashlib.sha256()
        for table, statement in STATEMENTS.items():
            rows = self._watch.execute(statement, {"workspace": workspace_id}).fetchall()
            found.update(repr((table, rows)).encode())
        return found.hexdigest()

    def trail(self, workspace_id: str) -> list[str]:
        """Return the actions that the trail of a workspace has."""
        return trail.actions(self._watch, workspace_id)

    def call(self, case: Case, person, key: str | None = None):
        """Return the response to a case for a user (None: anonymous), by key or, for a case `as a person`, by
        browser."""
        address = case.address(self.world)
        body = case.sent(self.world)
        if case.person:
            token = self.world["sessions"][person.name] if person else ""
            browser = Browser(self.app, person, token)
            answer = (
                browser.get(address) if case.method == "GET" else browser.submit(address, body, case.method)
            )
            answer.get_data()  # a streamed answer is made while it is read
            return answer
        program = Program(self.app, key or (person.key if person else ""))
        how = {"json": body} if case.body is not None else {}
        answer = program.open(case.method, address, **how)
        answer.get_data()  # a streamed answer is made while it is read
        return answer


@pytest.fixture(scope="session")
def prepared(peopled, tmp_path_factory, shared_redis):
    """The database with everybody and an object of each kind, and the names of these."""
    source, cast = peopled
    folder = tmp_path_factory.mktemp("matrix")
    path = folder / "prepared.db"
    shutil.copyfile(source, path)
    app = create_app(settings_for(f"sqlite:///{path}", shared_redis, folder))
    world: dict = {}
    with app.app_context():
        redis_client().flushdb()
        for prepare in prepares():
            world.update(prepare(app, cast))
        acme = actors.system_actor(cast.acme, cast.main, cast.blue)
        for scope in KEY_SCOPES:
            others = [other for other in KEY_SCOPES if other != scope]
            for name, scopes in ((f"only {scope}", [scope]), (f"all but {scope}", others)):
                world[name] = api_keys.create(
                    acme, name, api_version="2026-11-21", scopes=scopes, user_id=cast.olivia.user_id
                )[1]
        members = [cast.people[name] for name in (*ROLES, "mallory")]
        world["sessions"] = {person.name: session_token(app, person) for person in members}
        db.session.remove()
        with db.engine.connect() as connection:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        db.engine.dispose()
    return path, world


@pytest.fixture(scope="module")
def stage(prepared, tmp_path_factory, shared_redis):
    """One application for the module; a call that changes something is undone."""
    result = Stage(tmp_path_factory.mktemp("stage"), *prepared, shared_redis)
    yield result
    result.close()


@pytest.fixture(autouse=True)
def clean(stage, monkeypatch):
    # A background thread writes it, which must not happen while the file is being restored.
    monkeypatch.setattr(identity, "_record_use", lambda key_id, address: None)
    stage.reset()


def test_every_route_is_in_the_matrix(stage):
    routes = set()
    for rule in stage.app.url_map.iter_rules():
        declared = declaration_of(stage.app, rule.endpoint)
        if declared is not None:
            routes |= {(method, rule.rule) for method in declared.methods}
    named = {case.route for case in ALL}
    assert routes - named == set(), "these routes have no case"
    assert named - routes == set(), "these cases have no route"


@pytest.mark.parametrize("case", ALL, ids=str)
def test_each_role_gets_what_it_may_and_no_more(stage, cast, case):
    if case.least == "public":
        answer = stage.call(case, None)
        assert answer.status_code == case.ok, answer.text[:500]
        return
    before = stage.state(cast.acme)
    for name in ROLES:
        result = stage.trail(cast.acme)
        answer = stage.call(case, cast.people[name])
        expected = case.status_for(name)
        assert answer.status_code == expected, f"{name}: {answer.text[:500]}"
        if expected == 403 and not case.person:
            assert answer.json["error"]["code"] == "forbidden"
            assert answer.json["error"]["details"]["needs"]
        if expected >= 400 or case.method in ("GET", "HEAD"):
            assert stage.state(cast.acme) == before, f"{name}'s call changed something"
        else:
            left = stage.trail(cast.acme)[len(result) :]
            assert trail.fits(stage.app, case, left), f"{name}'s call left {left} in the trail"
            stage.reset()


@pytest.mark.parametrize("case", [c for c in ALL if c.least != "public"], ids=str)
def test_without_a_credential_nothing_is_shown_or_changed(stage, cast, case):
    before = stage.state(cast.acme)
    answer = stage.call(case, None)
    if case.person:
        assert (answer.status_code, answer.headers["Location"].partition("?")[0]) == (303, "/sign-in")
    else:
        assert answer.status_code == 401
        assert answer.json["error"]["details"] == {"reason": "missing"}
    assert stage.state(cast.acme) == before


@pytest.mark.parametrize("case", [c for c in ALL if c.least != "public"], ids=str)
def test_an_actor_of_another_workspace_finds_nothing_and_changes_nothing(stage, cast, case):
    before = stage.state(cast.acme)
    answer = stage.call(case, cast.mallory)
    if case.names_an_object:
        assert answer.status_code == 404, answer.text[:500]
    assert stage.state(cast.acme) == before
    ours = {value for value in stage.world.values() if isinstance(value, str) and len(value) > 20}
    sent = case.address(stage.world) + str(case.sent(stage.world))
    text = answer.text
    assert not [value for value in ours if value in text and value not in sent]
    assert cast.acme not in text


@pytest.mark.parametrize("case", [c for c in ALL if c.scope], ids=str)
def test_a_route_needs_the_scope_it_declares_and_no_other(stage, cast, case):
    without = stage.call(case, None, stage.world[f"all but {case.scope}"])
    assert without.status_code == 403, without.text[:500]
    assert without.json["error"]["details"]["scope"] == case.scope
    with_it = stage.call(case, None, stage.world[f"only {case.scope}"])
    assert with_it.status_code == case.ok, with_it.text[:500]


@pytest.mark.parametrize("case", [c for c in ALL if c.person and c.least != "public"], ids=str)
def test_browser_pages_are_not_available_to_api_clients(stage, cast, case):
    program = Program(stage.app, cast.olivia.key)
    answer = program.open(case.method, case.address(stage.world), json={})
    assert answer.status_code in (404, 405)
