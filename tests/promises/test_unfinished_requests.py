"""Promise 29: 1,000 unfinished requests from one address leave the service reachable for everyone else."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.served import by_gunicorn

CONNECTIONS = 1_000
GET = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
UNFINISHED = {
    "no byte": b"",
    "half a header": GET + b"X-A: ",
    "half a body": POST + b"Content-Length: 100000\r\n\r\n{",
    "half a body, with an API key": POST + b"X-API-Key: rws_x\r\nContent-Length: 100000\r\n\r\n{",
    "half a chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n400\r\n{",
    "a large body that stops": POST + b"Content-Length: 9000000\r\n\r\n" + b" " * 200_000,
    "an idle connection that is kept alive": GET + b"\r\n",
}


@pytest.fixture(scope="module", autouse=True)
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 8_192), hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory, shared_redis: str) -> Iterator[int]:
    """A server as it is by default: two processes with 192 threads each."""
    folder = tmp_path_factory.mktemp("web")
    with by_gunicorn(folder, shared_redis, ROWSMITH_WEB_WORKERS="2") as (_, number):
        yield number


def live(port: int, address: str) -> float:
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 10, (address, 0)) as wire:
        wire.sendall(GET + b"Connection: close\r\n\r\n")
        data = b""
        while more := wire.recv(65_536):
            data += more
    assert data.startswith(b"HTTP/1.1 200 ")
    return time.monotonic() - begun


@pytest.mark.parametrize("sent", UNFINISHED.values(), ids=UNFINISHED)
def test_a_thousand_unfinished_requests_from_one_address_leave_health_live_under_a_second(port, sent):
    took = []
    with ExitStack() as stack:
        for number in range(CONNECTIONS):
            wire = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.1", 0)))
            try:
                wire.sendall(sent)
            except OSError:  # the server has closed it
                pass
            if number % 100 == 99:
                took += [live(port, "127.0.0.2"), live(port, "127.0.0.1")]
        for _ in range(20):
            time.sleep(0.2)
            took += [live(port, "127.0.0.2"), live(port, "127.0.0.1")]
    assert len(took) == 60
    assert max(took) < 1, sorted(took)[-5:]
