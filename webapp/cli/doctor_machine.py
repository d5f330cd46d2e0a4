"""Machine checks of the doctor: Python, packages, browser code, data folder, disk, port, stale files. Standard library
only."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from webapp import limits
from webapp.cli import bootstrap
from webapp.cli.findings import FAIL, OK, PLACEHOLDER_SECRET, WARN, Check, Finding, Installation

MIN_PYTHON: Final = (3, 11)
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)\s*(;[^\\]*)?")
_STALE_PATTERNS: Final = (".*.restoring", ".*.partial", "backups/.*.partial", "keys.env.[0-9]*")


def check_python(_patient: Installation) -> Iterator[Finding]:
    """Check the version of Python."""
    now = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < MIN_PYTHON:
        minimum = ".".join(map(str, MIN_PYTHON))
        yield Finding(
            FAIL,
            "python",
            f"Python {now} is too old; {minimum} is required.",
            "set ROWSMITH_PYTHON to another one",
        )
    else:
        yield Finding(OK, "python", f"Python {now} at {sys.executable}.")


def check_packages(patient: Installation) -> Iterator[Finding]:
    """Compare the virtual environment with its lock file."""
    if not (patient.home / "rowsmith").exists():
        yield Finding(OK, "packages", "The packages were installed together with rowsmith-server.")
        return
    venv = bootstrap.venv_dir()
    reinstall = f"rm -r {venv}, then ./rowsmith up"
    if not bootstrap.python_path(venv).exists():
        yield Finding(
            FAIL, "packages", f"The virtual environment {venv} does not exist.", "./rowsmith up installs it"
        )
        return
    if not bootstrap.is_working(venv):
        yield Finding(
            FAIL,
            "packages",
            f"The Python of {venv} does not start; its base may have been removed.",
            reinstall,
        )
        return
    if Path(sys.prefix).resolve() == venv.resolve() and (
        wrong := _mismatched_packages(patient.home / "requirements.lock")
    ):
        names = ", ".join(wrong[: limits.UPKEEP_LISTED]) + (
            f" and {len(wrong) - limits.UPKEEP_LISTED} more" if len(wrong) > limits.UPKEEP_LISTED else ""
        )
        yield Finding(FAIL, "packages", f"Packages differ from the lock file: {names}.", reinstall)
        return
    if not bootstrap.is_installed(venv, "requirements.lock"):
        message = "The lock file has changed since the packages were installed."
        yield Finding(WARN, "packages", message, "the next command of ./rowsmith installs them")
        return
    yield Finding(OK, "packages", f"{venv} matches requirements.lock.")


def _mismatched_packages(lock: Path) -> list[str]:
    """Return the packages of the lock file that are missing or have another version, except for other platforms."""
    found = []
    for line in lock.read_text().splitlines():
        pin = _PIN.match(line)
        if pin is None or not _applies_here(pin[3]):
            continue
        try:
            installed = importlib.metadata.version(pin[1])
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{pin[1]} is missing")
            continue
        if installed != pin[2]:
            found.append(f"{pin[1]} is {installed}, not {pin[2]}")
    return found


def _applies_here(marker: str | None) -> bool:
    if not marker:
        return True
    try:
        from packaging.markers import Marker
    except ImportError:
        return False  # the name is unknown; `packaging` itself is reported then
    return Marker(marker.lstrip("; ").strip()).evaluate()


def check_browser_code(patient: Installation) -> Iterator[Finding]:
    """Check the browser code in static/vendor."""
    from webapp.cli import assets
    from webapp.paths import STATIC_COPY

    if assets.is_current(patient.home / "static") or assets.is_current(STATIC_COPY):
        yield Finding(OK, "browser code", "The browser code matches package-lock.json.")
    else:
        message = "The browser code is missing or outdated: pages would not work."
        yield Finding(WARN, "browser code", message, "./rowsmith up or ./rowsmith assets fetches it")


def check_settings(patient: Installation) -> Iterator[Finding]:
    """Check the settings, and report all errors."""
    from webapp.config import Settings, SettingsError

    try:
        Settings.from_env({"SECRET_KEY": PLACEHOLDER_SECRET, **patient.env})
    except SettingsError as error:
        for fault in error.faults:
            yield Finding(FAIL, "settings", fault, "see docs/reference/settings.md")
        return
    if not patient.env.get("SECRET_KEY"):
        fix = (
            "up creates one in the data folder"
            if not patient.folder.exists()
            else "set SECRET_KEY, or start ./rowsmith up"
        )
        yield Finding(WARN, "settings", "SECRET_KEY is not set yet.", fix)
    else:
        yield Finding(OK, "settings", "The settings are valid.")


def check_data_folder(patient: Installation) -> Iterator[Finding]:
    """Check the permissions of the folder and of the keys in it."""
    folder = patient.folder
    if not folder.is_dir():
        yield Finding(
            WARN,
            "data folder",
            f"{folder} does not exist yet.",
            f"./rowsmith up{patient.data_dir_option} creates it",
        )
        return
    try:
        with tempfile.NamedTemporaryFile(prefix=".probe-", dir=folder):
            pass
    except OSError as error:
        mend = f"chown -R {os.getuid()} {folder}"
        yield Finding(FAIL, "data folder", f"{folder} cannot be written: {error.strerror}.", mend)
        return
    others = stat.S_IRWXG | stat.S_IRWXO
    open_to = [
        path for path in (folder, folder / "keys.env") if path.exists() and path.stat().st_mode & others
    ]
    for path in open_to:
        mode = "700" if path.is_dir() else "600"
        message = f"{path} is accessible to users other than its owner."
        yield Finding(FAIL if path.is_file() else WARN, "data folder", message, f"chmod {mode} {path}")
    if not open_to:
        yield Finding(OK, "data folder", f"{folder} is writable, and accessible only to its owner.")


def check_disk(patient: Installation) -> Iterator[Finding]:
    """Check the free space for data and files."""
    folders = {"data folder": patient.folder}
    if patient.settings is not None and patient.settings.storage_url.startswith("file:"):
        folders["storage"] = Path(unquote(urlsplit(patient.settings.storage_url).path))
    checked_devices = set()
    for name, folder in folders.items():
        existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if existing.stat().st_dev in checked_devices:
            continue
        checked_devices.add(existing.stat().st_dev)
        free = shutil.disk_usage(existing).free
        state = FAIL if free < limits.DISK_FULL_BYTES else WARN if free < limits.DISK_SCARCE_BYTES else OK
        message = f"{free // limits.MB:,} MB are free for the {name} ({existing})."
        mend = "free some space, or use another disk with --data-dir or STORAGE_URL" if state != OK else ""
        yield Finding(state, "disk", message, mend)


def check_leftover_files(patient: Installation) -> Iterator[Finding]:
    """Check for files of killed commands, and for an `up.json` without a running `up`."""
    from webapp.cli.datadir import DataDir

    folder = patient.folder
    if not folder.is_dir():
        return
    running = DataDir(folder).running()
    patient.results["running"] = running
    if running is not None:
        yield Finding(OK, "up", f"./rowsmith up is running at {running.url}, pid {running.pid}.")
    elif (folder / "up.json").exists():
        message = "The last ./rowsmith up was killed and left up.json behind; the next one replaces it."
        yield Finding(WARN, "up", message, f"rm {folder / 'up.json'}")
    stale_files = sorted(path for pattern in _STALE_PATTERNS for path in folder.glob(pattern))
    for path in stale_files:
        message = (
            f"{path} was left behind by a command that was killed, unless that command is still running."
        )
        yield Finding(WARN, "left behind", message, f"rm {path}")


def check_port(patient: Installation) -> Iterator[Finding]:
    """Check that the web server responds, or that its port is free."""
    from webapp.cli import probe

    settings = patient.settings
    if settings is None:
        return
    running = patient.results.get("running")
    url = running.url if running else settings.local_url
    if probe.http_ok(url, "/health/live")():
        yield Finding(OK, "web", f"The web server responds at {url}.")
    elif running:
        message = f"No server responds at {url}, although ./rowsmith up is running."
        yield Finding(FAIL, "web", message, f"see {patient.folder / 'logs' / 'web.log'}")
    elif reason := probe.port_error(settings.host, settings.port):
        message = f"Port {settings.port} of {settings.host} is used by another program ({reason})."
        yield Finding(WARN, "web", message, "choose another one with --port or ROWSMITH_PORT")
    else:
        yield Finding(OK, "web", f"Not running; port {settings.port} of {settings.host} is free.")


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("python", check_python),
    ("packages", check_packages),
    ("browser code", check_browser_code),
    ("settings", check_settings),
    ("data folder", check_data_folder),
    ("disk", check_disk),
    ("up", check_leftover_files),
    ("web", check_port),
)
