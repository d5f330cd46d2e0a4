"""Detect the type of the texts in one column: numbers, dates, addresses, one of a few words; all values are read, by
Arrow.

Only ranges (rounded outwards), date formats, and the words of columns with a few repeated words that are not about
people are kept. Everything else is left to `services.inference`, with a sample.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.connectors.schema import Column
from webapp.engine import guess
from webapp.engine.types.registry import find
from webapp.imports.inference import names
from webapp.imports.inference import texts as imports_texts
from webapp.imports.inference.columns import ColumnResult
from webapp.imports.inference.evidence import Field, definition, jsonable

_ISO: Final = r"^[0-9]{4}-[01][0-9]-[0-3][0-9]$"
_MOMENT: Final = (
    r"^[0-9]{4}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
    r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$"
)
_TIME: Final = r"^[0-2]?[0-9]:[0-5][0-9](:[0-5][0-9])?$"
_D: Final = r"[0-3]?[0-9]"
_Y: Final = r"[12][0-9]{3}"
# How dates are written, by what they look like: the pattern, then the ways to read it, first the likelier.
_WAYS: Final = (
    (rf"^{_D}\.{_D}\.{_Y}$", (("%d.%m.%Y", "DD.MM.YYYY"),)),
    (rf"^{_D}/{_D}/{_Y}$", (("%m/%d/%Y", "MM/DD/YYYY"), ("%d/%m/%Y", "DD/MM/YYYY"))),
    (rf"^{_D}-{_D}-{_Y}$", (("%d-%m-%Y", "DD-MM-YYYY"), ("%m-%d-%Y", "MM-DD-YYYY"))),
    (rf"^{_Y}/{_D}/{_D}$", (("%Y/%m/%d", "YYYY/MM/DD"),)),
    (rf"^{_D} [A-Za-z]{{3}} {_Y}$", (("%d %b %Y", "DD MMM YYYY"),)),
)
_CLOCK: Final = r"[ T,]+[0-2]?[0-9]:[0-5][0-9](:[0-5][0-9])?( ?[AaPp][Mm])?$"
_BIRTH: Final = re.compile(r"birth|born|\bdob\b")


def read(name: str, texts: pa.Array, words: str) -> ColumnResult | None:
    """Return a field for texts that are all dates, timestamps or times; None for others."""
    first = texts[0].as_py()
    if len(first) > 40 or not re.search(r"[0-9]", first):
        return None
    if _all(texts, _ISO):
        return _found(name, "date", texts, "%Y-%m-%d", None, words)
    if _all(texts, _MOMENT):
        days, clock = pc.utf8_slice_codeunits(texts, 0, 10), first[10:]
        form = "YYYY-MM-DD" + clock[0] + ("HH:mm:ss" if clock.count(":") >= 2 and len(clock) > 8 else "HH:mm")
        zone = re.search(r"(Z|[+-][0-9]{2}:?[0-9]{2})$", clock)
        part = re.search(r"\.([0-9]+)", clock)
        if part is not None:
            form += "." + ("SSS" if len(part[1]) <= 3 else "SSSSSS")
        form = form if zone is None else form + "Z"
        return _found(name, "datetime", days, "%Y-%m-%d", form, "")
    if _all(texts, _TIME):
        form = "HH:mm:ss" if first.count(":") == 2 else "HH:mm"
        return ColumnResult(
            name, definition(name, "time", {"format": form}), "green", f"Times, written {form}."
        )
    for pattern, ways in _WAYS:
        if _all(texts, pattern):
            return _way(name, "date", texts, ways, "", words)
        if _all(texts, pattern.removesuffix("$") + _CLOCK):
            days = pc.struct_field(
                pc.extract_regex(texts, r"^(?P<day>[^ T,]+|[0-9]+ [A-Za-z]+ [0-9]+)"), "day"
            )
            clock = " hh:mm A" if first[-1:] in "mM" else " HH:mm:ss" if first.count(":") == 2 else " HH:mm"
            return _way(name, "datetime", days, ways, clock, words)
    return None


def digits(name: str, texts: pa.Array) -> ColumnResult | None:
    """A date of eight digits."""
    if not _all(texts, rf"^{_Y}[01][0-9][0-3][0-9]$"):
        return None
    return _found(name, "date", texts, "%Y%m%d", "YYYYMMDD", name.lower())


def _all(texts: pa.Array, pattern: str) -> bool:
    """Return whether all texts match; the first ones are tested first."""
    if not pc.all(pc.match_substring_regex(texts.slice(0, 100), pattern)).as_py():
        return False
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _way(name: str, kind: str, texts: pa.Array, ways: Any, clock: str, words: str) -> ColumnResult | None:
    fit = []
    for way, form in ways:
        days = pc.strptime(texts, format=way, unit="s", error_is_null=True)
        if not days.null_count:
            fit.append((way, form))
    if not fit:
        return None
    found = _found(name, kind, texts, fit[0][0], fit[0][1] + clock, words)
    if found is not None and len(fit) > 1:
        found.state = "yellow"
        found.reason = f"The format could also be {fit[1][1]}; imported as {fit[0][1]}."
    return found


def _found(
    name: str, kind: str, texts: pa.Array, way: str, form: str | None, words: str
) -> ColumnResult | None:
    days = pc.strptime(texts, format=way, unit="s", error_is_null=True)
    if days.null_count:
        return None
    options: dict[str, Any] = {} if form is None else {"format": form}
    message = f", written {form}" if form else ""
    ends = pc.min_max(days).as_py()
    if len(texts) >= limits.INFER_FEW:
        low, high = around(ends["min"].date(), ends["max"].date())
        options = {"min": low, "max": high, **options}
        return ColumnResult(name, definition(name, kind, options), "green", f"From {low} to {high}{message}.")
    if _BIRTH.search(words):
        options = {"min": "-32000d", "max": "-6600d", **options}
    return ColumnResult(name, definition(name, kind, options), "green", f"{kind.capitalize()}s{message}.")


def around(first: date, last: date) -> tuple[str, str]:
    """The first day of the month of one date, and the last of that of another: no value itself."""
    after = (last.replace(day=28) + timedelta(days=4)).replace(day=1) if last < date(9999, 12, 1) else None
    end = date(9999, 12, 31) if after is None else after - timedelta(days=1)
    return first.replace(day=1).isoformat(), end.isoformat()


BLANK: Final = pa.array(["", "null", "n/a", "na", "none", "nan", "nil", "\\n", "-"])
_LONGEST: Final = 4  # characters of the longest of them
_INTEGER: Final = r"^[+-]?(0|[1-9][0-9]{0,17})$"
_DECIMAL: Final = r"^[+-]?(0|[1-9][0-9]{0,14})(\.[0-9]{1,12})?$"
_COMMA: Final = r"^[+-]?[0-9]{1,3}(\.?[0-9]{3}){0,4},[0-9]{1,12}$"
_FLOAT: Final = r"^[+-]?(0|[1-9][0-9]{0,14})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?$"
_LIKE: Final = (
    ("uuid", r"(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "UUIDs"),
    ("email", r"^[^@\s]{1,64}@[A-Za-z0-9.-]{1,200}\.[A-Za-z]{2,20}$", "e-mail addresses"),
    ("url", r"(?i)^https?://\S+$", "addresses of the web"),
    ("ipv4", r"^((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])(\.|$)){4}$", "IPv4 addresses"),
    ("mac_address", r"(?i)^[0-9a-f]{2}(:[0-9a-f]{2}){5}$", "MAC addresses"),
)
_PAIRS: Final = (("true", "false"), ("t", "f"), ("yes", "no"), ("y", "n"))
_KEY: Final = re.compile(
    r"(^|_)(id|key|code|number|num|no|nr|sku|ref|reference|uuid|guid|iban|email|e_mail|login|username|user_name|slug)$"
)
_PERSONAL: Final = frozenset({"person", "contact", "finance", "government", "internet"})
_PLAIN: Final = frozenset({"job_title", "sex", "gender", "marital_status", "title", "suffix", "department"})
"""Types about people whose words do not identify anyone."""
_COUNTED: Final = 3  # chosen: fewer consecutive numbers are not a sequence


@dataclass(slots=True)
class ObservedColumn:
    """One column: its type, some of its values, and the field if the values have determined it."""

    column: Column
    sample: list[Any]
    ready: ColumnResult | None = None


def seen(name: str, texts: pa.Array, strict: bool = False) -> ObservedColumn:
    """Return a column with the given texts (null or empty: null). `strict`: they are texts in the file, so digits are
    not a number and `true` is a word."""
    plain = pc.utf8_trim_whitespace(texts)
    if isinstance(plain, pa.ChunkedArray):
        plain = plain.combine_chunks()
    short = pc.utf8_lower(pc.utf8_slice_codeunits(plain, 0, _LONGEST + 1))
    blank = pc.or_(pc.is_null(plain), pc.is_in(short, BLANK))
    valid = plain.filter(pc.invert(blank))
    total = len(plain)
    if not len(valid):
        return ObservedColumn(Column(name, "text", "text", nullable=True), [])
    # The sample is spread over the column, with its share of nulls.
    size = min(limits.INFER_SAMPLE_ROWS, total)
    wanted = max(1, round(size * len(valid) / total))
    places = [place * len(valid) // wanted for place in range(wanted)]
    sample: list[Any] = [
        text[: limits.IMPORT_CELL_CHARS] for text in valid.take(pa.array(places)).to_pylist()
    ]
    sample += [None] * (size - wanted)
    one = ObservedColumn(Column(name, "text", "text", nullable=len(valid) < total), sample)
    _settle(one, _NonBlankValues(name, valid, total), strict)
    made = None if one.ready is None else one.ready.field
    if made is not None and len(valid) < total and total >= limits.INFER_FEW and not made.get("unique"):
        made["percent_blank"] = min(95, round(100 * (total - len(valid)) / total, 1))
    return one


@dataclass(slots=True)
class _NonBlankValues:
    """The values that are not blank."""

    name: str
    valid: pa.Array
    total: int

    def like(self, pattern: str) -> bool:
        """Return whether all values match."""
        return _all(self.valid, pattern)

    @property
    def enough(self) -> bool:
        """Return whether there are enough values for a range."""
        return len(self.valid) >= limits.INFER_FEW

    def distinct(self) -> int:
        """Return the number of distinct values."""
        return int(pc.count_distinct(self.valid).as_py())

    @property
    def words(self) -> str:
        """The name in small letters, with `_` between its words."""
        return "_".join(names.split(self.name))


def _settle(one: ObservedColumn, looks: _NonBlankValues, strict: bool) -> None:
    name = looks.name
    if not strict and (_boolean(one, looks) or _whole(one, looks) or _fraction(one, looks)):
        return
    if (found := read(name, looks.valid, looks.words)) is not None:
        one.ready = found
        return
    for kind, pattern, told in _LIKE:
        if looks.like(pattern):
            unique = kind == "email" and looks.enough and looks.distinct() == len(looks.valid) == looks.total
            one.ready = ColumnResult(
                name, definition(name, kind, unique=unique), "green", f"All values are {told}."
            )
            return
    words = _choices(looks)
    if words is not None:
        many = len(words["options"]["values"])
        told = (
            f"One of {many} texts, each as often as in the file."
            if many > 1
            else "The same text in every row."
        )
        one.ready = ColumnResult(name, words, "green", told)
    elif (
        len(looks.valid) == looks.total
        and looks.enough
        and _KEY.search(looks.words)
        and looks.distinct() == len(looks.valid)
    ):
        one.column = replace(one.column, unique=True)


def _boolean(one: ObservedColumn, looks: _NonBlankValues) -> bool:
    if not looks.like(r"(?i)^(true|false|t|f|yes|no|y|n)$"):
        return False
    counted = pc.value_counts(looks.valid)
    share = {row["values"].as_py(): row["counts"].as_py() for row in counted}
    pair = next((two for two in _PAIRS if {word.lower() for word in share} <= set(two)), None)
    if pair is None:
        return False
    name = looks.name
    if pair[0] == "true":
        true = sum(number for word, number in share.items() if word.lower() == "true")
        options = {"probability": round(true / len(looks.valid), 2)} if looks.enough else {}
        one.ready = ColumnResult(name, definition(name, "boolean", options), "green", "True or false.")
        return True
    first = next(iter(share))
    yes, no = (_cased(word, first) for word in pair)
    made = definition(name, "boolean", {"truthy": yes, "falsy": no})
    one.ready = ColumnResult(name, made, "green", f"True or false, written {yes} and {no}.")
    return True


def _cased(word: str, like: str) -> str:
    return word.upper() if like.isupper() else word.capitalize() if like[:1].isupper() else word


def _whole(one: ObservedColumn, looks: _NonBlankValues) -> bool:
    if not looks.like(_INTEGER):
        return False
    name = looks.name
    if re.search(r"date|day", looks.words) and (found := digits(name, looks.valid)) is not None:
        one.ready = found
        return True
    numbers = pc.cast(pc.utf8_ltrim(looks.valid, "+"), pa.int64())
    ends = pc.min_max(numbers).as_py()
    low, high = ends["min"], ends["max"]
    if not -limits.MAX_INTEGER <= low <= high <= limits.MAX_INTEGER:
        made = definition(name, "regexp", {"string": "[1-9][0-9]{17}"})
        one.ready = ColumnResult(
            name, made, "yellow", "Numbers too long for JSON parsers: imported as digits."
        )
        return True
    one.column = replace(
        one.column, type="integer", declared="integer", bits=32 if max(high, -low) < 2**31 else 64
    )
    # The sample has the least and the largest value, in place of its first two.
    plain = [value for value in one.sample if value is not None]
    blanks = len(one.sample) - len(plain)
    shown = [str(low), str(high)] if len(plain) > 1 else [str(low)]
    one.sample = [*shown, *plain[2:], *([None] * blanks)]
    whole = len(numbers) == looks.total
    if whole and len(numbers) >= _COUNTED and (counted := _counted(numbers)) is not None:
        one.ready = ColumnResult(
            name, {"name": name, **counted}, "green", f"Counts from {low:,}, as in the file."
        )
    elif looks.words == "id" and whole:
        one.ready = ColumnResult(
            name, definition(name, "row_number"), "green", "The key of the row, counted from 1."
        )
    elif (
        whole
        and looks.enough
        and _KEY.search(looks.words)
        and pc.count_distinct(numbers).as_py() == len(numbers)
    ):
        options = {"min": low, "max": max(high, low + 10 * len(numbers))}
        made = definition(name, "number", options, unique=True)
        one.ready = ColumnResult(name, made, "green", f"Numbers from {low:,} on, none of them twice.")
    return True


def _counted(numbers: pa.Array) -> Field | None:
    steps = pc.min_max(pc.pairwise_diff(numbers).slice(1)).as_py()
    if steps["min"] != steps["max"] or steps["min"] <= 0:
        return None
    start, step = numbers[0].as_py(), steps["min"]
    if (start, step) == (1, 1):
        return {"type": "row_number", "options": {}}
    return {"type": "sequence", "options": {"start": start, "step": step}}


def _fraction(one: ObservedColumn, looks: _NonBlankValues) -> bool:
    if looks.like(_DECIMAL):
        return _decimal(one, looks, looks.valid)
    if looks.like(_COMMA):
        point = pc.replace_substring(pc.replace_substring(looks.valid, ".", ""), ",", ".")
        _decimal(one, replace(looks, valid=point), point)
        message = "The file uses a decimal comma; generated values have a decimal point."
        if one.ready is not None:
            one.ready = ColumnResult(looks.name, one.ready.field, "yellow", message)
        return True
    if not looks.like(_FLOAT):
        return False
    numbers = pc.min_max(pc.cast(looks.valid, pa.float64())).as_py()
    if max(-numbers["min"], numbers["max"]) >= limits.MAX_UNITS:
        return False
    low, high = (round(float(numbers[end]), 2) for end in ("min", "max"))
    made = definition(looks.name, "number", {"min": low, "max": max(high, low + 0.01), "decimals": 2})
    one.ready = ColumnResult(looks.name, made, "green", f"Numbers from {low:g} to {high:g}.")
    return True


def _decimal(one: ObservedColumn, looks: _NonBlankValues, texts: pa.Array) -> bool:
    rest = pc.struct_field(pc.extract_regex(texts, r"\.(?P<rest>[0-9]+)$"), "rest")
    scale = pc.max(pc.utf8_length(rest)).as_py() or 0
    places = min(scale, limits.MAX_DECIMALS)
    numbers = pc.min_max(pc.cast(pc.utf8_ltrim(texts, "+"), pa.float64())).as_py()
    ends = [Decimal(repr(numbers[end])) for end in ("min", "max")]
    if not looks.enough:
        one.column = replace(one.column, type="decimal", declared="number", scale=places)
        return True
    step = Decimal(1).scaleb(-places)
    low = max(imports_texts.rounded(ends[0], down=True), -limits.MAX_UNITS * step)
    high = min(imports_texts.rounded(ends[1], down=False), limits.MAX_UNITS * step)
    if ends[0] >= 0 and ends[1] <= 1 < high:
        high = Decimal(1)
    low, high = low.quantize(step, "ROUND_FLOOR"), high.quantize(step, "ROUND_CEILING")
    options = {"min": jsonable(low), "max": jsonable(high), "decimals": places}
    made = definition(looks.name, "number", options)
    message = f"Numbers from {low.normalize():f} to {high.normalize():f} with {places} decimals."
    one.ready = ColumnResult(looks.name, made, "green", message)
    return True


def _choices(looks: _NonBlankValues) -> Field | None:
    """A field of the few words that a column holds over and over."""
    if not looks.enough:
        return None
    if pc.count_distinct(looks.valid.slice(0, 1_000)).as_py() > limits.IMPORT_CHOICES:
        return None
    kind = find(guess.type_of(looks.name))
    if kind is not None and kind.category in _PERSONAL and kind.name not in _PLAIN:
        return None
    counted = pc.value_counts(looks.valid)
    if len(counted) > limits.IMPORT_CHOICES or len(looks.valid) < limits.INFER_REPEATS * len(counted):
        return None
    share = {row["values"].as_py(): row["counts"].as_py() for row in counted}
    if max(map(len, share)) > limits.INFER_WORD_CHARS:
        return None
    words = sorted(share)
    weights = [max(1, round(1_000 * share[word] / len(looks.valid))) for word in words]
    return definition(looks.name, "enum", {"values": words, "weights": weights})
