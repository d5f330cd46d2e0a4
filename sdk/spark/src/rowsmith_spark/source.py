"""The data source: planned once on the driver, and read by the executors in ranges of rows."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from rowsmith.error import ServiceError
from rowsmith_spark.options import MAX_PARTITIONS, Options, parse
from rowsmith_spark.origin import GeneratedRows, Origin, origin
from rowsmith_spark.times import times_as_text

BATCH_ROWS: Final = 16_384
"""Number of rows that Spark receives at a time."""


@dataclass(frozen=True)
class RowRange(InputPartition):
    """The rows of a table from `start` up to, but not including, `stop`."""

    start: int
    stop: int


@dataclass(frozen=True)
class Table:
    """A fully determined table: generating a range of it always returns the same rows, on any machine."""

    origin: Origin
    request: Mapping[str, Any]
    pins: Mapping[str, str]
    schema: pa.Schema
    start: int
    stop: int

    def window(self, start: int, count: int) -> pa.Table:
        """Return some of the rows. Raises ServiceError `version_conflict` if they would belong to another
        table."""
        result = self.origin.generate({**self.request, "offset": start, "count": count})
        if result.pins != self.pins:
            changed = sorted(
                name for name in {*result.pins, *self.pins} if result.pins.get(name) != self.pins.get(name)
            )
            text = f"The template was changed while it was read ({', '.join(changed)}); load it again."
            raise ServiceError("version_conflict", 412, message=text)
        return _rows(result)


def planned(options: Options) -> Table:
    """Return the table that options select. Its first row is generated to get the types and the pinned
    values."""
    source = origin(options.template, options.file, options.url, options.key, options.project)
    count = source.quantity() if options.rows is None else options.rows
    first = source.generate({**options.request, "offset": options.offset, "count": 1})
    request = {**options.request, "seed": first.seed, "now": first.headers["X-Now"]}
    return Table(source, request, first.pins, _rows(first).schema, options.offset, options.offset + count)


def _rows(result: GeneratedRows) -> pa.Table:
    return times_as_text(pq.read_table(io.BytesIO(result.parquet)))


class RowsmithSource(DataSource):
    """`spark.read.format("rowsmith")`. `load()` pins seed, time and versions, so that every action on the
    DataFrame, and every repeated task, reads the same table."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._asked = parse(options)
        self._table = planned(self._asked)
        self.options.pop("key", None)  # Spark may display the options, so it must not contain the key

    @classmethod
    def name(cls) -> str:
        return "rowsmith"

    def schema(self) -> StructType:
        return from_arrow_schema(self._table.schema, prefer_timestamp_ntz=True)

    def reader(self, schema: StructType) -> DataSourceReader:
        return Reader(self._table, self._asked, schema)


class Reader(DataSourceReader):
    """Reads a table. `schema` can name some of its columns in any order; the others are left out."""

    def __init__(self, table: Table, options: Options, schema: StructType) -> None:
        unknown = [name for name in schema.fieldNames() if name not in table.schema.names]
        if unknown:
            text = f"The template has no column {unknown[0]}. It has: {', '.join(table.schema.names)}."
            raise ServiceError("unknown_field", message=text)
        self._table, self._schema = table, schema
        self._per_call = options.rows_per_call
        self._size = _partition_rows(options, table.stop - table.start)

    def partitions(self) -> list[RowRange]:
        """Return the ranges of rows, in order."""
        last = self._table.stop
        return [RowRange(at, min(at + self._size, last)) for at in range(self._table.start, last, self._size)]

    def read(self, partition: RowRange) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range, in windows of the maximum call size."""
        target = to_arrow_schema(self._schema, timezone="UTC")
        for at in range(partition.start, partition.stop, self._per_call):
            rows = self._table.window(at, min(self._per_call, partition.stop - at))
            yield from rows.select(target.names).cast(target).to_batches(BATCH_ROWS)


def _partition_rows(options: Options, rows: int) -> int:
    """Return the number of rows per partition. Raises ServiceError `bad_option` if there would be too many
    partitions."""
    size = options.rows_per_partition if options.partitions is None else -(-rows // options.partitions)
    if rows > size * MAX_PARTITIONS:
        least = -(-rows // MAX_PARTITIONS)
        text = f"{rows:,} rows make more than {MAX_PARTITIONS:,} partitions; set rows_per_partition to {least} or more."
        raise ServiceError("bad_option", message=text)
    return size
