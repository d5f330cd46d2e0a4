"""Text: words and sentences, random strings, masks, regular expressions, emoji."""

from __future__ import annotations

import string
from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import prose, regex
from webapp.engine.fields.base import FieldType, OptionsModel, PoolType
from webapp.engine.regex_tree import Chars, Node, Repeat, Sequence

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


class Words(FieldType):
    """Common words of a language with blanks between them."""

    name = "words"
    label = "Words"
    category = "text"
    description = "A few common words."
    aliases = ("word", "random words", "keywords")
    example = "river keep young"
    dtype = pa.string()
    localised = True

    class Options(OptionsModel):
        count: int = Field(3, ge=1, le=limits.MAX_WORDS, description="How many words.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        locale = compiler.locale_of(field)
        vocabulary = compiler.vocabulary
        make = lambda: prose.WordPool(vocabulary.words("word", locale))  # noqa: E731
        self._pool = vocabulary.shared(("words", locale), make)
        self.max_length = options.count * (self._pool.longest + 1) - 1

    def fill(self, cells: Cells) -> pa.Array:
        return prose.words(self._pool, cells.key, cells.rows, self.options.count)

    def space(self) -> int:
        return self._pool.size ** prose.carried(self.options.count, self._pool.size)

    def fill_unique(self, cells: Cells) -> pa.Array:
        return prose.words(
            self._pool, cells.key, cells.rows, self.options.count, cells.permuted(self.space())
        )


class _Running(FieldType):
    """Sentences of a word list, laid out."""

    category = "text"
    dtype = pa.string()
    words_of: ClassVar[str] = "word"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._layout = self.layout()
        locale = compiler.locale_of(field) if self.localised else None
        vocabulary, separators = compiler.vocabulary, self._layout.separators
        make = lambda: prose.WordPool(vocabulary.words(self.words_of, locale), separators)  # noqa: E731
        self._pool = vocabulary.shared((self.words_of, locale, separators), make)
        self.max_length = self._layout.longest(self._pool.longest)

    @abstractmethod
    def layout(self) -> prose.Layout:
        """How the sentences stand."""

    def fill(self, cells: Cells) -> pa.Array:
        return prose.sentences(self._pool, cells.key, cells.rows, self._layout)

    def space(self) -> int:
        return self._pool.size ** prose.carried(self._layout.short, self._pool.size)

    def fill_unique(self, cells: Cells) -> pa.Array:
        return prose.sentences(self._pool, cells.key, cells.rows, self._layout, cells.permuted(self.space()))


class Sentences(_Running):
    """Sentences of 4 to 12 common words."""

    name = "sentences"
    label = "Sentences"
    description = "One or more sentences of common words."
    aliases = ("sentence", "text", "short text")
    example = "Together bank heart whom also single."
    localised = True

    class Options(OptionsModel):
        count: int = Field(1, ge=1, le=limits.MAX_WORDS, description="How many sentences.")

    options: Options

    def layout(self) -> prose.Layout:
        return prose.Layout(1, self.options.count, self.options.count, 4, 12, (" ", "", ""))


class Paragraphs(_Running):
    """Paragraphs of 2 to 5 sentences, with an empty line between them."""

    name = "paragraphs"
    label = "Paragraphs"
    description = "One or more paragraphs of common words."
    aliases = ("paragraph", "long text", "article", "body text")
    example = "Few town likely. Reach though bit wall. Suffer year art cup sea."
    localised = True

    class Options(OptionsModel):
        count: int = Field(1, ge=1, le=limits.MAX_WORDS, description="How many paragraphs.")

    options: Options

    def layout(self) -> prose.Layout:
        return prose.Layout(self.options.count, 2, 5, 4, 12, (" ", "\n\n", ""))


class Lorem(_Running):
    """Lines of the filler that printers use."""

    name = "lorem"
    label = "Lorem ipsum"
    description = "Lines of Latin filler text."
    aliases = ("lorem ipsum", "filler", "dummy text", "placeholder text", "latin")
    example = "Dolor sit amet quia ipsum velit."
    words_of = "lorem"

    class Options(OptionsModel):
        lineCount: int = Field(  # noqa: N815 - the wire name of the published clients
            1,
            ge=1,
            le=limits.MAX_WORDS,
            validation_alias=AliasChoices("lineCount", "line_count", "lines"),
            description="How many lines.",
        )

    options: Options

    def layout(self) -> prose.Layout:
        return prose.Layout(self.options.lineCount, 1, 1, 5, 12, ("", "\n", ""))


class _Pattern(FieldType):
    """Texts of a compiled expression. A subclass sets ``pattern``; it stays None after a fault."""

    category = "text"
    dtype = pa.string()
    pattern: regex.Pattern | None = None
    option: ClassVar[str]

    def use(self, pattern: regex.Pattern) -> None:
        """Takes ``pattern`` as the source of texts."""
        self.pattern = pattern
        self.max_length = pattern.longest

    def compile(self, make: Any, compiler: Compiler) -> None:
        """Uses what ``make()`` compiles, or reports why it cannot be, with the position."""
        try:
            self.use(make())
        except regex.RegexError as error:
            hint = f"At character {error.position + 1}. {error.hint}".rstrip()
            compiler.fault(self.field, f"options.{self.option}", "bad_expression", str(error), hint)

    def fill(self, cells: Cells) -> pa.Array:
        assert self.pattern is not None  # a column with a fault is never filled
        return self.pattern.draw(cells.key, cells.rows)

    def space(self) -> int | None:
        return None if self.pattern is None or self.pattern.refusal() else self.pattern.space

    def fill_unique(self, cells: Cells) -> pa.Array:
        assert self.pattern is not None
        return self.pattern.unrank(cells.key, cells.rows, cells.permuted(self.pattern.space))

    def unique_hint(self) -> str:
        reason = self.pattern.refusal() if self.pattern is not None else ""
        return f"{reason} Use parts of fixed length, or parts that no other text begins with."


class Regexp(_Pattern):
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
            f"*, + and {{n,}} repeat at most {limits.OPEN_REPEATS} times beyond their least number; a dot is any "
            "printable ASCII character. Look-around and back-references are refused.",
            examples=[r"[A-Z]{3}-\d{4}", r"(GB|DE)\d{2}[A-Z0-9]{4,8}"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.compile(lambda: regex.compile_pattern(options.string), compiler)


class RandomString(_Pattern):
    """Letters of an alphabet, each as likely, and every length from min to max as likely."""

    name = "random_string"
    label = "Random string"
    description = "Random characters of an alphabet of your own."
    aliases = ("string", "varchar", "char", "alphanumeric", "random text", "pystr", "nvarchar")
    example = "k3TfQ9zLw0aB"
    option = "alphabet"

    class Options(OptionsModel):
        min: int | None = Field(
            None, ge=0, le=limits.MAX_PATTERN_PLACES, description="Shortest length; 16, or max if less."
        )
        max: int | None = Field(
            None, ge=0, le=limits.MAX_PATTERN_PLACES, description="Longest length; 16, or min if more."
        )
        alphabet: str = Field(
            string.ascii_letters + string.digits,
            min_length=1,
            max_length=limits.MAX_PATTERN_CHARS,
            description="The characters to choose from; letters and digits if left out.",
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
        self.compile(
            lambda: _string_of(options.alphabet, low, max(16, low) if high is None else high), compiler
        )


@lru_cache(maxsize=64)
def _string_of(alphabet: str, low: int, high: int) -> regex.Pattern:
    return regex.compile_tree(Repeat(Chars(frozenset(alphabet)), low, high))


_MASK = {
    "#": frozenset(string.digits),
    "@": frozenset(string.ascii_lowercase),
    "^": frozenset(string.ascii_uppercase),
    "*": frozenset(string.ascii_letters + string.digits),
}


class Masked(_Pattern):
    """A mask whose marks stand for random characters."""

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.compile(lambda: _masked(self.mask, "#@^*"), compiler)

    @property
    @abstractmethod
    def mask(self) -> str:
        """The mask in the options."""


class CharacterSequence(Masked):
    """A mask of characters of any kind."""

    name = "character_sequence"
    label = "Character sequence"
    description = "A mask: # digit, @ lower-case letter, ^ upper-case letter, * any of them."
    aliases = ("mask", "char sequence", "numerify", "lexify", "bothify")
    example = "AB-4921-kx"
    option = "mask"

    class Options(OptionsModel):
        mask: str = Field(
            "^^-####-@@",
            min_length=1,
            max_length=limits.MAX_PATTERN_CHARS,
            validation_alias=AliasChoices("mask", "format", "pattern"),
            description="# digit, @ lower-case letter, ^ upper-case letter, * any of them; a backslash before a mark "
            "keeps it as it is.",
            examples=["###-##-####", r"\#^^##"],
        )

    options: Options

    @property
    def mask(self) -> str:
        return self.options.mask


class DigitSequence(_Pattern):
    """A mask in which only # stands for something."""

    name = "digit_sequence"
    label = "Digit sequence"
    description = "A mask of digits: # is a random digit, everything else stands as it is."
    aliases = ("digits", "digit mask", "number mask", "digit format")
    example = "417-55-2093"
    option = "format"

    class Options(OptionsModel):
        format: str = Field(
            "###-##-####",
            min_length=1,
            max_length=limits.MAX_PATTERN_CHARS,
            validation_alias=AliasChoices("format", "mask", "pattern"),
            description="# is a digit; a backslash before it keeps it as it is.",
            examples=["(###) ###-####", r"\## of ##"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.compile(lambda: _masked(options.format, "#"), compiler)


@lru_cache(maxsize=64)
def _masked(mask: str, known: str) -> regex.Pattern:
    items: list[Node] = []
    marks = iter(mask)
    for mark in marks:
        if mark == "\\":
            items.append(Chars(frozenset(next(marks, "\\"))))
        else:
            items.append(Chars(_MASK[mark] if mark in known else frozenset(mark)))
    return regex.compile_tree(Sequence(tuple(items)))


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
        self.use(compiler.vocabulary.words("emoji"))
