"""Measure the cost of writing a row in each format, compared with common libraries, in one run on one core.

python -m bench.formats [--rows 98304] [--repeat 5]

Rows are generated before the clock starts: Arrow blocks for Rowsmith, tuples or dicts for the others. Each
figure is processor time, the best of several turns in which all take part, so that other load affects all of
them.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
import uuid
from collections.abc import Callable

import numpy as np
import openpyxl
import orjson
import pyarrow as pa

from webapp import limits
from webapp.engine.formats import FORMATS, write

_SLOW_ROWS = 2_000  # for openpyxl, which takes 150 us per row
_TINY, _TINY_FILES = 10, 20
_CENTS = pa.decimal128(38, 2)


def blocks(rows: int) -> dict[str, list[pa.Array]]:
    """The eleven columns of the engine's benchmark, in blocks; names, places and dates from shared pools."""
    random = np.random.default_rng(1)
    names = pa.array([f"First{i % 690} Lastname{i}" for i in range(20_000)])
    cities = pa.array([f"City of {i}" for i in range(3_000)])
    countries = pa.array([f"Country {i}" if i % 20 else f"Land, the {i}." for i in range(240)])
    days = pa.array(np.arange(18_000, 20_000).astype("M8[D]"))

    def drawn(pool: pa.Array, count: int) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(random.integers(0, len(pool), count, np.int32)), pool)

    result: dict[str, list[pa.Array]] = {}
    for start in range(0, rows, limits.BLOCK_ROWS):
        count = min(limits.BLOCK_ROWS, rows - start)
        numbers = random.integers(0, 10**7, count).tolist()
        block = {
            "row_number": pa.array(np.arange(start + 1, start + 1 + count)),
            "name": drawn(names, count),
            "email": pa.array([f"first.last{n}@example.com" for n in numbers]),
            "street": pa.array([f"{n % 9_999} Some Street" for n in numbers]),
            "city": drawn(cities, count),
            "country": drawn(countries, count),
            "phone": pa.array([f"+1-555-{n:07d}" for n in numbers]),
            "amount": pa.array(random.integers(0, 10**6, count)),
            "price": pa.array(random.integers(0, 10**5, count)).cast(_CENTS),
            "day": drawn(days, count),
            "id": pa.array([str(uuid.UUID(int=n << 80)) for n in numbers]),
        }
        for name, column in block.items():
            result.setdefault(name, []).append(column)
    return result


def peers(made: dict[str, list[pa.Array]]) -> dict[str, tuple[int, Callable[[], object]]]:
    """Return, by format, the number of rows and the usual way to write them."""
    lists = [[value for column in parts for value in column.to_pylist()] for parts in made.values()]
    tuples = list(zip(*lists, strict=True))
    dicts = [dict(zip(made, (*row[:8], float(row[8]), *row[9:]), strict=True)) for row in tuples]

    def to_csv() -> None:
        csv.writer(io.StringIO()).writerows(tuples)

    def to_lines() -> bytes:
        return b"\n".join(map(orjson.dumps, dicts))

    def to_xlsx() -> None:
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet()
        for row in tuples[:_SLOW_ROWS]:
            sheet.append(row)
        book.save(io.BytesIO())

    return {
        "csv": (len(tuples), to_csv),
        "json": (len(dicts), lambda: orjson.dumps(dicts)),
        "ndjson": (len(dicts), to_lines),
        "xlsx": (min(_SLOW_ROWS, len(tuples)), to_xlsx),
    }


_PEER_NAMES = {
    "csv": "csv.writer",
    "json": "orjson",
    "ndjson": "orjson by line",
    "xlsx": "openpyxl write-only",
}


def ours(name: str, schema: pa.Schema, ready: list[list[pa.Array]]) -> int:
    """Write the file and return its size in bytes."""
    cls = FORMATS[name]
    return sum(map(len, write(cls(schema, cls.Options(), title="bench"), ready)))


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=12 * limits.BLOCK_ROWS)
    parser.add_argument("--repeat", type=int, default=5)
    request = parser.parse_args()
    result = blocks(request.rows)
    schema = pa.schema([(name, parts[0].type) for name, parts in result.items()])
    ready = [list(block) for block in zip(*result.values(), strict=True)]
    tiny = [[column.slice(0, _TINY) for column in ready[0]]]
    others = peers(result)
    best: dict[str, float] = {}
    sizes = {name: ours(name, schema, ready) for name in FORMATS}
    for _ in range(request.repeat):
        for name in FORMATS:
            turns: dict[str, Callable[[], object]] = {
                name: lambda name=name: ours(name, schema, ready),
                f"tiny {name}": lambda name=name: [ours(name, schema, tiny) for _ in range(_TINY_FILES)],
            }
            if name in others:
                turns[f"peer {name}"] = others[name][1]
            for key, work in turns.items():
                best[key] = min(best.get(key, 1e9), seconds(work))
    print(f"{request.rows:,} rows of {len(result)} columns, best of {request.repeat}")
    print(
        f"{'format':8} {'ns/row':>7} {'rows/s':>11} {'MB/s':>6} {'x csv':>6} {'10-row file':>12}   compared with"
    )
    for name in FORMATS:
        cost = best[name] / request.rows
        line = f"{name:8} {cost * 1e9:7.0f} {1 / cost:11,.0f} {sizes[name] / best[name] / 1e6:6.0f} "
        line += f"{best[name] / best['csv']:6.2f} {best[f'tiny {name}'] / _TINY_FILES * 1e6:9.0f} us   "
        if name in others:
            rows, _ = others[name]
            peer = best[f"peer {name}"] / rows
            line += f"{_PEER_NAMES[name]}: {peer * 1e9:,.0f} ns/row, {peer / cost:.1f} times Rowsmith"
        print(line)


if __name__ == "__main__":
    main()
