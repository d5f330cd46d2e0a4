"""Notifications of a user's own work (e-mail settings, notices in the browser), and webhooks with their deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from flask import Blueprint, Response, flash, g, request, url_for
from pydantic import Field
from wtforms import SelectChoice  # type: ignore[attr-defined]  # new in WTForms 3.3; the stubs are of 3.2

from webapp import limits
from webapp.access.actors import Actor
from webapp.accounts.views.session import NOTICES, NoticesForm, render_profile_with_errors
from webapp.errors import ApiError, Fault
from webapp.mail import services as mail
from webapp.net import urls
from webapp.notifications.services import notifications, webhooks
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.inputs import Input, ListQuery, Query, Timestamp
from webapp.web.responses import ListOf, Output, check_if_match, json_reply, reply
from webapp.web.routing import route

notices_bp = Blueprint("notices", __name__)


class EndedQuery(Query):
    """Since when."""

    since: Timestamp | None = None


@route(
    notices_bp,
    "/me/notices",
    ["POST"],
    scope="self",
    body=NoticesForm,
    hidden=True,
    allows_api_keys=False,
    on_fault=render_profile_with_errors(NOTICES),
)
def choose(actor: Actor, body: NoticesForm) -> Response:
    """Set when one gets mail about one's own work."""
    mail.save_preference(actor, mail.MailPreference(body.mail, body.minutes))
    return reply(redirect_to=url_for("session.me"), flash_message="E-mail settings saved")


@route(notices_bp, "/notices", scope="self", query=EndedQuery, hidden=True, allows_api_keys=False)
def ended(actor: Actor, query: EndedQuery) -> Response:
    """Return the user's longer jobs that have finished since a moment; browsers poll this."""
    return json_reply(notifications.recently_finished(actor, query.since))


bp = Blueprint("webhooks", __name__)
# --- Webhooks -----------------------------------------------------------------------------------------------

LIST: Final = "webhooks/list.html"
SHOW: Final = "webhooks/show.html"
ONE: Final = "/webhooks/<webhook_id>"
DELIVERY: Final = f"{ONE}/deliveries/<delivery_id>"
READ_ONLY: Final = frozenset(
    "id scope project_id team_id off_reason failures failing_since old_secret_until created_by created_at "
    "updated_at".split()
)

Url = Annotated[str, Field(min_length=1, max_length=limits.HTTP_URL_CHARS)]
Event = Literal[(*webhooks.WILDCARDS, *webhooks.EVENTS)]  # type: ignore[valid-type]  # for pydantic
Events = Annotated[list[Event], Field(min_length=1, max_length=len(webhooks.EVENTS) + 4)]
Description = Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)]


class WebhookInput(Input):
    """What a new webhook and a changed one have in common."""

    @classmethod
    def more_faults(cls, body: Mapping[str, Any]) -> list[Fault]:
        """Return the fault of the URL, for a response that already reports others."""
        url = body.get("url")
        problem = (
            urls.url_error(url) if isinstance(url, str) and 0 < len(url) <= limits.HTTP_URL_CHARS else ""
        )
        return [Fault("url", "wrong_form", problem)] if problem else []


class WebhookIn(WebhookInput):
    """A new webhook.

    `events`: names such as `push.failed`, all of a kind (`push.*`), or `*`. `scope` workspace: events of every project,
    for admins.
    """

    read_only = READ_ONLY - {"scope"}

    url: Url
    events: Events
    description: Description = ""
    scope: Literal["project", "workspace"] = "project"


class WebhookPatch(WebhookInput):
    """The properties of a webhook that can be changed. Turning it on again (`active`) resets its failures."""

    read_only = READ_ONLY

    url: Url | None = None
    events: Events | None = None
    description: Description | None = None
    active: bool | None = None


def _event_choices() -> list[SelectChoice]:
    """Return the choices of events, in one group for each kind of work."""
    choices = [SelectChoice("*", "Everything")]
    for event in webhooks.END_EVENTS:
        kind, _, end = event.partition(".")
        if all(choice.value != f"{kind}.*" for choice in choices):
            choices.append(SelectChoice(f"{kind}.*", f"{_WORK[kind]}: all", optgroup=_WORK[kind]))
        choices.append(SelectChoice(event, end.replace("_", " ").capitalize(), optgroup=_WORK[kind]))
    return [*choices, SelectChoice("limit.warning", "80 % of a limit is used", optgroup="Limits")]


_WORK: Final = {"export": "Exports", "push": "Pushes", "run": "Runs"}
_CONTROLS: Final = {
    "url": Control(
        "URL",
        hint="Rowsmith sends a signed POST request with JSON. It does not follow redirects.",
        type="text",
        placeholder="https://ci.example.org/hooks/rowsmith",
        required=True,
        autocomplete="off",
        attributes={"inputmode": "url", "spellcheck": "false"},
    ),
    "events": Control("Events", type="checkboxes", required=True, choices=_event_choices()),
    "description": Control("Description", placeholder="Nightly build", autocomplete="off"),
}
_INPUT_BY_CODE: Final = {"target_not_allowed": "url"}
NEW_FORM: Final = FormSpec(
    WebhookIn,
    {
        **_CONTROLS,
        "scope": Control(
            "Scope",
            type="radios",
            choices=[("project", "This project"), ("workspace", "All projects of the workspace")],
        ),
    },
    codes=_INPUT_BY_CODE,
)
CHANGE_FORM: Final = FormSpec(WebhookPatch, _CONTROLS, codes=_INPUT_BY_CODE)


class WebhookOut(Output):
    """A webhook, without its secret.

    `off_reason`: why the service turned it off, `gone` or `failing`. `failures`: number of consecutive failed attempts.
    `old_secret_until`: until then the previous secret also signs.
    """

    id: str
    scope: Literal["project", "workspace"]
    project_id: str | None
    team_id: str | None
    description: str
    url: str
    events: list[str]
    active: bool
    off_reason: str | None
    failures: int
    failing_since: str | None
    old_secret_until: str | None
    created_by: str | None
    created_at: str
    updated_at: str


class NewWebhookOut(WebhookOut):
    """The only response that contains the signing secret."""

    secret: str


class TryOut(Output):
    """One attempt at a delivery."""

    at: str
    response_status: int | None
    ms: int | None
    reason: str


class DeliveryOut(Output):
    """A delivery of an event to a webhook.

    `id` is its `webhook-id`. `response_head`: the beginning of the last response.
    """

    id: str
    webhook_id: str
    event: str
    object_id: str | None
    status: Literal["pending", "delivered", "failed"]
    attempts: int
    response_status: int | None
    response_head: str
    ms: int | None
    reason: str
    tries: list[TryOut]
    next_attempt_at: str | None
    created_at: str
    ended_at: str | None


class DeliveriesQuery(Query):
    """Which deliveries."""

    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=limits.PAGE_LIMIT_MAX)] = limits.PAGE_LIMIT_DEFAULT
    status: Literal["pending", "delivered", "failed"] | None = None


def _list_page(actor: Actor, query: ListQuery, error: ApiError | None = None, **more: Any) -> Response:
    data = webhooks.listing(actor, **query.model_dump()).as_dict(webhooks.as_json)
    if g.face == "program":
        return reply(data)
    form = NEW_FORM.render(
        {"scope": "project"},
        sent=request.form if error else None,
        error=error,
        without=() if actor.can("admin") else ("scope",),
    )
    return reply(data, template=LIST, query=query, most=limits.WEBHOOKS, form=form, **more)


@route(bp, "/webhooks", scope="write", query=ListQuery, returns=ListOf(WebhookOut))
def index(actor: Actor, query: ListQuery) -> Response:
    """List the webhooks of the project, newest first, and for admins those of the workspace.

    `q` searches descriptions.
    """
    return _list_page(actor, query)


@route(
    bp,
    "/webhooks",
    ["POST"],
    scope="write",
    body=WebhookIn,
    returns=NewWebhookOut,
    status=201,
    idempotent=True,
    errors=("target_not_allowed", "conflict", "unavailable"),
    on_fault=lambda actor, error: _list_page(actor, ListQuery(), error=error),
)
def create(actor: Actor, body: WebhookIn) -> Response:
    """Create a webhook. Only this response contains the signing secret."""
    hook, secret = webhooks.create(
        actor, body.url, body.events, description=body.description, scope=body.scope
    )
    data = webhooks.as_json(hook)
    if g.face == "program":
        address = url_for(".show", webhook_id=hook.id)
        return reply({**data, "secret": secret}, status=201, headers={"Location": address})
    # Only this page shows the secret: it is never in a redirect, a cookie or another request.
    return _list_page(actor, ListQuery(), made=data, secret=secret, status=201)


def _detail_page(
    actor: Actor,
    webhook_id: str,
    query: DeliveriesQuery | None = None,
    error: ApiError | None = None,
    **more: Any,
) -> Response:
    hook = webhooks.get(actor, webhook_id)
    data = webhooks.as_json(hook)
    if g.face == "program":
        return reply(data, send_etag=True)
    filters = (query or DeliveriesQuery()).model_dump()
    found = webhooks.deliveries(hook, **filters).as_dict(webhooks.delivery_json)
    is_form_error = error is not None and CHANGE_FORM.matches_submission(request.form)
    form = CHANGE_FORM.render(
        data,
        sent=request.form if is_form_error else None,
        error=error if is_form_error else None,
        id="settings-",
    )
    return reply(
        data,
        template=SHOW,
        deliveries=found,
        query=filters,
        form=form,
        error=None if is_form_error else error,
        **more,
    )


def _detail_page_with_error(actor: Actor, error: ApiError, webhook_id: str, **_: Any) -> Response:
    return _detail_page(actor, webhook_id, error=error)


@route(bp, ONE, scope="write", returns=WebhookOut)
def show(actor: Actor, webhook_id: str) -> Response:
    """Get a webhook."""
    return _detail_page(actor, webhook_id)


@route(
    bp,
    ONE,
    ["PATCH"],
    scope="write",
    body=WebhookPatch,
    returns=WebhookOut,
    errors=("version_conflict", "target_not_allowed"),
    on_fault=_detail_page_with_error,
)
def change(actor: Actor, webhook_id: str, body: WebhookPatch) -> Response:
    """Change a webhook, or turn it on or off."""
    if g.face == "person" and "active" not in request.form:
        CHANGE_FORM.check(request.form)
    hook = webhooks.get(actor, webhook_id, lock=True)
    check_if_match(webhooks.as_json(hook))
    sent = {key: value for key, value in body.model_dump(exclude_unset=True).items() if value is not None}
    changed = webhooks.change(actor, hook, sent)
    message = "Webhook saved"
    if "active" in sent:
        message = "Webhook turned on" if sent["active"] else "Webhook turned off"
    return reply(
        webhooks.as_json(changed),
        redirect_to=url_for(".show", webhook_id=webhook_id),
        flash_message=message,
        send_etag=True,
    )


@route(bp, ONE, ["DELETE"], scope="write", returns=WebhookOut, errors=("version_conflict",))
def delete(actor: Actor, webhook_id: str) -> Response:
    """Delete a webhook. It can be restored for 30 days. Pending deliveries are not sent."""
    hook = webhooks.get(actor, webhook_id, lock=True)
    check_if_match(webhooks.as_json(hook))
    webhooks.delete(actor, hook)
    if g.face == "person":  # the category of the message contains the URL of its Undo button
        flash("Webhook deleted", url_for(".restore", webhook_id=webhook_id))
    return reply(webhooks.as_json(hook), redirect_to=url_for(".index"))


@route(bp, f"{ONE}/restore", ["POST"], scope="write", returns=WebhookOut, errors=("conflict",))
def restore(actor: Actor, webhook_id: str) -> Response:
    """Restore a deleted object."""
    hook = webhooks.get(actor, webhook_id, lock=True, deleted=True)
    webhooks.restore(actor, hook)
    return reply(webhooks.as_json(hook), redirect_to=url_for(".show", webhook_id=webhook_id), send_etag=True)


@route(
    bp, f"{ONE}/secret", ["POST"], scope="write", returns=NewWebhookOut, status=201, errors=("unavailable",)
)
def secret(actor: Actor, webhook_id: str) -> Response:
    """Create a new secret, which only this response contains. The previous secret also signs for one more day."""
    hook = webhooks.get(actor, webhook_id, lock=True)
    new_secret = webhooks.new_secret(actor, hook)
    if g.face == "program":
        return reply({**webhooks.as_json(hook), "secret": new_secret}, status=201)
    return _detail_page(actor, webhook_id, secret=new_secret, status=201)


@route(bp, f"{ONE}/test", ["POST"], scope="write", returns=DeliveryOut, status=201, errors=("unavailable",))
def test(actor: Actor, webhook_id: str) -> Response:
    """Send a `webhook.test` immediately and return the result. It is attempted once, even if the webhook is off."""
    hook = webhooks.get(actor, webhook_id)
    found = webhooks.delivery_json(webhooks.send_test(actor, hook))
    ended = (
        f"the receiver responded with status {found['response_status']}"
        if found["response_status"]
        else found["reason"]
    )
    message = (
        f"The test was delivered in {found['ms']} ms."
        if found["status"] == "delivered"
        else f"The test failed: {ended}"
    )
    return reply(
        found, status=201, redirect_to=url_for(".show", webhook_id=webhook_id), flash_message=message
    )


@route(bp, f"{ONE}/deliveries", scope="write", query=DeliveriesQuery, returns=ListOf(DeliveryOut))
def deliveries(actor: Actor, webhook_id: str, query: DeliveriesQuery) -> Response:
    """List the deliveries of the last 30 days, newest first."""
    if g.face == "person":
        return _detail_page(actor, webhook_id, query)
    hook = webhooks.get(actor, webhook_id)
    return reply(webhooks.deliveries(hook, **query.model_dump()).as_dict(webhooks.delivery_json))


@route(bp, DELIVERY, scope="write", returns=DeliveryOut)
def delivery(actor: Actor, webhook_id: str, delivery_id: str) -> Response:
    """Get a delivery."""
    hook = webhooks.get(actor, webhook_id)
    return reply(webhooks.delivery_json(webhooks.delivery(hook, delivery_id)))


@route(
    bp,
    f"{DELIVERY}/redeliver",
    ["POST"],
    scope="write",
    returns=DeliveryOut,
    errors=("conflict",),
    on_fault=_detail_page_with_error,
)
def redeliver(actor: Actor, webhook_id: str, delivery_id: str) -> Response:
    """Send a delivery again, with the same `webhook-id` and body."""
    hook = webhooks.get(actor, webhook_id)
    found = webhooks.redeliver(actor, hook, webhooks.delivery(hook, delivery_id, lock=True))
    see = url_for(".show", webhook_id=webhook_id)
    return reply(
        webhooks.delivery_json(found), redirect_to=see, flash_message="The delivery is being sent again."
    )
