"""Two-factor authentication and sign-in through a provider of OpenID Connect.

First the steps of a sign-in, then the pages on which users set up their second factor and their linked accounts.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from flask import Blueprint, Response, current_app, flash, g, request, url_for
from flask import session as cookie
from pydantic import Field

from webapp.access.actors import Actor
from webapp.access.models import User
from webapp.accounts import authentication
from webapp.accounts.services import oidc, sign_in, two_factor
from webapp.accounts.views.session import STEP_FIELD, Password, complete_sign_in, safe_next, visitor
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.inputs import Input, Query
from webapp.web.responses import reply
from webapp.web.routing import route

bp = Blueprint("sign_in", __name__)
BROWSER_FIELD: Final = "oidc"  # binds a sign-in at the provider to this browser; stored in the signed cookie


class CodeForm(Input):
    """A code of the authenticator, or a recovery code."""

    code: Annotated[str, Field(min_length=1, max_length=100, pattern=r"\S")]
    recovery: bool = False


CODE: Final = FormSpec(
    CodeForm,
    {
        "code": Control(
            "Code",
            type="code",
            autocomplete="one-time-code",
            attributes={
                "class": "digits", "inputmode": "numeric", "pattern": r"[0-9\s]*", "maxlength": 20,
            },
        )
    },
    focus="code",
)  # fmt: skip
RECOVERY_CODE: Final = FormSpec(
    CodeForm,
    {
        "recovery": Control(type="hidden"),
        "code": Control(
            "Recovery code",
            hint="One of the codes that you saved during setup. Each code works once.",
            type="code",
            autocomplete="off",
            attributes={"class": "mono", "autocapitalize": "none", "spellcheck": "false"},
        ),
    },
)


class BeginQuery(Query):
    """The page to open after signing in."""

    next: str = "/"


class AnswerQuery(Query):
    """Query parameters of the provider's redirect (OpenID Connect Core 1.0, 3.1.2.5, and RFC 9207)."""

    state: str = ""
    code: str = ""
    error: str = ""
    iss: str = ""


def _pending_step() -> str:
    found = cookie.get(STEP_FIELD)
    return found if isinstance(found, str) else ""


def _code_page(error: ApiError | None) -> Response:
    """Render the page of the second step. It has two forms; an error belongs to the submitted one."""
    failed = RECOVERY_CODE if "recovery" in request.form else CODE
    forms = {
        spec: spec.render(
            {"recovery": "true"},
            sent=request.form if error and spec is failed else None,
            error=error if spec is failed else None,
            id="" if spec is CODE else "recovery-",
            focus=None if failed is CODE else "",
        )
        for spec in (CODE, RECOVERY_CODE)
    }
    return reply(template="sign_in_code.html", form=forms[CODE], recovery=forms[RECOVERY_CODE])


def _code_page_with_error(_actor: Actor | None, error: ApiError) -> Response:
    if error.code == "not_found":
        cookie.pop(STEP_FIELD, None)
        flash(error.message)
        return reply(redirect_to=url_for("session.login"))
    return _code_page(error)


@route(bp, "/sign-in/code", scope="public", hidden=True, allows_api_keys=False)
def code() -> Response:
    """Render the page that asks for a code."""
    g.face = "person"
    if not _pending_step() or not sign_in.step_is_open(_pending_step()):
        return reply(redirect_to=url_for("session.login"))
    return _code_page(None)


@route(
    bp,
    "/sign-in/code",
    ["POST"],
    scope="public",
    body=CodeForm,
    hidden=True,
    allows_api_keys=False,
    on_fault=_code_page_with_error,
)
def sign_in_by_code(body: CodeForm) -> Response:
    """Finish signing in with a code."""
    authentication.check_csrf()
    token, target, codes_left = sign_in.by_code(_pending_step(), body.code, visitor())
    response = complete_sign_in(sign_in.SignInResult(token), target)
    if codes_left is not None:
        flash(f"You used a recovery code; {codes_left} are left. You can create new ones in your profile.")
    return response


def _redirect_to_login(problem: oidc.SignInError) -> Response:
    return reply(redirect_to=url_for("session.login", problem=problem.code))


def _check_configured() -> None:
    g.face = "person"
    if not oidc.is_configured():
        raise ApiError("not_found", "Sign-in through a provider isn't configured.")


@route(bp, "/sign-in/oidc", scope="public", query=BeginQuery, hidden=True, allows_api_keys=False, reads=False)
def begin_oidc(query: BeginQuery) -> Response:
    """Redirect to the provider."""
    _check_configured()
    if not isinstance(cookie.get(BROWSER_FIELD), str):
        cookie[BROWSER_FIELD] = oidc.new_browser_token()
    origin = current_app.config["SETTINGS"].public_url or request.host_url.rstrip("/")
    redirect_uri = str(origin) + url_for("sign_in.oidc_answer")
    try:
        return reply(
            redirect_to=oidc.begin_sign_in(cookie[BROWSER_FIELD], redirect_uri, safe_next(query.next))
        )
    except oidc.SignInError as problem:
        return _redirect_to_login(problem)


@route(
    bp,
    "/sign-in/oidc/callback",
    scope="public",
    query=AnswerQuery,
    hidden=True,
    allows_api_keys=False,
    reads=False,
)
def oidc_answer(query: AnswerQuery) -> Response:
    """Handle the redirect back from the provider."""
    _check_configured()
    browser = cookie.get(BROWSER_FIELD)
    answer = oidc.AuthorizationResponse(query.state, query.code, query.error, query.iss)
    try:
        result, target = oidc.finish_sign_in(answer, browser if isinstance(browser, str) else "", visitor())
    except oidc.SignInError as problem:
        return _redirect_to_login(problem)
    return complete_sign_in(result, target)


# --- Two-factor authentication and linked accounts ----------------------------------------------------------

two_factor_bp = Blueprint("two_factor", __name__)


class ProofForm(Input):
    """The user's password, if they have one, and a code."""

    password: Password = ""
    code: Annotated[str, Field(min_length=1, max_length=100, pattern=r"\S")]


_PASSWORD: Final = Control("Your password", type="password", autocomplete="current-password", required=True)
_CODE_ATTRIBUTES: Final = {"class": "digits", "autocapitalize": "none", "spellcheck": "false"}
CONFIRM: Final = FormSpec(
    ProofForm,
    {
        "code": Control(
            "Code",
            type="code",
            autocomplete="one-time-code",
            attributes={**_CODE_ATTRIBUTES, "inputmode": "numeric"},
        ),
        "password": _PASSWORD,
    },
)
PROVE: Final = FormSpec(
    ProofForm,
    {
        "password": _PASSWORD,
        "code": Control(
            "Code or recovery code", type="code", autocomplete="one-time-code", attributes=_CODE_ATTRIBUTES
        ),
    },
)


def _page(actor: Actor, error: ApiError | None) -> Response:
    assert actor.user_id is not None
    has_password = db.session.get_one(User, actor.user_id).password_hash is not None
    # An error without a field can be about a form that the page no longer shows, so it is shown above all of them.
    sent_to = (request.endpoint or "").rpartition(".")[2] if error and error.details.get("fields") else ""
    forms = {
        name: spec.render(
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
        state=two_factor.get_state(actor.user_id),
        pending=two_factor.pending_secret(actor),
        forms=forms,
        required=two_factor.workspaces_requiring(actor.user_id),
        due=actor.second_factor_due,
        error=None if sent_to in forms else error,
    )


# Changes that take one's password and a code.
_PROVEN_OPTIONS: Final[dict[str, Any]] = {
    "scope": "self",
    "body": ProofForm,
    "hidden": True,
    "allows_api_keys": False,
    "on_fault": _page,
}


@route(two_factor_bp, "/me/two-factor", scope="self", hidden=True, allows_api_keys=False)
def show(actor: Actor) -> Response:
    """Whether it is enabled, or the QR code to scan."""
    return _page(actor, None)


@route(
    two_factor_bp,
    "/me/two-factor",
    ["POST"],
    scope="self",
    hidden=True,
    allows_api_keys=False,
    on_fault=_page,
)
def begin(actor: Actor) -> Response:
    """Start the setup with a new secret."""
    two_factor.begin(actor)
    return reply(redirect_to=url_for("two_factor.show"))


@route(two_factor_bp, "/me/two-factor/confirm", ["POST"], **_PROVEN_OPTIONS)
def confirm(actor: Actor, body: ProofForm) -> Response:
    """Turn it on with a first code. The response shows the recovery codes once."""
    codes = two_factor.confirm(actor, body.password, body.code)
    return reply(template="recovery_codes.html", codes=codes, first=True)


@route(two_factor_bp, "/me/two-factor/codes", ["POST"], **_PROVEN_OPTIONS)
def new_codes(actor: Actor, body: ProofForm) -> Response:
    """Replace the recovery codes. The new ones are shown once."""
    codes = two_factor.new_codes(actor, body.password, body.code)
    return reply(template="recovery_codes.html", codes=codes, first=False)


@route(two_factor_bp, "/me/two-factor", ["DELETE"], **_PROVEN_OPTIONS)
def turn_off(actor: Actor, body: ProofForm) -> Response:
    """Turn it off."""
    two_factor.turn_off(actor, body.password, body.code)
    return reply(redirect_to=url_for("session.me"), flash_message="Two-factor sign-in is off.")


@route(
    two_factor_bp,
    "/me/identities/<identity_id>",
    ["DELETE"],
    scope="self",
    hidden=True,
    allows_api_keys=False,
)
def unlink(actor: Actor, identity_id: str) -> Response:
    """Unlink an account at the provider."""
    found = sign_in.unlink(actor, identity_id)
    return reply(redirect_to=url_for("session.me"), flash_message=f"{found.email} is no longer linked.")
