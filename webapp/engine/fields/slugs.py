"""Text for addresses and for the telephone: slugs, and words that spell letters."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine import prose, text
from webapp.engine.fields.base import FieldType, IndexedType, OptionsModel
from webapp.engine.fields.joining import joined

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

# ICAO Annex 10, volume II, section 5.2.1.3.
_SPELLING = (
    "Alfa", "Bravo", "Charlie", "Delta", "Echo", "Foxtrot", "Golf", "Hotel", "India", "Juliett", "Kilo", "Lima", "Mike",
    "November", "Oscar", "Papa", "Quebec", "Romeo", "Sierra", "Tango", "Uniform", "Victor", "Whiskey", "X-ray",
    "Yankee", "Zulu",
)  # fmt: skip
_MOST_LETTERS = 12
"""26**12 is still below 2**62, the largest number that rows are dealt out of."""


class Slug(FieldType):
    """Lower-case words of letters and digits with hyphens between: common words, or those of another field."""

    name = "slug"
    label = "Slug"
    category = "text"
    description = "Words in lower case with hyphens, as in web addresses; of another field if you like."
    aliases = ("url slug", "permalink", "kebab case", "path segment", "seo name")
    example = "river-keep-young"
    dtype = pa.string()

    class Options(OptionsModel):
        count: int | None = Field(
            None, ge=1, le=limits.MAX_WORDS, description="How many common words; 3 if left out."
        )
        separator: Literal["-", "_"] = Field("-", description="What stands between the words.")
        field: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            description="Name of a field, such as a title, whose text is written as a slug.",
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.field is not None:
            self._read(options.field, options, compiler)
            return
        vocabulary = compiler.vocabulary
        self._count = 3 if options.count is None else options.count
        self._pool = vocabulary.shared("slug words", lambda: prose.WordPool(_plain(vocabulary.words("word"))))
        self.max_length = self._count * (self._pool.longest + 1) - 1

    def _read(self, name: str, options: Options, compiler: Compiler) -> None:
        if options.count is not None:
            message = f'The words are those of "{options.field}".'
            compiler.fault(self.field, "options.count", "conflict", message, "Give count or field.")
        source = compiler.require(self.field, "options.field", name)
        self.needs = (name,)
        if source is not None and pa.types.is_nested(source.dtype):
            message = f'"{options.field}" holds objects or arrays, which are no text.'
            compiler.fault(
                self.field, "options.field", "wrong_type", message, "Name a field with single values."
            )

    def fill(self, cells: Cells) -> pa.Array:
        if self.options.field is None:
            return self._hyphened(prose.words(self._pool, cells.key, cells.rows, self._count))
        source = text.to_text(cells.column(self.options.field))
        if pa.types.is_dictionary(source.type) and len(source.dictionary) <= cells.n:
            slugs = slugged(source.dictionary, self.options.separator)
            return pa.DictionaryArray.from_arrays(source.indices, slugs, safe=False).dictionary_decode()
        return slugged(text.decode(source), self.options.separator)

    def _hyphened(self, spaced: pa.Array) -> pa.Array:
        """The words are of plain letters: each blank is one byte."""
        _, offsets, data = spaced.buffers()
        letters = np.frombuffer(data, np.uint8)
        made = np.where(letters == ord(" "), np.uint8(ord(self.options.separator)), letters)
        return pa.StringArray.from_buffers(len(spaced), offsets, pa.py_buffer(made), None, -1, spaced.offset)

    def space(self) -> int | None:
        if self.options.field is not None:
            return None
        return self._pool.size ** prose.carried(self._count, self._pool.size)

    def fill_unique(self, cells: Cells) -> pa.Array:
        space = self.space()
        assert space is not None  # else the field could not be unique
        dealt = cells.permuted(space)
        return self._hyphened(prose.words(self._pool, cells.key, cells.rows, self._count, dealt))

    def unique_hint(self) -> str:
        return "Two texts may have one slug: make the field unique, or let the slug be of random words."


def _plain(words: pa.Array) -> pa.Array:
    """Those of ``words`` that are letters from a to z and nothing else."""
    return pa.array(
        [word for word in words.to_pylist() if word.isascii() and word.isalpha() and word.islower()]
    )


def slugged(texts: pa.Array, separator: str) -> pa.Array:
    """``string[n]``: letters without accents and digits, in lower case; ``separator`` for whatever is between."""
    bare = pc.utf8_lower(texts)
    if not pc.all(pc.string_is_ascii(bare)).as_py():  # all that follows is for other letters, and slow
        bare = pc.utf8_normalize(pc.replace_substring(bare, "ß", "ss"), "NFKD")
        bare = pc.utf8_lower(pc.replace_substring_regex(bare, r"\p{M}+|’", ""))
    bare = pc.replace_substring(bare, "'", "")
    return pc.utf8_trim(pc.replace_substring_regex(bare, "[^a-z0-9]+", separator), separator)


class NatoPhonetic(IndexedType):
    """Code words of the spelling alphabet, one for each of some random letters."""

    name = "nato_phonetic"
    label = "NATO phonetic"
    category = "text"
    description = "Letters as words of the spelling alphabet, such as Kilo Sierra Bravo."
    aliases = ("nato alphabet", "phonetic alphabet", "spelling alphabet", "icao alphabet", "call sign")
    example = "Kilo Sierra Bravo"
    dtype = pa.string()

    class Options(OptionsModel):
        count: int = Field(3, ge=1, le=_MOST_LETTERS, description="How many words.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.size = len(_SPELLING) ** options.count
        self.max_length = options.count * (max(map(len, _SPELLING)) + 1) - 1

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        parts: list[tuple[pa.Array, np.ndarray]] = []
        left = self.options.count
        while left:
            took = min(2, left)
            index, word = np.divmod(index, np.uint64(len(_SPELLING) ** took))
            parts.insert(0, (_words(took, left == self.options.count), word))
            left -= took
        return joined(*parts)

    @classmethod
    def capacity(cls) -> int:
        return len(_SPELLING) ** 3


@cache
def _words(count: int, last: bool) -> pa.StringArray:
    """All texts of one or two words, with a blank behind them where they are not the last."""
    texts = list(_SPELLING)
    if count == 2:
        texts = [f"{one} {two}" for one in _SPELLING for two in _SPELLING]
    return pa.array(texts if last else [f"{one} " for one in texts])
