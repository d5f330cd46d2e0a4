"""Promise 27. Environments of programs: made once, whole or not there, for everybody to read, removed when space runs
short."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from jobs.sandbox import mode
from jobs.scenarios import environments
from jobs.scenarios.environments import EnvironmentCache, EnvironmentCreationError
from tests import wheels
from tests.jobs.sandboxing import Lab, folders
from tests.jobs.waiting import eventually
from webapp import limits
from webapp.config import Settings
from webapp.paths import ROOT
from webapp.scenarios.services import requirements


@pytest.fixture
def index(tmp_path, monkeypatch):
    return wheels.index(tmp_path, monkeypatch)


@pytest.fixture
def client(tmp_path):
    """A test client package instead of the real one."""
    folder = tmp_path / "rowsmith"
    (folder / "wire").mkdir(parents=True)
    (folder / "_version.py").write_text('__version__ = "7.8.9"\n')
    (folder / "__init__.py").write_text("HERE = True\n")
    (folder / "wire" / "__init__.py").write_text("")
    return folder


@pytest.fixture
def maker(tmp_path, index, client):
    return EnvironmentCache(tmp_path / "environments", client)


@pytest.fixture
def lock(index, tmp_path):
    """The lock of a program that requires `tool` in its older version."""
    from webapp.scenarios.services import requirements

    folder = tmp_path / "resolving"
    folder.mkdir()
    (folder / "requirements.in").write_text("tool<2\ncommon\n")
    (folder / "requirements.lock").write_text(requirements.common_lock())
    done = requirements.run_uv(
        requirements._RESOLVE,
        folder=folder,
        env=requirements.uv_environment(os.environ, tmp_path / "uv-cache"),
        seconds=60,
    )
    assert done.ok, done.output
    text = (folder / "requirements.lock").read_text()
    requirements.COMMON_LOCK.write_text(_only_common(text))
    return text


def _only_common(text):
    keep, out = False, []
    for line in text.splitlines(keepends=True):
        keep = line.startswith("common") if not line.startswith(" ") else keep
        out += [line] if keep else []
    return "".join(out)


def python(place, code, **how):
    done = subprocess.run(
        [place / "bin" / "python", "-c", code], capture_output=True, text=True, env={}, check=False, **how
    )
    return done.stdout.strip() or done.stderr


def left_over(maker):
    return [path.name for path in maker.folder.iterdir() if path.name.startswith(".")]


def test_a_program_finds_its_packages_the_common_ones_and_our_client(maker, lock):
    result = []
    place = maker.ensure(lock, requirements.lock_digest(lock), result.append)
    code = (
        "import tool, beside, common, rowsmith; from importlib import metadata as m; "
        "print(tool.VERSION, beside.VERSION, common.VERSION, m.version('rowsmith'))"
    )
    assert python(place, code) == "1.0 2.0 1.0 7.8.9"
    assert result[0] == "Installing 3 packages (once)."
    assert left_over(maker) == []
    again = []
    assert maker.ensure(lock, requirements.lock_digest(lock), again.append) == place
    assert again == []


def test_it_is_the_services_own_python_without_its_packages(maker, lock):
    place = maker.ensure(lock)
    assert python(place, "import sys; print(sys.version)") == sys.version
    assert "No module named 'flask'" in python(place, "import flask")


def test_all_users_can_read_it_and_only_its_owner_can_write(maker, lock):
    before = os.umask(0o077)
    try:
        place = maker.ensure(lock)
    finally:
        os.umask(before)
    for folder, _, names in os.walk(place):
        assert stat.S_IMODE(os.stat(folder).st_mode) & 0o077 == 0o055
        for name in names:
            mode = os.lstat(os.path.join(folder, name)).st_mode
            assert stat.S_ISLNK(mode) or mode & 0o044 == 0o044, name
            assert stat.S_ISLNK(mode) or mode & 0o022 == 0, name


def test_python_finds_everything_compiled_since_programs_cannot_write_there(maker, lock):
    place = maker.ensure(lock)
    sources = [
        path
        for path in place.rglob("*.py")
        if path.parent.name == "site-packages" and path.stem != "_virtualenv"
    ]
    assert {source.stem for source in sources} >= {"tool", "beside", "common"}
    for source in [*sources, next(place.rglob("rowsmith/__init__.py"))]:
        assert list((source.parent / "__pycache__").glob(f"{source.stem}.*.pyc")), source


def test_another_client_or_another_lock_is_another_environment(maker, client, lock):
    one = maker.path_of(lock)
    assert maker.path_of(lock + "\n") != one
    (client / "__init__.py").write_text("HERE = False\n")
    assert maker.path_of(lock) != one


def test_a_modified_lock_is_rejected(maker, lock):
    with pytest.raises(EnvironmentCreationError, match="could not be created"):
        maker.ensure(lock + "\nevil==1.0\n", requirements.lock_digest(lock))


def test_a_package_whose_content_changed_is_not_installed(maker, index, lock):
    index.add("tool", "1.0", text="import os\n")
    shutil.rmtree(os.environ["UV_CACHE_DIR"], ignore_errors=True)
    with pytest.raises(EnvironmentCreationError) as caught:
        maker.ensure(lock)
    assert "ash" in caught.value.details["reason"]  # "hash", at the beginning or within
    assert str(index.folder) not in caught.value.reason
    assert not maker.path_of(lock).exists()
    assert not [name for name in left_over(maker) if name.startswith(".making")]


def test_two_concurrent_requests_create_it_once(maker, lock, monkeypatch):
    outcome, real = [], EnvironmentCache._build

    def counted(self, *arguments):
        outcome.append(1)
        return real(self, *arguments)

    monkeypatch.setattr(EnvironmentCache, "_build", counted)
    places, result = [], []
    threads = [
        threading.Thread(target=lambda: places.append(maker.ensure(lock, write_line=result.append)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(set(places)), len(places), len(outcome)) == (1, 3, 1)
    assert result.count("Waiting for another run to create this environment.") == 2


def test_stopping_the_run_stops_the_creation(maker, lock):
    class Cancelled(Exception):
        pass

    def alive():
        raise Cancelled

    with pytest.raises(Cancelled):
        maker.ensure(lock, check_alive=alive)
    assert not maker.path_of(lock).exists()
    assert not [name for name in left_over(maker) if name.startswith(".making")]


KILLED = """
import sys
from pathlib import Path
from jobs.scenarios.environments import EnvironmentCache
from webapp.scenarios.services import requirements
real = requirements.run_uv
def call(arguments, **how):
    done = real(arguments, **how)
    if arguments[0] == "pip":
        print("now", flush=True)
        sys.stdin.read()
    return done
requirements.run_uv = call
EnvironmentCache(Path(sys.argv[1]), Path(sys.argv[2])).ensure(Path(sys.argv[3]).read_text())
"""


def test_a_maker_that_is_killed_leaves_nothing_that_looks_finished(maker, client, lock, tmp_path):
    file = tmp_path / "the.lock"
    file.write_text(lock)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, maker.folder, client, file],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(item for item in sys.path if item)},
    )
    assert process.stdout.readline() == b"now\n"  # all packages are in, and it is not renamed
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not maker.path_of(lock).exists()
    assert [name for name in left_over(maker) if name.startswith(".making")]
    assert python(maker.ensure(lock), "import tool; print(tool.VERSION)") == "1.0"
    assert not [name for name in left_over(maker) if name.startswith(".making")]


# --- Packages that attack the service -----------------------------------------------------------------------

# Each leaves a marker outside the sandbox if the service runs it. Values are files of the wheel.
RUNS = "import os; open(os.path.join({folder!r}, {name!r} + str(os.getpid())), 'w').close()\n"
ATTACKS = {
    "pth": {"attack.pth": RUNS},
    "sitecustomize": {"sitecustomize.py": RUNS},
    "usercustomize": {"usercustomize.py": RUNS},
    "standard_modules": {
        f"{name}.py": RUNS
        for name in ("json", "os", "site", "compileall", "py_compile", "importlib", "_virtualenv", "codecs")
    }
    | {"encodings/__init__.py": RUNS, "importlib/util.py": RUNS, "json/__init__.py": RUNS},
    "pth_of_uv": {"_virtualenv.pth": RUNS, "_virtualenv.py": RUNS},
    "pth_elsewhere": {
        "{stem}.data/data/lib/python3.11/site-packages/z.pth": RUNS,
        "{stem}.data/platlib/y.pth": RUNS,
        "{stem}.data/purelib/x.pth": RUNS,
    },
    "bytecode": {"__pycache__/sitecustomize.cpython-311.pyc": RUNS, "sitecustomize.pyc": RUNS},
    "configuration": {
        "{stem}.data/data/pyvenv.cfg": "home = /nowhere\n",
        "{stem}.data/data/uv.toml": "x = 1\n",
    },
    "scripts": {
        f"{{stem}}.data/{place}{name}": "#!/bin/sh\n: > {folder}/script$$\n"
        for place in ("scripts/", "data/bin/")
        for name in ("uv", "pip", "activate")
    },
    "entry_points": {
        "{stem}.dist-info/entry_points.txt": "[console_scripts]\nuv = attack:main\npip = attack:main\n",
        "attack.py": RUNS,
    },
}


def locked(name, folder):
    """The lock of one package, with the hash of its wheel."""
    wheel = next(folder.glob(f"{name}-*.whl"))
    return f"{name}==1.0 \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


@pytest.mark.parametrize("place", ["scripts", "data/bin"])
@pytest.mark.parametrize("name", ["python", "python3", "python3.11"])
def test_a_package_with_a_script_named_like_the_interpreter_is_not_installed(maker, index, place, name):
    index.add("hostile", "1.0", files={f"{{stem}}.data/{place}/{name}": "#!/bin/sh\n"})
    with pytest.raises(EnvironmentCreationError) as caught:
        maker.ensure(locked("hostile", index.folder))
    assert "reserved name" in caught.value.reason


@pytest.mark.parametrize("attack", ATTACKS)
def test_code_of_a_package_does_not_run_outside_the_sandbox(maker, index, tmp_path, attack):
    markers = tmp_path / "markers"
    markers.mkdir()
    files = {
        path: body.replace("{folder!r}", repr(str(markers)))
        .replace("{name!r}", repr(path.rpartition("/")[2]))
        .replace("{folder}", str(markers))
        for path, body in ATTACKS[attack].items()
    }
    index.add("hostile", "1.0", files=files)
    lock = locked("hostile", index.folder)
    place = maker.ensure(lock)
    maker.ensure(lock)
    shutil.rmtree(place)
    maker.ensure(lock)  # again, with what uv has kept
    maker.purge()
    assert [item.name for item in markers.iterdir()] == []
    assert (place / "lib" / "python3.11" / "site-packages" / "hostile.py").is_file()


def test_the_attacks_run_where_the_environment_s_interpreter_is_started(maker, index, tmp_path):
    """The wheels are real: started by hand, the interpreter runs their code."""
    marker = tmp_path / "ran"
    index.add("hostile", "1.0", files={"a.pth": f"import os; open({str(marker)!r}, 'w').close()\n"})
    place = maker.ensure(locked("hostile", index.folder))
    assert not marker.exists()
    subprocess.run([place / "bin" / "python", "-I", "-c", ""], check=True)
    assert marker.exists()


def test_a_package_with_its_own_bytecode_does_not_change_the_cache_of_uv(maker, index):
    index.add("hostile", "1.0", files={"__pycache__/hostile.cpython-311.pyc": "shipped"})
    place = maker.ensure(locked("hostile", index.folder))
    cached = list(Path(os.environ["UV_CACHE_DIR"]).rglob("hostile.cpython-311.pyc"))
    assert [path.read_text() for path in cached] == ["shipped"]
    assert python(place, "import hostile; print(hostile.VERSION)") == "1.0"
    assert next(place.rglob("hostile.cpython-311.pyc")).read_bytes() != b"shipped"


def test_a_run_in_the_sandbox_imports_its_packages_with_their_pth_files(maker, index, tmp_path):
    index.add("tool", "3.0", files={"tool.pth": "import sys; sys.from_pth = True\n"})
    wheel = next(index.folder.glob("tool-3.0-*.whl"))
    lock = f"tool==3.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    with folders() as top:
        result = EnvironmentCache(top / "environments", maker.source)
        lab = Lab(top, mode())
        code = "import sys, tool, rowsmith; print(tool.VERSION, rowsmith.HERE, sys.from_pth, tool.__cached__)"
        ran = lab.run(code, environment=result.ensure(lock), read_only=(Path(sys.base_prefix),))
    assert ran.code == 0, ran.output
    version, here, from_pth, cached = ran.output.split()
    assert (version, here, from_pth) == ("3.0", "True", "True")
    assert cached.endswith("/tool.cpython-311.pyc")


def test_a_module_that_takes_all_memory_to_compile_only_ends_the_compiling(maker, index):
    files = {"zz_bomb.py": "x = [" + "0," * 20_000_000 + "]\n"}
    index.add("hostile", "1.0", files=files)
    place = maker.ensure(locked("hostile", index.folder))
    compiled = {path.name.partition(".")[0] for path in place.glob("lib/*/site-packages/__pycache__/*.pyc")}
    assert "zz_bomb" not in compiled
    assert "hostile" in compiled
    assert python(place, "import hostile; print(hostile.VERSION)") == "1.0"


def test_a_module_that_does_not_compile_does_not_stop_the_others(maker, index):
    index.add("hostile", "1.0", files={"a_template.py": "def {{name}}: 1\n", "deep.py": "(" * 5_000})
    place = maker.ensure(locked("hostile", index.folder))
    compiled = {path.name.partition(".")[0] for path in place.glob("lib/*/site-packages/__pycache__/*.pyc")}
    assert "hostile" in compiled
    assert not compiled & {"a_template", "deep"}


def test_a_package_that_unpacks_to_more_than_the_space_of_environments_is_stopped(maker, index, monkeypatch):
    monkeypatch.setattr(limits, "ENVIRONMENTS_BYTES", 20 * limits.MB)
    monkeypatch.delenv("UV_CACHE_DIR")  # so that the cache is in the data folder
    index.add("hostile", "1.0", files={f"big{number}.bin": "x" * 8 * limits.MB for number in range(4)})
    lock = locked("hostile", index.folder)
    with pytest.raises(EnvironmentCreationError) as caught:
        EnvironmentCache(maker.folder, maker.source, max_bytes=20 * limits.MB).ensure(lock)
    assert caught.value.reason == "The packages need more than 20,971,520 bytes."
    assert not maker.path_of(lock).exists()
    assert not [name for name in left_over(maker) if name.startswith(".making")]
    assert requirements.disk_bytes([maker.folder]) < 8 * limits.MB  # nor is it kept in the cache


# --- The common libraries -----------------------------------------------------------------------------------


def test_a_program_without_requirements_gets_the_common_libraries(maker, lock):
    place = maker.ensure("", "")
    assert python(place, "import common, rowsmith; print(common.VERSION)") == "1.0"
    assert "No module named 'tool'" in python(place, "import tool")


def test_installed_packages_need_no_index(maker, lock, index):
    place = maker.ensure("", "")
    shutil.rmtree(index.folder)
    shutil.rmtree(os.environ["UV_CACHE_DIR"], ignore_errors=True)
    assert maker.ensure("", "") == place


def test_without_an_index_a_program_runs_only_with_our_client_and_a_warning(maker, lock, index):
    shutil.rmtree(index.folder)
    shutil.rmtree(os.environ["UV_CACHE_DIR"], ignore_errors=True)
    result = []
    place = maker.ensure("", "", result.append)
    assert python(place, "import rowsmith; print(rowsmith.HERE)") == "True"
    assert result[-2].startswith("The common libraries (common) are unavailable: ")
    assert str(index.folder) not in "".join(result)
    assert result[-1] == "This program runs with the standard library and rowsmith only."
    begun = time.monotonic()
    assert maker.ensure("", "", result.append) == place
    assert time.monotonic() - begun < 0.5, "what has just failed is not tried again for every run"


def test_with_requirements_a_run_ends_with_the_reason(maker, lock, index):
    shutil.rmtree(index.folder)
    shutil.rmtree(os.environ["UV_CACHE_DIR"], ignore_errors=True)
    with pytest.raises(EnvironmentCreationError) as caught:
        maker.ensure(lock)
    assert str(caught.value).startswith("The environment of this program could not be created")
    assert set(caught.value.details) == {"reason"}


# --- Removing -----------------------------------------------------------------------------------------------


def _stub(maker, number, *, age):
    """Create an environment of 100 kB that was last used `age` seconds ago."""
    place = maker.folder / f"{number:040x}"
    place.mkdir(parents=True)
    (place / "file").write_bytes(os.urandom(100_000))
    os.utime(place, (time.time() - age, time.time() - age))
    return place


def test_the_longest_unused_go_first_and_none_that_a_run_may_be_in(tmp_path, client):
    maker = EnvironmentCache(tmp_path / "environments", client, max_bytes=250_000)
    hour = limits.ENVIRONMENT_KEEP_SECONDS
    oldest, older, old, used = (
        _stub(maker, number, age=age)
        for number, age in ((1, 9 * hour), (2, 8 * hour), (3, 7 * hour), (4, 60))
    )
    assert maker.purge() == [oldest.name, older.name]
    assert (old.exists(), used.exists()) == (True, True)
    tight = EnvironmentCache(maker.folder, client, max_bytes=0)
    assert tight.purge() == [old.name]
    assert used.exists()
    assert not [path for path in maker.folder.iterdir() if path.name.startswith(".gone")]


def test_partly_removed_objects_are_removed_by_the_next_run(tmp_path, client):
    maker = EnvironmentCache(tmp_path / "environments", client)
    left = maker.folder / ".gone-x"
    (left / "inner").mkdir(parents=True)
    maker.purge()
    assert not left.exists()


def test_a_runner_creates_the_common_libraries_in_the_background(tmp_path, monkeypatch, index, lock):
    data = tmp_path / "data"
    ((command, how),) = started_for(data, monkeypatch)
    environment = {
        **{name: os.environ[name] for name in ("PATH",)},
        "UV_OFFLINE": "1",
        "ROWSMITH_DATA_DIR": str(data),
        "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyzABCDEF",
        "PYTHONPATH": os.pathsep.join(item for item in sys.path if item),
    }
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, **how)
    # Nothing can be fetched here; that it tried and left a note is what can be seen.
    _, text = process.communicate(timeout=60)
    assert process.returncode == 1, text
    assert b"could not be created" in text
    assert eventually(lambda: list(Path(data, "environments").glob("*.failed")))
    (there := EnvironmentCache(data / "environments").path_of(requirements.common_lock())).mkdir()
    assert started_for(data, monkeypatch) == [], f"{there} exists"


def started_for(data: Path, monkeypatch) -> list[tuple[list[str], dict[str, object]]]:
    """Return the processes that a runner starts at its start to create the common libraries."""
    started: list[tuple[list[str], dict[str, object]]] = []
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", lambda command, **how: started.append((command, how)))
        secret = "0123456789abcdefghijklmnopqrstuvwxyzABCDEF"
        environments.prepare_base(Settings.from_env({"ROWSMITH_DATA_DIR": str(data), "SECRET_KEY": secret}))
    return started


def test_only_one_process_creates_an_environment_at_the_start(tmp_path, client):
    maker = EnvironmentCache(tmp_path / "environments", client)
    assert not maker.is_being_built("")
    maker.folder.mkdir()
    handle = os.open(maker.path_of("").with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
    assert not maker.is_being_built("")
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert maker.is_being_built("")
    os.close(handle)
    assert not maker.is_being_built("")
