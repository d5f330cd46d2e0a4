"""Pools of Faker's values, each drawn once a process and remembered.

A pool is `limits.FAKER_POOL` calls of one method from a seed that hangs on locale, method and arguments alone: the
seed of a request decides which of them a row takes. What a method draws more often stands in the pool more often.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any, Final

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine.fields import values as listed

FAKER_LOCALES: Final = {"nb_NO": "no_NO"}
"""Where Faker files a locale under another name."""
DEFAULT_LOCALE: Final = "en_US"
REFERENCE: Final = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
"""The time that a pool is drawn at, as long as it is not known whether that matters."""

_PROGRAM = Path(__file__).with_name("drawing.py")
_SETTINGS = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
_DECIMAL_DIGITS = 38


class Refused(Exception):
    """A pool that cannot be drawn: ``code``, the option it lies at, what to say, and advice."""

    def __init__(self, code: str, option: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code, self.option, self.message, self.hint = code, option, message, hint


@dataclass(frozen=True)
class Drawn:
    """A pool: ``values`` once each, ``place[i]`` says where the i-th that was drawn lies in them, -1: blank."""

    pool: listed.Pool
    language: str | None
    """The locale whose words it has; None where the method has none of any."""
    clocked: bool
    """Whether values hang on the time at which they are drawn."""
    bytes: int


@dataclass(frozen=True)
class Asked:
    """What a pool is of; ``arguments`` is canonical JSON."""

    locale: str
    method: str
    arguments: str
    now: int = REFERENCE


def faker_version() -> str:
    """The version of the library that pools are drawn with."""
    return version("faker")


class _Kept:
    """The pools that were drawn last, or why they could not be."""

    def __init__(self) -> None:
        self._lock, self._free = Lock(), BoundedSemaphore(limits.FAKER_PROCESSES)
        self._found: OrderedDict[Asked, Drawn | Refused] = OrderedDict()

    def get(self, asked: Asked) -> Drawn:
        """The pool. Raises `Refused`."""
        found = self._known(asked)
        if found is None:
            with self._free:
                found = self._known(asked) or self._made(asked)
        if isinstance(found, Refused):
            raise found
        return found

    def _known(self, asked: Asked) -> Drawn | Refused | None:
        with self._lock:
            found = self._found.get(asked)
            if found is not None:
                self._found.move_to_end(asked)
            return found

    def _made(self, asked: Asked) -> Drawn | Refused:
        try:
            made: Drawn | Refused = _draw(asked)
        except Refused as error:
            made = error
        with self._lock:
            self._found[asked] = made
            while len(self._found) > 1 and (
                len(self._found) > limits.FAKER_POOLS
                or sum(one.bytes for one in self._found.values() if isinstance(one, Drawn))
                > limits.FAKER_CACHE_BYTES
            ):
                self._found.popitem(last=False)
        return made


_KEPT = _Kept()


def drawn(asked: Asked) -> Drawn:
    """The pool of a method, drawn in a child process where it is not remembered. Raises `Refused`."""
    return _KEPT.get(asked)


def seed_of(asked: Asked) -> int:
    """What Faker is seeded with: it hangs on locale, method and arguments, and on nothing else."""
    seed = "\0".join((asked.locale, asked.method, asked.arguments))
    return int.from_bytes(blake2b(seed.encode(), digest_size=8).digest(), "little")


def _draw(asked: Asked) -> Drawn:
    request = {
        "locale": FAKER_LOCALES.get(asked.locale, asked.locale),
        "method": asked.method,
        "arguments": json.loads(asked.arguments),
        "now": asked.now,
        "seed": seed_of(asked),
        "count": limits.FAKER_POOL,
        "bytes": limits.FAKER_POOL_CHARS,
        "longest": limits.MAX_TEXT_CHARS,
        "largest": limits.FAKER_LARGEST,
        "seconds": limits.FAKER_SECONDS,
        "megabytes": limits.FAKER_MEMORY_MB,
    }
    told = _asked_of_child(request)
    if "refused" in told:
        raise Refused(**told["refused"])
    values, json_text = _typed(told["kinds"], told["values"])
    pool = _pool(values, json_text)
    return Drawn(pool, told["language"], told["clocked"], pool.values.nbytes + pool.place.nbytes)


def _asked_of_child(request: dict[str, Any]) -> dict[str, Any]:
    hint = "Ask for smaller values, or for another method."
    try:
        done = subprocess.run(
            [sys.executable, "-s", "-P", str(_PROGRAM)],
            input=json.dumps(request).encode(),
            capture_output=True,
            env=_SETTINGS,
            timeout=limits.FAKER_WAIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Refused("too_slow", "arguments", "Faker took too long.", hint) from None
    if done.returncode != 0:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no reason"]
        text = f"Faker could not draw the values ({last[0][:200]})."
        raise Refused("method_failed", "arguments", text, hint)
    return json.loads(done.stdout)


def _typed(kinds: list[str], values: list[Any]) -> tuple[pa.Array, bool]:
    """Values of one type, and whether they are JSON documents; where kinds are mixed all are text."""
    found = set(kinds) - {"null"}
    kind = found.pop() if len(found) == 1 else "number" if found == {"integer", "float"} else "text"
    match kind:
        case "boolean":
            return pa.array(values, pa.bool_()), False
        case "integer":
            return pa.array(values, pa.int64()), False
        case "float" | "number":
            return pa.array([None if one is None else float(one) for one in values], pa.float64()), False
        case "date":
            days = [None if one is None else date.fromisoformat(one) for one in values]
            return pa.array(days, pa.date32()), False
        case "datetime":
            moments = [None if one is None else datetime.fromisoformat(one) for one in values]
            return pa.array(moments, pa.timestamp("us")), False
        case "decimal":
            made = _decimals(values)
            if made is not None:
                return made, False
    spelled = [None if one is None else one if isinstance(one, str) else json.dumps(one) for one in values]
    return pa.array(spelled, pa.string()), kind == "json"


def _decimals(values: list[str | None]) -> pa.Array | None:
    numbers = [None if one is None else Decimal(one) for one in values]
    there = [one for one in numbers if one is not None]
    places = max(max(-int(one.as_tuple().exponent), 0) for one in there)
    if places > limits.MAX_DECIMALS or max(one.adjusted() for one in there) + 1 + places > _DECIMAL_DIGITS:
        return None
    return pa.array(numbers, pa.decimal128(_DECIMAL_DIGITS, places))


def _pool(values: pa.Array, json_text: bool) -> listed.Pool:
    found = values.dictionary_encode()
    place = found.indices.fill_null(-1).to_numpy().astype(np.int32)
    return listed.Pool(found.dictionary, place, json_text)
