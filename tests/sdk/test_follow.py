"""Followers: every line once, in order, across breaks, and always an end."""

from __future__ import annotations

import socket

import pytest
import rowsmith
from hypothesis import given
from hypothesis import strategies as st
from rowsmith import error
from rowsmith.follow import Follower, log_line
from rowsmith.wire.events import Event, parse
from rowsmith.wire.retry import Retries

from tests.fakes.listening import Listening
from tests.sdk.conftest import KEY

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b'id: 9\nevent: end\ndata: {"status":"completed","exit_code":0}\n\n'


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def line(number: int, text: str) -> bytes:
    return f"id: {number}\nevent: log\ndata: {text}\n\n".encode()


class Log(Listening):
    """Sends each follower the next piece of a log and disconnects; records the position each follower asked for."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces, self.after = list(pieces), []
        super().__init__()

    def talk(self, peer: socket.socket) -> None:
        result = b""
        while b"\r\n\r\n" not in result:
            result += peer.recv(65_536)
        found = [item for item in result.split(b"\r\n") if item.lower().startswith(b"last-event-id:")]
        self.after.append(found[0].split(b": ")[1].decode() if found else "")
        peer.sendall(self.pieces.pop(0))


@pytest.fixture
def follow():
    servers = []

    def begin(*pieces: bytes, **how: object) -> tuple[Log, Follower]:
        server = Log(*pieces)
        servers.append(server)
        api = rowsmith.Api(KEY, f"http://127.0.0.1:{server.port}", timeout=5)
        api._caller.retries = Retries(sleep=lambda _: None)
        follower = api.runs.follow_log("scn_1", "run_1", **how)
        follower._sleep = lambda _: None
        return server, follower

    yield begin
    for item in servers:
        item.stop()


def test_a_follower_whose_connection_breaks_gets_every_line_once_and_the_end(follow):
    server, follower = follow(
        HEAD + chunk(line(1, "one") + line(2, "two")),  # broken after a whole event
        HEAD + chunk(line(3, "three") + b"id: 4\nevent: log\ndata: fo"),  # within an event
        b"HTTP/1.1 200 OK\r\n",  # within the head
        HEAD + chunk(line(4, "four")) + chunk(END) + b"0\r\n\r\n",
    )
    assert [(item.number, item.text) for item in follower] == [
        (1, "one"),
        (2, "two"),
        (3, "three"),
        (4, "four"),
    ]
    assert server.after == ["", "2", "3", "3"]
    assert follower.end == {"status": "completed", "exit_code": 0}


def test_a_stream_that_is_closed_in_good_order_before_the_end_is_opened_again(follow):
    server, follower = follow(HEAD + chunk(line(1, "one")) + b"0\r\n\r\n", HEAD + chunk(END) + b"0\r\n\r\n")
    assert len(list(follower)) == 1
    assert server.after == ["", "1"]


def test_a_server_that_is_away_for_a_moment_is_waited_for(follow):
    away = b"HTTP/1.1 503 Unavailable\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\n<p/>"
    _, follower = follow(away, HEAD + chunk(END) + b"0\r\n\r\n")
    assert follower.wait()["status"] == "completed"


def test_an_error_is_raised_immediately(follow):
    gone = b'{"error": {"code": "not_found", "message": "", "details": {}}}'
    head = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nConnection: close\r\n"
    _, follower = follow(head + b"Content-Length: %d\r\n\r\n" % len(gone) + gone)
    with pytest.raises(error.NotFound):
        follower.wait()


def test_a_follower_gives_up_after_its_timeout_and_reports_the_error():
    now = [0.0]

    def nobody(last_id: str, silent: float) -> None:
        raise error.ConnectionFailed("connection_failed", message="nobody there")

    follower = Follower(
        nobody, log_line, sleep=lambda wait: now.append(now.pop() + wait), clock=lambda: now[0]
    )
    with pytest.raises(error.ConnectionFailed, match="nobody there"):
        follower.wait()
    assert 120 < now[0] < 140


def test_a_follower_that_is_closed_stops(follow):
    _, follower = follow(HEAD + chunk(line(1, "one") + line(2, "two")))
    with follower:
        assert next(follower).text == "one"
    with pytest.raises(StopIteration):
        next(follower)


TEXTS = st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=["Cs"]), max_size=20)


@given(
    st.lists(TEXTS, max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(1, 7), min_size=1, max_size=40),
)
def test_events_are_the_same_with_any_network_fragmentation(texts, ending, cuts):
    expected = [Event(str(number), "log", text) for number, text in enumerate(texts, 1)]
    raw = (
        "".join(f": a comment\nid: {event.id}\nevent: log\ndata: {event.data}\n\n" for event in expected)
        .replace("\n", ending)
        .encode()
    )
    pieces, at, number = [], 0, 0
    while at < len(raw):
        size = cuts[number % len(cuts)]
        pieces.append(raw[at : at + size])
        at, number = at + size, number + 1
    assert list(parse(pieces)) == expected


def test_data_of_several_lines_is_put_together():
    assert list(parse([b"data: a\ndata: b\n\ndata: cut"])) == [Event("", "message", "a\nb")]
