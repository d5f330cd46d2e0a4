"""Keep-alive connections: requests are answered in order, and an open connection does not block others."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.jobs.waiting import eventually
from tests.served import by_gunicorn
from webapp import limits

THREADS = 3
GET = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def serving(folder: Path, redis_url: str) -> AbstractContextManager[tuple[subprocess.Popen[bytes], int]]:
    """A web server of one process with few threads; its process and port."""
    return by_gunicorn(folder, redis_url, ROWSMITH_WEB_THREADS=str(THREADS))


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory, shared_redis: str) -> Iterator[int]:
    """Where the server of this module listens."""
    with serving(tmp_path_factory.mktemp("web"), shared_redis) as (_, number):
        yield number


def ask(wire: socket.socket, sent: bytes = GET) -> bytes:
    """Send a request, if any, and take one answer, leaving those behind it where they are."""
    wire.sendall(sent)
    while result := wire.recv(65_536, socket.MSG_PEEK):
        found = re.search(rb"(?is)\r\ncontent-length: (\d+)\r\n.*?\r\n\r\n", result)
        if found and len(result) >= found.end() + int(found[1]):
            return wire.recv(found.end() + int(found[1]))
        time.sleep(0.001)
    raise ConnectionResetError


def test_head_and_body_come_in_one_piece(port):
    with socket.create_connection(("127.0.0.1", port), 20) as wire:
        wire.sendall(GET)
        assert wire.recv(65_536, socket.MSG_PEEK) == ask(wire, b"")  # the first that comes is all of it


def test_connections_that_never_rest_leave_room_for_one_more_than_there_are_threads(port):
    wires = [socket.create_connection(("127.0.0.1", port), 20) for _ in range(2 * THREADS)]

    def hammer(wire: socket.socket) -> int:
        return sum(ask(wire).startswith(b"HTTP/1.1 200") for _ in range(40))

    with ThreadPoolExecutor(len(wires)) as callers:
        assert list(callers.map(hammer, wires)) == [40] * len(wires)
    for wire in wires:
        wire.close()


def test_idle_connections_keep_no_thread_from_a_newcomer(port):
    idle = [socket.create_connection(("127.0.0.1", port), 20) for _ in range(2 * THREADS)]
    for wire in idle:
        ask(wire)
    with socket.create_connection(("127.0.0.1", port), 20) as newcomer:
        assert ask(newcomer).startswith(b"HTTP/1.1 200")
    for wire in idle:
        assert ask(wire).startswith(b"HTTP/1.1 200")
        wire.close()


def test_a_request_is_answered_before_and_after_the_thread_has_gone_elsewhere(port):
    with socket.create_connection(("127.0.0.1", port), 20) as wire:
        for pause in (0, limits.KEEPALIVE_WAIT_SECONDS / 2, 3 * limits.KEEPALIVE_WAIT_SECONDS, 0):
            time.sleep(pause)
            assert ask(wire).startswith(b"HTTP/1.1 200")


def test_pipelined_requests_are_answered_in_order(port):
    with socket.create_connection(("127.0.0.1", port), 20) as wire:
        named = [GET.replace(b"\r\n\r\n", b"\r\nX-Request-Id: number-%d\r\n\r\n" % n) for n in range(5)]
        wire.sendall(b"".join(named))
        for number in range(5):
            assert f"number-{number}".encode() in ask(wire, b"")


def test_a_stop_answers_pending_requests_and_is_soon_over(tmp_path, shared_redis):
    def is_last() -> bool:
        try:
            result = ask(wire)
        except ConnectionError:
            return True  # between two requests, after the time that a stop leaves an idle connection
        assert result.startswith(b"HTTP/1.1 200")
        return b"\r\nConnection: close\r\n" in result

    with serving(tmp_path, shared_redis) as (process, number):
        with socket.create_connection(("127.0.0.1", number), 20) as wire:
            assert not is_last()
            process.terminate()
            eventually(is_last, 15)
        assert process.wait(20) == 0
