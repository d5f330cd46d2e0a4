"""From a template to bytes: what a request fixes, and that nothing else decides a byte."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp import limits
from webapp.errors import ApiError
from webapp.generation.services import rows
from webapp.generation.services.pins import Pins
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services import compiled_plans
from webapp.row_templates.services.compiled_plans import CompiledTemplate

PRESENT = datetime(2026, 11, 21, 12, 0, 0, 999, tzinfo=UTC)
ANCHOR = datetime(2025, 1, 1, tzinfo=UTC)
WHOLE = 700  # more than a first block, so that a stream has several

FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "code", "type": "sequence", "options": {"start": 7, "step": 3, "pad": 6}, "prefix": "A-"},
    {
        "name": "amount",
        "type": "number",
        "options": {"min": -5, "max": 5000, "decimals": 2},
        "percent_blank": 12.5,
    },
    {"name": "kind", "type": "enum", "options": {"values": ["x", "y, z", 'q"']}},
    {"name": "text", "type": "derived", "options": {"value": "{{code | lower}}/{{kind}}"}},
    {
        "name": "lines",
        "type": "nested",
        "options": {
            "array": True,
            "count": {"min": 0, "max": 4},
            "fields": [
                {"name": "n", "type": "number", "options": {"min": 1, "max": 9}},
                {"name": "of", "type": "derived", "options": {"value": "{{id}}:{{n}}"}},
            ],
        },
    },
]


def source(fields: list[dict[str, Any]] | None = None, name: str = "Test rows") -> CompiledTemplate:
    return compiled_plans.compile_draft(name, fields or FIELDS, 5, ANCHOR, None)


def recipe(of: CompiledTemplate | None = None, **ask: Any) -> rows.Recipe:
    return rows.build_recipe(of or source(), GenerateInput(**{"seed": "s", **ask}), current_time=PRESENT)


def made(of: CompiledTemplate | None = None, **ask: Any) -> bytes:
    return recipe(of, **ask).open().read()


def lines(text: bytes) -> list[bytes]:
    return text.splitlines(keepends=True)


# --- The law: nothing but seed, field and row decides a cell --------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(start=st.integers(0, WHOLE - 1), count=st.integers(1, WHOLE))
def test_any_range_of_rows_is_that_range_of_the_whole(start, count):
    count = min(count, WHOLE - start)
    whole = lines(made(count=WHOLE, format="ndjson"))
    assert lines(made(offset=start, count=count, format="ndjson")) == whole[start : start + count]


@settings(max_examples=25, deadline=None)
@given(cuts=st.sets(st.integers(1, WHOLE - 1), max_size=6))
def test_a_file_cut_into_requests_is_the_same_file(cuts):
    edges = [0, *sorted(cuts), WHOLE]
    header = {"header": False}
    parts = [made(offset=a, count=b - a, format="csv", csv=header) for a, b in pairwise(edges)]
    assert b"".join(parts) == made(count=WHOLE, format="csv", csv=header)


@pytest.mark.parametrize("format", ["json", "ndjson", "csv", "sql"])
def test_the_same_request_gives_the_same_bytes(format):
    assert made(count=300, format=format) == made(source(), count=300, format=format)


def test_the_tail_of_the_whole_is_the_offset_request():
    whole = orjson.loads(made(count=WHOLE))
    assert orjson.loads(made(offset=WHOLE - 10, count=10)) == whole[-10:]


def with_ids(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**field, "id": f"fld_{i:026d}"} for i, field in enumerate(fields)]


FLAT = with_ids([field for field in FIELDS if field["type"] != "nested"])


def columns(fields: list[dict[str, Any]]) -> dict[str, list[Any]]:
    found = orjson.loads(made(source(fields), count=50))
    return {name: [row[name] for row in found] for name in found[0]}


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(FLAT))
def test_moving_fields_leaves_every_column_as_it_was(order):
    assert columns(list(order)) == columns(FLAT)


@settings(max_examples=10, deadline=None)
@given(at=st.integers(0, len(FLAT)), number=st.integers(100, 10**6))
def test_an_added_field_leaves_the_others_as_they_were(at, number):
    new = {"id": f"fld_{number:026d}", "name": "new", "type": "number", "options": {"min": 0, "max": 10**9}}
    found = columns([*FLAT[:at], new, *FLAT[at:]])
    assert {name: found[name] for name in columns(FLAT)} == columns(FLAT)


def test_a_renamed_field_keeps_its_values():
    renamed = [{**field, "name": "sum"} if field["name"] == "amount" else field for field in FLAT]
    before, after = columns(FLAT), columns(renamed)
    assert after.pop("sum") == before.pop("amount")
    assert after == before


# --- Pins -----------------------------------------------------------------------------------------------------


def test_a_seed_without_now_depends_on_the_anchor():
    assert recipe(seed="s").pins.now == ANCHOR


def test_no_seed_and_no_now_means_the_present_and_a_seed_of_our_own():
    pins = recipe(seed=None).pins
    assert pins.now == PRESENT.replace(microsecond=0)
    assert len(pins.seed) == 2 * limits.SEED_BYTES
    assert pins.seed != recipe(seed=None).pins.seed


def test_a_sent_now_wins():
    assert recipe(now="2024-05-06T07:08:09+02:00").pins.now == datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)


def test_pins_are_stored_and_read_back_equal():
    pins = recipe(seed="ünïcode", now="2024-05-06T07:08:09.25Z", locale=None).pins
    assert Pins.from_json(orjson.loads(orjson.dumps(pins.to_json()))) == pins


@pytest.mark.parametrize(
    ("seed", "header"),
    [("s-1_~", "s-1_~"), ("50%", "50%25"), ("a b", "a%20b"), ("é\n", "%C3%A9%0A"), ("a=b;c", "a=b;c")],
)
def test_any_seed_fits_into_its_header(seed, header):
    assert Pins(seed=seed, now=PRESENT, vocabulary="v").headers()["X-Seed"] == header


# --- Requests -------------------------------------------------------------------------------------------------


def test_count_is_the_templates_quantity_when_left_out():
    assert len(orjson.loads(made())) == 5


def test_an_override_is_seen_by_the_fields_that_read_it():
    found = orjson.loads(made(count=3, overrides={"kind": "K"}))
    assert {row["kind"] for row in found} == {"K"}
    assert all(row["text"].endswith("/K") for row in found)


def test_an_override_of_an_unknown_field_is_rejected_with_a_hint():
    with pytest.raises(ApiError) as caught:
        recipe(overrides={"kidn": 1})
    assert caught.value.details["fields"][0]["path"] == "overrides.kidn"
    assert "kind" in caught.value.details["fields"][0]["hint"]


def test_a_unique_field_with_too_few_values_is_rejected_before_the_first_row():
    few = [{"name": "n", "type": "number", "options": {"min": 1, "max": 3}, "unique": True}]
    assert len(orjson.loads(made(source(few), count=3))) == 3
    for ask in ({"count": 4}, {"count": 1, "offset": 3}):
        with pytest.raises(ApiError) as caught:
            recipe(source(few), **ask)
        assert caught.value.code == "validation_error"
        assert "n" in caught.value.details["fields"][0]["message"]


def test_rows_whose_elements_cannot_be_numbered_are_rejected():
    wide = [
        {
            "name": "lines",
            "type": "nested",
            "options": {"array": True, "count": {"min": 0, "max": 10_000}, "fields": [FIELDS[0]]},
        }
    ]
    with pytest.raises(ApiError) as caught:
        recipe(source(wide), count=1, offset=limits.MAX_OFFSET)
    assert caught.value.details["fields"][0]["path"] == "offset"


# --- Output ---------------------------------------------------------------------------------------------------


def test_an_opened_output_has_made_its_first_block_and_no_more():
    output = recipe(count=100_000).open()
    assert output.rows_generated == limits.FIRST_BLOCK_ROWS
    output.close()
    assert output.rows_generated == limits.FIRST_BLOCK_ROWS


def test_a_closed_output_makes_no_more_rows():
    output = recipe(count=100_000, format="csv").open()
    pieces = iter(output)
    next(pieces)
    next(pieces)
    stopped_at = output.rows_generated
    output.close()
    assert list(pieces) == []
    assert output.rows_generated == stopped_at < 100_000


def test_the_first_piece_holds_the_opening_and_the_first_rows():
    assert next(iter(recipe(count=100_000).open())).startswith(b'[\n{"id":1,')


@pytest.mark.parametrize(
    ("name", "stem", "table"),
    [
        ("Customers", "Customers", "customers"),
        ("Bestellungen (größere)", "Bestellungen (größere)", "bestellungen_groere"),
        ("2026 orders", "2026 orders", "t_2026_orders"),
        ("../../etc/passwd", "etc_passwd", "etc_passwd"),
        ("顧客", "顧客", "rows"),
        ("a\r\nX-Evil: 1", "a__X-Evil_ 1", "a_x_evil_1"),
        (" . ", "rows", "rows"),
    ],
)
def test_a_template_name_becomes_a_file_and_a_table_name(name, stem, table):
    assert rows.file_stem(name) == stem
    assert rows.slug(name) == table


def test_a_download_header_holds_no_line_break_and_no_bare_quote():
    for name in ('a"b', "a\r\nb", "ä", "x" * 500):
        header = rows.content_disposition(rows.file_stem(name) + ".csv")
        assert header.isascii()
        assert header.isprintable()
        assert header.count('"') == 2


def test_a_csv_without_a_header_line_is_reported():
    assert recipe(format="csv").content_type == "text/csv; charset=utf-8; header=present"
    assert (
        recipe(format="csv", csv={"header": False}).content_type == "text/csv; charset=utf-8; header=absent"
    )


@pytest.mark.parametrize(
    "name", ["données", "наименование", "a.данные", 'say "hi".csv', ".файл", "x.7z", "é.7z"]
)
def test_any_name_of_a_file_is_a_header_that_http_can_carry(name):
    header = rows.content_disposition(name)
    header.encode("latin-1")
    assert header.startswith('attachment; filename="')
