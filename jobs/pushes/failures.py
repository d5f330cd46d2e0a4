"""Convert the errors that a target reports for rows into entries of the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from webapp import limits
from webapp.connectors.base import ConnectorError, RowError
from webapp.errors import ApiError
from webapp.pushes.services.ledger.write import LedgerEntry
from webapp.pushes.services.rows import HIDDEN

_PREFIX: Final = 8  # targets truncate long values, so this many characters identify a value


def redact(text: str, values: Iterable[str]) -> str:
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


def ledger_entries(
    errors: Sequence[RowError],
    numbers: Sequence[int],
    batch: pa.RecordBatch,
    *,
    key_columns: Sequence[str],
    sensitive: frozenset[str],
    ms: int,
) -> list[LedgerEntry]:
    """Return the failures of a batch by row number. `numbers` has one entry per row of the batch."""
    if not errors:
        return []
    positions = pa.array([failure.index for failure in errors])
    hidden = _sensitive_texts(batch, sensitive & set(batch.schema.names), positions)
    keys = row_keys(batch, key_columns, sensitive, positions)
    return [
        LedgerEntry(
            row=numbers[failure.index],
            code=failure.reason,
            message=redact(failure.message, words)[: limits.PUSH_MESSAGE_CHARS],
            native=failure.native[:40],
            column=failure.column,
            key=key,
            ms=ms,
        )
        for failure, words, key in zip(errors, hidden, keys, strict=True)
    ]


def row_keys(
    batch: pa.RecordBatch, key_columns: Sequence[str], sensitive: frozenset[str], positions: pa.Array
) -> list[dict[str, Any] | None]:
    """Return the key values of some rows as JSON, with sensitive columns redacted; None for each row if the
    batch has no key column."""
    names = [name for name in key_columns if name in batch.schema.names]
    if not names:
        return [None] * len(positions)
    columns = [batch.column(name).take(positions).to_pylist() for name in names]
    return [
        {
            name: HIDDEN if name in sensitive else _json_value(value)
            for name, value in zip(names, values, strict=True)
        }
        for values in zip(*columns, strict=True)
    ]


def redact_each(
    batch: pa.RecordBatch, sensitive: frozenset[str], positions: pa.Array, messages: Sequence[str]
) -> list[str]:
    """Redact the sensitive values of each row in its own message."""
    words = _sensitive_texts(batch, sensitive & set(batch.schema.names), positions)
    return [redact(message, values) for message, values in zip(messages, words, strict=True)]


def redact_all(batch: pa.RecordBatch, sensitive: frozenset[str], positions: pa.Array, message: str) -> str:
    """Redact the sensitive values of all these rows in their common message."""
    values_to_hide = {
        value
        for values in _sensitive_texts(batch, sensitive & set(batch.schema.names), positions)
        for value in values
    }
    for value in sorted(
        (word for word in values_to_hide if len(word) >= _PREFIX and word in message), key=len, reverse=True
    ):
        message = message.replace(
            value, HIDDEN
        )  # whole values before prefixes, which values of one column may share
    return redact(message, values_to_hide)


def _sensitive_texts(batch: pa.RecordBatch, names: Iterable[str], positions: pa.Array) -> list[list[str]]:
    columns = [batch.column(name).take(positions).to_pylist() for name in names]
    if not columns:
        return [[]] * len(positions)
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


def target_error(error: ConnectorError, **details: Any) -> ApiError:
    """Return the error of a push that ended because of its target."""
    all_details = {"reason": error.reason, **error.details, **details}
    return ApiError(
        error.code, error.message, {**all_details, "hint": error.hint} if error.hint else all_details
    )


def table_rejected_error(name: str, failure: LedgerEntry, count: int) -> ApiError:
    """Return the error of a push that stopped because the first rows of a table all failed for the same reason."""
    where = f" (column {failure.column})" if failure.column else ""
    text = (
        f"The first {count:,} rows of {name} all failed for the same reason: {failure.code}{where}: {failure.message} "
        "The push was stopped."
    )
    hint = HINTS.get(failure.code, HINTS["refused"])
    details = {
        "reason": failure.code,
        "native": failure.native,
        "column": failure.column,
        "table": name,
        "hint": hint,
    }
    return ApiError("target_failed", text, details)


def first_failure_error(name: str, failure: LedgerEntry, which: str) -> ApiError:
    """Return the error of a push that stops at the first rejected row."""
    text = f"{which}: {failure.code}: {failure.message} The push stopped at its first error, as configured."
    return ApiError("target_failed", text, {"reason": failure.code, "table": name, "row": failure.row})


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
