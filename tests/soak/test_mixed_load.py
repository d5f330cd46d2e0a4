"""Promise 25: hours of mixed load bring no 5xx, memory and file descriptors stay flat, and queues return to zero.

`./rowsmith test --all` runs it with SOAK_MINUTES=15 in total, half of them for each stack; `./rowsmith soak --hours 4`
runs it for four hours on one stack. SOAK_STACK selects a single stack, and SOAK_FOLDER the folder for measurements and
charts (default: the temporary folder of the test).
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from tests.jobs.waiting import eventually
from tests.promises.product import STACKS, Product, running
from tests.soak import charts, sampler
from tests.soak.mixed import Load, as_text

WANTED = [name for name in STACKS if os.environ.get("SOAK_STACK", name) == name]
SECONDS = 60 * float(os.environ.get("SOAK_MINUTES", "15")) / max(1, len(WANTED))
# Flat: over the second half of the time no part grows by more than this, however long that is. A leak of a few
# kilobytes a request shows as hundreds of megabytes in two hours; pools of threads and of memory fill for minutes.
# Of workers and runners it is the process that stays which is judged (sampler.judged says why).
MOST_MB, MOST_SHARE = 24.0, 0.1
MOST_DESCRIPTORS = 10.0
WORK = ("exports", "pushes", "runs")


def unfinished(product: Product) -> dict[str, int]:
    """Return the number of unfinished jobs per kind, according to the database, and unprocessed notifications."""
    api = product.api()
    found = {
        f"{kind} {state}": api.read(f"/{kind}?status={state}&limit=1")["total"]
        for kind in WORK
        for state in ("queued", "running")
    }
    with product.redis() as client:
        found |= {f"ring {name}": client.llen(f"rq:queue:{name}") for name in sampler.QUEUES}
    return {name: count for name, count in found.items() if count}


def measured(product: Product, folder: Path) -> tuple[Load, sampler.Sampler]:
    """Run the load for its time, and return it with the measurements; the charts are drawn in any case."""
    product.plan(requests_per_minute=60_000, rows_per_hour=100_000_000_000)
    load = Load(product)
    sampled = sampler.Sampler(
        product, folder / "soak.csv", load.times, every=max(2.0, min(15.0, SECONDS / 200))
    )
    load.start()
    sampled.start()
    begun = time.monotonic()
    while time.monotonic() - begun < SECONDS and len(load.faults) < 100:
        threading.Event().wait(1)  # the time the promise names, no waiting for anything
    load.stop()
    sampled.stop()
    if sampled.rows:
        charts.write(sampled.rows, folder)
    (folder / "done.json").write_text(as_text(load.done) + "\n")
    (folder / "faults.txt").write_text("\n".join([*load.faults, *sampled.troubles, ""]))
    return load, sampled


@pytest.mark.parametrize("stack", WANTED)
def test_promise_25_hours_of_mixed_load_no_5xx_memory_and_descriptors_flat_queues_return_to_zero(
    stack, tmp_path
):
    folder = Path(os.environ["SOAK_FOLDER"]) / stack if "SOAK_FOLDER" in os.environ else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    with running(stack, "--workers", "1", "--runners", "1") as product:
        load, sampled = measured(product, folder)
        result = f"{load.done}\n" + "\n".join(map(str, sampler.summary(sampled.rows)))
        print(result)
        assert load.faults == [], result
        assert sampled.troubles == [], result
        assert min(load.done.values()) > 0, result
        eventually(lambda: unfinished(product) == {}, within=60)
        logged = product.logs()
        assert "Traceback" not in logged, logged[logged.index("Traceback") - 500 :][:4000]
    late = sampler.warmed(sampled.rows)
    for group in sampler.GROUPS:
        memory = sampler.judged(group)
        allowed = max(MOST_MB, MOST_SHARE * sampler.usual(late, memory))
        assert sampler.growth(late, memory) <= allowed, f"{group}\n{result}"
        assert sampler.growth(late, f"{group}_fds") <= MOST_DESCRIPTORS, f"{group}\n{result}"
