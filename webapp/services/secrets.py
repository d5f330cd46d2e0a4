"""Secrets of a workspace: sealed when they come in, opened where they are used, and never shown again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from flask import current_app
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from webapp import clock, limits
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.models import Connection, Scenario, Secret
from webapp.security.vault import Vault, VaultError
from webapp.services import audit, hushing, paging
from webapp.services.actors import Actor, require
from webapp.services.tenancy import not_found

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
REFERENCE: Final = re.compile(r"\$\{([^{}]*)\}")
_VAULT: Final = "rowsmith.vault"


def vault() -> Vault:
    """The application's key ring."""
    extensions = current_app.extensions
    if _VAULT not in extensions:
        own, file = current_app.config["SETTINGS"].vault_keys, current_app.config["SETTINGS"].data_dir / "keys.env"

        def again() -> list[str]:
            found = keys_in(file)
            return found if set(own) <= set(found) else list(own)  # a ring set by hand is not the folder's

        extensions[_VAULT] = Vault(own, again)
    return extensions[_VAULT]


def keys_in(file: Path) -> list[str]:
    """The ring that lies in a data folder, newest first; nothing where there is none."""
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


def opened(secret: Secret) -> str:
    """A secret's text. Error: unavailable, when its key is missing."""
    try:
        text = vault().open(secret.sealed)
        hushing.learn(text)
        return text
    except VaultError as error:
        raise ApiError("unavailable", str(error), {"secret": secret.name or secret.id}) from None


# --- Named ones ---------------------------------------------------------------------------------------------


def as_json(secret: Secret) -> dict[str, Any]:
    """A secret as the API shows it: never its value."""
    return {
        "id": secret.id,
        "name": secret.name,
        "created_by": secret.created_by,
        "created_at": clock.to_text(secret.created_at),
        "updated_at": clock.to_text(secret.updated_at),
    }


def listing(
    actor: Actor, *, cursor: str | None = None, limit: int = limits.PAGE_LIMIT_DEFAULT, q: str | None = None
) -> paging.Page[Secret]:
    """A page of the workspace's named secrets, newest first."""
    require(actor, "secrets")
    return paging.page(
        select(Secret).where(Secret.workspace_id == actor.workspace_id, Secret.name.is_not(None)),
        name="secrets",
        identity=Secret.id,
        cursor=cursor,
        limit=limit,
        search=(q, Secret.name),
        context=actor.workspace_id,
    )


def put(actor: Actor, name: str, value: str) -> tuple[Secret, bool]:
    """Set a named secret, new or in place of its old value; commits. Returns it and whether it is new. A run may set
    those that its scenario names as writable.

    Error: validation_error for a name or value that cannot be.
    """
    if name not in actor.writable_secrets:
        require(actor, "secrets")
    faults = []
    if not NAME.fullmatch(name):
        text = "A secret's name begins with a letter and has at most 100 letters, digits and signs _ . -"
        faults.append(Fault("name", "invalid", text))
    if not value or len(value) > limits.MAX_SECRET_CHARS:
        text = f"A secret has from 1 to {limits.MAX_SECRET_CHARS:,} characters."
        faults.append(Fault("value", "out_of_range", text))
    if faults:
        raise validation_error(faults)
    sealed = seal(value)
    secret = _named(actor.workspace_id, name, lock=True)
    made = _made(actor, name, sealed) if secret is None else None
    secret, fresh = made or secret or _named(actor.workspace_id, name, lock=True), made is not None
    if secret is None:  # set and removed by others between two lines of ours
        raise ApiError("unavailable", "Somebody else is changing this secret. Try again.")
    secret.sealed, secret.updated_at = sealed, clock.now()
    audit.record(actor, "secret.create" if fresh else "secret.change", secret, join=True, name=name)
    db.session.commit()
    return secret, fresh


def _made(actor: Actor, name: str, sealed: bytes) -> Secret | None:
    """A new secret; None where somebody else was quicker to make it."""
    secret = Secret(workspace_id=actor.workspace_id, name=name, created_by=actor.user_id, sealed=sealed)
    try:
        with db.session.begin_nested():
            db.session.add(secret)
    except IntegrityError:
        return None
    return secret


def delete(actor: Actor, name: str) -> Secret:
    """Remove a named secret; commits. Errors: not_found, in_use with the connections and scenarios that use it."""
    require(actor, "secrets")
    secret = _named(actor.workspace_id, name, lock=True)
    if secret is None:
        raise not_found("secret", name)
    users = using(actor.workspace_id, name)
    if users:
        told = f"{len(users)} object(s) use this secret: {', '.join(one['name'] for one in users[:3])}."
        raise ApiError("in_use", told, {"used_by": users})
    audit.record(actor, "secret.delete", secret, join=True, name=name)
    db.session.delete(secret)
    db.session.commit()
    return secret


def using(workspace_id: str, name: str) -> list[dict[str, str]]:
    """The connections whose settings refer to a secret by its name, and the scenarios that are given it or may set
    it."""
    statement = select(Connection).where(
        Connection.workspace_id == workspace_id, Connection.deleted_at.is_(None)
    )
    owned = select(Secret).where(Secret.workspace_id == workspace_id, Secret.connection_id.is_not(None))
    hidden: dict[str, set[str]] = {}
    for secret in db.session.scalars(owned):
        hidden.setdefault(secret.connection_id or "", set()).update(referred([opened(secret)]))
    return [
        {"type": "connection", "id": one.id, "name": one.name}
        for one in db.session.scalars(statement)
        if name in referred(_texts(one.settings)) or name in hidden.get(one.id, ())
    ] + _scenarios_using(workspace_id, name)


def _scenarios_using(workspace_id: str, name: str) -> list[dict[str, str]]:
    statement = select(Scenario.id, Scenario.name, Scenario.secrets, Scenario.writable_secrets).where(
        Scenario.workspace_id == workspace_id, Scenario.deleted_at.is_(None)
    )
    return [
        {"type": "scenario", "id": one.id, "name": one.name}
        for one in db.session.execute(statement.order_by(Scenario.id))
        if name in (*one.secrets, *one.writable_secrets)
    ]


def _named(workspace_id: str, name: str, *, lock: bool = False) -> Secret | None:
    statement = select(Secret).where(Secret.workspace_id == workspace_id, Secret.name == name)
    if lock:
        statement = statement.with_for_update()
    return db.session.scalar(statement) if "\0" not in name else None


# --- References ---------------------------------------------------------------------------------------------


def referred(texts: Iterable[str]) -> set[str]:
    """The names that `${name}` in some texts refer to."""
    return {name.strip() for text in texts for name in REFERENCE.findall(text)}


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def unknown_references(
    workspace_id: str, settings: Mapping[str, Any], front: str = "settings."
) -> list[Fault]:
    """A fault for each reference to a secret that is not there."""
    wanted = {key: referred(_texts(value)) for key, value in settings.items()}
    known = set(db.session.scalars(select(Secret.name).where(Secret.workspace_id == workspace_id)))
    return [
        Fault(
            f"{front}{key}",
            "unknown_secret",
            f'There is no secret "{name}".',
            did_you_mean(name, [one for one in known if one]) or "An admin can add it under Settings, Secrets.",
        )
        for key, names in wanted.items()
        for name in sorted(names - known)
    ]


def filled(workspace_id: str, value: Any, told: list[str]) -> Any:
    """A value with `${name}` replaced by the secrets as they are now, which `told` gets too. Error: target_failed,
    naming a missing one."""
    if isinstance(value, str) and "${" in value:

        def put(found: re.Match[str]) -> str:
            told.append(_value(workspace_id, found[1].strip()))
            return told[-1]

        return REFERENCE.sub(put, value)
    if isinstance(value, Mapping):
        return {key: filled(workspace_id, item, told) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(workspace_id, item, told) for item in value]
    return value


def _value(workspace_id: str, name: str) -> str:
    secret = _named(workspace_id, name)
    if secret is None:
        text = f'The connection refers to the secret "{name}", which is not there.'
        raise ApiError("target_failed", text, {"reason": "unknown_secret", "secret": name})
    return opened(secret)


# --- Rotation -----------------------------------------------------------------------------------------------


def reseal() -> tuple[int, int]:
    """Seal every secret by the newest key, batch by batch, each in a short transaction of its own. Returns how many
    were sealed anew, and how many there are. Error: unavailable, naming how many cannot be opened."""
    ring, renewed, total, lost, last = vault(), 0, 0, 0, ""
    while True:
        statement = select(Secret).where(Secret.id > last).order_by(Secret.id).limit(limits.VAULT_BATCH)
        batch = db.session.scalars(statement.with_for_update()).all()
        for secret in batch:
            try:
                sealed = ring.renewed(secret.sealed)
            except VaultError:
                lost += 1
                continue
            if sealed is not None:
                secret.sealed = sealed
                renewed += 1
        total += len(batch)
        db.session.commit()
        if len(batch) < limits.VAULT_BATCH:
            break
        last = batch[-1].id
    if lost:
        raise ApiError("unavailable", f"{lost} secret(s) cannot be opened with any key of VAULT_KEYS.")
    return renewed, total


def count() -> int:
    """How many secrets are stored."""
    return db.session.scalar(select(func.count()).select_from(Secret)) or 0
