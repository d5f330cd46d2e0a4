"""Boxes of tests."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from jobs.sandbox import Caps, Mode, SandboxHandle, SandboxSpec, start

MB = 1024 * 1024
CAPS = Caps(
    wall_seconds=30,
    cpu_seconds=20,
    memory_bytes=512 * MB,
    processes=32,
    file_bytes=64 * MB,
    tmp_bytes=32 * MB,
    outputs_bytes=64 * MB,
)


@contextmanager
def folders() -> Iterator[Path]:
    """A folder with those of a box, which every user may enter."""
    with tempfile.TemporaryDirectory(prefix="box-", ignore_cleanup_errors=True) as name:
        top = Path(name).resolve()
        top.chmod(0o755)
        for item in ("code", "environment/bin", "uploads", "outputs"):
            (top / item).mkdir(parents=True)
        (top / "environment" / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
        (top / "uploads" / "given.txt").write_text("given")
        yield top


@dataclass
class Ended:
    """What came of a program."""

    code: int | None
    output: str
    stopped_by: str | None
    handle: SandboxHandle


class Lab:
    """Runs programs in one folder."""

    def __init__(self, top: Path, way: Mode) -> None:
        self.top, self.way = top, way
        self.box = SandboxSpec(
            command=("python3", "main.py"),
            code=top / "code",
            environment=top / "environment",
            read_only=(),
            uploads=top / "uploads",
            outputs=top / "outputs",
            env={"UPLOADS": str(top / "uploads"), "OUTPUTS": str(top / "outputs")},
            network="none",
            api=("127.0.0.1", 9),
            caps=CAPS,
        )

    def start(self, source: str, *, caps: dict[str, float] | None = None, **settings: object) -> Started:
        (self.top / "code" / "main.py").write_text(textwrap.dedent(source))
        env = {**self.box.env, **settings.pop("env", {})}
        result = replace(self.box, env=env, caps=replace(CAPS, **(caps or {})), **settings)
        return Started(result, self.way)

    def run(self, source: str, **settings: object) -> Ended:
        """Start, wait for the end, close."""
        return self.start(source, **settings).end()


class Started:
    """A program that runs."""

    def __init__(self, box: SandboxSpec, way: Mode) -> None:
        self._reading, writing = os.pipe()
        try:
            self.handle = start(box, way, writing)
        except BaseException:
            os.close(self._reading)
            raise
        finally:
            os.close(writing)
        self._output = b""
        self._said = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while part := os.read(self._reading, 65536):
            with self._said:
                self._output += part
                self._said.notify_all()

    def until(self, word: str) -> None:
        """Wait until it has printed a word."""
        with self._said:
            assert self._said.wait_for(lambda: word.encode() in self._output, 20), self._output

    def end(self) -> Ended:
        code = self.handle.wait(40)
        self.handle.close()
        self._reader.join()
        os.close(self._reading)
        return Ended(code, self._output.decode(), self.handle.stopped_by, self.handle)


class Listener:
    """A server of one word, which counts who came."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.server = socket.create_server((host, port), backlog=128)
        self.address = self.server.getsockname()
        self.port = self.address[1]
        self.visits = 0
        self.peers: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                one, peer = self.server.accept()
            except OSError:
                return
            self.visits += 1
            self.peers.append(peer[0])
            with one:
                one.sendall(b"hello")

    def close(self) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


def own_address() -> str | None:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("203.0.113.1", 9))
        except OSError:
            return None
        return one.getsockname()[0]
