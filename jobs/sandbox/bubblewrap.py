"""The command line of bubblewrap: namespaces of its own, and a file system made of what the box names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from jobs.sandbox.box import Box, Mode

HOME: Final = "/home/scenario"
# Of the system. /etc is made of what libraries look for; the rest of it is the host's business.
SYSTEM: Final = (
    *(f"/usr/{name}" for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "share")),
    *(f"/usr/local/{name}" for name in ("bin", "lib", "lib64", "share")),
)
LINKED: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
ETC: Final = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl/certs", "ssl/openssl.cnf", "ca-certificates", "pki/tls/certs",
    "pki/ca-trust/extracted", "alternatives", "localtime", "timezone", "mime.types", "protocols", "services",
    "gai.conf", "os-release", "locale.alias", "fonts", "magic",
)  # fmt: skip
_DEVICES: Final = ("null", "full", "random", "urandom")
# What the last step inside needs before it gives everything up.
_POWERS: Final = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE")
INSIDE_USER: Final = 1000  # what an ordinary user of the host is called inside


def python() -> tuple[str, str]:
    """Program and folder of the Python that this process stands on, apart from any virtual environment."""
    found = Path(os.path.realpath(sys.executable))
    return str(found), str(Path(sys.base_prefix).resolve())


def arguments(box: Box, mode: Mode, files: dict[str, int], info: int) -> list[str]:
    """The options of bubblewrap. `files`: descriptors with the contents of files by their paths; `info`: the descriptor
    that is told the pid of the namespace's first process."""
    out = ["--die-with-parent", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
           "--unshare-cgroup-try", "--hostname", "scenario", "--info-fd", str(info), "--clearenv"]  # fmt: skip
    if not mode.own_user:
        out += ["--unshare-user", "--uid", str(INSIDE_USER), "--gid", str(INSIDE_USER)]
    for power in _POWERS:
        out += ["--cap-add", power]
    binds = [
        (folder, "--ro-bind") for folder in (*box.read_only, box.environment, box.uploads, Path(python()[1]))
    ]
    binds = [(folder, how) for folder, how in binds if folder.exists()]
    binds.append((box.outputs, "--bind"))
    out += [*_system(), *_own(box)]
    for folder in _above([folder for folder, _ in binds]):
        out += ["--dir", folder]
    for folder, how in binds:
        out += [how, str(folder.resolve()), str(folder)]
    for entry in sorted(box.code.iterdir()):
        out += ["--ro-bind", str(entry), f"{HOME}/{entry.name}"]
    for path, descriptor in files.items():
        out += ["--perms", "0644", "--ro-bind-data", str(descriptor), path]
    return [*out, "--remount-ro", "/", "--chdir", HOME]


def _above(folders: list[Path]) -> list[str]:
    """The folders above folders, from the top down: bubblewrap would make them for root alone. Those that lie in what
    is bound before are there by then, and those of the system too."""
    found = {str(one) for folder in folders for one in folder.parents if len(one.parts) > 1}
    bound = (*(str(one) for one in folders), *SYSTEM)
    inside = {one for one in found if any(f"{one}/".startswith(f"{other}/") for other in bound)}
    return sorted(found - inside - {"/home", "/tmp"})  # noqa: S108 - those of the box


def _system() -> list[str]:
    out = []
    for folder in (
        "/usr",
        "/usr/local",
        "/etc",
        "/etc/ssl",
        "/etc/pki",
        "/etc/pki/tls",
        "/etc/pki/ca-trust",
        "/dev",
    ):
        out += ["--dir", folder]
    for folder in SYSTEM:
        out += ["--ro-bind-try", folder, folder]
    for name in LINKED:
        path = Path("/", name)
        if path.is_symlink():
            out += ["--symlink", f"usr/{name}", str(path)]
        elif path.exists():
            out += ["--ro-bind", str(path), str(path)]
    for name in ETC:
        out += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name in _DEVICES:
        out += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    # A mapping of /dev/zero is memory that no cap counts; what is read from /dev/full are zeros too.
    out += ["--symlink", "full", "/dev/zero"]
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        out += ["--symlink", f"/proc/self/fd{target}", f"/dev/{name}"]
    # The command line of the host's kernel.
    return [*out, "--proc", "/proc", "--dev-bind", "/dev/null", "/proc/cmdline"]


def _own(box: Box) -> list[str]:
    """One file system in memory for home, /tmp and /dev/shm, so that one cap holds for all."""
    out = ["--size", str(box.caps.tmp_bytes), "--tmpfs", "/home"]
    for path in ("/home/tmp", "/home/shm"):
        out += ["--perms", "1777", "--dir", path]
    links = ("--symlink", "home/tmp", "/tmp", "--symlink", "/home/shm", "/dev/shm")  # noqa: S108 - of the box
    return [*out, "--perms", "0777", "--dir", HOME, *links]
