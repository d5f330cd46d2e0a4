"""Routes of secrets: create, change, list, delete. Values are never returned."""

from __future__ import annotations

from typing import Annotated, Any, Final

from flask import Blueprint, Response, g, request, url_for
from pydantic import Field

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.services import secrets
from webapp.errors import ApiError
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.inputs import Input, ListQuery
from webapp.web.responses import ListOf, Output, reply
from webapp.web.routing import route

bp = Blueprint("secrets", __name__)
PAGE = "secrets.html"


_Value = Annotated[str, Field(min_length=1, max_length=limits.MAX_SECRET_CHARS)]
_Host = Annotated[str, Field(min_length=1, max_length=limits.HOST_CHARS + 10)]


class SecretIn(Input):
    """A secret's value, and who may use it. Keys that are left out keep their values; a new secret needs a value.

    `allowed_hosts`: the hosts that connections may send it to, such as `api.example.com`, `*.example.com` or
    `10.0.0.5:8443`; null for any host. `project_id`: the project that may use it; null for every project.
    """

    value: _Value | None = None
    allowed_hosts: Annotated[list[_Host], Field(max_length=limits.MAX_ALLOWED_HOSTS)] | None = None
    project_id: str | None = None


class SecretForm(Input):
    """A secret as its form sends it: hosts one per line or separated by commas."""

    name: str
    value: str = ""
    allowed_hosts: str = ""
    any_host: bool = False
    project_id: str = ""


SECRET: Final = FormSpec(
    SecretForm,
    {
        "name": Control(
            "Name",
            placeholder="db_password",
            autocomplete="off",
            attributes={"maxlength": 100, "pattern": r"[A-Za-z_][A-Za-z0-9_.\-]*", "spellcheck": "false"},
        ),
        "value": Control("Value", type="password", autocomplete="new-password"),
        "allowed_hosts": Control(
            "Allowed hosts",
            hint="The hosts that connections may send it to, one per line, for example api.example.com or "
            "*.example.com. If you leave this empty, a host is added when an admin saves a connection that uses the "
            "secret.",
            type="textarea",
            placeholder="api.example.com",
            attributes={"rows": 3, "spellcheck": "false"},
        ),
        "any_host": Control(
            "Any host", hint="Every editor of the workspace can then send the secret anywhere."
        ),
        "project_id": Control(
            "Project",
            hint="Users who are only members of teams can use the secrets of a project, but not those of all projects.",
        ),
    },
)


class SecretOut(Output):
    """A secret, without its value. `allowed_hosts`: the hosts that connections may send it to; null for any host.
    `project_id`: the only project that may use it; null for every project."""

    id: str
    name: str
    allowed_hosts: list[str] | None
    project_id: str | None
    created_by: str | None
    created_at: str
    updated_at: str


def _page(
    actor: Actor,
    data: dict[str, Any],
    query: ListQuery,
    edited: dict[str, Any] | None = None,
    error: ApiError | None = None,
) -> Response:
    """Render the page of secrets, with the form of a new one or of the `edited` one."""
    projects = {project.id: project.name for project in tenancy.accessible_projects(actor)}
    hosts = (edited or {}).get("allowed_hosts", [])
    values = {
        **(edited or {}),
        "value": None,
        "allowed_hosts": "\n".join(hosts or []),
        "any_host": hosts is None,
        "project_id": (edited or {}).get("project_id") or "",
    }
    form = SECRET.render(
        values,
        sent=request.form if error else None,
        error=error,
        choices={"project_id": [("", "All projects"), *projects.items()]},
    )
    return reply(data, template=PAGE, projects=projects, query=query, edited=edited, form=form)


def _page_with_errors(actor: Actor, error: ApiError) -> Response:
    data = secrets.listing(actor).as_dict(secrets.as_json)
    return _page(actor, data, ListQuery(), error=error)


@route(bp, "/secrets", scope="secrets", query=ListQuery, returns=ListOf(SecretOut))
def index(actor: Actor, query: ListQuery) -> Response:
    """List the workspace's secrets, newest first; `q` searches names."""
    data = secrets.listing(actor, **query.model_dump()).as_dict(secrets.as_json)
    if g.face != "person":
        return reply(data)
    name = request.args.get("edit", "")[: limits.MAX_NAME_CHARS]  # which secret the form shows
    return _page(actor, data, query, secrets.find_as_json(actor, name) if name else None)


@route(
    bp,
    "/secrets/<name>",
    ["PUT"],
    scope="self",  # a run may set the secrets that its scenario names; for others the service requires `secrets`
    body=SecretIn,
    returns=SecretOut,
    other_responses={201: SecretOut},
    errors=("unavailable",),
)
def put(actor: Actor, name: str, body: SecretIn) -> Response:
    """Create a secret (201), or change the value, hosts or project of an existing one.

    Connections use it immediately. A new secret without `allowed_hosts` cannot be sent anywhere until hosts
    are set, or until a caller who may manage secrets saves a connection that uses it, which adds the
    connection's hosts.
    """
    changes = body.model_dump(include={"allowed_hosts", "project_id"} & body.model_fields_set)
    secret, is_new = secrets.put(actor, name, body.value, **changes)
    message = f"Secret {name} saved"
    return reply(
        secrets.as_json(secret),
        status=201 if is_new else 200,
        redirect_to=url_for("secrets.index"),
        flash_message=message,
    )


@route(
    bp,
    "/secrets",
    ["POST"],
    scope="secrets",
    body=SecretForm,
    allows_api_keys=False,
    hidden=True,
    on_fault=_page_with_errors,
)
def store(actor: Actor, body: SecretForm) -> Response:
    """Create or change a secret from its form."""
    hosts = None if body.any_host else body.allowed_hosts.replace(",", " ").split()
    secret, _ = secrets.put(
        actor, body.name.strip(), body.value or None, allowed_hosts=hosts, project_id=body.project_id or None
    )
    return reply(redirect_to=url_for("secrets.index"), flash_message=f"Secret {secret.name} saved")


@route(bp, "/secrets/<name>", ["DELETE"], scope="secrets", returns=SecretOut, errors=("in_use",))
def delete(actor: Actor, name: str) -> Response:
    """Delete a secret permanently, unless a connection or a scenario uses it."""
    secret = secrets.delete(actor, name)
    return reply(
        secrets.as_json(secret), redirect_to=url_for("secrets.index"), flash_message=f"Secret {name} deleted"
    )
