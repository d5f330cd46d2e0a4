"""`replace` for fields that share one place or one person: the masked values of a row share one too.

A place is chosen by the real values of all its fields, as one key; a draw in which any of them still shows its real
value is drawn again, for all. So city, postal code and state of a masked row agree, and the same real place becomes
the same other one.

A person is chosen by one real value of the row. An e-mail address is often what joins tables, so it is masked by its
own value only, and names and user names follow the person of that address. Without an address they follow the user
name, or all of the names. A row whose names would show a real one gets other names, which then do not fit the address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import text
from webapp.engine.masking import keys, replace
from webapp.engine.masking.keys import Aes
from webapp.engine.masking.settings import EMAIL_TYPES, effective_masking

if TYPE_CHECKING:
    from webapp.engine.blocks import BoundPlan
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec

PLACE: Final = "place"
PERSON: Final = "person"
_NAMES: Final = frozenset({"first_name", "last_name", "middle_name", "name"})
_USERNAME: Final = "username"
RelatedColumns = Mapping[str, pa.Array]
"""The real columns of such fields, by the fields' names."""
_SEPARATOR: Final = "\x1f"


def fields_replaced_together(fields: Sequence[FieldSpec], field: FieldSpec) -> tuple[FieldSpec, ...]:
    """Return those fields of a group that decide the replacement of ``field``, itself included, by type and name; none
    if it is replaced by its own value only. Fields that set a domain, or are not consistent, always are."""
    kind = field.type.group_kind
    if kind not in (PLACE, PERSON):
        return ()
    version = effective_masking(field).key_version
    found = tuple(
        sorted(
            (item for item in fields if _is_replaced_together(item, version)),
            key=lambda spec: (spec.type.name, spec.name),
        )
    )
    if field not in found:
        return ()
    if kind == PERSON:
        return _person_fields(found, field)
    return found if len(found) > 1 else ()


def _is_replaced_together(field: FieldSpec, version: int | None) -> bool:
    masking = effective_masking(field)
    return (
        field.common.sensitive
        and masking.strategy == "replace"
        and masking.consistent
        and masking.domain is None
        and masking.key_version == version
    )


def _person_fields(fields: Sequence[FieldSpec], field: FieldSpec) -> tuple[FieldSpec, ...]:
    """Return the fields that share one person with ``field``, if it follows others.

    The first and the last name of a row fit each other anyway, and each is masked the same in every table.
    """
    found = tuple(
        item
        for item in fields
        if item.type.name in _NAMES | EMAIL_TYPES | {_USERNAME}
        and item.common.locale == field.common.locale
        and not getattr(item.options, "sex", None)
    )
    first = leading_field(found)
    names = [spec.type.name for spec in found if spec.type.name in _NAMES]
    if field not in found or field is first or field.type.name in EMAIL_TYPES:
        return ()
    return found if first is not None or ("name" in names and len(names) > 1) else ()


def leading_field(fields: Sequence[FieldSpec]) -> FieldSpec | None:
    """Return the field whose real value chooses the person: an e-mail address, else the user name; None for names."""
    addresses = [field for field in fields if field.type.name in EMAIL_TYPES]
    return next(iter(addresses + [field for field in fields if field.type.name == _USERNAME]), None)


def create_place_replacer(
    fields: Sequence[FieldSpec],
    name: str,
    vocabulary: Vocabulary,
    key: bytes,
    locale: str | None,
    now: datetime | None,
    bind_fields: replace.BindFields,
) -> Callable[[Aes, pa.Array, RelatedColumns], pa.Array]:
    """Return the function that replaces the values of the field ``name`` of a place together with the others. Raises
    `SpecError`."""
    plain = replace.strip_extras(fields)
    bound = bind_fields(plain, vocabulary, locale, key.hex(), now or replace.DEFAULT_NOW)
    names = [field.name for field in fields]

    def replace_column(aes: Aes, column: pa.Array, columns: RelatedColumns) -> pa.Array:
        texts = _text_columns(names, columns)
        places = pc.binary_join_element_wise(*texts.values(), _SEPARATOR).dictionary_encode()
        indices = places.indices.to_numpy()
        _, first = np.unique(indices, return_index=True)
        real = {item: values.take(pa.array(first)) for item, values in texts.items()}
        replacements = _draw_place_replacements(bound, name, aes, places.dictionary.cast(pa.string()), real)
        result = replacements.take(pa.array(indices))
        if column.null_count:
            result = pc.if_else(column.is_valid(), result, pa.scalar(None, result.type))
        return text.to_text(result) if pa.types.is_string(column.type) else result

    return replace_column


def _draw_place_replacements(
    bound: BoundPlan, name: str, aes: Aes, places: pa.Array, real: Mapping[str, pa.Array]
) -> pa.Array:
    """One value of the field for each place, ``real`` its real values by field. Raises `replace.NoOther`."""
    words = keys.mac(aes, places)
    pending = np.arange(len(places))
    result: pa.Array | None = None
    for attempt in range(replace.MAX_ATTEMPTS):
        seeds = words[pending]
        if attempt:
            seeds = aes(seeds ^ np.uint64(attempt))
        block = bound.block_at(seeds[:, 0].copy())
        drawn = text.decode_dictionary(block.column(name))
        result = (
            drawn
            if result is None
            else pc.replace_with_mask(result, replace.boolean_mask(pending, len(places)), drawn)
        )
        shows_real = np.zeros(pending.size, np.bool_)
        for other, values in real.items():
            real_texts = values.take(pa.array(pending))
            drawn_texts = pc.fill_null(text.to_text(text.decode_dictionary(block.column(other))), "")
            is_present = pc.greater(pc.utf8_length(real_texts), 0).to_numpy(zero_copy_only=False)
            shows_real |= replace.reveals(real_texts, drawn_texts) & is_present
        pending = pending[shows_real]
        if not pending.size:
            return result
    raise replace.NoReplacementError


# --- People -------------------------------------------------------------------------------------------------


class PersonReplacer:
    """The replacement of names and user names by those of one person a row: `replace_column`. Thread-safe."""

    def __init__(
        self,
        fields: Sequence[FieldSpec],
        field: FieldSpec,
        vocabulary: Vocabulary,
        derive_key: Callable[..., bytes],
        locale: str | None,
        bind_fields: replace.BindFields,
    ) -> None:
        """``key_of(*scope)`` derives a key. Raises `SpecError`."""
        first = leading_field(fields)
        shared = derive_key("together", PERSON)
        key = shared if first is None else derive_key("domain", first.type.name)
        self._field = field.name
        self._leader = first.name if first is not None else None
        self._names = [item.name for item in fields if item.type.name in _NAMES]
        # A user name that follows an address keeps keyed bits of its own, so that no two are the same.
        self._usernames = [item.name for item in fields if item.type.name == _USERNAME and item is not first]
        self._finish = {item.name: replace.get_finisher(item.type.name) for item in fields}
        # The plan of the leader alone gives it the same value as in a table without names.
        self._bound, self._leader_plan = (
            bind_fields(replace.strip_extras(some), vocabulary, locale, key.hex(), replace.DEFAULT_NOW)
            for some in (fields, [first] if first is not None else fields)
        )
        self._shared, self._key = Aes(shared), Aes(key)
        self._bits = Aes(derive_key("domain", _USERNAME))

    def replace_column(self, column: pa.Array, columns: RelatedColumns) -> pa.Array:
        """Return the column with other values; nulls stay."""
        names = [*self._names, *self._usernames, *([self._leader] if self._leader is not None else [])]
        real = _text_columns(names, columns)
        people = pc.binary_join_element_wise(*real.values(), _SEPARATOR).dictionary_encode()
        indices = people.indices.to_numpy()
        _, places = np.unique(indices, return_index=True)
        replacements = self._draw_replacements(
            {name: values.take(pa.array(places)) for name, values in real.items()}
        )
        result = replacements.take(pa.array(indices))
        return (
            pc.if_else(column.is_valid(), result, pa.scalar(None, pa.string()))
            if column.null_count
            else result
        )

    def _draw_replacements(self, real: Mapping[str, pa.Array]) -> pa.Array:
        """One value of the field for each person. Raises `replace.NoReplacementError`."""
        words = self._person_hashes(real)
        username_hashes = {name: keys.mac(self._bits, real[name]) for name in self._usernames}
        pending = np.arange(len(words))
        result: pa.Array | None = None
        for attempt in range(replace.MAX_ATTEMPTS):
            seeds = self._shared(words[pending] ^ np.uint64(attempt)) if attempt else words[pending]
            block = self._bound.block_at(seeds[:, 0].copy())
            shows_real = np.zeros(pending.size, np.bool_)
            for name in [*self._names, *self._usernames]:
                part = pc.fill_null(text.to_text(text.decode_dictionary(block.column(name))), "")
                finish = self._finish[name]
                if finish is not None:
                    part = finish(part, username_hashes[name][pending, 1])
                if name == self._field:
                    result = (
                        part
                        if result is None
                        else pc.replace_with_mask(result, replace.boolean_mask(pending, len(words)), part)
                    )
                real_texts = real[name].take(pa.array(pending))
                is_present = pc.greater(pc.utf8_length(real_texts), 0).to_numpy(zero_copy_only=False)
                shows_real |= replace.reveals(real_texts, part) & is_present
            pending = pending[shows_real]
            if not pending.size:
                assert result is not None  # the field is one of those that are drawn
                return result
        raise replace.NoReplacementError

    def _person_hashes(self, real: Mapping[str, pa.Array]) -> np.ndarray:
        """``uint64[n, 2]``: in front the numbers of the rows whose people are taken."""
        names = [real[name] for name in self._names or self._usernames]
        words = keys.mac(self._shared, pc.binary_join_element_wise(*names, _SEPARATOR))
        if self._leader is not None:
            values = real[self._leader]
            present = np.flatnonzero(pc.greater(pc.utf8_length(values), 0).to_numpy(zero_copy_only=False))
            finish = self._finish[self._leader]
            _, rows = replace.draw_replacements(
                self._leader_plan, self._leader, finish, self._key, values.take(pa.array(present))
            )
            words[present, 0] = rows
        return words


def _text_columns(names: Iterable[str], columns: RelatedColumns) -> dict[str, pa.Array]:
    """The real values of fields as texts, "" for null."""
    return {name: pc.fill_null(text.to_text(text.decode_dictionary(columns[name])), "") for name in names}
