"""Companies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from webapp.engine.fields import joining
from webapp.engine.fields.base import FieldType, OptionsModel
from webapp.engine.fields.company_group import Companies, company_words, locale_and_end

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


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
        "fake company name",
    )
    example = "Hartmann Group"
    group_kind = "company"
    solitary = True
    localised = True
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        locale, _ = locale_and_end(compiler.group_of(field) if field.group else [field], compiler)
        self._words = company_words(compiler.vocabulary, locale)
        self.max_length = self._words.longest

    def fill(self, cells: Cells) -> pa.Array:
        made: Companies = cells.group() if self.field.group else Companies(cells, self._words)
        return joining.joined(*made.parts)

    def space(self) -> int:
        return len(self._words.heads) * len(self._words.tails)

    def fill_unique(self, cells: Cells) -> pa.Array:
        if self.field.group:
            return self.fill(cells)  # the group has seen that the name is unique
        head, tail = np.divmod(cells.permuted(self.space()), np.uint64(len(self._words.tails)))
        return joining.joined((self._words.heads, head), (self._words.tails, tail))
