"""HTTP to wherever a user's settings lead: closed networks stay closed, time limits and caps hold, credentials stay
at home. Against real servers."""

from __future__ import annotations

import ast
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from requests.auth import AuthBase, HTTPBasicAuth

from tests.fakes.certificates import Authority
from tests.fakes.echo_target import MB, Answer, EchoTarget, redirect
from tests.net.ways import CLOSED, HERE, METADATA, Canary
from webapp import limits
from webapp.connectors.http_auth import ApiKeyAuth
from webapp.net.gate import Gate
from webapp.net.session import NetError, Reply, Session, exchange, open_session
from webapp.net.urls import shown

OPEN = ("127.0.0.0/8", "::1/128")
SECRET = "hunter2-hunter2"
SENDERS = re.compile(r"\b(requests|urllib|urllib3|httpx|aiohttp|HTTPAdapter|GuardedAdapter)\b")
WEBAPP = Path(__file__).parents[2] / "webapp"


@pytest.fixture
def target() -> Iterator[EchoTarget]:
    with EchoTarget() as made:
        yield made


@pytest.fixture
def other() -> Iterator[EchoTarget]:
    with EchoTarget() as made:
        yield made


@pytest.fixture
def session() -> Iterator[Session]:
    with open_session(Gate(OPEN)) as made:
        yield made


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    made = Canary()
    yield made
    made.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def send(
    session: Session, method: str, url: str, *, seconds: float = 20, most: int = MB, follow=True, **more
) -> Reply:
    request = requests.Request(method, url, **more)
    return exchange(session, request, timeout_seconds=seconds, max_bytes=most, follow=follow)


def failing(session: Session, method: str, url: str, **more) -> NetError:
    with pytest.raises(NetError) as failed:
        send(session, method, url, **more)
    assert SECRET not in failed.value.message
    return failed.value


def named(monkeypatch: pytest.MonkeyPatch, **names: str | list[str]) -> None:
    """Names that resolve so; a list: one address after the other."""
    real = socket.getaddrinfo

    def found(host, port, *args, **more):
        address = names.get(str(host).replace(".", "_"), host)
        if isinstance(address, list):
            address = address.pop(0) if len(address) > 1 else address[0]
        return real(address, port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", found)


# --- Closed networks (promise 17)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", HERE + CLOSED + METADATA)
def test_a_closed_address_is_not_reached_however_it_is_written(canary, scheme, host):
    with open_session(Gate()) as session:
        for written in {host, f"[{host}]" if ":" in host else host}:
            failed = failing(session, "GET", f"{scheme}://{written}:{canary.port}/", seconds=2)
            assert failed.reason in ("not_allowed", "unresolved", "bad_url")
            assert not failed.arrived
    assert canary.count == 0


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "0x7f.1", "localhost", "169.254.169.254", "[::ffff:127.0.0.1]"]
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_into_a_closed_network_is_not_followed(canary, host, status):
    with EchoTarget(host="127.0.0.9") as outside:
        outside.on("/", redirect(f"http://{host}:{canary.port}/", status))
        with open_session(Gate(["127.0.0.9/32"])) as session:
            failed = failing(session, "GET", outside.url())
    assert failed.reason in ("not_allowed", "redirected", "unresolved")
    assert canary.count == 0


def test_a_name_that_changes_its_mind_reaches_nothing(monkeypatch, canary):
    named(monkeypatch, fickle_example=["127.0.0.9", "127.0.0.1"])
    with EchoTarget(host="127.0.0.9") as outside, open_session(Gate(["127.0.0.9/32"])) as session:
        outside.on("/", Answer(200, close=True))
        url = f"http://fickle.example:{outside.port}/"
        assert send(session, "GET", url).status == 200
        assert failing(session, "GET", url).reason == "not_allowed"
        assert failing(session, "GET", f"http://fickle.example:{canary.port}/").reason == "not_allowed"
    assert canary.count == 0


def test_a_redirect_to_a_name_that_leads_inside_is_not_followed(monkeypatch, canary):
    named(monkeypatch, innocent_example="127.0.0.1")
    with EchoTarget(host="127.0.0.9") as outside, open_session(Gate(["127.0.0.9/32"])) as session:
        outside.on("/", redirect(f"http://innocent.example:{canary.port}/"))
        assert failing(session, "GET", outside.url()).reason == "not_allowed"
    assert canary.count == 0


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:70/", "http+unix://%2Frun%2Fx/", "//127.0.0.1/",
     "127.0.0.1", "", "http://", "http:///x", f"http://me:{SECRET}@127.0.0.1/", "http://127.0.0.1@evil/",
     "http://127.0.0.1:99999/", "http://127.0.0.1:0/", "http://127.0.0.1:x/", "http://127.0.0.1\r\nX: y/",
     " http://127.0.0.1/", "http://127.0.0.1\\@evil/", "http://2130706433/", "http://0x7f.1/", "http://[::1/",
     "http://0177.0.0.1/", "http://127.1/", "http://*.example/", "http://x/" + "y" * 9_000],
)  # fmt: skip
def test_what_is_no_plain_url_is_refused(session, url):
    failed = failing(session, "GET", url)
    assert (failed.reason, failed.arrived) == ("bad_url", False)


def test_the_environment_counts_for_nothing(monkeypatch, session, target, canary, tmp_path):
    (tmp_path / ".netrc").write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
    assert send(session, "GET", target.url()).status == 200
    assert "authorization" not in target.seen[0].headers
    assert canary.count == 0


def test_requests_that_go_past_exchange_reach_nothing(session, target):
    with pytest.raises(LookupError):
        session.get(target.url())
    assert target.opened == 0


def test_ipv6_is_reached_where_it_is_open(session):
    with EchoTarget(host="::1") as target:
        assert send(session, "GET", target.url("/x")).status == 200


# --- TLS


def test_tls_goes_by_the_name_and_not_by_the_address(monkeypatch, authority):
    named(monkeypatch, target_example="127.0.0.1")
    with (
        EchoTarget(authority.server("target.example")) as target,
        open_session(Gate(OPEN), verify_tls=str(authority.file)) as session,
    ):
        assert send(session, "GET", f"https://target.example:{target.port}/").status == 200
        assert target.seen[0].headers["host"] == f"target.example:{target.port}"
        failed = failing(session, "GET", target.url())
    assert (failed.reason, failed.arrived) == ("tls_failed", False)
    assert "127.0.0.1" in failed.message


def test_an_unknown_authority_is_refused_unless_the_owner_wants_no_verification(authority):
    with EchoTarget(authority.server("127.0.0.1")) as target:
        with open_session(Gate(OPEN)) as session:
            failed = failing(session, "POST", target.url(), json={})
            assert (failed.reason, failed.arrived, target.seen) == ("tls_failed", False, [])
        with open_session(Gate(OPEN), verify_tls=False) as session:
            assert send(session, "GET", target.url()).status == 200


def test_a_server_without_tls_is_told_as_such(session, target):
    failed = failing(session, "GET", target.url().replace("http:", "https:"))
    assert failed.reason == "tls_failed"
    assert "http://" in failed.message


# --- Time limits and caps


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


def test_a_resolver_that_hangs_is_late(monkeypatch, session):
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


def test_what_is_packed_is_unpacked_up_to_the_cap(session, target):
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
    assert [one.connection for one in target.seen] == [1, 1, 1, 2, 2]


def test_a_connection_that_was_idle_is_not_used_again(session, target, monkeypatch):
    send(session, "GET", target.url())
    monkeypatch.setattr(limits, "HTTP_IDLE_SECONDS", 0.0)
    send(session, "GET", target.url())
    assert [one.connection for one in target.seen] == [1, 2]


# --- What may have arrived


@pytest.mark.parametrize("cut", ["unread", "read", "head"])
@pytest.mark.parametrize("warm", [False, True], ids=["new connection", "kept connection"])
def test_a_request_that_was_begun_to_be_written_may_have_arrived(session, target, cut, warm):
    if warm:
        send(session, "GET", target.url("/warm"))
    target.on("/", Answer(201, b"x" * 100, cut=cut))
    failed = failing(session, "POST", target.url(), json={"a": 1})
    assert (failed.reason, failed.arrived) == ("reset", True)


def test_what_never_left_did_not_arrive(session, canary, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert (e := failing(session, "POST", f"http://127.0.0.1:{port}/")).reason == "refused"
    assert not e.arrived
    assert not failing(session, "POST", "http://nowhere.invalid/").arrived
    assert not failing(session, "POST", "http://192.168.7.7/").arrived


def test_the_status_of_a_write_counts_even_if_its_answer_breaks_off(session, target):
    target.on("/", Answer(201, b"x" * 100, cut="body"))
    reply = send(session, "POST", target.url(), json={})
    assert (reply.status, reply.truncated) == (201, True)
    assert failing(session, "GET", target.url()).reason == "reset"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(raw=b"SSH-2.0-OpenSSH\r\n"), "bad_response"),
        (Answer(raw=b"HTTP/1.1 abc\r\n\r\n"), "bad_response"),
        (Answer(raw=b""), "reset"),
        (Answer(raw=b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n"), "too_large"),
        (Answer(raw=b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"), "too_large"),
        (Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"), "bad_response"),
        (Answer(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "reset"),
        (Answer(200, b"x" * 10, length=50), "reset"),
    ],
    ids=["ssh", "status", "nothing", "long header", "many headers", "no gzip", "no chunk", "too short"],
)  # fmt: skip
def test_what_is_no_answer_has_a_name(session, target, answer, reason):
    target.on("/", answer)
    assert failing(session, "GET", target.url(f"/?key={SECRET}")).reason == reason


# --- Redirects and credentials


class Crossed(AuthBase):
    def __call__(self, r):
        r.headers["Authorization"] = f"Bearer {SECRET}"
        r.headers["X-API-Key"] = SECRET
        return r


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_credentials_go_nowhere_else(session, target, other, status, method):
    target.on("/set", Answer(200, headers={"Set-Cookie": f"sid={SECRET}; path=/"}))
    send(session, "GET", target.url("/set"))
    target.on("/", redirect(other.url("/there"), status))
    headers = {"X-Tenant": SECRET, "Accept": "text/csv", "Cookie": f"a={SECRET}"}
    reply = send(session, method, target.url(), auth=Crossed(), headers=headers)
    assert (reply.status, reply.url) == (200, other.url("/there"))
    assert SECRET in target.calls("/")[0].headers["x-api-key"]
    [came] = other.seen
    assert set(came.headers) == {"host", "user-agent", "accept-encoding", "accept"}
    assert came.headers["accept"] == "text/csv"
    assert came.method == method


def test_credentials_stay_within_their_origin(session, target):
    target.on("/", redirect("/there?page=2", 307))
    send(session, "GET", target.url("/?page=1"), auth=HTTPBasicAuth("me", SECRET), headers={"X-Tenant": "7"})
    there = target.calls("/there")[0]
    assert there.headers["authorization"].startswith("Basic ")
    assert (there.headers["x-tenant"], there.query) == ("7", {"page": ["2"]})


def test_credentials_do_not_come_back_by_way_of_another_origin(session, target, other):
    target.on("/", redirect(other.url()))
    other.on("/", redirect(target.url("/back")))
    target.on("/back", redirect("/again"))
    send(session, "GET", target.url(), auth=HTTPBasicAuth("me", SECRET))
    assert [one.path for one in target.seen if "authorization" in one.headers] == ["/"]
    assert len(target.seen) == 3


def test_a_cookie_of_another_origin_is_not_taken(session, target, other):
    target.on("/", redirect(other.url("/there")))
    other.on("/there", Answer(200, headers={"Set-Cookie": "sid=theirs; path=/"}))
    send(session, "GET", target.url())
    send(session, "GET", target.url("/again"))
    assert "cookie" not in target.calls("/again")[0].headers


def test_an_api_key_of_the_query_does_not_leave_even_if_the_target_repeats_it(session, target, other):
    auth = ApiKeyAuth.model_validate({"type": "api-key", "in": "query", "name": "api_key", "value": SECRET})
    target.on("/", redirect(other.url(f"/there?page=2&api_key={SECRET}&copy={SECRET}")))
    send(session, "GET", target.url("/?page=2"), auth=auth.on_wire(session))
    assert target.seen[0].query == {"page": ["2"], "api_key": [SECRET]}
    assert other.seen[0].query == {"page": ["2"]}


def test_an_api_key_of_the_query_is_sent_along_within_its_origin(session, target):
    auth = ApiKeyAuth.model_validate({"type": "api-key", "in": "query", "name": "api_key", "value": SECRET})
    target.on("/", redirect(f"/there?api_key={SECRET}"))
    send(session, "GET", target.url("/"), auth=auth.on_wire(session))
    assert target.calls("/there")[0].query == {"api_key": [SECRET]}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_write_does_not_follow_what_would_make_it_a_read(session, target, method, status):
    target.on("/", redirect(f"http://me:{SECRET}@127.0.0.1:1/login?token={SECRET}", status))
    failed = failing(session, method, target.url(), json={})
    assert (failed.reason, failed.arrived) == ("redirected", True)
    target.on("/", redirect(f"/login?token={SECRET}", status))
    failed = failing(session, method, target.url(), json={})
    assert "/login" in failed.message
    assert len(target.seen) == 2


@pytest.mark.parametrize("status", [307, 308])
def test_a_write_follows_within_its_origin_and_no_further(session, target, other, status):
    target.on("/rows", redirect("/rows/", status))
    assert send(session, "POST", target.url("/rows"), json={"a": 1}).status == 201
    assert target.calls("/rows/")[0].json == {"a": 1}
    target.on("/away", redirect(other.url(), status))
    assert failing(session, "POST", target.url("/away"), json={"a": 1}).reason == "redirected"
    assert other.opened == 0


def test_a_redirect_can_be_looked_at(session, target):
    target.on("/", redirect("/there"))
    assert send(session, "GET", target.url(), follow=False).headers["location"] == "/there"


def test_five_redirects_are_followed(session, target):
    target.on("/", *[redirect("/")] * 5, Answer(200))
    assert send(session, "GET", target.url()).status == 200
    target.on("/round", redirect("/round"))
    assert failing(session, "GET", target.url("/round")).reason == "redirected"
    assert len(target.calls("/round")) == 6


def test_a_url_for_people_has_no_secrets():
    assert (
        shown(f"https://me:{SECRET}@example.org:8443/a/b?key={SECRET}#{SECRET}")
        == "https://example.org:8443/a/b"
    )


@pytest.mark.parametrize("value", [f"{SECRET}\r\nX-Evil: 1", f"{SECRET}\0", f"{SECRET}€"])
def test_a_header_that_cannot_be_written_is_refused_and_not_told(session, target, value):
    failed = failing(session, "GET", target.url(), headers={"X-Key": value})
    assert (failed.reason, target.seen) == ("bad_url", [])


def test_no_log_line_holds_a_key(session, target, caplog):
    caplog.set_level("DEBUG")
    target.on("/odd", Answer(raw=b"HTTP/1.1 200 OK\r\nno header\r\n: x\r\nContent-Length: 0\r\n\r\n"))
    for path in ("/odd", "/even"):
        send(session, "GET", target.url(f"{path}?api_key={SECRET}"), headers={"X-Key": SECRET})
    failing(session, "GET", f"http://127.0.0.1:1/?api_key={SECRET}")
    assert SECRET not in caplog.text


def test_a_target_cannot_fill_the_memory_with_cookies(session, target):
    target.on("/", lambda seen: Answer(200, headers={"Set-Cookie": f"c{len(target.seen)}=1; path=/"}))
    for _ in range(limits.HTTP_COOKIES + 20):
        send(session, "GET", target.url())
    assert len(session.cookies) == limits.HTTP_COOKIES
    assert f"c{limits.HTTP_COOKIES + 20}" in session.cookies


# --- Stopping (promise 8)


def stopped_in(session: Session, method: str, url: str, ready) -> NetError:
    """What a request says that is stopped once `ready`."""

    def stop() -> None:
        ready()
        session.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        return failing(session, method, url, seconds=60)
    finally:
        thread.join()


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
    asked, hung = threading.Event(), threading.Event()

    def slow(*_args, **_more):
        asked.set()
        hung.wait(60)
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    failed = stopped_in(session, "GET", "http://slow.example/", lambda: asked.wait(20))
    hung.set()
    assert (failed.reason, failed.arrived) == ("reset", False)


def test_a_session_beside_is_stopped_too(session):
    with session.beside() as other:
        session.stop()
        assert failing(other, "GET", "http://127.0.0.1:1/").reason == "reset"
    with session.beside() as late:
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
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    assert (len(target.seen), target.opened <= 8) == (240, True)


# --- The only place


def _calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_no_other_module_opens_an_http_session():
    sending = {
        f"requests.{name}"
        for name in "Session session get post put patch delete head options request".split()
    }
    sending |= {"urllib.request.urlopen", "urlopen", "HTTPAdapter", "GuardedAdapter"}
    found = {
        (str(path.relative_to(WEBAPP)), call)
        for path in WEBAPP.rglob("*.py")
        if SENDERS.search(text := path.read_text())
        for call in _calls(ast.parse(text))
        if call in sending or call.startswith(("urllib3.", "httpx.", "aiohttp."))
    }
    assert found == {("net/session.py", "GuardedAdapter")}
