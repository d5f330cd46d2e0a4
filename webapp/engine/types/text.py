"""Texts: words and sentences, random strings, masks, regular expressions, emoji, slogans, titles, slugs.

Running text looks up the words of all rows of a block in one pool, which has every word in each form that it can take:
inside a sentence, first of a sentence, last before each separator.
"""

from __future__ import annotations

import string
from abc import abstractmethod
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import random as engine_random
from webapp.engine import text
from webapp.engine.regex import patterns
from webapp.engine.regex.parser import Chars, Node, Repeat, Sequence
from webapp.engine.text_parts import join_parts
from webapp.engine.types.base import FieldType, IndexedType, OptionsModel, PoolType, max_text_length

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


_LOW_32 = np.uint64(0xFFFFFFFF)
_U32 = np.uint64(32)
_CHUNK_WORDS = 1 << 16  # measured: what they need then stays in the cache
MAX_UNIQUE_VALUES = 1 << 62


class WordPool:
    """``words`` (only letters, all different after case folding) followed by a blank, unchanged, and in the forms of
    sentences for each of ``separators``."""

    def __init__(self, words: pa.Array, separators: tuple[str, ...] = ()) -> None:
        texts = words.to_pylist()
        forms = [word + " " for word in texts] + texts
        if separators:
            forms += [word[:1].upper() + word[1:] + " " for word in texts]
            forms += [word + "." + separator for separator in separators for word in texts]
        self.size = len(texts)
        self.longest: int = pc.max(pc.utf8_length(words)).as_py()
        self._forms = pa.array(forms)

    def join_forms(self, forms: np.ndarray, ends: np.ndarray) -> pa.Array:
        """``string[n]``: forms (``int32[w]``, numbers in the pool) end to end, row i ending before ``ends[i]``."""
        form_texts = self._forms.take(pa.array(forms))
        _, starts, data = form_texts.buffers()
        offsets = np.zeros(ends.size + 1, np.int32)
        offsets[1:] = np.frombuffer(starts, np.int32)[ends]
        return pa.StringArray.from_buffers(ends.size, pa.py_buffer(offsets), data)


def draw_word_numbers(key: np.uint64, addresses: np.ndarray, places: int, size: int) -> np.ndarray:
    """``int32[n, places]``: uniform draws below ``size`` (under 2**20) for each of ``addresses`` (``uint64[n]``)."""
    halves = (places + 1) // 2
    at = addresses[:, None] * np.uint64(halves) + np.arange(halves, dtype=np.uint64)
    random = engine_random.bits(key, at)
    out = np.empty((addresses.size, 2 * halves), np.int32)
    out[:, ::2] = ((random >> _U32) * np.uint64(size)) >> _U32
    out[:, 1::2] = ((random & _LOW_32) * np.uint64(size)) >> _U32
    return out[:, :places]


def base_digits(index: np.ndarray, places: int, size: int) -> np.ndarray:
    """``int32[n, p]``: the first digits of ``index`` to base ``size``, as many of ``places`` as it can have."""
    used = unique_digit_count(places, size)
    out = np.empty((index.size, used), np.int32)
    for place in range(used):
        index, out[:, place] = np.divmod(index, np.uint64(size))
    return out


def unique_digit_count(places: int, size: int) -> int:
    """Return how many of ``places`` digits to base ``size`` fit into the numbers of unique values."""
    used = 1
    while used < places and size ** (used + 1) <= MAX_UNIQUE_VALUES:
        used += 1
    return used


def generate_words(
    pool: WordPool, key: np.uint64, rows: np.ndarray, count: int, index: np.ndarray | None = None
) -> pa.Array:
    """``string[n]``: ``count`` words with blanks between; ``index`` determines the first ones if it is set."""
    forms = draw_word_numbers(key, rows, count, pool.size)
    if index is not None:
        leading = base_digits(index, count, pool.size)
        forms[:, : leading.shape[1]] = leading
    forms[:, -1] += pool.size
    return pool.join_forms(forms.reshape(-1), np.arange(1, rows.size + 1) * count)


@dataclass(frozen=True, slots=True)
class TextLayout:
    """The structure of a text: ``paragraphs`` of ``min_sentences`` to ``max_sentences`` sentences, each of
    ``min_words`` to ``max_words`` words; ``separators`` are used between sentences, between paragraphs, and at the
    end."""

    paragraphs: int
    min_sentences: int
    max_sentences: int
    min_words: int
    max_words: int
    separators: tuple[str, str, str]

    def max_length(self, max_word_length: int) -> int:
        """Characters of the longest text when words have at most ``max_word_length``."""
        sentences = self.paragraphs * self.max_sentences
        return sentences * (self.max_words * (max_word_length + 1) + 1) + self.paragraphs * len(
            self.separators[1]
        )


def generate_sentences(
    pool: WordPool, key: np.uint64, rows: np.ndarray, layout: TextLayout, index: np.ndarray | None = None
) -> pa.Array:
    """``string[n]``: sentences in a layout; ``index`` determines the first words of each text if it is set."""
    step = max(1, _CHUNK_WORDS // (layout.paragraphs * layout.max_sentences * layout.max_words))
    if rows.size <= step:
        return _sentences(pool, key, rows, layout, index)
    parts = [slice(start, start + step) for start in range(0, rows.size, step)]
    texts = [_sentences(pool, key, rows[p], layout, None if index is None else index[p]) for p in parts]
    return pa.concat_arrays(texts)


def _sentences(
    pool: WordPool, key: np.uint64, rows: np.ndarray, layout: TextLayout, index: np.ndarray | None
) -> pa.Array:
    owner, slot, last = _sentence_positions(engine_random.derive(key, 1), rows, layout)
    addresses = (rows * np.uint64(layout.paragraphs * layout.max_sentences))[owner]
    addresses += slot.view(np.uint64)
    forms = draw_word_numbers(key, addresses, layout.max_words, pool.size)
    if index is not None:
        leading = base_digits(index, layout.min_words, pool.size)
        forms[slot == 0, : leading.shape[1]] = leading
    span = layout.max_words - layout.min_words + 1
    length = engine_random.below(engine_random.bits(engine_random.derive(key, 2), addresses), span).view(
        np.int64
    )
    length += layout.min_words
    forms[:, 0] += 2 * pool.size
    forms.reshape(-1)[np.arange(0, forms.size, layout.max_words) + (length - 1)] += (3 + last) * pool.size
    ends = np.zeros(length.size + 1, np.int64)
    np.cumsum(length, out=ends[1:])
    word_forms = forms[_word_masks(layout.max_words)[length]]
    return pool.join_forms(word_forms, ends[np.cumsum(np.bincount(owner, minlength=rows.size))])


@lru_cache(maxsize=16)
def _word_masks(long: int) -> np.ndarray:
    """``bool[long + 1, long]``: which words of a sentence of each length are used."""
    return np.arange(long) < np.arange(long + 1)[:, None]


def _sentence_positions(
    key: np.uint64, rows: np.ndarray, layout: TextLayout
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each sentence of a block, its row in the block, its place in the text, and its separator."""
    n, paragraphs = rows.size, layout.paragraphs
    counts = np.full(n * paragraphs, layout.min_sentences)
    if layout.min_sentences < layout.max_sentences:
        at = rows[:, None] * np.uint64(paragraphs) + np.arange(paragraphs, dtype=np.uint64)
        counts += engine_random.below(
            engine_random.bits(key, at.reshape(-1)), layout.max_sentences - layout.min_sentences + 1
        ).view(np.int64)
    ends = np.cumsum(counts)
    paragraph = np.repeat(np.arange(n * paragraphs), counts)
    sentence = np.arange(paragraph.size) - (ends - counts)[paragraph]
    last = np.zeros(paragraph.size, np.int32)
    last[ends - 1] = 1
    last[ends[paragraphs - 1 :: paragraphs] - 1] = 2
    if paragraphs == 1:
        return paragraph, sentence, last
    owner, place = np.divmod(paragraph, paragraphs)
    return owner, place * layout.max_sentences + sentence, last


class Words(FieldType):
    """Common words of a language with blanks between them."""

    name = "words"
    label = "Words"
    category = "text"
    description = "A few common words."
    aliases = ("get words list", "word words", "word sample", "word", "random words", "keywords")
    example = "river keep young"
    dtype = pa.string()
    localised = True

    class Options(OptionsModel):
        count: int = Field(3, ge=1, le=limits.MAX_WORDS, description="Number of words.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        locale = compiler.locale_of(field)
        vocabulary = compiler.vocabulary
        make = lambda: WordPool(vocabulary.words("word", locale))  # noqa: E731
        self._pool = vocabulary.cached(("words", locale), make)
        if vocabulary.engine >= 2 and not vocabulary.is_in_language("word", locale):
            compiler.warn_english(field, locale)
        self.max_length = options.count * (self._pool.longest + 1) - 1

    def fill(self, context: ColumnContext) -> pa.Array:
        return generate_words(self._pool, context.key, context.rows, self.options.count)

    def distinct_count(self) -> int:
        return self._pool.size ** unique_digit_count(self.options.count, self._pool.size)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return generate_words(
            self._pool, context.key, context.rows, self.options.count, context.permuted(self.distinct_count())
        )


class _RunningText(FieldType):
    """Sentences of a word list, laid out."""

    category = "text"
    dtype = pa.string()
    word_list: ClassVar[str] = "word"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._layout = self.layout()
        locale = compiler.locale_of(field) if self.localised else None
        vocabulary, separators = compiler.vocabulary, self._layout.separators
        make = lambda: WordPool(vocabulary.words(self.word_list, locale), separators)  # noqa: E731
        self._pool = vocabulary.cached((self.word_list, locale, separators), make)
        if vocabulary.engine >= 2 and not vocabulary.is_in_language(self.word_list, locale):
            compiler.warn_english(field, locale)
        self.max_length = self._layout.max_length(self._pool.longest)

    @abstractmethod
    def layout(self) -> TextLayout:
        """The layout of the sentences."""

    def fill(self, context: ColumnContext) -> pa.Array:
        return generate_sentences(self._pool, context.key, context.rows, self._layout)

    def distinct_count(self) -> int:
        return self._pool.size ** unique_digit_count(self._layout.min_words, self._pool.size)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return generate_sentences(
            self._pool, context.key, context.rows, self._layout, context.permuted(self.distinct_count())
        )


class Sentences(_RunningText):
    """Sentences of 4 to 12 common words."""

    name = "sentences"
    label = "Sentences"
    description = "One or more sentences of common words."
    aliases = ("texts", "sentence", "text", "short text")
    example = "Together bank heart whom also single."
    localised = True

    class Options(OptionsModel):
        count: int = Field(1, ge=1, le=limits.MAX_WORDS, description="Number of sentences.")

    options: Options

    def layout(self) -> TextLayout:
        return TextLayout(1, self.options.count, self.options.count, 4, 12, (" ", "", ""))


class Paragraphs(_RunningText):
    """Paragraphs of 2 to 5 sentences, with an empty line between them."""

    name = "paragraphs"
    label = "Paragraphs"
    description = "One or more paragraphs of common words."
    aliases = ("paragraph", "long text", "article", "body text")
    example = "Few town likely. Reach though bit wall. Suffer year art cup sea."
    localised = True

    class Options(OptionsModel):
        count: int = Field(1, ge=1, le=limits.MAX_WORDS, description="Number of paragraphs.")

    options: Options

    def layout(self) -> TextLayout:
        return TextLayout(self.options.count, 2, 5, 4, 12, (" ", "\n\n", ""))


class Lorem(_RunningText):
    """Lines of the filler that printers use."""

    name = "lorem"
    label = "Lorem ipsum"
    description = "Lines of Latin filler text."
    aliases = ("lorem ipsum", "filler", "dummy text", "placeholder text", "latin")
    example = "Dolor sit amet quia ipsum velit."
    word_list = "lorem"

    class Options(OptionsModel):
        lineCount: int = Field(  # noqa: N815 - the wire name of the published clients
            1,
            ge=1,
            le=limits.MAX_WORDS,
            validation_alias=AliasChoices("lineCount", "line_count", "lines"),
            description="Number of lines.",
        )

    options: Options

    def layout(self) -> TextLayout:
        return TextLayout(self.options.lineCount, 1, 1, 5, 12, ("", "\n", ""))


class _PatternType(FieldType):
    """Texts of a compiled expression. A subclass sets ``pattern``; it stays None after a fault."""

    category = "text"
    dtype = pa.string()
    pattern: patterns.Pattern | None = None
    option: ClassVar[str]

    def use_pattern(self, pattern: patterns.Pattern) -> None:
        """Use ``pattern`` as the source of texts."""
        self.pattern = pattern
        self.max_length = pattern.max_length

    def compile_pattern(self, create: Any, compiler: Compiler) -> None:
        """Use the pattern that ``make()`` compiles, or report its error with the position."""
        try:
            self.use_pattern(create())
        except patterns.RegexError as error:
            hint = f"At character {error.position + 1}. {error.hint}".rstrip()
            compiler.fault(self.field, f"options.{self.option}", "bad_expression", str(error), hint)

    def fill(self, context: ColumnContext) -> pa.Array:
        assert self.pattern is not None  # a column with a fault is never filled
        return self.pattern.draw(context.key, context.rows)

    def distinct_count(self) -> int | None:
        return (
            None if self.pattern is None or self.pattern.not_unique_reason() else self.pattern.distinct_count
        )

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        assert self.pattern is not None
        return self.pattern.unrank(context.key, context.rows, context.permuted(self.pattern.distinct_count))

    def unique_hint(self) -> str:
        reason = self.pattern.not_unique_reason() if self.pattern is not None else ""
        return f"{reason} Use parts of fixed length, or parts that are not the beginning of another part."


class Regexp(_PatternType):
    """Texts that match a regular expression as a whole."""

    name = "regexp"
    label = "Regular expression"
    description = "Text that matches a regular expression."
    aliases = ("regex", "regular expression", "pattern")
    example = "GHX-4921"
    option = "string"

    class Options(OptionsModel):
        string: str = Field(
            validation_alias=AliasChoices("string", "pattern", "regex", "regexp", "expression"),
            description="The expression: literals, classes such as [A-Z] and \\d, groups, alternatives, repeats. "
            f"*, + and {{n,}} add at most {limits.OPEN_REPEATS} repetitions to their minimum; a dot is any "
            "printable ASCII character. Lookaround and backreferences are not supported.",
            examples=[r"[A-Z]{3}-\d{4}", r"(GB|DE)\d{2}[A-Z0-9]{4,8}"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.compile_pattern(lambda: patterns.compile_pattern(options.string), compiler)


class RandomString(_PatternType):
    """Letters of an alphabet, each as likely, and every length from min to max as likely."""

    name = "random_string"
    label = "Random string"
    description = "Random characters from a custom alphabet."
    aliases = ("string", "varchar", "char", "alphanumeric", "random text", "pystr", "nvarchar")
    example = "k3TfQ9zLw0aB"
    option = "alphabet"

    class Options(OptionsModel):
        min: int | None = Field(
            None,
            ge=0,
            le=limits.MAX_PATTERN_PLACES,
            description=("Minimum length. Default: 16, or max if that is smaller."),
        )
        max: int | None = Field(
            None,
            ge=0,
            le=limits.MAX_PATTERN_PLACES,
            description=("Maximum length. Default: 16, or min if that is larger."),
        )
        alphabet: str = Field(
            string.ascii_letters + string.digits,
            min_length=1,
            max_length=limits.MAX_PATTERN_CHARS,
            description="Characters to choose from. Default: letters and digits.",
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        low, high = options.min, options.max
        if low is not None and high is not None and low > high:
            text = f"min ({low}) is larger than max ({high})."
            compiler.fault(field, "options.min", "min_above_max", text, "Swap them.")
            return
        low, high = (min(16, high) if high is not None else 16) if low is None else low, high
        self.compile_pattern(
            lambda: _string_pattern(options.alphabet, low, max(16, low) if high is None else high), compiler
        )


@lru_cache(maxsize=64)
def _string_pattern(alphabet: str, low: int, high: int) -> patterns.Pattern:
    return patterns.compile_tree(Repeat(Chars(frozenset(alphabet)), low, high))


_WILDCARDS = {
    "#": frozenset(string.digits),
    "@": frozenset(string.ascii_lowercase),
    "^": frozenset(string.ascii_uppercase),
    "*": frozenset(string.ascii_letters + string.digits),
}


class MaskType(_PatternType):
    """A mask with placeholders for random characters."""

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.compile_pattern(lambda: _mask_pattern(self.mask, "#@^*"), compiler)

    @property
    @abstractmethod
    def mask(self) -> str:
        """The mask in the options."""


class CharacterSequence(MaskType):
    """A mask of characters of any kind."""

    name = "character_sequence"
    label = "Character sequence"
    description = "Text from a mask: # digit, @ lowercase letter, ^ uppercase letter, * any of these."
    aliases = ("mask", "char sequence", "numerify", "lexify", "bothify")
    example = "AB-4921-kx"
    option = "mask"

    class Options(OptionsModel):
        mask: str = Field(
            "^^-####-@@",
            min_length=1,
            max_length=limits.MAX_PATTERN_CHARS,
            validation_alias=AliasChoices("mask", "format", "pattern"),
            description="# digit, @ lowercase letter, ^ uppercase letter, * any of these. Use a "
            "backslash for a literal character.",
            examples=["###-##-####", r"\#^^##"],
        )

    options: Options

    @property
    def mask(self) -> str:
        return self.options.mask


class DigitSequence(_PatternType):
    """A mask in which only # is a placeholder."""

    name = "digit_sequence"
    label = "Digit sequence"
    description = "Digits from a mask: # is a random digit; other characters are unchanged."
    aliases = (
        "random digit above two",
        "random digit not null",
        "random digit not null or empty",
        "random digit or empty",
        "string numeric",
        "digits",
        "digit mask",
        "number mask",
        "digit format",
    )
    example = "417-55-2093"
    option = "format"

    class Options(OptionsModel):
        format: str = Field(
            "###-##-####",
            min_length=1,
            max_length=limits.MAX_PATTERN_CHARS,
            validation_alias=AliasChoices("format", "mask", "pattern"),
            description="# is a digit. Use a backslash for a literal #.",
            examples=["(###) ###-####", r"\## of ##"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.compile_pattern(lambda: _mask_pattern(options.format, "#"), compiler)


@lru_cache(maxsize=64)
def _mask_pattern(mask: str, wildcards: str) -> patterns.Pattern:
    items: list[Node] = []
    marks = iter(mask)
    for mark in marks:
        if mark == "\\":
            items.append(Chars(frozenset(next(marks, "\\"))))
        else:
            items.append(Chars(_WILDCARDS[mark] if mark in wildcards else frozenset(mark)))
    return patterns.compile_tree(Sequence(tuple(items)))


class Emoji(PoolType):
    """One picture among letters."""

    name = "emoji"
    label = "Emoji"
    category = "text"
    description = "A single emoji."
    aliases = ("emoticon", "smiley")
    example = "🚀"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.set_pool(compiler.vocabulary.words("emoji"))


_SALT = 1


class PhraseType(FieldType):
    """One part from each list, joined by blanks or nothing. All combinations differ."""

    dtype = pa.string()
    lists: ClassVar[tuple[str, ...]]
    between: ClassVar[str] = " "
    end: ClassVar[str] = ""
    count: ClassVar[int]

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        words = compiler.vocabulary.words
        after = [self.between] * (len(self.lists) - 1) + [self.end]
        self._pools = compiler.vocabulary.cached(
            ("phrase", self.name),
            lambda: [
                pc.binary_join_element_wise(words(name), pa.scalar(end), "")
                for name, end in zip(self.lists, after, strict=True)
            ],
        )
        self._sizes = [len(pool) for pool in self._pools]
        self.max_length = compiler.vocabulary.cached(
            ("longest phrase", self.name), lambda: sum(map(max_text_length, self._pools))
        )

    @classmethod
    def capacity(cls) -> int:
        return cls.count

    def distinct_count(self) -> int:
        return prod(self._sizes)

    def fill(self, context: ColumnContext) -> pa.Array:
        return join_parts(
            *((pool, context.below(len(pool), _SALT + at)) for at, pool in enumerate(self._pools))
        )

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        rest, parts = context.permuted(self.distinct_count()), []
        for pool in reversed(self._pools):
            rest, at = np.divmod(rest, np.uint64(len(pool)))
            parts.append((pool, at))
        return join_parts(*reversed(parts))


class CatchPhrase(PhraseType):
    """An adjective, another one, and a noun of business talk."""

    name = "catch_phrase"
    label = "Catch Phrase"
    category = "text"
    description = "A catch phrase of three buzzwords, such as Adaptive bi-directional workforce."
    aliases = ("company catch phrase", "company phrase", "business phrase", "value proposition")
    example = "Adaptive bi-directional workforce"
    lists = ("catch_phrase_first", "catch_phrase_second", "catch_phrase_third")
    count = 100 * 101 * 104


class Slogan(PhraseType):
    """An advertising slogan."""

    name = "slogan"
    label = "Slogan"
    category = "text"
    description = "An advertising slogan, such as Built for the open road."
    aliases = ("company slogan", "tag line", "strapline", "motto", "advertising slogan")
    example = "Built for the open road."
    lists = ("slogan_head", "slogan_tail")
    end = "."
    count = 30 * 60


class AppName(PhraseType):
    """Two short words written as one."""

    name = "app_name"
    label = "App Name"
    category = "internet"
    description = "The name of a mobile or web app, such as TempoHub."
    aliases = ("application name", "software name", "program name", "mobile app name")
    example = "TempoHub"
    lists = ("app_head", "app_tail")
    between = ""
    count = 160 * 55


class MovieTitle(PhraseType):
    """Titles that films could have; none is taken from a real one."""

    name = "movie_title"
    label = "Movie Title"
    category = "misc"
    description = "An invented movie title, such as The Last Lighthouse."
    aliases = ("film title", "movie name", "film name", "fake movie title")
    example = "The Last Lighthouse"
    lists = ("movie_head", "movie_tail")
    count = 78 * 161


# ICAO Annex 10, volume II, section 5.2.1.3.
_NATO_WORDS = (
    "Alfa", "Bravo", "Charlie", "Delta", "Echo", "Foxtrot", "Golf", "Hotel", "India", "Juliett", "Kilo", "Lima", "Mike",
    "November", "Oscar", "Papa", "Quebec", "Romeo", "Sierra", "Tango", "Uniform", "Victor", "Whiskey", "X-ray",
    "Yankee", "Zulu",
)  # fmt: skip
_MAX_LETTERS = 12
"""26**12 is still below 2**62, the largest domain of a permutation."""


class Slug(FieldType):
    """Lower-case words of letters and digits with hyphens between: common words, or those of another field."""

    name = "slug"
    label = "Slug"
    category = "text"
    description = "Lowercase words with hyphens, as in URLs; optionally from another field."
    aliases = ("url slug", "permalink", "kebab case", "path segment", "seo name")
    example = "river-keep-young"
    dtype = pa.string()

    class Options(OptionsModel):
        count: int | None = Field(
            None, ge=1, le=limits.MAX_WORDS, description="Number of common words. Default: 3."
        )
        separator: Literal["-", "_"] = Field("-", description="Separator between the words.")
        field: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            description="Name of a field, such as a title, to convert to a slug.",
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.field is not None:
            if options.count is not None:
                message = "count cannot be combined with field."
                compiler.fault(field, "options.count", "conflict", message, "Set count or field, not both.")
            source = compiler.require_column(field, "options.field", options.field)
            self.required_fields = (options.field,)
            if source is not None and pa.types.is_nested(source.dtype):
                message = (
                    f'"{options.field}" contains objects or arrays, which cannot be converted to a slug.'
                )
                hint = "Choose a field with single values."
                compiler.fault(field, "options.field", "wrong_type", message, hint)
            return
        vocabulary = compiler.vocabulary
        self._count = 3 if options.count is None else options.count
        self._pool = vocabulary.cached("slug words", lambda: WordPool(_plain_words(vocabulary.words("word"))))
        self.max_length = self._count * (self._pool.longest + 1) - 1

    def fill(self, context: ColumnContext) -> pa.Array:
        if self.options.field is None:
            return self._with_separator(generate_words(self._pool, context.key, context.rows, self._count))
        source = text.to_text(context.column(self.options.field))
        if pa.types.is_dictionary(source.type) and len(source.dictionary) <= context.n:
            slugs = slugify(source.dictionary, self.options.separator)
            return pa.DictionaryArray.from_arrays(source.indices, slugs, safe=False).dictionary_decode()
        return slugify(text.decode_dictionary(source), self.options.separator)

    def _with_separator(self, spaced: pa.Array) -> pa.Array:
        """The words are of plain letters: each blank is one byte."""
        _, offsets, data = spaced.buffers()
        letters = np.frombuffer(data, np.uint8)
        characters = np.where(letters == ord(" "), np.uint8(ord(self.options.separator)), letters)
        return pa.StringArray.from_buffers(
            len(spaced), offsets, pa.py_buffer(characters), None, -1, spaced.offset
        )

    def distinct_count(self) -> int | None:
        if self.options.field is not None:
            return None
        return self._pool.size ** unique_digit_count(self._count, self._pool.size)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        space = self.distinct_count()
        assert space is not None  # else the field could not be unique
        numbers = context.permuted(space)
        return self._with_separator(
            generate_words(self._pool, context.key, context.rows, self._count, numbers)
        )

    def unique_hint(self) -> str:
        return "Two texts may have the same slug: make the field unique, or use a slug of random words."


def _plain_words(words: pa.Array) -> pa.Array:
    """Return those of ``words`` that have only letters from a to z."""
    return pa.array(
        [word for word in words.to_pylist() if word.isascii() and word.isalpha() and word.islower()]
    )


def slugify(texts: pa.Array, separator: str) -> pa.Array:
    """``string[n]``: letters without accents and digits, in lower case; ``separator`` replaces everything else."""
    normalized = pc.utf8_lower(texts)
    if not pc.all(pc.string_is_ascii(normalized)).as_py():  # the rest is slow, and only for other letters
        normalized = pc.utf8_normalize(pc.replace_substring(normalized, "ß", "ss"), "NFKD")
        normalized = pc.utf8_lower(pc.replace_substring_regex(normalized, r"\p{M}+|’", ""))
    normalized = pc.replace_substring(normalized, "'", "")
    return pc.utf8_trim(pc.replace_substring_regex(normalized, "[^a-z0-9]+", separator), separator)


class NatoPhonetic(IndexedType):
    """Code words of the spelling alphabet, one for each of some random letters."""

    name = "nato_phonetic"
    label = "NATO phonetic"
    category = "text"
    description = "Words of the NATO phonetic alphabet, such as Kilo Sierra Bravo."
    aliases = ("nato alphabet", "phonetic alphabet", "spelling alphabet", "icao alphabet", "call sign")
    example = "Kilo Sierra Bravo"
    dtype = pa.string()

    class Options(OptionsModel):
        count: int = Field(3, ge=1, le=_MAX_LETTERS, description="Number of words.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.size = len(_NATO_WORDS) ** options.count
        self.max_length = options.count * (max(map(len, _NATO_WORDS)) + 1) - 1

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        parts: list[tuple[pa.Array, np.ndarray]] = []
        remaining = self.options.count
        while remaining:
            count = min(2, remaining)
            index, number = np.divmod(index, np.uint64(len(_NATO_WORDS) ** count))
            parts.insert(0, (_words(count, remaining == self.options.count), number))
            remaining -= count
        return join_parts(*parts)

    @classmethod
    def capacity(cls) -> int:
        return len(_NATO_WORDS) ** 3


@cache
def _words(count: int, last: bool) -> pa.StringArray:
    """Return all texts of one or two words, followed by a blank unless they are the last."""
    texts = list(_NATO_WORDS)
    if count == 2:
        texts = [f"{word} {two}" for word in _NATO_WORDS for two in _NATO_WORDS]
    return pa.array(texts if last else [f"{item} " for item in texts])
