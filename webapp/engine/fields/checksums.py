"""Check digits of published numbering schemes, as parts of a `Code`.

Each function answers a part for the place where the check digits stand. Positions count the characters of the code
from 0, gaps apart. Tests hold every scheme to python-stdnum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from webapp.engine.fields.code_parts import Check, Machine

_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
"""Twice a digit, as the sum of its digits."""


def worth(character: str) -> int:
    """0 to 9 for a digit, 10 to 35 for a letter (ISO 13616, ISO 7064)."""
    return int(character, 36)


def weighted(weights: Sequence[int], modulus: int, outputs: Callable[[int], str | None] | str) -> Check:
    """A sum of characters times ``weights[position]``; ``outputs`` tells what a remainder is printed as: a function,
    or a string with one character for each remainder."""

    def value(position: int, character: str) -> int:
        factor = weights[position] if position < len(weights) else 0
        return factor * worth(character) if factor else 0

    return Check(
        modulus, value, tuple(outputs) if isinstance(outputs, str) else tuple(map(outputs, range(modulus)))
    )


def remainder(rest: int) -> str | None:
    """The remainder itself; one of two digits has no check digit."""
    return str(rest) if rest < 10 else None


def complement(modulus: int) -> Callable[[int], str | None]:
    """What is missing to the next multiple of ``modulus``; a number of two digits has no check digit."""
    return lambda rest: remainder(-rest % modulus)


def luhn(width: int, first: int = 0) -> Check:
    """ISO/IEC 7812-1, annex B, over the ``width`` characters from position ``first`` on, check digit after them."""
    last = first + width - 1

    def value(position: int, character: str) -> int:
        if not first <= position <= last:
            return 0
        digit = int(character)
        return digit if (last - position) % 2 else _DOUBLED[digit]

    return Check(10, value, tuple(complement(10)(rest) for rest in range(10)))


def gs1(width: int) -> Check:
    """GS1 General Specifications, section 7.9: weights 3 and 1 from the right, over ``width`` characters."""
    return weighted([3 if (width - place) % 2 else 1 for place in range(width)], 10, complement(10))


def remainder_97(width: int, first: int = 0) -> Check:
    """The ``width`` digits from ``first`` on modulo 97, two digits, 97 for 0."""
    weights = [0] * first + [pow(10, width - 1 - place, 97) for place in range(width)]
    return weighted(weights, 97, lambda rest: f"{rest or 97:02d}")


def mod_97_10(width: int, first: int = 0, whole: int = 98) -> Check:
    """ISO 7064 MOD 97-10 over the ``width`` digits from ``first`` on, two check digits after them. ``whole`` 97
    makes all digits together a multiple of 97, where ISO 7064 leaves a remainder of 1."""
    weights = [0] * first + [pow(10, width + 1 - place, 97) for place in range(width)]
    return weighted(weights, 97, lambda rest: f"{whole - rest:02d}")


def mod_11_10() -> Machine:
    """ISO 7064 MOD 11,10 over the digits before."""

    def step(state: int, character: str) -> int:
        return ((state + int(character)) % 10 or 10) * 2 % 11

    return Machine(11, 10, step, tuple(str((11 - state) % 10) for state in range(11)))


def iban(body: str) -> Check:
    """ISO 13616: check digits at positions 2 and 3, after the country's two letters.

    ``body`` has the kind of every character from position 4 on: ``n`` a digit, ``a`` a letter, which counts as two
    digits. The number is read from there, then the country, then two zeros.
    """
    weights, power = [0, 0, 0, 0], 1_000_000
    for kind in reversed(body):
        weights.insert(4, power % 97)
        power *= 100 if kind == "a" else 10
    weights[0], weights[1] = 10_000 % 97, 100
    return weighted(weights, 97, lambda rest: f"{98 - rest:02d}")
