"""Environments that programs run in: a folder with Python, the packages of a lock, and our own client.

Each lies in `<data folder>/environments/<hash>` and is whole or not there: it is made beside, under a lock of the
kernel, and then renamed. The hash is over all that is in it, so a new release, another Python or a changed client
makes a new one, and an old one is removed when space runs short and nobody has used it for a while. Everybody on this
machine can read them: programs run as another user.

`python -m jobs.scenarios.environments` makes the one with the common libraries ready; runners start it when they begin.
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

from jobs.sandbox import Box, Caps, Setting, Unprotected, mode, outputs, start
from webapp import ROOT, limits
from webapp.config import Settings, SettingsError
from webapp.operations import process_log
from webapp.scenarios.services import requirements

log = logging.getLogger(__name__)

SDK: Final = ROOT / "sdk" / "python" / "src" / "rowsmith"
CHILD: Final = ROOT / "webapp" / "cli" / "child.py"
_MAKING: Final = ".making-"
_GONE: Final = ".gone-"
_FAILED: Final = ".failed"
_LOCK: Final = ".lock"
_PYTHON: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"
# Runs in the sandbox. Each worker writes to one file: the number of a module, the length of its bytecode, the bytecode.
# A module with a syntax error (templates of code generators have them) does not stop the others.
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
_RECORD: Final = struct.Struct("<QQ")  # what stands before each module's bytecode
_COMPILE_CAPS: Final = Caps(
    wall_seconds=limits.ENVIRONMENT_SECONDS,
    cpu_seconds=limits.ENVIRONMENT_SECONDS * limits.RUN_PROCESSORS,
    memory_bytes=limits.RUN_MEMORY_BYTES,
    processes=16,
    file_bytes=limits.RUN_OUTPUTS_BYTES,
    tmp_bytes=16 * limits.MB,
    outputs_bytes=limits.RUN_OUTPUTS_BYTES,
)
Tell = Callable[[str], None]


class NotMade(Exception):
    """An environment could not be made. The text is a sentence for whoever asked for the run; `reason` is what uv
    said, without addresses and folders."""

    def __init__(self, reason: str, *, away: bool = False) -> None:
        self.reason = reason
        self.away = away
        what = "the package index cannot be reached" if away else "its packages cannot be installed"
        super().__init__(f"The environment of this program could not be made: {what}.")

    @property
    def details(self) -> dict[str, str]:
        """For the run's error."""
        return {"reason": self.reason}


def ensure(
    lock: str,
    environment: str = "",
    tell: Tell = lambda _line: None,
    *,
    alive: Callable[[], None] | None = None,
) -> Path:
    """The environment for a version's lock (`pins.lock`, `pins.environment`); "" for a program without requirements,
    which gets the common libraries, or, where those cannot be had, our client alone, which `tell` is then told.

    Takes milliseconds where it is there, seconds where it must be made; `tell` gets a line for whoever waits. `alive`
    is called several times a second meanwhile, and may raise to stop it. Error: NotMade.
    """
    return Maker.of(current_app.config["SETTINGS"]).ensure(lock, environment, tell, alive)


def prepare_base() -> None:
    """Have the environment with the common libraries made, in a process of its own that dies with this one; returns
    at once. What goes wrong is in its log, and tried again by the first run."""
    command = [
        sys.executable,
        "-I",
        str(CHILD),
        str(os.getpid()),
        sys.executable,
        "-m",
        "jobs.scenarios.environments",
    ]
    subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True)


@dataclass(frozen=True)
class Maker:
    """Makes and keeps environments in one folder. `source` is the client that goes into each, `space` what they may
    take together in bytes, `sandbox` the setting for the sandbox in which packages are compiled."""

    folder: Path
    source: Path = SDK
    space: int = limits.ENVIRONMENTS_BYTES
    sandbox: Setting = "auto"
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @classmethod
    def of(cls, settings: Settings) -> Maker:
        """The one of a service with these settings."""
        return cls(settings.data_dir / "environments", sandbox=cast(Setting, settings.sandbox))

    def ensure(
        self,
        lock: str,
        environment: str = "",
        tell: Tell = lambda _line: None,
        alive: Callable[[], None] | None = None,
    ) -> Path:
        """See `ensure`."""
        if lock:
            if environment and requirements.digest(lock) != environment:
                raise NotMade("The lock of this version was changed after it was saved.")
            return self._ensured(lock, tell, alive)
        try:
            return self._common(tell, alive)
        except NotMade as error:
            names = ", ".join(requirements.COMMON)
            tell(f"The common libraries ({names}) are not there: {error.reason}")
            tell("This program runs with Python's own library and rowsmith alone.")
        return self._ensured("", tell, alive)

    def _common(self, tell: Tell, alive: Callable[[], None] | None) -> Path:
        lock = requirements.common_lock()
        found = self.place(lock)
        if not found.is_dir() and (said := self._lately_failed(found)):
            raise NotMade(said)
        return self._ensured(lock, tell, alive)

    def place(self, lock: str) -> Path:
        """Where the environment of a lock lies, or will lie: the hash is over all that it is made of."""
        parts = [lock, platform.python_implementation(), sys.version, sysconfig.get_platform()]
        parts += [requirements.base_python(), _content(self.source)]
        return self.folder / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]

    def _ensured(self, lock: str, tell: Tell, alive: Callable[[], None] | None) -> Path:
        found = self.place(lock)
        if _used(found):
            return found
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._alone(found, tell, alive):
            if not _used(found):
                self._make(lock, found, tell, alive)
        self.purge(keep=found)
        return found

    @contextmanager
    def _alone(self, found: Path, tell: Tell, alive: Callable[[], None] | None) -> Iterator[None]:
        """Keep others from making the same one meanwhile. The kernel ends the lock with the process."""
        handle = os.open(found.with_suffix(_LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        until, told = time.monotonic() + limits.ENVIRONMENT_SECONDS, False
        try:
            while not _locked(handle):
                if not told:
                    tell("Waiting for the environment that another run is making.")
                    told = True
                if alive is not None:
                    alive()
                if time.monotonic() >= until:
                    raise NotMade("Another run has been making it for too long.")
                time.sleep(limits.ENVIRONMENT_POLL_SECONDS)
            yield
        finally:
            os.close(handle)

    def _make(self, lock: str, found: Path, tell: Tell, alive: Callable[[], None] | None) -> None:
        self._sweep(found)
        folder = self.folder / f"{_MAKING}{found.name}-{os.getpid()}"
        folder.mkdir()
        begun = time.monotonic()
        try:
            made = self._filled(folder, lock, found, tell, alive)
            _readable(made)
            os.utime(made)
            made.rename(found)
        except NotMade as error:
            found.with_suffix(_FAILED).write_text(error.reason, "utf-8")
            raise
        except OSError as error:
            raise NotMade(f"The folder of environments cannot be written: {error.strerror}.") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        found.with_suffix(_FAILED).unlink(missing_ok=True)
        if lock:
            tell(f"Installed in {time.monotonic() - begun:.1f} s.")

    def _filled(
        self, folder: Path, lock: str, found: Path, tell: Tell, alive: Callable[[], None] | None
    ) -> Path:
        """An environment in `folder`, not yet where it belongs."""
        made, env = folder / "venv", requirements.environment(self.env, self.folder / "cache")
        # uv dies with this process, so that a killed run leaves nobody behind who goes on writing.
        front = [sys.executable, "-I", str(CHILD), str(os.getpid())]

        def uv(*arguments: str) -> None:
            done = requirements.call(
                arguments,
                folder=folder,
                env=env,
                seconds=limits.ENVIRONMENT_SECONDS,
                front=front,
                alive=alive,
            )
            if not done.ok:
                raise NotMade(done.said, away=done.away)

        try:
            uv(
                "venv",
                "--quiet",
                "--relocatable",
                "--no-project",
                "--python",
                requirements.base_python(),
                str(made),
            )
            self._put_client(made)
            if lock:
                tell(f"Installing {len(requirements.packages(lock))} packages (once).")
                (folder / "requirements.lock").write_text(lock, "utf-8")
                # Without --compile-bytecode, for which uv starts the environment's interpreter: that one runs every
                # .pth file and sitecustomize module of the packages, here and not in the sandbox.
                uv(
                    *"pip install --quiet --no-deps --only-binary :all: --require-hashes".split(),
                    *("--python", str(made / "bin" / "python"), "--requirement", "requirements.lock"),
                )
        except FileNotFoundError:
            raise NotMade("uv is not installed.") from None
        self._compile(folder, made, found, alive)
        return made

    def _compile(self, folder: Path, made: Path, found: Path, alive: Callable[[], None] | None) -> None:
        """Compile the modules of an environment to bytecode, since programs cannot write it there.

        The base interpreter does it in the sandbox, without network and without `site`. It sees the environment
        read-only and writes the results to files, from which this process copies them into place. Modules that
        could not be compiled are compiled at each import, which is only slower.
        """
        packages = made / "lib" / _PYTHON / "site-packages"
        sources = [
            Path(top, name)
            for top, _, names in os.walk(packages)
            for name in sorted(names)
            if name.endswith(".py") and stat.S_ISREG(os.lstat(os.path.join(top, name)).st_mode)
        ]
        code, uploads, results = folder / "code", folder / "uploads", folder / "bytecode"
        for one in (code, uploads, results):
            one.mkdir()
        listed = [(str(one), str(found / one.relative_to(made))) for one in sources]
        (code / "sources.json").write_text(json.dumps(listed), "utf-8")
        (code / "main.py").write_text(_COMPILE, "utf-8")
        box = Box(
            command=(requirements.base_python(), "-I", "-S", "main.py"),
            code=code,
            environment=made,
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
                with start(box, mode(self.sandbox), output.fileno()) as boxed:
                    while boxed.wait(limits.ENVIRONMENT_POLL_SECONDS) is None:
                        if alive is not None:
                            alive()
                    if boxed.poll() != 0:
                        log.warning("Compiling packages ended with %s (%s)", boxed.poll(), boxed.stopped_by)
            except Unprotected as error:
                log.warning("Packages are not compiled: %s", error)
        for file in outputs.files(results):
            with open(outputs.open_file(results, file), "rb") as compiled:
                while len(head := compiled.read(_RECORD.size)) == _RECORD.size:
                    number, length = _RECORD.unpack(head)
                    if number >= len(sources) or length > _COMPILE_CAPS.file_bytes:
                        break
                    _put_bytecode(sources[number], compiled.read(length))

    def _put_client(self, made: Path) -> None:
        """Our own client, as a package that is installed."""
        packages = made / "lib" / _PYTHON / "site-packages"
        told = re.search(r'__version__ = "([^"]+)"', (self.source / "_version.py").read_text("utf-8"))
        version = told[1] if told else "0"
        shutil.copytree(self.source, packages / "rowsmith", ignore=shutil.ignore_patterns("__pycache__"))
        about = packages / f"rowsmith-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: rowsmith\nVersion: {version}\n", "utf-8"
        )
        (about / "INSTALLER").write_text("rowsmith\n", "utf-8")

    def _lately_failed(self, found: Path) -> str:
        """Why it could not be made a moment ago; "" where that is long ago, or never was."""
        note = found.with_suffix(_FAILED)
        with suppress(OSError):
            if time.time() - note.stat().st_mtime < limits.ENVIRONMENT_RETRY_SECONDS:
                return note.read_text("utf-8")
        return ""

    def _sweep(self, found: Path) -> None:
        """Remove what a maker that was killed has left of the same one: its lock is ours now."""
        for left in self.folder.glob(f"{_MAKING}{found.name}-*"):
            shutil.rmtree(left, ignore_errors=True)

    # --- Removing ---------------------------------------------------------------------------------------------

    def purge(self, keep: Path | None = None) -> list[str]:
        """Remove environments, longest unused first, until all of them and what uv keeps fit into `space`. None goes
        that was used in the last ENVIRONMENT_KEEP_SECONDS, so none that a run may still be in. Returns what went."""
        now, removed = time.time(), []
        for left in self.folder.glob(f"{_GONE}*"):
            shutil.rmtree(left, ignore_errors=True)
        made = [one for one in self.folder.iterdir() if one.is_dir() and _is_hash(one.name)]
        made.sort(key=lambda one: one.stat().st_mtime)
        over = _size([*made, self.folder / "cache"]) - self.space
        for one in made:
            if over <= 0 or now - one.stat().st_mtime < limits.ENVIRONMENT_KEEP_SECONDS:
                break
            if one != keep and self._removed(one):
                removed.append(one.name)
                rest = [other for other in made if other.name not in removed]
                over = _size([*rest, self.folder / "cache"]) - self.space
        if over > 0:  # what uv has fetched can be fetched again
            shutil.rmtree(self.folder / "cache", ignore_errors=True)
        return removed

    def _removed(self, one: Path) -> bool:
        """Remove an environment that nobody is asking for just now. It stops being one before its files go."""
        handle = os.open(one.with_suffix(_LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not _locked(handle):
                return False
            if time.time() - one.stat().st_mtime < limits.ENVIRONMENT_KEEP_SECONDS:
                return False
            gone = one.with_name(f"{_GONE}{one.name}")
            one.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        finally:
            os.close(handle)
        return True


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _used(found: Path) -> bool:
    """Note that an environment is used now. False where it is not there."""
    try:
        os.utime(found)
    except FileNotFoundError:
        return False
    return True


def _is_hash(name: str) -> bool:
    return len(name) == 40 and set(name) <= set("0123456789abcdef")


def _put_bytecode(source: Path, bytecode: bytes) -> None:
    """Write the bytecode of a module to where Python looks for it. A package may have brought a file or link of that
    name, and the file may be a hard link into uv's cache, so it is replaced and never written to."""
    target = Path(importlib.util.cache_from_source(str(source)))
    try:
        if not target.parent.is_symlink():
            target.parent.mkdir(exist_ok=True)
            target.unlink(missing_ok=True)
            with open(target, "xb") as file:
                file.write(bytecode)
    except OSError as error:
        log.warning("%s is not compiled: %s", source.name, error.strerror)


def _content(folder: Path) -> str:
    """A hash of a package's files, with their names."""
    whole = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            whole.update(f"{file.relative_to(folder)}\0".encode())
            whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def _readable(made: Path) -> None:
    """Let everybody read an environment and only its owner write, whatever this process's mask and the packages' own
    rights."""
    for folder, _, names in os.walk(made):
        os.chmod(folder, 0o755)  # noqa: S103 - programs run as another user
        for name in names:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if not stat.S_ISLNK(mode):
                os.chmod(path, 0o755 if mode & 0o100 else 0o644)


def _size(folders: list[Path]) -> int:
    """Bytes on the disk; a file that lies in several folders by links counts once."""
    seen: dict[tuple[int, int], int] = {}
    for top in folders:
        for folder, _, names in os.walk(top):
            for name in names:
                with suppress(OSError):
                    found = os.lstat(os.path.join(folder, name))
                    seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values())


def main() -> int:
    """Make the environment with the common libraries, if nobody has. Returns 0 when it is there."""
    os.nice(10)
    try:
        settings = Settings.from_env(os.environ)
    except SettingsError as error:
        print(f"rowsmith: {error}", file=sys.stderr)
        return 1
    process_log.configure(settings)
    try:
        maker = Maker.of(settings)
        maker.ensure(requirements.common_lock(), tell=log.info)
    except NotMade as error:
        log.warning("%s %s", error, error.reason)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
