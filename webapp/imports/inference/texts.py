"""Fields for columns of texts: what the name means, as far as it fits, else a shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine import guess
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.types.registry import find
from webapp.imports.inference import checks, domains, lexicon, meanings, names
from webapp.imports.inference.evidence import ColumnEvidence, Field, definition
from webapp.imports.inference.names import NameMeaning

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z _/&-]*[A-Za-z]|[A-Z]")
_SHAPED: Final = re.compile(r"[!-~]+(?: [!-~]+)*")


_KINDS_OF: Final = frozenset(
    "status state type kind category class level priority role method channel mode unit size color colour stage"
    " segment tier severity outcome result source origin region carrier shipping payment currency plan grade".split()
)
"""Names of columns whose words classify rows. The words of other columns might be names of people."""


def few_words(name: str, values: Sequence[Any]) -> list[str] | None:
    """The values of a column that holds a few plain words over and over, and is called as such columns are; None for
    any other."""
    if len(values) < limits.INFER_FEW:
        return None
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).lower()
    if not _KINDS_OF & set(re.findall("[a-z]+", apart)):
        return None
    counted = Counter(values)
    if not 1 < len(counted) <= limits.INFER_WORDS or len(values) < limits.INFER_REPEATS * len(counted):
        return None
    words = [one for one in counted if isinstance(one, str) and _WORD.fullmatch(one)]
    if len(words) != len(counted) or max(map(len, words)) > limits.INFER_WORD_CHARS:
        return None
    return sorted(words)


def shape_of(values: Sequence[Any]) -> str | None:
    """Return a regular expression for the common pattern of all values: which positions are upper-case letters,
    lower-case letters, digits or the same character. None if they differ, or are words."""
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
    expression = ""
    for one, run in groupby(only):
        piece = one if one.startswith("[") and len(one) > 1 else re.escape(one)
        times = len(list(run))
        expression += piece if times == 1 else f"{piece}{{{times}}}"
    return expression


def _class(letter: str) -> str:
    if letter.isdigit():
        return "[0-9]"
    if letter.isalpha():
        return "[A-Z]" if letter.isupper() else "[a-z]"
    return letter


def rounded(value: Decimal, down: bool) -> Decimal:
    """A bound of a range with its first two digits, away from the values."""
    if value == 0:
        return value
    place = Decimal(1).scaleb(value.adjusted() - 1)
    way = "ROUND_FLOOR" if down else "ROUND_CEILING"
    return (value / place).to_integral_value(way) * place


_PERSONAL: Final = frozenset({"person", "contact", "place", "finance", "government", "internet"})
_SPEECHLESS: Final = frozenset({"logic", "choice", "structure", "external", "number"})
"""Categories whose types have no meaning by their name only."""
_FEWEST: Final = 2
_PRESENT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MANY: Final = 100_000  # chosen: a unique column with this many possible values needs no check


def text(asked: ColumnEvidence) -> Field | None:
    """For a column of texts."""
    for made in _texts(asked):
        local = _local(asked, made)
        if local is not made and _fits(asked, local):
            return local
        if _fits(asked, made):
            return made
    return None


def _texts(asked: ColumnEvidence) -> Iterator[Field]:
    """Suggestions for a column of texts, best first; the last ones fit anything."""
    name, rule, longest = asked.column.name, asked.rule, asked.longest
    quick = all(one.is_quick for one in rule.patterns)
    if not quick:
        yield from _patterned(asked)
    yield from _moments(asked)
    said = names.meant(asked)
    kind = find(said.type)
    if kind is not None and kind.category in _SPEECHLESS:
        said = names.NameMeaning("words", {}, {})
        kind = find("words")
    # A role is one of few words, and is not personal.
    about_people = kind is not None and kind.category in _PERSONAL and said.type != "job_title"
    words = None if about_people or asked.unique else few_words(name, asked.values)
    if words is not None and all(word not in rule.excluded for word in words):
        yield definition(name, "enum", {"values": words})
    if not asked.values or shape_of(asked.values) is None or asked.longest in (2, 3):
        for made in _named(asked):
            if not (said.sure and made["type"] in _PROSE):
                yield made
    if not asked.values and not asked.unique and not asked.joined and said.type != "product_category":
        yield from domains.choices(asked)
        asked.guessed = False
    if said.sure:
        yield from _meant(asked, said)
    if quick:
        yield from _patterned(asked)
    shape = shape_of(asked.values)
    if shape is not None and (not about_people or asked.unique):
        yield definition(name, "regexp", {"string": shape}, unique=asked.unique)
    if not said.sure and (said.options or said.type not in (*guess.FALLBACK, "regexp")):
        asked.guessed = said.type in guess.STARTERS  # its options are an example
        yield from _meant(asked, said)
        asked.guessed = False
    if asked.unique:
        if said.sure and said.type in names.NAMING:  # too few names: words, which read better than letters
            yield definition(name, "words", {"count": _FEWEST}, text_case="title", unique=True)
        asked.guessed = not asked.column.key
        size = max(rule.shortest, min(longest or 12, 12))
        if 36**size < _MANY:
            asked.notes.append(f"It is unique and short: at most {36**size:,} rows.")
        yield definition(name, "regexp", {"string": f"[A-Z0-9]{{{size}}}"}, unique=True)
        return
    coded = _NUMBERED.search(domains.words_of(asked)) if said.type == "words" else None
    if (
        (coded is not None or _abbreviated(asked))
        and (longest is None or longest >= _CODE_CHARS)
        and rule.shortest <= 1
    ):
        asked.guessed = True
        yield definition(
            name,
            "regexp",
            {"string": "[1-9][0-9]{7}" if coded and coded[2] == "number" else "[A-Z]{2}[0-9]{6}"},
        )
    if (
        said.type == "words"
        and not asked.joined
        and (longest is None or longest >= 12)
        and rule.shortest <= 1
    ):
        asked.guessed = True
        yield definition(name, "words", {"count": 2})
        yield definition(name, "words", {"count": 1})
    asked.guessed = True
    size = max(rule.shortest, min(longest if longest is not None else 8, 8))
    yield definition(name, "regexp", {"string": f"[A-Z0-9]{{{size}}}"})


def _patterned(asked: ColumnEvidence) -> Iterator[Field]:
    """Yield values that match the regular expressions of a check: words if they match, else any characters."""
    name, rule = asked.column.name, asked.rule
    if not rule.patterns:
        return
    if all(one.is_quick for one in rule.patterns):
        for count, separator in ((2, "_"), (1, "_"), (2, "-")):
            yield definition(name, "slug", {"count": count, "separator": separator}, unique=asked.unique)
    if rule.pattern is not None:
        yield definition(name, "regexp", {"string": rule.pattern}, unique=asked.unique)
        asked.notes.append(f"Its pattern is not supported: {rule.pattern}")


_DATED: Final = re.compile(
    r"(^|_)(date|day|dt)(_\d)?$|^[a-z]{2}dat$|_(on|at)$|(^|_)(birthday|dob|timestamp)$"
)
_WRITTEN: Final = {
    6: ("date", "YYMMDD"), 8: ("date", "YYYYMMDD"), 10: ("date", "YYYY-MM-DD"), 14: ("datetime", "YYYYMMDDHHmmss"),
    19: ("datetime", "YYYY-MM-DD HH:mm:ss"),
}  # fmt: skip
"""How texts of a length write a date or a moment."""
_CLOCKS: Final = {5: "HH:mm", 6: "HHmmss", 8: "HH:mm:ss"}
"""How texts of a length write a time of day."""


def _moments(asked: ColumnEvidence) -> Iterator[Field]:
    """Yield a date as text, where the name says date and the length is that of a usual spelling."""
    words = domains.words_of(asked)
    clock = _CLOCKS.get(asked.column.max_length or 0)
    if clock is not None and words.endswith("_time") and not asked.values:
        yield definition(asked.column.name, "time", {"format": clock}, unique=asked.unique)
    written = _WRITTEN.get(asked.column.max_length or 0)
    if (
        written is None
        or asked.values
        or not (_DATED.search(words) or _DATED.search(asked.column.name.lower()))
    ):
        return
    kind, spelled = written
    birth = {"min": "-27000d", "max": "-6600d"} if re.search("birth|born|dob", words) else {}
    yield definition(asked.column.name, kind, {"format": spelled, **birth}, unique=asked.unique)


_NUMBERED: Final = re.compile(
    r"(^|_)(number|code|id|key|reference|identifier|serial|uid|did|iccid|imei|imsi|(?!(?:pa|vali|inval|hybr|gr|sol|flu"
    r"|rap|avo|unpa|prepa|co[vr]|andro|aster)id)[a-z]{3,}id)(_[a-z]|_?\d)?$"
)
"""Names of texts that are no words."""
_CODE_CHARS: Final = 8


def _abbreviated(asked: ColumnEvidence) -> bool:
    """Return whether a column of a table of SAP has a name of which nothing is known: mostly a code."""
    names_ = [one.name.lower() for one in asked.entity.fields]
    return sum(one in lexicon.SAP for one in names_) >= _SAP_COLUMNS and len(asked.column.name) <= _SAP_CHARS


_SAP_COLUMNS: Final = 3  # chosen
_SAP_CHARS: Final = 5


def _meant(asked: ColumnEvidence, said: NameMeaning) -> Iterator[Field]:
    """Yield the meanings of the names: unchanged; shorter, as words or as a code; finally, those of its values that
    fit."""
    if asked.joined and not asked.unique and not said.sure:
        return
    name = asked.column.name
    common = {**said.common, "unique": asked.unique}
    made = definition(name, said.type, said.options, **common)
    if asked.joined and not asked.unique and not _dealt(asked, made):
        yield from _listed(asked, made)
        return
    yield made
    if said.type in _PROSE:
        for count in (3, 2, 1):
            yield definition(name, "words", {"count": count}, **common)
    if asked.unique:
        yield from _closed(asked, made)
    if asked.longest is None or asked.unique:
        return
    yield from _whole(asked, definition(name, said.type, said.options, **said.common))
    for kind, options in _CODES.get(said.type, ()):
        yield definition(name, kind, options)
        yield from _whole(asked, definition(name, kind, options))
    yield from _whole(asked, definition(name, said.type, said.options, **said.common), least=0)


def _named(asked: ColumnEvidence) -> Iterator[Field]:
    """Yield the meanings of the column's own name, if whole values fit."""
    for made in meanings.fields(asked):
        if asked.joined and not asked.unique and not _dealt(asked, made):
            yield from _listed(asked, made)
            continue
        yield made
        if asked.unique:
            yield from _closed(asked, made)
        elif asked.longest is not None:
            yield from _whole(asked, made)


def _listed(asked: ColumnEvidence, made: Field) -> Iterator[Field]:
    """Yield a list of the values of a field: those of grouped fields cannot be combined freely, a list can."""
    longest = limits.INFER_WORD_CHARS if asked.longest is None else asked.longest
    values = [one for one in dict.fromkeys(_values(asked, _local(asked, made))) if len(one) <= longest]
    if len(values) >= _FEWEST_VALUES:
        yield definition(asked.column.name, "enum", {"values": values[:_MOST_LISTED]})


def _closed(asked: ColumnEvidence, made: Field) -> Iterator[Field]:
    """Yield a list of the values that fit a unique column, of a type that has all values there are."""
    if made["type"] not in names.CLOSED or asked.longest is None:
        return
    local = _local(asked, made)
    try:
        plan = compile_plan(parse([local]), asked.vocabulary)
        space = plan.layer.columns[made["name"]].type.space()
        if space is None or not _FEWEST_VALUES <= space <= _MOST_LISTED:
            return
        (column,) = BoundPlan(plan, GenerationContext("inference", _PRESENT)).block(0, space)
    except SpecError:
        return
    values = [one for one in column.to_pylist() if len(one) <= asked.longest]
    if _FEWEST_VALUES <= len(values) < space:
        yield definition(asked.column.name, "enum", {"values": values}, unique=True)


def _dealt(asked: ColumnEvidence, made: Field) -> bool:
    """Return whether a field's values can be combined freely with those of other fields."""
    try:
        column = compile_plan(parse([made]), asked.vocabulary).layer.columns[made["name"]]
    except SpecError:
        return False
    return column.type.space() is not None and column.type.group_kind is None


def _whole(asked: ColumnEvidence, plain: Field, least: float = 0.2) -> Iterator[Field]:
    """A field of which only values that fit are taken whole.

    Where longer values are rare, one that fits takes their place, so that the field still agrees with others of its
    group; else the values that fit become a list.
    """
    longest = asked.longest or 0
    plain = _local(
        asked, {key: value for key, value in plain.items() if key != "text_case"}
    )  # its texts may grow
    told = _values(asked, plain) if longest else ()
    if not told:
        return
    counted = Counter(one for one in told if len(one) <= longest)
    share = sum(counted.values()) / len(told)
    if share == 1 or plain["type"] in _SHORTENED:
        yield {**plain, "formula": f"left(this, {longest})"}
    usual = counted.most_common(1)[0][0] if counted else ""
    if plain["type"] in _RANDOM or plain["type"] in _PROSE:
        return
    if share >= _MOSTLY and '"' not in usual and "\\" not in usual:
        yield {**plain, "formula": f'left(this if len(this) <= {longest} else "{usual}", {longest})'}
    if share >= least and len(counted) >= _FEWEST_VALUES:
        yield definition(asked.column.name, "enum", {"values": list(counted)[:_MOST_VALUES]})


_MOSTLY: Final = 0.7
_SHORTENED: Final = ("username",)
"""Types whose values are as good when they are shorter."""


def _local(asked: ColumnEvidence, made: Field) -> Field:
    """Return the field in the language of the table's names, if its type supports it."""
    kind = find(made["type"])
    if asked.locale is None or kind is None or not kind.localised or "locale" in made:
        return made
    return {**made, "locale": asked.locale}


_PROSE: Final = ("words", "sentences", "paragraphs", "slogan", "catch_phrase")
_RANDOM: Final = frozenset(
    "email url phone_number mobile password_hash token uuid iban username regexp".split()
)
"""Types without a vocabulary: those of their values that are short are not typical."""
_CODES: Final[dict[str, tuple[tuple[str, dict[str, Any]], ...]]] = {
    "country": (("country_code", {"format": "alpha3"}), ("country_code", {})),
    "country_code": (("country_code", {}),), "state": (("state_abbr", {}),), "currency_name": (("currency_code", {}),),
    "language": (("language", {"format": "code"}),), "airline": (("airline", {"format": "iata"}),),
    "unit": (("unit", {"format": "symbol"}),), "address": (("street_address", {}),), "url": (("domain_name", {}),),
    "name": (("last_name", {}),), "phone_number": (("phone_number", {"format": "national"}),
    ("regexp", {"string": "[2-9][0-9]{9}"}), ("regexp", {"string": "[2-9][0-9]{6}"})),
    "mobile": (("mobile", {"format": "national"}), ("regexp", {"string": "[2-9][0-9]{9}"})),
    "degree": (("degree", {"format": "abbreviation"}),),
}  # fmt: skip
"""Shorter variants of a type, the longest first."""
_FEWEST_VALUES: Final = 5
_MOST_VALUES: Final = 60
_MOST_LISTED: Final = 250  # chosen: values of one column of a key
_MATCHED: Final = 300  # chosen: values that are matched with the regular expressions of checks
_LOOKED_AT: Final = 2_000  # chosen: values that are checked for being too long


def _values(asked: ColumnEvidence, made: Field) -> Sequence[str]:
    """Values of a field, to see which ones fit."""
    said = {key: value for key, value in made.items() if key not in ("name", "unique")}
    return _generated(asked.vocabulary, orjson.dumps(said, option=orjson.OPT_SORT_KEYS))


@lru_cache(64)
def _generated(vocabulary: Vocabulary, said: bytes) -> Sequence[str]:
    try:
        plan = compile_plan(parse([{"name": "value", **orjson.loads(said)}]), vocabulary)
        array = BoundPlan(plan, GenerationContext("inference", _PRESENT)).block(0, _LOOKED_AT)[0]
    except SpecError:
        return ()
    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    return tuple(one for one in array.to_pylist() if isinstance(one, str))


def _fits(asked: ColumnEvidence, made: Field) -> bool:
    """Return whether every value of a field is a text with the maximum length of the column."""
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
        closed = made["type"] in (*names.CLOSED, "enum") and space is not None and space >= _FEWEST
        if not closed and (made["type"] not in names.FEW or not _lasts(asked, plan)):
            return False
        asked.notes.append(
            "It is unique, and there are not many such values: use few rows."
            if space is None
            else f"It is unique: at most {space:,} rows."
        )
    told = (field.metadata or {}).get(b"max_length")
    if asked.longest is not None and (told is None or int(told) > asked.longest):
        return False
    if asked.column.characters and made["type"] != "regexp" and not _encodes(asked, made):
        return False
    expressions = [one for one in asked.rule.patterns if one.is_quick]
    if expressions and not all(
        len(value) <= checks.MATCHED_CHARS and one.allows(value)
        for one in expressions
        for value in _values(asked, made)[:_MATCHED]
    ):
        return False
    if not asked.rule.shortest and "" not in asked.rule.excluded:
        return True
    # Types do not know their shortest text: whether texts have the length that a CHECK constraint requires is tested.
    texts = BoundPlan(plan, GenerationContext("inference", _PRESENT)).block(0, limits.INFER_ROWS)[0]
    texts = texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts
    return (pc.min(pc.utf8_length(texts)).as_py() or 0) >= max(1, asked.rule.shortest)


def _encodes(asked: ColumnEvidence, made: Field) -> bool:
    """Return whether the column's character set has all characters of a field's values."""
    told = "".join(_values(asked, made))
    if asked.column.characters == "bmp":
        return max(told, default="") <= "\uffff"
    try:
        told.encode(asked.column.characters)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _lasts(asked: ColumnEvidence, plan: Any) -> bool:
    """Return whether a unique field has values for the number of rows of its template."""
    try:
        BoundPlan(plan, GenerationContext("inference", _PRESENT)).check(0, asked.rows)
    except SpecError:
        return False
    return True
