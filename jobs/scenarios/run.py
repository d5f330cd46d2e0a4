"""Running a scenario: its key, its files and its environment are made, its program is started and watched to its end.

A run is not repeated: once its program has begun it may have acted. So a runner that is asked to stop gives the work
back only before that; after it the program has RUN_DRAIN_SECONDS to come to its end, and is then stopped.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from flask import Flask, current_app
from sqlalchemy import update

from jobs.lease import Fenced, Lease, leased, stopping
from jobs.sandbox import Boxed, Unprotected, start
from jobs.scenarios import environments, program
from jobs.scenarios.environments import NotMade
from jobs.scenarios.log import Pump, RunLog
from jobs.scenarios.program import Order, Place
from jobs.scenarios.usage import Chart
from webapp import clock, limits
from webapp.connectors import redaction
from webapp.errors import ApiError
from webapp.extensions import db, reading, writing
from webapp.files.services.outputs import store_outputs
from webapp.files.services.sync import sync
from webapp.scenarios.models import Run
from webapp.scenarios.services import environment_variables, run_completion, run_keys, run_logs, run_queue

log = logging.getLogger(__name__)

KIND: Final = "run"
# Why the sandbox ended a program: the code that the run then ends with.
_CAPS: Final = {
    "memory": "memory_limit",
    "processes": "process_limit",
    "cpu": "cpu_limit",
    "wall": "time_limit",
    "outputs": "disk_limit",
    "tmp": "disk_limit",
    "file": "disk_limit",
}


def run(run_id: str) -> None:
    """Do one run, if it is its turn."""
    with leased(KIND, run_id, may=run_queue.may_start(run_id)) as work:
        work.closing = lambda session: run_completion.close(session, run_id)
        Runner(work).carry_out()
    run_completion.settle(run_id)


class Refused(Exception):
    """The program cannot be started; `error` is the run's."""

    def __init__(self, code: str, message: str | None = None, **details: Any) -> None:
        self.error = run_completion.error(code, message, **details)
        super().__init__(code)


@dataclass
class End:
    """How a program ended, and what it was stopped for, if it was."""

    code: int | None
    reason: str | None = None
    """cancelled, lost, or a code of `run_end.CODES`."""
    details: dict[str, Any] = field(default_factory=dict)


class Runner:
    """One run."""

    def __init__(self, work: Lease) -> None:
        self.work = work
        self.app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
        self.settings = self.app.config["SETTINGS"]
        self.log = RunLog(work)
        self.chart = Chart()
        self.secrets: dict[str, str] = {}

    def carry_out(self) -> None:
        """To its end, which is then written; or, before the program begins, until the work must not go on here."""
        try:
            order = self._order()
            with program.made(self.settings, self.work.id, self.work.epoch, order.code) as place:
                environment = self._prepare(order, place)
                end = self._run(order, place, environment)
                self._end(end, place)
        except Refused as refused:
            self.work.finish("failed", error=refused.error)

    # --- Before the program -------------------------------------------------------------------------------------

    def _order(self) -> Order:
        found = program.order(self.work.id)
        if found is None:
            raise Refused("program_missing")
        if found.run.created_by is None:
            raise Refused("maker_missing")
        return found

    def _prepare(self, order: Order, place: Place) -> Path:
        """Secrets, files and environment. Raises what `Lease.check` raises, and Refused."""
        self.work.check()
        try:
            self.secrets = environment_variables.granted(
                order.run.workspace_id, order.run.project_id, order.run.settings["secrets"]
            )
        except environment_variables.Missing as missing:
            text = f'The secret "{missing.name}" is not there.'
            raise Refused("secret_missing", text, secret=missing.name) from None
        except ApiError as error:  # it is there, and cannot be opened
            raise Refused("secret_missing", error.message, **error.details) from None
        try:
            # In the open a program could write to what it is given, and so to what other runs are given.
            sync(
                order.run.workspace_id,
                order.run.project_id,
                place.uploads,
                link=self.settings.sandbox != "plain",
            )
        except ApiError as error:
            raise Refused("uploads_failed", error.message, **error.details) from None
        place.open_up()
        self.work.check()
        lock, name = order.pins.get("lock", ""), order.pins.get("environment", "")
        try:
            return environments.ensure(lock, name, self._tell, alive=self.work.check)
        except NotMade as error:
            self.log.say(error.reason)
            raise Refused("environment_failed", str(error), **error.details) from None

    def _tell(self, line: str) -> None:
        """Of the environment, while it is made."""
        if not self.log.lines and not self.log.waits:
            self.log.say("preparing the environment")
        self.log.say(line)

    # --- The program --------------------------------------------------------------------------------------------

    def _run(self, order: Order, place: Place, environment: Path) -> End:
        run = order.run
        self.work.check()
        with self.work.transaction() as session:
            key = run_keys.issue(session, run, str(run.created_by), clock.now())
        given = program.variables(self.settings, run, place, key, self.secrets)
        box = program.box(self.settings, run, place, environment, given)
        output, into = os.pipe()
        with contextlib.suppress(OSError, AttributeError):  # a system that has less is slower, no more
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, limits.RUN_PIPE_BYTES)
        cut_for = run.workspace_id if environment_variables.is_cut(run.workspace_id) else None
        self.hushed = (key, *self.secrets.values())
        pump = Pump(self.app, self.log, output, cut_for, (key,))
        self.log.flush()
        try:
            boxed = start(box, program.protected(self.settings.sandbox), into)
        except Unprotected as error:
            os.close(output)
            log.error("%s: %s", run.id, error)
            raise Refused("sandbox_missing") from None
        finally:
            os.close(into)
        pump.start()
        watch = Watch(self, boxed, pump, run.settings["timeout_seconds"])
        try:
            end = watch.to_the_end()
        finally:
            boxed.kill()
            if not pump.closed.wait(limits.RUN_DRAINED_SECONDS):
                pump.stop()
            pump.join()
            self.chart.measure(time.monotonic() - watch.began, boxed.usage())
            boxed.close()
        self.last = pump.lines.last
        return end

    def save_usage(self) -> None:
        """Write what the program has taken, and the rows it had made so far."""
        with reading() as session:
            rows = run_completion.rows_made(session, session.get_one(Run, self.work.id))
        self.work.save(rows_generated=rows, **self.chart.columns())

    # --- After it -----------------------------------------------------------------------------------------------

    def _end(self, end: End, place: Place) -> None:
        if end.reason == "lost":
            raise Fenced(self.work.id)
        told = {"exit_code": _exit_code(end), **self.chart.columns()}
        if end.reason == "cancelled":
            # Who cancels waits for the word, and not for what the program leaves behind.
            self.work.finish("cancelled", **told)
            kept = self._keep(place)[0]
            with writing() as session:
                session.execute(update(Run).where(Run.id == self.work.id).values(outputs=kept))
            return
        kept, fault = self._keep(place)
        error = self._error(end)
        status = "timed_out" if end.reason == "time_limit" else "failed" if error or fault else "completed"
        self.work.finish(status, error=error or fault, outputs=kept, **told)

    def _keep(self, place: Place) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """Store the outputs; the error of a run that went well otherwise, where that fails."""
        try:
            run = db.session.get_one(Run, self.work.id)
            stored = store_outputs(run, place.outputs)
        except ApiError as error:
            return [], run_completion.error("outputs_failed", error.message)
        except Exception:
            log.exception("the outputs of %s are not kept", self.work.id)
            return [], run_completion.error("outputs_failed")
        finally:
            db.session.remove()
        if not self.work.ended:
            for name, why in stored.refused:  # a name may hold line feeds, which would be lines of their own
                self.log.add([run_completion.MARK + " ".join(f"{name} is not kept: {why}".split())])
            self.log.flush()
        return stored.files, None

    def _error(self, end: End) -> dict[str, Any] | None:
        """The run's error; None for a program that came to its end."""
        if end.reason is not None:
            return run_completion.error(end.reason, **end.details)
        if end.code == 0:
            return None
        assert end.code is not None
        if end.code < 0:
            name = _signal(-end.code)
            return run_completion.error("program_failed", f"The program was ended by {name}.", signal=name)
        last = redaction.without(self.last.strip(), self.hushed)[: limits.RUN_MESSAGE_CHARS]
        told = f"The program ended with exit code {end.code}"
        return run_completion.error(
            "program_failed", f"{told}: {last}" if last else f"{told}.", last_line=last
        )


class Watch:
    """Looks after a program while it runs: asked to end it, it asks the program first, and then does not."""

    def __init__(self, runner: Runner, boxed: Boxed, pump: Pump, seconds: float) -> None:
        self.runner, self.boxed, self.pump = runner, boxed, pump
        self.seconds = seconds
        self.began = time.monotonic()
        self._saved = self.began
        self._drained: float | None = None

    def to_the_end(self) -> End:
        """Until it has ended; nothing of it lives then."""
        reason, kill_at = None, float("inf")
        while (code := self.boxed.wait(limits.RUN_POLL_SECONDS)) is None:
            now = time.monotonic()
            if reason is None and (reason := self._reason(now)) is not None:
                self._stop(reason)
                kill_at = now + limits.RUN_GRACE_SECONDS
            if now >= kill_at:
                self.boxed.kill()
            self._measure(now)
        if self.boxed.stopped_by is not None:
            reason = _CAPS.get(self.boxed.stopped_by, "disk_limit")
        return End(code, reason, self._details(reason))

    def _reason(self, now: float) -> str | None:
        """Why the program must end now; None where it may go on."""
        work = self.runner.work
        if work.fenced or self.pump.lost.is_set():
            return "lost"
        if work.cancelled:
            return "cancelled"
        if now - self.began >= self.seconds:
            return "time_limit"
        if self.pump.overflown.is_set():
            return "log_limit"
        return "worker_stopped" if self._drain(now) else None

    def _drain(self, now: float) -> bool:
        """Whether a runner that is asked to stop has waited for long enough."""
        if not stopping.is_set():
            return False
        if self._drained is None:
            self._drained = now
        return now - self._drained >= limits.RUN_DRAIN_SECONDS

    def _stop(self, reason: str) -> None:
        if reason in ("lost", "log_limit"):  # nothing that it says can be kept
            self.boxed.kill()
        else:
            self.boxed.terminate()

    def _details(self, reason: str | None) -> dict[str, Any]:
        limit: dict[str, Callable[[], Any]] = {
            "time_limit": lambda: {"timeout_seconds": self.seconds},
            "memory_limit": lambda: {"max_bytes": limits.RUN_MEMORY_BYTES},
            "process_limit": lambda: {"max_processes": limits.RUN_PROCESSES},
            "log_limit": lambda: {"max_bytes": limits.RUN_LOG_BYTES, "max_lines": limits.RUN_LOG_LINES},
        }
        return limit[reason]() if reason in limit else {}

    def _measure(self, now: float) -> None:
        """Take note of what is used, and write it now and then."""
        self.runner.chart.measure(now - self.began, self.boxed.usage())
        if now - self._saved < limits.RUN_USAGE_SAVED_SECONDS:
            return
        self._saved = now
        try:
            self.runner.save_usage()
        except Fenced:
            pass  # seen at the next look
        except Exception as error:  # only the chart stands still
            log.warning("%s: usage is not written: %s", self.runner.work.id, type(error).__name__)
        run_logs.wake(self.runner.work.id)


def _exit_code(end: End) -> int | None:
    """As the run tells it: 128 + the signal, as shells do, for a program that was ended by one; None where we did."""
    if end.code is None or (end.code < 0 and end.reason is not None):
        return None
    return end.code if end.code >= 0 else 128 - end.code


def _signal(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
