"""Who is asking: one step before every route, also before those that do not exist.

The credential decides the face. An API key (`Authorization: Bearer` or `X-API-Key`) is a program and gets JSON.
A session cookie is a person and gets pages; it never authenticates a JSON write, and its form writes need the
CSRF token and an origin that is ours. No credential: only public routes, else 401 JSON, or the sign-in page for
who prefers HTML. A recognised caller spends a request of its workspace, everybody else one of their address.

Adding a resource needs nothing here: declare its routes with `routes.route` (scope, body, query), write the view
as load, authorise, act, reply, and give it a line in the access matrix of the tests. `g.actor` and `g.face` are
set when a view runs; a view takes `actor` as a parameter instead of reading them.
"""

from __future__ import annotations

import math
from typing import Final
from urllib.parse import quote, urlsplit

import redis
from flask import Flask, Request, Response, current_app, g, redirect, request, session, url_for
from flask.sessions import SecureCookieSessionInterface, SessionMixin
from flask.typing import ResponseReturnValue
from flask_wtf.csrf import validate_csrf
from sqlalchemy.exc import SQLAlchemyError
from wtforms.validators import ValidationError

from webapp import clock, limits
from webapp.accounts.services import identity
from webapp.errors import ApiError
from webapp.rate_limiting import Passage
from webapp.web.inputs import FORM_TYPES
from webapp.web.routing import READING, Declaration, declaration_of, methods_here

SESSION_FIELD: Final = "sid"  # the browser session's token inside the signed cookie
# What somebody does before they have the second factor that their workspace requires.
_BEFORE_IT: Final = frozenset(
    {"two_factor.show", "two_factor.begin", "two_factor.confirm", "session.sign_out", "pages.preferences"}
)


def identify() -> ResponseReturnValue | None:
    """Set `g.actor`, `g.face` and `g.passage`; answer at once where there is nothing more to do."""
    declared = declaration_of(current_app._get_current_object(), request.endpoint)  # type: ignore[attr-defined]
    if request.endpoint == "static" or (declared is not None and not declared.counted):
        return None  # open to all, and no request is spent
    public = declared is not None and declared.scope == "public"
    text = credential()
    if text is None:
        _person(declared)
        if g.actor is None and not public:
            return _stranger()
        if (
            g.actor is not None
            and g.actor.second_factor_due
            and not public
            and request.endpoint not in _BEFORE_IT
        ):
            return _second_factor_first()
    elif not public:
        if declared is not None and declared.with_rows and _is_expected(text, declared):
            return None
        _program(text, declared)
    if g.passage is None:
        _spend_address(must=not public)
    _refuse_if_spent(g.passage)
    return None


def is_admin() -> bool:
    """Whether a request to a public route carries the credential of an admin. A key's request is counted.

    False also where that cannot be determined because the database or Redis is unavailable.
    """
    try:
        text = credential()
        if text is not None:
            actor, passage, _ = identity.by_key(text, "", g.address, g.request_id)
            return passage.accepted and actor.can("admin")
        token = session.get(SESSION_FIELD) if request.cookies else None
        person = identity.by_session(token, g.address, g.request_id) if isinstance(token, str) else None
        return person is not None and not person.second_factor_due and person.can("admin")
    except (ApiError, identity.Refused, redis.RedisError, SQLAlchemyError):
        return False


def credential() -> str | None:
    """The API key as sent, by either header; None when there is none. A malformed header is an error."""
    header: str | None = request.environ.get("HTTP_AUTHORIZATION")
    if header is None:
        return request.environ.get("HTTP_X_API_KEY")
    scheme, _, text = header.partition(" ")
    if scheme.casefold() != "bearer":
        return "malformed"
    return text.strip()


def _is_expected(text: str, declared: Declaration) -> bool:
    """Whether the key is remembered: then its request is counted by the view, and `g.begin_anew` asks for its place
    in the minute at once, should the view end before."""
    here = g._get_current_object()
    project = request.environ.get("HTTP_X_PROJECT_ID", "").strip()
    found = identity.expected(text, project, here.address, here.request_id)
    if found is None:
        return False
    here.face = "program"
    here.actor, version = found
    here.api_version = here.asked_version or version

    def begin_anew() -> None:
        _program(text, declared)
        _refuse_if_spent(here.passage)

    here.begin_anew = begin_anew
    return True


def _program(text: str, declared: Declaration | None) -> None:
    g.face = "program"
    try:
        project = request.environ.get("HTTP_X_PROJECT_ID", "").strip()
        here = g._get_current_object()
        here.actor, here.passage, version = identity.by_key(text, project, here.address, here.request_id)
        here.api_version = here.asked_version or version
    except identity.Refused as refused:
        g.passage = refused.passage
        raise refused.error from None
    except ApiError as error:
        if error.code == "unauthenticated":
            _spend_address(must=True)
            _refuse_if_spent(g.passage)
        raise
    if declared is not None and not declared.programs and g.passage.accepted:
        raise not_this_method()


def not_this_method() -> ApiError:
    """405 with the methods this address takes from the caller; 404 where it takes none."""
    allowed = methods_here(g.face)
    if not allowed:
        return ApiError("not_found", "This page is for people. Sign in to see it.")
    return ApiError("method_not_allowed", details={"allowed": allowed}, headers={"Allow": ", ".join(allowed)})


def _person(declared: Declaration | None) -> None:
    """A browser's session, where this request may use one."""
    token = session.get(SESSION_FIELD) if request.cookies else None
    if not isinstance(token, str) or (declared is not None and not declared.people) or is_program_write():
        return
    actor = identity.by_session(token, g.address, g.request_id)
    if actor is None:
        session.pop(SESSION_FIELD, None)
        return
    g.actor, g.face = actor, "person"
    g.passage = identity.enter_workspace(actor)
    _refuse_if_spent(g.passage)
    if request.method not in READING:
        check_form()


def _second_factor_first() -> ResponseReturnValue:
    """Where a workspace requires a second factor, its members go and set one up before they see anything else."""
    where = url_for("two_factor.show")
    if "HX-Request" in request.headers:
        return "", 401, {"HX-Redirect": where}
    return redirect(where, 303)


def is_program_write() -> bool:
    """Whether the request writes with a body that no form sends. A cookie does not count for those."""
    if request.method in READING:
        return False
    return bool(request.mimetype) and request.mimetype not in FORM_TYPES


def check_form() -> None:
    """`forbidden` unless a form comes from our own page: its CSRF token, and the origin the browser names."""
    for name in ("Origin", "Referer"):
        sent = request.headers.get(name)
        if sent is not None:
            if _origin(sent) not in _our_origins():
                raise ApiError("forbidden", "This form came from another site.", {"reason": "origin"})
            break
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise ApiError("forbidden", "This form came from another site.", {"reason": "origin"})
    try:
        validate_csrf(request.headers.get("X-CSRFToken") or request.form.get("csrf_token"))
    except ValidationError:
        message = "The form is too old or not ours. Load the page again."
        raise ApiError("forbidden", message, {"reason": "csrf"}) from None


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".casefold()


def _our_origins() -> set[str]:
    return {_origin(request.host_url), current_app.config["SETTINGS"].public_url.casefold() or "-"}


def _stranger() -> ResponseReturnValue:
    _spend_address(must=True)
    _refuse_if_spent(g.passage)
    if not prefers_html() or is_program_write():
        g.face = "program"
        raise identity.unauthenticated("missing")
    g.face = "person"
    back = request.full_path.rstrip("?") if request.method in READING else "/"
    where = url_for("session.login") + (f"?next={quote(back, safe='')}" if back != "/" else "")
    if "HX-Request" in request.headers:
        return "", 401, {"HX-Redirect": where}
    return redirect(where, 303)


def prefers_html() -> bool:
    """Whether the caller would rather have a page than JSON."""
    if "text/html" not in request.environ.get("HTTP_ACCEPT", ""):
        return False
    accepts = request.accept_mimetypes
    return accepts["text/html"] > 0 and accepts["text/html"] >= accepts["application/json"]


def _spend_address(*, must: bool) -> None:
    try:
        g.passage = identity.enter_address(g.address)
    except redis.RedisError:
        if must:
            raise
        g.passage = unspent()  # a public page does not fail because rates cannot be counted


def unspent(limit: int = limits.ADDRESS_REQUESTS_PER_MINUTE) -> Passage:
    """A passage of a request that was not counted."""
    now = clock.epoch()
    return Passage(True, False, limit, limit, now + limits.RATE_WINDOW_SECONDS, b"")


def _refuse_if_spent(passage: Passage) -> None:
    if passage.accepted:
        return
    wait = max(1, math.ceil(passage.reset - clock.epoch()))
    raise ApiError(
        "rate_limited",
        f"{passage.limit:,} requests a minute are used up. Try again in {wait} s.",
        {"limit": passage.limit, "retry_after": wait},
        headers={"Retry-After": str(wait)},
    )


# The signed cookie, for those who have one: requests without any cookie do not pay for reading it.


class CookieSessions(SecureCookieSessionInterface):
    """Flask's signed cookie. Programs send none, so for them no signer is made and nothing is written."""

    def open_session(self, app: Flask, request: Request) -> SessionMixin | None:
        """The cookie's content; empty without one."""
        if "HTTP_COOKIE" not in request.environ:
            return self.session_class()
        return super().open_session(app, request)  # type: ignore[arg-type, return-value]

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:  # type: ignore[override]
        """Write the cookie when it was used."""
        if session.accessed or session.modified:
            super().save_session(app, session, response)  # type: ignore[arg-type]
