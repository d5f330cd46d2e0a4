"""`replace` for fields that share one place: the masked values of a row share a place too.

The place is chosen by the real values of all of them, as one key; a draw in which any of them still shows its real
value is drawn again, for all. So city, postal code and state of a masked row agree, and the same real place becomes
the same other one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import text
from webapp.engine.masking import columns, replace
from webapp.engine.masking.keys import Aes
from webapp.engine.masking.settings import settled

if TYPE_CHECKING:
    from webapp.engine.blocks import BoundPlan
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec

KIND: Final = "place"
"""The kind of group whose fields are replaced together."""
RelatedColumns = Mapping[str, pa.Array]
"""The real columns of such fields, by the fields' names."""
_BETWEEN: Final = "\x1f"


def joined(fields: Sequence[FieldSpec], field: FieldSpec) -> tuple[FieldSpec, ...]:
    """Return those fields of a group that are replaced together with ``field``, itself included, by name; none if it
    is replaced separately. Fields that set a domain, or are not consistent, always are."""
    if field.type.group_kind != KIND:
        return ()
    version = settled(field).key_version
    found = tuple(
        sorted((one for one in fields if _joins(one, version)), key=lambda one: (one.type.name, one.name))
    )
    return found if len(found) > 1 and field in found else ()


def _joins(field: FieldSpec, version: int | None) -> bool:
    asked = settled(field)
    return (
        field.common.sensitive
        and asked.strategy == "replace"
        and asked.consistent
        and asked.domain is None
        and asked.key_version == version
    )


def maker(
    fields: Sequence[FieldSpec],
    name: str,
    vocabulary: Vocabulary,
    key: bytes,
    locale: str | None,
    now: datetime | None,
    bind_fields: replace.BindFields,
) -> Callable[[Aes, pa.Array, RelatedColumns], pa.Array]:
    """Return the function that replaces the values of the field ``name`` together with the others. Raises
    `SpecError`."""
    plain = replace.without_extras(fields)
    bound = bind_fields(plain, vocabulary, locale, key.hex(), now or replace.PRESENT)
    names = [one.name for one in fields]
    return lambda aes, column, beside: _replaced(bound, names, name, aes, column, beside)


def _replaced(
    bound: BoundPlan, names: Sequence[str], name: str, aes: Aes, column: pa.Array, beside: RelatedColumns
) -> pa.Array:
    spelled = {one: pc.fill_null(text.to_text(text.decode(beside[one])), "") for one in names}
    places = pc.binary_join_element_wise(*spelled.values(), _BETWEEN).dictionary_encode()
    indices = places.indices.to_numpy()
    _, first = np.unique(indices, return_index=True)
    real = {one: values.take(pa.array(first)) for one, values in spelled.items()}
    made = _drawn(bound, name, aes, places.dictionary.cast(pa.string()), real)
    found = made.take(pa.array(indices))
    if column.null_count:
        found = pc.if_else(column.is_valid(), found, pa.scalar(None, found.type))
    return text.to_text(found) if pa.types.is_string(column.type) else found


def _drawn(bound: BoundPlan, name: str, aes: Aes, places: pa.Array, real: Mapping[str, pa.Array]) -> pa.Array:
    """One value of the field for each place, ``real`` its real values by field. Raises `replace.NoOther`."""
    words = columns.mac(aes, places)
    open_ = np.arange(len(places))
    made: pa.Array | None = None
    for turn in range(replace.DRAWS):
        some = words[open_]
        if turn:
            some = aes(some ^ np.uint64(turn))
        block = bound.at(some[:, 0].copy())
        drawn = text.decode(block.column(name))
        made = (
            drawn if made is None else pc.replace_with_mask(made, replace.mask_of(open_, len(places)), drawn)
        )
        again = np.zeros(open_.size, np.bool_)
        for other, values in real.items():
            mine = values.take(pa.array(open_))
            theirs = pc.fill_null(text.to_text(text.decode(block.column(other))), "")
            there = pc.greater(pc.utf8_length(mine), 0).to_numpy(zero_copy_only=False)
            again |= replace.shows(mine, theirs) & there
        open_ = open_[again]
        if not open_.size:
            return made
    raise replace.NoReplacement
