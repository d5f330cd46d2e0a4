"""Promises 19 and 30: hostile programs are stopped or harmless, their neighbours keep working, and nothing of them is
alive five seconds after their end. Each runs as root and as an ordinary user, in every mode that this machine has."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from jobs.sandbox import SandboxUnavailable, mode

ROOT = Path(__file__).parents[2]
ORDINARY = 64_321
GOT_IN = "GOT IN"
# What each has to end with: the cap that stops it, else an exit code; None: any of that.
STOPPED = {
    "fork_bomb": "processes",
    "thread_bomb": "processes",
    "memory": "memory",
    "disk_outputs": "outputs",
    "many_files": "outputs",
    "many_files_tmp": "tmp",
    "busy_loop": "cpu",
    "cpu_orphans": "cpu",
    "cpu_ignored": "cpu",
    "deep_outputs": "outputs",
    "long_outputs": "outputs",
    "closed_outputs": "outputs",
    "very_deep": "outputs",
    "socket_buffers": "memory",
    "socket_buffers_closed": "memory",
    "socket_buffers_waiting": "memory",
    "page_tables": "memory",
    "file_locks": "memory",
    "nameless_open": "outputs",
    "nameless_mapped": "outputs",
}
HARMLESS = (
    "memory_at_once", "memory_of_nobody", "huge_file", "disk_tmp", "endless_output", "daemon", "host_files",
    "proc_environ", "neighbours", "loopback", "private", "swapped", "sockets", "system_calls", "foreign_calls",
    "read_only", "links", "set_uid", "core_dump", "memory_of_nobody_shared", "socket_buffers_tcp",
    "deep_home", "nameless_in_flight", "nameless_in_sockets", "proc_buffers",
)  # fmt: skip
# Says at its end that it has tried everything.
SAYS = {
    "proc_environ": "looked", "neighbours": "tried", "loopback": "tried", "private": "tried",
    "swapped": "tried True", "sockets": "tried", "system_calls": "tried", "read_only": "tried", "links": "tried",
    "host_files": "closed", "daemon": "gone", "memory_of_nobody_shared": "tried",
}  # fmt: skip


def ways() -> list[tuple[str, str]]:
    """(who, mode) on this machine."""
    if os.geteuid() == 0:
        return [
            ("root", "bubblewrap"),
            ("ordinary", "bubblewrap"),
            ("root", "landlock"),
            ("ordinary", "landlock"),
        ]
    return [("ordinary", "bubblewrap"), ("ordinary", "landlock")]


@pytest.fixture(params=ways(), ids=lambda way: "-".join(way))
def way(request):
    return request.param


def closed_folder() -> Path | None:
    """The folder above this Python that only its owner may enter."""
    above = Path(sys.executable).resolve().parents
    return next((folder for folder in above if not folder.stat().st_mode & stat.S_IXOTH), None)


class Ran:
    """What came of one program."""

    def __init__(self, way: tuple[str, str], program: str, **given: object) -> None:
        who, name = way
        self.token = uuid.uuid4().hex
        become = [sys.executable, "-m", "tests.chaos.hostile.ordinary", str(ORDINARY)]
        done = subprocess.run(
            [
                *(become if who == "ordinary" and os.geteuid() == 0 else []),
                sys.executable,
                "-m",
                "tests.chaos.hostile.runner",
            ],
            input=json.dumps({"mode": name, "program": program, "token": self.token, **given}),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        if way == ("root", "landlock") and (closed := closed_folder()):
            assert "SandboxUnavailable" in done.stderr
            pytest.skip(
                f"landlock gives up root's rights, and {closed}, which has this Python, is closed to others"
            )
        if "SandboxUnavailable" in done.stderr:
            pytest.skip(done.stderr.strip().rpartition("\n")[2])
        assert done.returncode == 0, done.stderr[-3000:]
        for key, value in json.loads(done.stdout).items():
            setattr(self, key, value)

    def alive(self) -> list[int]:
        """The processes that carry the program's mark."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or entry.name == str(os.getpid()):
                continue
            try:
                if self.token.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def shows_nothing(self) -> None:
        """What holds for every one of them."""
        assert GOT_IN not in self.output, [line for line in self.output.splitlines() if GOT_IN in line]
        assert "canary-of" not in self.output
        assert self.touched == []
        assert self.secret == "canary-of-the-host"
        assert self.left_on_host == []
        assert self.neighbour_works
        assert self.alive() == []  # immediately, although five seconds are allowed


@pytest.mark.parametrize("program", STOPPED)
def test_program_is_stopped_by_the_cap_that_it_exceeds(way, program):
    ran = Ran(way, program)
    ran.shows_nothing()
    assert (ran.stopped_by, ran.code) == (STOPPED[program], -9), ran.output[-2000:]


@pytest.mark.parametrize("program", HARMLESS)
def test_program_is_harmless(way, program):
    ran = Ran(way, program)
    ran.shows_nothing()
    assert SAYS.get(program, "") in ran.output
    if program == "links":
        assert ran.files == ["deep/good.txt"]
    if program == "memory_at_once":
        assert "MemoryError" in ran.output
    if program == "foreign_calls":
        assert ran.code == -31
    if program == "socket_buffers_tcp":  # only the bubblewrap sandbox has a separate network
        assert ran.stopped_by == ("memory" if ran.mode == "bubblewrap" else None)
    if program.startswith("nameless_in"):  # without namespaces descriptors cannot be sent
        assert ran.stopped_by == ("outputs" if ran.mode == "bubblewrap" else None)
    if program == "deep_home":  # in the bubblewrap sandbox it is a separate file system, which is full
        assert (ran.stopped_by, ran.code) == ((None, 1) if ran.mode == "bubblewrap" else ("tmp", -9))
    if program == "proc_buffers":  # without namespaces only the files of the first process can be opened
        assert ran.stopped_by == "memory" or ran.mode == "landlock"
    if program == "core_dump":
        assert (ran.code, ran.files) == (-6, [])
    if program in ("huge_file", "disk_tmp", "endless_output"):
        assert ran.code != 0


def test_program_that_does_not_listen_is_killed_with_all_it_started(way):
    ran = Ran(way, "deaf", terminate=True)
    ran.shows_nothing()
    assert ran.code == -9


def test_there_are_twenty_of_them_and_each_is_used():
    used = {*STOPPED, *HARMLESS, "deaf"}
    there = {path.stem for path in Path(__file__).with_name("hostile").joinpath("programs").glob("*.py")}
    assert there == used
    assert len(used) >= 20


def test_this_machine_can_keep_programs_apart():
    try:
        assert mode().name == "bubblewrap"
    except SandboxUnavailable as error:
        pytest.skip(str(error))
