"""Parse a formula to a syntax tree: a lexer that only accepts the tokens of formulas, Python's parser, a whitelist.

The lexer comes first because Python's parser normalizes names, warns about escapes and can be driven into deep
recursion. It also handles the three differences from Python: ``lines[*]``, ``if(...)`` as a function, and line breaks.
Every replacement has the same length as the original, so that positions stay valid.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from webapp import limits
from webapp.engine.formulas.types import FormulaError

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    | (?P<number>[0-9][0-9_]*(?:\.[0-9][0-9_]*)?|\.[0-9][0-9_]*)
    | (?P<name>[^\W\d]\w*)
    | (?P<text>"(?:[^"\\\x00-\x08\x0a-\x1f\ud800-\udfff]|\\.)*"|'(?:[^'\\\x00-\x08\x0a-\x1f\ud800-\udfff]|\\.)*')
    | (?P<sign>\*\*|//|<=|>=|==|!=|[-+*/%<>()\[\],.:])""",
    re.X,
)
_ESCAPES = re.compile(r"\\(?![\\'\"ntr])(.)")
_KEYWORDS = {"True", "False", "None", "and", "or", "not", "in", "is", "if", "else"}
_UNSUPPORTED_WORDS = {
    "lambda", "await", "async", "yield", "for", "while", "import", "from", "def", "class", "return", "assert", "del",
    "exec", "global", "nonlocal", "pass", "raise", "try", "with", "as", "break", "continue", "except", "finally",
    "elif",
}  # fmt: skip
_OPEN, _CLOSE = {"(": ")", "[": "]"}, {")", "]"}
_ALTERNATIVES = {
    "&&": "Use `and`.", "||": "Use `or`.", "!": "Use `not`.", "=": "Use `==` to compare.", "&": "Join texts with `+`.",
    "^": "Use `power(x, n)` or `x ** n`.", "<>": "Use `!=`.", "?": "Use `a if condition else b`.", ";": "Use a comma.",
    "{": "Write field names without braces.", "|": "Use `or`.", "~": "Use `not`.",
    "#": "Comments are not supported.", "@": "", "\\": "A formula can continue on the next line.",
}  # fmt: skip


PositionedNode: TypeAlias = ast.expr | ast.keyword
"""The nodes of a tree that have a position."""


@dataclass(frozen=True, slots=True)
class ParsedFormula:
    """A formula's tree, and information that is not part of it: numbers as written, and original positions."""

    tree: ast.expr
    numbers: dict[int, str]
    """Decimal numbers as written, by position."""
    stars: frozenset[int]
    """Positions of the ``*`` of ``[*]``."""
    text: str

    def position_of(self, node: PositionedNode) -> int:
        """Return the position of ``node``, in characters from 1."""
        # One bracket was put before the text; columns count bytes of UTF-8.
        if self.text.isascii():
            return max(1, node.col_offset)
        return len(f"({self.text}".encode()[: node.col_offset].decode())


@dataclass(slots=True)
class _LexerResult:
    """The result of the lexer."""

    pieces: list[str]
    numbers: dict[int, str]
    stars: set[int]
    open: list[tuple[str, int]]
    nodes: int = 0
    prefixes: int = 0
    last: str = ""


def parse(text: str) -> ParsedFormula:
    """The tree of a formula. Raises `FormulaError` with the position of what is wrong."""
    if len(text) > limits.MAX_FORMULA_CHARS:
        message = (
            f"A formula has at most {limits.MAX_FORMULA_CHARS:,} characters; this one has {len(text):,}."
        )
        raise FormulaError(
            "too_long", message, limits.MAX_FORMULA_CHARS + 1, "Split it into several hidden fields."
        )
    lexed = _lex(text)
    clean = "".join(lexed.pieces)
    try:
        tree = ast.parse(f"({clean}\n)", mode="eval").body
    except SyntaxError as error:
        at = max(1, min((error.offset or 2) - 1, len(clean) + 1))
        rest = clean[at - 1 :].strip()[:20]
        message = f"Syntax error near `{rest}`." if rest else "The formula is incomplete."
        raise FormulaError("bad_formula", message, at, "") from None
    except (ValueError, MemoryError, RecursionError):
        raise _too_deep(0) from None
    source = ParsedFormula(tree, lexed.numbers, frozenset(lexed.stars), clean)
    _check_tree(source)
    return source


def _lex(text: str) -> _LexerResult:
    lexed, at = _LexerResult([], {}, set(), []), 0
    if not text.strip():
        raise FormulaError("bad_formula", "A formula cannot be empty.", 1, "Enter one, such as `price * 2`.")
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unknown(text, at)
        piece, kind = match[0], match.lastgroup
        if kind is None or kind == "space":
            piece = " " * len(piece)
        else:
            piece = _TOKEN_READERS[kind](lexed, text, piece, at)
            lexed.nodes += 1
            if lexed.nodes > limits.MAX_FORMULA_PARTS:
                message = (
                    f"A formula has at most {limits.MAX_FORMULA_PARTS:,} names, numbers, texts and operators."
                )
                raise FormulaError("too_complex", message, at + 1, "Split it into several hidden fields.")
            lexed.prefixes = lexed.prefixes + 1 if piece in ("-", "+", "not") else 0
            if lexed.prefixes > limits.MAX_FORMULA_DEPTH:
                raise _too_deep(at)
            lexed.last = piece
        lexed.pieces.append(piece)
        at = match.end()
    if lexed.open:
        sign, where = lexed.open[-1]
        raise FormulaError(
            "bad_formula", f"This `{sign}` is not closed.", where + 1, f"Add a `{_OPEN[sign]}`."
        )
    return lexed


def _unknown(text: str, at: int) -> FormulaError:
    for length in (2, 1):
        if text[at : at + length] in _ALTERNATIVES:
            symbol = text[at : at + length]
            return FormulaError(
                "bad_formula", f"A formula cannot contain `{symbol}` here.", at + 1, _ALTERNATIVES[symbol]
            )
    symbol = text[at]
    if symbol in "\"'":
        return FormulaError(
            "bad_formula", "The closing quote is missing.", at + 1, f"Add a `{symbol}` on the same line."
        )
    character = f"U+{ord(symbol):04X}" if not symbol.isprintable() or ord(symbol) > 126 else symbol
    hint = "Use letters of other alphabets only in texts and field names."
    return FormulaError("bad_formula", f"A formula cannot contain {character} here.", at + 1, hint)


def _number(lexed: _LexerResult, text: str, piece: str, at: int) -> str:
    after = text[at + len(piece) : at + len(piece) + 1]
    if after and (after.isalnum() or after in "_."):
        hint = "Write numbers in full: 1500 or 0.25."
        raise FormulaError("bad_number", "This number is not valid.", at + 1, hint)
    plain = piece.replace("_", "")
    integer_part, _, fraction = plain.partition(".")
    if (
        len(integer_part.lstrip("0")) + len(fraction) > limits.MAX_FORMULA_DIGITS
        or len(fraction) > limits.MAX_DECIMALS
    ):
        message = (
            f"A number has at most {limits.MAX_FORMULA_DIGITS} digits, of which {limits.MAX_DECIMALS} "
            "can be decimal places."
        )
        raise FormulaError("bad_number", message, at + 1, "Write fewer digits.")
    if piece.endswith("_") or "__" in piece or (len(integer_part) > 1 and integer_part.startswith("0")):
        raise FormulaError("bad_number", "This number is not valid.", at + 1, "Remove the leading zeros.")
    lexed.numbers[at + 1] = plain
    return piece


def _name(lexed: _LexerResult, text: str, piece: str, at: int) -> str:
    if piece in _UNSUPPORTED_WORDS:
        raise FormulaError(
            "not_allowed", f"A formula cannot contain {piece}.", at + 1, "A formula is a single expression."
        )
    if text[at + len(piece) : at + len(piece) + 1] in ("'", '"') and piece not in _KEYWORDS:
        hint = "Remove the prefix; join texts with +, or use {{field}} in a field of type derived."
        raise FormulaError("not_allowed", f"Texts with the prefix {piece} are not supported.", at + 1, hint)
    if unicodedata.normalize("NFKC", piece) != piece:
        message = f"{piece} looks like {unicodedata.normalize('NFKC', piece)}, but is a different name."
        raise FormulaError("not_allowed", message, at + 1, f'Write field("{piece}").')
    if "__" in piece and piece.startswith("_"):
        raise FormulaError(
            "not_allowed", f"The name {piece} is not available here.", at + 1, "Use the names of fields."
        )
    if piece == "if" and text[at + 2 :].lstrip()[:1] == "(" and _expects_operand(lexed.last):
        return "IF"  # found as the function if_: names of functions are not case-sensitive
    return piece


def _expects_operand(last: str) -> bool:
    return last in ("", "and", "or", "not", "in", "is", "if", "else") or last in _SIGNS_BEFORE


_SIGNS_BEFORE = {"(", "[", ",", "+", "-", "*", "/", "//", "%", "**", "<", ">", "<=", ">=", "==", "!=", ":"}


def _text(lexed: _LexerResult, text: str, piece: str, at: int) -> str:
    wrong = _ESCAPES.search(piece.replace("\\\\", "  "))
    if wrong:
        hint = "Write \\\\ for a backslash."
        message = f"The escape sequence \\{wrong[1]} is not supported in texts."
        raise FormulaError("bad_escape", message, at + wrong.start() + 1, hint)
    if lexed.last[:1] in ("'", '"'):
        raise FormulaError(
            "bad_formula", "There is no operator between these two texts.", at + 1, "Join them with +."
        )
    return piece


def _sign(lexed: _LexerResult, text: str, piece: str, at: int) -> str:
    if piece in _OPEN:
        lexed.open.append((piece, at))
        if len(lexed.open) > limits.MAX_FORMULA_DEPTH:
            raise _too_deep(at)
    elif piece in _CLOSE:
        if not lexed.open or _OPEN[lexed.open[-1][0]] != piece:
            raise FormulaError(
                "bad_formula", f"This `{piece}` has no matching opening bracket.", at + 1, "Remove it."
            )
        lexed.open.pop()
    elif piece == "*" and lexed.last == "[" and text[at + 1 :].lstrip()[:1] == "]":
        lexed.stars.add(at + 1)
        return "0"
    elif piece == ":" and (not lexed.open or lexed.open[-1][0] != "["):
        raise FormulaError(
            "not_allowed", "A colon is not allowed here.", at + 1, "Slices are written text[0:3]."
        )
    elif piece in ("*", "**") and lexed.last in ("(", ","):
        raise FormulaError(
            "not_allowed",
            f"Arguments cannot be unpacked with {piece} here.",
            at + 1,
            "List the arguments individually.",
        )
    return piece


def _too_deep(at: int) -> FormulaError:
    message = f"A formula nests at most {limits.MAX_FORMULA_DEPTH} levels deep."
    return FormulaError("too_complex", message, at + 1, "Split it into several hidden fields.")


_TOKEN_READERS: dict[str, Callable[[_LexerResult, str, str, int], str]] = {
    "number": _number, "name": _name, "text": _text, "sign": _sign,
}  # fmt: skip


NODES = (
    ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Constant, ast.Attribute,
    ast.Subscript, ast.Slice, ast.List,
)  # fmt: skip
"""Yield all nodes of a formula."""

OPERATORS = (
    ast.And, ast.Or, ast.Not, ast.USub, ast.UAdd, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.Load,
)  # fmt: skip

_SYNTAX_NAMES = {
    "Lambda": "lambda", "Tuple": "A comma", "GeneratorExp": "A loop", "ListComp": "A loop", "NamedExpr": ":=",
    "JoinedStr": "An f-string", "Starred": "*", "Await": "await", "Dict": "{}", "Set": "{}", "Yield": "yield",
}  # fmt: skip


_CONSTANTS = (str, int, float, bool, type(None))


def _check_tree(source: ParsedFormula) -> None:
    """Reject nodes that are not in the whitelist, and trees that are too deep."""
    pending: list[tuple[ast.AST, int]] = [(source.tree, 1)]
    while pending:
        node, depth = pending.pop()
        if isinstance(node, OPERATORS):
            continue
        at = source.position_of(node) if isinstance(node, PositionedNode) else 1
        if not isinstance(node, NODES):
            what = _SYNTAX_NAMES.get(type(node).__name__, type(node).__name__)
            raise FormulaError(
                "not_allowed", f"{what} is not allowed in a formula.", at, "A formula is a single expression."
            )
        if depth > limits.MAX_FORMULA_DEPTH:
            raise _too_deep(at - 1)
        if isinstance(node, ast.Constant) and type(node.value) not in _CONSTANTS:
            raise FormulaError(
                "not_allowed", "This value is not allowed in a formula.", at, "Write a number or text."
            )
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name):
                hint = "Call functions by their name: upper(name)."
                raise FormulaError("not_allowed", "Only functions can be called.", at, hint)
            if node.keywords:
                where = source.position_of(node.keywords[0])
                raise FormulaError(
                    "not_allowed",
                    "Named arguments are not supported.",
                    where,
                    "Pass the arguments in their order.",
                )
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            raise FormulaError(
                "not_allowed", f"There is no field {node.attr} here.", at, "Use the names of fields."
            )
        elif isinstance(node, ast.List) and len(node.elts) > limits.MAX_FORMULA_LIST:
            message = (
                f"A list has at most {limits.MAX_FORMULA_LIST} elements; this one has {len(node.elts):,}."
            )
            raise FormulaError("too_complex", message, at, "Use the field type mapped for long lists.")
        pending.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
