"""Whether a statement for SQL Server, Oracle or Db2 only reads.

None of them has a session that can never write: SQL Server carries out several statements of one text, with nothing
between them; Oracle takes PL/SQL with transactions of its own inside a query; in Db2 a SELECT may contain an INSERT.
So the text is read as the server reads it, quoted texts, names and comments apart, and rejected where a word outside of
them changes something. What is ambiguous is rejected. What a function that is called does cannot be seen here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final

from webapp.connectors.base import ConnectorError

_CHANGES: Final = frozenset(
    "insert update delete merge truncate into drop alter create grant revoke deny exec execute call declare begin"
    " commit rollback save savepoint set use kill shutdown backup restore dbcc waitfor trigger bulk nextval".split()
)
_OF_KIND: Final[Mapping[str, frozenset[str]]] = {
    # Statements need no sign between them, so whatever begins one (Transact-SQL, "Statements"), and is reserved.
    "mssql": frozenset(
        "add checkpoint close conversation deallocate disable dump enable goto if load lineno open opendatasource"
        " openquery openrowset print raiserror readtext receive reconfigure return revert setuser throw updatetext"
        " while writetext tablockx updlock xlock".split()
    ),
    # WITH FUNCTION and WITH PROCEDURE (PL/SQL), inline external tables, which may run programs of the server.
    "oracle": frozenset(["external", "function", "lock", "pragma", "procedure"]),
    "db2": frozenset(["lock"]),
}  # fmt: skip
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?")
_TOKEN: Final = re.compile(
    r"(?P<space>\s+)|(?P<line>--[^\n]*)|(?P<comment>/\*)|(?P<text>')|(?P<name>\")|(?P<bracket>\[)"
    r"|(?P<number>\.?[0-9](?:(?<=[eE])[+-](?=[0-9])|[\w.$#@])*)|(?P<word>[^\W\d][\w$#@]*)|(?P<sign>.)",
    re.S,
)
_COMMENT_SIGN: Final = re.compile(r"/\*|\*/")
_ORACLE_CLOSERS: Final = {"[": "]", "(": ")", "{": "}", "<": ">"}
# Signs that a server whose character set lacks them may turn into an apostrophe.
_APOSTROPHES: Final = frozenset("\u02b9\u02bb\u02bc\u02bd\u2018\u2019\u201a\u201b\u2032\uff07")
_LINE_ENDS: Final = re.compile("\r(?!\n|$)|[\u0085\u2028\u2029]")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def check_query(kind: str, text: str) -> None:
    """Raise `ConnectorError` (reason `bad_query`) where a text is anything but one SELECT."""
    words = list(_words(kind, text))
    start = next((word for word in words if word != "("), "")
    if start not in ("select", "with"):
        raise _rejected("It does not begin with SELECT or WITH.")
    _check(kind, words)


def check_condition(kind: str, text: str) -> None:
    """Raise `ConnectorError` (reason `bad_query`) where a text is more than a condition."""
    _check(kind, list(_words(kind, text)))


def _check(kind: str, words: list[str]) -> None:
    depth = 0
    for place, word in enumerate(words):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == ";":
            raise _rejected("It contains a semicolon.")
        if depth < 0:
            raise _rejected("It closes a parenthesis that it does not open.")
        if word in _CHANGES or word in _OF_KIND[kind]:
            raise _rejected(f"It contains the word {word.upper()}.")
        if word == "next" and words[place + 1 : place + 2] == ["value"]:
            raise _rejected("It takes the next value of a sequence.")
    if depth:
        raise _rejected("It opens a parenthesis that it does not close.")


def _rejected(problem: str) -> ConnectorError:
    return ConnectorError(
        f"The query does more than read. {problem}",
        reason="bad_query",
        hint="Write one SELECT; put names that are words of SQL in quotes.",
    )


def _words(kind: str, text: str) -> Iterator[str]:
    """The words, in lower case, and the signs outside of quoted texts, quoted names and comments. Raises
    `ConnectorError` for what servers may read in different ways."""
    if _CONTROLS.search(text):
        raise _rejected("It contains a control character.")
    if kind != "mssql" and _APOSTROPHES & set(text):
        raise _rejected("It contains a sign that the server may read as an apostrophe.")
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None
        token, at = found[0], found.end()
        match found.lastgroup:
            case "line":
                if _LINE_ENDS.search(token):
                    raise _rejected("A comment in it may end before its line does.")
            case "comment":
                at = _after_comment(text, at)
            case "text":
                at = _after_quote(text, at, "'")
            case "name":
                at = _after_quote(text, at, '"')
            case "bracket" if kind == "mssql":
                at = _after_quote(text, at, "]")
            case "number":
                if not _NUMBER.fullmatch(token):  # servers read `1delete` as a number and a word
                    raise _rejected(f'"{token[:20]}" is no number.')
            case "word":
                word = unicodedata.normalize("NFKC", token).lower()
                if kind == "oracle" and word in ("q", "nq") and text[at : at + 1] == "'":
                    at = _after_oracle_quote(text, at + 1)
                else:
                    if any(not one.isascii() and unicodedata.category(one)[0] not in "LM" for one in token):
                        raise _rejected(f'Put the name "{token[:20]}" in quotes.')
                    yield word
            case "sign" | "bracket":
                if not token.isascii():
                    raise _rejected(f'It contains "{token}" outside of quotes.')
                yield token


def _after_quote(text: str, at: int, sign: str) -> int:
    """Where a quoted text or name ends whose sign stands for itself when it is written twice."""
    while (end := text.find(sign, at)) != -1:
        if text[end + 1 : end + 2] != sign:
            return end + 1
        at = end + 2
    raise _rejected("A quoted text or name in it has no end.")


def _after_oracle_quote(text: str, at: int) -> int:
    """Where `q'[...]'` ends (Oracle, "Text Literals"); `at` is behind the apostrophe."""
    opener = text[at : at + 1]
    if not opener or opener.isspace():
        raise _rejected("A quoted text in it has no end.")
    end = text.find(_ORACLE_CLOSERS.get(opener, opener) + "'", at + 1)
    if end == -1:
        raise _rejected("A quoted text in it has no end.")
    return end + 2


def _after_comment(text: str, at: int) -> int:
    """Where a comment ends; `at` is behind its beginning. Some servers nest comments, others do not."""
    found = _COMMENT_SIGN.search(text, at)
    if found is None:
        raise _rejected("A comment in it has no end.")
    if found[0] == "/*":
        raise _rejected("It has a comment in a comment.")
    return found.end()
