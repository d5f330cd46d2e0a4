"""Functions of texts. A blank argument makes the result blank, except in `concat`.

Numbers, dates and truth values are converted to text. Regular expressions in formulas are evaluated by RE2.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine import budget
from webapp.engine.formulas import operators, reductions, text_kernels, vectors
from webapp.engine.formulas import types as formulas_types
from webapp.engine.formulas.declarations import Call, function
from webapp.engine.formulas.nodes import Frame, Node, check_length, elementwise
from webapp.engine.formulas.vectors import Lists, Vector

# Letters that no decomposition takes to ASCII.
_LETTERS = (
    ("ß", "ss"), ("æ", "ae"), ("Æ", "AE"), ("œ", "oe"), ("Œ", "OE"), ("ø", "o"), ("Ø", "O"), ("ł", "l"), ("Ł", "L"),
    ("đ", "d"), ("Đ", "D"), ("ı", "i"), ("þ", "th"), ("Þ", "Th"), ("ð", "d"), ("Ð", "D"),
)  # fmt: skip


def without_accents(texts: pa.Array) -> pa.Array:
    """Texts without accents; letters that have none to lose are spelled out: ß is ss."""
    is_not_ascii = pc.fill_null(pc.invert(pc.string_is_ascii(texts)), False)
    texts_with_letters = texts.filter(is_not_ascii)  # mostly few
    if not len(texts_with_letters):
        return texts
    for letter, plain in _LETTERS:
        texts_with_letters = pc.replace_substring(texts_with_letters, letter, plain)
    plainer = pc.replace_substring_regex(pc.utf8_normalize(texts_with_letters, "NFD"), r"\p{Mn}", "")
    return pc.replace_with_mask(texts, is_not_ascii, pc.utf8_normalize(plainer, "NFC"))


def to_ascii(texts: pa.Array) -> pa.Array:
    """Texts without accents, and without what is not ASCII then."""
    return pc.replace_substring_regex(without_accents(texts), r"[^\x00-\x7f]", "")


_REPEATED = re.compile(r"(\))?\{([0-9]+)(?:,([0-9]*))?\}")
_UNICODE_CLASSES = re.compile(r"\\[pP]|\(\?[a-z]*i")  # classes of Unicode take many states


def constant_pattern(call: Call, index: int) -> str:
    """A constant regular expression. RE2 takes time in proportion to the text, for any pattern; but it compiles a
    pattern for every block, so patterns that take long to compile are rejected."""
    pattern = call.fixed_text(index)
    size, factor = len(pattern), 40 if _UNICODE_CLASSES.search(pattern) else 1
    for group, minimum, maximum in _REPEATED.findall(pattern):
        times = max(1, int((maximum or minimum)[:4]))
        size, factor = (size, factor * times) if group else (size + times, factor)
    if size * factor > limits.MAX_PATTERN_SIZE:
        raise call.error(
            index,
            "bad_pattern",
            "This regular expression has too many repetitions.",
            "Lower the counts in braces, such as {10}.",
        )
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid:
        hint = "Use RE2 syntax, without lookaround and backreferences."
        raise call.error(index, "bad_pattern", "This regular expression is not valid.", hint) from None
    return pattern


# ruff: noqa: D103 - the declaration above each function says what it does


_MAX_CHARS = limits.MAX_FORMULA_TEXT


def _times(longest: int | None, factor: int) -> int | None:
    return None if longest is None else longest * factor


def _per_character(call: Call, kernel: text_kernels.TextFunction) -> Node:
    """The text letter by letter; some become two (ß, æ)."""
    x = call.text(0)
    return call.apply(
        formulas_types.text(_times(x.element_kind.max_length, 2)), text_kernels.text_kernel(kernel), x
    )


@function("upper(text)", "The text in uppercase.", 'upper("ann")', "ANN")
def upper(call: Call) -> Node:
    return _per_character(call, pc.utf8_upper)


@function("lower(text)", "The text in lowercase.", 'lower("ANN")', "ann")
def lower(call: Call) -> Node:
    return _per_character(call, pc.utf8_lower)


@function("title(text)", "The text with each word capitalized.", 'title("new york")', "New York")
def title(call: Call) -> Node:
    return _per_character(call, pc.utf8_title)


@function("trim(text)", "The text without leading and trailing spaces.", 'trim("  Ann ")', "Ann")
def trim(call: Call) -> Node:
    x = call.text(0)
    return call.apply(
        formulas_types.text(x.element_kind.max_length), text_kernels.text_kernel(pc.utf8_trim_whitespace), x
    )


@function(
    "length(text)", "Number of characters of a text, or of elements of a list.", 'length("Ann")', 3, ("len",)
)
def length(call: Call) -> Node:
    node = call.args[0]
    if node.kind.name == "list" and (node.kind.element.name == "object" or node.kind.origin is None):
        return reductions.element_count(node, call.position)
    x = call.text(0)
    kind = formulas_types.number(
        0, 0, x.element_kind.max_length if x.element_kind.max_length is not None else 2**31
    )
    return call.apply(kind, text_kernels.value_kernel(pc.utf8_length), x)


@function(
    "replace(text, old, new)",
    "The text with every `old` replaced by `new`.",
    'replace("a-b-c", "-", "/")',
    "a/b/c",
)
def replace(call: Call) -> Node:
    x, old, new = call.text(0), call.fixed_text(1), call.fixed_text(2, empty=True)
    longest = x.element_kind.max_length
    if longest is not None:
        longest = max(longest, longest // len(old) * len(new) + longest % len(old))
    if len(new) <= len(old):
        longest = x.element_kind.max_length

    def swap(texts: pa.Array) -> pa.Array:
        if len(new) > len(old):
            found = pc.count_substring(texts, old)
            counts = pc.fill_null(found, 0).to_numpy(zero_copy_only=False).astype(np.int64)
            text_kernels.check_lengths(text_kernels.char_lengths(texts) + counts * (len(new) - len(old)))
        return pc.replace_substring(texts, old, new)

    kernel = text_kernels.text_kernel(swap)
    return (
        call.apply_text(longest, kernel, x)
        if len(new) > len(old)
        else call.apply(formulas_types.text(longest), kernel, x)
    )


@function("left(text, count)", "The first `count` characters.", 'left("Rowsmith", 3)', "Row")
def left(call: Call) -> Node:
    count = call.fixed_integer(1, 0, _MAX_CHARS)
    return _sliced(call, 0, count, count)


@function("right(text, count)", "The last `count` characters.", 'right("Rowsmith", 5)', "smith")
def right(call: Call) -> Node:
    count = call.fixed_integer(1, 0, _MAX_CHARS)
    return _sliced(call, -count, None, count) if count else _sliced(call, 0, 0, 0)


@function(
    "mid(text, start, count)",
    "`count` characters from position `start`; the first position is 1.",
    'mid("Rowsmith", 4, 2)',
    "sm",
    ("substring", "substr"),
)
def mid(call: Call) -> Node:
    start, count = call.fixed_integer(1, 1, 2**30), call.fixed_integer(2, 0, _MAX_CHARS)
    return _sliced(call, start - 1, start - 1 + count, count)


def _sliced(call: Call, start: int, stop: int | None, max_length: int) -> Node:
    return sliced(call.text(0), start, stop, call.position, max_length)


def sliced(x: Node, start: int, stop: int | None, at: int, max_length: int | None = None) -> Node:
    """Characters ``start`` to ``stop`` of a text, counted from 0, from the end where negative."""
    lengths = [bound for bound in (x.element_kind.max_length, max_length) if bound is not None]
    kind = formulas_types.text(min(lengths) if lengths else None)
    cut = text_kernels.text_kernel(lambda texts: pc.utf8_slice_codeunits(texts, start, stop))
    return elementwise([x], kind, cut, at)


@function(
    "split_part(text, separator, place)",
    "One part of a text with separators; the first is 1, the last -1.",
    'split_part("a/b/c", "/", 2)',
    "b",
)
def split_part(call: Call) -> Node:
    x, sign = call.text(0), call.fixed_text(1)
    number = call.fixed_integer(2, -1000, 1000)
    if not number:
        raise call.error(2, "out_of_range", "Positions start at 1, or at -1 from the end.")
    index = number - 1 if number > 0 else number

    def part(texts: pa.Array) -> pa.Array:
        _check_parts(texts, sign)
        found = vectors.load_lists(pc.split_pattern(texts, sign), _TEXTS)
        positions = vectors.element_indices(found, index)
        return text_kernels.decoded_texts(vectors.take(_TEXTS.element, found.vector, positions))

    return call.apply(formulas_types.text(x.element_kind.max_length), text_kernels.text_kernel(part), x)


_TEXTS = formulas_types.list_of(formulas_types.text(), None)
_PART_BYTES = 16  # an offset in the list of parts, one in the texts, and a copy of both


def _check_parts(texts: pa.Array, sign: str) -> None:
    """Raise `MemoryBudgetError` if a list of the parts exceeds the budget."""
    if budget.size_of(texts) * _PART_BYTES > limits.BLOCK_BYTES:
        found = pc.sum(pc.count_substring(texts, sign)).as_py() or 0
        budget.check((found + len(texts)) * _PART_BYTES)


@function(
    "split(text, separator)",
    "The parts of a text with separators, as a list.",
    'split("a b", " ")',
    ["a", "b"],
)
def split(call: Call) -> Node:
    x, sign = call.text(0), call.fixed_text(1)
    if x.kind.name == "list":
        raise call.error(0, "wrong_type", "Lists of lists are not supported.")
    kind = formulas_types.list_of(formulas_types.text(x.element_kind.max_length), object())

    def run(frame: Frame) -> Lists:
        texts = vectors.broadcast_text(x.vector(frame), frame.n)
        _check_parts(texts, sign)
        return frame.charge(vectors.load_lists(pc.split_pattern(texts, sign), _TEXTS))

    return Node(kind, run, call.position)


@function(
    "concat(text, ...)", "The texts joined together; blank ones are ignored.", 'concat("a", 1, null)', "a1"
)
def concat(call: Call) -> Node:
    return operators.join_texts([call.text(index) for index in range(len(call.args))], call.position, "")


@function(
    "pad_left(text, width, fill = ' ')",
    "The text padded on the left to a width.",
    'pad_left(7, 4, "0")',
    "0007",
    ("lpad",),
)
def pad_left(call: Call) -> Node:
    return _padded(call, pc.utf8_lpad, left=True)


@function(
    "pad_right(text, width, fill = ' ')",
    "The text padded on the right to a width.",
    'pad_right("ab", 4, ".")',
    "ab..",
    ("rpad",),
)
def pad_right(call: Call) -> Node:
    return _padded(call, pc.utf8_rpad, left=False)


def _padded(call: Call, pad: Callable[[pa.Array, int, str], pa.Array], *, left: bool) -> Node:
    x, width, fill = call.text(0), call.fixed_integer(1, 0, _MAX_CHARS), call.fixed_text(2, " ")
    if len(fill) != 1:
        raise call.error(2, "wrong_value", "`fill` must be a single character.")
    max_length = x.element_kind.max_length
    proof = x.proof.padded(fill, left=left) if x.proof else None
    longest = None if max_length is None else max(max_length, width)

    def padded(texts: pa.Array) -> pa.Array:
        budget.check(width * len(fill.encode()) * len(texts))
        return pad(texts, width, fill)

    return call.apply(formulas_types.text(longest), text_kernels.text_kernel(padded), x, proof=proof)


def _test(call: Call, test: Callable[[pa.Array, str], pa.Array]) -> Node:
    part = call.fixed_text(1)
    kernel_of_texts = text_kernels.value_kernel(lambda texts: test(texts, part))

    def kernel(n: int, value: Vector) -> Vector:
        return Vector(operators.is_true(kernel_of_texts(n, value)))

    return call.apply(formulas_types.BOOLEAN, kernel, call.text(0))


@function("contains(text, part)", "Whether the text contains the part.", 'contains("Rowsmith", "smi")', True)
def contains(call: Call) -> Node:
    return _test(call, pc.match_substring)


@function(
    "starts_with(text, part)",
    "Whether the text starts with the part.",
    'starts_with("Rowsmith", "Row")',
    True,
)
def starts_with(call: Call) -> Node:
    return _test(call, pc.starts_with)


@function(
    "ends_with(text, part)", "Whether the text ends with the part.", 'ends_with("Rowsmith", "Row")', False
)
def ends_with(call: Call) -> Node:
    return _test(call, pc.ends_with)


@function(
    "strip_accents(text)",
    "The text without accents; ß becomes ss, ø becomes o.",
    'strip_accents("Zoë Groß")',
    "Zoe Gross",
)
def strip_accents(call: Call) -> Node:
    return _per_character(call, without_accents)


@function(
    "ascii(text)",
    "The text without accents and without characters that are not ASCII.",
    'ascii("Zoë 東")',
    "Zoe ",
)
def ascii_(call: Call) -> Node:
    return _per_character(call, to_ascii)


@function(
    "slug(text)",
    "Lowercase letters and digits with hyphens, as in URLs.",
    'slug("Zoë & Co. KG")',
    "zoe-co-kg",
)
def slug(call: Call) -> Node:
    def made(texts: pa.Array) -> pa.Array:
        plain = pc.replace_substring_regex(pc.utf8_lower(to_ascii(texts)), "[^a-z0-9]+", "-")
        return pc.utf8_trim(plain, "-")

    return _per_character(call, made)


@function("initials(text)", "The first letter of each word.", 'initials("Ann Mary Lee")', "AML")
def initials(call: Call) -> Node:
    x = call.text(0)
    shorten = text_kernels.text_kernel(
        lambda texts: pc.replace_substring_regex(texts, r"\s*(\S)\S*\s*", r"\1")
    )
    return call.apply(formulas_types.text(x.element_kind.max_length), shorten, x)


@function("reverse(text)", "The characters from last to first.", 'reverse("abc")', "cba")
def reverse(call: Call) -> Node:
    x = call.text(0)
    proof = x.proof and type(x.proof)(x.proof.distinct_count, x.proof.alphabet, x.proof.width)
    return call.apply(
        formulas_types.text(x.element_kind.max_length),
        text_kernels.text_kernel(pc.utf8_reverse),
        x,
        proof=proof,
    )


@function("repeat(text, count)", "The text repeated `count` times.", 'repeat("ab", 3)', "ababab")
def repeat(call: Call) -> Node:
    x, count = call.text(0), call.fixed_integer(1, 0, _MAX_CHARS)
    longest = _times(x.element_kind.max_length, count)
    check_length(longest, call.position)

    def again(texts: pa.Array) -> pa.Array:
        text_kernels.check_lengths(text_kernels.char_lengths(texts) * count)
        return pc.binary_repeat(texts, count)

    return call.apply(formulas_types.text(longest), text_kernels.text_kernel(again), x)


@function(
    "regex_replace(text, pattern, new)",
    "The text with every match of a regular expression replaced by `new`; \\\\1 is its first group.",
    'regex_replace("a1b22", "[0-9]+", "#")',
    "a#b#",
)
def regex_replace(call: Call) -> Node:
    x, pattern, new = call.text(0), constant_pattern(call, 1), call.fixed_text(2, empty=True)
    groups = [int(number) for number in re.findall(r"\\([0-9])", new)]
    if groups and max(groups) > pattern.count("("):
        raise call.error(2, "bad_pattern", f"The pattern has no group {max(groups)}.")
    try:
        pc.replace_substring_regex(pa.array(["x"]), pattern, new)
    except pa.ArrowInvalid:
        raise call.error(
            2, "bad_pattern", "The replacement is not valid.", "Write \\\\1 for the first group."
        ) from None

    def swap(texts: pa.Array) -> pa.Array:
        sizes = text_kernels.char_lengths(texts)
        largest = (sizes + 1) * len(new) + sizes * (len(groups) + 1)
        if largest.max(initial=0) > limits.MAX_FORMULA_TEXT or largest.sum() > limits.BLOCK_BYTES:
            found = pc.fill_null(pc.count_substring_regex(texts, pattern), 0)
            counts = found.to_numpy(zero_copy_only=False).astype(np.int64)
            text_kernels.check_lengths(sizes * (len(groups) + 1) + counts * len(new))
        return pc.replace_substring_regex(texts, pattern, new)

    return call.apply(formulas_types.text(), text_kernels.text_kernel(swap), x)


@function(
    "matches(text, pattern)",
    "Whether a regular expression matches anywhere in the text.",
    'matches("A-17", "^[A-Z]-[0-9]+$")',
    True,
)
def matches(call: Call) -> Node:
    constant_pattern(call, 1)
    return _test(call, pc.match_substring_regex)


@function(
    "format_number(number, places = 0, thousands = ',', point = '.')",
    "A number formatted with thousands separators and decimal places.",
    "format_number(1234567.891, 2)",
    "1,234,567.89",
)
def format_number(call: Call) -> Node:
    x, places = call.number(0), call.fixed_integer(1, 0, limits.MAX_DECIMALS, 0)
    comma, point = call.fixed_text(2, ",", empty=True), call.fixed_text(3, ".")
    if len(comma) > 1 or "\\" in comma:
        raise call.error(2, "wrong_value", "`thousands` must be one character or empty.")
    drop = x.element_kind.places - places

    def kernel(n: int, value: Vector) -> Vector:
        units = vectors.round_digits(value, drop) if drop > 0 else vectors.scale(value, -drop)
        data = vectors.broadcast(units, n)
        integers, rest = np.divmod(np.abs(data), 10**places)
        digits = pa.array(integers).cast(pa.string())
        if comma:
            grouped = pc.replace_substring_regex(pc.utf8_reverse(digits), "([0-9]{3})", r"\1" + comma)
            digits = pc.utf8_ltrim(pc.utf8_reverse(grouped), comma)
        sign = pa.array(["", "-"]).take(pa.array((data < 0).astype(np.int8)))
        pieces = [sign, digits]
        if places:
            pieces += [
                pa.scalar(point),
                pc.utf8_slice_codeunits(pa.array(rest + 10**places).cast(pa.string()), 1),
            ]
        result = pc.binary_join_element_wise(*pieces, "")
        if units.valid is not None:
            valid = pa.array(np.broadcast_to(units.valid, (n,)))
            result = pc.if_else(valid, result, pa.scalar(None, pa.string()))
        return Vector(result)

    return call.apply_text(40, kernel, x)


@function("text(value)", "The value as text.", "text(12.50)", "12.50", ("str",))
def text(call: Call) -> Node:
    return call.text(0)
