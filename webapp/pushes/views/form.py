"""The form of a push: convert the user's input to an API request, and show the mapping of the planned push.

Only the mappings shown in the form are sent: a field without a column is left out, even if a column would match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from wtforms import SelectChoice  # type: ignore[attr-defined]  # new in WTForms 3.3; the stubs are of 3.2

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Connection, Endpoint
from webapp.connections.services import access, connections
from webapp.connectors import KINDS
from webapp.connectors.http.channel import HttpConnector
from webapp.connectors.http.request_template import RequestTemplate
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.pushes.schemas import PushInput
from webapp.pushes.services.targets import PUSH_SETTINGS
from webapp.web.forms.page_form import Choices, Control, FormSpec, PageForm
from webapp.web.forms.settings import SettingsForm

_ENDPOINT: Final = "end_"
_MAX_FOUND: Final = 20  # chosen: what a list of search results shows of one kind
_TARGET_NOUNS: Final = {  # noun in the singular and plural, and the heading of the target's columns
    "mongodb": ("Collection", "collections", "Key of"),
    "rest": ("Path", "paths", "Name in the request to"),
    "odata": ("Entity set", "entity sets", "Property of"),
    "openapi": ("Operation", "operations", "Property of"),
}
_HOW: Final = "how"
_REQUEST: Final = "request_template"
_REQUEST_FIELDS: Final = (
    "method",
    "headers",
    "header_encoding",
    "query_params",
    "body",
    "encoding",
)  # its path is the push's target

SEND: Final = FormSpec(
    PushInput,
    {
        "connection_id": Control("Connection"),
        "target": Control("Table"),
        "create_table": Control("Create missing tables"),
        "mode": Control("Mode"),
        "count": Control("Rows", placeholder="template default"),
        "seed": Control(
            "Seed",
            placeholder="new seed",
            hint="The same seed produces the same rows, so the dry run shows the rows that will be sent.",
        ),
        "locale": Control("Locale", placeholder="template default", attributes={"list": "locales"}),
        "on_error": Control(
            "If a row fails",
            choices=(
                ("continue", "Continue with the other rows"),
                ("stop", "Stop"),
                ("stop_when_all_fail", "Stop if the first rows all fail"),
            ),
        ),
        "canary": Control("Canary", type="switch", hint="Send 10 rows first; continue only if all succeed."),
        "before_sql": Control(
            "SQL before the rows", type="textarea", attributes={"rows": 2, "class": "code"}
        ),
        "after_sql": Control("SQL after the rows", type="textarea", attributes={"rows": 2, "class": "code"}),
        "confirm": Control("Confirm", attributes={"autocomplete": "off"}),
    },
)
_ERROR_CONTROLS: Final = {"row_limit_exceeded": "count", "read_only_connection": "connection_id"}
"""The control of an error that names no key of the request, by its code."""


def is_endpoint(destination_id: str) -> bool:
    """Return whether the id of a choice is an endpoint's."""
    return destination_id.startswith(_ENDPOINT)


def destination_key(destination_id: str) -> dict[str, Any]:
    """Return a choice as keys of the body of `POST /templates/{id}/push`."""
    return (
        {"endpoint_id": destination_id}
        if is_endpoint(destination_id)
        else {"connection_id": destination_id or None}
    )


def destinations(actor: Actor, chosen: str) -> list[dict[str, Any]]:
    """Return the connections that can receive rows, then endpoints, including the chosen one. Error: not_found."""
    page = connections.listing(actor, limit=limits.PAGE_LIMIT_MAX)
    found = {
        item.id: item
        for item in page.items
        if item.type in KINDS and KINDS[item.type].can.modes and (item.id == chosen or not _has_failed(item))
    }
    endpoints = {
        item.id: item for item in connections.list_endpoints(actor, limit=limits.PAGE_LIMIT_MAX).items
    }
    if is_endpoint(chosen) and chosen not in endpoints:
        endpoints[chosen] = connections.get_endpoint(actor, chosen)
    elif chosen and not is_endpoint(chosen) and chosen not in found:
        found[chosen] = connections.get(actor, chosen)
    return [*map(_connection_choice, found.values()), *map(_endpoint_choice, endpoints.values())]


def search(actor: Actor, text: str) -> tuple[list[dict[str, Any]], list[tuple[dict[str, Any], str]], int]:
    """Find where rows can be pushed: writable connections and endpoints by name, and tables by name. Connections whose
    last test failed are left out.

    Return the connections and endpoints, the tables as (connection, table), and how many connections and endpoints
    there are beyond those returned. Tables are those that were last read from each connection; nothing is connected to.
    """
    page = connections.listing(actor, limit=limits.PAGE_LIMIT_MAX, q=text or None)
    writable = [item for item in page.items if _is_writable(item)]
    endpoint_page = connections.list_endpoints(actor, limit=limits.PAGE_LIMIT_MAX, q=text or None)
    endpoints = [item for item in map(_endpoint_choice, endpoint_page.items) if not item["read_only"]]
    found = [*map(_connection_choice, writable), *endpoints]
    more = (
        page.total
        - len(page.items)
        + endpoint_page.total
        - len(endpoint_page.items)
        + max(0, len(found) - _MAX_FOUND)
    )
    tables: list[tuple[dict[str, Any], str]] = []
    query = text.strip().casefold()
    if query:
        for connection in connections.iter_with_metadata(actor):
            if not _is_writable(connection):
                continue
            metadata = access.cached_metadata_json(connection) or {"entities": []}
            names = (entity["name"] for entity in metadata["entities"] if entity.get("kind") != "view")
            choice = _connection_choice(connection)
            tables += [(choice, name) for name in names if query in name.casefold()]
            if len(tables) >= _MAX_FOUND:
                break
    return found[:_MAX_FOUND], tables[:_MAX_FOUND], more


def _is_writable(connection: Connection) -> bool:
    is_supported = connection.type in KINDS and bool(KINDS[connection.type].can.modes)
    return is_supported and not connection.read_only and not _has_failed(connection)


def _has_failed(connection: Connection) -> bool:
    return bool(connection.verification and connection.verification["status"] == "failed")


def writable_destination(actor: Actor, connection_id: str | None) -> dict[str, Any] | None:
    """Return a connection to push to, if the actor can use it; None otherwise."""
    if not connection_id:
        return None
    statement = tenancy.listing(actor, Connection).where(Connection.id == connection_id)
    found = db.session.scalar(statement)
    return _connection_choice(found) if found is not None and _is_writable(found) else None


def _connection_choice(connection: Connection) -> dict[str, Any]:
    kind = KINDS[connection.type]
    singular, plural, heading = _TARGET_NOUNS.get(connection.type, ("Table", "tables", "Column of"))
    return {
        "id": connection.id,
        "name": connection.name,
        "type": connection.type,
        "environment": connection.environment,
        "read_only": connection.read_only,
        "endpoint": False,
        "http": kind.can.by_row,
        "lists": not issubclass(kind, HttpConnector) or kind.has_entities,
        "creates": kind.can.create_table,
        "modes": kind.can.modes,
        "word": singular,
        "several": plural,
        "head": heading,
    }


def _endpoint_choice(endpoint: Endpoint) -> dict[str, Any]:
    base = _connection_choice(db.session.get_one(Connection, endpoint.connection_id))
    return {**base, "id": endpoint.id, "name": endpoint.name, "type": "endpoint", "endpoint": True}


@dataclass(frozen=True, slots=True)
class SendingSettings:
    """How rows are sent, as in the form: settings of this push, and the request for one row."""

    how: SettingsForm
    request: SettingsForm | None
    """The form, filled with the effective values, so that it shows what will be sent; None if the target does not need
    it."""
    base_request: Mapping[str, Any]
    """The request that is used if the form changes nothing."""

    @property
    def parts(self) -> list[Any]:
        """Controls and groups to draw."""
        return [*self.how.parts, *([self.request] if self.request else [])]

    def values(self) -> dict[str, Any]:
        """Return the settings as keys of the body of `POST /templates/{id}/push`."""
        found = self.how.values()
        if self.request is not None and (parts := _request_parts(self.request.values())) != _request_parts(
            self.base_request
        ):
            path = self.base_request.get("path")
            found["request_template"] = {**({"path": path} if path else {}), **parts}
        return found

    def error_messages(self, faults: list[dict[str, Any]]) -> dict[str, str]:
        """Return the messages of faults by their controls."""
        found = self.how.error_messages([{**fault, "path": f"{_HOW}.{fault['path']}"} for fault in faults])
        if self.request is not None:
            found |= self.request.error_messages(faults)
        return found


def _request_parts(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a request that the form shows, including defaults."""
    parts = {name: request.get(name) for name in _REQUEST_FIELDS}
    defaults = {
        "method": "POST",
        "headers": {},
        "header_encoding": "none",
        "query_params": {},
        "encoding": "json",
    }
    return {**parts, **{name: parts[name] or value for name, value in defaults.items()}}


def sending_settings(chosen: Mapping[str, Any] | None, formdata: Any) -> SendingSettings | None:
    """Return how rows are sent to the target, for changing it for one push; the default is the setting of the
    connection or endpoint. None for databases."""
    if chosen is None or not chosen["http"]:
        return None
    endpoint = db.session.get_one(Endpoint, chosen["id"]) if chosen["endpoint"] else None
    connection = db.session.get_one(Connection, endpoint.connection_id if endpoint else chosen["id"])
    model = KINDS[connection.type].Settings
    names = [name for name in PUSH_SETTINGS if name in model.model_fields and name != _REQUEST]
    settings = {**connection.settings, **(endpoint.settings if endpoint else {})}
    normal: dict[str, Any] = {name: value for name, value in settings.items() if name in names}
    how = SettingsForm(model, formdata=formdata, name=_HOW, names=names, defaults=normal)
    stored = settings.get(_REQUEST) or {}
    if connection.type != "rest":  # an entity set or an operation defines its own request
        return SendingSettings(how, None, stored)
    # Values of the form for another target do not apply to this request.
    is_same_target = formdata is not None and formdata.get("connection_id") == formdata.get("was")
    submitted = formdata if is_same_target and f"{_REQUEST}.method" in formdata else None
    request = SettingsForm(RequestTemplate, stored, formdata=submitted, name=_REQUEST, names=_REQUEST_FIELDS)
    return SendingSettings(how, request, stored)


def request_body(
    body: dict[str, Any], chosen: Mapping[str, Any] | None, how: SendingSettings | None
) -> dict[str, Any]:
    """Return the body of the form's request, with the settings for sending and without those that the target lacks."""
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


FORMULA: Final = " ="
"""The choice of a formula instead of a field; no field's name begins with a space."""
MATCH_LABELS: Final = {
    "given": "chosen",
    "computed": "formula",
    "name": "name",
    "alike": "similar name",
    "synonym": "same meaning",
    "label": "label",
    "type": "only match for its type",
    "parent": "key of the parent row",
}
SKIP_LABELS: Final = {
    "identity": "generated by the target",
    "computed": "computed by the target",
    "default": "column default",
    "nullable": "null",
    "update": "unchanged",
    "left_out": "left out",
}
_MAX_OPTIONS: Final = (
    900  # chosen: above that the page would pass 50 kB, and inputs with one list take their place
)


def parse_tables(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The form's tables: `{name, target, was, out, all, c: [{column, field, formula, was, key}]}`; columns of
    another target than the present one are dropped."""
    found = values.get("t")
    tables = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    if tables and "target" in values:  # the form of a template has one
        tables[0] = {**tables[0], "target": _text(values, "target")}
    moved = values.get("connection_id") != values.get("was")
    return [
        {
            "name": _text(table, "name"),
            "target": "" if moved else _text(table, "target"),
            "out": "out" in table,
            "all": _parse_names(_text(table, "all")),
            "c": [] if moved or _text(table, "target") != _text(table, "was") else _columns(table.get("c")),
        }
        for table in tables
    ]


def _columns(found: Any) -> list[dict[str, str]]:
    rows = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    return [{key: _text(row, key) for key in ("column", "field", "formula", "was", "key")} for row in rows]


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key, "")
    return value if isinstance(value, str) else ""


def _parse_names(text: str) -> list[str]:
    try:
        found = orjson.loads(text) if text else []
    except orjson.JSONDecodeError:
        return []
    return [str(item) for item in found] if isinstance(found, list) else []


# --- As a request -----------------------------------------------------------------------------------------------


def template_body(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form as the body of `POST /templates/{id}/push`."""
    body = _common(values)
    for item in parse_tables(values)[:1]:
        body |= {"target": item["target"] or None, **_parse_mapping(item, body["mode"])}
    for key in ("count", "seed", "locale"):
        if text := _text(values, key).strip():
            body[key] = text
    return body


def dataset_body(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form as the body of `POST /datasets/{id}/push`."""
    body = _common(values)
    body |= {"targets": {}, "mappings": {}, "computed": {}, "key_columns": {}}
    for item in parse_tables(values):
        if item["out"] or item["target"]:
            body["targets"][item["name"]] = None if item["out"] else item["target"]
        mapping = _parse_mapping(item, body["mode"])
        for key, place in (("mapping", "mappings"), ("computed", "computed"), ("key_columns", "key_columns")):
            if mapping.get(key):
                body[place][item["name"]] = mapping[key]
    if text := _text(values, "seed").strip():
        body["seed"] = text
    return body


def _common(values: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {
        **destination_key(_text(values, "connection_id")),
        "mode": _text(values, "mode") or "insert",
        "on_error": _text(values, "on_error") or "continue",
        "create_table": "create_table" in values,
        "confirm": _text(values, "confirm") or None,
    }
    if "canary" in values:
        body["canary"] = True
    for key in ("before_sql", "after_sql"):
        if text := _text(values, key).strip():
            body[key] = [text]
    return body


def _parse_mapping(table: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """Parse the mapping of one table. A field that is selected for a second column is sent there as a formula."""
    if not table["c"]:
        return {}
    mapping: dict[str, str | None] = {}
    computed: dict[str, str] = {}
    for row in table["c"]:
        if row["field"] == FORMULA:
            computed[row["column"]] = row["formula"].strip() or "null"
        elif row["field"] in mapping:
            computed[row["column"]] = row["field"]
        elif row["field"]:
            mapping[row["field"]] = row["column"]
    mapping |= {name: None for name in table["all"] if name not in mapping}
    keys = [row["column"] for row in table["c"] if row["key"]] if mode != "insert" else []
    return {"mapping": mapping, "computed": computed, "key_columns": keys}


# --- Rendering --------------------------------------------------------------------------------------------------


def page_tables(
    plan: Mapping[str, Any] | None, values: Mapping[str, Any], names: Sequence[str]
) -> list[dict[str, Any]]:
    """The tables of the page, in the order of sending, those that are left out or have no plan at the end:
    `{name, target, out, plan, kept, all, cells, unused, listed}`; `kept` are rows of the form that have no plan now."""
    submitted = {item["name"]: item for item in parse_tables(values)}
    planned = {item["name"]: item for item in (plan or {}).get("tables", ())}
    tables = []
    for name in [*planned, *(item for item in names if item not in planned)]:
        form_table, table = (
            submitted.get(name, {"target": "", "out": False, "c": [], "all": []}),
            planned.get(name),
        )
        tables.append(
            {
                "name": name,
                "target": table["target"] if table else form_table["target"],
                "out": form_table["out"],
                "plan": table,
                "kept": [] if table else form_table["c"],
                "all": form_table["all"],
                "cells": [_displayed_cell(column, form_table["c"]) for column in table["columns"]]
                if table
                else [],
                "unused": _unused_fields(table) if table else [],
            }
        )
    options = sum(len(item["cells"]) * len(item["plan"]["fields"]) for item in tables if item["plan"])
    return [{**item, "listed": options > _MAX_OPTIONS} for item in tables]


def _unused_fields(table: Mapping[str, Any]) -> list[str]:
    sent = {column["field"] or column["formula"] for column in table["columns"]}
    parts = {str(name).partition(".")[0] for name in sent if name}
    return [field["name"] for field in table["fields"] if field["name"].partition(".")[0] not in parts]


def _displayed_cell(cell: Mapping[str, Any], rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return a planned column, with how its field was first found."""
    row = next((item for item in rows if item["column"] == cell["column"]), None)
    how, _, field = (row["was"] if row else "").partition("|")
    found = how if how and field == cell["field"] else cell["how"] or ""
    names_a_field = cell["formula"] and not (row and row["field"] == FORMULA)
    return {
        **cell,
        "field": cell["formula"] if names_a_field else cell["field"],
        "formula": None if names_a_field else cell["formula"],
        "how": found,
        "says": MATCH_LABELS.get(found, ""),
        "nothing": SKIP_LABELS.get(cell["skipped"] or "", "choose a field"),
    }


@dataclass(frozen=True, slots=True)
class PlacedFaults:
    """The errors of a push by their position on the page. `of_how` are errors of `SendingSettings` by the name of the
    control, `of_cells` errors of formulas by table and column, `rest` those that belong to no control."""

    form: PageForm
    of_how: dict[str, str]
    of_cells: dict[tuple[str, str], str]
    other: list[dict[str, Any]]


def draw_with_faults(
    draw: Callable[[ApiError | None], PageForm],
    how: SendingSettings | None,
    tables: Sequence[Mapping[str, Any]],
    error: ApiError | None,
    plan: Mapping[str, Any] | None,
) -> PlacedFaults:
    """Draw the form with each error at the control that it belongs to."""
    form = draw(None)
    own, rest, cells = [], [], {}
    of_how: dict[str, str] = {}
    if error is None:
        found = [fault for table in (plan or {}).get("tables", ()) for fault in table["faults"]]
    else:
        path = error.path or _ERROR_CONTROLS.get(error.code, "")
        single = {
            "path": path,
            "code": error.code,
            "message": error.message,
            "hint": error.details.get("hint"),
        }
        reported = error.details.get("fields") or [single]
        found = [
            {**item, "path": "connection_id" if item["path"] == "endpoint_id" else item["path"]}
            for item in reported
        ]
    for item in found:
        cell = _formula_cell(item["path"], tables)
        if form.field_at_path(item["path"]) is not None:
            own.append(Fault(item["path"], item["code"], item["message"], item.get("hint")))
        elif how is not None and (placed := how.error_messages([item])):
            of_how |= {name: text for name, text in placed.items() if name not in of_how}
        elif cell is not None:
            cells[cell] = item["message"]
        else:
            rest.append(item)
    return PlacedFaults(draw(validation_error(own)) if own else form, of_how, cells, rest)


def _formula_cell(path: str, tables: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Return the table and column whose formula the path of a fault names, if they are on the page."""
    for table in tables:
        for cell in table["cells"]:
            named = (f"computed.{cell['column']}", f"computed.{table['name']}.{cell['column']}")
            if cell["formula"] and path.startswith(named):
                return table["name"], cell["column"]
    return None


def draw_controls(
    values: Mapping[str, Any],
    connections: Sequence[Mapping[str, Any]],
    chosen: Mapping[str, Any] | None,
    table: Mapping[str, Any] | None,
    entities: Sequence[str],
    plan: Mapping[str, Any] | None,
    *,
    error: ApiError | None,
    focuses: bool,
) -> PageForm:
    """Return the controls of a push apart from its mapping. `table` is the only table, None for a dataset; `entities`
    are the names to select from, empty if the user types them. `focuses`: the first invalid control gets the focus."""
    endpoints = [connection for connection in connections if connection["endpoint"]]
    choices: dict[str, Choices] = {
        "connection_id": [
            SelectChoice("", "choose one"),
            *(_choice(connection) for connection in connections if not connection["endpoint"]),
            *(_choice(endpoint, "Endpoints") for endpoint in endpoints),
        ],
        "mode": [(mode, mode) for mode in (plan or {}).get("modes", ())],
    }
    without = [name for name in ("count", "locale", "target") if table is None]
    data = {**values, "target": table["target"] if table else "", "confirm": values.get("confirm")}
    if table is not None and entities:
        planned = table["plan"] and not table["plan"]["create"]
        first = [("", "choose one" if planned else "same name as the template")]
        if table["target"] and table["target"] not in entities:
            what = "new" if chosen and chosen["creates"] else "does not exist"
            first.append((table["target"], f"{table['target']} ({what})"))
        choices["target"] = [*first, *((name, name) for name in entities)]
    form = SEND.render(data, error=error, choices=choices, without=without)
    for field in form:
        field.focused = field.focused and focuses
    if endpoints:
        form["connection_id"].label.text = "Connection or endpoint"
    if chosen is not None:
        form["create_table"].label.text = f"Create missing {chosen['several']}"
        if table is not None:
            form["target"].label.text = chosen["word"] if chosen["lists"] else "Path"
    if plan and plan["needs_confirmation"]:
        form["confirm"].label.text = f'Type "{plan["needs_confirmation"]}" to push to production'
    return form


def _choice(destination: Mapping[str, Any], group: str | None = None) -> SelectChoice:
    details = [
        destination["type"],
        *([destination["environment"]] if destination["environment"] != "dev" else []),
    ]
    details += ["read-only"] if destination["read_only"] else []
    disabled = {"disabled": True} if destination["read_only"] else {}
    return SelectChoice(destination["id"], f"{destination['name']} ({', '.join(details)})", disabled, group)
