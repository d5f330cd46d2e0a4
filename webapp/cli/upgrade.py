"""`./rowsmith upgrade`: the data of an earlier release to this one, and the way back when that does not go well.

The launcher has installed the packages of the lock file before this runs.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from webapp import clock
from webapp.backup import backup, revisions, upgrade
from webapp.backup.errors import UpkeepError
from webapp.cli import assets, doctor, operator
from webapp.cli.datadir import CliError, DataDir, resolve
from webapp.cli.findings import FAIL, Finding, Patient
from webapp.cli.prepare import secure_vocabularies
from webapp.config import Settings
from webapp.paths import ROOT

# Checks of the doctor that show whether the upgrade was successful.
_TELLING = ("packages", "settings", "data folder", "database", "integrity", "keys", "vocabularies")


def run(arguments: argparse.Namespace) -> int:
    """Back up, migrate, and run the doctor. Returns 1 if the doctor then finds a failure."""
    data = DataDir(resolve(arguments.data_dir, os.environ))
    env = data.environment(os.environ)
    operator.installed(data, env)
    with operator.stopped(data, env), operator.application_for(env) as settings:
        was, head = upgrade.found(settings), revisions.head()
        assets.ensure()
        if was == head:
            print(f"The database is at revision {head} already.")
            kept = None
        else:
            kept = None if arguments.no_backup else _backed_up(arguments, data, settings, head)
            _migrate(settings, was, kept)
            print(f"The database is at revision {head}; it was at {was}.")
            secure_vocabularies()
    return _examined(arguments, kept)


def _backed_up(arguments: argparse.Namespace, data: DataDir, settings: Settings, head: str) -> Path:
    """The backup. Keys are not in it: an upgrade changes none."""
    if arguments.backup:
        path = operator.from_caller(arguments.backup)
    else:
        folder = data.path / "backups"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"before-{head}-{clock.now():%Y%m%dT%H%M%SZ}.zip"
    backup.make(settings, path)
    print(f"A backup is written: {path}")
    return path


def _migrate(settings: Settings, was: str, kept: Path | None) -> None:
    try:
        upgrade.migrate(settings)
    except UpkeepError as error:
        more = f" The backup {kept} is there too." if kept else ""
        raise CliError(
            f"{error} To roll back: put the release of revision {was} back (git checkout), then ./rowsmith "
            f"up.{more}"
        ) from error


def _examined(arguments: argparse.Namespace, kept: Path | None) -> int:
    """Return the doctor's findings about what an upgrade changes."""
    found = doctor.examine(Patient(ROOT, arguments.data_dir))
    failed = [one for one in found if one.state == FAIL and one.name in _TELLING]
    for one in failed:
        print(_line(one))
    if not failed:
        print(
            "The doctor finds nothing wrong. Next: ./rowsmith up (or start web, workers, runners and sweeper)"
        )
        return 0
    if kept:
        print(
            "To go back: put the release before this one back (git checkout), then "
            f"./rowsmith restore {kept} --force-empty"
        )
    return 1


def _line(one: Finding) -> str:
    return f"FAIL  {one.name}  {one.told}" + (f"  mend: {one.mend}" if one.mend else "")
