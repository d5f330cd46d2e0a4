"""HTTP sessions to user-configured URLs: networks stay blocked, TLS verifies host names, and requests that may have
arrived are distinguished from others. Against real servers."""

from __future__ import annotations

import ast
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.echo_target import Answer, EchoTarget, redirect
from tests.net import sending
from tests.net.sending import OPEN, SECRET, failing, send
from tests.net.ways import CLOSED, HERE, METADATA, Canary
from webapp.net.gate import Gate
from webapp.net.session import open_session

target = sending.target
session = sending.session
authority = sending.authority
SENDERS = re.compile(r"\b(requests|urllib|urllib3|httpx|aiohttp|HTTPAdapter|GuardedAdapter)\b")
WEBAPP = Path(__file__).parents[2] / "webapp"


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    result = Canary()
    yield result
    result.close()


def named(monkeypatch: pytest.MonkeyPatch, **names: str | list[str]) -> None:
    """Names that resolve so; a list: one address after the other."""
    real = socket.getaddrinfo

    def found(host, port, *args, **more):
        address = names.get(str(host).replace(".", "_"), host)
        if isinstance(address, list):
            address = address.pop(0) if len(address) > 1 else address[0]
        return real(address, port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", found)


# --- Closed networks (promise 17) ---------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", HERE + CLOSED + METADATA)
def test_a_blocked_address_is_rejected_in_any_notation(canary, scheme, host):
    with open_session(Gate()) as session:
        for written in {host, f"[{host}]" if ":" in host else host}:
            failed = failing(session, "GET", f"{scheme}://{written}:{canary.port}/", seconds=20)
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
def test_an_invalid_url_is_rejected(session, url):
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


# --- TLS ----------------------------------------------------------------------------------------------------


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


def test_an_unknown_certificate_authority_is_rejected_unless_verification_is_disabled(authority):
    with EchoTarget(authority.server("127.0.0.1")) as target:
        with open_session(Gate(OPEN)) as session:
            failed = failing(session, "POST", target.url(), json={})
            assert (failed.reason, failed.arrived, target.seen) == ("tls_failed", False, [])
        with open_session(Gate(OPEN), verify_tls=False) as session:
            assert send(session, "GET", target.url()).status == 200


def test_a_server_without_tls_is_reported_as_such(session, target):
    failed = failing(session, "GET", target.url().replace("http:", "https:"))
    assert failed.reason == "tls_failed"
    assert "http://" in failed.message


# --- What may have arrived ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", ["unread", "read", "head"])
@pytest.mark.parametrize("warm", [False, True], ids=["new connection", "kept connection"])
def test_a_partly_written_request_may_have_arrived(session, target, cut, warm):
    if warm:
        send(session, "GET", target.url("/warm"))
    target.on("/", Answer(201, b"x" * 100, cut=cut))
    failed = failing(session, "POST", target.url(), json={"a": 1})
    assert (failed.reason, failed.arrived) == ("reset", True)


def test_unsent_requests_did_not_arrive(session, canary, monkeypatch):
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
def test_a_missing_response_has_a_name(session, target, answer, reason):
    target.on("/", answer)
    assert failing(session, "GET", target.url(f"/?key={SECRET}")).reason == reason


def _calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


# --- The only place -----------------------------------------------------------------------------------------


def test_no_other_module_opens_an_http_session():
    sending = {
        f"requests.{name}"
        for name in "Session session get post put patch delete head options request".split()
    }
    sending |= {"urllib.request.urlopen", "urlopen", "HTTPAdapter", "GuardedAdapter"}
    found = {
        (str(path.relative_to(WEBAPP)), call)
        for path in WEBAPP.rglob("*.py")
        if path.parent.name != "programs"  # what users would write: it runs in the sandbox
        if SENDERS.search(text := path.read_text())
        for call in _calls(ast.parse(text))
        if call in sending or call.startswith(("urllib3.", "httpx.", "aiohttp."))
    }
    assert found == {("net/session.py", "GuardedAdapter")}
