"""The worker: an RQ worker that forks a process per job and runs only jobs of this application.

`python -m jobs.worker` starts a worker. `python -m jobs.worker --queues runs` starts a runner, a worker that
runs scenario programs only. The parent imports the engine and creates the application before it forks, so
that a small job costs a fork and no imports. The process of a job dies with its parent: otherwise, killing
only the parent would leave a second sender running next to the worker that resumes the job.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from datetime import timedelta
from types import FrameType
from typing import Any
from uuid import uuid4

import redis
import rq
from flask import Flask
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.utils import now as rq_now
from sqlalchemy.exc import SQLAlchemyError

from jobs import lease
from jobs.process import create_application, exit_with_parent, import_function
from webapp import clock, connectors, limits
from webapp.extensions import after_fork, create_redis_client, db
from webapp.monitoring import health, metrics
from webapp.work.jobs_queue import JOB_FUNCTION, KINDS

RUN_QUEUE = "runs"  # for runners: a program that runs for an hour must not block pushes and exports


def queue_names() -> list[str]:
    """Return the queues in order of priority: a worker takes jobs from the first queue that has one."""
    return list(dict.fromkeys(kind.queue for kind in KINDS.values()))


def default_queues() -> list[str]:
    """The default queues of a worker."""
    return [name for name in queue_names() if name != RUN_QUEUE]


def parse_queues(text: str) -> list[str]:
    """Parse queue names separated by commas. Raise ValueError if a name is unknown or there is none."""
    queues = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in queues if name not in queue_names()]
    if unknown or not queues:
        message = f"Unknown queue {unknown[0]!r}." if unknown else "Specify at least one queue."
        raise ValueError(f"{message} Available queues: {', '.join(queue_names())}.")
    return list(dict.fromkeys(queues))


def component_names(listened_queues: Iterable[str]) -> list[str]:
    """Return the heartbeat name of a process that listens to these queues."""
    queues = set(listened_queues)
    found = [health.WORKER] if queues - {RUN_QUEUE} else []
    return [*found, health.RUNNER] if RUN_QUEUE in queues else found


def kinds_in_queues(listened_queues: Iterable[str]) -> list[str]:
    """Return the kinds of work whose jobs are in these queues."""
    queues = set(listened_queues)
    return [name for name, kind in KINDS.items() if kind.queue in queues]


log = logging.getLogger(__name__)


def answer(kind: str, work_id: str) -> None:
    """Run a job in its own process, if its work still needs to be done."""
    try:
        job_function(kind)(work_id)
    except lease.NotAvailable:
        log.info("%s %s: nothing to do", kind, work_id)
    finally:
        metrics.flush()


def job_function(kind: str) -> Any:
    """Return the function that does this kind of work. It takes the row's id."""
    return import_function(KINDS[kind].job)


class Worker(rq.Worker):
    """RQ's forking worker with heartbeats for health checks, jobs that die with their worker, and a shutdown
    that releases leases."""

    log_result_lifespan = False

    def __init__(
        self, app: Flask, connection: redis.Redis, listened_queues: Sequence[str] = (), sandbox: str = ""
    ) -> None:
        self.process_name = health.process_name()  # the parent's name, also in the processes of jobs
        self.listened_queues = list(listened_queues) or default_queues()
        self.sandbox = sandbox
        self.since = clock.epoch()
        self.current_work: dict[str, Any] = {}
        super().__init__(
            self.listened_queues,
            name=f"{self.process_name.replace(':', '-')}-{uuid4().hex[:8]}",
            connection=connection,
            serializer=JSONSerializer,
            worker_ttl=limits.WORKER_TTL_SECONDS,
            job_monitoring_interval=limits.WORKER_HEARTBEAT_SECONDS,
        )
        self.app = app

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        """Send RQ's heartbeat and ours, which /health/ready reads."""
        super().heartbeat(timeout, pipeline)
        for component in component_names(self.listened_queues):
            health.record_heartbeat(self.connection, component, self.process_name, clock.epoch())
            health.report_activity(
                self.connection, component, self.process_name, {"since": self.since, **self.current_work}
            )
        if self.sandbox:
            health.report_value(self.connection, health.RUNNER, self.process_name, self.sandbox)

    def execute_job(self, job: Job, queue: rq.Queue) -> None:
        """Accept jobs of this application only, so that write access to Redis does not allow running other
        code."""
        if job.func_name != JOB_FUNCTION or not self._is_known(job.args):
            log.warning("rejected an unknown job: %s", job.id)
            job.delete()
            return
        kind, work_id = job.args
        self.current_work = {"kind": kind, "id": work_id, "at": clock.epoch()}
        try:
            super().execute_job(job, queue)
        finally:
            self.current_work = {}

    @staticmethod
    def _is_known(args: Any) -> bool:
        return len(args) == 2 and args[0] in KINDS and isinstance(args[1], str)

    def main_work_horse(self, job: Job, queue: rq.Queue) -> None:
        """Run the process of a job from fork to exit."""
        exit_with_parent(int(self.pid or 0))
        lease.stopping.clear()
        after_fork(self.app)
        with self.app.app_context():
            super().main_work_horse(job, queue)

    def setup_work_horse_signals(self) -> None:
        """In the process of a job: release the lease at the next check after SIGTERM."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, _request_stop)

    def handle_warm_shutdown_request(self) -> None:
        """In the parent: forward SIGTERM, so that a long job releases its lease and the worker can stop."""
        super().handle_warm_shutdown_request()  # type: ignore[no-untyped-call]  # RQ does not annotate it
        if self.horse_pid:
            os.kill(self.horse_pid, signal.SIGTERM)

    def maintain_heartbeats(self, job: Job) -> None:
        """While a job runs: send heartbeats, and kill a job that does not release its lease in time."""
        super().maintain_heartbeats(job)
        requested_at = self._shutdown_requested_date
        if requested_at and rq_now() - requested_at > timedelta(seconds=limits.RELEASE_SECONDS):
            log.warning(
                "%s did not release its lease within %d s and was killed", job.id, limits.RELEASE_SECONDS
            )
            self.kill_horse()


def _request_stop(_signum: int, _frame: FrameType | None) -> None:
    lease.stopping.set()


def preload(app: Flask, listened_queues: Sequence[str]) -> None:
    """Import what jobs need and compile the common SQL statements, so that every fork has both."""
    if health.WORKER in component_names(listened_queues):
        tuple(connectors.KINDS.values())
    with app.app_context():
        for kind in kinds_in_queues(listened_queues):
            job_function(kind)
            try:
                lease.acquire(kind, "", clock.now)
            except lease.NotAvailable:
                continue
            except SQLAlchemyError as error:
                log.warning("the database does not respond yet: %s", type(error).__name__)
        db.engine.dispose()  # so that forks do not share a connection


def main(argv: Sequence[str] = ()) -> None:
    """Process jobs until the worker is stopped."""
    parser = argparse.ArgumentParser(prog="python -m jobs.worker", allow_abbrev=False)
    parser.add_argument("--queues", type=parse_queues, default=default_queues(), metavar="A,B")
    listened_queues = list(parser.parse_args(argv).queues)
    app = create_application()
    preload(app, listened_queues)
    connection = create_redis_client(app.config["REDIS_URL"])
    sandbox = ""
    if RUN_QUEUE in listened_queues:
        # Log how this machine isolates programs, remove what earlier runners left behind, and prepare the common
        # environment in the background. A runner without a working sandbox keeps running and reports the reason in
        # each run.
        environments = importlib.import_module("jobs.scenarios.environments")
        program = importlib.import_module("jobs.scenarios.program")
        environments.prepare_base(app.config["SETTINGS"])
        with app.app_context():
            program.remove_ended_runs(app)
            db.engine.dispose()
        sandbox = str(program.isolation_name(app.config["SETTINGS"].sandbox))
    worker = Worker(app, connection, listened_queues, sandbox)
    try:
        worker.work(logging_level=app.config["SETTINGS"].log_level)
    finally:
        try:
            for component in component_names(listened_queues):
                health.record_end(connection, component, worker.process_name)
        except redis.RedisError as error:
            log.warning("could not deregister: %s", error)


if __name__ == "__main__":
    main(sys.argv[1:])
