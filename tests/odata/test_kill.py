"""A worker is killed, frozen or stopped during a push into a real OData server: every row is inserted once, or reported
as unknown, and the table matches the ledger."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.chaos.conftest import Nursery, alive, cancel, lose
from tests.chaos.test_http_freeze import SHORT, freeze
from tests.chaos.test_interrupted import under_way
from tests.jobs.pushing import Pushing, rows, table_spec
from tests.jobs.waiting import eventually
from webapp import clock, limits
from webapp.pushes.services.ledger import read

COUNT = 600
KILLS = limits.MAX_ATTEMPTS - 1
PAGE = 1_000  # of the server
versions = pytest.mark.parametrize("version", ["v4", "v2"])
ways = pytest.mark.parametrize("batch", [False, True], ids=["single", "batch"])


class Keeper(Nursery):
    """The program of `tests.odata.nursery`."""

    program = "tests.odata.nursery"


@pytest.fixture
def pushing(app: Any, monkeypatch: pytest.MonkeyPatch) -> Pushing:
    return Pushing(app, monkeypatch)


@pytest.fixture
def keeper(environment: dict[str, str], tmp_path: Path, server: Any) -> Iterator[Callable[..., Keeper]]:
    """Starts the program for a version of the service; `more` goes into its environment."""
    started: list[Keeper] = []

    def begin(version: str, batch: bool = False, **more: object) -> Keeper:
        settings = {
            "TARGET": f"{server.url}/odata/{version}/shop",
            "HTTP": json.dumps({"batch": batch}),
            **more,
        }
        result = Keeper(environment, tmp_path / "nursery.log", **settings)
        started.append(result)
        assert result.answer() == "ready"
        return result

    yield begin
    for item in started:
        item.close()


@pytest.fixture
def new_push(pushing: Pushing) -> Callable[[], str]:
    """A queued push of COUNT orders. Their keys are the server's own: one that comes twice is there twice."""
    value = rows(COUNT)
    columns = [{"column": "number", "field": "name"}]
    spec = table_spec("Orders", value, columns=columns, key_columns=["ID"], capture=["ID"])
    return lambda: pushing.push([(spec, value)])


def numbers(server: Any) -> list[int]:
    """The rows that are in the server's table, by their place in the push."""
    found: list[int] = []
    while True:
        address = (
            f"{server.url}/odata/v4/shop/Orders?$select=number&$orderby=ID&$top={PAGE}&$skip={len(found)}"
        )
        answer = requests.get(address, timeout=30)
        answer.raise_for_status()
        some = [int(item["number"].removeprefix("name ")) for item in answer.json()["value"]]
        found += some
        if len(some) < PAGE:
            return found


def agrees(push: Any, server: Any, status: str = "completed") -> None:
    """Check that the table matches the ledger: delivered rows exist once, unknown ones at most once, others do not
    exist."""
    stored = numbers(server)
    by_state = {
        state: {row.row for row in read.rows(push.id, state=state, limit=COUNT)}
        for state in ("unknown", "failed")
    }
    doubt = by_state["unknown"]
    assert (push.status, push.failed, by_state["failed"]) == (status, 0, set()), push.error
    assert len(stored) == len(set(stored)), "no row twice"
    assert len(doubt) == push.unknown
    assert len(set(stored) - doubt) == push.delivered, "exactly the delivered rows exist"
    if status == "completed":
        assert push.delivered + push.unknown == COUNT
        assert set(range(1, COUNT + 1)) - doubt <= set(stored)


@versions
@ways
def test_every_row_is_there_once_or_unknown_after_kills_at_any_moment(
    keeper, new_push, pushing, server, version, batch
):
    server.become(expire_after=40)
    result = keeper(version, batch)
    chance = random.Random(f"{version}{batch}")
    push_id, interrupted = new_push(), 0
    for _ in range(KILLS):
        pid = result.start(push_id)
        had = pushing.read(push_id).delivered
        eventually(lambda had=had: (row := pushing.read(push_id)).has_ended or row.delivered > had)
        threading.Event().wait(chance.uniform(0, 0.3))  # the moment of the kill, no waiting for anything
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        result.over()
        interrupted += pushing.read(push_id).status == "running"
        lose(push_id)
    result.do(push_id)
    ended = pushing.read(push_id)
    print(f"attempt {ended.attempt}: {ended.delivered} delivered, {ended.unknown} unknown")
    assert interrupted
    agrees(ended, server)
    assert ended.unknown <= interrupted * limits.HTTP_CHUNK_ROWS


@versions
def test_a_cancel_takes_effect_and_rows_in_progress_are_reported(keeper, new_push, pushing, server, version):
    result = keeper(version)
    push_id = new_push()
    pid = result.start(push_id)
    under_way(pushing, push_id, 50)
    cancel(push_id)
    eventually(lambda: pushing.read(push_id).has_ended and not alive(pid), within=10)
    result.over()
    ended = pushing.read(push_id)
    assert ended.delivered + ended.unknown < COUNT
    agrees(ended, server, "cancelled")


@versions
def test_a_frozen_sender_that_wakes_up_sends_nothing_twice(keeper, new_push, pushing, server, version):
    first, second = keeper(version, **SHORT), keeper(version, **SHORT)
    push_id = new_push()
    pid = first.start(push_id)
    under_way(pushing, push_id, 50)
    freeze(pid, push_id)
    row = pushing.read(push_id)
    assert row.status == "running"
    eventually(lambda: clock.now() > row.lease_until, within=30)
    second.start(push_id)
    eventually(
        lambda: pushing.read(push_id).epoch > row.epoch and pushing.read(push_id).delivered > row.delivered
    )
    os.kill(pid, signal.SIGCONT)
    first.over()
    second.over()
    agrees(pushing.read(push_id), server)
