"""External values: the requests of a plan, and the responses that its caller passes in.

The engine itself makes no calls. A field type that needs external values requests them from its compiler. If the caller
has supplied the response, the column uses it; if not, it uses a placeholder value. Responses are constants of the plan:
a plan with the same responses always generates the same rows. A request may depend on values of the row (``{{field}}``
in a query): a dry run with a `RequestRecorder` finds the sets of values that occur, and each set is requested once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine import text
from webapp.engine.errors import SpecError
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.source_data import SourceTable

Kind = Literal["text", "integer", "decimal", "float", "boolean", "date", "datetime"]
KINDS: tuple[str, ...] = get_args(Kind)
_SEPARATOR = "\x1f"
_NULL = "\\0"  # no value is spelled so: a backslash in one is doubled


@dataclass(frozen=True, slots=True)
class ExternalQuery:
    """One request to a connection: ``keys`` (table, columns, filter), ``query`` (query, with ``{{p0}}``, ``{{p1}}`` for
    values of the row), ``http`` (a path), ``ai`` (prompt, seed and row), ``source`` (all rows of a file, a table or a
    query; see ``source_data.py``) or ``file`` (another workspace file). ``of`` does not influence the response."""

    connection_id: str
    """Empty: the only one of its kind."""
    kind: Literal["keys", "query", "http", "ai", "source", "file"]
    settings: tuple[tuple[str, Any], ...]
    values: tuple[Any, ...] = ()
    """Its text, if it does not depend on values of the row."""

    @property
    def key(self) -> str:
        """The identity of the request: 64 hexadecimal digits."""
        return hashlib.sha256(
            orjson.dumps([self.connection_id, self.kind, self.settings, *self.values])
        ).hexdigest()

    def __getitem__(self, name: str) -> Any:
        return dict(self.settings)[name]


@dataclass(frozen=True, slots=True)
class ExternalRequest:
    """A question of a plan."""

    query: ExternalQuery
    path: str
    """The first field that needs it."""
    depends_on_row: bool
    """Whether it depends on values of the row."""
    level: int = 0
    """The number of other requests that must be answered before its values are known."""
    columns: tuple[str, ...] = ()
    """Columns of the template that depend on the response."""


@dataclass(frozen=True, slots=True)
class LoadedSource:
    """A source that was read, with the keys to mask it."""

    table: SourceTable
    keys: Any
    """`webapp.engine.masking.Keys` of the workspace; the current one is the one that the rows are masked with."""
    location: str
    """The storage location of the response, for the pins of a push or export."""


@dataclass(frozen=True, slots=True)
class ExternalResponse:
    """The answer to a question. If it depends on values: the rows for every set of values, one after the
    other, ``keys`` in ascending order; set number i has the rows ``starts[i]`` to ``starts[i + 1]``."""

    table: pa.Table
    snapshot: str
    """SHA-256 of the response: the same responses produce the same rows."""
    keys: pa.Array | None = None
    starts: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    loaded_source: LoadedSource | None = None
    """Of a template's source."""


@dataclass(slots=True)
class RequestRecorder:
    """The sets of values that a dry run comes upon, by question: ``found[question][key]`` are the values."""

    max_requests: int
    values: dict[str, dict[str, tuple[Any, ...]]] = field(default_factory=dict)

    def record(self, question: str, path: str, keys: pa.Array, columns: Sequence[pa.Array]) -> None:
        """Record sets of values. Raises `SpecError` if there are more than ``most`` in total."""
        recorded = self.values.setdefault(question, {})
        distinct = pc.unique(keys)
        new = [key for key in distinct.to_pylist() if key not in recorded]
        if sum(map(len, self.values.values())) + len(new) > self.max_requests:
            message = f"The rows need more than {self.max_requests:,} different requests to the connection."
            hint = "Request fewer rows, or use fewer distinct values in the query."
            raise SpecError([Fault(path, "too_many_questions", message, hint)])
        for key, row in zip(
            new, pc.index_in(pa.array(new, pa.string()), value_set=keys).to_pylist(), strict=True
        ):
            recorded[key] = tuple(column[row].as_py() for column in columns)


def value_set_keys(columns: Sequence[pa.Array]) -> pa.Array:
    """Return ``string[n]``: a key for the set of values of some columns in each row."""
    texts = []
    for column in columns:
        doubled = pc.replace_substring(text.decode_dictionary(text.to_text(column)), "\\", "\\\\")
        texts.append(pc.fill_null(pc.replace_substring(doubled, _SEPARATOR, "\\1"), _NULL))
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, _SEPARATOR)


def key_text(key: str) -> str:
    """Return the values of a set as text for users."""
    return ", ".join("blank" if item == _NULL else item for item in key.split(_SEPARATOR))


# --- Values as the engine holds them ------------------------------------------------------------------------


class ValueConversionError(ValueError):
    """A value cannot be converted to the requested kind."""


def convert_column(
    column: pa.ChunkedArray, kind: Kind | None, decimals: int, is_complete: bool
) -> tuple[pa.Array, bool]:
    """A column of an answer in one of the engine's types, and whether its texts are JSON documents. ``is_complete``:
    the answer is whole, so that decimals may keep the places they have; else they become floats. Raises
    `ValueConversionError`."""
    plain = column.combine_chunks()
    if isinstance(plain, pa.ChunkedArray):
        plain = pa.concat_arrays(plain.chunks) if plain.num_chunks else pa.array([], plain.type)
    plain = text.decode_dictionary(plain)
    values, json_text = _to_natural_type(plain, is_complete)
    if kind is None:
        return values, json_text
    if kind == "text":
        return text.decode_dictionary(text.to_text(values)), json_text
    dtype = dtype_of(kind, decimals)
    if kind == "datetime" and pa.types.is_timestamp(values.type):
        return values, False
    try:
        if kind == "decimal":
            exact = [None if value is None else _quantized(value, decimals) for value in values.to_pylist()]
            return pa.array(exact, dtype), False
        return values.cast(dtype), False
    except (pa.ArrowException, ValueError, ArithmeticError) as error:
        raise ValueConversionError(str(error).partition("\n")[0]) from None


def _to_natural_type(column: pa.Array, is_complete: bool) -> tuple[pa.Array, bool]:
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.string()), False
    if pa.types.is_boolean(kind) or pa.types.is_date32(kind) or pa.types.is_string(kind):
        return column, False
    if pa.types.is_uint64(kind) and (pc.max(column).as_py() or 0) >= 1 << 63:
        return column.cast(pa.string()), False
    if pa.types.is_integer(kind):
        return column.cast(pa.int64()), False
    if pa.types.is_floating(kind):
        return column.cast(pa.float64()), False
    if pa.types.is_decimal(kind):
        return (_decimals(column) if is_complete else column.cast(pa.float64())), False
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", "UTC" if kind.tz else None), safe=False), False
    if pa.types.is_date(kind):
        return column.cast(pa.date32()), False
    nested = pa.types.is_nested(kind)
    return pa.array([value_to_text(value) for value in column.to_pylist()], pa.string()), nested


def _decimals(column: pa.Array) -> pa.Array:
    """Return decimals as the engine calculates with them, or as texts if they have too many digits for that."""
    scale = column.type.scale
    if 0 <= scale <= limits.MAX_DECIMALS:
        largest = max(abs(Decimal(end.as_py() or 0)) for end in pc.min_max(column).values())
        if largest.scaleb(scale) <= limits.MAX_UNITS:
            return column.cast(pa.decimal128(38, scale))
    return pa.array([value_to_text(value) for value in column.to_pylist()], pa.string())


def value_to_text(value: Any) -> str | None:
    """A value of a target as a text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, time):
        return value.isoformat()
    return str(value) if isinstance(value, timedelta) else text.json_text(value)


def dtype_of(kind: Kind, decimals: int) -> pa.DataType:
    """The engine's type for a kind."""
    return {
        "text": pa.string(),
        "integer": pa.int64(),
        "decimal": pa.decimal128(38, decimals),
        "float": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "datetime": pa.timestamp("us"),
    }[kind]


def _quantized(value: Any, places: int) -> Decimal:
    result = Decimal(repr(value) if isinstance(value, float) else str(value)).quantize(
        Decimal(1).scaleb(-places)
    )
    if abs(result).scaleb(places) > limits.MAX_UNITS:
        raise ValueError(f"{result} is too large")
    return result


# --- Placeholder values ----------------------------------------------------------------------------------------------

PLACEHOLDER_VALUES: Mapping[str, Any] = {
    "text": "example",
    "integer": 4711,
    "decimal": Decimal(1),
    "float": 1.5,
    "boolean": True,
    "date": date(2026, 1, 31),
    "datetime": datetime.fromisoformat("2026-01-31T12:00:00"),
}
"""Return the value that is shown until the answer has been fetched."""


def placeholder_values(kind: Kind, decimals: int) -> pa.Array:
    """Return the placeholder for a response that has not been fetched yet."""
    return pa.array([PLACEHOLDER_VALUES[kind]], dtype_of(kind, decimals))
