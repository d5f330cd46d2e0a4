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
from webapp.imports.inference.lexicon import english

Meaning = tuple[str, dict[str, Any], dict[str, Any]]
"""A field type, its options, and common keys."""


def _meaning(kind: str, options: dict[str, Any] | None = None, **common: Any) -> Meaning:
    return kind, options or {}, common


TITLED: Final = _meaning("words", {"count": 3}, text_case="title")
"""Titles of books, articles or projects."""
NAMED: Final = _meaning("words", {"count": 2}, text_case="title")
"""Names of things of unknown kind."""
PERSON: Final = _meaning("name")
HONORIFIC: Final = _meaning("title")
JOB: Final = _meaning("job_title")

ABBREVIATED: Final = {
    "acct": "account", "addr": "address", "cat": "category", "ctry": "country", "cur": "currency", "curr": "currency",
    "cust": "customer", "dep": "department", "dept": "department", "desc": "description", "emp": "employee",
    "fname": "first_name", "lang": "language", "lname": "last_name", "loc": "city",
    "mfr": "manufacturer", "mgr": "manager", "nm": "name", "org": "organization", "prod": "product", "pub": "publisher",
    "qty": "quantity", "tz": "timezone",
}  # fmt: skip
NOISE: Final = frozenset(
    "tbl tb tab dim fact stg staging wp app core dbo mst master lookup lkp ref m2m my".split()
)
"""Parts of a table's name that say what it is for the database."""
ABOUT: Final = frozenset(
    "translation l10n i18n detail info data history archive record profile header".split()
)
"""Nouns of tables that describe the preceding thing."""

PERSONS: Final = frozenset(
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
EMPLOYED: Final = frozenset(
    "employee staff contact worker manager rep representative salesperson colleague officer supervisor contractor"
    " consultant faculty crew speaker executive lead person buyer".split()
)
"""People whose title is as likely a job as a form of address."""
NOT_PERSONS: Final = frozenset(
    "order number folder container computer server letter newsletter offer paper poster tower layer filter header"
    " footer banner counter register printer router sensor flavor sector error factor vector motor door floor plant"
    " variant constant grant tenant committee coffee chapter parameter voucher transfer weather water other matter"
    " power border center theater meter timer trigger ledger character cluster browser scanner monitor charger adapter"
    " controller sticker planner tracker reminder parser checklist wishlist watchlist slider helper identifier"
    " connector indicator elevator generator calculator simulator corridor mirror anchor quarter semester trimester"
    " buffer cover datacenter barrier degree elephant warrant covenant".split()
)
VAGUE: Final = frozenset("host parent child lead port good gift holder individual principal head".split())
"""Nouns with a different meaning in most tables if they are used without a table's context: a server's host, the parent
row."""
_PERSON_SUFFIX: Final = re.compile(r".{3,}(er|or|ist|ian|ee|ant|man|woman)$")


def is_person(noun: str) -> bool:
    """Return whether a noun, in the singular, is likely to be a person."""
    return noun in PERSONS or (
        noun not in NOT_PERSONS and noun not in THINGS and bool(_PERSON_SUFFIX.match(noun))
    )


WORKS: Final = frozenset(
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

_PLACES: Final = (
    "city town municipality village locality warehouse office location depot airport station destination port"
)
_COMPANIES: Final = (
    "company organization organisation supplier vendor manufacturer brand firm shipper carrier publisher employer"
    " agency bank store shop merchant provider distributor label studio airline hotel restaurant retailer wholesaler"
    " partner business insurer dealer enterprise institution competitor sponsor subsidiary maker"
)
_GOODS: Final = "product item merchandise article good inventory accessory gift"


def _entities(nouns: str, **parts: Meaning) -> dict[str, dict[str, Meaning]]:
    return dict.fromkeys(nouns.split(), parts)


THINGS: Final[dict[str, dict[str, Meaning]]] = {
    **_entities(
        "country nation",
        name=_meaning("country"),
        code=_meaning("country_code"),
        demonym=_meaning("nationality"),
    ),
    **_entities("continent", name=_meaning("continent")),
    **_entities("state province", name=_meaning("state"), code=_meaning("state_abbr")),
    **_entities("region territory county district", name=_meaning("state")),
    **_entities(_PLACES, name=_meaning("city")),
    **_entities("street", name=_meaning("street_name")),
    **_entities("language locale", name=_meaning("language"), code=_meaning("language", {"format": "code"})),
    **_entities(
        "currency",
        name=_meaning("currency_name"),
        code=_meaning("currency_code"),
        symbol=_meaning("currency_symbol"),
    ),
    **_entities("timezone", name=_meaning("time_zone"), code=_meaning("time_zone")),
    **_entities("nationality", name=_meaning("nationality")),
    **_entities("gender", name=_meaning("gender")),
    **_entities("sex", name=_meaning("sex")),
    **_entities(
        "color colour", name=_meaning("color"), code=_meaning("hex_color"), hex=_meaning("hex_color")
    ),
    **_entities("department division", name=_meaning("department")),
    **_entities("job position occupation profession role designation", name=JOB),
    **_entities(
        _GOODS,
        name=_meaning("product_name"),
        code=_meaning("sku"),
        number=_meaning("sku"),
        type=_meaning("product_category"),
    ),
    **_entities("category subcategory", name=_meaning("product_category")),
    **_entities(_COMPANIES, name=_meaning("company_name")),
    **_entities("file attachment", name=_meaning("file_name")),
    **_entities("domain site", name=_meaning("domain_name")),
    **_entities("account", name=_meaning("account_name")),
}
THINGS["article"] = {**THINGS["article"], "title": TITLED}  # a text has a title, goods have a name
"""The name and the code of a thing, by its noun, and its other attributes that have a specific type."""

CALLED: Final = frozenset(
    ("name", "title", "label", "caption", "full_name", "display_name", "short_name", "long_name", "common_name",
     "official_name", "english_name", "name_en", "en_name", "local_name", "description_name", "headline", "subject",
     "fullname", "displayname", "shortname", "longname", "designation")
)  # fmt: skip
"""Columns that contain the name of a thing."""
CODED: Final = frozenset(
    ("code", "iso", "iso_code", "iso2", "iso3", "iso_2", "iso_3", "alpha2", "alpha3", "alpha_2", "alpha_3", "abbr",
     "abbreviation", "short_code", "cd", "code2", "code3", "iso_alpha2", "iso_alpha3", "iso_code_2", "iso_code_3",
     "isocode", "shortcode", "iso_code2", "iso_code3", "iso_alpha_2", "iso_alpha_3")
)  # fmt: skip
TITLES: Final = frozenset(("title", "headline", "subject", "caption"))
PERSONAL: Final = frozenset(
    ("first_name", "last_name", "firstname", "lastname", "surname", "given_name", "family_name", "birth_date",
     "birthdate", "date_of_birth", "dob", "birthday", "gender", "sex", "hire_date", "salary", "ssn", "marital_status",
     "middle_name", "honorific", "nationality", "born", "hired_at", "hired_on", "age")
)  # fmt: skip
"""Columns that only tables of people have."""
REACHED: Final = frozenset(("email", "phone", "mobile", "email_address", "phone_number", "telephone"))
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


def split(text: str) -> list[str]:
    """The words of a name in small letters: `OrderItems`, `ORDER_ITEMS`, `order-items`."""
    return list(_split(text))


@lru_cache(16_384)
def _split(text: str) -> tuple[str, ...]:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", text))
    words = re.findall(r"[a-z0-9]+", spaced.lower())
    expanded = (ABBREVIATED.get(word) or ABBREVIATED.get(word.removesuffix("s"), word) for word in words)
    return tuple(part for word in expanded for part in word.split("_"))


_GENERIC: Final = CALLED | CODED | {"id", "number", "type", "symbol", "hex"}
NAMING: Final = frozenset(
    "country city state continent language currency_name department job_title product_category company_name"
    " color".split()
)
"""Types whose values are names of things."""
FEW: Final = NAMING | {"country_code", "currency_code", "state_abbr"}
"""Types with few values that a unique column may use anyway, while there are enough of them."""
CLOSED: Final = frozenset(
    "country country_code continent currency_code currency_name language state state_abbr".split()
)
"""Types that contain all existing values: a unique column of such a type limits the rows to their number."""
_FORM_OF_ADDRESS: Final = 10  # chosen: characters up to which a person's title is "Mr." rather than a job
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
    """A type suggested by names. `sure`: the thing is known, so its values are correct even if they are few, or if a
    sample only has a pattern."""

    type: str
    options: dict[str, Any]
    common: dict[str, Any]
    sure: bool = False


def name_meaning(evidence: ColumnEvidence) -> NameMeaning:
    """Return the combined meaning of the names of a column and its table; words if they have none."""
    column, table = evidence.column, Table.of(evidence.entity)
    name = english(split(column.name))
    meaning = _by_column_name(name, table)
    if meaning is None and (named := _by_noun(name, table, evidence)) is not None:
        meaning = _adjusted(named, column, evidence.values)
    if meaning is not None:
        return meaning
    kind = guess.type_of("_".join(name))
    return NameMeaning(kind, dict(guess.STARTERS.get(kind, {})), {})


@dataclass(frozen=True, slots=True)
class Table:
    """The nouns of a table's name, and conclusions from its other columns."""

    nouns: tuple[str, ...]
    personal: bool
    reached: bool
    unnamed: bool
    """Whether no column contains the name of a row."""

    @classmethod
    def of(cls, entity: Entity) -> Table:
        """Of `shop.tbl_product_categories`: product, category."""
        words = english(split(entity.parts[-1] if entity.parts else entity.name))
        nouns = [word for word in words if word not in NOISE] or words
        while len(nouns) > 1 and singular(nouns[-1]) in (*ABOUT, "title"):
            nouns = nouns[:-1]
        column_names = {"_".join(english(split(field.name))) for field in entity.fields}
        return cls(
            (*nouns[:-1], singular(nouns[-1])) if nouns else (),
            bool(column_names & PERSONAL) or any(name.startswith("employee_") for name in column_names),
            bool(column_names & REACHED),
            not any(name in CALLED or name.endswith(("_name", "_title")) for name in column_names),
        )

    @property
    def noun(self) -> str:
        """The thing that a row stands for: the last noun that is known, else the last."""
        return _known_noun(self.nouns) or (self.nouns[-1] if self.nouns else "")

    @property
    def is_person(self) -> bool:
        """Whether a row represents a person."""
        noun = self.noun
        if noun in THINGS or noun in WORKS:
            return False
        return self.personal or is_person(noun)


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
        for thing in (*THINGS, *WORKS, *PERSONS)
        if len(thing) >= _MIN_SUFFIX_CHARS
        and last.endswith(thing)
        and len(last) >= len(thing) + _MIN_PREFIX_CHARS
    )
    return max(compounds, key=len, default="")


_MIN_SUFFIX_CHARS: Final = 7  # chosen: `productcategory` is a category, an export no port
_MIN_PREFIX_CHARS: Final = 3  # chosen: an allocation is no location


def _is_known_noun(noun: str) -> bool:
    return noun in THINGS or noun in WORKS or noun in PERSONS


def _by_column_name(words: Sequence[str], table: Table) -> NameMeaning | None:
    """Return the meaning of a column's name, independent of its table."""
    joined, rest = "_".join(words), "_".join(_without_table_words(words, table.nouns))
    for candidate in (joined, rest, f"…_{words[-1]}" if words else ""):
        if candidate in _NAME_MEANINGS:
            kind, options = _NAME_MEANINGS[candidate]
            return NameMeaning(kind, dict(options), {})
    if joined in _GENERIC or tuple(words) == table.nouns:
        return None
    found = find("".join(words))
    if found is None or (found.name == "title" and joined != "honorific"):
        return None
    return NameMeaning(found.name, dict(guess.STARTERS.get(found.name, {})), {})


_SHORT_DESCRIPTION_CHARS: Final = 60  # chosen: characters of a description that is a name


def _by_noun(words: list[str], table: Table, evidence: ColumnEvidence) -> Meaning | None:
    """By the thing that the column names, else by the one that the table does."""
    rest = _without_table_words(words, table.nouns)
    part = "_".join(rest) or "name"
    if (
        part == "description"
        and table.unnamed
        and (evidence.column.max_length or 999) <= _SHORT_DESCRIPTION_CHARS
    ):
        part = "name"  # the only text that says which one it is
    if part == table.noun[:1] + "name":  # DEPT.DNAME
        part = "name"
    if part in _GENERIC:
        return _by_table_noun(part, table, evidence)
    if part.removeprefix(f"{table.noun}_") in _GENERIC:
        return _by_table_noun(part.removeprefix(f"{table.noun}_"), table, evidence)
    for size in (2, 1):  # `country_name`, `state iso code`
        if len(rest) > size and (ending := "_".join(rest[-size:])) in _GENERIC:
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


def _by_table_noun(part: str, table: Table, evidence: ColumnEvidence) -> Meaning | None:
    noun = table.noun
    if noun in THINGS:
        return _part_meaning(noun, part, evidence)
    if part not in CALLED:
        return None
    if noun == "title" and table.personal:
        return JOB
    if noun in WORKS and not (table.personal and is_person(noun)):
        return TITLED
    if table.is_person:
        return _person_meaning(noun, part, evidence)
    if part in TITLES:
        return HONORIFIC if _has_honorifics(evidence.values) else TITLED
    return PERSON if table.reached else NAMED


def _person_meaning(noun: str, part: str, evidence: ColumnEvidence) -> Meaning:
    if part not in TITLES:
        return PERSON
    if _has_honorifics(evidence.values):
        return HONORIFIC
    length = evidence.column.max_length
    if evidence.values or (noun in EMPLOYED and (length is None or length > _FORM_OF_ADDRESS)):
        return JOB
    return HONORIFIC


def _has_honorifics(values: Sequence[Any]) -> bool:
    """Return whether a sample consists mostly of forms of address."""
    found = [str(value).strip().rstrip(".").casefold() in HONORIFICS for value in values]
    return bool(found) and 2 * sum(found) > len(found)


def _part_meaning(noun: str, part: str, evidence: ColumnEvidence) -> Meaning | None:
    """A part of a thing: its name, its code. A text key of few characters is a code too."""
    parts = THINGS[noun]
    if part in parts:
        return parts[part]
    if part in CALLED:
        return parts["name"]
    if part in CODED or (
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
    if is_whole_name and noun in VAGUE:
        return None
    if noun in THINGS:
        return _part_meaning(noun, part, evidence)
    if noun in PERSONS or (is_person(noun) and not is_whole_name):
        return _person_meaning(noun, part, evidence) if part in CALLED else None
    if is_whole_name or part not in CALLED:
        return None
    if noun in WORKS or part in TITLES:
        return TITLED
    return NAMED if part == "name" and not _PERSONAL_NAME.fullmatch(nouns[-1]) else None


_PERSONAL_NAME: Final = re.compile(
    "first|last|middle|maiden|given|family|full|display|nick|legal|preferred|ship|bill|shipping|billing|birth|real|pen|stage"
)


def _adjusted(meaning: Meaning, column: Column, values: Sequence[Any]) -> NameMeaning | None:
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
    return NameMeaning(kind, dict(options), dict(common), sure=kind not in ("words", "sku"))
