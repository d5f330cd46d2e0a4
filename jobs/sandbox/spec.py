"""The specification of a sandboxed program: what to run, with which files, network and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

Network = Literal["full", "api", "none"]
Setting = Literal["auto", "bubblewrap", "landlock", "plain"]
Name = Literal["bubblewrap", "landlock", "plain"]

MB: Final = 1024 * 1024


class SandboxUnavailable(Exception):
    """This machine cannot isolate programs as the setting requires."""


@dataclass(frozen=True)
class Caps:
    """Limits of one program and all processes that it starts."""

    wall_seconds: float
    cpu_seconds: float
    """CPU time of all its processes together."""
    memory_bytes: int
    """Memory of all its processes together. Shared memory counts once."""
    processes: int
    """Simultaneous processes and threads."""
    file_bytes: int
    """Of a single file."""
    tmp_bytes: int
    """Of its home folder and /tmp together. Writes beyond it fail."""
    outputs_bytes: int
    """Of all its outputs together."""


@dataclass(frozen=True)
class SandboxSpec:
    """A program with its files, environment and limits. Folders have the same paths inside and outside."""

    command: tuple[str, ...]
    """As for a shell with the environment's `bin` in PATH: ("python3", "main.py")."""
    code: Path
    """A folder. Its entries are visible, read-only, in the working directory."""
    environment: Path
    """A virtual environment, read-only."""
    read_only: tuple[Path, ...]
    """Other visible folders: the environment's Python, libraries. Missing ones are skipped."""
    uploads: Path
    outputs: Path
    """The only folder of the host that the program may write to."""
    env: Mapping[str, str]
    network: Network
    api: tuple[str, int]
    """Host and port of Rowsmith's API. Always allowed in `full` and `api`."""
    caps: Caps
    resolvers: tuple[str, ...] = ()
    """Addresses of name servers. Default: those of the host's /etc/resolv.conf."""
    networks: tuple[str, ...] = field(default=())
    """Networks (CIDR) that the operator allows for programs in addition to the public internet."""
    hidden: tuple[tuple[str, int], ...] = ()
    """The service's own components: host, address or network (CIDR), and port. They are blocked in all
    networks."""
    api_source: str = ""
    """The IPv4 loopback source address for calls to the API, by which it identifies programs; "" for any."""


@dataclass(frozen=True)
class Mode:
    """How programs are isolated on this machine, and why."""

    name: Name
    why: str
    bwrap: str = ""
    """Path of bubblewrap, in that mode."""
    own_user: bool = False
    """Each program gets a separate user id, because we are root."""
    notify: bool = False
    """The kernel notifies us before a program connects."""


@dataclass(frozen=True)
class Usage:
    """Resource usage so far. CPU time includes ended processes."""

    memory_bytes: int = 0
    max_memory_bytes: int = 0
    cpu_ms: int = 0
    processes: int = 0
