"""Consistency between columns of a row that share no group, from engine 3 on: a routing number is part of the IBAN, a
chemical symbol is that of the element, a zodiac sign follows from the date of birth.

When a template is saved, a field of such a type gets the group ``row`` if there is a field that it can follow. The
second field of its type gets ``row_2`` and follows the second field of the other type. Its values are generated as
usual and replaced where the other column determines them. Unique fields follow no other field, and a field with a
formula is not followed.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine import random as engine_random
from webapp.engine.text import decode_dictionary
from webapp.engine.types import commerce, countries
from webapp.engine.types.banks import STRUCTURE_PART
from webapp.engine.types.codes import strings_from_matrix
from webapp.engine.types.geography import geography_of
from webapp.engine.types.listed import load_listed_types, parse_pattern
from webapp.engine.types.person import locale_of_group

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec
    from webapp.engine.types.base import FieldType

ELEMENTS = tuple(
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb "
    "Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th U".split()
)
"""The symbols of the elements, in the order of the type ``chemical_element``."""
_ANDROID = tuple(f"Android {version}" for version in range(10, 16))
DEVICE_SYSTEMS = {
    "Android": _ANDROID,
    "Apple": (*(f"iOS {version}" for version in range(14, 19)), "iPadOS 16", "iPadOS 17"),
    "Huawei": (*_ANDROID[:3], "HarmonyOS 3.0", "HarmonyOS 4.0"),
    "Nokia": (*_ANDROID, "KaiOS 3.0"),
}
DEVICE_FAMILIES = {"Apple": "Apple", "Huawei": "Huawei", "Nokia": "Nokia", "Alcatel": "Nokia"}
"""Brands whose devices have other systems than Android."""
SUBCATEGORIES = {
    "AUT": ("Car Care", "Tyres", "Car Mats"),
    "BAB": ("Prams", "Baby Clothes", "Bottles"),
    "BEA": ("Skin Care", "Hair Care", "Make-up"),
    "BKS": ("Notebooks", "Pens", "Novels"),
    "CLO": ("Running Shoes", "Jackets", "Shirts", "Jeans"),
    "ELE": ("Headphones", "Speakers", "Keyboards", "Monitors"),
    "FOO": ("Coffee", "Sweets", "Soft Drinks"),
    "FUR": ("Desk Lamps", "Office Chairs", "Bookcases", "Sofas", "Curtains", "Storage Boxes"),
    "GAR": ("Garden Tools", "Plant Pots"),
    "GRO": ("Pasta", "Spices", "Tins"),
    "HEA": ("Vitamins", "First Aid", "Dental Care"),
    "JEW": ("Watches", "Necklaces"),
    "KIT": ("Kettles", "Toasters", "Blenders", "Cookware", "Cutlery"),
    "MUS": ("Guitars", "Drums", "Sheet Music"),
    "OFF": ("Notebooks", "Pens", "Desk Lamps", "Office Chairs"),
    "OUT": ("Tents", "Backpacks"),
    "PET": ("Dog Food", "Cat Food", "Aquariums"),
    "SPO": ("Bicycles", "Running Shoes", "Fitness"),
    "TOO": ("Hand Tools", "Power Tools", "Paint"),
    "TOY": ("Board Games", "Puzzles"),
}
"""Parts of the categories of products, by the category's code."""
ZODIAC = ("Capricorn", "Aquarius", "Pisces", "Aries", "Taurus", "Gemini", "Cancer", "Leo", "Virgo", "Libra",
          "Scorpio", "Sagittarius")  # fmt: skip
ZODIAC_ENDS = (119, 218, 320, 419, 520, 620, 722, 822, 922, 1022, 1121, 1221)
"""The last day of each sign, as month times 100 plus day."""
DeriveFunction = Callable[[Any, pa.StringArray], pa.StringArray]
"""A function of the other column (or of the things of a group) and the generated values. It returns the consistent
values, null where the other column does not determine them."""
RuleBuilder = Callable[["FieldSpec", "Sequence[FieldSpec]", "Compiler"], DeriveFunction]
"""Creates a `DeriveFunction` for a field. The second argument has the field that it follows, or the fields of the
group."""
ROW_GROUP = "row"
_NUMBER = re.compile(r"_(\d+)$")
_IBAN = "^[A-Z]{2}[0-9]{2}[0-9A-Z]{8}"
_DOMESTIC = (
    "^[^ ]+ (?P<x>[0-9]{7,12})$",
    "^[0-9]{3} [0-9]{5} (?P<x>[0-9]{10}) [0-9]{2}$",
    "^[0-9]{3}-(?P<x>[0-9]{6}-[0-9]{3})$",
    "^[0-9]{4}-[0-9]{3}-(?P<x>[0-9]{7})$",
    "^[0-9]{2}-[0-9]{4}-(?P<x>[0-9]{7})-[0-9]{2}$",
    "^[0-9]{8}(?P<x>[0-9]{13})[0-9]$",
    "^[0-9]{6}(?P<x>[0-9]{11})[0-9]$",
    "^(?P<x>[0-9-]+)$",
)
"""Patterns for the account number in values of ``iban`` of countries without IBANs (see `banks.account_code`); the
first match counts."""
_VIN_WEIGHTS = np.array([8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2])
_VIN_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
_VIN_WORTH = np.zeros(128, np.int64)
_VIN_WORTH[list(b"0123456789")] = range(10)
_VIN_WORTH[list(_VIN_LETTERS.encode())] = (*range(1, 9), *range(1, 6), 7, 9, *range(2, 10))
_MODEL_YEARS = np.frombuffer(b"ABCDEFGHJKLMNPRSTVWXY123456789", np.uint8)
_FILES = ("file_name", "file_path")
_COMPANY_NUMBER = "^FR[0-9]{2}(?P<x>[0-9]{9})$"


def _table(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split("|"))


def account_positions(vocabulary: Vocabulary) -> dict[str, tuple[int, int]]:
    """Return the position of the account number in the IBANs of each country (SWIFT IBAN Registry): the longest part
    of the structure, and the check digit after it."""
    found = {}
    table = vocabulary.table("iban")
    for country, structure in zip(table["country"].to_pylist(), table["structure"].to_pylist(), strict=True):
        widths = [int(count) for count, _ in STRUCTURE_PART.findall(structure)]
        place = widths.index(6 if country == "IS" else max(widths))
        start = 4 + sum(widths[:place])
        checked = country in ("DK", "FO", "GL", "NO", "SE")
        found[country] = start, start + widths[place] + checked
    return found


CAR_MAKERS = _table(
    "Acura=19U|Alfa Romeo=ZAR|Aston Martin=SCF|Audi=WAU|BMW=WBA|BYD=LGX|Bentley=SCB|Buick=1G4|Cadillac=1G6|"
    "Chevrolet=1G1|Chrysler=2C3|Citroën=VF7|Cupra=VSS|Dacia=UU1|Dodge=1B3|Ferrari=ZFF|Fiat=ZFA|Ford=1FA|GMC=1GT|"
    "Genesis=KMT|Honda=1HG|Hyundai=KMH|Infiniti=JNK|Jaguar=SAJ|Jeep=1C4|Kia=KNA|Lamborghini=ZHW|Lancia=ZLA|"
    "Land Rover=SAL|Lexus=JTH|Lincoln=1LN|Lotus=SCC|MG=SDP|Maserati=ZAM|Mazda=JM1|McLaren=SBM|Mercedes-Benz=WDB|"
    "Mini=WMW|Mitsubishi=JA4|Nissan=JN1|Opel=W0L|Peugeot=VF3|Polestar=YSM|Porsche=WP0|Ram=1C6|Renault=VF1|Rivian=7FC|"
    "Rolls-Royce=SCA|Saab=YS3|Seat=VSS|Smart=WME|Subaru=JF1|Suzuki=JSA|Tesla=5YJ|Toyota=JTD|Vauxhall=W0L|"
    "Volkswagen=WVW|Volvo=YV1|Škoda=TMB"
)
"""World manufacturer identifiers (SAE J1044)."""

COLORS = _table(
    "Alice Blue=f0f8ff|Antique White=faebd7|Aqua=00ffff|Aquamarine=7fffd4|Azure=f0ffff|Beige=f5f5dc|Bisque=ffe4c4|"
    "Black=000000|Blanched Almond=ffebcd|Blue=0000ff|Blue Violet=8a2be2|Brown=a52a2a|Burly Wood=deb887|"
    "Cadet Blue=5f9ea0|Chartreuse=7fff00|Chocolate=d2691e|Coral=ff7f50|Cornflower Blue=6495ed|Cornsilk=fff8dc|"
    "Crimson=dc143c|Cyan=00ffff|Dark Blue=00008b|Dark Cyan=008b8b|Dark Golden Rod=b8860b|Dark Gray=a9a9a9|"
    "Dark Green=006400|Dark Khaki=bdb76b|Dark Magenta=8b008b|Dark Olive Green=556b2f|Dark Orange=ff8c00|"
    "Dark Orchid=9932cc|Dark Red=8b0000|Dark Salmon=e9967a|Dark Sea Green=8fbc8f|Dark Slate Blue=483d8b|"
    "Dark Slate Gray=2f4f4f|Dark Turquoise=00ced1|Dark Violet=9400d3|Deep Pink=ff1493|Deep Sky Blue=00bfff|"
    "Dim Gray=696969|Dodger Blue=1e90ff|Fire Brick=b22222|Floral White=fffaf0|Forest Green=228b22|Fuchsia=ff00ff|"
    "Gainsboro=dcdcdc|Ghost White=f8f8ff|Gold=ffd700|Golden Rod=daa520|Gray=808080|Green=008000|"
    "Green Yellow=adff2f|Honey Dew=f0fff0|Hot Pink=ff69b4|Indian Red=cd5c5c|Indigo=4b0082|Ivory=fffff0|"
    "Khaki=f0e68c|Lavender=e6e6fa|Lavender Blush=fff0f5|Lawn Green=7cfc00|Lemon Chiffon=fffacd|Light Blue=add8e6|"
    "Light Coral=f08080|Light Cyan=e0ffff|Light Golden Rod Yellow=fafad2|Light Gray=d3d3d3|Light Green=90ee90|"
    "Light Pink=ffb6c1|Light Salmon=ffa07a|Light Sea Green=20b2aa|Light Sky Blue=87cefa|Light Slate Gray=778899|"
    "Light Steel Blue=b0c4de|Light Yellow=ffffe0|Lime=00ff00|Lime Green=32cd32|Linen=faf0e6|Magenta=ff00ff|"
    "Maroon=800000|Medium Aqua Marine=66cdaa|Medium Blue=0000cd|Medium Orchid=ba55d3|Medium Purple=9370db|"
    "Medium Sea Green=3cb371|Medium Slate Blue=7b68ee|Medium Spring Green=00fa9a|Medium Turquoise=48d1cc|"
    "Medium Violet Red=c71585|Midnight Blue=191970|Mint Cream=f5fffa|Misty Rose=ffe4e1|Moccasin=ffe4b5|"
    "Navajo White=ffdead|Navy=000080|Old Lace=fdf5e6|Olive=808000|Olive Drab=6b8e23|Orange=ffa500|"
    "Orange Red=ff4500|Orchid=da70d6|Pale Golden Rod=eee8aa|Pale Green=98fb98|Pale Turquoise=afeeee|"
    "Pale Violet Red=db7093|Papaya Whip=ffefd5|Peach Puff=ffdab9|Peru=cd853f|Pink=ffc0cb|Plum=dda0dd|"
    "Powder Blue=b0e0e6|Purple=800080|Red=ff0000|Rosy Brown=bc8f8f|Royal Blue=4169e1|Saddle Brown=8b4513|"
    "Salmon=fa8072|Sandy Brown=f4a460|Sea Green=2e8b57|Sea Shell=fff5ee|Sienna=a0522d|Silver=c0c0c0|"
    "Sky Blue=87ceeb|Slate Blue=6a5acd|Slate Gray=708090|Snow=fffafa|Spring Green=00ff7f|Steel Blue=4682b4|"
    "Tan=d2b48c|Teal=008080|Thistle=d8bfd8|Tomato=ff6347|Turquoise=40e0d0|Violet=ee82ee|Wheat=f5deb3|White=ffffff|"
    "White Smoke=f5f5f5|Yellow=ffff00|Yellow Green=9acd32"
)
"""Named colours (CSS Color Module Level 4, section 6.1)."""


ANIMALS = _table(
    "Vulpes vulpes=Red Fox|Canis lupus=Wolf|Felis catus=Cat|Panthera leo=Lion|Panthera tigris=Bengal Tiger|"
    "Ursus arctos=Brown Bear|Ursus maritimus=Polar Bear|Lutra lutra=Otter|Meles meles=Badger|Sus scrofa=Wild Boar|"
    "Cervus elaphus=Red Deer|Capreolus capreolus=Roe Deer|Alces alces=Moose|Rangifer tarandus=Reindeer|"
    "Bison bison=Bison|Equus quagga=Zebra|Loxodonta africana=African Elephant|Elephas maximus=Asian Elephant|"
    "Giraffa camelopardalis=Giraffe|Hippopotamus amphibius=Hippopotamus|Gorilla gorilla=Gorilla|"
    "Pan troglodytes=Chimpanzee|Macropus rufus=Kangaroo|Phascolarctos cinereus=Koala|Aquila chrysaetos=Golden Eagle|"
    "Falco peregrinus=Peregrine Falcon|Bubo bubo=Eagle Owl|Corvus corax=Raven|Ciconia ciconia=Stork|"
    "Phoenicopterus roseus=Flamingo|Struthio camelus=Ostrich|Crocodylus niloticus=Nile Crocodile|Python regius=Python|"
    "Chelonia mydas=Green Turtle|Salmo trutta=Trout|Thunnus thynnus=Tuna|Delphinus delphis=Dolphin|"
    "Balaenoptera musculus=Blue Whale|Apis mellifera=Honeybee|Danaus plexippus=Butterfly"
)

PLANTS = _table(
    "Quercus robur=Oak|Fagus sylvatica=Beech|Betula pendula=Silver Birch|Acer platanoides=Norway Maple|"
    "Acer saccharum=Sugar Maple|Tilia cordata=Linden|Fraxinus excelsior=Ash|Pinus sylvestris=Scots Pine|"
    "Picea abies=Norway Spruce|Larix decidua=Larch|Taxus baccata=Yew|Salix alba=White Willow|Populus tremula=Aspen|"
    "Ulmus glabra=Elm|Castanea sativa=Chestnut|Juglans regia=Walnut|Prunus avium=Cherry|Malus domestica=Apple|"
    "Pyrus communis=Pear|Rosa canina=Dog Rose|Rubus idaeus=Raspberry|Lavandula angustifolia=Lavender|"
    "Salvia officinalis=Sage|Thymus vulgaris=Thyme|Mentha spicata=Mint|Taraxacum officinale=Dandelion|"
    "Bellis perennis=Daisy|Papaver rhoeas=Corn Poppy|Helianthus annuus=Sunflower|Digitalis purpurea=Foxglove|"
    "Tulipa gesneriana=Tulip|Narcissus poeticus=Narcissus|Galanthus nivalis=Snowdrop|Iris germanica=Iris|"
    "Lilium candidum=Lily|Nymphaea alba=Water Lily"
)

PLANT_FAMILIES = _table(
    "Quercus robur=Fagaceae|Fagus sylvatica=Fagaceae|Betula pendula=Betulaceae|Acer platanoides=Sapindaceae|"
    "Acer saccharum=Sapindaceae|Tilia cordata=Malvaceae|Fraxinus excelsior=Oleaceae|Pinus sylvestris=Pinaceae|"
    "Picea abies=Pinaceae|Larix decidua=Pinaceae|Taxus baccata=Taxaceae|Salix alba=Salicaceae|"
    "Populus tremula=Salicaceae|Ulmus glabra=Ulmaceae|Castanea sativa=Fagaceae|Juglans regia=Juglandaceae|"
    "Prunus avium=Rosaceae|Malus domestica=Rosaceae|Pyrus communis=Rosaceae|Rosa canina=Rosaceae|"
    "Rubus idaeus=Rosaceae|Lavandula angustifolia=Lamiaceae|Salvia officinalis=Lamiaceae|Thymus vulgaris=Lamiaceae|"
    "Mentha spicata=Lamiaceae|Taraxacum officinale=Asteraceae|Bellis perennis=Asteraceae|"
    "Papaver rhoeas=Papaveraceae|Helianthus annuus=Asteraceae|Digitalis purpurea=Plantaginaceae|"
    "Tulipa gesneriana=Liliaceae|Narcissus poeticus=Amaryllidaceae|Galanthus nivalis=Amaryllidaceae|"
    "Iris germanica=Iridaceae|Lilium candidum=Liliaceae|Nymphaea alba=Nymphaeaceae"
)

ICD_9 = _table(
    "Essential hypertension=401.9|Type 2 diabetes=250.0|Acute bronchitis=466.0|Asthma=493.9|Migraine=346.9|"
    "Osteoarthritis=715.9|Low back pain=724.2|Acute sinusitis=461.9|Otitis media=382.9|"
    "Iron deficiency anaemia=280.9|Hypothyroidism=244.9|Hyperlipidaemia=272.4|Atrial fibrillation=427.3|"
    "Heart failure=428.0|Gastric ulcer=531.9|Gastritis=535.5|Cholelithiasis=574.2|Urinary tract infection=599.0|"
    "Nephrolithiasis=592.0|Psoriasis=696.1|Contact dermatitis=692.9|Allergic rhinitis=477.9|Pneumonia=486.0|"
    "Influenza=487.1|Gout=274.9|Insomnia=780.5|Vertigo=780.4|Cataract=366.9|Glaucoma=365.9|Fracture of radius=813.8"
)
"""The ICD-9-CM codes of the type ``diagnosis_name``, with one decimal; 486 has none and gets 0."""


MEDIA_TYPES = _table(
    "7z=application/x-7z-compressed|flac=audio/flac|jpeg=image/jpeg|mkv=video/x-matroska|mov=video/quicktime|"
    "parquet=application/vnd.apache.parquet|psd=image/vnd.adobe.photoshop|rar=application/vnd.rar|sql=application/sql|"
    "toml=application/toml|ts=video/mp2t|tar=application/x-tar"
)
"""Media types of extensions that the vocabulary does not have (IANA; Matroska and QuickTime by their makers)."""


@dataclass(frozen=True)
class Rule:
    """What a type follows: a field of one of these ``types``, or the person, place or product of a group of a
    ``kind``."""

    types: tuple[str, ...]
    build: RuleBuilder
    kind: str = ""
    max_length: int = 0
    """Maximum length of derived values in characters, if they can be longer than those of the type."""
    extra: int = 0
    """Characters that derived values can add to the maximum length of the type."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The columns and groups that a column follows."""

    fields: tuple[tuple[str, DeriveFunction], ...]
    groups: tuple[tuple[tuple[str, str], DeriveFunction], ...]
    max_length: int

    def apply(self, context: ColumnContext, own: pa.Array) -> pa.StringArray:
        """Return consistent values of a block; ``own`` are the generated ones."""
        own = decode_dictionary(own)
        for name, derive in self.fields:
            own = pc.coalesce(derive(decode_dictionary(context.column(name)), own), own)
        for group, derive in self.groups:
            own = pc.coalesce(derive(context.group_value(object, *group), own), own)
        return own


def find_group(field: FieldSpec, fields: Sequence[FieldSpec]) -> str | None:
    """Return the group of a new field when its template is saved; None if there is nothing that it can follow among the
    fields of its level, which have their groups already."""
    if field.type.name not in RULES or field.group or not _can_follow(field):
        return None
    used = {other.group for other in fields if other.type is field.type}
    name = next(
        name for name in chain((ROW_GROUP,), map(f"{ROW_GROUP}_{{}}".format, count(2))) if name not in used
    )
    return name if any(_followed_fields(rule, name, fields) for rule in RULES[field.type.name]) else None


def would_follow(field: FieldSpec, fields: Sequence[FieldSpec]) -> bool:
    """Return whether a field would follow another field of its level if it were not unique."""
    return any(_followed_fields(rule, ROW_GROUP, fields) for rule in RULES.get(field.type.name, ()))


def _can_follow(field: FieldSpec) -> bool:
    common = field.common
    return not common.unique and common.unique_together is None and not field.has_errors


def _followed_fields(rule: Rule, group: str, fields: Sequence[FieldSpec]) -> list[FieldSpec]:
    """Return the field, or the fields of the group, that a field in ``group`` follows by a rule: those of the same
    group, otherwise the first ones, or the second ones for a group that ends in ``_2``. Older fields come first, so
    that a new field does not change the others."""
    candidates: dict[str, list[FieldSpec]] = {}
    for other in sorted(fields, key=lambda field: field.id or ""):
        if other.common.formula is not None or other.has_errors:
            continue
        if (
            rule.kind
            and other.type.group_kind == rule.kind
            and (other.group or not other.type.requires_named_group)
        ):
            candidates.setdefault(other.group or rule.kind, []).append(other)
        elif other.type.name in rule.types:
            candidates[other.name] = [other]
    in_group = [others for name, others in candidates.items() if group in (name, others[0].group)]
    number = _NUMBER.search(group)
    index = int(number[1]) - 1 if number else 0
    return in_group[0] if in_group else next(iter(list(candidates.values())[index:]), [])


def compile_agreement(field: FieldSpec, column: FieldType, compiler: Compiler) -> Agreement | None:
    """Compile the rules of a field; None if it follows no other field."""
    rules = RULES.get(field.type.name)
    is_generated = compiler.source_query is None and type(column) is field.type
    if (
        not rules
        or not field.group
        or not is_generated
        or compiler.vocabulary.engine < 3
        or not _can_follow(field)
    ):
        return None
    fields: list[tuple[str, DeriveFunction]] = []
    groups: list[tuple[tuple[str, str], DeriveFunction]] = []
    longest = 0
    for rule in rules:
        others = _followed_fields(rule, field.group, compiler.level_fields)
        if not others:
            continue
        if rule.kind:
            key = others[0].group or rule.kind, rule.kind
            compiler.require_group(key)
            groups.append((key, rule.build(field, others, compiler)))
        elif compiler.require_column(field, "", others[0].name) is not None:
            fields.append((others[0].name, rule.build(field, others, compiler)))
        longest = max(longest, rule.max_length, (column.max_length or 0) + rule.extra)
    return Agreement(tuple(fields), tuple(groups), longest) if fields or groups else None


def _fixed_rule(derive: DeriveFunction) -> RuleBuilder:
    return lambda field, others, compiler: derive


# --- Texts as bytes --------------------------------------------------------------------------------------


def _replaced_where(
    rows: pa.BooleanArray,
    replacements: Callable[[pa.Int64Array], pa.StringArray],
    texts: pa.StringArray | None = None,
) -> pa.StringArray:
    """Return ``texts`` (default: nulls) with the rows of a mask replaced. ``replacements`` gets their positions
    (``int64[k]``) and returns the new texts."""
    mask = pc.fill_null(rows, False)
    positions = pa.array(np.flatnonzero(mask.to_numpy(zero_copy_only=False)))
    texts = pa.nulls(len(rows), pa.string()) if texts is None else texts
    return pc.replace_with_mask(texts, mask, replacements(positions)) if len(positions) else texts


def _character_matrix(texts: pa.StringArray) -> np.ndarray:
    """``uint8[n, width]``: ASCII texts of one width, to be changed."""
    joined = np.frombuffer("".join(texts.to_pylist()).encode("ascii"), np.uint8)
    return joined.reshape(len(texts), -1).copy()


def _luhn_digits(digits: np.ndarray) -> np.ndarray:
    numbers = digits.astype(np.int64)
    numbers[:, ::-1][:, ::2] *= 2
    return (-(numbers // 10 + numbers % 10).sum(axis=1) % 10 + 48).astype(np.uint8)


def _with_mod_11_digit(texts: pa.StringArray, first: int) -> pa.StringArray:
    """Digits of one width, each with its check digit by the weights ``first``, ``first - 1``, ..., 2 (modulo 11)."""
    characters = _character_matrix(texts)
    weights = np.arange(first, first - characters.shape[1], -1)
    check = -((characters - 48).astype(np.int64) * weights).sum(axis=1) % 11
    signs = np.frombuffer(b"0123456789X", np.uint8)
    return strings_from_matrix(np.column_stack([characters, signs[check]]))


def _rule_by_regex(pattern: str) -> RuleBuilder:
    """The part of the other value that the group ``x`` of a regular expression matches."""

    def derive(other: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
        return pc.struct_field(pc.extract_regex(other, pattern), "x")

    return _fixed_rule(derive)


def _rule_by_table(table: Callable[[], Mapping[str, str]]) -> RuleBuilder:
    """The entry of a table for the other value."""

    @cache
    def arrays() -> tuple[pa.Array, pa.Array]:
        return pa.array(list(table())), pa.array(list(table().values()))

    def derive(other: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
        keys, texts = arrays()
        return texts.take(pc.index_in(other, keys))

    return _fixed_rule(derive)


def _choose(
    keys: pa.StringArray, own: pa.StringArray, choices: Mapping[str, Sequence[str]]
) -> pa.StringArray:
    """One of the ``choices`` for each of ``keys``, selected by a checksum of the generated value."""
    encoded = own.dictionary_encode()
    sums = np.array([zlib.crc32(text.encode()) for text in encoded.dictionary.to_pylist()], np.int64)
    checksums = sums[encoded.indices.to_numpy()]
    result = pa.nulls(len(own), pa.string())
    for key, texts in choices.items():
        pool = pa.array(list(texts))

        def pick(at: pa.Int64Array, pool: pa.StringArray = pool) -> pa.StringArray:
            return pool.take(pa.array(checksums[at.to_numpy()] % len(pool)))

        result = _replaced_where(pc.equal(keys, key), pick, result)
    return result


# --- Bank accounts ---------------------------------------------------------------------------------------


def _account_number(field: FieldSpec, others: Sequence[FieldSpec], compiler: Compiler) -> DeriveFunction:
    spans = compiler.vocabulary.cached("accounts in ibans", lambda: account_positions(compiler.vocabulary))
    length = getattr(field.options, "length", None) if "length" in field.options.model_fields_set else None

    def derive(iban: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
        numbers = pa.nulls(len(iban), pa.string())
        for pattern in _DOMESTIC:
            numbers = pc.coalesce(numbers, pc.struct_field(pc.extract_regex(iban, pattern), "x"))
        compact = pc.replace_substring(iban, " ", "")
        country = pc.utf8_slice_codeunits(compact, 0, 2)
        is_iban = pc.match_substring_regex(compact, _IBAN)
        for code in pc.unique(pc.filter(country, pc.fill_null(is_iban, False))).to_pylist():
            start, end = spans[code]
            part = pc.utf8_slice_codeunits(compact, start, end)
            numbers = pc.if_else(pc.and_(is_iban, pc.equal(country, code)), part, numbers)
        if length is None:
            return numbers
        return pc.if_else(pc.equal(pc.utf8_length(numbers), length), numbers, None)

    return derive


# --- Numbers of companies, securities, books and cars ----------------------------------------------------


def _siret(siren: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
    """The company's nine digits, four of the establishment and a check digit."""
    company = pc.struct_field(pc.extract_regex(siren, "^(?:FR[0-9]{2})?(?P<x>[0-9]{9})$"), "x")
    rest = pc.utf8_slice_codeunits(own, 9, 13)

    def make(at: pa.Int64Array) -> pa.StringArray:
        characters = _character_matrix(pc.binary_join_element_wise(company.take(at), rest.take(at), ""))
        return strings_from_matrix(np.column_stack([characters, _luhn_digits(characters - 48)]))

    return _replaced_where(pc.is_valid(company), make)


def _isin(cusip: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
    """ISO 6166: in the United States and Canada the number is the CUSIP."""

    def make(at: pa.Int64Array) -> pa.StringArray:
        country = pc.utf8_slice_codeunits(own.take(at), 0, 2)
        head = pc.binary_join_element_wise(country, cusip.take(at), "")
        digits = _character_matrix(head)
        letters = digits[:, :2] - 55
        numbers = np.column_stack([letters[:, :1] // 10, letters[:, :1] % 10, letters[:, 1:] // 10, letters[:, 1:] % 10,
                                   digits[:, 2:] - 48])  # fmt: skip
        return strings_from_matrix(np.column_stack([digits, _luhn_digits(numbers)]))

    american = pc.is_in(pc.utf8_slice_codeunits(own, 0, 2), pa.array(["US", "CA"]))
    return _replaced_where(pc.and_(american, pc.match_substring_regex(cusip, "^[0-9]{9}$")), make)


def _isbn_10(isbn: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
    """The number of the same book: the nine digits after 978 with the check digit of ISBN-10."""
    nine = pc.struct_field(
        pc.extract_regex(pc.replace_substring(isbn, "-", ""), "^978(?P<x>[0-9]{9})[0-9]$"), "x"
    )
    return _replaced_where(pc.is_valid(nine), lambda at: _with_mod_11_digit(nine.take(at), 10))


def _sbn(isbn: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
    """The number of the same book if that begins with 0, which a Standard Book Number does not contain."""
    plain = pc.replace_substring(isbn, "-", "")
    eight = pc.struct_field(pc.extract_regex(plain, "^(?:978)?0(?P<x>[0-9]{8})[0-9X]$"), "x")
    return _replaced_where(pc.is_valid(eight), lambda at: _with_mod_11_digit(eight.take(at), 9))


def _with_vin_check_digit(characters: np.ndarray) -> pa.StringArray:
    """Return the numbers with the check digit in position 9 (49 CFR 565.15)."""
    rest = (_VIN_WORTH[characters] * _VIN_WEIGHTS).sum(axis=1) % 11
    characters[:, 8] = np.frombuffer(b"0123456789X", np.uint8)[rest]
    return strings_from_matrix(characters)


def _vin_of_make(make: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
    """SAE J1044: the first three characters are the maker's."""
    heads = pa.array(list(CAR_MAKERS.values())).take(pc.index_in(make, pa.array(list(CAR_MAKERS))))

    def changed(at: pa.Int64Array) -> pa.StringArray:
        characters = _character_matrix(own.take(at))
        characters[:, :3] = _character_matrix(heads.take(at))
        return _with_vin_check_digit(characters)

    return _replaced_where(pc.is_valid(heads), changed)


def _vin_of_year(years: pa.Array, own: pa.StringArray) -> pa.StringArray:
    """The tenth character is the model year; the seventh is a digit up to 2009 and a letter afterwards."""
    if not pa.types.is_integer(years.type):
        return pa.nulls(len(own), pa.string())

    def changed(at: pa.Int64Array) -> pa.StringArray:
        characters = _character_matrix(own.take(at))
        year = years.take(at).to_numpy()
        characters[:, 9] = _MODEL_YEARS[(year - 1980) % 30]
        seventh = characters[:, 6]
        letters = np.frombuffer(_VIN_LETTERS.encode(), np.uint8)
        digit, letter = 48 + seventh % 10, letters[seventh % len(letters)]
        old, is_digit = year < 2010, seventh < 65
        characters[:, 6] = np.where(old & ~is_digit, digit, np.where(~old & is_digit, letter, seventh))
        return _with_vin_check_digit(characters)

    return _replaced_where(pc.and_(pc.greater_equal(years, 1980), pc.less(years, 2040)), changed)


# --- Colors ----------------------------------------------------------------------------------------------


def _color_rule(notation: Callable[[np.ndarray], list[str]]) -> RuleBuilder:
    """Another notation of a hexadecimal color or of an English color name. ``notation`` gets ``uint8[k, 3]``."""

    @cache
    def named() -> tuple[pa.Array, pa.Array]:
        return pa.array(list(COLORS)), pa.array([f"#{code}" for code in COLORS.values()])

    def derive(other: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
        names, codes = named()
        hexes = pc.if_else(
            pc.match_substring_regex(other, "^#[0-9a-fA-F]{6}$"),
            other,
            codes.take(pc.index_in(other, names)),
        )

        def make(at: pa.Int64Array) -> pa.StringArray:
            digits = "".join(hexes.take(at).to_pylist()).replace("#", "")
            return pa.array(
                notation(np.frombuffer(bytes.fromhex(digits), np.uint8).reshape(-1, 3)), pa.string()
            )

        return _replaced_where(pc.is_valid(hexes), make)

    return _fixed_rule(derive)


def _hex(field: FieldSpec, others: Sequence[FieldSpec], compiler: Compiler) -> DeriveFunction:
    upper = getattr(field.options, "case", "lower") == "upper"

    def spell(rgb: np.ndarray) -> list[str]:
        return [f"#{bytes(item).hex().upper() if upper else bytes(item).hex()}" for item in rgb]

    return _color_rule(spell)(field, others, compiler)


def _hue_and_range(rgb: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hue in degrees (``int64[k]``), least and greatest channel from 0 to 1 (CSS Color Module Level 4, section 7)."""
    channels = rgb / 255
    low, high = channels.min(axis=1), channels.max(axis=1)
    spread = np.where(high > low, high - low, 1)
    red, green, blue = channels.T
    turn = np.where(high == red, (green - blue) / spread % 6,
                    np.where(high == green, (blue - red) / spread + 2, (red - green) / spread + 4))  # fmt: skip
    return np.rint(np.where(high > low, turn * 60, 0)).astype(np.int64) % 360, low, high


def _percent(share: np.ndarray) -> list[int]:
    return np.rint(share * 100).astype(np.int64).tolist()


def _hsl(rgb: np.ndarray) -> list[str]:
    hue, low, high = _hue_and_range(rgb)
    light = (low + high) / 2
    maximum = np.minimum(light, 1 - light)
    saturation = np.where(maximum > 0, (high - light) / np.where(maximum > 0, maximum, 1), 0)
    return [
        f"hsl({h}, {s}%, {b}%)"
        for h, s, b in zip(hue.tolist(), _percent(saturation), _percent(light), strict=True)
    ]


def _hwb(rgb: np.ndarray) -> list[str]:
    hue, low, high = _hue_and_range(rgb)
    return [
        f"hwb({h} {w}% {b}%)" for h, w, b in zip(hue.tolist(), _percent(low), _percent(1 - high), strict=True)
    ]


def _cmyk(rgb: np.ndarray) -> list[str]:
    channels = rgb / 255
    high = channels.max(axis=1, keepdims=True)
    inks = np.where(high > 0, (high - channels) / np.where(high > 0, high, 1), 0)
    parts = (_percent(part) for part in (*inks.T, 1 - high[:, 0]))
    return ["cmyk({}%, {}%, {}%, {}%)".format(*item) for item in zip(*parts, strict=True)]


def _lab(rgb: np.ndarray) -> list[str]:
    """CIE L*a*b* with the white point D50, from sRGB (CSS Color Module Level 4, sections 9 and 17)."""
    channels = rgb / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.43607, 0.38515, 0.14308], [0.22249, 0.71689, 0.06062], [0.01392, 0.09708, 0.71410]])
    xyz = linear @ to_xyz.T / np.array([0.96422, 1.0, 0.82521])
    root = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    light, a, b = 116 * root[:, 1] - 16, 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])
    rounded = (np.rint(part).astype(np.int64).tolist() for part in (light, a, b))
    return ["lab({}% {} {})".format(*item) for item in zip(*rounded, strict=True)]


def _rgb(rgb: np.ndarray) -> list[str]:
    return ["rgb({}, {}, {})".format(*item) for item in rgb.tolist()]


def _rgb_float(rgb: np.ndarray) -> list[str]:
    return ["({:.3f}, {:.3f}, {:.3f})".format(*item) for item in (rgb / 255).tolist()]


# --- People, places and products -------------------------------------------------------------------------


def _zodiac(field: FieldSpec, others: Sequence[FieldSpec], compiler: Compiler) -> DeriveFunction:
    signs = pa.array([*ZODIAC, ZODIAC[0]])
    ends = np.array(ZODIAC_ENDS)

    def derive(people: Any, own: pa.StringArray) -> pa.StringArray:
        if people.born is None:
            return pa.nulls(len(own), pa.string())
        days = people.birth.astype("datetime64[D]")
        months = days.astype("datetime64[M]")
        date = (months.astype(np.int64) % 12 + 1) * 100 + (days - months).astype(np.int64) + 1
        return signs.take(pa.array(np.searchsorted(ends, date)))

    return derive


def _gender(field: FieldSpec, others: Sequence[FieldSpec], compiler: Compiler) -> DeriveFunction:
    """The letter of the sex, or X where a field ``gender`` of the group shows a non-binary person."""
    letters = pa.array(["F", "M", "X"])
    share = max((getattr(other.options, "nonbinary", 0) for other in others), default=0)

    def derive(people: Any, own: pa.StringArray) -> pa.StringArray:
        neither = engine_random.chance(people.gender, share, 100) if share else False
        return letters.take(pa.array(np.where(neither, 2, people.sex)))

    return derive


def _with_symbol(symbol: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
    """Replace the dollar sign of amounts by a symbol; letters are followed by a space, as in CHF 12.50."""
    lettered = pc.match_substring_regex(symbol, r"\p{L}$")
    head = pc.if_else(lettered, pc.binary_join_element_wise(symbol, "", " "), symbol)
    parts = pc.extract_regex(own, r"^(?P<sign>-?)\$(?P<amount>.*)$")
    sign, amount = pc.struct_field(parts, "sign"), pc.struct_field(parts, "amount")
    return pc.binary_join_element_wise(sign, head, amount, "")


def _currency(field: FieldSpec, others: Sequence[FieldSpec], compiler: Compiler) -> DeriveFunction:
    """Amounts with the symbol of a currency code, or with a given symbol."""
    table = compiler.vocabulary.table("currency")
    codes, symbols = table["code"].combine_chunks(), table["symbol"].combine_chunks()

    def derive(currency: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
        symbol = pc.coalesce(symbols.take(pc.index_in(currency, codes)), currency)
        return _with_symbol(symbol, own)

    return derive if _has_default_symbol(field) else _no_values


def _currency_of_place(field: FieldSpec, others: Sequence[FieldSpec], compiler: Compiler) -> DeriveFunction:
    geography = geography_of(compiler.vocabulary)
    rows = countries.currency_rows(compiler.vocabulary, geography)
    symbols = compiler.vocabulary.table("currency")["symbol"].combine_chunks()
    of_country = symbols.take(pa.array(rows, mask=rows < 0))

    def derive(places: Any, own: pa.StringArray) -> pa.StringArray:
        return _with_symbol(of_country.take(pa.array(places.country)), own)

    return derive if _has_default_symbol(field) else _no_values


def _has_default_symbol(field: FieldSpec) -> bool:
    return "symbol" not in field.options.model_fields_set


def _no_values(other: Any, own: pa.StringArray) -> pa.StringArray:
    return pa.nulls(len(own), own.type)


def _passport_name(field: FieldSpec, others: Sequence[FieldSpec], compiler: Compiler) -> DeriveFunction:
    """ICAO Doc 9303, part 3: capital letters, < for anything else, and << between the names."""

    def derive(people: Any, own: pa.StringArray) -> pa.StringArray:
        names = people.names
        parts = [pool.take(pa.array(rows)) for pool, rows in
                 ((names.last_ascii, people.last), (names.first_ascii, people.first))]  # fmt: skip
        plain = [pc.replace_substring_regex(pc.utf8_upper(part), "[^A-Z]+", "<") for part in parts]
        return pc.binary_join_element_wise(*plain, "<<")

    return derive


def _calling_code(field: FieldSpec, others: Sequence[FieldSpec], compiler: Compiler) -> DeriveFunction:
    digits = geography_of(compiler.vocabulary).countries["calling_code"].to_pylist()
    codes = pa.array([f"+{code}" if code else None for code in digits], pa.string())
    return lambda places, own: codes.take(pa.array(places.country))


def _locale_code(field: FieldSpec, others: Sequence[FieldSpec], compiler: Compiler) -> DeriveFunction:
    """The locale of the place; otherwise the first official language of its country."""
    geography = geography_of(compiler.vocabulary)
    languages, codes = countries.language_codes(geography), geography.countries["alpha2"].to_pylist()
    locales = {
        country: f"{language}_{country}"
        for language, country in zip(languages, codes, strict=True)
        if language
    }
    locale = locale_of_group(others, compiler, None)
    if locale is not None:
        locales[locale.partition("_")[2]] = locale
    texts = pa.array([locales.get(country) for country in codes], pa.string())
    return lambda places, own: texts.take(pa.array(places.country))


def _subcategory(field: FieldSpec, others: Sequence[FieldSpec], compiler: Compiler) -> DeriveFunction:
    goods = commerce.catalogue(compiler, others)
    codes = pa.array(goods.codes)

    def derive(made: Any, own: pa.StringArray) -> pa.StringArray:
        category = codes.take(pa.array(goods.category[made.product]))
        return _choose(category, own, SUBCATEGORIES)

    return derive


def _temperature(weather: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
    """At most 2 degrees where it snows, more than 0 where it rains."""
    degrees = pc.cast(pc.struct_field(pc.extract_regex(own, "^(?P<x>-?[0-9]+)"), "x"), pa.int64()).to_numpy()
    cold = pc.match_substring_regex(weather, "Snow|Blizzard|Sleet|Freezing").to_numpy(zero_copy_only=False)
    mild = (
        pc.match_substring_regex(weather, "Rain|Drizzle|Showers|Thunder").to_numpy(zero_copy_only=False)
        & ~cold
    )
    adjusted = np.where(cold, 2 - np.abs(degrees) % 16, np.where(mild, 1 + np.abs(degrees) % 29, degrees))
    return pc.binary_join_element_wise(pa.array(adjusted).cast(pa.string()), "°C", " ")


def _device_os(brand: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
    brands = pa.array(list(DEVICE_FAMILIES))
    family = pa.array(list(DEVICE_FAMILIES.values())).take(pc.index_in(brand, brands))
    return _choose(pc.coalesce(family, pa.scalar("Android")), own, DEVICE_SYSTEMS)


def _values(name: str) -> list[str]:
    """Return the values of a type of ``listed.txt`` in order."""
    return (
        parse_pattern(next(line.pattern for line in load_listed_types() if line.name == name))
        .pools[0]
        .to_pylist()
    )


def _media_type(field: FieldSpec, others: Sequence[FieldSpec], compiler: Compiler) -> DeriveFunction:
    kinds = compiler.vocabulary.table("file_kind").to_pylist()
    types_by_extension = {kind["extension"]: kind["mime_type"] for kind in kinds} | MEDIA_TYPES
    keys, texts = pa.array(list(types_by_extension)), pa.array(list(types_by_extension.values()))

    def derive(other: pa.StringArray, own: pa.StringArray) -> pa.StringArray:
        extension = pc.struct_field(pc.extract_regex(pc.utf8_lower(other), r"(?P<x>[a-z0-9]+)$"), "x")
        return texts.take(pc.index_in(extension, keys))

    return derive


RULES: Mapping[str, tuple[Rule, ...]] = {
    "aba_routing": (Rule(("iban",), _rule_by_regex("^(?P<x>[0-9]{9}) [0-9]{10}$")),),
    "account_number": (Rule(("iban",), _account_number, max_length=24),),
    **{name: (Rule((), _currency_of_place, kind="place", extra=5),
              Rule(("currency_code", "currency_symbol"), _currency, extra=5)) for name in ("money", "market_cap")},
    "siret": (Rule(("siren", "vat_id"), _fixed_rule(_siret)),),
    "siren": (Rule(("vat_id",), _rule_by_regex(_COMPANY_NUMBER)),),
    "cnpj": (Rule(("vat_id",), _rule_by_regex(r"^(?P<x>[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2})$")),),
    "ein": (Rule(("tax_id",), _rule_by_regex("^(?P<x>[0-9]{2}-[0-9]{7})$")),),
    "ssn": (Rule(("national_id",), _rule_by_regex("^(?P<x>[0-9]{3}-[0-9]{2}-[0-9]{4})$")),),
    "nhs_number": (Rule(("national_id",), _rule_by_regex("^(?P<x>999 [0-9]{3} [0-9]{4})$")),),
    "isin": (Rule(("cusip",), _fixed_rule(_isin)),),
    "isbn_10": (Rule(("isbn",), _fixed_rule(_isbn_10)),),
    "sbn9": (Rule(("isbn_10", "isbn"), _fixed_rule(_sbn)),),
    "vin": (Rule(("car_make",), _fixed_rule(_vin_of_make)), Rule(("car_year",), _fixed_rule(_vin_of_year))),
    "hex_color": (Rule(("color",), _hex),),
    **{name: (Rule(("hex_color", "color"), _color_rule(spell)),) for name, spell in (
        ("rgb_color", _rgb), ("hsl_color", _hsl), ("hwb_color", _hwb), ("cmyk_color", _cmyk), ("lab_color", _lab),
        ("rgb_float_color", _rgb_float),
    )},
    "chemical_symbol": (Rule(("chemical_element",), _rule_by_table(
        lambda: dict(zip(_values("chemical_element"), ELEMENTS, strict=True)))),),
    "cryptocurrency_code": (Rule(("cryptocurrency",), _rule_by_table(
        lambda: dict(zip(_values("cryptocurrency"), _values("cryptocurrency_code"), strict=True)))),),
    "animal": (Rule(("animal_scientific_name",), _rule_by_table(lambda: ANIMALS), max_length=20),),
    "plant": (Rule(("plant_scientific_name",), _rule_by_table(lambda: PLANTS), max_length=20),),
    "plant_family": (Rule(("plant_scientific_name",), _rule_by_table(lambda: PLANT_FAMILIES), max_length=20),),
    "icd9_code": (Rule(("diagnosis_name",), _rule_by_table(lambda: ICD_9)),),
    "device_os": (Rule(("device_brand",), _fixed_rule(_device_os)),),
    "file_extension": (Rule(_FILES, _rule_by_regex(r"\.(?P<x>[a-zA-Z0-9]+)$")),),
    "mime_type": (Rule((*_FILES, "file_extension"), _media_type, max_length=80),),
    "military_state": (Rule(("military_address",), _rule_by_regex("(?P<x>A[AEP])$")),),
    "temperature": (Rule(("weather",), _fixed_rule(_temperature)),),
    "product_subcategory": (Rule((), _subcategory, kind="product", max_length=20),),
    "zodiac_sign": (Rule((), _zodiac, kind="person"),),
    "gender_abbreviation": (Rule((), _gender, kind="person"),),
    "passport_owner": (Rule((), _passport_name, kind="person", max_length=limits.MAX_NAME_CHARS),),
    "calling_code": (Rule((), _calling_code, kind="place", max_length=5),),
    "locale_code": (Rule((), _locale_code, kind="place", max_length=6),),
}  # fmt: skip
"""The rules of each type that follows other fields of the row."""
