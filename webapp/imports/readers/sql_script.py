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

_COMMENT: Final = r"""--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"""
_QUOTED: Final = (
    r"(?<!\w)[eE]'(?:[^'\\]++|''|\\.)*+'?"  # PostgreSQL's texts with backslashes
    r"|(?<!\w)[nN]?[qQ]'(?:\[.*?(?:\]'|\Z)|\{.*?(?:\}'|\Z)|<.*?(?:>'|\Z)|\(.*?(?:\)'|\Z)"  # Oracle's
    r"|(?P<mark>[^\s\w\[({<']).*?(?:(?P=mark)'|\Z))"
    r"|'(?:[^']++|'')*+'?"
)
_MYSQL_QUOTED: Final = r"'(?:[^'\\]++|''|\\.)*+'?"
_QUOTED_NAMES: Final = r"""|"(?:[^"]++|"")*+"?|`(?:[^`]++|``)*+`?|\[[^\W\d][^\]\n']*\]"""
_CLIENT_COMMANDS: Final = (
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
_PATTERN: Final = re.compile(
    rf"(?P<tool>{_CLIENT_COMMANDS})|(?P<copy>{_COPY})|{_COMMENT}|{_QUOTED}{_QUOTED_NAMES}"
    rf"|\$(?P<tag>\w*)\$|(?P<end>;|{_GO}|^[ \t]*/[ \t\r]*$)",
    re.I | re.M | re.S,
)
_MYSQL_PATTERN: Final = re.compile(
    rf"^[ \t]*DELIMITER[ \t]+(?P<delimiter>\S+)[^\n]*|(?P<tool>{_CLIENT_COMMANDS})|{_COMMENT}|\#[^\n]*+"
    rf"|{_MYSQL_QUOTED}{_QUOTED_NAMES}|(?P<end>;)",
    re.I | re.M | re.S,
)
_LEADING: Final = re.compile(rf"(?:\s++|{_COMMENT})*+", re.S)
_MYSQL_LEADING: Final = re.compile(rf"(?:\s++|{_COMMENT}|\#[^\n]*+)*+", re.S)
_TABLE_WORDS: Final = (
    r"(?:GLOBAL\s+|LOCAL\s+|TEMP(?:ORARY)?\s+|UNLOGGED\s+|OR\s+REPLACE\s+|EXTERNAL\s+|FOREIGN\s+|COLUMN\s+|ROW\s+"
    r"|PRIVATE\s+|SHARDED\s+|DUPLICATED\s+|IMMUTABLE\s+|BLOCKCHAIN\s+|CACHED\s+|MEMORY\s+|MULTISET\s+|SET\s+)*"
)
DEFINITION_START: Final = (
    rf"(?:CREATE\s+{_TABLE_WORDS}TABLE|CREATE\s+UNIQUE\s+(?:CLUSTERED\s+|NONCLUSTERED\s+)?INDEX"
    r"|CREATE\s+(?:OR\s+REPLACE\s+)?(?:DISTINCT\s+)?(?:TYPE|DOMAIN)|CREATE\s+SCHEMA|ALTER\s+TABLE|COMMENT\s+ON"
    r"|RENAME\s+TABLE|DROP\s+TABLE|EXEC(?:UTE)?\s+(?:sys\.)?sp_addtype)\b"
)
DEFINITION: Final = re.compile(DEFINITION_START, re.I)
"""The beginnings of statements that define tables."""
EMBEDDED_DEFINITION: Final = re.compile(r"\b" + DEFINITION_START, re.I)
"""The same within a text."""
_STATEMENT_START: Final = re.compile(
    r"(?:CREATE|ALTER|DROP|INSERT|GRANT|REVOKE|COMMENT|EXEC(?:UTE)?|PRINT|RAISERROR|TRUNCATE|BULK|DECLARE|BACKUP)\b",
    re.I,
)
"""The beginnings of any statements that may follow another one without a separator."""
_NOT_BEFORE_STATEMENT: Final = frozenset({",", "GRANT", "REVOKE", "ON", "FOR", "AFTER", "BEFORE"})
"""Tokens after which such words do not begin a statement."""
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
_SNIFFED_CHARS: Final = 200_000  # chosen: characters by which the dialect is found


def detect_dialects(text: str) -> list[str]:
    """Return the dialects, most likely first, by how often their specific words occur outside comments and texts."""
    head = re.sub(rf"{_COMMENT}|'(?:[^'\n]|'')*'", " ", text[:_SNIFFED_CHARS])
    counted = {name: len(re.findall(pattern, head, re.I | re.M)) for name, pattern in _DIALECTS}
    if not any(counted.values()):
        return ["postgres", "mysql", "oracle", "sqlite", "tsql"]  # where only standard words occur
    return sorted(counted, key=lambda name: -counted[name])


def split_script(text: str, dialect: str) -> Iterator[str]:
    """Yield the statements of a script, without comments at their beginning. Statements without a separator between
    them are separated if they define tables."""
    for statement in _split_statements(text.lstrip("\ufeff"), dialect):
        first = DEFINITION.match(statement)
        if EMBEDDED_DEFINITION.search(statement, first.end() if first else 0) is None:
            yield statement
        else:
            yield from _split_definitions(statement, dialect)


def _split_statements(text: str, dialect: str) -> Iterator[str]:
    slashed = dialect == "mysql"
    pattern, leading = (_MYSQL_PATTERN, _MYSQL_LEADING) if slashed else (_PATTERN, _LEADING)
    start, at = 0, 0
    first_word_cache = (-1, 0)
    """Where `start` was when the place of the first word after it was found, and that place."""

    def first_word() -> int:
        nonlocal first_word_cache
        if first_word_cache[0] != start:
            found = leading.match(text, start)
            first_word_cache = start, found.end() if found is not None else start
        return first_word_cache[1]

    def between(end: int) -> Iterator[str]:
        plain = text[first_word() : end].strip()
        if plain:
            yield plain

    while (match := pattern.search(text, at)) is not None:
        at = match.end()
        groups = match.groupdict()
        if groups.get("tool") is not None or groups.get("copy") is not None:
            line_start = match.start() + len(match[0]) - len(match[0].lstrip(" \t"))
            if first_word() < line_start:  # a line within a statement
                at = line_start + 1
                continue
            if groups.get("copy") is not None:
                copied = re.compile(r"^\\\.[ \t\r]*$", re.M).search(text, at)
                at = len(text) if copied is None else copied.end()
            elif match[0].rstrip("\r").endswith("-") and not match[0].lstrip().upper().startswith(
                ("PROMPT", "REM")
            ):
                at = _end_of_command(text, at)
            start = at
        elif groups.get("tag") is not None:  # the body of a function, up to the same mark
            close_at = text.find(match[0], at)
            at = len(text) if close_at < 0 else close_at + len(match[0])
        elif groups.get("delimiter") is not None:
            start = at
            if match["delimiter"] != ";":  # what is between two of these is a routine
                end_marker = re.compile(r"^[ \t]*DELIMITER[ \t]+;[^\n]*", re.I | re.M).search(text, at)
                start = at = len(text) if end_marker is None else end_marker.end()
        elif match["end"]:
            yield from between(match.start())
            start = at
    yield from between(len(text))


def _end_of_command(text: str, at: int) -> int:
    """Return the end of a SQL*Plus command whose lines end with a hyphen."""
    while True:
        end = text.find("\n", at + 1)
        end = len(text) if end < 0 else end
        if end >= len(text) or not text[at:end].rstrip().endswith("-"):
            return end
        at = end


def _split_definitions(statement: str, dialect: str) -> Iterator[str]:
    """Split a chunk with several definitions; tables of CREATE SCHEMA get the name of the schema."""
    statement_tokens = tokens(statement, dialect)
    starts, depth = [0], 0
    for index, token in enumerate(statement_tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "sign" else 0
        if index and depth <= 0 and token.kind == "word":
            depth = 0
            previous = statement_tokens[index - 1]
            is_new_line = "\n" in statement[previous.end : token.start]
            begins = DEFINITION.match(statement, token.start) or (
                is_new_line and _STATEMENT_START.match(statement, token.start)
            )
            if begins and previous.keyword not in _NOT_BEFORE_STATEMENT:
                starts.append(token.start)
    schema = re.match(
        rf"CREATE\s+SCHEMA\s+(?:IF\s+NOT\s+EXISTS\s+)?(?!AUTHORIZATION\b)({NAME})", statement, re.I
    )
    for start, end in zip(starts, [*starts[1:], len(statement)], strict=True):
        definition = statement[start:end].strip()
        if schema is not None and start:
            header = re.match(
                rf"((?:CREATE\s+{_TABLE_WORDS}|ALTER\s+)TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?)(?={NAME}\s*\()",
                definition,
                re.I,
            )
            definition = (
                definition if header is None else f"{header[1]}{schema[1]}.{definition[header.end() :]}"
            )
        if definition:
            yield definition


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
    def keyword(self) -> str:
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
    names = _QUOTED_NAMES.removeprefix("|")
    return re.compile(
        rf"(?P<quiet>\s++|{quiet})|(?P<text>{quoted}|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)|(?P<name>{names})"
        r"|(?P<word>[\w$#@&]++)|(?P<sign>::|.)",
        re.S,
    )


_TOKEN: Final = _token_pattern(_COMMENT, _QUOTED)
_MYSQL_TOKEN: Final = _token_pattern(rf"{_COMMENT}|\#[^\n]*+", _MYSQL_QUOTED)


def tokens(statement: str, dialect: str) -> list[Token]:
    """Return the tokens of a statement, without comments."""
    pattern = _MYSQL_TOKEN if dialect == "mysql" else _TOKEN
    found: list[Token] = []
    for match in pattern.finditer(statement):
        kind = next((item for item in _KINDS if match[item] is not None), None)
        if kind is not None:
            found.append(Token(kind, match[0], match.start(), match.end()))
    return found


def split_at_commas(found: Sequence[Token]) -> list[list[Token]]:
    """Split tokens at the commas that are not inside brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in found:
        depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "sign" else 0
        if token.kind == "sign" and token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]
