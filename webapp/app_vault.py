"""The key ring of the application: how services seal secrets for the database."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from flask import current_app

from webapp.errors import ApiError
from webapp.security.sealing import Vault, VaultError

_VAULT: Final = "rowsmith.vault"


def vault() -> Vault:
    """The application's key ring."""
    extensions = current_app.extensions
    if _VAULT not in extensions:
        own, file = (
            current_app.config["SETTINGS"].vault_keys,
            current_app.config["SETTINGS"].data_dir / "keys.env",
        )

        def again() -> list[str]:
            found = keys_in(file)
            return found if set(own) <= set(found) else list(own)  # a ring set by hand is not the folder's

        extensions[_VAULT] = Vault(own, again)
    vault: Vault = extensions[_VAULT]
    return vault


def keys_in(file: Path) -> list[str]:
    """Return the key ring of a data folder, newest first; empty without one."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return []
    found = [line.partition("=")[2] for line in lines if line.startswith("VAULT_KEYS=")]
    return [key.strip() for key in found[-1].split(",") if key.strip()] if found else []


def seal(text: str) -> bytes:
    """Sealed for the database. Error: unavailable, without a key."""
    try:
        return vault().seal(text)
    except VaultError as error:
        raise ApiError("unavailable", str(error)) from None
