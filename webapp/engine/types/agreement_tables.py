"""Tables for `agreement`: values of one column that belong to values of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webapp.engine.types.banks import PIECE

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary


def _table(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split("|"))


def accounts(vocabulary: Vocabulary) -> dict[str, tuple[int, int]]:
    """Return the position of the account number in the IBANs of each country (SWIFT IBAN Registry): the longest part
    of the structure, and the check digit after it."""
    found = {}
    table = vocabulary.table("iban")
    for country, structure in zip(table["country"].to_pylist(), table["structure"].to_pylist(), strict=True):
        widths = [int(count) for count, _ in PIECE.findall(structure)]
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

ELEMENTS = tuple(
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb "
    "Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th U".split()
)
"""The symbols of the elements, in the order of the type ``chemical_element``."""

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

_ANDROID = tuple(f"Android {version}" for version in range(10, 16))
DEVICE_SYSTEMS = {
    "Android": _ANDROID,
    "Apple": (*(f"iOS {version}" for version in range(14, 19)), "iPadOS 16", "iPadOS 17"),
    "Huawei": (*_ANDROID[:3], "HarmonyOS 3.0", "HarmonyOS 4.0"),
    "Nokia": (*_ANDROID, "KaiOS 3.0"),
}
DEVICE_FAMILIES = {"Apple": "Apple", "Huawei": "Huawei", "Nokia": "Nokia", "Alcatel": "Nokia"}
"""Brands whose devices have other systems than Android."""

MEDIA_TYPES = _table(
    "7z=application/x-7z-compressed|flac=audio/flac|jpeg=image/jpeg|mkv=video/x-matroska|mov=video/quicktime|"
    "parquet=application/vnd.apache.parquet|psd=image/vnd.adobe.photoshop|rar=application/vnd.rar|sql=application/sql|"
    "toml=application/toml|ts=video/mp2t|tar=application/x-tar"
)
"""Media types of extensions that the vocabulary does not have (IANA; Matroska and QuickTime by their makers)."""

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
