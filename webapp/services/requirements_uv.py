"""uv, which finds and installs packages: how it is called, and what it says in words for a person.

It runs with an environment of its own. Where packages come from is the operator's matter: the usual names of uv (and
those of pip that say the same) are handed on, and nothing of them is ever told to a caller.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uv

# What says where packages come from, how the way there is protected, and where files may be put.
HANDED_ON: Final = (
    "UV_CONFIG_FILE UV_DEFAULT_INDEX UV_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_NO_INDEX "
    "UV_INDEX_STRATEGY UV_KEYRING_PROVIDER UV_INSECURE_HOST UV_NATIVE_TLS UV_SYSTEM_CERTS "
    "UV_HTTP_TIMEOUT UV_HTTP_RETRIES UV_OFFLINE UV_EXCLUDE_NEWER UV_CACHE_DIR UV_LINK_MODE "
    "HOME XDG_CONFIG_HOME XDG_CONFIG_DIRS TMPDIR NETRC SSL_CERT_FILE SSL_CERT_DIR SSL_CLIENT_CERT "
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy"
).split()
# What pip calls it: what uv calls it.
AS_PIP: Final = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_NO_INDEX": "UV_NO_INDEX",
    "PIP_CERT": "SSL_CERT_FILE",
}
NO_INDEX: Final = "UV_NO_INDEX"
_INDEXES: Final = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_NO_INDEX")
_AWAY: Final = re.compile(
    r"error sending request|tcp connect error|dns error|Request failed after|operation timed out"
    r"|connection (?:refused|reset)|network (?:connectivity )?(?:is|was) (?:unreachable|disabled)|status: 5\d\d",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(r"(?:url )?[`(]*\b[a-z][a-z0-9+.-]*://[^\s`)]+[`)]*", re.IGNORECASE)
_FOLDER: Final = re.compile(r"`?(?<![\w.])~?/[^\s`'\",;:)]+`?")
_STYLE: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class Done:
    """How a call of uv ended. `said` is its own words, cleaned of addresses and folders; "" where it went well."""

    ok: bool
    said: str = ""
    away: bool = False
    """Whether the index could not be reached, so that another try may go well."""


def program() -> str:
    """Where uv is: the one that is installed with the service, else the machine's. Error: FileNotFoundError."""
    try:
        return uv.find_uv_bin()
    except FileNotFoundError:
        found = shutil.which("uv")
        if found is None:
            raise
        return found


def environment(own: Mapping[str, str], cache: Path) -> dict[str, str]:
    """The variables of a call of uv: of `own` (this process's) only what says where packages come from."""
    found = {name: own[name] for name in HANDED_ON if own.get(name)}
    with_index = any(name in found for name in _INDEXES)
    for theirs, name in AS_PIP.items():
        if own.get(theirs) and name not in found and not (with_index and name in _INDEXES):
            found[name] = ",".join(own[theirs].split()) if name == "UV_FIND_LINKS" else own[theirs]
    fixed = {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",  # the service's own Python is the programs'
    }
    return {"UV_CACHE_DIR": str(cache), **found, **fixed}


def call(
    arguments: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    seconds: float,
    front: Sequence[str] = (),
    alive: Callable[[], None] | None = None,
) -> Done:
    """Run `uv <arguments>` in a folder, for at most so many seconds; files that it makes can be read by everybody.

    `front` is put before the command. `alive` is called several times a second; what it raises stops uv and goes on.
    """
    # uv has an option for this and, unlike pip, no variable.
    alone = arguments[0] == "pip" and env.get(NO_INDEX, "").lower() in ("1", "true", "yes", "on")
    with open(folder / "uv.log", "w+b") as log:
        process = subprocess.Popen(
            [*front, program(), *arguments, *(["--no-index"] if alone else [])],
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            umask=0o022,
            start_new_session=True,
        )
        try:
            ended = _wait(process, seconds, alive)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        log.seek(0)
        text = log.read().decode("utf-8", "replace")
    if not ended:
        return Done(False, f"This took longer than {seconds:.0f} s.", away=True)
    return Done(True) if process.returncode == 0 else Done(False, cleaned(text), bool(_AWAY.search(text)))


def _wait(process: subprocess.Popen[bytes], seconds: float, alive: Callable[[], None] | None) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if alive is not None:
            alive()
        try:
            process.wait(timeout=max(0.0, min(0.25, until - time.monotonic())))
        except subprocess.TimeoutExpired:
            continue
        return True
    return False


def cleaned(text: str) -> str:
    """What uv said, in one paragraph: no addresses, no folders of this machine, and not how it got there."""
    lines = [" ".join(line.split()) for line in _STYLE.sub("", text).splitlines()]
    lines = [
        line for line in lines if line and not line.startswith(("warning:", "Using ", "Resolved ", "hint:"))
    ]
    told = [re.sub(r"^(?:error: |cause: |[×╰─▶├│ ]+)+", "", line) for line in lines]
    whole = ". ".join(
        one.rstrip(".:") for one in _joined(told) if not one.startswith("No solution found when")
    )
    whole = _FOLDER.sub("a folder of the service", _ADDRESS.sub("the package index", whole))
    return f"{whole.strip()[:2000]}." if whole.strip() else "uv gave no reason."


def _joined(lines: list[str]) -> list[str]:
    """Lines as sentences: one that begins in lower case goes on from the one before."""
    found: list[str] = []
    for line in lines:
        if found and line[:1].islower():
            found[-1] += f" {line}"
        else:
            found.append(line)
    return found
