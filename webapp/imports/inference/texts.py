"""Fields for columns of texts: what the name means, as far as it fits, else a shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine import guess
from webapp.engine.block import Bound, Env
from webapp.engine.errors import SpecError
from webapp.engine.fields import find
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.imports.inference import names
from webapp.imports.inference.evidence import Asked, Field, definition
from webapp.imports.inference.names import Meant

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


def shape_of(values: Sequence[Any]) -> str | None:
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


_PERSONAL: Final = frozenset({"person", "contact", "place", "finance", "government", "internet"})
_SPEECHLESS: Final = frozenset({"logic", "choice", "structure", "external", "number"})
"""Categories whose types say nothing by their name alone."""
_FEWEST: Final = 2
_PRESENT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MANY: Final = 100_000  # chosen: a unique column for which so many values exist is taken without a word


def text(asked: Asked) -> Field | None:
    """For a column of texts."""
    for made in _texts(asked):
        if _fits(asked, made):
            return made
    return None


def _texts(asked: Asked) -> Iterator[Field]:
    """Suggestions for a column of texts, best first; the last ones fit anything."""
    name, rule, longest = asked.column.name, asked.rule, asked.longest
    if rule.pattern is not None:
        yield definition(name, "regexp", {"string": rule.pattern}, unique=asked.unique)
        asked.notes.append(f"Its pattern cannot be made: {rule.pattern}")
    said = names.meant(asked)
    kind = find(said.type)
    if kind is not None and kind.category in _SPEECHLESS:
        said = names.Meant("words", {}, {})
        kind = find("words")
    # A role is one of few words, and nobody's own.
    about_people = kind is not None and kind.category in _PERSONAL and said.type != "job_title"
    words = None if about_people or asked.unique else few_words(name, asked.values)
    if words is not None and all(word not in rule.excluded for word in words):
        yield definition(name, "enum", {"values": words})
    if said.sure:
        yield from _meant(asked, said)
    shape = shape_of(asked.values)
    if shape is not None and (not about_people or asked.unique):
        yield definition(name, "regexp", {"string": shape}, unique=asked.unique)
    if not said.sure and (said.options or said.type not in (*guess.FALLBACK, "regexp")):
        yield from _meant(asked, said)
    if asked.unique:
        yield from _called(asked, said)
        size = max(rule.shortest, min(longest or 12, 12))
        if 36**size < _MANY:
            asked.notes.append(f"It is unique and short: at most {36**size:,} rows.")
        yield definition(name, "regexp", {"string": f"[A-Z0-9]{{{size}}}"}, unique=True)
        return
    if (
        said.type == "words"
        and not asked.joined
        and (longest is None or longest >= 12)
        and rule.shortest <= 1
    ):
        yield definition(name, "words", {"count": 2})
        if longest is not None:
            yield definition(name, "words", {"count": 2}, formula=f"left(this, {longest})")
    size = max(rule.shortest, min(longest if longest is not None else 8, 8))
    yield definition(name, "regexp", {"string": f"[A-Z0-9]{{{size}}}"})


def _meant(asked: Asked, said: Meant) -> Iterator[Field]:
    """What the names mean, cut to the column's length where it is longer."""
    if asked.joined and not asked.unique and not said.sure:
        return
    common = {**said.common, "unique": asked.unique}
    plain = definition(asked.column.name, said.type, said.options, **common)
    yield plain
    if said.type == "words" and said.options.get("count", 0) > _FEWEST:
        yield definition(asked.column.name, "words", {"count": _FEWEST}, **common)
    if asked.longest is not None and not asked.unique:
        plain.pop("text_case", None)  # a text may grow when its case is changed
        yield {**plain, "formula": f"left(this, {asked.longest})"}


def _called(asked: Asked, said: Meant) -> Iterator[Field]:
    """For a unique column that holds names of which there are too few: words, which read better than letters."""
    if said.sure and said.type in names.NAMING:
        yield definition(asked.column.name, "words", {"count": _FEWEST}, text_case="title", unique=True)


def _fits(asked: Asked, made: Field) -> bool:
    """Whether every value of a field is a text that is as long as the column takes."""
    try:
        plan = compile_plan(parse([made]), asked.vocabulary)
    except SpecError:
        return False
    field = plan.layer.schema.field(0)
    if not pa.types.is_string(field.type):
        return False
    column = plan.layer.columns[made["name"]]
    space = column.type.space()
    if made.get("unique") and made["type"] != "regexp" and (space is None or space < _MANY):
        if made["type"] not in names.FEW or not _lasts(asked, plan):
            return False
        asked.notes.append("It is unique, and there are not many such values: ask for few rows.")
    told = (field.metadata or {}).get(b"max_length")
    if asked.longest is not None and (told is None or int(told) > asked.longest):
        return False
    if asked.rule.shortest or "" in asked.rule.excluded:
        return _long_enough(asked, plan)
    return True


def _lasts(asked: Asked, plan: Any) -> bool:
    """Whether a unique field has values for as many rows as its template makes."""
    try:
        Bound(plan, Env("inference", _PRESENT)).check(0, asked.rows)
    except SpecError:
        return False
    return True


def _long_enough(asked: Asked, plan: Any) -> bool:
    """Whether texts are as long as a check wants: looked at, since no type tells its shortest text."""
    bound = Bound(plan, Env("inference", _PRESENT))
    made = bound.block(0, limits.INFER_ROWS)[0]
    made = made.dictionary_decode() if pa.types.is_dictionary(made.type) else made
    return (pc.min(pc.utf8_length(made)).as_py() or 0) >= max(1, asked.rule.shortest)
