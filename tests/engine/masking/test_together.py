"""Fields of one place are masked together, so that the masked row contains a real place."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from webapp.engine import spec
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.external_values import Answer, ReadSource
from webapp.engine.masking import Keys
from webapp.engine.plan import compile_plan
from webapp.engine.source_data import SourceSpec, SourceTable
from webapp.row_templates.services import compilation

ROWS = 600
SOURCE = SourceSpec(file="places.csv")
KEYS = Keys(1, {1: bytes(range(32))})
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
    bare = [{**one, "sensitive": False, "masking": None} for one in PLACE]
    made = BoundPlan(
        compile_plan(spec.parse(bare, locale="en_US"), words), GenerationContext("real", plans_now())
    )
    rows = np.arange(ROWS, dtype=np.uint64) % np.uint64(ROWS * 4 // 5)
    block = made.at(rows)
    columns = {name: block.column(name).cast(pa.string()).to_pylist() for name in ("city", "zip", "state")}
    columns["city"] = [None if row % 50 == 7 else one for row, one in enumerate(columns["city"])]
    return pa.table(columns)


def plans_now():
    from datetime import UTC, datetime

    return datetime(2026, 1, 1, tzinfo=UTC)


def masked(words, real, fields=PLACE, order=None, seed="s") -> dict[str, list[str | None]]:
    parsed = spec.parse(fields, locale="en_US", source=SOURCE)
    plan = compile_plan(parsed, words)
    question = SOURCE.question().key
    answer = Answer(pa.table({}), "snapshot", taken=ReadSource(SourceTable(real, "snapshot"), KEYS, "place"))
    bound = BoundPlan(plan.answered({question: answer}), GenerationContext(seed, plans_now()))
    rows = np.arange(real.num_rows, dtype=np.uint64) if order is None else order
    block = bound.at(rows)
    return {one["name"]: block.column(one["name"]).cast(pa.string()).to_pylist() for one in fields}


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
        assert not [one for one, new in zip(old, found[name], strict=True) if one is not None and one == new]


def test_blanks_stay_blank_and_the_others_do_not(words, real):
    found = masked(words, real)
    assert [one is None for one in found["city"]] == [one is None for one in real.column("city").to_pylist()]
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
