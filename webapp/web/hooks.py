"""What happens around every request: id, transport, version, identity, rate headers, safety headers, errors."""

from __future__ import annotations

import functools
import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import redis
from flask import Flask, Response, g, redirect, request
from flask.typing import ResponseReturnValue
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge

from webapp import ids, limits, memory
from webapp.accounts.services.api_keys import API_VERSIONS, NEWEST_VERSION
from webapp.config import Settings
from webapp.config_faults import is_loopback
from webapp.engine.budget import TooLarge
from webapp.engine.errors import SpecError
from webapp.errors import ApiError, validation_error
from webapp.extensions import db
from webapp.net import addresses
from webapp.rate_limiting import Passage
from webapp.web import authentication, inputs
from webapp.web import responses as web_responses
from webapp.web.authentication import CookieSessions

log = logging.getLogger("webapp")

_REQUEST_ID: Final = re.compile(rf"[A-Za-z0-9._:-]{{1,{limits.REQUEST_ID_CHARS}}}")

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SAFETY: Final = (
    ("Content-Security-Policy", CSP),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
HEADERS: Final = "rowsmith.headers"  # where `finish` leaves for `Front` what this answer carries
_HTTP_CODES: Final = {
    400: "invalid_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "payload_too_large",
    414: "uri_too_long",
    415: "unsupported_media_type",
    431: "headers_too_large",
    503: "unavailable",
}
_NOWHERE: Final = "Nothing is at this address. /docs/api lists every address of the API."

WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]


def init_app(app: Flask, settings: Settings) -> None:
    """Hang the pipeline on the application."""
    app.session_interface = CookieSessions()
    app.wsgi_app = Front(app.wsgi_app, settings)  # type: ignore[method-assign]
    app.before_request(begin)
    app.before_request(authentication.identify)
    app.after_request(finish)
    app.register_error_handler(Exception, failed)
    app.teardown_request(returned)


def returned(error: BaseException | None) -> None:
    """Return the memory that a request took in vain to the system."""
    if g.get("trim"):
        memory.trim()


class Front:
    """Around the application: who really asks (trusted proxies), which method a form means, headers of all answers.

    A form can only GET and POST; `?_method=DELETE` on a form's POST says what it stands for. It counts for form
    bodies alone, which only a session may send, so it opens no way that CSRF does not guard.
    """

    def __init__(self, app: WsgiApp, settings: Settings) -> None:
        self._app = app
        proxies = addresses.Proxies(settings.trusted_proxies)
        self._origin = functools.lru_cache(maxsize=4096)(proxies.origin)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        origin = self._origin(
            environ.get("REMOTE_ADDR") or "",
            environ.get("wsgi.url_scheme", "http"),
            environ.get("HTTP_X_FORWARDED_FOR", ""),
            environ.get("HTTP_X_FORWARDED_PROTO", ""),
        )
        environ["rowsmith.origin"] = origin
        environ["wsgi.url_scheme"] = origin.scheme
        if environ["REQUEST_METHOD"] == "POST" and "_method=" in environ.get("QUERY_STRING", ""):
            _mean_method(environ)

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            # Cheaper here than on the response: lists of pairs, added as they are.
            return start_response(status, [*headers, *SAFETY, *environ.get(HEADERS, ())], *more)

        return self._app(environ, start)


def _has_key(environ: Mapping[str, Any]) -> bool:
    return "HTTP_AUTHORIZATION" in environ or "HTTP_X_API_KEY" in environ


def _mean_method(environ: dict[str, Any]) -> None:
    if _has_key(environ):  # a program says which method it means
        return
    kind = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().casefold()
    meant = parse_qs(environ["QUERY_STRING"]).get("_method", [""])[-1].upper()
    if kind in inputs.FORM_TYPES and meant in ("PUT", "PATCH", "DELETE"):
        environ["REQUEST_METHOD"] = meant


def begin() -> ResponseReturnValue | None:
    """Request id, transport, API version. Runs before anything that could fail."""
    environ = request.environ
    here = g._get_current_object()
    here.request_id = request_id(environ.get("HTTP_X_REQUEST_ID", ""))
    here.actor = here.passage = None
    here.asked_version = ""
    here.api_version = NEWEST_VERSION
    origin: addresses.Origin = environ["rowsmith.origin"]
    here.address = origin.address or "unix"
    here.face = "program" if _has_key(environ) or not authentication.prefers_html() else "person"
    if not _is_safe_transport(origin, environ.get("HTTP_HOST", "")):
        if here.face == "program" or request.method not in ("GET", "HEAD"):
            raise ApiError("https_required")
        return redirect("https://" + request.url.partition("://")[2], 308)
    asked = environ.get("HTTP_API_VERSION")
    if asked is not None:
        if asked not in API_VERSIONS:
            raise ApiError("unsupported_version", details={"known": list(API_VERSIONS)})
        here.asked_version = here.api_version = asked
    return None


def request_id(sent: str) -> str:
    """The caller's own id where it is well formed, else a new one."""
    return sent if _REQUEST_ID.fullmatch(sent) else ids.new("req")


def _is_safe_transport(origin: addresses.Origin, host: str) -> bool:
    """TLS, or loopback on both ends: the socket's and the name asked for, with no proxy in between."""
    if origin.scheme == "https":
        return True
    return addresses.is_loopback(origin.address) and _names_loopback(host) and not origin.forwarded


@functools.lru_cache(maxsize=256)
def _names_loopback(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


def finish(response: Response) -> Response:
    """Headers of every answer: put into the environment, from where `Front` adds them."""
    environ = request.environ
    here = g._get_current_object()
    passage = here.passage or authentication.unspent()
    secure = environ["wsgi.url_scheme"] == "https"
    headers = common_headers(here.request_id, here.api_version, passage, secure=secure)
    if request.endpoint != "static":
        headers.append(("Vary", "Accept, Authorization, X-API-Key, HX-Request"))
        if "Cache-Control" not in response.headers:
            kept = "no-store" if response.status_code >= 400 else "private, no-cache"
            headers.append(("Cache-Control", kept))
    environ[HEADERS] = headers
    return response


def common_headers(request: str, version: str, passage: Passage, *, secure: bool) -> list[tuple[str, str]]:
    """What every answer says of its request: id, version, rate, and over TLS that TLS is to be kept."""
    headers = [
        ("X-Request-Id", request),
        ("Api-Version", version),
        ("X-RateLimit-Limit", str(passage.limit)),
        ("X-RateLimit-Remaining", str(passage.remaining)),
        ("X-RateLimit-Reset", str(math.ceil(passage.reset))),
    ]
    if secure:
        headers.append(("Strict-Transport-Security", f"max-age={limits.HSTS_SECONDS}; includeSubDomains"))
    return headers


def failed(error: Exception) -> ResponseReturnValue:
    """Every error as an answer of the one shape; what nobody foresaw is logged and says nothing of itself."""
    if isinstance(error, HTTPException) and (error.code or 500) < 400:
        return error  # a redirect of the router
    return web_responses.problem(as_api_error(error))


def _exhausted(error: Exception) -> ApiError:
    """The error for a request that asks for more than this process can hold or a library can represent."""
    if isinstance(error, MemoryError):
        text = "The request needs more memory than is available. Ask for less, or try again later."
        return ApiError("unavailable", text, headers={"Retry-After": "5"})
    if isinstance(error, RecursionError):
        return ApiError("invalid_request", "The request is nested too deeply to be processed. Flatten it.")
    text = "The request asks for more than 2 GB of values at once. Ask for fewer or shorter values."
    return ApiError("payload_too_large", text)


def as_api_error(error: Exception) -> ApiError:
    """Any exception as an ApiError; unforeseen ones are logged with the request id."""
    if isinstance(error, ApiError):
        found = error
    elif isinstance(error, MethodNotAllowed):
        found = authentication.not_this_method()
    elif isinstance(error, RequestEntityTooLarge):
        found = ApiError("payload_too_large", details={"max_bytes": limits.MAX_BODY_BYTES})
    elif isinstance(error, HTTPException) and (error.code or 500) in _HTTP_CODES:
        lost = error.code == 404 and g.get("face", "program") == "program"
        found = ApiError(_HTTP_CODES[error.code or 500], _NOWHERE if lost else None)
    elif isinstance(error, SpecError):
        found = validation_error(error.faults)
        g.trim = isinstance(error, TooLarge)
    elif isinstance(error, MemoryError | RecursionError | pa.ArrowCapacityError):
        # The budget of bytes and the limits of nesting are there to prevent this.
        log.error("request %s failed", g.request_id, exc_info=error)
        found = _exhausted(error)
        g.trim = True
    elif isinstance(error, redis.ConnectionError | redis.TimeoutError):
        # A restart of Redis meets every request in flight: a line for each says enough.
        log.warning("request %s: Redis does not answer: %s", g.request_id, type(error).__name__)
        found = ApiError("unavailable", headers={"Retry-After": "2"})
    elif isinstance(error, redis.RedisError | OperationalError | PoolTimeout):
        log.error("request %s: %s", g.request_id, type(error).__name__, exc_info=error)
        found = ApiError("unavailable", headers={"Retry-After": "2"})
    else:
        log.error("request %s failed", g.request_id, exc_info=error)
        found = ApiError("internal_error")
    if found.status >= 500:
        found.details["request_id"] = g.request_id
    if found.status >= 400:
        db.session.rollback()
    return found
