"""The field type `faker`: values of any method of Faker's providers, from pools.

A pool is `limits.FAKER_POOL` calls of one method, drawn once per process and kept. Its seed depends only on locale,
method and arguments; the seed of a request decides which value a row takes. Frequent values of a method are frequent
in the pool too.
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
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine.types import values as value_lists
from webapp.engine.types.base import FieldType, OptionsModel, max_text_length

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


FAKER_LOCALES: Final = {"nb_NO": "no_NO"}
"""Faker's different names of some locales."""
DEFAULT_LOCALE: Final = "en_US"
REFERENCE: Final = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
"""The fixed time with which a pool is drawn while it is unknown whether the time matters."""

_PROGRAM = Path(__file__).parents[1] / "faker_worker.py"
_SETTINGS = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
_DECIMAL_DIGITS = 38


class InvalidPoolError(Exception):
    """A pool cannot be drawn: ``code``, the option that is wrong, the message, and a hint."""

    def __init__(self, code: str, option: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code, self.option, self.message, self.hint = code, option, message, hint


@dataclass(frozen=True)
class DrawnPool:
    """A pool: its distinct values, and for each draw the position of its value, -1 if blank."""

    pool: value_lists.ValuePool
    language: str | None
    """The locale of its words; None if the method does not use a locale."""
    depends_on_now: bool
    """Whether values depend on the current time."""
    bytes: int


@dataclass(frozen=True)
class PoolKey:
    """The key of a pool; ``arguments`` is canonical JSON."""

    locale: str
    method: str
    arguments: str
    now: int = REFERENCE


def faker_version() -> str:
    """The version of the library that pools are drawn with."""
    return version("faker")


class _PoolCache:
    """The pools that were drawn last, or why they could not be."""

    def __init__(self) -> None:
        self._lock, self._process_slots = Lock(), BoundedSemaphore(limits.FAKER_PROCESSES)
        self._pools: OrderedDict[PoolKey, DrawnPool | InvalidPoolError] = OrderedDict()

    def get(self, key: PoolKey) -> DrawnPool:
        """Return the pool. Raises `InvalidPoolError`."""
        pool = self._cached(key)
        if pool is None:
            with self._process_slots:
                pool = self._cached(key) or self._draw_and_cache(key)
        if isinstance(pool, InvalidPoolError):
            raise pool
        return pool

    def _cached(self, key: PoolKey) -> DrawnPool | InvalidPoolError | None:
        with self._lock:
            pool = self._pools.get(key)
            if pool is not None:
                self._pools.move_to_end(key)
            return pool

    def _draw_and_cache(self, key: PoolKey) -> DrawnPool | InvalidPoolError:
        try:
            pool: DrawnPool | InvalidPoolError = _draw(key)
        except InvalidPoolError as error:
            pool = error
        with self._lock:
            self._pools[key] = pool
            while len(self._pools) > 1 and (
                len(self._pools) > limits.FAKER_POOLS
                or sum(item.bytes for item in self._pools.values() if isinstance(item, DrawnPool))
                > limits.FAKER_CACHE_BYTES
            ):
                self._pools.popitem(last=False)
        return pool


_POOL_CACHE = _PoolCache()


def pool_for(key: PoolKey) -> DrawnPool:
    """Return the pool of a method, drawn in a child process unless it is cached. Raises `InvalidPoolError`."""
    return _POOL_CACHE.get(key)


def seed_of(key: PoolKey) -> int:
    """Return Faker's seed, which depends only on locale, method and arguments."""
    seed = "\0".join((key.locale, key.method, key.arguments))
    return int.from_bytes(blake2b(seed.encode(), digest_size=8).digest(), "little")


def _draw(key: PoolKey) -> DrawnPool:
    request = {
        "locale": FAKER_LOCALES.get(key.locale, key.locale),
        "method": key.method,
        "arguments": json.loads(key.arguments),
        "now": key.now,
        "seed": seed_of(key),
        "count": limits.FAKER_POOL,
        "bytes": limits.FAKER_POOL_CHARS,
        "longest": limits.MAX_TEXT_CHARS,
        "largest": limits.FAKER_MAX_ARGUMENT,
        "seconds": limits.FAKER_SECONDS,
        "megabytes": limits.FAKER_MEMORY_MB,
    }
    response = _run_worker(request)
    if "refused" in response:
        raise InvalidPoolError(**response["refused"])
    values, json_text = _typed_array(response["kinds"], response["values"])
    pool = _pool(values, json_text)
    return DrawnPool(
        pool, response["language"], response["clocked"], pool.values.nbytes + pool.indices.nbytes
    )


def _run_worker(request: dict[str, Any]) -> dict[str, Any]:
    hint = "Use arguments that produce smaller values, or another method."
    try:
        process = subprocess.run(
            [sys.executable, "-s", "-P", str(_PROGRAM)],
            input=json.dumps(request).encode(),
            capture_output=True,
            env=_SETTINGS,
            timeout=limits.FAKER_WAIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InvalidPoolError("too_slow", "arguments", "Faker took too long.", hint) from None
    if process.returncode != 0:
        error_lines = process.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["unknown error"]
        text = f"Faker could not generate the values ({error_lines[0][:200]})."
        raise InvalidPoolError("method_failed", "arguments", text, hint)
    return json.loads(process.stdout)


def _typed_array(kinds: list[str], values: list[Any]) -> tuple[pa.Array, bool]:
    """Return the values as one type, and whether they are JSON documents; mixed kinds become text."""
    present_kinds = set(kinds) - {"null"}
    kind = (
        present_kinds.pop()
        if len(present_kinds) == 1
        else "number"
        if present_kinds == {"integer", "float"}
        else "text"
    )
    match kind:
        case "boolean":
            return pa.array(values, pa.bool_()), False
        case "integer":
            return pa.array(values, pa.int64()), False
        case "float" | "number":
            return pa.array(
                [None if value is None else float(value) for value in values], pa.float64()
            ), False
        case "date":
            days = [None if value is None else date.fromisoformat(value) for value in values]
            return pa.array(days, pa.date32()), False
        case "datetime":
            moments = [None if value is None else datetime.fromisoformat(value) for value in values]
            return pa.array(moments, pa.timestamp("us")), False
        case "decimal":
            numbers = [None if value is None else Decimal(value) for value in values]
            present = [number for number in numbers if number is not None]
            places = max(max(-int(decimal.as_tuple().exponent), 0) for decimal in present)
            if (
                places <= limits.MAX_DECIMALS
                and max(decimal.adjusted() for decimal in present) + 1 + places <= _DECIMAL_DIGITS
            ):
                return pa.array(numbers, pa.decimal128(_DECIMAL_DIGITS, places)), False
    texts = [
        None if value is None else value if isinstance(value, str) else json.dumps(value) for value in values
    ]
    return pa.array(texts, pa.string()), kind == "json"


def _pool(values: pa.Array, json_text: bool) -> value_lists.ValuePool:
    encoded = values.dictionary_encode()
    place = encoded.indices.fill_null(-1).to_numpy().astype(np.int32)
    return value_lists.ValuePool(encoded.dictionary, place, json_text)


class FakerType(FieldType):
    """Values from a pool that one of Faker's methods has drawn.

    The pool depends on locale, method and arguments, and on ``now`` for methods that read the time; which of its
    values a row takes depends on the request's seed.
    """

    name = "faker"
    label = "Faker"
    category = "misc"
    description = "Any method of Faker's providers, from a pool of 10,000 generated values."
    aliases = ("faker method", "python faker", "faker provider", "fake")
    example = "Optimized multi-state portal"
    localised = True
    dtype = pa.string()

    class Options(OptionsModel):
        method: str = Field(
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            description="The name of the method, such as company_suffix or bothify.",
            examples=["catch_phrase", "pyint", "date_of_birth", "pybool", "currency"],
        )
        arguments: dict[str, Any] = Field(
            {},
            description='Arguments of the method as a JSON object: {"nb_words": 3}.',
            examples=[{"nb_words": 3}],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        arguments = json.dumps(options.arguments, sort_keys=True)
        if len(arguments) > limits.FAKER_ARGUMENT_CHARS:
            text = f"The arguments are longer than {limits.FAKER_ARGUMENT_CHARS:,} characters."
            compiler.fault(field, "options.arguments", "too_long", text, "Use shorter arguments.")
            return
        locale = compiler.locale_of(field) or DEFAULT_LOCALE
        pinned = compiler.vocabulary.versions.get("faker")
        if pinned != faker_version():
            text = f"This was saved with Faker {pinned}; {faker_version()} is installed and generates other values."
            compiler.fault(field, "options.method", "library_moved", text, "Save the template again.")
            return
        self._pool_key = PoolKey(locale, options.method, arguments)
        try:
            self._use_pool(pool_for(self._pool_key), compiler, locale)
        except InvalidPoolError as error:
            compiler.fault(field, f"options.{error.option}", error.code, error.message, error.hint)

    def _use_pool(self, drawn: DrawnPool, compiler: Compiler, locale: str) -> None:
        if not len(drawn.pool.values):
            text = "The method returns no values."
            compiler.fault(self.field, "options.method", "method_failed", text, "Choose another method.")
            return
        own = FAKER_LOCALES.get(locale, locale)
        if self.field.common.locale and drawn.language not in (None, own):
            text = f'Faker has no "{self.options.method}" for {own}; it would return values for {drawn.language}.'
            compiler.fault(
                self.field, "locale", "no_such_locale", text, "Remove the locale, or choose another method."
            )
            return
        self._pool = drawn
        self.dtype, self.is_json_text = drawn.pool.values.type, drawn.pool.json_text
        if pa.types.is_string(self.dtype) and not drawn.depends_on_now:
            self.max_length = max_text_length(drawn.pool.values)

    @classmethod
    def capacity(cls) -> int:
        return limits.FAKER_POOL

    def prepare(self, env: GenerationContext) -> DrawnPool:
        """Return the pool for the request: one for each ``now`` if the method uses the time."""
        if not self._pool.depends_on_now:
            return self._pool
        pool_key = PoolKey(
            self._pool_key.locale, self._pool_key.method, self._pool_key.arguments, int(env.now.timestamp())
        )
        return pool_for(pool_key)

    def distinct_count(self) -> int | None:
        pool = self._pool.pool
        return None if pool.has_null else len(pool.distinct)

    def distinct_count_for(self, state: DrawnPool) -> int | None:
        return len(state.pool.distinct)

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return None if self._pool.depends_on_now else self._pool.pool.bounds

    def unique_hint(self) -> str:
        return "The method returns some blank values; blank cells are not unique."

    def fill(self, context: ColumnContext) -> pa.Array:
        pool = context.state.pool
        return self._values_at(pool.indices[context.below(pool.indices.size).view(np.int64)], pool.values)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        pool = context.state.pool
        return self._values_at(
            pool.distinct[context.permuted(len(pool.distinct)).view(np.int64)], pool.values
        )

    def _values_at(self, place: np.ndarray, values: pa.Array) -> pa.Array:
        if values.type != self.dtype:
            values = pc.cast(values, self.dtype, safe=False)
        index = (
            pa.array(place.astype(np.int32), mask=place < 0) if place.min(initial=0) < 0 else pa.array(place)
        )
        return pa.DictionaryArray.from_arrays(index, values, safe=False)
