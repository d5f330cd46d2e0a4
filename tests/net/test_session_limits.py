"""Time limits and caps of HTTP, and stopping what is under way. Against real servers."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.fakes.echo_target import MB, Answer, EchoTarget
from tests.net import sending
from tests.net.sending import OPEN, failing, send
from webapp import limits
from webapp.net.gate import Gate
from webapp.net.session import NetError, Session, open_session

target = sending.target
other = sending.other
session = sending.session
authority = sending.authority


# --- Time limits and caps -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "method"),
    [
        (Answer(200, delay=30), "GET"),
        (Answer(200, delay=30), "POST"),
        (Answer(200, b"x" * 10_000, drip=0.01), "GET"),
        (Answer(200, b"x", drip_head=0.05, headers={"X": "y" * 1_000}), "POST"),
        (Answer(200, b"x" * 10_000, drip=0.01, chunked=True), "GET"),
    ],
    ids=["silent", "silent to a write", "slow body", "slow headers", "slow chunks"],
)
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_the_time_limit_is_one_for_the_whole_request(authority, answer, method, tls):
    with (
        EchoTarget(authority.server("127.0.0.1") if tls else None) as target,
        open_session(Gate(OPEN), verify_tls=str(authority.file)) as session,
    ):
        target.on("/", answer)
        failed = failing(session, method, target.url(), seconds=1.0)
    assert (failed.reason, failed.arrived) == ("timeout", True)


def test_time_runs_out_over_redirects_too(session, target):
    target.on("/", Answer(302, b"", {"Location": "/"}, delay=0.3))
    assert failing(session, "GET", target.url(), seconds=0.8).reason == "timeout"
    assert len(target.seen) < 5


def test_a_target_that_takes_nothing_is_late(session):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        failed = failing(session, "POST", url, data=b"x" * 50 * MB, seconds=0.5)
    assert (failed.reason, failed.arrived) == ("timeout", True)


def test_a_tls_server_that_never_shakes_hands_is_late_and_got_nothing(session):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        failed = failing(
            session, "POST", f"https://127.0.0.1:{deaf.getsockname()[1]}/", data=b"x", seconds=0.5
        )
    assert (failed.reason, failed.arrived) == ("timeout", False)


def test_a_hanging_resolver_times_out(monkeypatch, session):
    hung = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: hung.wait(20))
    failed = failing(session, "POST", "http://slow.example/", data=b"x", seconds=0.3)
    hung.set()
    assert (failed.reason, failed.arrived) == ("timeout", False)


def test_an_answer_is_read_up_to_its_cap(session, target):
    target.on("/long", Answer(200, b"x" * 5_000))
    target.on("/endless", Answer(200, endless=True))
    target.on("/fits", Answer(200, b"x" * 1_000))
    for path, truncated in (("/long", True), ("/endless", True), ("/fits", False)):
        reply = send(session, "GET", target.url(path), most=1_000)
        assert (len(reply.body), reply.truncated) == (1_000, truncated)


def test_archives_are_unpacked_up_to_the_limit(session, target):
    target.on("/packed", Answer(200, "hello " * 100, gzip=True))
    target.on("/bomb", Answer(200, bomb=2_000))
    assert send(session, "GET", target.url("/packed")).body == b"hello " * 100
    reply = send(session, "GET", target.url("/bomb"), most=MB)
    assert (reply.body, reply.truncated) == (bytes(MB), True)


def test_connections_are_used_again_and_a_broken_answer_ends_its_own(session, target):
    target.on("/cut", Answer(200, b"x" * 100, cut="body"))
    for path in ("/a", "/b", "/cut", "/c", "/d"):
        try:
            send(session, "GET", target.url(path))
        except NetError:
            assert path == "/cut"
    assert [item.connection for item in target.seen] == [1, 1, 1, 2, 2]


def test_a_connection_that_was_idle_is_not_used_again(session, target, monkeypatch):
    send(session, "GET", target.url())
    monkeypatch.setattr(limits, "HTTP_IDLE_SECONDS", 0.0)
    send(session, "GET", target.url())
    assert [item.connection for item in target.seen] == [1, 2]


def stopped_in(session: Session, method: str, url: str, ready) -> NetError:
    """Return the error of a request that is stopped once `ready`."""

    def stop() -> None:
        ready()
        session.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        return failing(session, method, url, seconds=60)
    finally:
        thread.join()


# --- Stopping (promise 8) -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_a_request_in_flight_is_stopped_from_another_thread(authority, tls):
    came = threading.Event()

    def silent(_seen):
        came.set()
        return Answer(200, delay=60)

    with (
        EchoTarget(authority.server("127.0.0.1") if tls else None) as target,
        open_session(Gate(OPEN), verify_tls=str(authority.file)) as session,
    ):
        target.on("/", silent)
        failed = stopped_in(session, "POST", target.url(), lambda: came.wait(20))
        assert (failed.reason, failed.arrived) == ("reset", True)
        failed = failing(session, "POST", target.url())
        assert (failed.reason, failed.arrived) == ("reset", False)
    assert len(target.seen) == 1


def test_a_handshake_is_stopped(session):
    came: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as deaf:

        def ready() -> None:
            came.append(deaf.accept()[0])
            came[0].recv(1)

        failed = stopped_in(session, "GET", f"https://127.0.0.1:{deaf.getsockname()[1]}/", ready)
    came[0].close()
    assert (failed.reason, failed.arrived) == ("reset", False)


def test_a_wait_for_a_resolver_is_stopped(monkeypatch, session):
    request, hung = threading.Event(), threading.Event()

    def slow(*_args, **_more):
        request.set()
        hung.wait(60)
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    failed = stopped_in(session, "GET", "http://slow.example/", lambda: request.wait(20))
    hung.set()
    assert (failed.reason, failed.arrived) == ("reset", False)


def test_a_parallel_session_is_stopped_too(session):
    with session.separate_session() as other:
        session.stop()
        assert failing(other, "GET", "http://127.0.0.1:1/").reason == "reset"
    with session.separate_session() as late:
        assert failing(late, "GET", "http://127.0.0.1:1/").reason == "reset"


def test_threads_share_a_session(session, target):
    target.on("/", lambda seen: Answer(200, headers={"Set-Cookie": f"c{len(target.seen) % 50}=1; path=/"}))
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(30):
                assert send(session, "POST", target.url(), json={"a": 1}).status == 200
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (len(target.seen), target.opened <= 8) == (240, True)
