"""Rows of connections as blocks of one schema: drivers tell types by the values of each block, and blocks differ."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.real_data.services.columns import Kinds
from webapp.real_data.services.spool import too_large


def settled(batches: Iterable[pa.RecordBatch], limit: int | None = None) -> Iterator[pa.RecordBatch]:
    """The batches with types that the engine knows and that hold the values of all of them. They are read to their end,
    onto the disk, before the first is given. Raises `ConnectorError`; payload_too_large."""
    with tempfile.TemporaryFile() as file:
        widest = _Widest()
        rows = 0
        for batch in batches:
            widest.see(batch)
            _write(file, batch)
            rows += batch.num_rows
            if limit is not None and rows >= limit:
                break
            if rows > limits.SOURCE_ROWS or file.tell() > limits.SOURCE_BYTES:
                raise too_large()
        if not widest.columns:
            raise ConnectorError(
                "The query answers no columns.", reason="no_column", hint="Write one that selects."
            )
        schema = widest.schema()
        kinds = Kinds(schema)
        file.seek(0)
        for batch in _read(file):
            yield kinds.settled(_like(batch, schema))


def _write(file: IO[bytes], batch: pa.RecordBatch) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    raw = sink.getvalue()
    file.write(len(raw).to_bytes(8, "little"))
    file.write(raw)


def _read(file: IO[bytes]) -> Iterator[pa.RecordBatch]:
    while size := file.read(8):
        yield from pa.ipc.open_stream(pa.py_buffer(file.read(int.from_bytes(size, "little"))))


def _like(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the widest types: numbers are cast, what is to be text stays for `Kinds` to spell."""
    arrays, fields = [], []
    for column, field in zip(batch.columns, schema, strict=True):
        kind = field.type
        if pa.types.is_null(column.type) or (pa.types.is_decimal(kind) or pa.types.is_floating(kind)):
            column = column.cast(kind)
        arrays.append(column)
        fields.append(pa.field(field.name, column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


class _Widest:
    """The types that hold the values of every block seen."""

    def __init__(self) -> None:
        self.columns: list[str] = []
        self._kinds: list[set[pa.DataType]] = []
        self._large: set[int] = set()

    def see(self, batch: pa.RecordBatch) -> None:
        """Take a block into account."""
        if not self.columns:
            self.columns = _names(batch.schema.names)
            self._kinds = [set() for _ in self.columns]
        for at, column in enumerate(batch.columns):
            if column.null_count < len(column):
                self._kinds[at].add(column.type)
            if pa.types.is_decimal(column.type) and not _short(column):
                self._large.add(at)

    def schema(self) -> pa.Schema:
        """Them."""
        return pa.schema(
            [
                pa.field(name, self._one(at, kinds))
                for at, (name, kinds) in enumerate(zip(self.columns, self._kinds, strict=True))
            ]
        )

    def _one(self, at: int, kinds: set[pa.DataType]) -> pa.DataType:
        if not kinds:
            return pa.string()
        numbers = all(pa.types.is_integer(kind) or pa.types.is_decimal(kind) for kind in kinds)
        scales = [kind.scale for kind in kinds if pa.types.is_decimal(kind)]
        if numbers and scales:
            fits = at not in self._large and min(scales) >= 0 and max(scales) <= limits.MAX_DECIMALS
            return pa.decimal128(18, max(scales)) if fits and _room(kinds) else pa.string()
        if len(kinds) == 1:
            return next(iter(kinds))
        if all(pa.types.is_integer(kind) for kind in kinds):
            return pa.int64()
        if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
            return pa.float64()
        return pa.string()


def _room(kinds: set[pa.DataType]) -> bool:
    return not any(pa.types.is_integer(kind) for kind in kinds)


def _short(column: pa.Array) -> bool:
    """Whether decimals are short enough to be reckoned with, with as many places as any block may have."""
    ends = pc.min_max(column)
    most = max(abs(Decimal(end.as_py() or 0)) for end in ends.values())
    return bool(most.scaleb(max(column.type.scale, 0)) < 10**15)


def _names(names: list[Any]) -> list[str]:
    found = [str(name) for name in names]
    twice = next((name for at, name in enumerate(found) if name in found[:at]), None)
    if twice is not None:
        told = f'Two columns are called "{twice}".'
        raise ConnectorError(told, reason="no_column", hint="Give each its own name with AS.")
    if len(found) > limits.SOURCE_COLUMNS:
        raise ConnectorError(f"There are more than {limits.SOURCE_COLUMNS:,} columns.", reason="too_large")
    return found
