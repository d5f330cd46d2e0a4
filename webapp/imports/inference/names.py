"""Derive the meaning of a column from its name and the name of its table: a department's title is not "Mr.".

The table's noun is used for columns that do not say whose name, title or code they contain (`countries.name`,
`Category.CategoryName`, `city.city`); if a column names another thing (`books.publisher`), that thing is used. Other
columns of the table and a sample distinguish people from things, and forms of address from jobs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from webapp.connectors.schema import Column, Entity
from webapp.engine import guess
from webapp.engine.types.registry import find
from webapp.imports.inference.evidence import ColumnEvidence
from webapp.imports.inference.lexicon import translate_to_english

Meaning = tuple[str, dict[str, Any], dict[str, Any]]
"""A field type, its options, and common keys."""


def _meaning(kind: str, options: dict[str, Any] | None = None, **common: Any) -> Meaning:
    return kind, options or {}, common


WORK_TITLE: Final = _meaning("words", {"count": 3}, text_case="title")
"""Titles of books, articles or projects."""
GENERIC_NAME: Final = _meaning("words", {"count": 2}, text_case="title")
"""Names of things of unknown kind."""
PERSON_NAME: Final = _meaning("name")
HONORIFIC: Final = _meaning("title")
JOB_TITLE: Final = _meaning("job_title")

ABBREVIATIONS: Final = {
    "acct": "account", "addr": "address", "cat": "category", "ctry": "country", "cur": "currency", "curr": "currency",
    "cust": "customer", "dep": "department", "dept": "department", "desc": "description", "emp": "employee",
    "fname": "first_name", "lang": "language", "lname": "last_name", "loc": "city",
    "mfr": "manufacturer", "mgr": "manager", "nm": "name", "org": "organization", "prod": "product", "pub": "publisher",
    "qty": "quantity", "tz": "timezone",
}  # fmt: skip
TABLE_NAME_NOISE: Final = frozenset(
    "tbl tb tab dim fact stg staging wp app core dbo mst master lookup lkp ref m2m my".split()
)
"""Parts of a table's name that say what it is for the database."""
DESCRIPTIVE_NOUNS: Final = frozenset(
    "translation l10n i18n detail info data history archive record profile header".split()
)
"""Nouns of tables that describe the preceding thing."""

PERSON_NOUNS: Final = frozenset(
    "person people customer client employee staff user member contact author actor artist writer director composer"
    " singer musician performer student pupil teacher professor instructor tutor lecturer coach trainer patient doctor"
    " physician nurse dentist surgeon lead guest passenger pilot driver manager supervisor boss agent candidate"
    " applicant subscriber owner landlord resident citizen voter reviewer player athlete referee volunteer donor"
    " beneficiary recipient sender buyer seller shopper worker colleague friend child parent spouse dependent husband"
    " wife mother father participant attendee speaker organizer host tourist visitor admin administrator"
    " operator technician mechanic engineer developer officer soldier lawyer attorney judge salesperson salesman"
    " rep representative cashier clerk courier chef waiter borrower reader librarian assignee creator editor commenter"
    " principal adviser advisor mentor individual holder cardholder insured policyholder".split()
)
JOB_TITLE_NOUNS: Final = frozenset(
    "employee staff contact worker manager rep representative salesperson colleague officer supervisor contractor"
    " consultant faculty crew speaker executive lead person buyer".split()
)
"""People whose title is as likely a job as a form of address."""
NON_PERSON_NOUNS: Final = frozenset(
    "order number folder container computer server letter newsletter offer paper poster tower layer filter header"
    " footer banner counter register printer router sensor flavor sector error factor vector motor door floor plant"
    " variant constant grant tenant committee coffee chapter parameter voucher transfer weather water other matter"
    " power border center theater meter timer trigger ledger character cluster browser scanner monitor charger adapter"
    " controller sticker planner tracker reminder parser checklist wishlist watchlist slider helper identifier"
    " connector indicator elevator generator calculator simulator corridor mirror anchor quarter semester trimester"
    " buffer cover datacenter barrier degree elephant warrant covenant".split()
)
AMBIGUOUS_NOUNS: Final = frozenset(
    "host parent child lead port good gift holder individual principal head".split()
)
"""Nouns with a different meaning in most tables if they are used without a table's context: a server's host, the parent
row."""
_PERSON_SUFFIX: Final = re.compile(r".{3,}(er|or|ist|ian|ee|ant|man|woman)$")


def is_person(noun: str) -> bool:
    """Return whether a noun, in the singular, is likely to be a person."""
    return noun in PERSON_NOUNS or (
        noun not in NON_PERSON_NOUNS and noun not in MEANINGS_BY_NOUN and bool(_PERSON_SUFFIX.match(noun))
    )


TITLED_NOUNS: Final = frozenset(
    "book film movie album track song post article page blog video course event chapter episode game show story report"
    " document lesson task ticket issue todo project news topic thread ad advertisement campaign survey question recipe"
    " playlist podcast photo image picture gallery magazine journal newspaper novel poem paper publication series"
    " season artwork painting exhibition concert performance meeting appointment session seminar workshop conference"
    " quiz exam test assignment milestone sprint epic feature bug incident case discussion forum board card note memo"
    " presentation webinar tutorial guide faq announcement notification message newsletter poll review contract"
    " proposal quest mission challenge program programme tour trip alert reminder template scenario chart dashboard"
    " subject collection bookmark menu section module banner theme title vacancy opening opportunity deal".split()
)
"""Things that have a title."""

_PLACE_NOUNS: Final = (
    "city town municipality village locality warehouse office location depot airport station destination port"
)
_COMPANY_NOUNS: Final = (
    "company organization organisation supplier vendor manufacturer brand firm shipper carrier publisher employer"
    " agency bank store shop merchant provider distributor label studio airline hotel restaurant retailer wholesaler"
    " partner business insurer dealer enterprise institution competitor sponsor subsidiary maker"
)
_GOODS_NOUNS: Final = "product item merchandise article good inventory accessory gift"


def _meanings_for_nouns(nouns: str, **parts: Meaning) -> dict[str, dict[str, Meaning]]:
    return dict.fromkeys(nouns.split(), parts)


MEANINGS_BY_NOUN: Final[dict[str, dict[str, Meaning]]] = {
    **_meanings_for_nouns(
        "country nation",
        name=_meaning("country"),
        code=_meaning("country_code"),
        demonym=_meaning("nationality"),
    ),
    **_meanings_for_nouns("continent", name=_meaning("continent")),
    **_meanings_for_nouns("state province", name=_meaning("state"), code=_meaning("state_abbr")),
    **_meanings_for_nouns("region territory county district", name=_meaning("state")),
    **_meanings_for_nouns(_PLACE_NOUNS, name=_meaning("city")),
    **_meanings_for_nouns("street", name=_meaning("street_name")),
    **_meanings_for_nouns(
        "language locale", name=_meaning("language"), code=_meaning("language", {"format": "code"})
    ),
    **_meanings_for_nouns(
        "currency",
        name=_meaning("currency_name"),
        code=_meaning("currency_code"),
        symbol=_meaning("currency_symbol"),
    ),
    **_meanings_for_nouns("timezone", name=_meaning("time_zone"), code=_meaning("time_zone")),
    **_meanings_for_nouns("nationality", name=_meaning("nationality")),
    **_meanings_for_nouns("gender", name=_meaning("gender")),
    **_meanings_for_nouns("sex", name=_meaning("sex")),
    **_meanings_for_nouns(
        "color colour", name=_meaning("color"), code=_meaning("hex_color"), hex=_meaning("hex_color")
    ),
    **_meanings_for_nouns("department division", name=_meaning("department")),
    **_meanings_for_nouns("job position occupation profession role designation", name=JOB_TITLE),
    **_meanings_for_nouns(
        _GOODS_NOUNS,
        name=_meaning("product_name"),
        code=_meaning("sku"),
        number=_meaning("sku"),
        type=_meaning("product_category"),
    ),
    **_meanings_for_nouns("category subcategory", name=_meaning("product_category")),
    **_meanings_for_nouns(_COMPANY_NOUNS, name=_meaning("company_name")),
    **_meanings_for_nouns("file attachment", name=_meaning("file_name")),
    **_meanings_for_nouns("domain site", name=_meaning("domain_name")),
    **_meanings_for_nouns("account", name=_meaning("account_name")),
}
MEANINGS_BY_NOUN["article"] = {
    **MEANINGS_BY_NOUN["article"],
    "title": WORK_TITLE,
}  # a text has a title, goods have a name
"""The name and the code of a thing, by its noun, and its other attributes that have a specific type."""

NAME_COLUMNS: Final = frozenset(
    ("name", "title", "label", "caption", "full_name", "display_name", "short_name", "long_name", "common_name",
     "official_name", "english_name", "name_en", "en_name", "local_name", "description_name", "headline", "subject",
     "fullname", "displayname", "shortname", "longname", "designation")
)  # fmt: skip
"""Columns that contain the name of a thing."""
CODE_COLUMNS: Final = frozenset(
    ("code", "iso", "iso_code", "iso2", "iso3", "iso_2", "iso_3", "alpha2", "alpha3", "alpha_2", "alpha_3", "abbr",
     "abbreviation", "short_code", "cd", "code2", "code3", "iso_alpha2", "iso_alpha3", "iso_code_2", "iso_code_3",
     "isocode", "shortcode", "iso_code2", "iso_code3", "iso_alpha_2", "iso_alpha_3")
)  # fmt: skip
TITLE_COLUMNS: Final = frozenset(("title", "headline", "subject", "caption"))
PERSON_COLUMNS: Final = frozenset(
    ("first_name", "last_name", "firstname", "lastname", "surname", "given_name", "family_name", "birth_date",
     "birthdate", "date_of_birth", "dob", "birthday", "gender", "sex", "hire_date", "salary", "ssn", "marital_status",
     "middle_name", "honorific", "nationality", "born", "hired_at", "hired_on", "age")
)  # fmt: skip
"""Columns that only tables of people have."""
CONTACT_COLUMNS: Final = frozenset(("email", "phone", "mobile", "email_address", "phone_number", "telephone"))
"""Columns of tables with contact details: people, and companies."""
HONORIFICS: Final = frozenset(
    "mr mrs ms miss mx dr prof herr frau mme m mlle sr sra srta sir dame rev hon hr fru".split()
)

_IRREGULAR: Final = {
    "people": "person", "children": "child", "men": "man", "women": "woman", "movies": "movie", "statuses": "status",
    "news": "news", "series": "series", "staff": "staff", "goods": "good", "data": "data", "media": "media",
    "addresses": "address", "buses": "bus", "taxes": "tax", "indices": "index", "analyses": "analysis",
    "cookies": "cookie", "wives": "wife", "aliases": "alias", "bonuses": "bonus", "campuses": "campus",
    "statistics": "statistics", "sales": "sale", "diagnoses": "diagnosis", "currencies": "currency",
}  # fmt: skip


def singular(noun: str) -> str:
    """Return the singular of a noun, according to its ending."""
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if noun.endswith("ies") and len(noun) > 4:
        return noun[:-3] + "y"
    if noun.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return noun[:-2]
    if noun.endswith("s") and not noun.endswith(("ss", "us", "is")) and len(noun) > 2:
        return noun[:-1]
    return noun


def split_words(text: str) -> list[str]:
    """The words of a name in small letters: `OrderItems`, `ORDER_ITEMS`, `order-items`."""
    return list(_split_words_cached(text))


@lru_cache(16_384)
def _split_words_cached(text: str) -> tuple[str, ...]:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", text))
    words = re.findall(r"[a-z0-9]+", spaced.lower())
    expanded = (ABBREVIATIONS.get(word) or ABBREVIATIONS.get(word.removesuffix("s"), word) for word in words)
    return tuple(part for word in expanded for part in word.split("_"))


_GENERIC_COLUMNS: Final = NAME_COLUMNS | CODE_COLUMNS | {"id", "number", "type", "symbol", "hex"}
NAME_TYPES: Final = frozenset(
    "country city state continent language currency_name department job_title product_category company_name"
    " color".split()
)
"""Types whose values are names of things."""
SMALL_TYPES: Final = NAME_TYPES | {"country_code", "currency_code", "state_abbr"}
"""Types with few values that a unique column may use anyway, while there are enough of them."""
EXHAUSTIVE_TYPES: Final = frozenset(
    "country country_code continent currency_code currency_name language state state_abbr".split()
)
"""Types that contain all existing values: a unique column of such a type limits the rows to their number."""
_MAX_HONORIFIC_CHARS: Final = 10  # chosen: characters up to which a person's title is "Mr." rather than a job
_NAME_MEANINGS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
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
"""By complete names, and by the endings of names (after …)."""


@dataclass(frozen=True, slots=True)
class NameMeaning:
    """A type suggested by names. `is_certain`: the thing is known, so its values are correct even if they are few, or
    if a sample only has a pattern."""

    type: str
    options: dict[str, Any]
    common: dict[str, Any]
    is_certain: bool = False


def name_meaning(evidence: ColumnEvidence) -> NameMeaning:
    """Return the combined meaning of the names of a column and its table; words if they have none."""
    column, table = evidence.column, TableNouns.from_entity(evidence.entity)
    name = translate_to_english(split_words(column.name))
    meaning = _meaning_by_column_name(name, table)
    if meaning is None and (noun_meaning := _meaning_by_noun(name, table, evidence)) is not None:
        meaning = _adjust_meaning(noun_meaning, column, evidence.values)
    if meaning is not None:
        return meaning
    kind = guess.suggest_type("_".join(name))
    return NameMeaning(kind, dict(guess.STARTER_OPTIONS.get(kind, {})), {})


@dataclass(frozen=True, slots=True)
class TableNouns:
    """The nouns of a table's name, and conclusions from its other columns."""

    nouns: tuple[str, ...]
    has_person_columns: bool
    has_contact_columns: bool
    lacks_name_column: bool
    """Whether no column contains the name of a row."""

    @classmethod
    def from_entity(cls, entity: Entity) -> TableNouns:
        """Of `shop.tbl_product_categories`: product, category."""
        words = translate_to_english(split_words(entity.parts[-1] if entity.parts else entity.name))
        nouns = [word for word in words if word not in TABLE_NAME_NOISE] or words
        while len(nouns) > 1 and singular(nouns[-1]) in (*DESCRIPTIVE_NOUNS, "title"):
            nouns = nouns[:-1]
        column_names = {"_".join(translate_to_english(split_words(field.name))) for field in entity.fields}
        return cls(
            (*nouns[:-1], singular(nouns[-1])) if nouns else (),
            bool(column_names & PERSON_COLUMNS) or any(name.startswith("employee_") for name in column_names),
            bool(column_names & CONTACT_COLUMNS),
            not any(name in NAME_COLUMNS or name.endswith(("_name", "_title")) for name in column_names),
        )

    @property
    def noun(self) -> str:
        """The thing that a row stands for: the last noun that is known, else the last."""
        return _known_noun(self.nouns) or (self.nouns[-1] if self.nouns else "")

    @property
    def is_person(self) -> bool:
        """Whether a row represents a person."""
        noun = self.noun
        if noun in MEANINGS_BY_NOUN or noun in TITLED_NOUNS:
            return False
        return self.has_person_columns or is_person(noun)


def _known_noun(nouns: Sequence[str]) -> str:
    """The noun at the end of some that means something: also of two written as one (`productcategory`, `time zone`)."""
    if not nouns:
        return ""
    last = singular(nouns[-1])
    for item in ("".join((*nouns[-2:-1], last)), last):
        if _is_known_noun(item):
            return item
    compounds = (
        thing
        for thing in (*MEANINGS_BY_NOUN, *TITLED_NOUNS, *PERSON_NOUNS)
        if len(thing) >= _MIN_SUFFIX_CHARS
        and last.endswith(thing)
        and len(last) >= len(thing) + _MIN_PREFIX_CHARS
    )
    return max(compounds, key=len, default="")


_MIN_SUFFIX_CHARS: Final = 7  # chosen: `productcategory` is a category, an export no port
_MIN_PREFIX_CHARS: Final = 3  # chosen: an allocation is no location


def _is_known_noun(noun: str) -> bool:
    return noun in MEANINGS_BY_NOUN or noun in TITLED_NOUNS or noun in PERSON_NOUNS


def _meaning_by_column_name(words: Sequence[str], table: TableNouns) -> NameMeaning | None:
    """Return the meaning of a column's name, independent of its table."""
    joined, rest = "_".join(words), "_".join(_without_table_words(words, table.nouns))
    for candidate in (joined, rest, f"…_{words[-1]}" if words else ""):
        if candidate in _NAME_MEANINGS:
            kind, options = _NAME_MEANINGS[candidate]
            return NameMeaning(kind, dict(options), {})
    if joined in _GENERIC_COLUMNS or tuple(words) == table.nouns:
        return None
    found = find("".join(words))
    if found is None or (found.name == "title" and joined != "honorific"):
        return None
    return NameMeaning(found.name, dict(guess.STARTER_OPTIONS.get(found.name, {})), {})


_SHORT_DESCRIPTION_CHARS: Final = 60  # chosen: characters of a description that is a name


def _meaning_by_noun(words: list[str], table: TableNouns, evidence: ColumnEvidence) -> Meaning | None:
    """By the thing that the column names, else by the one that the table does."""
    rest = _without_table_words(words, table.nouns)
    part = "_".join(rest) or "name"
    if (
        part == "description"
        and table.lacks_name_column
        and (evidence.column.max_length or 999) <= _SHORT_DESCRIPTION_CHARS
    ):
        part = "name"  # the only text that says which one it is
    if part == table.noun[:1] + "name":  # DEPT.DNAME
        part = "name"
    if part in _GENERIC_COLUMNS:
        return _meaning_by_table_noun(part, table, evidence)
    if part.removeprefix(f"{table.noun}_") in _GENERIC_COLUMNS:
        return _meaning_by_table_noun(part.removeprefix(f"{table.noun}_"), table, evidence)
    for size in (2, 1):  # `country_name`, `state iso code`
        if len(rest) > size and (ending := "_".join(rest[-size:])) in _GENERIC_COLUMNS:
            return _noun_meaning(rest[:-size], ending, evidence)
    return _noun_meaning(rest, "name", evidence, is_whole_name=True)


_MIN_ABBREVIATION_CHARS: Final = 3  # chosen: letters that stand for a noun


def _without_table_words(words: Sequence[str], nouns: Sequence[str]) -> list[str]:
    """A column's words without those of its table at their front, also if they are abbreviated (`cou_code` of a
    country)."""
    rest = list(words)
    for noun in nouns:
        if rest and singular(rest[0]) == singular(noun):
            rest = rest[1:]
    short = rest[0] if len(rest) > 1 else ""
    if (
        len(short) >= _MIN_ABBREVIATION_CHARS
        and not _is_known_noun(short)
        and any(noun.startswith(short) and noun != short for noun in nouns)
    ):
        rest = rest[1:]
    return rest


def _meaning_by_table_noun(part: str, table: TableNouns, evidence: ColumnEvidence) -> Meaning | None:
    noun = table.noun
    if noun in MEANINGS_BY_NOUN:
        return _part_meaning(noun, part, evidence)
    if part not in NAME_COLUMNS:
        return None
    if noun == "title" and table.has_person_columns:
        return JOB_TITLE
    if noun in TITLED_NOUNS and not (table.has_person_columns and is_person(noun)):
        return WORK_TITLE
    if table.is_person:
        return _person_meaning(noun, part, evidence)
    if part in TITLE_COLUMNS:
        return HONORIFIC if _has_honorifics(evidence.values) else WORK_TITLE
    return PERSON_NAME if table.has_contact_columns else GENERIC_NAME


def _person_meaning(noun: str, part: str, evidence: ColumnEvidence) -> Meaning:
    if part not in TITLE_COLUMNS:
        return PERSON_NAME
    if _has_honorifics(evidence.values):
        return HONORIFIC
    length = evidence.column.max_length
    if evidence.values or (noun in JOB_TITLE_NOUNS and (length is None or length > _MAX_HONORIFIC_CHARS)):
        return JOB_TITLE
    return HONORIFIC


def _has_honorifics(values: Sequence[Any]) -> bool:
    """Return whether a sample consists mostly of forms of address."""
    found = [str(value).strip().rstrip(".").casefold() in HONORIFICS for value in values]
    return bool(found) and 2 * sum(found) > len(found)


def _part_meaning(noun: str, part: str, evidence: ColumnEvidence) -> Meaning | None:
    """A part of a thing: its name, its code. A text key of few characters is a code too."""
    parts = MEANINGS_BY_NOUN[noun]
    if part in parts:
        return parts[part]
    if part in NAME_COLUMNS:
        return parts["name"]
    if part in CODE_COLUMNS or (
        part == "id" and evidence.column.type == "text" and (evidence.column.max_length or 9) <= 3
    ):
        return parts.get("code")
    return None


def _noun_meaning(
    nouns: Sequence[str], part: str, evidence: ColumnEvidence, is_whole_name: bool = False
) -> Meaning | None:
    """By a noun that the column has itself. `is_whole_name`: the
    noun is the whole name (`publisher`, not `publisher_name`)."""
    noun = singular(nouns[-1])
    noun = noun if _is_known_noun(noun) else (_known_noun(nouns) if not is_whole_name else noun)
    if is_whole_name and noun in AMBIGUOUS_NOUNS:
        return None
    if noun in MEANINGS_BY_NOUN:
        return _part_meaning(noun, part, evidence)
    if noun in PERSON_NOUNS or (is_person(noun) and not is_whole_name):
        return _person_meaning(noun, part, evidence) if part in NAME_COLUMNS else None
    if is_whole_name or part not in NAME_COLUMNS:
        return None
    if noun in TITLED_NOUNS or part in TITLE_COLUMNS:
        return WORK_TITLE
    return GENERIC_NAME if part == "name" and not _PERSONAL_NAME.fullmatch(nouns[-1]) else None


_PERSONAL_NAME: Final = re.compile(
    "first|last|middle|maiden|given|family|full|display|nick|legal|preferred|ship|bill|shipping|billing|birth|real|pen|stage"
)


def _adjust_meaning(meaning: Meaning, column: Column, values: Sequence[Any]) -> NameMeaning | None:
    """Return a meaning adjusted to the column's length and a sample; None if the sample contradicts it."""
    kind, options, common = meaning
    texts = [value.strip() for value in values if isinstance(value, str)]
    if kind in ("country_code", "currency_code") or options.get("format") == "code":
        if any(not re.fullmatch(r"[A-Za-z]{2,3}", text) for text in texts):
            return None
        size = max(map(len, texts), default=column.max_length or 2)
        if kind == "country_code" and size == 3:
            options = {"format": "alpha3"}
    if kind == "name" and texts and all(re.fullmatch(r"[a-z0-9._-]+", text) for text in texts):
        kind = "username"
    return NameMeaning(kind, dict(options), dict(common), is_certain=kind not in ("words", "sku"))
