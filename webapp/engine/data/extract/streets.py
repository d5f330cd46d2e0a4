"""Street names in the words of a country, in Latin letters, since the names of its cities are in them too."""

from __future__ import annotations

from collections.abc import Iterable

from webapp.engine.data.extract.locales import LOCALES
from webapp.engine.data.extract.people import last_names_male
from webapp.engine.data.extract.romanize import spelled
from webapp.engine.data.extract.tools import listed, sampled, unique

MOST = 800
"""Streets of one locale."""
_LONGEST = 40

_ENGLISH = "Street Avenue Road Lane Drive Court Way Place Terrace Close"
_AMERICAN = "Street Avenue Road Lane Drive Court Way Place Boulevard Trail"
_TREES = (
    "Acacia Alder Ash Aspen Beech Birch Cedar Cherry Chestnut Cypress Elm Fir Hawthorn Hazel Hickory Holly Juniper "
    "Laurel Linden Locust Magnolia Maple Mulberry Oak Orchard Pine Poplar Spruce Sycamore Walnut Willow Bridge Brook "
    "Castle Church College Garden Green High Hill King Lake Main Market Meadow Mill North Park Prospect Queen "
    "Railway Ridge River School Spring Station Summit Sunset Valley Victoria View Washington Water West Wood York"
)

# Names that streets of these languages commonly bear; Faker has none for them.
_TURKISH = (
    "Atatürk Cumhuriyet İnönü Gazi İstiklal Fatih Mevlana Barış Çınar Gül Lale Menekşe Papatya Zafer Hürriyet "
    "Kurtuluş Bahar Çiçek Deniz Dere Güneş Karanfil Kavak Mimar Sinan Okul Orman Özgür Sevgi Şehit Yıldız Yunus Emre"
)
_ESTONIAN = (
    "Aia Allika Hariduse Jaama Jõe Kalda Kaare Kase Kesk Kevade Kooli Koidu Kuuse Lai Lille Linda Lõuna Männi Mere "
    "Metsa Nurme Oja Pargi Pikk Pärna Põllu Rahu Rohu Saare Sireli Suur Tamme Tartu Uus Vahtra Veski Viljandi Võidu "
    "Vabaduse Õie"
)
_LATVIAN = (
    "Alejas Avotu Baznīcas Bērzu Brīvības Ceriņu Dārza Dzirnavu Ezera Gaujas Jaunā Jūras Kalna Krasta Kļavu Lauku "
    "Lielā Liepu Meža Miera Muzeja Ozolu Parka Pils Pļavu Priežu Raiņa Rīgas Rožu Rūpnīcas Saules Skolas Stacijas "
    "Tirgus Upes Vidus Zaļā Ziedu"
)
_BULGARIAN = (
    "Vitosha Rakovski Levski Botev Shipka Pirin Rila Opalchenska Dunav Maritsa Tsar Boris Tsar Simeon Tsar Asen "
    "Patriarh Evtimiy Ivan Vazov Hristo Smirnenski Aleksandar Stamboliyski Slivnitsa Stara Planina Sveti Kliment "
    "Slaveykov Rodopi Petar Beron Otets Paisiy Georgi Benkovski Lyuben Karavelov Vasil Aprilov Han Asparuh Han Krum"
)
_JAPANESE = (
    "Honcho Sakaecho Saiwaicho Midoricho Asahicho Shinmachi Nakamachi Higashicho Nishimachi Minamicho Kitamachi Chuo "
    "Ekimae Hommachi Motomachi Shiromachi Teramachi Kajiyacho Gofukucho Zaimokucho Kamiyacho Tenjin Sakuragaoka "
    "Hanazono Matsubara Sugimoto Takasago Tokiwacho Fujimicho Wakabacho Izumicho Umemotocho Nagata Ogawamachi "
    "Ishibashi Yanagicho Suehirocho Toyotama Kotobuki Kasugacho Hachiman Inari Daikokucho Ebisucho Aoyama Shirakawa "
    "Kiyokawa Asakawa Tamachi Minato"
)
_CHINESE = (
    "Zhongshan Renmin Jiefang Jianshe Beijing Nanjing Shanghai Heping Xinhua Wenhua Guangming Changjiang Huanghe "
    "Dongfeng Hongqi Minzhu Shengli Qingnian Yingbin Gongye Nongye Tuanjie Youyi Xingfu Chang'an Fuxing Zhenxing "
    "Huancheng Binhe Xihu Donghu Nanhu Beihu Taishan Huashan Songshan Hengshan Kunlun Tianshan Haihe Zhujiang "
    "Xiangjiang Longjiang"
)


def streets() -> dict[str, list[str]]:
    """{locale: street names}, each with the word for street in it where the language puts one."""
    return {locale: _fit(_streets(locale))[:MOST] for locale in LOCALES}


def _fit(names: Iterable[str]) -> list[str]:
    return [name for name in unique(names) if len(name) <= _LONGEST and not any(ch in name for ch in ",;/")]


def _streets(locale: str) -> Iterable[str]:
    language = locale.partition("_")[0]
    match language:
        case "en" if locale != "en_IN":
            return _english(locale)
        case "tr":
            return _crossed(_pairs(_TURKISH, {"Mimar", "Yunus"}), "{} Caddesi", "{} Sokak", "{} Bulvarı")
        case "et":
            return _crossed(_ESTONIAN.split(), "{} tänav", "{} tee", "{} põik")
        case "lv":
            return _crossed(_LATVIAN.split(), "{} iela", "{} gatve", "{} bulvāris")
        case "bg":
            joined = {
                "Tsar",
                "Patriarh",
                "Ivan",
                "Hristo",
                "Aleksandar",
                "Stara",
                "Sveti",
                "Petar",
                "Otets",
                "Georgi",
            }
            joined |= {"Lyuben", "Vasil", "Han"}
            return _crossed(_pairs(_BULGARIAN, joined), "ul. {}", "bul. {}")
        case "ja":
            return _JAPANESE.split()
        case "zh":
            return _crossed(_CHINESE.split(), "{} Lu", "{} Jie", "{} Dajie")
        case "ko":
            return _crossed([spelled(name, locale).capitalize() for name in _korean()], "{}-ro", "{}-gil")
        case "el" | "ru" | "uk":
            return [_titled(spelled(name, locale)) for name in _slavic_or_greek(locale)]
        case "pl":
            return _crossed(listed("address", locale, "streets") or [], "ul. {}")
    return sampled({"nb_NO": "no_NO", "fr_BE": "fr_FR"}.get(locale, locale), "street_name", 2 * MOST)


def _english(locale: str) -> list[str]:
    suffixes = (_AMERICAN if locale in ("en_US", "en_CA") else _ENGLISH).split()
    names = [*_TREES.split(), *last_names_male()[locale]]
    spread = [f"{name} {suffixes[i % len(suffixes)]}" for i, name in enumerate(names)]
    return spread + [f"{name} {suffixes[(i + 3) % len(suffixes)]}" for i, name in enumerate(names)]


def _crossed(names: Iterable[str], *patterns: str) -> list[str]:
    names = list(names)
    return [pattern.format(name) for pattern in patterns for name in names]


def _pairs(words: str, first: set[str]) -> list[str]:
    """``words`` one by one, those of ``first`` together with the next."""
    made: list[str] = []
    held = ""
    for word in words.split():
        if word in first:
            held = word + " "
            continue
        made.append(held + word)
        held = ""
    return made


def _korean() -> list[str]:
    names = listed("address", "ko_KR", "road_names") or []
    return [name for name in names if all("가" <= ch <= "힣" for ch in name)]


def _slavic_or_greek(locale: str) -> list[str]:
    if locale == "el_GR":
        return [f"Οδός {name}" for name in sampled(locale, "street", 2 * MOST)]
    if locale == "uk_UA":
        titles = listed("address", locale, "street_titles") or []
        return [f"вулиця {title}" for title in titles if not any(ch.isdigit() for ch in title)]
    return sampled(locale, "street_name", 2 * MOST)


def _titled(name: str) -> str:
    return " ".join(word if word.endswith(".") else word[:1].upper() + word[1:] for word in name.split())
