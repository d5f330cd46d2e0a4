"""`./rowsmith restore FILE`: a backup on an empty machine, on another kind of database, on another storage."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Final

from webapp.backup import keys as backup_keys
from webapp.backup import restore
from webapp.backup.archive import Reader
from webapp.backup.restore import Restored
from webapp.cli import operator
from webapp.cli.datadir import CliError, DataDir, resolve

_NAMES: Final = ("SECRET_KEY", "VAULT_KEYS")


def run(arguments: argparse.Namespace) -> int:
    """Check the backup, the keys and the existing installation, and then restore the backup."""
    data = DataDir(resolve(arguments.data_dir, os.environ))
    with operator.sentences(), Reader(operator.from_caller(arguments.file)) as reader:
        restore.look(reader)
        with operator.stopped(data, os.environ):
            ring = Ring(arguments, data, reader)
            with operator.application_for(ring.environment()) as settings:
                if (there := restore.occupied(settings)) and not arguments.force_empty:
                    raise CliError(
                        f"This installation is not empty: {', '.join(there)}. --force-empty replaces all of it."
                    )
                done = restore.restore(
                    settings, reader, take_keys=ring.put, tell=lambda line: print(f"  {line}")
                )
    return _tell(done)


def _tell(done: Restored) -> int:
    print(f"The backup of {done.manifest.made_at} is restored, revision {done.revision}.")
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
        print("  Some of it was not in the backup: ./rowsmith backup --verify FILE names it")
    if done.lost_secrets:
        print(f"  {done.lost_secrets} stored secrets cannot be opened with VAULT_KEYS: set them again")
    print("  next: ./rowsmith doctor, then ./rowsmith up")
    return 0


class Ring:
    """The keys that the restored installation will have: those of the environment, else of the data folder, else of the
    backup. They must be those of then."""

    def __init__(self, arguments: argparse.Namespace, data: DataDir, reader: Reader) -> None:
        self._data, self._manifest = data, reader.manifest
        self._forced, self._without = arguments.force_empty, arguments.without_keys
        self._given = {name: os.environ[name] for name in _NAMES if os.environ.get(name, "").strip()}
        self._kept = {} if self._without else self._of(arguments, reader)
        here = data.keys(make=False)
        self._replaces = (
            bool(self._kept) and self._fits({**here, **self._given}) is not None and not self._given
        )
        if self._replaces and here and not self._forced:
            raise CliError(
                f"{data.path} has other keys than the backup. --force-empty replaces them as well; "
                "the old ones are kept in a file next to them."
            )
        if not self._replaces and not self._without:
            self._demand({**here, **self._given})

    def _of(self, arguments: argparse.Namespace, reader: Reader) -> dict[str, str]:
        """The keys in the backup."""
        if self._manifest.keys == "none" or len(self._given) == len(_NAMES):
            return {}
        if self._manifest.keys == "plain":
            text = b"".join(reader.pieces(backup_keys.PLAIN)).decode()
        elif arguments.passphrase_file:
            passphrase = backup_keys.passphrase_of(operator.from_caller(arguments.passphrase_file))
            text = backup_keys.opened(b"".join(reader.pieces(backup_keys.SEALED)), passphrase)
        else:
            raise CliError(
                "The keys in this backup are sealed: name the file of their passphrase, --passphrase-file F."
            )
        secret_key, ring = backup_keys.read_text(text)
        return {"SECRET_KEY": secret_key, "VAULT_KEYS": ",".join(ring)}

    def _fits(self, held: Mapping[str, str]) -> str | None:
        """Return which key differs from that of the backup; None if both match."""
        if (
            not held.get("SECRET_KEY")
            or backup_keys.mark(held["SECRET_KEY"]) != self._manifest.secret_key_mark
        ):
            return "SECRET_KEY"
        ring = [key.strip() for key in held.get("VAULT_KEYS", "").split(",") if key.strip()]
        return None if backup_keys.opens(ring, self._manifest.vault_mark) else "VAULT_KEYS"

    def _demand(self, held: Mapping[str, str]) -> None:
        wrong = self._fits(held)
        if wrong is None:
            return
        there = (
            f"The {wrong} here is not the one" if held.get(wrong) else f"There is no {wrong} here, and none"
        )
        raise CliError(
            f"{there} of the backup. Put the keys.env of then into {self._data.path}, or set SECRET_KEY and "
            "VAULT_KEYS. Without them stored secrets and masking keys are lost: --without-keys restores all the rest."
        )

    def environment(self) -> dict[str, str]:
        """Return the environment of the restored installation. If no keys are configured, it contains new ones."""
        env = self._data.environment(os.environ, make=self._without)
        return {**env, **self._kept} if self._replaces else env

    def put(self) -> None:
        """Put the keys of the backup into the data folder."""
        if self._replaces:
            self._data.replace_keys(self._kept)
