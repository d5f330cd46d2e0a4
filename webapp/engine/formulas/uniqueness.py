"""Prove that a formula's values never repeat.

A value is proven unique if it is one-to-one with a unique field (or with the row number): the field plus or minus a
constant, times a constant other than 0, padded, reversed, or converted to text. So is a text from which such a value
can be recovered: the text on one side of it is constant, and the value has a fixed width, or is separated on the other
side by a character that it cannot contain (or the text on that side is constant too).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from webapp import limits
from webapp.engine.formulas.types import Kind

if TYPE_CHECKING:
    from webapp.engine.layers import Column

MAX_DISTINCT_COUNT = 1 << 62
UNIQUE_HINT = (
    "A formula is unique only if it is one-to-one with one unique field: that field plus or times a constant, padded, "
    "or in a text next to a character that the field cannot contain."
)

_DIGITS = frozenset("0123456789-")
_FRACTIONS = _DIGITS | {"."}
_MOMENTS = _FRACTIONS | set("T:Z")
_TEXT_FORMS: dict[str, tuple[frozenset[str], int]] = {
    "mongodb_objectid": (frozenset("0123456789abcdef"), 24),
    "ulid": (frozenset("0123456789ABCDEFGHJKMNPQRSTVWXYZ"), 26),
}
"""Characters and width of the texts of some types."""


@dataclass(frozen=True, slots=True)
class UniquenessProof:
    """Values that never repeat, and as texts: the characters they consist of and their width, where known."""

    distinct_count: int
    alphabet: frozenset[str] | None = None
    width: int | None = None
    is_number: bool = False
    """A number's text, without zeros before it."""
    is_nonnegative: bool = False
    """A number of 0 or more: its text has no sign."""

    def changed(self, *, positive: bool) -> UniquenessProof:
        """The same of numbers that are one-to-one with these."""
        return UniquenessProof(self.distinct_count, is_nonnegative=self.is_nonnegative and positive)

    def as_text(self, kind: Kind) -> UniquenessProof:
        """The same for the texts that values of type ``kind`` are spelled with."""
        match kind.name:
            case "integer" | "decimal":
                signs = _FRACTIONS if kind.places else _DIGITS
                above = self.is_nonnegative or (kind.low is not None and kind.low >= 0)
                return replace(self, alphabet=signs - {"-"} if above else signs, is_number=True)
            case "date":
                return replace(self, alphabet=_DIGITS, width=10)
            case "timestamp" | "time":
                return replace(self, alphabet=_MOMENTS)
            case _:
                return self

    def padded(self, fill: str, *, left: bool) -> UniquenessProof | None:
        """The same after padding."""
        if (left and self.is_number and fill == "0") or (
            self.alphabet is not None and fill not in self.alphabet
        ):
            return UniquenessProof(
                self.distinct_count, None if self.alphabet is None else self.alphabet | {fill}
            )
        return self if self.width is not None else None


Part = tuple[str | None, UniquenessProof | None]
"""A piece of a text: the constant it is, or the proof it carries, or neither."""


def prove_parts(parts: Sequence[Part]) -> UniquenessProof | None:
    """The proof of a text put together from ``parts``."""
    for index, (_, proof) in enumerate(parts):
        if proof is None:
            continue
        before, after = parts[:index], parts[index + 1 :]
        first = after[0][0][:1] if after and after[0][0] else ""
        last = before[-1][0][-1:] if before and before[-1][0] else ""
        if (_is_constant(before) and (_is_constant(after) or _is_delimited(proof, first))) or (
            _is_constant(after) and _is_delimited(proof, last)
        ):
            is_only_part = len(parts) == 1
            return (
                proof
                if is_only_part
                else replace(proof, alphabet=_joined_alphabet(parts), width=None, is_number=False)
            )
    return None


def _is_constant(parts: Sequence[Part]) -> bool:
    return all(text is not None for text, _ in parts)


def _is_delimited(proof: UniquenessProof, sign: str) -> bool:
    if proof.width is not None:
        return True
    return bool(sign) and proof.alphabet is not None and sign not in proof.alphabet


def _joined_alphabet(parts: Sequence[Part]) -> frozenset[str] | None:
    signs: set[str] = set()
    for text, proof in parts:
        if text is not None:
            signs.update(text)
        elif proof is not None and proof.alphabet is not None:
            signs.update(proof.alphabet)
        else:
            return None
    return frozenset(signs)


def prove_column(column: Column) -> UniquenessProof | None:
    """The proof of a field of the same level, if it is unique in itself."""
    common, kind = column.spec.common, column.type
    if not (common.unique or kind.is_primary_key) or common.percent_blank or common.text_case:
        return None
    if common.prefix or common.suffix or common.formula:
        return UniquenessProof(kind.distinct_count() or MAX_DISTINCT_COUNT)
    if kind.name == "uuid":
        return UniquenessProof(
            kind.distinct_count() or MAX_DISTINCT_COUNT, frozenset("0123456789abcdefABCDEF-{}"), None
        )
    alphabet, width = _TEXT_FORMS.get(kind.name, (None, None))
    bounds = kind.bounds(limits.MAX_OFFSET)
    return UniquenessProof(
        kind.distinct_count() or MAX_DISTINCT_COUNT,
        alphabet,
        width,
        is_nonnegative=bounds is not None and bounds[0] >= 0,
    )
