"""How a route is declared, and what is done for it before its function is called.

    @route(bp, "/things", ["POST"], scope="write", body=ThingIn, returns=ThingOut, status=201, idempotent=True)
    def create(actor: Actor, body: ThingIn) -> ResponseReturnValue:
        return reply(things.create(actor, body), status=201)

The function gets what it names and its declaration gives: `actor`, `body`, `query`, and the parts of the address.
From the declaration come the authorisation, the checks of body and query, Idempotency-Key, the line in
`/openapi.json` and the line the access matrix of the tests demands.
"""

from __future__ import annotations

import functools
import inspect
import select
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import redis
from flask import Blueprint, Flask, Response, current_app, g, make_response, request
from pydantic import BaseModel
from werkzeug.exceptions import HTTPException

from webapp import extensions, limits
from webapp.accounts.actors import PROJECT_SCOPES, WORKSPACE_SCOPES, Actor, require
from webapp.errors import ApiError
from webapp.web import idempotency, inputs

# `public`: no credential. `self`: anybody recognised. The rest as in services.actors.
SCOPES: Final = frozenset({"public", "self", *PROJECT_SCOPES, *WORKSPACE_SCOPES})
READING: Final = frozenset({"GET", "HEAD"})
View = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a route says about itself.

    `reads`: writes nothing although it is a POST (preview), so it takes no writers' lock. `counted`: spends a
    request (health and static do not). `with_rows`: a known key's request is counted with its rows, when the view
    reserves them, and nothing else is done for its caller before (see `identity.Entry`). `people`: a browser session
    may use it; `programs`: an API key may. `on_fault(actor, error, **address)` draws a person's form again with its
    faults. `more_faults(actor, error, sent, **address)` returns the error of a body with what else is wrong with it.
    `produces` lists other content types than JSON, for the documentation; `also` what other statuses of
    success answer; `multipart` is the JSON Schema of the parts of a multipart/form-data body, which the view reads.
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
    counted: bool
    with_rows: bool
    max_body: int
    people: bool
    programs: bool
    errors: tuple[str, ...]
    produces: tuple[str, ...]
    also: Mapping[int, Any]
    multipart: Mapping[str, Any] | None
    hidden: bool
    on_fault: Callable[..., Any] | None
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
    counted: bool = True,
    with_rows: bool = False,
    max_body: int = limits.MAX_BODY_BYTES,
    people: bool = True,
    programs: bool = True,
    errors: Sequence[str] = (),
    produces: Sequence[str] = (),
    also: Mapping[int, Any] | None = None,
    multipart: Mapping[str, Any] | None = None,
    hidden: bool = False,
    on_fault: Callable[..., Any] | None = None,
    more_faults: Callable[..., ApiError] | None = None,
    endpoint: str | None = None,
    summary: str | None = None,
) -> Callable[[View], View]:
    """Declare a view. `errors` lists codes beyond those every route can answer, for the documentation.

    `hidden` keeps a page for people out of /openapi.json. `summary` stands for the view's docstring, where one
    function serves several kinds of object. See `Declaration` for the rest.
    """
    if scope not in SCOPES:
        raise ValueError(f"unknown scope {scope!r}")
    upper = tuple(method.upper() for method in methods)

    def decorate(view: View) -> View:
        told, _, rest = inspect.cleandoc(summary or view.__doc__ or "").partition("\n")
        declaration = Declaration(
            rule=rule,
            methods=upper,
            scope=scope,
            summary=told.strip(),
            description=rest.strip(),
            tag=bp.name,
            body=body,
            query=query,
            returns=returns,
            status=status,
            idempotent=idempotent,
            reads=READING.issuperset(upper) if reads is None else reads,
            counted=counted,
            with_rows=with_rows,
            # Without a credential nobody has a thread wait for a body: this much of one arrives before it is bound.
            max_body=min(max_body, limits.WEB_BODY_AHEAD_BYTES) if scope == "public" else max_body,
            people=people,
            programs=programs,
            errors=tuple(errors),
            produces=tuple(produces),
            also=dict(also or {}),
            multipart=multipart,
            hidden=hidden,
            on_fault=on_fault,
            more_faults=more_faults,
        )
        wanted = frozenset(inspect.signature(view).parameters)

        @functools.wraps(view)
        def run(**address: Any) -> Any:
            return _run(declaration, view, wanted, address)

        run.declaration = declaration  # type: ignore[attr-defined]
        bp.add_url_rule(
            rule, endpoint or view.__name__, run, methods=list(upper), provide_automatic_options=False
        )
        return run

    return decorate


def declaration_of(app: Flask, endpoint: str | None) -> Declaration | None:
    """The declaration of an endpoint; None for static files and for no route at all."""
    view = app.view_functions.get(endpoint or "")
    return getattr(view, "declaration", None)


def methods_here(face: str) -> list[str]:
    """The methods that the address of this request takes from a program, or from anybody for a person."""
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    adapter = app.create_url_adapter(request)
    found = []
    for method in ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"):
        try:
            rule, _ = adapter.match(method=method, return_rule=True)
        except HTTPException:
            continue
        declared = declaration_of(app, rule.endpoint)
        if declared is None or declared.programs or face == "person":
            found.append(method)
    return found


def _run(declared: Declaration, view: View, wanted: frozenset[str], address: dict[str, Any]) -> Any:
    entry = g.actor.entry if g.actor is not None else None
    if entry is None:
        return _answer(declared, view, wanted, address)
    try:
        made = _answer(declared, view, wanted, address)
        if entry.passage is not None:
            return made
    except redis.RedisError:  # it may have been counted
        raise
    except Exception:
        if entry.passage is not None:
            raise
    finally:
        g.passage = entry.passage
    # It ended before it was counted, and so before it did anything: whatever was wrong is told in the usual order.
    extensions.db.session.rollback()
    g.begin_anew()
    return _answer(declared, view, wanted, address)


def _answer(declared: Declaration, view: View, wanted: frozenset[str], address: dict[str, Any]) -> Any:
    actor: Actor | None = g.actor
    if declared.reads:
        extensions.only_reads()
    try:
        if declared.scope not in ("public", "self"):
            assert actor is not None  # identify answered 401 otherwise
            require(actor, declared.scope)
        given = _inputs(declared, wanted, actor, address)
        if "actor" in wanted:
            given["actor"] = actor

        def act() -> Any:
            return view(**given, **address)

        if declared.idempotent and actor is not None and "HTTP_IDEMPOTENCY_KEY" in request.environ:
            return idempotency.once(actor, declared.max_body, lambda: make_response(act()))
        return act()
    except ApiError as error:
        if declared.on_fault is None or g.face != "person" or error.status >= 500:
            raise
        extensions.db.session.rollback()
        response: Response = make_response(declared.on_fault(actor, error, **address))
        if response.status_code // 100 != 3:  # a browser follows no address under another status
            response.status_code = error.status
        response.headers.update(error.headers)
        return response


def _inputs(
    declared: Declaration, wanted: frozenset[str], actor: Actor | None, address: dict[str, Any]
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    # A body in chunks tells no length: one byte past the limit shows that it is too long.
    request.max_content_length = declared.max_body + 1
    if declared.query is not None:
        query = inputs.read_query(request, declared.query, lenient=g.face == "person")
        if "query" in wanted:
            given["query"] = query
    elif request.environ.get("QUERY_STRING") and g.face == "program":
        inputs.read_query(request, inputs.Query, lenient=False)
    if declared.body is not None:
        forms: Sequence[str] = inputs.FORM_TYPES
        if (
            g.actor is not None and g.actor.kind == "key"
        ):  # a program sends JSON, or a file where one is expected
            forms = ("multipart/form-data",) if declared.multipart else ()
        try:
            given["body"] = inputs.read_body(request, declared.body, declared.max_body, forms=forms)
        except ApiError as error:
            if declared.more_faults is None or error.code != "validation_error" or request.mimetype in forms:
                raise
            raise declared.more_faults(
                actor, error, inputs.read_json(request.get_data()), **address
            ) from None
    elif (request.content_length or 0) > declared.max_body:
        text = f"The body has {request.content_length:,} bytes; at most {declared.max_body:,} are taken here."
        raise ApiError("payload_too_large", text, {"max_bytes": declared.max_body})
    return given


Face = Literal["person", "program"]


# Places for callers who stay: followers of streams of events, and those who wait for the end of a run.
#
# Each of them holds a thread of a web process. A process gives away all threads but WEB_FREE_THREADS, so that however
# many follow, everybody else is answered at once.

_SEATS: Final = "rowsmith.seats"
STOPPING: Final = "rowsmith.stopping"  # an extension: says whether this web process is asked to end
# Linux tells of a caller that has gone; elsewhere the next thing sent to it does.
_HANG_UP: Final = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


class Seats:
    """So many places, taken and left by any thread."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Whether there was a free one, which is now the caller's."""
        with self._lock:
            if self.taken >= self.most:
                return False
            self.taken += 1
            return True

    def leave(self) -> None:
        """Give one back."""
        with self._lock:
            self.taken -= 1


def of(app: Flask) -> Seats:
    """The places of this web process."""
    found = app.extensions.get(_SEATS)
    if found is None:
        threads = app.config["SETTINGS"].web_threads
        most = max(threads - limits.WEB_FREE_THREADS, threads // 2, 1)
        found = app.extensions.setdefault(_SEATS, Seats(most))
    return cast(Seats, found)


def stream(pieces: Iterator[bytes], left: Callable[[], None] = lambda: None) -> Response:
    """A stream of events as an answer, in a place of its own; `left` is called once it has ended, however it does.
    Error: unavailable with Retry-After, when every place is taken."""
    seats = of(current_app._get_current_object())  # type: ignore[attr-defined]
    if not seats.take():
        left()
        raise full()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Response(_Held(pieces, left, seats), mimetype="text/event-stream", headers=headers)


def full() -> ApiError:
    """Every place is taken."""
    wait = limits.FOLLOW_RETRY_SECONDS
    told = "As many follow here as can. Come again in a moment; Last-Event-ID goes on where you were."
    return ApiError("unavailable", told, {"retry_after": wait}, headers={"Retry-After": str(wait)})


class _Held:
    """Pieces of an answer; its place is left when it is closed, also when nobody ever asked for a piece."""

    def __init__(self, pieces: Iterator[bytes], left: Callable[[], None], seats: Seats) -> None:
        self._pieces, self._left, self._seats = pieces, left, seats
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        """The pieces."""
        return self

    def __next__(self) -> bytes:
        """The next one. The place is left with the last."""
        try:
            return next(self._pieces)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave. Doing it twice changes nothing."""
        if self._closed:
            return
        self._closed = True
        close = getattr(self._pieces, "close", None)
        try:
            if close is not None:
                close()
            self._left()
        finally:
            self._seats.leave()


def presence() -> Callable[[], bool]:
    """A question to ask now and then: whether the caller of the present request is still there and the process is not
    asked to end."""
    stopping = current_app.extensions.get(STOPPING)
    gone = _gone(request.environ.get("gunicorn.socket"))
    return lambda: not (gone() or (stopping is not None and stopping()))


def _gone(socket: Any) -> Callable[[], bool]:
    if socket is None:
        return lambda: False
    poll = select.poll()
    poll.register(socket, getattr(select, "POLLRDHUP", 0))  # the other two are always told

    def ask() -> bool:
        return any(event & _HANG_UP for _, event in poll.poll(0))

    return ask
