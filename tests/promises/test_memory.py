"""Promise 11: streaming 100,000 and 1,000,000 rows of 20 fields grows memory by less than 64 MB in any format.

Measured in the web processes of the running product that generate the rows: their peak memory after a stream (the
kernel's VmHWM, reset before) compared with their memory before it.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.promises.product import Product, running
from webapp.engine.formats import FORMATS

MB = 1024 * 1024
MOST = 64 * MB
TYPES = (
    "row_number", "first_name", "last_name", "email", "phone_number", "company_name", "street_address", "city",
    "zip_code", "country", "date", "datetime", "uuid", "boolean", "product_name", "sku", "sentence", "iban", "url",
)  # fmt: skip
FIELDS = [
    *({"name": f"{kind}_{number}", "type": kind} for number, kind in enumerate(TYPES)),
    {"name": "amount", "type": "number", "options": {"min": 0, "max": 100_000, "decimals": 2}},
]


@pytest.fixture(scope="module")
def product(stack: str):
    """One web process, so that all streams are of one."""
    with running(stack, "--workers", "1", "--runners", "1", ROWSMITH_WEB_WORKERS="1") as result:
        result.plan(requests_per_minute=60_000, rows_per_hour=100_000_000_000)
        yield result


@pytest.fixture(scope="module")
def template(product: Product) -> str:
    """A template with twenty fields, generated once in every format to load vocabularies and libraries."""
    api = product.api()
    assert len(FIELDS) == 20
    result = api.made("/templates", {"name": "Twenty", "fields": FIELDS})["id"]
    for format in FORMATS:
        stream(product, result, format, 20_000)
    return result


def stream(product: Product, template: str, format: str, count: int) -> int:
    """Read rows as they come and keep none; the bytes."""
    body = {"count": count, "format": format, "seed": "eleven"}
    with product.api().post(f"/templates/{template}/generate", body, stream=True, timeout=600) as answer:
        assert answer.status_code == 200, answer.text
        return sum(len(piece) for piece in answer.iter_content(MB))


def worker(product: Product) -> int:
    """The web process that answers."""
    (master,) = product.part("web")
    # The processes that it starts itself, for documents and queries, are no web processes.
    (found,) = map(int, Path(f"/proc/{master}/task/{master}/children").read_text().split())
    return found


def resident(pid: int, name: str) -> int:
    """A number of /proc/PID/status, in bytes: VmRSS now, VmHWM the most since it was set back."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def grown(product: Product, template: str, format: str, count: int) -> tuple[int, int]:
    """By how much the process was larger at its largest than before, and the bytes of the stream."""
    pid = worker(product)
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # proc(5): resets VmHWM
    before = resident(pid, "VmRSS")
    size = stream(product, template, format, count)
    return resident(pid, "VmHWM") - before, size


@pytest.mark.parametrize("count", [100_000, 1_000_000])
@pytest.mark.parametrize("format", FORMATS)
def test_promise_11_streaming_rows_of_20_fields_grows_memory_by_less_than_64_mb(
    product, template, format, count
):
    more, size = grown(product, template, format, count)
    assert size > count * 10, "all of them came"
    assert more < MOST, f"{more / MB:.1f} MB for {size / MB:.0f} MB of {format}"


def test_promise_11_eight_parallel_streams_grow_it_by_less_than_64_mb_each(product, template):
    pid = worker(product)
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    before = resident(pid, "VmRSS")
    threads = [
        threading.Thread(target=stream, args=(product, template, format, 100_000))
        for format in [*FORMATS, "csv", "xlsx"]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert resident(pid, "VmHWM") - before < len(threads) * MOST
