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
_LONGEST = 32


class DocumentGroup(GroupKind):
    """What the papers of a row share: nothing of their own. They read the group of the person and of the place."""

    kind = KIND

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[None, list[Fault]]:
        return None, []

    def draw(self, draws: RandomStream, state: Any) -> None:
        return None


def groups_named(group: str, kind: str) -> tuple[tuple[str, str], ...]:
    """Groups of a kind that go with a group: of the same name, or with the kind's name in place of ``person``,
    ``place``, ``papers`` or ``bank``."""
    mapped = re.sub(r"^(person|place|papers|bank)(?=$|_\d+$)", kind, group)
    return tuple((name, kind) for name in dict.fromkeys((group, mapped)))


def place_of(field: FieldSpec, compiler: Compiler) -> tuple[str, str] | None:
    """The group of places that goes with a field's group, if there is one."""
    if field.group is None:
        return None
    return next((key for key in groups_named(field.group, "place") if compiler.members(*key)), None)


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
    """The group whose countries rows have; None where all rows are of one country."""
    _country: str | None = None
    """The country of all rows; None where they have that of their places."""
    _make: Callable[[str], Code]
    _of_row: np.ndarray
    _known: tuple[str, ...]

    @classmethod
    def reads_all(cls, group: str) -> tuple[tuple[str, str], ...]:
        return groups_named(group, "place")

    def take(
        self,
        asked: str | None,
        known: Sequence[str],
        what: str,
        default: str,
        compiler: Compiler,
        make: Callable[[str], Code],
    ) -> None:
        """Use the code of the option ``asked``, else of the locale's country, else of the row's place, else of
        ``default``. ``make`` answers the code of a country of ``known``; ``what`` names it in messages."""
        field, engine = self.field, compiler.vocabulary.engine
        self._make, self._known = make, tuple(known)
        if asked is not None:
            found = listed(field, asked, known, "country", what, compiler)
            self._country = found[0] if found else default
            self.use(make(self._country))
            return
        locale = compiler.locale_of(field)
        found = of_locale(locale, known)
        if locale is None and engine >= 2:
            self.placed = place_of(field, compiler)
            if self.placed is not None:
                self._follow(self.placed, compiler)
                return
        if locale and not found:
            if engine >= 2:
                text = f"{self.label}: none is known for {locale.partition('_')[2]}, so the column is blank."
                compiler.warn(field, "no_values", text, "Set options.country.")
                self.placed, self._of_row = ("", ""), np.full(1, -1, np.int64)
                self.code, self.max_length = make(default), _LONGEST
                return
            text = f"{self.label}: nothing is known for locale {locale}, so these are of {default}."
            compiler.warn(field, "other_country", text, "Set options.country.")
        self._country = found[0] if found else default
        self.use(make(self._country))

    def _follow(self, place: tuple[str, str], compiler: Compiler) -> None:
        members = compiler.members(*place)
        own = [member for member in members if member.type.group_kind == "place"]
        country = country_of_group(own, compiler)
        if country is not None:
            self.placed = None
            if country in self._known:
                self._country = country
                self.use(self._make(country))
            else:
                text = f"{self.label}: none is known for {country}, so the column is blank."
                compiler.warn(self.field, "no_values", text, "Set options.country.")
                self.placed, self._of_row = ("", ""), np.full(1, -1, np.int64)
                self.code, self.max_length = self._make(self._known[0]), _LONGEST
            return
        codes = geography_of(compiler.vocabulary).countries["alpha2"].to_pylist()
        number = {code: at for at, code in enumerate(self._known)}
        self._of_row = np.array([number.get(code, -1) for code in codes], np.int64)
        self.max_length = _LONGEST
        self.code = self._make(self._known[0])
        text = f"{self.label}: rows in countries without one that is known are blank ({len(self._known)} are known)."
        compiler.warn(self.field, "partly_blank", text, "Set a locale.")

    def rows_of(self, context: ColumnContext) -> np.ndarray:
        """``int64[n]``: which country of the known ones each row is in; -1 for another one."""
        assert self.placed is not None
        if not self.placed[0]:
            return np.full(context.n, -1, np.int64)
        rows: np.ndarray = self._of_row[context.thing(*self.placed).country]
        return rows

    def given(self, context: ColumnContext) -> Mapping[str, np.ndarray] | None:
        """What the numbers tell of the row's person; None if they tell nothing."""
        return None

    def fill(self, context: ColumnContext) -> pa.Array:
        if self.placed is None:
            return self.code.text(self.code.draw(context), self.given(context) if self.code.given else None)
        rows = self.rows_of(context)
        known = rows >= 0
        if not known.any():
            return pa.nulls(context.n, pa.string())
        filled = np.where(known, rows, rows[known][0])
        texts = mixed_by(lambda at: self._make(self._known[at]), filled, context, given=self.given(context))
        return texts if known.all() else pc.if_else(pa.array(known), texts, pa.scalar(None, pa.string()))

    def space(self) -> int | None:
        return super().space() if self.placed is None else None

    def unique_hint(self) -> str:
        return "Set options.country or a locale: numbers of several countries may be the same."
