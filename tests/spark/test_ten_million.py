"""Ten million rows, read by Spark in a hundred ranges on all processors, beside one process that makes them all: the
same bytes. By the engine of this machine, since the service would take a while longer and is asked in test_source.py.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pyarrow.parquet as pq

from tests.spark.kinds import LEAN
from webapp.engine.formats import FORMATS, write

COUNT = 10_000_000
PARTITIONS = 100


def test_spark_makes_the_bytes_that_one_process_makes(spark, file, tmp_path):
    path, folder = file(LEAN), tmp_path / "rows"

    frame = (
        spark.read.format("rowsmith")
        .options(file=path, rows=str(COUNT), seed="s", now="2026-01-01T00:00:00Z", partitions=str(PARTITIONS))
        .load()
    )
    frame.write.parquet(str(folder))

    parts = sorted(folder.glob("part-*.parquet"))  # numbered in the order of the partitions
    assert len(parts) == PARTITIONS
    assert of_parts(parts) == of_one_process(Path(path))
    shutil.rmtree(folder)  # half a gigabyte


def of_one_process(path: Path) -> str:
    """SHA-256 of the NDJSON of all rows in one call."""
    from rowsmith.cli import offline

    found = hashlib.sha256()
    asked = {"count": COUNT, "seed": "s", "now": "2026-01-01T00:00:00Z", "format": "ndjson"}
    for piece in offline.rows(path, asked).pieces:
        found.update(piece)
    return found.hexdigest()


def of_parts(parts: list[Path]) -> str:
    """SHA-256 of the NDJSON of what Spark wrote, part after part."""
    found = hashlib.sha256()
    blocks = (batch for part in parts for batch in pq.ParquetFile(part).iter_batches(65_536))
    schema = pq.read_schema(parts[0])
    kind = FORMATS["ndjson"]
    for piece in write(kind(schema, kind.Options(), title="rows"), (block.columns for block in blocks)):
        found.update(piece)
    return found.hexdigest()
