"""The locales that words exist for, and where the libraries file their words."""

from __future__ import annotations

from webapp.engine.data.extract.locales import FAKER as FIRST_FAKER
from webapp.engine.data.extract.locales import LOCALES as FIRST_LOCALES

LOCALES = (
    *FIRST_LOCALES,
    *(
        "ar_SA ar_AE ar_BH ar_DZ ar_EG ar_JO ar_PS he_IL fa_IR ur_PK hi_IN bn_BD gu_IN mr_IN or_IN ta_IN ne_NP si_LK "
        "th_TH vi_VN id_ID fil_PH zh_TW ka_GE hy_AM az_AZ kk_KZ uz_UZ lt_LT sr_RS bs_BA mk_MK sq_AL is_IS ga_IE mt_MT "
        "ca_ES am_ET sw_KE ha_NG ig_NG yo_NG tw_GH zu_ZA en_NG en_PH en_PK en_KE en_ZA en_BD en_MY en_TH de_LI de_LU "
        "it_CH fr_DZ"
    ).split(),
)
"""Each is a language and the country its places are in. The first of a language stands for the language alone."""
ALIASES = {
    # Other spellings of a language; a language alone is spelled without a country.
    "no_NO": "nb_NO", "nn_NO": "nb_NO", "no": "nb", "nn": "nb", "iw": "he", "iw_IL": "he_IL", "tl": "fil",
    "tl_PH": "fil_PH",
    "in_ID": "id_ID",
    # Names that Faker has for them.
    "ar_AA": "ar_SA", "dk_DK": "da_DK", "en_MS": "en_MY", "es_CA": "ca_ES", "fr_QC": "fr_CA", "lb_LU": "de_LU",
    "lb": "de",
    "ng_NG": "en_NG", "sr_BA": "sr_RS", "el_CY": "el_GR",
}  # fmt: skip
FAKER = {
    **FIRST_FAKER, "ar_AE": "ar_AA", "ar_BH": "ar_AA", "ar_EG": "ar_AA", "ar_JO": "ar_AA", "ca_ES": "es_CA",
    "it_CH": "it_IT",
}  # fmt: skip
"""Where Faker's people of a locale are filed under another name."""
OWN_SCRIPT = {
    "am": "ETHIOPIC", "ar": "ARABIC", "bg": "CYRILLIC", "bn": "BENGALI", "el": "GREEK", "fa": "ARABIC",
    "gu": "GUJARATI",
    "he": "HEBREW", "hi": "DEVANAGARI", "hy": "ARMENIAN", "ja": "CJK", "ka": "GEORGIAN", "kk": "CYRILLIC",
    "ko": "HANGUL",
    "mk": "CYRILLIC", "mr": "DEVANAGARI", "ne": "DEVANAGARI", "or": "ORIYA", "ru": "CYRILLIC", "si": "SINHALA",
    "sr": "CYRILLIC", "ta": "TAMIL", "th": "THAI", "uk": "CYRILLIC", "ur": "ARABIC", "zh": "CJK",
}  # fmt: skip
"""Languages that are not written in Latin letters, with the script as Unicode names its letters."""
