"""Measure the speed of pushes to an API, compared with a plain `requests.Session` loop over the same rows, in
one run.

.venv/bin/python bench/rest_push.py [--rows 3000] [--large 100000] [--rounds 3]

The API is a separate server process that responds to each POST with 201 after `--latency` milliseconds.
Rowsmith runs a complete push: planned by the service and executed by the job with its ledger, with rows
generated while sending and the default of `limits.HTTP_PARALLEL` parallel requests. The loop gets its rows as
existing JSON and keeps one connection. Figures are the minimum wall-clock time of the rounds. Memory is the
growth of the pushing process over `--large` rows to a target without latency. Prints the figures and their
targets; exits with status 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import requests

from bench.generate import resident

FASTER, GROWTH_MB, LATENCY_MS = 5.0, 64.0, 10.0
_WARM_ROWS = 2_000


# --- The target -------------------------------------------------------------------------------------------------


class Echo(asyncio.Protocol):
    """Responds to every POST with its body and 201, after a delay."""

    latency = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection of a client."""
        self._transport, self._held = transport, b""

    def data_received(self, data: bytes) -> None:
        """Handle a part of a request; each connection handles one at a time."""
        self._held += data
        head, end, body = self._held.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(body) < length:
            return
        self._held = b""
        answer = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        asyncio.get_running_loop().call_later(self.latency, self._transport.write, answer % (len(body), body))


def serve(latency_ms: float) -> None:
    """Run the target: print its port, and respond until its input ends."""
    Echo.latency = latency_ms / 1000

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Echo, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await loop.run_in_executor(None, sys.stdin.read)

    asyncio.run(run())


@contextmanager
def target(latency_ms: float) -> Iterator[str]:
    """Return the address of a target in a separate process."""
    command = [sys.executable, __file__, "--serve", "--latency", str(latency_ms)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


# --- The variants
# -----------------------------------------------------------------------------------------------


def looped(url: str, bodies: list[bytes]) -> float:
    """Return the seconds of a plain loop."""
    start = time.perf_counter()
    with requests.Session() as session:
        session.headers["Content-Type"] = "application/json"
        for number, body in enumerate(bodies):
            answer = session.post(f"{url}/rows", data=body, headers={"Idempotency-Key": str(number)})
            assert answer.status_code == 201
    return time.perf_counter() - start


def bodies(rows: int) -> list[bytes]:
    """Return the benchmark template's rows as JSON."""
    from bench.push_sending import batches

    result: list[bytes] = []
    for batch in batches(rows):
        result += [json.dumps(row, default=str).encode() for row in batch.to_pylist()]
    return result


def figures(rows: int, rounds: int, latency_ms: float) -> dict[str, float]:
    """Return the rows per second of each variant, the best of alternating rounds."""
    from bench import push_job

    ready = bodies(rows)
    taken: dict[str, list[float]] = {"the push": [], "requests.Session": []}
    with target(latency_ms) as url, push_job.service("rest", {"base_url": url}) as service:
        service.push("rows", 200)
        for _ in range(rounds):
            taken["the push"].append(service.push("rows", rows)[0])
            taken["requests.Session"].append(looped(url, ready))
    return {name: rows / min(seconds) for name, seconds in taken.items()}


def grow(rows: int) -> None:
    """Print the megabytes by which this process grows over this number of rows, and rows per second."""
    from bench import push_job

    with target(0) as url, push_job.service("rest", {"base_url": url}) as service:
        service.push("rows", _WARM_ROWS)
        before = resident()
        seconds, _ = service.push("rows", rows)
        print(resident() - before, rows / seconds)


def main() -> int:
    """Parse the command line and run. Return 1 if a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=LATENCY_MS, help="milliseconds before a response")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--grow", action="store_true", help=argparse.SUPPRESS)
    values = parser.parse_args()
    if values.serve:
        serve(values.latency)
        return 0
    if values.grow:
        grow(values.large)
        return 0
    found = figures(values.rows, values.rounds, values.latency)
    for name, rate in found.items():
        print(f"{name:<20}{rate:10,.0f} rows/s at {values.latency:g} ms", flush=True)
    ratio = found["the push"] / found["requests.Session"]
    report = [("the push, compared with the loop's rate", ratio, FASTER, ratio >= FASTER)]
    if values.large:
        command = [sys.executable, __file__, "--grow", "--large", str(values.large)]
        output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.split()
        print(f"{'the push':<20}{float(output[1]):10,.0f} rows/s without latency, {values.large:,} rows")
        growth = float(output[0])
        report.append(
            (f"memory growth over {values.large:,} rows, MB", growth, GROWTH_MB, growth <= GROWTH_MB)
        )
    for name, value, expected, good in report:
        print(f"{name:<45} {value:6.2f}  target {expected:g}{'' if good else '  MISSED'}", flush=True)
    return 0 if all(good for *_, good in report) else 1


if __name__ == "__main__":
    sys.exit(main())
