"""The internet and colours: parts of host names, browsers, kinds of files."""

from __future__ import annotations

import re

import pyarrow as pa

from webapp.engine.data.extract.locales import LOCALES
from webapp.engine.data.extract.tools import listed

_FIRST = (
    "able|acorn|agile|alpine|amber|apex|april|arc|arctic|ash|aspen|atlas|aurora|autumn|azure|balanced|bay|"
    "beacon|birch|blue|bold|brass|bright|brisk|bronze|calm|canyon|cedar|central|chalk|cherry|civic|clear|"
    "clever|cloud|coastal|cobalt|copper|coral|cosmic|crisp|crystal|dapper|dawn|deep|delta|desert|digital|"
    "dove|eager|early|earth|east|echo|elm|ember|emerald|ever|fair|falcon|fern|first|flint|forest|fox|"
    "fresh|frost|gentle|glacier|global|golden|grand|granite|green|harbor|hazel|heather|high|holly|honest|"
    "indigo|iron|ivory|ivy|jade|jasper|juniper|keen|kind|lake|lark|laurel|lemon|level|light|lime|linden|"
    "little|lotus|lucky|lunar|lunch|maple|marble|mellow|merry|metro|midnight|mint|misty|modern|moss|neon|"
    "new|nimble|noble|nordic|north|nova|oak|ocean|olive|onyx|open|opal|orchid|otter|pacific|pearl|pebble|"
    "pepper|pine|polar|poplar|prairie|prime|pure|quick|quiet|rapid|raven|red|rising|river|robin|rocky|"
    "rose|royal|ruby|rustic|saffron|sage|sandy|sapphire|scarlet|shady|sharp|silent|silver|simple|sky|"
    "smart|snowy|soft|solar|solid|south|spring|spruce|steady|stellar|stone|summer|summit|sunny|swift|teal|"
    "tidal|timber|topaz|true|twin|upland|urban|valley|velvet|verdant|violet|vital|vivid|warm|west|white|"
    "wild|willow|winter|wise|wonder|young|zen"
)

_SECOND = (
    "anchor|apple|arrow|badge|bank|barn|basket|beam|bear|bell|bench|berry|bird|blossom|board|boat|book|"
    "bow|branch|brick|bridge|brook|bucket|button|cabin|camp|candle|canvas|card|castle|cave|chain|circle|"
    "clay|cliff|clock|coin|compass|cove|craft|crane|creek|crest|crown|cup|dale|deer|desk|dock|door|dragon|"
    "drum|dune|eagle|edge|engine|feather|fence|field|finch|fire|flag|flame|flower|flute|forge|fountain|"
    "frame|garden|gate|glade|glass|grove|guide|gull|hall|hammer|hand|hare|hat|haven|hawk|heart|hill|hive|"
    "horizon|horn|horse|house|island|jar|journey|key|kite|knot|ladder|lamp|lane|lantern|leaf|ledge|lily|"
    "lion|loom|lynx|map|mark|market|meadow|mill|mirror|moon|mountain|nest|orbit|orchard|owl|paddle|page|"
    "palm|panda|paper|park|path|peak|pen|petal|piano|pier|pilot|plaza|point|pond|port|post|quarry|quill|"
    "rabbit|rail|rain|ranch|reef|ridge|ring|road|rocket|roof|root|sail|school|seed|shell|shelf|ship|shore|"
    "signal|silo|sparrow|spark|square|squirrel|stack|star|station|stream|street|sun|swan|table|temple|"
    "thread|tide|tiger|tower|track|trail|train|tree|tulip|turtle|vale|vault|view|village|vine|wagon|walk|"
    "wall|water|wave|well|wheel|whistle|window|wing|wolf|wood|yard"
)

_THIRD = (
    "academy|agency|analytics|art|bakery|books|build|care|cloud|club|coffee|consulting|data|design|"
    "digital|energy|events|express|farms|finance|foods|games|gear|group|health|home|hub|labs|law|"
    "logistics|media|mobile|motors|music|net|online|partners|pets|photo|print|shop|soft|solutions|space|"
    "sports|store|studio|supply|systems|tech|tools|toys|trade|travel|trust|ventures|web|wine|works|world|"
    "yoga|zone"
)

_PAGES = (
    "about|account|archive|articles|basket|blog|brands|careers|categories|checkout|community|contact|docs|"
    "downloads|events|faq|features|forum|gallery|guides|help|invoices|jobs|learn|library|locations|news|"
    "offers|orders|partners|posts|press|pricing|privacy|products|profile|projects|questions|reports|"
    "resources|reviews|search|services|shop|stories|support|team|terms|topics|tours|updates|users|videos|"
    "wiki"
)

_FILES = (
    "agenda|analysis|annex|archive|attachment|audit|backup|balance|banner|brief|brochure|budget|calendar|"
    "catalogue|chart|checklist|contract|cover|dashboard|dataset|delivery|diagram|draft|estimate|export|"
    "extract|figures|flyer|forecast|form|guide|handbook|header|icon|import|index|inventory|invoice|labels|"
    "layout|letter|list|log|logo|manual|map|memo|menu|minutes|model|notes|offer|orders|outline|overview|"
    "payroll|photo|plan|policy|portrait|poster|presentation|prices|profile|proposal|protocol|quote|readme|"
    "receipt|record|register|report|request|results|review|roadmap|sales|sample|scan|schedule|screenshot|"
    "script|setup|sheet|sketch|slides|snapshot|statement|statistics|summary|survey|table|template|"
    "thumbnail|timesheet|transcript|translation|update|users|worksheet"
)

_KINDS = (
    "aac audio/aac|avi video/x-msvideo|bmp image/bmp|bz2 application/x-bzip2|css text/css|csv text/csv|"
    "doc application/msword|docx application/vnd.openxmlformats-officedocument.wordprocessingml.document|"
    "epub application/epub+zip|gif image/gif|gz application/gzip|html text/html|"
    "ico image/vnd.microsoft.icon|ics text/calendar|jpg image/jpeg|js text/javascript|"
    "json application/json|md text/markdown|mp3 audio/mpeg|mp4 video/mp4|mpeg video/mpeg|"
    "odp application/vnd.oasis.opendocument.presentation|"
    "ods application/vnd.oasis.opendocument.spreadsheet|odt application/vnd.oasis.opendocument.text|"
    "ogg audio/ogg|otf font/otf|pdf application/pdf|png image/png|ppt application/vnd.ms-powerpoint|"
    "pptx application/vnd.openxmlformats-officedocument.presentationml.presentation|rtf application/rtf|"
    "svg image/svg+xml|tar application/x-tar|tiff image/tiff|ttf font/ttf|txt text/plain|wav audio/wav|"
    "webm video/webm|webp image/webp|woff2 font/woff2|xls application/vnd.ms-excel|"
    "xlsx application/vnd.openxmlformats-officedocument.spreadsheetml.sheet|xml application/xml|"
    "yaml application/yaml|zip application/zip"
)


def site_parts(which: str) -> dict[str, list[str]]:
    """Words that host names are put together from: the ``first``, ``second`` or ``third`` part."""
    return {"": {"first": _FIRST, "second": _SECOND, "third": _THIRD}[which].split("|")}


def site_names() -> dict[str, list[str]]:
    """A first and a second part joined, each pair once. Raises `ValueError` where two pairs read the same."""
    joined = [first + second for first in _FIRST.split("|") for second in _SECOND.split("|")]
    if len(set(joined)) != len(joined):
        raise ValueError("two pairs of parts of host names read the same")
    return {"": joined}


def pages() -> dict[str, list[str]]:
    """First parts of a path on a web site."""
    return {"": _PAGES.split("|")}


def file_stems() -> dict[str, list[str]]:
    """Names of files without their extension."""
    return {"": _FILES.split("|")}


def file_kinds() -> pa.Table:
    """``extension`` and ``mime_type`` of common kinds of files."""
    extensions, kinds = zip(*(kind.split() for kind in _KINDS.split("|")), strict=True)
    return pa.table({"extension": extensions, "mime_type": kinds})


def user_agents() -> dict[str, list[str]]:
    """What browsers of 2024 and 2025 call themselves, on desktops and telephones."""
    desktops = (
        "Windows NT 10.0; Win64; x64",
        "Macintosh; Intel Mac OS X 10_15_7",
        "X11; Linux x86_64",
        "X11; CrOS x86_64 14541.0.0",
    )
    models = ("K", "Pixel 8", "SM-S921B")
    phones = tuple(f"Linux; Android {version}; {model}" for version in (13, 14, 15) for model in models)
    blink = "AppleWebKit/537.36 (KHTML, like Gecko)"
    made = []
    for version in range(120, 144):
        chrome = f"Chrome/{version}.0.0.0"
        made += [f"Mozilla/5.0 ({system}) {blink} {chrome} Safari/537.36" for system in desktops]
        made += [f"Mozilla/5.0 ({system}) {blink} {chrome} Mobile Safari/537.36" for system in phones]
        edge = f"Safari/537.36 Edg/{version}.0.0.0"
        made += [f"Mozilla/5.0 ({system}) {blink} {chrome} {edge}" for system in desktops[:3]]
    gecko = (desktops[0], "Macintosh; Intel Mac OS X 10.15", "X11; Linux x86_64", "Android 15; Mobile")
    for version in range(121, 146):
        firefox = f"Gecko/20100101 Firefox/{version}.0"
        made += [f"Mozilla/5.0 ({system}; rv:{version}.0) {firefox}" for system in gecko]
    webkit = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
    for version in (
        "17.4",
        "17.5",
        "17.6",
        "18.0",
        "18.1",
        "18.2",
        "18.3",
        "18.4",
        "18.5",
        "18.6",
        "26.0",
        "26.1",
    ):
        made.append(
            f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {webkit} Version/{version} Safari/605.1.15"
        )
        for device in ("iPhone; CPU iPhone", "iPad; CPU"):
            system = f"{device} OS {version.replace('.', '_')} like Mac OS X"
            made.append(f"Mozilla/5.0 ({system}) {webkit} Version/{version} Mobile/15E148 Safari/604.1")
    return {"": made}


def colors() -> dict[str, list[str]]:
    """Names of colours: in English for all, and in each language that Faker knows them in."""
    english = [re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name) for name in listed("color", "", "all_colors") or []]
    made = {"": english}
    for locale in LOCALES:
        language = locale.partition("_")[0]
        if language == "en":
            continue
        found = listed("color", locale, "all_colors") or listed("color", language, "all_colors")
        if found:
            made[locale] = found
    return made
