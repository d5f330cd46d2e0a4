"""One piece of work, one worker; a worker that lost its lease changes nothing."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from jobs import lease
from jobs.lease import Cancelled, LeaseLost, NotAvailable, leased
from tests.jobs.waiting import eventually
from webapp import limits
from webapp.access.models import Workspace
from webapp.errors import ApiError
from webapp.exports.models import Export
from webapp.extensions import write_session
from webapp.work import jobs_queue


@pytest.fixture
def take(clock):
    """Takes a lease without the block around it, as a worker does that is then lost."""
    return lambda export_id: lease.acquire("export", export_id, clock)


def test_work_is_done_and_ends_completed(new_export, row, clock):
    export_id = new_export()
    with leased("export", export_id, clock) as work:
        work.save(rows_done=7)
        assert (row(export_id).status, row(export_id).rows_done, row(export_id).attempt) == ("running", 7, 1)
        work.finish(bytes=99)
    done = row(export_id)
    assert (done.status, done.bytes, done.error) == ("completed", 99, None)
    assert (done.lease_owner, done.lease_until) == (None, None)
    assert (done.started_at, done.finished_at) == (clock(), clock())


def test_two_workers_never_hold_the_same_work(new_export, take):
    export_id = new_export()
    take(export_id)
    with pytest.raises(NotAvailable):
        take(export_id)


def test_ended_or_unknown_work_is_not_taken(new_export, take):
    for status in ("completed", "failed", "cancelled", "timed_out"):
        with pytest.raises(NotAvailable):
            take(new_export(status=status))
    with pytest.raises(NotAvailable):
        take("exp_00000000000000000000000000")


def test_cancelled_work_never_starts(new_export, take, clock):
    with pytest.raises(NotAvailable):
        take(new_export(cancel_requested_at=clock()))


def test_lost_work_is_taken_up_as_the_next_attempt_at_most_three_times(new_export, take, clock):
    export_id = new_export()
    attempts = []
    for _ in range(limits.MAX_ATTEMPTS):
        attempts.append(take(export_id).attempt)
        with pytest.raises(NotAvailable):
            take(export_id)
        clock.forward(limits.LEASE_SECONDS + 1)
    assert attempts == [1, 2, 3]
    with pytest.raises(NotAvailable):
        take(export_id)


def test_a_worker_that_lost_its_lease_writes_nothing(new_export, take, row, clock):
    export_id = new_export()
    first = take(export_id)
    clock.forward(limits.LEASE_SECONDS + 1)
    second = take(export_id)
    assert second.epoch == first.epoch + 1
    for write in (
        lambda: first.save(rows_done=5),
        lambda: first.finish(bytes=1),
        lambda: first.release(),
    ):
        with pytest.raises(LeaseLost):
            write()
    first.renew()
    with pytest.raises(LeaseLost):
        first.check()
    stored = row(export_id)
    assert (stored.status, stored.rows_done, stored.epoch, stored.lease_until) == (
        "running",
        0,
        second.epoch,
        second._until,
    )


def test_a_fenced_transaction_does_not_change_other_tables(new_export, take, clock):
    first = take(export_id := new_export())
    clock.forward(limits.LEASE_SECONDS + 1)
    take(export_id)
    with pytest.raises(LeaseLost), first.transaction() as session:
        session.add(Workspace(name="written by the dead"))
    with write_session() as session:
        assert session.scalars(select(Workspace.name)).all() == ["Acme"]


def test_a_frozen_worker_detects_its_lost_lease_before_it_continues(new_export, take, clock):
    frozen = take(export_id := new_export())
    frozen.check()
    clock.forward(limits.LEASE_SECONDS + 10)
    take(export_id)
    with pytest.raises(LeaseLost):
        frozen.check()


def test_a_frozen_worker_continues_if_no_other_took_its_work(new_export, take, row, clock):
    frozen = take(export_id := new_export())
    clock.forward(limits.LEASE_SECONDS + 10)
    frozen.check()
    assert row(export_id).lease_until > clock()


def test_a_cancel_stops_running_work(new_export, row, clock):
    export_id = new_export()
    with leased("export", export_id, clock) as work:
        with write_session() as session:
            session.get_one(Export, export_id).cancel_requested_at = clock()
        work.refresh()
        work.check()
    assert row(export_id).status == "cancelled"
    assert row(export_id).finished_at == clock()


def test_a_cancel_is_noticed_without_asking(new_export, clock):
    export_id = new_export()
    with leased("export", export_id, clock) as work:
        with write_session() as session:
            session.get_one(Export, export_id).cancel_requested_at = clock()
        eventually(lambda: work._cancelled, within=limits.CANCEL_POLL_SECONDS * 10)
        with pytest.raises(Cancelled):
            work.check()
        work.finish("cancelled")


@pytest.fixture
def asked_to_stop():
    lease.stopping.set()
    yield
    lease.stopping.clear()


@pytest.mark.usefixtures("asked_to_stop")
def test_a_stopping_worker_hands_its_work_back_and_rings(new_export, row, client, take, clock):
    export_id = new_export()
    with leased("export", export_id, clock) as work:
        work.check()
    freed = row(export_id)
    assert (freed.status, freed.lease_owner, freed.lease_until, freed.attempt) == ("running", None, None, 1)
    assert jobs_queue.queued_ids(client, "export") == {export_id}
    assert take(export_id).attempt == 1, "a restart is not a loss"


def test_a_refusal_ends_the_work_with_its_code(new_export, row, clock):
    export_id = new_export()
    with leased("export", export_id, clock):
        raise ApiError("row_limit_exceeded", details={"limit": 5})
    assert row(export_id).status == "failed"
    assert row(export_id).error["code"] == "row_limit_exceeded"
    assert row(export_id).error["details"] == {"limit": 5}


def test_an_unexpected_failure_says_nothing_of_its_cause(new_export, row, clock):
    export_id = new_export()
    with leased("export", export_id, clock):
        raise RuntimeError("password=hunter2")
    assert row(export_id).error["code"] == "internal_error"
    assert "hunter2" not in str(row(export_id).error)


def test_a_job_that_forgets_to_finish_has_failed(new_export, row, clock):
    export_id = new_export()
    with leased("export", export_id, clock):
        pass
    assert row(export_id).status == "failed"


def test_only_an_end_state_ends(new_export, take):
    with pytest.raises(ValueError, match="not an end state"):
        take(new_export()).finish("running")
