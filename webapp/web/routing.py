"""Declare routes, and everything that happens before a view function is called.

    @route(bp, "/things", ["POST"], scope="write", body=ThingIn, returns=ThingOut, status=201, idempotent=True)
    def create(actor: Actor, body: ThingIn) -> ResponseReturnValue:
        return reply(things.create(actor, body), status=201)

The function gets the arguments that it names: `actor`, `body`, `query`, and the path parameters. The declaration
defines the authorization, the validation of body and query, Idempotency-Key, the entry in `/openapi.json`, and the
entry in the access matrix of the tests.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal

import orjson
import redis
from flask import (
    Blueprint,
    Flask,
    Response,
    current_app,
    g,
    make_response,
    request,
)
from pydantic import BaseModel
from sqlalchemy import delete, event, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from werkzeug.exceptions import HTTPException

from webapp import clock, extensions, ids, limits
from webapp.access.actors import PROJECT_SCOPES, WORKSPACE_SCOPES, Actor, require_scope
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import affected_row_count, application, db, read_session, write_session
from webapp.metering import stored_json
from webapp.rate_limiting import RateLimitResult
from webapp.security import sealing
from webapp.web import inputs
from webapp.web.models import IdempotencyRecord

# Idempotency-Key on POSTs that create or run something: the first request is executed, the others get its response.

_KEY_FORMAT: Final = re.compile(rf"[\x21-\x7e]{{1,{limits.IDEMPOTENCY_KEY_CHARS}}}")
STORED_HEADERS: Final = ("Content-Type", "Location", "ETag", "X-Seed", "X-Now", "X-Template-Version")


def run_idempotent(actor: Actor, max_body: int, act: Callable[[], Response]) -> Response:
    """Call `act` for the first request with this Idempotency-Key, and return its response for all others.

    Errors: validation_error (bad key), idempotency_mismatch, idempotency_in_progress.
    """
    key = request.headers["Idempotency-Key"]
    if not _KEY_FORMAT.fullmatch(key):
        message = f"Use 1 to {limits.IDEMPOTENCY_KEY_CHARS} visible ASCII characters."
        raise validation_error([Fault("Idempotency-Key", "wrong_form", message)])
    if (request.content_length or 0) > max_body:
        raise ApiError("payload_too_large", details={"max_bytes": max_body})
    key_lock = _IdempotencyLock(actor, key)
    stored_json.check(actor)  # the response is stored for a day
    earlier = key_lock.acquire()
    if earlier is not None:
        return key_lock.replay(earlier)
    session = db.session()
    event.listen(session, "before_commit", key_lock.mark_used)
    try:
        response = act()
    except ApiError as error:
        key_lock.handle_error(error)
        raise
    except BaseException:
        key_lock.handle_error(ApiError("internal_error", details={"request_id": actor.request_id}))
        raise
    finally:
        event.remove(session, "before_commit", key_lock.mark_used)
    db.session.rollback()  # the view may still read in another session
    key_lock.handle_response(response)
    return response


def _digest(prefix: bytes) -> str:
    """Return a digest of the given bytes and of the body: unchanged, or for multipart/form-data its parts.

    The parts of a repeated request are the same, while their boundary is not. Files are read from the disk in
    pieces.
    """
    found = hashlib.sha256(prefix)
    if request.mimetype != "multipart/form-data":
        found.update(request.get_data(cache=True))
        return found.hexdigest()
    found.update(repr(sorted(request.form.items(multi=True))).encode("utf-8", "surrogatepass"))
    for part, file in sorted(request.files.items(multi=True), key=lambda item: item[0]):
        content = hashlib.sha256()
        while piece := file.stream.read(limits.STORAGE_CHUNK_BYTES):
            content.update(piece)
        file.stream.seek(0)
        found.update(
            repr((part, file.filename, file.mimetype, content.digest())).encode("utf-8", "surrogatepass")
        )
    return found.hexdigest()


class _IdempotencyLock:
    """The lock of one client on one Idempotency-Key."""

    def __init__(self, actor: Actor, key: str) -> None:
        self.workspace_id = actor.workspace_id
        self.caller = actor.key_id or actor.user_id or ""
        self.key_hash = hashlib.sha256(key.encode()).hexdigest()
        identity = [request.method, request.full_path, actor.project_id, request.mimetype]
        self.request_hash = _digest(repr(identity).encode())
        self.seal = sealing.derive(str(current_app.secret_key), "idempotency", key + self.caller)
        self.id = ids.new("idm")

    def acquire(self) -> IdempotencyRecord | None:
        """Acquire the lock and return None, or return the record with the response of an earlier request."""
        deadline = time.monotonic() + limits.IDEMPOTENCY_WAIT_SECONDS
        while True:
            if self._insert():
                return None
            found = self._find()
            if found is None:
                continue  # it expired or was released in between
            if found.request_hash != self.request_hash:
                raise ApiError("idempotency_mismatch")
            if found.state == "answered":
                return found
            if self._release_abandoned(found):
                continue
            if time.monotonic() >= deadline:
                details = {"state": found.state}
                raise ApiError("idempotency_in_progress", details=details, headers={"Retry-After": "5"})
            time.sleep(limits.IDEMPOTENCY_POLL_SECONDS)

    def _insert(self) -> bool:
        now = clock.now()
        try:
            with write_session() as session:
                session.execute(
                    delete(IdempotencyRecord).where(*self._conditions(), IdempotencyRecord.expires_at <= now)
                )
                session.add(
                    IdempotencyRecord(
                        id=self.id,
                        workspace_id=self.workspace_id,
                        caller=self.caller,
                        key_hash=self.key_hash,
                        request_hash=self.request_hash,
                        state="running",
                        created_at=now,
                        expires_at=now + timedelta(hours=limits.IDEMPOTENCY_HOURS),
                    )
                )
        except IntegrityError:
            return False
        return True

    def _conditions(self) -> tuple[Any, ...]:
        table = IdempotencyRecord
        return (
            table.workspace_id == self.workspace_id,
            table.caller == self.caller,
            table.key_hash == self.key_hash,
        )

    def _find(self) -> IdempotencyRecord | None:
        with read_session() as session:
            return session.scalar(select(IdempotencyRecord).where(*self._conditions()))

    def _release_abandoned(self, found: IdempotencyRecord) -> bool:
        """Release the lock of a request that ended before it changed anything. Return whether it was released."""
        if found.state != "running":
            return False
        if clock.now() - found.created_at < timedelta(seconds=limits.IDEMPOTENCY_LOST_SECONDS):
            return False
        with write_session() as session:
            session.execute(
                delete(IdempotencyRecord).where(
                    IdempotencyRecord.id == found.id, IdempotencyRecord.state == "running"
                )
            )
        return True

    def mark_used(self, session: Session) -> None:
        """Mark the key as used, in the view's transaction just before it commits."""
        statement = update(IdempotencyRecord).where(IdempotencyRecord.id == self.id).values(state="acted")
        session.execute(statement, execution_options={"synchronize_session": False})

    def handle_error(self, error: ApiError) -> None:
        """Handle an error of the view: release the key if nothing was changed, otherwise store the response."""
        db.session.rollback()  # the current session: a view that waited may have released its first one
        if not self._release():
            body = orjson.dumps(error.as_dict())
            self._store_response(error.status, {"Content-Type": "application/json"}, body)

    def _release(self) -> bool:
        """Release the lock if nothing was committed. Return whether it was released."""
        running = delete(IdempotencyRecord).where(
            IdempotencyRecord.id == self.id, IdempotencyRecord.state == "running"
        )
        with write_session() as session:
            return bool(affected_row_count(session.execute(running)))

    def handle_response(self, response: Response) -> None:
        """Store the first response, or release the key after an error that changed nothing."""
        if response.status_code >= 400 and self._release():
            return
        headers = {name: response.headers[name] for name in STORED_HEADERS if name in response.headers}
        self._store_response(response.status_code, headers, response.get_data())

    def _store_response(self, status: int, headers: dict[str, Any], body: bytes) -> None:
        with write_session() as session:
            session.execute(
                update(IdempotencyRecord)
                .where(IdempotencyRecord.id == self.id)
                .values(state="answered", status=status, headers=headers, body=sealing.seal(self.seal, body))
            )
        with contextlib.suppress(redis.RedisError):  # its purpose is fulfilled
            stored_json.add(self.workspace_id, len(body))

    def replay(self, record: IdempotencyRecord) -> Response:
        """Return the stored response."""
        body = sealing.unseal(self.seal, record.body or b"")
        if body is None:  # SECRET_KEY was changed since
            raise ApiError(
                "idempotency_in_progress", "The response to the first request is no longer available."
            )
        response = Response(body, status=record.status)
        response.headers.update(record.headers or {})
        response.headers["Idempotent-Replayed"] = "true"
        return response


# `public`: no credentials. `self`: any authenticated client. The others are defined in `access.actors`.
SCOPES: Final = frozenset({"public", "self", *PROJECT_SCOPES, *WORKSPACE_SCOPES})
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
View = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class RouteDeclaration:
    """The declaration of a route; equal only to itself.

    `reads`: writes nothing although it is a POST (preview), so it takes no writers' lock. `rate_limited`: counts toward
    the rate limit (health and static do not). `allows_browsers`: a browser session may use it; `allows_api_keys`: an
    API key may. `on_fault(actor, error, **address)` renders the form again with its errors. `more_faults(actor, error,
    sent, **address)` returns the error of a body with what else is wrong with it. `produces`: content types other than
    JSON, for the documentation; `other_responses`: the bodies of other success statuses; `multipart`: the JSON Schema
    of the parts of a multipart/form-data body, which the view reads.
    """

    rule: str
    methods: tuple[str, ...]
    scope: str
    summary: str
    description: str
    tag: str
    body: type[BaseModel] | None
    query: type[BaseModel] | None
    returns: Any
    status: int
    idempotent: bool
    reads: bool
    rate_limited: bool
    max_body: int
    allows_browsers: bool
    allows_api_keys: bool
    errors: tuple[str, ...]
    produces: tuple[str, ...]
    other_responses: Mapping[int, Any]
    multipart: Mapping[str, Any] | None
    hidden: bool
    render_error: Callable[..., Any] | None
    more_faults: Callable[..., ApiError] | None


def route(
    bp: Blueprint | Flask,
    rule: str,
    methods: Sequence[str] = ("GET",),
    *,
    scope: str,
    body: type[BaseModel] | None = None,
    query: type[BaseModel] | None = None,
    returns: Any = None,
    status: int = 200,
    idempotent: bool = False,
    reads: bool | None = None,
    rate_limited: bool = True,
    max_body: int = limits.MAX_BODY_BYTES,
    allows_browsers: bool = True,
    allows_api_keys: bool = True,
    errors: Sequence[str] = (),
    produces: Sequence[str] = (),
    other_responses: Mapping[int, Any] | None = None,
    multipart: Mapping[str, Any] | None = None,
    hidden: bool = False,
    on_fault: Callable[..., Any] | None = None,
    more_faults: Callable[..., ApiError] | None = None,
    endpoint: str | None = None,
    summary: str | None = None,
) -> Callable[[View], View]:
    """Declare a view. `errors` lists error codes, in addition to those of all routes, for the documentation.

    `hidden` excludes a page for browsers from /openapi.json. `summary` replaces the view's docstring if one function
    serves several kinds of objects. See `RouteDeclaration` for the rest.
    """
    if scope not in SCOPES:
        raise ValueError(f"unknown scope {scope!r}")
    upper = tuple(method.upper() for method in methods)

    def decorate(view: View) -> View:
        first_line, _, rest = inspect.cleandoc(summary or view.__doc__ or "").partition("\n")
        declaration = RouteDeclaration(
            rule=rule,
            methods=upper,
            scope=scope,
            summary=first_line.strip(),
            description=rest.strip(),
            tag=bp.name,
            body=body,
            query=query,
            returns=returns,
            status=status,
            idempotent=idempotent,
            reads=SAFE_METHODS.issuperset(upper) if reads is None else reads,
            rate_limited=rate_limited,
            # Without a credential no thread waits for a body: only what is read ahead of the thread is accepted.
            max_body=min(max_body, limits.WEB_BODY_AHEAD_BYTES) if scope == "public" else max_body,
            allows_browsers=allows_browsers,
            allows_api_keys=allows_api_keys,
            errors=tuple(errors),
            produces=tuple(produces),
            other_responses=dict(other_responses or {}),
            multipart=multipart,
            hidden=hidden,
            render_error=on_fault,
            more_faults=more_faults,
        )
        parameters = frozenset(inspect.signature(view).parameters)

        @functools.wraps(view)
        def run(**address: Any) -> Any:
            actor: Actor | None = g.actor
            if declaration.reads:
                extensions.set_read_only()
            try:
                if scope not in ("public", "self"):
                    assert actor is not None  # `authenticate` responded with 401 otherwise
                    require_scope(actor, scope)
                arguments = _inputs(declaration, parameters, actor, address)
                if "actor" in parameters:
                    arguments["actor"] = actor
                if idempotent and actor is not None and "HTTP_IDEMPOTENCY_KEY" in request.environ:
                    return run_idempotent(
                        actor, declaration.max_body, lambda: make_response(view(**arguments, **address))
                    )
                return view(**arguments, **address)
            except ApiError as error:
                if on_fault is None or g.face != "person" or error.status >= 500:
                    raise
                extensions.db.session.rollback()
                response: Response = make_response(on_fault(actor, error, **address))
                if response.status_code // 100 != 3:  # a browser follows no address under another status
                    response.status_code = error.status
                response.headers.update(error.headers)
                return response

        run.declaration = declaration  # type: ignore[attr-defined]  # for `declaration_of`
        bp.add_url_rule(
            rule, endpoint or view.__name__, run, methods=list(upper), provide_automatic_options=False
        )
        return run

    return decorate


def declaration_of(app: Flask, endpoint: str | None) -> RouteDeclaration | None:
    """Return the declaration of an endpoint; None for static files, and if there is no route."""
    view = app.view_functions.get(endpoint or "")
    return getattr(view, "declaration", None)


def allowed_methods(face: str) -> list[str]:
    """Return the methods that the URL of this request accepts from an API client, or all methods for a browser."""
    app = application()
    adapter = app.create_url_adapter(request)
    assert adapter is not None  # there is a request
    found = []
    for method in ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"):
        try:
            rule, _ = adapter.match(method=method, return_rule=True)
        except HTTPException:
            continue
        declared = declaration_of(app, rule.endpoint)
        if declared is None or declared.allows_api_keys or face == "person":
            found.append(method)
    return found


def _inputs(
    declared: RouteDeclaration, parameters: frozenset[str], actor: Actor | None, address: dict[str, Any]
) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    # A chunked body has no length: one byte past the limit shows that it is too long.
    request.max_content_length = declared.max_body + 1
    if declared.query is not None:
        query = inputs.read_query(request, declared.query, lenient=g.face == "person")
        if "query" in parameters:
            arguments["query"] = query
    elif request.environ.get("QUERY_STRING") and g.face == "program":
        inputs.read_query(request, inputs.Query, lenient=False)
    if declared.body is not None:
        forms: Sequence[str] = inputs.FORM_TYPES
        if (
            g.actor is not None and g.actor.kind == "key"
        ):  # API clients send JSON, or a file where one is expected
            forms = ("multipart/form-data",) if declared.multipart else ()
        try:
            arguments["body"] = inputs.read_body(request, declared.body, declared.max_body, forms=forms)
        except ApiError as error:
            if declared.more_faults is None or error.code != "validation_error":
                raise
            # The body is parsed again: its first values must be freed, and the frames of the error refer to them.
            error.__traceback__ = error.__context__ = None
            value = inputs.read_values(request, declared.body, forms=forms)
            raise declared.more_faults(actor, error, value, **address) from None
    elif (request.content_length or 0) > declared.max_body:
        text = f"The body has {request.content_length:,} bytes; the maximum is {declared.max_body:,}."
        raise ApiError("payload_too_large", text, {"max_bytes": declared.max_body})
    return arguments


ClientKind = Literal["person", "program"]


def method_not_allowed() -> ApiError:
    """Return 405 with the methods that this URL accepts from the client; 404 if there are none."""
    allowed = allowed_methods(g.face)
    if not allowed:
        return ApiError("not_found", "This page is only available in a browser. Sign in to view it.")
    return ApiError("method_not_allowed", details={"allowed": allowed}, headers={"Allow": ", ".join(allowed)})


def prefers_html() -> bool:
    """Return whether the client prefers HTML to JSON."""
    if "text/html" not in request.environ.get("HTTP_ACCEPT", ""):
        return False
    accepts = request.accept_mimetypes
    return accepts["text/html"] > 0 and accepts["text/html"] >= accepts["application/json"]


def uncounted_result(limit: int = limits.ADDRESS_REQUESTS_PER_MINUTE) -> RateLimitResult:
    """Return the rate limit result of a request that was not counted."""
    now = clock.epoch()
    return RateLimitResult(True, False, limit, limit, now + limits.RATE_WINDOW_SECONDS, b"")
