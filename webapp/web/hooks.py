"""The pipeline around every request: request id, transport, API version, authentication, headers, errors."""

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
from werkzeug.wsgi import ClosingIterator

from webapp import ids, limits, memory
from webapp.access.models import API_VERSIONS, NEWEST_VERSION
from webapp.config import Settings
from webapp.config.values import is_loopback
from webapp.engine import processor_time
from webapp.engine.errors import SpecError
from webapp.errors import ApiError, validation_error
from webapp.extensions import db
from webapp.net import addresses
from webapp.rate_limiting import RateLimitResult
from webapp.web import inputs, responses, routing

log = logging.getLogger("webapp")

_REQUEST_ID: Final = re.compile(rf"[A-Za-z0-9._:-]{{1,{limits.REQUEST_ID_CHARS}}}")

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SECURITY_HEADERS: Final = (
    ("Content-Security-Policy", CSP),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
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
_NO_ROUTE: Final = "This route does not exist. See /docs/api for all routes of the API."

WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]


def init_app(app: Flask, settings: Settings, authenticate: Callable[[], ResponseReturnValue | None]) -> None:
    """Add the pipeline to the application. `authenticate` sets the actor of a request and counts it, before its route
    runs."""
    app.wsgi_app = Middleware(app.wsgi_app, settings)  # type: ignore[method-assign]  # as Flask documents middleware
    app.before_request(begin_request)
    app.before_request(authenticate)
    app.after_request(finish_response)
    app.register_error_handler(Exception, handle_error)


class Middleware:
    """WSGI middleware: the client's address behind trusted proxies, the method of forms, the budget of processor time.

    Forms can only GET and POST; `?_method=DELETE` on a POST overrides the method. It applies only to form bodies,
    which need a session and its CSRF token.
    """

    def __init__(self, app: WsgiApp, settings: Settings) -> None:
        self._app = app
        proxies = addresses.Proxies(settings.trusted_proxies)
        self._seconds = settings.generate_seconds
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
        is_override = environ["REQUEST_METHOD"] == "POST" and "_method=" in environ.get("QUERY_STRING", "")
        if is_override and not _has_key(environ):  # API clients can send any method
            kind = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().casefold()
            method = parse_qs(environ["QUERY_STRING"]).get("_method", [""])[-1].upper()
            if kind in inputs.FORM_TYPES and method in ("PUT", "PATCH", "DELETE"):
                environ["REQUEST_METHOD"] = method
        with processor_time.CpuBudget(self._seconds):
            body = self._app(environ, start_response)
        # The objects of the response and its request are gone when it is closed, so their memory can be returned. The
        # server sends files itself; they are not Werkzeug iterators.
        return ClosingIterator(body, memory.trim) if type(body) is ClosingIterator else body


def _has_key(environ: Mapping[str, Any]) -> bool:
    return "HTTP_AUTHORIZATION" in environ or "HTTP_X_API_KEY" in environ


def begin_request() -> ResponseReturnValue | None:
    """Set the request id and the API version, and require a secure transport. Runs before anything that can fail."""
    environ = request.environ
    g.request_id = request_id(environ.get("HTTP_X_REQUEST_ID", ""))
    g.actor = g.rate_limit = None
    g.requested_version = ""
    g.api_version = NEWEST_VERSION
    origin: addresses.Origin = environ["rowsmith.origin"]
    g.address = origin.address or "unix"
    g.face = "program" if _has_key(environ) or not routing.prefers_html() else "person"
    # Without TLS, both the client's address and the host name must be loopback, without a proxy.
    if origin.scheme != "https" and (
        not addresses.is_loopback(origin.address)
        or not _is_loopback_host(environ.get("HTTP_HOST", ""))
        or origin.forwarded
    ):
        if g.face == "program" or request.method not in ("GET", "HEAD"):
            raise ApiError("https_required")
        return redirect("https://" + request.url.partition("://")[2], 308)
    if "\0" in environ["PATH_INFO"]:
        raise ApiError("not_found")  # PostgreSQL does not accept the character
    version = environ.get("HTTP_API_VERSION")
    if version is not None:
        if version not in API_VERSIONS:
            raise ApiError("unsupported_version", details={"known": list(API_VERSIONS)})
        g.requested_version = g.api_version = version
    return None


def request_id(sent: str) -> str:
    """Return the client's own request id if it is well formed, else a new one."""
    return sent if _REQUEST_ID.fullmatch(sent) else ids.new("req")


@functools.lru_cache(maxsize=256)
def _is_loopback_host(host: str) -> bool:
    try:
        parts = urlsplit(f"//{host}")
        if parts.netloc.partition("]")[2][:1] not in ("", ":"):  # `[::1]x` is no address
            return False
        return is_loopback(parts.hostname or "")
    except ValueError:
        return False


def finish_response(response: Response) -> Response:
    """Add the headers of every response."""
    secure = request.environ["wsgi.url_scheme"] == "https"
    rate_limit = g.rate_limit or routing.uncounted_result()
    headers = response.headers
    headers.extend(common_headers(g.request_id, g.api_version, rate_limit, secure=secure))
    headers.extend(SECURITY_HEADERS)
    if request.endpoint != "static":
        headers.add("Vary", "Accept, Authorization, X-API-Key, HX-Request")
        if "Cache-Control" not in headers:
            headers.add("Cache-Control", "no-store" if response.status_code >= 400 else "private, no-cache")
    return response


def common_headers(
    request: str, version: str, rate_limit: RateLimitResult, *, secure: bool
) -> list[tuple[str, str]]:
    """Return the headers of every response: request id, API version, rate limit, and HSTS for TLS."""
    headers = [
        ("X-Request-Id", request),
        ("Api-Version", version),
        ("X-RateLimit-Limit", str(rate_limit.limit)),
        ("X-RateLimit-Remaining", str(rate_limit.remaining)),
        ("X-RateLimit-Reset", str(math.ceil(rate_limit.reset))),
    ]
    if secure:
        headers.append(("Strict-Transport-Security", f"max-age={limits.HSTS_SECONDS}; includeSubDomains"))
    return headers


def handle_error(error: Exception) -> ResponseReturnValue:
    """Return the response for an error. Details of unexpected errors are logged and not sent."""
    if isinstance(error, HTTPException) and (error.code or 500) < 400:
        return error  # a redirect of the router
    return responses.error_response(as_api_error(error))


def _resource_limit_error(error: Exception) -> ApiError:
    """Return the error for a request that needs more than this process can store or a library can represent."""
    if isinstance(error, MemoryError):
        text = "The request needs more memory than is available. Request fewer rows, or try again later."
        return ApiError("unavailable", text, headers={"Retry-After": "5"})
    if isinstance(error, RecursionError):
        return ApiError("invalid_request", "The request is nested too deeply. Flatten it.")
    text = "The request needs more than 2 GB of values in a block. Request fewer or shorter values."
    return ApiError("payload_too_large", text)


def as_api_error(error: Exception) -> ApiError:
    """Convert any exception to an ApiError. Unexpected ones are logged with the request id."""
    if isinstance(error, ApiError):
        api_error = error
    elif isinstance(error, MethodNotAllowed):
        api_error = routing.method_not_allowed()
    elif isinstance(error, RequestEntityTooLarge):
        api_error = ApiError("payload_too_large", details={"max_bytes": limits.MAX_BODY_BYTES})
    elif isinstance(error, HTTPException) and (error.code or 500) in _HTTP_CODES:
        is_unknown_route = error.code == 404 and g.get("face", "program") == "program"
        api_error = ApiError(_HTTP_CODES[error.code or 500], _NO_ROUTE if is_unknown_route else None)
    elif isinstance(error, SpecError):
        api_error = validation_error(error.faults)
    elif isinstance(error, MemoryError | RecursionError | pa.ArrowCapacityError):
        # The limits of bytes and nesting should prevent this.
        log.error("request %s failed", g.request_id, exc_info=error)
        api_error = _resource_limit_error(error)
    elif isinstance(error, redis.ConnectionError | redis.TimeoutError):
        # A restart of Redis affects every request in progress, so one line without traceback each.
        log.warning("request %s: Redis is unavailable: %s", g.request_id, type(error).__name__)
        api_error = ApiError("unavailable", headers={"Retry-After": "2"})
    elif isinstance(error, redis.RedisError | OperationalError | PoolTimeout):
        log.error("request %s: %s", g.request_id, type(error).__name__, exc_info=error)
        api_error = ApiError("unavailable", headers={"Retry-After": "2"})
    else:
        log.error("request %s failed", g.request_id, exc_info=error)
        api_error = ApiError("internal_error")
    if api_error.status >= 500:
        api_error.details["request_id"] = g.request_id
    if api_error.status >= 400:
        db.session.rollback()
    return api_error
