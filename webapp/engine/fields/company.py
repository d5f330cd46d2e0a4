"""Companies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.fields import joining
from webapp.engine.fields.base import FieldType, longest
from webapp.engine.fields.names import DEFAULT_LOCALE, MALE, Names, names_of

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.plan import Compiler
    from webapp.engine.spec import FieldSpec

_PARTNERS_OF_EIGHT = 3
"""So many companies out of eight are named after two people, the rest after one and their legal form."""
_TAIL_SALT, _STYLE_SALT = 1, 2


class CompanyName(FieldType):
    """A family name and a legal form, or two family names."""

    name = "company_name"
    label = "Company name"
    category = "company"
    description = "The name of a company, such as Hartmann Group or Lee & Novak."
    aliases = (
        "company",
        "business name",
        "organization",
        "organisation",
        "employer",
        "vendor",
        "supplier",
        "firm",
    )
    example = "Hartmann Group"
    localised = True
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: Any, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        locale = compiler.locale_of(field) or DEFAULT_LOCALE
        vocabulary = compiler.vocabulary
        self._made = vocabulary.shared(("companies", locale), lambda: _Companies(vocabulary, locale))
        self.max_length = self._made.longest

    def fill(self, cells: Cells) -> pa.Array:
        made = self._made
        tail = cells.below(made.forms, _TAIL_SALT)
        if made.partners:
            two = cells.bits(_STYLE_SALT) >> np.uint64(61) < np.uint64(_PARTNERS_OF_EIGHT)
            partner = cells.below(made.partners, _TAIL_SALT) + np.uint64(made.forms)
            tail = np.where(two, partner, tail)
        return joining.joined((made.heads, cells.below(len(made.heads))), (made.tails, tail))

    def space(self) -> int:
        return len(self._made.heads) * len(self._made.tails)

    def fill_unique(self, cells: Cells) -> pa.Array:
        head, tail = np.divmod(cells.permuted(self.space()), np.uint64(len(self._made.tails)))
        return joining.joined((self._made.heads, head), (self._made.tails, tail))


class _Companies:
    """Pools of one locale: ``heads`` are family names that read differently, ``tails`` first the legal forms, then the
    partners' names."""

    def __init__(self, vocabulary: Vocabulary, locale: str) -> None:
        names = names_of(vocabulary, locale)
        between = names.between
        forms = pc.binary_join_element_wise(between, vocabulary.words("company_form", locale), "")
        self.heads = _family_names(names)
        self.forms = len(forms)
        partners = pc.binary_join_element_wise(" & ", self.heads, "") if between else self.heads.slice(0, 0)
        self.partners = len(partners)
        self.tails = pa.concat_arrays([forms, partners])
        self.longest = longest(self.heads) + longest(self.tails)


def _family_names(names: Names) -> pa.StringArray:
    start, count = int(names.last_starts[MALE]), int(names.last_counts[MALE])
    return names.last.slice(start, count)
