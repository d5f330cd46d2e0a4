"""Measure the cost of a value of every field type over 100,000 rows, compared with Faker where it has an
equivalent.

.venv/bin/python bench/field_types.py [name ...] [--rounds 3] [--markdown]

For each registered type with minimal options: nanoseconds per value (a template with only that field, block
by block, the minimum of the rounds, one core, processor time), the same for the equivalent Faker method, and
the ratio. Types above 1,000 ns are marked; if one of them is not in `EXCEPTIONS`, the program exits with
status 1. Types that read from another system are left out, because their cost depends on that system.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import engine
from bench.generate import one_core
from webapp import limits
from webapp.engine.errors import SpecError
from webapp.engine.types.registry import REGISTRY, FieldType

ROWS = 100_000
_CALLS = 1_000
_SLOW_NS = 1_000

NEEDS: dict[str, dict[str, Any]] = {"faker": {"method": "catch_phrase"}}
"""Options in addition to those of `bench/engine.py`."""
EXCEPTIONS: dict[str, str] = {
    "jwt": "each value is signed: HMAC-SHA256 over its own text, through hashlib",
}
"""Types that may take longer, and why. docs/speed-types.md lists them."""
OUTSIDE = {"db_response", "foreign_key", "api_response", "ai", "source_column"}

# Equivalent Faker methods, with arguments if required.
FAKER: dict[str, str | tuple[str, dict[str, Any]]] = {
    "aba_routing": "aba", "address": "address", "bic": "swift",
    "boolean": "pybool", "buzzword": "bs", "catch_phrase": "catch_phrase", "city": "city", "color": "color_name",
    "company_email": "company_email", "company_name": "company", "coordinates": "latlng", "country": "country",
    "country_code": "country_code", "credit_card_number": "credit_card_number", "cvv": "credit_card_security_code",
    "credit_card_type": "credit_card_provider", "card_expiry": "credit_card_expire", "currency": "pricetag",
    "currency_code": "currency_code", "currency_name": "currency_name", "currency_symbol": "currency_symbol",
    "date": "date_between", "date_of_birth": "date_of_birth", "datetime": "date_time", "domain_name": "domain_name",
    "ean13": "ean13", "ean8": "ean8", "ein": "ein", "email": "email", "emoji": "emoji", "epoch": "unix_time",
    "faker": "catch_phrase", "file_name": "file_name", "file_path": "file_path", "first_name": "first_name",
    "float": "pyfloat", "hex_color": "hex_color", "hostname": "hostname", "http_method": "http_method",
    "http_status": "http_status_code", "iban": "iban", "image_url": "image_url", "ipv4": "ipv4", "ipv6": "ipv6",
    "isbn": "isbn13", "job_title": "job", "language": "language_name", "last_name": "last_name", "latitude": "latitude",
    "license_plate": "license_plate", "longitude": "longitude", "mac_address": "mac_address", "md5": "md5",
    "mime_type": "mime_type", "mobile": "phone_number", "month": "month_name", "name": "name", "number": "pyint",
    "paragraphs": "paragraph", "passport_number": "passport_number",
    "password": "password", "phone_number": "phone_number", "port": "port_number", "price": "pricetag",
    "random_string": "pystr", "regexp": ("bothify", {"text": "??-####"}), "rgb_color": "rgb_color",
    "safe_email": "safe_email", "sentences": "sentence", "sha1": "sha1", "sha256": "sha256", "slug": "slug",
    "ssn": "ssn", "state": "state", "state_abbr": "state_abbr", "street_address": "street_address",
    "street_name": "street_name", "street_number": "building_number", "suffix": "suffix", "time": "time",
    "time_zone": "timezone", "title": "prefix", "tld": "tld", "url": "url", "user_agent": "user_agent",
    "username": "user_name", "uuid": "uuid4", "vin": "vin", "weekday": "day_of_week", "words": "word",
    "year": "year", "zip_code": "zipcode", "account_number": "bban", "address_line_2": "secondary_address",
    "custom": ("random_element", {"elements": ["red", "green", "blue"]}), "duration": "time_delta",
    "character_sequence": ("bothify", {"text": "???-###"}), "digit_sequence": ("numerify", {"text": "######"}),
}  # fmt: skip


@dataclass
class Cost:
    """ns per value, for Rowsmith and Faker."""

    name: str
    ours: float
    theirs: float | None

    @property
    def ratio(self) -> float | None:
        """How many times longer Faker takes."""
        return None if self.theirs is None else self.theirs / self.ours


def ours(kind: type[FieldType], rounds: int) -> float:
    """Return ns per value over `ROWS` rows."""
    engine.NEEDS.update(NEEDS)
    bound = engine.compiled(engine.template(kind))
    size = min(limits.BLOCK_ROWS, bound.block_rows)
    last = bound.plan.layer.columns["x"].type.available_rows(bound.states["x"])
    rows = min(ROWS, last or ROWS)
    starts = range(0, rows, size)
    bound.block(0, size)
    result = engine.least(lambda: [bound.block(at, min(size, rows - at)) for at in starts], rounds, 1)
    return result / rows * 1e9


def theirs(name: str, generator: Any, rounds: int) -> float | None:
    """Return ns per call of the Faker method, if there is one."""
    known = FAKER.get(name)
    if known is None:
        return None
    method, arguments = (known, {}) if isinstance(known, str) else known
    call = getattr(generator, method)
    call(**arguments)
    return engine.least(lambda: [call(**arguments) for _ in range(_CALLS)], rounds, 1) / _CALLS * 1e9


def measured(kinds: list[type[FieldType]], rounds: int) -> list[Cost]:
    """Return the cost of each type. Types that cannot be compiled are reported and left out."""
    from faker import Faker

    generator = Faker("en_US")
    generator.seed_instance(1)
    found = []
    for kind in kinds:
        try:
            found.append(Cost(kind.name, ours(kind, rounds), theirs(kind.name, generator, rounds)))
        except SpecError as error:
            print(f"{kind.name}: {error.faults[0].path}: {error.faults[0].message}", file=sys.stderr)
    return found


def show(costs: list[Cost], markdown: bool) -> None:
    """Print the table, and the types above the limit."""
    if markdown:
        _print_table(costs)
    for cost in [] if markdown else costs:
        faker = "" if cost.theirs is None else f"{cost.theirs:,.0f}"
        ratio = "" if cost.ratio is None else f"{cost.ratio:,.0f} x"
        mark = "  above 1,000 ns" if cost.ours > _SLOW_NS else ""
        print(f"{cost.name:<22}{cost.ours:>10,.1f}{faker:>12}{ratio:>10}{mark}", flush=True)
    middle = sorted(cost.ours for cost in costs)[len(costs) // 2]
    print(f"\n{len(costs)} types, median {middle:,.0f} ns per value")
    with_peer = sorted(cost.ratio for cost in costs if cost.ratio is not None)
    if with_peer:
        least, median = with_peer[0], with_peer[len(with_peer) // 2]
        print(f"Faker: {len(with_peer)} equivalents, median {median:,.0f} x, minimum {least:,.1f} x")


def _print_table(costs: list[Cost]) -> None:
    """Print the table of docs/speed-types.md, sorted by name."""
    print("| type | ns per value | Faker |\n|---|---:|---:|")
    for cost in sorted(costs, key=lambda cost: cost.name):
        print(
            f"| `{cost.name}` | {cost.ours:,.0f} | {'' if cost.ratio is None else f'{cost.ratio:,.0f} x'} |"
        )


def main() -> int:
    """Parse the command line and run. Return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="types to measure (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/speed-types.md")
    value = parser.parse_args()
    one_core()
    named = [kind for kind in REGISTRY if not value.names or kind.name in value.names]
    costs = measured([kind for kind in named if kind.name not in OUTSIDE], value.rounds)
    if not costs:
        return 1
    show(costs, value.markdown)
    slow = {cost.name for cost in costs if cost.ours > _SLOW_NS}
    for name in sorted(slow):
        print(f"above {_SLOW_NS:,} ns: {name}: {EXCEPTIONS.get(name, 'no documented reason')}")
    return 1 if slow - set(EXCEPTIONS) else 0


if __name__ == "__main__":
    sys.exit(main())
