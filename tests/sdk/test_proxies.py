"""Proxies of the environment."""

from __future__ import annotations

import http.server
import json
import socket
import threading

import pytest
import rowsmith

from tests.fakes.certificates import Authority
from tests.fakes.echo_target import Answer, EchoTarget
from tests.sdk.answers import GOOD, HERE
from tests.sdk.conftest import KEY


class Proxy:
    """Passes plain requests on, and tunnels; writes both down."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str | None]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.seen.append(("GET", self.path, self.headers["Proxy-Authorization"]))
                result = json.dumps(GOOD).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(result)))
                self.end_headers()
                self.wfile.write(result)

            def do_CONNECT(self) -> None:
                outer.seen.append(("CONNECT", self.path, self.headers["Proxy-Authorization"]))
                host, _, port = self.path.rpartition(":")
                with socket.create_connection((host, int(port))) as far_side:
                    self.send_response(200)
                    self.end_headers()
                    there = threading.Thread(target=pump, args=(self.connection, far_side), daemon=True)
                    there.start()
                    pump(far_side, self.connection)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.url = f"http://me:p%40ss@127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def pump(come: socket.socket, go: socket.socket) -> None:
    try:
        while piece := come.recv(65_536):
            go.sendall(piece)
        go.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture
def proxy(monkeypatch):
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    running = Proxy()
    yield running
    running.close()


def test_plain_requests_go_through_the_proxy_of_the_environment(proxy, monkeypatch):
    monkeypatch.setenv("http_proxy", proxy.url)
    api = rowsmith.Api(KEY, "http://localhost:9")
    assert api.templates.get("tpl_1")["name"] == "T"
    method, path, result = proxy.seen[0]
    assert (method, path) == ("GET", "http://localhost:9/templates/tpl_1")
    assert result == "Basic bWU6cEBzcw=="
    api.close()


def test_tls_goes_through_the_proxy_end_to_end(proxy, monkeypatch, tmp_path):
    monkeypatch.setenv("https_proxy", proxy.url)
    authority = Authority(tmp_path)
    with EchoTarget(authority.server("127.0.0.1")) as target:
        target.on(HERE, Answer(200, GOOD))
        api = rowsmith.Api(KEY, target.url(""), ca_file=str(authority.file))
        assert api.templates.get("tpl_1")["name"] == "T"
        api.close()
        assert proxy.seen == [("CONNECT", f"127.0.0.1:{target.port}", "Basic bWU6cEBzcw==")]
        assert "proxy-authorization" not in target.calls()[0].headers


def test_no_proxy_is_honoured(proxy, monkeypatch, target):
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    target.on(HERE, Answer(200, GOOD))
    api = rowsmith.Api(KEY, target.url(""))
    api.templates.get("tpl_1")
    api.close()
    assert proxy.seen == []
