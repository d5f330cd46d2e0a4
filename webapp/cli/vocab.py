"""`./rowsmith vocab list | install ID | prune`: the word lists that versions of templates pin, in the storage."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from flask import current_app

from webapp.cli import bootstrap, operator
from webapp.cli.datadir import CliError
from webapp.config import Settings
from webapp.engine.data import build, vocab_lock
from webapp.engine.data.vocab_lock import LockEntry, VocabularyError
from webapp.paths import ROOT
from webapp.row_templates.services import vocabularies

Environment = Callable[[Path, Sequence[str]], Path]
"""Create a virtual environment in a folder with these requirements, and return its Python."""


def run(arguments: argparse.Namespace) -> int:
    """Run the action. CliError for errors that users can fix."""
    if (arguments.action == "install") != (arguments.id is not None):
        raise CliError("Only install takes an id, and requires one: ./rowsmith vocab install ID.")
    with operator.application_context(arguments.data_dir, running=False):
        try:
            return {"list": show, "install": install, "prune": prune}[arguments.action](arguments)
        except OSError as error:
            raise CliError(f"The storage {_storage_url()} does not respond: {error}.") from error
        except VocabularyError as error:
            raise CliError(str(error)) from error


def show(_arguments: argparse.Namespace) -> int:
    """Print a line for each vocabulary that is present, pinned or stored: id, state, versions that pin it, location."""
    present = vocab_lock.current_entry().id
    pinned, stored = vocabularies.count_pins(), vocabularies.stored_sizes()
    for vocabulary_id in (present, *sorted({*pinned, *stored} - {present})):
        count = pinned.get(vocabulary_id, 0)
        used = f"pinned by {count:,} version{'' if count == 1 else 's'}"
        if vocabulary_id in stored:
            state, location = "stored", f"{_storage_url()}/{vocabularies.key_of(vocabulary_id)}"
        elif (path := vocabularies.local_path(vocabulary_id)).exists():
            state, location = "stored", f"{path} (not in the storage yet)"
        else:
            state, location = "missing", f"missing: ./rowsmith vocab install {vocabulary_id}"
        if vocabulary_id == present:
            state = "present"
        print(f"{vocabulary_id}  {state:<9}  {used:<22}  {location}")
    return 0


def _storage_url() -> str:
    settings: Settings = current_app.config["SETTINGS"]
    return settings.storage_url.rstrip("/")


def prune(_arguments: argparse.Namespace) -> int:
    """Remove the vocabularies that no version pins."""
    removed = vocabularies.prune()
    for vocabulary_id in removed:
        print(f"removed {vocabulary_id}")
    if not removed:
        print("Every stored vocabulary is present or pinned: nothing was removed.")
    return 0


def install(arguments: argparse.Namespace) -> int:
    """Store a vocabulary again: from this machine's disk, else built as the lock file says."""
    vocabulary_id = arguments.id
    if not vocabularies.is_id(vocabulary_id):
        raise CliError(
            f"{vocabulary_id!r} is not a vocabulary: an id has 32 hexadecimal digits (./rowsmith vocab list)."
        )
    if vocabularies.is_intact(vocabulary_id):
        print(f"{vocabulary_id} is already in the storage.")
        return 0
    path = vocabularies.local_path(vocabulary_id)
    try:
        is_valid = path.exists() and bool(vocabularies.verify_file(path, vocabulary_id))
    except VocabularyError:
        path.unlink()
        is_valid = False
    if is_valid:
        vocabularies.store(path, vocabulary_id)
    else:
        rebuild(vocabulary_id)
    print(f"{vocabulary_id} is in the storage: {_storage_url()}/{vocabularies.key_of(vocabulary_id)}")
    return 0


def rebuild(vocabulary_id: str, environment: Environment | None = None) -> None:
    """Build a vocabulary that the lock names, and store it if its contents match.

    The present one is built by the installed libraries, an earlier one in a separate environment with the
    libraries that the lock names. Errors: CliError, VocabularyError; then nothing is stored.
    """
    try:
        lock = vocab_lock.find_entry(vocabulary_id)
    except VocabularyError:
        raise CliError(
            f"{vocabulary_id} is unknown here: {vocab_lock.LOCK_FILE.name} lists the vocabularies of this release and"
            f" those before it. Take {vocabularies.key_of(vocabulary_id)} from a backup of the storage, or install it"
            " with the newer release that created it."
        ) from None
    if lock.source and lock.source != build.source_digest(lock.extractor):
        raise CliError(
            f"{vocabulary_id} cannot be built here: the extractor {lock.extractor} is not the one that created it. "
            "Undo the change of its files."
        )
    vocabularies.local_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=vocabularies.local_folder()) as name:
        folder = Path(name)
        if vocabulary_id == vocab_lock.current_entry().id:
            path = build.build(folder)
        else:
            path = _build_earlier(lock, folder, environment or make_environment)
        vocabularies.store(path, vocabulary_id)
        os.replace(path, vocabularies.local_path(vocabulary_id))


def _build_earlier(lock: LockEntry, folder: Path, environment: Environment) -> Path:
    """Build the file of an earlier vocabulary in `folder`, and return its path."""
    print(f"rowsmith: installing the libraries of {lock.id} for this once", file=sys.stderr, flush=True)
    libraries = [f"{library}=={number}" for library, number in sorted(lock.versions.items())]
    python = environment(folder / "venv", [*libraries, f"pyarrow=={version('pyarrow')}"])
    command = [str(python), "-m", "webapp.engine.data.build", str(folder), "--id", lock.id]
    environment_variables = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment_variables, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    path = folder / f"{lock.id}.arrow"
    if done.returncode != 0 or not path.exists():
        reason = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise CliError(f"{lock.id} could not be built, and nothing was stored: {reason}")
    return path


_PIP: Final = ("--quiet", "--no-input", "--disable-pip-version-check", "--retries", "2")


def make_environment(venv: Path, requirements: Sequence[str]) -> Path:
    """Create an environment with these packages, by uv if it is on the PATH, else by venv and pip. Error: CliError."""
    log = venv.with_suffix(".log")
    log.touch()
    python = bootstrap.python_path(venv)
    uv = shutil.which("uv")
    if uv and bootstrap.run([uv, "venv", "--quiet", "--python", sys.executable, venv], log):
        if bootstrap.run([uv, "pip", "install", "--quiet", "--python", python, *requirements], log):
            return python
        shutil.rmtree(venv)
    if not bootstrap.run([sys.executable, "-I", "-m", "venv", venv], log):
        raise CliError(f"The virtual environment {venv} could not be created: {bootstrap.last_line(log)}")
    if bootstrap.run([python, "-m", "pip", "install", *_PIP, *requirements], log):
        return python
    if bootstrap.is_offline(log):
        raise CliError(
            "The package index cannot be reached, and nothing was stored: connect this machine to the network and "
            "try again, or take the file from a backup of the storage."
        )
    raise CliError(
        f"The libraries could not be installed, and nothing was stored: {bootstrap.last_line(log)}"
    )
