"""Joined texts of a few rows are read from the pools without creating Python strings."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from webapp.engine import text_parts

TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=20)), min_size=1, max_size=40)


@given(TEXTS, st.data())
def test_a_few_places_of_any_part_of_a_pool_are_its_texts(texts, data):
    start = data.draw(st.integers(0, len(texts) - 1))
    part = texts[start:]
    places = data.draw(st.lists(st.integers(0, len(part) - 1), max_size=text_parts.FEW_ROWS))
    result = text_parts.take(pa.array(texts, pa.string()).slice(start), np.array(places, np.int64))
    assert result.to_pylist() == [part[place] for place in places]


@given(st.lists(st.text(max_size=5), min_size=1, max_size=10), st.integers(0, 2 * text_parts.FEW_ROWS))
def test_few_rows_are_joined_as_many_are(texts, rows):
    pool, index = pa.array(texts, pa.string()), np.arange(rows, dtype=np.uint64) % len(texts)
    generated = text_parts.join_parts(
        (pool, index), (pa.array(["-"]), np.zeros(rows, np.uint64)), (pool, index)
    )
    assert generated.to_pylist() == [f"{texts[place]}-{texts[place]}" for place in index.tolist()]


def test_of_pools_that_a_few_rows_were_taken_from_no_texts_are_kept():
    pools = [pa.array([f"{number} {place}" for place in range(5_000)]) for number in range(40)]
    index = np.arange(3)
    text_parts.take(pools[0], index)
    before = len(text_parts._POOL_BUFFERS)
    tracemalloc.start()
    try:
        for pool in pools:
            text_parts.join_parts((pool, index), (pool, index))
            text_parts.take(pool, index)
        stored, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert stored < 10_000 * len(pools)  # bytes; as Python strings, one pool would take 300,000
    pool = None  # the loop's
    pools.clear()
    assert len(text_parts._POOL_BUFFERS) < before  # what is known of a pool goes with it
