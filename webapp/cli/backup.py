"""`./rowsmith backup FILE`: everything that the service keeps, in one file, while it runs."""

from __future__ import annotations

import argparse
import os
from datetime import datetime
from pathlib import Path

from webapp import clock, limits
from webapp.backup import backup
from webapp.backup import keys as backup_keys
from webapp.backup.archive import Manifest
from webapp.backup.errors import told
from webapp.cli import operator
from webapp.cli.datadir import CliError, DataDir, resolve


def run(arguments: argparse.Namespace) -> int:
    """Create a backup, or verify one. The exit code is 1 if files are missing from a backup."""
    path = _named(arguments.file)
    if arguments.verify:
        with operator.sentences():
            manifest = backup.verify(path)
        print(f"{path} is whole.")
        return _tell(path, manifest)
    if arguments.include_keys and arguments.passphrase_file:
        raise CliError(
            "--include-keys writes the keys in plain, --passphrase-file seals them: say one of the two."
        )
    data = DataDir(resolve(arguments.data_dir, os.environ))
    with operator.sentences():
        file = arguments.passphrase_file
        passphrase = backup_keys.passphrase_of(operator.from_caller(file)) if file else ""
    env = data.environment(os.environ)
    operator.installed(data, env)
    with operator.application_for(env) as settings:
        manifest = backup.make(
            settings,
            path,
            replace=arguments.replace,
            plain_keys=arguments.include_keys,
            passphrase=passphrase,
        )
        with told("The backup is written, but could not be recorded in the audit log", path.parent):
            backup.note(manifest)
    print(f"{path} is written.")
    return _tell(path, manifest)


def _named(text: str) -> Path:
    """The file; in a folder one with the time in its name."""
    path = operator.from_caller(text)
    if not path.is_dir():
        return path
    moment: datetime = clock.now()
    return path / f"rowsmith-{moment:%Y%m%dT%H%M%SZ}.zip"


def _tell(path: Path, manifest: Manifest) -> int:
    rows = sum(one.rows for one in manifest.tables.values())
    print(
        f"  made      {manifest.made_at}, revision {manifest.revision}, {operator.megabytes(path.stat().st_size)}"
    )
    print(f"  database  {rows:,} rows in {len(manifest.tables)} tables, of {manifest.database}")
    targets = f", {manifest.targets} of SQLite connections" if manifest.targets else ""
    print(f"  files     {manifest.files:,} ({operator.megabytes(manifest.file_bytes)}){targets}")
    words = len(manifest.vocabularies)
    print(f"  words     {words} {'vocabulary' if words == 1 else 'vocabularies'} that templates pin")
    print("  keys      " + _KEYS[manifest.keys])
    for one in manifest.lacking[: limits.UPKEEP_TOLD]:
        print(f"  LACKING   {one.key}, which a row of {one.table} names, is not in the storage")
    if len(manifest.lacking) > limits.UPKEEP_TOLD:
        print(f"  LACKING   and {len(manifest.lacking) - limits.UPKEEP_TOLD:,} more")
    for wanted in manifest.lacking_vocabularies:
        print(f"  LACKING   vocabulary {wanted}: ./rowsmith vocab install {wanted}, then another backup")
    return 1 if manifest.lacking or manifest.lacking_vocabularies else 0


_KEYS = {
    "none": "are not in it: keep SECRET_KEY and VAULT_KEYS (keys.env of the data folder) in another safe place",
    "plain": "are in it in plain text: anyone with this file can read every stored secret",
    "sealed": "are in it, sealed by your passphrase: keep that in another safe place",
}
