"""Fields for columns of texts: what the name means, as far as it fits, else a shape."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
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
from webapp.services import column_shapes
from webapp.services.column_asked import Asked, Field, definition

_PERSONAL: Final = frozenset({"person", "contact", "place", "finance", "government", "internet"})
_SPEECHLESS: Final = frozenset({"logic", "choice", "structure", "external", "number"})
"""Categories whose types say nothing by their name alone."""
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
    meant = guess.type_of(name)
    kind = find(meant)
    if kind is not None and kind.category in _SPEECHLESS:
        meant, kind = "words", find("words")
    about_people = kind is not None and kind.category in _PERSONAL
    words = None if about_people or asked.unique else column_shapes.few_words(name, asked.values)
    if words is not None and all(word not in rule.excluded for word in words):
        yield definition(name, "enum", {"values": words})
    shape = column_shapes.shape(asked.values)
    if shape is not None and (not about_people or asked.unique):
        yield definition(name, "regexp", {"string": shape}, unique=asked.unique)
    meant_something = meant not in (*guess.FALLBACK, "regexp") and not (asked.joined and not asked.unique)
    if meant_something:
        options = dict(guess.STARTERS.get(meant, {}))
        plain = definition(name, meant, options, unique=asked.unique)
        yield plain
        if longest is not None and not asked.unique:
            yield {**plain, "formula": f"left(this, {longest})"}
    if asked.unique:
        size = max(rule.shortest, min(longest or 12, 12))
        if 36**size < _MANY:
            asked.notes.append(f"It is unique and short: at most {36**size:,} rows.")
        yield definition(name, "regexp", {"string": f"[A-Z0-9]{{{size}}}"}, unique=True)
        return
    if meant == "words" and not asked.joined and (longest is None or longest >= 12) and rule.shortest <= 1:
        yield definition(name, "words", {"count": 2})
        if longest is not None:
            yield definition(name, "words", {"count": 2}, formula=f"left(this, {longest})")
    size = max(rule.shortest, min(longest if longest is not None else 8, 8))
    yield definition(name, "regexp", {"string": f"[A-Z0-9]{{{size}}}"})


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
        return False
    told = (field.metadata or {}).get(b"max_length")
    if asked.longest is not None and (told is None or int(told) > asked.longest):
        return False
    if asked.rule.shortest or "" in asked.rule.excluded:
        return _long_enough(asked, plan)
    return True


def _long_enough(asked: Asked, plan: Any) -> bool:
    """Whether texts are as long as a check wants: looked at, since no type tells its shortest text."""
    bound = Bound(plan, Env("inference", datetime(2026, 1, 1, tzinfo=UTC)))
    made = bound.block(0, limits.INFER_ROWS)[0]
    made = made.dictionary_decode() if pa.types.is_dictionary(made.type) else made
    return (pc.min(pc.utf8_length(made)).as_py() or 0) >= max(1, asked.rule.shortest)
