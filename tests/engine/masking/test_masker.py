"""Rules for all masking strategies: null stays null, blocks do not matter, keys do, and no personal data remains."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from tests.engine.masking.speak import APART, KEYS, check_apart, faults, field, masked, masker, survivors
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.masking import KeyRing, MaskingError, create_masker, has_content
from webapp.engine.masking.replace import reveals
from webapp.engine.masking.settings import STRATEGIES
from webapp.engine.plan import bind_fields

EMAILS = ["anna@mail.org", None, "Bob.Miller77@mail.org", "anna@mail.org", ""]
CASES = [
    ("email", "replace"), ("email", "format_preserve"), ("email", "tokenize"), ("email", "hash"), ("email", "redact"),
    ("email", "null"), ("username", "replace"), ("first_name", "replace"), ("city", "replace"), ("uuid", "replace"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "strategy"), CASES)
def test_blanks_stay_and_blocks_dictionaries_and_chunks_change_nothing(kind, strategy):
    column, result = pa.array(EMAILS), masker(kind, strategy)
    whole = result.mask(column).to_pylist()
    assert whole[1] is None
    assert whole[0] == whole[3]
    assert [result.mask(column.slice(at, 1))[0].as_py() for at in range(len(column))] == whole
    assert result.mask(column.dictionary_encode()).to_pylist() == whole
    assert result.mask(pa.chunked_array([column.slice(0, 2), column.slice(2)])).to_pylist() == whole
    assert result.mask(pa.array(EMAILS * 1000)).to_pylist() == whole * 1000
    assert result.mask(column.cast(pa.large_string())).to_pylist() == whole
    assert len(result.mask(column.slice(0, 0))) == 0
    assert result.mask(pa.nulls(3)).to_pylist() == [None] * 3


@pytest.mark.parametrize("strategy", [item for item in STRATEGIES if item not in ("shift", "redact", "null")])
def test_the_key_its_version_the_domain_and_the_run_decide(strategy):
    real = [f"person{at}@mail.org" for at in range(50)]

    def made(**more):
        return masked("email", strategy, real, **more)

    base = made()
    assert made() == base
    assert made(run="another") == base
    assert made(keys=KeyRing(3, {**KEYS.keys, 3: b"3" * 32})) != base
    assert made(keys=KeyRing(3, {**KEYS.keys, 3: b"3" * 32}), key_version=2) == base
    assert made(key_version=1) != base
    assert made(keys=KeyRing(2, {2: b"other" + b"2" * 27})) != base
    assert made(domain="email") == base
    assert made(domain="customers") == made(domain="customers", run="another") != base
    once = made(consistent=False)
    assert once == made(consistent=False)
    assert once != base
    assert once != made(consistent=False, run="another")


def test_fields_of_one_domain_agree_with_any_types_and_kinds():
    numbers, texts = pa.array([4711, 4712]), pa.array(["4711", "4712"])
    by_number = masker("words", "tokenize", domain="customer").mask(numbers).to_pylist()
    assert (
        by_number
        == masker("regexp", "tokenize", domain="customer", options={"string": "[0-9]{4}"})
        .mask(texts)
        .to_pylist()
    )


def test_another_process_masks_in_the_same_way():
    program = (
        "from tests.engine.masking.speak import masked\n"
        f"print([masked(kind, strategy, {EMAILS!r}) for kind, strategy in {CASES!r}])"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == str([masked(kind, strategy, EMAILS) for kind, strategy in CASES])


def test_a_version_that_is_not_there_is_named():
    with pytest.raises(SpecError) as result:
        masker("email", "hash", key_version=9)
    (fault,) = result.value.faults
    assert (fault.path, fault.code) == ("fields[0].masking.key_version", "unknown_key_version")


def test_masking_without_a_key_is_reported():
    assert (masker("email", "redact").key_version, masker("email", "hash").key_version) == (0, 2)


# --- Replace ------------------------------------------------------------------------------------------------


def test_names_are_of_the_fields_locale_and_never_the_real_ones():
    words = vocabulary.open_default()
    german = {
        *words.words("first_name_female", "de_DE").to_pylist(),
        *words.words("first_name_male", "de_DE").to_pylist(),
    }
    real = pa.array(sorted(german))
    result = masker("first_name", "replace", locale="de_DE").mask(real)
    assert set(result.to_pylist()) <= german
    assert survivors(real, result) == 0


def test_replaced_addresses_are_in_reserved_domains_and_unique():
    result = masked("email", "replace", [f"p{at}@mail.org" for at in range(100)])
    assert {item.rpartition("@")[2] for item in result} == {"example.com", "example.org", "example.net"}
    assert len({item.rpartition("@")[0][-13:] for item in result}) == 100


def test_a_type_of_one_value_cannot_hide_it():
    with pytest.raises(MaskingError) as result:
        masked("enum", "replace", ["only"], options={"values": ["only"]})
    assert result.value.code == "no_other_value"
    assert "only" not in result.value.message.split()[0]


def test_values_of_the_fields_own_type_replace_texts_and_numbers():
    options = {"min": 100, "max": 999}
    assert all(100 <= item <= 999 for item in masked("number", "replace", [1, 2, 3], options=options))
    assert all(isinstance(item, str) for item in masked("number", "replace", ["1", "2"], options=options))
    days = masker("date", "replace").mask(pa.array([date(1980, 1, 1)]))
    assert days.type == pa.date32()


def test_a_short_identifier_has_no_room_for_the_bits():
    assert masker("nanoid", "replace").collision_free
    assert not masker("nanoid", "replace", options={"size": 5}).collision_free
    with pytest.raises(SpecError):
        masker("nanoid", "replace", options={"size": 5}, unique=True)


# --- Shift --------------------------------------------------------------------------------------------------


def shifted(values, people, kind="date", **more):
    column = values if isinstance(values, pa.Array) else pa.array(values)
    return masker(kind, "shift", person="who", **more).mask(column, pa.array(people)).to_pylist()


def test_dates_of_one_person_keep_their_distances_and_those_of_two_do_not():
    days = [date(2020, 1, 1), date(2020, 3, 1), date(2020, 1, 1), None]
    first, second, other, blank = shifted(days, ["a", "a", "b", "b"])
    assert second - first == days[1] - days[0]
    assert first != days[0]
    assert other - days[2] != first - days[0]
    assert blank is None
    assert 1 <= abs((first - days[0]).days) <= 365


def test_every_person_is_moved():
    real = [date(2020, 1, 1)] * 5000
    result = shifted(real, [f"p{at}" for at in range(5000)])
    assert real[0] not in result
    assert len({item - real[0] for item in result}) > 700


def test_moments_and_texts_move_as_days_do():
    (day,) = shifted([date(2020, 5, 17)], ["a"])
    (moment,) = shifted([datetime(2020, 5, 17, 12, 30, tzinfo=UTC)], ["a"], domain="date", kind="datetime")
    (iso,) = shifted(["2020-05-17T12:30:00Z"], ["a"])
    (spelled,) = shifted(["17.05.2020"], ["a"], options={"format": "DD.MM.YYYY"})
    assert moment.date() == day
    assert moment.time().isoformat() == "12:30:00"
    assert iso == f"{day.isoformat()}T12:30:00Z"
    assert spelled == day.strftime("%d.%m.%Y")


def test_the_ends_of_the_calendar_hold():
    ends = [date(1, 1, 1), date(9999, 12, 31)] * 50
    result = shifted(ends, [f"p{at}" for at in range(100)])
    assert all(isinstance(item, date) for item in result)
    assert not set(result) & set(ends)


def test_invalid_dates_are_counted_and_not_shown():
    with pytest.raises(MaskingError) as result:
        shifted(["2020-01-01", "secret", "2020-02-31"], ["a", "b", "c"])
    assert result.value.code == "no_date"
    assert result.value.message.startswith("2 value(s)")
    assert "secret" not in str(result.value)
    with pytest.raises(MaskingError):
        shifted([1, 2], ["a", "b"])
    assert shifted(["", None], ["a", "b"]) == ["", None]


def test_a_format_that_cannot_be_parsed_is_rejected():
    with pytest.raises(SpecError) as result:
        masker("date", "shift", person="who", options={"format": "YYYY"})
    assert result.value.faults[0].code == "not_for_this_type"


# --- The rest -----------------------------------------------------------------------------------------------


def test_a_value_equal_to_the_redaction_text_is_redacted_too():
    assert masked("email", "redact", ["x", "[redacted]", "[Redacted]"]) == [
        "[redacted]",
        "[removed]",
        "[removed]",
    ]


def test_telling_values_have_letters_or_digits():
    assert has_content(pa.array(["a", "", "--", None, "ß", "😀", "7"])).tolist() == [
        True,
        False,
        False,
        False,
        True,
        False,
        True,
    ]
    assert has_content(pa.array([1, None])).tolist() == [True, False]
    assert has_content(pa.array(["a", "-"]).dictionary_encode()).tolist() == [True, False]
    assert has_content(pa.array([], pa.string())).tolist() == []


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ({"type": "email"}, "replace"), ({"type": "email", "unique": True}, "replace"),
        ({"type": "ssn", "unique": True}, "format_preserve"), ({"type": "boolean"}, "null"),
        ({"type": "row_number"}, "null"), ({"type": "first_name"}, "replace"),
    ],
)  # fmt: skip
def test_a_sensitive_field_that_says_nothing_is_replaced_or_shows_as_little_as_it_can(text, strategy):
    kind = text.pop("type")
    assert masker(kind, **text).strategy == strategy


def test_small_numbers_are_shown():
    (warning,) = masker("number", "format_preserve", options={"min": 1, "max": 99}).warnings
    assert warning.code == "guessable"
    assert masker("email", "format_preserve").warnings == ()


def test_a_masker_documents_which_values_stay_distinct():
    assert masker("email", "replace").disjoint
    assert not masker("email", "format_preserve").disjoint
    assert masker("email", "tokenize").disjoint
    assert masker("date", "shift", person="who").exact_only
    assert masker("date", "shift", person="who").needs == "who"
    assert create_masker(
        field("email"), vocabulary.open_default(), KEYS, bind_fields, run_id="r"
    ).collision_free


# --- Refused when a template is read ------------------------------------------------------------------------

WHO = {"name": "who", "type": "uuid"}


@pytest.mark.parametrize(
    ("text", "path", "code"),
    [
        (
            {"type": "words", "masking": {"strategy": "shift", "person": "who"}},
            "strategy",
            "not_for_this_type",
        ),
        ({"type": "date", "masking": {"strategy": "shift"}}, "person", "required"),
        ({"type": "date", "masking": {"strategy": "shift", "person": "x"}}, "person", "unknown_field"),
        ({"type": "date", "masking": {"strategy": "shift", "person": "nobody"}}, "person", "unknown_field"),
        ({"type": "email", "masking": {"strategy": "hash", "person": "who"}}, "person", "contradiction"),
        ({"type": "date", "masking": {"strategy": "format_preserve"}}, "strategy", "not_for_this_type"),
        ({"type": "boolean", "masking": {"strategy": "replace"}}, "strategy", "not_for_this_type"),
        ({"type": "row_number", "masking": {"strategy": "replace"}}, "strategy", "not_for_this_type"),
        ({"type": "number", "masking": {"strategy": "tokenize"}}, "strategy", "not_for_this_type"),
        ({"type": "date", "masking": {"strategy": "hash"}}, "strategy", "not_for_this_type"),
        (
            {"type": "first_name", "unique": True, "masking": {"strategy": "replace"}},
            "strategy",
            "not_unique",
        ),
        ({"type": "city", "unique": "all", "masking": {"strategy": "replace"}}, "strategy", "not_unique"),
        ({"type": "email", "unique": True, "masking": {"strategy": "redact"}}, "strategy", "not_unique"),
        (
            {"type": "email", "masking": {"strategy": "hash", "consistent": False, "domain": "d"}},
            "domain",
            "contradiction",
        ),
        ({"type": "email", "masking": {"strategy": "wrong"}}, "strategy", "literal_error"),
        ({"type": "email", "masking": {}}, "strategy", "required"),
        ({"type": "email", "masking": {"strategy": "hash", "salt": "s"}}, "salt", "unknown_key"),
    ],
)
def test_unsupported_options_are_rejected_by_their_path(text, path, code):
    assert faults({"name": "x", **text}, WHO) == {f"fields[0].masking.{path}": code}


def test_masking_makes_a_field_sensitive_and_cannot_be_combined_with_the_opposite():
    assert field("email", {"strategy": "hash"}).common.sensitive
    text = {"name": "x", "type": "email", "masking": {"strategy": "hash"}}
    assert faults({**text, "sensitive": False}) == {"fields[0].masking": "contradiction"}
    assert faults(text) == {}


def test_queried_values_are_returned_unchanged():
    requests = {"strategy": "tokenize", "domain": "customers"}
    assert field("email", requests).to_json()["masking"] == requests
    assert field("email").to_json()["masking"] is None


@pytest.mark.parametrize(
    ("real", "result", "expected"),
    [
        ("Anna", "anna", True), ("Anna", "Bob", False), ("a-1-2", "12", True), ("12", "21", False), ("1", "11", False),
        ("12345", "x12345y", True), ("1234", "x12345", False), ("abc", "xabcx", False), ("abcde", "xabcdex", True),
        ("", "x", False), ("x", "", False), ("--", "**", False),
    ],
)  # fmt: skip
def test_masked_values_that_still_show_the_real_value(real, result, expected):
    column = pa.array(["other", real, "3 4"]), pa.array(["thing", result, "4 3"])
    assert reveals(*column).tolist() == [False, expected, False]


@pytest.mark.parametrize(("kind", "source", "strategy"), APART)
def test_no_two_values_meet_and_none_stays_itself(kind, source, strategy):
    check_apart(kind, source, strategy, 20_000)
