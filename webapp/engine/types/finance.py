"""Money: amounts and currencies, bank accounts, and payment cards.

The fields of a group ``card`` show one card per row. Card numbers begin with prefixes of the issuers' test cards, so
that none belongs to a person.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache, cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import dates
from webapp.engine.types import amounts, banks, countries
from webapp.engine.types.amounts import Amount
from webapp.engine.types.base import (
    FieldType,
    GroupKind,
    OptionsModel,
    PoolType,
    dictionary_array,
    max_text_length,
)
from webapp.engine.types.codes import DIGITS, HEX, UPPER, Code, CodeType, Pick, Run, texts_by_code_factory
from webapp.engine.types.countries import country_of_locale, validate_countries
from webapp.engine.types.geography import geography_of
from webapp.engine.types.number import NumberDistribution
from webapp.engine.types.papers import groups_of_kind
from webapp.engine.types.place import Places
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.random import RandomStream
    from webapp.engine.spec import FieldSpec


_PLACES = 2
_DEFAULT_LOW, _DEFAULT_HIGH = Decimal(1), Decimal(1000)


class Currency(FieldType):
    """An amount of money with two decimals, with a uniform or a normal distribution between min and max."""

    name = "currency"
    label = "Currency"
    category = "finance"
    description = "An amount of money with two decimal places."
    aliases = ("currency amount", "money amount", "amount", "currency value", "salary")
    example = 482.17

    class Options(OptionsModel):
        min: Amount | None = Field(
            None, description="Minimum amount. Default: 1 if max is not set either, otherwise 0."
        )
        max: Amount | None = Field(None, description="Maximum amount. Default: 1,000 if nothing else is set.")
        mean: Amount | None = Field(
            None, description=("Mean of a normal distribution, truncated at min and max.")
        )
        stddev: Amount | None = Field(None, description="Standard deviation. Default: a quarter of the mean.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        fault_count = len(compiler.faults)
        self._spread = NumberDistribution(field, _spread_options(options), compiler, _PLACES, "decimals")
        self.dtype = pa.decimal128(38, _PLACES)
        if len(compiler.faults) == fault_count:
            self.max_length = amounts.max_number_length(self._spread.low, self._spread.high, _PLACES)

    def fill(self, context: ColumnContext) -> pa.Array:
        return amounts.to_column(self._spread.draw(context.bits()), _PLACES)

    def bounds(self, rows: int) -> tuple[int, int]:
        return self._spread.low, self._spread.high

    def distinct_count(self) -> int | None:
        return self._spread.size

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        assert self._spread.size is not None
        return amounts.to_column(self._spread.uniform_values(context.permuted(self._spread.size)), _PLACES)

    def unique_hint(self) -> str:
        return "Unique amounts are drawn evenly: remove mean and stddev, or remove unique."


def _spread_options(options: Any) -> SimpleNamespace:
    """Return the options of `NumberDistribution` with the defaults of money: no amount is below 0 unless min allows
    it."""
    low, high, mean, stddev = options.min, options.max, options.mean, options.stddev
    is_normal = mean is not None or stddev is not None
    if low is None and high is None and not is_normal:
        low, high = _DEFAULT_LOW, _DEFAULT_HIGH
    if low is None and (high is None or high >= 0) and (mean is None or mean >= 0):
        low = Decimal(0)
    if high is None and mean is None:
        high = (low or Decimal(0)) + _DEFAULT_HIGH
    if mean is not None and stddev is None:
        stddev = max((abs(mean) / 4).quantize(Decimal("0.01")), Decimal("0.01"))
    return SimpleNamespace(
        min=low, max=high, step=None, distribution="normal" if is_normal else "uniform", mean=mean, stddev=stddev,
        alpha=None, lambda_=None,
    )  # fmt: skip


class CurrencyKind(GroupKind):
    """One currency per row: its code, name and symbol are consistent. In a group with a place, the place's country
    determines the currency."""

    kind = "currency"

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        self._unique = any(field.common.unique for field in fields)
        self._columns = {
            field.name: field.type.values(compiler, field)
            for field in fields
            if issubclass(field.type, _CurrencyField)
        }
        self.size = len(next(iter(self._columns.values())))
        self._has_place = bool(compiler.group_members(fields[0].group or self.kind, "place"))

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[Any, list[Fault]]:
        rows, unmet = np.arange(self.size), []
        for name, value in fixed.items():
            if self._has_place:
                break  # the place determines it
            matches = [i for i in rows.tolist() if self._columns[name][i].as_py() == value]
            if matches and not self._unique:
                rows = np.array(matches)
            elif value is not None:
                reason = "one of them is unique" if self._unique else f'there is no currency "{value}"'
                text = f"The other fields of the currency ignore this value: {reason}."
                unmet.append(Fault(f"overrides.{name}", "no_match", text, ""))
        return rows, unmet

    def draw(self, draws: RandomStream, state: Any) -> np.ndarray:
        if self._unique:
            return draws.permuted(self.size).view(np.int64)
        return state[draws.below(state.size).view(np.int64)]


class _CurrencyField(FieldType):
    category = "finance"
    group_kind = "currency"
    companion_group_kind = "place"
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = self.values(compiler, field)
        self.max_length = max_text_length(self._pool)
        self._place = self.referenced_group(field.group or self.group_kind)
        self._of_country = None
        if compiler.group_members(*self._place):
            geography = geography_of(compiler.vocabulary)
            self._of_country = countries.currency_rows(compiler.vocabulary, geography)

    @classmethod
    def referenced_group(cls, group: str) -> tuple[str, str]:
        return group, "place"

    @classmethod
    @abstractmethod
    def values(cls, compiler: Compiler, field: FieldSpec) -> pa.Array:
        """One text for each currency, in the vocabulary's order."""

    def fill(self, context: ColumnContext) -> pa.Array:
        if self._of_country is None:
            return dictionary_array(self._pool, context.group(np.ndarray))
        rows = self._of_country[context.group_value(Places, *self._place).country]
        if rows.min(initial=0) >= 0:
            return dictionary_array(self._pool, rows)
        return self._pool.take(pa.array(rows, mask=rows < 0))

    def distinct_count(self) -> int | None:
        return len(self._pool) if self._of_country is None else None

    def unique_hint(self) -> str:
        return "The value is the currency of the row's country: set a separate group for the field."

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)


class CurrencyCode(_CurrencyField):
    """ISO 4217 codes of the currencies that are tender somewhere."""

    name = "currency_code"
    label = "Currency Code"
    description = "The three-letter code of a currency, such as EUR."
    aliases = ("iso currency", "iso 4217", "currency iso code")
    example = "EUR"

    @classmethod
    def values(cls, compiler: Compiler, field: FieldSpec) -> pa.Array:
        return currency_column(compiler, "code")


class CurrencySymbol(_CurrencyField):
    """Signs of currencies; the code if the currency has no sign."""

    name = "currency_symbol"
    label = "Currency Symbol"
    description = "The symbol of a currency, such as €, or its code if it has no symbol."
    aliases = ("currency sign",)
    example = "€"

    @classmethod
    def values(cls, compiler: Compiler, field: FieldSpec) -> pa.Array:
        return currency_column(compiler, "symbol")


class CurrencyName(_CurrencyField):
    """Names of currencies in the language of the locale."""

    name = "currency_name"
    label = "Currency Name"
    description = "The name of a currency, such as Swiss Franc."
    aliases = ("name of currency",)
    example = "Swiss Franc"
    localised = True

    @classmethod
    def values(cls, compiler: Compiler, field: FieldSpec) -> pa.Array:
        vocabulary = compiler.vocabulary
        locale = vocabulary.resolve(compiler.locale_of(field) or "en_US") or "en_US"

        def make() -> pa.Array:
            table = vocabulary.table("currency_name")
            size = vocabulary.table("currency").num_rows
            first = table["locale"].index(locale).as_py()
            return pa.array(table["name"].slice(first, size).to_pylist())

        return vocabulary.cached(("currency names", locale), make)


def currency_column(compiler: Compiler, name: str) -> pa.Array:
    """A column of the table of currencies; the same buffers at every call."""
    vocabulary = compiler.vocabulary
    return vocabulary.cached(
        ("currencies", name), lambda: vocabulary.table("currency")[name].combine_chunks()
    )


_COUNTRY_SALT = 50

_OWNERS = (
    "Basic", "Business", "Corporate", "Everyday", "Family", "Joint", "Online", "Personal", "Premium", "Private",
    "Senior", "Student",
)  # fmt: skip
_PURPOSES = (
    "Auto Loan Account", "Brokerage Account", "Certificate of Deposit", "Checking Account", "Credit Card Account",
    "Current Account", "Escrow Account", "Foreign Currency Account", "Home Loan Account", "Investment Account",
    "Money Market Account", "Overdraft Account", "Payroll Account", "Personal Loan Account", "Retirement Account",
    "Savings Account", "Trust Account",
)  # fmt: skip


class Iban(FieldType):
    """International bank account numbers (ISO 13616), national check digits included.

    The default is the locale's country; if that has no IBANs, or there is no locale, several countries. In a group
    the country is that of the row's bank.
    """

    name = "iban"
    label = "IBAN"
    category = "finance"
    description = "An International Bank Account Number (IBAN) with valid check digits."
    aliases = ("international bank account number", "iban number", "bank account iban")
    example = "DE04713857724737619296"
    group_kind = "bank"
    requires_named_group = True
    joins_existing_groups_only = True
    joins_groups_if_unique = True
    localised = True
    dtype = pa.string()

    class Options(OptionsModel):
        countryCode: str | tuple[str, ...] | None = Field(  # noqa: N815 - the wire name of the published clients
            None,
            validation_alias=AliasChoices("countryCode", "country_code"),
            description="Two-letter code of the account's country, or a list of them.",
            examples=["DE", ["FR", "IT"]],
        )
        formatted: bool = Field(False, description="Groups of four characters, separated by spaces.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary = compiler.vocabulary
        known = banks.iban_countries(vocabulary)
        self._kind: banks.BankKind | None = compiler.group_kind_of(field) if field.group else None
        if options.countryCode is not None:
            chosen = validate_countries(
                field, options.countryCode, known, "countryCode", "accounts with an IBAN", compiler
            )
        elif vocabulary.engine >= 2:
            chosen = (
                country_of_locale(compiler.locale_of(field), banks.all_countries(vocabulary))
                or banks.DEFAULT_COUNTRIES
            )
        else:
            chosen = country_of_locale(compiler.locale_of(field), known) or banks.DEFAULT_COUNTRIES
        if (
            self._kind is not None
            and self._kind.placed is not None
            and field.common.unique
            and vocabulary.engine >= 3
        ):
            self._kind = None  # accounts of two countries without IBANs may be the same
            text = f"{self.label}: unique values do not match the other columns of the row."
            compiler.warn(field, "independent", text, "Set options.countryCode or a locale.")
        if self._kind is not None:
            chosen = self._kind.countries
        self._countries = chosen
        self._vocabulary = vocabulary
        self._has_bank = self._kind is not None and vocabulary.engine >= 3
        without_iban = [country for country in chosen if country not in known]
        self.max_length = _LONGEST_ACCOUNT
        if self._kind is None or self._kind.placed is None:
            self.max_length = max((self._code(row).width for row in range(len(chosen))), default=0)
            if without_iban:
                text = (
                    f"{without_iban[0]} has no IBANs; the column contains: "
                    f"{banks.domestic_account_name(without_iban[0])}."
                )
                compiler.warn(field, "no_iban", text, "Set options.countryCode.")
        elif without_iban:
            text = "Rows in countries without IBANs contain the account number that is used there."
            compiler.warn(field, "no_iban", text, "Set options.countryCode.")

    def _code(self, row: int) -> Code:
        return banks.account_code(
            self._vocabulary, self._countries[row], self.options.formatted, self._has_bank
        )

    @classmethod
    def referenced_groups(cls, group: str) -> tuple[tuple[str, str], ...]:
        return groups_of_kind(group, "place")

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._fill(context, unique=False)

    def _fill(self, context: ColumnContext, unique: bool) -> pa.Array:
        letters = context.group(banks.Banks).letters if self._has_bank else None
        if len(self._countries) == 1:
            code = self._code(0)
            return code.text(code.draw_unique(context) if unique else code.draw(context), letters)
        if self._kind is not None:
            which = self._kind.country_rows(context)
        else:
            which = context.below(len(self._countries), _COUNTRY_SALT).view(np.int64)
        return texts_by_code_factory(self._code, which, context, unique, letters)

    def distinct_count(self) -> int | None:
        if self._kind is not None and self._kind.placed is not None:
            return None
        return min((self._code(row).capacity for row in range(len(self._countries))), default=None)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self._fill(context, unique=True)

    def unique_hint(self) -> str:
        return "Set options.countryCode or a locale: account numbers of several countries may be the same."


_LONGEST_ACCOUNT = 42


class Bic(CodeType):
    """Bank identifiers (ISO 9362) whose eighth character is 0: which is reserved for tests, so no bank has one."""

    name = "bic"
    label = "BIC"
    category = "finance"
    description = "A bank identifier code (BIC, SWIFT code) from the range reserved for tests."
    aliases = ("swift", "swift code", "bic swift", "swift bic", "bank identifier code", "swift8", "swift11")
    example = "SOFVDEK0"
    group_kind = "bank"
    requires_named_group = True
    joins_existing_groups_only = True
    localised = True

    class Options(OptionsModel):
        country: str | None = Field(
            None,
            validation_alias=AliasChoices("country", "countryCode", "country_code"),
            description="Two-letter code of the bank's country.",
            examples=["CH"],
        )
        branch: bool = Field(False, description="Adds three characters for the branch.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        known = banks.bic_countries(compiler.vocabulary)
        if compiler.vocabulary.engine >= 2 and (options.country is not None or compiler.locale_of(field)):
            known = banks.all_countries(compiler.vocabulary)
        if options.country is None:
            chosen = country_of_locale(compiler.locale_of(field), known) or known
        else:
            chosen = validate_countries(field, options.country, known, "country", "a BIC", compiler) or known
        self.use(self._compiled_code(chosen, compiler.vocabulary))
        self._kind: banks.BankKind | None = compiler.group_kind_of(field) if field.group else None
        countries = self._kind.countries if self._kind is not None else ()
        self._countries = countries
        self._vocabulary = compiler.vocabulary
        self._has_bank = self._kind is not None and compiler.vocabulary.engine >= 3

    def _code(self, row: int) -> Code:
        return self._compiled_code((self._countries[row],), self._vocabulary, self._has_bank)

    def _compiled_code(
        self, countries: tuple[str, ...], vocabulary: Vocabulary, of_bank: bool = False
    ) -> Code:
        branch = self.options.branch
        letters = banks.BANK_LETTERS if of_bank else (Run(UPPER, 4),)
        end = [Run(DIGITS + UPPER, 3)] if branch else []
        return vocabulary.cached(
            ("bic", countries, branch, of_bank),
            lambda: Code(*letters, Pick(countries), Run(DIGITS[2:] + UPPER), "0", *end),
        )

    def distinct_count(self) -> int | None:
        return min(
            (self._code(row).capacity for row in range(len(self._countries))), default=self.code.capacity
        )

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._fill_by_country(context, unique=False) if self._countries else super().fill(context)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return (
            self._fill_by_country(context, unique=True) if self._countries else super().fill_unique(context)
        )

    def _fill_by_country(self, context: ColumnContext, unique: bool) -> pa.Array:
        assert self._kind is not None  # else there are no countries
        letters = context.group(banks.Banks).letters if self._has_bank else None
        return texts_by_code_factory(self._code, self._kind.country_rows(context), context, unique, letters)

    @classmethod
    def referenced_groups(cls, group: str) -> tuple[tuple[str, str], ...]:
        return groups_of_kind(group, "place")


class AccountNumber(CodeType):
    """Digits, the first of them not 0."""

    name = "account_number"
    label = "Account Number"
    category = "finance"
    description = "A bank account number of digits."
    aliases = ("bank account", "bank account number", "account", "account no", "bban", "acct no")
    example = "8471936025"

    class Options(OptionsModel):
        length: int = Field(10, ge=1, le=limits.MAX_CODE_CHARS, description="Number of digits.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        length = options.length
        rest = [Run(DIGITS, length - 1)] if length > 1 else []
        self.use(compiler.vocabulary.cached(("account", length), lambda: Code(Run(DIGITS[1:]), *rest)))

    @classmethod
    def capacity(cls) -> int:
        return 9 * 10**9


class AccountName(PoolType):
    """The name of a bank account."""

    name = "account_name"
    label = "Account Name"
    category = "finance"
    description = "The name of an account, such as Personal Savings Account."
    aliases = ("bank account name", "account type", "bank account type")
    example = "Personal Savings Account"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.set_pool(
            compiler.vocabulary.cached(
                "account names",
                lambda: pa.array([f"{owner} {purpose}" for purpose in _PURPOSES for owner in _OWNERS]),
            )
        )

    @classmethod
    def capacity(cls) -> int:
        return len(_OWNERS) * len(_PURPOSES)


class RoutingNumber(CodeType):
    """US routing transit numbers, check digit included."""

    name = "aba_routing"
    label = "ABA Routing Number"
    category = "finance"
    description = "The ABA routing number of a US bank, with a valid check digit."
    aliases = ("routing number", "aba", "aba routing number", "routing transit number", "bank routing number")
    example = "021384705"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compiler.vocabulary.cached("routing", lambda: Code(*banks.routing_number())))

    @classmethod
    def capacity(cls) -> int:
        return banks.ROUTING_HEADS * 10**6


class EthereumAddress(CodeType):
    """0x and forty hexadecimal digits in lower case, which carry no checksum."""

    name = "ethereum_address"
    label = "Ethereum Address"
    category = "finance"
    description = "The address of an Ethereum account, in lowercase."
    aliases = ("ethereum", "eth address", "wallet address")
    example = "0x9f2c4b7d1e8a36507c4d2f9e8b1a6c3d5e7f0912"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compiler.vocabulary.cached("ethereum", lambda: Code("0x", Run(HEX, 40))))


_PREFIXES = 4
_MAX_FREE_DIGITS = 9
_HIGH_SALT = 1


@dataclass(frozen=True, slots=True)
class Issuer:
    """A card brand. ``prefixes`` are the first six digits; ``length`` counts the check digit too."""

    label: str
    length: int
    security_digits: int
    prefixes: tuple[int, ...]
    ranges: tuple[tuple[str, str], ...]
    """First and last prefix of its numbers (ISO/IEC 7812), of any width: by these a number is recognised."""
    aliases: tuple[str, ...] = ()

    @property
    def free_digits(self) -> int:
        """Digits between prefix and check digit."""
        return self.length - 7


# Test cards as published by Adyen, Braintree, PayPal, Stripe and Worldpay.
ISSUERS: dict[str, Issuer] = {
    "visa": Issuer("Visa", 16, 3, (400000, 401288, 411111, 424242), (("4", "4"),)),
    "mastercard": Issuer(
        "Mastercard", 16, 3, (222300, 510510, 520082, 555555), (("2221", "2720"), ("51", "55")), ("mc", "mastercredit")
    ),
    "amex": Issuer(
        "American Express", 15, 4, (340000, 371449, 374200, 378282), (("34", "34"), ("37", "37")), ("americanexpress",)
    ),
    "discover": Issuer(
        "Discover", 16, 3, (601100, 601111, 601198, 644564), (("6011", "6011"), ("644", "649"), ("65", "65"))
    ),
    "diners": Issuer(
        "Diners Club", 14, 3, (300000, 305693, 362272, 385200), (("300", "305"), ("36", "36"), ("38", "39")),
        ("dinersclub", "dinersclubinternational"),
    ),
    "jcb": Issuer("JCB", 16, 3, (352800, 353011, 356600, 357011), (("3528", "3589"),)),
    "unionpay": Issuer(
        "UnionPay", 16, 3, (620000, 621094, 621234, 624363), (("62", "62"),), ("chinaunionpay", "cup")
    ),
    "maestro": Issuer(
        "Maestro", 16, 3, (500033, 563953, 675964, 676770), (("50", "50"), ("56", "58"), ("67", "67"))
    ),
}  # fmt: skip
_NAMES = tuple(ISSUERS)
_ALL = tuple(ISSUERS.values())
_ALL_ISSUERS = tuple(range(len(_ALL)))
_IIN = np.array([issuer.prefixes for issuer in _ALL], np.int64)
_NUMBERS_PER_PREFIX = np.array([10**issuer.free_digits for issuer in _ALL], np.int64)
_HAS_FOUR_DIGITS = np.array([issuer.security_digits == 4 for issuer in _ALL])


def find_issuer(name: str) -> int | None:
    """The number of an issuer among `ISSUERS`, by its name, label or an alias; letters only, ignoring case."""
    letters = "".join(ch for ch in name.lower() if ch.isalpha())
    for place, (key, issuer) in enumerate(ISSUERS.items()):
        if letters in (key, issuer.label.lower().replace(" ", ""), *issuer.aliases):
            return place
    return None


def find_issuer_by_number(number: str) -> int | None:
    """The issuer of a card number, by its prefix."""
    digits = "".join(ch for ch in number if ch.isdigit())
    for place, issuer in enumerate(_ALL):
        if any(first <= digits[: len(first)] <= last for first, last in issuer.ranges):
            return place
    return None


@cache
def _luhn_table() -> np.ndarray:
    """``uint8[2, 10000]``: what four digits add to a Luhn sum, by whether their last digit is doubled."""
    digits = np.arange(10_000)[:, None] // np.array([1000, 100, 10, 1]) % 10
    doubled = np.where(digits > 4, 2 * digits - 9, 2 * digits)
    odd, even = np.array([True, False, True, False]), np.array([False, True, False, True])
    return np.stack([np.where(mask, doubled, digits).sum(axis=1) for mask in (odd, even)]).astype(np.uint8)


def with_check_digit(numbers: np.ndarray) -> np.ndarray:
    """``int64[n]`` with a Luhn check digit (ISO/IEC 7812-1, annex B) after the last digit; below 10**18."""
    table = _luhn_table()[1]
    total = np.zeros(numbers.size, np.int64)
    rest = numbers
    while True:
        higher = rest // 10_000
        total += table[rest - higher * 10_000]
        if not higher.any():
            break
        rest = higher
    return numbers * 10 + (10 - total % 10) % 10


class Cards:
    """The cards of one block."""

    def __init__(self, kind: CardKind, draws: RandomStream, issuers: tuple[int, ...]) -> None:
        self._kind, self._draws, self._issuers = kind, draws, np.array(issuers)

        self._fewest_free = min(_ALL[issuer].free_digits for issuer in issuers)
        self._most_free = max(_ALL[issuer].free_digits for issuer in issuers)

    @cached_property
    def _issuer_and_rest(self) -> tuple[np.ndarray, np.ndarray]:
        """Issuer, and the index of the rest of the number: ``int64[n]`` each."""
        unique = self._kind.unique
        size = self._issuers.size * _PREFIXES * 10 ** (self._fewest_free if unique else self._most_free)
        index = (self._draws.permuted(size) if unique else self._draws.below(size)).view(np.int64)
        # Two divisions by a constant are faster than one divmod.
        rest = index // self._issuers.size
        return self._issuers[index - rest * self._issuers.size], rest

    @property
    def issuer(self) -> np.ndarray:
        """``int64[n]``: which of `ISSUERS`."""
        return self._issuer_and_rest[0]

    def numbers(self) -> np.ndarray:
        """``int64[n]`` of complete card numbers."""
        issuer, rest = self._issuer_and_rest
        digits = rest // _PREFIXES
        prefix = rest - digits * _PREFIXES
        fewest, maximum = self._fewest_free, self._most_free
        if self._kind.unique and maximum > fewest:
            digits += self._draws.below(10 ** (maximum - fewest), _HIGH_SALT).view(np.int64) * 10**fewest
        span = _NUMBERS_PER_PREFIX[issuer]
        return with_check_digit(_IIN[issuer, prefix] * span + digits % span)


class CardKind(GroupKind):
    """One card a row. All card numbers of a group are of the same issuers."""

    kind = "card"

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        numbers = [
            (field, field.options.issuer)
            for field in fields
            if isinstance(field.options, CreditCardNumber.Options)
        ]
        self.unique = any(field.common.unique for field, _ in numbers)
        self.issuers = select_issuers(numbers[0][1])[0] if numbers else _ALL_ISSUERS
        for field, issuer in numbers[1:]:
            if select_issuers(issuer)[0] != self.issuers:
                text = f'The card of "{numbers[0][0].name}" has different issuers.'
                compiler.fault(
                    field, "options.issuer", "conflict", text, "Use the same issuers, or another group."
                )

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[Any, list[Fault]]:
        issuers, unmet = self.issuers, []
        by_name = {field.name: field.type for field in self.fields}
        for name, value in fixed.items():
            if by_name[name] not in (CreditCardType, CreditCardNumber) or value is None:
                continue
            issuer = (
                find_issuer(str(value))
                if by_name[name] is CreditCardType
                else find_issuer_by_number(str(value))
            )
            if issuer in issuers and not self.unique:
                issuers = (issuer,)
            else:
                reason = "the card numbers are unique" if self.unique else f'this group has no card "{value}"'
                text = f"The other fields of the card ignore this value: {reason}."
                unmet.append(Fault(f"overrides.{name}", "no_match", text, ""))
        return issuers, unmet

    def draw(self, draws: RandomStream, state: Any) -> Cards:
        return Cards(self, draws, state)


def select_issuers(given: str | tuple[str, ...] | None) -> tuple[tuple[int, ...], dict[str, str]]:
    """Return the issuers of an option (all if none of its names exist), and the names that do not exist by their
    place in the option."""
    if given is None:
        return _ALL_ISSUERS, {}
    names = (
        {"": given} if isinstance(given, str) else {f"[{place}]": name for place, name in enumerate(given)}
    )
    issuers = {place: find_issuer(name) for place, name in names.items()}
    known = {issuer for issuer in issuers.values() if issuer is not None}
    return tuple(sorted(known)) or _ALL_ISSUERS, {
        place: name for place, name in names.items() if issuers[place] is None
    }


class _CardField(FieldType):
    category = "finance"
    group_kind = "card"
    dtype = pa.string()


class CreditCardNumber(_CardField):
    """Only digits, including the Luhn check digit."""

    name = "credit_card_number"
    label = "Credit Card Number"
    description = "A card number from the ranges of test cards that passes the Luhn check."
    aliases = (
        "credit card full",
        "finance credit card number",
        "credit card",
        "card number",
        "credit card no",
        "pan",
        "payment card",
        "cc number",
    )
    example = "4242424713857722"

    class Options(OptionsModel):
        issuer: str | tuple[str, ...] | None = Field(
            None,
            description=f"One issuer or a list: {', '.join(_NAMES)}. Default: all.",
            examples=["visa", ["amex", "mastercard"]],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        numbers, unknown = select_issuers(options.issuer)
        for place, name in unknown.items():
            hint = did_you_mean(name, _NAMES) or f"Known: {', '.join(_NAMES)}."
            text = f'There is no card issuer "{name}".'
            compiler.fault(field, f"options.issuer{place}", "unknown_issuer", text, hint)
        if options.issuer == ():
            text = "Set at least one issuer, or remove the option."
            compiler.fault(field, "options.issuer", "too_few", text)
        issuers = [_ALL[number] for number in numbers]
        self._capacity = len(issuers) * _PREFIXES * 10 ** min(issuer.free_digits for issuer in issuers)
        self.max_length = max(issuer.length for issuer in issuers)

    def fill(self, context: ColumnContext) -> pa.Array:
        return pa.array(context.group(Cards).numbers()).cast(pa.string())

    def distinct_count(self) -> int:
        return self._capacity

    @classmethod
    def capacity(cls) -> int:
        return len(_ALL) * _PREFIXES * 10 ** min(issuer.free_digits for issuer in _ALL)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)


class CreditCardType(_CardField):
    """The card's issuer by its usual name."""

    name = "credit_card_type"
    label = "Credit Card Type"
    description = "The issuer of the row's card, such as Visa."
    aliases = ("card type", "card issuer", "credit card issuer", "credit card provider", "card brand")
    example = "Visa"
    max_length = max(len(issuer.label) for issuer in _ALL)

    def fill(self, context: ColumnContext) -> pa.Array:
        return dictionary_array(_labels(), context.group(Cards).issuer)

    def unique_hint(self) -> str:
        return f"There are {len(_ALL)} issuers."


@cache
def _labels() -> pa.Array:
    return pa.array([issuer.label for issuer in _ALL])


class Cvv(_CardField):
    """Three digits, four on an American Express card."""

    name = "cvv"
    label = "CVV"
    description = "The security code of the row's card: four digits for American Express, three for others."
    aliases = (
        "cvc",
        "card security code",
        "credit card cvv",
        "credit card security code",
        "cvv2",
        "card cvv",
    )
    example = "071"
    max_length = 4

    def fill(self, context: ColumnContext) -> pa.Array:
        random = context.bits()
        four = _HAS_FOUR_DIGITS[context.group(Cards).issuer]
        index = (random >> np.uint64(32)) * np.where(four, np.uint64(10_000), np.uint64(1_000)) >> np.uint64(
            32
        )
        return dictionary_array(_security_codes(), index.view(np.int64) + np.where(four, 1_000, 0))


@cache
def _security_codes() -> pa.Array:
    return pa.array([f"{code:03d}" for code in range(1_000)] + [f"{code:04d}" for code in range(10_000)])


class CardExpiry(_CardField):
    """A month after the current one."""

    name = "card_expiry"
    label = "Card Expiry"
    description = "The expiry month of the row's card, always after now."
    aliases = (
        "credit card expiry", "credit card expire", "card expiration", "expiry date", "credit card expiration date",
    )  # fmt: skip
    example = "04/29"

    class Options(OptionsModel):
        format: str = Field(
            "MM/YY",
            max_length=limits.MAX_NAME_CHARS,
            description="Format of the month.",
            examples=["MM/YYYY"],
        )
        years: int = Field(
            5, ge=1, le=limits.MAX_CARD_YEARS, description=("Maximum number of years until expiry.")
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        try:
            self._formatter = dates.create_formatter(options.format)
        except dates.DateFormatError as error:
            compiler.fault(field, "options.format", "bad_format", str(error), "Use MM/YY or MM/YYYY.")
            return
        if dates.has_time(options.format):
            text = "The format must contain only month and year."
            compiler.fault(field, "options.format", "bad_format", text, "Use MM/YY or MM/YYYY.")
        self.max_length = max_text_length(
            self._formatter(pa.array([date(2000 + year, 9, 30) for year in range(100)]))
        )

    def prepare(self, env: GenerationContext) -> pa.Array:
        first = env.now.year * 12 + env.now.month
        months = [divmod(first + month, 12) for month in range(self.options.years * 12)]
        return self._formatter(pa.array([date(year, month + 1, 1) for year, month in months]))

    def fill(self, context: ColumnContext) -> pa.Array:
        return dictionary_array(context.state, context.below(len(context.state)))
