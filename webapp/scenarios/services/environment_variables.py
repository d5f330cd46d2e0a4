"""Validate environment variables of programs: a scenario's `env`, its secrets and the parameters of a run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import func, or_, select

from webapp import limits
from webapp.access.models import Workspace
from webapp.connections.models import Secret
from webapp.connections.services import secrets
from webapp.errors import ApiError, Fault
from webapp.extensions import read_session

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Contract: set by the service, or read by the loader and by Python before the program starts.
RESERVED_PREFIXES: Final = ("SERVICE_", "DATAMAKER_", "PYTHON", "LD_")
# Read by the C library before a program starts, or set by the sandbox to the only available or writable value.
RESERVED: Final = frozenset(
    "PATH HOME PWD TMPDIR TMP TEMP VIRTUAL_ENV BASH_ENV IFS GLIBC_TUNABLES GCONV_PATH LOCPATH".split()
)


def name_fault(name: str, path: str) -> Fault | None:
    """Return the reason why a text is not a valid variable name, or None."""
    if not NAME.fullmatch(name) or len(name) > limits.MAX_VARIABLE_NAME_CHARS:
        text = f'"{name[:60]}" is not a valid variable name.'
        hint = (
            "Use letters (A to Z, a to z), digits and _. The first character must not be a digit. Maximum length: "
            f"{limits.MAX_VARIABLE_NAME_CHARS} characters."
        )
        return Fault(path, "wrong_form", text, hint)
    prefix = next((item for item in RESERVED_PREFIXES if name.startswith(item)), None)
    if prefix or name in RESERVED:
        what = f"Names that begin with {prefix} are" if prefix else f"The name {name} is"
        hint = "Choose another name."
        return Fault(path, "reserved", f"{what} reserved for the service or the system.", hint)
    return None


def env_faults(values: Mapping[str, Any], path: str, taken: Collection[str] = ()) -> list[Fault]:
    """Return every fault of variables `{name: value}`, each at `path.<name>`.

    `taken` contains names that are already set elsewhere: the secrets granted to the program.
    """
    faults = []
    if len(values) > limits.MAX_VARIABLES:
        text = f"There are {len(values):,} variables; the maximum is {limits.MAX_VARIABLES}."
        faults.append(Fault(path, "too_long", text))
    total = 0
    for name, value in values.items():
        fault_path = f"{path}.{name[: limits.MAX_VARIABLE_NAME_CHARS]}"
        if fault := name_fault(name, fault_path):
            faults.append(fault)
        elif name in taken:
            text = f"{name} is already the name of a secret of this scenario."
            faults.append(Fault(fault_path, "duplicate", text, "Choose another name."))
        fault, size = _value_fault(value, fault_path)
        total += size + len(name)
        faults += [fault] if fault else []
    if total > limits.MAX_VARIABLES_BYTES:
        text = f"The variables have {total:,} bytes in total; the maximum is {limits.MAX_VARIABLES_BYTES:,}."
        faults.append(Fault(path, "too_long", text, "Put long values into a workspace file."))
    return faults[: limits.MAX_FAULTS]


def _value_fault(value: Any, path: str) -> tuple[Fault | None, int]:
    """Return the fault of one value, and its size in bytes."""
    if not isinstance(value, str):
        hint = 'Put the value in quotation marks: "5", "true", or JSON as a text.'
        return Fault(path, "wrong_type", "The value of a variable must be a text.", hint), 0
    if "\0" in value:
        return Fault(path, "invalid", "The value of a variable must not contain the character U+0000."), 0
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > limits.MAX_VARIABLE_BYTES:
        text = f"This value has {size:,} bytes; the maximum is {limits.MAX_VARIABLE_BYTES:,}."
        return Fault(path, "too_long", text, "Put long values into a workspace file."), size
    return None, size


# Secrets granted to a run, and secrets redacted from its output if the workspace has enabled that.


class UnknownSecretError(Exception):
    """No secret has this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


def granted_secrets(workspace_id: str, project_id: str, names: Iterable[str]) -> dict[str, str]:
    """Return the current secrets with these names, by name. Raise `UnknownSecretError` for a secret that does not exist
    or belongs to another project, and ApiError `unavailable` if its encryption key is missing."""
    unique_names = list(dict.fromkeys(names))
    statement = select(Secret).where(
        Secret.workspace_id == workspace_id,
        Secret.name.in_(unique_names),
        or_(Secret.project_id.is_(None), Secret.project_id == project_id),
    )
    with read_session() as session:
        found = {secret.name: secret for secret in session.scalars(statement)}
    for name in unique_names:
        if name not in found:
            raise UnknownSecretError(name)
    return {name: secrets.decrypt(found[name]) for name in unique_names}


def is_redaction_enabled(workspace_id: str) -> bool:
    """Return whether secrets are redacted from the output of a workspace's runs."""
    with read_session() as session:
        settings = session.scalar(select(Workspace.settings).where(Workspace.id == workspace_id))
    return bool((settings or {}).get("redact_run_logs"))


def secrets_version(workspace_id: str) -> tuple[int, datetime | None]:
    """Return a value that changes whenever the secrets of a workspace change."""
    statement = select(func.count(), func.max(Secret.updated_at)).where(Secret.workspace_id == workspace_id)
    with read_session() as session:
        number, newest = session.execute(statement).one()
    return number, newest


def stored_secrets(workspace_id: str) -> list[str]:
    """Return every secret of a workspace, including those of its connections. Secrets that cannot be decrypted are left
    out, because no program can have received them."""
    with read_session() as session:
        rows = session.scalars(select(Secret).where(Secret.workspace_id == workspace_id)).all()
    found = []
    for row in rows:
        try:
            found.append(secrets.decrypt(row))
        except ApiError:
            continue
    return found
