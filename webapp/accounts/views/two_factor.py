"""Two-factor authentication of a user: set-up, recovery codes, disabling; and linked accounts at a provider."""

from __future__ import annotations

from typing import Annotated, Any, Final

from flask import Blueprint, Response, request, url_for
from pydantic import Field

from webapp.access.actors import Actor
from webapp.access.models import User
from webapp.accounts.services import sign_in, two_factor
from webapp.accounts.views.session import Password
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.inputs import Input
from webapp.web.responses import reply
from webapp.web.routing import route

bp = Blueprint("two_factor", __name__)


class ProofForm(Input):
    """The user's password, if they have one, and a code."""

    password: Password = ""
    code: Annotated[str, Field(min_length=1, max_length=100, pattern=r"\S")]


_PASSWORD: Final = Control("Your password", type="password", autocomplete="current-password", required=True)
_CODE: Final = {"class": "digits", "autocapitalize": "none", "spellcheck": "false"}
CONFIRM: Final = FormSpec(
    ProofForm,
    {
        "code": Control(
            "Code", type="code", autocomplete="one-time-code", attributes={**_CODE, "inputmode": "numeric"}
        ),
        "password": _PASSWORD,
    },
)
PROVE: Final = FormSpec(
    ProofForm,
    {
        "password": _PASSWORD,
        "code": Control("Code or recovery code", type="code", autocomplete="one-time-code", attributes=_CODE),
    },
)


def _page(actor: Actor, error: ApiError | None) -> Response:
    assert actor.user_id is not None
    has_password = db.session.get_one(User, actor.user_id).password_hash is not None
    # An error without a field can be about a form that the page no longer shows, so it is shown above all of them.
    sent_to = (request.endpoint or "").rpartition(".")[2] if error and error.details.get("fields") else ""
    forms = {
        name: spec.draw(
            sent=request.form if sent_to == name else None,
            error=error if sent_to == name else None,
            id=id,
            without=() if has_password else ("password",),
        )
        for name, spec, id in (
            ("confirm", CONFIRM, ""), ("new_codes", PROVE, "codes-"), ("turn_off", PROVE, "off-"),
        )
    }  # fmt: skip
    return reply(
        template="two_factor.html",
        state=two_factor.state(actor.user_id),
        pending=two_factor.pending(actor),
        forms=forms,
        required=two_factor.requiring(actor.user_id),
        due=actor.second_factor_due,
        error=None if sent_to in forms else error,
    )


# Changes that take one's password and a code.
_PROVEN: Final[dict[str, Any]] = {
    "scope": "self",
    "body": ProofForm,
    "hidden": True,
    "programs": False,
    "on_fault": _page,
}


@route(bp, "/me/two-factor", scope="self", hidden=True, programs=False)
def show(actor: Actor) -> Response:
    """Whether it is enabled, or the QR code to scan."""
    return _page(actor, None)


@route(bp, "/me/two-factor", ["POST"], scope="self", hidden=True, programs=False, on_fault=_page)
def begin(actor: Actor) -> Response:
    """Begin to set it up, with a fresh secret."""
    two_factor.begin(actor)
    return reply(see=url_for("two_factor.show"))


@route(bp, "/me/two-factor/confirm", ["POST"], **_PROVEN)
def confirm(actor: Actor, body: ProofForm) -> Response:
    """Turn it on by a first code; the answer shows the recovery codes, once."""
    codes = two_factor.confirm(actor, body.password, body.code)
    return reply(template="recovery_codes.html", codes=codes, first=True)


@route(bp, "/me/two-factor/codes", ["POST"], **_PROVEN)
def new_codes(actor: Actor, body: ProofForm) -> Response:
    """Recovery codes in place of the older ones, shown once."""
    codes = two_factor.new_codes(actor, body.password, body.code)
    return reply(template="recovery_codes.html", codes=codes, first=False)


@route(bp, "/me/two-factor", ["DELETE"], **_PROVEN)
def turn_off(actor: Actor, body: ProofForm) -> Response:
    """Turn it off."""
    two_factor.turn_off(actor, body.password, body.code)
    return reply(see=url_for("session.me"), flashed="Two-factor sign-in is off.")


@route(bp, "/me/identities/<identity_id>", ["DELETE"], scope="self", hidden=True, programs=False)
def unlink(actor: Actor, identity_id: str) -> Response:
    """Unlink an account at the provider."""
    found = sign_in.unlink(actor, identity_id)
    return reply(see=url_for("session.me"), flashed=f"{found.email} is no longer linked.")
