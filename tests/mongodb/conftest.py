"""The conformance suite of the connectors over a MongoDB server that we did not write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.kinds import ABILITIES
from tests.mongodb.kind_secantus import SecantusKind, server
from webapp.connectors.base import Session


@pytest.fixture(scope="session", autouse=True)
def closing() -> Iterator[None]:
    yield
    if server.cache_info().currsize:
        server().close()


@pytest.fixture
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SecantusKind]:
    """An empty database. Tests marked `needs(...)` are skipped if MongoDB lacks that."""
    SecantusKind.unavailable()
    for marker in request.node.iter_markers("needs"):
        for ability in marker.args:
            if ability in SecantusKind.lacks:
                pytest.skip(f"mongodb {ABILITIES[ability]}")
    result = SecantusKind(tmp_path)
    result.start()
    try:
        yield result
    finally:
        result.stop()


@pytest.fixture
def session(kind: SecantusKind) -> Iterator[Session]:
    with kind.connector().open() as found:
        yield found


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*abilities): skipped if the target lacks one of them")
