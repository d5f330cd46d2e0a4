"""What may be learnt from a sample of a column without taking a value of it over: shapes, ranges, a few plain words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any, Final

from webapp import limits

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z _/&-]*[A-Za-z]|[A-Z]")
_SHAPED: Final = re.compile(r"[!-~]+(?: [!-~]+)*")


_KINDS_OF: Final = frozenset(
    "status state type kind category class level priority role method channel mode unit size color colour stage"
    " segment tier severity outcome result source origin region carrier shipping payment currency plan grade".split()
)
"""Names of columns whose words sort rows into kinds. The words of others might be somebody's name."""


def few_words(name: str, values: Sequence[Any]) -> list[str] | None:
    """The values of a column that holds a few plain words over and over, and is called as such columns are; None for
    any other."""
    if len(values) < limits.INFER_FEW or not _KINDS_OF & set(re.findall("[a-z]+", _split(name))):
        return None
    counted = Counter(values)
    if not 1 < len(counted) <= limits.INFER_WORDS or len(values) < limits.INFER_REPEATS * len(counted):
        return None
    words = [one for one in counted if isinstance(one, str) and _WORD.fullmatch(one)]
    if len(words) != len(counted) or max(map(len, words)) > limits.INFER_WORD_CHARS:
        return None
    return sorted(words)


def shape(values: Sequence[Any]) -> str | None:
    """A regular expression for the one shape that all values have: which places are capitals, small letters, digits
    or the same sign. None where they differ, or are words."""
    texts = {one for one in values if isinstance(one, str)}
    if len(texts) < limits.INFER_FEW or len(texts) < len(set(values)):
        return None
    shapes = {tuple(map(_class, one)) for one in texts}
    first = next(iter(texts))
    if len(shapes) != 1 or not _SHAPED.fullmatch(first) or len(first) > limits.INFER_SHAPE_CHARS:
        return None
    (only,) = shapes
    if "[0-9]" not in only and not {"-", "_", "/", "."} & set(only) and len(only) > 3:
        return None  # words of equal length
    return "".join(_repeated(one, len(list(run))) for one, run in groupby(only))


def _split(name: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).lower()


def _class(letter: str) -> str:
    if letter.isdigit():
        return "[0-9]"
    if letter.isalpha():
        return "[A-Z]" if letter.isupper() else "[a-z]"
    return letter


def _repeated(one: str, times: int) -> str:
    piece = one if one.startswith("[") and len(one) > 1 else re.escape(one)
    return piece if times == 1 else f"{piece}{{{times}}}"


def rounded(value: Decimal, down: bool) -> Decimal:
    """A bound of a range with its first two digits, away from the values."""
    if value == 0:
        return value
    place = Decimal(1).scaleb(value.adjusted() - 1)
    way = "ROUND_FLOOR" if down else "ROUND_CEILING"
    return (value / place).to_integral_value(way) * place
