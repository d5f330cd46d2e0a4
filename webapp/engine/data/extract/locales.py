"""The locales that words exist for."""

from __future__ import annotations

LOCALES = tuple(
    (
        # The first of a language stands for the language alone: "de" is de_DE.
        "en_US en_GB en_AU en_CA en_IE en_IN en_NZ de_DE de_AT de_CH fr_FR fr_BE fr_CA fr_CH es_ES es_AR es_CL es_CO "
        "es_MX it_IT nl_NL nl_BE pt_BR pt_PT pl_PL cs_CZ sk_SK sl_SI hr_HR hu_HU ro_RO bg_BG el_GR tr_TR sv_SE da_DK "
        "nb_NO fi_FI et_EE lv_LV ru_RU uk_UA ja_JP ko_KR zh_CN"
    ).split()
)
"""Each is a language and the country its places are in."""

ALIASES = {"no_NO": "nb_NO", "nn_NO": "nb_NO", "no": "nb", "nn": "nb"}
"""Other spellings; a language alone is spelled without a country."""

FAKER = {"nb_NO": "no_NO", "en_AU": "en", "en_CA": "en"}
"""Where Faker's people of a locale are filed under another name."""
