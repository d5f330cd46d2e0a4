"""The Python environments that programs run in: the packages of a lock and the Rowsmith client, cached by
hash.

Each environment is a folder `<data folder>/environments/<hash>` and is either complete or absent: it is
created in a temporary folder under a file lock and then renamed. The hash covers everything in it, so a new
release, another Python or a changed client results in a new environment. If disk space runs low, environments
that have not been used for a while are removed. All users of this machine can read them, because programs run
as another user.

`python -m jobs.scenarios.environments` creates the environment with the common libraries. Runners start it
when they start.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import logging
import os
import platform
import re
import shutil
import stat
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from flask import current_app

from jobs.sandbox import Caps, SandboxSpec, SandboxUnavailable, Setting, mode, outputs, start
from webapp import limits
from webapp.config import Settings, SettingsError
from webapp.monitoring import process_log
from webapp.paths import ROOT
from webapp.scenarios.services import requirements

log = logging.getLogger(__name__)

SDK_SOURCE: Final = ROOT / "sdk" / "python" / "src" / "rowsmith"
CHILD_SCRIPT: Final = ROOT / "webapp" / "cli" / "child.py"
_NEW_PREFIX: Final = ".making-"
_REMOVED_PREFIX: Final = ".gone-"
_FAILED: Final = ".failed"
_LOCK: Final = ".lock"
_HASH: Final = re.compile("[0-9a-f]{40}")
_PYTHON: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"
# Runs in the sandbox. Each worker writes to one file: the number of a module, the length of its bytecode, the
# bytecode. A module with a syntax error (templates of code generators have them) does not stop the others.
_COMPILE: Final = """
import json, os, py_compile, struct

with open("sources.json", encoding="utf-8") as file:
    sources = json.load(file)
count = min(len(os.sched_getaffinity(0)), 4)
for worker in range(count):
    if os.fork() == 0:
        single = os.path.join(os.environ["TMPDIR"], f"{worker}.pyc")
        with open(os.path.join(os.environ["OUTPUTS"], f"{worker}.all"), "wb", 0) as out:
            for number in range(worker, len(sources), count):
                source, shown = sources[number]
                try:
                    py_compile.compile(source, single, shown, doraise=True)
                except Exception:
                    continue
                with open(single, "rb") as compiled:
                    bytecode = compiled.read()
                out.write(struct.pack("<QQ", number, len(bytecode)) + bytecode)
        os._exit(0)
for worker in range(count):
    os.wait()
"""
_RECORD: Final = struct.Struct("<QQ")  # the header of each module's bytecode
_COMPILE_CAPS: Final = Caps(
    wall_seconds=limits.ENVIRONMENT_SECONDS,
    cpu_seconds=limits.ENVIRONMENT_SECONDS * limits.RUN_PROCESSORS,
    memory_bytes=limits.RUN_MEMORY_BYTES,
    processes=16,
    file_bytes=limits.RUN_OUTPUTS_BYTES,
    tmp_bytes=16 * limits.MB,
    outputs_bytes=limits.RUN_OUTPUTS_BYTES,
)
WriteLine = Callable[[str], None]


class EnvironmentCreationError(Exception):
    """An environment could not be created. The text is a sentence for the user; `reason` is uv's message
    without addresses and folders."""

    def __init__(self, reason: str, *, index_unreachable: bool = False) -> None:
        self.reason = reason
        self.index_unreachable = index_unreachable
        what = (
            "the package index cannot be reached" if index_unreachable else "its packages cannot be installed"
        )
        super().__init__(f"The environment of this program could not be created: {what}.")

    @property
    def details(self) -> dict[str, str]:
        """Return the details of the run's error."""
        return {"reason": self.reason}


def ensure(
    lock: str,
    environment: str = "",
    write_line: WriteLine = lambda _line: None,
    *,
    check_alive: Callable[[], None] | None = None,
) -> Path:
    """Return the environment for a version's lock (`pins.lock`, `pins.environment`). An empty lock means a
    program without requirements: it gets the common libraries or, if those are unavailable, only the client,
    which is reported through `write_line`.

    Takes milliseconds if the environment exists, and seconds if it must be created. `write_line` receives progress
    lines for the log. `check_alive` is called several times a second in the meantime and may raise an exception to
    stop. Raises EnvironmentFailed.
    """
    return EnvironmentCache.from_settings(current_app.config["SETTINGS"]).ensure(
        lock, environment, write_line, check_alive
    )


def prepare_base(settings: Settings) -> None:
    """Start a process that creates the environment with the common libraries if it does not exist, and return
    immediately. It ends with this process. Its errors are logged, and the first run tries again."""
    if _mark_as_used(EnvironmentCache.from_settings(settings).path_of(requirements.common_lock())):
        return
    command = [
        sys.executable,
        "-I",
        str(CHILD_SCRIPT),
        str(os.getpid()),
        sys.executable,
        "-m",
        "jobs.scenarios.environments",
    ]
    subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True)


@dataclass(frozen=True)
class EnvironmentCache:
    """Creates and caches environments in one folder. `source` is the client to install in each, `max_bytes` their
    maximum total size in bytes, `sandbox` the setting for the sandbox that compiles packages."""

    folder: Path
    source: Path = SDK_SOURCE
    max_bytes: int = limits.ENVIRONMENTS_BYTES
    sandbox: Setting = "auto"
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @classmethod
    def from_settings(cls, settings: Settings) -> EnvironmentCache:
        """Return the environments of a service with these settings."""
        return cls(settings.data_dir / "environments", sandbox=cast(Setting, settings.sandbox))

    def ensure(
        self,
        lock: str,
        environment: str = "",
        write_line: WriteLine = lambda _line: None,
        check_alive: Callable[[], None] | None = None,
    ) -> Path:
        """Return an environment. See `ensure`."""
        if lock:
            if environment and requirements.lock_digest(lock) != environment:
                raise EnvironmentCreationError("This version's lock was changed after it was saved.")
            return self._find_or_create(lock, write_line, check_alive)
        try:
            return self._ensure_common(write_line, check_alive)
        except EnvironmentCreationError as error:
            names = ", ".join(requirements.COMMON)
            write_line(f"The common libraries ({names}) are unavailable: {error.reason}")
            write_line("This program runs with the standard library and rowsmith only.")
        return self._find_or_create("", write_line, check_alive)

    def _ensure_common(self, write_line: WriteLine, check_alive: Callable[[], None] | None) -> Path:
        lock = requirements.common_lock()
        path = self.path_of(lock)
        note, reason = path.with_suffix(_FAILED), ""
        if not path.is_dir():
            with suppress(OSError):
                if time.time() - note.stat().st_mtime < limits.ENVIRONMENT_RETRY_SECONDS:
                    reason = note.read_text("utf-8")
        if reason:  # why creating it failed recently
            raise EnvironmentCreationError(reason)
        return self._find_or_create(lock, write_line, check_alive)

    def path_of(self, lock: str) -> Path:
        """Return the path of the environment for a lock. The name is a hash of everything that goes into it."""
        client = hashlib.sha256()
        for file in sorted(self.source.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                client.update(f"{file.relative_to(self.source)}\0".encode())
                client.update(hashlib.sha256(file.read_bytes()).digest())
        parts = [lock, platform.python_implementation(), sys.version, sysconfig.get_platform()]
        parts += [requirements.base_python(), client.hexdigest()]
        return self.folder / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]

    def is_being_built(self, lock: str) -> bool:
        """Return whether another process is creating the environment for a lock."""
        try:
            handle = os.open(self.path_of(lock).with_suffix(_LOCK), os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            return not _try_lock(handle)
        finally:
            os.close(handle)

    def _find_or_create(
        self, lock: str, write_line: WriteLine, check_alive: Callable[[], None] | None
    ) -> Path:
        path = self.path_of(lock)
        if _mark_as_used(path):
            return path
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with self._hold_lock(path, write_line, check_alive):
                if not _mark_as_used(path):
                    self._create(lock, path, write_line, check_alive)
        finally:
            self.purge(keep=path)
        return path

    @contextmanager
    def _hold_lock(
        self, path: Path, write_line: WriteLine, check_alive: Callable[[], None] | None
    ) -> Iterator[None]:
        """Hold the file lock of an environment. The kernel releases it if the process dies."""
        handle = os.open(path.with_suffix(_LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        until, is_reported = time.monotonic() + limits.ENVIRONMENT_SECONDS, False
        try:
            while not _try_lock(handle):
                if not is_reported:
                    write_line("Waiting for another run to create this environment.")
                    is_reported = True
                if check_alive is not None:
                    check_alive()
                if time.monotonic() >= until:
                    raise EnvironmentCreationError("Another run is taking too long to create it.")
                time.sleep(limits.ENVIRONMENT_POLL_SECONDS)
            yield
        finally:
            os.close(handle)

    def _create(
        self, lock: str, path: Path, write_line: WriteLine, check_alive: Callable[[], None] | None
    ) -> None:
        # We hold the lock of this environment: existing files were left by an interrupted process.
        for leftover in self.folder.glob(f"{_NEW_PREFIX}{path.name}-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        folder = self.folder / f"{_NEW_PREFIX}{path.name}-{os.getpid()}"
        folder.mkdir()
        started = time.monotonic()
        try:
            venv = self._build(folder, lock, path, write_line, check_alive)
            _make_readable(venv)
            os.utime(venv)
            venv.rename(path)
        except EnvironmentCreationError as error:
            path.with_suffix(_FAILED).write_text(error.reason, "utf-8")
            raise
        except OSError as error:
            raise EnvironmentCreationError(
                f"Could not write to the environments folder: {error.strerror}."
            ) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        path.with_suffix(_FAILED).unlink(missing_ok=True)
        if lock:
            write_line(f"Installed in {time.monotonic() - started:.1f} s.")

    def _build(
        self,
        folder: Path,
        lock: str,
        path: Path,
        write_line: WriteLine,
        check_alive: Callable[[], None] | None,
    ) -> Path:
        """Create an environment in `folder`, which is not its final place."""
        venv, env = folder / "venv", requirements.uv_environment(self.env, self.folder / "cache")
        # uv ends with this process, so that a killed run leaves no process that keeps writing.
        prefix = [sys.executable, "-I", str(CHILD_SCRIPT), str(os.getpid())]

        def uv(*arguments: str) -> None:
            result = requirements.run_uv(
                arguments,
                folder=folder,
                env=env,
                seconds=limits.ENVIRONMENT_SECONDS,
                prefix=prefix,
                check_alive=check_alive,
            )
            if not result.ok:
                raise EnvironmentCreationError(result.output, index_unreachable=result.index_unreachable)

        try:
            uv(
                "venv",
                "--quiet",
                "--relocatable",
                "--no-project",
                "--python",
                requirements.base_python(),
                str(venv),
            )
            self._install_client(venv)
            if lock:
                write_line(f"Installing {len(requirements.packages_in(lock))} packages (once).")
                (folder / "requirements.lock").write_text(lock, "utf-8")
                # Without --compile-bytecode, which would start the environment's interpreter: that one runs
                # the .pth files and sitecustomize modules of packages, outside the sandbox.
                uv(
                    *"pip install --quiet --no-deps --only-binary :all: --require-hashes".split(),
                    *("--python", str(venv / "bin" / "python"), "--requirement", "requirements.lock"),
                )
        except FileNotFoundError:
            raise EnvironmentCreationError("uv is not installed.") from None
        self._compile(folder, venv, path, check_alive)
        return venv

    def _compile(self, folder: Path, venv: Path, path: Path, check_alive: Callable[[], None] | None) -> None:
        """Compile the modules of an environment to bytecode, since programs cannot write it there.

        The base interpreter does it in the sandbox, without network and without `site`. It sees the environment
        read-only and writes the results to files, from which this process copies them into place. Modules that
        could not be compiled are compiled at each import, which is only slower.
        """
        packages = venv / "lib" / _PYTHON / "site-packages"
        sources = [
            Path(top, name)
            for top, _, names in os.walk(packages)
            for name in sorted(names)
            if name.endswith(".py") and stat.S_ISREG(os.lstat(os.path.join(top, name)).st_mode)
        ]
        code, uploads, results = folder / "code", folder / "uploads", folder / "bytecode"
        for item in (code, uploads, results):
            item.mkdir()
        listed = [(str(source), str(path / source.relative_to(venv))) for source in sources]
        (code / "sources.json").write_text(json.dumps(listed), "utf-8")
        (code / "main.py").write_text(_COMPILE, "utf-8")
        spec = SandboxSpec(
            command=(requirements.base_python(), "-I", "-S", "main.py"),
            code=code,
            environment=venv,
            read_only=(Path(sys.base_prefix),),
            uploads=uploads,
            outputs=results,
            env={"OUTPUTS": str(results)},
            network="none",
            api=("127.0.0.1", 1),
            caps=_COMPILE_CAPS,
        )
        with open(folder / "compile.log", "w+b") as output:
            try:
                with start(spec, mode(self.sandbox), output.fileno()) as handle:
                    while handle.wait(limits.ENVIRONMENT_POLL_SECONDS) is None:
                        if check_alive is not None:
                            check_alive()
                    if handle.poll() != 0:
                        log.warning("Compiling packages ended with %s (%s)", handle.poll(), handle.stopped_by)
            except SandboxUnavailable as error:
                log.warning("Could not compile packages: %s", error)
        for file in outputs.files(results):
            with open(outputs.open_file(results, file), "rb") as compiled:
                while len(head := compiled.read(_RECORD.size)) == _RECORD.size:
                    number, length = _RECORD.unpack(head)
                    if number >= len(sources) or length > _COMPILE_CAPS.file_bytes:
                        break
                    _write_bytecode(sources[number], compiled.read(length))

    def _install_client(self, venv: Path) -> None:
        """Copy the Rowsmith client into the environment, as an installed package."""
        packages = venv / "lib" / _PYTHON / "site-packages"
        match = re.search(r'__version__ = "([^"]+)"', (self.source / "_version.py").read_text("utf-8"))
        version = match[1] if match else "0"
        shutil.copytree(self.source, packages / "rowsmith", ignore=shutil.ignore_patterns("__pycache__"))
        info = packages / f"rowsmith-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: rowsmith\nVersion: {version}\n", "utf-8"
        )
        (info / "INSTALLER").write_text("rowsmith\n", "utf-8")

    # --- Removing ---------------------------------------------------------------------------------------------

    def purge(self, keep: Path | None = None) -> list[str]:
        """Remove the least recently used environments until all of them and uv's cache fit into `max_bytes`.
        Environments used in the last ENVIRONMENT_KEEP_SECONDS are kept, because a run may use them. Return
        the removed ones."""
        now, removed = time.time(), []
        for leftover in self.folder.glob(f"{_REMOVED_PREFIX}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        environments = [
            item for item in self.folder.iterdir() if item.is_dir() and _HASH.fullmatch(item.name)
        ]
        environments.sort(key=lambda environment: environment.stat().st_mtime)
        excess_bytes = requirements.disk_bytes([*environments, self.folder / "cache"]) - self.max_bytes
        for item in environments:
            if excess_bytes <= 0 or now - item.stat().st_mtime < limits.ENVIRONMENT_KEEP_SECONDS:
                break
            if item != keep and self._remove(item):
                removed.append(item.name)
                remaining = [other for other in environments if other.name not in removed]
                excess_bytes = requirements.disk_bytes([*remaining, self.folder / "cache"]) - self.max_bytes
        if excess_bytes > 0:  # uv can download its cache again
            shutil.rmtree(self.folder / "cache", ignore_errors=True)
        return removed

    def _remove(self, path: Path) -> bool:
        """Remove an environment that is not locked. It is renamed before its files are deleted."""
        handle = os.open(path.with_suffix(_LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not _try_lock(handle):
                return False
            if time.time() - path.stat().st_mtime < limits.ENVIRONMENT_KEEP_SECONDS:
                return False
            removed = path.with_name(f"{_REMOVED_PREFIX}{path.name}")
            path.rename(removed)
            shutil.rmtree(removed, ignore_errors=True)
        finally:
            os.close(handle)
        return True


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _mark_as_used(path: Path) -> bool:
    """Update the time of last use. Return False if the environment does not exist."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def _write_bytecode(source: Path, bytecode: bytes) -> None:
    """Write the bytecode of a module to its __pycache__. A package may contain a file or link of that name,
    and the file may be a hard link into uv's cache, so it is replaced and never written to."""
    target = Path(importlib.util.cache_from_source(str(source)))
    try:
        if not target.parent.is_symlink():
            target.parent.mkdir(exist_ok=True)
            target.unlink(missing_ok=True)
            with open(target, "xb") as file:
                file.write(bytecode)
    except OSError as error:
        log.warning("could not save the compiled %s: %s", source.name, error.strerror)


def _make_readable(venv: Path) -> None:
    """Make an environment readable for all and writable for its owner only, whatever the umask and the
    packages' modes are."""
    for folder, _, names in os.walk(venv):
        os.chmod(folder, 0o755)  # noqa: S103 - programs run as another user
        for name in names:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if not stat.S_ISLNK(mode):
                os.chmod(path, 0o755 if mode & 0o100 else 0o644)


def main() -> int:
    """Create the environment with the common libraries unless it exists or another process is creating it.
    Return 0 on success."""
    os.nice(10)
    try:
        settings = Settings.from_env(os.environ)
    except SettingsError as error:
        print(f"rowsmith: {error}", file=sys.stderr)
        return 1
    process_log.configure(settings)
    try:
        cache = EnvironmentCache.from_settings(settings)
        if not cache.is_being_built(requirements.common_lock()):
            cache.ensure(requirements.common_lock(), write_line=log.info)
    except EnvironmentCreationError as error:
        log.warning("%s %s", error, error.reason)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
