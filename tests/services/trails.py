"""Ways to look at a trail, and to change it behind the database's back."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from tests.conftest import ON_POSTGRES
from webapp.audit.models import AuditSeal
from webapp.audit.services import seals
from webapp.audit.services.seals import verify
from webapp.extensions import db, read_session

# The other kind needs a new database for each test, so one test is enough. TEST_ON=postgresql runs all of them.
both = pytest.mark.parametrize("kind", ["postgresql" if ON_POSTGRES else "sqlite"])


def unguarded(*statements, **values):
    """Run statements as an administrator of the database, with the triggers removed."""
    with db.engine.begin() as connection:
        if connection.dialect.name == "sqlite":
            for (name,) in connection.exec_driver_sql(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).all():
                connection.exec_driver_sql(f"DROP TRIGGER {name}")
        else:
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        for statement in statements:
            connection.execute(sa.text(statement), values)


def sealed_ids(workspace_id, number=2):
    with read_session() as session:
        links = session.scalar(
            sa.select(AuditSeal.links).where(
                AuditSeal.workspace_id == workspace_id, AuditSeal.number == number
            )
        )
    return [name for name, _ in seals.unpack_links(links)]


def first_misfit(workspace_id, kept=None):
    misfits = verify(workspace_id, kept).mismatches
    return (misfits[0].seal, misfits[0].entry_id, misfits[0].message) if misfits else None
