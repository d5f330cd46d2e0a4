"""Words that name things: what tables are called, and what the names, titles and codes of such things are.

The nouns are those of common schemas. A noun that is not here, and does not look like a person's, says nothing.
"""

from __future__ import annotations

import re
from typing import Any, Final

Meaning = tuple[str, dict[str, Any], dict[str, Any]]
"""A field type, its options, and common keys."""


def _of(kind: str, options: dict[str, Any] | None = None, **common: Any) -> Meaning:
    return kind, options or {}, common


TITLED: Final = _of("words", {"count": 3}, text_case="title")
"""What a book, an article or a project may be called."""
NAMED: Final = _of("words", {"count": 2}, text_case="title")
"""What a thing may be called of which no more is known."""
PERSON: Final = _of("name")
HONORIFIC: Final = _of("title")
JOB: Final = _of("job_title")

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
"""Tables of these tell more of the thing before them."""

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
"""Persons whose title is as likely what they work as."""
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
"""Nouns that alone are something else in most tables: a server's host, the row above."""
_AGENT: Final = re.compile(r".{3,}(er|or|ist|ian|ee|ant|man|woman)$")


def is_person(noun: str) -> bool:
    """Whether a noun, in the singular, stands for a person as far as one can tell."""
    return noun in PERSONS or (noun not in NOT_PERSONS and noun not in THINGS and bool(_AGENT.match(noun)))


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


def _each(nouns: str, **parts: Meaning) -> dict[str, dict[str, Meaning]]:
    return dict.fromkeys(nouns.split(), parts)


THINGS: Final[dict[str, dict[str, Meaning]]] = {
    **_each("country nation", name=_of("country"), code=_of("country_code"), demonym=_of("nationality")),
    **_each("continent", name=_of("continent")),
    **_each("state province", name=_of("state"), code=_of("state_abbr")),
    **_each("region territory county district", name=_of("state")),
    **_each(_PLACES, name=_of("city")),
    **_each("street", name=_of("street_name")),
    **_each("language locale", name=_of("language"), code=_of("language", {"format": "code"})),
    **_each("currency", name=_of("currency_name"), code=_of("currency_code"), symbol=_of("currency_symbol")),
    **_each("timezone", name=_of("time_zone"), code=_of("time_zone")),
    **_each("nationality", name=_of("nationality")),
    **_each("gender", name=_of("gender")),
    **_each("sex", name=_of("sex")),
    **_each("color colour", name=_of("color"), code=_of("hex_color"), hex=_of("hex_color")),
    **_each("department division", name=_of("department")),
    **_each("job position occupation profession role designation", name=JOB),
    **_each(
        _GOODS, name=_of("product_name"), code=_of("sku"), number=_of("sku"), type=_of("product_category")
    ),
    **_each("category subcategory", name=_of("product_category")),
    **_each(_COMPANIES, name=_of("company_name")),
    **_each("file attachment", name=_of("file_name")),
    **_each("domain site", name=_of("domain_name")),
    **_each("account", name=_of("account_name")),
}
THINGS["article"] = {**THINGS["article"], "title": TITLED}  # a text has a title, goods have a name
"""What the name and the code of a thing are, by its noun; what else of it has a type of its own, beside."""

CALLED: Final = frozenset(
    ("name", "title", "label", "caption", "full_name", "display_name", "short_name", "long_name", "common_name",
     "official_name", "english_name", "name_en", "en_name", "local_name", "description_name", "headline", "subject",
     "fullname", "displayname", "shortname", "longname", "designation")
)  # fmt: skip
"""What columns are called that hold what a thing is called."""
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
"""Columns that only a table of persons has."""
REACHED: Final = frozenset(("email", "phone", "mobile", "email_address", "phone_number", "telephone"))
"""Columns of whom one can reach: persons, and companies."""
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
    """A noun in the singular, as far as its ending tells."""
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
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", text))
    words = re.findall(r"[a-z0-9]+", apart.lower())
    return [part for word in words for part in _whole(word).split("_")]


def _whole(word: str) -> str:
    return ABBREVIATED.get(word) or ABBREVIATED.get(word.removesuffix("s"), word)
