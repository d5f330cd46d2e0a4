"""Words out of one list: animals, skills, industries and the like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine.types import values
from webapp.engine.types.base import OptionsModel, PoolType

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec


@dataclass(frozen=True)
class WordList:
    """A list, and the places of those of its words that differ as databases compare them."""

    pool: pa.Array
    distinct_positions: np.ndarray


def create_word_list(pool: pa.Array) -> WordList:
    """``pool`` with what differs in it."""
    return WordList(pool, values.ValuePool(pool, np.arange(len(pool))).distinct.astype(np.int64))


class ListType(PoolType):
    """Each word of one list as likely as any other. A subclass sets the number of distinct words."""

    count: ClassVar[int]

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        locale = compiler.locale_of(field) if self.localised else None
        key = ("listed", self.name, options) if locale is None else ("listed", self.name, options, locale)
        found = compiler.vocabulary.cached(
            key, lambda: create_word_list(self.words(compiler.vocabulary, locale))
        )
        if compiler.vocabulary.engine >= 2 and not compiler.vocabulary.is_in_language(self.name, locale):
            compiler.warn_english(field, locale)
        self._distinct = found.distinct_positions
        self.set_pool(found.pool)

    def words(self, vocabulary: Vocabulary, locale: str | None) -> pa.Array:
        """The list, ``string[k]``."""
        return vocabulary.words(self.name, locale)

    @classmethod
    def capacity(cls) -> int:
        return cls.count

    def distinct_count(self) -> int:
        return self._distinct.size

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.values_at(self._distinct[context.permuted(self._distinct.size).view(np.int64)], context)


class Buzzword(ListType):
    """Adjectives and nouns of business talk."""

    name = "buzzword"
    label = "Buzzword"
    category = "text"
    description = "A business buzzword, such as leverage."
    aliases = ("bs", "bs word", "business buzzword", "buzz word", "buzz phrase")
    example = "leverage"
    count = 305


class NaughtyString(ListType):
    """Texts that programs stumble over. Each can be stored in a file and in a database; whether the program behind
    it copes is the question."""

    name = "naughty_string"
    label = "Naughty String"
    category = "text"
    description = "A text that often breaks programs: unusual characters, quotes, markup, invalid numbers."
    aliases = ("naughty strings", "awkward string", "edge case string", "fuzz string", "blns", "fuzz")
    example = "1'; DROP TABLE users-- 1"
    count = 245

    class Options(OptionsModel):
        kind: Literal[
            "any", "reserved", "number", "quoting", "whitespace", "unicode", "emoji", "injection", "long"
        ] = Field("any", description="Kind of problematic text.")

    options: Options

    def words(self, vocabulary: Vocabulary, locale: str | None) -> pa.Array:
        table = vocabulary.table("naughty_string")
        rows = zip(table["kind"].to_pylist(), table["text"].to_pylist(), strict=True)
        return pa.array([text for kind, text in rows if self.options.kind in ("any", kind)], pa.string())


class University(ListType):
    """Names such as universities of the locale's larger towns have; of English-speaking ones without a locale."""

    name = "university"
    localised = True
    label = "University"
    category = "person"
    description = "The name of a university or college, such as Leeds Institute of Technology."
    aliases = (
        "college",
        "school name",
        "university name",
        "alma mater",
        "educational institution",
        "higher education",
    )
    example = "Leeds Institute of Technology"
    count = 3090


class Skill(ListType):
    """What people put on their résumé."""

    name = "skill"
    label = "Skill"
    category = "person"
    description = "A professional skill, such as Data Analysis."
    aliases = ("job skill", "linkedin skill", "competency", "competence", "expertise")
    example = "Data Analysis"
    count = 214


class Industry(ListType):
    """Branches of business."""

    name = "industry"
    localised = True
    label = "Industry"
    category = "company"
    description = "An industry, such as Renewable Energy."
    aliases = (
        "business sector",
        "branch of business",
        "company industry",
        "line of business",
        "stock industry",
        "stock sector",
    )
    example = "Renewable Energy"
    count = 192


class Tld(ListType):
    """Top-level domains of the internet, without the point."""

    name = "tld"
    label = "Top-Level Domain"
    category = "internet"
    description = "A top-level domain without the dot, such as org."
    aliases = ("top level domain name", "domain suffix", "domain ending", "domain extension", "domain tld")
    example = "org"
    count = 400


class Animal(ListType):
    """Common names of animals."""

    name = "animal"
    label = "Animal"
    category = "misc"
    description = "The common name of an animal, such as Snow Leopard."
    aliases = ("animal name", "animal common name", "animal type", "pet type", "species common name")
    example = "Snow Leopard"
    count = 379


class Plant(ListType):
    """Common names of plants."""

    name = "plant"
    label = "Plant"
    category = "misc"
    description = "The common name of a plant, such as Silver Birch."
    aliases = ("plant name", "plant common name", "flower name", "tree name")
    example = "Silver Birch"
    count = 369


class DrugName(ListType):
    """Generic (international nonproprietary) names of medicines."""

    name = "drug_name"
    label = "Drug Name"
    category = "misc"
    description = "The generic name of a drug, such as Amoxicillin."
    aliases = (
        "drug", "drug name generic", "generic drug name", "medication", "medicine", "medication name", "medicine name",
        "drug name brand",
    )  # fmt: skip
    example = "Amoxicillin"
    count = 432
