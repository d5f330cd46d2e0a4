"""What a column's name means beside the name of its table: a department's title is no "Mr.".

The table's noun decides for columns that do not say whose name, title or code they hold (`countries.name`,
`Category.CategoryName`, `city.city`); a column that names another thing (`books.publisher`) is read by that one.
Other columns of the table and a sample tell persons from things, and forms of address from jobs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from webapp.connectors.shape import Column, Entity
from webapp.engine import guess
from webapp.engine.fields import find
from webapp.services import inferred_words as words
from webapp.services.column_asked import Asked
from webapp.services.inferred_words import Meaning

_GENERIC: Final = words.CALLED | words.CODED | {"id", "number", "type", "symbol", "hex"}
NAMING: Final = frozenset(
    "country city state continent language currency_name department job_title product_category company_name"
    " color".split()
)
"""Types whose values are what a thing is called."""
FEW: Final = NAMING | {"country_code", "currency_code", "state_abbr"}
"""Types of few values that a unique column takes all the same, as long as they last."""
_FORM_OF_ADDRESS: Final = 10  # chosen: characters up to which a person's title is "Mr." rather than a job
_MEANT_ALIKE: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    **dict.fromkeys(("fax", "…_fax"), ("phone_number", {})),
    **dict.fromkeys(("home_page", "webpage", "permalink"), ("url", {})),
    **dict.fromkeys(("street1", "street2", "line1"), ("street_address", {})),
    **dict.fromkeys(("title_of_courtesy", "salutation", "…_salutation"), ("title", {})),
    "user_pass": ("password_hash", {}),
    "subtitle": ("words", {"count": 4}),
    "tagline": ("slogan", {}),
    **dict.fromkeys(("excerpt", "summary"), ("sentences", {})),
    **dict.fromkeys(("content", "body_html", "synopsis", "plot", "biography"), ("paragraphs", {})),
    "nicename": ("username", {}),
    "district": ("state", {}),  # mostly the region of an address
    "product_type": ("product_category", {}),
    "byline": ("name", {}),
    "cell": ("mobile", {}),
}
"""By whole names, and by what names end with (after …)."""


@dataclass(frozen=True, slots=True)
class Meant:
    """A type that names suggest. `sure`: the thing is known, so that its values are what belongs here even where they
    are few, or where a sample has but a shape."""

    type: str
    options: dict[str, Any]
    common: dict[str, Any]
    sure: bool = False


def meant(asked: Asked) -> Meant:
    """What the names of a column and its table mean together; words where they mean nothing."""
    column, table = asked.column, Table.of(asked.entity)
    name = words.split(column.name)
    said = _alone(name, table)
    if said is None and (named := _by_noun(name, table, asked)) is not None:
        said = _fitted(named, column, asked.values)
    if said is not None:
        return said
    kind = guess.type_of("_".join(name))
    return Meant(kind, dict(guess.STARTERS.get(kind, {})), {})


@dataclass(frozen=True, slots=True)
class Table:
    """The nouns of a table's name, and what its other columns tell of it."""

    nouns: tuple[str, ...]
    personal: bool
    reached: bool
    unnamed: bool
    """No column says what a row is called."""

    @classmethod
    def of(cls, entity: Entity) -> Table:
        """Of `shop.tbl_product_categories`: product, category."""
        every = words.split(entity.parts[-1] if entity.parts else entity.name)
        kept = [one for one in every if one not in words.NOISE] or every
        while len(kept) > 1 and words.singular(kept[-1]) in (*words.ABOUT, "title"):
            kept = kept[:-1]
        beside = {"_".join(words.split(one.name)) for one in entity.fields}
        return cls(
            (*kept[:-1], words.singular(kept[-1])) if kept else (),
            bool(beside & words.PERSONAL) or any(one.startswith("employee_") for one in beside),
            bool(beside & words.REACHED),
            not any(one in words.CALLED or one.endswith(("_name", "_title")) for one in beside),
        )

    @property
    def noun(self) -> str:
        """The thing that a row stands for: the last noun that is known, else the last."""
        return _known(self.nouns) or (self.nouns[-1] if self.nouns else "")

    @property
    def is_person(self) -> bool:
        """Whether a row stands for a person."""
        noun = self.noun
        if noun in words.THINGS or noun in words.WORKS:
            return False
        return self.personal or words.is_person(noun)


def _known(nouns: Sequence[str]) -> str:
    """The noun at the end of some that means something: also of two written as one (`productcategory`, `time zone`)."""
    if not nouns:
        return ""
    last = words.singular(nouns[-1])
    for one in ("".join((*nouns[-2:-1], last)), last):
        if _means(one):
            return one
    glued = (
        one
        for one in (*words.THINGS, *words.WORKS, *words.PERSONS)
        if len(one) >= _GLUED and last.endswith(one) and len(last) >= len(one) + _BEFORE
    )
    return max(glued, key=len, default="")


_GLUED: Final = 7  # chosen: `productcategory` is a category, an export no port
_BEFORE: Final = 3  # chosen: an allocation is no location


def _means(noun: str) -> bool:
    return noun in words.THINGS or noun in words.WORKS or noun in words.PERSONS


def _alone(said: Sequence[str], table: Table) -> Meant | None:
    """What a column's name means whatever its table is."""
    joined, rest = "_".join(said), "_".join(_without(said, table.nouns))
    for called in (joined, rest, f"…_{said[-1]}" if said else ""):
        if called in _MEANT_ALIKE:
            kind, options = _MEANT_ALIKE[called]
            return Meant(kind, dict(options), {})
    if joined in _GENERIC or tuple(said) == table.nouns:
        return None
    found = find("".join(said))
    if found is None or (found.name == "title" and joined != "honorific"):
        return None
    return Meant(found.name, dict(guess.STARTERS.get(found.name, {})), {})


_SHORT: Final = 60  # chosen: characters of a description that is a name


def _by_noun(said: list[str], table: Table, asked: Asked) -> Meaning | None:
    """By the thing that the column names, else by the one that the table does."""
    rest = _without(said, table.nouns)
    part = "_".join(rest) or "name"
    if part == "description" and table.unnamed and (asked.column.max_length or 999) <= _SHORT:
        part = "name"  # the only text that says which one it is
    if part == table.noun[:1] + "name":  # DEPT.DNAME
        part = "name"
    if part in _GENERIC:
        return _of_table(part, table, asked)
    if part.removeprefix(f"{table.noun}_") in _GENERIC:
        return _of_table(part.removeprefix(f"{table.noun}_"), table, asked)
    for size in (2, 1):  # `country_name`, `state iso code`
        if len(rest) > size and (ending := "_".join(rest[-size:])) in _GENERIC:
            return _of_noun(rest[:-size], ending, asked)
    return _of_noun(rest, "name", asked, whole=True)


def _without(said: Sequence[str], nouns: Sequence[str]) -> list[str]:
    """A column's words without those of its table at their front."""
    rest = list(said)
    for noun in nouns:
        if rest and words.singular(rest[0]) == words.singular(noun):
            rest = rest[1:]
    return rest


def _of_table(part: str, table: Table, asked: Asked) -> Meaning | None:
    noun = table.noun
    if noun in words.THINGS:
        return _thing(noun, part, asked)
    if part not in words.CALLED:
        return None
    if noun == "title" and table.personal:
        return words.JOB
    if noun in words.WORKS and not (table.personal and words.is_person(noun)):
        return words.TITLED
    if table.is_person:
        return _of_person(noun, part, asked)
    if part in words.TITLES:
        return words.HONORIFIC if _addresses(asked.values) else words.TITLED
    return words.PERSON if table.reached else words.NAMED


def _of_person(noun: str, part: str, asked: Asked) -> Meaning:
    if part not in words.TITLES:
        return words.PERSON
    if _addresses(asked.values):
        return words.HONORIFIC
    length = asked.column.max_length
    if asked.values or (noun in words.EMPLOYED and (length is None or length > _FORM_OF_ADDRESS)):
        return words.JOB
    return words.HONORIFIC


def _addresses(values: Sequence[Any]) -> bool:
    """Whether a sample is of forms of address for the most part."""
    found = [str(one).strip().rstrip(".").casefold() in words.HONORIFICS for one in values]
    return bool(found) and 2 * sum(found) > len(found)


def _thing(noun: str, part: str, asked: Asked) -> Meaning | None:
    """A part of a thing: its name, its code. A text key of few characters is a code too."""
    parts = words.THINGS[noun]
    if part in parts:
        return parts[part]
    if part in words.CALLED:
        return parts["name"]
    if part in words.CODED or (
        part == "id" and asked.column.type == "text" and (asked.column.max_length or 9) <= 3
    ):
        return parts.get("code")
    return None


def _of_noun(nouns: Sequence[str], part: str, asked: Asked, whole: bool = False) -> Meaning | None:
    """By a noun that the column has itself. `whole`: it has no more than that (`publisher`, not `publisher_name`)."""
    noun = words.singular(nouns[-1])
    noun = noun if _means(noun) else (_known(nouns) if not whole else noun)
    if whole and noun in words.VAGUE:
        return None
    if noun in words.THINGS:
        return _thing(noun, part, asked)
    if noun in words.PERSONS or (words.is_person(noun) and not whole):
        return _of_person(noun, part, asked) if part in words.CALLED else None
    if whole or part not in words.CALLED:
        return None
    if noun in words.WORKS or part in words.TITLES:
        return words.TITLED
    return words.NAMED if part == "name" and not _PERSONAL_NAME.fullmatch(nouns[-1]) else None


_PERSONAL_NAME: Final = re.compile(
    "first|last|middle|maiden|given|family|full|display|nick|legal|preferred|ship|bill|shipping|billing|birth|real|pen|stage"
)


def _fitted(made: Meaning, column: Column, values: Sequence[Any]) -> Meant | None:
    """A meaning with what the column's length and a sample say of it; None where the sample contradicts it."""
    kind, options, common = made
    texts = [one.strip() for one in values if isinstance(one, str)]
    if kind in ("country_code", "currency_code") or options.get("format") == "code":
        if any(not re.fullmatch(r"[A-Za-z]{2,3}", one) for one in texts):
            return None
        size = max(map(len, texts), default=column.max_length or 2)
        if kind == "country_code" and size == 3:
            options = {"format": "alpha3"}
    if kind == "name" and texts and all(re.fullmatch(r"[a-z0-9._-]+", one) for one in texts):
        kind = "username"
    return Meant(kind, dict(options), dict(common), sure=kind not in ("words", "sku"))
