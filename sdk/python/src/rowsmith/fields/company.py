"""Fields of the category company, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class BusinessJargonField(Field):
    """A phrase of business talk, made up."""

    type_name = "business_jargon"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CompanyNameField(Field):
    """The name of a company, such as Hartmann Group or Lee & Novak."""

    type_name = "company_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CompanySuffixField(Field):
    """The legal form behind a company's name, such as Inc."""

    type_name = "company_suffix"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DunsField(Field):
    """A nine-digit company number in the Dun & Bradstreet register.

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
    """An article number (EAN-13, GTIN-13) with a valid check digit, from the in-store range."""

    type_name = "ean13"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class Ean8Field(Field):
    """A short article number (EAN-8, GTIN-8) with a valid check digit, from the in-store range."""

    type_name = "ean8"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class GroceryField(Field):
    """A grocery item, such as Whole Milk - 1 l."""

    type_name = "grocery"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class IndustryField(Field):
    """An industry, such as Renewable Energy."""

    type_name = "industry"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class InvoiceNumberField(Field):
    """A consecutive invoice number without gaps, such as INV-2026-000001.

    format: # characters are replaced by the number with leading zeros; YYYY, YY and MM by the year and
        month of now.
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
    """A book number (ISBN-13) with a valid check digit, without hyphens."""

    type_name = "isbn"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class Isbn10Field(Field):
    """A book number (ISBN-10) with a valid check digit."""

    type_name = "isbn_10"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ISSNField(Field):
    """The number of a periodical (ISSN), with a valid check digit."""

    type_name = "issn"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class OrderNumberField(Field):
    """An order number, such as ORD-40718265.

    format: # is a digit, @ a lowercase letter, ^ an uppercase letter, * any of these. Use a backslash for
        a literal character.
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
    """A type of product, such as Desk Lamp."""

    type_name = "product"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ProductCategoryField(Field):
    """The store department of the row's product."""

    type_name = "product_category"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ProductDescriptionField(Field):
    """A sentence about a product."""

    type_name = "product_description"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ProductMaterialField(Field):
    """What a product is made of, such as Cotton."""

    type_name = "product_material"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ProductNameField(Field):
    """The name of a product, such as Rustic Walnut Desk Lamp."""

    type_name = "product_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ProductSubcategoryField(Field):
    """A part of a product category, such as Kettles."""

    type_name = "product_subcategory"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class RetailDepartmentField(Field):
    """A department of a shop, such as Garden."""

    type_name = "retail_department"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class Sbn9Field(Field):
    """A Standard Book Number of nine characters with a valid check digit."""

    type_name = "sbn9"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SKUField(Field):
    """A stock keeping unit with the category as prefix, such as FUR-7K2M9X.

    length: Number of characters after the hyphen.
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
    """A US article number (UPC-A) with a valid check digit, from the in-store range."""

    type_name = "upc"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})
