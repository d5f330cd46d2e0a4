"""What is to be run, and what it may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

Network = Literal["full", "api", "none"]
Setting = Literal["auto", "bubblewrap", "landlock", "plain"]
Name = Literal["bubblewrap", "landlock", "plain"]

MB: Final = 1024 * 1024


class Unprotected(Exception):
    """Nothing on this machine can keep a program apart, and the setting does not allow to do without."""


@dataclass(frozen=True)
class Caps:
    """What one program may take, with all that it starts."""

    wall_seconds: float
    cpu_seconds: float
    """Processor time of all its processes together."""
    memory_bytes: int
    """Memory of all its processes together; what they share counts once."""
    processes: int
    """Processes and threads at once."""
    file_bytes: int
    """Of one file."""
    tmp_bytes: int
    """Of its home and of /tmp together; a write beyond it fails."""
    outputs_bytes: int
    """Of all its outputs together."""


@dataclass(frozen=True)
class Box:
    """A program and what it is given. All folders are seen by the program under the paths they have here."""

    command: tuple[str, ...]
    """As a shell would find it in the environment's `bin`: ("python3", "main.py")."""
    code: Path
    """A folder. Its entries are seen, read-only, in the program's working directory."""
    environment: Path
    """A virtual environment, read-only."""
    read_only: tuple[Path, ...]
    """What else is seen: the Python that the environment stands on, libraries. Missing ones are left out."""
    uploads: Path
    outputs: Path
    """The one folder of the host that it may write to."""
    env: Mapping[str, str]
    network: Network
    api: tuple[str, int]
    """Host and port where Rowsmith's API listens: reached in `full` and `api`, whatever the address."""
    caps: Caps
    resolvers: tuple[str, ...] = ()
    """Addresses of name servers; empty: those of the host's /etc/resolv.conf."""
    networks: tuple[str, ...] = field(default=())
    """Networks (CIDR) that the operator opens to programs beside the public internet."""
    hidden: tuple[tuple[str, int], ...] = ()
    """Where the service's own parts listen: host, address or network (CIDR), and port. No network above opens them."""
    api_source: str = ""
    """The IPv4 loopback address from which an API on loopback is called, by which it knows a program; "" for any."""


@dataclass(frozen=True)
class Mode:
    """How programs are kept apart on this machine, and why in this way."""

    name: Name
    why: str
    bwrap: str = ""
    """The program bubblewrap, where the name says so."""
    own_user: bool = False
    """Every program gets a user id of its own; we are root."""
    notify: bool = False
    """The kernel asks us before a program connects."""


@dataclass(frozen=True)
class Usage:
    """What a program has taken so far. CPU time includes that of its processes that ended."""

    memory_bytes: int = 0
    max_memory_bytes: int = 0
    cpu_ms: int = 0
    processes: int = 0
