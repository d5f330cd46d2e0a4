"""The group ``bank``: name, IBAN and BIC of one bank's country in every row.

An IBAN or a BIC by itself shares nothing; each keeps its own values until it is put into a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine.fields import banks, joining, values
from webapp.engine.fields.base import FieldType, GroupKind, OptionsModel, longest, pooled
from webapp.engine.fields.countries import listed, of_locale
from webapp.engine.fields.geography import Range
from webapp.engine.fields.joining import Lazy
from webapp.engine.fields.person_group import check_locales
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Draws, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec

_NAME_SALT = 1
_U32 = np.uint64(32)
_ASKED = ("countryCode", "country")
_AT = {"iban": slice(0, 2), "bic": slice(4, 6)}
"""Where the country stands in a code."""


@dataclass(frozen=True)
class Names:
    """Banks by country: ``of`` are the ranges of ``countries`` in ``names``."""

    countries: tuple[str, ...]
    names: pa.StringArray
    of: Range


def names_of(vocabulary: Vocabulary) -> Names:
    """The banks of a vocabulary, made once."""
    return vocabulary.shared(("banks",), lambda: _names(vocabulary))


def _names(vocabulary: Vocabulary) -> Names:
    table = vocabulary.table("bank")
    found = table["country"].combine_chunks().dictionary_encode()
    counts = np.bincount(found.indices.to_numpy()).astype(np.uint64)
    return Names(
        tuple(found.dictionary.to_pylist()), table["name"].chunk(0), Range(np.cumsum(counts) - counts, counts)
    )


@dataclass(frozen=True)
class Chosen:
    """What overrides leave: rows of the kind's countries, and a row of the banks if that is fixed."""

    countries: np.ndarray
    bank: int | None = None


class Banks:
    """The banks of a block's rows."""

    def __init__(self, draws: Draws, kind: Bank, chosen: Chosen) -> None:
        self._draws, self._kind, self._chosen = draws, kind, chosen

    @Lazy
    def country(self) -> np.ndarray:
        """``int64[n]``: rows of the kind's countries."""
        if self._kind.by_name is not None:
            return self._kind.country_of[self.name]
        rows = self._chosen.countries
        return rows[self._draws.below(rows.size).view(np.int64)]

    @Lazy
    def name(self) -> np.ndarray:
        """``int64[n]``: rows of the banks."""
        if self._kind.by_name is not None:
            return self._kind.by_name[self._draws.permuted(self._kind.by_name.size).view(np.int64)]
        if self._chosen.bank is not None:
            return np.full(self._draws.n, self._chosen.bank)
        owner = self._kind.of_names[self.country]
        return self._kind.names.of.pick(owner, self._draws.bits(_NAME_SALT) >> _U32).view(np.int64)


class Bank(GroupKind):
    """One bank a row, in one of the countries that all fields of the group can have."""

    kind = "bank"

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        check_locales(fields, compiler)
        self.names = names_of(compiler.vocabulary)
        self.countries = self._agreed(fields, compiler)
        known = {country: row for row, country in enumerate(self.names.countries)}
        self.of_names = np.array([known.get(country, -1) for country in self.countries], np.int64)
        here = {row: place for place, row in enumerate(self.of_names.tolist())}
        counts = self.names.of.count.astype(np.int64)
        self.country_of = np.repeat(
            np.array([here.get(row, -1) for row in range(counts.size)], np.int64), counts
        )
        """``int64[banks]``: row of the kind's countries, -1 for a bank of another one."""
        unique = any(field.common.unique for field in fields if field.type is BankName)
        self.by_name = self.distinct() if unique else None
        """Where names are unique: the banks that may be drawn, of which no two are called alike."""

    def _agreed(self, fields: Sequence[FieldSpec], compiler: Compiler) -> tuple[str, ...]:
        possible = list(_possible(fields, compiler))
        for field in fields:
            asked = _asked(field, compiler)
            kept = [country for country in possible if not asked or country in asked]
            if not kept:
                text = "The fields of one bank have no country in common."
                compiler.fault(field, "", "conflict", text, "Give one of them a group of its own.")
                return tuple(possible[:1]) or ("DE",)
            possible = kept
        free = not any(_asked(field, compiler) for field in fields)
        common = [country for country in possible if country in banks.COMMON]
        coded = any(field.type.name == "iban" for field in fields)
        return tuple(common if free and coded else possible)

    def distinct(self) -> np.ndarray:
        """``int64[k]``: the banks of the kind's countries, of which no two are called alike."""
        rows = np.flatnonzero(self.country_of >= 0)
        found = self.names.names.take(pa.array(rows))
        return rows[values.Pool(found, np.arange(rows.size)).distinct]

    def prepare(self, env: Env, fixed: dict[str, Any]) -> tuple[Chosen, list[Fault]]:
        chosen, unmet = Chosen(np.arange(len(self.countries))), []
        types = {field.name: field.type.name for field in self.fields}
        for name, value in fixed.items():
            if value is None:
                continue
            found = (
                None if self.by_name is not None else self._following(chosen, types[name], str(value).strip())
            )
            if found is None:
                text = f'No bank fits "{value}" here; the other fields of the group do not follow it.'
                unmet.append(Fault(f"overrides.{name}", "no_match", text, ""))
            else:
                chosen = found
        return chosen, unmet

    def _following(self, chosen: Chosen, kind: str, text: str) -> Chosen | None:
        if kind in _AT:
            code = text.replace(" ", "").upper()[_AT[kind]]
            rows = [row for row in chosen.countries.tolist() if self.countries[row] == code]
            return Chosen(np.array(rows), chosen.bank) if rows else None
        for bank in joining.where(self.names.names, text).tolist():
            country = int(self.country_of[bank])
            if country in chosen.countries:
                return Chosen(np.array([country]), bank)
        return None

    def draw(self, draws: Draws, state: Chosen) -> Banks:
        return Banks(draws, self, state)


def _known(kind: type[FieldType], compiler: Compiler) -> tuple[str, ...]:
    """The countries that a type of the group has values for."""
    if kind is BankName:
        return names_of(compiler.vocabulary).countries
    return (banks.countries if kind.name == "iban" else banks.bic_countries)(compiler.vocabulary)


def _possible(fields: Sequence[FieldSpec], compiler: Compiler) -> tuple[str, ...]:
    """The countries that every type among the fields knows."""
    first, *others = {field.type: _known(field.type, compiler) for field in fields}.values()
    return tuple(country for country in first if all(country in known for known in others))


def _asked(field: FieldSpec, compiler: Compiler) -> tuple[str, ...]:
    """The countries that a field's option names, else its locale's; none where it says nothing. What the type itself
    does not know is left out: its column reports that."""
    given = next((one for name in _ASKED if (one := getattr(field.options, name, None))), None)
    if given is None:
        locale = compiler.locale_of(field)
        given = locale.partition("_")[2] if locale else ()
    wanted = [given] if isinstance(given, str) else given
    known = _known(field.type, compiler)
    return tuple(code.strip().upper() for code in wanted if code.strip().upper() in known)


class BankName(FieldType):
    """Banks that have customers in a country: that of the row's IBAN and BIC where they share a group."""

    name = "bank_name"
    label = "Bank Name"
    category = "finance"
    description = "The name of a bank, such as Commerzbank, in agreement with the row's IBAN and BIC."
    aliases = ("name of bank", "financial institution", "banking institution", "bank title")
    example = "Commerzbank"
    group_kind = "bank"
    localised = True
    dtype = pa.string()

    class Options(OptionsModel):
        country: str | None = Field(
            None,
            description="Two-letter code of the country that the bank has customers in.",
            examples=["CH"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._names = names_of(compiler.vocabulary)
        known = self._names.countries
        if options.country is not None:
            listed(field, options.country, known, "country", "a bank that is known", compiler)
        elif (locale := compiler.locale_of(field)) and not of_locale(locale, known):
            text = f"No bank of {locale} is known."
            compiler.fault(field, "locale", "unknown_country", text, f"Known: {', '.join(known)}.")
        self._kind: Bank = compiler.kind_of(field)
        self.max_length = compiler.vocabulary.shared("longest bank", lambda: longest(self._names.names))

    @classmethod
    def capacity(cls) -> int:
        return 308

    def fill(self, cells: Cells) -> pa.Array:
        return pooled(self._names.names, cells.group().name)

    def space(self) -> int:
        kind = self._kind
        return (kind.by_name if kind.by_name is not None else kind.distinct()).size

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)  # the group has seen that the name is unique
