"""Closing a stream frees its memory immediately, without garbage collection."""

from __future__ import annotations

import gc

import pytest

from tests.engine.formats import samples
from webapp.engine.formats.layout import Layout, PieceMatrix

MADE = samples.columns({name: samples.FLAT[name] for name in ("whole", "price", "flag", "day")}, 200)


def stream(name):
    """A file of three blocks, piece by piece."""
    kind = samples.FORMATS[name]
    return samples.write(kind(samples.schema(MADE), kind.Options(), title="Rows"), [list(MADE.values())] * 3)


def buffers():
    """What holds the pieces of blocks, of all objects since the start of the test."""
    return [item for item in gc.get_objects() if isinstance(item, Layout | PieceMatrix)]


@pytest.mark.parametrize("name", [name for name in samples.FORMATS if name != "parquet"])
def test_a_stream_that_ended_or_was_left_leaves_no_buffers(name):
    gc.freeze()  # what the process holds already is not looked through for every piece
    gc.disable()
    try:
        whole = stream(name)
        assert sum(len(piece) for piece in whole) > 0
        left = stream(name)
        while not buffers():
            next(left)
        del whole, left
        assert not buffers()
    finally:
        gc.enable()
        gc.unfreeze()
