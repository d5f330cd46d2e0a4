"""People: names, sex, work and picture, all of one person a row within a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp.engine import cells as cellular
from webapp.engine.fields import joining
from webapp.engine.fields.base import FieldType, OptionsModel, longest, pooled
from webapp.engine.fields.names import (
    DEFAULT_LOCALE,
    FEMALE,
    MALE,
    NUMBER_OF,
    SEXES,
    Names,
    handle_tails,
    jobs_of,
    names_of,
)
from webapp.engine.fields.person_group import People, locale_of_group

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

SUFFIX_DIGITS = 16
"""Digits of the longest number that `joining.suffix` gives."""


class PersonField(FieldType):
    """What the types of the group have in common."""

    category = "person"
    group_kind = "person"
    localised = True
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.group = compiler.group_of(field)
        self.alone = len(self.group) == 1
        self.locale = locale_of_group(self.group, compiler, DEFAULT_LOCALE)
        self.names = names_of(compiler.vocabulary, self.locale)

    def unique_hint(self) -> str:
        if not self.alone:
            others = ", ".join(other.name for other in self.group if other.name != self.field.name)
            return f"It must agree with {others}; give it a group of its own, or make the e-mail or username unique."
        return super().unique_hint()


class _NamePool(PersonField):
    """First or last names: one pool, of which `fill_unique` uses each name that reads differently once."""

    which: ClassVar[Literal["first", "last"]]

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.pool = getattr(self.names, self.which)
        self.max_length = getattr(self.names, f"longest_{self.which}")
        asked = getattr(options, "sex", None)  # only given names have the option
        self._asked = SEXES.index(asked) if asked else None
        self._distinct: np.ndarray | None = None
        if field.common.unique and self.alone:
            key = ("distinct", self.which, self.locale, self._asked)
            self._distinct = compiler.vocabulary.shared(
                key, lambda: _distinct(self.names, self.which, self._asked)
            )

    def fill(self, cells: Cells) -> pa.Array:
        return joining.chosen(self.pool, getattr(cells.group(), self.which))

    def space(self) -> int | None:
        return None if self._distinct is None else self._distinct.size

    def fill_unique(self, cells: Cells) -> pa.Array:
        distinct = self._distinct
        assert distinct is not None  # else the field could not be unique
        return joining.chosen(self.pool, distinct[cells.permuted(distinct.size)])


class FirstName(_NamePool):
    """A given name that fits the person's sex."""

    name = "first_name"
    label = "First name"
    description = "A given name, such as Anna."
    aliases = (
        "given name", "forename", "fname", "firstname female", "firstname male", "prename", "first name nonbinary",
    )  # fmt: skip
    example = "Anna"
    which = "first"

    class Options(OptionsModel):
        sex: Literal["female", "male"] | None = Field(None, description="Names of women or of men only.")

    options: Options


class LastName(_NamePool):
    """A family name, in the form that fits the person's sex."""

    name = "last_name"
    label = "Last name"
    description = "A family name, such as Lee."
    aliases = ("surname", "family name", "lname", "last name female", "last name male")
    example = "Lee"
    which = "last"


class MiddleName(PersonField):
    """A second given name of the same sex."""

    name = "middle_name"
    label = "Middle name"
    description = "A second given name that fits the person's sex."
    aliases = ("second name", "mname")
    example = "Grace"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = self.names.longest_first

    def fill(self, cells: Cells) -> pa.Array:
        return joining.chosen(self.names.first, cells.group().middle)

    def unique_hint(self) -> str:
        return "Make the first name unique instead."


class Name(PersonField):
    """Given and family name, in the order of the locale."""

    name = "name"
    label = "Full name"
    description = "A whole name, such as Anna Lee."
    aliases = (
        "person name", "person", "contact name", "customer name", "display name", "fullname", "name female",
        "name male", "name nonbinary",
    )  # fmt: skip
    example = "Anna Lee"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = self.names.longest_first + self.names.longest_last + len(self.names.between)
        self._pairs = None
        if field.common.unique and self.alone:
            key = ("pairs", self.locale)
            self._pairs = compiler.vocabulary.shared(key, lambda: _pairs(self.names))

    def fill(self, cells: Cells) -> pa.Array:
        people = cells.group()
        return self._joined(people.first, people.last)

    def _joined(self, first: np.ndarray, last: np.ndarray) -> pa.Array:
        pools = self.names.whole_parts
        given, family = (pools[0], first), (pools[1], last)
        return joining.joined(family, given) if self.names.family_first else joining.joined(given, family)

    def space(self) -> int | None:
        return None if self._pairs is None else sum(first.size * last.size for first, last in self._pairs)

    def fill_unique(self, cells: Cells) -> pa.Array:
        space = self.space()
        assert self._pairs is not None  # else the field could not be unique
        assert space is not None
        index = cells.permuted(space)
        women, men = self._pairs
        split = np.uint64(women[0].size * women[1].size)
        first, last = np.empty(index.size, np.uint64), np.empty(index.size, np.uint64)
        for half, here, base in ((women, index < split, np.uint64(0)), (men, index >= split, split)):
            if here.any():
                f, rest = np.divmod(index[here] - base, np.uint64(half[1].size))
                first[here], last[here] = half[0][f], half[1][rest]
        return self._joined(first, last)


class Username(PersonField):
    """A user name made of the person's names; the same as what stands before the @ of the person's e-mail."""

    name = "username"
    label = "Username"
    description = "A user name made of the person's names, such as ann.lee7."
    aliases = ("user name", "user", "login", "nickname", "handle", "screen name", "user id name")
    example = "ann.lee7"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = self.names.longest_handle + (SUFFIX_DIGITS if field.common.unique else 2)

    def fill(self, cells: Cells) -> pa.Array:
        return handles(cells.group(), handle_tails(""))

    def space(self) -> int:
        return joining.SUFFIX_SPACE

    def fill_unique(self, cells: Cells) -> pa.Array:
        return unique_handles(cells.group())


class Sex(PersonField):
    """``female`` or ``male``, as the first name says."""

    name = "sex"
    label = "Sex"
    description = "female or male, in agreement with the first name."
    aliases = ("sex type", "biological sex", "gender binary")
    example = "female"
    max_length = len("female")
    localised = False
    _pool = pa.array(SEXES)

    def fill(self, cells: Cells) -> pa.Array:
        return pooled(self._pool, cells.group().sex)


class Gender(PersonField):
    """``Female`` or ``Male``, as the first name says; or, for a share of people, ``Non-binary``."""

    name = "gender"
    label = "Gender"
    description = (
        "Female or Male, in agreement with the first name; Non-binary for a share of rows if you like."
    )
    aliases = ("gender identity",)
    example = "Female"
    max_length = len("Non-binary")
    localised = False
    _pool = pa.array(["Female", "Male", "Non-binary"])

    class Options(OptionsModel):
        nonbinary: int = Field(0, ge=0, le=100, description="How many people in a hundred are non-binary.")

    options: Options

    def fill(self, cells: Cells) -> pa.Array:
        people = cells.group()
        kind = people.sex
        if self.options.nonbinary:
            kind = np.where(cellular.chance(people.gender, self.options.nonbinary, 100), 2, kind)
        return pooled(self._pool, kind)


class JobTitle(PersonField):
    """A title; in English one that is held in the person's department."""

    name = "job_title"
    label = "Job title"
    description = "A job title, such as Software Engineer; in English it fits the department."
    aliases = ("job", "occupation", "profession", "job name", "position", "job role")
    example = "Software Engineer"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._jobs = jobs_of(compiler.vocabulary)
        english = self.locale.startswith("en") or not compiler.vocabulary.has_words("job_title", self.locale)
        self._pool = self._jobs.titles if english else compiler.vocabulary.words("job_title", self.locale)
        self._english = english
        self.max_length = compiler.vocabulary.shared(
            ("longest title", self.locale), lambda: longest(self._pool)
        )

    def fill(self, cells: Cells) -> pa.Array:
        if self._english:
            return joining.chosen(self._pool, cells.group().title)
        return joining.chosen(self._pool, cells.below(len(self._pool)))

    def space(self) -> int | None:
        return len(self._pool) if self.alone else None

    def fill_unique(self, cells: Cells) -> pa.Array:
        return joining.chosen(self._pool, cells.permuted(len(self._pool)))


class Department(PersonField):
    """A department, in English."""

    name = "department"
    label = "Department"
    description = "A department of a company, such as Engineering, in English."
    aliases = ("department name", "corporate department", "dept", "department corporate")
    example = "Engineering"
    localised = False

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = jobs_of(compiler.vocabulary).departments
        self.max_length = compiler.vocabulary.shared(("longest department",), lambda: longest(self._pool))

    def fill(self, cells: Cells) -> pa.Array:
        return pooled(self._pool, cells.group().department)

    def space(self) -> int | None:
        return len(self._pool) if self.alone else None

    def fill_unique(self, cells: Cells) -> pa.Array:
        return pooled(self._pool, cells.permuted(len(self._pool)))


class Avatar(PersonField):
    """The address of a picture drawn from the person's names."""

    name = "avatar"
    label = "Avatar"
    description = "The web address of a small picture drawn from the person's names."
    aliases = ("avatar url", "profile picture", "profile image", "photo", "user image", "picture")
    example = "https://api.dicebear.com/9.x/initials/svg?seed=anna.lee7"

    class Options(OptionsModel):
        style: Literal["initials", "identicon", "shapes", "bottts"] = Field(
            "initials", description="How the picture is drawn: initials, a pattern, shapes or a robot."
        )
        format: Literal["svg", "png"] = Field("svg", description="Format of the picture.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        start = f"https://api.dicebear.com/9.x/{options.style}/{options.format}?seed="
        self.max_length = len(start) + self.names.longest_handle + SUFFIX_DIGITS
        key = ("avatar", start, self.locale)
        # A pool for each style, format and locale: a small number of them.
        self._heads = compiler.vocabulary.shared(
            key, lambda: pc.binary_join_element_wise(start, self.names.handle_heads, "")
        )

    def fill(self, cells: Cells) -> pa.Array:
        return handles(cells.group(), handle_tails(""), heads=self._heads)

    def space(self) -> int:
        return joining.SUFFIX_SPACE

    def fill_unique(self, cells: Cells) -> pa.Array:
        return unique_handles(cells.group(), heads=self._heads)


def handles(
    people: People, tails: pa.StringArray, table: np.ndarray = NUMBER_OF, heads: pa.StringArray | None = None
) -> pa.StringArray:
    """The person's handle, row by row. ``table`` says which of ``tails`` the low bits of its draw mean; ``heads``
    stands for the heads of handles."""
    names = people.names
    head = (names.handle_heads if heads is None else heads, people.handle_head)
    return joining.joined(head, (names.last_ascii, people.last), (tails, people.handle_tail(table)))


def unique_handles(people: People, ending: str = "", heads: pa.StringArray | None = None) -> pa.StringArray:
    """Like `handles`, with a number that no other row has. No name holds a digit, so the digits at the end tell the
    row, whatever stands before them."""
    names = people.names
    head = (names.handle_heads if heads is None else heads, people.handle_head)
    return joining.joined(head, (names.last_ascii, people.last), *joining.suffix_parts(people.suffix, ending))


def _distinct(names: Names, which: str, sex: int | None) -> np.ndarray:
    """Places of the names of a pool that read differently, case and accents ignored."""
    folded = getattr(names, f"{which}_folded")
    counts = getattr(names, f"{which}_counts")
    starts = getattr(names, f"{which}_starts")
    first, end = 0, len(folded)
    if sex is not None:
        first, end = int(starts[sex]), int(starts[sex] + counts[sex])
    return _firsts(folded.slice(first, end - first)) + np.uint64(first)


def _firsts(folded: pa.Array) -> np.ndarray:
    """``uint64[k]``: the first place of each text."""
    seen = folded.dictionary_encode().indices.to_numpy()
    return np.unique(seen, return_index=True)[1].astype(np.uint64)


def _pairs(names: Names) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(first, last) places for women and for men, no pair of which reads like another.

    Given names that stand on both sides count for women. Where names are written apart, those with a blank in the
    part that is read first are left out; where they are not, those family names whose length is not the usual one.
    """
    folded = names.first_folded.to_pylist()
    family = names.last_folded.to_pylist()
    women = int(names.first_counts[FEMALE])
    taken: set[str] = set()
    firsts: list[list[int]] = [[], []]
    for place, name in enumerate(folded):
        apart = names.between and not names.family_first
        if name not in taken and not (apart and " " in name):
            taken.add(name)
            firsts[FEMALE if place < women else MALE].append(place)
    usual = _usual_length(family) if not names.between else None
    made = []
    for sex in (FEMALE, MALE):
        start, count = int(names.last_starts[sex]), int(names.last_counts[sex])
        seen: dict[str, int] = {}
        for place in range(start, start + count):
            text = family[place]
            if (usual is None or len(text) == usual) and not (
                names.between and names.family_first and " " in text
            ):
                seen.setdefault(text, place)
        made.append((np.array(firsts[sex], np.uint64), np.array(list(seen.values()), np.uint64)))
    return made[FEMALE], made[MALE]


def _usual_length(texts: list[str]) -> int:
    lengths = [len(text) for text in texts]
    return max(sorted(set(lengths)), key=lengths.count)
