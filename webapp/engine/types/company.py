"""Companies: the group ``company`` has name, site and addresses of one company per row, consistent with each other."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import random as engine_random
from webapp.engine import text_parts
from webapp.engine.text_parts import PoolPart
from webapp.engine.types import joining
from webapp.engine.types.base import FieldType, GroupKind, OptionsModel, max_text_length
from webapp.engine.types.joining import LazyProperty
from webapp.engine.types.person import DEFAULT_LOCALE, MALE, check_locales, locale_of_group, names_of
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.random import RandomStream
    from webapp.engine.spec import FieldSpec


RESERVED_TLD = ".example"
"""RFC 2606, section 2: a top-level domain that never belongs to anyone."""

_PARTNERS_OF_EIGHT = 3
"""This many companies out of eight are named after two people, the others after one and their legal form."""
_TAIL_SALT, _STYLE_SALT = 1, 2
_SCHEME = "https://"
_SITE = re.compile(r"(?:[a-z]+://)?(?:[^@/]*@)?([^/]+)")


class CompanyWords:
    """Pools of one locale: ``heads`` are family names that read differently, ``tails`` first the legal forms, then the
    partners' names. ``site_heads`` are the heads as they are written in domain names."""

    def __init__(self, vocabulary: Vocabulary, locale: str) -> None:
        names = names_of(vocabulary, locale)
        between = names.separator
        start, count = int(names.last_starts[MALE]), int(names.last_counts[MALE])
        forms = vocabulary.words("company_form", locale)
        self.heads = names.last.slice(start, count)
        self.forms = len(forms)
        partners = pc.binary_join_element_wise(" & ", self.heads, "") if between else self.heads.slice(0, 0)
        self.partners = len(partners)
        self.tails = pa.concat_arrays([pc.binary_join_element_wise(between, forms, ""), partners])
        self.longest = max_text_length(self.heads) + max_text_length(self.tails)
        self.site_heads = names.last_ascii.slice(start, count)
        self._form_slugs = [_slug(form) for form in forms.to_pylist()]

    @LazyProperty
    def url_prefixes(self) -> pa.StringArray:
        """Beginnings of web addresses."""
        return pc.binary_join_element_wise(_SCHEME, self.site_heads, "")

    def domain_suffixes(self, end: str) -> pa.StringArray:
        """What follows a head in domain names that end in ``end``, for each of ``tails``."""
        partners = self.site_heads.to_pylist() if self.partners else []
        texts = [*self._form_slugs, *partners]
        return pa.array([(f"-{text}" if text else "") + end for text in texts])


def company_words(vocabulary: Vocabulary, locale: str) -> CompanyWords:
    """Return the words of ``locale``, created once per process."""
    return vocabulary.cached(("companies", locale), lambda: CompanyWords(vocabulary, locale))


def get_domain_suffixes(vocabulary: Vocabulary, locale: str, end: str) -> pa.StringArray:
    """Return `CompanyWords.domain_suffixes`, created once per process."""
    words = company_words(vocabulary, locale)
    return vocabulary.cached(("company sites", locale, end), lambda: words.domain_suffixes(end))


def max_domain_length(vocabulary: Vocabulary, locale: str, end: str) -> int:
    """Characters of the longest domain name with `get_domain_suffixes`."""
    key = ("longest company site", locale, end)
    heads = company_words(vocabulary, locale).site_heads
    return vocabulary.cached(
        key, lambda: max_text_length(heads) + max_text_length(get_domain_suffixes(vocabulary, locale, end))
    )


def _slug(text: str) -> str:
    """Return ``text`` as it is written in a domain name; empty if no character is allowed there."""
    ascii_text = unicodedata.normalize("NFKD", text.lower()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"[./]", "", ascii_text)).strip("-")


class Companies:
    """The companies of a block's rows, each part computed on first use."""

    def __init__(
        self,
        draws: RandomStream,
        words: CompanyWords,
        unique: bool = False,
        fixed: FixedCompany | None = None,
    ) -> None:
        self._draws, self.words, self._unique = draws, words, unique
        self._fixed = fixed

    @property
    def parts(self) -> tuple[PoolPart, PoolPart]:
        """The company's name."""
        return (self.words.heads, self.head), (self.words.tails, self.tail)

    @LazyProperty
    def _pair(self) -> tuple[np.ndarray, np.ndarray]:
        count = np.uint64(len(self.words.tails))
        return np.divmod(self._draws.permuted(len(self.words.heads) * int(count)), count)

    @LazyProperty
    def head(self) -> np.ndarray:
        """``uint64[n]``: rows of the heads."""
        if self._unique:
            return self._pair[0]
        if self._fixed is not None:
            return np.full(self._draws.n, self._fixed.head, np.uint64)
        return self._draws.below(len(self.words.heads))

    @LazyProperty
    def tail(self) -> np.ndarray:
        """``uint64[n]``: rows of the tails."""
        if self._unique:
            return self._pair[1]
        if self._fixed is not None:
            return np.full(self._draws.n, self._fixed.tail, np.uint64)
        words = self.words
        tail = self._draws.below(words.forms, _TAIL_SALT)
        if not words.partners:
            return tail
        is_partnership = self._draws.bits(_STYLE_SALT) >> np.uint64(61) < np.uint64(_PARTNERS_OF_EIGHT)
        return np.where(
            is_partnership, self._draws.below(words.partners, _TAIL_SALT) + np.uint64(words.forms), tail
        )


@dataclass(frozen=True, slots=True)
class FixedCompany:
    """The one company that overrides leave: rows of the heads and the tails."""

    head: int
    tail: int


class CompanyKind(GroupKind):
    """One company a row. A group with a unique name goes through all pairs of head and tail."""

    kind = "company"
    is_created_by_readers = True

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        check_locales(tuple(field for field in fields if field.type.group_kind == self.kind), compiler)
        locale, self._end = locale_and_tld(fields, compiler)
        self._company_words = company_words(compiler.vocabulary, locale)
        self._sites = get_domain_suffixes(compiler.vocabulary, locale, self._end)
        self._unique = any(field.common.unique for field in fields if field.type.name == "company_name")
        ends = {end for field in fields if (end := _requested_tld(field)) is not None}
        if len(ends) > 1:
            text = "All fields of a company must have the same top-level domain."
            compiler.fault(
                fields[-1], "options.tld", "conflict", text, "Set a separate group for one of them."
            )

    def key(self, seed: str, prefix: str, founder: str) -> np.uint64:
        """Return the key of the company's name if the name came first, so that its values stay the same."""
        names = [field for field in self.fields if field.type.name == "company_name"]
        if any(field.id == founder for field in names):
            return engine_random.key(seed, founder)
        if names and not any(field.id for field in self.fields):
            return engine_random.key(seed, f"path:{prefix}{names[0].name}")
        return super().key(seed, prefix, founder)

    def prepare(
        self, env: GenerationContext, fixed: dict[str, Any]
    ) -> tuple[FixedCompany | None, list[Fault]]:
        words, fixed_company, unmet = self._company_words, None, []
        types = {field.name: field.type.name for field in self.fields}
        for name, value in fixed.items():
            if value is None:
                continue
            company: FixedCompany | None = None
            name_text = str(value).strip()
            if types[name] == "company_name":
                company = _find_company(words.heads, words.tails, name_text)
            elif match := _SITE.match(name_text.lower()):
                company = _find_company(words.site_heads, self._sites, match[1])
            if self._unique or company is None or fixed_company not in (None, company):
                text = f'No company matches "{value}" here; the other fields of the group ignore it.'
                unmet.append(Fault(f"overrides.{name}", "no_match", text, ""))
            else:
                fixed_company = company
        return fixed_company, unmet

    def draw(self, draws: RandomStream, state: FixedCompany | None) -> Companies:
        return Companies(draws, self._company_words, self._unique, state)


def locale_and_tld(fields: Sequence[FieldSpec], compiler: Compiler) -> tuple[str, str]:
    """Return the locale of a group's companies, and the ending of their domain names."""
    own = [field for field in fields if field.type.group_kind == CompanyKind.kind] or fields
    end = next((end for field in own if (end := _requested_tld(field)) is not None), RESERVED_TLD)
    return locale_of_group(own, compiler, DEFAULT_LOCALE) or DEFAULT_LOCALE, end


def _requested_tld(field: FieldSpec) -> str | None:
    tld = getattr(field.options, "tld", None)
    return None if tld is None else f".{tld.lower().lstrip('.')}"


def _find_company(heads: pa.StringArray, tails: pa.StringArray, text: str) -> FixedCompany | None:
    """Return the company whose name is ``text``; None if there is none."""
    listed = tails.to_pylist()
    for tail, end in enumerate(listed):
        if text.endswith(end):
            rows = joining.find_exact(heads, text[: len(text) - len(end)])
            if rows:
                return FixedCompany(rows[0], tail)
    return None


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
    requires_named_group = True
    localised = True
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        locale, _ = locale_and_tld(compiler.fields_of_same_group(field) if field.group else [field], compiler)
        self._company_words = company_words(compiler.vocabulary, locale)
        self.max_length = self._company_words.longest

    def fill_parts(self, context: ColumnContext) -> tuple[text_parts.PoolPart, ...]:
        companies: Companies = (
            context.group(Companies) if self.field.group else Companies(context, self._company_words)
        )
        return companies.parts

    def fill(self, context: ColumnContext) -> pa.Array:
        return text_parts.join_parts(*self.fill_parts(context))

    def distinct_count(self) -> int:
        return len(self._company_words.heads) * len(self._company_words.tails)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        if self.field.group:
            return self.fill(context)  # the group has seen that the name is unique
        head, tail = np.divmod(
            context.permuted(self.distinct_count()), np.uint64(len(self._company_words.tails))
        )
        return text_parts.join_parts((self._company_words.heads, head), (self._company_words.tails, tail))
