"""Store the keys that a target generated for rows of a push, by chunk, and find them by row number.

Child tables read their parents' keys from here, and an undo finds the rows to delete, both one chunk at a time and in
constant memory. A chunk's file is written before the chunk is committed, so a crash loses no keys. Rows that were sent
twice have two files, of which the later one is valid: file names contain the push, the epoch of its sender and a
number.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.storage import Storage

ROW: Final = " row"  # The column of row numbers; the leading space distinguishes it from a target's columns


@dataclass(frozen=True, slots=True, order=True)
class _File:
    """The keys of one chunk. Files are ordered from the earliest sender to the latest."""

    push_id: str
    epoch: int
    turn: int
    first: int
    last: int
    key: str


class KeySpool:
    """The captured keys of a push and of its retries. `folder` is their folder in the storage. Rows are counted from 0,
    with the offset, as in `TableRows.batch`. Thread-safe."""

    def __init__(self, store: Storage, folder: str) -> None:
        self._store, self._folder = store, folder
        self._files: dict[int, list[_File]] = {}
        self._held: OrderedDict[str, pa.Table] = OrderedDict()
        self._bytes = 0
        self._turn = 0
        self._lock = threading.Lock()

    def put(self, table: int, rows: np.ndarray, keys: pa.RecordBatch, push_id: str, epoch: int) -> None:
        """Store the keys of a chunk: one row of `keys` for each of `rows` (``uint64[n]``), null for rows without a
        key."""
        if not len(rows):  # A chunk in which no row could be sent
            return
        order = np.argsort(rows)
        held = pa.Table.from_batches([keys]).append_column(ROW, pa.array(rows.astype(np.uint64)))
        held = held.take(pa.array(order))
        self._turn += 1
        name = f"{int(rows.min())}-{int(rows.max())}.{push_id}.{epoch}.{self._turn}"
        key = f"{self._folder}/{table}/{name}"
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, held.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
            file.write_table(held)
        self._store.put(key, [sink.getvalue().to_pybytes()])
        with self._lock:
            files = [one for one in self._of(table) if one.key != key]
            self._files[table] = sorted([*files, _parsed(key)])
            self._forget(key)

    def take(self, table: int, column: str, rows: np.ndarray) -> pa.Array:
        """Return the keys of some rows (``uint64[n]``, any order) of a table, null for rows without a key."""
        with self._lock:
            return self._take(table, column, rows)

    def _take(self, table: int, column: str, rows: np.ndarray) -> pa.Array:
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        places = np.full(len(rows), -1, np.int64)
        pieces: list[pa.Array] = []
        held = 0
        for file in self._of(table):
            start, end = np.searchsorted(ordered, [file.first, file.last + 1])
            if start == end:
                continue
            piece, found = self._piece(file, column, ordered[start:end])
            if piece is None:
                continue
            slots = order[start:end][found]
            places[slots] = held + np.arange(len(slots))
            pieces.append(piece)
            held += len(piece)
        if not pieces:
            return pa.nulls(len(rows))
        # An API may return numbers for some rows and texts for others.
        kind = pieces[0].type if len({piece.type for piece in pieces}) == 1 else pa.string()
        values = pa.concat_arrays([piece if piece.type == kind else piece.cast(kind) for piece in pieces])
        return values.take(pa.array(places, mask=places < 0))

    def _piece(self, file: _File, column: str, wanted: np.ndarray) -> tuple[pa.Array | None, np.ndarray]:
        """Return the keys in a file for some ascending rows, and a mask (``bool[n]``) of the rows that have one."""
        table = self._load(file)
        if column not in table.column_names:
            return None, np.zeros(len(wanted), np.bool_)
        known = table.column(ROW).to_numpy()
        values = table.column(column).combine_chunks()
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        valid = np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), np.bool_)
        found = (known[at] == wanted) & valid[at]
        return (values.take(pa.array(at[found])), found) if found.any() else (None, found)

    def _load(self, file: _File) -> pa.Table:
        if file.key in self._held:
            self._held.move_to_end(file.key)
            return self._held[file.key]
        raw = b"".join(self._store.get(file.key))
        table = pa.ipc.open_file(pa.BufferReader(raw)).read_all()
        self._held[file.key] = table
        self._bytes += table.nbytes
        while self._bytes > limits.PUSH_SPOOL_BYTES and len(self._held) > 1:
            self._forget(next(iter(self._held)))
        return table

    def _forget(self, key: str) -> None:
        gone = self._held.pop(key, None)
        if gone is not None:
            self._bytes -= gone.nbytes

    def _of(self, table: int) -> list[_File]:
        if table not in self._files:
            found = self._store.listing(f"{self._folder}/{table}")
            self._files[table] = sorted(_parsed(one.key) for one in found)
        return self._files[table]


def _parsed(key: str) -> _File:
    name, push_id, epoch, turn = key.rpartition("/")[2].split(".")
    first, _, last = name.partition("-")
    return _File(push_id, int(epoch), int(turn), int(first), int(last), key)


def folder_of(workspace_id: str, first_push_id: str) -> str:
    """Return the storage folder of the keys of a push and its retries."""
    return f"pushes/{workspace_id}/{first_push_id}/keys"
