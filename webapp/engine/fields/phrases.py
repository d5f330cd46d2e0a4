"""Texts of two or three parts, each part out of a list of its own: slogans, titles of films, names of programs."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.fields.base import FieldType, OptionsModel, longest
from webapp.engine.fields.joining import joined

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec

_SALT = 1


class PhraseType(FieldType):
    """A part out of each list, with blanks or nothing between them. No two choices read the same."""

    dtype = pa.string()
    lists: ClassVar[tuple[str, ...]]
    between: ClassVar[str] = " "
    end: ClassVar[str] = ""
    count: ClassVar[int]

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pools = compiler.vocabulary.shared(
            ("phrase", self.name), lambda: self._parts(compiler.vocabulary)
        )
        self._sizes = [len(pool) for pool in self._pools]
        self.max_length = compiler.vocabulary.shared(
            ("longest phrase", self.name), lambda: sum(map(longest, self._pools))
        )

    def _parts(self, vocabulary: Vocabulary) -> list[pa.Array]:
        after = [self.between] * (len(self.lists) - 1) + [self.end]
        return [
            pc.binary_join_element_wise(vocabulary.words(name), pa.scalar(text), "")
            for name, text in zip(self.lists, after, strict=True)
        ]

    @classmethod
    def capacity(cls) -> int:
        return cls.count

    def space(self) -> int:
        return prod(self._sizes)

    def fill(self, cells: Cells) -> pa.Array:
        return joined(*((pool, cells.below(len(pool), _SALT + at)) for at, pool in enumerate(self._pools)))

    def fill_unique(self, cells: Cells) -> pa.Array:
        rest, parts = cells.permuted(self.space()), []
        for pool in reversed(self._pools):
            rest, at = np.divmod(rest, np.uint64(len(pool)))
            parts.append((pool, at))
        return joined(*reversed(parts))


class CatchPhrase(PhraseType):
    """An adjective, another one, and a noun of business talk."""

    name = "catch_phrase"
    label = "Catch Phrase"
    category = "text"
    description = "Three words of business talk, such as Adaptive bi-directional workforce."
    aliases = ("company catch phrase", "company phrase", "business phrase", "value proposition")
    example = "Adaptive bi-directional workforce"
    lists = ("catch_phrase_first", "catch_phrase_second", "catch_phrase_third")
    count = 100 * 101 * 104


class Slogan(PhraseType):
    """What a company prints below its name."""

    name = "slogan"
    label = "Slogan"
    category = "text"
    description = "What a company promises in a line, such as Built for the open road."
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
    description = "The name of a program for telephones or the web, such as TempoHub."
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
    description = "A title that a film could have, such as The Last Lighthouse."
    aliases = ("film title", "movie name", "film name", "fake movie title")
    example = "The Last Lighthouse"
    lists = ("movie_head", "movie_tail")
    count = 78 * 161
