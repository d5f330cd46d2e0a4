"""Measure the cost of masking in nanoseconds per value, compared with Python code that masks value by value.

.venv/bin/python bench/masking.py [--rows 1000000] [--rounds 1]

Five sensitive columns of a table of customers are masked in blocks. The comparison does what a pipeline of
operators does with each value: it reads the value, selects an operation by its kind, and creates another
value with HMAC-SHA256. It does less than Rowsmith: two different digits or letters can be replaced by the
same one, and names can stay unchanged. One core, wall clock; the minimum of the rounds, and the ratio at the
end.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pyarrow as pa

from bench.generate import one_core
from webapp.engine.data import vocabulary
from webapp.engine.masking import KeyRing, Masker, create_masker
from webapp.engine.plan import bind_fields
from webapp.engine.spec import parse

BLOCK = 65_536
KEY = b"benchmark".ljust(32, b".")
FIELDS = [
    {"name": "email", "type": "email", "masking": {"strategy": "format_preserve"}},
    {"name": "phone", "type": "phone_number", "masking": {"strategy": "format_preserve"}},
    {"name": "card", "type": "credit_card_number", "masking": {"strategy": "format_preserve"}},
    {"name": "first_name", "type": "first_name", "masking": {"strategy": "replace"}},
    {"name": "customer", "type": "words", "masking": {"strategy": "tokenize"}},
]
EMAIL = re.compile(r"([^@\s]+)@([\w.-]+)")
PHONE = re.compile(r"\+?[\d ()-]{7,20}")
CARD = re.compile(r"\d{13,19}")


def columns(rows: int) -> dict[str, list[str]]:
    """A table of customers, in which all values except first names are distinct."""
    names = vocabulary.open_default().words("first_name_female", "en_US").to_pylist()
    return {
        "email": [f"anna.b{at}@mail{at % 50}.org" for at in range(rows)],
        "phone": [f"+49 170 {at:08d}" for at in range(rows)],
        "card": [f"411111{at:010d}" for at in range(rows)],
        "first_name": [names[at % len(names)] for at in range(rows)],
        "customer": [f"C-{at:09d}" for at in range(rows)],
    }


def ours(maskers: dict[str, Masker], table: dict[str, pa.Array]) -> None:
    """Mask every column, block by block."""
    for name, column in table.items():
        for low in range(0, len(column), BLOCK):
            maskers[name].mask(column.slice(low, BLOCK))


# --- Value by value -----------------------------------------------------------------------------------------


def keyed(value: str) -> bytes:
    """Return the keyed bytes of one value."""
    return hmac.new(KEY, value.encode(), hashlib.sha256).digest()


def letters_and_digits(value: str) -> str:
    """Replace each letter and digit by another one."""
    bits = keyed(value)
    result = []
    for at, item in enumerate(value):
        draw = bits[at % len(bits)]
        if item.isdigit():
            result.append(chr(48 + draw % 10))
        elif item.isalpha():
            result.append(chr((65 if item.isupper() else 97) + draw % 26))
        else:
            result.append(item)
    return "".join(result)


def email(value: str) -> str:
    """Mask the part before the @."""
    found = EMAIL.fullmatch(value)
    return f"{letters_and_digits(found[1])}@{found[2]}" if found else letters_and_digits(value)


def phone(value: str) -> str:
    """Mask everything except the country."""
    return value[:4] + letters_and_digits(value[4:]) if PHONE.fullmatch(value) else letters_and_digits(value)


def card(value: str) -> str:
    """Mask the digits between prefix and check digit, and recalculate the check digit."""
    if not CARD.fullmatch(value):
        return letters_and_digits(value)
    body = value[:6] + letters_and_digits(value[6:-1])
    total = 0
    for at, item in enumerate(reversed(body)):
        digit = int(item) * (2 if at % 2 == 0 else 1)
        total += digit - 9 if digit > 9 else digit
    return f"{body}{-total % 10}"


def token(value: str) -> str:
    """A token."""
    return f"tok_{keyed(value).hex()[:26]}"


def peer(table: dict[str, list[str]]) -> None:
    """Mask every column, value by value."""
    names = vocabulary.open_default().words("first_name_female", "en_US").to_pylist()

    def first_name(value: str) -> str:
        return names[int.from_bytes(keyed(value)[:8], "big") % len(names)]

    operators: dict[str, Callable[[str], str]] = {
        "email": email, "phone": phone, "card": card, "first_name": first_name, "customer": token,
    }  # fmt: skip
    for name, values in table.items():
        operate = operators[name]
        for value in values:
            operate(value)


def least(rounds: int, work: Callable[[], None]) -> float:
    """Return the seconds of the fastest round."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=1)
    request = arguments.parse_args()
    one_core()
    values = columns(request.rows)
    table = {name: pa.array(column) for name, column in values.items()}
    keys, words = KeyRing(1, {1: KEY}), vocabulary.open_default()
    maskers = {
        field.name: create_masker(field, words, keys, bind_fields, run_id="bench")
        for field in parse(FIELDS).fields
    }
    totals = [0.0, 0.0]
    print(f"{request.rows:,} rows, ns per value{'':8}Rowsmith  value by value   ratio")
    for name in values:
        mine = least(request.rounds, lambda: ours(maskers, {name: table[name]}))  # noqa: B023
        theirs = least(request.rounds, lambda: peer({name: values[name]}))  # noqa: B023
        totals[0] += mine
        totals[1] += theirs
        each = 1e9 / request.rows
        print(
            f"{name:14}{maskers[name].strategy:18}{mine * each:10.0f}{theirs * each:16.0f}{theirs / mine:8.1f}"
        )
    print(f"{'all five':32}{totals[0]:9.2f}s{totals[1]:15.2f}s{totals[1] / totals[0]:8.1f}")


if __name__ == "__main__":
    main()
