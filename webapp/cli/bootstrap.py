"""Install and start the command with only Python available. Standard library only; run by the script `rowsmith`.

Creates the virtual environment (`.venv` of the clone, or ROWSMITH_VENV), installs the packages of the lock file if it
has changed, and replaces the process with the command. Concurrent calls wait for each other, and an interrupted
installation is detected and repeated. Errors of the machine are reported in one sentence.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

HOME: Final = Path(__file__).resolve().parents[2]
# Lock files included in others: the development lock contains all lines of the other.
LOCKS: Final = {"requirements.lock": (), "requirements-dev.lock": ("requirements.lock",)}
STAMP: Final = "rowsmith-installed.json"
LOG: Final = "rowsmith-install.log"
# How pip and uv say that the package index cannot be reached.
_OFFLINE: Final = re.compile(
    r"Temporary failure in name resolution|Name or service not known|nodename nor servname|dns error"
    r"|Failed to establish a new connection|NewConnectionError|NameResolutionError|Network is unreachable"
    r"|Connection refused|Connection timed out|ConnectTimeoutError|error sending request|failed to lookup address",
    re.IGNORECASE,
)


class InstallError(Exception):
    """The command cannot continue; the message is one sentence for the user."""


def load_arguments() -> ModuleType:
    """Load the module `arguments` next to this file, without importing the (not yet installed) package around it."""
    spec = importlib.util.spec_from_file_location(
        "rowsmith_arguments", Path(__file__).with_name("arguments.py")
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def print_line(text: str) -> None:
    """Print a line to standard error: standard output belongs to the command."""
    print(f"rowsmith: {text}", file=sys.stderr, flush=True)


def venv_dir() -> Path:
    """Return the virtual environment: ROWSMITH_VENV, or `.venv` of the clone."""
    configured = os.environ.get("ROWSMITH_VENV")
    return Path(configured).absolute() if configured else HOME / ".venv"


def python_path(venv: Path) -> Path:
    """Return the environment's interpreter."""
    return venv / "bin" / "python"


def lock_digest(lock: str) -> str:
    """Return the stamp of a lock file."""
    return hashlib.sha256((HOME / lock).read_bytes()).hexdigest()


def is_installed(venv: Path, lock: str) -> bool:
    """Return whether `venv` works and contains exactly the packages of `lock`."""
    try:
        stamp = json.loads((venv / STAMP).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(stamp, dict) and stamp.get(lock) == lock_digest(lock) and python_path(venv).exists()


def ensure(lock: str) -> Path:
    """Install `lock` if necessary, and return the environment's interpreter."""
    venv = venv_dir()
    if not is_installed(venv, lock):
        with installation_lock(venv):
            if not is_installed(venv, lock):
                install(venv, lock)
    return python_path(venv)


@contextmanager
def installation_lock(venv: Path) -> Iterator[None]:
    """Lock `venv` against parallel installations. The kernel releases the lock with the process."""
    try:
        venv.mkdir(parents=True, exist_ok=True)
        handle = os.open(
            venv, os.O_RDONLY | os.O_DIRECTORY
        )  # the folder itself is the lock: nothing to remove
    except OSError as error:
        raise InstallError(not_writable_message(venv, error)) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print_line("another rowsmith is installing the packages; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def not_writable_message(folder: Path, error: OSError) -> str:
    """Return the message for a folder that cannot be written."""
    if error.errno == errno.ENOSPC:
        return f"The disk is full: {folder} could not be written."
    return (
        f"{folder} cannot be written ({error.strerror}): set ROWSMITH_VENV to a writable folder for the packages, "
        "and use --data-dir with another one for the data."
    )


def install(venv: Path, lock: str) -> None:
    """Install `lock` in `venv`; the stamp is removed first and written last."""
    (venv / STAMP).unlink(missing_ok=True)
    log = venv / LOG
    log.write_bytes(b"")
    print_line(f"installing the packages into {venv} (once, about a minute)")
    uv = shutil.which("uv")
    # A uv that cannot (another index in pip.conf, an old version) leaves the work to pip.
    if not (uv and install_with_uv(uv, venv, lock, log)):
        install_with_pip(venv, lock, log)
    # Otherwise the first start would do both. A clone that cannot be written does without.
    run([python_path(venv), "-m", "compileall", "-q", "-j", "0", HOME / "webapp", HOME / "jobs"], log)
    run([python_path(venv), "-m", "webapp.engine.data.build"], log)
    stamp = {name: lock_digest(name) for name in (lock, *LOCKS[lock])}
    fresh = venv / f"{STAMP}.new"
    fresh.write_text(json.dumps(stamp))
    fresh.replace(venv / STAMP)


def is_working(venv: Path) -> bool:
    """Return whether `venv` has a working, recent interpreter (its base may have been removed)."""
    python = python_path(venv)
    return python.exists() and run(
        [python, "-I", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], None
    )


def install_with_uv(uv: str, venv: Path, lock: str, log: Path) -> bool:
    """Install by uv. Returns whether it worked."""
    if not is_working(venv) and not run(
        [uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, venv], log
    ):
        return False
    hashes = ["--require-hashes", "--requirement", str(HOME / lock)]
    return run(
        [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python_path(venv), *hashes], log
    )


def install_with_pip(venv: Path, lock: str, log: Path) -> None:
    """Install by the standard library's venv and pip. Raises `InstallError` with the reason."""
    python = python_path(venv)
    if not (is_working(venv) and run([python, "-I", "-m", "pip", "--version"], None)):
        if not run([sys.executable, "-I", "-c", "import venv, ensurepip"], None):
            number = f"{sys.version_info.major}.{sys.version_info.minor}"
            raise InstallError(
                f"{sys.executable} comes without the venv module: install it (Debian and Ubuntu: "
                f"apt install python{number}-venv) or put uv on the PATH."
            )
        broken = (venv / "pyvenv.cfg").exists() and not is_working(venv)
        clear_option = ["--clear"] if broken else []
        if not run([sys.executable, "-I", "-m", "venv", *clear_option, venv], log):
            raise InstallError(f"The virtual environment {venv} could not be created: {last_line(log)}")
    options = ["--quiet", "--no-input", "--disable-pip-version-check", "--retries", "2"]
    if run([python, "-m", "pip", "install", *options, "--require-hashes", "--requirement", HOME / lock], log):
        return
    text = read_log(log)
    if is_offline(log):
        raise InstallError(
            "The package index cannot be reached: connect this machine to the network and try again."
        )
    if "No space left on device" in text:
        raise InstallError(f"The disk is full: the packages do not fit into {venv}.")
    raise InstallError(f"The packages could not be installed: {last_line(log)} (full log: {log})")


def run(command: Sequence[str | Path], log: Path | None) -> bool:
    """Run a command in the clone, with its output appended to `log` or discarded. Return whether its exit code is 0."""
    # A parent's environment or flags must not reach into this one's.
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    with open(log or os.devnull, "ab") as output, suppress(OSError):
        return (
            subprocess.run(
                list(map(str, command)),
                cwd=HOME,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=clean,
                check=False,
            ).returncode
            == 0
        )
    return False


def read_log(log: Path) -> str:
    """Return the text of the log, which may have been deleted with the environment."""
    with suppress(FileNotFoundError):
        return log.read_text(errors="replace")
    return ""


def is_offline(log: Path) -> bool:
    """Return whether the package index could not be reached."""
    return _OFFLINE.search(read_log(log)) is not None


def last_line(log: Path) -> str:
    """Return the last line of an error or a message, without pip's prefix."""
    lines = [line.strip() for line in read_log(log).splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["no reason was given"])[-1].rstrip(".") + "."


def main(argv: Sequence[str]) -> int:
    """Print help, or install and become the command. Returns the exit status of what did not become one."""
    arguments = load_arguments()
    parsed, _ = arguments.parse(argv)
    if parsed.command == "help":
        print(arguments.help_text(parsed.topic), end="")
        return 0
    if parsed.command == "doctor" and not is_installed(venv_dir(), "requirements.lock"):
        exec_module(
            python_path(venv_dir()) if is_working(venv_dir()) else Path(sys.executable),
            "webapp.cli.doctor",
            argv,
        )
    try:
        python = ensure(
            "requirements-dev.lock" if parsed.command in ("test", "soak", "format") else "requirements.lock"
        )
    except InstallError as stop:
        print_line(str(stop))
        return 1
    except OSError as error:
        print_line(not_writable_message(venv_dir(), error))
        return 1
    exec_module(python, "webapp.cli", argv)


def exec_module(python: Path, module: str, argv: Sequence[str]) -> NoReturn:
    """Replace this process by a module of the clone."""
    environment = dict(os.environ)
    # Relative paths are the caller's; the program itself runs in the clone, where `-m` finds it.
    environment.setdefault("ROWSMITH_CALLER_DIR", os.getcwd())
    environment.pop("PYTHONSAFEPATH", None)
    os.chdir(HOME)
    os.execve(python, [str(python), "-m", module, *argv], environment)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
