"""`./rowsmith vault show|rotate|drop-old`: the keys that encrypt stored secrets.

A rotation creates a new key, adds it to the ring and encrypts every secret with it while the service runs: the
older keys stay in the ring and can still decrypt, and a process that gets a secret of the new key reloads the ring.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import os
import secrets as random
from collections.abc import Iterator
from contextlib import contextmanager

from webapp import app_vault
from webapp.accounts.services import two_factor
from webapp.cli import operator
from webapp.cli.datadir import CliError, DataDir, resolve
from webapp.config import Settings
from webapp.connections.services import secrets
from webapp.mail import services as mail
from webapp.notifications.services import webhooks
from webapp.sources.services import masking_keys


def run(arguments: argparse.Namespace) -> int:
    """Run the action. If VAULT_KEYS is set in the environment, only the operator can change the key ring: secrets are
    only encrypted again."""
    data = DataDir(resolve(arguments.data_dir, os.environ))
    with operator.application_context(arguments.data_dir, running=False) as settings:
        if arguments.action == "show":
            count = secrets.count() + masking_keys.count() + two_factor.count() + webhooks.count()
            print(f"{len(current_ring(data, settings))} key(s) in the ring, {count} secret(s) stored")
            return 0
        with _lock_ring(data):
            (rotate if arguments.action == "rotate" else drop_old)(data, settings)
    return 0


@contextmanager
def _lock_ring(data: DataDir) -> Iterator[None]:
    """Lock the ring: a parallel change could lose a key and all secrets encrypted with it."""
    with open(data.path / "vault.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CliError("The keys are being changed by another process. Try again later.") from None
        yield


def current_ring(data: DataDir, settings: Settings) -> list[str]:
    """Return the current keys, newest first."""
    return list(settings.vault_keys) if _from_environment() else stored_ring(data)


def stored_ring(data: DataDir) -> list[str]:
    """Return the keys in the data folder."""
    return app_vault.read_key_ring(data.path / "keys.env")


def _from_environment() -> bool:
    return bool(os.environ.get("VAULT_KEYS", "").strip())


def rotate(data: DataDir, settings: Settings) -> None:
    """Add a new key in front, and encrypt every secret with it. Safe to repeat and to interrupt."""
    if not _from_environment():
        fresh = base64.urlsafe_b64encode(random.token_bytes(32)).decode()
        data.replace_vault_keys([fresh, *stored_ring(data)])
        app_vault.vault().reload()
    resealed = (secrets.reencrypt_all(), masking_keys.reencrypt_all(), two_factor.reseal(), webhooks.reseal())
    mail.reseal()
    renewed, total = (sum(numbers) for numbers in zip(*resealed, strict=True))
    print(
        f"{renewed} of {total} secret(s) encrypted with the newest key; {len(current_ring(data, settings))} "
        f"key(s) in the ring"
    )
    if _from_environment():
        print(
            "To change the key: insert a new one at the front of VAULT_KEYS, restart every process, "
            "then run this again."
        )


def drop_old(data: DataDir, settings: Settings) -> None:
    """Remove all keys except the newest. CliError while the service runs: its processes may still use an older one."""
    if _from_environment():
        raise CliError("VAULT_KEYS is set in the environment: after a rotation, remove the older keys there.")
    if data.running():
        raise CliError("Stop Rowsmith first: a running process may still encrypt secrets with an older key.")
    keys = stored_ring(data)
    secrets.reencrypt_all()
    masking_keys.reencrypt_all()
    two_factor.reseal()
    webhooks.reseal()
    mail.reseal()
    data.replace_vault_keys(keys[:1])
    print(f"{max(0, len(keys) - 1)} older key(s) removed; {len(keys[:1])} in the ring")
