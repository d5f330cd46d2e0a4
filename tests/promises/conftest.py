"""The two stacks, the product on each, and an application on each whose every route has an object to speak of."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import close_app, settings_for
from tests.promises.product import STACKS, OwnRedis, Product, running
from tests.promises.world import World
from webapp import create_app
from webapp.engine.data import vocab_lock
from webapp.extensions import redis_client
from webapp.row_templates.services import vocabularies


@pytest.fixture(scope="module", params=STACKS)
def stack(request: pytest.FixtureRequest) -> str:
    """What the service runs on."""
    return request.param


@pytest.fixture(scope="module")
def product(stack: str) -> Iterator[Product]:
    """The whole product, started as a person starts it: two web processes, a worker, a runner, the sweeper."""
    with running(stack, "--workers", "1", "--runners", "1") as result:
        result.plan(requests_per_minute=60_000, rows_per_hour=100_000_000_000)
        yield result


@pytest.fixture(scope="module")
def world(
    stack: str,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """An application in this process with everybody and an object of every kind in it."""
    from tests.conftest import _database

    folder: Path = tmp_path_factory.mktemp("world")
    with ExitStack() as stored:
        if stack == "postgresql+redis":
            source, cast = request.getfixturevalue("peopled_postgres")
            database, own = stored.enter_context(_database(source)), OwnRedis()
            stored.callback(own.stop)
            redis_url = own.url
        else:
            path, cast = request.getfixturevalue("peopled")
            shutil.copyfile(path, folder / "world.db")
            database, redis_url = f"sqlite:///{folder}/world.db", request.getfixturevalue("shared_redis")
        app = create_app(settings_for(database, redis_url, folder))
        stored.callback(close_app, app)
        with app.app_context():
            redis_client().flushdb()
            vocabularies.record_stored(vocab_lock.current_entry().id)
        yield World(app, cast)
