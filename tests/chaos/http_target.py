"""What the chaos over HTTP shares: a target that records every request, and what the ledger ought to say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.chaos.conftest import COUNT
from tests.fakes.echo_target import EchoTarget
from webapp import limits
from webapp.pushes.models import Push
from webapp.pushes.services.ledger import read


@pytest.fixture
def echo() -> Iterator[EchoTarget]:
    with EchoTarget() as result:
        yield result


@pytest.fixture
def target(echo: EchoTarget) -> str:
    return echo.url("/api")


def effects(echo: EchoTarget) -> Counter[int]:
    """Return how often the target processed each row."""
    return Counter(int(effect.headers["x-rowsmith-row"]) for effect in echo.effects)


def unknown(push_id: str) -> set[int]:
    """Return the rows with an unknown outcome."""
    return {row.row for row in read.rows(push_id, state="unknown", limit=COUNT)}


def agrees(push: Push, echo: EchoTarget, kills: int) -> None:
    """Check that every row was processed once, or is reported as unknown, and that few are unknown."""
    found, doubt = effects(echo), unknown(push.id)
    assert (push.status, push.failed) == ("completed", 0), push.error
    assert push.delivered + push.unknown == COUNT
    assert len(doubt) == push.unknown <= kills * limits.HTTP_CHUNK_ROWS
    assert not [row for row, times in found.items() if times > 1], "no row twice"
    assert set(range(1, COUNT + 1)) - doubt <= set(found), "no row that is delivered is missing"
