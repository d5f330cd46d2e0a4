"""The group ``person``: names, sex, work and addresses of one human being a row, which agree with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from webapp.engine import cells as cellular
from webapp.engine.fields import births, joining, titles
from webapp.engine.fields.base import GroupKind
from webapp.engine.fields.joining import Lazy, Salted
from webapp.engine.fields.names import (
    DEFAULT_LOCALE,
    FEMALE,
    MALE,
    SEXES,
    Candidates,
    Jobs,
    Names,
    jobs_of,
    names_of,
)
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Draws, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_MIDDLE_SALT, _HANDLE_SALT, _WORK_SALT, _GENDER_SALT = 1, 2, 3, 4
_SALTS = 5
_BIRTH_SALT, _MARITAL_SALT, _SUFFIX_SALT = 5, 6, 7
_LOW_32 = np.uint64(0xFFFFFFFF)
_U32 = np.uint64(32)
_STYLE_SHIFT = np.uint64(61)


class People(Salted):
    """The people of a block's rows, each part made when it is first asked for."""

    def __init__(self, draws: Draws, salts: int, names: Names, jobs: Jobs, narrowed: Narrowed) -> None:
        super().__init__(draws, salts)
        self.names, self._jobs, self._narrowed = names, jobs, narrowed

    @Lazy
    def _names_bits(self) -> np.ndarray:
        return self.bits(0)

    @Lazy
    def sex(self) -> np.ndarray:
        """``int64[n]``: FEMALE or MALE."""
        if self._narrowed.sex is not None:
            return np.full(self._draws.n, self._narrowed.sex, np.int64)
        return (self._names_bits & np.uint64(1)).view(np.int64)

    @Lazy
    def gender(self) -> np.ndarray:
        """``uint64[n]``: random bits that decide whether a person is neither."""
        return self.bits(_GENDER_SALT)

    @Lazy
    def first(self) -> np.ndarray:
        """``uint64[n]``: rows of ``names.first``."""
        return self._narrowed.first.pick(self.sex, self._names_bits >> _U32)

    @Lazy
    def last(self) -> np.ndarray:
        """``uint64[n]``: rows of ``names.last``."""
        # The lowest bit is the sex; 31 others decide the name.
        return self._narrowed.last.pick(self.sex, self._names_bits & _LOW_32)

    @Lazy
    def middle(self) -> np.ndarray:
        """``uint64[n]``: rows of ``names.first``, for a second given name of the same sex."""
        names = Candidates(None, self.names.first_starts, self.names.first_counts)
        return names.pick(self.sex, self.bits(_MIDDLE_SALT) >> _U32)

    @Lazy
    def handle_bits(self) -> np.ndarray:
        """``uint64[n]``: random bits of a person's handle: style, then from below number and mail domain."""
        return self.bits(_HANDLE_SALT)

    @Lazy
    def handle_head(self) -> np.ndarray:
        """``uint64[n]``: rows of ``names.handle_heads``."""
        return self.names.style_starts[self.handle_bits >> _STYLE_SHIFT] + self.first

    def handle_tail(self, table: np.ndarray) -> np.ndarray:
        """``table`` by the low bits of the handle's draw; it has a power of two of entries."""
        return table[self.handle_bits & np.uint64(table.size - 1)]

    @Lazy
    def suffix(self) -> np.ndarray:
        """``uint64[n]``: a number that no other row of the group has."""
        return joining.suffix(self._draws)

    @Lazy
    def department(self) -> np.ndarray:
        """``uint64[n]``: rows of the list of departments."""
        if self._narrowed.department is not None:
            return np.full(self._draws.n, self._narrowed.department, np.uint64)
        return (self.bits(_WORK_SALT) >> _U32) * np.uint64(len(self._jobs.departments)) >> _U32

    @Lazy
    def title(self) -> np.ndarray:
        """``uint64[n]``: rows of the English titles, each out of the row's department."""
        counts, starts = self._jobs.counts[self.department], self._jobs.starts[self.department]
        return ((self.bits(_WORK_SALT) & _LOW_32) * counts >> _U32) + starts

    @property
    def born(self) -> births.Born | None:
        """The days of birth there are to choose from; only where a field of `births.BORN` is in the group."""
        return self._narrowed.born

    @Lazy
    def birth(self) -> np.ndarray:
        """``int64[n]``: days since 1970-01-01."""
        born = self._narrowed.born
        assert born is not None
        return born.low + cellular.below(self.bits(_BIRTH_SALT), born.size).view(np.int64)

    @Lazy
    def age(self) -> np.ndarray:
        """``int64[n]``: whole years at the request's now."""
        born = self._narrowed.born
        assert born is not None
        return born.ages(self.birth)

    @property
    def marital(self) -> np.ndarray:
        """``uint64[n]``: random bits that decide whether a person is married."""
        return self.bits(_MARITAL_SALT)

    @property
    def honour(self) -> np.ndarray:
        """``uint64[n]``: random bits that decide what follows a person's name."""
        return self.bits(_SUFFIX_SALT)


@dataclass(frozen=True)
class Narrowed:
    """What overrides leave to choose from."""

    first: Candidates
    last: Candidates
    sex: int | None = None
    department: int | None = None
    born: births.Born | None = None
    """Where a field of the group asks for it."""


class Person(GroupKind):
    """One human being a row."""

    kind = "person"

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        check_locales(fields, compiler)
        self.locale = locale_of_group(fields, compiler, DEFAULT_LOCALE)
        self.names = names_of(compiler.vocabulary, self.locale)
        self.jobs = jobs_of(compiler.vocabulary)
        self._sex = _asked_sex(fields, compiler)
        self._ages = births.asked_ages(fields, compiler)
        self._salts = _SALTS if len(fields) >= joining.SALTS_PAY else 0
        whole = self._narrow(None, None, self._sex, None)
        assert whole is not None  # each sex has names
        self._whole = whole

    def prepare(self, env: Env, fixed: dict[str, Any]) -> tuple[Narrowed, list[Fault]]:
        born, unborn = births.born(self._ages, env.now, fixed, self.fields)
        whole = self._whole if born is None else replace(self._whole, born=born)
        if not fixed:
            return whole, []
        sex, department = self._sex, None
        first = last = None
        unmet = unborn
        types = {field.name: field.type.name for field in self.fields}
        for name, value in fixed.items():
            text = str(value).strip()
            found: Any = None
            match types[name]:
                case "sex" | "gender":
                    sex = found = _sex_called(text)
                case "first_name":
                    first = found = joining.where(self.names.first, text)
                case "last_name":
                    last = found = joining.where(self.names.last, text)
                case "name":
                    first, last = self._split(text)
                    found = last if first.size else first
                case "title" | "suffix":
                    sexes = titles.sexes_called(types[name], text, self.locale)
                    found = sexes or None
                    sex = sexes[0] if len(sexes) == 1 else sex
                case "email" | "username" | "safe_email" | "company_email":
                    first, last = self._spelled(text.partition("@")[0].lower())
                    found = last if first.size else first
                case "department":
                    found = joining.where(self.jobs.departments, text)
                    department = int(found[0]) if found.size else None
                case "job_title":
                    found = joining.where(self.jobs.titles, text)
                    department = int(self.jobs.department_of[found[0]]) if found.size else None
                case _:
                    continue
            if found is None or (isinstance(found, np.ndarray) and not found.size):
                unmet.append(name)
        narrowed = self._narrow(first, last, sex, department)
        if narrowed is None:
            unmet.extend(fixed)
            narrowed = whole
        return replace(narrowed, born=born), [
            _unmet(name, fixed[name], self.locale) for name in dict.fromkeys(unmet)
        ]

    def draw(self, draws: Draws, state: Narrowed) -> People:
        return People(draws, self._salts, self.names, self.jobs, state)

    def _narrow(
        self, first: np.ndarray | None, last: np.ndarray | None, sex: int | None, department: int | None
    ) -> Narrowed | None:
        """What is left when names are narrowed to places of the pools (an empty vector narrows nothing), or None
        where no sex has both a first and a last name left."""
        names = self.names
        firsts = _candidates(first, names.first_starts, names.first_counts)
        lasts = _candidates(last, names.last_starts, names.last_counts)
        possible = [s for s in (FEMALE, MALE) if sex in (None, s) and firsts.counts[s] and lasts.counts[s]]
        if not possible:
            return None
        return Narrowed(firsts, lasts, possible[0] if len(possible) == 1 else None, department)

    def _split(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Places of the first and of the last name that ``name`` is made of; empty ones where it is not."""
        names = self.names
        for cut in range(1, len(name)):
            left, right = name[:cut], name[cut:]
            if names.between:
                if name[cut] != names.between:
                    continue
                right = name[cut + 1 :]
            given, family = (right, left) if names.family_first else (left, right)
            first, last = joining.where(names.first, given), joining.where(names.last, family)
            if first.size and last.size:
                return first, last
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def _spelled(self, handle: str) -> tuple[np.ndarray, np.ndarray]:
        """Places of the names that a handle such as ``ann.lee7`` is made of."""
        handle = handle.rstrip("0123456789")
        for cut in range(1, len(handle)):
            first = joining.where(self.names.first_ascii, handle[:cut].rstrip("._-"))
            if first.size:
                last = joining.where(self.names.last_ascii, handle[cut:].lstrip("._-"))
                if last.size:
                    return first, last
        return np.empty(0, np.int64), np.empty(0, np.int64)


@overload
def locale_of_group(fields: Sequence[FieldSpec], compiler: Compiler, default: str) -> str: ...
@overload
def locale_of_group(fields: Sequence[FieldSpec], compiler: Compiler, default: None) -> str | None: ...
def locale_of_group(fields: Sequence[FieldSpec], compiler: Compiler, default: str | None) -> str | None:
    """The one locale of a group: the one that fields of it name, else the template's, else ``default``."""
    named = _locales_named(fields, compiler)
    return min(named) if named else compiler.locale_of(fields[0]) or default


def check_locales(fields: Sequence[FieldSpec], compiler: Compiler) -> None:
    """Reports two fields of one group that name different locales."""
    named = _locales_named(fields, compiler)
    if len(named) > 1:
        text = f"Fields that share one {fields[0].type.group_kind} have one locale, not {' and '.join(sorted(named))}."
        compiler.fault(
            list(named.values())[-1], "locale", "conflict", text, "Give one of them a group of its own."
        )


def _locales_named(fields: Sequence[FieldSpec], compiler: Compiler) -> dict[str, FieldSpec]:
    named = {
        compiler.locale_of(field): field for field in fields if field.common.locale and field.type.localised
    }
    return {locale: field for locale, field in named.items() if locale is not None}


def _asked_sex(fields: tuple[FieldSpec, ...], compiler: Compiler) -> int | None:
    asked = [(field, sex) for field in fields if (sex := getattr(field.options, "sex", None))]
    if len({sex for _, sex in asked}) > 1:
        text = "Fields that share one person have one sex."
        compiler.fault(asked[-1][0], "options.sex", "conflict", text, "Give one of them a group of its own.")
    return SEXES.index(asked[0][1]) if asked else None


def _sex_called(text: str) -> int | None:
    return {"female": FEMALE, "f": FEMALE, "male": MALE, "m": MALE}.get(text.lower())


def _candidates(places: np.ndarray | None, starts: np.ndarray, counts: np.ndarray) -> Candidates:
    if places is None or not places.size:
        return Candidates(None, starts, counts)
    female = int(np.searchsorted(places, int(starts[MALE])))
    kept = np.array([female, places.size - female], np.uint64)
    return Candidates(places.astype(np.uint64), np.array([0, female], np.uint64), kept)


def _unmet(name: str, value: Any, locale: str) -> Fault:
    text = f'No person of {locale} fits "{value}"; the other fields of the group do not follow it.'
    return Fault(f"overrides.{name}", "no_match", text, "")
