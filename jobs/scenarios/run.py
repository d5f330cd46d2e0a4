"""Run a scenario: issue its API key, sync its files, prepare its environment, start its program and watch it
to its end.

A run is never repeated, because its program may have made changes. A runner that is stopping therefore releases a run
only before the program has started. After that, the program has RUN_DRAIN_SECONDS to finish before it is stopped.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sqlalchemy import update

from jobs.lease import Lease, LeaseLost, leased, stopping
from jobs.sandbox import SandboxHandle, SandboxUnavailable, Usage, start
from jobs.scenarios import environments, program
from jobs.scenarios.environments import EnvironmentFailed
from jobs.scenarios.log_reader import LogReader, RunLog
from jobs.scenarios.program import Order, Place
from webapp import clock, limits
from webapp.accounts.services import identity
from webapp.connectors import redaction
from webapp.errors import ApiError
from webapp.extensions import application, db, reading, writing
from webapp.files.services import sync
from webapp.operations import retention
from webapp.scenarios.models import Run
from webapp.scenarios.services import environment_variables, run_completion
from webapp.scenarios.services.run_completion import store_outputs

log = logging.getLogger(__name__)


class Chart:
    """Usage samples for a chart. When there are too many, every second one is dropped and the interval
    doubles."""

    def __init__(self) -> None:
        self.max_memory = 0
        self.cpu_ms = 0
        self._points: list[list[float]] = []
        self._every = limits.RUN_USAGE_SECONDS
        self._next = 0.0

    def measure(self, seconds: float, usage: Usage) -> None:
        """Add a sample, `seconds` after the start."""
        self.max_memory = max(self.max_memory, usage.max_memory_bytes, usage.memory_bytes)
        self.cpu_ms = max(self.cpu_ms, usage.cpu_ms)
        if seconds < self._next:
            return
        self._points.append([round(seconds, 2), usage.memory_bytes, usage.cpu_ms])
        self._next = seconds + self._every
        if len(self._points) > limits.RUN_USAGE_POINTS:
            self._points = self._points[::2]
            self._every *= 2

    def columns(self) -> dict[str, Any]:
        """Return the columns of the run's row."""
        return {"usage": [*self._points], "max_rss_bytes": self.max_memory, "cpu_ms": self.cpu_ms}


KIND: Final = "run"
# Error codes by the sandbox limit that ended the program.
_ERROR_CODES: Final = {
    "memory": "memory_limit",
    "processes": "process_limit",
    "cpu": "cpu_limit",
    "wall": "time_limit",
    "outputs": "disk_limit",
    "tmp": "disk_limit",
    "file": "disk_limit",
}


def run(run_id: str) -> None:
    """Execute one run if it may start."""
    with leased(KIND, run_id, may=run_completion.may_start(run_id)) as work:
        work.on_finish = lambda session: run_completion.close(session, run_id)
        Runner(work).carry_out()
    run_completion.settle(run_id)


class CannotStart(Exception):
    """The program cannot be started. `error` is the run's error."""

    def __init__(self, code: str, message: str | None = None, **details: Any) -> None:
        self.error = run_completion.error(code, message, **details)
        super().__init__(code)


@dataclass
class End:
    """How a program ended, and the reason if it was stopped."""

    code: int | None
    reason: str | None = None
    """`cancelled`, `lost`, or a code of `run_completion.CODES`."""
    details: dict[str, Any] = field(default_factory=dict)


class Runner:
    """Executes one run."""

    def __init__(self, work: Lease) -> None:
        self.work = work
        self.app = application()
        self.settings = self.app.config["SETTINGS"]
        self.log = RunLog(work)
        self.chart = Chart()
        self.secrets: dict[str, str] = {}

    def carry_out(self) -> None:
        """Execute the run and write its final state."""
        try:
            order = program.order(self.work.id)
            if order is None:
                raise CannotStart("program_missing")
            # If the user lost access while the run was queued, the program must not start with the secrets.
            maker = order.run.created_by
            actor = identity.by_user(maker, order.run.project_id) if maker is not None else None
            if actor is None or not actor.can("run", order.run.team_id):
                raise CannotStart("maker_missing")
            retention.make_room_for_log(order.run.workspace_id, clock.now())
            with program.run_folders(self.settings, self.work.id, self.work.epoch, order.code) as place:
                environment = self._prepare(order, place)
                end = self._run(order, place, environment)
                self._end(end, place)
        except CannotStart as refused:
            self.work.finish("failed", error=refused.error)

    # --- Before the program -------------------------------------------------------------------------------------

    def _prepare(self, order: Order, place: Place) -> Path:
        """Load secrets, sync files and prepare the environment. Raises CannotStart and what `Lease.check` raises."""
        self.work.check()
        try:
            self.secrets = environment_variables.granted(
                order.run.workspace_id, order.run.project_id, order.run.settings["secrets"]
            )
        except environment_variables.UnknownSecret as missing:
            text = f'The secret "{missing.name}" does not exist.'
            raise CannotStart("secret_missing", text, secret=missing.name) from None
        except ApiError as error:  # the secret exists but cannot be decrypted
            raise CannotStart("secret_missing", error.message, **error.details) from None
        try:
            # Without a sandbox a program could write to its uploads, and so to those of other runs.
            sync(
                order.run.workspace_id,
                order.run.project_id,
                place.uploads,
                link=self.settings.sandbox != "plain",
            )
        except ApiError as error:
            raise CannotStart("uploads_failed", error.message, **error.details) from None
        place.open_up()
        self.work.check()
        lock, name = order.pins.get("lock", ""), order.pins.get("environment", "")
        try:
            return environments.ensure(lock, name, self._log_line, alive=self.work.check)
        except EnvironmentFailed as error:
            self.log.say(error.reason)
            raise CannotStart("environment_failed", str(error), **error.details) from None

    def _log_line(self, line: str) -> None:
        """Write a line about the environment to the log."""
        if not self.log.lines and not self.log.waits:
            self.log.say("preparing the environment")
        self.log.say(line)

    # --- The program --------------------------------------------------------------------------------------------

    def _run(self, order: Order, place: Place, environment: Path) -> End:
        run = order.run
        self.work.check()
        with self.work.transaction() as session:
            key = run_completion.issue(session, run, str(run.created_by), clock.now())
        variables = program.variables(self.settings, run, place, key, self.secrets)
        box = program.sandbox_spec(self.settings, run, place, environment, variables)
        output, into = os.pipe()
        with contextlib.suppress(OSError, AttributeError):  # a smaller pipe is only slower
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, limits.RUN_PIPE_BYTES)
        cut_for = run.workspace_id if environment_variables.is_cut(run.workspace_id) else None
        self.hushed = (key, *self.secrets.values())
        log_reader = LogReader(self.app, self.log, output, cut_for, (key,))
        self.log.flush()
        try:
            handle = start(box, program.protected(self.settings.sandbox), into)
        except SandboxUnavailable as error:
            os.close(output)
            log.error("%s: %s", run.id, error)
            raise CannotStart("sandbox_missing") from None
        finally:
            os.close(into)
        log_reader.start()
        watch = Watch(self, handle, log_reader, run.settings["timeout_seconds"])
        try:
            end = watch.to_the_end()
        finally:
            handle.kill()
            if not log_reader.closed.wait(limits.RUN_DRAINED_SECONDS):
                log_reader.stop()
            log_reader.join()
            self.chart.measure(time.monotonic() - watch.began, handle.usage())
            handle.close()
        self.last = log_reader.lines.last
        return end

    def save_usage(self) -> None:
        """Save the resource usage and the number of rows generated so far."""
        with reading() as session:
            rows = run_completion.count_generated_rows(session, session.get_one(Run, self.work.id))
        self.work.save(rows_generated=rows, **self.chart.columns())

    # --- After it -----------------------------------------------------------------------------------------------

    def _end(self, end: End, place: Place) -> None:
        if end.reason == "lost":
            raise LeaseLost(self.work.id)
        exit_code = end.code
        if exit_code is not None and exit_code < 0:
            # Ended by a signal: 128 + its number, as shells report it, but None if the runner sent it.
            exit_code = 128 - exit_code if end.reason is None else None
        details = {"exit_code": exit_code, **self.chart.columns()}
        if end.reason == "cancelled":
            # Report the cancel first, then store the outputs.
            self.work.finish("cancelled", **details)
            stored = self._store_outputs(place)[0]
            with writing() as session:
                session.execute(update(Run).where(Run.id == self.work.id).values(outputs=stored))
            return
        stored, fault = self._store_outputs(place)
        error = self._error(end)
        status = "timed_out" if end.reason == "time_limit" else "failed" if error or fault else "completed"
        self.work.finish(status, error=error or fault, outputs=stored, **details)

    def _store_outputs(self, place: Place) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """Store the outputs. Return the stored files, and an error if storing them failed."""
        try:
            run = db.session.get_one(Run, self.work.id)
            stored = store_outputs(run, place.outputs)
        except ApiError as error:
            return [], run_completion.error("outputs_failed", error.message)
        except Exception:
            log.exception("could not store the outputs of %s", self.work.id)
            return [], run_completion.error("outputs_failed")
        finally:
            db.session.remove()
        if not self.work.ended:
            for name, why in stored.refused:  # a name may contain line feeds, which would be lines of the log
                self.log.add([run_completion.MARK + " ".join(f"{name} was not stored: {why}".split())])
            self.log.flush()
        return stored.files, None

    def _error(self, end: End) -> dict[str, Any] | None:
        """Return the run's error, or None if the program succeeded."""
        if end.reason is not None:
            return run_completion.error(end.reason, **end.details)
        if end.code == 0:
            return None
        assert end.code is not None
        if end.code < 0:
            name = f"signal {-end.code}"
            with contextlib.suppress(ValueError):
                name = signal.Signals(-end.code).name
            return run_completion.error(
                "program_failed", f"The program was terminated by {name}.", signal=name
            )
        last = redaction.without(self.last.strip(), self.hushed)[: limits.RUN_MESSAGE_CHARS]
        message = f"The program ended with exit code {end.code}"
        return run_completion.error(
            "program_failed", f"{message}: {last}" if last else f"{message}.", last_line=last
        )


class Watch:
    """Watches a program while it runs, and stops it: SIGTERM first, SIGKILL after a grace period."""

    def __init__(self, runner: Runner, handle: SandboxHandle, log_reader: LogReader, seconds: float) -> None:
        self.runner, self.handle, self.log_reader = runner, handle, log_reader
        self.seconds = seconds
        self.began = time.monotonic()
        self._saved = self.began
        self._drained: float | None = None

    def to_the_end(self) -> End:
        """Wait until all of the program's processes have ended."""
        reason, kill_at = None, float("inf")
        while (code := self.handle.wait(limits.RUN_POLL_SECONDS)) is None:
            now = time.monotonic()
            if reason is None and (reason := self._reason(now)) is not None:
                if reason in ("lost", "log_limit"):  # nothing that it prints could be stored
                    self.handle.kill()
                else:
                    self.handle.terminate()
                kill_at = now + limits.RUN_GRACE_SECONDS
            if now >= kill_at:
                self.handle.kill()
            self._measure(now)
        if self.handle.stopped_by is not None:
            reason = _ERROR_CODES.get(self.handle.stopped_by, "disk_limit")
        details: dict[str | None, dict[str, Any]] = {
            "time_limit": {"timeout_seconds": self.seconds},
            "memory_limit": {"max_bytes": limits.RUN_MEMORY_BYTES},
            "process_limit": {"max_processes": limits.RUN_PROCESSES},
            "log_limit": {"max_bytes": limits.RUN_LOG_BYTES, "max_lines": limits.RUN_LOG_LINES},
        }
        return End(code, reason, details.get(reason, {}))

    def _reason(self, now: float) -> str | None:
        """Return why the program must be stopped, or None."""
        work = self.runner.work
        if work.lost or self.log_reader.lost.is_set():
            return "lost"
        if work.cancelled:
            return "cancelled"
        if now - self.began >= self.seconds:
            return "time_limit"
        if self.log_reader.overflown.is_set():
            return "log_limit"
        if stopping.is_set():
            if self._drained is None:
                self._drained = now
            if now - self._drained >= limits.RUN_DRAIN_SECONDS:
                return "worker_stopped"
        return None

    def _measure(self, now: float) -> None:
        """Record the resource usage, and save it from time to time."""
        self.runner.chart.measure(now - self.began, self.handle.usage())
        if now - self._saved < limits.RUN_USAGE_SAVED_SECONDS:
            return
        self._saved = now
        try:
            self.runner.save_usage()
        except LeaseLost:
            pass  # noticed at the next check
        except Exception as error:  # only the chart misses a point
            log.warning("%s: could not save the usage: %s", self.runner.work.id, type(error).__name__)
        run_completion.wake(self.runner.work.id)
