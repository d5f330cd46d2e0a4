"""The data folder of `./rowsmith up`: private to its owner, with generated keys, used by one `up` at a time."""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from webapp.config import LAUNCHER_NAMES


class CliError(Exception):
    """The command cannot continue; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """Information about the `up` process that uses a data folder."""

    pid: int
    url: str
    redis_url: str


def resolve(option: str | None, env: Mapping[str, str]) -> Path:
    """Return the data folder: the option, else ROWSMITH_DATA_DIR, else `var` of the clone; relative to the caller."""
    configured = option or env.get("ROWSMITH_DATA_DIR")
    if not configured:
        return Path.cwd() / "var"
    return Path(env.get("ROWSMITH_CALLER_DIR") or Path.cwd(), Path(configured).expanduser()).resolve()


class DataDir:
    """One data folder. Every error is a `CliError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = path / "logs"
        self.valkey = path / "valkey"
        self._keys = path / "keys.env"
        self._state = path / "up.json"
        self._lock_handle: int | None = None

    def prepare(self) -> None:
        """Create the folder and its subfolders, accessible only to the owner."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.logs, self.valkey):
                folder.mkdir(mode=0o700, exist_ok=True)
            # Report an existing folder that is not writable now, not in the middle of a start.
            probe = self.path / f".probe-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise CliError(f"The disk is full: {self.path} could not be written.") from error
            raise CliError(
                f"The data folder {self.path} cannot be written ({error.strerror}): choose another one with --data-dir."
            ) from error

    def lock(self, hint: str = "or start this one with another --data-dir and --port") -> None:
        """Prevent other `up` processes from starting until this process exits for any reason. `hint`: what the
        user can do instead of stopping the running one."""
        handle = os.open(self.path / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            other = self.running()
            location = f" at {other.url}, pid {other.pid}" if other else " and still starting"
            raise CliError(
                f"Rowsmith is already running{location} (data folder {self.path}): stop it with Ctrl-C there, "
                f"{hint}."
            ) from None
        self._lock_handle = handle
        self._state.unlink(missing_ok=True)

    def release(self) -> None:
        """Allow the next `up` to start."""
        if self._lock_handle is not None:
            self._state.unlink(missing_ok=True)
            os.close(self._lock_handle)
            self._lock_handle = None

    def write_running(self, running: RunningProcess) -> None:
        """Store which process uses the folder, for a second `up` and the other commands."""
        _write_private(self._state, json.dumps(asdict(running)))

    def running(self) -> RunningProcess | None:
        """Return the process that uses the folder, or None."""
        try:
            text = self._state.read_text()
            handle = os.open(self.path / "up.lock", os.O_RDWR)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return RunningProcess(**json.loads(text))
        finally:
            os.close(handle)
        return None  # written by one that was killed

    def keys(self, *, create: bool) -> dict[str, str]:
        """Return SECRET_KEY and VAULT_KEYS of this folder, generated on first use if `create_keys`. Without them,
        stored secrets are lost."""
        try:
            text = self._keys.read_text()
        except FileNotFoundError:
            if not create:
                return {}
            text = (
                f"SECRET_KEY={secrets.token_urlsafe(48)}\n"
                f"VAULT_KEYS={base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()}\n"
            )
            _write_private(self._keys, text)
        except OSError as error:
            raise CliError(f"{self._keys} cannot be read ({error.strerror}).") from error
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def replace_vault_keys(self, ring: Sequence[str]) -> None:
        """Write a new key ring, newest first, and keep the SECRET_KEY."""
        other_lines = [
            line for line in self._keys.read_text().splitlines() if not line.startswith("VAULT_KEYS=")
        ]
        _write_private(self._keys, "\n".join([*other_lines, f"VAULT_KEYS={','.join(ring)}", ""]))

    def replace_keys(self, keys: Mapping[str, str]) -> None:
        """Write new keys. The old ones are kept in a file with the time in its name."""
        if self._keys.exists():
            old_file = self._keys.with_name(
                f"{self._keys.name}.before-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
            )
            self._keys.replace(old_file)
        _write_private(self._keys, "".join(f"{name}={value}\n" for name, value in keys.items()))

    def environment(self, env: Mapping[str, str], *, create_keys: bool = False) -> dict[str, str]:
        """Return the environment of a process on this folder. Variables of the caller take precedence."""
        defaults = {"ROWSMITH_DATA_DIR": str(self.path), **self.keys(create=create_keys)}
        if running := self.running():
            defaults["REDIS_URL"] = running.redis_url
            defaults["PUBLIC_URL"] = running.url
        caller = {
            name: value for name, value in env.items() if name not in (*LAUNCHER_NAMES, "ROWSMITH_DATA_DIR")
        }
        return {**defaults, **caller}


def _write_private(path: Path, text: str) -> None:
    """Write a file atomically, readable only by its owner."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
