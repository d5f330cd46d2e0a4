"""The keys of an installation in a backup: SECRET_KEY and the ring of the vault, plain or sealed by a passphrase."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import orjson
import sqlalchemy as sa
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from webapp import app_vault, limits
from webapp.backup import database
from webapp.backup.archive import UpkeepError
from webapp.config import Settings
from webapp.security import sealing
from webapp.security.vault import Vault, VaultError

PLAIN: Final = "keys.env"
SEALED: Final = "keys.sealed"
_WORD: Final = "rowsmith"
_PURPOSE: Final = "rowsmith.backup.mark"
_MARK_CHARS: Final = 24


def text_of(secret_key: str, vault_keys: Sequence[str]) -> str:
    """The keys as a data folder's `keys.env` has them."""
    return f"SECRET_KEY={secret_key}\nVAULT_KEYS={','.join(vault_keys)}\n"


def read_text(text: str) -> tuple[str, tuple[str, ...]]:
    """SECRET_KEY and the ring, newest first, of a `keys.env`."""
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    ring = found.get("VAULT_KEYS", "").split(",")
    return found.get("SECRET_KEY", ""), tuple(key.strip() for key in ring if key.strip())


def ring_now(settings: Settings) -> tuple[str, ...]:
    """Return the current key ring, newest first: a rotation may have added a key to the data folder since we
    started."""
    found = app_vault.keys_in(settings.data_dir / "keys.env")
    return tuple(found) if set(settings.vault_keys) <= set(found) else settings.vault_keys


def passphrase_of(file: Path) -> str:
    """Return the first line of a file. Error: UpkeepError if the file is missing or the line is too short."""
    try:
        found = file.read_text().partition("\n")[0].strip()
    except OSError as error:
        raise UpkeepError(f"The passphrase cannot be read: {file}: {error.strerror}.") from error
    if len(found) < limits.UPKEEP_PASSPHRASE_CHARS:
        raise UpkeepError(
            f"The passphrase in {file} has {len(found)} characters; it needs at least {limits.UPKEEP_PASSPHRASE_CHARS}."
        )
    return found


def sealed(text: str, passphrase: str, salt: bytes) -> bytes:
    """Return the encrypted keys: JSON with the parameters for deriving the encryption key from the passphrase. `salt`
    is random."""
    cost = limits.UPKEEP_SCRYPT_COST
    token = sealing.seal(_stretched(passphrase, salt, cost), text.encode())
    return orjson.dumps(
        {"kdf": "scrypt", "cost": cost, "salt": base64.b64encode(salt).decode(), "token": token.decode()}
    )


def opened(raw: bytes, passphrase: str) -> str:
    """Decrypt the keys. Error: UpkeepError for a wrong passphrase."""
    try:
        told = orjson.loads(raw)
        salt, cost, token = base64.b64decode(told["salt"]), int(told["cost"]), told["token"].encode()
    except (ValueError, KeyError, AttributeError, TypeError):
        raise UpkeepError("The keys in the backup cannot be read.") from None
    if not 0 < cost <= limits.UPKEEP_SCRYPT_COST_MAX:
        raise UpkeepError("The keys in the backup cannot be read: their cost parameter is out of range.")
    found = sealing.unseal(_stretched(passphrase, salt, cost), token)
    if found is None:
        raise UpkeepError("The passphrase is not the one that the keys of this backup were sealed by.")
    return found.decode()


def _stretched(passphrase: str, salt: bytes, cost: int) -> bytes:
    return Scrypt(salt=salt, length=32, n=cost, r=8, p=1).derive(passphrase.encode())


def mark(secret_key: str) -> str:
    """Return a value that identifies a SECRET_KEY without revealing anything about it."""
    return base64.urlsafe_b64encode(sealing.derive(secret_key, _PURPOSE)).decode()[:_MARK_CHARS]


def vault_mark(ring: Sequence[str]) -> str:
    """A word sealed by the newest key of a ring; "" without one."""
    return Vault(ring).seal(_WORD).decode() if ring else ""


def opens(ring: Sequence[str], told: str) -> bool:
    """Return whether a ring can decrypt what the newest key of the backup has encrypted."""
    if not told:
        return True
    try:
        return Vault(ring).open(told.encode()) == _WORD
    except (VaultError, ValueError):
        return False


# All columns that are encrypted by the vault, to check whether a key ring can decrypt them.

_BEGINS = "sealed"
"""Prefix of the names of these columns in every table; checked in tests/upkeep."""


def count(connection: sa.Connection, ring: Sequence[str]) -> tuple[int, int]:
    """Return how many secrets a ring can decrypt, and how many it cannot."""
    vault, opened, lost = Vault(ring), 0, 0
    for table in database.tables(connection):
        for name, kind in table.columns.items():
            if kind != "binary" or not name.startswith(_BEGINS):
                continue
            column = sa.column(name, sa.LargeBinary)
            read = sa.select(column).select_from(sa.table(table.name)).where(column.is_not(None))
            for one in connection.execute(read.execution_options(yield_per=limits.UPKEEP_ROWS)).scalars():
                try:
                    vault.open(bytes(one))
                    opened += 1
                except VaultError:
                    lost += 1
    return opened, lost
