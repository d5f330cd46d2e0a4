"""Fields of the category company, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class CompanyNameField(Field):
    """The name of a company, such as Hartmann Group or Lee & Novak."""

    type_name = "company_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DunsField(Field):
    """The number of a company in Dun & Bradstreet's register: nine digits.

    formatted: With hyphens: 15-048-3782.
    """

    type_name = "duns"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        formatted: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"formatted": formatted})


class Ean13Field(Field):
    """An article number (GTIN-13) with a right check digit, from the range for use inside a shop."""

    type_name = "ean13"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class Ean8Field(Field):
    """A short article number (GTIN-8) with a right check digit, from the range for use inside a shop."""

    type_name = "ean8"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class IndustryField(Field):
    """A branch of business, such as Renewable Energy."""

    type_name = "industry"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class InvoiceNumberField(Field):
    """The number of an invoice, counting up without a gap, such as INV-2026-000001.

    format: # stand for the number, with leading zeros; YYYY, YY and MM for year and month of now.
    start: Number of the first row.
    """

    type_name = "invoice_number"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: str = UNSET,
        start: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format, "start": start})


class ISBNField(Field):
    """The number of a book (ISBN-13) with a right check digit, without hyphens."""

    type_name = "isbn"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ISSNField(Field):
    """The number of a periodical, with a right check digit."""

    type_name = "issn"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class OrderNumberField(Field):
    """The number of an order, such as ORD-40718265.

    format: # is a digit, @ a lower-case letter, ^ an upper-case letter, * any of them; a backslash before
        a mark keeps it as it is.
    """

    type_name = "order_number"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: str = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format})


class ProductField(Field):
    """A kind of product, such as Desk Lamp."""

    type_name = "product"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ProductCategoryField(Field):
    """The department of a shop that sells the row's product."""

    type_name = "product_category"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ProductNameField(Field):
    """The name of a product, such as Rustic Walnut Desk Lamp."""

    type_name = "product_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SKUField(Field):
    """A stock number that begins with its product's category, such as FUR-7K2M9X.

    length: Characters after the hyphen.
    """

    type_name = "sku"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        length: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"length": length})


class UPCField(Field):
    """A US article number (UPC-A) with a right check digit, from the range for use inside a shop."""

    type_name = "upc"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})
