"""Field types that a column's name means in any table, from its name in English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from webapp.imports.inference import domains
from webapp.imports.inference.evidence import ColumnEvidence, Field, definition
from webapp.imports.inference.lexicon import english
from webapp.imports.inference.names import split

_Kind = tuple[str, dict[str, Any]]


def _kinds(text: str) -> tuple[_Kind, ...]:
    return tuple((item, {}) for item in text.split())


_COUNTRY_CODES: Final[tuple[_Kind, ...]] = (
    ("country_code", {"format": "alpha3"}), ("country_code", {}),
)  # fmt: skip
_NUMBER_PATTERNS: Final[tuple[_Kind, ...]] = (("regexp", {"string": "[1-9][0-9]{9}"}),
                                              ("regexp", {"string": "[1-9][0-9]{5}"}),
                                     ("regexp", {"string": "[1-9][0-9]{3}"}))  # fmt: skip
_PHONE_TYPES: Final[tuple[_Kind, ...]] = (
    ("phone_number", {}), ("phone_number", {"format": "national"}), ("regexp", {"string": "[2-9][0-9]{9}"}),
)  # fmt: skip
# A name in English (after the table's noun or another word), and the types in order; the first that fits is taken.
_TYPES_BY_NAME: Final[tuple[tuple[str, tuple[_Kind, ...]], ...]] = (
    (r"(^|_)(first|given|fore)_?name$", _kinds("first_name")),
    (r"(^|_)(last|family|birth|maiden)_?name(_paternal|_maternal)?$|(^|_)surname$", _kinds("last_name")),
    (r"(^|_)middle_(name|initial)$", _kinds("middle_name")),
    (r"(^|_)salutation(_code)?$", _kinds("title")),
    (r"(^|_)(e_?mail|email_address|e_mail_address|email_addr)(_address|_1|1)?$", _kinds("email")),
    (r"(^|_)(mobile|cell)(_phone|_number|_phone_number)?$", (("mobile", {}), *_PHONE_TYPES[1:])),
    (r"^email_(to|from|reply_to|cc|bcc|sender|recipient|alt|work|home|primary|secondary|other|constraint|canonical"
     r"|original|new|old|pending)$|(^|_)unconfirmed_email$", _kinds("email")),
    (r"(^|_)(birth_?place|place_of_birth)$", _kinds("city")),
    (r"(^|_)(last|first|current|previous|login|registration|signup)_ip(_address)?$", _kinds("ipv4")),
    (r"(^|_)(phone|telephone|fax)(_(number|no|1|2|home|work|cell|office|business|day|evening|contact|main|mother|father))?$"
     r"|(^|_)contact_(number|no|phone)$", _PHONE_TYPES),
    (r"(^|_)(address_line_2|line_2|address_?2|street_2)$", _kinds("address_line_2")),
    (r"(^|_)(address_line_1|line_1|address_?1|street_address|street_1)$", _kinds("street_address street_name")),
    (r"(^|_)(street|house)_(number|no)$", _kinds("street_number")),
    (r"(^|_)street_name$", _kinds("street_name")),
    (r"(^|_)(ship|shipping|bill|billing|home|mailing|delivery|customer|company)_address$|^address$",
     _kinds("street_address")),
    (r"(^|_)(zip|postal|post)_?(code)?$|(^|_)zip_code$|(^|_)postcode$", (("zip_code", {}), ("zip_code",
     {"format": "#####"}), ("regexp", {"string": "[0-9]{5}"}))),
    (r"(^|_)(city|city_name|town)$", _kinds("city")),
    (r"(^|_)(state|province|region)_(code|abbr|cd|key)$", (("state_abbr", {}), ("regexp", {"string": "[A-Z]{2}"}))),
    (r"(^|_)(country|nation)_?(code|iso|iso2|key|iso_code)2?$", ()),
    (r"(^|_)country_?(code_?3|iso_?3|alpha_?3)$", (_COUNTRY_CODES[0],)),
    (r"(^|_)(currency|ccy)(_code|_iso|_key)$", _kinds("currency_code")),
    (r"(^|_)(language|lang)(_code|_iso)$|(^|_)locale$", (("language", {"format": "code"}), ("enum",
     {"values": ["en", "de", "fr", "es"]}))),
    (r"(^|_)language_key$", (("enum", {"values": ["E", "D", "F", "S"]}),)),
    (r"(^|_)(vat|vat_id|vat_number|vat_reg_number)$", _kinds("vat_id tax_id")),
    (r"(^|_)(tax_id|tax_number|fiscal_code)$", (("tax_id", {}), ("regexp", {"string": "[0-9]{9}"}))),
    (r"(^|_)(national_(id|identifier|insurance|insurance_number)|social_security)(_number)?$|(^|_)ssn?$",
     (("national_id", {}), ("regexp", {"string": "[0-9]{11}"}))),
    (r"(^|_)gender(_code|_key)?$|(^|_)sex(_code)?$", (("gender", {}), ("sex", {}), ("enum", {"values": ["M", "F"]}))),
    (r"(^|_)(job_title|occupation|profession|job_name)$", _kinds("job_title")),
    (r"(^|_)company(_name)?$", _kinds("company_name")),
    (r"(^|_)department(_name)?$", _kinds("department")),
    (r"(^|_)(created|updated|modified|changed|entered|inserted|deleted|approved|last_modified"
     r"|last_updated)_by(_user|_user_id|_name|_user_name)?$", _kinds("username")),
    (r"(^|_)(user|employee)_(created|updated|modified|deleted|approved)$", _kinds("username")),
    (r"(^|_)(user_?name|user_?login|login|login_name|user_id|username)$", _kinds("username")),
    (r"(^|_)(encrypted|hashed|crypted)_password$|(^|_)(password_hash|password_digest|passwordhash|pass_hash)$",
     _kinds("password_hash sha256 md5")),
    (r"(^|_)password$", _kinds("password_hash password")),
    (r"(^|_)(ip|ip_address|ip_addr|remote_addr|remote_ip|client_ip)$", _kinds("ipv4")),
    (r"(^|_)mac(_address)?$", _kinds("mac_address")),
    (r"(^|_)(user_agent|browser_agent|agent_string|comment_agent)$", _kinds("user_agent")),
    (r"(^|_)(hosts?|host_?name|fqdn|(name_?|dns_|mail_|smtp_|ntp_)?servers?)$", _kinds("hostname")),
    (r"(^|_)(public|private|ssh)_?key$|(^|_)(client_|api_|shared_|connect_)?secrets?(_key)?$|(^|_)(nonce|salt|signature)$",
     _kinds("token sha256 md5")),
    (r"(^|_)(check_?sum|digest|e_?tag|fingerprint|hash)$", _kinds("sha256 sha1 md5")),
    (r"(^|_)(domain|dns)(_name)?$", _kinds("domain_name")),
    (r"(^|_)port$", (("regexp", {"string": "[1-9][0-9]{3}"}),)),
    (r"(^|_)(error|exception|last_error|error_msg|exception_msg|exception_message|error_message|reason|message)$",
     (("sentences", {}), ("words", {"count": 3}), ("words", {"count": 2}))),
    (r"(^|_)(from_|to_|week_?)?day$", _kinds("weekday")),
    (r"(^|_)(completed|executed|paused|locked|assigned|requested|reported|uploaded|closed|opened|verified|sent)_by$",
     _kinds("username")),
    (r"_ids$", (("regexp", {"string": "[1-9][0-9]{0,2}(,[1-9][0-9]{0,2}){2}"}),)),
    (r"(^|_)json$|^json_", (("constant", {"value": "{}"}),)),
    (r"(^|_)(api_token|access_token|refresh_token|auth_token|reset_token|session_token|reset_password_token"
     r"|confirmation_token|remember_token)$", _kinds("token")),
    (r"(^|_)(twitter|instagram|github|skype|telegram)(_handle|_name|_username)?$", _kinds("messaging_handle"
     " username")),
    (r"(^|_)(avatar|photo|picture|image|thumbnail|logo|cover)_url$|^(image|photo|thumbnail)$", _kinds("image_url"
     " file_name")),
    (r"(^|_)(mime_type|content_type|media_type)$", _kinds("mime_type")),
    (r"(^|_)(slug|permalink|url_key|post_name)$", (("slug", {}), ("slug", {"count": 2}))),
    (r"(^|_)(bar_?code|ean|ean13|gtin)(_code|_number)?$", _kinds("ean13 ean8")),
    (r"(^|_)(colou?r)_(code|hex)$|(^|_)hex_colou?r$", _kinds("hex_color")),
    (r"(^|_)(colou?r)(_name)?$", _kinds("color")),
    (r"(^|_)(iban)(_number)?$", _kinds("iban")),
    (r"(^|_)(bic|swift|swift_code|bic_code)$", _kinds("bic")),
    (r"(^|_)(bank_name|bank)$", _kinds("bank_name")),
    (r"(^|_)account_(number|no)$", (("account_number", {}), ("account_number", {"length": 8}))),
    (r"(^|_)account_holder$|(^|_)account_name$", _kinds("account_name")),
    (r"(^|_)invoice_(number|no|ref)$", _kinds("invoice_number")),
    (r"(^|_)order_(number|no|ref)$", _kinds("order_number")),
    (r"(^|_)card_(brand|type|network)$", _kinds("credit_card_type")),
    (r"last_?(4|four)(_digits)?$", (("regexp", {"string": "[0-9]{4}"}),)),
    (r"(^|_)blood_(group|type)$", _kinds("blood_type")),
    (r"(^|_)(icd|icd10|diagnosis|icd_10)_code$", _kinds("icd10_code")),
    (r"(^|_)marital_status$", _kinds("marital_status")),
    (r"(^|_)(license|licence|number|registration)_plate$|(^|_)plate_number$", _kinds("license_plate")),
    (r"^(vehicles?|cars?)\.make$|(^|_)(car|vehicle)_make$", _kinds("car_make")),
    (r"^(vehicles?|cars?)\.model$|(^|_)(car|vehicle)_model$", _kinds("car_model")),
    (r"(^|_)flight_(number|no)$", _kinds("flight_number")),
    (r"(^|_)(carrier|airline)_code$", (("airline", {"format": "iata"}),)),
    (r"(origin|destination|departure|arrival|dest)_airport(_code)?$|(^|_)airport_code$|(^|_)iata(_code)?$",
     _kinds("airport_code")),
    (r"(^|_)(time_?zone|tz|timezone_name)$", _kinds("time_zone")),
    (r"(^|_)(customer|client|supplier|vendor|personnel|document|material|employee|member)_(number|no|code)$",
     _NUMBER_PATTERNS),
    (r"(^|_)(company|division)_key$|(^|_)bank_code$|(^|_)cost_center$|(^|_)account_code$", (("regexp",
     {"string": "[1-9][0-9]{7}"}), ("regexp", {"string": "[1-9]000"}), ("regexp", {"string": "[1-9]0"}))),
    (r"(^|_)(os_version|app_version|client_version|sdk_version|version)$", _kinds("semver")),
    (r"(^|_)product_label$", (("product_name", {}), ("product", {}), ("words", {"count": 2}))),
    (r"(^|_)(comment|comments|remark|remarks|note|notes|observation|bio|biography)(_text)?$", (("sentences", {}),
     ("words", {"count": 3}), ("words", {"count": 2}), ("words", {"count": 1}))),
    (r"(^|_)description(_text|_long)?$", (("sentences", {}), ("words", {"count": 3}), ("words", {"count": 2}),
     ("words", {"count": 1}))),
    (r"(^|_)sort_name$", _kinds("name")),
    (r"(^|_)bill_to_name$|(^|_)(ship|recipient|contact|customer|client)_name$", _kinds("name")),
)  # fmt: skip


def fields(evidence: ColumnEvidence) -> Iterator[Field]:
    """Yield the fields that a text column's name suggests, best first."""
    words, table, longest = domains.words_of(evidence), domains.table_of(evidence), evidence.longest
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


def _code_types(words: str, evidence: ColumnEvidence) -> Iterator[_Kind]:
    """Countries, states, currencies, languages, colors and ids in columns that take only their codes."""
    longest = evidence.longest
    if words.endswith(("color", "colour")):
        default = domains.default_of(evidence) or ""
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


_LANGUAGES: Final = (
    "en de fr es it pt nl pl sv da nb fi cs sk sl hr sr hu ro bg el tr ru uk lt lv et ar he fa hi bn ta th vi id ms ja"
    " zh ko"
).split()
"""ISO 639-1 codes, for columns that have no room for longer ones."""
_OBJECT_ID_CHARS: Final = 24
_MAX_CODE_CHARS: Final = 5  # chosen: characters up to which a column takes codes


def _person_name_types(words: str, evidence: ColumnEvidence) -> Iterator[_Kind]:
    """Treat a `name` next to one half of a person's name as the other half."""
    if words not in ("name", "customer_name", "employee_name"):
        return
    column_names = {"_".join(english(split(field.name))) for field in evidence.entity.fields}
    if "last_name" in column_names and "first_name" not in column_names:
        yield "first_name", {}
    elif "first_name" in column_names and "last_name" not in column_names:
        yield "last_name", {}
