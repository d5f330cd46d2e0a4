"""Promise 29. Attacks by clients that send or receive slowly: none of them holds a thread that others need."""

from __future__ import annotations

import json
import random
import select
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import ParseException
from gunicorn.http.parser import RequestParser
from hypothesis import given
from hypothesis import strategies as st

from tests.cast import Cast
from tests.fakes.certificates import Authority
from tests.served import by_gunicorn
from webapp import limits
from webapp.client_connection import ChunkedBodyScanner, client_address

THREADS = 4
GET = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
EVERYONE_ELSE = "127.0.0.2"

HALF_REQUESTS = {
    "half a request line": b"GET /health",
    "half a header": GET + b"X-A: ",
    "half a body": POST + b"Content-Length: 100000\r\n\r\n{",
    "half a body, with an API key": POST + b"Authorization: Bearer rws_x\r\nContent-Length: 100000\r\n\r\n{",
    "half a chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n400\r\n{",
    "a chunk without its successor": POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    "half a trailer": POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: ",
    "headers, waiting for 100 Continue": POST + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n",
    "half of a second request": GET + b"\r\n" + GET,
}


class Answer(NamedTuple):
    status: int
    head: bytes
    body: bytes

    @property
    def code(self) -> str:
        return json.loads(self.body)["error"]["code"]


def parse(data: bytes) -> Answer:
    """The last answer in what a server sent."""
    head, _, body = data[data.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    return Answer(int(head.split()[1]), head, body)


def until_closed(wire: socket.socket) -> bytes:
    data = b""
    try:
        while more := wire.recv(65_536):
            data += more
    except ConnectionResetError:
        pass
    return data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slow")


@pytest.fixture(scope="module")
def port(folder: Path, shared_redis: str, peopled: tuple[Path, Cast]) -> Iterator[int]:
    """A server of one process, few threads, and short deadlines."""
    shutil.copyfile(peopled[0], folder / "rowsmith.db")
    config = "tests/short_deadlines.py"
    with by_gunicorn(folder, shared_redis, config, ROWSMITH_WEB_THREADS=str(THREADS)) as (_, number):
        yield number


@pytest.fixture(scope="module")
def with_key(peopled: tuple[Path, Cast]) -> bytes:
    """The head of a request that may have a large body, but for its length."""
    head = b"POST /preview HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return head + b"Authorization: Bearer %s\r\n" % peopled[1].edith.key.encode()


@pytest.fixture
def connect(port: int) -> Iterator[Callable[..., socket.socket]]:
    with ExitStack() as open_ones:

        def make(data: bytes = b"", address: str = "127.0.0.1") -> socket.socket:
            wire = socket.create_connection(("127.0.0.1", port), 30, (address, 0))
            open_ones.enter_context(wire)
            wire.sendall(data)
            return wire

        yield make


def live(port: int, address: str = EVERYONE_ELSE) -> float:
    """How long a health check takes for a client at another address, in seconds."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 10, (address, 0)) as wire:
        wire.sendall(GET + b"Connection: close\r\n\r\n")
        assert parse(until_closed(wire)).status == 200
    return time.monotonic() - begun


@pytest.mark.parametrize("half", HALF_REQUESTS.values(), ids=HALF_REQUESTS)
def test_half_requests_leave_the_service_reachable_and_are_closed(port, connect, half):
    wires = [connect(half) for _ in range(5 * THREADS)]
    for address in (EVERYONE_ELSE, "127.0.0.1"):
        assert live(port, address) < 5  # without a free thread it would take until the deadlines
    answers = [parse(until_closed(wire)) for wire in wires]
    assert {(answer.status, answer.code) for answer in answers} <= {
        (408, "request_timeout"),
        (429, "rate_limited"),
    }
    assert all(b"Connection: close" in answer.head for answer in answers)
    assert all(b"X-Request-Id: req_" in answer.head for answer in answers)


def test_a_half_request_gets_request_timeout(connect):
    assert parse(until_closed(connect(GET + b"X-A: "))).code == "request_timeout"


def test_connections_that_send_nothing_are_closed_without_an_answer(port, connect):
    wires = [connect() for _ in range(5 * THREADS)]
    assert live(port) < 5
    assert {until_closed(wire) for wire in wires} == {b""}


@pytest.mark.parametrize(
    "half", [GET + b"X-A: ", POST + b"Content-Length: 100000\r\n\r\n"], ids=["header", "body"]
)
def test_one_byte_at_a_time_is_too_slow(port, connect, half):
    wires = [connect(half) for _ in range(3 * THREADS)]
    ended: list[bytes] = []

    def trickle(wire: socket.socket) -> None:
        try:
            while not select.select([wire], [], [], 0.2)[0]:
                wire.sendall(b"a")
        except (BrokenPipeError, ConnectionResetError):
            pass
        ended.append(until_closed(wire))

    threads = [threading.Thread(target=trickle, args=[wire]) for wire in wires]
    for thread in threads:
        thread.start()
    assert live(port) < 5
    for thread in threads:
        thread.join(30)
    assert [parse(data).code for data in ended] == ["request_timeout"] * len(wires)


def test_unfinished_requests_of_one_address_are_limited(port, connect):
    wires = [connect(GET + b"X-A: ") for _ in range(40)]
    answers = [parse(until_closed(wire)) for wire in wires]
    refused = [answer for answer in answers if answer.status == 429]
    assert len(refused) == 40 - 16
    assert refused[0].code == "rate_limited"
    assert b"Retry-After: " in refused[0].head


def test_more_connections_than_the_server_takes_leave_room_for_others(port, connect):
    wires = [connect(GET + b"X-A: ") for _ in range(150)]
    idle = [connect(GET + b"\r\n") for _ in range(150)]
    for _ in range(5):
        assert live(port) < 5
    assert len(wires) + len(idle) > 60


def test_immediately_closed_connections_are_forgotten(port):
    for _ in range(300):
        socket.create_connection(("127.0.0.1", port), 10).close()
    assert live(port) < 5


def test_requests_cut_off_in_the_middle_are_forgotten(port, connect):
    for _ in range(100):
        wire = connect(POST + b"Content-Length: 100\r\n\r\n{")
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closes with a reset
        wire.close()
    assert live(port) < 5


def test_rejected_clients_that_stay_connected_do_not_delay_others(port, connect):
    """gunicorn waits up to 2 s in its main thread for each of them to close."""
    for _ in range(20):
        connect(b"nonsense\r\n\r\n")
    assert live(port) < 5


def test_clients_that_do_not_read_their_answers_hold_no_thread(port, connect):
    def never_reads() -> socket.socket:
        wire = socket.socket()
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        wire.connect(("127.0.0.1", port))
        wire.sendall((b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") * 20)
        return wire

    wires = [never_reads() for _ in range(4 * THREADS)]
    for _ in range(3):
        assert live(port) < 5
    for wire in wires:
        wire.close()


LARGE = b'{"fields": [{"name": "%s", "type": "row_number"}]}' % (b"a" * 3_000_000)


def test_a_body_larger_than_is_read_ahead_is_received(connect, with_key):
    head = with_key + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(LARGE)
    assert parse(until_closed(connect(head + LARGE))).code == "validation_error"
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (LARGE[:1_500_000], LARGE[1_500_000:]))
    head = with_key + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert parse(until_closed(connect(head + chunks + b"0\r\n\r\n"))).code == "validation_error"


def test_a_slow_body_at_the_least_speed_is_received(connect, with_key):
    wire = connect(with_key + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(LARGE))
    for start in range(0, len(LARGE), 300_000):
        wire.sendall(LARGE[start : start + 300_000])
        time.sleep(0.4)  # the whole body takes twice as long as the window
    assert parse(until_closed(wire)).code == "validation_error"


def test_large_bodies_that_stop_are_closed_and_hold_few_threads(port, connect, with_key):
    head = with_key + b"Content-Length: 9000000\r\n\r\n"
    wires = [connect(head + b" " * (limits.WEB_BODY_AHEAD_BYTES + 1)) for _ in range(3 * THREADS)]
    for _ in range(3):
        assert live(port) < 5
    codes = {parse(until_closed(wire)).code for wire in wires}
    assert codes <= {"request_timeout", "unavailable"}
    assert "request_timeout" in codes


def test_without_a_credential_no_thread_waits_for_a_large_body(port, connect):
    begun = time.monotonic()
    for head in (POST, POST.replace(b"/sign-in", b"/preview")):
        sent = head + b"Content-Length: 9000000\r\n\r\n" + b" " * (limits.WEB_BODY_AHEAD_BYTES + 1)
        wires = [connect(sent) for _ in range(2 * THREADS)]
        assert {parse(until_closed(wire)).code for wire in wires} <= {"payload_too_large", "unauthenticated"}
    assert time.monotonic() - begun < 2 * limits.WEB_LINGER_SECONDS + 10


@pytest.mark.parametrize(("path", "status"), [(b"/fails", 500), (b"/header", 500), (b"/fails-later", 200)])
def test_an_error_outside_the_application_ends_the_request_and_not_the_process(port, connect, path, status):
    data = until_closed(connect(GET.replace(b"/health/live", path) + b"\r\n"))
    assert parse(data).status == status
    if status == 500:
        assert parse(data).code == "internal_error"
        assert b"RuntimeError" not in data
    else:
        assert not data.endswith(b"0\r\n\r\n")  # the client sees that the answer is not whole
    assert live(port) < 5


def test_a_body_larger_than_any_route_accepts_is_rejected_by_its_length(connect):
    answer = parse(until_closed(connect(POST + b"Content-Length: 99999999999\r\n\r\n")))
    assert (answer.status, answer.code) == (413, "payload_too_large")
    assert b"Connection: close" in answer.head


def test_expect_100_continue_is_answered_once(connect):
    wire = connect(POST + b"Expect: 100-Continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n")
    assert wire.recv(1_000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    wire.sendall(b"{}")
    data = until_closed(wire)
    assert data.count(b"HTTP/1.1 ") == 1
    assert parse(data).code == "validation_error"


def test_expect_100_continue_of_a_large_body_is_answered(connect, with_key):
    wire = connect(with_key + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n")
    assert wire.recv(1_000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    wire.sendall(b"{}" + b" " * 999_998)
    assert parse(until_closed(wire)).code == "validation_error"


def test_a_large_body_without_a_valid_key_is_rejected_before_it_is_sent(connect):
    head = b"POST /preview HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nContent-Length: 9000000\r\n\r\n"
    answer = parse(until_closed(connect(head)))
    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert b"Connection: close" in answer.head


def test_an_http_1_0_client_gets_no_100_continue(connect):
    wire = connect(POST.replace(b"1.1", b"1.0") + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    time.sleep(0.2)
    wire.sendall(b"{}")
    data = until_closed(wire)
    assert b"100 Continue" not in data
    assert b" 422 " in data


@pytest.mark.parametrize(
    "sent",
    [
        POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET + b"\r\n",
        POST + b"Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}" + GET + b"\r\n",
        POST + b"Content-Length: 2, 2\r\n\r\n{}" + GET + b"\r\n",
        POST + b"Content-Length: +2\r\n\r\n{}" + GET + b"\r\n",
        POST + b"Content-Length : 2\r\n\r\n{}" + GET + b"\r\n",
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + GET + b"\r\n",
        POST + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n" + GET + b"\r\n",
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET + b"\r\n",
        POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + GET + b"\r\n",
        POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET + b"\r\n",
        b"GET /health/live HTTP/1.1\nHost: 127.0.0.1\n\n" + GET + b"\r\n",
        GET + b"X: 1\n\r\n" + GET + b"\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_ambiguous_requests_are_rejected_immediately_and_following_data_is_ignored(connect, sent):
    begun = time.monotonic()
    wire = connect(sent)
    data = until_closed(wire)
    assert data.count(b"HTTP/1.") == 1
    assert parse(data.replace(b"HTTP/1.0", b"HTTP/1.1")).status == 400
    assert time.monotonic() - begun < limits.WEB_HEAD_SECONDS


def test_a_request_in_single_bytes_is_answered(connect):
    wire = connect()
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sent = POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: 1\r\n\r\n"
    for byte in sent:
        wire.sendall(bytes([byte]))
    assert parse(until_closed(wire)).code == "validation_error"


def test_headers_up_to_the_maximum_size_are_accepted_and_larger_ones_rejected(connect):
    def request(size: int) -> bytes:
        head = GET + b"Connection: close\r\n"
        while len(head) + 8_000 < size:
            head += b"X-%d: %s\r\n" % (len(head), b"a" * 7_000)
        head += b"X: "
        return head + b"a" * (size - len(head)) + b"\r\n\r\n"

    assert parse(until_closed(connect(request(limits.MAX_HEADERS_BYTES)))).status == 200
    answer = parse(until_closed(connect(request(limits.MAX_HEADERS_BYTES + 1))))
    assert (answer.status, answer.code) == (431, "headers_too_large")
    answer = parse(until_closed(connect(request(2 * limits.MAX_HEADERS_BYTES)[:-4])))
    assert (answer.status, answer.code) == (431, "headers_too_large")


def test_pipelined_requests_with_bodies_are_answered_in_order(connect):
    each = [
        POST + b"X-Request-Id: n0\r\nContent-Length: 2\r\n\r\n{}",
        POST + b"X-Request-Id: n1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        POST + b"X-Request-Id: n2\r\nContent-Length: 200000\r\n\r\n" + b" " * 199_998 + b"{}",
        GET + b"X-Request-Id: n3\r\nConnection: close\r\n\r\n",
    ]
    data = until_closed(connect(b"".join(each)))
    assert [data.count(b"X-Request-Id: n%d\r\n" % number) for number in range(4)] == [1] * 4
    assert [data.index(b"n%d\r\n" % number) for number in range(4)] == sorted(
        data.index(b"n%d\r\n" % number) for number in range(4)
    )


def test_the_server_does_not_reveal_its_software(connect):
    trace = b"TRACE / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Secret: back\r\n\r\n"
    for sent in (GET + b"Connection: close\r\n\r\n", b"nonsense\r\n\r\n", trace):
        wire = connect(sent)
        wire.shutdown(socket.SHUT_WR)
        data = until_closed(wire).lower()
        assert data.startswith(b"http/1.1 ")
        assert b"server:" not in data
        assert b"gunicorn" not in data
        assert b"back" not in data


def test_none_of_these_was_a_server_error(port, folder):
    assert live(port) < 5
    log = (folder / "log").read_text()
    assert log.count("Traceback") == log.count("failed outside the application") + log.count(
        "ZeroDivisionError"
    )
    assert log.count("Booting worker") == 1


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, shared_redis: str
) -> Iterator[tuple[int, ssl.SSLContext]]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder)
    authority.server("127.0.0.1")
    [both] = [file for file in folder.glob("*.pem") if file != authority.file]
    trusting = ssl.create_default_context(cafile=authority.file)
    settings = {"TLS_CERT": str(both), "TLS_KEY": str(both), "ROWSMITH_WEB_THREADS": str(THREADS)}
    with by_gunicorn(folder, shared_redis, "tests/short_deadlines.py", **settings) as (_, number):
        yield number, trusting


class TestOverTls:
    """The same with TLS, whose handshake is part of the deadline."""

    @contextmanager
    def wrapped(self, server, address: str = "127.0.0.1"):
        port, context = server
        with (
            socket.create_connection(("127.0.0.1", port), 30, (address, 0)) as raw,
            context.wrap_socket(raw, server_hostname="127.0.0.1", suppress_ragged_eofs=True) as wire,
        ):
            yield wire

    def live(self, server) -> float:
        begun = time.monotonic()
        with self.wrapped(server, EVERYONE_ELSE) as wire:
            wire.sendall(GET + b"Connection: close\r\n\r\n")
            assert parse(until_closed(wire)).status == 200
        return time.monotonic() - begun

    @pytest.mark.parametrize(
        "sent", [b"", b"\x16\x03\x01", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaa"]
    )
    def test_half_handshakes_leave_the_service_reachable_and_are_closed(self, server, sent):
        with ExitStack() as stack:
            wires = []
            for _ in range(5 * THREADS):
                wire = stack.enter_context(socket.create_connection(("127.0.0.1", server[0]), 30))
                wire.sendall(sent)
                wires.append(wire)
            assert self.live(server) < 5
            assert {until_closed(wire) for wire in wires} == {b""}

    def test_half_requests_get_request_timeout(self, server):
        with ExitStack() as stack:
            wires = [stack.enter_context(self.wrapped(server)) for _ in range(2 * THREADS)]
            for wire in wires:
                wire.sendall(POST + b"Content-Length: 100\r\n\r\n{")
            assert self.live(server) < 5
            assert {parse(until_closed(wire)).code for wire in wires} == {"request_timeout"}

    def test_requests_are_answered_on_one_connection(self, server):
        with self.wrapped(server) as wire:
            wire.sendall((GET + b"\r\n") * 3 + POST + b"Content-Length: 200000\r\n\r\n" + b" " * 200_000)
            wire.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            data = until_closed(wire)
        assert data.count(b"HTTP/1.1 200 OK\r\n") == 4
        assert data.count(b"HTTP/1.1 4") == 1

    def test_plain_http_clients_are_told_to_use_https(self, server):
        with socket.create_connection(("127.0.0.1", server[0]), 30) as wire:
            wire.sendall(GET + b"\r\n")
            assert parse(until_closed(wire)).code == "https_required"


def test_clients_are_counted_by_ipv4_address_and_ipv6_network():
    assert client_address(("10.1.2.3", 1)) == "10.1.2.3"
    assert client_address(("::ffff:10.1.2.3", 1, 0, 0)) == "10.1.2.3"
    assert (
        client_address(("2001:db8::1", 1, 0, 0))
        == client_address(("2001:db8::ffff:2", 1, 0, 0))
        == "2001:db8::/64"
    )
    assert client_address("") == client_address(b"") == ""


class Starved(Exception):
    """The parser reads on although everything has been read."""


LINES = st.sampled_from(
    [
        b"0\r\n",
        b"1\r\n",
        b"2;a=b\r\n",
        b"a \r\n",
        b"\r\n",
        b"x",
        b"ab",
        b"\n",
        b"\r",
        b"X: 1\r\n",
        b"0;\r\n",
        b"00\r\n",
    ]
)


@given(st.lists(LINES, max_size=12), st.randoms(use_true_random=False))
def test_the_end_of_a_chunked_body_is_where_the_parser_sees_it(pieces, chance: random.Random):
    """Where `ChunkedBodyScanner` finds an end, the parser reads no further; where it finds none, the body is not
    whole."""
    body, end, received = b"".join(pieces), ChunkedBodyScanner(0), bytearray()
    found = False
    while body and not found:
        size = chance.randint(1, len(body))
        received += body[:size]
        body = body[size:]
        found = end.has_end(received)
    config = Config()
    config.set("http_parser", "python")

    def sent() -> Iterator[bytes]:
        yield b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        if received:
            yield bytes(received)
        raise Starved

    request = next(RequestParser(config, sent(), ("127.0.0.1", 1)))
    try:
        while request.body.read(1_000):
            pass
        outcome = "whole"
    except Starved:
        outcome = "wants more"
    except ParseException:
        outcome = "malformed"
    # A malformed body may be incomplete at first; the parser reports it with the next part.
    assert outcome in (("whole", "malformed") if found else ("wants more", "malformed")), (received, body)
