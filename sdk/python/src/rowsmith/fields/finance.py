"""Fields of the category finance, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AbaRoutingField(Field):
    """The routing number of a US bank, with a right check digit."""

    type_name = "aba_routing"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class AccountNameField(Field):
    """What an account is called, such as Personal Savings Account."""

    type_name = "account_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class AccountNumberField(Field):
    """The number of a bank account: digits.

    length: How many digits.
    """

    type_name = "account_number"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        length: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"length": length})


class BankNameField(Field):
    """The name of a bank, such as Commerzbank, in agreement with the row's IBAN and BIC.

    country: Two-letter code of the country that the bank has customers in.
    """

    type_name = "bank_name"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        country: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"country": country})


class BICField(Field):
    """A bank identifier (SWIFT code) from the range that is set aside for tests.

    country: Two-letter code of the bank's country.
    branch: Three more characters for the branch.
    """

    type_name = "bic"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        country: str | None = UNSET,
        branch: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"country": country, "branch": branch})


class BitcoinAddressField(Field):
    """A Bitcoin address with a right checksum; nobody has its key.

    format: bc1q…, bc1p…, 1… or 3…: pay to a witness key hash, Taproot, a key hash, a script.
    network: Whose beginning it has.
    """

    type_name = "bitcoin_address"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: Literal["p2wpkh", "p2tr", "p2pkh", "p2sh"] = UNSET,
        network: Literal["mainnet", "testnet"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format, "network": network})


class CardExpiryField(Field):
    """The month in which the row's card runs out, always after now.

    format: How the month is written.
    years: It runs out within so many years.
    """

    type_name = "card_expiry"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: str = UNSET,
        years: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format, "years": years})


class CreditCardNumberField(Field):
    """A card number that passes the Luhn check, from the ranges of test cards.

    issuer: One issuer or a list: visa, mastercard, amex, discover, diners, jcb, unionpay, maestro. All of
        them if not given.
    """

    type_name = "credit_card_number"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        issuer: str | list[str] | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"issuer": issuer})


class CreditCardTypeField(Field):
    """The issuer of the row's card, such as Visa."""

    type_name = "credit_card_type"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CurrencyField(Field):
    """An amount of money with two decimals.

    min: Least amount; 1 if neither this nor max is given, else 0.
    max: Largest amount; 1,000 if nothing else is given.
    mean: Mean of a normal distribution, cut at min and max.
    stddev: Its standard deviation; a quarter of the mean if not given.
    """

    type_name = "currency"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float | None = UNSET,
        max: float | None = UNSET,
        mean: float | None = UNSET,
        stddev: float | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "mean": mean, "stddev": stddev})


class CurrencyCodeField(Field):
    """The three letters of a currency, such as EUR."""

    type_name = "currency_code"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CurrencyNameField(Field):
    """The name of a currency, such as Swiss Franc."""

    type_name = "currency_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CurrencySymbolField(Field):
    """The sign of a currency, such as €; its code where it has none."""

    type_name = "currency_symbol"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CVVField(Field):
    """The security code of the row's card: four digits for American Express, three for others."""

    type_name = "cvv"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class EthereumAddressField(Field):
    """The address of an Ethereum account, in lower case."""

    type_name = "ethereum_address"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class IBANField(Field):
    """An international bank account number with right check digits.

    country_code: Two-letter code of the account's country, or a list of them.
    formatted: Groups of four characters with blanks between them.
    """

    type_name = "iban"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        country_code: str | list[str] | None = UNSET,
        formatted: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"countryCode": country_code, "formatted": formatted})


class PriceField(Field):
    """A price as shops write it, such as 24.99.

    min: Smallest price.
    max: Largest price.
    endings: Hundredths that prices end in.
    """

    type_name = "price"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float = UNSET,
        max: float = UNSET,
        endings: list[int] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "endings": endings})


class StockSymbolField(Field):
    """The symbol of a share, such as QRTX."""

    type_name = "stock_symbol"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})
