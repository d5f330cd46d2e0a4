"""One page for each locale: ten sample rows, generated when the page is built, and what the locale lacks."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Final

from babel import Locale, UnknownLocaleError

from webapp.documentation.markdown import code, table, text
from webapp.engine import groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.row_templates.services import compilation

ROWS: Final = 10
SEED: Final = "docs"
NOW: Final = "2026-01-01T00:00:00+00:00"
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "People": (
        "name", "gender", "date_of_birth", "marital_status", "job_title", "department", "email", "national_id",
    ),
    "Places": (
        "address", "city", "state", "zip_code", "country", "phone_number", "mobile", "time_zone", "license_plate",
    ),
    "Money and companies": (
        "company_name", "industry", "tax_id", "vat_id", "bank_name", "iban", "bic", "currency_name",
    ),
    "Words": ("month", "weekday", "color", "language", "university", "words"),
}  # fmt: skip
"""The columns of the sample rows. All of them are columns of one template, so that a row is one person at one place."""


def names() -> tuple[str, ...]:
    """The locales of the present vocabulary."""
    return compilation.vocabulary().locales


@cache
def title(name: str) -> str:
    """The English name of a locale, such as German (Austria)."""
    try:
        return Locale.parse(name).get_display_name("en") or name
    except UnknownLocaleError:
        return name


def index() -> str:
    """Return the list of all locales as Markdown."""
    rows = [(code(name), f"[{text(title(name))}](/docs/locales/{name})") for name in names()]
    return (
        f"# Locales\n\nThere are {len(rows)} locales. Set one for a template, or for a field with `locale`; a language"
        " alone, such as `de`, means the first locale of the language. Rows without a locale are of places all over the"
        " world, with texts in English.\n\nA type that has no words in the language of a locale generates English"
        " ones, and a number that a country does not have is blank. Both are reported as warnings of the template, and"
        " on the page of the locale. Rows never have numbers of another country.\n\n"
        + table(("Locale", "Language and country"), rows)
    )


def page(name: str) -> str:
    """Return the page of a locale as Markdown, with sample rows."""
    columns, warnings = _sample(name)
    parts = [
        f"# {text(title(name))}\n\nTen rows of the locale {code(name)} with the seed {code(SEED)}. Each row describes"
        " one person at one place.\n"
    ]
    for heading, kinds in COLUMNS.items():
        shown = [kind for kind in kinds if kind in columns]
        rows = [
            tuple("" if columns[kind][row] is None else text(str(columns[kind][row])) for kind in shown)
            for row in range(ROWS)
        ]
        parts.append(f"\n## {heading}\n\n{table([code(kind) for kind in shown], rows)}")
    lacking = [f"- {text(warning)}\n" for warning in warnings]
    parts.append("\n## What this locale lacks\n\n" + ("".join(lacking) or "Nothing of the columns above.\n"))
    return "".join(parts)


def _sample(name: str) -> tuple[dict[str, list[object]], list[str]]:
    """Columns by type, and the warnings."""
    fields = [{"name": kind, "type": kind} for kinds in COLUMNS.values() for kind in kinds]
    plan = compile_plan(groups.assign(parse(fields, locale=name)), compilation.vocabulary())
    bound = BoundPlan(plan, GenerationContext(SEED, datetime.fromisoformat(NOW)))
    block = bound.block(0, ROWS)
    columns = {kind: column.to_pylist() for kind, column in zip(bound.schema.names, block, strict=True)}
    return columns, [fault.message for fault in bound.warnings]
