"""Parallel edits at the running product: without `If-Match` the last one stays, and none is answered with 503."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.promises.product import Api, Product

ROUNDS: Final = 6
PARALLEL: Final = 50
FIELDS: Final = [{"name": "id", "type": "row_number"}]


def test_50_parallel_edits_of_one_template_without_if_match_all_succeed(product: Product):
    template = product.api().made("/templates", {"name": "Edited", "fields": FIELDS})
    path = f"/templates/{template['id']}"
    editors = [product.api() for _ in range(PARALLEL)]

    def edit(number: int) -> int:
        body = {"description": f"edit {number}"}
        return editors[number % PARALLEL].call("PATCH", path, json=body).status_code

    with ThreadPoolExecutor(PARALLEL) as threads:
        statuses = Counter(threads.map(edit, range(PARALLEL * ROUNDS)))
    assert statuses == {200: PARALLEL * ROUNDS}
    assert product.api().read(path)["version"] == template["version"] + PARALLEL * ROUNDS


def test_60_threads_of_mixed_work_get_no_503(product: Product):
    api = product.api()
    template = api.made("/templates", {"name": "Mixed", "fields": FIELDS})["id"]

    def work(number: int) -> list[int]:
        own: Api = product.api()
        created = own.post("/templates", {"name": f"Mixed {number}", "fields": FIELDS})
        key = own.post("/api-keys", {"name": f"key {number}", "scopes": ["read"]})
        answers = [
            created,
            own.get("/templates"),
            own.call("PATCH", f"/templates/{template}", json={"description": str(number)}),
            own.post("/generate", {"fields": FIELDS, "count": 10, "format": "csv"}),
            own.post(f"/templates/{template}/exports", {"count": 10, "format": "csv"}),
            own.call("DELETE", f"/templates/{created.json().get('id')}"),
            key,
            own.call("DELETE", f"/api-keys/{key.json().get('id')}"),
        ]
        return [answer.status_code for answer in answers]

    with ThreadPoolExecutor(60) as threads:
        statuses = Counter(status for each in threads.map(work, range(180)) for status in each)
    assert not [status for status in statuses if status >= 400], statuses
