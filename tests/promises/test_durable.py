"""Promises 5 and 6 at the running product: Redis emptied and restarted, every part restarted ten times, under load.

5: emptying or restarting Redis loses no queued work and no log line. 6: SIGTERM drains: streams finish, workers hand
back their lease, exit within 30 s; ten rolling restarts under load lose nothing.
"""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.cli.conftest import processes
from tests.jobs.waiting import eventually
from tests.promises.product import Api, Product
from tests.soak.mixed import events
from webapp import limits

LINES = 400
PRINTS = f"""
import time
for number in range({LINES}):
    print("line", number)
    time.sleep(0.01)
"""
FIELDS = [{"name": "id", "type": "row_number"}, {"name": "name", "type": "name"}]
WITHIN = 240


class Work:
    """Exports, pushes and runs that were accepted, and what has to become of them."""

    def __init__(self, product: Product) -> None:
        self.product, self.api = product, product.api()
        self.template = self.api.made("/templates", {"name": "Durable", "fields": FIELDS})["id"]
        self.scenario = self.api.made("/scenarios", {"name": "Prints", "code": PRINTS, "network": "none"})[
            "id"
        ]
        settings = {"file": f"durable{time.monotonic_ns()}.db"}
        self.database = self.api.made(
            "/connections", {"name": "Durable", "type": "sqlite", "settings": settings}
        )["id"]
        self.exports: list[str] = []
        self.pushes: list[str] = []
        self.runs: list[str] = []

    def ask(self, api: Api, number: int, *, run: bool = True) -> None:
        """One of each."""
        patient(
            lambda: self.exports.append(api.made(f"/templates/{self.template}/exports", export(number))["id"])
        )
        push = {"connection_id": self.database, "target": f"t{number}", "create_table": True, "count": 1_000,
                "seed": str(number)}  # fmt: skip
        patient(lambda: self.pushes.append(api.made(f"/templates/{self.template}/push", push)["id"]))
        if run:
            patient(lambda: self.runs.append(api.made(f"/scenarios/{self.scenario}/run")["id"]))

    def all_done(self) -> None:
        """Each has ended well, and what it left is whole."""
        for item in self.exports:
            ended = self.api.ended(f"/exports/{item}", WITHIN)
            assert ended["status"] == "completed", ended["error"]
            content = self.api.get(f"/exports/{item}/download").content
            assert hashlib.sha256(content).hexdigest() == ended["sha256"]
            assert len(content.splitlines()) == ended["count"] + 1
        for push in self.pushes:
            ended = self.api.ended(f"/pushes/{push}", WITHIN)
            counts = ended["counts"]
            assert (ended["status"], counts["delivered"] + counts["unknown"]) == ("completed", 1_000), ended
            assert counts["unknown"] == 0, counts
        for run in self.runs:
            self.run_done(run)

    def run_done(self, run_id: str) -> None:
        where = f"/scenarios/{self.scenario}/runs/{run_id}"
        ended = self.api.ended(where, WITHIN)
        assert ended["status"] == "completed", ended["error"]
        lines = [line for line in self.api.get(f"{where}/logs").text.splitlines() if line.startswith("line ")]
        assert lines == [f"line {number}" for number in range(LINES)]


def export(number: int) -> dict[str, Any]:
    return {"count": 20_000, "format": "csv", "seed": str(number)}


def patient(ask: Callable[[], Any]) -> Any:
    """Retry while connections are refused or the service is unavailable, as an ordinary client does."""

    def tried() -> tuple[Any] | None:
        try:
            return (ask(),)
        except requests.ConnectionError:
            return None
        except AssertionError as error:
            if ": 503 " in str(error) or ": 500 " in str(error):
                return None
            raise

    return eventually(tried, WITHIN)[0]


class Follower(threading.Thread):
    """Follows a run's log, and comes again with the number of the last line it saw, as browsers do."""

    def __init__(self, product: Product, path: str) -> None:
        super().__init__(daemon=True)
        self.product, self.path = product, path
        self.lines: list[tuple[int, str]] = []
        self.ended = False

    def run(self) -> None:
        api, last = self.product.api(), ""
        deadline = time.monotonic() + WITHIN
        while not self.ended and time.monotonic() < deadline:
            headers = {"Last-Event-ID": last} if last else {}
            try:
                with api.get(f"{self.path}?follow=true", stream=True, headers=headers, timeout=60) as answer:
                    for kind, number, data in events(answer) if answer.status_code == 200 else ():
                        last = number or last
                        if kind == "log":
                            self.lines.append((int(number), data))
                        self.ended = self.ended or kind == "end"
            except (requests.RequestException, OSError):
                threading.Event().wait(0.1)


def empty(product: Product) -> None:
    with product.redis() as client:
        client.flushall()


def restart(product: Product) -> None:
    """Redis dies as if by a loss of power and comes back knowing nothing."""
    if product.redis_server is not None:
        product.redis_server.stop()
        product.redis_server.start()
        return
    (pid,) = product.part("valkey")
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: product.part("valkey") - {pid}, within=60)

    def answers() -> bool:
        with product.redis() as client:
            try:
                return bool(client.ping())
            except Exception:  # not ready yet, with any error
                return False

    eventually(answers, within=60)


@pytest.mark.parametrize("strike", [empty, restart])
def test_promise_05_emptying_or_restarting_redis_loses_no_queued_work_and_no_log_line(product, strike):
    work = Work(product)
    api = product.api()
    for number in range(6):
        work.ask(api, number, run=number < 3)
    followers = [Follower(product, f"/scenarios/{work.scenario}/runs/{run}/logs") for run in work.runs]
    for follower in followers:
        follower.start()
    for _ in range(3):
        threading.Event().wait(0.7)  # at any moment of the work
        strike(product)
    work.all_done()
    for follower in followers:
        follower.join(WITHIN)
        assert follower.ended, "a follower gets an end"
        numbers = [number for number, _ in follower.lines]
        assert numbers == sorted(set(numbers)), "no line twice, all in order"
        assert [text for _, text in follower.lines if text.startswith("line ")] == [
            f"line {n}" for n in range(LINES)
        ]
    with product.redis() as client:
        eventually(lambda: not any(client.llen(key) for key in client.keys("rq:queue:*")), within=60)


class Streams(threading.Thread):
    """Requests rows repeatedly; every response that starts must be complete."""

    def __init__(self, product: Product, template: str) -> None:
        super().__init__(daemon=True)
        self.product, self.template = product, template
        self.enough = threading.Event()
        self.whole, self.broken, self.refused = 0, [], 0

    def run(self) -> None:
        api = self.product.api()
        body = {"count": 30_000, "format": "csv", "seed": "whole"}
        while not self.enough.is_set():
            begun = False
            try:
                with api.post(f"/templates/{self.template}/generate", body, stream=True) as answer:
                    if answer.status_code == 503:
                        self.refused += 1
                        continue
                    begun = answer.status_code == 200
                    lines = sum(piece.count(b"\n") for piece in answer.iter_content(65_536))
                if begun and lines == 30_001:
                    self.whole += 1
                else:
                    self.broken.append(f"{answer.status_code}: {lines} lines")
            except (requests.RequestException, OSError) as error:
                if begun:
                    self.broken.append(f"{type(error).__name__}: {error}")
                else:
                    self.refused += 1  # connection refused at this moment
                    self.enough.wait(0.05)


def terminated(product: Product, part: str) -> float:
    """Ask a part to end by SIGTERM; the seconds until it had gone. Returns when its successor works."""
    (pid,) = product.part(part)
    begun = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: pid not in processes(), within=60)
    took = time.monotonic() - begun
    eventually(lambda: product.part(part) - {pid} and product.ready(), within=90)
    return took


def test_promise_06_ten_rolling_restarts_under_load_lose_nothing_and_every_part_ends_within_30_seconds(
    product,
):
    work = Work(product)
    streams = [Streams(product, work.template) for _ in range(3)]
    for stream in streams:
        stream.start()
    slowest: dict[str, float] = {}
    api, since = product.api(), dict.fromkeys(("worker", "web", "sweeper"), time.monotonic())
    for round_ in range(10):
        work.ask(api, round_, run=False)
        for part, began in since.items():
            # A part that ends right after its start again and again is taken for broken.
            eventually(lambda began=began: time.monotonic() > began + limits.START_FAILURE_SECONDS, within=60)
            slowest[part] = max(slowest.get(part, 0), terminated(product, part))
            since[part] = time.monotonic()
    for stream in streams:
        stream.enough.set()
    for stream in streams:
        stream.join(120)
    assert max(slowest.values()) <= limits.STOP_SECONDS, slowest
    assert [fault for stream in streams for fault in stream.broken] == [], "what was begun is finished"
    assert sum(stream.whole for stream in streams) > 10
    work.all_done()


def test_promise_06_a_runner_that_is_restarted_loses_no_queued_run(product):
    """A program that is quick ends before its runner does; queued ones are the next runner's."""
    work, api = Work(product), product.api()
    for _ in range(8):
        work.runs.append(api.made(f"/scenarios/{work.scenario}/run")["id"])
    eventually(
        lambda: api.read(f"/scenarios/{work.scenario}/runs/{work.runs[0]}")["status"] == "running", WITHIN
    )
    slowest = 0.0
    for _ in range(3):
        slowest = max(slowest, terminated(product, "runner"))
    assert slowest <= limits.STOP_SECONDS
    work.all_done()


def test_promise_06_the_whole_product_stops_on_sigterm_and_continues_with_queued_work(product):
    """Runs last in the module, because it restarts the product with its data."""
    work, api = Work(product), product.api()
    for number in range(5):
        work.ask(api, number)
    begun = time.monotonic()
    assert product.stop() == 0
    # One part after the other, each within its time.
    assert time.monotonic() - begun <= 5 * limits.STOP_SECONDS
    product.start()
    work.api.url = product.url
    work.all_done()
