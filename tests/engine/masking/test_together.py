"""Fields of one place or one person are masked together, so that a masked row has a real place and one person."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from webapp.engine import spec
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.external_values import ExternalResponse, LoadedSource
from webapp.engine.masking import KeyRing
from webapp.engine.plan import compile_plan
from webapp.engine.source_data import SourceSpec, SourceTable
from webapp.row_templates.services import compilation

ROWS = 600
SOURCE = SourceSpec(file="places.csv")
KEYS = KeyRing(1, {1: bytes(range(32))})
PLACE = [
    {"name": "city", "type": "city", "sensitive": True},
    {"name": "zip", "type": "zip_code", "masking": {"strategy": "replace"}},
    {"name": "state", "type": "state", "sensitive": True},
]


@pytest.fixture(scope="module")
def words() -> Vocabulary:
    return compilation.vocabulary()


@pytest.fixture(scope="module")
def real(words) -> pa.Table:
    """Real places, a fifth of them twice, one city blank now and then."""
    bare = [{**item, "sensitive": False, "masking": None} for item in PLACE]
    result = BoundPlan(
        compile_plan(spec.parse(bare, locale="en_US"), words), GenerationContext("real", plans_now())
    )
    rows = np.arange(ROWS, dtype=np.uint64) % np.uint64(ROWS * 4 // 5)
    block = result.block_at(rows)
    columns = {name: block.column(name).cast(pa.string()).to_pylist() for name in ("city", "zip", "state")}
    columns["city"] = [None if row % 50 == 7 else item for row, item in enumerate(columns["city"])]
    return pa.table(columns)


def plans_now():
    from datetime import UTC, datetime

    return datetime(2026, 1, 1, tzinfo=UTC)


def masked(words, real, fields=PLACE, order=None, seed="s") -> dict[str, list[str | None]]:
    parsed = spec.parse(fields, locale="en_US", source=SOURCE)
    plan = compile_plan(parsed, words)
    question = SOURCE.external_query().key
    answer = ExternalResponse(
        pa.table({}), "snapshot", loaded_source=LoadedSource(SourceTable(real, "snapshot"), KEYS, "place")
    )
    bound = BoundPlan(plan.with_responses({question: answer}), GenerationContext(seed, plans_now()))
    rows = np.arange(real.num_rows, dtype=np.uint64) if order is None else order
    block = bound.block_at(rows)
    return {field["name"]: block.column(field["name"]).cast(pa.string()).to_pylist() for field in fields}


def test_city_state_and_postal_code_of_a_masked_row_agree(words, real):
    found = masked(words, real)
    tables = words.table("cities") if hasattr(words, "table") else None
    pairs = {}
    for city, state, code in zip(found["city"], found["state"], found["zip"], strict=True):
        if city is not None:
            pairs.setdefault((city, state), set()).add(code[:3])
    states = {}
    for code, state in zip(found["zip"], found["state"], strict=True):
        states.setdefault(code[:3], set()).add(state)
    assert tables is None or pairs
    assert max(len(of) for of in states.values()) == 1, (
        "the first digits of a postal code belong to one state"
    )


def test_no_part_of_the_real_place_stays_in_its_row(words, real):
    found = masked(words, real)
    for name in ("city", "zip", "state"):
        old = real.column(name).to_pylist()
        assert not [
            item for item, new in zip(old, found[name], strict=True) if item is not None and item == new
        ]


def test_blanks_stay_blank_and_the_others_do_not(words, real):
    found = masked(words, real)
    assert [item is None for item in found["city"]] == [
        item is None for item in real.column("city").to_pylist()
    ]
    assert None not in found["zip"]


def test_the_same_place_becomes_the_same_other_one_in_any_order_and_run(words, real):
    once, again = masked(words, real), masked(words, real, seed="other")
    assert once == again
    order = np.random.default_rng(1).permutation(ROWS).astype(np.uint64)
    mixed = masked(words, real, order=order)
    assert mixed["city"] == [once["city"][row] for row in order]


def test_a_field_with_a_custom_domain_is_independent(words, real):
    other = [PLACE[0], {**PLACE[1], "masking": {"strategy": "replace", "domain": "codes"}}, PLACE[2]]
    codes = masked(words, real, other)["zip"]
    assert codes == masked(words, real, [other[1]])["zip"]
    assert codes != masked(words, real)["zip"]


# --- People -------------------------------------------------------------------------------------------------

PERSON = [
    {"name": "email", "type": "email", "masking": {"strategy": "replace"}},
    {"name": "first", "type": "first_name", "masking": {"strategy": "replace"}},
    {"name": "last", "type": "last_name", "masking": {"strategy": "replace"}},
    {"name": "full", "type": "name", "masking": {"strategy": "replace"}},
    {"name": "login", "type": "username", "masking": {"strategy": "replace"}},
]


@pytest.fixture(scope="module")
def people(words) -> pa.Table:
    """Real people, a fifth of them twice; some have no address, and some not even a name."""
    bare = [{**item, "masking": None} for item in PERSON]
    plan = compile_plan(spec.parse(bare, locale="en_US"), words)
    rows = np.arange(ROWS, dtype=np.uint64) % np.uint64(ROWS * 4 // 5)
    block = BoundPlan(plan, GenerationContext("people", plans_now())).block_at(rows)
    columns = {item["name"]: block.column(item["name"]).cast(pa.string()).to_pylist() for item in PERSON}
    columns["email"] = [
        None if row % 50 == 7 else "" if row % 50 == 8 else item for row, item in enumerate(columns["email"])
    ]
    columns["last"] = [None if row % 100 == 7 else item for row, item in enumerate(columns["last"])]
    return pa.table(columns)


def fit(handle: str, first: str, last: str) -> bool:
    """Whether a user name, or the front of an address, is made of these names."""
    plain = (handle.partition("@")[0]).lower()
    return last.lower().replace(" ", "").replace("'", "") in plain and plain[0] == first[0].lower()


def test_names_and_addresses_of_a_masked_row_belong_to_one_person(words, people):
    found = masked(words, people, PERSON)
    rows = list(zip(*(found[item["name"]] for item in PERSON), strict=True))
    whole = [row for row in rows if None not in row]
    assert len(whole) > ROWS * 9 // 10
    assert all(full == f"{first} {last}" for _, first, last, full, _ in whole)
    with_address = [row for row, real in zip(rows, people.column("email").to_pylist(), strict=True) if real]
    off = [row for row in with_address if row[2] and not fit(row[0], row[1], row[2])]
    assert len(off) <= ROWS // 50, "only rows whose names would have shown the real ones"
    assert [row for row in whole if not fit(row[4], row[1], row[2])] == []


def test_no_real_name_stays_in_its_row(words, people):
    found = masked(words, people, PERSON)
    for name in found:
        old = people.column(name).to_pylist()
        assert not [item for item, new in zip(old, found[name], strict=True) if item and item == new]
        assert [item is None for item in old] == [item is None for item in found[name]]


def test_people_without_an_address_differ(words, people):
    found = masked(words, people, PERSON)
    blank = [row for row, real in enumerate(people.column("email").to_pylist()) if not real]
    assert len({found["full"][row] for row in blank}) > len(blank) * 3 // 4


def test_an_address_is_masked_the_same_with_and_without_names(words, people):
    alone = [PERSON[0]]
    assert masked(words, people, PERSON)["email"] == masked(words, people, alone)["email"]


def test_people_are_the_same_in_any_order_and_run(words, people):
    once = masked(words, people, PERSON)
    order = np.random.default_rng(1).permutation(ROWS).astype(np.uint64)
    mixed = masked(words, people, PERSON, order=order, seed="other")
    for name in once:
        assert mixed[name] == [once[name][row] for row in order]


def test_names_follow_the_user_name_where_there_is_no_address(words, people):
    fields = PERSON[1:]
    found = masked(words, people, fields)
    assert found["login"] == masked(words, people, [PERSON[4]])["login"]
    rows = list(zip(found["login"], found["first"], found["last"], strict=True))
    off = [row for row in rows if row[2] and not fit(*row)]
    assert len(off) <= ROWS // 50


def test_a_full_name_fits_the_first_and_last_name(words, people):
    found = masked(words, people, PERSON[1:4])
    rows = list(zip(found["first"], found["last"], found["full"], strict=True))
    assert all(full == f"{first} {last}" for first, last, full in rows if last)


def test_a_first_and_a_last_name_without_more_are_masked_separately(words, people):
    both = masked(words, people, PERSON[1:3])
    for field in PERSON[1:3]:
        assert both[field["name"]] == masked(words, people, [field])[field["name"]]


def test_user_names_stay_different(words, people):
    found = masked(words, people, PERSON)["login"]
    real = people.column("login").to_pylist()
    assert len(set(found)) == len(set(zip(real, found, strict=True))), "two user names became one"


def test_a_name_with_a_custom_domain_is_independent_of_the_address(words, people):
    other = [*PERSON[:3], {**PERSON[3], "masking": {"strategy": "replace", "domain": "names"}}, PERSON[4]]
    found = masked(words, people, other)["full"]
    assert found == masked(words, people, [other[3]])["full"]
    assert found != masked(words, people, PERSON)["full"]
