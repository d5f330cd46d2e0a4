"""Masking one column: `masker_of` makes a `Masker` of a sensitive field and the workspace's keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import text
from webapp.engine.errors import SpecError
from webapp.engine.masking import columns, preserve, replace, shift, together
from webapp.engine.masking.keys import Aes, Keys
from webapp.engine.masking.settings import EMAILS, Masking, can_replace, settled
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec

REDACTED: Final = "[redacted]"
_REMOVED: Final = "[removed]"
"""Stands where a real value is spelled as `REDACTED`."""
TOKEN: Final = b"tok_"
_GUESSABLE: Final = 1_000_000
"""Fewer values than these can be tried one by one by whoever may mask values of his own."""


class MaskingError(ValueError):
    """Values that cannot be masked. ``message`` says how many, never which."""

    def __init__(self, path: str, code: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path, self.code, self.message = path, code, message


class Masker:
    """Masks one field's values. Safe over threads: what it answers hangs on the field, the key and the
    values alone, in blocks of any size and order, in any process."""

    def __init__(
        self, field: FieldSpec, asked: Masking, key_version: int, change: Change, apart: bool = False
    ) -> None:
        self.field, self.path, self.strategy = field, field.path, asked.strategy
        self.key_version: int = key_version
        """Version of the workspace's key; 0 where no key has a part in it."""
        self.needs: str | None = asked.person
        """The field whose values `mask` takes as ``person``."""
        self.collision_free: bool = apart
        """No two values become one."""
        reserved = asked.strategy == "replace" and field.type.name in EMAILS
        self.disjoint: bool = asked.strategy in ("tokenize", "hash", "redact", "null") or reserved
        """By design no real value can be among the masked ones."""
        self.exact_only: bool = asked.strategy == "shift"
        """Whole values are all there is to compare: two dates share most of their characters."""
        self.warnings: tuple[Fault, ...] = ()
        self._change = change

    def mask(
        self, column: pa.Array | pa.ChunkedArray, person: pa.Array | together.Beside | None = None
    ) -> pa.Array:
        """The masked column: as long, blank where it was. Texts for tokenize, hash and redact; for replace the type of
        the field's own values, or texts for texts; else of the type it had. ``person``: of the field `needs`; of fields
        that are replaced together the real columns, by field.

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
        except shift.NoDate as error:
            told = (
                f"{error.args[0]:,} value(s) are no dates as the field's format says, and cannot be shifted."
            )
            raise MaskingError(self.path, "no_date", told) from None
        except replace.NoOther:
            told = "The field's type has no value but the real one. Mask it by redact or null."
            raise MaskingError(self.path, "no_other_value", told) from None
        except OverflowError:
            told = "A number has more digits than can be masked. Take it as a text."
            raise MaskingError(self.path, "too_large", told) from None


Change = Callable[[pa.Array, Any], pa.Array]
"""Of a column, and of what it is masked by beside its own values."""


def masker_of(
    field: FieldSpec,
    vocabulary: Vocabulary,
    keys: Keys,
    *,
    run: str,
    locale: str | None = None,
    now: datetime | None = None,
    beside: Sequence[FieldSpec] = (),
) -> Masker:
    """What masks the values of a sensitive field. ``run`` tells this run from others, and is the same for all of its
    blocks, parts and attempts; ``locale`` stands in for the field's own. ``now`` is what relative dates hang on where
    masking is not to be consistent: else they must not move with the clock. ``beside`` are the fields that share one
    place with it and are replaced with it, itself among them (see `together`).

    Raises `SpecError`: no such version of the key; a type that makes no values with these options; a format of dates
    that cannot be read; unique, where nothing can keep it.
    """
    asked = settled(field)
    strategy = asked.strategy
    unique = bool(field.common.unique or field.common.unique_together)
    if unique and strategy in ("redact", "null"):
        told = f"Real values of {field.type.label} cannot be masked and stay unique."
        raise SpecError(
            [Fault(f"{field.path}.unique", "not_unique", told, "Take unique away, or name a masking.")]
        )
    if strategy == "redact":
        return Masker(field, asked, 0, _redacted)
    if strategy == "null":
        return Masker(field, asked, 0, lambda column, _: pa.nulls(len(column), _plain_type(column)))
    version = asked.key_version or keys.current
    if version not in keys.keys:
        known = ", ".join(map(str, sorted(keys.keys)))
        told = f"The workspace has no masking key of version {version}; it has {known}."
        raise SpecError([Fault(f"{field.path}.masking.key_version", "unknown_key_version", told, "")])
    scope = (
        ("domain", asked.domain or field.type.name)
        if asked.consistent
        else ("run", run, field.id or field.path)
    )
    if beside:
        key = keys.derive(version, "masking", strategy, "together", together.KIND)
        return Masker(field, asked, version, _together(field, beside, key, vocabulary, locale))
    key = keys.derive(version, "masking", strategy, *scope)
    change, apart = _change(field, strategy, key, vocabulary, locale, None if asked.consistent else now)
    if unique and not apart:
        told = f"With these options {field.type.label} has too few values to replace each by another."
        hint = "Write format_preserve or tokenize, or take unique away."
        raise SpecError([Fault(f"{field.path}.masking.strategy", "not_unique", told, hint)])
    made = Masker(field, asked, version, change, apart)
    if strategy == "format_preserve":
        made.warnings = _guessable(field, vocabulary, locale)
    return made


def _change(
    field: FieldSpec,
    strategy: str,
    key: bytes,
    vocabulary: Vocabulary,
    locale: str | None,
    now: datetime | None,
) -> tuple[Change, bool]:
    """What masks, and whether no two values become one."""
    if strategy == "shift":
        source = _format(field)
        return lambda column, person: _shifted(key, column, person, source), False
    if strategy == "replace":
        made, apart = replace.maker(field, vocabulary, key, locale, now)
        return lambda column, _: columns.over_distinct(column, lambda some: made(Aes(key), some)), apart
    one = {"tokenize": _tokens, "hash": _hashes}.get(strategy)
    if one is None:
        return lambda column, _: columns.over_distinct(
            column, lambda some: _preserved(field, Aes(key), some)
        ), True
    return lambda column, _: columns.over_distinct(
        column, lambda some: one(Aes(key), text.to_text(some))
    ), True


def _together(
    field: FieldSpec, beside: Sequence[FieldSpec], key: bytes, vocabulary: Vocabulary, locale: str | None
) -> Change:
    made = together.maker(beside, field.name, vocabulary, key, locale, None)
    return lambda column, others: made(Aes(key), column, others)


def _plain_type(column: pa.Array) -> pa.DataType:
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def _redacted(column: pa.Array, _: pa.Array | None) -> pa.Array:
    def change(some: pa.Array) -> pa.Array:
        spelled = text.to_text(some)
        same = pc.match_substring(spelled, REDACTED, ignore_case=True)
        return pc.if_else(same, _REMOVED, REDACTED)

    return columns.over_distinct(column, change)


def _tokens(aes: Aes, column: pa.Array) -> pa.Array:
    words = columns.mac(aes, column)
    front = np.broadcast_to(np.frombuffer(TOKEN, np.uint8), (len(words), len(TOKEN)))
    return columns.fixed_texts(np.hstack([front, columns.base32(words[:, 0]), columns.base32(words[:, 1])]))


def _hashes(aes: Aes, column: pa.Array) -> pa.Array:
    words = columns.mac(aes, column)
    spelled = np.frombuffer(words.astype(">u8").tobytes().hex().encode(), np.uint8)
    return columns.fixed_texts(spelled.reshape(len(words), 32))


def _preserved(field: FieldSpec, aes: Aes, column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_string(kind) and field.type.name in EMAILS:
        return preserve.email(aes, column)
    if pa.types.is_string(kind):
        return preserve.texts(aes, column, preserve.KEPT.get(field.type.name))
    try:
        if pa.types.is_integer(kind):
            return preserve.integers(aes, column)
        if pa.types.is_decimal(kind):
            return preserve.decimals(aes, column)
    except (pa.ArrowInvalid, ArithmeticError):
        raise OverflowError from None
    told = f"Values of the kind {kind} have no format to preserve. Take them as texts, or mask them by replace or null."
    raise MaskingError(field.path, "not_for_this_type", told)


def _shifted(key: bytes, column: pa.Array, person: pa.Array | None, source: str | None) -> pa.Array:
    if person is None or len(person) != len(column):
        raise ValueError("dates are shifted by a column of persons that is as long")
    if isinstance(person, pa.ChunkedArray):
        person = person.combine_chunks()
    return shift.shifted(Aes(key), text.decode(column), person, source)


def _format(field: FieldSpec) -> str | None:
    source = getattr(field.options, "format", None)
    if source is not None and not shift.readable(source):
        told = f'Dates as "{source}" cannot be read back, so they cannot be shifted.'
        hint = "Write a format with year, month and day."
        raise SpecError([Fault(f"{field.path}.masking.strategy", "not_for_this_type", told, hint)])
    return source


def _guessable(field: FieldSpec, vocabulary: Vocabulary, locale: str | None) -> tuple[Fault, ...]:
    space = replace.space(field, vocabulary, locale) if can_replace(field.type) else None
    if space is None or space >= _GUESSABLE:
        return ()
    told = f"{field.type.label} has so few values (about {space:,}) that who may mask values can find the real one."
    return (Fault(f"{field.path}.masking", "guessable", told, "Mask it by replace, redact or null."),)
