"""Ids of others in every route: those of another team, and foreign ids next to ids of one's own."""

from __future__ import annotations

import dataclasses
import itertools
import re
import shutil

import pytest

from tests.cast import VERSION, Person, session_token
from tests.conftest import ON_POSTGRES, settings_for
from tests.security.matrix import Case, cases, prepares
from tests.security.test_matrix import Stage
from webapp import create_app
from webapp.access import actors
from webapp.access.models import Project
from webapp.accounts.services import api_keys, identity
from webapp.accounts.services import people as accounts_people
from webapp.extensions import db, redis_client

pytestmark = pytest.mark.skipif(ON_POSTGRES, reason="puts a database file back after each call")
ALL = [case for case in cases() if case.least != "public"]
# Made once: an address is invited once to a workspace, and an identity of a provider belongs to one user.
ONCE = {("core", "red"), ("people", "red"), ("in", "red"), ("in", "mallory")}
NAMED = re.compile(r"\{([a-z_]+)\}")


def named(case: Case) -> list[str]:
    return list(dict.fromkeys(NAMED.findall(f"{case.url} {case.body or {}}")))


@pytest.fixture(scope="module")
def crowd(peopled, tmp_path_factory, shared_redis):
    """A database with an object of each kind of team Blue, of team Red and of Mallory's."""
    source, cast = peopled
    folder = tmp_path_factory.mktemp("crowd")
    path = folder / "prepared.db"
    shutil.copyfile(source, path)
    app = create_app(settings_for(f"sqlite:///{path}", shared_redis, folder))
    worlds = {}
    with app.app_context():
        redis_client().flushdb()
        here = actors.system_actor(cast.acme)
        rita = accounts_people.create_user(
            actors.system_actor(), "rita@example.org", name="Rita", password=None
        )
        accounts_people.add_member(here, rita, "editor", team_id=cast.red)
        key, text = api_keys.create(
            here, "Rita's key", api_version=VERSION, project_id=cast.red_project, user_id=rita.id
        )
        people = {
            "rita": Person("rita", rita.id, rita.email, cast.acme, text, key.id),
            "mallory": cast.mallory,
        }
        theirs = db.session.get_one(Project, cast.mallorys).team_id
        places = {
            "blue": cast,
            "red": dataclasses.replace(
                cast, main=cast.red_project, side=cast.red_project, blue=cast.red, red=cast.blue
            ),
            "mallory": dataclasses.replace(
                cast, acme=cast.mallory_inc, main=cast.mallorys, side=cast.mallorys, blue=theirs, red=theirs
            ),
        }
        for name, place in places.items():
            worlds[name] = dict(worlds.get("blue", {}))
            for prepare in prepares():
                if (prepare.__module__.rpartition("_")[2], name) not in ONCE:
                    worlds[name].update(prepare(app, place))
        worlds["blue"]["sessions"] = {name: session_token(app, person) for name, person in people.items()}
        db.session.remove()
        with db.engine.connect() as connection:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        db.engine.dispose()
    return path, worlds, people


@pytest.fixture(scope="module")
def stage(crowd, tmp_path_factory, shared_redis):
    path, worlds, _ = crowd
    result = Stage(tmp_path_factory.mktemp("stage"), path, worlds["blue"], shared_redis)
    yield result
    result.close()


@pytest.fixture(autouse=True)
def clean(stage, monkeypatch):
    # It is written by a thread of its own, which must not meet the file being put back.
    monkeypatch.setattr(identity, "_record_use", lambda key_id, address: None)
    stage.reset()


def sees_nothing_of(answer, case, world):
    """No id of Blue's that was not in the request is in the response."""
    sent = case.address(world) + str(case.sent(world))
    theirs = {value for value in world.values() if isinstance(value, str) and len(value) > 20}
    text = answer.text
    assert not [value for value in theirs if value in text and value not in sent]


@pytest.mark.parametrize("case", [case for case in ALL if named(case)], ids=str)
def test_an_editor_of_another_team_finds_nothing_and_changes_nothing(stage, crowd, cast, case):
    _, worlds, people = crowd
    stage.world = worlds["blue"]
    before = stage.state(cast.acme)
    answer = stage.call(case, people["rita"])
    if case.rule != "/teams/<team_id>":  # the cases name Rita's own team
        assert answer.status_code in ((403, 404, 422) if case.body else (403, 404)), answer.text[:500]
    sees_nothing_of(answer, case, stage.world)
    assert stage.state(cast.acme) == before


MIXED = [
    (case, kept)
    for case in ALL
    if len(named(case)) > 1
    for size in range(1, len(named(case)))
    for kept in itertools.combinations(named(case), size)
]


@pytest.mark.parametrize("who", ["mallory", "rita"])
@pytest.mark.parametrize(("case", "own"), MIXED, ids=lambda value: str(value))
def test_foreign_ids_next_to_ids_of_ones_own_find_nothing_and_change_nothing(
    stage, crowd, cast, who, case, own
):
    _, worlds, people = crowd
    mine = worlds["mallory" if who == "mallory" else "red"]
    stage.world = {**worlds["blue"], **{name: mine[name] for name in own}}
    before = stage.state(cast.acme)
    answer = stage.call(case, people[who])
    assert answer.status_code in ((403, 404, 422) if case.body else (403, 404)), answer.text[:500]
    sees_nothing_of(answer, case, stage.world)
    assert stage.state(cast.acme) == before
