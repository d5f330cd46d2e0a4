"""Postal codes: patterns by subdivision (``postal.txt``). Those of the United States are the first extractor's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product

import pyarrow as pa

HEADS_OF_REGION = 200
"""Patterns of one region are spelled out to at most so many heads, evenly chosen."""

_DIGITS = "0123456789"
_LETTERS = {
    "CA": "ABCEGHJKLMNPRSTVWXYZ",  # Canada Post: never D F I O Q U
    "GB": "ABDEFGHJLNPQRSTUWXYZ",  # Royal Mail, inward code: never C I K M O V
    "IE": "ACDEFHKNPRTVWXY",  # Eircode's alphabet
    "NL": "ABCDEGHJKLMNPRTVWXZ",  # PostNL: never F I O Q U Y; without S neither SA, SD nor SS arises
}
_SHAPE = re.compile(r"[#%@]+")
_DIGITS_ONLY = re.compile(r"\^\(?(?:\?:[A-Z]{2}\)\*\()?\\d\{(\d)\}\)?\$")


@dataclass
class PostalCodes:
    """Heads and tails of codes; a code is a head and one of the head's tails."""

    heads: list[str] = field(default_factory=list)
    tail_start: list[int] = field(default_factory=list)
    tail_count: list[int] = field(default_factory=list)
    tails: list[str] = field(default_factory=lambda: [""])
    _shapes: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=lambda: {("",): (0, 1)})

    def add(self, heads: Sequence[str], tails: tuple[str, ...] = ("",)) -> tuple[int, int]:
        """Adds heads that share ``tails``; answers where they lie, as (start, count)."""
        place = self._shapes.get(tails)
        if place is None:
            place = self._shapes[tails] = (len(self.tails), len(tails))
            self.tails.extend(tails)
        start = len(self.heads)
        self.heads.extend(heads)
        self.tail_start.extend(place[0] for _ in heads)
        self.tail_count.extend(place[1] for _ in heads)
        return start, len(heads)

    def head_table(self) -> pa.Table:
        """(text, tail_start, tail_count)."""
        return pa.table(
            {
                "text": pa.array(self.heads, pa.string()),
                "tail_start": pa.array(self.tail_start, pa.int32()),
                "tail_count": pa.array(self.tail_count, pa.int32()),
            }
        )

    def tail_table(self) -> pa.Table:
        """(text), the first of them empty."""
        return pa.table({"text": pa.array(self.tails, pa.string())})


@cache
def _rules() -> dict[str, tuple[str, str, dict[str, list[str]]]]:
    """{country: (pattern of heads, pattern of tails, {region: prefixes})}."""
    made = {}
    for line in files(__package__).joinpath("postal.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        country, shape, *regions = line.split()
        head, _, tail = shape.replace("_", " ").partition("|")
        named = (region.partition("=") for region in regions)
        made[country] = head, tail, {name: _prefixes(listed) for name, _, listed in named}
    return made


def _prefixes(listed: str) -> list[str]:
    made = []
    for part in listed.split(","):
        first, _, last = part.partition("-")
        if not last:
            made.append(first)
            continue
        stem = first.rstrip(_DIGITS)
        low, high = first[len(stem) :], last[len(stem) :]
        made.extend(f"{stem}{number:0{len(low)}d}" for number in range(int(low), int(high) + 1))
    return made


def add_region(codes: PostalCodes, country: str, region: str, expression: str) -> tuple[int, int]:
    """Adds the codes of a region of a country; ``expression`` is what GeoNames says its codes look like, used where
    there is no rule. Answers (start, count); the count is 0 where nothing is known."""
    rule = _rules().get(country)
    if rule is None:
        digits = _DIGITS_ONLY.fullmatch(expression)
        if digits is None:
            return 0, 0
        rest = int(digits[1]) - 2
        return codes.add(_spelled("%#", country), _spelled("#" * rest, country))
    head, tail, regions = rule
    prefixes = regions.get(region, regions.get("*"))
    if prefixes is None:
        return 0, 0
    heads = [text for prefix in prefixes for text in _spelled(_placed(head, prefix, region), country)]
    if len(heads) > HEADS_OF_REGION:
        heads = [heads[i * len(heads) // HEADS_OF_REGION] for i in range(HEADS_OF_REGION)]
    return codes.add(heads, _spelled(tail, country))


def _placed(head: str, prefix: str, region: str) -> str:
    prefix = prefix.replace("{}", region).replace("*", "")
    if "{}" in head:
        return head.replace("{}", prefix)
    found = _SHAPE.search(head)
    if found is None:
        return head
    at = found.start()
    return head[:at] + prefix + head[at + len(prefix) :]


def _spelled(pattern: str, country: str) -> tuple[str, ...]:
    return _all_spelled(pattern, _LETTERS.get(country, ""))


@lru_cache(maxsize=1 << 12)
def _all_spelled(pattern: str, letters: str) -> tuple[str, ...]:
    sets = [{"#": _DIGITS, "%": _DIGITS[1:], "@": letters}.get(ch, ch) for ch in pattern]
    return tuple("".join(chosen) for chosen in product(*sets))
