"""Values and ranges that columns of a certain name have: statuses of orders, priorities, ages, percentages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from webapp.imports.inference.evidence import ColumnEvidence, Field, definition
from webapp.imports.inference.lexicon import translate_to_english
from webapp.imports.inference.names import split_words

# Values of a status by a word of the table's name; the first line that fits decides.
_STATUSES: Final = (
    (r"order|purchase|cart|basket", "pending processing shipped delivered cancelled"),
    (r"invoice|bill\b|billing|receivable|payable", "draft sent paid overdue void"),
    (r"payment|transaction|charge|refund|payout|transfer", "pending authorized completed failed refunded"),
    (r"ticket|issue|case|bug|incident|request|complaint", "open in_progress resolved closed reopened"),
    (
        r"job|run|task|batch|queue|process|import|export|build|pipeline|migration",
        "queued running completed failed",
    ),
    (r"ship|deliver|parcel|package", "preparing shipped in_transit delivered returned"),
    (r"subscription|membership|plan|licen[cs]e", "trialing active past_due cancelled expired"),
    (r"post|article|page|content|document|product|book|news|blog|course|survey", "draft published archived"),
    (r"comment|review|message|mail|notification", "pending approved rejected"),
    (r"contract|offer|quote|proposal|claim|application|loan|approval", "draft submitted approved rejected"),
    (
        r"reservation|booking|appointment|event|meeting|visit|flight",
        "scheduled confirmed completed cancelled",
    ),
    (r"lead|deal|opportunity", "new qualified proposal won lost"),
    (r"device|server|machine|node|sensor|vehicle|equipment|asset", "online offline maintenance retired"),
    (r"invit", "pending accepted declined expired"),
    (r"project|campaign|milestone|sprint", "planned active on_hold completed cancelled"),
)
_DEFAULT_STATUSES: Final = "active inactive pending"
# Values of other columns: the name in English, perhaps with its table, and the values.
_DOMAINS: Final = (
    (r"(^|_)(debit_credit|dr_cr)(_\w+)?$", "debit credit", "S H"),
    (r"(payment|pay)_(method|type|mode|means)$|_tender_type$", "card bank_transfer cash paypal invoice", "C B H P I"),
    (r"(shipping|ship|delivery)_(method|type|mode)$|(^|_)(ship_via|carrier_service)$", "standard express"
     " overnight pickup", ""),
    (r"transaction_type$", "deposit withdrawal transfer payment fee", "DP WD TR PM FE"),
    (r"account_type$", "checking savings credit loan", "CHK SAV CRD LON"),
    (r"address_type$", "billing shipping home work", "B S H W"),
    (r"(phone|contact)_type$", "mobile home work fax", "M H W F"),
    (r"(customer|client)_(type|class|segment|group)$", "retail wholesale business", "R W B"),
    (r"(employment|contract)_type$", "full_time part_time temporary contractor", "F P T C"),
    (r"(comment|ping|registration)_status$", "open closed", "O C"),
    (r"(payment|financial|billing)_status$", "unpaid paid refunded failed", "U P R F"),
    (r"(fulfillment|delivery|shipping|shipment)_status$", "pending shipped delivered returned", "P S D R"),
    (r"marital_(status|state)(_code)?$", "single married divorced widowed", "S M D W"),
    (r"(^|_)priority(_code|_name|_level|_type)?$", "low medium high urgent", "L M H U"),
    (r"(^|_)severity(_code|_level)?$", "low medium high critical", "L M H C"),
    (r"(^|_)risk(_level|_class|_rating)?$", "low medium high", "L M H"),
    (r"(^|_)(film|movie|content|mpaa)_rating$|^(films?|movies?)\.rating$", "G PG PG-13 R NC-17", ""),
    (r"(^|_)(rating|grade)(_code)?$", "A B C D", "A B C D"),
    (r"(^|_)size(_code)?$|shirt_size$", "XS S M L XL", "S M L"),
    (r"(user|member|account)?_?role(_name|_type)?$|(^|_)access_level$", "admin editor viewer member", ""),
    (r"(^|_)visibility$|(^|_)privacy$", "public private internal", ""),
    (r"(^|_)(frequency|billing_cycle|billing_interval|recurrence|interval_unit)$", "daily weekly monthly yearly",
     "D W M Y"),
    (r"(^|_)(environment|env)$", "development staging production", "dev stg prd"),
    (r"(^|_)(log_)?level$", "debug info warning error", "D I W E"),
    (r"(^|_)(channel|source|medium)(_type|_name|_code)?$", "web email phone store partner", ""),
    (r"(^|_)(direction)$", "inbound outbound", "I O"),
    (r"(^|_)(gender_key)$", "1 2", "1 2"),
    (r"(^|_)(operating_system|platform|os)(_version|_name)?$", "Windows macOS Linux Android iOS", ""),
    (r"(^|_)name_particle$", "van de|van|van der|de|den", ""),
    (r"(^|_)deletion_mark$", "X", "X"),
    (r"(^|_)(outcome|result)$", "success failure partial", "S F P"),
    (r"(^|_)(condition)$", "new used refurbished", "N U R"),
    (r"(^|_)(tier|plan|edition)(_name|_code)?$", "free basic premium enterprise", "F B P E"),
    (r"(^|_)transmission(_type)?$", "manual automatic", "M A"),
    (r"(^|_)fuel(_type)?$", "petrol diesel electric hybrid", "P D E H"),
    (r"(^|_)(religion|denomination)(_code)?$", "none catholic protestant muslim jewish other", "N C P M J O"),
    (r"(^|_)education(_level)?$", "secondary vocational bachelor master doctorate", "S V B M D"),
    (r"(^|_)relationship(_type|_code)?$|(^|_)next_of_kin$", "spouse parent child sibling friend", "S P C B F"),
    (r"(^|_)(unit|uom|unit_measure|unit_of_measure|measure_unit)(_code|_name)?$", "EA KG M L PC", "EA KG M L"),
)  # fmt: skip
_TYPES: Final = (
    (r"product|item|material|article", "standard bundle digital service"),
    (r"event|log|audit|activity|history", "create update delete login"),
    (r"user|member|person|contact|customer|client", "individual business"),
    (r"file|document|attachment|media", "image video audio document"),
    (r"notification|message", "email sms push"),
    (r"discount|coupon|promotion", "percentage fixed"),
    (r"question|answer", "single_choice multiple_choice text"),
    (r"post|page|content", "post page news"),
)
_DEFAULT_TYPES: Final = "standard basic premium other"
_COMMENT_CODES: Final = re.compile(
    r"(?<![\w-])['\"]?(-?\d{1,3}|[A-Za-z][\w-]{0,20})['\"]?\s*(?:=|:|-->?|=>|–)\s*['\"]?[A-Za-zÀ-ÿ]"
)
_NUMBERED_CODES: Final = re.compile(r"(?:^|[,;:.：，；(]\s*)(\d{1,2})\s+[A-Za-z]")
_LISTED_VALUES: Final = re.compile(r"(?:one of|values?|possible|allowed|either|enum)\W+(.+)", re.I)
_MOSTLY_FALSE: Final = (
    r"deleted|removed|voided?|retired|withdrawn|revoked|archived|blocked|banned|suspended|disabled|hidden|locked|spam|cancell?ed|test|internal|private"
    r"|draft|expired|inactive|trashed|void|frozen|obsolete|discontinued|exempt|superuser|admin|staff|mandatory"
    r"|default"
    r"|deletion_mark"
)
_MOSTLY_TRUE: Final = (
    r"active|enabled|visible|verified|confirmed|valid|published|available|approved|current|subscribed"
)
_FLAG_NAMES: Final = re.compile(
    r"^(is|has|can|was|allow|allows|enable|show|use|should|needs|requires|verify|dry)_|(^|_)flag$|(^|_)(active|enabled"
    r"|deleted|paid|disabled|private|public|sensitive"
    r"|verified|archived|visible|published|blocked|locked|hidden)$"
)


def english_column_name(evidence: ColumnEvidence) -> str:
    """Return the column's name in English, in small letters, with `_` between its words."""
    return "_".join(translate_to_english(split_words(evidence.column.name)))


def english_table_name(evidence: ColumnEvidence) -> str:
    """Return the table's name in English, in the same form."""
    return "_".join(
        translate_to_english(
            split_words(evidence.entity.parts[-1] if evidence.entity.parts else evidence.entity.name)
        )
    )


def comment_codes(evidence: ColumnEvidence) -> list[str]:
    """Return the codes that the column's comment explains, such as `0=inactive, 1=active`."""
    comment = evidence.column.comment[:1_000]
    found = list(dict.fromkeys(_COMMENT_CODES.findall(comment)))
    if len(found) > 1 and re.search(r"[,;/|\n]", comment):
        kinds = {item.lstrip("-").isdigit() for item in found}
        return found if len(kinds) == 1 else []
    numbered = list(dict.fromkeys(_NUMBERED_CODES.findall(comment)))
    if len(numbered) > 1 and numbered[0] in ("0", "1"):
        return numbered
    match = _LISTED_VALUES.search(comment)
    if match:
        quoted = re.findall(r"['\"]([\w -]{1,30})['\"]", match[1])
        plain = quoted or re.findall(r"[\w-]+", match[1].split(".")[0]) if "," in match[1] else quoted
        plain = [item for item in plain if item not in ("or", "and")]
        return list(dict.fromkeys(plain)) if 1 < len(plain) <= 20 else []
    return []


def constant_default(evidence: ColumnEvidence) -> str | None:
    """Return the default's text, if it is a constant."""
    match = re.match(r"^\(*N?'([^']{1,40})'", evidence.column.default or "")
    return match[1] if match else None


def flag_share(words: str) -> float:
    """Return the share of rows for which a yes/no column is true."""
    negated = re.search(r"(^|_)(not|no|non|un)_", words) is not None
    if re.search(rf"(^|_)({_MOSTLY_FALSE})(_flag|_code)?$", words):
        return 0.95 if negated else 0.05
    if re.search(rf"(^|_)({_MOSTLY_TRUE})(_flag|_code)?$", words):
        return 0.1 if negated else 0.9
    return 0.5


def is_flag(words: str, small: bool = False) -> bool:
    """Return whether a column's name suggests yes or no; `small`: of a number of one byte."""
    return _FLAG_NAMES.search(words) is not None or (small and _STATE_NAMES.search(words) is not None)


_STATE_NAMES: Final = re.compile(
    rf"(^|_)({_MOSTLY_FALSE}|{_MOSTLY_TRUE}|present|display|notify|smoker|required|read|done)(_flag)?$"
)


def choice_fields(evidence: ColumnEvidence) -> Iterator[Field]:
    """Yield fields with the values that a column of this name has, best first."""
    name, words, table, longest = (
        evidence.column.name,
        english_column_name(evidence),
        english_table_name(evidence),
        evidence.max_chars,
    )
    codes = comment_codes(evidence)
    if codes and (longest is None or max(map(len, codes)) <= longest):
        yield definition(name, "enum", {"values": codes})
    if is_flag(words) and longest is not None and longest <= _FLAG_WORD_CHARS:
        yes, no = _truth_values(evidence, longest)
        yield definition(name, "boolean", {"truthy": yes, "falsy": no, "probability": flag_share(words)})
    base_name = re.sub(r"_(code|key|name)$", "", words)
    for pattern, plain, letters in _DOMAINS:
        if any(re.search(pattern, item) for item in (words, f"{table}.{words}", base_name)):
            if re.search(r"(^|_)size|(^|_)level|channel|source|grade", pattern) and "." in words:
                continue
            yield from _choice_fields(evidence, plain, letters)
            return
    if re.search(r"(^|_)(status|state)(_code|_name|_key|_flag)?$", words) and not re.search(
        r"address|city|country", table
    ):
        subject = words.replace("status", "")
        values = next(
            (text for pattern, text in _STATUSES if re.search(pattern, f"{table}_{subject}")),
            _DEFAULT_STATUSES,
        )
        yield from _choice_fields(evidence, values, "")
    elif re.search(r"(^|_)(type|kind|class)(_code|_name|_key)?$", words):
        values = next(
            (text for pattern, text in _TYPES if re.search(pattern, f"{table}_{words}")), _DEFAULT_TYPES
        )
        evidence.is_guessed = not any(re.search(pattern, f"{table}_{words}") for pattern, _ in _TYPES)
        yield from _choice_fields(evidence, values, "")


def _truth_values(evidence: ColumnEvidence, longest: int) -> tuple[str, str]:
    """Return the texts for yes and no: as in the column's default, else the usual ones for its length."""
    default = (constant_default(evidence) or "").casefold()
    for pair in (("1", "0"), ("T", "F"), ("Y", "N"), ("on", "off"), ("yes", "no"), ("true", "false")):
        if default and default in map(str.casefold, pair) and max(map(len, pair)) <= longest:
            upper = (evidence.column.default or "").strip("'(\")N").isupper()
            return (pair[0].upper(), pair[1].upper()) if upper else pair
    return ("Y", "N") if longest <= 2 else ("yes", "no") if longest < _FLAG_WORD_CHARS else ("true", "false")


_FLAG_CHARS: Final = 1
_FLAG_WORD_CHARS: Final = 5


def _choice_fields(evidence: ColumnEvidence, plain: str, letters: str) -> Iterator[Field]:
    values = plain.split("|") if "|" in plain else plain.split()
    if plain.count("|") == 0 and "van de" in plain:
        values = [plain]
    default = constant_default(evidence)
    if default is not None and default.lower() not in map(str.lower, values):
        if len(default) <= _FLAG_CHARS * 3 and letters:
            values = letters.split()
            values = values if default in values else [default, *values]
        else:
            values = [default, *values]
    elif default is not None and default.isupper():
        values = [value.upper() for value in values]
    for candidate in _shortened(values, letters.split(), evidence.max_chars):
        allowed = [item for item in candidate if item not in evidence.rule.excluded]
        if len(allowed) >= min(2, len(candidate)):
            yield definition(evidence.column.name, "enum", {"values": allowed})


def _shortened(values: Sequence[str], letters: Sequence[str], longest: int | None) -> Iterator[list[str]]:
    """Yield the values; codes for them; those that fit; their first letters."""
    if longest is None or max(map(len, values)) <= longest:
        yield list(values)
        return
    if letters and max(map(len, letters)) <= longest:
        yield list(letters)
    fitting = [value for value in values if len(value) <= longest]
    if len(fitting) > 1:
        yield fitting
    yield list(dict.fromkeys(value[:longest].upper() for value in values))


# Ranges of numbers: the name in English, minimum, maximum, and the maximum number of meaningful decimals.
_RANGES: Final[Sequence[tuple[str, float, float, int]]] = (
    (r"(^|_)age(_years)?$", 18, 80, 0),
    (r"(birth|born)_year$|year_(of_)?birth$", 1945, 2005, 0),
    (r"(^|_)(expiry|expiration|expires?)_year$", 2026, 2034, 0),
    (r"(^|_)year(s_published)?$|_year$|(^|_)year_(?!to_date)\w+$", 1990, 2026, 0),
    (r"(^|_)(pulse|heart_rate|bpm)$", 55, 110, 0),
    (r"(^|_)(respiration|respiratory_rate|breaths)(_rate)?$", 10, 24, 0),
    (r"(^|_)(oxygen_saturation|spo2|sao2)$", 90, 100, 0),
    (r"(^|_)(bmi|body_mass_index)$", 18, 40, 1),
    (r"(^|_)(bps|systolic)(_bp)?$|(^|_)bp_systolic$", 95, 160, 0),
    (r"(^|_)(bpd|diastolic)(_bp)?$|(^|_)bp_diastolic$", 55, 100, 0),
    (r"^.*(vital|patient|observation).*\.(body_)?temperature(_c)?$", 36, 40, 1),
    (r"(^|_)doors(_count)?$", 2, 5, 0),
    (r"(^|_)(engine_)?displacement(_cc)?$", 900, 4000, 0),
    (r"(^|_)(term|duration|period)_months$|(^|_)months$", 6, 60, 0),
    (r"^.*(estate|propert|house|apartment|flat).*\.(.*_)?(price|value)$", 80_000, 900_000, 0),
    (r"(^|_)(http|response)_(status|code)$", 200, 504, 0),
    (r"(^|_)(expiry_|expiration_|fiscal_)?(month|period)(_number|_of_year)?$", 1, 12, 0),
    (r"(^|_)day_of_week$|(^|_)weekday$", 1, 7, 0),
    (r"(^|_)(day|day_of_month)$", 1, 28, 0),
    (r"(^|_)(quarter)(_number)?$", 1, 4, 0),
    (r"(^|_)(week|week_number|week_of_year)$", 1, 52, 0),
    (r"(^|_)hour(_of_day)?$", 0, 23, 0),
    (r"(^|_)(lat|latitude)$", -60, 70, 6),
    (r"(^|_)(longitude)$", -180, 180, 6),
    (r"(^|_)(gmt_offset|utc_offset|timezone_offset|tz_offset)$", -11, 12, 0),
    (r"(^|_)(percent|percentage|progress|done_ratio|completion|completeness|battery(_level)?)$", 0, 100, 0),
    (r"(tax|vat)_(rate|percent|percentage)$|(^|_)vat$", 0, 25, 2),
    (r"(interest|annual|commission)_(rate|percent|pct)$|(^|_)apr$", 0, 15, 4),
    (r"(^|_)(exchange_rate|conversion_rate|fx_rate|currency_rate)$", 0.5, 2, 6),
    (r"(discount|commission|markup|margin)(_rate|_percent|_percentage|_percent_amount)$", 0, 40, 2),
    (r"(discount|rebate)(_amount)?$", 0, 50, 2),
    (r"(^|_)(star_?)?rating$|(^|_)(stars)$", 1, 5, 1),
    (r"(^|_)(score|points)$", 0, 100, 2),
    (r"(^|_)priority(_level|_number)?$", 1, 5, 0),
    (r"(^|_)severity(_level)?$", 1, 5, 0),
    (r"(^|_)(sort_order|sortorder|order|sort|position|display_order|order_index|sequence|rank|line_number|item_number|ordinal)$",
     1, 100, 0),
    (r"(^|_)(version|revision|rev)(_number)?$", 1, 10, 0),
    (r"(^|_)(minimum_occurs|min_occurs)$", 0, 1, 0),
    (r"(^|_)(maximum_occurs|max_occurs)$", 1, 5, 0),
    (r"(^|_)(time_?out|interval|delay|ttl|step)(_seconds)?$", 1, 300, 0),
    (r"(^|_)font_size$", 8, 24, 0),
    (r"(^|_)(thresholds?|limit|upper_limit|lower_limit|high_limit|low_limit)(_low|_high|_value)?$", 1, 100, 2),
    (r"(^|_)quota$", 1, 1_000, 0),
    (r"(^|_)(latency|ping)(_ms)?$", 1, 500, 0),
    (r"(^|_)(area|surface)(_m2|_sqm)?$", 10, 500, 2),
    (r"(^|_)(power|load|capacity)$", 1, 1_000, 2),
    (r"(^|_)(ratio|coefficient|efficiency|efficiency_indicator|probability|availability|share|factor)$", 0, 1, 4),
    (r"(price|total|cost|amount|paid|discounts?|shipping|wrapping|products)(_tax)?_(excl|incl|te|ti|real)$", 1, 500, 2),
    (r"(min|minimum)_quantity$", 1, 10, 0),
    (r"(^|_)(stock|inventory|on_hand)(_quantity|_level|_count|_units)?$|units_in_stock$|quantity_in_stock$"
     r"|stock_quantity$", 0, 500, 0),
    (r"(^|_)(reorder_level|reorder_point|safety_stock)$", 5, 100, 0),
    (r"(^|_)(quantity|units|pieces)(_ordered|_sold|_shipped)?$", 1, 20, 3),
    (r"(^|_)port(_number)?$", 1024, 65535, 0),
    (r"(http_status|status_code|response_code)(_code)?$", 200, 504, 0),
    (r"(^|_)(salary|wage|base_pay|annual_income|income)(_amount)?$", 25_000, 150_000, 2),
    (r"(^|_)hourly_rate$|(^|_)pay_rate$", 12, 90, 2),
    (r"(^|_)(unit_price|list_price|sale_price|price_sale|net_price|retail_price|price|unit_cost|cost|msrp)(_sale"
     r"|_each)?$", 1, 500, 2),
    (r"(^|_)(replacement_cost|rental_rate|fare|late_fee|fee|fees)$", 1, 30, 2),
    (r"(^|_)(freight|shipping|shipping_cost|shipping_fee|postage)(_amount|_total)?$", 2, 40, 2),
    (r"(tax|vat)(_amount|_total|_value)$|(^|_)tax$", 1, 200, 2),
    (r"(^|_)(subtotal|sub_total|net_amount|net_total)(_amount)?$", 10, 2_000, 2),
    (r"(^|_)(total|grand_total|gross|gross_amount|total_amount|total_price|amount_total)(_gross|_amount|_price"
     r"|_paid|_due)?$", 10, 3_000, 2),
    (r"(^|_)(balance|credit_limit|budget|revenue)(_amount)?$", 100, 20_000, 2),
    (r"(^|_)(amount|amount_paid|amount_due|value|sum|net|payment)$", 5, 2_000, 2),
    (r"(^|_)(body_)?height(_cm)?$", 150, 200, 1),
    (r"^(patient|person|player|athlete|employee|user|student)s?\.(.*_)?weight(_kg)?$", 45, 120, 1),
    (r"(^|_)(gross_|net_)?weight(_kg|_lb|_g)?$", 0.1, 50, 3),
    (r"(^|_)(width|depth|length|height)(_cm|_mm|_in)?$", 1, 200, 2),
    (r"(^|_)temperature(_c)?$", -10, 40, 1),
    (r"(^|_)humidity$", 20, 95, 1),
    (r"(^|_)(milliseconds|duration_ms|elapsed_ms|latency_ms|response_time|ms)$", 1_000, 600_000, 0),
    (r"(^|_)(duration_seconds|seconds|duration|elapsed)$", 10, 7_200, 0),
    (r"(^|_)(duration_minutes|minutes|runtime|running_time)$", 5, 180, 0),
    (r"(^|_)(estimated_hours|hours|hours_worked|logged_hours|spent_hours)$", 0.5, 40, 2),
    (r"(^|_)rental_duration$|(^|_)(days|lead_time|lead_time_days|nights)$", 1, 30, 0),
    (r"(^|_)(bytes|file_size|size_bytes|content_length|filesize)$", 1_000, 20_000_000, 0),
    (r"(^|_)(pages|page_count|num_pages)$", 20, 900, 0),
    (r"(^|_)(seats|capacity|floors?|rooms|bedrooms|bathrooms|guests|adults|passengers)(_count)?$", 1, 8, 0),
    (r"(^|_)(children|dependents|siblings)(_count)?$", 0, 4, 0),
    (r"(^|_)(views?|clicks?|likes|downloads|impressions|hits)(_count)?$", 0, 10_000, 0),
    (r"(^|_)(attempts?|retries|retried|retry_(count|times|number)|max_retry|tries|failures|error_count|repeats)$", 0, 5,
     0),
    (r"(^|_)(count|counter|total_count|usage_count)$", 0, 100, 0),
    (r"(^|_)population$", 5_000, 5_000_000, 0),
    (r"(^|_)(fiscal_year)$", 2018, 2026, 0),
    (r"(^|_)(bar_?code|ean|gtin|upc)$", 4_000_000_000_000, 9_789_999_999_999, 0),
    (r"(^|_)(mileage|odometer)(_km)?$", 1_000, 200_000, 0),
    (r"(^|_)(zip|zip_code|postal_code|zipcode|postcode)$", 10_000, 99_950, 0),
    (r"(^|_)(phone|phone_number|mobile|fax|contact_number)$", 2_012_000_000, 9_899_999_999, 0),
)  # fmt: skip
_PERCENT_DIGITS: Final = 3  # digits before the point of a column that is a rate rather than an amount
_PERCENT_NAMES: Final = re.compile(r"percent|rate$|discount$|(^|_)vat$")


def number_field(evidence: ColumnEvidence, low: float, high: float, decimals: int) -> Field | None:
    """Return a number field with the range that a column of this name has, inside `low` and `high`."""
    words, table = english_column_name(evidence), english_table_name(evidence)
    precision, scale = evidence.column.precision, evidence.column.scale
    integer_digits = (precision or 99) - (scale or 0)
    fraction = scale is not None and precision is not None and precision - scale < 2
    if re.search(r"(^|_)(tax|vat)$", words) and integer_digits <= _PERCENT_DIGITS:
        words += "_rate"
    cents = words.endswith("_cents") and not decimals
    words = words.removesuffix("_cents")
    for pattern, first, last, places in _RANGES:
        if not (re.search(pattern, words) or ("\\." in pattern and re.search(pattern, f"{table}.{words}"))):
            continue
        if (
            _PERCENT_NAMES.search(words)
            and last > 1
            and (fraction or (evidence.column.type == "float" and "discount" in words))
        ):
            first, last = first / 100, last / 100  # percentages as fractions
        first, last = (100 * first, 100 * last) if cents else (first, last)
        step = min(places if decimals else 0, decimals)
        first, last = max(first, low), min(last, high)
        first, last = math.ceil(first * 10**step) / 10**step, math.floor(last * 10**step) / 10**step
        if first > last or (last - first) * 10**step < 1:
            return None
        options: dict[str, Any] = {"min": _rounded(first), "max": _rounded(last)}
        return definition(
            evidence.column.name, "number", {**options, **({"decimals": step} if decimals else {})}
        )
    return None


def _rounded(value: float) -> int | float:
    return int(value) if value == int(value) else round(value, 6)
