"""Lists and tables of real-world words, read from one content-addressed file that is mapped into memory.

Which vocabulary belongs to this engine is written in ``vocab.lock``: its id, and the library versions it was built
from. No library is used while rows are generated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.data import archive, build
from webapp.engine.data.vocab_lock import REPOSITORY_ROOT, VocabularyError, current_entry

T = TypeVar("T")


class Vocabulary:
    """An opened vocabulary. Everything it hands out lives as long as it does, at the same addresses."""

    def __init__(self, contents: dict[str, pa.Array], metadata: dict[str, str]) -> None:
        self.id = metadata["id"]
        self.versions: dict[str, str] = json.loads(metadata["versions"])
        self.locales: tuple[str, ...] = tuple(metadata["locales"].split())
        self._languages: dict[str, str] = {}
        for locale in self.locales:
            self._languages.setdefault(locale.partition("_")[0], locale)
        self._aliases: dict[str, str] = json.loads(metadata["aliases"])
        self._words: dict[tuple[str, str], pa.Array] = {}
        self._tables: dict[str, pa.Table] = {}
        for column, values in contents.items():
            kind, name, locale = archive.parse_column_name(column)
            if kind == "words":
                self._words[name, locale] = values
            else:
                self._tables[name] = pa.Table.from_struct_array(values).combine_chunks()
        self._shared: dict[Hashable, Any] = {}
        self.engine: int = self.table("engine")["number"][0].as_py() if self.has_table("engine") else 1
        """The number of the engine whose rules rows of this vocabulary follow (see `plan.ENGINES`)."""

    def resolve(self, locale: str) -> str | None:
        """The locale of `locales` that ``locale`` means: ``de-de`` and ``de`` are ``de_DE``; None if unknown."""
        language, _, region = locale.replace("-", "_").partition("_")
        exact = f"{language.lower()}_{region.upper()}"
        exact = self._aliases.get(exact, exact)
        if exact in self.locales:
            return exact
        language = self._aliases.get(language.lower(), language.lower())
        return None if region else self._languages.get(language)

    def has_locale(self, locale: str) -> bool:
        """Whether `resolve` finds it."""
        return self.resolve(locale) is not None

    def words(self, name: str, locale: str | None = None) -> pa.Array:
        """The list ``name`` of ``locale``, else of its language's first locale, else of none: unique texts, the
        same buffers at every call. Raises `KeyError` where there is no such list."""
        for candidate in self._candidates(locale):
            found = self._words.get((name, candidate))
            if found is not None:
                return found
        raise KeyError(f"{name} of {locale}" if locale else name)

    def has_table(self, name: str) -> bool:
        """Whether there is a table ``name``: one that came later is not in every vocabulary."""
        return name in self._tables

    def is_in_language(self, name: str, locale: str | None) -> bool:
        """Whether the list ``name`` is in the language of ``locale``; English, and no locale, always are."""
        if locale is None or locale.startswith("en"):
            return True
        return any((name, candidate) in self._words for candidate in self._candidates(locale) if candidate)

    def localized_names(self, name: str, locale: str | None) -> pa.Array | None:
        """The rows of ``locale`` in the table ``name`` of (locale, name), in their order; None if it has none."""
        if locale is None or name not in self._tables:
            return None

        def find() -> pa.Array | None:
            table = self._tables[name]
            found = table.filter(pc.equal(table.column("locale"), locale)).column("name").combine_chunks()
            return found if len(found) else None

        return self.cached(("positioned", name, locale), find)

    def has_words(self, name: str, locale: str) -> bool:
        """Whether there is a list ``name`` of exactly that locale."""
        return (name, locale) in self._words

    def _candidates(self, locale: str | None) -> tuple[str, ...]:
        if locale is None:
            return ("",)
        exact = self.resolve(locale) or locale
        return exact, self._languages.get(exact.partition("_")[0], exact), ""

    def table(self, name: str) -> pa.Table:
        """The table ``name``, in one chunk. Raises `KeyError` where there is none."""
        return self._tables[name]

    def cached(self, key: Hashable, create: Callable[[], T]) -> T:
        """What ``make()`` gives, made once for the life of the vocabulary: pools and tables that every plan with
        the same options can use. ``create`` must depend on ``key`` and the vocabulary alone."""
        value = self._shared.get(key)
        if value is None:
            # Two threads may both make it; they make equal things and one of them stays.
            value = self._shared.setdefault(key, create())
        return value

    def locales_by_name(self) -> dict[str, tuple[str, ...]]:
        """Every list with its locales (``""``: none), and every table with none."""
        found: dict[str, list[str]] = {name: [] for name in self._tables}
        for name, locale in self._words:
            found.setdefault(name, []).append(locale)
        return {name: tuple(sorted(locales)) for name, locales in sorted(found.items())}


@lru_cache(maxsize=8)
def load(path: Path) -> Vocabulary:
    """Opens a built file, once per process. Raises `VocabularyError` where there is none, or it is no vocabulary."""
    try:
        contents, metadata = archive.read(Path(path))
        return Vocabulary(contents, metadata)
    except FileNotFoundError:
        raise VocabularyError(f"There is no vocabulary at {path}.") from None
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise VocabularyError(f"{path} is not a vocabulary: {error}") from error


def open_in(folder: Path, vocabulary_id: str | None = None) -> Vocabulary:
    """Open the vocabulary ``vocabulary_id`` (default: the locked one) from ``folder``; the locked one is built first if
    it is missing. Raises `VocabularyError` with the id of any other one that is missing: it is never replaced."""
    lock = current_entry()
    vocabulary_id = vocabulary_id or lock.id
    path = Path(folder) / f"{vocabulary_id}.arrow"
    if not path.exists():
        if vocabulary_id != lock.id:
            raise VocabularyError(
                f"Vocabulary {vocabulary_id} is not in {folder}; this version of Rowsmith builds {lock.id}."
            )
        build.build(folder)
    opened = load(path)
    if opened.id != vocabulary_id:
        raise VocabularyError(f"{path} holds vocabulary {opened.id}, not {vocabulary_id}.")
    return opened


@cache
def open_default(folder: Path | None = None) -> Vocabulary:
    """The locked vocabulary, from ``folder`` or the checkout's ``var/vocab``; built there on first need."""
    return open_in(folder or REPOSITORY_ROOT / "var" / "vocab")
