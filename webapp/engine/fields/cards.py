"""Payment cards: number, issuer, security code and expiry of one card in every row.

Numbers begin with prefixes that the issuers' own test cards begin with, so that none belongs to anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine import dates
from webapp.engine.fields.base import FieldType, GroupKind, OptionsModel, longest, pooled
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Draws, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_PREFIXES = 4
_MOST_FREE = 9
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
    def free(self) -> int:
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
_EVERY = tuple(range(len(_ALL)))
_IIN = np.array([issuer.prefixes for issuer in _ALL], np.int64)
_SPAN = np.array([10**issuer.free for issuer in _ALL], np.int64)
_FOUR = np.array([issuer.security_digits == 4 for issuer in _ALL])


def find(name: str) -> int | None:
    """The number of an issuer among `ISSUERS`, by its name, label or an alias; letters only, ignoring case."""
    plain = "".join(ch for ch in name.lower() if ch.isalpha())
    for place, (key, issuer) in enumerate(ISSUERS.items()):
        if plain in (key, issuer.label.lower().replace(" ", ""), *issuer.aliases):
            return place
    return None


def recognise(number: str) -> int | None:
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

    def __init__(self, kind: CardKind, draws: Draws, issuers: tuple[int, ...]) -> None:
        self._kind, self._draws, self._issuers = kind, draws, np.array(issuers)

        self._free = min(_ALL[issuer].free for issuer in issuers)
        self._most = max(_ALL[issuer].free for issuer in issuers)

    @cached_property
    def _drawn(self) -> tuple[np.ndarray, np.ndarray]:
        """Issuer, and what the rest of the number follows from: ``int64[n]`` each."""
        unique = self._kind.unique
        size = self._issuers.size * _PREFIXES * 10 ** (self._free if unique else self._most)
        index = (self._draws.permuted(size) if unique else self._draws.below(size)).view(np.int64)
        # Two divisions by a constant are faster than one divmod.
        rest = index // self._issuers.size
        return self._issuers[index - rest * self._issuers.size], rest

    @property
    def issuer(self) -> np.ndarray:
        """``int64[n]``: which of `ISSUERS`."""
        return self._drawn[0]

    def numbers(self) -> np.ndarray:
        """``int64[n]`` of whole card numbers."""
        issuer, rest = self._drawn
        digits = rest // _PREFIXES
        prefix = rest - digits * _PREFIXES
        free, most = self._free, self._most
        if self._kind.unique and most > free:
            digits += self._draws.below(10 ** (most - free), _HIGH_SALT).view(np.int64) * 10**free
        span = _SPAN[issuer]
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
        self.issuers = chosen(numbers[0][1])[0] if numbers else _EVERY
        for field, issuer in numbers[1:]:
            if chosen(issuer)[0] != self.issuers:
                text = f'The card of "{numbers[0][0].name}" has other issuers.'
                compiler.fault(
                    field, "options.issuer", "conflict", text, "Say the same, or put it into another group."
                )

    def prepare(self, env: Env, fixed: dict[str, Any]) -> tuple[Any, list[Fault]]:
        issuers, unmet = self.issuers, []
        by_name = {field.name: field.type for field in self.fields}
        for name, value in fixed.items():
            if by_name[name] not in (CreditCardType, CreditCardNumber) or value is None:
                continue
            found = find(str(value)) if by_name[name] is CreditCardType else recognise(str(value))
            if found in issuers and not self.unique:
                issuers = (found,)
            else:
                reason = (
                    "the card numbers are unique" if self.unique else f'no card of this group is "{value}"'
                )
                text = f"The other fields of the card do not follow this value: {reason}."
                unmet.append(Fault(f"overrides.{name}", "no_match", text, ""))
        return issuers, unmet

    def draw(self, draws: Draws, state: Any) -> Cards:
        return Cards(self, draws, state)


def chosen(given: str | tuple[str, ...] | None) -> tuple[tuple[int, ...], dict[str, str]]:
    """The issuers an option names (all where it names none that exist), and the names that do not exist by their
    place in the option."""
    if given is None:
        return _EVERY, {}
    names = (
        {"": given} if isinstance(given, str) else {f"[{place}]": name for place, name in enumerate(given)}
    )
    found = {place: find(name) for place, name in names.items()}
    known = {issuer for issuer in found.values() if issuer is not None}
    return tuple(sorted(known)) or _EVERY, {
        place: name for place, name in names.items() if found[place] is None
    }


class _CardField(FieldType):
    category = "finance"
    group_kind = "card"
    dtype = pa.string()


class CreditCardNumber(_CardField):
    """Digits alone, Luhn check digit included."""

    name = "credit_card_number"
    label = "Credit Card Number"
    description = "A card number that passes the Luhn check, from the ranges of test cards."
    aliases = ("credit card", "card number", "credit card no", "pan", "payment card", "cc number")
    example = "4242424713857722"

    class Options(OptionsModel):
        issuer: str | tuple[str, ...] | None = Field(
            None,
            description=f"One issuer or a list: {', '.join(_NAMES)}. All of them if not given.",
            examples=["visa", ["amex", "mastercard"]],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        numbers, unknown = chosen(options.issuer)
        for place, name in unknown.items():
            hint = did_you_mean(name, _NAMES) or f"Known: {', '.join(_NAMES)}."
            text = f'There is no card issuer "{name}".'
            compiler.fault(field, f"options.issuer{place}", "unknown_issuer", text, hint)
        if options.issuer == ():
            text = "Name at least one issuer, or leave it out."
            compiler.fault(field, "options.issuer", "too_few", text)
        issuers = [_ALL[number] for number in numbers]
        self._capacity = len(issuers) * _PREFIXES * 10 ** min(issuer.free for issuer in issuers)
        self.max_length = max(issuer.length for issuer in issuers)

    def fill(self, cells: Cells) -> pa.Array:
        return pa.array(cells.group().numbers()).cast(pa.string())

    def space(self) -> int:
        return self._capacity

    @classmethod
    def capacity(cls) -> int:
        return len(_ALL) * _PREFIXES * 10 ** min(issuer.free for issuer in _ALL)

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)


class CreditCardType(_CardField):
    """The card's issuer by its usual name."""

    name = "credit_card_type"
    label = "Credit Card Type"
    description = "The issuer of the row's card, such as Visa."
    aliases = ("card type", "card issuer", "credit card issuer", "credit card provider", "card brand")
    example = "Visa"
    max_length = max(len(issuer.label) for issuer in _ALL)

    def fill(self, cells: Cells) -> pa.Array:
        return pooled(_labels(), cells.group().issuer)

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

    def fill(self, cells: Cells) -> pa.Array:
        random = cells.bits()
        four = _FOUR[cells.group().issuer]
        index = (random >> np.uint64(32)) * np.where(four, np.uint64(10_000), np.uint64(1_000)) >> np.uint64(
            32
        )
        return pooled(_security_codes(), index.view(np.int64) + np.where(four, 1_000, 0))


@cache
def _security_codes() -> pa.Array:
    return pa.array([f"{code:03d}" for code in range(1_000)] + [f"{code:04d}" for code in range(10_000)])


class CardExpiry(_CardField):
    """A month from the one after now on."""

    name = "card_expiry"
    label = "Card Expiry"
    description = "The month in which the row's card runs out, always after now."
    aliases = (
        "credit card expiry", "credit card expire", "card expiration", "expiry date", "credit card expiration date",
    )  # fmt: skip
    example = "04/29"

    class Options(OptionsModel):
        format: str = Field(
            "MM/YY",
            max_length=limits.MAX_NAME_CHARS,
            description="How the month is written.",
            examples=["MM/YYYY"],
        )
        years: int = Field(5, ge=1, le=limits.MAX_CARD_YEARS, description="It runs out within so many years.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        try:
            self._spell = dates.formatter(options.format)
        except dates.DateFormatError as error:
            compiler.fault(field, "options.format", "bad_format", str(error), "Write MM/YY or MM/YYYY.")
            return
        if dates.needs_clock(options.format):
            text = "A card runs out with a month, not at an hour."
            compiler.fault(field, "options.format", "bad_format", text, "Write MM/YY or MM/YYYY.")
        self.max_length = longest(self._spell(pa.array([date(2000 + year, 9, 30) for year in range(100)])))

    def prepare(self, env: Env) -> pa.Array:
        first = env.now.year * 12 + env.now.month
        months = [divmod(first + month, 12) for month in range(self.options.years * 12)]
        return self._spell(pa.array([date(year, month + 1, 1) for year, month in months]))

    def fill(self, cells: Cells) -> pa.Array:
        return pooled(cells.state, cells.below(len(cells.state)))
