"""The schema: migrations make what the models say, on both databases; SQLite is spoken to as it must be.

Promise 23 of docs/promises.md.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import flask_migrate
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tests.conftest import ON_POSTGRES, settings_for
from webapp import create_app
from webapp.access.models import Workspace
from webapp.backup import database
from webapp.extensions import db, read_session, set_read_only, write_session
from webapp.model_base import Base
from webapp.row_templates.models import Template, TemplateVersion

of_sqlite = pytest.mark.skipif(ON_POSTGRES, reason="speaks of SQLite")


def migrated(url, redis, folder):
    app = create_app(settings_for(url, redis, folder), routes=False)
    database.init_app(app)
    with app.app_context():
        flask_migrate.upgrade()
        with db.engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            differences = compare_metadata(context, Base.metadata)
            # What autogenerate does not compare: the checks.
            found = sa.inspect(connection)
            checks = {
                (table.name, check["name"])
                for table in Base.metadata.tables.values()
                for check in found.get_check_constraints(table.name)
            }
        flask_migrate.downgrade(revision="base")
        with db.engine.connect() as connection:
            left = sa.inspect(connection).get_table_names()
        db.engine.dispose()
    return differences, checks, left


def declared_checks():
    return {
        (table.name, str(constraint.name))
        for table in Base.metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, sa.CheckConstraint)
    }


def test_migrations_from_empty_make_what_the_models_say_on_sqlite(tmp_path, shared_redis):
    differences, checks, left = migrated(f"sqlite:///{tmp_path}/x.db", shared_redis, tmp_path)
    assert differences == []
    assert checks == declared_checks()
    assert left == ["alembic_version"]


def test_migrations_from_empty_make_what_the_models_say_on_postgresql(postgres_url, tmp_path, shared_redis):
    differences, checks, left = migrated(postgres_url, shared_redis, tmp_path)
    assert differences == []
    assert checks == declared_checks()
    assert left == ["alembic_version"]


@pytest.fixture(params=["sqlite", "postgresql"])
def any_app(request, tmp_path, shared_redis):
    """The application on an empty database of either kind."""
    on_file = f"sqlite:///{tmp_path}/x.db"
    url = on_file if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    app = create_app(settings_for(url, shared_redis, tmp_path), routes=False)
    with app.app_context():
        db.create_all()
        yield app
        db.session.remove()
        db.engine.dispose()


def test_times_come_back_aware_and_in_utc(any_app):
    moment = datetime(2026, 11, 21, 3, 4, 5, 678901, tzinfo=UTC)
    db.session.add(Workspace(name="W", created_at=moment))
    db.session.commit()
    db.session.expunge_all()
    found = db.session.scalars(sa.select(Workspace)).one()
    assert found.created_at == moment
    assert found.created_at.tzinfo is UTC


def test_a_time_without_zone_cannot_be_stored(any_app):
    db.session.add(Workspace(name="W", created_at=datetime(2026, 1, 1)))  # noqa: DTZ001 - that is the point
    with pytest.raises(sa.exc.StatementError, match="without a zone"):
        db.session.commit()


def test_json_keeps_the_order_of_its_keys(any_app):
    db.session.add(Workspace(name="W", settings={"zebra": 1, "ant": {"b": 1, "a": 2}, "mole": 1.0}))
    db.session.commit()
    db.session.expunge_all()
    found = db.session.scalars(sa.select(Workspace)).one()
    assert list(found.settings) == ["zebra", "ant", "mole"]
    assert list(found.settings["ant"]) == ["b", "a"]


def test_a_plan_that_does_not_exist_cannot_be_stored(any_app):
    db.session.add(Workspace(name="W", plan="gold"))
    with pytest.raises(sa.exc.IntegrityError):
        db.session.commit()


def test_a_row_without_its_parent_cannot_be_stored(any_app):
    db.session.add(TemplateVersion(template_id="tpl_nope", number=1, spec={}))
    with pytest.raises(sa.exc.IntegrityError):
        db.session.commit()


@of_sqlite
def test_sqlite_is_opened_as_we_say(app, hurry):
    sa.event.remove(sa.Engine, "connect", hurry)
    with app.app_context(), read_session() as session:
        requests = {
            name: session.scalar(sa.text(f"PRAGMA {name}"))
            for name in ("journal_mode", "foreign_keys", "synchronous")
        }
    sa.event.listen(sa.Engine, "connect", hurry)
    assert requests == {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 1}


def test_a_reader_does_not_wait_for_a_writer(app):
    with app.app_context(), write_session() as writer:
        writer.add(Workspace(name="New"))
        writer.flush()
        with read_session() as session:
            assert session.scalar(sa.select(sa.func.count()).select_from(Workspace)) == 2
        set_read_only()
        assert db.session.scalar(sa.select(sa.func.count()).select_from(Workspace)) == 2
        db.session.rollback()


@of_sqlite
def test_writers_that_read_first_wait_for_each_other_and_lose_nothing(app, cast):
    """Without BEGIN IMMEDIATE the second one would fail with `database is locked`, or overwrite the first."""
    ready = threading.Barrier(8)
    errors = []

    def add_one():
        try:
            with app.app_context():
                ready.wait()
                for _ in range(5):
                    row = db.session.get_one(Workspace, cast.acme, populate_existing=True)
                    row.settings = {"n": row.settings.get("n", 0) + 1}
                    db.session.commit()
        except Exception as error:  # shown below
            errors.append(error)

    threads = [threading.Thread(target=add_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with app.app_context():
        assert db.session.get_one(Workspace, cast.acme).settings == {"n": 40}


def test_an_enterprise_workspace_has_its_own_numbers_and_others_do_not():
    own = {"requests_per_minute": 7, "rows_per_hour": None}
    enterprise = Workspace(name="W", plan="enterprise", own_limits=own).limits
    assert (enterprise.requests_per_minute, enterprise.rows_per_hour) == (7, 100_000_000)
    assert Workspace(name="W", plan="free", own_limits=own).limits.requests_per_minute == 60


def test_template_names_need_not_be_unique(app, cast):
    with app.app_context():
        where = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
        db.session.add_all([Template(name="Same", **where), Template(name="Same", **where)])
        db.session.commit()
