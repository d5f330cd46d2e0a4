"""Worker processes: what a kill, a stop and a foreign ring do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rq import Queue
from rq.serializers import JSONSerializer

from tests.jobs.waiting import eventually
from webapp import clock
from webapp.monitoring import health
from webapp.work import jobs_queue


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.fixture
def start(app, client, environment, tmp_path):
    """Starts a worker with one of the odd jobs and waits until it beats; returns the process."""
    started = []

    def begin(job: str) -> subprocess.Popen[bytes]:
        since = clock.epoch()
        with (tmp_path / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.jobs.odd_worker"],
                env={**environment, "JOB": job, "PID_FILE": str(tmp_path / "pid")},
                cwd=Path(__file__).parents[2],
                stderr=log,
            )
        started.append(process)
        eventually(lambda: health.count_alive(client, health.WORKER, since) or process.poll() is not None)
        assert process.poll() is None, (tmp_path / "worker.log").read_text()
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def job_pid(tmp_path):
    """The pid of the process that does the slow job, once it does."""
    path = tmp_path / "pid"
    return lambda: int(eventually(lambda: path.exists() and path.read_text()))


def test_a_ring_wakes_a_worker(start, client, new_export, row):
    start("quick")
    export_id = new_export()
    jobs_queue.enqueue(client, "export", export_id)
    eventually(lambda: row(export_id).status == "completed")
    eventually(lambda: not client.keys("rq:job:*")), "nothing is left of the ring"


def test_killing_only_the_parent_leaves_no_second_sender(start, client, new_export, job_pid):
    worker = start("slow")
    jobs_queue.enqueue(client, "export", new_export())
    pid = job_pid()
    worker.kill()
    worker.wait()
    eventually(lambda: not alive(pid))


def test_a_stopping_worker_releases_its_work_and_the_next_continues(start, client, new_export, row, job_pid):
    worker = start("slow")
    export_id = new_export()
    jobs_queue.enqueue(client, "export", export_id)
    pid = job_pid()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=20) == 0
    assert not alive(pid)
    freed = row(export_id)
    assert (freed.status, freed.lease_owner, freed.attempt) == ("running", None, 1)
    assert health.count_alive(client, health.WORKER, 0) == 0, "it said good-bye"
    start("quick")
    eventually(lambda: row(export_id).status == "completed")
    assert row(export_id).attempt == 1


def test_a_foreign_ring_is_dropped(start, client, new_export, row, tmp_path):
    queue = Queue("exports", connection=client, serializer=JSONSerializer)
    trace = tmp_path / "trace"
    for function, arguments in (
        ("os.system", [f"touch {trace}"]),
        (jobs_queue.JOB_FUNCTION, ["nothing", "exp_A"]),
        (jobs_queue.JOB_FUNCTION, [f"touch {trace}"]),
    ):
        queue.enqueue_call(function, args=arguments)
    jobs_queue.enqueue(client, "export", export_id := new_export())
    start("quick")
    eventually(lambda: row(export_id).status == "completed")
    assert not trace.exists()
    eventually(lambda: not client.keys("rq:job:*"))


def test_a_job_for_deleted_work_does_nothing(start, client, new_export, row):
    jobs_queue.enqueue(client, "export", "exp_00000000000000000000000000")
    jobs_queue.enqueue(client, "export", export_id := new_export())
    worker = start("quick")
    eventually(lambda: row(export_id).status == "completed")
    os.kill(worker.pid, signal.SIGTERM)
    assert worker.wait(timeout=20) == 0
