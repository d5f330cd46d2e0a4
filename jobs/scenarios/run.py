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
from jobs.scenarios.environments import EnvironmentCreationError
from jobs.scenarios.log_reader import LogReader, RunLog
from jobs.scenarios.program import RunFolders, RunInput
from webapp import clock, limits
from webapp.accounts.services import identity
from webapp.connectors import redaction
from webapp.errors import ApiError
from webapp.extensions import application, db, read_session, write_session
from webapp.files.services import sync
from webapp.operations import retention
from webapp.scenarios.models import Run
from webapp.scenarios.services import environment_variables, run_completion
from webapp.scenarios.services.run_completion import store_outputs

log = logging.getLogger(__name__)


class UsageChart:
    """Usage samples for a chart. When there are too many, every second one is dropped and the interval
    doubles."""

    def __init__(self) -> None:
        self.max_memory = 0
        self.cpu_ms = 0
        self._points: list[list[float]] = []
        self._interval = limits.RUN_USAGE_SECONDS
        self._next_sample = 0.0

    def measure(self, seconds: float, usage: Usage) -> None:
        """Add a sample, `seconds` after the start."""
        self.max_memory = max(self.max_memory, usage.max_memory_bytes, usage.memory_bytes)
        self.cpu_ms = max(self.cpu_ms, usage.cpu_ms)
        if seconds < self._next_sample:
            return
        self._points.append([round(seconds, 2), usage.memory_bytes, usage.cpu_ms])
        self._next_sample = seconds + self._interval
        if len(self._points) > limits.RUN_USAGE_POINTS:
            self._points = self._points[::2]
            self._interval *= 2

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
    with leased(KIND, run_id, condition=run_completion.may_start_condition(run_id)) as work:
        work.on_finish = lambda session: run_completion.record_end(session, run_id)
        Runner(work).execute()
    run_completion.settle(run_id)


class CannotStartError(Exception):
    """The program cannot be started. `error` is the run's error."""

    def __init__(self, code: str, message: str | None = None, **details: Any) -> None:
        self.error = run_completion.run_error(code, message, **details)
        super().__init__(code)


@dataclass
class ProgramExit:
    """How a program ended, and the reason if it was stopped."""

    exit_code: int | None
    reason: str | None = None
    """`cancelled`, `lost`, or a code of `run_completion.ERROR_MESSAGES`."""
    details: dict[str, Any] = field(default_factory=dict)


class Runner:
    """Executes one run."""

    def __init__(self, work: Lease) -> None:
        self.lease = work
        self.app = application()
        self.settings = self.app.config["SETTINGS"]
        self.log = RunLog(work)
        self.chart = UsageChart()
        self.secrets: dict[str, str] = {}

    def execute(self) -> None:
        """Execute the run and write its final state."""
        try:
            run_input = program.load_run_input(self.lease.id)
            if run_input is None:
                raise CannotStartError("program_missing")
            # If the user lost access while the run was queued, the program must not start with the secrets.
            user_id = run_input.run.created_by
            actor = identity.actor_of_user(user_id, run_input.run.project_id) if user_id is not None else None
            if actor is None or not actor.can("run", run_input.run.team_id):
                raise CannotStartError("maker_missing")
            retention.make_room_for_log(run_input.run.workspace_id, clock.now())
            with program.run_folders(
                self.settings, self.lease.id, self.lease.epoch, run_input.code
            ) as folders:
                environment = self._prepare(run_input, folders)
                program_exit = self._run_program(run_input, folders, environment)
                self._finish(program_exit, folders)
        except CannotStartError as error:
            self.lease.finish("failed", error=error.error)

    # --- Before the program -------------------------------------------------------------------------------------

    def _prepare(self, run_input: RunInput, folders: RunFolders) -> Path:
        """Load secrets, sync files and prepare the environment. Raises CannotStart and what `Lease.check` raises."""
        self.lease.check()
        try:
            self.secrets = environment_variables.granted_secrets(
                run_input.run.workspace_id, run_input.run.project_id, run_input.run.settings["secrets"]
            )
        except environment_variables.UnknownSecretError as missing:
            text = f'The secret "{missing.name}" does not exist.'
            raise CannotStartError("secret_missing", text, secret=missing.name) from None
        except ApiError as error:  # the secret exists but cannot be decrypted
            raise CannotStartError("secret_missing", error.message, **error.details) from None
        try:
            # Without a sandbox a program could write to its uploads, and so to those of other runs.
            sync(
                run_input.run.workspace_id,
                run_input.run.project_id,
                folders.uploads,
                link=self.settings.sandbox != "plain",
            )
        except ApiError as error:
            raise CannotStartError("uploads_failed", error.message, **error.details) from None
        folders.make_readable()
        self.lease.check()
        lock, name = run_input.pins.get("lock", ""), run_input.pins.get("environment", "")
        try:
            return environments.ensure(lock, name, self._log_line, check_alive=self.lease.check)
        except EnvironmentCreationError as error:
            self.log.write_service_message(error.reason)
            raise CannotStartError("environment_failed", str(error), **error.details) from None

    def _log_line(self, line: str) -> None:
        """Write a line about the environment to the log."""
        if not self.log.line_count and not self.log.has_buffered_lines:
            self.log.write_service_message("preparing the environment")
        self.log.write_service_message(line)

    # --- The program --------------------------------------------------------------------------------------------

    def _run_program(self, run_input: RunInput, folders: RunFolders, environment: Path) -> ProgramExit:
        run = run_input.run
        self.lease.check()
        with self.lease.transaction() as session:
            key = run_completion.issue_key(session, run, str(run.created_by), clock.now())
        variables = program.environment_variables_of(self.settings, run, folders, key, self.secrets)
        spec = program.sandbox_spec(self.settings, run, folders, environment, variables)
        output, write_end = os.pipe()
        with contextlib.suppress(OSError, AttributeError):  # a smaller pipe is only slower
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, limits.RUN_PIPE_BYTES)
        redacted_workspace = (
            run.workspace_id if environment_variables.is_redaction_enabled(run.workspace_id) else None
        )
        self.secrets_to_redact = (key, *self.secrets.values())
        log_reader = LogReader(self.app, self.log, output, redacted_workspace, (key,))
        self.log.flush()
        try:
            handle = start(spec, program.isolation_mode(self.settings.sandbox), write_end)
        except SandboxUnavailable as error:
            os.close(output)
            log.error("%s: %s", run.id, error)
            raise CannotStartError("sandbox_missing") from None
        finally:
            os.close(write_end)
        log_reader.start()
        watcher = ProgramWatcher(self, handle, log_reader, run.settings["timeout_seconds"])
        try:
            program_exit = watcher.wait_for_exit()
        finally:
            handle.kill()
            if not log_reader.closed.wait(limits.RUN_DRAINED_SECONDS):
                log_reader.stop()
            log_reader.join()
            self.chart.measure(time.monotonic() - watcher.started_at, handle.usage())
            handle.close()
        self.last_line = log_reader.lines.last_line
        return program_exit

    def save_usage(self) -> None:
        """Save the resource usage and the number of rows generated so far."""
        with read_session() as session:
            rows = run_completion.count_generated_rows(session, session.get_one(Run, self.lease.id))
        self.lease.save(rows_generated=rows, **self.chart.columns())

    # --- After it -----------------------------------------------------------------------------------------------

    def _finish(self, program_exit: ProgramExit, folders: RunFolders) -> None:
        if program_exit.reason == "lost":
            raise LeaseLost(self.lease.id)
        exit_code = program_exit.exit_code
        if exit_code is not None and exit_code < 0:
            # Ended by a signal: 128 + its number, as shells report it, but None if the runner sent it.
            exit_code = 128 - exit_code if program_exit.reason is None else None
        details = {"exit_code": exit_code, **self.chart.columns()}
        if program_exit.reason == "cancelled":
            # Report the cancel first, then store the outputs.
            self.lease.finish("cancelled", **details)
            stored = self._store_outputs(folders)[0]
            with write_session() as session:
                session.execute(update(Run).where(Run.id == self.lease.id).values(outputs=stored))
            return
        stored, fault = self._store_outputs(folders)
        error = self._run_error(program_exit)
        status = (
            "timed_out"
            if program_exit.reason == "time_limit"
            else "failed"
            if error or fault
            else "completed"
        )
        self.lease.finish(status, error=error or fault, outputs=stored, **details)

    def _store_outputs(self, folders: RunFolders) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """Store the outputs. Return the stored files, and an error if storing them failed."""
        try:
            run = db.session.get_one(Run, self.lease.id)
            stored = store_outputs(run, folders.outputs)
        except ApiError as error:
            return [], run_completion.run_error("outputs_failed", error.message)
        except Exception:
            log.exception("could not store the outputs of %s", self.lease.id)
            return [], run_completion.run_error("outputs_failed")
        finally:
            db.session.remove()
        if not self.lease.is_finished:
            for (
                name,
                why,
            ) in stored.rejected:  # a name may contain line feeds, which would be lines of the log
                self.log.add([run_completion.LOG_PREFIX + " ".join(f"{name} was not stored: {why}".split())])
            self.log.flush()
        return stored.files, None

    def _run_error(self, program_exit: ProgramExit) -> dict[str, Any] | None:
        """Return the run's error, or None if the program succeeded."""
        if program_exit.reason is not None:
            return run_completion.run_error(program_exit.reason, **program_exit.details)
        if program_exit.exit_code == 0:
            return None
        assert program_exit.exit_code is not None
        if program_exit.exit_code < 0:
            name = f"signal {-program_exit.exit_code}"
            with contextlib.suppress(ValueError):
                name = signal.Signals(-program_exit.exit_code).name
            return run_completion.run_error(
                "program_failed", f"The program was terminated by {name}.", signal=name
            )
        last = redaction.redact(self.last_line.strip(), self.secrets_to_redact)[: limits.RUN_MESSAGE_CHARS]
        message = f"The program ended with exit code {program_exit.exit_code}"
        return run_completion.run_error(
            "program_failed", f"{message}: {last}" if last else f"{message}.", last_line=last
        )


class ProgramWatcher:
    """Watches a program while it runs, and stops it: SIGTERM first, SIGKILL after a grace period."""

    def __init__(self, runner: Runner, handle: SandboxHandle, log_reader: LogReader, seconds: float) -> None:
        self.runner, self.handle, self.log_reader = runner, handle, log_reader
        self.seconds = seconds
        self.started_at = time.monotonic()
        self._usage_saved_at = self.started_at
        self._drain_started_at: float | None = None

    def wait_for_exit(self) -> ProgramExit:
        """Wait until all of the program's processes have ended."""
        reason, kill_at = None, float("inf")
        while (code := self.handle.wait(limits.RUN_POLL_SECONDS)) is None:
            now = time.monotonic()
            if reason is None and (reason := self._stop_reason(now)) is not None:
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
        return ProgramExit(code, reason, details.get(reason, {}))

    def _stop_reason(self, now: float) -> str | None:
        """Return why the program must be stopped, or None."""
        lease = self.runner.lease
        if lease.is_lost or self.log_reader.lease_lost.is_set():
            return "lost"
        if lease.is_cancelled:
            return "cancelled"
        if now - self.started_at >= self.seconds:
            return "time_limit"
        if self.log_reader.log_full.is_set():
            return "log_limit"
        if stopping.is_set():
            if self._drain_started_at is None:
                self._drain_started_at = now
            if now - self._drain_started_at >= limits.RUN_DRAIN_SECONDS:
                return "worker_stopped"
        return None

    def _measure(self, now: float) -> None:
        """Record the resource usage, and save it from time to time."""
        self.runner.chart.measure(now - self.started_at, self.handle.usage())
        if now - self._usage_saved_at < limits.RUN_USAGE_SAVED_SECONDS:
            return
        self._usage_saved_at = now
        try:
            self.runner.save_usage()
        except LeaseLost:
            pass  # noticed at the next check
        except Exception as error:  # only the chart misses a point
            log.warning("%s: could not save the usage: %s", self.runner.lease.id, type(error).__name__)
        run_completion.notify_followers(self.runner.lease.id)
