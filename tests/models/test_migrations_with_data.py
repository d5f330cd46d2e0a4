"""Migrations keep what an earlier release has stored."""

from __future__ import annotations

import flask_migrate
import pytest
import sqlalchemy as sa

from tests.conftest import settings_for
from webapp import create_app
from webapp.backup import database
from webapp.compat import services as compat
from webapp.extensions import db

NOW = "2026-01-01 00:00:00"
BEFORE = (
    f"INSERT INTO workspaces VALUES ('ws_1', 'W', 'free', '{{}}', '{{}}', '{NOW}', '{NOW}')",
    "INSERT INTO teams (id, workspace_id, name, created_at, updated_at) "
    f"VALUES ('team_1', 'ws_1', 'T', '{NOW}', '{NOW}')",
    "INSERT INTO projects (id, workspace_id, team_id, name, description, created_at, updated_at) "
    f"VALUES ('prj_1', 'ws_1', 'team_1', 'P', '', '{NOW}', '{NOW}')",
    "INSERT INTO exports (id, workspace_id, team_id, project_id, template_version, format, count, rows_done, sha256, "
    "request, pins, status, attempt, epoch, created_at) VALUES ('exp_1', 'ws_1', 'team_1', 'prj_1', 3, 'csv', 5, 5, "
    f"'abc', '{{\"ask\": {{}}}}', '{{\"seed\": \"s\"}}', 'completed', 1, 1, '{NOW}')",
)


@pytest.fixture(params=["sqlite", "postgresql"])
def app(request, tmp_path, shared_redis):
    """The application on an empty database without tables."""
    url = (
        f"sqlite:///{tmp_path}/x.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    )
    created = create_app(settings_for(url, shared_redis, tmp_path), routes=False)
    database.init_app(created)
    with created.app_context():
        yield created
        db.session.remove()
        db.engine.dispose()


def test_exports_of_the_release_before_datasets_are_kept_up_and_down(app):
    flask_migrate.upgrade(revision="0001")
    with db.engine.begin() as connection:
        for statement in BEFORE:
            connection.exec_driver_sql(statement)
        old = connection.execute(sa.text("SELECT * FROM exports")).mappings().one()
    flask_migrate.upgrade()
    with db.engine.begin() as connection:
        new = connection.execute(sa.text("SELECT * FROM exports")).mappings().one()
        assert {key: new[key] for key in old} == dict(old)
        assert (new["dataset_id"], new["dataset_version"]) == (None, None)
        connection.exec_driver_sql("UPDATE exports SET status = 'failed'")
    with pytest.raises(sa.exc.IntegrityError), db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE exports SET status = 'unheard of'")
    with pytest.raises(sa.exc.IntegrityError), db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE exports SET dataset_id = 'dst_nope'")
    flask_migrate.downgrade(revision="0001")
    with db.engine.begin() as connection:
        back = connection.execute(sa.text("SELECT * FROM exports")).mappings().one()
        assert dict(back) == {**old, "status": "failed"}


PUSHED = (
    *BEFORE[:3],
    "INSERT INTO pushes (id, kind, target, total, delivered, failed, unknown, tables, request, pins, progress, status, "
    "attempt, epoch, created_at, workspace_id, team_id, project_id) VALUES ('psh_1', 'push', 't', 9, 9, 0, 0, '[]', "
    f"'{{}}', '{{}}', '[]', 'completed', 1, 1, '{NOW}', 'ws_1', 'team_1', 'prj_1')",
    "INSERT INTO push_ranges (push_id, table_no, first, last) VALUES ('psh_1', 0, 1, 9)",
    f"INSERT INTO push_lines (push_id, number, at, text) VALUES ('psh_1', 1, '{NOW}', 'connected')",
)


def test_recreating_a_table_does_not_delete_rows_of_others(app):
    flask_migrate.upgrade(revision="0003")
    with db.engine.begin() as connection:
        for statement in PUSHED:
            connection.exec_driver_sql(statement)
    flask_migrate.upgrade()
    with db.engine.begin() as connection:
        stored = {
            name: connection.execute(sa.text(f"SELECT count(*) FROM {name}")).scalar_one()
            for name in ("pushes", "push_ranges", "push_lines")
        }
    assert stored == {"pushes": 1, "push_ranges": 1, "push_lines": 1}


def test_rows_removed_by_undos_are_counted_as_undone_after_up_and_downgrades(app):
    flask_migrate.upgrade(revision="0003")
    undo = (
        PUSHED[3]
        .replace("'psh_1', 'push', 't', 9, 9", "'psh_2', 'undo', 't', 7, 7")
        .replace("(id,", "(of_id, id,")
    )
    with db.engine.begin() as connection:
        for statement in (*PUSHED, undo.replace("VALUES (", "VALUES ('psh_1', ")):
            connection.exec_driver_sql(statement)
    flask_migrate.upgrade(revision="0004")
    found = sa.text("SELECT id, delivered, undone FROM pushes ORDER BY id")
    with db.engine.begin() as connection:
        assert connection.execute(found).all() == [("psh_1", 2, 7), ("psh_2", 7, 0)]
    flask_migrate.downgrade(revision="0003")
    with db.engine.begin() as connection:
        assert connection.execute(sa.text("SELECT delivered FROM pushes ORDER BY id")).all() == [(9,), (7,)]


def test_entries_of_key_maps_get_the_size_of_new_ones(app):
    texts = ("m\N{SNOWMAN}", "o", "old", "new \N{ROCKET}", "run")
    flask_migrate.upgrade(revision="0001")
    with db.engine.begin() as connection:
        for statement in BEFORE[:3]:
            connection.exec_driver_sql(statement)
    flask_migrate.upgrade(revision="0020")
    with db.engine.begin() as connection:
        for texts_of_entry in (texts, (*texts[:2], "other", "", None)):
            names = ("map_name", "object_name", "old_key", "new_key", "run_id")
            connection.execute(
                sa.text(
                    "INSERT INTO key_map_entries (map_name, object_name, old_key, new_key, run_id, updated_at, "
                    "workspace_id, team_id, project_id) VALUES (:map_name, :object_name, :old_key, :new_key, :run_id, "
                    f"'{NOW}', 'ws_1', 'team_1', 'prj_1')"
                ),
                dict(zip(names, texts_of_entry, strict=True)),
            )
    flask_migrate.upgrade()
    with db.engine.begin() as connection:
        sizes = connection.execute(sa.text("SELECT size FROM key_map_entries ORDER BY id")).scalars().all()
    assert sizes == [compat.entry_bytes(*texts), compat.entry_bytes(*texts[:2], "other", "", None)]
    flask_migrate.downgrade(revision="0020")
    with db.engine.begin() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM key_map_entries")).scalar_one() == 2
