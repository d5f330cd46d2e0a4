"""Identifiers have their form, their bits, and never repeat."""

from __future__ import annotations

import string
import uuid
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest

from tests.engine.types.made import NOW, bound, faults, table, values

MILLISECONDS = int(NOW.timestamp() * 1000)
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@pytest.mark.parametrize("version", [4, 7])
def test_a_uuid_is_of_its_version_and_variant(version):
    for text in values("uuid", 2000, options={"version": version}):
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, version, uuid.RFC_4122)


@pytest.mark.parametrize("version", [4, 7])
def test_every_other_bit_of_a_uuid_is_as_often_1_as_0(version):
    numbers = [uuid.UUID(text).int for text in values("uuid", 4000, options={"version": version})]
    bits = np.array([[number >> place & 1 for place in range(128)] for number in numbers]).mean(axis=0)
    fixed = {76, 77, 78, 79, 62, 63} | (set(range(80, 128)) if version == 7 else set())
    free = [share for place, share in enumerate(bits) if place not in fixed]
    assert max(abs(share - 0.5) for share in free) < 5 * 0.5 / np.sqrt(4000)


def test_uuids_of_version_7_rise_from_now_on():
    found = values("uuid", 3000, options={"version": 7})
    assert found == sorted(found)
    assert uuid.UUID(found[0]).int >> 80 == MILLISECONDS
    assert uuid.UUID(found[2999]).int >> 80 == MILLISECONDS + 2999


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("uuid", {}),
        ("uuid", {"version": 7}),
        ("ulid", {}),
        ("nanoid", {}),
        ("nanoid", {"size": 11}),
        ("mongodb_objectid", {}),
    ],
)
def test_identifiers_never_repeat_even_far_apart(kind, options):
    source = bound([{"name": "x", "type": kind, "options": options, "unique": kind != "nanoid"}])
    found = []
    for start in (0, 2**24 - 500, 2**32 - 500, 2**48 - 500, 2**53):
        found.extend(table(source, start, 1000)["x"])
    assert len(set(found)) == 5000


def test_the_bits_that_a_row_decides_are_kept_whole():
    # All 64 bits of the first word can be read off the text, so two rows cannot share one.
    from webapp.engine import random

    source = bound([{"name": "x", "type": "uuid"}])
    word = random.bits(source.keys["x"], np.arange(500, dtype=np.uint64)).tolist()
    for text, expected in zip(table(source, 0, 500)["x"], word, strict=True):
        number = uuid.UUID(text).int
        high, low = number >> 64, number & (2**64 - 1)
        assert (high & ~0xF000) | (low & 0xF) << 12 == expected


def test_a_primary_key_is_never_blank():
    assert faults("uuid", {"primaryKey": True}, percent_blank=1) == {"percent_blank": "conflict"}
    assert faults("uuid", {"primary_key": True}) == {}


def test_an_unknown_version_is_rejected():
    assert faults("uuid", {"version": 1}) == {"options.version": "literal_error"}


def test_a_ulid_holds_its_moment_and_sorts_by_it():
    found = values("ulid", 2000)
    assert found == sorted(found)
    assert {len(text) for text in found} == {26}
    numbers = [
        sum(CROCKFORD.index(ch) << 5 * place for place, ch in enumerate(reversed(text))) for text in found
    ]
    assert [number >> 80 for number in numbers] == [MILLISECONDS + row for row in range(2000)]
    low = np.array([[number >> place & 1 for place in range(80)] for number in numbers]).mean(axis=0)
    assert np.abs(low - 0.5).max() < 5 * 0.5 / np.sqrt(2000)


@pytest.mark.parametrize("size", [2, 9, 10, 11, 14, 21, 40])
def test_a_nanoid_has_the_length_and_letters_of_its_kind(size):
    found = values("nanoid", 3000, options={"size": size})
    assert {len(text) for text in found} == {size}
    letters = string.ascii_letters + string.digits + "_-"
    for place in range(size):
        seen, counts = np.unique([text[place] for text in found], return_counts=True)
        assert set(seen) == set(letters)
        assert counts.max() < 3000 / 64 + 6 * np.sqrt(3000 / 64)


def test_a_short_nanoid_cannot_be_unique():
    assert faults("nanoid", {"size": 13}, unique=True) == {"unique": "not_unique"}
    assert faults("nanoid", {"size": 14}, unique=True) == {}


def test_an_object_id_holds_the_second_and_one_process():
    found = values("mongodb_objectid", 1000)
    assert {len(text) for text in found} == {24}
    assert {datetime.fromtimestamp(int(text[:8], 16), UTC) for text in found} == {NOW.replace(microsecond=0)}
    assert len({text[8:18] for text in found}) == 1
    counters = [int(text[18:], 16) for text in found]
    assert {(b - a) % 2**24 for a, b in pairwise(counters)} == {1}
