"""Runs that end from outside: cancelled, timed out, lost, released; and the limit of parallel runs.

Promise 8 of docs/promises.md.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from jobs import lease, sweeper
from jobs.scenarios import environments
from tests.conftest import app, database_url  # noqa: F401
from tests.jobs.running import HELLO, STAYS, STUBBORN, beside, cancel, running  # noqa: F401
from tests.jobs.waiting import eventually
from webapp import clock, limits
from webapp.access.models import ApiKey, Workspace
from webapp.extensions import db, read_session, redis_client, write_session
from webapp.scenarios.models import Run
from webapp.scenarios.services import run_completion
from webapp.work import jobs_queue


@pytest.fixture(autouse=True)
def no_stop():
    lease.stopping.clear()
    yield
    lease.stopping.clear()


def test_a_queued_run_that_is_cancelled_never_starts(running):
    run_id = running.queue(HELLO)
    cancel(running, run_id)
    with pytest.raises(lease.NotAvailable):
        running.do(run_id)
    run = running.read(run_id)
    assert (run.status, run.started_at) == ("cancelled", None)
    assert running.log(run_id) == "rowsmith: cancelled\n"


@pytest.mark.parametrize(("code", "within"), [(STAYS, 3.0), (STUBBORN, 6.0)])
def test_a_cancel_holds_within_six_seconds_also_where_the_program_will_not_end(running, beside, code, within):
    run_id = running.queue(code)
    beside(run_id)
    began = time.monotonic()
    cancel(running, run_id)
    eventually(lambda: running.read(run_id).has_ended, 10)
    assert time.monotonic() - began < within
    run = running.read(run_id)
    assert (run.status, run.exit_code, run.error) == ("cancelled", None, None)
    assert running.log(run_id).splitlines()[-1] == "rowsmith: cancelled"


def test_a_program_is_stopped_at_its_time_limit(running):
    run = running.run(STAYS, timeout_seconds=1)
    assert (run.status, run.error["code"]) == ("timed_out", "time_limit")
    assert run.error["details"] == {"timeout_seconds": 1}
    assert running.log(run.id).splitlines()[-1] == "rowsmith: stopped: The program exceeded its time limit."


def test_a_program_that_prints_without_end_is_stopped_and_what_fits_is_kept(running, monkeypatch):
    monkeypatch.setattr(limits, "RUN_LOG_BYTES", 100_000)
    run = running.run("while True: print('x' * 99)")
    assert (run.status, run.error["code"]) == ("failed", "log_limit")
    lines = running.log(run.id).splitlines()
    assert 100_000 <= run.log_bytes < 100_400
    assert set(lines[:-1]) == {"x" * 99}
    assert lines[-1].startswith("rowsmith: failed: The program's output exceeded")


def test_a_stopping_runner_releases_a_run_whose_program_has_not_started(running, monkeypatch):
    result = environments.ensure

    def ensure(*_, check_alive=None, **__):
        lease.stopping.set()
        check_alive()

    monkeypatch.setattr(environments, "ensure", ensure)
    run = running.run(HELLO)
    assert (run.status, run.lease_owner, run.attempt) == ("running", None, 1)
    lease.stopping.clear()
    monkeypatch.setattr(environments, "ensure", result)
    run = running.do(run.id)
    assert (run.status, run.attempt) == ("completed", 1)
    assert running.log(run.id) == "hello\n"


def test_a_stopping_runner_lets_a_program_end_that_is_quick_and_stops_one_that_is_not(
    running, beside, monkeypatch
):
    monkeypatch.setattr(limits, "RUN_DRAIN_SECONDS", 1.0)
    quick, slow = running.queue("import time\nprint('here')\ntime.sleep(0.3)"), running.queue(STAYS)
    for run_id in (quick, slow):
        thread = beside(run_id)
        lease.stopping.set()
        thread.join(10)
        lease.stopping.clear()
    assert running.read(quick).status == "completed"
    ended = running.read(slow)
    assert (ended.status, ended.error["code"]) == ("failed", "worker_stopped")
    assert running.log(quick) == "here\n", "a program that completes adds no line of ours"
    assert running.log(slow).splitlines()[-1].startswith("rowsmith: failed: The runner was stopped")


def test_a_lost_run_is_not_repeated_its_key_is_revoked_and_its_log_has_the_reason(running):
    run_id = running.queue(HELLO)
    now = clock.now()
    with running.app.app_context():
        work = lease.acquire("run", run_id, clock.now)
        with write_session() as session:
            from webapp.scenarios.services import run_completion

            run_completion.issue_key(session, session.get_one(Run, run_id), running.cast.edith.user_id, now)
        done = sweeper.sweep(redis_client(), now + timedelta(seconds=limits.LEASE_SECONDS + 1))
        assert done["failed"] == 1
        with pytest.raises(lease.LeaseLost):
            work.save(exit_code=0)
        with read_session() as session:
            assert session.scalar(select(ApiKey.revoked_at).where(ApiKey.run_id == run_id)) is not None
    run = running.read(run_id)
    assert (run.status, run.error["code"], run.attempt) == ("failed", "worker_lost", 1)
    assert running.log(run_id).startswith("rowsmith: failed: The worker of this run was lost")


def test_an_unnotified_end_is_reported_by_the_sweeper(running):
    run_id = running.queue(HELLO)
    with running.app.app_context():
        with write_session() as session:
            ended = {
                "status": "failed",
                "finished_at": clock.now(),
                "error": run_completion.run_error("worker_lost"),
            }
            session.execute(update(Run).where(Run.id == run_id).values(**ended))
        sweeper.sweep(redis_client(), clock.now())
    assert running.read(run_id).closed_at is not None
    assert running.log(run_id).startswith("rowsmith: failed")


def test_a_run_that_another_runner_took_writes_nothing_more(running, beside):
    run_id = running.queue("import time\nprint('here')\ntime.sleep(1)\nprint('late')\ntime.sleep(30)")
    thread = beside(run_id)
    with running.app.app_context(), write_session() as session:
        session.execute(update(Run).where(Run.id == run_id).values(epoch=Run.epoch + 1))
    thread.join(10)
    assert running.log(run_id) == "here\n"
    assert running.read(run_id).status == "running", "it is the other's"


# --- Turns ------------------------------------------------------------------------------------------------------


def test_a_workspace_has_as_many_parallel_runs_as_its_plan_allows_and_starts_the_next_at_an_end(
    running, beside
):
    with running.app.app_context(), write_session() as session:
        session.get_one(Workspace, running.cast.acme).plan = "free"
    scenario_id = running.scenario(
        "import os, time\nprint('here')\nwhile not os.path.exists(os.environ['GO']): time.sleep(0.01)"
    )
    go = Path(running.app.config["SETTINGS"].data_dir) / "go"
    first, second, third = (running.again(scenario_id, {"GO": str(go)}) for _ in range(3))
    thread = beside(first)
    with pytest.raises(lease.NotAvailable):
        running.do(second)
    with running.app.app_context():
        jobs_queue.queue_of(redis_client(), "run").empty()
        late = clock.now() + timedelta(seconds=60)
        sweeper.sweep(redis_client(), clock.now() + timedelta(seconds=limits.QUEUED_AGE_SECONDS + 1))
        assert jobs_queue.queued_ids(redis_client(), "run") == set(), "no run can start yet"
        go.touch()
        thread.join(10)
        assert jobs_queue.queued_ids(redis_client(), "run") == {second}
        jobs_queue.queue_of(redis_client(), "run").empty()
        sweeper.sweep(redis_client(), late)
        assert jobs_queue.queued_ids(redis_client(), "run") == {second}, "one place, one ring"
    assert running.do(second).status == "completed"
    assert running.do(third).status == "completed"


def test_the_limit_holds_with_many_concurrent_runners(running):
    ids = [running.queue(HELLO) for _ in range(30)]
    with running.app.app_context(), write_session() as session:
        session.get_one(Workspace, running.cast.acme).plan = "pro"
    taken, barrier = [], threading.Barrier(10)

    def take(mine: list[str]) -> None:
        from webapp.scenarios.services import run_completion

        barrier.wait(10)
        for run_id in mine:
            with running.app.app_context():
                try:
                    lease.acquire("run", run_id, clock.now, run_completion.may_start_condition(run_id))
                    taken.append(run_id)
                except lease.NotAvailable:
                    pass

    threads = [threading.Thread(target=take, args=(ids[at::10],)) for at in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(taken) == limits.RUNS_AT_ONCE["pro"]


def test_rows_are_those_the_program_had_made_with_its_key(running):
    run_id = running.queue(HELLO)
    with running.app.app_context():
        lease.acquire("run", run_id, clock.now)
        with write_session() as session:
            from webapp.scenarios.services import run_completion

            run_completion.issue_key(
                session, session.get_one(Run, run_id), running.cast.edith.user_id, clock.now()
            )
        with read_session() as session:
            key_id = session.scalar(select(ApiKey.id).where(ApiKey.run_id == run_id))
        as_run = replace(running.actor, key_id=key_id)
        from webapp.audit.services import audit_log

        for who, action, rows in (
            (as_run, "template.generate", 10),
            (as_run, "dataset.export", 5),
            (as_run, "push.create", 100),  # rows from its request
            (running.actor, "template.generate", 1_000),
        ):
            audit_log.record(who, action, ("template", "tpl_x"), join=True, rows=rows)
        db.session.commit()
        with read_session() as session:
            assert run_completion.count_generated_rows(session, session.get_one(Run, run_id)) == 15
        db.session.remove()
