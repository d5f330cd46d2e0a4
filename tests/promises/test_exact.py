"""Promises 9 and 10 at the running product, by many threads in two processes of callers, against two web processes.

9: 16 threads in 2 processes against 60/min: 60 accepted in any window. Rows per hour never exceeded; a cut stream gives
its rows back; preview costs nothing. 10: the same Idempotency-Key from 20 threads: one effect, 20 equal answers.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.conftest import ROOT, clean_environment
from tests.jobs.waiting import eventually
from tests.promises.product import Product

FIELDS = [{"name": "id", "type": "row_number"}, {"name": "name", "type": "name"}]
WINDOW = 60.0
# Threads that ask until the time is over, and tell when each answer had been asked for and when it came.
CALLER = """
import json, sys, threading, time, requests
url, key, seconds, threads = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
found, refused, lock, end = [], [], threading.Lock(), time.monotonic() + seconds
def call():
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {key}"
    while time.monotonic() < end:
        asked = time.time()
        answer = session.get(f"{url}/me", timeout=30)
        with lock:
            (found if answer.status_code == 200 else refused).append((asked, time.time(), answer.status_code))
        if answer.status_code == 429:
            time.sleep(0.05)
    session.close()
workers = [threading.Thread(target=call) for _ in range(threads)]
[one.start() for one in workers]; [one.join() for one in workers]
print(json.dumps({"accepted": found, "refused": refused}))
"""


@pytest.fixture
def sixty(product: Product):
    """A plan of 60 requests a minute of which none is used, and then the old one."""
    product.plan(requests_per_minute=60, rows_per_hour=100_000_000_000)
    with product.redis() as client:
        client.flushall()
    yield
    product.plan(requests_per_minute=60_000, rows_per_hour=100_000_000_000)


def callers(product: Product, seconds: float, processes: int = 2, threads: int = 8) -> dict[str, list]:
    """What the threads of all processes were answered."""
    command = [sys.executable, "-c", CALLER, product.url, product.key, str(seconds), str(threads)]
    env = clean_environment(PYTHONPATH=str(Path(ROOT)))
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True) for _ in range(processes)
    ]
    out: dict[str, list] = {"accepted": [], "refused": []}
    for popen in started:
        output = json.loads(popen.communicate(timeout=seconds + 120)[0])
        assert popen.returncode == 0
        for name, stored in out.items():
            stored += output[name]
    return out


def test_promise_09_sixteen_threads_in_two_processes_get_exactly_60_in_any_window_of_a_minute(product, sixty):
    """Send requests over two and a half windows. A request is decided between sending and its response. So a window
    with 61 accepted requests would contain 61 requests that were sent after its start and answered before its end."""
    result = callers(product, 2.5 * WINDOW)
    accepted = sorted(result["accepted"])
    assert {status for _, _, status in result["refused"]} == {429}
    for begins, _, _ in accepted:
        inside = [item for item in accepted if item[0] >= begins and item[1] <= begins + WINDOW]
        assert len(inside) <= 60, f"{len(inside)} in the minute from {begins}"
    first = accepted[0][0]
    assert sum(item[1] <= first + WINDOW for item in accepted) == 60, "all 60 are given"
    assert 120 <= len(accepted) <= 180


def test_promise_09_rows_per_hour_are_never_exceeded_by_concurrent_requests(product):
    api = product.api()
    template = api.made("/templates", {"name": "Nine", "fields": FIELDS})["id"]
    used = api.read("/usage")["rows"]["used"]
    product.plan(requests_per_minute=60_000, rows_per_hour=used + 1_000)
    try:
        answers: list[int] = []

        def ask() -> None:
            mine = product.api()
            for _ in range(4):
                found = mine.post(f"/templates/{template}/generate", {"count": 30, "format": "csv"})
                answers.append(found.status_code)
                assert found.status_code != 200 or len(found.text.splitlines()) == 31

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [200] * 33 + [429] * 31
        refused = api.post(f"/templates/{template}/generate", {"count": 11})
        assert refused.json()["error"]["code"] == "quota_exceeded"
        assert api.read("/usage")["rows"]["used"] == used + 990
        # A preview does not count, and still works when no rows are left.
        for _ in range(20):
            assert len(api.made(f"/templates/{template}/preview", {"seed": "s"})["rows"]) == 3
        assert api.read("/usage")["rows"]["used"] == used + 990
    finally:
        product.plan(requests_per_minute=60_000, rows_per_hour=100_000_000_000)


def test_promise_09_a_cut_stream_gives_its_rows_back(product):
    api = product.api()
    template = api.made("/templates", {"name": "Cut", "fields": FIELDS})["id"]
    used, count = api.read("/usage")["rows"]["used"], 5_000_000
    raw = json.dumps({"count": count, "format": "csv", "seed": "s"}).encode()
    place = urlsplit(product.url)
    with socket.create_connection((place.hostname, place.port), timeout=60) as client:
        head = f"POST /templates/{template}/generate HTTP/1.1\r\nHost: {place.netloc}\r\n"
        head += f"Content-Type: application/json\r\nAuthorization: Bearer {product.key}\r\n"
        head += f"Content-Length: {len(raw)}\r\n\r\n"
        client.sendall(head.encode() + raw)
        assert client.recv(1024).startswith(b"HTTP/1.1 200")
        assert api.read("/usage")["rows"]["used"] == used + count
    left = eventually(lambda: (now := api.read("/usage")["rows"]["used"]) < used + count and now, within=60)
    (entry,) = [
        item for item in api.read("/audit?limit=100")["items"] if item["action"] == "template.generate_cut"
    ]
    assert left - used == entry["details"]["made"] < count


def test_promise_10_the_same_idempotency_key_from_20_threads_has_one_effect_and_20_equal_answers(product):
    api = product.api()
    template = api.made("/templates", {"name": "Ten", "fields": FIELDS})["id"]
    scenario = api.made("/scenarios", {"name": "Ten", "code": "print('once')"})["id"]
    database = api.named("/connections", "Shop database")["id"]
    customers = api.named("/templates", "Customers")["id"]
    push = {"connection_id": database, "target": "customers", "count": 5, "seed": "ten", "offset": 5_000_000}
    ways = {
        "/templates": ({"name": "Once", "fields": FIELDS}, "/templates?q=Once"),
        f"/templates/{template}/exports": ({"count": 5}, f"/exports?template_id={template}"),
        f"/templates/{customers}/push": (push, f"/pushes?template_id={customers}"),
        f"/scenarios/{scenario}/run": ({}, f"/scenarios/{scenario}/runs"),
    }
    for path, (body, listed) in ways.items():
        before = api.read(listed)["total"]
        answers, begin = [], threading.Barrier(20)

        def ask(path=path, body=body, answers=answers, begin=begin) -> None:
            mine = product.api()
            begin.wait()
            key = {"Idempotency-Key": f"ten-{path}"[:100]}
            # While the first call is running, a repeated one waits for a while, gets a 409, and tries again.
            while (found := mine.post(path, body, headers=key)).status_code == 409:
                assert found.json()["error"]["code"] == "idempotency_in_progress"
            answers.append((found.status_code, found.text, found.headers.get("Idempotent-Replayed")))

        threads = [threading.Thread(target=ask) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {status for status, _, _ in answers} == {201}, answers
        assert len({text for _, text, _ in answers}) == 1
        assert sorted(str(again) for _, _, again in answers) == ["None"] + ["true"] * 19
        assert api.read(listed)["total"] == before + 1, path


def test_promise_10_another_body_with_the_same_key_is_rejected_and_has_no_effect(product):
    api, key = product.api(), {"Idempotency-Key": f"other-{time.time()}"}
    assert api.post("/templates", {"name": "First", "fields": FIELDS}, headers=key).status_code == 201
    other = api.post("/templates", {"name": "Second one", "fields": FIELDS}, headers=key)
    assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_mismatch")
    assert api.read("/templates?q=Second+one")["total"] == 0
