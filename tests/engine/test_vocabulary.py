"""The vocabulary: one file, the same everywhere, never another one in its place."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from webapp.engine.data import archive, build, vocab_lock, vocabulary
from webapp.engine.data import extract_4 as extract
from webapp.engine.data.extract import phones, postal, romanize
from webapp.engine.data.extract.tools import word_list
from webapp.engine.data.vocab_lock import VocabularyError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def words():
    return vocabulary.open_default()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Create a vocabulary of two lists and a table, with a separate lock file; return an empty folder for it."""
    monkeypatch.setattr(extract, "WORDS", {"fruit": lambda: {"": ["fig", "plum"], "de_DE": ["Feige"]}})
    monkeypatch.setattr(extract, "TABLES", {"trees": lambda: pa.table({"name": ["oak"], "height": [30]})})
    lock = tmp_path / "vocab.lock"
    monkeypatch.setattr(vocab_lock, "LOCK_FILE", lock)
    build.build(tmp_path / "first", relock=True)
    return tmp_path / "second"


def folded(word: str) -> str:
    return "".join(
        ch for ch in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(ch)
    ).strip()


def test_the_file_holds_what_the_lock_names(words):
    lock = vocab_lock.current_entry()
    contents, metadata = archive.read(vocab_lock.REPOSITORY_ROOT / "var" / "vocab" / f"{lock.id}.arrow")
    assert archive.digest(contents) == lock.id == words.id == metadata["id"]
    assert words.versions == lock.versions == build.installed_versions()


def test_a_build_that_differs_from_the_lock_is_rejected_by_name(small, monkeypatch):
    expected = vocab_lock.current_entry().id
    monkeypatch.setitem(extract.WORDS, "fruit", lambda: {"": ["fig", "pear"]})
    with pytest.raises(VocabularyError) as error:
        build.build(small)
    result = archive.digest(build.extract_columns())
    assert result != expected
    assert result in str(error.value)
    assert expected in str(error.value)
    assert "the extractor has changed" in str(error.value)
    assert not small.exists()
    assert vocab_lock.current_entry().id == expected


def test_a_refusal_names_the_libraries_that_moved(small, monkeypatch):
    lock = json.loads(vocab_lock.LOCK_FILE.read_text("utf-8"))
    vocab_lock.LOCK_FILE.write_text(
        json.dumps({**lock, "id": "0" * 32, "versions": {**lock["versions"], "faker": "1.0"}}), "utf-8"
    )
    with pytest.raises(VocabularyError, match=r"\(faker 1\.0 -> "):
        build.build(small)


def test_relocking_makes_what_is_built_the_locked_one(small, monkeypatch):
    monkeypatch.setitem(extract.WORDS, "fruit", lambda: {"": ["fig", "pear"]})
    path = build.build(small, relock=True)
    assert path.stem == vocab_lock.current_entry().id
    assert vocabulary.open_in(small).words("fruit").to_pylist() == ["fig", "pear"]


def test_the_locked_vocabulary_is_built_where_it_is_missing(small):
    opened = vocabulary.open_in(small)
    assert opened.id == vocab_lock.current_entry().id
    assert opened.table("trees").to_pylist() == [{"name": "oak", "height": 30}]
    assert opened.locales_by_name() == {"fruit": ("", "de_DE"), "trees": ()}


def test_another_vocabulary_is_never_put_in_the_place_of_a_missing_one(small):
    with pytest.raises(VocabularyError, match="f" * 32):
        vocabulary.open_in(small, "f" * 32)
    assert not small.exists()


def test_a_file_with_the_wrong_name_is_rejected(small):
    path = build.build(small)
    path.rename(small / f"{'a' * 32}.arrow")
    with pytest.raises(VocabularyError, match=f"holds vocabulary {path.stem}"):
        vocabulary.open_in(small, "a" * 32)


@pytest.mark.parametrize("content", [b"", b"no arrow at all"])
def test_a_file_that_is_not_a_vocabulary_is_rejected(tmp_path, content):
    path = tmp_path / "x.arrow"
    path.write_bytes(content)
    with pytest.raises(VocabularyError, match="not a vocabulary"):
        vocabulary.load(path)


def test_a_build_that_fails_half_way_leaves_nothing_behind(small, monkeypatch):
    def full(_source, _target):
        raise OSError("no space left")

    monkeypatch.setattr(archive.os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        build.build(small)
    assert list(small.iterdir()) == []


def test_a_missing_lock_is_named(small):
    vocab_lock.LOCK_FILE.unlink()
    with pytest.raises(VocabularyError, match=r"vocab\.lock is missing"):
        vocab_lock.current_entry()


def test_the_order_in_which_lists_are_declared_changes_no_byte(tmp_path):
    lists = {"words:a:": pa.array(["x", "y"]), "table:b": pa.array([{"n": 1}, {"n": 2}])}
    files = []
    for order in (list(lists), list(reversed(lists))):
        ordered = {name: lists[name] for name in order}
        path = tmp_path / f"{len(files)}.arrow"
        archive.write(path, ordered, {"b": "2", "a": "1"})
        files.append((archive.digest(ordered), path.read_bytes()))
    assert files[0] == files[1]


@pytest.mark.parametrize(
    "other",
    [
        {"words:a:": pa.array(["x", "yz"])},
        {"words:a:": pa.array(["xy", "z"])},
        {"words:b:": pa.array(["x", "y"])},
    ],
)
def test_every_difference_of_content_changes_the_id(other):
    assert archive.digest({"words:a:": pa.array(["x", "y"])}) != archive.digest(other)


def test_a_list_from_a_set_is_rejected():
    with pytest.raises(ValueError, match="fruit comes from a set"):
        word_list({"fig", "plum"}, "fruit")


def test_words_with_the_same_text_are_kept_once():
    assert word_list(["  René ", "RENE", "Rene\u0301", "Zoë\tMay", ""], "names").to_pylist() == [
        "René",
        "Zoë May",
    ]


def test_no_list_has_two_words_with_the_same_text(words):
    for name, locales in words.locales_by_name().items():
        for locale in locales:
            listed = [folded(word) for word in words._words[name, locale].to_pylist()]
            assert len(set(listed)) == len(listed), (name, locale)
            assert all(listed), (name, locale)


def test_words_are_the_same_buffers_at_every_call(words):
    first, second = words.words("first_name_female", "de_DE"), words.words("first_name_female", "de-de")
    assert [b and b.address for b in first.buffers()] == [b and b.address for b in second.buffers()]
    assert words.table("cities") is words.table("cities")


def test_a_locale_without_words_falls_back_to_its_language_and_then_to_the_list_for_all(words):
    assert words.words("word", "de_CH") is words.words("word", "de_DE")
    assert words.words("department", "ja_JP") is words.words("department")
    with pytest.raises(KeyError, match="no_such_list of nb_NO"):
        words.words("no_such_list", "nb_NO")


@pytest.mark.parametrize(
    ("requested", "meant"),
    [
        ("de_DE", "de_DE"),
        ("de-de", "de_DE"),
        ("de", "de_DE"),
        ("EN_gb", "en_GB"),
        ("no_NO", "nb_NO"),
        ("no", "nb_NO"),
        ("xx", None),
        ("de_ZZ", None),
        ("", None),
    ],
)
def test_a_locale_is_known_by_its_usual_spellings(words, requested, meant):
    assert words.resolve(requested) == meant
    assert words.has_locale(requested) is (meant is not None)


def test_every_locale_has_people_streets_companies_and_numbers(words):
    assert len(words.locales) >= 40
    countries = words.table("countries").to_pylist()
    phones_of = {row["alpha2"]: row["phone_count"] for row in countries}
    for locale in words.locales:
        for name in ("first_name_female", "first_name_male", "last_name_female", "last_name_male"):
            assert words.has_words(name, locale), (name, locale)
        assert len(words.words("street", locale)) >= 30, locale
        assert len(words.words("company_form", locale)) >= 2, locale
        assert 40 <= phones_of[locale[-2:]] <= phones.HEADS_OF_LOCALE, locale


def test_every_name_has_a_spelling_in_plain_letters(words):
    spelled = words.table("romanized")
    assert pc.all(pc.match_substring_regex(spelled.column("ascii"), "^[a-z]+$")).as_py()
    known = set(zip(spelled.column("locale").to_pylist(), spelled.column("word").to_pylist(), strict=True))
    for locale in words.locales:
        for name in ("first_name_female", "first_name_male", "last_name_female", "last_name_male"):
            assert {(locale, word) for word in words.words(name, locale).to_pylist()} <= known


@pytest.mark.parametrize(
    ("word", "locale", "plain"),
    [
        ("Müßig", "de_DE", "muessig"),
        ("Åse", "sv_SE", "ase"),
        ("Łukasz", "pl_PL", "lukasz"),
        ("O'Connor-Ó Sé", "en_IE", "oconnorose"),
        ("Щукин", "ru_RU", "shchukin"),
        ("Юрій", "uk_UA", "iurii"),
        ("Παπαδοπούλου", "el_GR", "papadopoulou"),
        ("현준", "ko_KR", "hyeonjun"),
        ("王小红", "zh_CN", "wangxiaohong"),
        ("İpek", "tr_TR", "ipek"),
    ],
)
def test_names_are_formatted_by_the_rules_of_their_language(word, locale, plain):
    assert romanize.letters(word, locale) == plain


def test_a_postal_pattern_is_spelled_out_in_heads_and_tails():
    codes = postal.PostalCodes()
    start, count = postal.add_region(codes, "CA", "ON", "")
    heads = codes.heads[start : start + count]
    assert count == postal.HEADS_OF_REGION
    assert {head[0] for head in heads} == set("KLMNP")
    tails = codes.tails[codes.tail_start[start] :][: codes.tail_count[start]]
    assert len(set(tails)) == 10 * 20 * 10
    assert tails[0] == " 0A0"
    assert postal.add_region(codes, "CA", "nowhere", "") == (0, 0)
    assert postal.add_region(codes, "QA", "", "") == (0, 0)


def test_relocking_keeps_what_was_present_among_the_earlier_ones(small, monkeypatch):
    before = vocab_lock.current_entry()
    monkeypatch.setitem(extract.WORDS, "fruit", lambda: {"": ["fig", "pear"]})
    build.build(small, relock=True)
    build.build(small, relock=True)  # the same again changes nothing
    assert vocab_lock.read_entries() == [vocab_lock.current_entry(), before]
    assert vocab_lock.find_entry(before.id) == before


def test_an_earlier_one_is_built_by_its_id(small, monkeypatch):
    before, words = vocab_lock.current_entry(), extract.WORDS
    monkeypatch.setattr(extract, "WORDS", {"fruit": lambda: {"": ["fig", "pear"]}})
    build.build(small, relock=True)
    monkeypatch.setattr(extract, "WORDS", words)
    assert build.build(small, vocabulary_id=before.id).stem == before.id


def test_an_id_that_the_lock_does_not_name_is_not_built(small):
    with pytest.raises(VocabularyError, match=f"names no vocabulary {'f' * 32}"):
        build.build(small, vocabulary_id="f" * 32)


def test_an_extractor_that_built_an_earlier_one_may_not_change(small, monkeypatch):
    before = vocab_lock.LOCK_FILE.read_bytes()
    monkeypatch.setitem(extract.WORDS, "fruit", lambda: {"": ["fig", "pear"]})
    monkeypatch.setattr(build, "source_digest", lambda _name: "0" * 32)
    with pytest.raises(VocabularyError, match="into a copy of that package under another name"):
        build.build(small, relock=True)
    assert vocab_lock.LOCK_FILE.read_bytes() == before
    build.build(small, relock=True, unreleased=True)
    assert len(vocab_lock.read_entries()) == 1


def test_an_extractor_that_is_not_there_is_named():
    with pytest.raises(VocabularyError, match="The extractor extract_9 cannot be used"):
        build.extract_columns("extract_9")


def test_the_extractors_of_earlier_vocabularies_are_as_they_were():
    present, *earlier = vocab_lock.read_entries()
    assert earlier
    for lock in (present, *earlier):
        assert build.source_digest(lock.extractor) == lock.source


def test_values_of_an_earlier_extractor_are_unchanged():
    from webapp.engine.data import extract as first
    from webapp.engine.data import extract_2 as second

    assert second.LOCALES == first.LOCALES
    assert second.ALIASES == first.ALIASES
    changed = {name for name, source in first.WORDS.items() if second.WORDS[name] is not source}
    assert changed == {"job_title"}
    assert all(second.TABLES[name] is source for name, source in first.TABLES.items())
    before, now = first.WORDS["job_title"](), second.WORDS["job_title"]()
    assert {locale: now[locale] for locale in before} == before
