"""Countries: their continents, languages, nationalities and currencies, and the options that name them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from webapp.engine.types.base import max_text_length
from webapp.errors import did_you_mean

if TYPE_CHECKING:
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec
    from webapp.engine.types.geography import Geography


def country_of_locale(locale: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """The country of ``de_DE``, if it is known; else nothing."""
    country = (locale or "").replace("-", "_").partition("_")[2].upper()
    return (country,) if country in known else ()


def validate_countries(
    field: FieldSpec,
    requested: str | Sequence[str],
    known: Sequence[str],
    option: str,
    noun: str,
    compiler: Compiler,
) -> tuple[str, ...]:
    """Return the countries of an option in uppercase, without duplicates. Reports each country that has no ``noun``."""
    codes = [requested] if isinstance(requested, str) else list(requested)
    if not codes:
        compiler.fault(
            field, f"options.{option}", "too_few", "Set at least one country, or remove the option."
        )
    chosen: dict[str, None] = {}
    for place, code in enumerate(codes):
        upper = code.strip().upper()
        if upper in known:
            chosen[upper] = None
            continue
        path = f"options.{option}" if isinstance(requested, str) else f"options.{option}[{place}]"
        hint = did_you_mean(code, known) or f"Known: {', '.join(known)}."
        compiler.fault(field, path, "unknown_country", f'There is no country "{code}" with {noun}.', hint)
    return tuple(chosen)


# Where the first language listed for a country is not one of its official ones.
_LANGUAGE_OF = {
    "CC": "en", "ER": "ti", "MP": "en", "PH": "fil", "SG": "en", "TF": "fr", "VA": "it", "WF": "fr", "ZA": "en",
}  # fmt: skip
# Where a country has had another currency since its entry was written.
_CURRENCY_OF = {"BG": "EUR"}
# English names of languages, as the Unicode CLDR has them.
LANGUAGES = {
    "am": "Amharic", "ar": "Arabic", "az": "Azerbaijani", "be": "Belarusian", "bg": "Bulgarian", "bi": "Bislama",
    "bn": "Bangla", "bs": "Bosnian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "dv": "Divehi",
    "dz": "Dzongkha", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian",
    "fi": "Finnish", "fil": "Filipino", "fo": "Faroese", "fr": "French", "he": "Hebrew", "hr": "Croatian",
    "ht": "Haitian Creole", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "is": "Icelandic",
    "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh", "kl": "Kalaallisut", "km": "Khmer",
    "ko": "Korean", "ky": "Kyrgyz", "lb": "Luxembourgish", "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian",
    "mh": "Marshallese", "mk": "Macedonian", "mn": "Mongolian", "ms": "Malay", "mt": "Maltese", "my": "Burmese",
    "na": "Nauru", "ne": "Nepali", "niu": "Niuean", "nl": "Dutch", "no": "Norwegian", "ny": "Nyanja",
    "pau": "Palauan", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "rw": "Kinyarwanda",
    "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "sm": "Samoan", "so": "Somali", "sq": "Albanian",
    "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "tet": "Tetum", "tg": "Tajik", "th": "Thai", "ti": "Tigrinya",
    "tk": "Turkmen", "tkl": "Tokelau", "to": "Tongan", "tr": "Turkish", "tvl": "Tuvalu", "uk": "Ukrainian",
    "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
_NATIONALITIES = """
AD Andorran;AE Emirati;AF Afghan;AG Antiguan;AI Anguillian;AL Albanian;AM Armenian;AO Angolan;AR Argentine;
AS American Samoan;AT Austrian;AU Australian;AW Aruban;AX Ålandic;AZ Azerbaijani;BA Bosnian;BB Barbadian;
BD Bangladeshi;BE Belgian;BF Burkinabe;BG Bulgarian;BH Bahraini;BI Burundian;BJ Beninese;BL Barthélemois;BM Bermudian;
BN Bruneian;BO Bolivian;BQ Bonairean;BR Brazilian;BS Bahamian;BT Bhutanese;BW Motswana;BY Belarusian;BZ Belizean;
CA Canadian;CC Cocos Islander;CD Congolese;CF Central African;CG Congolese;CH Swiss;CI Ivorian;CK Cook Islander;
CL Chilean;CM Cameroonian;CN Chinese;CO Colombian;CR Costa Rican;CU Cuban;CV Cape Verdean;CW Curaçaoan;
CX Christmas Islander;CY Cypriot;CZ Czech;DE German;DJ Djiboutian;DK Danish;DM Dominican;DO Dominican;DZ Algerian;
EC Ecuadorian;EE Estonian;EG Egyptian;EH Sahrawi;ER Eritrean;ES Spanish;ET Ethiopian;FI Finnish;FJ Fijian;
FK Falkland Islander;FM Micronesian;FO Faroese;FR French;GA Gabonese;GB British;GD Grenadian;GE Georgian;
GF French Guianese;GG Guernsey;GH Ghanaian;GI Gibraltarian;GL Greenlandic;GM Gambian;GN Guinean;GP Guadeloupean;
GQ Equatorial Guinean;GR Greek;GT Guatemalan;GU Guamanian;GW Bissau-Guinean;GY Guyanese;HK Hong Konger;HN Honduran;
HR Croatian;HT Haitian;HU Hungarian;ID Indonesian;IE Irish;IL Israeli;IM Manx;IN Indian;IQ Iraqi;IR Iranian;
IS Icelandic;IT Italian;JE Jersey;JM Jamaican;JO Jordanian;JP Japanese;KE Kenyan;KG Kyrgyz;KH Cambodian;
KI I-Kiribati;KM Comorian;KN Kittitian;KP North Korean;KR South Korean;KW Kuwaiti;KY Caymanian;KZ Kazakhstani;
LA Laotian;LB Lebanese;LC Saint Lucian;LI Liechtensteiner;LK Sri Lankan;LR Liberian;LS Basotho;LT Lithuanian;
LU Luxembourgish;LV Latvian;LY Libyan;MA Moroccan;MC Monégasque;MD Moldovan;ME Montenegrin;MF Saint-Martinoise;
MG Malagasy;MH Marshallese;MK Macedonian;ML Malian;MM Burmese;MN Mongolian;MO Macanese;MP Northern Marianan;
MQ Martinican;MR Mauritanian;MS Montserratian;MT Maltese;MU Mauritian;MV Maldivian;MW Malawian;MX Mexican;
MY Malaysian;MZ Mozambican;NA Namibian;NC New Caledonian;NE Nigerien;NF Norfolk Islander;NG Nigerian;NI Nicaraguan;
NL Dutch;NO Norwegian;NP Nepali;NR Nauruan;NU Niuean;NZ New Zealander;OM Omani;PA Panamanian;PE Peruvian;
PF French Polynesian;PG Papua New Guinean;PH Filipino;PK Pakistani;PL Polish;PM Saint-Pierrais;PN Pitcairn Islander;
PR Puerto Rican;PS Palestinian;PT Portuguese;PW Palauan;PY Paraguayan;QA Qatari;RE Réunionese;RO Romanian;RS Serbian;
RU Russian;RW Rwandan;SA Saudi;SB Solomon Islander;SC Seychellois;SD Sudanese;SE Swedish;SG Singaporean;
SH Saint Helenian;SI Slovenian;SJ Norwegian;SK Slovak;SL Sierra Leonean;SM Sammarinese;SN Senegalese;SO Somali;
SR Surinamese;SS South Sudanese;ST São Toméan;SV Salvadoran;SX Sint Maartener;SY Syrian;SZ Swazi;
TC Turks and Caicos Islander;TD Chadian;TG Togolese;TH Thai;TJ Tajik;TK Tokelauan;TL Timorese;TM Turkmen;TN Tunisian;
TO Tongan;TR Turkish;TT Trinidadian;TV Tuvaluan;TW Taiwanese;TZ Tanzanian;UA Ukrainian;UG Ugandan;US American;
UY Uruguayan;UZ Uzbek;VA Vatican;VC Vincentian;VE Venezuelan;VG British Virgin Islander;VI Virgin Islander;
VN Vietnamese;VU Ni-Vanuatu;WF Wallisian;WS Samoan;XK Kosovar;YE Yemeni;YT Mahoran;ZA South African;ZM Zambian;
ZW Zimbabwean
"""


@dataclass(frozen=True, eq=False)
class CountryTexts:
    """One text per country: ``indices`` is ``int64[countries]`` of places in ``texts``, -1 for countries without
    one."""

    texts: pa.StringArray
    indices: np.ndarray
    max_length: int


CONTINENTS: Final = ("Africa", "Antarctica", "Asia", "Europe", "North America", "Oceania", "South America")
"""In the order of the vocabulary's names in other languages."""


def continents(geography: Geography) -> list[str]:
    """The continent of each country."""
    return geography.countries["continent"].to_pylist()


def nationalities(geography: Geography) -> list[str]:
    """Return the English name of each country's nationality; empty for uninhabited ones."""
    known = dict(entry.strip().split(" ", 1) for entry in _NATIONALITIES.split(";"))
    return [known.get(code, "") for code in geography.countries["alpha2"].to_pylist()]


def language_codes(geography: Geography) -> list[str]:
    """The first official language of each country, by its ISO 639 code; empty if none is spoken."""
    columns = (geography.countries[name].to_pylist() for name in ("alpha2", "languages"))
    return [
        _LANGUAGE_OF.get(code) or spoken.split(" ")[0].split("-")[0]
        for code, spoken in zip(*columns, strict=True)
    ]


def languages(geography: Geography) -> list[str]:
    """The first official language of each country, in English."""
    return [LANGUAGES.get(code, "") for code in language_codes(geography)]


def of_country(
    vocabulary: Vocabulary, geography: Geography, make: Callable[[Geography], Sequence[str]]
) -> CountryTexts:
    """Return the result of ``make`` for each country as a pool of distinct texts, created once per process."""
    return vocabulary.cached(("of country", make.__name__), lambda: _compile_texts(make(geography)))


def localized_texts(
    vocabulary: Vocabulary, geography: Geography, source: Callable[[Geography], Sequence[str]], locale: str
) -> CountryTexts | None:
    """`of_country` in the language of a locale; None if the vocabulary does not have these words in it. Codes are the
    same in all languages."""
    if source is language_codes:
        return of_country(vocabulary, geography, source)
    if source is languages:
        return vocabulary.cached(
            ("local languages", locale),
            lambda: _compile_texts(_local_languages(vocabulary, geography, locale)),
        )
    if source is nationalities:
        # That of the locale's country in its language; no other country has one in it.
        names = vocabulary.localized_names("nationality_name", locale)
        if names is None:
            return None
        own = locale.partition("_")[2]
        codes = geography.countries["alpha2"].to_pylist()
        texts = [names[0].as_py() if code == own else "" for code in codes]
        return vocabulary.cached(("local nationality", locale), lambda: _compile_texts(texts))
    names = vocabulary.localized_names("continent_name", locale) if source is continents else None
    if names is not None:
        local = dict(zip(CONTINENTS, names.to_pylist(), strict=True))
        return vocabulary.cached(
            ("local continents", locale),
            lambda: _compile_texts([local[name] for name in continents(geography)]),
        )
    return None


def _local_languages(vocabulary: Vocabulary, geography: Geography, locale: str) -> list[str]:
    table = vocabulary.table("language_name")
    rows = zip(table["locale"].to_pylist(), table["code"].to_pylist(), table["name"].to_pylist(), strict=True)
    names = {code: name for of, code, name in rows if of == locale}
    return [names.get(code, LANGUAGES.get(code, "")) for code in language_codes(geography)]


def _compile_texts(texts: Sequence[str]) -> CountryTexts:
    positions = {text: place for place, text in enumerate(dict.fromkeys(text for text in texts if text))}
    pool = pa.array(list(positions), pa.string())
    return CountryTexts(
        pool, np.array([positions.get(text, -1) for text in texts], np.int64), max_text_length(pool)
    )


def currency_rows(vocabulary: Vocabulary, geography: Geography) -> np.ndarray:
    """``int64[countries]``: rows of the table of currencies, -1 where a country has none."""

    def make() -> np.ndarray:
        row_of = {code: row for row, code in enumerate(vocabulary.table("currency")["code"].to_pylist())}
        columns = (geography.countries[name].to_pylist() for name in ("alpha2", "currency"))
        rows = [
            row_of.get(_CURRENCY_OF.get(code, currency), -1) for code, currency in zip(*columns, strict=True)
        ]
        return np.array(rows, np.int64)

    return vocabulary.cached(("currency of country",), make)


def countries_with_value(vocabulary: Vocabulary, geography: Geography, kind: str, text: str) -> np.ndarray:
    """``int64[k]``: rows of the countries for which a field of type ``kind`` may have the value ``text``."""
    name_ = text.lower()
    if kind.startswith("currency"):
        names = vocabulary.table("currency_name")["name"].to_pylist()
        currencies = vocabulary.table("currency")
        listed = names if kind == "currency_name" else currencies[kind.removeprefix("currency_")].to_pylist()
        rows = {row % currencies.num_rows for row, name in enumerate(listed) if name.lower() == name_}
        return np.flatnonzero(np.isin(currency_rows(vocabulary, geography), sorted(rows)))
    makes = {
        "continent": (continents,),
        "nationality": (nationalities,),
        "language": (languages, language_codes),
    }
    texts_by_source = [make(geography) for make in makes[kind]]
    if kind == "nationality" and vocabulary.has_table("nationality_name"):
        table = vocabulary.table("nationality_name")
        local = [(locale[-2:], name) for locale, name in zip(*table.to_pydict().values(), strict=True)]
        codes = geography.countries["alpha2"].to_pylist()
        texts_by_source += [
            [name if code == of else "" for code in codes] for of, name in local if name.lower() == name_
        ]
    return np.array(
        [row for texts in texts_by_source for row, item in enumerate(texts) if item.lower() == name_],
        np.int64,
    )
