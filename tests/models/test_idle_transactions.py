"""On PostgreSQL, the server ends a transaction whose process no longer answers, and releases its locks."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from tests.jobs.waiting import eventually
from webapp import limits
from webapp.extensions import engine_options

LOCK = text("SELECT 1 FROM held FOR UPDATE NOWAIT")


@pytest.mark.parametrize("own", ["", "-c statement_timeout=90000"])
def test_a_transaction_without_statements_ends_and_releases_its_locks(postgres_url, monkeypatch, own):
    monkeypatch.setattr(limits, "DB_IDLE_TRANSACTION_SECONDS", 1)
    url = make_url(postgres_url).set(drivername="postgresql+psycopg")
    url = (url.update_query_dict({"options": own}) if own else url).render_as_string(hide_password=False)
    engine = create_engine(url, **engine_options(url))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE held AS SELECT 1 AS id"))
        assert connection.scalar(text("SHOW statement_timeout")) == ("90s" if own else "0")

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
