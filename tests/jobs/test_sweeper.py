"""Lost work is found, taken up again at most three times, then ended with a reason; Redis may be emptied.

Promise 4 of docs/promises.md.
"""

from __future__ import annotations

import pytest
from sqlalchemy import select

from jobs import lease, sweeper
from webapp import limits
from webapp.exports.models import Export
from webapp.extensions import create_redis_client, read_session, redis_client
from webapp.monitoring import health
from webapp.work import jobs_queue


@pytest.fixture
def sweep(client, clock):
    return lambda: {what: number for what, number in sweeper.sweep(client, clock()).items() if number}


@pytest.fixture
def settled(row):
    """Whether the rows of an export that was ended were given back."""
    return lambda export_id: bool(row(export_id).request.get("settled"))


@pytest.fixture
def rings(client):
    """The rings for exports of this test: a process of an earlier one may still hand back its work."""

    def mine() -> set[str]:
        with read_session() as session:
            return jobs_queue.queued_ids(client, "export") & set(session.scalars(select(Export.id)))

    return mine


def test_queued_work_without_a_ring_is_rung_for_once(new_export, sweep, rings, clock):
    export_id = new_export()
    assert sweep() == {}, "its own doorbell may still be on the way"
    clock.forward(limits.QUEUED_AGE_SECONDS + 1)
    assert sweep() == {"rung": 1}
    assert rings() == {export_id}
    assert sweep() == {}, "it has a ring now"


def test_emptying_redis_loses_no_queued_work(new_export, sweep, rings, client, clock):
    exports = {new_export() for _ in range(3)}
    clock.forward(limits.QUEUED_AGE_SECONDS + 1)
    sweep()
    client.flushall()
    assert sweep() == {"rung": 3}
    assert rings() == exports


def test_lost_work_is_rung_for_within_45_seconds(new_export, sweep, rings, clock):
    export_id = new_export()
    lease.acquire("export", export_id, clock)
    clock.forward(limits.LEASE_SECONDS - 1)
    assert sweep() == {}
    clock.forward(45 - limits.SWEEP_SECONDS - limits.LEASE_SECONDS + 1)
    assert sweep() == {"rung": 1}
    assert rings() == {export_id}


def test_released_work_is_enqueued_immediately(new_export, sweep, clock):
    lease.acquire("export", new_export(), clock).save(lease_owner=None, lease_until=None)
    assert sweep() == {"rung": 1}


def test_work_lost_three_times_fails_with_a_reason(new_export, sweep, row, settled, clock):
    export_id = new_export()
    for _ in range(limits.MAX_ATTEMPTS):
        lost = lease.acquire("export", export_id, clock)
        clock.forward(limits.LEASE_SECONDS + 1)
    assert sweep() == {"failed": 1}
    ended = row(export_id)
    assert (ended.status, ended.error["code"], ended.finished_at) == ("failed", "worker_lost", clock())
    assert "lost 3 times" in ended.error["message"]
    assert settled(export_id), "its service was notified"
    with pytest.raises(lease.LeaseLost):
        lost.save(rows_done=1)


def test_a_cancel_takes_effect_without_a_running_worker(new_export, sweep, row, settled, clock):
    queued = new_export(cancel_requested_at=clock())
    lease.acquire("export", running := new_export(), clock)
    lost = new_export(
        status="running", lease_owner="gone:1", lease_until=clock(), attempt=1, cancel_requested_at=clock()
    )
    clock.forward(1)
    assert sweep() == {"cancelled": 2}
    assert [row(export_id).status for export_id in (queued, running, lost)] == [
        "cancelled",
        "running",
        "cancelled",
    ]


def test_a_service_that_stumbles_over_an_end_does_not_stop_the_sweep(new_export, sweep, row, clock):
    odd = new_export(cancel_requested_at=clock(), request={})
    fine = new_export(cancel_requested_at=clock())
    assert sweep() == {"cancelled": 2}
    assert {row(odd).status, row(fine).status} == {"cancelled"}


def test_redis_down_still_ends_what_is_lost(new_export, row, clock, tmp_path):
    export_id = new_export(
        status="running", lease_owner="gone:1", lease_until=clock(), attempt=limits.MAX_ATTEMPTS
    )
    new_export()
    clock.forward(60)
    nowhere = create_redis_client(f"unix://{tmp_path}/nothing.sock")
    assert sweeper.sweep(nowhere, clock()) == {"rung": 0, "failed": 1, "cancelled": 0}
    assert row(export_id).status == "failed"


def test_one_sweeper_sweeps_at_a_time(client):
    assert sweeper.is_active(client, "a:1")
    assert not sweeper.is_active(client, "b:2")
    assert sweeper.is_active(client, "a:1")
    client.flushall()
    assert sweeper.is_active(client, "b:2")
    assert not sweeper.is_active(client, "a:1")


def test_a_sweeper_runs_until_it_is_stopped_and_the_next_one_takes_over(app, new_export, rings, clock):
    new_export()
    clock.forward(60)
    turns = []

    def pause(seconds: float) -> bool:
        turns.append(health.count_alive(redis_client(), health.SWEEPER, clock().timestamp()))
        assert seconds == limits.SWEEP_SECONDS
        return len(turns) == 2

    sweeper.Sweeper(app, pause, clock).run()
    assert turns == [1, 1]
    assert len(rings()) == 1
    assert health.count_alive(redis_client(), health.SWEEPER, 0) == 0
    assert sweeper.is_active(redis_client(), "next:1")
