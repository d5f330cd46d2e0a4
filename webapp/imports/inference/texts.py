"""Fields for columns of texts: the type that the name suggests, if its values fit, else a pattern."""

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
from webapp.imports.inference import checks, domains, lexicon, names
from webapp.imports.inference.evidence import ColumnEvidence, Field, definition
from webapp.imports.inference.lexicon import translate_to_english
from webapp.imports.inference.names import NameMeaning, split_words

_Kind = tuple[str, dict[str, Any]]
_COUNTRY_CODES: Final[tuple[_Kind, ...]] = (
    ("country_code", {"format": "alpha3"}), ("country_code", {}),
)  # fmt: skip
_NUMBER_PATTERNS: Final[tuple[_Kind, ...]] = (("regexp", {"string": "[1-9][0-9]{9}"}),
                                              ("regexp", {"string": "[1-9][0-9]{5}"}),
                                     ("regexp", {"string": "[1-9][0-9]{3}"}))  # fmt: skip
_PHONE_TYPES: Final[tuple[_Kind, ...]] = (
    ("phone_number", {}), ("phone_number", {"format": "national"}), ("regexp", {"string": "[2-9][0-9]{9}"}),
)  # fmt: skip
_QUALIFIER: Final = re.compile(
    r"_(from|to|start|end|min|max|old|new|alt|other|main|default|primary|secondary|[a-d1-9])$"
)
"""What the last word of a name adds to its meaning: which one of several it is."""
_DOCUMENT_NAMES: Final = re.compile(
    r"(^|_)(meta_?data|payload|settings|preferences|attributes|attrs|params|parameters|properties|extra_data"
    r"|config|configuration|custom_data)$"
)
"""Names of long texts that are mostly documents."""
_MIN_DOCUMENT_CHARS: Final = 500  # chosen
_HEX: Final = re.compile(r"#?[0-9a-fA-F]{6}")
_LANGUAGES: Final = (
    "en de fr es it pt nl pl sv da nb fi cs sk sl hr sr hu ro bg el tr ru uk lt lv et ar he fa hi bn ta th vi id ms ja"
    " zh ko"
).split()
"""ISO 639-1 codes, for columns that have no room for longer ones."""
_OBJECT_ID_CHARS: Final = 24
_MAX_CODE_CHARS: Final = 5  # chosen: characters up to which a column takes codes
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z _/&-]*[A-Za-z]|[A-Z]")
_PRINTABLE: Final = re.compile(r"[!-~]+(?: [!-~]+)*")
_CATEGORY_NOUNS: Final = frozenset(
    "status state type kind category class level priority role method channel mode unit size color colour stage"
    " segment tier severity outcome result source origin region carrier shipping payment currency plan grade".split()
)
"""Names of columns whose words classify rows. The words of other columns might be names of people."""
_PERSONAL_CATEGORIES: Final = frozenset({"person", "contact", "place", "finance", "government", "internet"})
_NEUTRAL_CATEGORIES: Final = frozenset({"logic", "choice", "structure", "external", "number"})
"""Categories whose types have no meaning by their name only."""
_MIN_COUNT: Final = 2
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MANY_VALUES: Final = 100_000  # chosen: a unique column with this many possible values needs no check
_DATE_NAMES: Final = re.compile(
    r"(^|_)(date|day|dt)(_\d)?$|^[a-z]{2}dat$|_(on|at)$|(^|_)(birthday|dob|timestamp)$"
)
_DATE_FORMATS: Final = {
    6: ("date", "YYMMDD"), 8: ("date", "YYYYMMDD"), 10: ("date", "YYYY-MM-DD"), 14: ("datetime", "YYYYMMDDHHmmss"),
    19: ("datetime", "YYYY-MM-DD HH:mm:ss"),
}  # fmt: skip
"""How texts of a length write a date or a moment."""
_TIME_FORMATS: Final = {5: "HH:mm", 6: "HHmmss", 8: "HH:mm:ss"}
"""How texts of a length write a time of day."""
_CODE_NAMES: Final = re.compile(
    r"(^|_)(number|code|id|key|reference|identifier|serial|uid|did|iccid|imei|imsi|(?!(?:pa|vali|inval|hybr|gr|sol|flu"
    r"|rap|avo|unpa|prepa|co[vr]|andro|aster)id)[a-z]{3,}id)(_[a-z]|_?\d)?$"
)
"""Names of texts that are no words."""
_CODE_CHARS: Final = 8
_SAP_COLUMNS: Final = 3  # chosen
_SAP_CHARS: Final = 5
_MAJORITY: Final = 0.7
_SHORTENABLE_TYPES: Final = ("username",)
"""Types whose values are as good when they are shorter."""
_PROSE_TYPES: Final = ("words", "sentences", "paragraphs", "slogan", "catch_phrase")
_RANDOM_TYPES: Final = frozenset(
    "email url phone_number mobile password_hash token uuid iban username regexp".split()
)
"""Types without a vocabulary: those of their values that are short are not typical."""
_CODES_BY_TYPE: Final[dict[str, tuple[tuple[str, dict[str, Any]], ...]]] = {
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
_MIN_VALUES: Final = 5
_MAX_VALUES: Final = 60
_MAX_LISTED: Final = 250  # chosen: values of one column of a key
_MATCHED_VALUES: Final = 300  # chosen: values that are matched with the regular expressions of checks
_SAMPLE_SIZE: Final = 2_000  # chosen: values that are checked for being too long


def _parse_kinds(text: str) -> tuple[_Kind, ...]:
    return tuple((item, {}) for item in text.split())


# A name in English (after the table's noun or another word), and the types in order; the first that fits is taken.
_TYPES_BY_NAME: Final[tuple[tuple[str, tuple[_Kind, ...]], ...]] = (
    (r"(^|_)(first|given|fore)_?name$", _parse_kinds("first_name")),
    (r"(^|_)(last|family|birth|maiden)_?name(_paternal|_maternal)?$|(^|_)surname$", _parse_kinds("last_name")),
    (r"(^|_)middle_(name|initial)$", _parse_kinds("middle_name")),
    (r"(^|_)salutation(_code)?$", _parse_kinds("title")),
    (r"(^|_)(e_?mail|email_address|e_mail_address|email_addr)(_address|_1|1)?$", _parse_kinds("email")),
    (r"(^|_)(mobile|cell)(_phone|_number|_phone_number)?$", (("mobile", {}), *_PHONE_TYPES[1:])),
    (r"^email_(to|from|reply_to|cc|bcc|sender|recipient|alt|work|home|primary|secondary|other|constraint|canonical"
     r"|original|new|old|pending)$|(^|_)unconfirmed_email$", _parse_kinds("email")),
    (r"(^|_)(birth_?place|place_of_birth)$", _parse_kinds("city")),
    (r"(^|_)(last|first|current|previous|login|registration|signup)_ip(_address)?$", _parse_kinds("ipv4")),
    (r"(^|_)(phone|telephone|fax)(_(number|no|1|2|home|work|cell|office|business|day|evening|contact|main|mother|father))?$"
     r"|(^|_)contact_(number|no|phone)$", _PHONE_TYPES),
    (r"(^|_)(address_line_2|line_2|address_?2|street_2)$", _parse_kinds("address_line_2")),
    (r"(^|_)(address_line_1|line_1|address_?1|street_address|street_1)$", _parse_kinds("street_address street_name")),
    (r"(^|_)(street|house)_(number|no)$", _parse_kinds("street_number")),
    (r"(^|_)street_name$", _parse_kinds("street_name")),
    (r"(^|_)(ship|shipping|bill|billing|home|mailing|delivery|customer|company)_address$|^address$",
     _parse_kinds("street_address")),
    (r"(^|_)(zip|postal|post)_?(code)?$|(^|_)zip_code$|(^|_)postcode$", (("zip_code", {}), ("zip_code",
     {"format": "#####"}), ("regexp", {"string": "[0-9]{5}"}))),
    (r"(^|_)(city|city_name|town)$", _parse_kinds("city")),
    (r"(^|_)(state|province|region)_(code|abbr|cd|key)$", (("state_abbr", {}), ("regexp", {"string": "[A-Z]{2}"}))),
    (r"(^|_)(country|nation)_?(code|iso|iso2|key|iso_code)2?$", ()),
    (r"(^|_)country_?(code_?3|iso_?3|alpha_?3)$", (_COUNTRY_CODES[0],)),
    (r"(^|_)(currency|ccy)(_code|_iso|_key)$", _parse_kinds("currency_code")),
    (r"(^|_)(language|lang)(_code|_iso)$|(^|_)locale$", (("language", {"format": "code"}), ("enum",
     {"values": ["en", "de", "fr", "es"]}))),
    (r"(^|_)language_key$", (("enum", {"values": ["E", "D", "F", "S"]}),)),
    (r"(^|_)(vat|vat_id|vat_number|vat_reg_number)$", _parse_kinds("vat_id tax_id")),
    (r"(^|_)(tax_id|tax_number|fiscal_code)$", (("tax_id", {}), ("regexp", {"string": "[0-9]{9}"}))),
    (r"(^|_)(national_(id|identifier|insurance|insurance_number)|social_security)(_number)?$|(^|_)ssn?$",
     (("national_id", {}), ("regexp", {"string": "[0-9]{11}"}))),
    (r"(^|_)gender(_code|_key)?$|(^|_)sex(_code)?$", (("gender", {}), ("sex", {}), ("enum", {"values": ["M", "F"]}))),
    (r"(^|_)(job_title|occupation|profession|job_name)$", _parse_kinds("job_title")),
    (r"(^|_)company(_name)?$", _parse_kinds("company_name")),
    (r"(^|_)department(_name)?$", _parse_kinds("department")),
    (r"(^|_)(created|updated|modified|changed|entered|inserted|deleted|approved|last_modified"
     r"|last_updated)_by(_user|_user_id|_name|_user_name)?$", _parse_kinds("username")),
    (r"(^|_)(user|employee)_(created|updated|modified|deleted|approved)$", _parse_kinds("username")),
    (r"(^|_)(user_?name|user_?login|login|login_name|user_id|username)$", _parse_kinds("username")),
    (r"(^|_)(encrypted|hashed|crypted)_password$|(^|_)(password_hash|password_digest|passwordhash|pass_hash)$",
     _parse_kinds("password_hash sha256 md5")),
    (r"(^|_)password$", _parse_kinds("password_hash password")),
    (r"(^|_)(ip|ip_address|ip_addr|remote_addr|remote_ip|client_ip)$", _parse_kinds("ipv4")),
    (r"(^|_)mac(_address)?$", _parse_kinds("mac_address")),
    (r"(^|_)(user_agent|browser_agent|agent_string|comment_agent)$", _parse_kinds("user_agent")),
    (r"(^|_)(hosts?|host_?name|fqdn|(name_?|dns_|mail_|smtp_|ntp_)?servers?)$", _parse_kinds("hostname")),
    (r"(^|_)(public|private|ssh)_?key$|(^|_)(client_|api_|shared_|connect_)?secrets?(_key)?$|(^|_)(nonce|salt|signature)$",
     _parse_kinds("token sha256 md5")),
    (r"(^|_)(check_?sum|digest|e_?tag|fingerprint|hash)$", _parse_kinds("sha256 sha1 md5")),
    (r"(^|_)(domain|dns)(_name)?$", _parse_kinds("domain_name")),
    (r"(^|_)port$", (("regexp", {"string": "[1-9][0-9]{3}"}),)),
    (r"(^|_)(error|exception|last_error|error_msg|exception_msg|exception_message|error_message|reason|message)$",
     (("sentences", {}), ("words", {"count": 3}), ("words", {"count": 2}))),
    (r"(^|_)(from_|to_|week_?)?day$", _parse_kinds("weekday")),
    (r"(^|_)(completed|executed|paused|locked|assigned|requested|reported|uploaded|closed|opened|verified|sent)_by$",
     _parse_kinds("username")),
    (r"_ids$", (("regexp", {"string": "[1-9][0-9]{0,2}(,[1-9][0-9]{0,2}){2}"}),)),
    (r"(^|_)json$|^json_", (("constant", {"value": "{}"}),)),
    (r"(^|_)(api_token|access_token|refresh_token|auth_token|reset_token|session_token|reset_password_token"
     r"|confirmation_token|remember_token)$", _parse_kinds("token")),
    (r"(^|_)(twitter|instagram|github|skype|telegram)(_handle|_name|_username)?$", _parse_kinds("messaging_handle"
     " username")),
    (r"(^|_)(avatar|photo|picture|image|thumbnail|logo|cover)_url$|^(image|photo|thumbnail)$", _parse_kinds("image_url"
     " file_name")),
    (r"(^|_)(mime_type|content_type|media_type)$", _parse_kinds("mime_type")),
    (r"(^|_)(slug|permalink|url_key|post_name)$", (("slug", {}), ("slug", {"count": 2}))),
    (r"(^|_)(bar_?code|ean|ean13|gtin)(_code|_number)?$", _parse_kinds("ean13 ean8")),
    (r"(^|_)(colou?r)_(code|hex)$|(^|_)hex_colou?r$", _parse_kinds("hex_color")),
    (r"(^|_)(colou?r)(_name)?$", _parse_kinds("color")),
    (r"(^|_)(iban)(_number)?$", _parse_kinds("iban")),
    (r"(^|_)(bic|swift|swift_code|bic_code)$", _parse_kinds("bic")),
    (r"(^|_)(bank_name|bank)$", _parse_kinds("bank_name")),
    (r"(^|_)account_(number|no)$", (("account_number", {}), ("account_number", {"length": 8}))),
    (r"(^|_)account_holder$|(^|_)account_name$", _parse_kinds("account_name")),
    (r"(^|_)invoice_(number|no|ref)$", _parse_kinds("invoice_number")),
    (r"(^|_)order_(number|no|ref)$", _parse_kinds("order_number")),
    (r"(^|_)card_(brand|type|network)$", _parse_kinds("credit_card_type")),
    (r"last_?(4|four)(_digits)?$", (("regexp", {"string": "[0-9]{4}"}),)),
    (r"(^|_)blood_(group|type)$", _parse_kinds("blood_type")),
    (r"(^|_)(icd|icd10|diagnosis|icd_10)_code$", _parse_kinds("icd10_code")),
    (r"(^|_)marital_status$", _parse_kinds("marital_status")),
    (r"(^|_)(license|licence|number|registration)_plate$|(^|_)plate_number$", _parse_kinds("license_plate")),
    (r"^(vehicles?|cars?)\.make$|(^|_)(car|vehicle)_make$", _parse_kinds("car_make")),
    (r"^(vehicles?|cars?)\.model$|(^|_)(car|vehicle)_model$", _parse_kinds("car_model")),
    (r"(^|_)flight_(number|no)$", _parse_kinds("flight_number")),
    (r"(^|_)(carrier|airline)_code$", (("airline", {"format": "iata"}),)),
    (r"(origin|destination|departure|arrival|dest)_airport(_code)?$|(^|_)airport_code$|(^|_)iata(_code)?$",
     _parse_kinds("airport_code")),
    (r"(^|_)(time_?zone|tz|timezone_name)$", _parse_kinds("time_zone")),
    (r"(^|_)(customer|client|supplier|vendor|personnel|document|material|employee|member)_(number|no|code)$",
     _NUMBER_PATTERNS),
    (r"(^|_)(company|division)_key$|(^|_)bank_code$|(^|_)cost_center$|(^|_)account_code$", (("regexp",
     {"string": "[1-9][0-9]{7}"}), ("regexp", {"string": "[1-9]000"}), ("regexp", {"string": "[1-9]0"}))),
    (r"(^|_)(os_version|app_version|client_version|sdk_version|version)$", _parse_kinds("semver")),
    (r"(^|_)product_label$", (("product_name", {}), ("product", {}), ("words", {"count": 2}))),
    (r"(^|_)(comment|comments|remark|remarks|note|notes|observation|bio|biography)(_text)?$", (("sentences", {}),
     ("words", {"count": 3}), ("words", {"count": 2}), ("words", {"count": 1}))),
    (r"(^|_)description(_text|_long)?$", (("sentences", {}), ("words", {"count": 3}), ("words", {"count": 2}),
     ("words", {"count": 1}))),
    (r"(^|_)sort_name$", _parse_kinds("name")),
    (r"(^|_)bill_to_name$|(^|_)(ship|recipient|contact|customer|client)_name$", _parse_kinds("name")),
)  # fmt: skip


def fields_by_name(evidence: ColumnEvidence) -> Iterator[Field]:
    """Yield the fields that a text column's name suggests, best first."""
    words, table, longest = (
        domains.english_column_name(evidence),
        domains.english_table_name(evidence),
        evidence.max_chars,
    )
    name = evidence.column.name
    if longest == 1 and domains.is_flag(words):
        return
    for kind, options in (*_code_types(words, evidence), *_person_name_types(words, evidence)):
        yield definition(name, kind, options, unique=evidence.unique)
        if kind == "state_abbr" and evidence.locale is None and not evidence.unique:
            # Elsewhere codes have up to three characters. The place's other fields then follow this one.
            yield definition(name, kind, options, locale="en_US")
    structured = (longest is None or longest >= _MIN_DOCUMENT_CHARS) and _DOCUMENT_NAMES.search(words)
    if (structured or re.search(r"\bJSON\b", evidence.column.comment)) and not evidence.unique:
        yield definition(name, "constant", {"value": "{}"})
    for candidate in dict.fromkeys((words, _QUALIFIER.sub("", words))):
        for pattern, kinds in _TYPES_BY_NAME:
            subject = f"{table}.{candidate}" if "\\." in pattern else candidate
            if re.search(pattern, subject):
                for kind, options in kinds:
                    yield definition(name, kind, options, unique=evidence.unique)
                return


def _code_types(words: str, evidence: ColumnEvidence) -> Iterator[_Kind]:
    """Countries, states, currencies, languages, colors and ids in columns that take only their codes."""
    longest = evidence.max_chars
    if words.endswith(("color", "colour")):
        default = domains.constant_default(evidence) or ""
        if longest == len("ffffff") or (_HEX.fullmatch(default) and not default.startswith("#")):
            yield "regexp", {"string": "[0-9A-F]{6}"}
        elif longest == len("#ffffff") or _HEX.fullmatch(default):
            yield "hex_color", {}
    if words == "object_id" and longest is not None and longest != _OBJECT_ID_CHARS:
        yield from (("uuid", {}), ("regexp", {"string": "[A-Z0-9]{8}"}))
    sizes = {len(value) for value in evidence.values if isinstance(value, str)}
    if re.search(
        r"(^|_)(country|nation|nationality|citizenship)(_code|_iso|_iso_code|_key|_iso2|_code_iso)?$", words
    ):
        is_code = words.endswith(("code", "iso", "iso2", "key"))
        if longest in (2, 3) or is_code or sizes in ({2}, {3}):
            yield from (
                _COUNTRY_CODES if (longest == 3 and sizes != {2}) or sizes == {3} else _COUNTRY_CODES[1:]
            )
    elif re.search(r"(^|_)(currency)(_code|_iso|_key)?$", words) and (
        longest is None or longest <= 2 * _MAX_CODE_CHARS or sizes == {3}
    ):
        yield "currency_code", {}
    elif re.search(r"(^|_)(state|province|region)$", words) and longest in (2, 3):
        yield from (("state_abbr", {}), ("regexp", {"string": "[A-Z]{2}"}))
    elif re.search(r"(^|_)(language|lang)$", words) and longest is not None and longest <= _MAX_CODE_CHARS:
        yield from (("language", {"format": "code"}), ("enum", {"values": _LANGUAGES}))


def _person_name_types(words: str, evidence: ColumnEvidence) -> Iterator[_Kind]:
    """Treat a `name` next to one half of a person's name as the other half."""
    if words not in ("name", "customer_name", "employee_name"):
        return
    column_names = {
        "_".join(translate_to_english(split_words(field.name))) for field in evidence.entity.fields
    }
    if "last_name" in column_names and "first_name" not in column_names:
        yield "first_name", {}
    elif "first_name" in column_names and "last_name" not in column_names:
        yield "last_name", {}


def few_words(name: str, values: Sequence[Any]) -> list[str] | None:
    """Return the values of a column that repeats a few plain words and has a name that suggests this; None for any
    other."""
    if len(values) < limits.INFER_MIN_VALUES:
        return None
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).lower()
    if not _CATEGORY_NOUNS & set(re.findall("[a-z]+", spaced)):
        return None
    counted = Counter(values)
    if not 1 < len(counted) <= limits.INFER_WORDS or len(values) < limits.INFER_REPEATS * len(counted):
        return None
    words = [item for item in counted if isinstance(item, str) and _WORD.fullmatch(item)]
    if len(words) != len(counted) or max(map(len, words)) > limits.INFER_WORD_CHARS:
        return None
    return sorted(words)


def common_pattern(values: Sequence[Any]) -> str | None:
    """Return a regular expression for the common pattern of all values: which positions are upper-case letters,
    lower-case letters, digits or the same character. None if they differ, or are words."""
    texts = {value for value in values if isinstance(value, str)}
    if len(texts) < limits.INFER_MIN_VALUES or len(texts) < len(set(values)):
        return None
    shapes = {tuple(map(_character_class, item)) for item in texts}
    first = next(iter(texts))
    if len(shapes) != 1 or not _PRINTABLE.fullmatch(first) or len(first) > limits.INFER_SHAPE_CHARS:
        return None
    (only,) = shapes
    if "[0-9]" not in only and not {"-", "_", "/", "."} & set(only) and len(only) > 3:
        return None  # words of equal length
    expression = ""
    for item, run in groupby(only):
        piece = item if item.startswith("[") and len(item) > 1 else re.escape(item)
        times = len(list(run))
        expression += piece if times == 1 else f"{piece}{{{times}}}"
    return expression


def _character_class(letter: str) -> str:
    if letter.isdigit():
        return "[0-9]"
    if letter.isalpha():
        return "[A-Z]" if letter.isupper() else "[a-z]"
    return letter


def round_bound(value: Decimal, down: bool) -> Decimal:
    """Return a bound of a range rounded outwards to its first two digits."""
    if value == 0:
        return value
    unit = Decimal(1).scaleb(value.adjusted() - 1)
    rounding = "ROUND_FLOOR" if down else "ROUND_CEILING"
    return (value / unit).to_integral_value(rounding) * unit


def infer_text_field(evidence: ColumnEvidence) -> Field | None:
    """Return the first suggestion for a column of texts whose values fit."""
    for field in _candidates(evidence):
        local = _localize(evidence, field)
        if local is not field and _is_valid_field(evidence, local):
            return local
        if _is_valid_field(evidence, field):
            return field
    return None


def _candidates(evidence: ColumnEvidence) -> Iterator[Field]:
    """Yield suggestions for a column of texts, best first; the last ones fit any column."""
    name, rule, longest = evidence.column.name, evidence.rule, evidence.max_chars
    quick = all(pattern.is_quick for pattern in rule.patterns)
    if not quick:
        yield from _pattern_fields(evidence)
    yield from _date_fields(evidence)
    meaning = names.name_meaning(evidence)
    kind = find(meaning.type)
    if kind is not None and kind.category in _NEUTRAL_CATEGORIES:
        meaning = names.NameMeaning("words", {}, {})
        kind = find("words")
    # A role is one of few words, and is not personal.
    about_people = kind is not None and kind.category in _PERSONAL_CATEGORIES and meaning.type != "job_title"
    words = None if about_people or evidence.unique else few_words(name, evidence.values)
    if words is not None and all(word not in rule.excluded for word in words):
        yield definition(name, "enum", {"values": words})
    if not evidence.values or common_pattern(evidence.values) is None or evidence.max_chars in (2, 3):
        for field in _fields_by_column_name(evidence):
            if not (meaning.is_certain and field["type"] in _PROSE_TYPES):
                yield field
    if (
        not evidence.values
        and not evidence.unique
        and not evidence.is_part_of_composite_key
        and meaning.type != "product_category"
    ):
        yield from domains.choice_fields(evidence)
        evidence.is_guessed = False
    if meaning.is_certain:
        yield from _fields_by_meaning(evidence, meaning)
    if quick:
        yield from _pattern_fields(evidence)
    shape = common_pattern(evidence.values)
    if shape is not None and (not about_people or evidence.unique):
        yield definition(name, "regexp", {"string": shape}, unique=evidence.unique)
    if not meaning.is_certain and (meaning.options or meaning.type not in (*guess.FALLBACK_TYPES, "regexp")):
        evidence.is_guessed = meaning.type in guess.STARTER_OPTIONS  # its options are an example
        yield from _fields_by_meaning(evidence, meaning)
        evidence.is_guessed = False
    if evidence.unique:
        if (
            meaning.is_certain and meaning.type in names.NAME_TYPES
        ):  # too few names: words, which read better than letters
            yield definition(name, "words", {"count": _MIN_COUNT}, text_case="title", unique=True)
        evidence.is_guessed = not evidence.column.key
        size = max(rule.min_length, min(longest or 12, 12))
        if 36**size < _MANY_VALUES:
            evidence.notes.append(f"It must be unique and is short: at most {36**size:,} rows.")
        yield definition(name, "regexp", {"string": f"[A-Z0-9]{{{size}}}"}, unique=True)
        return
    code_match = (
        _CODE_NAMES.search(domains.english_column_name(evidence)) if meaning.type == "words" else None
    )
    if (
        (code_match is not None or _is_abbreviated(evidence))
        and (longest is None or longest >= _CODE_CHARS)
        and rule.min_length <= 1
    ):
        evidence.is_guessed = True
        yield definition(
            name,
            "regexp",
            {"string": "[1-9][0-9]{7}" if code_match and code_match[2] == "number" else "[A-Z]{2}[0-9]{6}"},
        )
    if (
        meaning.type == "words"
        and not evidence.is_part_of_composite_key
        and (longest is None or longest >= 12)
        and rule.min_length <= 1
    ):
        evidence.is_guessed = True
        yield definition(name, "words", {"count": 2})
        yield definition(name, "words", {"count": 1})
    evidence.is_guessed = True
    size = max(rule.min_length, min(longest if longest is not None else 8, 8))
    yield definition(name, "regexp", {"string": f"[A-Z0-9]{{{size}}}"})


def _pattern_fields(evidence: ColumnEvidence) -> Iterator[Field]:
    """Yield values that match the regular expressions of a check: words if they match, else any characters."""
    name, rule = evidence.column.name, evidence.rule
    if not rule.patterns:
        return
    if all(pattern.is_quick for pattern in rule.patterns):
        for count, separator in ((2, "_"), (1, "_"), (2, "-")):
            yield definition(name, "slug", {"count": count, "separator": separator}, unique=evidence.unique)
    if rule.pattern is not None:
        yield definition(name, "regexp", {"string": rule.pattern}, unique=evidence.unique)
        evidence.notes.append(f"Its pattern is not supported: {rule.pattern}")


def _date_fields(evidence: ColumnEvidence) -> Iterator[Field]:
    """Yield a date as text if the name suggests a date and the length is that of a usual format."""
    words = domains.english_column_name(evidence)
    clock = _TIME_FORMATS.get(evidence.column.max_length or 0)
    if clock is not None and words.endswith("_time") and not evidence.values:
        yield definition(evidence.column.name, "time", {"format": clock}, unique=evidence.unique)
    entry = _DATE_FORMATS.get(evidence.column.max_length or 0)
    if (
        entry is None
        or evidence.values
        or not (_DATE_NAMES.search(words) or _DATE_NAMES.search(evidence.column.name.lower()))
    ):
        return
    kind, date_format = entry
    birth = {"min": "-27000d", "max": "-6600d"} if re.search("birth|born|dob", words) else {}
    yield definition(evidence.column.name, kind, {"format": date_format, **birth}, unique=evidence.unique)


def _is_abbreviated(evidence: ColumnEvidence) -> bool:
    """Return whether a column of an SAP table has an unknown short name, which is mostly a code."""
    names_ = [field.name.lower() for field in evidence.entity.fields]
    return (
        sum(name in lexicon.SAP_NAMES for name in names_) >= _SAP_COLUMNS
        and len(evidence.column.name) <= _SAP_CHARS
    )


def _fields_by_meaning(evidence: ColumnEvidence, meaning: NameMeaning) -> Iterator[Field]:
    """Yield the meanings of the names: unchanged; shorter, as words or as a code; finally, those of its values that
    fit."""
    if evidence.is_part_of_composite_key and not evidence.unique and not meaning.is_certain:
        return
    name = evidence.column.name
    common = {**meaning.common, "unique": evidence.unique}
    field = definition(name, meaning.type, meaning.options, **common)
    if evidence.is_part_of_composite_key and not evidence.unique and not _can_combine(evidence, field):
        yield from _value_list(evidence, field)
        return
    yield field
    if meaning.type in _PROSE_TYPES:
        for count in (3, 2, 1):
            yield definition(name, "words", {"count": count}, **common)
    if evidence.unique:
        yield from _closed_value_list(evidence, field)
    if evidence.max_chars is None or evidence.unique:
        return
    yield from _fields_within_length(
        evidence, definition(name, meaning.type, meaning.options, **meaning.common)
    )
    for kind, options in _CODES_BY_TYPE.get(meaning.type, ()):
        yield definition(name, kind, options)
        yield from _fields_within_length(evidence, definition(name, kind, options))
    yield from _fields_within_length(
        evidence, definition(name, meaning.type, meaning.options, **meaning.common), minimum_share=0
    )


def _fields_by_column_name(evidence: ColumnEvidence) -> Iterator[Field]:
    """Yield the fields that the column's own name suggests, and variants whose values fit."""
    for field in fields_by_name(evidence):
        if evidence.is_part_of_composite_key and not evidence.unique and not _can_combine(evidence, field):
            yield from _value_list(evidence, field)
            continue
        yield field
        if evidence.unique:
            yield from _closed_value_list(evidence, field)
        elif evidence.max_chars is not None:
            yield from _fields_within_length(evidence, field)


def _value_list(evidence: ColumnEvidence, field: Field) -> Iterator[Field]:
    """Yield a list of the values of a field: those of grouped fields cannot be combined freely, a list can."""
    longest = limits.INFER_WORD_CHARS if evidence.max_chars is None else evidence.max_chars
    values = [
        value
        for value in dict.fromkeys(_sample_values(evidence, _localize(evidence, field)))
        if len(value) <= longest
    ]
    if len(values) >= _MIN_VALUES:
        yield definition(evidence.column.name, "enum", {"values": values[:_MAX_LISTED]})


def _closed_value_list(evidence: ColumnEvidence, field: Field) -> Iterator[Field]:
    """Yield a list of the values that fit a unique column, of a type that has all values there are."""
    if field["type"] not in names.EXHAUSTIVE_TYPES or evidence.max_chars is None:
        return
    local = _localize(evidence, field)
    try:
        plan = compile_plan(parse([local]), evidence.vocabulary)
        space = plan.layer.columns[field["name"]].type.distinct_count()
        if space is None or not _MIN_VALUES <= space <= _MAX_LISTED:
            return
        (column,) = BoundPlan(plan, GenerationContext("inference", _NOW)).block(0, space)
    except SpecError:
        return
    values = [item for item in column.to_pylist() if len(item) <= evidence.max_chars]
    if _MIN_VALUES <= len(values) < space:
        yield definition(evidence.column.name, "enum", {"values": values}, unique=True)


def _can_combine(evidence: ColumnEvidence, field: Field) -> bool:
    """Return whether a field's values can be combined freely with those of other fields."""
    try:
        column = compile_plan(parse([field]), evidence.vocabulary).layer.columns[field["name"]]
    except SpecError:
        return False
    return column.type.distinct_count() is not None and column.type.group_kind is None


def _fields_within_length(
    evidence: ColumnEvidence, plain: Field, minimum_share: float = 0.2
) -> Iterator[Field]:
    """Yield variants of a field whose values are not longer than the column.

    If longer values are rare, they are replaced by one that fits, so that the field still agrees with others of its
    group; else the values that fit become a list.
    """
    longest = evidence.max_chars or 0
    plain = _localize(
        evidence, {key: value for key, value in plain.items() if key != "text_case"}
    )  # its texts may grow
    values = _sample_values(evidence, plain) if longest else ()
    if not values:
        return
    counted = Counter(item for item in values if len(item) <= longest)
    share = sum(counted.values()) / len(values)
    if share == 1 or plain["type"] in _SHORTENABLE_TYPES:
        yield {**plain, "formula": f"left(this, {longest})"}
    usual = counted.most_common(1)[0][0] if counted else ""
    if plain["type"] in _RANDOM_TYPES or plain["type"] in _PROSE_TYPES:
        return
    if share >= _MAJORITY and '"' not in usual and "\\" not in usual:
        yield {**plain, "formula": f'left(this if len(this) <= {longest} else "{usual}", {longest})'}
    if share >= minimum_share and len(counted) >= _MIN_VALUES:
        yield definition(evidence.column.name, "enum", {"values": list(counted)[:_MAX_VALUES]})


def _localize(evidence: ColumnEvidence, field: Field) -> Field:
    """Return the field in the language of the table's names, if its type supports it."""
    kind = find(field["type"])
    if evidence.locale is None or kind is None or not kind.localised or "locale" in field:
        return field
    return {**field, "locale": evidence.locale}


def _sample_values(evidence: ColumnEvidence, field: Field) -> Sequence[str]:
    """Return sample values of a field."""
    settings = {key: value for key, value in field.items() if key not in ("name", "unique")}
    return _generated_values(evidence.vocabulary, orjson.dumps(settings, option=orjson.OPT_SORT_KEYS))


@lru_cache(64)
def _generated_values(vocabulary: Vocabulary, settings_json: bytes) -> Sequence[str]:
    try:
        plan = compile_plan(parse([{"name": "value", **orjson.loads(settings_json)}]), vocabulary)
        array = BoundPlan(plan, GenerationContext("inference", _NOW)).block(0, _SAMPLE_SIZE)[0]
    except SpecError:
        return ()
    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    return tuple(item for item in array.to_pylist() if isinstance(item, str))


def _is_valid_field(evidence: ColumnEvidence, field: Field) -> bool:
    """Return whether every value of a field is a text with the maximum length of the column."""
    try:
        plan = compile_plan(parse([field]), evidence.vocabulary)
    except SpecError:
        return False
    arrow_field = plan.layer.schema.field(0)
    if not pa.types.is_string(arrow_field.type):
        return False
    column = plan.layer.columns[field["name"]]
    space = column.type.distinct_count()
    if field.get("unique") and field["type"] != "regexp" and (space is None or space < _MANY_VALUES):
        closed = (
            field["type"] in (*names.EXHAUSTIVE_TYPES, "enum") and space is not None and space >= _MIN_COUNT
        )
        if not closed and (field["type"] not in names.SMALL_TYPES or not _has_enough_values(evidence, plan)):
            return False
        evidence.notes.append(
            "It must be unique, but the number of different values is limited: generate only a few rows."
            if space is None
            else f"It must be unique: at most {space:,} rows."
        )
    max_length = (arrow_field.metadata or {}).get(b"max_length")
    if evidence.max_chars is not None and (max_length is None or int(max_length) > evidence.max_chars):
        return False
    if evidence.column.characters and field["type"] != "regexp" and not _can_encode(evidence, field):
        return False
    expressions = [pattern for pattern in evidence.rule.patterns if pattern.is_quick]
    if expressions and not all(
        len(value) <= checks.MATCHED_CHARS and expression.allows(value)
        for expression in expressions
        for value in _sample_values(evidence, field)[:_MATCHED_VALUES]
    ):
        return False
    if not evidence.rule.min_length and "" not in evidence.rule.excluded:
        return True
    # Types do not know their shortest text: whether texts have the length that a CHECK constraint requires is tested.
    texts = BoundPlan(plan, GenerationContext("inference", _NOW)).block(0, limits.INFER_ROWS)[0]
    texts = texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts
    return (pc.min(pc.utf8_length(texts)).as_py() or 0) >= max(1, evidence.rule.min_length)


def _can_encode(evidence: ColumnEvidence, field: Field) -> bool:
    """Return whether the column's character set has all characters of a field's values."""
    characters = "".join(_sample_values(evidence, field))
    if evidence.column.characters == "bmp":
        return max(characters, default="") <= "\uffff"
    try:
        characters.encode(evidence.column.characters)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _has_enough_values(evidence: ColumnEvidence, plan: Any) -> bool:
    """Return whether a unique field has values for the number of rows of its template."""
    try:
        BoundPlan(plan, GenerationContext("inference", _NOW)).check(0, evidence.rows)
    except SpecError:
        return False
    return True
