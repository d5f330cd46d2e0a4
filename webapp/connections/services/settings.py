"""Settings of connections: checked by their kind's own model, secret parts sealed apart and masked on the way out.

In the database a secret part is `{"secret": "sec_...", "shown": ...}`, where `shown` is what the API tells of it. A
mask that is sent back means "keep", but only while the secret still goes where it went: with another host the secret
has to be given again, else whoever may edit a connection could have its password sent to a server of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, get_args
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ValidationError
from sqlalchemy import select

from webapp import clock, limits
from webapp.accounts.actors import Actor
from webapp.connections.models import Connection, Secret
from webapp.connections.services import secrets
from webapp.connectors.http_auth import AUTH_TYPES
from webapp.connectors.redaction import without
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.net.urls import PORTS

MASK: Final = "********"
# Names of parts as URLs' queries, libpq, ODBC, JDBC and ADO.NET spell them, without case, spaces and signs.
_HARMLESS: Final = frozenset(
    "host hostaddr hostname server address addr datasource networkaddress port dbname database databasename"
    " initialcatalog catalog servicename sid schema currentschema user userid username uid driver protocol"
    " applicationname appname connecttimeout connectiontimeout timeout logintimeout sslmode ssl tls encrypt"
    " encryption trustservercertificate trustedconnection targetsessionattrs channelbinding clientencoding charset"
    " replicaset authsource authmechanism readpreference retrywrites w directconnection keepalives requireauth"
    " multisubnetfailover applicationintent loadbalancehosts".split()
)
_SECRET: Final = frozenset("password pwd passwd passphrase secret token sslpassword".split())
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][\w+.:-]*)://(?P<rest>[^\s]*)")
_PAIR: Final = re.compile(
    r"\s*(?P<key>[\w .-]+?)\s*=\s*(?P<value>'(?:[^'\\]|\\.)*'|\"[^\"]*\"|\{(?:[^}]|\}\})*\}|[^\s;'\"{}]*)\s*"
)


_UNREADABLE: Final = frozenset(
    "/?#@:[] "
)  # what a URL's user part may hold percent-encoded alone (RFC 3986, 3.2.1)


def masked_connection_string(text: str) -> str:
    """A connection string with its secrets as `********`."""
    return _taken_apart(text)[0]


def hidden(text: str) -> list[str]:
    """The secrets of a connection string: what `shown` masks, as it stands and percent-decoded."""
    found = _taken_apart(text)[1]
    return [*found, *(plain for one in found if (plain := unquote(one)) != one)]


def is_clear(text: str) -> bool:
    """Whether every driver finds the same user, password and host in a URL: their signs are percent-encoded."""
    url = _URL.fullmatch(text.strip())
    if url is None:
        return "://" not in text
    who, at, _ = url["rest"].rpartition("@")
    user, _, password = who.partition(":")
    return not at or not _UNREADABLE.intersection(user + password)


def places(text: str, default_port: int) -> list[tuple[str, int]]:
    """The hosts and ports that a connection string leads to, as far as they can be told: URLs may name several."""
    text = text.strip()
    url = _URL.fullmatch(text)
    if url is None:
        return [
            _host_and_port(pair["value"].strip("'\"{}"), default_port)
            for pair in _PAIR.finditer(text)
            if _folded(pair["key"]) in _HOSTS
        ]
    named = re.split(r"[/?#;]", url["rest"].rpartition("@")[2], maxsplit=1)[0]
    return [_host_and_port(one, default_port) for one in named.split(",") if one]


_HOSTS: Final = frozenset("host hostaddr hostname server address addr datasource networkaddress".split())


def _host_and_port(text: str, default_port: int) -> tuple[str, int]:
    host, _, port = text.rpartition(":") if re.search(r"[^:\]]+:\d+$|\]:\d+$", text) else (text, "", "")
    return host.strip("[]"), int(port) if port else default_port


def _taken_apart(text: str) -> tuple[str, list[str]]:
    text = text.strip()
    secrets: list[str] = []
    url = _URL.fullmatch(text)
    found = _url(url["scheme"], url["rest"], secrets) if url else _pairs(text, secrets)
    return (found, [one for one in secrets if one]) if found else (MASK, [text])


def _url(scheme: str, rest: str, secrets: list[str]) -> str | None:
    # The last @ ends the user's part, whatever signs a password holds; one in the query only hides more.
    who, at, where = rest.rpartition("@")
    place, mark, query = where.partition("?")
    place, *semicolons = place.split(";")  # jdbc:sqlserver://host;user=u;password=p
    if "#" in place or "=" in place:
        return None
    user, colon, password = who.partition(":")
    if "/" in user or "?" in user:
        return None
    secrets.append(password)
    found = f"{scheme}://{user}{':' + MASK if colon else ''}{at}{place}"
    found += "".join(f";{_one(part, secrets)}" for part in semicolons if part)
    return found + (mark + "&".join(_one(part, secrets) for part in query.split("&")) if mark else "")


def _one(part: str, secrets: list[str]) -> str:
    key, equals, value = part.partition("=")
    if equals and _folded(key) in _HARMLESS:
        return part
    if equals and _folded(key) in _SECRET:
        secrets.append(value)
        return f"{key}={MASK}"
    secrets.append(part)  # a piece of a password with raw signs in it looks like this too
    return MASK


def _pairs(text: str, secrets: list[str]) -> str | None:
    """`key=value` pairs, set apart by spaces (libpq) or semicolons (ODBC). None for anything else."""
    apart = ";" if ";" in text else " "
    found, at = [], 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None or (apart == ";" and text[pair.end() : pair.end() + 1] not in ("", ";")):
            return None
        found.append(_one(f"{pair['key']}={pair['value']}", secrets))
        at = pair.end() + (apart == ";")
    return apart.join(found) or None


def _folded(key: str) -> str:
    return re.sub(r"[\s_.-]", "", key).casefold()


_STRING: Final = ("connection_string",)
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


Path = tuple[str, ...]


class Kind(Protocol):
    """What has settings: a connector's class."""

    title: str
    Settings: type[Any]
    default_port: int | None
    harmless: frozenset[str]
    """What may change while a masked secret is kept: none of it decides where the secret goes, or how safely."""


def secret_paths(model: type[BaseModel]) -> list[Path]:
    """Where the secrets of some settings are, under their wire names: `("password",)`, `("auth", "token")`."""
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
    """All settings of a kind, under their wire names."""
    return [info.alias or name for name, info in kind.Settings.model_fields.items()]


def _at(settings: Any, path: Path) -> Any:
    """What stands at a path; None where there is nothing."""
    for key in path:
        settings = settings.get(key) if isinstance(settings, Mapping) else None
    return settings


def _with(settings: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """The settings with something else at a path that is there."""
    key, rest = path[0], path[1:]
    return {**settings, key: _with(settings[key], rest, value) if rest else value}


def _leaves(settings: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value with its path; lists are values."""
    if isinstance(settings, Mapping) and settings:
        for key, value in settings.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path, settings


def _masked(path: Path, text: str) -> str:
    """A secret as it is shown: a connection string without what is secret in it, anything else as the mask."""
    return masked_connection_string(text) if path == _STRING else MASK


def shown(stored: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """Stored settings as the API shows them."""
    out = dict(stored)
    for path in secret_paths(kind.Settings):
        value = _at(stored, path)
        if isinstance(value, dict):
            out = _with(out, path, value["shown"])
    return out


Grants = list[tuple[Secret, str]]
"""Secrets and the hosts that they are to be allowed for."""


def check(
    actor: Actor,
    project_id: str | None,
    kind: Kind,
    given: Mapping[str, Any],
    stored: Mapping[str, Any],
) -> Grants:
    """Refuse settings that cannot be. `stored` are the present ones, whose secrets a mask keeps.

    Returns the hosts that named secrets are to be allowed for when the settings are saved (see `secrets.allow`).
    Error: validation_error, with every fault under `settings.`.
    """
    faults = _kept_wrongly(kind, given, stored)
    places, before = places_of(kind, given), shown(stored, kind)
    same = bool(stored) and places == places_of(kind, before)
    kept_names = secrets.referred(secrets.texts(before)) if same else ()
    found, grants = secrets.check_references(actor, project_id, given, places, kept_names)
    faults += found
    faults += value_faults(kind, given)
    if faults:
        raise validation_error(faults)
    return grants


def value_faults(kind: Kind, given: Mapping[str, Any]) -> list[Fault]:
    """Return the faults of settings that need no look at what is stored."""
    known = known_fields(kind)
    faults = [
        Fault(
            f"settings.{key}",
            "unknown_key",
            f'{kind.title} has no setting "{key}".',
            did_you_mean(key, known),
        )
        for key in given
        if key not in known
    ]
    text = _at(given, _STRING)
    if _STRING in secret_paths(kind.Settings) and isinstance(text, str) and not is_clear(text):
        message = (
            "The URL is ambiguous: special characters in the user name or password must be percent-encoded."
        )
        hint = "@ is %40, / is %2F, : is %3A, ? is %3F, # is %23."
        faults.append(Fault(f"settings.{_STRING[0]}", "not_encoded", message, hint))
    try:
        kind.Settings.model_validate({key: value for key, value in given.items() if key in known})
    except ValidationError as error:
        faults += [_fault(item) for item in error.errors()]
    return faults


def check_changed(
    actor: Actor, connection: Connection, kind: Kind, changed: Mapping[str, Any], stored: Mapping[str, Any]
) -> Grants:
    """Refuse what one push or endpoint says in place of a connection's settings. `stored` is what an endpoint says
    already, whose references to secrets may stay. Returns as `check`. Error: validation_error."""
    if not changed:
        return []
    places = places_of(kind, shown(connection.settings, kind))
    kept_names = secrets.referred(secrets.texts(stored))
    faults, grants = secrets.check_references(
        actor, connection.project_id, changed, places, kept_names, front=""
    )
    try:
        kind.Settings.model_validate({**shown(connection.settings, kind), **changed})
    except ValidationError as error:
        told = [item for item in error.errors() if not item["loc"] or item["loc"][0] in changed]
        faults += [_fault(item, ()) for item in told]
    if faults:
        raise validation_error(faults)
    return grants


def has_secrets(connection: Connection, kind: Kind, said: Any) -> bool:
    """Whether a connection's settings hold secrets or refer to named ones, or `said` by its endpoints does."""
    sealed = any(isinstance(_at(connection.settings, path), dict) for path in secret_paths(kind.Settings))
    return sealed or bool(secrets.referred(secrets.texts([shown(connection.settings, kind), said])))


def leads_there(connection: Connection, kind: Kind, fresh: Mapping[str, Any]) -> bool:
    """Whether settings lead to the same hosts and ports as those of a connection."""
    return places_of(kind, fresh) == places_of(kind, shown(connection.settings, kind))


def check_moved(
    actor: Actor, connection: Connection, kind: Kind, fresh: Mapping[str, Any], said: Any
) -> Grants:
    """Refuse new settings of a connection that lead elsewhere, where `said` by endpoints refers to secrets that would
    go there. Returns as `check`. Error: validation_error."""
    if leads_there(connection, kind, fresh):
        return []
    places = places_of(kind, fresh)
    sent = {"base_url": [f"${{{name}}}" for name in sorted(secrets.referred(secrets.texts(said)))]}
    faults, grants = secrets.check_references(actor, connection.project_id, sent, places)
    if faults:
        raise validation_error(faults)
    return grants


_URLS: Final = ("base_url", "service_url", "document_url")


def places_of(kind: Kind, settings: Mapping[str, Any]) -> list[tuple[str, int]] | None:
    """The hosts and ports that settings lead to, as far as they say; None where that shows when they are used. What
    counts in the end is where the connection is made to (see `net.gate`)."""
    urls = [settings.get(key) for key in _URLS]
    auth = settings.get("auth")
    urls.append(auth.get("token_url") if isinstance(auth, Mapping) else None)
    found = [_place(one) for one in urls if isinstance(one, str)]
    port = settings.get("port") if isinstance(settings.get("port"), int) else kind.default_port or 0
    if isinstance(settings.get("host"), str):
        found.append((settings["host"], port))
    elif isinstance(settings.get("connection_string"), str) and _STRING in secret_paths(kind.Settings):
        found += places(settings["connection_string"], kind.default_port or 0)
    return sorted(set(found)) or None


def _place(url: str) -> tuple[str, int]:
    """Host and port of a URL; of one that cannot be read itself, which no list names."""
    try:
        parts = urlsplit(url)
        return parts.hostname or url, parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        return url, 0


def _fault(item: Any, front: tuple[str, ...] = ("settings",)) -> Fault:
    """One fault of pydantic's; what was given is not in it, for it may be a secret."""
    path = ".".join([*front, *(str(part) for part in item["loc"] if part not in AUTH_TYPES)])
    return Fault(path, _CODES.get(item["type"], "wrong_type"), str(item["msg"]).removeprefix("Value error, "))


def _kept_wrongly(kind: Kind, given: Mapping[str, Any], stored: Mapping[str, Any]) -> list[Fault]:
    present = shown(stored, kind)
    before, after = dict(_leaves(present)), dict(_leaves(given))
    faults = []
    for path in secret_paths(kind.Settings):
        value, name = _at(given, path), ".".join(path)
        if not isinstance(value, str) or MASK not in value:
            continue
        moved = sorted(
            ".".join(other)
            for other in {*before, *after} - {path}
            if other and other[0] not in kind.harmless and before.get(other) != after.get(other)
        )
        if _at(stored, path) is None or value != _at(present, path):
            text = f"{MASK} stands for the stored secret, and this is not what is stored."
            faults.append(Fault(f"settings.{name}", "needed_again", text, "Give it in full."))
        elif moved:
            text = f"{', '.join(moved)} changed, so the secret would go elsewhere."
            faults.append(Fault(f"settings.{name}", "needed_again", text, "Give it again."))
    return faults


def kept(connection: Connection, kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    """Checked settings as they are stored; their secrets are sealed, those that are no longer used removed. Joins the
    caller's transaction."""
    before, out = connection.settings, dict(given)
    paths = secret_paths(kind.Settings)
    for path in paths:
        value = _at(out, path)
        if not isinstance(value, str) or not value:
            continue
        if MASK in value and _at(before, path) is not None:
            out = _with(out, path, _at(before, path))
            continue
        if secrets.REFERENCE.fullmatch(value.strip()):
            continue  # a reference holds nothing
        secret = Secret(
            workspace_id=connection.workspace_id,
            connection_id=connection.id,
            created_by=connection.created_by,
        )
        secret.sealed, secret.updated_at = secrets.seal(value), clock.now()
        db.session.add(secret)
        db.session.flush()
        out = _with(out, path, {"secret": secret.id, "shown": _masked(path, value)})
    sealed = [_at(out, path) for path in paths]
    _forget(connection, {value["secret"] for value in sealed if isinstance(value, dict)})
    return out


def _forget(connection: Connection, used: set[str]) -> None:
    for secret in db.session.scalars(select(Secret).where(Secret.connection_id == connection.id)):
        if secret.id not in used:
            db.session.delete(secret)


def opened(
    connection: Connection, kind: Kind, changed: Mapping[str, Any]
) -> tuple[Any, list[str], dict[str, list[str]]]:
    """The settings with their secrets, for the connector; the texts that no message may hold; and the named secrets
    among them that may be sent to some hosts only, with these. `changed` stand in for the connection's own.

    Errors: unavailable, target_failed.
    """
    told: list[str] = []
    used: dict[str, Secret] = {}
    plain: dict[str, Any] = {**connection.settings, **changed}
    sealed = secret_paths(kind.Settings)
    for path in sealed:
        value = _at(plain, path)
        if isinstance(value, dict):
            plain = _with(plain, path, _own(connection, ".".join(path), value["secret"]))
    plain = secrets.filled(connection.workspace_id, connection.project_id, plain, told, used)
    for path in sealed:
        value = _at(plain, path)
        if isinstance(value, str):
            told += hidden(value) if path == _STRING else [value]
    try:
        bound = {name: list(one.allowed_hosts) for name, one in used.items() if one.allowed_hosts is not None}
        return kind.Settings.model_validate(plain), told, bound
    except ValidationError as error:
        said = "; ".join(str(item["msg"]).removeprefix("Value error, ") for item in error.errors())
        text = hushed(f"The settings no longer fit: {said}.", told)
        raise ApiError("target_failed", text, {"reason": "bad_settings"}) from None


def _own(connection: Connection, setting: str, secret_id: str) -> str:
    """The text of a secret part. Error: target_failed."""
    secret = db.session.get(Secret, secret_id)
    if secret is None or secret.connection_id != connection.id:
        raise ApiError(
            "target_failed", "A secret of this connection is gone. Give it again.", {"setting": setting}
        )
    return secrets.opened(secret)


def hushed(text: str, told: Iterable[str]) -> str:
    """A message of a target without the secrets that it repeats, however it writes them."""
    return without(text, [secret for secret in told if len(secret) >= limits.HUSHED_CHARS])
