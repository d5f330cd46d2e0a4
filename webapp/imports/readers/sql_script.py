"""SQL scripts as statements, and statements as tokens.

A script is cut at semicolons, `GO` and `/` that are outside texts, names, comments and bodies of routines. Lines that
only a client understands (SQL*Plus, psql, sqlcmd, the mysql client) are left out where a statement could begin, and so
is the data that psql reads with COPY. Where statements follow each other without a separator, as in SQL Server and in
CREATE SCHEMA, each definition becomes a statement of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

_QUIET: Final = r"""--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"""
_QUOTED: Final = (
    r"(?<!\w)[eE]'(?:[^'\\]++|''|\\.)*+'?"  # PostgreSQL's texts with backslashes
    r"|(?<!\w)[nN]?[qQ]'(?:\[.*?(?:\]'|\Z)|\{.*?(?:\}'|\Z)|<.*?(?:>'|\Z)|\(.*?(?:\)'|\Z)"  # Oracle's
    r"|(?P<mark>[^\s\w\[({<']).*?(?:(?P=mark)'|\Z))"
    r"|'(?:[^']++|'')*+'?"
)
_QUOTED_SLASHED: Final = r"'(?:[^'\\]++|''|\\.)*+'?"
_NAMES: Final = r"""|"(?:[^"]++|"")*+"?|`(?:[^`]++|``)*+`?|\[[^\W\d][^\]\n']*\]"""
_TOOLS: Final = (
    # Whole lines, whatever they contain.
    r"^[ \t]*(?:(?:PROMPT|REM|REMARK|SPOOL|WHENEVER|DOC|TTITLE|BTITLE|ACCEPT|PAUSE|HOST|UNDEFINE)\b[^\n]*"
    r"|@@?[\w./$&~-][^\n]*|\\[A-Za-z!?.][^\n]*|:(?:setvar|r|on|connect|out|error|quit|exit)\b[^\n]*"
    r"|\.[a-z]{2,}[^\n;]*$|\#[^\n]*"
    # Words that begin statements elsewhere: lines without a semicolon, with their texts closed.
    r"|(?:SET|SHOW|DEFINE|COLUMN|COL|VARIABLE|START|CONNECT|CONN|DISCONNECT|EXIT|QUIT|CLEAR|BREAK|COMPUTE|TIMING"
    r"|SOURCE|USE|PRINT)\b(?:[^;'\n]|'[^'\n]*')*$)"
)
_COPY: Final = r"^[ \t]*COPY[ \t][^;'\n]*[ \t]FROM[ \t]+STDIN\b(?:[^;'\n]|'[^'\n]*')*;[^\n]*\n"
_GO: Final = r"^[ \t]*GO(?:[ \t]+\d+)?[ \t]*;?[ \t\r]*(?:--[^\n]*)?$"
_PLAIN: Final = re.compile(
    rf"(?P<tool>{_TOOLS})|(?P<copy>{_COPY})|{_QUIET}|{_QUOTED}{_NAMES}"
    rf"|\$(?P<tag>\w*)\$|(?P<end>;|{_GO}|^[ \t]*/[ \t\r]*$)",
    re.I | re.M | re.S,
)
_SLASHED: Final = re.compile(
    rf"^[ \t]*DELIMITER[ \t]+(?P<delimiter>\S+)[^\n]*|(?P<tool>{_TOOLS})|{_QUIET}|\#[^\n]*+|{_QUOTED_SLASHED}{_NAMES}"
    r"|(?P<end>;)",
    re.I | re.M | re.S,
)
_LEADING: Final = re.compile(rf"(?:\s++|{_QUIET})*+", re.S)
_LEADING_SLASHED: Final = re.compile(rf"(?:\s++|{_QUIET}|\#[^\n]*+)*+", re.S)
_TABLE_WORDS: Final = (
    r"(?:GLOBAL\s+|LOCAL\s+|TEMP(?:ORARY)?\s+|UNLOGGED\s+|OR\s+REPLACE\s+|EXTERNAL\s+|FOREIGN\s+|COLUMN\s+|ROW\s+"
    r"|PRIVATE\s+|SHARDED\s+|DUPLICATED\s+|IMMUTABLE\s+|BLOCKCHAIN\s+|CACHED\s+|MEMORY\s+|MULTISET\s+|SET\s+)*"
)
BEGINNINGS: Final = (
    rf"(?:CREATE\s+{_TABLE_WORDS}TABLE|CREATE\s+UNIQUE\s+(?:CLUSTERED\s+|NONCLUSTERED\s+)?INDEX"
    r"|CREATE\s+(?:OR\s+REPLACE\s+)?(?:DISTINCT\s+)?(?:TYPE|DOMAIN)|CREATE\s+SCHEMA|ALTER\s+TABLE|COMMENT\s+ON"
    r"|RENAME\s+TABLE|DROP\s+TABLE|EXEC(?:UTE)?\s+(?:sys\.)?sp_addtype)\b"
)
WANTED: Final = re.compile(BEGINNINGS, re.I)
"""How statements begin that define tables."""
MENTIONED: Final = re.compile(r"\b" + BEGINNINGS, re.I)
"""The same within a text."""
_NEXT: Final = re.compile(
    r"(?:CREATE|ALTER|DROP|INSERT|GRANT|REVOKE|COMMENT|EXEC(?:UTE)?|PRINT|RAISERROR|TRUNCATE|BULK|DECLARE|BACKUP)\b",
    re.I,
)
"""How any statement may begin that follows another one without a separator."""
_NO_STATEMENT: Final = frozenset({",", "GRANT", "REVOKE", "ON", "FOR", "AFTER", "BEFORE"})
"""What is before such words where they begin no statement."""
_DIALECTS: Final = (
    ("mysql", r"`|\bENGINE\s*=|\bAUTO_INCREMENT\b|\bUNSIGNED\b|\bTINYINT\(|\bENUM\s*\(|^DELIMITER\b"),
    ("tsql", rf"{_GO}|\[[^\W\d]\w*\]|\bIDENTITY\s*\(|\bNVARCHAR\s*\(|\b(?:UNIQUEIDENTIFIER|DATETIME2|NTEXT)\b"
             r"|\b(?:NON)?CLUSTERED\b|\bVARBINARY\s*\(MAX\)|\bROWGUIDCOL\b"),
    ("oracle", r"\bVARCHAR2\b|\bNUMBER\s*\(|\bCLOB\b|\bNUMBER\s*(?:,|NOT|$)|\bSYSDATE\b|^[ \t]*/[ \t\r]*$"
               r"|^[ \t]*(?:REM|PROMPT|WHENEVER)\b"),
    ("postgres", r"\b(?:(?:BIG|SMALL)?SERIAL|TIMESTAMPTZ|BYTEA|JSONB|ALTER TABLE ONLY|AS\s+ENUM|CHARACTER VARYING)\b"
                 r"|::|\b(?:TEXT|INTEGER)\[\]|\bnextval\(|^[ \t]*\\\w|\$\w*\$|\bUUID\b|\bCREATE\s+DOMAIN\b"
                 r"|\bOWNER\s+TO\b"
                 r"|\bWITH(?:OUT)?\s+TIME\s+ZONE\b|\bCREATE\s+EXTENSION\b|\bFROM\s+STDIN\b|\bGENERATED\s+BY\s+DEFAULT\b"),
    ("sqlite", r"\bAUTOINCREMENT\b|\bWITHOUT\s+ROWID\b|\bPRAGMA\b"),
)  # fmt: skip
_LOOKED: Final = 200_000  # chosen: characters by which the dialect is found


def dialects(text: str) -> list[str]:
    """The dialects, the likeliest first, by how often each one's own words occur outside comments and texts."""
    head = re.sub(rf"{_QUIET}|'(?:[^'\n]|'')*'", " ", text[:_LOOKED])
    counted = {name: len(re.findall(pattern, head, re.I | re.M)) for name, pattern in _DIALECTS}
    if not any(counted.values()):
        return ["postgres", "mysql", "oracle", "sqlite", "tsql"]  # where only standard words occur
    return sorted(counted, key=lambda name: -counted[name])


def statements(text: str, dialect: str) -> Iterator[str]:
    """The statements of a script, without comments at their beginning. Statements that follow each other without a
    separator are separate where they define tables."""
    for statement in _separated(text.lstrip("\ufeff"), dialect):
        first = WANTED.match(statement)
        if MENTIONED.search(statement, first.end() if first else 0) is None:
            yield statement
        else:
            yield from _divided(statement, dialect)


def _separated(text: str, dialect: str) -> Iterator[str]:
    slashed = dialect == "mysql"
    pattern, leading = (_SLASHED, _LEADING_SLASHED) if slashed else (_PLAIN, _LEADING)
    start, at = 0, 0
    begun = (-1, 0)
    """Where `start` was when the place of the first word after it was found, and that place."""

    def first_word() -> int:
        nonlocal begun
        if begun[0] != start:
            found = leading.match(text, start)
            begun = start, found.end() if found is not None else start
        return begun[1]

    def between(end: int) -> Iterator[str]:
        plain = text[first_word() : end].strip()
        if plain:
            yield plain

    while (match := pattern.search(text, at)) is not None:
        at = match.end()
        said = match.groupdict()
        if said.get("tool") is not None or said.get("copy") is not None:
            word = match.start() + len(match[0]) - len(match[0].lstrip(" \t"))
            if first_word() < word:  # a line within a statement
                at = word + 1
                continue
            if said.get("copy") is not None:
                copied = re.compile(r"^\\\.[ \t\r]*$", re.M).search(text, at)
                at = len(text) if copied is None else copied.end()
            elif match[0].rstrip("\r").endswith("-") and not match[0].lstrip().upper().startswith(
                ("PROMPT", "REM")
            ):
                at = _continued(text, at)
            start = at
        elif said.get("tag") is not None:  # the body of a function, up to the same mark
            close_at = text.find(match[0], at)
            at = len(text) if close_at < 0 else close_at + len(match[0])
        elif said.get("delimiter") is not None:
            start = at
            if match["delimiter"] != ";":  # what is between two of these is a routine
                back = re.compile(r"^[ \t]*DELIMITER[ \t]+;[^\n]*", re.I | re.M).search(text, at)
                start = at = len(text) if back is None else back.end()
        elif match["end"]:
            yield from between(match.start())
            start = at
    yield from between(len(text))


def _continued(text: str, at: int) -> int:
    """The end of a SQL*Plus command whose lines end with a hyphen."""
    while True:
        end = text.find("\n", at + 1)
        end = len(text) if end < 0 else end
        if end >= len(text) or not text[at:end].rstrip().endswith("-"):
            return end
        at = end


def _divided(statement: str, dialect: str) -> Iterator[str]:
    """A chunk with several definitions, each by itself; tables of CREATE SCHEMA get its name."""
    found = tokens(statement, dialect)
    starts, depth = [0], 0
    for place, one in enumerate(found):
        depth += {"(": 1, ")": -1}.get(one.text, 0) if one.kind == "sign" else 0
        if place and depth <= 0 and one.kind == "word":
            depth = 0
            before = found[place - 1]
            fresh = "\n" in statement[before.end : one.start]
            begins = WANTED.match(statement, one.start) or (fresh and _NEXT.match(statement, one.start))
            if begins and before.plain not in _NO_STATEMENT:
                starts.append(one.start)
    schema = re.match(
        rf"CREATE\s+SCHEMA\s+(?:IF\s+NOT\s+EXISTS\s+)?(?!AUTHORIZATION\b)({NAME})", statement, re.I
    )
    for start, end in zip(starts, [*starts[1:], len(statement)], strict=True):
        one_of = statement[start:end].strip()
        if schema is not None and start:
            headed = re.match(
                rf"((?:CREATE\s+{_TABLE_WORDS}|ALTER\s+)TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?)(?={NAME}\s*\()",
                one_of,
                re.I,
            )
            one_of = one_of if headed is None else f"{headed[1]}{schema[1]}.{one_of[headed.end() :]}"
        if one_of:
            yield one_of


# --- Tokens -------------------------------------------------------------------------------------------------

NAME: Final = r"""(?:"[^"]+"|`[^`]+`|\[[^\]]+\]|[\w$#@]+)"""
"""One part of a name, quoted in any way or not."""


Kind = Literal["text", "name", "word", "sign"]
_KINDS: Final[tuple[Kind, ...]] = ("text", "name", "word", "sign")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a quoted name, a text, or a sign, with its place in the statement."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def plain(self) -> str:
        """The word in capitals; "" for names and texts, which are no keywords."""
        return self.text.upper() if self.kind in ("word", "sign") else ""

    @property
    def value(self) -> str:
        """A name or a text without its quotes."""
        if self.kind == "text":
            body = self.text[self.text.index("'") + 1 :]
            return (body[:-1] if body.endswith("'") else body).replace("''", "'")
        if self.kind == "name":
            quote = {"[": "]"}.get(self.text[0], self.text[0])
            return self.text[1:-1].replace(quote * 2, quote) if self.text.endswith(quote) else self.text[1:]
        return self.text


def _token_pattern(quiet: str, quoted: str) -> re.Pattern[str]:
    names = _NAMES.removeprefix("|")
    return re.compile(
        rf"(?P<quiet>\s++|{quiet})|(?P<text>{quoted}|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)|(?P<name>{names})"
        r"|(?P<word>[\w$#@&]++)|(?P<sign>::|.)",
        re.S,
    )


_TOKEN: Final = _token_pattern(_QUIET, _QUOTED)
_TOKEN_SLASHED: Final = _token_pattern(rf"{_QUIET}|\#[^\n]*+", _QUOTED_SLASHED)


def tokens(statement: str, dialect: str) -> list[Token]:
    """The tokens of a statement, without comments."""
    pattern = _TOKEN_SLASHED if dialect == "mysql" else _TOKEN
    found: list[Token] = []
    for match in pattern.finditer(statement):
        kind = next((one for one in _KINDS if match[one] is not None), None)
        if kind is not None:
            found.append(Token(kind, match[0], match.start(), match.end()))
    return found


def listed(found: Sequence[Token]) -> list[list[Token]]:
    """What is between the commas, at their own level."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for one in found:
        depth += {"(": 1, ")": -1}.get(one.text, 0) if one.kind == "sign" else 0
        if one.kind == "sign" and one.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(one)
    return [one for one in parts if one]
