"""Mask one column: `create_masker` creates the `Masker` of a sensitive field from the workspace's keys.

`shift` moves all dates of one person by the same number of whole days.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import dates, text
from webapp.engine.errors import SpecError
from webapp.engine.masking import format_preserving, keys, replace, together
from webapp.engine.masking.keys import Aes, KeyRing
from webapp.engine.masking.settings import (
    EMAIL_TYPES,
    Masking,
    can_replace,
    effective_masking,
    has_unique_replacements,
)
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec


_MAX_DAYS: Final = 365
_FIRST, _LAST = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days since 1970
_NANOSECOND_DAYS: Final = 106_000  # days either way that fit
_UNITS: Final = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_STRPTIME: Final = {"Y": "Y", "y": "y", "m": "m", "-m": "m", "d": "d", "-d": "d", "B": "B", "b": "b", "j": "j",
                    "H": "H", "-H": "H", "I": "I", "-I": "I", "M": "M", "-M": "M", "S": "S", "-S": "S", "p": "p",
                    "f": "f", "a": "a", "A": "A"}  # fmt: skip
_ISO_DAY: Final = 10


class DateParseError(ValueError):
    """Texts that are no dates; the first argument is how many."""


def is_parsable(source: str) -> bool:
    """Return whether texts in a format can be parsed, so that they can be shifted."""
    parts = dates.parse(source)
    named = {directive for kind, directive in parts if kind != "text"}
    has_full_date = {"Y", "y"} & named and (
        ({"m", "-m", "B", "b"} & named and {"d", "-d"} & named) or "j" in named
    )
    return bool(has_full_date) and named <= _STRPTIME.keys()


def shift_dates(aes: Aes, column: pa.Array, person: pa.Array, source: str | None) -> pa.Array:
    """Dates, timestamps, or texts in the format ``source`` (ISO 8601, if None). Raises `DateParseError`."""
    days = _day_offsets(aes, person)
    kind = column.type
    if pa.types.is_date32(kind):
        result = _shift_by_days(column.cast(pa.int32()), days, _FIRST, _LAST, 1, np.int32)
        return result.cast(pa.date32())
    if pa.types.is_timestamp(kind):
        unit = _UNITS[kind.unit]
        low, high = (-_NANOSECOND_DAYS, _NANOSECOND_DAYS) if kind.unit == "ns" else (_FIRST, _LAST)
        return _shift_by_days(column.cast(pa.int64()), days, low * unit, high * unit, unit, np.int64).cast(
            kind
        )
    if not pa.types.is_string(kind):
        raise DateParseError(len(column) - column.null_count)
    blank = pc.equal(column, "").fill_null(False)
    column = pc.if_else(blank, pa.scalar(None, pa.string()), column)
    if source is None:
        day_texts, rest = (
            pc.utf8_slice_codeunits(column, 0, _ISO_DAY),
            pc.utf8_slice_codeunits(column, _ISO_DAY),
        )
        try:
            day = day_texts.cast(pa.date32())
        except pa.ArrowInvalid:
            raise DateParseError(sum(not _is_day(item) for item in day_texts.to_pylist())) from None
        moved = _shift_by_days(day.cast(pa.int32()), days, _FIRST, _LAST, 1, np.int32).cast(pa.date32())
        result = pc.binary_join_element_wise(moved.cast(pa.string()), rest, "")
    else:
        parts = dates.parse(source)
        moments = keys.map_distinct(column, lambda some: _parse_moments(some, parts))
        unit = _UNITS["us"]
        moved = _shift_by_days(moments, days, _FIRST * unit, (_LAST + 1) * unit - 1, unit, np.int64)
        formatted = dates.format_timestamps(moved.fill_null(0).to_numpy(), parts)
        result = pc.if_else(
            column.is_valid(), text.decode_dictionary(formatted), pa.scalar(None, pa.string())
        )
    return pc.if_else(blank, "", result)


def _day_offsets(aes: Aes, person: pa.Array) -> np.ndarray:
    """``int64[n]``: -365 to 365 without 0. Rows without a person are treated as one person."""
    names = text.decode_dictionary(text.to_text(person)).fill_null("")
    coded = names.dictionary_encode()
    bits = keys.mac(aes, coded.dictionary)[:, 0]
    days = (bits % np.uint64(2 * _MAX_DAYS)).astype(np.int64) - _MAX_DAYS
    days += days >= 0
    return days[coded.indices.to_numpy()] if len(coded) else np.zeros(0, np.int64)


def _shift_by_days(
    column: pa.Array, days: np.ndarray, low: int, high: int, unit: int, dtype: type
) -> pa.Array:
    values = column.fill_null(0).to_numpy().astype(np.int64)
    steps = days * unit
    steps = np.where(
        (values + steps < low) | (values + steps > high), -steps, steps
    )  # the calendar has an end
    return pa.array((values + steps).astype(dtype), mask=column.is_null().to_numpy(zero_copy_only=False))


def _is_day(day_text: str | None) -> bool:
    try:
        return day_text is None or bool(datetime.fromisoformat(day_text))
    except ValueError:
        return False


def _parse_moments(column: pa.Array, parts: tuple[dates.FormatPart, ...]) -> pa.Array:
    """``int64[n]``: microseconds since 1970."""
    pattern = "".join(
        part.replace("%", "%%") if kind == "text" else f"%{_STRPTIME[part]}" for kind, part in parts
    )
    microseconds, failed = [], 0
    for value in column.to_pylist():
        try:
            moment = datetime.strptime(value, pattern).replace(tzinfo=UTC)
        except ValueError:
            failed += 1
            continue
        since = moment - _EPOCH
        microseconds.append((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)
    if failed:
        raise DateParseError(failed)
    return pa.array(microseconds, pa.int64())


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


REDACTED: Final = "[redacted]"
_REMOVED: Final = "[removed]"
"""Replaces real values that are equal to `REDACTED`."""
TOKEN_PREFIX: Final = b"tok_"
_MIN_SAFE_VALUES: Final = 1_000_000
"""Anyone who may mask chosen values can try fewer values than this one by one."""


class MaskingError(ValueError):
    """Values that cannot be masked. ``message`` says how many, never which."""

    def __init__(self, path: str, code: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path, self.code, self.message = path, code, message


class Masker:
    """Mask one field's values. Thread-safe: the result depends only on the field, the key and the values, in blocks of
    any size and order, in any process."""

    def __init__(
        self,
        field: FieldSpec,
        masking: Masking,
        key_version: int,
        mask_function: MaskFunction,
        collision_free: bool = False,
    ) -> None:
        self.field, self.path, self.strategy = field, field.path, masking.strategy
        self.key_version: int = key_version
        """Version of the workspace's key; 0 if no key is used."""
        self.needs: str | None = masking.person
        """The field whose values `mask` takes as ``person``."""
        self.collision_free: bool = collision_free
        """No two values become one."""
        reserved = masking.strategy == "replace" and field.type.name in EMAIL_TYPES
        self.disjoint: bool = masking.strategy in ("tokenize", "hash", "redact", "null") or reserved
        """By design no real value can be among the masked ones."""
        self.exact_only: bool = masking.strategy == "shift"
        """Whole values are all there is to compare: two dates share most of their characters."""
        self.warnings: tuple[Fault, ...] = ()
        self._change = mask_function

    def mask(
        self, column: pa.Array | pa.ChunkedArray, person: pa.Array | together.RelatedColumns | None = None
    ) -> pa.Array:
        """Return the masked column: of the same length, with nulls unchanged. Its type is text for tokenize, hash and
        redact; for replace the type of the field's own values, or text for text; otherwise it does not change.
        ``person``: the column of the field `needs`; for fields that are replaced together, the real columns by field.

        Raises `MaskingError`.
        """
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_null(column.type):
            return column
        if pa.types.is_large_string(column.type):
            column = column.cast(pa.string())
        try:
            return self._change(column, person)
        except DateParseError as error:
            message = (
                f"{error.args[0]:,} value(s) do not match the field's date format and cannot be shifted."
            )
            raise MaskingError(self.path, "no_date", message) from None
        except replace.NoReplacementError:
            message = (
                "The field's type has no other value than the original one. Mask it with redact or null."
            )
            raise MaskingError(self.path, "no_other_value", message) from None
        except OverflowError:
            message = "A number has too many digits to mask. Read the column as text."
            raise MaskingError(self.path, "too_large", message) from None


MaskFunction = Callable[[pa.Array, Any], pa.Array]
"""A function of a column, and of the other columns that its masking reads."""


def create_masker(
    field: FieldSpec,
    vocabulary: Vocabulary,
    keys: KeyRing,
    bind_fields: replace.BindFields,
    *,
    run_id: str,
    locale: str | None = None,
    now: datetime | None = None,
    related_fields: Sequence[FieldSpec] = (),
) -> Masker:
    """Return the masker of a sensitive field. ``run_id`` identifies the run, and is the same for all of its blocks,
    parts and attempts; ``locale`` overrides the field's. ``now`` is the base of relative dates if masking is not
    consistent: otherwise they must not change with the clock. ``related_fields`` lists the fields that share one place
    or one person with it and decide its value, including itself (see `together`).

    Raises `SpecError`: no such version of the key; a type that generates no values with these options; a date format
    that cannot be parsed; unique, if the strategy cannot keep it.
    """
    masking = effective_masking(field)
    strategy = masking.strategy
    unique = bool(field.common.unique or field.common.unique_together)
    if unique and strategy in ("redact", "null"):
        message = f"{strategy} does not produce unique values for {field.type.label}."
        raise SpecError(
            [
                Fault(
                    f"{field.path}.unique",
                    "not_unique",
                    message,
                    "Remove unique, or choose another strategy.",
                )
            ]
        )
    if strategy == "redact":
        return Masker(field, masking, 0, _redact)
    if strategy == "null":
        return Masker(field, masking, 0, lambda column, _: pa.nulls(len(column), _plain_type(column)))
    version = masking.key_version or keys.current
    if version not in keys.keys:
        known = ", ".join(map(str, sorted(keys.keys)))
        message = f"The workspace has no masking key of version {version}. Available: {known}."
        raise SpecError([Fault(f"{field.path}.masking.key_version", "unknown_key_version", message, "")])
    scope = (
        ("domain", masking.domain or field.type.name)
        if masking.consistent
        else ("run", run_id, field.id or field.path)
    )
    if related_fields and field.type.group_kind == together.PERSON:
        person = together.PersonReplacer(
            related_fields,
            field,
            vocabulary,
            partial(keys.derive, version, "masking", strategy),
            locale,
            bind_fields,
        )
        return Masker(
            field,
            masking,
            version,
            lambda column, others: person.replace_column(column, others),
            has_unique_replacements(field.type),
        )
    if related_fields:
        key = keys.derive(version, "masking", strategy, "together", together.PLACE)
        replace_place = together.create_place_replacer(
            related_fields, field.name, vocabulary, key, locale, None, bind_fields
        )
        return Masker(field, masking, version, lambda column, others: replace_place(Aes(key), column, others))
    key = keys.derive(version, "masking", strategy, *scope)
    change, is_collision_free = _create_mask_function(
        field, strategy, key, vocabulary, locale, None if masking.consistent else now, bind_fields
    )
    if unique and not is_collision_free:
        message = f"With these options {field.type.label} has too few values to replace each one with a different one."
        hint = "Use format_preserve or tokenize, or remove unique."
        raise SpecError([Fault(f"{field.path}.masking.strategy", "not_unique", message, hint)])
    masker = Masker(field, masking, version, change, is_collision_free)
    if strategy == "format_preserve":
        masker.warnings = _guessable_warnings(field, vocabulary, locale, bind_fields)
    return masker


def _create_mask_function(
    field: FieldSpec,
    strategy: str,
    key: bytes,
    vocabulary: Vocabulary,
    locale: str | None,
    now: datetime | None,
    bind_fields: replace.BindFields,
) -> tuple[MaskFunction, bool]:
    """The masking functions of the strategies, and whether they keep distinct values distinct."""
    if strategy == "shift":
        source = getattr(field.options, "format", None)
        if source is not None and not is_parsable(source):
            message = f'Dates in the format "{source}" cannot be parsed, so they cannot be shifted.'
            hint = "Use a format with year, month and day."
            raise SpecError([Fault(f"{field.path}.masking.strategy", "not_for_this_type", message, hint)])

        def shift(column: pa.Array, person: pa.Array | None) -> pa.Array:
            if person is None or len(person) != len(column):
                raise ValueError("shifting dates needs a column of persons with the same length")
            if isinstance(person, pa.ChunkedArray):
                person = person.combine_chunks()
            return shift_dates(Aes(key), text.decode_dictionary(column), person, source)

        return shift, False
    if strategy == "replace":
        replace_values, is_collision_free = replace.create_replacer(
            field, vocabulary, key, locale, now, bind_fields
        )
        return lambda column, _: keys.map_distinct(
            column, lambda some: replace_values(Aes(key), some)
        ), is_collision_free
    function = {"tokenize": _tokenize, "hash": _hash}.get(strategy)
    if function is None:
        return lambda column, _: keys.map_distinct(
            column, lambda some: _preserve_format(field, Aes(key), some)
        ), True
    return lambda column, _: keys.map_distinct(
        column, lambda some: function(Aes(key), text.to_text(some))
    ), True


def _plain_type(column: pa.Array) -> pa.DataType:
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def _redact(column: pa.Array, _: pa.Array | None) -> pa.Array:
    def change(some: pa.Array) -> pa.Array:
        texts = text.to_text(some)
        same = pc.match_substring(texts, REDACTED, ignore_case=True)
        return pc.if_else(same, _REMOVED, REDACTED)

    return keys.map_distinct(column, change)


def _tokenize(aes: Aes, column: pa.Array) -> pa.Array:
    words = keys.mac(aes, column)
    prefix = np.broadcast_to(np.frombuffer(TOKEN_PREFIX, np.uint8), (len(words), len(TOKEN_PREFIX)))
    return keys.fixed_width_strings(np.hstack([prefix, keys.base32(words[:, 0]), keys.base32(words[:, 1])]))


def _hash(aes: Aes, column: pa.Array) -> pa.Array:
    words = keys.mac(aes, column)
    digits = np.frombuffer(words.astype(">u8").tobytes().hex().encode(), np.uint8)
    return keys.fixed_width_strings(digits.reshape(len(words), 32))


def _preserve_format(field: FieldSpec, aes: Aes, column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_string(kind) and field.type.name in EMAIL_TYPES:
        return format_preserving.permute_email(aes, column)
    if pa.types.is_string(kind):
        return format_preserving.permute_texts(aes, column, format_preserving.KEEP_RULES.get(field.type.name))
    try:
        if pa.types.is_integer(kind):
            return format_preserving.permute_integers(aes, column)
        if pa.types.is_decimal(kind):
            return format_preserving.permute_decimals(aes, column)
    except (pa.ArrowInvalid, ArithmeticError):
        raise OverflowError from None
    message = (
        f"Values of type {kind} do not have a format to preserve. Read them as text, or mask them "
        "with replace or null."
    )
    raise MaskingError(field.path, "not_for_this_type", message)


def _guessable_warnings(
    field: FieldSpec, vocabulary: Vocabulary, locale: str | None, bind_fields: replace.BindFields
) -> tuple[Fault, ...]:
    space = (
        replace.estimate_value_count(field, vocabulary, locale, bind_fields)
        if can_replace(field.type)
        else None
    )
    if space is None or space >= _MIN_SAFE_VALUES:
        return ()
    message = (
        f"{field.type.label} has so few values (about {space:,}) that users with masking access "
        "can find out the original value."
    )
    return (Fault(f"{field.path}.masking", "guessable", message, "Mask it with replace, redact or null."),)
