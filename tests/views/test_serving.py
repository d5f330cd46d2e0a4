"""What gunicorn refuses by itself looks like everything else the service refuses."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path
from ssl import SSLError

import pytest

from tests.served import by_gunicorn
from webapp import limits, serving
from webapp.web import hooks

EVERY_ANSWER = (
    "X-Request-Id",
    "Api-Version",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    *(name for name, _ in hooks.SECURITY_HEADERS),
)


@dataclass
class Answer:
    """An HTTP/1.1 answer, taken apart."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict:
        return json.loads(self.body)["error"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web") / "log"


@pytest.fixture(scope="module")
def port(log: Path, shared_redis: str) -> Iterator[int]:
    """A web server in a separate process; returns its port."""
    with by_gunicorn(log.parent, shared_redis) as (_, number):
        yield number


@pytest.fixture
def send(port: int) -> Callable[..., Answer]:
    """Send bytes as they are, and read until the server hangs up."""

    def speak(*pieces: bytes) -> Answer:
        with socket.create_connection(("127.0.0.1", port), 30) as wire:
            wire.sendall(b"".join(pieces))
            wire.shutdown(socket.SHUT_WR)
            result = b""
            while more := wire.recv(65_536):
                result += more
        head, _, body = result.partition(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        headers = BytesParser().parsebytes(rest, headersonly=True)
        assert len(headers.keys()) == len(set(headers.keys())), "a header came twice"
        return Answer(int(line.split()[1]), dict(headers.items()), body)

    return speak


GET = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "request_", [GET + b"\r\n", b"broken\r\n\r\n", GET + b"X: " + b"x" * 70_000 + b"\r\n\r\n"]
)
def test_no_answer_names_the_server_software(send, request_):
    answer = send(request_)
    assert "Server" not in answer.headers
    assert b"gunicorn" not in answer.body


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"GET /" + b"a" * limits.MAX_REQUEST_LINE_BYTES + b" HTTP/1.1\r\n\r\n", 414, "uri_too_long"),
        (GET + b"X-Long: " + b"a" * 9_000 + b"\r\n\r\n", 431, "headers_too_large"),
        (GET + b"".join(b"X-%d: 1\r\n" % n for n in range(200)) + b"\r\n", 431, "headers_too_large"),
        (b"nonsense\r\n\r\n", 400, "invalid_request"),
        (b"GET / HTTP/7\r\n\r\n", 400, "invalid_request"),
        (b"G{} / HTTP/1.1\r\n\r\n", 400, "invalid_request"),
        (GET + b"no header\r\n\r\n", 400, "invalid_request"),
        (GET + b"X Y: 1\r\n\r\n", 400, "invalid_request"),
        (GET + b"X: 1\r\n and on\r\n\r\n", 400, "invalid_request"),
        (POST + b"Content-Length: x\r\n\r\n", 400, "invalid_request"),
        (POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "invalid_request"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n", 400, "invalid_request"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n9\r\n{}", 400, "invalid_request"),
        (POST + b"Content-Length: 9\r\n\r\n{}", 400, "invalid_request"),
        (GET + b"Expect: a miracle\r\n\r\n", 417, "expectation_failed"),
        (POST + b"Transfer-Encoding: br\r\n\r\n", 501, "not_implemented"),
    ],
    ids=lambda value: value[:24].decode() if isinstance(value, bytes) else None,
)
def test_an_invalid_request_is_rejected_in_the_common_format(send, log, sent, status, code):
    answer = send(sent)
    assert (answer.status, answer.error["code"]) == (status, code), answer
    assert list(json.loads(answer.body)) == ["error"]
    assert sorted(answer.error) == ["code", "details", "message"]
    assert answer.headers["Content-Type"] == "application/json"
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert answer.headers["Cache-Control"] == "no-store"
    for name in EVERY_ANSWER:
        assert answer.headers[name], name
    assert answer.headers["X-Request-Id"].startswith("req_")
    if status >= 500:
        assert answer.error["details"]["request_id"] == answer.headers["X-Request-Id"]
    assert "Traceback" not in log.read_text()


def test_the_longest_request_line_is_taken(send):
    line = b"GET /health/live?q=%s HTTP/1.1"
    fill = b"a" * (limits.MAX_REQUEST_LINE_BYTES - len(line) + 2)
    end = b"\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    assert send(line % fill, end).error["code"] == "invalid_request"  # that query parameter does not exist
    assert send(line % (fill + b"a"), end).error["code"] == "uri_too_long"


def test_a_rejection_closes_the_connection_and_announces_it(send):
    answer = send(b"nonsense\r\n\r\n", GET, b"\r\n")
    assert answer.headers["Connection"] == "close"
    assert len(answer.body) == int(answer.headers["Content-Length"]), "nothing came after it"


def test_an_unread_malformed_body_gets_one_response(send):
    answer = send(
        b"POST /teams HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n\r\n"
    )
    assert (answer.status, answer.error["code"]) == (401, "unauthenticated")
    assert len(answer.body) == int(answer.headers["Content-Length"]), "nothing came after it"


def test_a_body_in_chunks_is_read(send):
    answer = send(POST, b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
    assert (answer.status, answer.error["code"]) == (422, "validation_error")


def test_request_data_stay_out_of_the_log(send, log):
    send(b"GET /?token=hush hush HTTP/1.1\r\n\r\n")
    send(GET, b"Authorization: Bearer\x00hush\r\n\r\n")
    assert "hush" not in log.read_text()


def test_a_request_that_is_one_is_answered_by_the_application(send):
    answer = send(GET, b"Connection: close\r\nX-Request-Id: mine\r\n\r\n")
    assert (answer.status, answer.headers["X-Request-Id"]) == (200, "mine")


def test_errors_not_caused_by_the_client_are_500():
    for mistake in (RuntimeError("x"), serving.errors.InvalidResponseHeader("x")):
        assert serving.parser_error_to_api_error(mistake, 100, 8_190).code == "internal_error"


def test_plain_http_on_a_port_of_tls_is_https_required():
    assert serving.parser_error_to_api_error(SSLError("http request"), 100, 8_190).code == "https_required"


def test_over_tls_a_refusal_carries_hsts():
    result = serving.render_error_response(serving.ApiError("uri_too_long"), "req_x", secure=True).decode()
    assert f"\r\nStrict-Transport-Security: max-age={limits.HSTS_SECONDS}" in result
    assert (
        "Strict"
        not in serving.render_error_response(serving.ApiError("uri_too_long"), "req_x", secure=False).decode()
    )
