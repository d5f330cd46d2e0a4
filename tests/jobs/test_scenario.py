"""A run of a scenario, from its place in the queue to its end."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from jobs import lease
from jobs.sandbox import SandboxUnavailable
from jobs.scenarios import environments, program
from tests.conftest import app, database_url  # noqa: F401
from tests.jobs.running import HELLO, Running, running  # noqa: F401
from tests.jobs.waiting import eventually
from webapp import clock
from webapp.access import actors
from webapp.access.models import Membership, User, Workspace
from webapp.audit.models import AuditEntry
from webapp.connections.services import secrets
from webapp.extensions import db, read_session, write_session
from webapp.scenarios.models import Run


@pytest.fixture(autouse=True)
def no_stop():
    lease.stopping.clear()
    yield
    lease.stopping.clear()


def put_secret(running: Running, name: str, value: str) -> None:
    with running.app.app_context():
        secrets.put(actors.system_actor(running.cast.acme), name, value)
        db.session.remove()


def redact(running: Running) -> None:
    with running.app.app_context(), write_session() as session:
        session.get_one(Workspace, running.cast.acme).settings = {"redact_run_logs": True}


# --- The program ------------------------------------------------------------------------------------------------


def test_a_program_runs_to_its_end_and_its_log_is_what_it_printed(running):
    run = running.run(
        "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\nprint('no newline', end='')"
    )
    assert (run.status, run.exit_code, run.error) == ("completed", 0, None)
    assert running.log(run.id) == "to stdout\nto stderr\nno newline\n"
    assert run.line_count == 3
    assert run.cpu_ms is not None
    assert run.max_rss_bytes
    assert run.closed_at is not None
    assert run.usage, "there is a point of the chart"


def test_a_program_gets_the_variables_of_the_specification_and_their_twins(running):
    put_secret(running, "ERP_TOKEN", "tok-123456")
    code = "import os\nfor name in sorted(os.environ): print(name + '=' + os.environ[name])"
    run = running.run(code, {"WHO": "you"}, env={"WHO": "me", "MORE": "more"}, secrets=["ERP_TOKEN"])
    result = dict(line.split("=", 1) for line in running.log(run.id).splitlines())
    assert result["WHO"] == "you", "a parameter goes before the scenario's own variable"
    assert result["MORE"] == "more"
    assert result["ERP_TOKEN"] == "tok-123456"
    for front in ("SERVICE_", "DATAMAKER_"):
        assert result[front + "API_KEY"].startswith("rws_")
        assert result[front + "PROJECT_ID"] == running.cast.main
        assert result[front + "TEAM_ID"] == running.cast.blue
        assert result[front + "SCENARIO_ID"] == run.scenario_id
        assert result[front + "RUN_ID"] == run.id
        assert result[front + "WORKSPACE_UPLOADS"].endswith("uploads")
        assert result[front + "WORKSPACE_OUTPUTS"].endswith("outputs")
    assert result["SERVICE_API_URL"] == "http://127.0.0.1:8000"
    assert result["DATAMAKER_API_URL"] == "http://127.0.0.1:8000/compat"
    assert result["PYTHONUNBUFFERED"] == "1"


def test_the_error_of_a_program_has_its_exit_code_and_the_last_line_of_its_traceback(running):
    run = running.run("raise ValueError('no such table')")
    assert (run.status, run.exit_code) == ("failed", 1)
    assert run.error["code"] == "program_failed"
    assert run.error["message"] == "The program ended with exit code 1: ValueError: no such table"
    assert running.log(run.id).splitlines()[-1] == f"rowsmith: failed: {run.error['message']}"


def test_a_program_terminated_by_a_signal_names_it(running):
    run = running.run("import os\nos.kill(os.getpid(), 11)")
    assert (run.status, run.exit_code, run.error["details"]) == ("failed", 139, {"signal": "SIGSEGV"})


def test_no_secret_is_in_the_error_of_a_run_although_its_log_has_the_output(running):
    put_secret(running, "ERP_TOKEN", "tok-123456")
    run = running.run("import os\nraise SystemExit('bad ' + os.environ['ERP_TOKEN'])", secrets=["ERP_TOKEN"])
    assert "tok-123456" in running.log(run.id).splitlines()[0], "as printed"
    assert run.error["message"].endswith("bad ********")
    assert "tok-123456" not in running.log(run.id).splitlines()[1], "the last line is ours"
    with running.app.app_context(), read_session() as session:
        entries = session.scalars(
            select(AuditEntry).where(AuditEntry.object_id.in_([run.id, run.scenario_id]))
        )
        assert "tok-123456" not in repr([entry.details for entry in entries])


def test_stored_secrets_are_redacted_if_configured_including_new_ones(running):
    put_secret(running, "OLD", "old-secret-value")
    redact(running)
    code = (
        "import os, time\n"
        "print('old-secret-value', os.environ['SERVICE_API_KEY'], flush=True)\n"
        "while not os.path.exists(os.environ['GO']): time.sleep(0.01)\n"
        "print('a new-secret-value b')"
    )
    go = Path(running.app.config["SETTINGS"].data_dir) / "go"
    run_id = running.queue(code, {"GO": str(go)})
    thread = threading.Thread(target=running.do, args=(run_id,))
    thread.start()
    eventually(lambda: running.log(run_id))
    put_secret(running, "NEW", "new-secret-value")
    go.touch()
    thread.join(20)
    assert running.log(run_id) == "******** ********\na ******** b\n"


def test_outputs_are_stored_after_any_end(running):
    code = "import os\nopen(os.environ['SERVICE_WORKSPACE_OUTPUTS'] + '/a.txt', 'w').write('12345')\n"
    for more, status in (("", "completed"), ("raise SystemExit(3)", "failed")):
        run = running.run(code + more)
        assert run.status == status
        (stored,) = run.outputs
        assert (stored["name"], stored["size"]) == (f"outputs/{run.id}/a.txt", 5)


def test_a_run_leaves_nothing_on_the_machine(running):
    running.run("import os\nos.mkdir(os.environ['SERVICE_WORKSPACE_OUTPUTS'] + '/d', 0)")
    assert not list((Path(running.app.config["SETTINGS"].data_dir) / "runs").iterdir())


def test_a_run_only_mentions_its_environment_while_one_is_created(running, monkeypatch):
    result = environments.ensure

    def ensure(lock, name, write_line, check_alive=None):
        write_line("Installing 3 packages (once).")
        return result()

    monkeypatch.setattr(environments, "ensure", ensure)
    run = running.run(HELLO)
    lines = ["rowsmith: preparing the environment", "rowsmith: Installing 3 packages (once).", "hello"]
    assert running.log(run.id).splitlines() == lines


# --- What keeps it from starting --------------------------------------------------------------------------------


def test_a_missing_secret_is_named_and_nothing_is_run(running):
    run = running.run(HELLO, secrets=["GONE"])
    assert (run.status, run.error["code"]) == ("failed", "secret_missing")
    assert running.log(run.id) == 'rowsmith: failed: The secret "GONE" does not exist.\n'


def test_an_environment_that_cannot_be_created_fails_the_run_with_the_reason(running, monkeypatch):
    def ensure(*_, **__):
        raise environments.EnvironmentCreationError("no wheel of nosuch for this Python")

    monkeypatch.setattr(environments, "ensure", ensure)
    run = running.run(HELLO)
    assert run.error["code"] == "environment_failed"
    assert "nosuch" in running.log(run.id)


def test_no_program_runs_where_nothing_can_keep_it_apart(running, monkeypatch):
    def refuse(_setting):
        raise SandboxUnavailable("no namespaces")

    monkeypatch.setattr(program, "mode", refuse)
    run = running.run(HELLO)
    assert (run.status, run.error["code"]) == ("failed", "sandbox_missing")
    assert "hello" not in running.log(run.id)


def test_a_run_whose_maker_is_gone_is_not_run(running):
    run_id = running.queue(HELLO)
    with running.app.app_context(), write_session() as session:
        session.execute(update(Run).where(Run.id == run_id).values(created_by=None))
    assert running.do(run_id).error["code"] == "maker_missing"


@pytest.mark.parametrize("loss", ["removed", "lowered", "disabled"])
def test_a_run_does_not_start_once_the_user_who_started_it_lost_access(running, loss):
    """Neither the program nor the secrets of its scenario reach a process."""
    put_secret(running, "TOKEN", "the-secret-value")
    run_id = running.queue(HELLO, secrets=["TOKEN"])
    with running.app.app_context(), write_session() as session:
        maker = session.get_one(Run, run_id).created_by
        mine = Membership.user_id == maker
        if loss == "removed":
            session.execute(delete(Membership).where(mine))
        elif loss == "lowered":
            session.execute(update(Membership).where(mine).values(role="viewer"))
        else:
            session.get_one(User, maker).disabled_at = clock.now()
    run = running.do(run_id)
    assert (run.status, run.error["code"]) == ("failed", "maker_missing")
    assert "hello" not in running.log(run_id)
