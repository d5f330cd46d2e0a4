"""The locales that words exist for, and where the libraries file their words."""

from __future__ import annotations

from webapp.engine.data.extract.locales import ALIASES as FIRST_ALIASES
from webapp.engine.data.extract.locales import LOCALES as FIRST_LOCALES

LOCALES = FIRST_LOCALES
"""Each is a language and the country its places are in. The first of a language stands for the language alone."""
ALIASES = FIRST_ALIASES
"""Other spellings; a language alone is spelled without a country."""
