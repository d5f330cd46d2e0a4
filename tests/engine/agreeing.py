"""Rows of templates whose fields share a thing: every type that is in a group, in five locales."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from unicodedata import normalize

from webapp.engine import groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse

NOW = datetime(2026, 2, 28, 12, tzinfo=UTC)
ROWS = 10_000
LOCALES = (None, "en_US", "de_DE", "ja_JP", "pt_BR")

PERSON = (
    "first_name", "last_name", "name", "sex", "title", "suffix", "username", "email", "safe_email", "age",
    "date_of_birth", "marital_status",
)  # fmt: skip
PLACE = (
    "city", "state", "state_abbr", "zip_code", "country", "country_code", "time_zone", "latitude", "longitude",
    "coordinates", "phone_number", "mobile", "continent", "language", "nationality", "address",
)  # fmt: skip
MONEY = ("currency_code", "currency_name", "currency_symbol")
COMPANY = ("company_name", "company_email", "domain_name", "url")
CARD = ("credit_card_number", "credit_card_type", "cvv", "card_expiry")
GOODS = ("product", "product_name", "product_category", "sku")
EVERYTHING = PERSON + PLACE + MONEY + COMPANY + CARD + GOODS

TITLES = {
    None: {"female": "Ms.", "male": "Mr."},
    "en_US": {"female": "Ms.", "male": "Mr."},
    "de_DE": {"female": "Frau", "male": "Herr"},
    "ja_JP": {"female": "様", "male": "様"},
    "pt_BR": {"female": "Sra.", "male": "Sr."},
}


def made(*fields: dict, locale: str | None = None, seed: str = "agree", **overrides) -> BoundPlan:
    plan = compile_plan(groups.assign(parse(list(fields), locale=locale)), vocabulary.open_default())
    return BoundPlan(plan, GenerationContext(seed, NOW), overrides)


def of_types(*types: str) -> list[dict]:
    return [{"name": name, "type": name} for name in types]


def rows(source: BoundPlan, count: int, start: int = 0) -> list[dict]:
    """``count`` rows from ``start`` on."""
    names = source.schema.names
    found: list[dict] = []
    for offset in range(start, start + count, source.block_rows):
        block = source.block(offset, min(source.block_rows, start + count - offset))
        found.extend(
            dict(zip(names, row, strict=True)) for row in zip(*(c.to_pylist() for c in block), strict=True)
        )
    return found


@cache
def everything(locale: str | None) -> list[dict]:
    return rows(made(*of_types(*EVERYTHING), locale=locale), ROWS)


def plain(text: str) -> str:
    """Lower-case letters and digits without accents."""
    folded = normalize("NFKD", text.casefold().replace("ı", "i")).encode("ascii", "ignore").decode()
    return re.sub("[^a-z0-9]", "", folded)


def host(address: str) -> str:
    return address.partition("@")[2]
