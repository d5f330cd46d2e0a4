"""Regular expressions that are written out in a formula. RE2 carries them out."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine.expressions.declare import Call

_REPEATED = re.compile(r"(\))?\{([0-9]+)(?:,([0-9]*))?\}")
_WIDE = re.compile(r"\\[pP]|\(\?[a-z]*i")  # classes of Unicode take many states


def written(call: Call, place: int) -> str:
    """A regular expression that is written out. RE2 takes time in proportion to the text, whatever the pattern; but it
    compiles a pattern for every block, so that what would take long to compile is refused."""
    pattern = call.words(place)
    size, factor = len(pattern), 40 if _WIDE.search(pattern) else 1
    for group, least, most in _REPEATED.findall(pattern):
        times = max(1, int((most or least)[:4]))
        size, factor = (size, factor * times) if group else (size + times, factor)
    if size * factor > limits.MAX_PATTERN_SIZE:
        raise call.refuse(
            place, "bad_pattern", "This regular expression repeats too much.", "Lower its {counts}."
        )
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid:
        hint = "Write it as RE2 reads it: no look-ahead, no back-references."
        raise call.refuse(place, "bad_pattern", "This regular expression cannot be used.", hint) from None
    return pattern
