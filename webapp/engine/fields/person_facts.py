"""What else is known of a person: form of address, age, birth and family."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine import dates
from webapp.engine.fields import titles
from webapp.engine.fields.base import OptionsModel, longest, pooled
from webapp.engine.fields.births import AGES
from webapp.engine.fields.names import MALE
from webapp.engine.fields.person import PersonField
from webapp.engine.fields.person_group import People

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_U32 = np.uint64(32)
_MARITAL = ("Single", "Married", "Divorced", "Widowed")
# Of a hundred grown-ups.
_OF_HUNDRED = np.repeat(np.arange(4), (34, 48, 12, 6))
_GROWN_UP = 18
_SMALL_BLOCK = 256
_SMALL_POOL = 8192


class Title(PersonField):
    """Ms. or Mr., in the language of the locale."""

    name = "title"
    label = "Title"
    description = "How the person is addressed, such as Ms. or Mr., in agreement with the first name."
    aliases = (
        "honorific",
        "salutation",
        "name prefix",
        "form of address",
        "courtesy title",
        "prefix male",
        "prefix female",
    )
    example = "Ms."

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = titles.titles(self.locale)
        self.max_length = longest(self._pool)

    def fill(self, cells: Cells) -> pa.Array:
        return pooled(self._pool, cells.group().sex)


class Suffix(PersonField):
    """A degree; for men also what tells fathers and sons apart."""

    name = "suffix"
    label = "Name suffix"
    description = "What follows a name, such as PhD or, for a man, Jr."
    aliases = (
        "name suffix",
        "generational suffix",
        "post nominal",
        "suffix name",
        "suffix female",
        "suffix male",
    )
    example = "PhD"
    localised = False
    max_length = max(map(len, titles.SUFFIXES))

    def fill(self, cells: Cells) -> pa.Array:
        people: People = cells.group()
        count = np.where(people.sex == MALE, np.uint64(len(titles.SUFFIXES)), np.uint64(titles.OF_BOTH))
        return pooled(titles.suffixes(), ((people.honour >> _U32) * count >> _U32).view(np.int64))


class Ages(OptionsModel):
    """How old people are."""

    min: int = Field(AGES[0], ge=0, le=limits.MAX_AGE, description="Age in whole years, at the least.")
    max: int = Field(AGES[1], ge=0, le=limits.MAX_AGE, description="Age in whole years, at the most.")


class Age(PersonField):
    """Whole years at the request's now, of the row's date of birth."""

    name = "age"
    label = "Age"
    description = "Age in whole years, in agreement with the date of birth."
    aliases = ("years old", "age in years")
    example = 34
    localised = False
    dtype = pa.int64()

    class Options(Ages):
        pass

    options: Options

    def fill(self, cells: Cells) -> pa.Array:
        return pa.array(cells.group().age)


class DateOfBirth(PersonField):
    """A day; evenly any of those on which people of the ages asked for were born."""

    name = "date_of_birth"
    label = "Date of birth"
    description = "The day a person was born, in agreement with the age."
    aliases = ("birth date", "birthday", "dob", "born", "birth day")
    example = "1991-07-23"
    localised = False

    class Options(Ages):
        format: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_AFFIX_CHARS,
            description="How it is written, in YYYY-MM-DD tokens or strftime's %Y-%m-%d; ISO 8601 if left out.",
            examples=["MM/DD/YYYY", "%d.%m.%Y"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.date32() if options.format is None else pa.string()
        if options.format is None:
            return
        try:
            clock = dates.needs_clock(options.format)
        except dates.DateFormatError as error:
            compiler.fault(field, "options.format", "bad_format", str(error))
            return
        if clock:
            text = "A day of birth has no hour to write."
            compiler.fault(
                field, "options.format", "bad_format", text, "Write it as YYYY-MM-DD or MM/DD/YYYY."
            )
            return
        self._spell = dates.formatter(options.format)
        self.max_length = dates.longest(options.format)

    def fill(self, cells: Cells) -> pa.Array:
        people: People = cells.group()
        days = people.birth
        made = pa.Array.from_buffers(pa.date32(), days.size, [None, pa.py_buffer(days.astype(np.int32))])
        if self.options.format is None:
            return made
        born = people.born
        assert born is not None  # this field is in the group
        if cells.n < _SMALL_BLOCK and born.size > _SMALL_POOL:
            return self._spell(made)
        return pooled(_days(born.low, born.size, self.options.format), days - born.low)


@lru_cache(maxsize=16)
def _days(low: int, size: int, source: str) -> pa.Array:
    """The texts of ``size`` days from ``low`` on."""
    return dates.day_table(low, low + size - 1, dates.parse(source))


class MaritalStatus(PersonField):
    """One of four; who is not of age is single."""

    name = "marital_status"
    label = "Marital status"
    description = "Single, Married, Divorced or Widowed, in agreement with the age."
    aliases = ("civil status", "family status", "relationship status")
    example = "Married"
    localised = False
    max_length = max(map(len, _MARITAL))
    _pool = pa.array(_MARITAL)

    def fill(self, cells: Cells) -> pa.Array:
        people: People = cells.group()
        status = _OF_HUNDRED[(people.marital >> _U32) * np.uint64(100) >> _U32]
        return pooled(self._pool, np.where(people.age < _GROWN_UP, 0, status))
