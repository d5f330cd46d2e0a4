"""Fields of the category text, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AdjectiveField(Field):
    """An English adjective."""

    type_name = "adjective"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class AdverbField(Field):
    """An English adverb."""

    type_name = "adverb"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BuzzwordField(Field):
    """A business buzzword, such as leverage."""

    type_name = "buzzword"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CatchPhraseField(Field):
    """A catch phrase of three buzzwords, such as Adaptive bi-directional workforce."""

    type_name = "catch_phrase"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CharacterSequenceField(Field):
    """Text from a mask: # digit, @ lowercase letter, ^ uppercase letter, * any of these.

    mask: # digit, @ lowercase letter, ^ uppercase letter, * any of these. Use a backslash for a literal
        character.
    """

    type_name = "character_sequence"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        mask: str = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"mask": mask})


class ConjunctionField(Field):
    """An English conjunction."""

    type_name = "conjunction"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DigitSequenceField(Field):
    """Digits from a mask: # is a random digit; other characters are unchanged.

    format: # is a digit. Use a backslash for a literal #.
    """

    type_name = "digit_sequence"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: str = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format})


class EmojiField(Field):
    """A single emoji."""

    type_name = "emoji"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class HackerAbbreviationField(Field):
    """A technical abbreviation, such as TCP."""

    type_name = "hacker_abbreviation"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class HackerPhraseField(Field):
    """A technical sentence, such as We need to parse the wireless driver."""

    type_name = "hacker_phrase"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class InterjectionField(Field):
    """An English interjection."""

    type_name = "interjection"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class LoremField(Field):
    """Lines of Latin filler text.

    line_count: Number of lines.
    """

    type_name = "lorem"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        line_count: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"lineCount": line_count})


class NatoPhoneticField(Field):
    """Words of the NATO phonetic alphabet, such as Kilo Sierra Bravo.

    count: Number of words.
    """

    type_name = "nato_phonetic"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        count: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"count": count})


class NaughtyStringField(Field):
    """A text that often breaks programs: unusual characters, quotes, markup, invalid numbers.

    kind: Kind of problematic text.
    """

    type_name = "naughty_string"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        kind: Literal[
            "any", "reserved", "number", "quoting", "whitespace", "unicode", "emoji", "injection", "long"
        ] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"kind": kind})


class NounField(Field):
    """An English noun."""

    type_name = "noun"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ParagraphsField(Field):
    """One or more paragraphs of common words.

    count: Number of paragraphs.
    """

    type_name = "paragraphs"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        count: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"count": count})


class PrepositionField(Field):
    """An English preposition."""

    type_name = "preposition"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class RandomLetterField(Field):
    """One lower-case letter."""

    type_name = "random_letter"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class RandomStringField(Field):
    """Random characters from a custom alphabet.

    min: Minimum length. Default: 16, or max if that is smaller.
    max: Maximum length. Default: 16, or min if that is larger.
    alphabet: Characters to choose from. Default: letters and digits.
    """

    type_name = "random_string"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: int | None = UNSET,
        max: int | None = UNSET,
        alphabet: str = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "alphabet": alphabet})


class RandomUppercaseLetterField(Field):
    """One upper-case letter."""

    type_name = "random_uppercase_letter"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class RegexpField(Field):
    """Text that matches a regular expression.

    string: The expression: literals, classes such as [A-Z] and \\d, groups, alternatives, repeats. *, +
        and {n,} add at most 10 repetitions to their minimum; a dot is any printable ASCII character.
        Lookaround and backreferences are not supported.
    """

    type_name = "regexp"

    def __init__(
        self, name: str, string: str, *, options: Mapping[str, Any] | None = None, **common: Unpack[Common]
    ) -> None:
        self._set(name, options, common, {"string": string})


class SentencesField(Field):
    """One or more sentences of common words.

    count: Number of sentences.
    """

    type_name = "sentences"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        count: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"count": count})


class SloganField(Field):
    """An advertising slogan, such as Built for the open road."""

    type_name = "slogan"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SlugField(Field):
    """Lowercase words with hyphens, as in URLs; optionally from another field.

    count: Number of common words. Default: 3.
    separator: Separator between the words.
    field: Name of a field, such as a title, to convert to a slug.
    """

    type_name = "slug"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        count: int | None = UNSET,
        separator: Literal["-", "_"] = UNSET,
        field: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"count": count, "separator": separator, "field": field})


class SymbolField(Field):
    """One punctuation mark or sign."""

    type_name = "symbol"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class VerbField(Field):
    """An English verb."""

    type_name = "verb"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class WordsField(Field):
    """A few common words.

    count: Number of words.
    """

    type_name = "words"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        count: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"count": count})
