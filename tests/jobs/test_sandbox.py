"""A program in each way of keeping it apart that this machine has."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from jobs.sandbox import SandboxSpec, SandboxUnavailable, landlock_process, mode, spec, supervisor
from jobs.sandbox.process_tree import KernelMemory
from tests.jobs.sandboxing import CAPS, MB, Lab, folders
from tests.jobs.waiting import eventually

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["bubblewrap", "landlock", "plain"])
def lab(request):
    try:
        way = mode(request.param)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    with folders() as top:
        yield Lab(top, way)


@pytest.fixture
def walled(lab):
    if lab.way.name == "plain":
        pytest.skip("plain keeps nothing apart")
    return lab


def test_its_output_is_in_order_and_its_exit_code_is_returned(lab):
    ended = lab.run(
        """
        import os, sys
        print("one"); os.write(2, b"two\\n"); print("three"); sys.exit(7)
        """
    )
    assert (ended.code, ended.output, ended.stopped_by) == (7, "one\ntwo\nthree\n", None)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_terminating_signal_is_reported(lab, number):
    assert lab.run(f"import os; os.kill(os.getpid(), {int(number)})").code == -number


def test_it_runs_in_its_own_home_with_its_code_uploads_and_outputs(lab):
    (lab.top / "code" / "helper.py").write_text("WORD = 'helped'")
    ended = lab.run(
        """
        import helper, os, tempfile
        assert os.path.exists("main.py") and os.getcwd() == os.environ["HOME"]
        open("note.txt", "w").write("mine")
        tempfile.NamedTemporaryFile().write(b"x")
        os.makedirs(os.environ["OUTPUTS"] + "/deep")
        open(os.environ["OUTPUTS"] + "/deep/out.txt", "w").write(open(os.environ["UPLOADS"] + "/given.txt").read())
        print(helper.WORD)
        """
    )
    assert (ended.code, ended.output) == (0, "helped\n")
    assert (lab.top / "outputs" / "deep" / "out.txt").read_text() == "given"
    assert sorted(path.name for path in (lab.top / "code").iterdir()) == ["helper.py", "main.py"]


def test_its_folders_can_be_inaccessible_to_other_users(lab):
    (lab.top / "uploads" / "deep").mkdir(mode=0o700)
    (lab.top / "uploads" / "deep" / "a.txt").write_text("a")
    (lab.top / "uploads" / "deep" / "a.txt").chmod(0o600)
    ended = lab.run("import os; print(open(os.environ['UPLOADS'] + '/deep/a.txt').read())")
    assert ended.output == "a\n"


def test_it_only_sees_its_own_variables_and_none_of_the_worker(lab, monkeypatch):
    monkeypatch.setenv("WORKER_SECRET", "canary")
    ended = lab.run("import json, os; print(json.dumps(dict(os.environ)))", env={"GIVEN": "ä"})
    seen = json.loads(ended.output)
    assert seen["GIVEN"] == "ä"
    assert "WORKER_SECRET" not in seen
    assert set(seen) <= {
        "GIVEN", "UPLOADS", "OUTPUTS", "PATH", "HOME", "TMPDIR", "LANG", "VIRTUAL_ENV", "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE", "RES_OPTIONS",
    }  # fmt: skip


def test_it_sees_no_file_and_no_process_of_the_host(walled):
    secret = walled.top / "secret.txt"
    secret.write_text("canary")
    ended = walled.run(
        """
        import os
        for path in (os.environ["SECRET"], f"/proc/{os.environ['WORKER']}/environ", "/etc/shadow"):
            try:
                print("got in", path, open(path).read())
            except OSError:
                pass
        try:
            os.kill(int(os.environ["WORKER"]), 0)
            print("got in: kill")
        except OSError:
            pass
        print("tried")
        """,
        env={"SECRET": str(secret), "WORKER": str(os.getpid())},
    )
    assert ended.output == "tried\n"


def test_command_line_of_the_sandbox_and_of_the_kernel_are_not_readable(walled):
    if walled.way.name == "landlock":
        pytest.skip("the processes of the host are not readable at all there")
    ended = walled.run(
        """
        import glob, os
        for path in sorted(glob.glob("/proc/[0-9]*/cmdline")) + ["/proc/cmdline"]:
            text = open(path, "rb").read().replace(b"\\0", b" ")
            print(len([word for word in text.split() if word.startswith(b"--")]), os.environ["TOP"].encode() in text)
        """,
        env={"TOP": str(walled.top)},
    )
    assert ended.output == "2 False\n0 False\n0 False\n"  # of bubblewrap: --args and --


def test_terminate_reaches_it_and_it_may_tidy_up(lab):
    started = lab.start(
        """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
        print("ready")
        time.sleep(60)
        """
    )
    started.until("ready")
    started.handle.terminate()
    assert started.end().code == 3


def test_kill_returns_when_nothing_of_it_lives(lab):
    token = uuid.uuid4().hex
    started = lab.start(
        """
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.fork(); os.fork()
        print("ready")
        time.sleep(60)
        """,
        env={"TOKEN": token},
    )
    started.until("ready")
    eventually(lambda: marked(token) >= 4)
    started.handle.terminate()
    assert started.handle.wait(0.2) is None
    started.handle.kill()
    assert marked(token) == 0
    assert started.end().code == -signal.SIGKILL


def test_its_remaining_processes_are_stopped_with_it(lab):
    token = uuid.uuid4().hex
    source = "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint('done')"
    assert lab.run(source, env={"TOKEN": token}).output == "done\n"
    assert marked(token) == 0


def test_it_dies_with_the_process_that_started_it_also_when_that_is_killed(lab):
    token = uuid.uuid4().hex
    (lab.top / "code" / "main.py").write_text("import os, time\nos.fork()\ntime.sleep(60)")
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.jobs.sandbox_keeper", lab.way.name, str(lab.top), token],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    try:
        assert keeper.stdout.readline() == b"started\n"
        eventually(lambda: marked(token) >= 2)
    finally:
        keeper.kill()
        keeper.wait()
        keeper.stdout.close()
    eventually(lambda: marked(token) == 0, within=5)


def test_resource_usage_is_reported_during_the_run(lab):
    started = lab.start(
        """
        import time
        held = b"x" * (64 << 20)
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        print("ready")
        time.sleep(60)
        """
    )
    started.until("ready")
    usage = eventually(lambda: (seen := started.handle.usage()).cpu_ms >= 300 and seen)
    assert 64 * MB < usage.memory_bytes < 256 * MB
    assert usage.processes == 1
    started.handle.kill()
    assert started.end().handle.usage().max_memory_bytes >= 64 * MB


@pytest.mark.parametrize(
    ("source", "caps", "word"),
    [
        ("held = [b'x' * (8 << 20) for _ in range(1000)]", {"memory_bytes": 128 * MB}, "memory"),
        ("while True: pass", {"cpu_seconds": 0.5}, "cpu"),
        ("import time; time.sleep(60)", {"wall_seconds": 0.5}, "wall"),
        (
            "import subprocess, time\nheld = [subprocess.Popen(['sleep', '60']) for _ in range(20)]\ntime.sleep(60)",
            {"processes": 12},
            "processes",
        ),
        (
            "import os\nfor n in range(1000): open(f\"{os.environ['OUTPUTS']}/{n}\", 'wb').write(b'x' * (1 << 20))",
            {"outputs_bytes": 8 * MB},
            "outputs",
        ),
    ],
)
def test_the_cap_that_ends_it_is_named(lab, source, caps, word):
    ended = lab.run(source + "\nimport time; time.sleep(60)", caps=caps)
    assert (ended.stopped_by, ended.code) == (word, -signal.SIGKILL), ended.output


def test_ordinary_programs_do_not_meet_the_limits_on_kernel_memory(lab):
    """Calls that are not available have replacements in the standard library, and the caps leave room for them."""
    ended = lab.run(
        """
        import asyncio, fcntl, os, shutil, socket, sqlite3, subprocess, sys, tempfile

        shutil.copyfile("main.py", "copy.py")
        assert open("copy.py").read() == open("main.py").read()
        one, other = socket.socketpair()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        assert one.sendfile(open("main.py", "rb")) == os.path.getsize("main.py")
        with sqlite3.connect("data.db") as database:
            database.execute("create table t (a)")
            database.executemany("insert into t values (?)", ((n,) for n in range(10_000)))
        with open("data.db") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
        async def main():
            done = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(7)", stdout=subprocess.PIPE)
            return (await done.communicate())[0]
        assert asyncio.run(main()) == b"7\\n"
        held = [tempfile.TemporaryFile() for _ in range(100)] + [socket.socketpair() for _ in range(60)]
        for pair in held[100:]:
            pair[0].send(b"x" * 100_000)
        print("done")
        """,
        caps={"memory_bytes": 128 * MB},
    )
    assert (ended.code, ended.output, ended.stopped_by) == (0, "done\n", None)


def test_processes_share_memory_by_multiprocessing(lab):
    if lab.way.name == "landlock":
        pytest.skip("semaphores of multiprocessing need /dev/shm")
    ended = lab.run(
        """
        import multiprocessing as m
        from multiprocessing import shared_memory
        def add(number):
            with total.get_lock():
                total.value += number
        total = m.Value("i", 0)
        with m.get_context("fork").Pool(4) as pool:
            pool.map(add, range(10))
        block = shared_memory.SharedMemory(create=True, size=1 << 20)
        block.buf[:3] = b"abc"
        block.close(); block.unlink()
        print(total.value)
        """
    )
    assert (ended.code, ended.output) == (0, "45\n"), ended.output


def test_memory_that_processes_share_counts_once(lab):
    source = """
        import os, time
        held = b"x" * (128 << 20)
        for _ in range(6):
            if os.fork() == 0:
                time.sleep(1)
                os._exit(0)
        time.sleep(1)
        print("done")
    """
    ended = lab.run(source, caps={"memory_bytes": 300 * MB})
    assert (ended.stopped_by, ended.output) == (None, "done\n")


def test_full_buffers_of_a_few_tcp_sockets_count(walled):
    if walled.way.name == "landlock":
        pytest.skip("a program cannot listen there")
    started = walled.start(
        """
        import os, socket, struct, time
        server = socket.create_server(("127.0.0.1", 5555))
        held = []
        for _ in range(3):
            held += [socket.create_connection(("127.0.0.1", 5555)), server.accept()[0]]
        server.close()
        for one in held:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 30)  # as large as the kernel allows
            one.setblocking(False)
        sent = 0
        end = time.monotonic() + 1
        while time.monotonic() < end:
            for one in held:
                try:
                    sent += one.send(b"x" * 65536)
                except BlockingIOError:
                    time.sleep(0.001)
        with open(f"{os.environ['OUTPUTS']}/sent", "w") as file:
            file.write(str(sent))
        print("ready")
        time.sleep(60)
        """
    )
    started.until("ready")
    sent = int((walled.top / "outputs" / "sent").read_text())
    assert sent > 4 * MB
    assert eventually(lambda: started.handle.usage().memory_bytes > sent)
    started.handle.kill()
    started.end()


def test_a_process_opens_few_descriptors_because_each_socket_holds_kernel_memory(lab):
    """Between two measurements, a program can fill the buffers of all sockets that it may open: 30 GB with 1,024
    descriptors in each of 80 processes."""
    ended = lab.run(
        """
        import resource, socket
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
        except (OSError, ValueError):
            pass
        held = []
        try:
            while len(held) < 2000:
                held += socket.socketpair()
        except OSError:
            pass
        print(len(held))
        """
    )
    assert ended.code == 0, ended.output
    assert 100 < int(ended.output) <= spec.FILES <= 256


def test_swapped_pages_count_as_memory(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text("Name:\tpython3\nVmPTE:\t      64 kB\nVmSwap:\t  204800 kB\n")
    folder = os.open(tmp_path, os.O_RDONLY)
    spec = SandboxSpec(
        command=(), code=tmp_path, environment=tmp_path, read_only=(), uploads=tmp_path, outputs=tmp_path,
        env={}, caps=CAPS, network="none", api=("127.0.0.1", 1),
    )  # fmt: skip
    kernel = KernelMemory(folder, None, shared=True, files=256, spec=spec, home="/home", own_home=-1)
    assert kernel.measure([7], 1) == (64 + 204_800) * 1024
    os.close(folder)


def test_attributes_of_files_and_filters_of_sockets_are_not_available(walled):
    """Of both, the kernel holds more memory than it counts, or more than the next check would find in time."""
    ended = walled.run(
        """
        import ctypes, errno, os, shutil, socket, struct
        open("a", "w").close()
        for set_attribute in (lambda: os.setxattr("a", "user.x", b"x"), lambda: os.setxattr(3, "user.x", b"x")):
            with open("a") as file:
                try:
                    set_attribute()
                except OSError as error:
                    assert error.errno == errno.EOPNOTSUPP, error
                else:
                    print("set")
        shutil.copy2("main.py", "copy.py")
        accept = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 65535))
        for option in (26, 51):
            one = socket.socketpair()[0]
            try:
                one.setsockopt(socket.SOL_SOCKET, option, struct.pack("HxxxxxxQ", 1, ctypes.addressof(accept)))
            except OSError as error:
                assert error.errno == errno.ENOPROTOOPT, error
            else:
                print("attached")
        print("done")
        """
    )
    assert (ended.code, ended.output) == (0, "done\n")


def test_it_leaves_no_open_file(lab):
    lab.run("print(1)")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        lab.run("print(1)", network="full")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_missing_program_is_reported(lab):
    ended = lab.run("", command=("nothing-of-that-name",))
    assert (ended.code, ended.output) == (127, "nothing-of-that-name: No such file or directory\n")


def test_no_program_runs_unprotected_unless_configured(monkeypatch):
    monkeypatch.setattr(supervisor, "_bubblewrap_paths", list)
    monkeypatch.setattr(landlock_process, "landlock_version", lambda: 0)
    mode.cache_clear()
    try:
        with pytest.raises(
            SandboxUnavailable,
            match="bubblewrap is not installed; Landlock: this kernel does not support Landlock",
        ):
            mode()
        assert mode("plain").name == "plain"
    finally:
        mode.cache_clear()


def test_a_bubblewrap_that_does_not_work_is_named_with_its_reason(monkeypatch):
    monkeypatch.setattr(supervisor, "_bubblewrap_paths", lambda: ["/bin/false"])
    mode.cache_clear()
    try:
        with pytest.raises(SandboxUnavailable, match="/bin/false: "):
            mode("bubblewrap")
    finally:
        mode.cache_clear()


def marked(token: str) -> int:
    """How many processes carry a mark in their environment."""
    count = 0
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and token.encode() in Path(entry.path, "environ").read_bytes():
                count += 1
        except OSError:
            continue
    return count
