"""What a column of a database suggests as a field: a type whose every value fits the column.

In order: what the column's type and its checks require, what its name means together with its table's name, and what
a small sample looks like. Only shapes and ranges are taken from the sample; values are taken only from columns that
contain a few plain words and whose name does not suggest personal data. Each suggestion is compiled before it is used:
its values must have the column's type and fit its length.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final, Literal

import pyarrow as pa

from webapp import limits
from webapp.connectors.schema import Column, Entity
from webapp.engine import groups, guess
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.types.registry import find
from webapp.imports.inference import checks, domains, lexicon, names, texts
from webapp.imports.inference.checks import Rules
from webapp.imports.inference.evidence import ColumnEvidence, Field, definition, to_json_number
from webapp.pushes.services.value_checks import number_range

_DEFAULT_BITS: Final = 32
_BYTE_BITS: Final = 8
_WIDE_BITS: Final = 64
_MAX_DIGITS: Final = (
    1_000  # PostgreSQL's NUMERIC has at most that many; a power of ten beyond some 10^6 overflows
)
_DEFAULT_RANGE: Final = (Decimal(1), Decimal(1000))
_HTTP_STATUS_NAMES: Final = re.compile(r"(^|_)(http|response)_(status|code)$")
_EPOCH_NAMES: Final = re.compile(
    r"_at$|(^|_)(timestamp|created|updated|modified|clock)$|_timestamp$"
    r"|(^|_)(time|date)_(created|modified|updated|added)$|_(time|date|since|until|deadline|expires?|expiry|last_change)$|^expires$|^timestamp_"
    r"|(^|_)(last|next|first)_?(check|access|login|seen|run|update|visit|active|activity|change|clock)$"
)
_DURATION_NAMES: Final = re.compile(
    r"(^|_)(response|run|running|processing|elapsed|wait|load|execution|cpu|total|idle|lead|cook|cooking|prep|delay|avg"
    r"|average|up|down|over|ping|query|spent|flight|travel|play|trip|life|live|grace|hold|work|half|full|part|real"
    r"|setup|expiry|cache|refresh|retry|check|max|min|mean)_time$"
)
_CODE_NAMES: Final = re.compile(
    r"(^|_)(method|location|operator|v?align|valign|halign|format|policy|action|style|severity|scope|visibility|option"
    r"|eval_?type|algorithm|protocol|theme|layout)(_code)?$"
)
State = Literal["green", "yellow", "red"]
Confidence = Literal["high", "check", "unknown"]
_NUMBER_TYPES: Final = ("integer", "decimal", "float")
_MAX_MIN_WORDS: Final = (
    ("max", "min"),
    ("maximum", "minimum"),
    ("high", "low"),
    ("upper", "lower"),
    ("highest", "lowest"),
)
_TOTAL_RULES: Final = (
    (r"(^|_)(total|line_total|total_price|line_amount|extended_price|total_amount|amount)$", "quantity",
     "unit_price|price", "*"),
    (r"(^|_)(total|total_amount|grand_total|gross_amount|amount_total)$", "subtotal|sub_total|net_amount",
     "tax|tax_amount|vat_amount", "+"),
)  # fmt: skip
"""Totals: the name in English, the names of their two parts, and how these are combined."""
_COUNTRY_TYPES: Final = ("country", "country_code")
_RARELY_SET_PERCENT_BLANK: Final = 95  # chosen: percent of rows without a date of deletion
_RARELY_SET_NAMES: Final = re.compile(
    r"(^|_)(deleted|archived|cancell?ed|banned|suspended|locked|blocked|discarded|trashed|terminated|removed|revoked"
    r"|voided|retired|withdrawn|deactivated|purged|deceased|death|deletion_mark)(_at|_on|_by|_date|_time|_timestamp|_reason)?$"
    r"|(^|_)date_(deleted|removed|voided|retired|withdrawn|cancell?ed|archived|revoked)$"
)
# Dates of which one is never before the other, in English: the later one, those before it, and the usual distance.
_ORDERED_DATES: Final = (
    (r"(^|_)(updated|modified|changed|last_update|last_updated|last_modified|edited)", r"(^|_)(created|creation"
     r"|inserted|added|registered)", "0d", "60d"),
    (r"(^|_)(end|ends|ended|to|until|till|finish|finished|stop)(_|$)", r"(^|_)(start|starts|started|from|begin"
     r"|begins|began|since)(_|$)", "1d", "60d"),
    (r"(^|_)(arrival|arrives|arrived|landed)", r"(^|_)(departure|departs|departed)", "1h", "12h"),
    (r"(^|_)(check_?out|return|returned)(_|$)", r"(^|_)(check_?in|rental|rented|borrowed|loan|issued)(_|$)",
     "1d", "14d"),
    (r"(^|_)(due|expires|expired|expiry|expiration|maturity)(_|$)", r"(^|_)(issued|issue|invoice|start|started"
     r"|open|opened|effective|created|rental|order|document|posting)(_|$)", "7d", "60d"),
    (r"(^|_)(ship|shipped|delivered|delivery|required|paid|payment|fulfilled|dispatched|approved)(_|$)",
     r"(^|_)(order|ordered|invoice|invoiced|issued|placed|requested|created|submitted)(_|$)", "1d", "14d"),
    (r"(^|_)(close|closed|completed|resolved|cancell?ed|deleted|archived|terminated|termination|leave|left"
     r"|disabled|revoked|published|confirmed|processed)(_|$)", r"(^|_)(open|opened|started|start|hire|hired|order"
      r"|ordered|requested|created|registered|posted)(_|$)", "1d", "60d"),
)  # fmt: skip
# Types that other kinds of target have, by how they are declared.
_DECLARED_TYPES: Final[Sequence[tuple[str, str, dict[str, Any]]]] = (
    (r"^(inet|cidr)\b", "ipv4", {}),
    (r"^macaddr$", "mac_address", {}),
    (r"^macaddr8$", "regexp", {"string": "([0-9a-f]{2}:){7}[0-9a-f]{2}"}),
    (r"^(small)?money$", "number", {"min": 1, "max": 1000, "decimals": 2}),
    (r"^time with time zone|^timetz", "time", {}),
    (r"^year\b", "year", {"min": 1990, "max": 2030}),
    (r"^xml$", "constant", {"value": "<none/>"}),
    (r"^tsvector$", "words", {}),
    (r"range$", "constant", {"value": "empty"}),
    (r"^ltree\b", "regexp", {"string": r"[a-z]{5}\.[a-z]{6}(\.[a-z]{4})?"}),
    (r"^hstore\b", "regexp", {"string": r"\"[a-z]{4}\"=>\"[a-z]{6}\""}),
    (
        r"^(geometry|geography)\(point,4326\)",
        "regexp",
        {"string": r"SRID=4326;POINT\([1-8][0-9]\.[0-9]{4} [1-8][0-9]\.[0-9]{4}\)"},
    ),
    (r"^point$", "regexp", {"string": r"\([0-9]{1,2},[0-9]{1,2}\)"}),
)
_BIRTH_DATE_NAMES: Final = re.compile(r"birth|born|\bdob\b")
_ISO_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


def integer_field(evidence: ColumnEvidence) -> Field | None:
    """Return a field for a column of integers; None if its checks allow no value."""
    column = evidence.column
    limit = number_range(replace(column, bits=column.bits or _DEFAULT_BITS))
    assert limit is not None
    minimum, maximum = int(limit[0]), int(limit[1])
    upper = min(maximum, limits.MAX_INTEGER)
    bounds = _infer_range(evidence, Decimal(max(minimum, -limits.MAX_INTEGER)), Decimal(upper), Decimal(1))
    if bounds is None:
        return None
    low, high = int(bounds[0]), int(bounds[1])
    if evidence.values or evidence.rule.low is not None or evidence.rule.high is not None or evidence.unique:
        return _number_field(evidence, low, high, minimum, maximum)
    words = domains.english_column_name(evidence)
    codes = [int(code) for code in domains.comment_codes(evidence) if code.lstrip("-").isdigit()]
    if codes and all(minimum <= code <= maximum for code in codes):
        return definition(column.name, "enum", {"values": codes})
    if domains.is_flag(words, small=(column.bits or _DEFAULT_BITS) <= _BYTE_BITS) and minimum <= 0:
        options = {"truthy": 1, "falsy": 0, "probability": domains.flag_share(words)}
        return definition(column.name, "boolean", options)
    if (
        _EPOCH_NAMES.search(words)
        and not _DURATION_NAMES.search(words)
        and (column.bits or _DEFAULT_BITS) >= _DEFAULT_BITS
    ):
        # MySQL's `int(11)` and `bigint(10)` hold seconds.
        is_wide = column.bits == _WIDE_BITS and not re.search(r"\(1?\d\)", column.declared)
        return definition(column.name, "epoch", {"unit": "milliseconds"} if is_wide else {})
    if _CODE_NAMES.search(words):
        default = column.default or ""
        first = int(default) if re.fullmatch(r"\d", default) else 1
        evidence.notes.append("The name suggests numeric codes, but not which ones. Check the values.")
        return definition(column.name, "enum", {"values": sorted({first, 1, 2, 3})})
    if re.search(r"(^|_)(gender|sex)(_code|_id)?$", words) and minimum <= 1:
        evidence.notes.append("The name suggests numeric codes, but not which ones. Check the values.")
        return definition(column.name, "enum", {"values": [1, 2]})
    if re.search(r"(^|_)(status|state|type|kind)(_code)?$", words) and not _HTTP_STATUS_NAMES.search(words):
        evidence.notes.append("The name suggests numeric codes, but not which ones. Check the values.")
        return definition(column.name, "enum", {"values": [1, 2, 3]})
    named = domains.number_field(evidence, float(max(minimum, -limits.MAX_INTEGER)), float(upper), 0)
    if named is None and re.search(r"(^|_)(class|category|group|grade|tier|phase|stage)(_code)?$", words):
        evidence.notes.append("The name suggests numeric codes, but not which ones. Check the values.")
        return definition(column.name, "enum", {"values": [1, 2, 3]})
    return named or _number_field(evidence, low, high, minimum, maximum)


def _number_field(evidence: ColumnEvidence, low: int, high: int, minimum: int, maximum: int) -> Field:
    """Return a number in a range, or a field of the type that the name suggests if its values are in the range."""
    column = evidence.column
    if not evidence.unique and not evidence.rule.excluded:
        named_type = guess.suggest_type(column.name)
        if named_type in ("age", "year", "http_status", "epoch") and not evidence.values:
            named = definition(column.name, named_type)
            if _is_within(evidence, named, max(minimum, low), min(maximum, high)):
                return named
    evidence.is_guessed = _is_guess(evidence)
    return definition(column.name, "number", {"min": low, "max": high}, unique=evidence.unique)


def _is_guess(evidence: ColumnEvidence) -> bool:
    """Return whether a range is a guess: no values, checks or key determine it."""
    rule = evidence.rule
    return not (
        evidence.values
        or evidence.unique
        or evidence.column.key
        or rule.low is not None
        or rule.high is not None
    )


def decimal_field(evidence: ColumnEvidence) -> Field | None:
    """Return a field for a column of decimals; None if its checks allow no value."""
    column = evidence.column
    scale = 2 if column.scale is None else column.scale
    places = max(0, min(scale, limits.MAX_DECIMALS))
    step = Decimal(1).scaleb(-places)
    maximum = Decimal(limits.MAX_UNITS).scaleb(-places)
    if column.precision is not None:
        digits = min(column.precision - scale, _MAX_DIGITS)
        maximum = min(maximum, Decimal(10) ** digits - max(step, Decimal(10) ** -scale))
    bounds = _infer_range(evidence, -maximum, maximum, step)
    if bounds is None:
        return None
    if _is_guess(evidence):
        named = domains.number_field(evidence, float(-maximum), float(maximum), places)
        if named is not None:
            return named
        evidence.is_guessed = True
    low, high = (to_json_number(bound) for bound in bounds)
    return definition(
        column.name, "number", {"min": low, "max": high, "decimals": places}, unique=evidence.unique
    )


def float_field(evidence: ColumnEvidence) -> Field | None:
    """Return a field for a column of floating point numbers; None if its checks allow no value."""
    bounds = _infer_range(evidence, Decimal(-(10**9)), Decimal(10**9), Decimal("0.01"))
    if bounds is None:
        return None
    if _is_guess(evidence):
        named = domains.number_field(evidence, -1e9, 1e9, 6)
        if named is not None:
            return named
        evidence.is_guessed = True
    low, high = (to_json_number(bound) for bound in bounds)
    return definition(
        evidence.column.name, "number", {"min": low, "max": high, "decimals": 2}, unique=evidence.unique
    )


def _infer_range(
    evidence: ColumnEvidence, minimum: Decimal, maximum: Decimal, step: Decimal
) -> tuple[Decimal, Decimal] | None:
    """Return the minimum and maximum: those of the checks; within these, those of the sample; else the default ones."""
    rule = evidence.rule
    low, high = minimum, maximum
    if (bound := checks.finite_number(rule.low)) is not None:
        low = max(low, _round_to_step(bound + (step if rule.low_open else 0), step, up=True))
    if (bound := checks.finite_number(rule.high)) is not None:
        high = min(high, _round_to_step(bound - (step if rule.high_open else 0), step, up=False))
    if low > high:
        evidence.notes.append("No value satisfies its checks.")
        return None
    numbers = [decimal for decimal in map(checks.finite_number, evidence.values) if decimal is not None]
    if evidence.unique:
        first, last = (max(numbers, default=Decimal(0)) + step, high)
    elif len(numbers) >= limits.INFER_MIN_VALUES:
        first, last = (
            texts.round_bound(min(numbers), down=True),
            texts.round_bound(max(numbers), down=False),
        )
    else:
        first, last = _DEFAULT_RANGE
        if rule.low is not None and high >= low + _DEFAULT_RANGE[1]:
            first, last = low, low + _DEFAULT_RANGE[1]
    first, last = (
        max(low, _round_to_step(first, step, up=True)),
        min(high, _round_to_step(last, step, up=False)),
    )
    if first > last:
        first, last = low, high
    if Decimal(0) in map(checks.finite_number, rule.excluded) and first <= 0 <= last:
        first, last = (step, last) if last >= step else (first, -step)
    for number in filter(None, map(checks.finite_number, rule.excluded)):
        if first <= number <= last:  # keep the longer part next to it
            if number - first > last - number:
                last = _round_to_step(number - step, step, up=False)
            else:
                first = _round_to_step(number + step, step, up=True)
    if first > last:
        evidence.notes.append("No value satisfies its checks.")
        return None
    return first, last


def _round_to_step(value: Decimal, step: Decimal, up: bool) -> Decimal:
    units = value / step
    count = units.to_integral_value("ROUND_CEILING" if up else "ROUND_FLOOR")
    return count * step


def _is_within(evidence: ColumnEvidence, field: Field, low: int, high: int) -> bool:
    try:
        plan = compile_plan(parse([field]), evidence.vocabulary)
    except SpecError:
        return False
    bounds = plan.layer.columns[evidence.column.name].bounds(limits.DEFAULT_QUANTITY)
    return bounds is not None and low <= bounds[0] and bounds[1] <= high


@dataclass(slots=True)
class ColumnResult:
    """The result for one column. Without a `field` no values are generated, and `reason` says why."""

    column: str
    field: Field | None
    state: State
    reason: str
    is_guessed: bool = False
    """Whether nothing says what the column contains, so that the field is only one of the column's type."""

    @property
    def confidence(self) -> Confidence:
        """How sure the choice is: high only for what was recognized."""
        if self.state == "red" or self.is_guessed:
            return "unknown"
        return "high" if self.state == "green" else "check"


def infer_columns(
    entity: Entity, sample: pa.RecordBatch | None, vocabulary: Vocabulary, rows: int = limits.DEFAULT_QUANTITY
) -> list[ColumnResult]:
    """Return a field for each column that rows must provide. Foreign keys are handled by `imports.services.tables`.

    `rows`: the minimum number of values of a unique column.
    """
    rules = checks.read(entity.checks, [field.name for field in entity.fields])
    single_unique_columns = {names[0] for names in (*entity.uniques, entity.keys) if len(names) == 1}
    locale = lexicon.detect_locale(
        [
            names.split_words(item)
            for item in ((entity.parts or (entity.name,))[-1], *(field.name for field in entity.fields))
        ]
    )
    results = []
    for column in entity.fields:
        values: list[Any] = []
        if sample is not None and column.name in sample.schema.names:
            values = sample.column(column.name).to_pylist()
        non_null_values = [value for value in values if value is not None]
        unique = column.unique or column.name in single_unique_columns
        rule = rules.rule_of(column.name)
        nulls = len(values) - len(non_null_values)
        is_part_of_composite_key = any(
            len(names) > 1 and column.name in names for names in (*entity.uniques, entity.keys)
        )
        evidence = ColumnEvidence(
            entity,
            column,
            rule,
            non_null_values,
            nulls,
            unique,
            is_part_of_composite_key,
            vocabulary,
            rows,
            locale=locale,
        )
        results.append(_infer_column(evidence, rules, {field.name: field for field in entity.fields}))
    _resolve_unique_conflicts(results, vocabulary)
    _derive_totals(entity, rules, results)
    _separate_ranges(rules, results)
    return results


def _separate_ranges(rules: Rules, results: Sequence[ColumnResult]) -> None:
    """Give numbers of which one is never below the other ranges that do not overlap."""
    fields = {
        result.column: result
        for result in results
        if result.field is not None
        and result.field["type"] == "number"
        and "formula" not in result.field
        and {"min", "max"} <= result.field["options"].keys()
    }
    later_columns = {**_pairs_by_name(fields), **rules.earlier_column_by_column}
    pairs = [(first, last) for last, first in later_columns.items() if first in fields and last in fields]
    pairs.sort(key=lambda pair: _ordering_depth(pair[0], later_columns))
    for first, last in pairs:
        low, high = fields[first].field, fields[last].field
        assert low is not None
        assert high is not None
        minimum, maximum = Decimal(str(low["options"]["min"])), Decimal(str(high["options"]["max"]))
        decimals = min(field["options"].get("decimals", 0) for field in (low, high))
        step = Decimal(1).scaleb(-decimals)
        shared = (
            max(minimum, Decimal(str(high["options"]["min"]))),
            min(maximum, Decimal(str(low["options"]["max"]))),
        )
        middle = ((shared[0] + shared[1]) / 2).quantize(step, "ROUND_FLOOR")
        end = min(middle, Decimal(str(low["options"]["max"])))
        start = max(middle + step, Decimal(str(high["options"]["min"])))
        if minimum > end or start > maximum:
            continue
        low["options"] = {**low["options"], "max": to_json_number(end)}
        high["options"] = {**high["options"], "min": to_json_number(start)}
        why = "as a check demands" if last in rules.earlier_column_by_column else "as their names say"
        fields[last].reason = f"{fields[last].reason} Above {first}, {why}."


def _pairs_by_name(columns: Iterable[str]) -> dict[str, str]:
    """Return the numbers whose name differs from another one's only in `max` for `min` and the like, with that one."""
    by_words = {tuple(lexicon.translate_to_english(names.split_words(item))): item for item in columns}
    found = {}
    for words, column in by_words.items():
        for high, low in _MAX_MIN_WORDS:
            other = by_words.get(tuple(low if word == high else word for word in words))
            if other is not None and other != column:
                found[column] = other
    return found


def _ordering_depth(column: str, later: Mapping[str, str]) -> int:
    """Return how many columns are below a column in checks."""
    depth = 0
    while column in later and depth < len(later):
        column, depth = later[column], depth + 1
    return depth


def _derive_totals(entity: Entity, rules: Rules, results: list[ColumnResult]) -> None:
    """Derive totals from their parts, where the table has both and the result fits into the column."""
    fields = {
        result.column: result
        for result in results
        if result.field is not None and result.field["type"] == "number"
    }
    columns = {
        "_".join(lexicon.translate_to_english(names.split_words(name))): entity.column(name)
        for name in fields
    }
    for words, column in columns.items():
        if (
            column is None
            or column.type not in ("decimal", "float")
            or column.unique
            or column.name in rules.unsupported_checks
        ):
            continue
        for pattern, first, second, sign in _TOTAL_RULES:
            parts = [
                next((columns[item] for item in part.split("|") if item in columns and item != words), None)
                for part in (first, second)
            ]
            if re.search(pattern, words) and _can_combine(column, parts, rules, fields, sign):
                field = fields[column.name].field
                assert field is not None
                field["formula"] = f" {sign} ".join(part.name for part in parts if part is not None)
                fields[column.name].reason = f"Calculated from other columns: {field['formula']}."
                fields[column.name].state, fields[column.name].is_guessed = "green", False
                break


def _can_combine(
    column: Column,
    parts: Sequence[Column | None],
    rules: Rules,
    fields: Mapping[str, ColumnResult],
    sign: str,
) -> bool:
    maximum, decimals = Decimal(1 if sign == "*" else 0), 0
    rule = rules.rule_of(column.name)
    if rule.low is not None or rule.high is not None or rule.choices is not None:
        return False
    for part in parts:
        if part is None or not re.fullmatch(r"[A-Za-z_]\w*", part.name):
            return False
        field = fields[part.name].field
        if (
            field is None
            or "formula" in field
            or field.get("percent_blank")
            or field["options"].get("max") is None
        ):
            return False
        largest, places = Decimal(str(field["options"]["max"])), int(field["options"].get("decimals", 0))
        maximum = maximum * largest if sign == "*" else maximum + largest
        decimals = decimals + places if sign == "*" else max(decimals, places)
    if column.type == "float":
        return True
    scale = 2 if column.scale is None else column.scale
    return decimals <= scale and (column.precision is None or maximum.adjusted() < column.precision - scale)


def _resolve_unique_conflicts(results: list[ColumnResult], vocabulary: Vocabulary) -> None:
    """Resolve conflicts between unique fields of one group: several fields of one place, or a department and a job,
    cannot all be unique. A country and its code share the uniqueness; other fields get a separate group, and if that
    is not sufficient, random text."""
    candidates = [result for result in results if result.field is not None]
    used: Counter[str] = Counter()
    for attempt in range(2):
        try:
            compile_plan(groups.assign(parse([candidate.field for candidate in candidates])), vocabulary)
            break
        except SpecError as error:
            matches = [re.fullmatch(r"fields\[(\d+)\]\.unique", fault.path) for fault in error.faults]
        clashing = [candidates[int(match[1])] for match in matches if match]
        if not clashing:
            break
        settled = [candidate for candidate in candidates if candidate not in clashing]
        for result in clashing:
            field, kind = result.field, find(result.field["type"] if result.field else "")
            assert field is not None
            assert kind is not None
            deciding = (
                other.field
                for other in settled
                if other.field is not None
                and other.field["type"] in _COUNTRY_TYPES
                and other.field.get("unique")
            )
            country = next(deciding, None)
            if field["type"] in _COUNTRY_TYPES and country is not None:
                del field["unique"]
                field |= {key: country[key] for key in ("group",) if key in country}
            elif attempt == 0 and kind.group_kind is not None:
                used[kind.group_kind] += 1
                field["group"] = f"{kind.group_kind}_{used[kind.group_kind] + 1}"
            else:
                result.field = definition(result.column, "regexp", {"string": "[A-Z0-9]{8}"}, unique=True)
                result.state, result.reason = (
                    "yellow",
                    "It must be unique, and no type with unique values matches the other columns: random text.",
                )
            settled.append(result)


def _infer_column(evidence: ColumnEvidence, rules: Rules, columns: Mapping[str, Column]) -> ColumnResult:
    column = evidence.column
    field: Field | None
    if column.generated == "computed":
        return ColumnResult(column.name, None, "green", "The target calculates it.")
    if column.generated == "identity":
        if column.name in evidence.entity.keys or evidence.unique:  # other tables may refer to it
            field = definition(column.name, "row_number")
            reason = "The target generates its numbers: a push omits it, and referencing rows get the actual value."
            return ColumnResult(column.name, field, "green", reason)
        return ColumnResult(column.name, None, "green", "The target generates its numbers.")
    nested = column.declared.startswith(
        "Navigation("
    )  # rows inside this one: a person decides whether to make them
    field = _relative_date(evidence, rules, columns) or (None if nested else _field_by_type(evidence))
    if field is None:
        if column.nullable or column.default is not None:
            explanation = "may be blank" if column.nullable else "has a default"
            return ColumnResult(
                column.name,
                None,
                "yellow",
                f"No values are generated for the type {column.declared}; the column {explanation}.",
            )
        return ColumnResult(
            column.name,
            None,
            "red",
            f"No values can be generated for the type {column.declared}, but the column requires a value.",
        )
    total = evidence.nulls + len(evidence.values)
    if column.nullable and evidence.nulls and not evidence.unique and total >= limits.INFER_MIN_VALUES:
        field["percent_blank"] = min(95, round(100 * evidence.nulls / total / 5) * 5)
    elif column.nullable and not evidence.values and not evidence.unique and field["type"] != "boolean":
        seldom = ("date", "timestamp", "timestamptz", "text", "integer")
        if _RARELY_SET_NAMES.search(domains.english_column_name(evidence)) and column.type in seldom:
            field["percent_blank"] = _RARELY_SET_PERCENT_BLANK
    unread = rules.unsupported_checks.get(column.name, [])
    if unread:
        return ColumnResult(
            column.name, field, "yellow", f"Its check cannot be read, so rows may be rejected: {unread[0]}"
        )
    if evidence.notes:
        return ColumnResult(column.name, field, "yellow", " ".join(evidence.notes), evidence.is_guessed)
    kind = find(field["type"])
    label = kind.label if kind else field["type"]
    if evidence.is_guessed:
        reason = f"Neither the name nor the values show what it contains: {label}. Please choose a type."
        return ColumnResult(column.name, field, "yellow", reason, True)
    return ColumnResult(column.name, field, "green", f"Recognized as {label}.")


# --- By type ------------------------------------------------------------------------------------------------


def _relative_date(evidence: ColumnEvidence, rules: Rules, columns: Mapping[str, Column]) -> Field | None:
    """Return a date that is not before another date of its row, if a check or its name requires that: an end after its
    start, an update after a creation."""
    column, rule = evidence.column, evidence.rule
    checked = columns.get(rules.earlier_column_by_column.get(column.name, ""))
    if checked is not None:
        pairs = {("date", "date"), ("timestamp", "timestamp"), ("timestamptz", "timestamptz")}
        if (column.type, checked.type) in pairs and not evidence.unique:
            options = {"field": checked.name, "min": "1d", "max": "30d"}
            return definition(column.name, "date_relative", options)
        if column.type not in _NUMBER_TYPES or checked.type not in _NUMBER_TYPES:
            text = f"A check compares it with {checked.name}. This check is not imported, so rows may be rejected."
            evidence.notes.append(text)
        return None
    if column.type not in ("date", "timestamp", "timestamptz") or evidence.unique or evidence.values:
        return None
    if rule.low is not None or rule.high is not None or rule.choices is not None or column.generated:
        return None
    words = domains.english_column_name(evidence)
    for later, earlier, minimum, maximum in _ORDERED_DATES:
        if not re.search(later, words):
            continue
        others = [
            (len(set(words.split("_")) & set(other_words.split("_"))), other)
            for other in columns.values()
            if other.type == column.type
            and other.name != column.name
            and re.search(
                earlier, other_words := "_".join(lexicon.translate_to_english(names.split_words(other.name)))
            )
            and not any(re.search(item[0], other_words) for item in _ORDERED_DATES)
            and not _RARELY_SET_NAMES.search(other_words)
        ]
        if others:  # the one whose name shares the most words
            _, other = max(others, key=lambda item: item[0])
            minimum = "1d" if column.type == "date" and minimum == "0d" else minimum
            maximum = "2d" if column.type == "date" and maximum.endswith("h") else maximum
            minimum = "1d" if column.type == "date" and minimum.endswith("h") else minimum
            return definition(
                column.name, "date_relative", {"field": other.name, "min": minimum, "max": maximum}
            )
    return None


def _field_by_type(evidence: ColumnEvidence) -> Field | None:
    column, rule = evidence.column, evidence.rule
    if rule.choices is not None and column.type != "enum":
        return _choice_field(evidence, rule.choices)
    functions_by_type: dict[str, Callable[[ColumnEvidence], Field | None]] = {
        "text": texts.infer_text_field, "integer": integer_field, "decimal": decimal_field,
        "float": float_field, "boolean": _boolean_field, "date": _date_field, "timestamp": _date_field,
        "timestamptz": _date_field, "time": _field_function("time"), "interval": _field_function("duration"),
        "uuid": _field_function("uuid"), "json": _json_field, "enum": _enum_field, "binary": _binary_field,
        "array": _array_field, "objectid": _field_function("mongodb_objectid"), "other": _other_field,
    }  # fmt: skip
    return functions_by_type[column.type](evidence)


def _field_function(kind: str) -> Callable[[ColumnEvidence], Field]:
    def make(evidence: ColumnEvidence) -> Field:
        return definition(evidence.column.name, kind, unique=evidence.unique and kind != "uuid")

    return make


def _choice_field(evidence: ColumnEvidence, choices: Sequence[Any]) -> Field | None:
    values = [choice for choice in choices if choice not in evidence.rule.excluded]
    if evidence.column.type in ("integer", "decimal", "float"):
        numbers = [checks.finite_number(value) for value in values]
        values = [to_json_number(number) for number in numbers if number is not None]
    elif evidence.max_chars is not None:
        values = [value for value in values if not isinstance(value, str) or len(value) <= evidence.max_chars]
    if not values:
        return None
    if evidence.unique:
        evidence.notes.append(
            f"It must be unique and allows only {len(values)} values: at most {len(values)} rows."
        )
    if (
        evidence.column.type == "text"
        and not evidence.unique
        and domains.is_flag(words := domains.english_column_name(evidence))
    ):
        folded = {str(value).upper(): value for value in values}
        yes, no = (
            next((folded[item] for item in pair if item in folded), None)
            for pair in (("Y", "T", "1"), ("N", "F", "0"))
        )
        if yes is not None and no is not None and len(values) == len(("yes", "no")):
            options = {"truthy": yes, "falsy": no, "probability": domains.flag_share(words)}
            return definition(evidence.column.name, "boolean", options)
    return definition(evidence.column.name, "enum", {"values": values}, unique=evidence.unique)


def _enum_field(evidence: ColumnEvidence) -> Field | None:
    choices = [
        choice
        for choice in evidence.column.choices
        if evidence.rule.choices is None or choice in evidence.rule.choices
    ]
    return _choice_field(evidence, choices)


def _boolean_field(evidence: ColumnEvidence) -> Field:
    if evidence.unique:
        evidence.notes.append("It must be unique and allows only two values: at most two rows.")
        return definition(evidence.column.name, "enum", {"values": [True, False]}, unique=True)
    words = domains.english_column_name(evidence)
    share = domains.flag_share(words)
    if len(evidence.values) >= limits.INFER_MIN_VALUES:
        share = round(sum(map(bool, evidence.values)) / len(evidence.values), 2)
    options = {} if share == 0.5 else {"probability": share}
    return definition(evidence.column.name, "boolean", options)


def _json_field(evidence: ColumnEvidence) -> Field:
    evidence.notes.append(
        "The structure of the JSON is not known: a small object is generated. Set its fields."
    )
    inner = [{"name": "value", "type": "words", "options": {}}]
    return definition(evidence.column.name, "nested", {"fields": inner})


def _binary_field(evidence: ColumnEvidence) -> Field:
    length = max(evidence.rule.min_length, min(evidence.max_chars or 16, 16))
    evidence.notes.append("Its bytes are generated as random hexadecimal digits.")
    return definition(
        evidence.column.name, "regexp", {"string": f"[a-f0-9]{{{length}}}"}, unique=evidence.unique
    )


def _array_field(evidence: ColumnEvidence) -> Field | None:
    if evidence.column.nullable or evidence.column.default is not None:
        return None
    evidence.notes.append("Each row gets an empty array.")
    return definition(evidence.column.name, "constant", {"value": "{}"})


def _other_field(evidence: ColumnEvidence) -> Field | None:
    declared = evidence.column.declared.lower()
    bits = re.match(r"^bit(?: varying)?(?:\((\d+)\))?$", declared)
    if bits:
        return definition(
            evidence.column.name, "regexp", {"string": f"[01]{{{bits[1] or 1}}}"}, unique=evidence.unique
        )
    for pattern, kind, options in _DECLARED_TYPES:
        if re.search(pattern, declared):
            if kind == "constant" and evidence.unique:
                return None
            evidence.notes.append(f"{evidence.column.declared} is generated as {kind}.")
            return definition(evidence.column.name, kind, options, unique=evidence.unique)
    return None


# --- Dates --------------------------------------------------------------------------------------------------


def _date_field(evidence: ColumnEvidence) -> Field | None:
    column, rule = evidence.column, evidence.rule
    kind = "date" if column.type == "date" else "datetime"
    low, high = _day_bound(rule.low, rule.low_open), _day_bound(rule.high, -1 if rule.high_open else 0)
    options: dict[str, Any] = {}
    if low is not None:
        options = {"min": "+1d", "max": "+365d"} if low == "now" else {"min": low, "max": _add_years(low)}
    if high is not None:
        options |= {"max": "-1d" if high == "now" else high}
        options.setdefault("min", "-3650d" if high == "now" else _add_years(high, -10))
    if (rule.low is not None and low is None) or (rule.high is not None and high is None):
        evidence.notes.append("A limit in its checks cannot be read, so rows may be rejected.")
    if (
        kind == "date"
        and low is None
        and high in (None, "now")
        and _BIRTH_DATE_NAMES.search(domains.english_column_name(evidence))
    ):
        options = {"min": "-27000d", "max": "-6600d"}
    return definition(column.name, kind, options, unique=evidence.unique)


def _day_bound(value: Any, extra_days: int = 0) -> str | None:
    """Return a bound as a day, plus `extra_days`; `now` is returned unchanged."""
    if value == "now":
        return "now"
    if not isinstance(value, str) or not (match := _ISO_DAY.match(value)):
        return None
    try:
        return (date.fromisoformat(match[0]) + timedelta(days=int(extra_days))).isoformat()
    except (ValueError, OverflowError):  # 2021-02-30, and the day after the last one
        return None


def _add_years(day: str, years: int = 10) -> str:
    """Return the day so many years later, within the range of the calendar."""
    first, last = date.min.toordinal(), date.max.toordinal()
    moved = date.fromisoformat(day).toordinal() + 365 * years
    return date.fromordinal(min(max(moved, first), last)).isoformat()


def is_combinable(field: Field, vocabulary: Vocabulary) -> bool:
    """Return whether a field's values can be combined freely with those of others."""
    if field["type"] in ("reference", "foreign_key"):
        return bool(field["options"].get("template_id") != "self")
    try:
        column = compile_plan(parse([field]), vocabulary).layer.columns[field["name"]]
    except SpecError:
        return False
    return column.type.is_primary_key or (
        column.type.distinct_count() is not None and column.type.group_kind is None
    )
