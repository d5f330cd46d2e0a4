"""On PostgreSQL, the server ends a transaction whose process no longer answers, and releases its locks."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from tests.conftest import ON_POSTGRES
from tests.jobs.waiting import eventually
from webapp import limits
from webapp.extensions import db, limit_idle_transactions

LOCK = text("SELECT 1 FROM held FOR UPDATE NOWAIT")


def test_a_transaction_without_statements_ends_and_releases_its_locks(postgres_url, monkeypatch):
    monkeypatch.setattr(limits, "DB_IDLE_TRANSACTION_SECONDS", 1)
    engine = create_engine(make_url(postgres_url).set(drivername="postgresql+psycopg"))
    limit_idle_transactions(engine)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE held AS SELECT 1 AS id"))

    def is_free() -> bool:
        try:
            with engine.begin() as connection:
                return bool(connection.execute(LOCK).one())
        except DBAPIError:
            return False

    with engine.connect() as frozen:
        frozen.execute(LOCK)
        assert not is_free()
        assert eventually(is_free)
        with pytest.raises(DBAPIError):
            frozen.execute(LOCK)
        frozen.invalidate()
    engine.dispose()


@pytest.mark.skipif(not ON_POSTGRES, reason="of PostgreSQL")
def test_the_application_limits_them(app):
    with app.app_context():
        assert db.session.scalar(text("SHOW idle_in_transaction_session_timeout")) == "1min"
        db.session.remove()
