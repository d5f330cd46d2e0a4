"""Secrets of a workspace: encrypted when they are saved, decrypted when they are used, and never shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from webapp import clock, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import ROLE_RANKS, Actor, require_scope
from webapp.access.models import Project
from webapp.access.tenancy import not_found
from webapp.app_vault import seal, vault
from webapp.audit.services import audit_log
from webapp.connections.models import Connection, Secret
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.monitoring import process_log
from webapp.net import urls
from webapp.security.sealing import VaultError
from webapp.versioning import services as versioning

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
REFERENCE: Final = re.compile(r"\$\{([^{}]*)\}")


def decrypt(secret: Secret) -> str:
    """Decrypt a secret. Error: unavailable, if its key is missing."""
    try:
        text = vault().open(secret.sealed)
        process_log.add_secrets(text)
        return text
    except VaultError as error:
        raise ApiError("unavailable", str(error), {"secret": secret.name or secret.id}) from None


# --- Named secrets ---------------------------------------------------------------------------------------------


def as_json(secret: Secret) -> dict[str, Any]:
    """Return a secret as the API shows it, without its value."""
    return {
        "id": secret.id,
        "name": secret.name,
        "allowed_hosts": secret.allowed_hosts,
        "project_id": secret.project_id,
        "created_by": secret.created_by,
        "created_at": clock.to_text(secret.created_at),
        "updated_at": clock.to_text(secret.updated_at),
    }


def listing(
    actor: Actor, *, cursor: str | None = None, limit: int = limits.PAGE_LIMIT_DEFAULT, q: str | None = None
) -> pagination.Page[Secret]:
    """Return a page of the workspace's named secrets, newest first."""
    require_scope(actor, "secrets")
    return pagination.paginate(
        select(Secret).where(Secret.workspace_id == actor.workspace_id, Secret.name.is_not(None)),
        name="secrets",
        id_column=Secret.id,
        cursor=cursor,
        limit=limit,
        search=(q, Secret.name),
        context=actor.workspace_id,
    )


UNSET: Final = object()
"""Marks an argument that was not given."""


def put(
    actor: Actor,
    name: str,
    value: str | None,
    *,
    allowed_hosts: Sequence[str] | object | None = UNSET,
    project_id: str | object | None = UNSET,
) -> tuple[Secret, bool]:
    """Create or change a named secret, and commit. Returns the secret, and whether it is new. A run may set the values
    of the secrets that its scenario declares as writable.

    `value` None keeps the value. `allowed_hosts` are the hosts that connections may send it to (None: any host), and
    `project_id` is the project whose connections and scenarios may use it (None: every project). Arguments that are
    not given change nothing. A new secret cannot be sent to any host until `allowed_hosts` allows it, or an admin uses
    it in a connection. Error: validation_error, for an invalid name, value, host or project.
    """
    if name not in actor.writable_secrets or allowed_hosts is not UNSET or project_id is not UNSET:
        require_scope(actor, "secrets")
    faults = []
    if not NAME.fullmatch(name):
        text = (
            "The name of a secret must start with a letter or _, and contain only letters, digits and _ . - "
            "(at most 100 characters)."
        )
        faults.append(Fault("name", "invalid", text))
    if value is not None and not 0 < len(value) <= limits.MAX_SECRET_CHARS:
        text = f"A secret must have 1 to {limits.MAX_SECRET_CHARS:,} characters."
        faults.append(Fault("value", "out_of_range", text))
    existing = _find(actor.workspace_id, name) if NAME.fullmatch(name) else None
    if value is None and existing is None:
        faults.append(Fault("value", "missing", "Enter a value for the new secret."))
    entries, host_faults = (
        _validated_hosts(allowed_hosts) if isinstance(allowed_hosts, Sequence) else (None, [])
    )
    faults += host_faults
    if isinstance(project_id, str):
        project = tenancy.listing(actor, Project, project=False).where(Project.id == project_id)
        if "\0" in project_id or db.session.scalar(project) is None:
            faults.append(Fault("project_id", "unknown", "There is no such project in this workspace."))
    if faults:
        raise validation_error(faults)
    sealed = seal(value) if value is not None else None
    secret = _find(actor.workspace_id, name, lock=True)
    created = _create(actor, name, sealed) if secret is None and sealed is not None else None
    secret, is_new = created or secret or _find(actor.workspace_id, name, lock=True), created is not None
    if secret is None:  # created and deleted by others in the meantime
        raise ApiError("unavailable", "This secret is being changed by another user. Try again.")
    changed: dict[str, Any] = {}
    if allowed_hosts is not UNSET and entries != secret.allowed_hosts:
        changed["allowed_hosts"] = {"from": secret.allowed_hosts, "to": entries}
        secret.allowed_hosts = entries
    if project_id is not UNSET and project_id != secret.project_id:
        changed["project_id"] = {"from": secret.project_id, "to": project_id}
        secret.project_id = project_id  # type: ignore[assignment]  # a text or None, since it is not UNSET
    secret.sealed, secret.updated_at = sealed or secret.sealed, clock.now()
    if value is not None and not is_new:
        changed["value"] = True
    changes: dict[str, Any] = {"changes": changed} if changed and not is_new else {}
    audit_log.record(
        actor, "secret.create" if is_new else "secret.change", secret, join=True, name=name, **changes
    )
    db.session.commit()
    return secret, is_new


def _validated_hosts(hosts: Sequence[str]) -> tuple[list[str], list[Fault]]:
    """Return a list of hosts as it is stored, and the errors in it."""
    found, faults = [], []
    for index, entry in enumerate(hosts):
        try:
            found.append(urls.check_host_entry(entry))
        except ValueError as error:
            faults.append(
                Fault(f"allowed_hosts[{index}]", "invalid", f"{str(error)[:1].upper()}{str(error)[1:]}.")
            )
    if len(found) > limits.MAX_ALLOWED_HOSTS:
        faults.append(
            Fault("allowed_hosts", "too_long", f"A secret can have at most {limits.MAX_ALLOWED_HOSTS} hosts.")
        )
    return list(dict.fromkeys(found)), faults


def _create(actor: Actor, name: str, sealed: bytes) -> Secret | None:
    """Create a secret that cannot be sent to any host yet. Returns None if another request has just created it."""
    secret = Secret(
        workspace_id=actor.workspace_id, name=name, created_by=actor.user_id, sealed=sealed, allowed_hosts=[]
    )
    try:
        with db.session.begin_nested():
            db.session.add(secret)
    except IntegrityError:
        return None
    return secret


def allow_hosts(actor: Actor, grants: Iterable[tuple[Secret, str]]) -> None:
    """Allow secrets for further hosts, in the caller's transaction. The actor may manage secrets."""
    for secret, host in grants:
        if secret.allowed_hosts is not None and host not in secret.allowed_hosts:
            before, secret.allowed_hosts = secret.allowed_hosts, [*secret.allowed_hosts, host]
            secret.updated_at = clock.now()
            changes = {"allowed_hosts": {"from": before, "to": secret.allowed_hosts}}
            audit_log.record(actor, "secret.change", secret, join=True, name=secret.name, changes=changes)


def delete(actor: Actor, name: str) -> Secret:
    """Delete a named secret, and commit. Errors: not_found; in_use, with the connections and scenarios that use it."""
    require_scope(actor, "secrets")
    secret = _find(actor.workspace_id, name, lock=True)
    if secret is None:
        raise not_found("secret", name)
    users = [
        {"type": item.type, "id": item.id, "name": item.name}
        for item in versioning.find_dependents(actor, secret)
    ]
    if users:
        message = f"{len(users)} object(s) use this secret: {', '.join(item['name'] for item in users[:3])}."
        raise ApiError("in_use", message, {"used_by": users})
    audit_log.record(actor, "secret.delete", secret, join=True, name=name)
    db.session.delete(secret)
    db.session.commit()
    return secret


def connections_using(workspace_id: str, name: str) -> list[Connection]:
    """Return the connections whose settings refer to a secret by its name."""
    statement = select(Connection).where(
        Connection.workspace_id == workspace_id, Connection.deleted_at.is_(None)
    )
    owned = select(Secret).where(Secret.workspace_id == workspace_id, Secret.connection_id.is_not(None))
    names_in_secrets: dict[str, set[str]] = {}
    for secret in db.session.scalars(owned):
        names_in_secrets.setdefault(secret.connection_id or "", set()).update(
            referenced_names([decrypt(secret)])
        )
    return [
        connection
        for connection in db.session.scalars(statement)
        if name in referenced_names(iter_texts(connection.settings))
        or name in names_in_secrets.get(connection.id, ())
    ]


def find_as_json(actor: Actor, name: str) -> dict[str, Any] | None:
    """Return a named secret as the API shows it, or None."""
    require_scope(actor, "secrets")
    found = _find(actor.workspace_id, name)
    return as_json(found) if found is not None else None


def _find(workspace_id: str, name: str, *, lock: bool = False) -> Secret | None:
    statement = select(Secret).where(Secret.workspace_id == workspace_id, Secret.name == name)
    if lock:
        statement = statement.with_for_update()
    return db.session.scalar(statement) if "\0" not in name else None


# --- References ---------------------------------------------------------------------------------------------


def referenced_names(texts: Iterable[str]) -> set[str]:
    """Return the names that `${name}` in some texts refers to."""
    return {name.strip() for text in texts for name in REFERENCE.findall(text)}


def iter_texts(value: Any) -> Iterable[str]:
    """Yield every text in a JSON value, except for keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from iter_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from iter_texts(item)


HostsAndPorts = Sequence[tuple[str, int]]
"""Hosts and ports."""


def can_use(actor: Actor, secret: Secret, project_id: str | None) -> bool:
    """Return whether an actor may refer to a secret in a project.

    Allowed are secrets of the project and, for editors of the workspace, secrets of the whole workspace. A role in a
    team is not enough for those."""
    if secret.project_id is not None:
        return secret.project_id == project_id
    return actor.workspace_role is not None and ROLE_RANKS[actor.workspace_role] >= ROLE_RANKS["editor"]


def check_references(
    actor: Actor,
    project_id: str | None,
    settings: Mapping[str, Any],
    places: HostsAndPorts | None,
    accepted: Collection[str] = (),
    front: str = "settings.",
) -> tuple[list[Fault], list[tuple[Secret, str]]]:
    """Return an error for each reference to a secret that the actor cannot use, or that may not be sent to one of the
    `places` of a connection (None: unknown before it is used).

    `accepted` are names in the stored settings, if they lead to the same places: these references are accepted. For an
    actor who may manage secrets, a host that is not allowed is not an error, but is returned with its secret for
    `allow_hosts`.
    """
    faults: list[Fault] = []
    missing: list[tuple[Secret, str]] = []
    names_by_key = {key: referenced_names(iter_texts(value)) for key, value in settings.items()}
    statement = select(Secret).where(Secret.workspace_id == actor.workspace_id, Secret.name.is_not(None))
    known = {item.name: item for item in db.session.scalars(statement) if item.name}
    usable = [name for name, item in known.items() if name in accepted or can_use(actor, item, project_id)]
    for key, names in names_by_key.items():
        for name in sorted(names):
            path = f"{front}{key}"
            if name not in usable:
                hint = did_you_mean(name, usable)
                hint = (
                    hint or "An admin can add it, or allow this project to use it, under Settings, Secrets."
                )
                faults.append(Fault(path, "unknown_secret", f'There is no secret "{name}".', hint))
                continue
            secret = known[name]
            for host, port in places or ():
                if secret.allowed_hosts is None or urls.is_allowed(secret.allowed_hosts, host, port):
                    continue
                try:
                    entry = urls.check_host_entry(f"[{host}]" if ":" in host else host)
                except ValueError:
                    text = f'Enter the host in full, so that the destination of the secret "{name}" can be checked.'
                    faults.append(Fault(path, "host_not_allowed", text))
                    continue
                if actor.can("secrets"):
                    missing.append((secret, entry))
                else:
                    text = f'The secret "{name}" may not be sent to {entry}.'
                    hint = "An admin can allow the host for this secret under Settings, Secrets."
                    faults.append(Fault(path, "host_not_allowed", text, hint))
    return faults, missing


def fill_references(
    workspace_id: str, project_id: str | None, value: Any, plaintexts: list[str], used: dict[str, Secret]
) -> Any:
    """Return a value with each `${name}` replaced by the secret's current text.

    Appends the texts to `plaintexts`, and adds the secrets to `used` by name. Error: target_failed, for a secret that
    does not exist or belongs to another project."""
    if isinstance(value, str) and "${" in value:

        def replacement(match: re.Match[str]) -> str:
            name = match[1].strip()
            if name not in used:
                secret = _find(workspace_id, name)
                if secret is None or secret.project_id not in (None, project_id):
                    text = (
                        f'The connection refers to the secret "{name}", which does not exist in its project.'
                    )
                    raise ApiError("target_failed", text, {"reason": "unknown_secret", "secret": name})
                used[name] = secret
            plaintexts.append(decrypt(used[name]))
            return plaintexts[-1]

        return REFERENCE.sub(replacement, value)
    if isinstance(value, Mapping):
        return {
            key: fill_references(workspace_id, project_id, item, plaintexts, used)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [fill_references(workspace_id, project_id, item, plaintexts, used) for item in value]
    return value


# --- Rotation -----------------------------------------------------------------------------------------------


def reencrypt_all() -> tuple[int, int]:
    """Encrypt every secret with the newest key, in batches with short transactions.

    Returns the number of secrets that were encrypted again, and their total number. Error: unavailable, with the
    number of secrets that cannot be decrypted."""
    current_vault, resealed, total, failed, last = vault(), 0, 0, 0, ""
    while True:
        statement = select(Secret).where(Secret.id > last).order_by(Secret.id).limit(limits.VAULT_BATCH)
        batch = db.session.scalars(statement.with_for_update()).all()
        for secret in batch:
            try:
                sealed = current_vault.reencrypt(secret.sealed)
            except VaultError:
                failed += 1
                continue
            if sealed is not None:
                secret.sealed = sealed
                resealed += 1
        total += len(batch)
        db.session.commit()
        if len(batch) < limits.VAULT_BATCH:
            break
        last = batch[-1].id
    if failed:
        raise ApiError("unavailable", f"{failed} secret(s) cannot be decrypted with any key in VAULT_KEYS.")
    return resealed, total


def count() -> int:
    """Return the number of stored secrets."""
    return db.session.scalar(select(func.count()).select_from(Secret)) or 0
