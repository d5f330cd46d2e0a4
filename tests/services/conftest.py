"""A trail of some entries, on the database of the other tests or on either kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from flask import Flask

from tests.cast import Cast, gather
from tests.conftest import ON_POSTGRES, settings_for, shared_app
from webapp import clock
from webapp.access import actors
from webapp.audit.services import audit_log, seals
from webapp.extensions import db


@pytest.fixture
def kind():
    """Most tests look at the database of the others; those marked `both` at either kind."""
    return ""


@pytest.fixture
def trail(request, kind, shared_redis, data_dir, applications):
    """`(application, workspace)`: some entries in two seals."""
    if kind == "postgresql" and not ON_POSTGRES:
        url = request.getfixturevalue("postgres_url")
        with shared_app(settings_for(url, shared_redis, data_dir), applications) as app:
            with app.app_context():
                db.create_all()
                cast = gather()
                db.session.remove()
            with entries(app, cast) as result:
                yield result
    else:
        with entries(request.getfixturevalue("app"), request.getfixturevalue("cast")) as result:
            yield result


@contextmanager
def entries(app: Flask, cast: Cast) -> Iterator[tuple[Flask, str]]:
    with app.app_context():
        for turn in range(2):
            for number in range(5):
                audit_log.record(
                    actors.system_actor(cast.acme),
                    "test.seal",
                    ("template", "tpl_1"),
                    rows=number,
                    turn=turn,
                    text="é",
                )
            assert seals.seal_all(clock.now()) >= 1
        yield app, cast.acme
