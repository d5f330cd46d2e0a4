from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from webapp.engine import formats
from webapp.engine.formats import layout
from webapp.engine.formats.layout import PoolCache, buffer_identity


def upper(values: pa.Array) -> pa.Array:
    return pa.array([value.upper() for value in values.to_pylist()], pa.string())


@pytest.fixture
def calls():
    return []


@pytest.fixture
def write(calls):
    def counted(values: pa.Array) -> pa.Array:
        calls.append(len(values))
        return upper(values)

    return counted


def test_a_small_pool_is_written_once(calls, write):
    cache, pool = PoolCache(), pa.array(["a", "b", "c" * 20])
    first = cache.get("k", pool, 10, write)
    assert first.longest == 20
    assert cache.get("k", pool, 10, write) is first
    assert calls == [3]


def test_another_spelling_is_another_entry(calls, write):
    cache, pool = PoolCache(), pa.array(["a", "b"])
    cache.get("k", pool, 10, write)
    cache.get("other", pool, 10, write)
    assert calls == [2, 2]


def test_formats_that_change_nothing_share_one_pool():
    cache, pool = PoolCache(), pa.array([f"a text of some length, number {i}" for i in range(1_000)])
    first = cache.get("csv", pool, 1_000, lambda values: values)
    alone = cache.bytes
    others = [cache.get(key, pool, 1_000, lambda values: values) for key in ("json", "sql")]
    assert all(other is first for other in others)
    assert cache.bytes - alone < pool.nbytes / 10
    assert cache.get("upper", pool, 1_000, upper) is not first
    assert cache.bytes - alone > pool.nbytes


def test_a_shared_pool_is_dropped_after_all_who_use_it():
    cache = PoolCache(capacity=200_000)
    used = pa.array([f"used {i}" for i in range(100)])
    first = cache.get("csv", used, 100, lambda values: values)
    for number in range(200):
        cache.get("json", pa.array([f"{number} {i}" for i in range(100)]), 100, lambda values: values)
        assert cache.get("csv", used, 100, lambda values: values) is first
        assert cache.bytes <= 200_000
    assert cache.bytes == sum(entry.size for entry in cache._entries.values())


def test_a_large_pool_is_not_written_for_a_few_rows(calls, write):
    cache, pool = PoolCache(), pa.array([f"v{i}" for i in range(1_000)])
    assert cache.get("k", pool, 10, write) is None
    assert calls == []


def test_a_large_pool_is_written_once_enough_rows_have_used_it(calls, write):
    cache, pool = PoolCache(), pa.array([f"v{i}" for i in range(1_000)])
    answers = [cache.get("k", pool, 100, write) for _ in range(6)]
    assert answers[0] is None
    assert answers[-1] is not None
    assert calls == [1_000]


def test_a_pool_that_cannot_be_written_is_only_tried_once():
    requests = []
    cache, pool = PoolCache(), pa.array(["a"])
    for _ in range(3):
        assert cache.get("k", pool, 10, lambda values: requests.append(1)) is None
    assert requests == [1]


def test_a_pool_with_nulls_is_not_changed(calls, write):
    assert PoolCache().get("k", pa.array(["a", None]), 10, write) is None
    assert calls == []


def test_the_cache_stays_within_its_bytes(write):
    cache = PoolCache(capacity=50_000)
    for number in range(200):
        cache.get("k", pa.array([f"{number} {i}" for i in range(100)]), 100, write)
        assert cache.bytes <= 50_000


def test_a_held_pool_cannot_be_mistaken_for_one_at_its_old_address(write):
    cache = PoolCache()
    for number in range(300):  # each array may reuse the address of the previous one
        found = cache.get("k", pa.array([f"the pool of number {number}"]), 1, write)
        assert found.data.to_pybytes() == b"THE POOL OF NUMBER %d" % number


def test_slices_of_one_pool_differ():
    pool = pa.array(["a", "b", "c"])
    assert buffer_identity(pool.slice(0, 2)) != buffer_identity(pool.slice(1, 2))


def test_threads_share_one_cache(write):
    cache, pool, found = PoolCache(), pa.array(["a", "b"]), []
    threads = [
        threading.Thread(target=lambda: found.append(cache.get("k", pool, 10, write))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(pool is not None for pool in found)


def test_pools_of_one_number_are_not_confused(monkeypatch):
    pools = [pa.array([f"a long text {i} of pool {number}" for i in range(50)]) for number in range(5)]
    schema = pa.schema([pa.field(f"column_{number}", pa.string()) for number in range(5)])
    block = [
        pa.DictionaryArray.from_arrays(pa.array([(7 * row + number) % 50 for row in range(200)]), pool)
        for number, pool in enumerate(pools)
    ]
    kind = formats.FORMATS["csv"]

    def written():
        monkeypatch.setattr(layout, "POOLS", PoolCache())
        return b"".join(formats.write(kind(schema, kind.Options(), title="rows"), [block, block]))

    apart = written()
    monkeypatch.setattr(layout, "_POOL_NUMBERS", 1)
    assert written() == apart
    assert b"a long text 49 of pool 4" in apart
