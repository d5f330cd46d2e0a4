"""Fields of the category finance, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AbaRoutingField(Field):
    """The ABA routing number of a US bank, with a valid check digit."""

    type_name = "aba_routing"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class AccountNameField(Field):
    """The name of an account, such as Personal Savings Account."""

    type_name = "account_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class AccountNumberField(Field):
    """A bank account number of digits.

    length: Number of digits.
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
    """The name of a bank, such as Commerzbank, consistent with the row's IBAN and BIC.

    country: Two-letter code of the bank's country.
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
    """A bank identifier code (BIC, SWIFT code) from the range reserved for tests.

    country: Two-letter code of the bank's country.
    branch: Adds three characters for the branch.
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
    """A Bitcoin address with a valid checksum. No one has its private key.

    format: Address type: witness key hash (bc1q…), Taproot (bc1p…), key hash (1…) or script (3…).
    network: Network, which determines the prefix.
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
    """The expiry month of the row's card, always after now.

    format: Format of the month.
    years: Maximum number of years until expiry.
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


class CreditCardExpiryMaskedField(Field):
    """A card number of which only the last four digits are shown."""

    type_name = "credit_card_expiry_masked"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CreditCardNumberField(Field):
    """A card number from the ranges of test cards that passes the Luhn check.

    issuer: One issuer or a list: visa, mastercard, amex, discover, diners, jcb, unionpay, maestro.
        Default: all.
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


class CryptocurrencyField(Field):
    """The name of a cryptocurrency."""

    type_name = "cryptocurrency"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CryptocurrencyCodeField(Field):
    """The code of a cryptocurrency, such as BTC."""

    type_name = "cryptocurrency_code"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CurrencyField(Field):
    """An amount of money with two decimal places.

    min: Minimum amount. Default: 1 if max is not set either, otherwise 0.
    max: Maximum amount. Default: 1,000 if nothing else is set.
    mean: Mean of a normal distribution, truncated at min and max.
    stddev: Standard deviation. Default: a quarter of the mean.
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
    """The three-letter code of a currency, such as EUR."""

    type_name = "currency_code"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CurrencyNameField(Field):
    """The name of a currency, such as Swiss Franc."""

    type_name = "currency_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CurrencySymbolField(Field):
    """The symbol of a currency, such as €, or its code if it has no symbol."""

    type_name = "currency_symbol"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CusipField(Field):
    """A CUSIP number of a security with a valid check digit."""

    type_name = "cusip"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CustomerNumberField(Field):
    """A customer number with a Luhn check digit."""

    type_name = "customer_number"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CVVField(Field):
    """The security code of the row's card: four digits for American Express, three for others."""

    type_name = "cvv"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class EthereumAddressField(Field):
    """The address of an Ethereum account, in lowercase."""

    type_name = "ethereum_address"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class IBANField(Field):
    """An International Bank Account Number (IBAN) with valid check digits.

    country_code: Two-letter code of the account's country, or a list of them.
    formatted: Groups of four characters, separated by spaces.
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


class IsinField(Field):
    """An International Securities Identification Number with a valid check digit."""

    type_name = "isin"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class LeiField(Field):
    """A Legal Entity Identifier with valid check digits."""

    type_name = "lei"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MarketCapField(Field):
    """The value of a company at the stock exchange, such as $4.82B."""

    type_name = "market_cap"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class PinField(Field):
    """A personal identification number of four digits."""

    type_name = "pin"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class PriceField(Field):
    """A retail price, such as 24.99.

    min: Minimum price.
    max: Maximum price.
    endings: Cent endings of the prices.
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


class StockExchangeField(Field):
    """The name of a stock exchange."""

    type_name = "stock_exchange"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class StockSymbolField(Field):
    """A stock symbol, such as QRTX."""

    type_name = "stock_symbol"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class TransactionTypeField(Field):
    """A kind of payment, such as withdrawal."""

    type_name = "transaction_type"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})
