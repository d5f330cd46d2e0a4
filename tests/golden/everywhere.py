"""Every field type in every format and far from the first row, and all hashes once more in another process.

`python -m tests.golden.everywhere [setting...]` prints `platform_hashes()` as JSON. A setting is something that no
variable of the environment can bring about: `blocks` cuts rows into other pieces, `threads` makes them in several
threads at once, `fork` also in a child of a process that has made some already, `one-core` with one thread of Arrow's.
"""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pyarrow as pa

from tests.golden import cases
from webapp import limits
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import REGISTRY
from webapp.errors import ApiError
from webapp.row_templates.services import compiled_plans

FEW = {"offset": 0, "count": 30}
FAR: dict[str, dict[str, int]] = {
    "rows 8100 to 8299": {"offset": 8_100, "count": 200},  # over the end of a block
    "3 rows at 10^12": {"offset": 10**12, "count": 3},
}
SHORT = 16
"""Digits of a hash that are kept: there are a thousand of them."""


def kind_hashes(kind: type[FieldType]) -> dict[str, str]:
    """The hashes of one field type: in each format, and at each offset; what is refused says so."""
    source = cases.type_source(kind)
    asks = {label: {**how, **FEW} for label, how in cases.FORMATS.items()}
    asks |= {label: {"format": "ndjson", **which} for label, which in FAR.items()}
    return {label: _hash(source, ask) for label, ask in asks.items()}


def _hash(source: compiled_plans.CompiledTemplate, ask: dict[str, Any]) -> str:
    try:
        data = cases.made(source, **ask)
    except ApiError as error:
        return "refused: " + ", ".join(fault["code"] for fault in error.details["fields"])
    return cases.digest(data, ask["format"])[:SHORT]


def everywhere() -> dict[str, dict[str, str]]:
    """The hashes of all field types."""
    return {kind.name: kind_hashes(kind) for kind in REGISTRY}


def platform_hashes() -> dict[str, Any]:
    """What is held against what is stored in every setting: all types, and a whole template in each text format."""
    far = {
        kind.name: _hash(cases.type_source(kind), {"format": "ndjson", **FAR["rows 8100 to 8299"]})
        for kind in REGISTRY
    }
    source = cases.template_source(cases.templates()["customers"])
    texts = {
        f"{label}: {rows}": cases.digest(cases.made(source, **how, **cases.ASKS[rows]), how["format"])
        for label, how in cases.FORMATS.items()
        if how["format"] in ("json", "ndjson", "csv", "sql")
        for rows in ("rows 0 to 999", "rows 8000 to 9299")
    }
    return {"types": cases.type_hashes(), "far": far, "customers": texts}


def in_threads() -> dict[str, Any]:
    """The same, while another thread makes it too."""
    with ThreadPoolExecutor(2) as pool:
        return _equal(*pool.map(lambda _: platform_hashes(), range(2)))


def in_child() -> dict[str, Any]:
    """The same, also in a child forked from this process, whose caches are warm."""
    result = platform_hashes()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return _equal(result, pool.apply(platform_hashes))


def _equal(made: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    if made != again:  # not an assertion, which Python leaves out in one of the settings
        differing = {name for part in made for name in made[part] if made[part][name] != again[part][name]}
        raise SystemExit(f"differs when made again: {sorted(differing)}")
    return made


def main(settings: list[str]) -> None:
    """Print the hashes as made in these settings."""
    if "blocks" in settings:
        limits.BLOCK_ROWS, limits.FIRST_BLOCK_ROWS = 701, 13  # type: ignore[misc]
    if "one-core" in settings:
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
    make = in_threads if "threads" in settings else in_child if "fork" in settings else platform_hashes
    sys.stdout.buffer.write(orjson.dumps(make()))


if __name__ == "__main__":
    main(sys.argv[1:])
