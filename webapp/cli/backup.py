"""`./rowsmith backup | restore | upgrade`: back up the whole service into one file, and move it between releases.

backup FILE    write the file while the service runs, or verify one
restore FILE   restore it on an empty machine, to another kind of database, to another storage
upgrade        back up, migrate the data of an earlier release to this one, and run the doctor; the launcher has
               installed the packages of the lock file before
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from webapp import clock, limits
from webapp.backup import backup, database, restore
from webapp.backup.archive import BackupError, BackupReader, Manifest, as_backup_errors
from webapp.cli import assets, doctor, operator
from webapp.cli.datadir import CliError, DataDir, resolve
from webapp.cli.findings import FAIL, Installation
from webapp.cli.prepare import secure_vocabularies
from webapp.config import Settings
from webapp.paths import ROOT


def run_backup(arguments: argparse.Namespace) -> int:
    """Create a backup, or verify one. The exit code is 1 if files are missing from a backup."""
    path = operator.resolve_path(arguments.file)
    if path.is_dir():
        path /= f"rowsmith-{clock.now():%Y%m%dT%H%M%SZ}.zip"
    if arguments.verify:
        with operator.as_cli_errors():
            manifest = backup.verify(path)
        print(f"{path} is complete.")
        return _report_backup(path, manifest)
    if arguments.include_keys and arguments.passphrase_file:
        raise CliError(
            "--include-keys writes the keys in plain text, --passphrase-file encrypts them: use only one of them."
        )
    data = DataDir(resolve(arguments.data_dir, os.environ))
    with operator.as_cli_errors():
        file = arguments.passphrase_file
        passphrase = backup.read_passphrase(operator.resolve_path(file)) if file else ""
    env = data.environment(os.environ)
    operator.require_installed(data, env)
    with operator.environment_context(env) as settings:
        manifest = backup.create_backup(
            settings,
            path,
            replace=arguments.replace,
            plain_keys=arguments.include_keys,
            passphrase=passphrase,
        )
        with as_backup_errors(
            "The backup was created, but could not be recorded in the audit log", path.parent
        ):
            backup.record_in_audit_log(manifest)
    print(f"{path} was created.")
    return _report_backup(path, manifest)


def _report_backup(path: Path, manifest: Manifest) -> int:
    rows = sum(table.rows for table in manifest.tables.values())
    print(
        f"  created   {manifest.made_at}, revision {manifest.revision}, {operator.megabytes(path.stat().st_size)}"
    )
    print(f"  database  {rows:,} rows in {len(manifest.tables)} tables, from {manifest.database}")
    targets = f", {manifest.targets} of SQLite connections" if manifest.targets else ""
    print(f"  files     {manifest.files:,} ({operator.megabytes(manifest.file_bytes)}){targets}")
    vocabularies = len(manifest.vocabularies)
    print(
        f"  words     {vocabularies} {'vocabulary' if vocabularies == 1 else 'vocabularies'} that templates pin"
    )
    print("  keys      " + _KEY_STATES[manifest.keys])
    for lacking in manifest.lacking[: limits.UPKEEP_LISTED]:
        print(f"  MISSING   {lacking.key}, referenced by a row of {lacking.table}, is not in the storage")
    if len(manifest.lacking) > limits.UPKEEP_LISTED:
        print(f"  MISSING   and {len(manifest.lacking) - limits.UPKEEP_LISTED:,} more")
    for vocabulary_id in manifest.lacking_vocabularies:
        print(
            f"  MISSING   vocabulary {vocabulary_id}: run ./rowsmith vocab install {vocabulary_id}, "
            "then create another backup"
        )
    return 1 if manifest.lacking or manifest.lacking_vocabularies else 0


_KEY_STATES = {
    "none": "not included: keep SECRET_KEY and VAULT_KEYS (keys.env of the data folder) in another safe place",
    "plain": "included in plain text: anyone with this file can read every stored secret",
    "sealed": "included, encrypted with your passphrase: keep the passphrase in another safe place",
}


# --- restore ------------------------------------------------------------------------------------------------

_KEY_NAMES: Final = ("SECRET_KEY", "VAULT_KEYS")


def run_restore(arguments: argparse.Namespace) -> int:
    """Check the backup, the keys and the existing installation, and then restore the backup."""
    data = DataDir(resolve(arguments.data_dir, os.environ))
    with operator.as_cli_errors(), BackupReader(operator.resolve_path(arguments.file)) as reader:
        restore.check_backup(reader)
        with operator.ensure_stopped(data, os.environ):
            key_ring = KeyRing(arguments, data, reader)
            with operator.environment_context(key_ring.environment()) as settings:
                if (existing := restore.existing_data(settings)) and not arguments.force_empty:
                    raise CliError(
                        f"This installation is not empty: {', '.join(existing)}. --force-empty replaces all of it."
                    )
                done = restore.restore(
                    settings, reader, write_keys=key_ring.write, print_line=lambda line: print(f"  {line}")
                )
    print(f"The backup of {done.manifest.made_at} was restored, revision {done.revision}.")
    for kind, outcome in (
        ("runs", "unfinished at the time of the backup: marked as failed, not repeated"),
        ("pushes", "unfinished at the time of the backup: marked as failed, not repeated"),
        ("exports", "open at the time of the backup: created again by the workers"),
    ):
        if work := done.ended.get(kind):
            print(f"  {len(work)} {kind} {outcome}")
            for description in work:
                print(f"    {description}")
    if done.manifest.lacking or done.manifest.lacking_vocabularies:
        print("  Some data was not in the backup: ./rowsmith backup --verify FILE lists it")
    if done.lost_secrets:
        print(f"  {done.lost_secrets} stored secrets cannot be decrypted with VAULT_KEYS: set them again")
    print("  next: ./rowsmith doctor, then ./rowsmith up")
    return 0


class KeyRing:
    """The keys that the restored installation will have: those of the environment, else of the data folder, else of the
    backup. They must match the keys that the backup was created with."""

    def __init__(self, arguments: argparse.Namespace, data: DataDir, reader: BackupReader) -> None:
        self._data, self._manifest = data, reader.manifest
        self._without_keys = arguments.without_keys
        self._configured_keys = {
            name: os.environ[name] for name in _KEY_NAMES if os.environ.get(name, "").strip()
        }
        self._backup_keys = {} if self._without_keys else self._keys_in_backup(arguments, reader)
        local_keys = data.keys(create=False)
        keys = {**local_keys, **self._configured_keys}
        self._replaces_keys = (
            bool(self._backup_keys) and self._wrong_key(keys) is not None and not self._configured_keys
        )
        if self._replaces_keys and local_keys and not arguments.force_empty:
            raise CliError(
                f"{data.path} has different keys than the backup. --force-empty also replaces them; "
                "the old ones are kept in a file next to them."
            )
        if self._replaces_keys or self._without_keys:
            return
        wrong = self._wrong_key(keys)
        if wrong is not None:
            problem = (
                f"The {wrong} of this installation does not match the backup"
                if keys.get(wrong)
                else f"This installation has no {wrong}, and the one of the backup is required"
            )
            raise CliError(
                f"{problem}. Copy the keys.env of that time to {data.path}, or set SECRET_KEY and VAULT_KEYS."
                " Without them, stored secrets and masking keys are lost: --without-keys restores everything else."
            )

    def _keys_in_backup(self, arguments: argparse.Namespace, reader: BackupReader) -> dict[str, str]:
        """Return the keys in the backup."""
        if self._manifest.keys == "none" or len(self._configured_keys) == len(_KEY_NAMES):
            return {}
        if self._manifest.keys == "plain":
            text = b"".join(reader.read_chunks(backup.PLAIN_KEYS_FILE)).decode()
        elif arguments.passphrase_file:
            passphrase = backup.read_passphrase(operator.resolve_path(arguments.passphrase_file))
            text = backup.decrypt_keys(b"".join(reader.read_chunks(backup.SEALED_KEYS_FILE)), passphrase)
        else:
            raise CliError(
                "The keys in this backup are encrypted: specify the file with the passphrase, --passphrase-file F."
            )
        secret_key, ring = backup.parse_keys(text)
        return {"SECRET_KEY": secret_key, "VAULT_KEYS": ",".join(ring)}

    def _wrong_key(self, keys: Mapping[str, str]) -> str | None:
        """Return which key differs from that of the backup; None if both match."""
        if (
            not keys.get("SECRET_KEY")
            or backup.key_fingerprint(keys["SECRET_KEY"]) != self._manifest.secret_key_mark
        ):
            return "SECRET_KEY"
        ring = [key.strip() for key in keys.get("VAULT_KEYS", "").split(",") if key.strip()]
        return None if backup.can_decrypt(ring, self._manifest.vault_mark) else "VAULT_KEYS"

    def environment(self) -> dict[str, str]:
        """Return the environment of the restored installation. If no keys are configured, it contains new ones."""
        env = self._data.environment(os.environ, create_keys=self._without_keys)
        return {**env, **self._backup_keys} if self._replaces_keys else env

    def write(self) -> None:
        """Write the keys of the backup to the data folder."""
        if self._replaces_keys:
            self._data.replace_keys(self._backup_keys)


# --- upgrade ------------------------------------------------------------------------------------------------

# Checks of the doctor that show whether the upgrade was successful.
_UPGRADE_CHECKS = ("packages", "settings", "data folder", "database", "integrity", "keys", "vocabularies")


def run_upgrade(arguments: argparse.Namespace) -> int:
    """Back up, migrate, and run the doctor. Returns 1 if the doctor then finds a failure."""
    data = DataDir(resolve(arguments.data_dir, os.environ))
    env = data.environment(os.environ)
    operator.require_installed(data, env)
    with operator.ensure_stopped(data, env), operator.environment_context(env) as settings:
        old_revision, head = backup.current_revision(settings), database.newest_revision()
        assets.ensure_built()
        if old_revision == head:
            print(f"The database is already at revision {head}.")
            backup_file = None
        else:
            backup_file = None if arguments.no_backup else _create_backup(arguments, data, settings, head)
            try:
                restore.migrate(settings)
            except BackupError as error:
                more = f" The backup is {backup_file}." if backup_file else ""
                raise CliError(
                    f"{error} To roll back: reinstall the release of revision {old_revision} (git checkout), then"
                    f" run ./rowsmith up.{more}"
                ) from error
            print(f"The database was migrated from revision {old_revision} to {head}.")
            secure_vocabularies()
    found = doctor.run_all_checks(Installation(ROOT, arguments.data_dir))
    failed = [finding for finding in found if finding.state == FAIL and finding.name in _UPGRADE_CHECKS]
    for finding in failed:
        print(f"FAIL  {finding.name}  {finding.message}" + (f"  fix: {finding.fix}" if finding.fix else ""))
    if not failed:
        print(
            "The doctor found no problems. Next: ./rowsmith up (or start web, workers, runners and sweeper)"
        )
        return 0
    if backup_file:
        print(
            "To roll back: reinstall the previous release (git checkout), then run "
            f"./rowsmith restore {backup_file} --force-empty"
        )
    return 1


def _create_backup(arguments: argparse.Namespace, data: DataDir, settings: Settings, head: str) -> Path:
    """Create the backup and return its path. It has no keys, which an upgrade does not change."""
    if arguments.backup:
        path = operator.resolve_path(arguments.backup)
    else:
        folder = data.path / "backups"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"before-{head}-{clock.now():%Y%m%dT%H%M%SZ}.zip"
    backup.create_backup(settings, path)
    print(f"Backup created: {path}")
    return path
