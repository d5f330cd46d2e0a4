"""Products in other languages than English: our own lists of things, and of what their names add.

A name is an adjective that agrees with the thing, the thing, and a colour, size or age: "Moderne Schreibtischlampe in
Schwarz". ``products.txt`` has for each language the lists

    categories  names of the categories of `THINGS`, in their order
    things      the things of `THINGS` in their order, each with the number of its forms after an @ (default 0);
                - for a thing of which the word is not certain, which the language then does not have
    hard, soft  adjectives of durable goods and of food and cosmetics: the forms with / between, or a stem whose endings
                `endings` gives
    endings     endings of the forms of a stem (none: adjectives do not change)
    after       1 if adjectives follow the thing
    joint       there is no blank between adjective and thing
    colors      how a colour follows the thing
    units       g, kg, ml and l, as they follow a number; _ is a blank
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pyarrow as pa

from webapp.engine.data.extract import goods
from webapp.engine.data.extract_3.locales import LOCALES
from webapp.engine.data.extract_4.tools import listed_by

THINGS: tuple[tuple[str, str], ...] = (
    # category of the English catalogue; what the names of its seven things end with
    ("Furniture", "c c c c c c c"),
    ("Kitchen", "c c c c c c c"),
    ("Clothing", "c c c c c c c"),
    ("Electronics", "c c c c c c c"),
    ("Food & Drink", "s l s s s s s"),
    ("Beauty", "p s p p p p c"),
    ("Garden", "c c c c c c c"),
    ("Office", "c c c c c c c"),
    ("Sports", "c c c c c c c"),
    ("Toys & Games", "a a a a a a a"),
)
"""Of each category: armchair, bookcase, dining table, office chair, sofa, wardrobe, bed; cooking pot, frying pan,
teapot, kitchen knife, coffee maker, cutting board, mug; shirt, dress, jacket, sweater, trousers, scarf, skirt;
desk lamp, headphones, keyboard, charger, loudspeaker, tablet, camera; honey, olive oil, green tea, coffee,
chocolate, jam, mustard; shampoo, soap, hand cream, perfume, shower gel, face cream, hairbrush; watering can,
garden hose, flower pot, rake, spade, lantern, garden bench; notebook, ballpoint pen, stapler, calculator, ring
binder, pencil case, wall clock; football, bicycle helmet, backpack, sleeping bag, tent, yoga mat, sports bag;
doll, teddy bear, toy car, jigsaw puzzle, board game, kite, wooden train."""
_SOFT = "slp"
_CLOSE = ",（"
"""Signs that follow a word without a blank."""
_SIZES = {
    "s": ((100, "g"), (250, "g"), (500, "g"), (1, "kg")),
    "l": ((250, "ml"), (500, "ml"), (750, "ml"), (1, "l")),
    "p": ((50, "ml"), (100, "ml"), (200, "ml"), (300, "ml")),
}
_AGES = ("3+", "4+", "6+", "8+")
_UNITS = ("g", "kg", "ml", "l")


def languages() -> tuple[str, ...]:
    """Languages, and locales of which the words differ from those of their language, with products of their own."""
    return tuple(listed_by("products")["things"])


def locales() -> pa.Table:
    """(locale, name): which of `languages` the products of a locale are in; none for locales without products."""
    known = languages()
    rows = [
        (locale, name) for locale in LOCALES for name in (locale, locale.partition("_")[0]) if name in known
    ]
    first = dict(reversed(rows))  # of two, the locale's own
    return pa.table({"locale": list(first), "name": list(first.values())})


def _of(what: str, name: str) -> list[str]:
    found = listed_by("products").get(what, {})
    return found.get(name) or found.get(name.partition("_")[0]) or []


@cache
def _things(name: str) -> list[tuple[str, int, str, int]]:
    """(thing, number of its forms, kind of what its name ends with, category) in their order."""
    made = []
    words = _of("things", name)
    kinds = [(kind, at) for at, (_, kinds) in enumerate(THINGS) for kind in kinds.split()]
    if len(words) != len(kinds) or len(_of("categories", name)) != len(THINGS):
        raise ValueError(
            f"products of {name}: {len(words)} things, {len(_of('categories', name))} categories"
        )
    for word, (kind, category) in zip(words, kinds, strict=True):
        if word == "-":
            continue
        thing, _, form = word.partition("@")
        made.append((thing, int(form or 0), kind, category))
    return made


def _forms(name: str, adjective: str) -> list[str]:
    endings = _of("endings", name)
    if "/" in adjective or not endings:
        return adjective.split("/")
    return [adjective + ending for ending in endings]


def _tails(name: str, kind: str) -> list[str]:
    if kind == "c":
        colors = _of("colors", name)
        return ["", *(color if color[0] in _CLOSE else f" {color}" for color in colors)]
    if kind == "a":
        return ["", *(f" {age}" for age in _AGES)]
    units = dict(zip(_UNITS, (unit.replace("_", " ") for unit in _of("units", name)), strict=True))
    return ["", *(f" {amount}{units[unit]}" for amount, unit in _SIZES[kind])]


@cache
def _blocks(name: str) -> dict[tuple[int, str], list[tuple[str, str]]]:
    """{(number of the forms, kind): what is before and after the thing}, without the bare thing."""
    after = bool(_of("after", name))
    joint = "" if _of("joint", name) else " "
    made: dict[tuple[int, str], list[tuple[str, str]]] = {}
    for _, form, kind, _ in _things(name):
        if (form, kind) in made:
            continue
        adjectives = _of("soft" if kind in _SOFT else "hard", name)
        pairs = []
        for forms in ([""], *(_forms(name, adjective) for adjective in adjectives)):
            word = forms[min(form, len(forms) - 1)]
            for tail in _tails(name, kind):
                if not word:
                    pairs.append(("", tail))
                elif after:
                    pairs.append(("", f"{joint}{word}{tail}"))
                else:
                    pairs.append((f"{_capital(word, name)}{joint}", tail))
        if len(set(pairs)) != len(pairs):
            raise ValueError(f"products of {name}: two names are the same")
        made[form, kind] = pairs
    return made


def _capital(word: str, name: str) -> str:
    """A word at the beginning of a name; Georgian has no capitals in running text."""
    if name == "ka":
        return word
    first = "İ" if word[0] == "i" and name in ("tr", "az") else word[0].upper()
    return first + word[1:]


def _starts(name: str) -> Iterator[tuple[tuple[int, str], int, int]]:
    start = 0
    for key, pairs in _blocks(name).items():
        yield key, start, len(pairs)
        start += len(pairs)


def things(name: str) -> Callable[[], pa.Table]:
    """A source of (product, inner, category, code, start, count): what a thing is called by itself and behind an
    adjective, its category with the code of stock numbers, and its rows of `epithets`."""

    def make() -> pa.Table:
        found, ranges = _things(name), {key: (start, count) for key, start, count in _starts(name)}
        categories = _of("categories", name)
        codes = [goods.CATALOGUE[english][0] for english, _ in THINGS]
        after = bool(_of("after", name))
        titles = [_capital(thing, name) for thing, *_ in found]
        if len(set(titles)) != len(titles):
            raise ValueError(
                f"products of {name}: {sorted({one for one in titles if titles.count(one) > 1})} twice"
            )
        spans = [ranges[form, kind] for _, form, kind, _ in found]
        return pa.table(
            {
                "product": titles,
                "inner": titles if after else [thing for thing, *_ in found],
                "category": [categories[at] for *_, at in found],
                "code": [codes[at] for *_, at in found],
                "start": pa.array([start for start, _ in spans], pa.int32()),
                "count": pa.array([count for _, count in spans], pa.int32()),
            }
        )

    return make


def epithets(name: str) -> Callable[[], pa.Table]:
    """A source of (before, after): what a name has before and after the thing."""

    def make() -> pa.Table:
        pairs = [pair for found in _blocks(name).values() for pair in found]
        return pa.table({"before": [pair[0] for pair in pairs], "after": [pair[1] for pair in pairs]})

    return make
