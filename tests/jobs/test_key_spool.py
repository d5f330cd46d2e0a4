"""Captured keys: found by row number, the later sender's before the earlier's, in bounded memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from webapp import limits
from webapp.pushes.services.planning import KeySpool, keys_folder
from webapp.storage import from_url


@pytest.fixture
def spool(tmp_path):
    """Opens the spool of one push, as each attempt does."""
    store = from_url(f"file://{tmp_path}")
    return lambda: KeySpool(store, keys_folder("ws_A", "psh_A"))


def keys(*values):
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["id"])


def numbers(*rows):
    return np.array(rows, np.uint64)


def test_keys_are_found_by_row_in_any_order_and_null_if_missing(spool):
    spool().put(0, numbers(5, 6, 7), keys(50, None, 70), "psh_A", 1)
    spool().put(0, numbers(8, 9), keys(80, 90), "psh_A", 1)
    found = spool().take(0, "id", numbers(9, 5, 6, 100, 8, 5))
    assert found.to_pylist() == [90, 50, None, None, 80, 50]
    assert spool().take(1, "id", numbers(5)).to_pylist() == [None]


def test_later_senders_overwrite_earlier_values(spool):
    spool().put(0, numbers(1, 2, 3, 4), keys(11, 12, 13, 14), "psh_A", 2)
    spool().put(0, numbers(1, 2), keys(21, 22), "psh_A", 3)
    spool().put(0, numbers(1, 2, 3, 4), keys(1, 2, 3, 4), "psh_A", 1)
    assert spool().take(0, "id", numbers(1, 2, 3, 4)).to_pylist() == [21, 22, 13, 14]


def test_halves_sent_after_the_whole_win_though_the_epoch_is_the_same(spool):
    one = spool()
    one.put(0, numbers(1, 2, 3, 4), keys(11, 12, 13, 14), "psh_A", 1)
    one.put(0, numbers(1, 2), keys(21, 22), "psh_A", 1)
    assert spool().take(0, "id", numbers(1, 2, 3, 4)).to_pylist() == [21, 22, 13, 14]


def test_a_retry_adds_keys_and_takes_none_away(spool):
    spool().put(0, numbers(1, 2, 3), keys(1, None, 3), "psh_A", 1)
    spool().put(0, numbers(2, 3), keys(22, None), "psh_B", 1)
    assert spool().take(0, "id", numbers(1, 2, 3)).to_pylist() == [1, 22, 3]


def test_rows_sent_downwards_are_found_too(spool):
    spool().put(0, numbers(3, 2, 1), keys(30, 20, 10), "psh_A", 1)
    assert spool().take(0, "id", numbers(1, 2, 3)).to_pylist() == [10, 20, 30]


def test_no_more_chunks_are_held_than_fit(spool, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_SPOOL_BYTES", 40_000)
    one = spool()
    for start in range(0, 20_000, 1_000):
        rows = np.arange(start, start + 1_000, dtype=np.uint64)
        one.put(0, rows, keys(*(rows.astype(int) * 2).tolist()), "psh_A", 1)
    expected = np.arange(0, 20_000, 7, dtype=np.uint64)[::-1]
    assert one.take(0, "id", expected).to_pylist() == (expected * 2).tolist()
    assert one._bytes <= 40_000


def test_a_chunk_without_a_row_keeps_nothing_and_is_no_error(spool):
    spool().put(0, numbers(), keys(), "psh_A", 1)
    assert spool().take(0, "id", numbers(1)).to_pylist() == [None]
