"""The form of an endpoint, with the exact request for a template's first row. Browser only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import orjson
from flask import Blueprint, Response, g, render_template, request, url_for
from pydantic import Field

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Connection, Endpoint
from webapp.connections.services import connections
from webapp.connectors.http.request_template import RequestTemplate
from webapp.connectors.rest.connector import RestSettings
from webapp.endpoints import services
from webapp.endpoints.services import REQUEST_KEYS, SENDING_KEYS
from webapp.endpoints.views.endpoints import EndpointChange, EndpointIn
from webapp.errors import ApiError
from webapp.row_templates.models import Template
from webapp.row_templates.services import templates
from webapp.web import snippets
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.forms.settings import SettingsForm, error_summary
from webapp.web.inputs import Query, form_values, parse
from webapp.web.page_shell import brief
from webapp.web.responses import render_block, see_other
from webapp.web.routing import route

bp = Blueprint("endpoint_pages", __name__)
PAGE: Final = "endpoints/form.html"
EDIT_PATH: Final = "/endpoints/<endpoint_id>/edit"
_PLAIN_INPUTS: Final = ("name", "url", "path", "connection_id", "environment", "template_id")
_REST: Final = "rest"


BASIC_FORM: Final = FormSpec(
    EndpointIn,
    {
        "name": Control("Name", placeholder="Customers", autocomplete="off"),
        "connection_id": Control("Address"),
        "path": Control(
            "Path", type="text", placeholder="/customers/{{id}}", attributes={"spellcheck": "false"}
        ),
        "url": Control(
            "URL",
            hint="{{field}} is replaced with the row's value. Not allowed in the host name.",
            type="text",
            placeholder="https://api.example.org/customers/{{id}}",
            attributes={"inputmode": "url", "spellcheck": "false"},
        ),
        "environment": Control(
            "Environment",
            choices=[
                ("dev", "Development"),
                ("test", "Test"),
                ("prod", "Production (pushes need confirmation)"),
            ],
        ),
    },
)
"""The inputs of an endpoint that are not REST settings."""


class NewQuery(Query):
    """Initial values of the form."""

    connection_id: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""


class EndpointForm:
    """The form of an endpoint: `texts` are its plain inputs; the others come from the model of REST settings."""

    def __init__(self, values: Mapping[str, Any], formdata: Any = None) -> None:
        settings = {name: value for name, value in values.items() if value is not None}
        source = formdata if formdata is not None else settings
        self.texts = {name: str(source.get(name) or "") for name in _PLAIN_INPUTS}
        names = [name for name in REQUEST_KEYS if name != "path"]
        self.request = SettingsForm(RequestTemplate, settings, formdata=formdata, name="", names=names)
        self.auth = SettingsForm(RestSettings, settings, formdata=formdata, name="", names=["auth"])
        self.sending = SettingsForm(RestSettings, settings, formdata=formdata, name="", names=SENDING_KEYS)

    def body(self) -> dict[str, Any]:
        """Return the input as the body of `PATCH /endpoints/{id}`. Empty inputs are removed."""
        texts, found = self.texts, {**self.request.values(), **self.sending.values()}
        result: dict[str, Any] = {
            name: found.get(name) for name in (*REQUEST_KEYS, *SENDING_KEYS) if name != "path"
        }
        result["name"] = texts["name"].strip()
        if texts["connection_id"]:
            return {**result, "connection_id": texts["connection_id"], "path": texts["path"].strip()}
        auth = self.auth.values().get("auth", {"type": "none"})
        return {
            **result,
            "url": texts["url"].strip(),
            "auth": auth,
            "environment": texts["environment"] or "dev",
        }

    def placed(self, faults: list[dict[str, Any]]) -> dict[str, str]:
        """Return the errors by the name of their input."""
        own = {
            fault["path"]: str(fault["message"])
            if self.texts[fault["path"]].strip()
            else "This field is required."
            for fault in faults
            if fault["path"] in _PLAIN_INPUTS
        }
        return {
            **own,
            **self.request.error_messages(faults),
            **self.auth.error_messages(faults),
            **self.sending.error_messages(faults),
        }


def _page(
    actor: Actor,
    form: EndpointForm,
    endpoint: Endpoint | None,
    error: ApiError | None = None,
    block: str = "",
) -> Response:
    """Render the form, or only its block with the request."""
    errors = list(error.details.get("fields", ())) if error else []
    faults = form.placed(errors)
    context = {
        "form": form,
        "texts": form.texts,
        "endpoint": services.as_json(endpoint) if endpoint else None,
        "faults": faults,
        "error": error,
        "others": [item for item in errors if not form.placed([item])],
        **_example_requests(actor, form),
    }
    if block:
        return Response(render_block(PAGE, block, **context))
    listed = connections.listing(actor, limit=limits.PAGE_LIMIT_MAX, type=_REST).items
    chosen = form.texts["connection_id"]
    if chosen and chosen not in {connection.id for connection in listed}:
        listed = [*listed, connections.get(actor, chosen)]
    data = [connections.as_json(connection) for connection in listed]
    choices = [(item["id"], f"On {item['name']} ({brief(item['settings']['base_url'])})") for item in data]
    plain = BASIC_FORM.render(form.texts, choices={"connection_id": [("", "Its own"), *choices]})
    plain["connection_id"].render_kw |= {"hx-post": request.path, "hx-vals": '{"do": "draw"}'}
    others = [f"{other['message']} {other.get('hint') or ''}".strip() for other in context["others"]]
    context |= {
        "connections": data,
        "templates": list(templates.listing(actor, limit=limits.PAGE_LIMIT_MAX).items),
        "plain": plain,
        "places": error_summary((plain, form.request, form.auth, form.sending), faults),
        "messages": others if faults or others or error is None else [error.message],
    }
    return Response(render_template(PAGE, **context), error.status if error else 200, mimetype="text/html")


def _example_requests(actor: Actor, form: EndpointForm) -> dict[str, Any]:
    """Return the request for the first row of the selected template, and its fields."""
    template_id = form.texts["template_id"]
    if not template_id:
        return {"requests": [], "fields": [], "trouble": None}
    try:
        template = templates.show(tenancy.get(actor, Template, template_id, "read"))
        fields = [field["name"] for field in template["fields"] if not field.get("hidden")]
    except ApiError as error:
        return {"requests": [], "fields": [], "trouble": error}
    try:
        requests = services.preview_requests(
            actor, parse(EndpointIn, _body_with_name(form), strict=False).values(), template_id
        )
    except ApiError as error:
        return {"requests": [], "fields": fields, "trouble": error}
    return {"requests": requests, "fields": fields, "trouble": None}


def _parsed_form(
    actor: Actor, form: EndpointForm, model: type[EndpointChange], body: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the input of the form. Error: validation_error, with all errors together."""
    try:
        return parse(model, body, strict=False).values()
    except ApiError as error:
        invalid_names = {field["path"].partition(".")[0] for field in error.details.get("fields", ())}
        valid = {name: value for name, value in _body_with_name(form).items() if name not in invalid_names}
        try:
            parsed = parse(EndpointChange, valid, strict=False).values()
            services.prepare(actor, services.replace_masks(parsed))
        except ApiError as other:
            faults = other.details.get("fields", ())
            error.details["fields"] += [
                fault for fault in faults if fault["path"].partition(".")[0] not in invalid_names
            ]
        raise error from None


def _body_with_name(form: EndpointForm) -> dict[str, Any]:
    """Return the input of the form. A name is not required to see the request."""
    body = form.body()
    return {**body, "name": body["name"] or "example"}


def _first_template(actor: Actor) -> str:
    found = templates.listing(actor, limit=1).items
    return str(found[0]["id"]) if found else ""


@route(bp, "/endpoints/new", scope="write", query=NewQuery, allows_api_keys=False, hidden=True, reads=False)
def new(actor: Actor, query: NewQuery) -> Response:
    """Show the form of a new endpoint."""
    values = {"connection_id": query.connection_id, "template_id": _first_template(actor)}
    return _page(actor, EndpointForm(values), None)


@route(bp, "/endpoints/new", ["POST"], scope="write", allows_api_keys=False, hidden=True)
def create(actor: Actor) -> Response:
    """Create an endpoint from its form, or show the form with errors."""
    form_values(request.form)  # rejects requests that are not from a form
    form = EndpointForm({}, request.form)
    if request.form.get("do") == "draw":
        return _page(actor, form, None)
    try:
        endpoint = services.create(actor, _parsed_form(actor, form, EndpointIn, form.body()))
    except ApiError as error:
        return _page(actor, form, None, error)
    return see_other(url_for("endpoints.show", endpoint_id=endpoint.id))


@route(bp, EDIT_PATH, scope="write", allows_api_keys=False, hidden=True, reads=False)
def edit(actor: Actor, endpoint_id: str) -> Response:
    """Show the form of an endpoint."""
    found = connections.get_endpoint(actor, endpoint_id, "write")
    return _page(
        actor, EndpointForm({**services.as_json(found), "template_id": _first_template(actor)}), found
    )


@route(bp, EDIT_PATH, ["POST"], scope="write", allows_api_keys=False, hidden=True)
def change(actor: Actor, endpoint_id: str) -> Response:
    """Change an endpoint from its form, or show the form with errors."""
    found = connections.get_endpoint(actor, endpoint_id, "write", lock=True)
    form_values(request.form)
    form = EndpointForm(services.as_json(found), request.form)
    if request.form.get("do") == "draw":
        return _page(actor, form, found)
    body = form.body()
    if body.get("connection_id"):
        del body["connection_id"]  # the connection cannot be changed
    try:
        services.change(actor, found, _parsed_form(actor, form, EndpointChange, body))
    except ApiError as error:
        return _page(actor, form, found, error)
    return see_other(url_for("endpoints.show", endpoint_id=endpoint_id))


@route(bp, "/endpoints/example", ["POST"], scope="write", allows_api_keys=False, hidden=True, reads=False)
def example(actor: Actor) -> Response:
    """Show the request for a template's first row with the current input. Sends nothing."""
    form_values(request.form)
    return _page(actor, EndpointForm({}, request.form), None, block="example")


def code_samples(endpoint: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return code examples for the API."""
    base = snippets.origin()
    reference = {"endpoint_id": endpoint["id"]}
    push, rows = {**reference, "count": 100}, {**reference, "rows": [{"id": 1}]}
    return [
        ("Push a template to the endpoint", snippets.curl("POST", f"{base}/templates/tpl_…/push", push)),
        ("Send your own rows", snippets.curl("POST", f"{base}/export/rest", rows)),
        ("Get the endpoint", snippets.curl("GET", f"{base}/endpoints/{endpoint['id']}")),
    ]


def display_address(endpoint: Mapping[str, Any]) -> str:
    """Return the URL of an endpoint, or its path on a connection."""
    return str(endpoint["url"] or endpoint["path"] or "/")


def connection_of(endpoint: Mapping[str, Any]) -> Connection | None:
    """Return the connection of an endpoint; None if it has its own URL."""
    return connections.get(g.actor, endpoint["connection_id"]) if endpoint["connection_id"] else None


def pretty(value: Any) -> str:
    """Return indented JSON."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


@bp.app_context_processor
def helpers() -> dict[str, Any]:
    """Return the functions that the pages of endpoints use."""
    if getattr(g, "face", "") != "person":
        return {}
    return {
        "endpoint_code": code_samples,
        "endpoint_address": display_address,
        "endpoint_connection": connection_of,
        "as_pretty": pretty,
    }
