"""Numbers and papers by country, as engine 2 has them: they are of the country of the row's place, and describe the
row's person.

A type that a country has its own form of (a tax number, a passport, a plate) is a `CountryDependentType`. Its country
is that of the option, else of the locale, else of the row's place. A country that has no such number is named in a
warning, and its rows are blank; no row has the number of another country.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.types.base import GroupKind
from webapp.engine.types.codes import Code, CodeType, texts_by_code_factory
from webapp.engine.types.countries import country_of_locale, validate_countries
from webapp.engine.types.geography import geography_of
from webapp.engine.types.place import Places, country_of_group
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.random import RandomStream
    from webapp.engine.spec import FieldSpec

DOCUMENT_KIND = "papers"
_MAX_LENGTH = 32


class DocumentKind(GroupKind):
    """The group of a row's documents, without data of its own: its fields read the groups of person and place."""

    kind = DOCUMENT_KIND

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[None, list[Fault]]:
        return None, []

    def draw(self, draws: RandomStream, state: Any) -> None:
        return None


def groups_of_kind(group: str, kind: str) -> tuple[tuple[str, str], ...]:
    """Groups of a kind that go with a group: of the same name, or with the kind's name in place of ``person``,
    ``place``, ``papers`` or ``bank``."""
    mapped = re.sub(r"^(person|place|papers|bank)(?=$|_\d+$)", kind, group)
    return tuple((name, kind) for name in dict.fromkeys((group, mapped)))


def find_place_group(field: FieldSpec, compiler: Compiler) -> tuple[str, str] | None:
    """Return the group of places of a field's group, if there is one."""
    if field.group is None:
        return None
    return next((key for key in groups_of_kind(field.group, "place") if compiler.group_members(*key)), None)


class CountryDependentType(CodeType):
    """A type whose code is that of the option ``country``, else of the locale's country, else of the row's place."""

    category = "government"
    localised = True
    group_kind = DOCUMENT_KIND
    grouped_since_engine = 2
    requires_named_group = True
    joins_existing_groups_only = True
    companion_group_kind = ("place", "person")
    place_group: tuple[str, str] | None = None
    """The group whose countries rows have; None if all rows have one country."""
    _country: str | None = None
    """The country of all rows; None if rows have the countries of their places."""
    _create_code: Callable[[str], Code]
    _code_index_by_country: np.ndarray
    _countries: tuple[str, ...]

    @classmethod
    def referenced_groups(cls, group: str) -> tuple[tuple[str, str], ...]:
        return groups_of_kind(group, "place")

    def select_country(
        self,
        requested: str | None,
        known: Sequence[str],
        noun: str,
        default: str,
        compiler: Compiler,
        create_code: Callable[[str], Code],
    ) -> None:
        """Use the code of the option ``requested``, else of the locale's country, else of the row's place, else of
        ``default``. ``create_code`` returns the code of a country of ``known``; ``noun`` names it in messages."""
        field, engine = self.field, compiler.vocabulary.engine
        self._create_code, self._countries = create_code, tuple(known)
        if requested is not None:
            countries = validate_countries(field, requested, known, "country", noun, compiler)
            self._country = countries[0] if countries else default
            self.use(create_code(self._country))
            return
        locale = compiler.locale_of(field)
        countries = country_of_locale(locale, known)
        if locale is None and engine >= 2:
            self.place_group = find_place_group(field, compiler)
            if self.place_group is not None:
                self._use_place_country(self.place_group, compiler)
                return
        if locale and not countries:
            if engine >= 2:
                text = f"{self.label}: no format is available for {locale.partition('_')[2]}, so the column is blank."
                compiler.warn(field, "no_values", text, "Set options.country.")
                self.place_group, self._code_index_by_country = ("", ""), np.full(1, -1, np.int64)
                self.code, self.max_length = create_code(default), _MAX_LENGTH
                return
            text = f"{self.label}: no format is available for the locale {locale}; {default} is used."
            compiler.warn(field, "other_country", text, "Set options.country.")
        self._country = countries[0] if countries else default
        self.use(create_code(self._country))

    def _use_place_country(self, place: tuple[str, str], compiler: Compiler) -> None:
        members = compiler.group_members(*place)
        places = [member for member in members if member.type.group_kind == "place"]
        country = country_of_group(places, compiler)
        if country is not None:
            self.place_group = None
            if country in self._countries:
                self._country = country
                self.use(self._create_code(country))
            else:
                text = f"{self.label}: no format is available for {country}, so the column is blank."
                compiler.warn(self.field, "no_values", text, "Set options.country.")
                self.place_group, self._code_index_by_country = ("", ""), np.full(1, -1, np.int64)
                self.code, self.max_length = self._create_code(self._countries[0]), _MAX_LENGTH
            return
        codes = geography_of(compiler.vocabulary).countries["alpha2"].to_pylist()
        number = {code: at for at, code in enumerate(self._countries)}
        self._code_index_by_country = np.array([number.get(code, -1) for code in codes], np.int64)
        self.max_length = _MAX_LENGTH
        self.code = self._create_code(self._countries[0])
        count = len(self._countries)
        text = (
            f"{self.label}: rows in countries without a known format are blank ({count} countries have one)."
        )
        compiler.warn(self.field, "partly_blank", text, "Set a locale.")

    def country_indices(self, context: ColumnContext) -> np.ndarray:
        """``int64[n]``: the number of each row's country among the supported ones; -1 for other countries."""
        assert self.place_group is not None
        if not self.place_group[0]:
            return np.full(context.n, -1, np.int64)
        rows: np.ndarray = self._code_index_by_country[context.group_value(Places, *self.place_group).country]
        return rows

    def code_inputs(self, context: ColumnContext) -> Mapping[str, np.ndarray] | None:
        """Return the values of the row's person that the numbers contain; None if they contain none."""
        return None

    def fill(self, context: ColumnContext) -> pa.Array:
        if self.place_group is None:
            return self.code.text(
                self.code.draw(context), self.code_inputs(context) if self.code.inputs else None
            )
        rows = self.country_indices(context)
        has_country = rows >= 0
        if not has_country.any():
            return pa.nulls(context.n, pa.string())
        rows_with_default = np.where(has_country, rows, rows[has_country][0])
        texts = texts_by_code_factory(
            lambda at: self._create_code(self._countries[at]),
            rows_with_default,
            context,
            inputs=self.code_inputs(context),
        )
        return (
            texts
            if has_country.all()
            else pc.if_else(pa.array(has_country), texts, pa.scalar(None, pa.string()))
        )

    def distinct_count(self) -> int | None:
        return super().distinct_count() if self.place_group is None else None

    def unique_hint(self) -> str:
        return "Set options.country or a locale: numbers of several countries may be the same."
