"""Detect the type of the texts in one column: numbers, dates, addresses, one of a few words; all values are read, by
Arrow.

Only ranges (rounded outwards), date formats, and the words of columns with a few repeated words that are not about
people are used. The other columns are left to `imports.inference`, with a sample.
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
from webapp.imports.inference.evidence import Field, definition, to_json_number

_ISO: Final = r"^[0-9]{4}-[01][0-9]-[0-3][0-9]$"
_TIMESTAMP: Final = (
    r"^[0-9]{4}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
    r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$"
)
_TIME: Final = r"^[0-2]?[0-9]:[0-5][0-9](:[0-5][0-9])?$"
_DAY: Final = r"[0-3]?[0-9]"
_YEAR: Final = r"[12][0-9]{3}"
# Date formats by their pattern; ambiguous patterns have several formats, the most likely first.
_DATE_FORMATS: Final = (
    (rf"^{_DAY}\.{_DAY}\.{_YEAR}$", (("%d.%m.%Y", "DD.MM.YYYY"),)),
    (rf"^{_DAY}/{_DAY}/{_YEAR}$", (("%m/%d/%Y", "MM/DD/YYYY"), ("%d/%m/%Y", "DD/MM/YYYY"))),
    (rf"^{_DAY}-{_DAY}-{_YEAR}$", (("%d-%m-%Y", "DD-MM-YYYY"), ("%m-%d-%Y", "MM-DD-YYYY"))),
    (rf"^{_YEAR}/{_DAY}/{_DAY}$", (("%Y/%m/%d", "YYYY/MM/DD"),)),
    (rf"^{_DAY} [A-Za-z]{{3}} {_YEAR}$", (("%d %b %Y", "DD MMM YYYY"),)),
)
_CLOCK_PATTERN: Final = r"[ T,]+[0-2]?[0-9]:[0-5][0-9](:[0-5][0-9])?( ?[AaPp][Mm])?$"
_BIRTH_DATE_NAMES: Final = re.compile(r"birth|born|\bdob\b")


def detect_temporal_field(name: str, texts: pa.Array, words: str) -> ColumnResult | None:
    """Return a field for texts that are all dates, timestamps or times; None for others."""
    first = texts[0].as_py()
    if len(first) > 40 or not re.search(r"[0-9]", first):
        return None
    if _all_match(texts, _ISO):
        return _date_field(name, "date", texts, "%Y-%m-%d", None, words)
    if _all_match(texts, _TIMESTAMP):
        days, clock = pc.utf8_slice_codeunits(texts, 0, 10), first[10:]
        format_ = (
            "YYYY-MM-DD" + clock[0] + ("HH:mm:ss" if clock.count(":") >= 2 and len(clock) > 8 else "HH:mm")
        )
        zone = re.search(r"(Z|[+-][0-9]{2}:?[0-9]{2})$", clock)
        part = re.search(r"\.([0-9]+)", clock)
        if part is not None:
            format_ += "." + ("SSS" if len(part[1]) <= 3 else "SSSSSS")
        format_ = format_ if zone is None else format_ + "Z"
        return _date_field(name, "datetime", days, "%Y-%m-%d", format_, "")
    if _all_match(texts, _TIME):
        format_ = "HH:mm:ss" if first.count(":") == 2 else "HH:mm"
        return ColumnResult(
            name, definition(name, "time", {"format": format_}), "green", f"Times, written {format_}."
        )
    for pattern, formats in _DATE_FORMATS:
        if _all_match(texts, pattern):
            return _detect_date(name, "date", texts, formats, "", words)
        if _all_match(texts, pattern.removesuffix("$") + _CLOCK_PATTERN):
            days = pc.struct_field(
                pc.extract_regex(texts, r"^(?P<day>[^ T,]+|[0-9]+ [A-Za-z]+ [0-9]+)"), "day"
            )
            clock = " hh:mm A" if first[-1:] in "mM" else " HH:mm:ss" if first.count(":") == 2 else " HH:mm"
            return _detect_date(name, "datetime", days, formats, clock, words)
    return None


def detect_digit_date(name: str, texts: pa.Array) -> ColumnResult | None:
    """Return a field for dates of eight digits; None for others."""
    if not _all_match(texts, rf"^{_YEAR}[01][0-9][0-3][0-9]$"):
        return None
    return _date_field(name, "date", texts, "%Y%m%d", "YYYYMMDD", name.lower())


def _all_match(texts: pa.Array, pattern: str) -> bool:
    """Return whether all texts match; the first ones are tested first."""
    if not pc.all(pc.match_substring_regex(texts.slice(0, 100), pattern)).as_py():
        return False
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _detect_date(
    name: str, kind: str, texts: pa.Array, formats: Any, clock: str, words: str
) -> ColumnResult | None:
    matching = []
    for date_format, output_format in formats:
        days = pc.strptime(texts, format=date_format, unit="s", error_is_null=True)
        if not days.null_count:
            matching.append((date_format, output_format))
    if not matching:
        return None
    result = _date_field(name, kind, texts, matching[0][0], matching[0][1] + clock, words)
    if result is not None and len(matching) > 1:
        result.state = "yellow"
        result.reason = f"The format could also be {matching[1][1]}; imported as {matching[0][1]}."
    return result


def _date_field(
    name: str, kind: str, texts: pa.Array, date_format: str, output_format: str | None, words: str
) -> ColumnResult | None:
    days = pc.strptime(texts, format=date_format, unit="s", error_is_null=True)
    if days.null_count:
        return None
    options: dict[str, Any] = {} if output_format is None else {"format": output_format}
    message = f", written {output_format}" if output_format else ""
    bounds = pc.min_max(days).as_py()
    if len(texts) >= limits.INFER_MIN_VALUES:
        low, high = month_bounds(bounds["min"].date(), bounds["max"].date())
        options = {"min": low, "max": high, **options}
        return ColumnResult(name, definition(name, kind, options), "green", f"From {low} to {high}{message}.")
    if _BIRTH_DATE_NAMES.search(words):
        options = {"min": "-32000d", "max": "-6600d", **options}
    return ColumnResult(name, definition(name, kind, options), "green", f"{kind.capitalize()}s{message}.")


def month_bounds(first: date, last: date) -> tuple[str, str]:
    """Return the first day of the month of `first` and the last day of the month of `last`, in ISO format."""
    next_month = (
        (last.replace(day=28) + timedelta(days=4)).replace(day=1) if last < date(9999, 12, 1) else None
    )
    end = date(9999, 12, 31) if next_month is None else next_month - timedelta(days=1)
    return first.replace(day=1).isoformat(), end.isoformat()


BLANK: Final = pa.array(["", "null", "n/a", "na", "none", "nan", "nil", "\\n", "-"])
_MAX_BLANK_CHARS: Final = 4  # characters of the longest of them
_INTEGER: Final = r"^[+-]?(0|[1-9][0-9]{0,17})$"
_DECIMAL: Final = r"^[+-]?(0|[1-9][0-9]{0,14})(\.[0-9]{1,12})?$"
_DECIMAL_COMMA: Final = r"^[+-]?[0-9]{1,3}(\.?[0-9]{3}){0,4},[0-9]{1,12}$"
_FLOAT: Final = r"^[+-]?(0|[1-9][0-9]{0,14})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?$"
_TEXT_PATTERNS: Final = (
    ("uuid", r"(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "UUIDs"),
    ("email", r"^[^@\s]{1,64}@[A-Za-z0-9.-]{1,200}\.[A-Za-z]{2,20}$", "e-mail addresses"),
    ("url", r"(?i)^https?://\S+$", "addresses of the web"),
    ("ipv4", r"^((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])(\.|$)){4}$", "IPv4 addresses"),
    ("mac_address", r"(?i)^[0-9a-f]{2}(:[0-9a-f]{2}){5}$", "MAC addresses"),
)
_BOOLEAN_WORDS: Final = (("true", "false"), ("t", "f"), ("yes", "no"), ("y", "n"))
_KEY_NAMES: Final = re.compile(
    r"(^|_)(id|key|code|number|num|no|nr|sku|ref|reference|uuid|guid|iban|email|e_mail|login|username|user_name|slug)$"
)
_PERSONAL_CATEGORIES: Final = frozenset({"person", "contact", "finance", "government", "internet"})
_IMPERSONAL_TYPES: Final = frozenset(
    {"job_title", "sex", "gender", "marital_status", "title", "suffix", "department"}
)
"""Types about people whose words do not identify anyone."""
_MIN_SEQUENCE: Final = 3  # chosen: fewer consecutive numbers are not a sequence


@dataclass(slots=True)
class ObservedColumn:
    """One column: its type, some of its values, and the field if the values have determined it."""

    column: Column
    sample: list[Any]
    result: ColumnResult | None = None


def observe_column(name: str, texts: pa.Array, strict: bool = False) -> ObservedColumn:
    """Return a column with the given texts (null or empty: null). `strict`: they are texts in the file, so digits are
    not a number and `true` is a word."""
    plain = pc.utf8_trim_whitespace(texts)
    if isinstance(plain, pa.ChunkedArray):
        plain = plain.combine_chunks()
    short = pc.utf8_lower(pc.utf8_slice_codeunits(plain, 0, _MAX_BLANK_CHARS + 1))
    blank = pc.or_(pc.is_null(plain), pc.is_in(short, BLANK))
    valid = plain.filter(pc.invert(blank))
    total = len(plain)
    if not len(valid):
        return ObservedColumn(Column(name, "text", "text", nullable=True), [])
    # The sample is spread over the column, with its share of nulls.
    size = min(limits.INFER_SAMPLE_ROWS, total)
    count = max(1, round(size * len(valid) / total))
    indices = [index * len(valid) // count for index in range(count)]
    sample: list[Any] = [
        text[: limits.IMPORT_CELL_CHARS] for text in valid.take(pa.array(indices)).to_pylist()
    ]
    sample += [None] * (size - count)
    observed = ObservedColumn(Column(name, "text", "text", nullable=len(valid) < total), sample)
    _detect(observed, _NonBlankValues(name, valid, total), strict)
    field = None if observed.result is None else observed.result.field
    if (
        field is not None
        and len(valid) < total
        and total >= limits.INFER_MIN_VALUES
        and not field.get("unique")
    ):
        field["percent_blank"] = min(95, round(100 * (total - len(valid)) / total, 1))
    return observed


@dataclass(slots=True)
class _NonBlankValues:
    """The values that are not blank."""

    name: str
    valid: pa.Array
    total: int

    def matches(self, pattern: str) -> bool:
        """Return whether all values match."""
        return _all_match(self.valid, pattern)

    @property
    def has_enough_values(self) -> bool:
        """Return whether there are enough values for a range."""
        return len(self.valid) >= limits.INFER_MIN_VALUES

    def distinct_count(self) -> int:
        """Return the number of distinct values."""
        return int(pc.count_distinct(self.valid).as_py())

    @property
    def words(self) -> str:
        """The name in small letters, with `_` between its words."""
        return "_".join(names.split_words(self.name))


def _detect(observed: ObservedColumn, values: _NonBlankValues, strict: bool) -> None:
    name = values.name
    if not strict and (
        _detect_boolean(observed, values)
        or _detect_integer(observed, values)
        or _detect_fraction(observed, values)
    ):
        return
    if (result := detect_temporal_field(name, values.valid, values.words)) is not None:
        observed.result = result
        return
    for kind, pattern, reason in _TEXT_PATTERNS:
        if values.matches(pattern):
            unique = (
                kind == "email"
                and values.has_enough_values
                and values.distinct_count() == len(values.valid) == values.total
            )
            observed.result = ColumnResult(
                name, definition(name, kind, unique=unique), "green", f"All values are {reason}."
            )
            return
    field = _detect_choices(values)
    if field is not None:
        count = len(field["options"]["values"])
        reason = (
            f"One of {count} values, same frequencies as in the file."
            if count > 1
            else "The same text in every row."
        )
        observed.result = ColumnResult(name, field, "green", reason)
    elif (
        len(values.valid) == values.total
        and values.has_enough_values
        and _KEY_NAMES.search(values.words)
        and values.distinct_count() == len(values.valid)
    ):
        observed.column = replace(observed.column, unique=True)


def _detect_boolean(observed: ObservedColumn, values: _NonBlankValues) -> bool:
    if not values.matches(r"(?i)^(true|false|t|f|yes|no|y|n)$"):
        return False
    counted = pc.value_counts(values.valid)
    share = {row["values"].as_py(): row["counts"].as_py() for row in counted}
    pair = next((two for two in _BOOLEAN_WORDS if {word.lower() for word in share} <= set(two)), None)
    if pair is None:
        return False
    name = values.name
    if pair[0] == "true":
        true = sum(number for word, number in share.items() if word.lower() == "true")
        options = {"probability": round(true / len(values.valid), 2)} if values.has_enough_values else {}
        observed.result = ColumnResult(name, definition(name, "boolean", options), "green", "True or false.")
        return True
    first = next(iter(share))
    yes, no = (_match_case(word, first) for word in pair)
    field = definition(name, "boolean", {"truthy": yes, "falsy": no})
    observed.result = ColumnResult(name, field, "green", f"True or false, written {yes} and {no}.")
    return True


def _match_case(word: str, example: str) -> str:
    return word.upper() if example.isupper() else word.capitalize() if example[:1].isupper() else word


def _detect_integer(observed: ObservedColumn, values: _NonBlankValues) -> bool:
    if not values.matches(_INTEGER):
        return False
    name = values.name
    if re.search(r"date|day", values.words) and (result := detect_digit_date(name, values.valid)) is not None:
        observed.result = result
        return True
    numbers = pc.cast(pc.utf8_ltrim(values.valid, "+"), pa.int64())
    bounds = pc.min_max(numbers).as_py()
    low, high = bounds["min"], bounds["max"]
    if not -limits.MAX_INTEGER <= low <= high <= limits.MAX_INTEGER:
        field = definition(name, "regexp", {"string": "[1-9][0-9]{17}"})
        observed.result = ColumnResult(
            name, field, "yellow", "The numbers are too large for JSON parsers: imported as text of digits."
        )
        return True
    observed.column = replace(
        observed.column, type="integer", declared="integer", bits=32 if max(high, -low) < 2**31 else 64
    )
    # The minimum and the maximum replace the first two values of the sample.
    plain = [value for value in observed.sample if value is not None]
    blanks = len(observed.sample) - len(plain)
    ends_as_text = [str(low), str(high)] if len(plain) > 1 else [str(low)]
    observed.sample = [*ends_as_text, *plain[2:], *([None] * blanks)]
    has_no_blanks = len(numbers) == values.total
    if has_no_blanks and len(numbers) >= _MIN_SEQUENCE and (counted := _detect_sequence(numbers)) is not None:
        observed.result = ColumnResult(
            name, {"name": name, **counted}, "green", f"Counts from {low:,}, as in the file."
        )
    elif values.words == "id" and has_no_blanks:
        observed.result = ColumnResult(
            name, definition(name, "row_number"), "green", "The key of the row, numbered from 1."
        )
    elif (
        has_no_blanks
        and values.has_enough_values
        and _KEY_NAMES.search(values.words)
        and pc.count_distinct(numbers).as_py() == len(numbers)
    ):
        options = {"min": low, "max": max(high, low + 10 * len(numbers))}
        field = definition(name, "number", options, unique=True)
        observed.result = ColumnResult(name, field, "green", f"Numbers from {low:,} on, none of them twice.")
    return True


def _detect_sequence(numbers: pa.Array) -> Field | None:
    steps = pc.min_max(pc.pairwise_diff(numbers).slice(1)).as_py()
    if steps["min"] != steps["max"] or steps["min"] <= 0:
        return None
    start, step = numbers[0].as_py(), steps["min"]
    if (start, step) == (1, 1):
        return {"type": "row_number", "options": {}}
    return {"type": "sequence", "options": {"start": start, "step": step}}


def _detect_fraction(observed: ObservedColumn, values: _NonBlankValues) -> bool:
    if values.matches(_DECIMAL):
        return _detect_decimal(observed, values, values.valid)
    if values.matches(_DECIMAL_COMMA):
        point = pc.replace_substring(pc.replace_substring(values.valid, ".", ""), ",", ".")
        _detect_decimal(observed, replace(values, valid=point), point)
        message = "The file uses a decimal comma; generated values have a decimal point."
        if observed.result is not None:
            observed.result = ColumnResult(values.name, observed.result.field, "yellow", message)
        return True
    if not values.matches(_FLOAT):
        return False
    numbers = pc.min_max(pc.cast(values.valid, pa.float64())).as_py()
    if max(-numbers["min"], numbers["max"]) >= limits.MAX_UNITS:
        return False
    low, high = (round(float(numbers[end]), 2) for end in ("min", "max"))
    field = definition(values.name, "number", {"min": low, "max": max(high, low + 0.01), "decimals": 2})
    observed.result = ColumnResult(values.name, field, "green", f"Numbers from {low:g} to {high:g}.")
    return True


def _detect_decimal(observed: ObservedColumn, values: _NonBlankValues, texts: pa.Array) -> bool:
    rest = pc.struct_field(pc.extract_regex(texts, r"\.(?P<rest>[0-9]+)$"), "rest")
    scale = pc.max(pc.utf8_length(rest)).as_py() or 0
    places = min(scale, limits.MAX_DECIMALS)
    numbers = pc.min_max(pc.cast(pc.utf8_ltrim(texts, "+"), pa.float64())).as_py()
    bounds = [Decimal(repr(numbers[end])) for end in ("min", "max")]
    if not values.has_enough_values:
        observed.column = replace(observed.column, type="decimal", declared="number", scale=places)
        return True
    step = Decimal(1).scaleb(-places)
    low = max(imports_texts.round_bound(bounds[0], down=True), -limits.MAX_UNITS * step)
    high = min(imports_texts.round_bound(bounds[1], down=False), limits.MAX_UNITS * step)
    if bounds[0] >= 0 and bounds[1] <= 1 < high:
        high = Decimal(1)
    low, high = low.quantize(step, "ROUND_FLOOR"), high.quantize(step, "ROUND_CEILING")
    options = {"min": to_json_number(low), "max": to_json_number(high), "decimals": places}
    field = definition(values.name, "number", options)
    message = f"Numbers from {low.normalize():f} to {high.normalize():f} with {places} decimals."
    observed.result = ColumnResult(values.name, field, "green", message)
    return True


def _detect_choices(values: _NonBlankValues) -> Field | None:
    """Return a field of the words of a column that repeats a few of them; None for others."""
    if not values.has_enough_values:
        return None
    if pc.count_distinct(values.valid.slice(0, 1_000)).as_py() > limits.IMPORT_CHOICES:
        return None
    kind = find(guess.suggest_type(values.name))
    if kind is not None and kind.category in _PERSONAL_CATEGORIES and kind.name not in _IMPERSONAL_TYPES:
        return None
    counted = pc.value_counts(values.valid)
    if len(counted) > limits.IMPORT_CHOICES or len(values.valid) < limits.INFER_REPEATS * len(counted):
        return None
    share = {row["values"].as_py(): row["counts"].as_py() for row in counted}
    if max(map(len, share)) > limits.INFER_WORD_CHARS:
        return None
    words = sorted(share)
    weights = [max(1, round(1_000 * share[word] / len(values.valid))) for word in words]
    return definition(values.name, "enum", {"values": words, "weights": weights})
