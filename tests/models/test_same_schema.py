"""A database that migrations brought up holds, to the last trigger, what one made from the models holds.

Promise 23 of docs/promises.md. What Alembic's own comparison leaves out: triggers, functions, the text of checks and
of partial indexes, what foreign keys do at a deletion, defaults.
"""

from __future__ import annotations

import re

import flask_migrate
import pytest
import sqlalchemy as sa

from tests.conftest import _database, settings_for
from webapp import create_app
from webapp.backup import database
from webapp.extensions import db

# What each database says of itself, in its own words: kind, table, name, text.
POSTGRESQL = """
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid, true) FROM pg_constraint
 WHERE connamespace = 'public'::regnamespace AND conrelid <> 0
UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid, true) FROM pg_trigger
 WHERE NOT tgisinternal
UNION ALL SELECT 'function', '', proname, pg_get_functiondef(oid) FROM pg_proc
 WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'column', table_name, column_name,
 concat_ws(' ', data_type, character_maximum_length, numeric_precision, numeric_scale, is_nullable, column_default,
 is_identity) FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT 'sequence', '', sequence_name, data_type FROM information_schema.sequences
 WHERE sequence_schema = 'public'
"""
SQLITE = "SELECT type, tbl_name, name, sql FROM sqlite_master WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"


def plain(text: str) -> str:
    """A text without what only its writing makes different."""
    return re.sub(r"\s+", " ", re.sub(r'["\[\]`]', "", text)).replace("( ", "(").replace(" )", ")").strip()


def said(connection: sa.Connection) -> set[tuple[str, str, str, str]]:
    """All that a database says of itself, but for Alembic's own table."""
    if connection.dialect.name == "postgresql":
        found = [tuple(row) for row in connection.exec_driver_sql(POSTGRESQL)]
    else:
        found = [tuple(row) for row in connection.exec_driver_sql(SQLITE)] + of_tables(connection)
    return {
        (kind, table, name, plain(text)) for kind, table, name, text in found if table != "alembic_version"
    }


def of_tables(connection: sa.Connection) -> list[tuple[str, str, str, str]]:
    """Parse what SQLite stores only in the CREATE TABLE text: columns, keys and checks."""
    inspector, found = sa.inspect(connection), []
    for table in inspector.get_table_names():
        found += [
            ("column", table, name, f"{type_} {notnull} {default} {key}")
            for _, name, type_, notnull, default, key in connection.exec_driver_sql(
                f"PRAGMA table_info({table})"
            )
        ]
        found += [
            ("foreign key", table, row[3], f"{row[2]} {row[4]} {row[5]} {row[6]} {row[7]}")
            for row in connection.exec_driver_sql(f"PRAGMA foreign_key_list({table})")
        ]
        for kind, ones in (
            ("foreign key's name", inspector.get_foreign_keys(table)),
            ("key", [inspector.get_pk_constraint(table)]),
        ):
            found += [(kind, table, str(item["name"]), str(item["constrained_columns"])) for item in ones]
        unique, checks = inspector.get_unique_constraints(table), inspector.get_check_constraints(table)
        found += [
            ("unique", table, str(constraint["name"]), str(constraint["column_names"]))
            for constraint in unique
        ]
        found += [("check", table, str(check["name"]), check["sqltext"]) for check in checks]
    return found


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_migrations_and_models_make_the_same_to_the_last_trigger(kind, request, tmp_path, shared_redis):
    result = {}
    for how in ("migrations", "models"):
        if kind == "sqlite":
            result[how] = taken(f"sqlite:///{tmp_path}/{how}.db", how, shared_redis, tmp_path)
        else:
            with _database() as url:
                result[how] = taken(url, how, shared_redis, tmp_path)
    assert result["migrations"] - result["models"] == set()
    assert result["models"] - result["migrations"] == set()
    kinds = {model[0] for model in result["models"]}
    assert {"trigger", "index", "column"} <= kinds
    assert len(result["models"]) > 300


def taken(url, how, redis, folder) -> set[tuple[str, str, str, str]]:
    """What an empty database says of itself after it was made in one way."""
    app = create_app(settings_for(url, redis, folder), routes=False)
    database.init_app(app)
    with app.app_context():
        if how == "migrations":
            flask_migrate.upgrade()
        else:
            db.create_all()
        with db.engine.connect() as connection:
            found = said(connection)
        db.session.remove()
        db.engine.dispose()
    return found


@pytest.mark.parametrize(
    "change",
    [
        "DROP TRIGGER audit_entries_fixed",
        "DROP INDEX ix_mails_status_next_at",
        "CREATE INDEX more ON mails (kind)",
        "ALTER TABLE mails ADD COLUMN more TEXT",
    ],
)
def test_any_difference_would_be_seen(change, tmp_path, shared_redis):
    app = create_app(settings_for(f"sqlite:///{tmp_path}/x.db", shared_redis, tmp_path), routes=False)
    with app.app_context():
        db.create_all()
        with db.engine.connect() as connection:
            before = said(connection)
            connection.exec_driver_sql(change)
            assert said(connection) != before
        db.session.remove()
        db.engine.dispose()
