"""Authentication and rate limit: once for every request, before its route, including routes that do not exist.

The credential decides the representation. An API key (`Authorization: Bearer` or `X-API-Key`) gets JSON. A session
cookie gets pages; it never authenticates a JSON write, and its form writes need the CSRF token and our own origin.
Without a credential, only public routes are available: other requests get 401 JSON, or a redirect to the sign-in page
if the client prefers HTML. Authenticated requests count toward the rate limit of their workspace, others toward that of
their address.

A new resource needs nothing here: declare its routes with `routing.route` (scope, body, query), write the view as load,
authorize, act, reply, and add it to the access matrix of the tests. A view takes `actor` as a parameter; `g.actor` and
`g.face` are set when it runs.
"""

from __future__ import annotations

import math
from typing import Final
from urllib.parse import quote, urlsplit

import redis
from flask import Flask, Request, Response, current_app, g, redirect, request, session, url_for
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin
from flask.typing import ResponseReturnValue
from flask_wtf.csrf import validate_csrf
from sqlalchemy.exc import SQLAlchemyError
from wtforms.validators import ValidationError

from webapp import clock
from webapp.accounts.services import identity
from webapp.errors import ApiError
from webapp.extensions import application
from webapp.rate_limiting import RateLimitResult
from webapp.web.inputs import FORM_TYPES
from webapp.web.routing import (
    SAFE_METHODS,
    RouteDeclaration,
    declaration_of,
    method_not_allowed,
    prefers_html,
    uncounted_result,
)

SESSION_FIELD: Final = "sid"  # the browser session's token inside the signed cookie
# Routes that members can use before they set up the second factor that their workspace requires.
_WITHOUT_SECOND_FACTOR: Final = frozenset(
    {"two_factor.show", "two_factor.begin", "two_factor.confirm", "session.sign_out", "pages.preferences"}
)


def authenticate() -> ResponseReturnValue | None:
    """Set `g.actor`, `g.face` and `g.rate_limit`, or return a response for a client that has to sign in first."""
    declared = declaration_of(application(), request.endpoint)
    if request.endpoint == "static" or (declared is not None and not declared.rate_limited):
        return None  # public, and not rate-limited
    public = declared is not None and declared.scope == "public"
    text = credential()
    if text is None:
        _authenticate_session(declared)
        if g.actor is None and not public:
            return _require_credential()
        if (
            g.actor is not None
            and g.actor.second_factor_due
            and not public
            and request.endpoint not in _WITHOUT_SECOND_FACTOR
        ):
            return _redirect_to_two_factor()
    elif not public:
        _authenticate_key(text, declared)
    if g.rate_limit is None:
        _count_anonymous(required=not public)
    _check_rate_limit(g.rate_limit)
    return None


def is_admin() -> bool:
    """Return whether a request to a public route has the credentials of an admin. The request of an API key is counted.

    False if the database or Redis is unavailable.
    """
    try:
        text = credential()
        if text is not None:
            actor, rate_limit, _ = identity.authenticate_key(text, "", g.address, g.request_id)
            return rate_limit.accepted and actor.can("admin")
        token = session.get(SESSION_FIELD) if request.cookies else None
        person = (
            identity.authenticate_session(token, g.address, g.request_id) if isinstance(token, str) else None
        )
        return person is not None and not person.second_factor_due and person.can("admin")
    except (ApiError, identity.RejectedRequestError, redis.RedisError, SQLAlchemyError):
        return False


def credential() -> str | None:
    """Return the API key from either header; None without one."""
    header: str | None = request.environ.get("HTTP_AUTHORIZATION")
    if header is None:
        return request.environ.get("HTTP_X_API_KEY")
    scheme, _, text = header.partition(" ")
    if scheme.casefold() != "bearer":
        return "malformed"
    return text.strip()


def _authenticate_key(text: str, declared: RouteDeclaration | None) -> None:
    g.face = "program"
    try:
        project = request.environ.get("HTTP_X_PROJECT_ID", "").strip()
        g.actor, g.rate_limit, version = identity.authenticate_key(text, project, g.address, g.request_id)
        g.api_version = g.requested_version or version
    except identity.RejectedRequestError as rejected:
        g.rate_limit = rejected.rate_limit
        raise rejected.error from None
    except ApiError as error:
        if error.code == "unauthenticated":
            _count_anonymous(required=True)
            _check_rate_limit(g.rate_limit)
        raise
    if declared is not None and not declared.allows_api_keys and g.rate_limit.accepted:
        raise method_not_allowed()


def _authenticate_session(declared: RouteDeclaration | None) -> None:
    """Authenticate by the browser session, if the route allows it."""
    token = session.get(SESSION_FIELD) if request.cookies else None
    if (
        not isinstance(token, str)
        or (declared is not None and not declared.allows_browsers)
        or is_api_write()
    ):
        return
    actor = identity.authenticate_session(token, g.address, g.request_id)
    if actor is None:
        session.pop(SESSION_FIELD, None)
        return
    g.actor, g.face = actor, "person"
    g.rate_limit = identity.count_request(actor)
    _check_rate_limit(g.rate_limit)
    if request.method not in SAFE_METHODS:
        check_csrf()


def _redirect_to_two_factor() -> ResponseReturnValue:
    """Redirect a member to set up the second factor that the workspace requires."""
    location = url_for("two_factor.show")
    if "HX-Request" in request.headers:
        return "", 401, {"HX-Redirect": location}
    return redirect(location, 303)


def is_api_write() -> bool:
    """Return whether the request is a write whose body cannot come from a form, so that a cookie is not accepted."""
    if request.method in SAFE_METHODS:
        return False
    return bool(request.mimetype) and request.mimetype not in FORM_TYPES


def check_csrf() -> None:
    """Raise `forbidden` unless a form has a valid CSRF token and comes from our own origin."""
    for name in ("Origin", "Referer"):
        source = request.headers.get(name)
        if source is not None:
            if _origin(source) not in (
                _origin(request.host_url),
                current_app.config["SETTINGS"].public_url.casefold() or "-",
            ):
                raise ApiError("forbidden", "The form was submitted from another site.", {"reason": "origin"})
            break
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise ApiError("forbidden", "The form was submitted from another site.", {"reason": "origin"})
    try:
        validate_csrf(request.headers.get("X-CSRFToken") or request.form.get("csrf_token"))
    except ValidationError:
        message = "The form has expired. Reload the page and try again."
        raise ApiError("forbidden", message, {"reason": "csrf"}) from None


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".casefold()


def _require_credential() -> ResponseReturnValue:
    _count_anonymous(required=True)
    _check_rate_limit(g.rate_limit)
    if not prefers_html() or is_api_write():
        g.face = "program"
        raise identity.unauthenticated_error("missing")
    g.face = "person"
    next_path = request.full_path.rstrip("?") if request.method in SAFE_METHODS else "/"
    location = url_for("session.login") + (f"?next={quote(next_path, safe='')}" if next_path != "/" else "")
    if "HX-Request" in request.headers:
        return "", 401, {"HX-Redirect": location}
    return redirect(location, 303)


def _count_anonymous(*, required: bool) -> None:
    try:
        g.rate_limit = identity.count_anonymous_request(g.address)
    except redis.RedisError:
        if required:
            raise
        g.rate_limit = uncounted_result()  # a public page works without the rate limiter


def _check_rate_limit(result: RateLimitResult) -> None:
    if result.accepted:
        return
    wait = max(1, math.ceil(result.reset - clock.epoch()))
    raise ApiError(
        "rate_limited",
        f"The rate limit of {result.limit:,} requests per minute is exceeded. Try again in {wait} s.",
        {"limit": result.limit, "retry_after": wait},
        headers={"Retry-After": str(wait)},
    )


class CookieSessions(SecureCookieSessionInterface):
    """Flask's signed cookie. A request without cookies skips reading and signing."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Return the content of the cookie; empty without one."""
        if "HTTP_COOKIE" not in request.environ:
            return self.session_class()
        return super().open_session(app, request)

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Set the cookie if the session was used."""
        if session.accessed or session.modified:
            super().save_session(app, session, response)
