"""Money: structures of bank account numbers, currencies, prefixes of employers' numbers."""

from __future__ import annotations

from datetime import date

import pyarrow as pa

from webapp.engine.data.extract.locales import LOCALES

CURRENCIES_AS_OF = date(2026, 1, 1)
"""Tender of some country on this day; the library would ask the clock."""


def iban_structures() -> pa.Table:
    """``country`` and ``structure`` (``4!a6!n8!n``) of every country of the IBAN registry."""
    from stdnum import numdb

    entries = numdb.get("iban").prefixes
    countries = [entry[1] for entry in entries]
    return pa.table({"country": countries, "structure": [entry[3]["bban"] for entry in entries]})


def belgian_banks() -> dict[str, list[str]]:
    """Bank codes (three digits) that are given to a bank in Belgium."""
    from stdnum import numdb

    registry = numdb.get("be/banks")
    codes = [f"{code:03d}" for code in range(1000)]
    return {"": [code for code in codes if registry.info(code)[0][1]]}


def employer_prefixes() -> dict[str, list[str]]:
    """First two digits of a US employer identification number."""
    from stdnum import numdb

    registry = numdb.get("us/ein")
    codes = [f"{code:02d}" for code in range(100)]
    return {"": [code for code in codes if registry.info(code)[0][1]]}


def austrian_tax_offices() -> dict[str, list[str]]:
    """First two digits of an Austrian tax number."""
    from stdnum import numdb

    registry = numdb.get("at/fa")
    codes = [f"{code:02d}" for code in range(100)]
    return {"": [code for code in codes if registry.info(code)[0][1]]}


def _codes() -> list[str]:
    import pycountry
    from babel.numbers import get_territory_currencies

    tender = {
        code
        for country in pycountry.countries
        for code in get_territory_currencies(
            country.alpha_2, start_date=CURRENCIES_AS_OF, end_date=CURRENCIES_AS_OF
        )
    }
    return sorted(code for code in tender if pycountry.currencies.get(alpha_3=code))


def currencies() -> pa.Table:
    """``code``, ``symbol`` and ``places`` (decimals of an amount) of every currency that is tender somewhere."""
    from babel.numbers import get_currency_precision, get_currency_symbol

    codes = _codes()
    return pa.table(
        {
            "code": codes,
            "symbol": [get_currency_symbol(code, locale="en") for code in codes],
            "places": pa.array([get_currency_precision(code) for code in codes], pa.int64()),
        }
    )


def currency_names() -> pa.Table:
    """``locale``, ``name``: the names of `currencies`, in their order, for each locale in turn."""
    from babel.numbers import get_currency_name

    codes = _codes()
    return pa.table(
        {
            "locale": [locale for locale in LOCALES for _ in codes],
            "name": [get_currency_name(code, locale=locale) for locale in LOCALES for code in codes],
        }
    )
