"""Contact data: e-mail addresses and telephone numbers."""

from __future__ import annotations

import re
from abc import abstractmethod
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field, field_validator

from webapp import limits
from webapp.engine import text_parts
from webapp.engine.random import lookup
from webapp.engine.types import joining
from webapp.engine.types.base import OptionsModel
from webapp.engine.types.company import Companies, get_domain_suffixes, locale_and_tld, max_domain_length
from webapp.engine.types.person import (
    HANDLE_NUMBER_BY_BITS,
    HANDLE_NUMBERS,
    SUFFIX_DIGITS,
    People,
    PersonField,
    handle_parts,
    handle_tails,
    unique_handles,
)
from webapp.engine.types.place import PlaceField, Places, pool_of_group

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

RESERVED_DOMAINS = ("example.com", "example.net", "example.org")
"""RFC 2606, section 3: these domains receive no mail, so test mail never reaches a person."""

# RFC 1035, section 2.3.1, with the top level beginning with a letter.
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = re.compile(rf"(?=.{{1,253}}$)(?:{_LABEL}\.)+(?=[A-Za-z]){_LABEL}")
# Two more bits than those of the number select the domain: the first of them twice as often.
_TAIL_TABLE = np.concatenate(
    [HANDLE_NUMBER_BY_BITS + np.uint64(domain * HANDLE_NUMBERS) for domain in (0, 1, 2, 0)]
)


class Email(PersonField):
    """An address derived from the person's names."""

    name = "email"
    label = "E-mail"
    category = "contact"
    description = "An e-mail address derived from the person's names, at a domain that receives no mail."
    aliases = (
        "email address",
        "mail",
        "e mail address",
        "contact email",
        "electronic mail",
        "ascii email",
        "ascii free email",
    )
    example = "anna.lee7@example.com"

    class Options(OptionsModel):
        domain: str | None = Field(
            None,
            max_length=limits.MAX_AFFIX_CHARS,
            examples=["mail.example.org"],
            description="Domain after the @. Default: one of example.com, example.net and example.org.",
            validation_alias=AliasChoices("domain", "provider", "host"),
        )

        @field_validator("domain")
        @classmethod
        def _is_domain(cls, value: str | None) -> str | None:
            if value is not None and not _DOMAIN.fullmatch(value):
                raise ValueError(f'"{value}" is not a domain name.')
            return value

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._domains = (options.domain,) if options.domain else RESERVED_DOMAINS
        digits = SUFFIX_DIGITS if field.common.unique else 2
        self.max_length = self.names.longest_handle + digits + 1 + max(map(len, self._domains))

    def fill_parts(self, context: ColumnContext) -> tuple[text_parts.PoolPart, ...]:
        if len(self._domains) == 1:
            return handle_parts(context.group(People), handle_tails(f"@{self._domains[0]}"))
        return handle_parts(context.group(People), _tails_of_reserved(), _TAIL_TABLE)

    def fill(self, context: ColumnContext) -> pa.Array:
        return text_parts.join_parts(*self.fill_parts(context))

    def distinct_count(self) -> int:
        return joining.SUFFIX_SPACE

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        # One domain for all: only the number before the @ distinguishes rows, and it is the same in every domain.
        return unique_handles(context.group(People), f"@{self._domains[0]}")


@cache
def _tails_of_reserved() -> pa.Array:
    return pa.concat_arrays([handle_tails(f"@{domain}") for domain in RESERVED_DOMAINS])


class SafeEmail(PersonField):
    """The address that an e-mail of the same person has if no domain is set."""

    name = "safe_email"
    label = "Safe e-mail"
    category = "contact"
    description = (
        "An e-mail address derived from the person's names, always at a domain that receives no mail."
    )
    aliases = ("example email", "test email", "ascii safe email", "free email")
    example = "anna.lee7@example.com"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        digits = SUFFIX_DIGITS if field.common.unique else 2
        self.max_length = self.names.longest_handle + digits + 1 + max(map(len, RESERVED_DOMAINS))

    def fill_parts(self, context: ColumnContext) -> tuple[text_parts.PoolPart, ...]:
        return handle_parts(context.group(People), _tails_of_reserved(), _TAIL_TABLE)

    def fill(self, context: ColumnContext) -> pa.Array:
        return text_parts.join_parts(*self.fill_parts(context))

    def distinct_count(self) -> int:
        return joining.SUFFIX_SPACE

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return unique_handles(context.group(People), f"@{RESERVED_DOMAINS[0]}")


class CompanyEmail(PersonField):
    """The person's handle at the site of the company: that of the group ``company`` for a person of the group
    ``person``, of ``company_2`` for one of ``person_2``, and for other groups of the group of the same name."""

    name = "company_email"
    label = "Company e-mail"
    category = "contact"
    description = "An e-mail address derived from the person's names, at the domain of the row's company."
    aliases = ("work email", "business email", "corporate email", "office email", "ascii company email")
    example = "anna.lee7@hartmann-group.example"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._company = self.referenced_group(field.group or self.group_kind)
        locale, end = locale_and_tld(compiler.group_members(*self._company), compiler)
        self._sites = get_domain_suffixes(compiler.vocabulary, locale, end)
        self.max_length = self.names.longest_handle + SUFFIX_DIGITS + 1
        self.max_length += max_domain_length(compiler.vocabulary, locale, end)

    @classmethod
    def referenced_group(cls, group: str) -> tuple[str, str]:
        return re.sub(r"^person(?=$|_\d+$)", "company", group), "company"

    def fill_parts(self, context: ColumnContext) -> tuple[text_parts.PoolPart, ...]:
        return *handle_parts(context.group(People), handle_tails("@")), *self._site(context)

    def fill(self, context: ColumnContext) -> pa.Array:
        return text_parts.join_parts(*self.fill_parts(context))

    def _site(self, context: ColumnContext) -> tuple[text_parts.PoolPart, ...]:
        company = context.group_value(Companies, *self._company)
        return (company.words.site_heads, company.head), (self._sites, company.tail)

    def distinct_count(self) -> int:
        return joining.SUFFIX_SPACE

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        # Only the number before the @ distinguishes rows.
        return text_parts.join_parts(
            (unique_handles(context.group(People), "@"), np.arange(context.n)), *self._site(context)
        )


class MessagingHandle(PersonField):
    """The person's user name, as a messaging service writes it."""

    name = "messaging_handle"
    label = "Messaging handle"
    category = "contact"
    description = "A user name in a messaging service, such as @anna.lee7."
    aliases = ("telegram", "discord", "skype", "slack handle", "twitter handle", "social handle", "im handle",
               "instagram", "matrix id", "screen handle", "chat name")  # fmt: skip
    example = "@anna.lee7"

    class Options(OptionsModel):
        service: Literal["at", "plain", "matrix", "skype", "mastodon"] = Field(
            "at",
            description="at: @anna.lee7 (Telegram, Slack, X). plain: anna.lee7 (Discord). matrix: "
            "@anna.lee7:example.org. skype: live:anna.lee7. mastodon: @anna.lee7@example.org.",
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        prefix, self._end = _SERVICES[options.service]
        digits = SUFFIX_DIGITS if field.common.unique else 2
        self.max_length = len(prefix) + self.names.longest_handle + digits + len(self._end)
        self._heads = compiler.vocabulary.cached(
            ("handles", prefix, self.locale),
            lambda: pc.binary_join_element_wise(prefix, self.names.handle_prefixes, ""),
        )

    def fill_parts(self, context: ColumnContext) -> tuple[text_parts.PoolPart, ...]:
        return handle_parts(context.group(People), handle_tails(self._end), heads=self._heads)

    def fill(self, context: ColumnContext) -> pa.Array:
        return text_parts.join_parts(*self.fill_parts(context))

    def distinct_count(self) -> int:
        return joining.SUFFIX_SPACE

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return unique_handles(context.group(People), self._end, heads=self._heads)


_SERVICES = {
    "at": ("@", ""),
    "plain": ("", ""),
    "matrix": ("@", ":example.org"),
    "skype": ("live:", ""),
    "mastodon": ("@", "@example.org"),
}
"""The parts before and after the user name."""


class PhoneOptions(OptionsModel):
    """How numbers are written, and of which country they are."""

    format: str = Field(
        "international",
        min_length=1,
        max_length=limits.MAX_AFFIX_CHARS,
        pattern="^(international|national|e164)$|#",
        examples=["international", "national", "e164", "###-###-####"],
        description=(
            "international (+33 6 42 40 18 05), national (06 42 40 18 05), e164 (+33642401805), "
            "or a pattern in which each # is a random digit."
        ),
    )
    country: str | None = Field(
        None,
        max_length=limits.MAX_NAME_CHARS,
        examples=["France", "BR"],
        description="Country of the group's places, by name or code.",
    )


class _PhoneType(PlaceField):
    """A telephone number of the row's country, in one of several formats."""

    options: PhoneOptions

    def __init__(self, field: FieldSpec, options: PhoneOptions, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.country and self.geography.country_row(options.country) is None:
            text = f'There is no country "{options.country}".'
            compiler.fault(
                field, "options.country", "unknown_country", text, "Use its English name or ISO code."
            )
            return
        self._is_landline = self.line_type() == "landline" and self.geography.line is not None
        if self._is_landline and self.geography.line is not None and not options.format.count("#"):
            # Rows of places whose area codes are not known have mobile numbers.
            cities = pool_of_group(self.members, compiler).cities
            missing = np.count_nonzero(self.geography.line.count[cities] == 0)
            if missing:
                places = (
                    "these places" if missing == cities.size else f"{missing:,} of {cities.size:,} places"
                )
                text = f"{self.label}: no landline numbers are available for {places}; their rows have mobile numbers."
                compiler.warn(field, "no_landlines", text)
        self._pattern = options.format if "#" in options.format else None
        self._space = None
        if self._pattern:
            self.max_length = len(self._pattern)
            self._space = joining.pattern_space(self._pattern)
            return
        heads, self._tail_start = self.geography.phone_heads[options.format]
        self._heads = heads
        self.max_length = self.max_text_length(f"phone {options.format}", heads) + 2 * 4
        is_unambiguous = options.format != "national" or self.country is not None
        if field.common.unique and is_unambiguous:
            cities = pool_of_group(self.members, compiler).cities
            space = self.geography.landline_counts if self._is_landline else self.geography.phone_counts
            self._space = int(space[cities].min(initial=1 << 40)) or None

    def fill(self, context: ColumnContext) -> pa.Array:
        if self._pattern:
            return joining.fill_pattern(self._pattern, context)
        places = context.group(Places)
        return self._number_column(places, *self.phone_parts(places))

    @abstractmethod
    def line_type(self) -> str:
        """any, landline or mobile."""

    def phone_parts(self, places: Places) -> tuple[np.ndarray, np.ndarray]:
        """Head and digits of each row's number."""
        match self.line_type():
            case "landline":
                return places.landline
            case "mobile":
                return places.mobile
        return places.phone

    def fill_parts(self, context: ColumnContext) -> tuple[text_parts.PoolPart, ...] | None:
        places = context.group(Places)
        if self._pattern or not places.is_complete:
            return None
        return self._parts(*self.phone_parts(places))

    def _parts(self, head: np.ndarray, digits: np.ndarray) -> tuple[text_parts.PoolPart, ...]:
        return (self._heads, head), (self.geography.phone_tails, lookup(self._tail_start, head) + digits)

    def _number_column(self, places: Places, head: np.ndarray, digits: np.ndarray) -> pa.Array:
        if places.is_complete:
            return text_parts.join_parts(*self._parts(head, digits))
        has_number = places.has_phone
        head = np.where(has_number, head, np.uint64(0))
        number = text_parts.join_parts(*self._parts(head, digits))
        return pc.if_else(pa.array(has_number), number, pa.scalar(None, pa.string()))

    def distinct_count(self) -> int | None:
        return self._space

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        assert self._space is not None
        if self._pattern:
            return joining.pattern_texts_at(self._pattern, context.permuted(self._space))
        # Two rows with heads of one place get different numbers of it; those of two places differ in their heads.
        places = context.group(Places)
        return self._number_column(
            places, *places.phone_number(context.permuted(self._space), self._is_landline)
        )

    def unique_hint(self) -> str:
        return "Numbers are unique in international or e164 format, or within one country."


class PhoneNumber(_PhoneType):
    """A valid number of the row's country; a landline is of the row's region if the numbering plan has regions."""

    name = "phone_number"
    label = "Phone number"
    category = "contact"
    description = "A valid phone number of the row's country."
    aliases: ClassVar[tuple[str, ...]] = (
        "basic phone number",
        "phone",
        "telephone",
        "telephone number",
        "tel",
        "fax",
        "home phone",
    )
    example = "+33 6 42 40 18 05"

    class Options(PhoneOptions):
        kind: Literal["any", "landline", "mobile"] = Field(
            "any", description="Landlines of the row's region, mobile numbers, or both."
        )

    options: Options

    def line_type(self) -> str:
        return self.options.kind


class Mobile(_PhoneType):
    """A second valid number of the row's country, from its mobile ranges if the country has separate ones."""

    name = "mobile"
    label = "Mobile number"
    category = "contact"
    description = "A valid mobile phone number of the row's country."
    aliases = ("mobile number", "mobile phone", "cell phone", "cell", "cellphone", "handy", "msisdn")
    example = "+33 7 53 40 18 05"

    class Options(PhoneOptions):
        pass

    options: Options

    def line_type(self) -> str:
        return "mobile"
