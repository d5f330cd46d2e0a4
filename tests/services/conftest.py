"""A trail of some entries, on the database of the other tests or on either kind."""

from __future__ import annotations

import pytest

from tests.cast import gather
from tests.conftest import ON_POSTGRES, close_app, settings_for
from webapp import clock, create_app
from webapp.access import actors
from webapp.audit.services import audit_log, seals
from webapp.extensions import db, redis_client


@pytest.fixture
def kind():
    """Most tests look at the database of the others; those marked `both` at either kind."""
    return ""


@pytest.fixture
def trail(request, kind, shared_redis, tmp_path):
    """`(application, workspace)`: some entries in two seals."""
    own = kind == "postgresql" and not ON_POSTGRES
    if not own:
        app, cast = request.getfixturevalue("app"), request.getfixturevalue("cast")
    else:
        url = request.getfixturevalue("postgres_url")
        app = create_app(settings_for(url, shared_redis, tmp_path))
        with app.app_context():
            redis_client().flushdb()
            db.create_all()
            cast = gather()
            db.session.remove()
    with app.app_context():
        for turn in range(2):
            for number in range(5):
                audit_log.record(
                    actors.system(cast.acme),
                    "test.seal",
                    ("template", "tpl_1"),
                    rows=number,
                    turn=turn,
                    text="é",
                )
            assert seals.seal_all(clock.now()) >= 1
        yield app, cast.acme
    if own:
        close_app(app)
