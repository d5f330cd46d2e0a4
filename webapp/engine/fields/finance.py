"""Accounts and banks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine.fields import banks, checksums
from webapp.engine.fields.base import FieldType, OptionsModel, PoolType
from webapp.engine.fields.code_parts import DIGITS, HEX, UPPER, Pick, Run
from webapp.engine.fields.codes import Code, CodeType, mixed
from webapp.engine.fields.countries import listed, of_locale

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

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

# First two digits of a US routing number: Federal Reserve districts, thrifts, electronic and traveller's cheques.
_ROUTING = tuple(f"{number:02d}" for number in (*range(1, 13), *range(21, 33), *range(61, 73), 80))


class Iban(FieldType):
    """International bank account numbers (ISO 13616), national check digits included.

    Without a country those of the locale's country; where that has none, or no locale is given, of several. In a
    group the country is that of the row's bank.
    """

    name = "iban"
    label = "IBAN"
    category = "finance"
    description = "An international bank account number with right check digits."
    aliases = ("international bank account number", "iban number", "bank account iban")
    example = "DE04713857724737619296"
    group_kind = "bank"
    solitary = True
    joins = True
    localised = True
    dtype = pa.string()

    class Options(OptionsModel):
        countryCode: str | tuple[str, ...] | None = Field(  # noqa: N815 - the wire name of the published clients
            None,
            validation_alias=AliasChoices("countryCode", "country_code"),
            description="Two-letter code of the account's country, or a list of them.",
            examples=["DE", ["FR", "IT"]],
        )
        formatted: bool = Field(False, description="Groups of four characters with blanks between them.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        known = banks.countries(compiler.vocabulary)
        if options.countryCode is None:
            chosen = of_locale(compiler.locale_of(field), known) or banks.COMMON
        else:
            chosen = listed(
                field, options.countryCode, known, "countryCode", "accounts with an IBAN", compiler
            )
        if field.group:
            chosen = compiler.kind_of(field).countries
        self._codes = [banks.iban(compiler.vocabulary, country, options.formatted) for country in chosen]
        self.max_length = max((code.width for code in self._codes), default=0)

    def fill(self, cells: Cells) -> pa.Array:
        return self._fill(cells, unique=False)

    def _fill(self, cells: Cells, unique: bool) -> pa.Array:
        if len(self._codes) == 1:
            code = self._codes[0]
            return code.text(code.draw_unique(cells) if unique else code.draw(cells))
        which = (
            cells.group().country
            if self.field.group
            else cells.below(len(self._codes), _COUNTRY_SALT).view(np.int64)
        )
        return mixed(self._codes, which, cells, unique)

    def space(self) -> int | None:
        return min(code.capacity for code in self._codes)

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self._fill(cells, unique=True)


class Bic(CodeType):
    """Bank identifiers (ISO 9362) whose eighth character is 0: those are set aside for tests, so no bank has one."""

    name = "bic"
    label = "BIC"
    category = "finance"
    description = "A bank identifier (SWIFT code) from the range that is set aside for tests."
    aliases = ("swift", "swift code", "bic swift", "swift bic", "bank identifier code", "swift8", "swift11")
    example = "SOFVDEK0"
    group_kind = "bank"
    solitary = True
    joins = True
    localised = True

    class Options(OptionsModel):
        country: str | None = Field(
            None,
            validation_alias=AliasChoices("country", "countryCode", "country_code"),
            description="Two-letter code of the bank's country.",
            examples=["CH"],
        )
        branch: bool = Field(False, description="Three more characters for the branch.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        known = banks.bic_countries(compiler.vocabulary)
        if options.country is None:
            chosen = of_locale(compiler.locale_of(field), known) or known
        else:
            chosen = listed(field, options.country, known, "country", "a BIC", compiler) or known
        self.use(self._of(chosen, compiler))
        countries = compiler.kind_of(field).countries if field.group else ()
        self._codes = [self._of((country,), compiler) for country in countries]

    def _of(self, countries: tuple[str, ...], compiler: Compiler) -> Code:
        branch = self.options.branch
        return compiler.vocabulary.shared(("bic", countries, branch), lambda: _bic(countries, branch))

    def space(self) -> int | None:
        return min((code.capacity for code in self._codes), default=self.code.capacity)

    def fill(self, cells: Cells) -> pa.Array:
        return self._mixed(cells, unique=False) if self._codes else super().fill(cells)

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self._mixed(cells, unique=True) if self._codes else super().fill_unique(cells)

    def _mixed(self, cells: Cells, unique: bool) -> pa.Array:
        return mixed(self._codes, cells.group().country, cells, unique)


def _bic(countries: tuple[str, ...], branch: bool) -> Code:
    return Code(
        Run(UPPER, 4), Pick(countries), Run(DIGITS[2:] + UPPER), "0", *([Run(DIGITS + UPPER, 3)] * branch)
    )


class AccountNumber(CodeType):
    """Digits, the first of them not 0."""

    name = "account_number"
    label = "Account Number"
    category = "finance"
    description = "The number of a bank account: digits."
    aliases = ("bank account", "bank account number", "account", "account no", "bban", "acct no")
    example = "8471936025"

    class Options(OptionsModel):
        length: int = Field(10, ge=1, le=limits.MAX_CODE_CHARS, description="How many digits.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        length = options.length
        self.use(compiler.vocabulary.shared(("account", length), lambda: _account(length)))

    @classmethod
    def capacity(cls) -> int:
        return 9 * 10**9


def _account(length: int) -> Code:
    return Code(Run(DIGITS[1:]), *([Run(DIGITS, length - 1)] if length > 1 else []))


class AccountName(PoolType):
    """What a bank calls an account."""

    name = "account_name"
    label = "Account Name"
    category = "finance"
    description = "What an account is called, such as Personal Savings Account."
    aliases = ("bank account name", "account type", "bank account type")
    example = "Personal Savings Account"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compiler.vocabulary.shared("account names", _account_names))

    @classmethod
    def capacity(cls) -> int:
        return len(_OWNERS) * len(_PURPOSES)


def _account_names() -> pa.Array:
    return pa.array([f"{owner} {purpose}" for purpose in _PURPOSES for owner in _OWNERS])


class RoutingNumber(CodeType):
    """US routing transit numbers, check digit included."""

    name = "aba_routing"
    label = "ABA Routing Number"
    category = "finance"
    description = "The routing number of a US bank, with a right check digit."
    aliases = ("routing number", "aba", "aba routing number", "routing transit number", "bank routing number")
    example = "021384705"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compiler.vocabulary.shared("routing", _routing))

    @classmethod
    def capacity(cls) -> int:
        return len(_ROUTING) * 10**6


def _routing() -> Code:
    # American Bankers Association: weights 3, 7 and 1 in turn make a multiple of 10.
    check = checksums.weighted((3, 7, 1, 3, 7, 1, 3, 7), 10, checksums.complement(10))
    return Code(Pick(_ROUTING), Run(DIGITS, 6), check)


class EthereumAddress(CodeType):
    """0x and forty hexadecimal digits in lower case, which carry no checksum."""

    name = "ethereum_address"
    label = "Ethereum Address"
    category = "finance"
    description = "The address of an Ethereum account, in lower case."
    aliases = ("ethereum", "eth address", "wallet address")
    example = "0x9f2c4b7d1e8a36507c4d2f9e8b1a6c3d5e7f0912"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compiler.vocabulary.shared("ethereum", lambda: Code("0x", Run(HEX, 40))))
