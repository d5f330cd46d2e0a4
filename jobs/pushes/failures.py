"""Convert the errors that a target reports for rows into entries of the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from webapp import limits
from webapp.connectors.base import ConnectorError, RowError
from webapp.errors import ApiError
from webapp.pushes.services.ledger.write import Bad
from webapp.pushes.services.rows import HIDDEN

_PREFIX: Final = 8  # targets truncate long values, so this many characters identify a value


def hide(text: str, values: Iterable[str]) -> str:
    """Redact values in a message. Short values are redacted as whole words, long ones also when truncated."""
    for value in sorted(set(values), key=len, reverse=True):
        if len(value) < _PREFIX:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", HIDDEN, text)
            continue
        while (start := text.find(value[:_PREFIX])) >= 0:
            end = start + _PREFIX
            while end - start < len(value) and text[end : end + 1] == value[end - start]:
                end += 1
            text = text[:start] + HIDDEN + text[end:]
    return text


def bad_rows(
    failures: Sequence[RowError],
    numbers: Sequence[int],
    batch: pa.RecordBatch,
    *,
    key_columns: Sequence[str],
    sensitive: frozenset[str],
    ms: int,
) -> list[Bad]:
    """Return the failures of a batch by row number. `numbers` has one entry per row of the batch."""
    if not failures:
        return []
    places = pa.array([failure.index for failure in failures])
    hidden = _texts(batch, sensitive & set(batch.schema.names), places)
    keys = keys_of(batch, key_columns, sensitive, places)
    return [
        Bad(
            row=numbers[failure.index],
            code=failure.reason,
            message=hide(failure.message, words)[: limits.PUSH_MESSAGE_CHARS],
            native=failure.native[:40],
            column=failure.column,
            key=key,
            ms=ms,
        )
        for failure, words, key in zip(failures, hidden, keys, strict=True)
    ]


def keys_of(
    batch: pa.RecordBatch, key_columns: Sequence[str], sensitive: frozenset[str], places: pa.Array
) -> list[dict[str, Any] | None]:
    """Return the key values of some rows as JSON, with sensitive columns redacted; None for each row if the
    batch has no key column."""
    names = [name for name in key_columns if name in batch.schema.names]
    if not names:
        return [None] * len(places)
    columns = [batch.column(name).take(places).to_pylist() for name in names]
    return [
        {
            name: HIDDEN if name in sensitive else _json_value(value)
            for name, value in zip(names, values, strict=True)
        }
        for values in zip(*columns, strict=True)
    ]


def hide_rows(
    batch: pa.RecordBatch, sensitive: frozenset[str], places: pa.Array, messages: Sequence[str]
) -> list[str]:
    """Redact the sensitive values of each row in its own message."""
    words = _texts(batch, sensitive & set(batch.schema.names), places)
    return [hide(message, values) for message, values in zip(messages, words, strict=True)]


def hide_together(batch: pa.RecordBatch, sensitive: frozenset[str], places: pa.Array, message: str) -> str:
    """Redact the sensitive values of all these rows in their common message."""
    values_to_hide = {
        value for values in _texts(batch, sensitive & set(batch.schema.names), places) for value in values
    }
    for value in sorted(
        (word for word in values_to_hide if len(word) >= _PREFIX and word in message), key=len, reverse=True
    ):
        message = message.replace(
            value, HIDDEN
        )  # whole values before prefixes, which values of one column may share
    return hide(message, values_to_hide)


def _texts(batch: pa.RecordBatch, names: Iterable[str], places: pa.Array) -> list[list[str]]:
    columns = [batch.column(name).take(places).to_pylist() for name in names]
    if not columns:
        return [[]] * len(places)
    return [
        [str(leaf) for value in row for leaf in _leaves(value) if leaf not in (None, "")]
        for row in zip(*columns, strict=True)
    ]


def _leaves(value: Any) -> Iterator[Any]:
    """Yield a value, or the values nested in it."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)[: limits.PUSH_KEY_CHARS]


def refusal(error: ConnectorError, **details: Any) -> ApiError:
    """Return the error of a push that ended because of its target."""
    all_details = {"reason": error.reason, **error.details, **details}
    return ApiError(
        error.code, error.message, {**all_details, "hint": error.hint} if error.hint else all_details
    )


def table_refused(name: str, bad: Bad, count: int) -> ApiError:
    """Return the error of a push that stopped because the first rows of a table all failed for the same reason."""
    where = f" (column {bad.column})" if bad.column else ""
    text = (
        f"The first {count:,} rows of {name} all failed for the same reason: {bad.code}{where}: {bad.message} "
        "The push was stopped."
    )
    hint = HINTS.get(bad.code, HINTS["refused"])
    details = {"reason": bad.code, "native": bad.native, "column": bad.column, "table": name, "hint": hint}
    return ApiError("target_failed", text, details)


def stopped(name: str, bad: Bad, which: str) -> ApiError:
    """Return the error of a push that stops at the first rejected row."""
    text = f"{which}: {bad.code}: {bad.message} The push stopped at its first error, as configured."
    return ApiError("target_failed", text, {"reason": bad.code, "table": name, "row": bad.row})


# Hints for errors that affect every row.
HINTS: Final[Mapping[str, str]] = {
    "unique": "The rows may already exist. Undo the earlier push, use mode upsert, or choose another seed or offset.",
    "foreign_key": "Push the parent table first, or map the column to keys that exist.",
    "not_null": "Map a field to this column.",
    "check": "Change the field so that its values satisfy the constraint.",
    "too_long": "Shorten the field's values, or map another field.",
    "out_of_range": "Narrow the field's range, or map another field.",
    "wrong_type": "Map a field of the column's type, or a formula that converts it.",
    "missing_row": "The rows do not exist. Insert them first, or check the key columns.",
    "refused": "Correct the mapping or the table, then push again.",
}
