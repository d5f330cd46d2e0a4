"""Which rows wait when a target asks for a pause: all of them, or only the row whose request was rejected."""

from __future__ import annotations

import pytest
from requests.structures import CaseInsensitiveDict

from webapp.connectors.http.channel import RowOutcome
from webapp.connectors.http.parallel import SenderThreads
from webapp.connectors.http.retry import Retry
from webapp.net.session import Reply

PAUSE = 7.0
POLICY = Retry(retries=4, backoff_seconds=[0.0])


class Hand:
    """Records waits instead of sleeping."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def raise_if_stopped(self) -> None:
        """Always."""

    def wait(self, seconds: float) -> None:
        if seconds > 1:
            self.waits.append(round(seconds))


def reply(status: int) -> Reply:
    headers = CaseInsensitiveDict({"Retry-After": str(PAUSE)} if status != 201 else {})
    return Reply(status, "", headers, b"", truncated=False, url="", ms=1)


def sent(statuses: dict[int, list[int]], rows: int = 12) -> list[float]:
    """Send rows; `statuses` are the responses of a row before it is accepted. Returns the waits."""
    hand = Hand()
    threads = SenderThreads(hand, POLICY, parallel=1, per_second=None)
    left = {row: list(found) for row, found in statuses.items()}

    def one(row: int) -> RowOutcome:
        outcome, _ = threads.attempt(lambda: reply(left[row].pop(0) if left.get(row) else 201))
        return RowOutcome(row, "delivered" if outcome.reply.status == 201 else "failed")

    found = threads.run(rows, one)
    threads.close()
    assert [outcome.state for outcome in found] == ["delivered"] * rows
    return hand.waits


@pytest.mark.parametrize("rows", [{3: [503]}, {1: [503], 5: [503], 9: [503]}, {4: [503, 503]}])
def test_a_row_that_is_unavailable_waits_alone(rows):
    assert sent(rows) == [PAUSE] * sum(map(len, rows.values()))


def test_after_three_unavailable_responses_in_a_row_all_rows_wait():
    hand = Hand()
    threads = SenderThreads(hand, Retry(retries=0), parallel=1, per_second=None)
    for _ in range(3):
        threads.attempt(lambda: reply(503))
    assert hand.waits == []
    threads.attempt(lambda: reply(201))
    assert hand.waits == [PAUSE]
    threads.close()


def test_too_many_requests_pause_all_rows_at_the_first():
    hand = Hand()
    threads = SenderThreads(hand, Retry(retries=0), parallel=1, per_second=None)
    threads.attempt(lambda: reply(429))
    threads.attempt(lambda: reply(201))
    assert hand.waits == [PAUSE]
    threads.close()
