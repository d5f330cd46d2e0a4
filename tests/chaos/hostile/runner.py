"""Run one hostile program next to a harmless neighbour: `python -m tests.chaos.hostile.runner`, with JSON settings on
standard input and a JSON result on standard output."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

from jobs.sandbox import Caps, Mode, SandboxHandle, SandboxSpec, mode, outputs, start

MB = 1024 * 1024
PROGRAMS = Path(__file__).with_name("programs")
CAPS = Caps(
    wall_seconds=15, cpu_seconds=3, memory_bytes=256 * MB, processes=24, file_bytes=48 * MB, tmp_bytes=32 * MB,
    outputs_bytes=64 * MB,
)  # fmt: skip
# Where files are made slowly, making too many of them takes longer than all else.
LONGER = dict.fromkeys(("many_files", "many_files_tmp"), replace(CAPS, wall_seconds=40, cpu_seconds=20))
# Processor time is taken at the pace of a machine that does other things too.
LONGER |= dict.fromkeys(("busy_loop", "cpu_orphans", "cpu_ignored"), replace(CAPS, wall_seconds=40))
# Locks are counted every two seconds, and taking them uses all processors in the meantime.
LONGER |= {"file_locks": replace(CAPS, wall_seconds=40, cpu_seconds=20)}
NEIGHBOUR = "import time\nwhile True:\n    print('tick')\n    time.sleep(0.05)\n"


class Canary:
    """Listens where programs must not connect: on loopback, by TCP and UDP, and on an abstract Unix socket."""

    def __init__(self) -> None:
        self.touched: list[str] = []
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(f"\0canary-{self.port}")
        self.unix.listen()
        for name, take in (
            ("tcp", self.tcp.accept),
            ("udp", lambda: self.udp.recv(10)),
            ("unix", self.unix.accept),
        ):
            threading.Thread(target=self.watch, args=(name, take), daemon=True).start()

    def watch(self, name: str, take: object) -> None:
        while True:
            take()
            self.touched.append(name)


class Running:
    """A program in a new folder, and its output."""

    def __init__(
        self, folder: Path, source: Path | str, way: Mode, env: dict[str, str], **settings: object
    ) -> None:
        self.folder = folder
        for name in ("code", "environment/bin", "uploads", "outputs"):
            (folder / name).mkdir(parents=True)
        text = source if isinstance(source, str) else source.read_text()
        (folder / "code" / "main.py").write_text(text)
        (folder / "uploads" / "given.txt").write_text("given")
        python = folder / "environment" / "bin" / "python3"
        python.symlink_to(os.path.realpath(sys.executable))
        box = SandboxSpec(
            command=("python3", "main.py"),
            code=folder / "code",
            environment=folder / "environment",
            read_only=(),
            uploads=folder / "uploads",
            outputs=folder / "outputs",
            env={"UPLOADS": str(folder / "uploads"), "OUTPUTS": str(folder / "outputs"), **env},
            **{"caps": CAPS, **settings},
        )
        reading, writing = os.pipe()
        self.handle: SandboxHandle = start(box, way, writing)
        os.close(writing)
        self.output, self.size = b"", 0
        self.reader = threading.Thread(target=self.read, args=(reading,))
        self.reader.start()

    def read(self, reading: int) -> None:
        while part := os.read(reading, 65536):
            self.size += len(part)
            self.output = (self.output + part)[-200_000:]
        os.close(reading)

    def close(self) -> None:
        self.handle.close()
        self.reader.join()


def main() -> None:
    value = json.load(sys.stdin)
    os.environ["WORKER_SECRET"] = "canary-of-the-worker"
    # In /tmp, so that an ordinary user can access it; the worker's own folder is not accessible.
    top = Path(tempfile.mkdtemp(prefix="hostile-"))
    top.chmod(0o711)
    secret = top / "secret.txt"
    secret.write_text("canary-of-the-host")
    canary = Canary()
    api = socket.create_server(("127.0.0.1", 0))
    way = mode(value["mode"])
    common = {"network": value.get("network", "full"), "api": api.getsockname()}
    neighbour = Running(top / "neighbour", NEIGHBOUR, way, {}, caps=replace(CAPS, wall_seconds=300), **common)
    env = {
        "HOST_SECRET": str(secret),
        "HOST_FOLDER": str(top),
        "NEIGHBOUR": str(top / "neighbour"),
        "CANARY": str(canary.port),
        "API": str(api.getsockname()[1]),
        "WORKER": str(os.getpid()),
        "TOKEN": value["token"],
    }
    begun = time.monotonic()
    caps = LONGER.get(value["program"], CAPS)
    hostile = Running(top / "hostile", PROGRAMS / f"{value['program']}.py", way, env, caps=caps, **common)
    if value.get("terminate"):
        while b"ready" not in hostile.output:
            time.sleep(0.01)
        hostile.handle.terminate()
        hostile.handle.wait(1)
        hostile.handle.kill()
    code = hostile.handle.wait(caps.wall_seconds + 10)
    took = time.monotonic() - begun
    hostile.close()
    before = neighbour.size
    time.sleep(0.5)
    found = {
        "mode": way.name,
        "code": code,
        "stopped_by": hostile.handle.stopped_by,
        "seconds": took,
        "output": hostile.output.decode(errors="replace"),
        "size": hostile.size,
        "touched": canary.touched,
        "neighbour_works": neighbour.handle.poll() is None and neighbour.size > before,
        "files": [
            str(file.relative_to(top / "hostile" / "outputs"))
            for file in outputs.files(top / "hostile" / "outputs")
        ],
        "secret": secret.read_text(),
        "left_on_host": sorted(path.name for path in (*top.glob("x*"), *(top / "hostile").glob("x*"))),
    }
    neighbour.close()
    outputs.remove(top)
    print(json.dumps(found), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
