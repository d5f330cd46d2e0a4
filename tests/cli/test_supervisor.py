"""The supervisor with small parts: what it says and does when they misbehave."""

from __future__ import annotations

import functools
import os
import signal
import threading
from dataclasses import replace

import pytest

from tests.cli.conftest import processes
from tests.jobs.waiting import eventually
from webapp import limits
from webapp.cli import supervisor as logs
from webapp.cli.datadir import CliError
from webapp.cli.supervisor import ProcessSpec, StopRequested, Supervisor, exec_program


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path, told, monkeypatch):
    monkeypatch.setattr(limits, "RESTART_PAUSES", (0.0, 0.0))
    result = Supervisor(tmp_path, tmp_path, told.append)
    with result.signals():
        yield result
        result.stop()


def part(script: str, name: str = "part", ready=lambda: True) -> ProcessSpec:
    return ProcessSpec(name, shell(script), {"PATH": os.environ["PATH"]}, ready)


def shell(script: str):
    return functools.partial(exec_program, ["/bin/sh", "-c", script])


def pid_of(supervisor: Supervisor) -> int:
    return supervisor._parts[0].process.pid


def test_a_part_that_cannot_start_shows_the_end_of_its_log(supervisor):
    with pytest.raises(CliError) as error:
        supervisor.start(part("echo no such table >&2; exit 3", ready=lambda: False))
    assert "part did not start (exit status 3)" in str(error.value)
    assert "no such table" in str(error.value)


def test_a_part_that_cannot_start_shows_only_the_last_lines_of_its_log(supervisor):
    with pytest.raises(CliError) as error:
        supervisor.start(part("seq 1 40 >&2; exit 3", ready=lambda: False))
    shown = [line.strip() for line in str(error.value).splitlines()]
    assert [line for line in shown if line.isdigit()] == [str(number) for number in range(29, 41)]


def test_a_part_that_never_becomes_ready_is_not_waited_for_for_ever(supervisor, monkeypatch):
    monkeypatch.setattr(limits, "PART_READY_SECONDS", 0.1)
    with pytest.raises(CliError, match="was not ready"):
        supervisor.start(part("exec sleep 60", ready=lambda: False))


def test_a_part_that_dies_again_and_again_ends_everything_with_its_reason(supervisor, told):
    supervisor.start(part("echo out of cheese >&2; exit 4"))
    with pytest.raises(CliError) as error:
        supervisor.run()
    assert "part died 3 times in a row right after its start (exit status 4)" in str(error.value)
    assert "out of cheese" in str(error.value)
    assert sum("restarting it" in line for line in told) == 2


def test_a_command_that_fails_shows_why(supervisor):
    assert supervisor.run_once("say", shell("echo hello"), {}) == "hello\n"
    with pytest.raises(CliError, match="bad schema"):
        supervisor.run_once("say", shell("echo bad schema >&2; exit 1"), {})


def test_ctrl_c_during_a_process_start_stops_immediately(supervisor):
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(StopRequested):
        supervisor.start(part("exec sleep 60", ready=lambda: False))
    pid = pid_of(supervisor)
    supervisor.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_part_that_ignores_sigterm_is_killed_with_all_it_started(supervisor, monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "STOP_SECONDS", 0.2)
    ready = tmp_path / "ready"
    supervisor.start(part(f"trap '' TERM; sleep 60.5 & touch {ready}; wait; wait", ready=ready.exists))
    assert any("sleep 60.5" in command for _, command in processes().values())
    supervisor.stop()
    eventually(lambda: not any("sleep 60.5" in command for _, command in processes().values()))


def test_parts_stop_in_reverse_order(supervisor, told):
    supervisor.start(part("exec sleep 60", "first"), part("exec sleep 60", "second"))
    supervisor.stop()
    assert [line.split()[0] for line in told if line.endswith("stopped")] == ["second", "first"]


def test_a_stop_right_after_the_start_ends_a_part_without_a_wait(supervisor):
    for _ in range(20):
        supervisor.start(part("exec sleep 60"))
        process = supervisor._parts[0].process
        supervisor.stop()
        assert process.exitcode == -signal.SIGTERM  # after STOP_SECONDS it would be SIGKILL


def test_a_part_that_is_not_needed_yet_starts_when_it_is(supervisor, told, monkeypatch):
    monkeypatch.setattr(limits, "PART_NEEDED_SECONDS", 0.0)
    answers = iter([False, True])

    def needed() -> bool:
        """Whether the next part is needed; after the second answer the supervisor is asked to stop."""
        answer = next(answers, None)
        if answer is None:
            os.kill(os.getpid(), signal.SIGINT)
        return bool(answer)

    named = [replace(part("exec sleep 60", f"part-{number}"), is_needed=needed) for number in (2, 3)]
    supervisor.start(part("exec sleep 60", "part-1"), *named)
    assert [running.part.name for running in supervisor._parts] == ["part-1"]
    supervisor.run()
    assert [line for line in told if "started" in line] == ["part-2 started: the others are busy"]
    supervisor.stop()
    assert [line.split()[0] for line in told if line.endswith("stopped")] == ["part-2", "part-1"]


def test_a_log_is_rotated_while_its_process_continues_to_write(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "LOG_FILE_BYTES", 10)
    log = tmp_path / "part.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"more than ten bytes\n")
        logs.rotate_log(log)
        writer.write(b"after\n")
    assert log.read_text() == "after\n"
    assert (tmp_path / "part.log.1").read_text() == "more than ten bytes\n"
    logs.rotate_log(log)
    assert log.read_text() == "after\n", "a small log stays"
