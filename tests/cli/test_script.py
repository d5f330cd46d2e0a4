"""The script `rowsmith` and the installation, in small clones: no network, no packages."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT
from webapp.cli import bootstrap

BASE_PYTHON = Path(sys.executable).resolve()
NOBODY = 65534
ECHO = "import os, sys; print(sys.prefix, os.environ['ROWSMITH_CALLER_DIR'], *sys.argv[1:])\n"
INSTALLING = "installing the packages into"
IMPOSSIBLE = "no-such-package==1.0 --hash=sha256:" + "0" * 64 + "\n"


def make_clone(folder: Path) -> Path:
    """What the launcher needs of a clone, with empty locks and a command that says what it was given."""
    cli = folder / "webapp" / "cli"
    cli.mkdir(parents=True)
    shutil.copy(ROOT / "rowsmith", folder)
    for name in ("bootstrap.py", "arguments.py"):
        shutil.copy(ROOT / "webapp" / "cli" / name, cli)
    for package in (folder / "webapp", cli):
        (package / "__init__.py").touch()
    (cli / "__main__.py").write_text(ECHO)
    for lock in bootstrap.LOCKS:
        (folder / lock).touch()
    return folder


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return make_clone(tmp_path / "clone")


@pytest.fixture(scope="module")
def used_clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone whose environment has been made already; tests write its locks before they use it."""
    clone = make_clone(tmp_path_factory.mktemp("used") / "clone")
    assert run(clone, "plan").returncode == 0
    return clone


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with the few standard tools the script uses, and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "dirname", "readlink", "head", "env"):
        (folder / name).symlink_to(shutil.which(name) or pytest.fail(f"no {name}"))
    return folder


def run(clone: Path, *words: str, path: str | None = None, cwd: Path | None = None, **more: str):
    """`./rowsmith words`, offline."""
    env = {
        "PATH": path or f"{BASE_PYTHON.parent}:/usr/bin:/bin",
        "HOME": str(clone),
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        **more,
    }
    return subprocess.run(
        ["/bin/sh", str(clone / "rowsmith"), *words],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_script_is_plain_posix_shell():
    shells = [shell for shell in ("dash", "sh") if shutil.which(shell)]
    assert shells
    for shell in shells:
        subprocess.run([shell, "-n", str(ROOT / "rowsmith")], check=True)
    assert os.access(ROOT / "rowsmith", os.X_OK)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_help_needs_no_installation(clone):
    for words in ([], ["help"], ["--help"]):
        shown = run(clone, *words)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert "  up " in shown.stdout
    assert "--port" in run(clone, "help", "up").stdout
    assert not (clone / ".venv").exists()


def test_a_wrong_argument_is_one_sentence_and_status_2_before_anything_is_installed(clone):
    for words, says in (
        (["upp"], "invalid choice: 'upp'"),
        (["up", "--prot", "1"], "unknown argument '--prot'"),
        (["up", "--port", "70000"], "'70000' is not a port"),
        (["plan", "My workspace", "gold"], "invalid choice: 'gold'"),
    ):
        refused = run(clone, *words)
        assert refused.returncode == 2
        assert says in refused.stderr
        assert refused.stderr.count("\n") == 1
        assert "./rowsmith help" in refused.stderr
    assert not (clone / ".venv").exists()


def test_an_older_python_on_the_path_is_skipped(clone, tools):
    script(tools / "python3", 'case "$*" in *--version*) echo Python 3.9.2;; *) exit 1;; esac')
    script(tools / "python3.12", "echo 'pyenv: python3.12: command not found' >&2; exit 127")
    (tools / "python3.11").symlink_to(BASE_PYTHON)
    assert run(clone, "help", path=str(tools)).returncode == 0


def test_a_missing_python_is_one_sentence_with_the_found_versions(clone, tools):
    script(tools / "python3", 'case "$*" in *--version*) echo Python 3.9.2;; *) exit 1;; esac')
    refused = run(clone, "up", path=str(tools))
    assert refused.returncode == 1
    assert "Python 3.11 or newer is needed" in refused.stderr
    assert "python3 (Python 3.9.2)" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_the_python_named_by_the_environment_is_taken(clone, tools):
    assert run(clone, "help", path=str(tools), ROWSMITH_PYTHON=str(BASE_PYTHON)).returncode == 0


def test_the_script_finds_its_clone_through_a_link(clone, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "second").symlink_to("../clone/rowsmith")
    (tmp_path / "links" / "first").symlink_to(tmp_path / "links" / "second")
    shown = subprocess.run([tmp_path / "links" / "first", "help"], capture_output=True, text=True, check=True)
    assert "usage: ./rowsmith" in shown.stdout


def test_packages_are_installed_when_the_lock_changes_and_only_then(used_clone, tmp_path):
    clone = used_clone
    lock = clone / "requirements.lock"
    lock.write_text("# one\n")
    first = run(clone, "plan", "My workspace", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout == f"{clone / '.venv'} {tmp_path} plan My workspace\n"
    assert INSTALLING in first.stderr
    assert run(clone, "plan").stderr == ""
    lock.write_text("# two\n")
    assert INSTALLING in run(clone, "plan").stderr
    # `test` brings the rest, and what it brings holds the packages of the others too.
    lock.write_text("# three\n")
    assert INSTALLING in run(clone, "test").stderr
    assert run(clone, "plan").stderr == ""


def test_the_word_lists_are_built_during_the_installation(used_clone, tmp_path):
    build = used_clone / "webapp" / "engine" / "data" / "build.py"
    build.parent.mkdir(parents=True)
    build.write_text("from pathlib import Path\nPath('built').touch()\n")
    (used_clone / "requirements.lock").write_text("# with word lists\n")
    assert run(used_clone, "plan", cwd=tmp_path).returncode == 0
    assert (used_clone / "built").exists()


def test_an_installation_that_was_cut_short_is_never_taken_for_a_whole_one(used_clone):
    lock = used_clone / "requirements.lock"
    whole = lock.read_text()
    lock.write_text(IMPOSSIBLE)
    for _ in range(2):
        failed = run(used_clone, "plan")
        assert failed.returncode == 1
        assert failed.stdout == ""
        assert "The packages could not be installed: No matching distribution found" in failed.stderr
        assert "Traceback" not in failed.stderr
    lock.write_text(whole)
    assert INSTALLING in run(used_clone, "plan").stderr


def test_no_network_is_one_sentence(used_clone):
    (used_clone / "requirements.lock").write_text(IMPOSSIBLE)
    failed = run(used_clone, "up", PIP_NO_INDEX="0", PIP_INDEX_URL="http://127.0.0.1:1/simple")
    assert failed.returncode == 1
    assert (
        "rowsmith: The package index cannot be reached: connect this machine to the network" in failed.stderr
    )
    assert "Traceback" not in failed.stderr


def test_two_concurrent_installations_install_once(clone):
    env = {"PATH": f"{BASE_PYTHON.parent}:/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    both = [
        subprocess.Popen(
            ["/bin/sh", str(clone / "rowsmith"), "plan"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    text = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], text
    assert sum(INSTALLING in err for _, err in text) == 1
    assert all(out.endswith("plan\n") for out, _ in text)


def test_a_broken_environment_is_created_again(used_clone):
    (used_clone / "requirements.lock").write_text("")
    python = used_clone / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    again = run(used_clone, "plan")
    assert (again.returncode, INSTALLING in again.stderr) == (0, True), again.stderr


def test_a_missing_venv_module_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(bootstrap, "run", lambda command, _log: "import venv, ensurepip" not in command)
    monkeypatch.setattr(bootstrap, "is_working", lambda _venv: False)
    with pytest.raises(
        bootstrap.InstallError, match=r"comes without the venv module: install it .*python3\.\d+-venv"
    ):
        bootstrap.install_with_pip(tmp_path, "requirements.lock", tmp_path / "log")


def test_a_full_disk_is_reported(tmp_path):
    full = OSError(28, "No space left on device")
    assert bootstrap.not_writable_message(tmp_path, full).startswith("The disk is full")


def test_uv_is_used_where_it_is_and_pip_where_uv_fails(used_clone, tools):
    trace = tools / "trace"
    script(tools / "uv", f'echo "$1 $2" >> {trace}; exit 1')
    lock = "# for uv\n"
    (used_clone / "requirements.lock").write_text(lock)
    done = run(used_clone, "plan", path=f"{tools}:{BASE_PYTHON.parent}:/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    assert trace.read_text() == "pip install\n"
    stamp = json.loads((used_clone / ".venv" / bootstrap.STAMP).read_text())
    assert stamp == {"requirements.lock": hashlib.sha256(lock.encode()).hexdigest()}


@pytest.fixture
def common_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="rowsmith-test-"))
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def ordinary_user() -> tuple[dict[str, object], str]:
    """Arguments that make a subprocess an ordinary user's, and a Python that user can run."""
    if os.geteuid() != 0:
        return {}, str(BASE_PYTHON)
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    for python in (str(BASE_PYTHON), shutil.which("python3", path="/usr/local/bin:/usr/bin") or ""):
        try:
            subprocess.run([python, "-I", "-c", check], check=True, capture_output=True, cwd="/", **user)
        except (OSError, subprocess.CalledProcessError):
            continue
        return user, python
    pytest.skip("there is no Python >= 3.11 here that an ordinary user can run")


def test_a_read_only_clone_says_which_folder_to_use(common_folder, ordinary_user):
    user, python = ordinary_user
    clone = make_clone(common_folder / "clone")
    clone.chmod(0o555)
    refused = subprocess.run(
        ["/bin/sh", str(clone / "rowsmith"), "up"],
        env={"PATH": "/usr/bin:/bin", "ROWSMITH_PYTHON": python},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        **user,
    )
    assert refused.returncode == 1
    assert refused.stderr == (
        f"rowsmith: {clone / '.venv'} cannot be written (Permission denied): set ROWSMITH_VENV to a writable folder "
        "for the packages, and use --data-dir with another one for the data.\n"
    )
