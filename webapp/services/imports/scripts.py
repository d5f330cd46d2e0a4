"""SQL scripts as statements: cut at semicolons that stand outside texts, names, comments and bodies of routines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

NAME: Final = r"""(?:"[^"]+"|`[^`]+`|\[[^\]]+\]|[\w$#]+)"""
"""One part of a name, quoted in any way or not."""
_QUIET: Final = r"""--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"""
_NAMES: Final = r"""|"(?:[^"]++|"")*+"?|`(?:[^`]++|``)*+`?"""
_PLAIN: Final = re.compile(
    _QUIET + r"|'(?:[^']++|'')*+'?" + _NAMES + r"|\$(?P<tag>\w*)\$|(?P<end>;|^[ \t]*(?:GO|/)[ \t\r]*$)", re.I | re.M
)
_SLASHED: Final = re.compile(
    _QUIET
    + r"|\#[^\n]*+|'(?:[^'\\]++|''|\\.)*+'?"
    + _NAMES
    + r"|(?P<end>;)|^DELIMITER[ \t]+(?P<delimiter>\S+)[^\n]*",
    re.I | re.M | re.S,
)
_LEADING: Final = re.compile(rf"\s++|{_QUIET}")
_COMMENT: Final = re.compile(_QUIET + r"|'(?:[^']++|'')*+'?" + _NAMES, re.I)
_BEGINNINGS: Final = (
    r"(?:CREATE\s+(?:GLOBAL\s+|LOCAL\s+|TEMP(?:ORARY)?\s+|UNLOGGED\s+|OR\s+REPLACE\s+|EXTERNAL\s+|FOREIGN\s+)*TABLE"
    r"|CREATE\s+UNIQUE\s+(?:CLUSTERED\s+|NONCLUSTERED\s+)?INDEX|CREATE\s+(?:TYPE|DOMAIN)|ALTER\s+TABLE|COMMENT\s+ON)\b"
)
WANTED: Final = re.compile(_BEGINNINGS, re.I)
"""How statements begin that say something of tables."""
MENTIONED: Final = re.compile(r"\b" + _BEGINNINGS, re.I)
"""The same within a text."""
_DIALECTS: Final = (
    ("mysql", r"`|\bENGINE\s*=|\bAUTO_INCREMENT\b|\bUNSIGNED\b|\bTINYINT\(|\bENUM\s*\("),
    ("tsql", r"^[ \t]*GO[ \t\r]*$|\[\w+\]|\bIDENTITY\s*\(|\bNVARCHAR\s*\("
             r"|\b(?:UNIQUEIDENTIFIER|DATETIME2|NTEXT|CLUSTERED)\b"),
    ("oracle", r"\bVARCHAR2\b|\bNUMBER\s*\(|\bCLOB\b|\bNUMBER\s*(?:,|NOT|$)|\bSYSDATE\b|^[ \t]*/[ \t\r]*$"),
    ("postgres", r"\b(?:(?:BIG|SMALL)?SERIAL|TIMESTAMPTZ|BYTEA|JSONB|ALTER TABLE ONLY|AS\s+ENUM|CHARACTER VARYING)\b"
                 r"|::|\bTEXT\[\]|\bnextval\("),
    ("sqlite", r"\bAUTOINCREMENT\b|\bWITHOUT\s+ROWID\b|\bPRAGMA\b"),
)  # fmt: skip
_LOOKED: Final = 200_000  # chosen: characters by which the dialect is found


def dialects(text: str) -> list[str]:
    """The dialects, the likeliest first, by how often each one's own words occur."""
    head = text[:_LOOKED]
    counted = {name: len(re.findall(pattern, head, re.I | re.M)) for name, pattern in _DIALECTS}
    return sorted(counted, key=lambda name: -counted[name])


def statements(text: str, dialect: str) -> Iterator[str]:
    """The statements, without comments at their beginning."""
    text = text.lstrip("\ufeff")
    pattern = _SLASHED if dialect == "mysql" else _PLAIN
    start, at, ending = 0, 0, ";"
    while (match := pattern.search(text, at)) is not None:
        at = match.end()
        if match.groupdict().get("tag") is not None:  # the body of a function, up to the same mark
            close = text.find(match[0], at)
            at = len(text) if close < 0 else close + len(match[0])
        elif match.groupdict().get("delimiter") is not None:
            ending, start = match["delimiter"], at
            if ending != ";":  # what stands between two of these is a routine
                close = re.compile(r"^DELIMITER[ \t]+;[^\n]*", re.I | re.M).search(text, at)
                start = at = len(text) if close is None else close.end()
        elif match["end"]:
            yield from _one(text[start : match.start()])
            start = at
    yield from _one(text[start:])


def _one(statement: str) -> Iterator[str]:
    at = 0
    while (match := _LEADING.match(statement, at)) is not None:
        at = match.end()
    plain = statement[at:].strip()
    if plain:
        yield plain


def parts(body: str) -> list[str]:
    """What stands between the commas of a bracket, at its own level."""
    found, depth, start = [], 0, 0
    pattern = re.compile(_COMMENT.pattern + r"|[(),]", re.I)
    for match in pattern.finditer(body):
        sign = match[0]
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            found.append(body[start : match.start()])
            start = match.end()
    found.append(body[start:])
    return [one.strip() for one in found if one.strip()]


def parts_of(text: str) -> tuple[str, ...]:
    """A table's name, with its schema where it has one."""
    return tuple(bare(one) for one in re.findall(NAME, text))[-2:]


def bare(name: str) -> str:
    """A name without its quotes."""
    return name[1:-1] if name[:1] in '"`[' else name
