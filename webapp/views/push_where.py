"""Where a push may go, as its form offers it: connections and endpoints, and how each is spoken of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from webapp import limits
from webapp.connectors import KINDS
from webapp.connectors.channel import HttpConnector
from webapp.connectors.request_template import RequestTemplate
from webapp.extensions import db
from webapp.forms.settings import SettingsForm
from webapp.models import Connection, Endpoint
from webapp.services import connection_links, connections, endpoints
from webapp.services.actors import Actor
from webapp.services.http_targets import OF_A_PUSH

_ENDPOINT: Final = "end_"
_MOST_FOUND: Final = 20  # chosen: what a list of search results shows of one kind
_WORDS: Final = {  # of a target, of several, of what stands at the head of its columns
    "mongodb": ("Collection", "collections", "Key of"),
    "rest": ("Path", "paths", "Name in the request to"),
    "odata": ("Entity set", "entity sets", "Property of"),
    "openapi": ("Operation", "operations", "Property of"),
}
_HOW: Final = "how"
_REQUEST: Final = "request_template"
_SHAPE: Final = ("method", "headers", "header_encoding", "query_params", "body")  # its path is the push's target


def is_endpoint(where: str) -> bool:
    """Whether the id of a choice is an endpoint's."""
    return where.startswith(_ENDPOINT)


def named(where: str) -> dict[str, Any]:
    """A choice in the words of `POST /templates/{id}/push`."""
    return {"endpoint_id": where} if is_endpoint(where) else {"connection_id": where or None}


def known(actor: Actor, chosen: str) -> list[dict[str, Any]]:
    """Connections that take rows, then endpoints, the chosen one among them. Error: not_found."""
    page = connections.listing(actor, limit=limits.PAGE_LIMIT_MAX)
    found = {one.id: one for one in page.items if one.type in KINDS and KINDS[one.type].can.modes}
    made = {one.id: one for one in endpoints.listing(actor, limit=limits.PAGE_LIMIT_MAX).items}
    if is_endpoint(chosen) and chosen not in made:
        made[chosen] = endpoints.get(actor, chosen)
    elif chosen and not is_endpoint(chosen) and chosen not in found:
        found[chosen] = connections.get(actor, chosen)
    return [*map(_connection, found.values()), *map(_of_endpoint, made.values())]


def search(actor: Actor, text: str) -> tuple[list[dict[str, Any]], list[tuple[dict[str, Any], str]], int]:
    """Find where rows can be pushed: writable connections and endpoints by name, and tables by name.

    Return the connections and endpoints, the tables as (connection, table), and how many connections and endpoints
    there are beyond those returned. Tables are those that were last read from each connection; nothing is connected to.
    """
    page = connections.listing(actor, limit=limits.PAGE_LIMIT_MAX, q=text or None)
    writable = [one for one in page.items if _is_writable(one)]
    named = endpoints.listing(actor, limit=limits.PAGE_LIMIT_MAX, q=text or None)
    found = [*map(_connection, writable), *filter(_writable, map(_of_endpoint, named.items))]
    more = page.total - len(page.items) + named.total - len(named.items) + max(0, len(found) - _MOST_FOUND)
    tables: list[tuple[dict[str, Any], str]] = []
    wanted = text.strip().casefold()
    if wanted:
        for connection in connections.every_with_metadata(actor):
            if not _is_writable(connection):
                continue
            known = connection_links.cached(connection) or {"entities": []}
            names = (entity["name"] for entity in known["entities"] if entity.get("kind") != "view")
            shown = _connection(connection)
            tables += [(shown, name) for name in names if wanted in name.casefold()]
            if len(tables) >= _MOST_FOUND:
                break
    return found[:_MOST_FOUND], tables[:_MOST_FOUND], more


def _is_writable(connection: Connection) -> bool:
    return connection.type in KINDS and bool(KINDS[connection.type].can.modes) and not connection.read_only


def _writable(destination: Mapping[str, Any]) -> bool:
    return not destination["read_only"]


def _connection(one: Connection) -> dict[str, Any]:
    kind = KINDS[one.type]
    word, several, head = _WORDS.get(one.type, ("Table", "tables", "Column of"))
    return {
        "id": one.id,
        "name": one.name,
        "type": one.type,
        "environment": one.environment,
        "read_only": one.read_only,
        "endpoint": False,
        "http": kind.can.by_row,
        "lists": not issubclass(kind, HttpConnector) or kind.has_entities,
        "creates": kind.can.create_table,
        "modes": kind.can.modes,
        "word": word,
        "several": several,
        "head": head,
    }


def _of_endpoint(one: Endpoint) -> dict[str, Any]:
    base = _connection(db.session.get_one(Connection, one.connection_id))
    return {**base, "id": one.id, "name": one.name, "type": "endpoint", "endpoint": True}


@dataclass(frozen=True, slots=True)
class Sending:
    """How rows are sent, as the form has it: settings of this push, and the request of one row."""

    how: SettingsForm
    request: SettingsForm | None
    """Drawn with what holds anyway, so that what is seen is what is sent; None where the target says it itself."""
    held: Mapping[str, Any]
    """The request that holds where the form changes nothing."""

    @property
    def parts(self) -> list[Any]:
        """Controls and groups to draw."""
        return [*self.how.parts, *([self.request] if self.request else [])]

    def values(self) -> dict[str, Any]:
        """In the words of `POST /templates/{id}/push`."""
        found = self.how.values()
        if self.request is not None and (said := _whole(self.request.values())) != _whole(self.held):
            path = self.held.get("path")
            found["request_template"] = {**({"path": path} if path else {}), **said}
        return found

    def placed(self, faults: list[dict[str, Any]]) -> dict[str, str]:
        """Faults by their controls."""
        found = self.how.placed([{**one, "path": f"{_HOW}.{one['path']}"} for one in faults])
        if self.request is not None:
            found |= self.request.placed(faults)
        return found


def _whole(request: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a request that the form shows, the usual ones too."""
    said = {name: request.get(name) for name in _SHAPE}
    usual = {"method": "POST", "headers": {}, "header_encoding": "none", "query_params": {}}
    return {**said, **{name: said[name] or value for name, value in usual.items()}}


def sending(chosen: Mapping[str, Any] | None, formdata: Any) -> Sending | None:
    """How rows are sent there, to be changed for one push; what the connection or endpoint says holds otherwise.
    None for databases."""
    if chosen is None or not chosen["http"]:
        return None
    endpoint = db.session.get_one(Endpoint, chosen["id"]) if chosen["endpoint"] else None
    connection = db.session.get_one(Connection, endpoint.connection_id if endpoint else chosen["id"])
    model = KINDS[connection.type].Settings
    names = [name for name in OF_A_PUSH if name in model.model_fields and name != _REQUEST]
    settings = {**connection.settings, **(endpoint.settings if endpoint else {})}
    normal = {name: value for name, value in settings.items() if name in names}
    how = SettingsForm(model, formdata=formdata, name=_HOW, names=names, normal=normal)
    held = settings.get(_REQUEST) or {}
    if connection.type != "rest":  # an entity set or an operation says it itself
        return Sending(how, None, held)
    # What another target's form held is not this one's request.
    own = formdata is not None and formdata.get("connection_id") == formdata.get("was")
    said = formdata if own and f"{_REQUEST}.method" in formdata else None
    request = SettingsForm(RequestTemplate, held, formdata=said, name=_REQUEST, names=_SHAPE)
    return Sending(how, request, held)


def asked(body: dict[str, Any], chosen: Mapping[str, Any] | None, how: Sending | None) -> dict[str, Any]:
    """The form's request without what its target cannot do, and with how rows are sent."""
    if chosen is None:
        return body
    body = {**body, **(how.values() if how else {})}
    if body["mode"] not in chosen["modes"]:
        body["mode"] = "insert"
    if chosen["http"]:
        body["create_table"] = False
        for name in ("before_sql", "after_sql"):
            body.pop(name, None)
    if chosen["endpoint"]:
        body["target"] = None  # the endpoint's own
    return body
