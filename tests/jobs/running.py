"""Scenarios and runs for tests, executed in this process or by a separate runner.

`bare` replaces the sandbox and the environment by the Python of the tests, so that a run takes a tenth of a second;
`tests/jobs/test_scenario_real.py` goes through the real ones.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from jobs.scenarios import environments, program
from jobs.scenarios import run as scenarios_run
from tests.cast import Cast
from tests.fakes import bare_box
from tests.jobs.waiting import eventually
from webapp.access import actors
from webapp.extensions import db, read_session
from webapp.scenarios.models import Run, Scenario, ScenarioVersion
from webapp.scenarios.services import run_completion, runs

HELLO = "print('hello')"
# Says that it is there, and stays until it is ended.
STAYS = "import time\nprint('here')\ntime.sleep(60)"
STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: print('no'))\nprint('here')\n"
    + "time.sleep(60)\n" * 3
)


def bare(patch: Any) -> None:
    """Run programs without sandbox and environment. `patch(module, name, value)` sets an attribute."""
    patch(environments, "ensure", lambda *_, **__: Path(sys.prefix))
    patch(environments, "prepare_base", lambda _settings: None)
    patch(program, "mode", bare_box.mode)
    patch(scenarios_run, "start", bare_box.start)


class Running:
    """Runs in the project Main of Acme, asked for by Edith."""

    def __init__(self, app: Flask, cast: Cast) -> None:
        self.app, self.cast = app, cast

    @property
    def actor(self) -> actors.Actor:
        """Edith, as a program."""
        acme = actors.system_actor(self.cast.acme, self.cast.main, self.cast.blue)
        edith = self.cast.edith
        return replace(
            acme, kind="key", user_id=edith.user_id, key_id=edith.key_id, role="editor", plan="enterprise"
        )

    def scenario(
        self, code: str, *, version: int = 1, pins: Mapping[str, Any] | None = None, **more: Any
    ) -> str:
        """A saved scenario; its id."""
        settings = {"timeout_seconds": 60, "network": "api", "env": {}, "secrets": [], "writable_secrets": []}
        place = {"workspace_id": self.cast.acme, "project_id": self.cast.main, "team_id": self.cast.blue}
        made_by = {"created_by": self.cast.edith.user_id}
        with self.app.app_context():
            head = Scenario(name="Scenario", version=version, **{**settings, **place, **made_by, **more})
            db.session.add(head)
            db.session.flush()
            spec = {"name": "Scenario", "description": "", "code": code, "warnings": []}
            stored = dict(pins or {"requirements": [], "lock": "", "environment": ""})
            db.session.add(ScenarioVersion(scenario_id=head.id, number=version, spec=spec, pins=stored))
            db.session.commit()
            found = head.id
            db.session.remove()
        return found

    def queue(self, code: str, params: Mapping[str, str] | None = None, **more: Any) -> str:
        """A queued run of a new scenario; its id."""
        return self.again(self.scenario(code, **more), params)

    def again(self, scenario_id: str, params: Mapping[str, str] | None = None) -> str:
        """A queued run of a scenario; its id."""
        with self.app.app_context():
            head = db.session.get_one(Scenario, scenario_id)
            found = runs.queue(self.actor, head, params).id
            db.session.remove()
        return found

    def do(self, run_id: str) -> Run:
        """Have it done here; the run as it ended."""
        with self.app.app_context():
            scenarios_run.run(run_id)
            db.session.remove()
        return self.read(run_id)

    def run(self, code: str, params: Mapping[str, str] | None = None, **more: Any) -> Run:
        """Run a new scenario here."""
        return self.do(self.queue(code, params, **more))

    def read(self, run_id: str) -> Run:
        """The run as it is now."""
        with self.app.app_context(), read_session() as session:
            return session.get_one(Run, run_id)

    def log(self, run_id: str) -> str:
        """What its log says now."""
        with self.app.app_context():
            return "".join(run_completion.read_log(run_id))


@pytest.fixture
def running(app: Flask, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Running:
    """Runs without sandbox and environment."""
    bare(monkeypatch.setattr)
    return Running(app, cast)


@pytest.fixture
def beside(running):
    """Does a run in a thread; answers once the program has said that it is there."""
    threads = []

    def begin(run_id: str) -> threading.Thread:
        thread = threading.Thread(target=running.do, args=(run_id,))
        thread.start()
        threads.append(thread)
        eventually(lambda: "here" in running.log(run_id) or running.read(run_id).has_ended)
        return thread

    yield begin
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def cancel(running: Running, run_id: str) -> None:
    with running.app.app_context():
        runs.cancel(running.actor, db.session.get_one(Run, run_id, with_for_update=True))
        db.session.remove()
