"""Settings of connections: checked by their kind's own model, secret parts sealed apart and masked on the way out.

In the database a secret part is `{"secret": "sec_...", "shown": ...}`, where `shown` is what the API tells of it. A
mask that is sent back means "keep", but only while the secret still goes where it went: with another host the secret
has to be given again, else whoever may edit a connection could have its password sent to a server of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import ValidationError
from sqlalchemy import select

from webapp import clock, limits
from webapp.connectors.base import Connector, Settings
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.models import Connection, Secret
from webapp.services import connection_strings, secrets
from webapp.services.connection_strings import MASK

_STRING: Final = "connection_string"
# What may change while a masked secret is kept: none of it decides where the secret goes, or how safely.
_HARMLESS: Final = frozenset({"schema", "database", "password"})
# Pydantic's kinds of faults as ours; whatever else it says of a type is `wrong_type`.
_CODES: Final = {
    "missing": "missing",
    "literal_error": "not_allowed",
    "greater_than_equal": "out_of_range",
    "less_than_equal": "out_of_range",
    "string_too_long": "too_long",
    "string_too_short": "too_short",
    "value_error": "invalid",
}


def secret_fields(kind: type[Connector]) -> list[str]:
    """The settings of a kind that are sealed, under their wire names."""
    return [
        info.alias or name
        for name, info in kind.Settings.model_fields.items()
        if isinstance(info.json_schema_extra, dict) and info.json_schema_extra.get("secret")
    ]


def known_fields(kind: type[Connector]) -> list[str]:
    """All settings of a kind, under their wire names."""
    return [info.alias or name for name, info in kind.Settings.model_fields.items()]


def _masked(key: str, text: str) -> str:
    """A secret as it is shown: a connection string without what is secret in it, anything else as the mask."""
    return connection_strings.shown(text) if key == _STRING else MASK


def shown(stored: Mapping[str, Any], kind: type[Connector]) -> dict[str, Any]:
    """Stored settings as the API shows them."""
    sealed = set(secret_fields(kind))
    return {
        key: value["shown"] if key in sealed and isinstance(value, dict) else value for key, value in stored.items()
    }


def check(workspace_id: str, kind: type[Connector], given: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Refuse settings that cannot be. `stored` are the present ones, whose secrets a mask keeps.

    Error: validation_error, with every fault under `settings.`.
    """
    faults = _kept_wrongly(kind, given, stored)
    faults += secrets.unknown_references(workspace_id, given)
    known = known_fields(kind)
    faults += [
        Fault(f"settings.{key}", "unknown_key", f'{kind.title} has no setting "{key}".', did_you_mean(key, known))
        for key in given
        if key not in known
    ]
    text = given.get(_STRING)
    if _STRING in secret_fields(kind) and isinstance(text, str) and not connection_strings.is_clear(text):
        told = "Where the user, the password and the host of this URL end is not clear."
        hint = "Percent-encode signs in user and password: @ is %40, / is %2F, : is %3A, ? is %3F, # is %23."
        faults.append(Fault(f"settings.{_STRING}", "not_encoded", told, hint))
    fit = {key: value for key, value in given.items() if key in known}
    try:
        kind.Settings.model_validate(fit)
    except ValidationError as error:
        faults += [_fault(item) for item in error.errors()]
    if faults:
        raise validation_error(faults)


def _fault(item: Any) -> Fault:
    """One fault of pydantic's; what was given is not in it, for it may be a secret."""
    path = ".".join(["settings", *(str(part) for part in item["loc"])])
    return Fault(path, _CODES.get(item["type"], "wrong_type"), str(item["msg"]).removeprefix("Value error, "))


def _kept_wrongly(kind: type[Connector], given: Mapping[str, Any], stored: Mapping[str, Any]) -> list[Fault]:
    present = shown(stored, kind)
    faults = []
    for key in secret_fields(kind):
        value = given.get(key)
        if not isinstance(value, str) or MASK not in value:
            continue
        moved = sorted(
            other
            for other in {*given, *present} - _HARMLESS - {key}
            if given.get(other) != present.get(other)
        )
        if key not in stored or value != present[key]:
            text = f"{MASK} stands for the stored secret, and this is not what is stored."
            faults.append(Fault(f"settings.{key}", "needed_again", text, "Give it in full."))
        elif moved:
            text = f"{', '.join(moved)} changed, so the secret would go elsewhere."
            faults.append(Fault(f"settings.{key}", "needed_again", text, "Give it again."))
    return faults


def kept(connection: Connection, kind: type[Connector], given: Mapping[str, Any]) -> dict[str, Any]:
    """Checked settings as they are stored; their secrets are sealed, those that are no longer used removed. Joins the
    caller's transaction."""
    before, out = connection.settings, dict(given)
    for key in secret_fields(kind):
        value = out.get(key)
        if not isinstance(value, str) or not value:
            continue
        if MASK in value and key in before:
            out[key] = before[key]
            continue
        if secrets.REFERENCE.fullmatch(value.strip()):
            continue  # a reference holds nothing
        secret = Secret(
            workspace_id=connection.workspace_id, connection_id=connection.id, created_by=connection.created_by
        )
        secret.sealed, secret.updated_at = secrets.seal(value), clock.now()
        db.session.add(secret)
        db.session.flush()
        out[key] = {"secret": secret.id, "shown": _masked(key, value)}
    sealed = [out.get(key) for key in secret_fields(kind)]
    _forget(connection, {value["secret"] for value in sealed if isinstance(value, dict)})
    return out


def _forget(connection: Connection, used: set[str]) -> None:
    owned = select(Secret).where(Secret.connection_id == connection.id)
    for secret in db.session.scalars(owned):
        if secret.id not in used:
            db.session.delete(secret)


def opened(connection: Connection, kind: type[Connector]) -> tuple[Settings, list[str]]:
    """The settings with their secrets, for the connector, and the texts that no message may hold.

    Errors: unavailable, target_failed.
    """
    plain: dict[str, Any] = {}
    told: list[str] = []
    sealed = secret_fields(kind)
    for key, value in connection.settings.items():
        if key in sealed and isinstance(value, dict):
            value = _own(connection, key, value["secret"])
        value = secrets.filled(connection.workspace_id, value, told)
        if key in sealed and isinstance(value, str):
            told += connection_strings.hidden(value) if key == _STRING else [value]
        plain[key] = value
    try:
        return kind.Settings.model_validate(plain), told
    except ValidationError as error:
        said = "; ".join(str(item["msg"]).removeprefix("Value error, ") for item in error.errors())
        text = hushed(f"The settings no longer fit: {said}.", told)
        raise ApiError("target_failed", text, {"reason": "bad_settings"}) from None


def _own(connection: Connection, key: str, secret_id: str) -> str:
    """The text of a secret part. Error: target_failed."""
    secret = db.session.get(Secret, secret_id)
    if secret is None or secret.connection_id != connection.id:
        raise ApiError("target_failed", "A secret of this connection is gone. Give it again.", {"setting": key})
    return secrets.opened(secret)


def hushed(text: str, told: Iterable[str]) -> str:
    """A message of a target without the secrets that it repeats."""
    for secret in sorted(told, key=len, reverse=True):
        if len(secret) >= limits.HUSHED_CHARS:
            text = text.replace(secret, MASK)
    return text
