"""Numbers and papers by country, as engine 2 has them: they are of the country of the row's place, and describe the
row's person.

A type that a country has its own form of (a tax number, a passport, a plate) is a `ByCountry`. Its country is that of
the option, else of the locale, else of the row's place. A country that has no such number is named in a warning, and
its rows are blank; no row has the number of another country.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.types.base import GroupKind
from webapp.engine.types.codes import Code, CodeType, mixed_by
from webapp.engine.types.countries import listed, of_locale
from webapp.engine.types.geography import geography_of
from webapp.engine.types.place import country_of_group
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.random import RandomStream
    from webapp.engine.spec import FieldSpec

KIND = "papers"
_MAX_LENGTH = 32


class DocumentGroup(GroupKind):
    """The group of a row's documents, without data of its own: its fields read the groups of person and place."""

    kind = KIND

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[None, list[Fault]]:
        return None, []

    def draw(self, draws: RandomStream, state: Any) -> None:
        return None


def groups_of_kind(group: str, kind: str) -> tuple[tuple[str, str], ...]:
    """Groups of a kind that go with a group: of the same name, or with the kind's name in place of ``person``,
    ``place``, ``papers`` or ``bank``."""
    mapped = re.sub(r"^(person|place|papers|bank)(?=$|_\d+$)", kind, group)
    return tuple((name, kind) for name in dict.fromkeys((group, mapped)))


def place_of(field: FieldSpec, compiler: Compiler) -> tuple[str, str] | None:
    """Return the group of places of a field's group, if there is one."""
    if field.group is None:
        return None
    return next((key for key in groups_of_kind(field.group, "place") if compiler.members(*key)), None)


class ByCountry(CodeType):
    """A type whose code is that of the option ``country``, else of the locale's country, else of the row's place."""

    category = "government"
    localised = True
    group_kind = KIND
    grouped_since = 2
    solitary = True
    joins = True
    beside = ("place", "person")
    placed: tuple[str, str] | None = None
    """The group whose countries rows have; None if all rows have one country."""
    _country: str | None = None
    """The country of all rows; None if rows have the countries of their places."""
    _make: Callable[[str], Code]
    _of_row: np.ndarray
    _countries: tuple[str, ...]

    @classmethod
    def reads_all(cls, group: str) -> tuple[tuple[str, str], ...]:
        return groups_of_kind(group, "place")

    def take(
        self,
        requested: str | None,
        known: Sequence[str],
        what: str,
        default: str,
        compiler: Compiler,
        make: Callable[[str], Code],
    ) -> None:
        """Use the code of the option ``requested``, else of the locale's country, else of the row's place, else of
        ``default``. ``make`` returns the code of a country of ``known``; ``what`` names it in messages."""
        field, engine = self.field, compiler.vocabulary.engine
        self._make, self._countries = make, tuple(known)
        if requested is not None:
            countries = listed(field, requested, known, "country", what, compiler)
            self._country = countries[0] if countries else default
            self.use(make(self._country))
            return
        locale = compiler.locale_of(field)
        countries = of_locale(locale, known)
        if locale is None and engine >= 2:
            self.placed = place_of(field, compiler)
            if self.placed is not None:
                self._follow(self.placed, compiler)
                return
        if locale and not countries:
            if engine >= 2:
                text = f"{self.label}: no format is available for {locale.partition('_')[2]}, so the column is blank."
                compiler.warn(field, "no_values", text, "Set options.country.")
                self.placed, self._of_row = ("", ""), np.full(1, -1, np.int64)
                self.code, self.max_length = make(default), _MAX_LENGTH
                return
            text = f"{self.label}: no format is available for the locale {locale}; {default} is used."
            compiler.warn(field, "other_country", text, "Set options.country.")
        self._country = countries[0] if countries else default
        self.use(make(self._country))

    def _follow(self, place: tuple[str, str], compiler: Compiler) -> None:
        members = compiler.members(*place)
        places = [member for member in members if member.type.group_kind == "place"]
        country = country_of_group(places, compiler)
        if country is not None:
            self.placed = None
            if country in self._countries:
                self._country = country
                self.use(self._make(country))
            else:
                text = f"{self.label}: no format is available for {country}, so the column is blank."
                compiler.warn(self.field, "no_values", text, "Set options.country.")
                self.placed, self._of_row = ("", ""), np.full(1, -1, np.int64)
                self.code, self.max_length = self._make(self._countries[0]), _MAX_LENGTH
            return
        codes = geography_of(compiler.vocabulary).countries["alpha2"].to_pylist()
        number = {code: at for at, code in enumerate(self._countries)}
        self._of_row = np.array([number.get(code, -1) for code in codes], np.int64)
        self.max_length = _MAX_LENGTH
        self.code = self._make(self._countries[0])
        count = len(self._countries)
        text = (
            f"{self.label}: rows in countries without a known format are blank ({count} countries have one)."
        )
        compiler.warn(self.field, "partly_blank", text, "Set a locale.")

    def rows_of(self, context: ColumnContext) -> np.ndarray:
        """``int64[n]``: the number of each row's country among the supported ones; -1 for other countries."""
        assert self.placed is not None
        if not self.placed[0]:
            return np.full(context.n, -1, np.int64)
        rows: np.ndarray = self._of_row[context.group_value(*self.placed).country]
        return rows

    def inputs(self, context: ColumnContext) -> Mapping[str, np.ndarray] | None:
        """Return the values of the row's person that the numbers contain; None if they contain none."""
        return None

    def fill(self, context: ColumnContext) -> pa.Array:
        if self.placed is None:
            return self.code.text(self.code.draw(context), self.inputs(context) if self.code.inputs else None)
        rows = self.rows_of(context)
        has_country = rows >= 0
        if not has_country.any():
            return pa.nulls(context.n, pa.string())
        rows_with_default = np.where(has_country, rows, rows[has_country][0])
        texts = mixed_by(
            lambda at: self._make(self._countries[at]), rows_with_default, context, given=self.inputs(context)
        )
        return (
            texts
            if has_country.all()
            else pc.if_else(pa.array(has_country), texts, pa.scalar(None, pa.string()))
        )

    def space(self) -> int | None:
        return super().space() if self.placed is None else None

    def unique_hint(self) -> str:
        return "Set options.country or a locale: numbers of several countries may be the same."
