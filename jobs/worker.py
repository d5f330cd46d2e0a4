"""The worker: an RQ worker that forks a process for each ring, and answers nothing but our own rings.

`python -m jobs.worker` runs one, `python -m jobs.worker --queues runs` a runner: a worker for the programs of scenarios
alone. The parent imports the engine and builds the application before it forks, so that a small job costs a fork and
not an import. A job's process dies with its parent: otherwise killing the parent alone
would leave a second sender alive beside the one that takes its work over.
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
from jobs.process import application, die_with, named
from webapp import clock, connectors, limits
from webapp.extensions import after_fork, db, make_redis
from webapp.operations import health, metrics
from webapp.operations.jobs_queue import ANSWER, KINDS

RUNS = "runs"  # of runners: a program that runs for an hour must not keep a push or an export waiting


def names() -> list[str]:
    """Every queue once, in the order of the table of kinds: a worker takes from the first that has a ring."""
    return list(dict.fromkeys(kind.queue for kind in KINDS.values()))


def ordinary() -> list[str]:
    """What a worker listens to that is not told otherwise."""
    return [name for name in names() if name != RUNS]


def chosen(text: str) -> list[str]:
    """Queues named with commas between. ValueError for one that is not there, or for none."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in names()]
    if unknown or not wanted:
        told = f"There is no queue {unknown[0]!r}." if unknown else "No queue is named."
        raise ValueError(f"{told} There are: {', '.join(names())}.")
    return list(dict.fromkeys(wanted))


def parts(listened: Iterable[str]) -> list[str]:
    """As what a process that listens to some queues beats."""
    held = set(listened)
    found = [health.WORKER] if held - {RUNS} else []
    return [*found, health.RUNNER] if RUNS in held else found


def kinds(listened: Iterable[str]) -> list[str]:
    """The kinds of work whose rings come by some queues."""
    held = set(listened)
    return [name for name, kind in KINDS.items() if kind.queue in held]


log = logging.getLogger(__name__)


def answer(kind: str, work_id: str) -> None:
    """What a ring calls, in the job's process: do the work, if it is still there to be done."""
    try:
        job_of(kind)(work_id)
    except lease.NotFree:
        log.info("%s %s: nothing to do", kind, work_id)
    finally:
        metrics.hand_over_now()


def job_of(kind: str) -> Any:
    """The function that does a kind of work; it takes the id of the row."""
    return named(KINDS[kind].job)


class Worker(rq.Worker):
    """RQ's forking worker with our heartbeat, our parentage and a drain that hands leases back."""

    log_result_lifespan = False

    def __init__(
        self, app: Flask, connection: redis.Redis, listened: Sequence[str] = (), sandbox: str = ""
    ) -> None:
        self.process = health.process_name()  # the parent's, in its job's processes too
        self.listened = list(listened) or ordinary()
        self.sandbox = sandbox
        self.since = clock.epoch()
        self.doing: dict[str, Any] = {}
        super().__init__(
            self.listened,
            name=f"{self.process.replace(':', '-')}-{uuid4().hex[:8]}",
            connection=connection,
            serializer=JSONSerializer,
            worker_ttl=limits.WORKER_TTL_SECONDS,
            job_monitoring_interval=limits.WORKER_BEAT_SECONDS,
        )
        self.app = app

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        """RQ's own, at every turn of its loops; with it goes ours, which /health/ready reads."""
        super().heartbeat(timeout, pipeline)
        for part in parts(self.listened):
            health.beat(self.connection, part, self.process, clock.epoch())
            health.describe(self.connection, part, self.process, {"since": self.since, **self.doing})
        if self.sandbox:
            health.tell(self.connection, health.RUNNER, self.process, self.sandbox)

    def execute_job(self, job: Job, queue: rq.Queue) -> None:
        """Fork for our own rings only: whoever can write to Redis must not choose what runs here."""
        if job.func_name != ANSWER or not self._known(job.args):
            log.warning("dropped a ring for something else: %s", job.id)
            job.delete()
            return
        kind, work_id = job.args
        self.doing = {"kind": kind, "id": work_id, "at": clock.epoch()}
        try:
            super().execute_job(job, queue)
        finally:
            self.doing = {}

    @staticmethod
    def _known(args: Any) -> bool:
        return len(args) == 2 and args[0] in KINDS and isinstance(args[1], str)

    def main_work_horse(self, job: Job, queue: rq.Queue) -> None:
        """The job's process, from fork to exit."""
        die_with(int(self.pid or 0))
        lease.stopping.clear()
        after_fork(self.app)
        with self.app.app_context():
            super().main_work_horse(job, queue)

    def setup_work_horse_signals(self) -> None:
        """In the job's process: SIGTERM asks the work to hand itself back at its next check."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, _ask_to_stop)

    def handle_warm_shutdown_request(self) -> None:
        """In the parent, on SIGTERM: pass it on, so that a long job ends its turn instead of being waited for."""
        super().handle_warm_shutdown_request()
        if self.horse_pid:
            os.kill(self.horse_pid, signal.SIGTERM)

    def maintain_heartbeats(self, job: Job) -> None:
        """While a job runs: beat, and kill what does not hand back in time."""
        super().maintain_heartbeats(job)
        asked = self._shutdown_requested_date
        if asked and rq_now() - asked > timedelta(seconds=limits.HAND_BACK_SECONDS):
            log.warning("%s did not hand back in %d s; killed", job.id, limits.HAND_BACK_SECONDS)
            self.kill_horse()


def _ask_to_stop(_signum: int, _frame: FrameType | None) -> None:
    lease.stopping.set()


def preload(app: Flask, listened: Sequence[str]) -> None:
    """Import what jobs will need, and let the database layer learn its statements, so that every fork has both."""
    if health.WORKER in parts(listened):
        importlib.import_module("webapp.engine")
    tuple(connectors.KINDS.values())
    with app.app_context():
        for kind in kinds(listened):
            job_of(kind)
            try:
                lease.take(kind, "", clock.now)
            except lease.NotFree:
                continue
            except SQLAlchemyError as error:
                log.warning("the database does not answer yet: %s", type(error).__name__)
        db.engine.dispose()  # no connection is there to be shared by a fork


def main(argv: Sequence[str] = ()) -> None:
    """Work until asked to stop."""
    listened = _arguments(argv)
    app = application()
    preload(app, listened)
    connection = make_redis(app.config["REDIS_URL"])
    worker = Worker(app, connection, listened, _protection(app) if RUNS in listened else "")
    try:
        worker.work(logging_level=app.config["SETTINGS"].log_level)
    finally:
        try:
            for part in parts(listened):
                health.gone(connection, part, worker.process)
        except redis.RedisError as error:
            log.warning("no farewell: %s", error)


def _arguments(argv: Sequence[str]) -> list[str]:
    """The queues to listen to. Leaves with 2 for one that is not there."""
    parser = argparse.ArgumentParser(prog="python -m jobs.worker", allow_abbrev=False)
    parser.add_argument("--queues", type=chosen, default=ordinary(), metavar="A,B")
    return list(parser.parse_args(argv).queues)


def _protection(app: Flask) -> str:
    """How this machine keeps programs apart; a runner that cannot do it is there all the same, and says so of each
    run. What earlier runners left behind goes, and the common environment is made beside."""
    environments = importlib.import_module("jobs.scenarios.environments")
    program = importlib.import_module("jobs.scenarios.program")
    environments.prepare_base()
    with app.app_context():
        program.clear(app)
        db.engine.dispose()
    return str(program.protection(app.config["SETTINGS"].sandbox))


if __name__ == "__main__":
    main(sys.argv[1:])
