"""Interrupted rows, downloads and uploads are resumed or fail with an error; they are never cut off silently."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
import rowsmith
from rowsmith import error
from rowsmith.wire.retry import Retries

from tests.fakes.echo_target import Answer
from tests.fakes.listening import Listening
from tests.sdk.answers import refusal
from tests.sdk.conftest import KEY


class Half(Listening):
    """Answers each request with the next of `answers`, as they are, and hangs up."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.asked: list[bytes] = []
        super().__init__()

    def talk(self, peer: socket.socket) -> None:
        result = b""
        while b"\r\n\r\n" not in result:
            result += peer.recv(65_536)
        head, _, body = result.partition(b"\r\n\r\n")
        size = next(
            (
                int(item.split(b":")[1])
                for item in head.split(b"\r\n")
                if item.lower().startswith(b"content-length:")
            ),
            0,
        )
        while len(body) < size:
            body += peer.recv(65_536)
        self.asked.append(head + b"\r\n\r\n" + body)
        peer.sendall(self.answers.pop(0))


def ndjson(rows: list[dict], whole: bool, version: str = "1") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nX-Template-Version: {version}"
    head += "\r\nX-Seed: s\r\nX-Now: n"
    result = "".join(json.dumps(row) + "\n" for row in rows)
    result += '{"i": 9' if not whole else ""
    end = "0\r\n\r\n" if whole else ""
    return f"{head}\r\nTransfer-Encoding: chunked\r\n\r\n{len(result):x}\r\n{result}\r\n{end}".encode()


def impatient(port: int) -> rowsmith.Api:
    api = rowsmith.Api(KEY, f"http://127.0.0.1:{port}", timeout=5)
    api._caller.retries = Retries(sleep=lambda _: None)
    return api


def test_rows_resume_after_an_interruption_where_they_stopped():
    server = Half(ndjson([{"i": 1}, {"i": 2}], False), ndjson([{"i": 3}, {"i": 4}], True))
    stream = impatient(server.port).templates.rows("tpl_1", count=4, offset=10)
    assert list(stream) == [{"i": 1}, {"i": 2}, {"i": 3}, {"i": 4}]
    again = json.loads(server.asked[1].partition(b"\r\n\r\n")[2])
    assert again == {"count": 2, "offset": 12, "seed": "s", "now": "n", "format": "ndjson"}
    server.stop()


def test_rows_of_two_versions_are_never_mixed():
    server = Half(ndjson([{"i": 1}], False), ndjson([{"i": 2}], True, version="2"))
    stream = impatient(server.port).templates.rows("tpl_1", count=2)
    assert next(stream) == {"i": 1}
    with pytest.raises(error.ServiceError) as found:
        next(stream)
    assert found.value.code == "version_conflict"
    server.stop()


def test_a_list_of_rows_is_never_cut_silently():
    result = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n[{"i":1}\r\n'
    server = Half(result)
    client = rowsmith.Client(KEY, f"http://127.0.0.1:{server.port}")
    with pytest.raises(error.ConnectionFailed):
        client.generate_from_template_id("tpl_1", 5)
    server.stop()


def test_an_interrupted_download_resumes_and_replaces_the_file_only_when_complete(tmp_path):
    first = b'HTTP/1.1 200 OK\r\nETag: "e"\r\nAccept-Ranges: bytes\r\nContent-Length: 10\r\n\r\n01234'
    rest = b'HTTP/1.1 206 Partial Content\r\nETag: "e"\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789'
    server = Half(first, rest)
    path = tmp_path / "file"
    path.write_bytes(b"before")
    impatient(server.port).files.download("file", path)
    assert path.read_bytes() == b"0123456789"
    assert b"Range: bytes=5-" in server.asked[1]
    assert b'If-Range: "e"' in server.asked[1]
    assert list(tmp_path.iterdir()) == [path]
    server.stop()


def test_a_download_that_fails_leaves_what_was_there(tmp_path, far, target):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    target.on("/workspace/files/file", Answer(404, refusal("not_found")))
    with pytest.raises(error.NotFound):
        far.files.download("file", path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_changed_on_the_way_is_fetched_from_the_start(tmp_path):
    first = b'HTTP/1.1 200 OK\r\nETag: "e"\r\nAccept-Ranges: bytes\r\nContent-Length: 10\r\n\r\n01234'
    other = b'HTTP/1.1 200 OK\r\nETag: "f"\r\nAccept-Ranges: bytes\r\nContent-Length: 3\r\n\r\nabc'
    server = Half(first, other)
    assert impatient(server.port).files.download("file", tmp_path / "file").read_bytes() == b"abc"
    server.stop()


def test_an_upload_rejected_half_way_shows_the_reason(tmp_path):
    result = json.dumps(refusal("payload_too_large")).encode()
    server = Early(
        b"HTTP/1.1 413 Too Large\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
        % (len(result), result)
    )
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(40_000_000)
    with pytest.raises(error.TooLarge):
        impatient(server.port).files.upload(big)
    server.stop()


class Early(Half):
    """Answers when it has seen the head, and reads no more."""

    def talk(self, peer: socket.socket) -> None:
        peer.recv(4_096)
        peer.sendall(self.answers[0])
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(1_000_000):
            pass


def test_an_upload_is_sent_again_with_the_same_bytes(far, target, tmp_path):
    path = tmp_path / "in.bin"
    path.write_bytes(b"x" * 200_000)
    target.on("/workspace/files", Answer(503, refusal("unavailable")), Answer(201, {"id": "fil_1"}))
    far.files.upload(path, "a/in.bin")
    first, second = target.calls("/workspace/files")
    assert first.body == second.body
    assert first.headers["content-type"] == second.headers["content-type"]
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


def test_no_part_of_a_file_is_kept_in_memory(far, target, tmp_path):
    import tracemalloc

    path = Path(tmp_path / "big")
    with path.open("wb") as file:
        file.truncate(30_000_000)
    server = Early(
        b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    )
    tracemalloc.start()
    impatient(server.port).files.upload(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    server.stop()
    assert most < 8_000_000
