"""A real server and a real socket: rows leave as they are made, and a client that leaves stops the work."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import orjson
import pytest
from sqlalchemy import select
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from tests.jobs.waiting import eventually
from tests.views.speak import make, rows_used
from webapp.audit.models import AuditEntry
from webapp.engine.blocks import Block
from webapp.extensions import read_session


class Quiet(WSGIRequestHandler):
    """Says HTTP/1.1, so that streams are chunked, and logs nothing."""

    protocol_version = "HTTP/1.1"

    def log(self, *_args: object) -> None: ...


@pytest.fixture
def server(app) -> Iterator[BaseWSGIServer]:
    result = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=result.serve_forever, daemon=True)
    thread.start()
    yield result
    result.shutdown()
    thread.join()
    result.server_close()


def ask(server: BaseWSGIServer, key: str, path: str, body: dict) -> socket.socket:
    raw = orjson.dumps(body)
    created = socket.create_connection(("127.0.0.1", server.server_port), timeout=20)
    created.sendall(
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {key}\r\nContent-Length: {len(raw)}\r\n\r\n".encode()
        + raw
    )
    return created


def test_a_client_that_leaves_stops_the_work_and_gets_its_rows_back(app, server, edith, cast):
    path = f"/templates/{make(edith)['id']}/generate"
    count = 5_000_000
    with ask(server, cast.edith.key, path, {"count": count, "format": "csv", "seed": "s"}) as client:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(1024)
        assert head.startswith(b"HTTP/1.1 200")
        assert rows_used(edith) == count

    def cut() -> AuditEntry | None:
        with app.app_context(), read_session() as session:
            return session.scalar(select(AuditEntry).where(AuditEntry.action == "template.generate_cut"))

    entry = eventually(cut)
    assert entry.details["of"] == count
    assert 0 < entry.details["made"] < count
    assert rows_used(edith) == entry.details["made"]


def test_a_client_that_stays_gets_every_byte(server, edith, cast):
    path = f"/templates/{make(edith)['id']}/generate"
    body = {"count": 30_000, "format": "csv", "seed": "s"}
    got = b""
    with ask(server, cast.edith.key, path, body) as client:
        while not got.endswith(b"\r\n0\r\n\r\n"):
            piece = client.recv(65536)
            assert piece, "the stream broke off"
            got += piece
    head, _, rest = got.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    text = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        text, rest = text + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    assert text == edith.post(path, json=body).data


def test_a_stream_that_breaks_is_never_a_whole_answer(server, edith, cast, monkeypatch):
    path = f"/templates/{make(edith)['id']}/generate"
    real = Block.column

    def column(block, name):
        if block.rows[0]:
            raise RuntimeError("the second block cannot be made")
        return real(block, name)

    monkeypatch.setattr(Block, "column", column)
    got = b""
    with ask(server, cast.edith.key, path, {"count": 10_000, "format": "csv"}) as client:
        while piece := client.recv(65536):
            got += piece
    assert got.startswith(b"HTTP/1.1 200")
    assert not got.endswith(b"\r\n0\r\n\r\n"), "the client would take this for all of it"
    eventually(lambda: rows_used(edith) == 256)
