"""`replace`: a synthetic value of the same kind, selected by a keyed hash of the real one.

The field's own type generates it, for a row whose number is 64 keyed bits of the real value: with the field's locale,
options and vocabulary. A value that still shows the real one is generated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import budget, text
from webapp.engine.masking import keys
from webapp.engine.masking.keys import Aes
from webapp.engine.masking.settings import EMAIL_TYPES, has_unique_replacements

if TYPE_CHECKING:
    from webapp.engine.blocks import BoundPlan
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec

DEFAULT_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The base of relative dates if the caller sets none: masking must not move with the clock."""
MAX_ATTEMPTS: Final = 64
"""Attempts to generate a value that does not show the real one."""
_UNLIMITED: Final = 1 << 62
"""The number of values that types report whose values differ in all rows."""
_MIN_SHOWN_CHARS: Final = 5
"""A real value of this many characters or more must not occur in its replacement."""
_RESERVED: Final = (b"@example.com", b"@example.org", b"@example.net")  # RFC 2606, section 3
_MAX_PREFIX: Final = 40


class NoReplacementError(ValueError):
    """A field's type has no value other than the real one."""


class BindFields(Protocol):
    """Bind a template of only these fields to a seed: `webapp.engine.plan.bind_fields`, which this module cannot import
    because plans depend on masking."""

    def __call__(
        self,
        fields: Sequence[FieldSpec],
        vocabulary: Vocabulary,
        locale: str | None,
        seed: str,
        now: datetime,
    ) -> BoundPlan: ...


def strip_extras(fields: Iterable[FieldSpec]) -> list[FieldSpec]:
    """Return the fields with only their names, types, options and locales."""
    plain = []
    for field in fields:
        common = type(field.common)(name=field.name, type=field.common.type, locale=field.common.locale)
        plain.append(type(field)(field.path, common, field.type, field.options, field.children))
    return plain


def estimate_value_count(
    field: FieldSpec, vocabulary: Vocabulary, locale: str | None, bind_fields: BindFields
) -> int | None:
    """Return about how many values a field's type generates; None if that is unknown. Raises `SpecError`."""
    bound = bind_fields(strip_extras([field]), vocabulary, locale, "", DEFAULT_NOW)
    generator = bound.layer.columns[field.name].type
    count = generator.distinct_count()
    return 10**generator.max_length if count is None and generator.max_length is not None else count


def create_replacer(
    field: FieldSpec,
    vocabulary: Vocabulary,
    key: bytes,
    locale: str | None,
    now: datetime | None,
    bind_fields: BindFields,
) -> tuple[Callable[[Aes, pa.Array], pa.Array], bool]:
    """Return the function that replaces the values of a field (no nulls), and whether different values always get
    different replacements, which then contain at least 64 keyed bits. Raises `SpecError`."""
    bound = bind_fields(strip_extras([field]), vocabulary, locale, key.hex(), now or DEFAULT_NOW)
    finish = get_finisher(field.type.name)
    value_count = bound.layer.columns[field.name].type.distinct_count() or 0
    is_collision_free = finish is not None or (
        has_unique_replacements(field.type) and value_count >= _UNLIMITED
    )

    def replace_values(aes: Aes, column: pa.Array) -> pa.Array:
        values, _ = draw_replacements(bound, field.name, finish, aes, text.to_text(column))
        return text.to_text(values) if pa.types.is_string(column.type) else values

    return replace_values, is_collision_free


Finisher = Callable[[pa.Array, np.ndarray], pa.Array]
"""Puts 64 keyed bits for each row into texts, so that no two are the same."""


def get_finisher(type_name: str) -> Finisher | None:
    """Return what `replace` does with the generated values of a type; None for most types."""
    if type_name in EMAIL_TYPES:
        return _email
    return {"username": _username, "mongodb_objectid": _objectid}.get(type_name)


def draw_replacements(
    bound: BoundPlan, name: str, finish: Finisher | None, aes: Aes, real: pa.Array
) -> tuple[pa.Array, np.ndarray]:
    """Return the replacements of distinct or repeated texts (no nulls), and the numbers of the rows that they were
    generated for (``uint64[n]``). Raises `NoReplacementError`."""
    words = keys.mac(aes, real)
    rows = words[:, 0].copy()
    result: pa.Array | None = None
    pending = np.arange(len(real))
    for attempt in range(MAX_ATTEMPTS):
        pending_words = words[pending]
        if attempt:
            pending_words = aes(pending_words ^ np.uint64(attempt))
            rows[pending] = pending_words[:, 0]
        part = text.decode_dictionary(
            budget.generate_in_chunks(
                lambda rows: bound.block_at(rows).column(name), pending_words[:, 0].copy()
            )
        )
        if finish is not None:
            part = finish(part, pending_words[:, 1])
        result = (
            part if result is None else pc.replace_with_mask(result, boolean_mask(pending, len(real)), part)
        )
        pending = pending[reveals(real.take(pa.array(pending)), text.to_text(part))]
        if not pending.size:
            return result, rows
    raise NoReplacementError


def boolean_mask(positions: np.ndarray, size: int) -> pa.Array:
    """``bool[size]``: true at these places."""
    mask = np.zeros(size, np.bool_)
    mask[positions] = True
    return pa.array(mask)


def reveals(real: pa.Array, masked: pa.Array) -> np.ndarray:
    """Return ``bool[n]``: where a text still shows the real one (both without nulls): equal except for case, the same
    digits, or a real value of five characters or more inside it."""
    same = pc.equal(pc.utf8_lower(real), pc.utf8_lower(masked)).to_numpy(zero_copy_only=False).copy()
    lengths = pc.utf8_length(real).to_numpy()
    inside = np.flatnonzero((lengths >= _MIN_SHOWN_CHARS) & (pc.utf8_length(masked).to_numpy() > lengths))
    candidates = pa.array(inside)
    pairs = zip(real.take(candidates).to_pylist(), masked.take(candidates).to_pylist(), strict=True)
    same[inside] |= np.fromiter((item in text for item, text in pairs), np.bool_, inside.size)
    (real_digits, first), (masked_digits, other) = _digits(real), _digits(masked)
    sizes = np.diff(first)
    places = np.flatnonzero((sizes > 0) & (sizes == np.diff(other)))
    if places.size:
        sizes = sizes[places]
        starts = np.cumsum(sizes) - sizes
        along = np.arange(sizes.sum()) - np.repeat(starts, sizes)
        is_equal = (
            real_digits[np.repeat(first[places], sizes) + along]
            == masked_digits[np.repeat(other[places], sizes) + along]
        )
        same[places] |= np.logical_and.reduceat(is_equal, starts)
    return same


def _digits(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the digits of all texts, concatenated, with the offsets of each text."""
    data, ends = keys.bytes_and_offsets(column)
    places = np.flatnonzero((data >= ord("0")) & (data <= ord("9")))
    return data[places], np.searchsorted(places, ends)


# --- Texts that carry the bits ------------------------------------------------------------------------------


def _email(values: pa.Array, words: np.ndarray) -> pa.Array:
    prefix = pc.utf8_slice_codeunits(pc.replace_substring_regex(values, "@.*$", ""), 0, _MAX_PREFIX)
    domain = (
        pa.array(_RESERVED, pa.binary()).cast(pa.string()).take(pa.array(words % np.uint64(len(_RESERVED))))
    )
    return pc.binary_join_element_wise(prefix, ".", keys.fixed_width_strings(keys.base32(words)), domain, "")


def _username(values: pa.Array, words: np.ndarray) -> pa.Array:
    prefix = pc.utf8_slice_codeunits(values, 0, _MAX_PREFIX)
    return pc.binary_join_element_wise(prefix, "_", keys.fixed_width_strings(keys.base32(words)), "")


def _objectid(values: pa.Array, words: np.ndarray) -> pa.Array:
    prefix = pc.utf8_slice_codeunits(values, 0, 8)  # four bytes of time; the other eight are keyed bits
    digits = np.frombuffer(words.astype(">u8").tobytes().hex().encode(), np.uint8).reshape(-1, 16)
    return pc.binary_join_element_wise(prefix, keys.fixed_width_strings(digits), "")
