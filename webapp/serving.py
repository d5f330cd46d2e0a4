"""How gunicorn answers what never reaches the application: in the one error shape, with the headers of every answer.

A request line that is too long, a header that is none, a body in a transfer coding nobody knows: gunicorn refuses
these itself, in HTML. `Worker` refuses them as the application would. A body that is malformed or ends too early is
noticed only while the application reads it, and `Body` tells it so. `gunicorn.conf.py` names the worker.
"""

from __future__ import annotations

import io
import select
from collections.abc import Iterator
from email.utils import formatdate
from http import HTTPStatus
from socket import socket
from ssl import SSLError
from typing import Any, Final

import orjson
from gunicorn import glogging, util
from gunicorn.http import errors, wsgi
from gunicorn.workers.gthread import ThreadWorker

from webapp import limits
from webapp.errors import ApiError
from webapp.views import hooks, identify

_CHUNK: Final = "A chunk of the body is malformed."
_SENTENCES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (errors.InvalidRequestMethod, "The request names no method that HTTP knows."),
    (errors.InvalidHTTPVersion, "This version of HTTP is not spoken here."),
    (errors.InvalidRequestLine, "The request line is not one of HTTP."),
    (errors.InvalidHeaderName, "A header of the request has a name that HTTP does not allow."),
    (errors.ObsoleteFolding, "A header of the request runs over several lines."),
    (errors.InvalidHeader, "A header of the request is malformed, or two of them contradict each other."),
    (errors.InvalidChunkSize, _CHUNK),
    (errors.InvalidChunkExtension, _CHUNK),
    (errors.ChunkMissingTerminator, _CHUNK),
)


_CUT_OFF: Final = "The body ended before it was whole."


class Logger(glogging.Logger):
    """gunicorn's log, through the log of the service: one format, and no secrets."""

    def setup(self, cfg: Any) -> None:
        """Hand everything to the root logger, which `journal.configure` has set up."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Worker(ThreadWorker):
    """gunicorn's threads, with errors in the service's own shape."""

    def load_wsgi(self) -> None:
        """The application, reading its bodies through `Body`."""
        super().load_wsgi()
        application = self.wsgi
        told = (self.cfg.limit_request_fields, self.cfg.limit_request_field_size)

        def reading(environ: dict[str, Any], start_response: Any) -> Any:
            response = getattr(start_response, "__self__", None)
            if type(response) is wsgi.Response:
                response.__class__ = Response  # gunicorn takes a class of one's own for HTTP/2 alone
            if "HTTP_TRANSFER_ENCODING" in environ or "CONTENT_LENGTH" in environ:
                environ["wsgi.input"] = Body(environ["wsgi.input"], environ.get("CONTENT_LENGTH"), told)
            return application(environ, start_response)

        self.wsgi = reading

    def handle(self, conn: Any) -> Any:
        """Answer a connection's requests as long as the next one comes at once.

        gunicorn hands a connection back to its main thread after each answer, which waits for the next request and
        hands it to a thread again: two turns of the interpreter's lock for every call of a program that calls again and
        again. Only while there are threads for all connections, so that none waits for one that is idle.
        """
        kept = super().handle(conn)
        while kept is True and self.alive and self.nr_conns < self.cfg.threads and _next_comes(conn):
            kept = super().handle(conn)
        return kept

    def _keepalive_after(self, conn: Any, keepalive: bool) -> bool:
        """No second answer after the first one where a body that nobody read turns out to be malformed."""
        try:
            return super()._keepalive_after(conn, keepalive)
        except errors.ParseException:
            return False

    def handle_error(self, req: Any, client: socket, addr: Any, exc: BaseException) -> None:
        """Answer for a request that the application never saw, or that broke outside it; the connection closes."""
        error = refusal(exc, self.cfg.limit_request_fields, self.cfg.limit_request_field_size)
        request_id = _request_id(req or getattr(exc, "req", None))
        if error.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log.exception("request %s failed outside the application", request_id)
        else:
            # By kind alone: the line or header may hold a key.
            where = addr[0] if isinstance(addr, tuple) and addr else "a socket"
            self.log.warning("request %s of %s refused: %s", request_id, where, type(exc).__name__)
        try:
            util.write_nonblock(client, answer(error, request_id, secure=self.cfg.is_ssl))
        except Exception:
            self.log.debug("request %s: the refusal could not be sent", request_id)


def _next_comes(conn: Any) -> bool:
    """Whether the next request is there, or comes within KEEPALIVE_STAY_SECONDS."""
    if conn.parser.unreader.buf.getvalue():
        return True  # its beginning was read behind the last one's body
    waiting = select.poll()
    waiting.register(conn.sock, select.POLLIN)
    return bool(waiting.poll(1000 * limits.KEEPALIVE_STAY_SECONDS))


class Response(wsgi.Response):
    """gunicorn's answer, whose head goes out together with the first part of its body.

    gunicorn sends them one after the other: two system calls, each of which lets go of the interpreter's lock, two
    packets, and a caller that wakes up twice.
    """

    def write(self, arg: bytes) -> None:
        """Send a part of the body, the first one with the head before it."""
        if self.headers_sent or len(arg) > limits.HEAD_JOINS_BYTES:
            super().write(arg)
            return
        line, self.sock = self.sock, _Gathered()
        try:
            super().write(arg)
        finally:
            gathered, self.sock = self.sock, line
        line.sendall(b"".join(gathered.parts))


class _Gathered:
    """What a response sends, kept."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def sendall(self, data: bytes) -> None:
        self.parts.append(data)


class Body(io.RawIOBase):
    """A request's body, of which the application learns when it is malformed or shorter than announced.

    `source` is gunicorn's; `announced` the Content-Length, None where the body says itself where it ends;
    `told` is what `refusal` wants to know.
    """

    def __init__(self, source: Any, announced: str | None, told: tuple[int, int]) -> None:
        self._source = source
        self._missing = int(announced or 0)
        self._told = told

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes. Errors: ApiError `invalid_request`, or what else `refusal` says."""
        try:
            data = self._source.read(len(buffer))
        except errors.ParseException as exc:
            raise refusal(exc, *self._told) from None
        except errors.NoMoreData:
            raise ApiError("invalid_request", _CUT_OFF) from None
        self._missing -= len(data)
        if not data and self._missing > 0:
            raise ApiError("invalid_request", _CUT_OFF)
        buffer[: len(data)] = data
        return len(data)


def refusal(exc: BaseException, max_headers: int, max_header_bytes: int) -> ApiError:
    """What gunicorn found, as one of our errors. What is not the caller's doing is `internal_error`."""
    ours = (errors.InvalidResponseHeader, errors.InvalidResponseHeaderName, errors.ConfigurationProblem)
    if isinstance(exc, errors.LimitRequestLine):
        return ApiError("uri_too_long", details={"max_bytes": limits.MAX_REQUEST_LINE_BYTES})
    if isinstance(exc, errors.LimitRequestHeaders):
        details = {"max_headers": max_headers, "max_header_bytes": max_header_bytes}
        return ApiError("headers_too_large", details=details)
    if isinstance(exc, errors.UnsupportedTransferCoding):
        return ApiError(
            "not_implemented", "This transfer coding is not understood here: use chunked, or none."
        )
    if isinstance(exc, errors.ExpectationFailed):
        return ApiError("expectation_failed")
    if isinstance(exc, SSLError):
        return ApiError("https_required")
    if isinstance(exc, errors.ParseException) and not isinstance(exc, ours):
        return ApiError(
            "invalid_request", next((text for kind, text in _SENTENCES if isinstance(exc, kind)), None)
        )
    return ApiError("internal_error")


def answer(error: ApiError, request_id: str, *, secure: bool) -> bytes:
    """An error as the bytes of a whole HTTP/1.1 answer."""
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        error.details["request_id"] = request_id
    body = orjson.dumps(error.as_dict())
    head = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"]
    head += [f"{name}: {value}" for name, value in _headers(len(body), request_id, secure)]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def _headers(length: int, request_id: str, secure: bool) -> Iterator[tuple[str, str]]:
    yield "Date", formatdate(usegmt=True)
    yield "Connection", "close"
    yield "Content-Type", "application/json"
    yield "Content-Length", str(length)
    yield "Cache-Control", "no-store"
    passage = identify.unspent()  # nobody was recognised, so no request was counted
    yield from hooks.common_headers(request_id, hooks.NEWEST_VERSION, passage, secure=secure)
    yield from hooks.SAFETY


def _request_id(req: Any) -> str:
    """The caller's own where its headers were read and it is well formed, else a new one."""
    sent = [value for name, value in getattr(req, "headers", ()) if name == "X-REQUEST-ID"]
    return hooks.request_id(sent[-1] if sent else "")
