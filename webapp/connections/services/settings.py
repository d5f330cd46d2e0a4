"""Settings of connections: validated by the model of their kind, with secrets encrypted and masked in output.

In the database, a secret is `{"secret": "sec_...", "shown": ...}`, where `shown` is the form that the API returns.
Masked secrets are kept on update: a mask that is sent back keeps the stored secret, but only if the secret is still
sent to the same place. With another host, the secret must be entered again. Otherwise anyone who may edit a
connection could have its password sent to their own server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, get_args
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ValidationError
from sqlalchemy import select

from webapp import app_vault, clock, limits
from webapp.access.actors import Actor
from webapp.connections.models import Connection, Secret
from webapp.connections.services import secrets
from webapp.connectors.redaction import redact
from webapp.errors import (
    ApiError,
    Fault,
    did_you_mean,
    drop_other_union_branches,
    pydantic_error_path,
    pydantic_message,
    validation_error,
)
from webapp.extensions import db
from webapp.net.urls import PORTS

MASK: Final = "********"
# Option names in URLs, libpq, ODBC, JDBC and ADO.NET, in lower case without spaces and punctuation.
_HARMLESS_OPTIONS: Final = frozenset(
    "host hostaddr hostname server address addr datasource networkaddress port dbname database databasename"
    " initialcatalog catalog servicename sid schema currentschema user userid username uid driver protocol"
    " applicationname appname connecttimeout connectiontimeout timeout logintimeout sslmode ssl tls encrypt"
    " encryption trustservercertificate trustedconnection targetsessionattrs channelbinding clientencoding charset"
    " replicaset authsource authmechanism readpreference retrywrites w directconnection keepalives requireauth"
    " multisubnetfailover applicationintent loadbalancehosts".split()
)
_SECRET_OPTIONS: Final = frozenset("password pwd passwd passphrase secret token sslpassword".split())
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][\w+.:-]*)://(?P<rest>[^\s]*)")
_PAIR: Final = re.compile(
    r"\s*(?P<key>[\w .-]+?)\s*=\s*(?P<value>'(?:[^'\\]|\\.)*'|\"[^\"]*\"|\{(?:[^}]|\}\})*\}|[^\s;'\"{}]*)\s*"
)


_RESERVED_CHARS: Final = frozenset(
    "/?#@:[] "
)  # must be percent-encoded in the user part of a URL (RFC 3986, 3.2.1)


def masked_connection_string(text: str) -> str:
    """Return a connection string with its secrets masked as `********`."""
    return _mask_secrets(text)[0]


def secrets_in(text: str) -> list[str]:
    """Return the secrets in a connection string, unchanged and percent-decoded."""
    found = _mask_secrets(text)[1]
    return [*found, *(plain for secret in found if (plain := unquote(secret)) != secret)]


def is_unambiguous(text: str) -> bool:
    """Return whether a URL is unambiguous: special characters in user name and password are percent-encoded."""
    url = _URL.fullmatch(text.strip())
    if url is None:
        return "://" not in text
    userinfo, separator, _ = url["rest"].rpartition("@")
    user, _, password = userinfo.partition(":")
    return not separator or not _RESERVED_CHARS.intersection(user + password)


def hosts_in(text: str, default_port: int) -> list[tuple[str, int]]:
    """Return the hosts and ports in a connection string, as far as they are known. A URL may have several."""
    text = text.strip()
    url = _URL.fullmatch(text)
    if url is None:
        return [
            _host_and_port(pair["value"].strip("'\"{}"), default_port)
            for pair in _PAIR.finditer(text)
            if _normalized(pair["key"]) in _HOST_OPTIONS
        ]
    hosts = re.split(r"[/?#;]", url["rest"].rpartition("@")[2], maxsplit=1)[0]
    return [_host_and_port(address, default_port) for address in hosts.split(",") if address]


_HOST_OPTIONS: Final = frozenset(
    "host hostaddr hostname server address addr datasource networkaddress".split()
)


def _host_and_port(text: str, default_port: int) -> tuple[str, int]:
    host, _, port = text.rpartition(":") if re.search(r"[^:\]]+:\d+$|\]:\d+$", text) else (text, "", "")
    return host.strip("[]"), int(port) if port else default_port


def _mask_secrets(text: str) -> tuple[str, list[str]]:
    text = text.strip()
    secrets: list[str] = []
    url = _URL.fullmatch(text)
    found = _mask_url(url["scheme"], url["rest"], secrets) if url else _mask_pairs(text, secrets)
    return (found, [secret for secret in secrets if secret]) if found else (MASK, [text])


def _mask_url(scheme: str, rest: str, secrets: list[str]) -> str | None:
    # The last @ ends the user part, regardless of the password. One in the query only masks more.
    userinfo, at, address = rest.rpartition("@")
    location, mark, query = address.partition("?")
    location, *semicolons = location.split(";")  # jdbc:sqlserver://host;user=u;password=p
    if "#" in location or "=" in location:
        return None
    user, colon, password = userinfo.partition(":")
    if "/" in user or "?" in user:
        return None
    secrets.append(password)
    found = f"{scheme}://{user}{':' + MASK if colon else ''}{at}{location}"
    found += "".join(f";{_mask_option(part, secrets)}" for part in semicolons if part)
    return found + (mark + "&".join(_mask_option(part, secrets) for part in query.split("&")) if mark else "")


def _mask_option(part: str, secrets: list[str]) -> str:
    key, equals, value = part.partition("=")
    if equals and _normalized(key) in _HARMLESS_OPTIONS:
        return part
    if equals and _normalized(key) in _SECRET_OPTIONS:
        secrets.append(value)
        return f"{key}={MASK}"
    secrets.append(part)  # could also be part of a password with unencoded characters
    return MASK


def _mask_pairs(text: str, secrets: list[str]) -> str | None:
    """Mask `key=value` pairs, separated by spaces (libpq) or semicolons (ODBC). Returns None for other text."""
    separator = ";" if ";" in text else " "
    found, position = [], 0
    while position < len(text):
        pair = _PAIR.match(text, position)
        if pair is None or (separator == ";" and text[pair.end() : pair.end() + 1] not in ("", ";")):
            return None
        found.append(_mask_option(f"{pair['key']}={pair['value']}", secrets))
        position = pair.end() + (separator == ";")
    return separator.join(found) or None


def _normalized(key: str) -> str:
    return re.sub(r"[\s_.-]", "", key).casefold()


_CONNECTION_STRING: Final = ("connection_string",)
# Error codes for error types of pydantic. All others are `wrong_type`.
_CODES: Final = {
    "missing": "missing",
    "extra_forbidden": "unknown_key",
    "literal_error": "not_allowed",
    "greater_than_equal": "out_of_range",
    "less_than_equal": "out_of_range",
    "string_too_long": "too_long",
    "string_too_short": "too_short",
    "value_error": "invalid",
}


Path = tuple[str, ...]


class Kind(Protocol):
    """A connector class, which has settings."""

    title: str
    Settings: type[Any]
    default_port: int | None
    secret_independent_settings: frozenset[str]
    """Settings that may change while a masked secret is kept, because they do not affect where it is sent."""


def secret_paths(model: type[BaseModel]) -> list[Path]:
    """Return the paths of secrets in settings, such as `("password",)` and `("auth", "token")`."""
    found: dict[Path, None] = {}
    for name, info in model.model_fields.items():
        key, extra = info.alias or name, info.json_schema_extra
        if isinstance(extra, dict) and extra.get("secret"):
            found[(key,)] = None
        for inner in _models_in(info.annotation):
            found |= dict.fromkeys((key, *path) for path in secret_paths(inner))
    return list(found)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def known_fields(kind: Kind) -> list[str]:
    """Return the names of all settings of a kind in the API."""
    return [info.alias or name for name, info in kind.Settings.model_fields.items()]


def _value_at(settings: Any, path: Path) -> Any:
    """Return the value at a path, or None."""
    for key in path:
        settings = settings.get(key) if isinstance(settings, Mapping) else None
    return settings


def _with_value(settings: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """Return the settings with another value at an existing path."""
    key, rest = path[0], path[1:]
    return {**settings, key: _with_value(settings[key], rest, value) if rest else value}


def _leaves(settings: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield each value with its path. Lists count as values."""
    if isinstance(settings, Mapping) and settings:
        for key, value in settings.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path, settings


def masked_settings(stored: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """Return stored settings as the API shows them, with secrets masked."""
    out = dict(stored)
    for path in secret_paths(kind.Settings):
        value = _value_at(stored, path)
        if isinstance(value, dict):
            out = _with_value(out, path, value["shown"])
    return out


Grants = list[tuple[Secret, str]]
"""Secrets, and the hosts to allow them for."""


def check(
    actor: Actor,
    project_id: str | None,
    kind: Kind,
    submitted: Mapping[str, Any],
    stored: Mapping[str, Any],
) -> Grants:
    """Validate settings. `stored` are the current ones, whose masked secrets are kept.

    Returns the hosts to allow named secrets for when the settings are saved (see `secrets.allow_hosts`). Error:
    validation_error, with all errors under `settings.`.
    """
    current = masked_settings(stored, kind)
    before, after = dict(_leaves(current)), dict(_leaves(submitted))
    faults = []
    for path in secret_paths(
        kind.Settings
    ):  # masked ones that are not the stored ones, or would be sent elsewhere
        value, name = _value_at(submitted, path), ".".join(path)
        if not isinstance(value, str) or MASK not in value:
            continue
        moved = sorted(
            ".".join(other)
            for other in {*before, *after} - {path}
            if other
            and other[0] not in kind.secret_independent_settings
            and before.get(other) != after.get(other)
        )
        if _value_at(stored, path) is None or value != _value_at(current, path):
            text = f"{MASK} is the placeholder for the stored secret, but this value does not match it."
            faults.append(Fault(f"settings.{name}", "needed_again", text, "Enter the full value."))
        elif moved:
            text = f"You changed {', '.join(moved)}, so the secret would be sent elsewhere."
            faults.append(Fault(f"settings.{name}", "needed_again", text, "Enter it again."))
    places = hosts_in_settings(kind, submitted)
    same = bool(stored) and places == hosts_in_settings(kind, current)
    stored_names = secrets.referenced_names(secrets.iter_texts(current)) if same else ()
    found, grants = secrets.check_references(actor, project_id, submitted, places, stored_names)
    faults += found
    faults += value_faults(kind, submitted)
    if faults:
        raise validation_error(faults)
    return grants


def value_faults(kind: Kind, submitted: Mapping[str, Any]) -> list[Fault]:
    """Return the errors in settings that can be found without the stored settings."""
    known = known_fields(kind)
    faults = [
        Fault(
            f"settings.{key}",
            "unknown_key",
            f'{kind.title} has no setting "{key}".',
            did_you_mean(key, known),
        )
        for key in submitted
        if key not in known
    ]
    text = _value_at(submitted, _CONNECTION_STRING)
    if (
        _CONNECTION_STRING in secret_paths(kind.Settings)
        and isinstance(text, str)
        and not is_unambiguous(text)
    ):
        message = (
            "The URL is ambiguous: special characters in the user name or password must be percent-encoded."
        )
        hint = "@ is %40, / is %2F, : is %3A, ? is %3F, # is %23."
        faults.append(Fault(f"settings.{_CONNECTION_STRING[0]}", "not_encoded", message, hint))
    try:
        kind.Settings.model_validate({key: value for key, value in submitted.items() if key in known})
    except ValidationError as error:
        faults += drop_other_union_branches([_fault(item, submitted) for item in error.errors()])
    return faults


def check_changed(
    actor: Actor, connection: Connection, kind: Kind, changed: Mapping[str, Any], stored: Mapping[str, Any]
) -> Grants:
    """Validate the settings of a push or endpoint that override those of its connection.

    `stored` are the current settings of the endpoint, whose references to secrets are accepted. Returns the same as
    `check`. Error: validation_error."""
    if not changed:
        return []
    places = hosts_in_settings(kind, masked_settings(connection.settings, kind))
    stored_names = secrets.referenced_names(secrets.iter_texts(stored))
    faults, grants = secrets.check_references(
        actor, connection.project_id, changed, places, stored_names, front=""
    )
    try:
        kind.Settings.model_validate({**masked_settings(connection.settings, kind), **changed})
    except ValidationError as error:
        errors = [item for item in error.errors() if not item["loc"] or item["loc"][0] in changed]
        faults += drop_other_union_branches([_fault(item, changed, "") for item in errors])
    if faults:
        raise validation_error(faults)
    return grants


def has_secrets(connection: Connection, kind: Kind, endpoint_settings: Any) -> bool:
    """Return whether a connection has secrets or refers to named ones, also in the settings of its endpoints."""
    sealed = any(
        isinstance(_value_at(connection.settings, path), dict) for path in secret_paths(kind.Settings)
    )
    return sealed or bool(
        secrets.referenced_names(
            secrets.iter_texts([masked_settings(connection.settings, kind), endpoint_settings])
        )
    )


def same_hosts(connection: Connection, kind: Kind, new_settings: Mapping[str, Any]) -> bool:
    """Return whether settings lead to the same hosts and ports as those of a connection."""
    return hosts_in_settings(kind, new_settings) == hosts_in_settings(
        kind, masked_settings(connection.settings, kind)
    )


def check_moved(
    actor: Actor, connection: Connection, kind: Kind, new_settings: Mapping[str, Any], endpoint_settings: Any
) -> Grants:
    """Validate new settings of a connection that lead elsewhere, if its endpoints' settings refer to secrets.

    Returns the same as `check`. Error: validation_error."""
    if same_hosts(connection, kind, new_settings):
        return []
    places = hosts_in_settings(kind, new_settings)
    sent = {
        "base_url": [
            f"${{{name}}}" for name in sorted(secrets.referenced_names(secrets.iter_texts(endpoint_settings)))
        ]
    }
    faults, grants = secrets.check_references(actor, connection.project_id, sent, places)
    if faults:
        raise validation_error(faults)
    return grants


_URL_SETTINGS: Final = ("base_url", "service_url", "document_url")


def hosts_in_settings(kind: Kind, settings: Mapping[str, Any]) -> list[tuple[str, int]] | None:
    """Return the hosts and ports in settings, or None if they are only known when connecting.

    The address guard checks the actual address of each connection (see `net.gate`)."""
    urls = [settings.get(key) for key in _URL_SETTINGS]
    auth = settings.get("auth")
    urls.append(auth.get("token_url") if isinstance(auth, Mapping) else None)
    found = [_address(url) for url in urls if isinstance(url, str)]
    host, port = settings.get("host"), settings.get("port")
    if isinstance(host, str):
        found.append((host, port if isinstance(port, int) else kind.default_port or 0))
    elif isinstance(settings.get("connection_string"), str) and _CONNECTION_STRING in secret_paths(
        kind.Settings
    ):
        found += hosts_in(settings["connection_string"], kind.default_port or 0)
    return sorted(set(found)) or None


def _address(url: str) -> tuple[str, int]:
    """Return host and port of a URL; for an invalid URL the URL itself, which no list of hosts contains."""
    try:
        parts = urlsplit(url)
        return parts.hostname or url, parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        return url, 0


def _fault(item: Any, submitted: Mapping[str, Any], prefix: str = "settings") -> Fault:
    """Convert an error of pydantic in `submitted`, without the input, which may be a secret."""
    path = pydantic_error_path(item, submitted, prefix)
    return Fault(path, _CODES.get(item["type"], "wrong_type"), pydantic_message(item))


def stored_settings(connection: Connection, kind: Kind, validated: Mapping[str, Any]) -> dict[str, Any]:
    """Return validated settings in their stored form, in the caller's transaction.

    New secrets are encrypted, masked secrets are kept, and secrets that are no longer used are deleted."""
    before, out = connection.settings, dict(validated)
    paths = secret_paths(kind.Settings)
    for path in paths:
        value = _value_at(out, path)
        if not isinstance(value, str) or not value:
            continue
        if MASK in value and _value_at(before, path) is not None:
            out = _with_value(out, path, _value_at(before, path))
            continue
        if secrets.REFERENCE.fullmatch(value.strip()):
            continue  # a reference contains no secret
        secret = Secret(
            workspace_id=connection.workspace_id,
            connection_id=connection.id,
            created_by=connection.created_by,
        )
        secret.sealed, secret.updated_at = app_vault.seal(value), clock.now()
        db.session.add(secret)
        db.session.flush()
        # Only the secret parts of a connection string are masked.
        masked = masked_connection_string(value) if path == _CONNECTION_STRING else MASK
        out = _with_value(out, path, {"secret": secret.id, "shown": masked})
    stored = [_value_at(out, path) for path in paths]
    used = {value["secret"] for value in stored if isinstance(value, dict)}
    for secret in db.session.scalars(select(Secret).where(Secret.connection_id == connection.id)):
        if secret.id not in used:
            db.session.delete(secret)
    return out


def decrypted_settings(
    connection: Connection, kind: Kind, changed: Mapping[str, Any]
) -> tuple[Any, list[str], dict[str, list[str]]]:
    """Return the settings with decrypted secrets for the connector, the texts to redact in messages, and the named
    secrets with restricted hosts.

    `changed` overrides the connection's settings. Errors: unavailable, target_failed.
    """
    plaintexts: list[str] = []
    used: dict[str, Secret] = {}
    plain: dict[str, Any] = {**connection.settings, **changed}
    paths = secret_paths(kind.Settings)
    for path in paths:
        value = _value_at(plain, path)
        if isinstance(value, dict):
            secret = db.session.get(Secret, value["secret"])
            if secret is None or secret.connection_id != connection.id:
                text = "A secret of this connection no longer exists. Enter it again."
                raise ApiError("target_failed", text, {"setting": ".".join(path)})
            plain = _with_value(plain, path, secrets.decrypt(secret))
    plain = secrets.fill_references(connection.workspace_id, connection.project_id, plain, plaintexts, used)
    for path in paths:
        value = _value_at(plain, path)
        if isinstance(value, str):
            plaintexts += secrets_in(value) if path == _CONNECTION_STRING else [value]
    try:
        bound = {
            name: list(named_secret.allowed_hosts)
            for name, named_secret in used.items()
            if named_secret.allowed_hosts is not None
        }
        return kind.Settings.model_validate(plain), plaintexts, bound
    except ValidationError as error:
        messages = " ".join(pydantic_message(item) for item in error.errors())
        text = redact_plaintexts(f"The settings are no longer valid: {messages}", plaintexts)
        raise ApiError("target_failed", text, {"reason": "bad_settings"}) from None


def redact_plaintexts(text: str, plaintexts: Iterable[str]) -> str:
    """Return a message with secrets redacted, in any encoding."""
    return redact(text, [secret for secret in plaintexts if len(secret) >= limits.REDACTED_SECRET_MIN_CHARS])
