"""Runners that are struck: no run is repeated, none stays running, no line is lost, and nothing is left alive.

Promises 4 and 8 of docs/promises.md.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs import sweeper
from jobs.sandbox import SandboxUnavailable, mode
from tests.chaos.conftest import alive
from tests.conftest import app, database_url  # noqa: F401
from tests.jobs.running import Running
from tests.jobs.waiting import eventually
from webapp import clock, limits
from webapp.extensions import db, redis_client
from webapp.monitoring import health
from webapp.scenarios.models import Run
from webapp.scenarios.services import runs
from webapp.work import jobs_queue

ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "12"))
# Writes a line every hundredth of a second; with CHILD there is another process, in a new session.
COUNTS = """
import os, subprocess, sys, time
if "CHILD" in os.environ:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
for number in range(int(os.environ.get("LINES", "60000"))):
    print("line", number)
    time.sleep(0.01)
"""


@pytest.fixture
def box() -> str:
    """The real sandbox: what dies with whom is its promise."""
    try:
        mode("auto")
    except SandboxUnavailable as error:
        pytest.skip(f"nothing on this machine can keep programs apart: {error}")
    return "real"


@pytest.fixture
def running(app, cast) -> Running:
    return Running(app, cast)


@pytest.fixture
def start(app, environment, database_url, tmp_path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a runner and waits until it beats."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(**more: object) -> subprocess.Popen[bytes]:
        from tests.conftest import VAULT_KEY

        with app.app_context():
            before = health.count_alive(redis_client(), health.RUNNER, 0)
            values = {**environment, "VAULT_KEYS": VAULT_KEY, "DATABASE_URL": database_url}
            values |= {name: str(value) for name, value in more.items()}
            with (tmp_path / "runner.log").open("ab") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tests.chaos.runner"],
                    env=values,
                    cwd=Path(__file__).parents[2],
                    stderr=log,
                )
            started.append(process)
            eventually(
                lambda: (
                    health.count_alive(redis_client(), health.RUNNER, 0) > before
                    or process.poll() is not None
                ),
                60,
            )
        assert process.poll() is None, (tmp_path / "runner.log").read_text()
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()


def programs(run_id: str) -> set[int]:
    """Processes that have the run in their environment: its program, and what that started."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and f"SERVICE_RUN_ID={run_id}".encode() in (entry / "environ").read_bytes()
            ):
                found.add(int(entry.name))
        except OSError:
            continue
    return {pid for pid in found if alive(pid)}


def lines_of(running: Running, run_id: str) -> int:
    """How many lines a program printed; none is missing, none comes twice."""
    found = [line for line in running.log(run_id).splitlines() if line.startswith("line")]
    assert found == [f"line {number}" for number in range(len(found))]
    return len(found)


def sweep(running: Running, seconds: float = 0.0) -> dict[str, int]:
    with running.app.app_context():
        from datetime import timedelta

        done = sweeper.sweep(redis_client(), clock.now() + timedelta(seconds=seconds))
        db.session.remove()
    return done


def cancel(running: Running, run_id: str) -> None:
    with running.app.app_context():
        runs.cancel(running.actor, db.session.get_one(Run, run_id, with_for_update=True))
        db.session.remove()


def horse_of(running: Running, run_id: str) -> int:
    """The process that does a run."""
    return int(eventually(lambda: running.read(run_id).lease_owner or "").rpartition(":")[2])


def begun(running: Running, start: Callable[..., subprocess.Popen[bytes]], box: str, **more: object):
    """A runner, and a run whose program prints."""
    worker = start(BOX=box, **more)
    run_id = running.queue(COUNTS, {"CHILD": "1"} if box == "real" else None)
    eventually(lambda: "line" in running.log(run_id), 30)
    return worker, run_id


def test_a_run_whose_runner_is_killed_ends_lost_with_nothing_of_it_alive(running, start, box):
    for victim in ("horse", "parent"):
        worker, run_id = begun(running, start, box, LEASE_SECONDS=6, LEASE_RENEWAL_SECONDS=2)
        assert programs(run_id)
        os.kill(horse_of(running, run_id) if victim == "horse" else worker.pid, signal.SIGKILL)
        eventually(lambda run_id=run_id: not programs(run_id), 5)
        eventually(lambda: sweep(running)["failed"], 15)
        run = running.read(run_id)
        assert (run.status, run.error["code"], run.attempt) == ("failed", "worker_lost", 1)
        last = running.log(run_id).splitlines()[-1]
        assert lines_of(running, run_id)
        assert last.startswith("rowsmith: failed: The worker of this run was lost")
        worker.kill()
        worker.wait()


def test_a_frozen_runner_that_wakes_up_writes_nothing_and_ends_its_program(running, start, box):
    _, run_id = begun(running, start, box, LEASE_SECONDS=4, LEASE_RENEWAL_SECONDS=1)
    horse = horse_of(running, run_id)
    os.kill(horse, signal.SIGSTOP)
    try:
        eventually(lambda: sweep(running)["failed"], 15)
        result = running.log(run_id)
    finally:
        os.kill(horse, signal.SIGCONT)
    eventually(lambda: not programs(run_id), 10)
    eventually(lambda: not alive(horse), 10)
    assert running.log(run_id) == result
    assert running.read(run_id).status == "failed"


def test_emptying_redis_loses_no_queued_run_and_no_line(running, start):
    worker, run_id = begun(running, start, "bare")
    waiting = running.queue("print('after all')")
    with running.app.app_context():
        for _ in range(3):
            redis_client().flushall()
            threading.Event().wait(0.2)
    cancel(running, run_id)
    eventually(lambda: running.read(run_id).has_ended, 10)
    assert lines_of(running, run_id)
    eventually(lambda: sweep(running, limits.QUEUED_AGE_SECONDS + 1) and running.read(waiting).has_ended, 30)
    assert running.log(waiting) == "after all\n"
    assert worker.poll() is None


def test_a_cancel_at_any_moment_holds_within_six_seconds_and_leaves_no_process(running, start):
    start()
    chance = random.Random(20261122)
    for _ in range(ROUNDS):
        run_id = running.queue(COUNTS)
        threading.Event().wait(chance.uniform(0, 1.0))  # the moment of the cancel, no waiting for anything
        began = time.monotonic()
        cancel(running, run_id)
        eventually(lambda run_id=run_id: running.read(run_id).has_ended, 10)
        assert time.monotonic() - began < 6
        assert running.read(run_id).status == "cancelled"
        eventually(lambda run_id=run_id: not programs(run_id), 2)
        assert running.log(run_id).endswith("rowsmith: cancelled\n")


def test_two_runners_run_two_programs_in_parallel(running, start):
    start()
    start()
    ids = [running.queue(COUNTS) for _ in range(2)]
    eventually(lambda: all("line" in running.log(run_id) for run_id in ids), 30)
    assert {running.read(run_id).status for run_id in ids} == {"running"}
    for run_id in ids:
        cancel(running, run_id)
        eventually(lambda run_id=run_id: running.read(run_id).has_ended, 10)


def test_a_runner_that_is_stopped_lets_quick_programs_end_and_is_gone_within_thirty_seconds(running, start):
    worker = start(RUN_DRAIN_SECONDS=3)
    run_id = running.queue(COUNTS, {"LINES": "100"})
    eventually(lambda: "line" in running.log(run_id), 30)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    assert running.read(run_id).status == "completed"
    worker, run_id = begun(running, start, "bare", RUN_DRAIN_SECONDS=1)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    run = running.read(run_id)
    assert (run.status, run.error["code"]) == ("failed", "worker_stopped")
    assert not programs(run_id)


def test_rolling_restarts_lose_no_queued_run(running, start):
    ids = [running.queue("import time\ntime.sleep(0.2)\nprint('done')") for _ in range(ROUNDS)]
    for _ in range(4):
        worker = start()
        threading.Event().wait(0.7)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    start()
    later = limits.QUEUED_AGE_SECONDS + 1
    eventually(lambda: sweep(running, later) and all(running.read(run_id).has_ended for run_id in ids), 60)
    assert [(running.read(run_id).status, running.log(run_id)) for run_id in ids] == [
        ("completed", "done\n")
    ] * ROUNDS
    with running.app.app_context():  # a ring that came too late is answered, and does nothing
        eventually(lambda: not jobs_queue.queued_ids(redis_client(), "run"), 30)
