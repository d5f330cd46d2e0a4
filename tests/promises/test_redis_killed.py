"""Redis is killed while requests are under way: each of them succeeds or is answered 503 `unavailable` with
`Retry-After`, none is answered 500, and the log has no error of it."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from typing import Any

import requests

from tests.jobs.waiting import eventually
from tests.promises.product import Product
from tests.promises.test_durable import restart

FIELDS = [{"name": "id", "type": "row_number"}, {"name": "name", "type": "name"}]


def test_requests_in_flight_are_unavailable_while_redis_is_killed_and_never_an_internal_error(
    product: Product,
):
    api = product.api()
    template = api.made("/templates", {"name": "Rows", "fields": FIELDS})["id"]
    target = api.made("/connections", {"name": "File", "type": "sqlite", "settings": {"file": "rows.db"}})[
        "id"
    ]
    push: dict[str, Any] = {"connection_id": target, "target": "rows", "count": 1, "create_table": True}
    calls: list[tuple[str, str, Any]] = [
        ("GET", "/templates", None),
        ("GET", "/usage", None),
        ("POST", f"/templates/{template}/generate", {"count": 2_000}),
        ("POST", f"/templates/{template}/preview", {}),
        ("POST", f"/templates/{template}/push", push),
        ("POST", f"/templates/{template}/exports", {"count": 10}),
        ("POST", "/templates", {"name": "One more", "fields": FIELDS}),
        ("GET", "/health/ready", None),
    ]
    over = threading.Event()
    answers: Counter[int] = Counter()
    wrong: list[str] = []

    def ask(number: int) -> None:
        mine = product.api()
        while not over.is_set():
            number += 1
            method, path, body = calls[number % len(calls)]
            try:
                answer = mine.call(method, path, **({"json": body} if body is not None else {}))
            except requests.exceptions.ChunkedEncodingError:
                answers[0] += 1  # a stream that had begun
                continue
            answers[answer.status_code] += 1
            if answer.status_code in (200, 201):
                continue
            error = answer.json()["error"]
            if (answer.status_code, error["code"]) != (503, "unavailable"):
                wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
            elif path != "/health/ready" and "Retry-After" not in answer.headers:
                wrong.append(f"{method} {path}: no Retry-After")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            time.sleep(1.0)
            restart(product)
        eventually(lambda: answers[200] > 100 and answers[503] > 0, 60)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    logged = [line for line in product.logs().splitlines() if re.search(r" ERROR .*request req_", line)]
    assert logged == []
