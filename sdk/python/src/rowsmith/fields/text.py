"""Fields of the category text, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class BuzzwordField(Field):
    """A word of business talk, such as leverage."""

    type_name = "buzzword"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CatchPhraseField(Field):
    """Three words of business talk, such as Adaptive bi-directional workforce."""

    type_name = "catch_phrase"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CharacterSequenceField(Field):
    """A mask: # digit, @ lower-case letter, ^ upper-case letter, * any of them.

    mask: # digit, @ lower-case letter, ^ upper-case letter, * any of them; a backslash before a mark
        keeps it as it is.
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


class DigitSequenceField(Field):
    """A mask of digits: # is a random digit, everything else stands as it is.

    format: # is a digit; a backslash before it keeps it as it is.
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


class LoremField(Field):
    """Lines of Latin filler text.

    line_count: How many lines.
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
    """Letters as words of the spelling alphabet, such as Kilo Sierra Bravo.

    count: How many words.
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
    """A text that programs stumble over: odd letters, quotes, markup, numbers that are none.

    kind: What is awkward about it.
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


class ParagraphsField(Field):
    """One or more paragraphs of common words.

    count: How many paragraphs.
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


class RandomStringField(Field):
    """Random characters of an alphabet of your own.

    min: Shortest length; 16, or max if less.
    max: Longest length; 16, or min if more.
    alphabet: The characters to choose from; letters and digits if left out.
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


class RegexpField(Field):
    """Text that matches a regular expression.

    string: The expression: literals, classes such as [A-Z] and \\d, groups, alternatives, repeats. *, +
        and {n,} repeat at most 10 times beyond their least number; a dot is any printable ASCII
        character. Look-around and back-references are refused.
    """

    type_name = "regexp"

    def __init__(
        self, name: str, string: str, *, options: Mapping[str, Any] | None = None, **common: Unpack[Common]
    ) -> None:
        self._set(name, options, common, {"string": string})


class SentencesField(Field):
    """One or more sentences of common words.

    count: How many sentences.
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
    """What a company promises in a line, such as Built for the open road."""

    type_name = "slogan"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SlugField(Field):
    """Words in lower case with hyphens, as in web addresses; of another field if you like.

    count: How many common words; 3 if left out.
    separator: What stands between the words.
    field: Name of a field, such as a title, whose text is written as a slug.
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


class WordsField(Field):
    """A few common words.

    count: How many words.
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
