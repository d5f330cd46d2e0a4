"""Masking of real values: columns in, columns out.

    masker = create_masker(field, vocabulary, keys, ...)     # of one sensitive field
    masked = masker.mask(column, person)                      # block by block, in any order and process

The package does not depend on where the values come from or go to. See `settings` for the options, and
`format_preserving` for the permutation behind format_preserve.
"""

from webapp.engine.masking.format_preserving import has_content
from webapp.engine.masking.keys import KeyRing
from webapp.engine.masking.masker import Masker, MaskingError, create_masker
from webapp.engine.masking.settings import STRATEGIES, Masking, supported_strategies
from webapp.engine.masking.together import fields_replaced_together

__all__ = [
    "STRATEGIES",
    "KeyRing",
    "Masker",
    "Masking",
    "MaskingError",
    "create_masker",
    "fields_replaced_together",
    "has_content",
    "supported_strategies",
]
