"""The Python package as programs use it: against the application on a real socket, and against a target that fails."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from flask import Flask

from tests.cast import Cast, Person
from tests.fakes.echo_target import EchoTarget
from tests.sdk.commands import shell  # noqa: F401
from tests.served import served
from webapp.access import actors
from webapp.connections.services import connections
from webapp.extensions import db
from webapp.operations import demo_workspace
from webapp.paths import ROOT

PACKAGE = ROOT / "sdk" / "python"
sys.path.insert(0, str(PACKAGE / "src"))

import rowsmith  # noqa: E402
from rowsmith.wire.retry import Retries  # noqa: E402

KEY = "rws_test_secretsecretsecret"


@pytest.fixture(scope="session")
def generate() -> ModuleType:
    """The program that makes the generated parts of the package."""
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("sdk_generate", PACKAGE / "tools" / "generate.py")
    created = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(created)
    finally:
        sys.path[:] = before
    return created


@pytest.fixture(scope="session")
def described(generate: ModuleType) -> dict[str, Any]:
    """The OpenAPI document of the service."""
    return generate.document()


@pytest.fixture
def origin(app: Flask) -> Iterator[str]:
    """The address of a server that runs `app`."""
    with served(app) as address:
        yield address


@pytest.fixture
def sdk(origin: str, cast: Cast) -> Iterator[Callable[..., rowsmith.Api]]:
    """`sdk()`: a client with Edith's key; `sdk(cast.olivia)`: with the key of another user."""
    result: list[rowsmith.Api] = []

    def make(who: Person | None = None, **more: object) -> rowsmith.Api:
        result.append(rowsmith.Api((who or cast.edith).key, origin, **more))
        return result[-1]

    yield make
    for item in result:
        item.close()


@pytest.fixture
def client(origin: str, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> rowsmith.Client:
    """The client of a scenario, which reads its environment."""
    monkeypatch.setenv("SERVICE_API_KEY", cast.edith.key)
    monkeypatch.setenv("SERVICE_API_URL", origin)
    monkeypatch.setenv("SERVICE_PROJECT_ID", cast.main)
    monkeypatch.setenv("SERVICE_TEAM_ID", cast.blue)
    result = rowsmith.Client()
    yield result
    result._caller.connections.close()


@pytest.fixture
def demo_shop(app: Flask, cast: Cast) -> Path:
    """The file of the demo's database with its empty tables, where a newcomer's service has it."""
    with app.app_context():
        here = actors.system_actor(cast.acme, cast.main, cast.blue)
        created = connections.create(here, **demo_workspace.DATABASE, verifies=False).id
        db.session.remove()
    folder = Path(app.config["SETTINGS"].data_dir) / "targets" / cast.acme / created
    path = folder / demo_workspace.DATABASE["settings"]["file"]
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as stored:
        stored.executescript(";".join(demo_workspace.TABLES))
    return path


@pytest.fixture
def target() -> Iterator[EchoTarget]:
    with EchoTarget() as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """The seconds that `far` would have slept."""
    return []


@pytest.fixture
def far(target: EchoTarget, waits: list[float]) -> Iterator[rowsmith.Api]:
    """A way into `target`, with waits that are written down in place of being slept, and no chance in them."""
    api = rowsmith.Api(KEY, target.url(""), timeout=5)
    api._caller.retries = Retries(sleep=waits.append, chance=lambda: 0.5)
    yield api
    api.close()
