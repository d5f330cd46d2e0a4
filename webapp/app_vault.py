"""The key ring of the application, with which services encrypt secrets for the database."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from flask import current_app

from webapp.errors import ApiError
from webapp.security.sealing import Vault, VaultError

_VAULT_KEY: Final = "rowsmith.vault"


def vault() -> Vault:
    """Return the key ring of the application."""
    extensions = current_app.extensions
    if _VAULT_KEY not in extensions:
        configured, file = (
            current_app.config["SETTINGS"].vault_keys,
            current_app.config["SETTINGS"].data_dir / "keys.env",
        )

        def read_keys() -> list[str]:
            found = read_key_ring(file)
            # Keys that the operator configured may not be those of the folder.
            return found if set(configured) <= set(found) else list(configured)

        extensions[_VAULT_KEY] = Vault(configured, read_keys)
    vault: Vault = extensions[_VAULT_KEY]
    return vault


def read_key_ring(file: Path) -> list[str]:
    """Return the key ring of a data folder, newest first; empty without one."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return []
    found = [line.partition("=")[2] for line in lines if line.startswith("VAULT_KEYS=")]
    return [key.strip() for key in found[-1].split(",") if key.strip()] if found else []


def seal(text: str) -> bytes:
    """Encrypt a text for the database. Error: unavailable, without a key."""
    try:
        return vault().seal(text)
    except VaultError as error:
        raise ApiError("unavailable", str(error)) from None
