"""Rows over REST match the request and are reproducible, and failed requests do not count toward the quota."""

from __future__ import annotations

import csv
import gc
import io
import math
import time
from datetime import UTC, datetime

import orjson
import pyarrow as pa
import pytest

from tests.views.speak import FIELDS, faults, make, refused, rows_used
from webapp import clock, limits, memory
from webapp.engine import processor_time
from webapp.engine.processor_time import CpuBudget, CpuBudgetError
from webapp.generation.services import generate

PINS = ("X-Seed", "X-Now", "X-Template-Version", "X-Vocabulary", "X-Engine")


# --- What comes -----------------------------------------------------------------------------------------------


def test_rows_are_one_json_array_with_the_requested_number_of_objects(edith, path):
    answer = edith.post(f"{path}/generate", json={"count": 3})
    assert answer.status_code == 200
    assert answer.mimetype == "application/json"
    assert [list(row) for row in answer.json] == [["id", "code", "amount", "text"]] * 3
    assert [row["id"] for row in answer.json] == [1, 2, 3]


def test_count_and_body_may_be_left_out(edith):
    created = make(edith, quantity=4)
    assert len(edith.post(f"/templates/{created['id']}/generate").json) == 4
    assert len(edith.post(f"/templates/{created['id']}/generate", json={}).json) == 4


@pytest.mark.parametrize(
    ("format", "kind", "extension"),
    [
        ("json", "application/json", "json"),
        ("ndjson", "application/x-ndjson", "ndjson"),
        ("csv", "text/csv", "csv"),
        ("sql", "application/sql", "sql"),
        ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
        ("parquet", "application/vnd.apache.parquet", "parquet"),
    ],
)
def test_every_format_has_its_type_and_a_file_name(edith, format, kind, extension):
    created = make(edith, name="Größe 5")
    answer = edith.post(f"/templates/{created['id']}/generate", json={"format": format, "count": 2})
    assert answer.status_code == 200
    assert answer.mimetype == kind
    disposition = answer.headers["Content-Disposition"]
    assert disposition.startswith(f'attachment; filename="groe_5.{extension}"')
    assert disposition.endswith(f"filename*=UTF-8''Gr%C3%B6%C3%9Fe%205.{extension}")
    assert len(answer.data) > 10


@pytest.mark.parametrize(
    ("accept", "mimetype"),
    [
        ("text/csv", "text/csv"),
        ("TEXT/CSV; q=0.9, */*;q=0.1", "text/csv"),
        ("text/csv; charset=utf-8", "text/csv"),
        ("Text/CSV;Charset=UTF-8;header=present;q=0.8", "text/csv"),
        ("text/csv;charset=utf-8;q=0.5, application/json", "application/x-ndjson"),
        ("text/csv, application/json", "text/csv"),
        ("application/json, text/csv;q=0.5", "application/x-ndjson"),
        ("text/csv;q=0", "application/x-ndjson"),
        ("*/*", "application/x-ndjson"),
        ("text/*", "application/x-ndjson"),
        ("application/xml", "application/x-ndjson"),
        ("nonsense", "application/x-ndjson"),
        ("", "application/x-ndjson"),
    ],
)
def test_accept_text_csv_wins_over_the_format_and_nothing_else_does(edith, path, accept, mimetype):
    answer = edith.post(f"{path}/generate", json={"format": "ndjson", "count": 2}, headers={"Accept": accept})
    assert (answer.status_code, answer.mimetype) == (200, mimetype)


def test_csv_and_sql_options_are_obeyed(edith, path):
    text = edith.post(
        f"{path}/generate", json={"format": "csv", "count": 2, "csv": {"delimiter": ";", "header": False}}
    ).text
    assert [row[0] for row in csv.reader(io.StringIO(text), delimiter=";")] == ["1", "2"]
    sql = {"table": "shop.orders", "create_table": True, "dialect": "postgresql"}
    text = edith.post(f"{path}/generate", json={"format": "sql", "count": 2, "sql": sql}).text
    assert "CREATE TABLE" in text
    assert "orders" in text


def test_many_rows_are_streamed_whole(edith, path):
    answer = edith.post(f"{path}/generate", json={"count": 20_000, "seed": "s", "format": "ndjson"})
    assert "Content-Length" not in answer.headers
    lines = answer.data.splitlines()
    assert len(lines) == 20_000
    assert orjson.loads(lines[-1])["id"] == 20_000


# --- Having it again ------------------------------------------------------------------------------------------


def test_the_headers_are_enough_to_have_the_same_rows_again(edith, path):
    first = edith.post(f"{path}/generate", json={"count": 50})
    again = edith.post(
        f"{path}/generate", json={"count": 50, "seed": first.headers["X-Seed"], "now": first.headers["X-Now"]}
    )
    assert again.data == first.data
    assert [again.headers[name] for name in PINS] == [first.headers[name] for name in PINS]
    assert first.headers["X-Template-Version"] == "1"
    assert edith.post(f"{path}/generate", json={"count": 50}).data != first.data


def test_an_offset_request_is_the_tail_of_the_whole(edith, path):
    whole = edith.post(f"{path}/generate", json={"count": 1000, "seed": "s"}).json
    assert edith.post(f"{path}/generate", json={"count": 10, "offset": 990, "seed": "s"}).json == whole[-10:]


@pytest.mark.parametrize("path", ["/generate", "/preview"])
def test_the_same_seed_gives_the_same_bytes_of_a_draft_on_every_day(edith, monkeypatch, path):
    fields = [{"name": "d", "type": "date", "options": {"min": "-30d", "max": "now"}}]
    ask = {"fields": fields, "seed": "s", "count": 3}
    answers = []
    for year in (2026, 2031):
        monkeypatch.setattr(clock, "now", lambda year=year: datetime(year, 6, 1, tzinfo=UTC))
        answers.append(edith.post(path, json=ask))
    assert answers[0].status_code == 200
    assert answers[0].data == answers[1].data
    assert edith.post("/generate", json=ask).headers["X-Now"] == "2026-01-01T00:00:00Z"
    requests = {**ask, "now": "present"}
    assert edith.post(path, json=requests).data != answers[1].data
    assert edith.post("/generate", json=requests).headers["X-Now"] == "2031-06-01T00:00:00Z"
    anchored = {**ask, "anchor": "2020-02-03T04:05:06Z"}
    assert edith.post("/generate", json=anchored).headers["X-Now"] == "2020-02-03T04:05:06Z"
    del ask["seed"]
    assert edith.post("/generate", json=ask).headers["X-Now"] == "2031-06-01T00:00:00Z"


def test_a_saved_template_uses_the_current_time_on_request(edith, monkeypatch):
    created = make(edith, anchor="2020-02-03T04:05:06Z")
    monkeypatch.setattr(clock, "now", lambda: datetime(2031, 1, 1, tzinfo=UTC))
    sent = {"seed": "s", "now": "present"}
    assert (
        edith.post(f"/templates/{created['id']}/generate", json=sent).headers["X-Now"]
        == "2031-01-01T00:00:00Z"
    )
    assert faults(edith.post(f"/templates/{created['id']}/generate", json={"now": "soon"})) == {
        "now": "invalid"
    }


def test_a_seed_depends_on_the_anchor_and_no_seed_on_the_present(edith, monkeypatch):
    created = make(edith, anchor="2020-02-03T04:05:06Z")
    path = f"/templates/{created['id']}/generate"
    monkeypatch.setattr(clock, "source", lambda: datetime(2031, 1, 1, tzinfo=UTC).timestamp())
    assert edith.post(path, json={"seed": "s"}).headers["X-Now"] == "2020-02-03T04:05:06Z"
    assert edith.post(path, json={}).headers["X-Now"] == "2031-01-01T00:00:00Z"
    sent = {"seed": "s", "now": "2025-01-01T00:00:00+01:00"}
    assert edith.post(path, json=sent).headers["X-Now"] == "2024-12-31T23:00:00Z"


def test_a_change_of_the_template_is_visible_immediately(edith, path):
    edith.post(f"{path}/generate", json={"count": 1})
    edith.patch(path, json={"fields": FIELDS[:1]})
    answer = edith.post(f"{path}/generate", json={"count": 1})
    assert answer.json == [{"id": 1}]
    assert answer.headers["X-Template-Version"] == "2"


def test_an_override_holds_in_every_row_and_is_seen_by_others(edith, path):
    found = edith.post(f"{path}/generate", json={"count": 3, "overrides": {"code": "K", "amount": 1.5}}).json
    assert [(row["code"], row["amount"], row["text"]) for row in found] == [("K", 1.5, "K/1.50")] * 3


def test_rows_of_a_draft_equal_those_of_the_template_saved_from_it(edith):
    fields = [{**field, "id": f"fld_{i:026d}"} for i, field in enumerate(FIELDS)]
    created = make(edith, fields=fields)
    ask = {"seed": "s", "count": 20, "now": "2025-01-01T00:00:00Z"}
    draft = edith.post("/generate", json={"name": "T", "fields": fields, **ask})
    assert draft.status_code == 200
    assert "X-Template-Version" not in draft.headers
    assert draft.data == edith.post(f"/templates/{created['id']}/generate", json=ask).data


def test_a_draft_takes_a_whole_template_and_quantity_or_count(edith):
    created = make(edith, quantity=2)
    assert len(edith.post("/generate", json=created).json) == 2
    assert len(edith.post("/generate", json={**created, "count": 5}).json) == 5
    assert len(edith.post("/generate", json={"fields": FIELDS}).json) == limits.DEFAULT_QUANTITY


# --- Preview --------------------------------------------------------------------------------------------------


def test_a_preview_is_the_first_three_rows_and_does_not_count(edith, path):
    answer = edith.post(f"{path}/preview", json={"seed": "s"})
    assert answer.status_code == 200
    assert set(answer.json) == {"rows", "seed", "warnings"}
    assert answer.json["seed"] == "s"
    assert rows_used(edith) == 0
    assert answer.json["rows"] == edith.post(f"{path}/generate", json={"seed": "s", "count": 100}).json[:3]
    assert rows_used(edith) == 100


def test_a_preview_without_a_seed_returns_the_generated_one(edith, path):
    first = edith.post(f"{path}/preview").json
    ask = {"seed": first["seed"]}
    assert edith.post(f"{path}/preview", json=ask).json["rows"] == first["rows"]
    assert edith.post(f"{path}/preview").json["seed"] != first["seed"]


def test_a_preview_of_a_draft_is_what_saving_it_would_give(edith, path):
    fields = [*FIELDS[::-1], {"name": "new", "type": "number", "id": f"fld_{'7' * 26}"}]
    draft = edith.post(f"{path}/preview", json={"seed": "s", "fields": fields}).json["rows"]
    assert edith.get(path).json["version"] == 1
    edith.patch(path, json={"fields": fields})
    assert edith.post(f"{path}/preview", json={"seed": "s"}).json["rows"] == draft


def test_a_preview_of_an_invalid_draft_reports_all_errors(edith, path):
    fields = [{"name": "a", "type": "numbr"}, {"name": "b", "type": "number", "options": {"mni": 1}}]
    for where in (f"{path}/preview", "/preview"):
        assert faults(edith.post(where, json={"fields": fields, "sed": 1})) == {
            "sed": "unknown_key",
            "fields[0].type": "unknown_type",
            "fields[1].options.mni": "unknown_key",
        }


def test_a_preview_warns_of_too_few_values(edith):
    few = [{"name": "n", "type": "number", "options": {"min": 1, "max": 5}, "unique": True}]
    created = make(edith, fields=few)
    warnings = edith.post(f"/templates/{created['id']}/preview").json["warnings"]
    assert [warning["path"] for warning in warnings] == ["fields[0].unique"]


PLACE = [{"name": name, "type": name} for name in ("city", "country", "time_zone")]


def test_an_override_in_a_group_narrows_the_choice_or_warns(edith):
    fits = edith.post(
        "/preview", json={"fields": PLACE, "seed": "s", "overrides": {"country": "Austria"}}
    ).json
    assert fits["warnings"] == []
    assert {row["country"] for row in fits["rows"]} == {"Austria"}
    assert {row["time_zone"] for row in fits["rows"]} == {"Europe/Vienna"}
    none = edith.post(
        "/preview", json={"fields": PLACE, "seed": "s", "overrides": {"country": "Atlantis"}}
    ).json
    assert {row["country"] for row in none["rows"]} == {"Atlantis"}
    assert len(none["warnings"]) == 1


def test_the_locale_of_the_request_replaces_the_templates(edith):
    created = make(edith, fields=PLACE, locale="en_US")
    path = f"/templates/{created['id']}"
    ask = {"seed": "s", "count": 20}
    home = edith.post(f"{path}/generate", json=ask).json
    abroad = edith.post(f"{path}/generate", json={**ask, "locale": "de_AT"}).json
    assert {row["country"] for row in home} == {"United States"}
    assert {row["country"] for row in abroad} == {"Österreich"}
    assert edith.post(f"{path}/preview", json={"seed": "s", "locale": "de_AT"}).json["rows"] == abroad[:3]
    assert faults(edith.post(f"{path}/generate", json={**ask, "locale": "xx_YY"})) == {
        "locale": "unknown_locale"
    }


def test_a_viewer_previews_but_does_not_generate(edith, api, cast, path):
    victor = api(cast.victor)
    assert victor.post(f"{path}/preview").status_code == 200
    assert refused(victor.post(f"{path}/generate"), 403, "forbidden")["needs"] == "generate"
    assert refused(victor.post("/generate", json={"fields": FIELDS}), 403, "forbidden")["needs"] == "generate"


# --- Limits ---------------------------------------------------------------------------------------------------


def test_rows_are_spent_and_never_beyond_the_hour(api, cast):
    mallory = api(cast.mallory)
    path = f"/templates/{make(mallory)['id']}"
    hour = limits.PLANS["free"].rows_per_hour
    assert mallory.post(f"{path}/generate", json={"count": hour - 5}).status_code == 200
    answer = mallory.post(f"{path}/generate", json={"count": 6})
    details = refused(answer, 429, "quota_exceeded")
    assert (details["limit"], details["used"], details["requested"]) == (hour, hour - 5, 6)
    wait = int(answer.headers["Retry-After"])
    assert wait == details["retry_after"]
    assert limits.ROWS_WINDOW_SECONDS - 60 <= wait <= limits.ROWS_WINDOW_SECONDS + 2
    assert mallory.post(f"{path}/generate", json={"count": 5}).status_code == 200
    assert rows_used(mallory) == hour
    assert mallory.post(f"{path}/preview").status_code == 200


def test_an_error_in_the_first_block_is_422_and_refunds_its_rows(edith, monkeypatch, path):
    from webapp.engine.blocks import Block
    from webapp.engine.errors import SpecError
    from webapp.errors import Fault

    def broken(*_):
        raise SpecError([Fault("fields[0]", "cannot", "It cannot be made.")])

    monkeypatch.setattr(Block, "column", broken)
    assert faults(edith.post(f"{path}/generate", json={"count": 10_000})) == {"fields[0]": "cannot"}
    assert rows_used(edith) == 0


COSTLY = {"type": "formula", "options": {"expression": 'ascii(text(row) + repeat("\u00e4\u00f6 ", 100))'}}


@pytest.fixture
def little_time(monkeypatch):
    """A request may take half a second of processor time, however many rows it generates."""
    monkeypatch.setattr(limits, "GENERATE_MIN_SHARE", 0.5 / limits.GENERATE_SECONDS)
    monkeypatch.setattr(CpuBudget, "raise_limit", lambda self, rows: None)


@pytest.mark.parametrize("path", ["/generate", "/preview"])
def test_rows_of_costly_formulas_end_with_422_and_give_their_rows_back(edith, little_time, path):
    fields = [{"name": f"f{n}", **COSTLY} for n in range(500)]
    draft = {"name": "t", "fields": fields, **({"count": 200} if path == "/generate" else {})}
    for field in fields:
        field["options"] = {"expression": 'ascii(text(row) + repeat("\u00e4\u00f6 ", 3000))'}
    began = time.thread_time()
    answer = edith.post(path, json=draft)
    assert faults(answer) == {"fields": "too_slow"}
    assert "processor time" in answer.json["error"]["message"]
    assert time.thread_time() - began < 5
    assert rows_used(edith) == 0


def test_rows_that_would_take_too_long_are_rejected_before_the_first_is_sent(edith, little_time):
    fields = [{"name": f"f{n}", **COSTLY} for n in range(5)]
    few = edith.post("/generate", json={"name": "t", "fields": fields, "count": 100})
    assert few.status_code == 200
    spent = rows_used(edith)
    many = edith.post("/generate", json={"name": "t", "fields": fields, "count": 100_000})
    assert faults(many) == {"fields": "too_slow"}
    assert rows_used(edith) == spent


def test_the_fixed_cost_of_a_block_does_not_count_for_every_row(edith, monkeypatch):
    """The first block takes a second. An estimate from this block only would be minutes for 100,000 rows."""
    spent = processor_time.seconds_used
    times = iter((0.0, 1.0))
    monkeypatch.setattr(processor_time, "seconds_used", lambda: next(times, spent()))
    answer = edith.post(
        "/generate", json={"name": "t", "fields": [{"name": "a", "type": "words"}], "count": 100_000}
    )
    assert answer.status_code == 200
    assert next(times, None) is None


def test_a_stream_ends_where_its_time_is_used_up_midway(edith, monkeypatch):
    fields = [{"name": "a", "type": "words"}]
    answer = edith.post("/generate", json={"name": "t", "fields": fields, "count": 50_000}, buffered=False)
    assert answer.status_code == 200
    pieces = answer.iter_encoded()
    next(pieces)

    def used_up(self):
        raise CpuBudgetError(self.limit)

    monkeypatch.setattr(CpuBudget, "check", used_up)
    with pytest.raises(CpuBudgetError):
        list(pieces)
    answer.close()
    assert rows_used(edith) < 50_000


def test_rows_of_a_rejected_preview_do_not_wait_for_the_garbage_collector(edith):
    long = {"type": "constant", "options": {"value": "\x01" * 10_000}}
    fields = [{"name": f"f{n}", "type": "array", "options": {"count": 100, "of": long}} for n in range(10)]
    gc.collect()
    gc.disable()
    try:
        before = pa.total_allocated_bytes()
        refused(edith.post("/preview", json={"name": "t", "fields": fields}), 422, "validation_error")
        assert pa.total_allocated_bytes() - before < limits.MB
    finally:
        gc.enable()


@pytest.mark.parametrize("count", [1, 100_000], ids=["whole", "stream"])
def test_memory_is_returned_when_the_response_is_closed(edith, monkeypatch, count):
    trims = []
    monkeypatch.setattr(memory, "trim", lambda: trims.append(True))
    body = {"name": "t", "fields": [{"name": "a", "type": "words"}], "count": count}
    answer = edith.post("/generate", json=body, buffered=False)
    assert (answer.status_code, trims) == (200, [])
    answer.close()
    assert trims == [True]


def test_a_costly_template_keeps_no_other_waiting(edith):
    """Few rows are made one request after the other, but no request waits long for its turn."""
    with generate.few_rows_lock:
        answer = edith.post("/generate", json={"name": "t", "fields": [{"name": "a", "type": "words"}]})
    assert answer.status_code == 200


def test_unexpected_errors_are_500_and_refund_the_rows(edith, monkeypatch, path):
    from webapp.audit.services import audit_log

    def broken(*_args, **_more):
        raise RuntimeError("no")

    monkeypatch.setattr(audit_log, "record", broken)
    details = refused(edith.post(f"{path}/generate", json={"count": 10_000}), 500, "internal_error")
    assert details["request_id"]
    assert rows_used(edith) == 0


def test_an_abandoned_stream_refunds_its_remaining_rows_and_records_it(edith, api, cast, path):
    answer = edith.post(
        f"{path}/generate", json={"count": 100_000, "seed": "s", "format": "csv"}, buffered=False
    )
    pieces = answer.iter_encoded()
    next(pieces)
    next(pieces)
    answer.close()
    result = limits.FIRST_BLOCK_ROWS + limits.BLOCK_ROWS
    assert rows_used(edith) == result
    trail = api(cast.adam).get("/audit?action=template.generate_cut").json["items"]
    assert [(item["details"]["made"], item["details"]["of"]) for item in trail] == [(result, 100_000)]


def test_each_generation_leaves_one_audit_entry(edith, api, cast, path):
    edith.post(f"{path}/generate", json={"count": 7, "seed": "s", "offset": 2, "format": "csv"})
    edith.post("/generate", json={"fields": FIELDS, "count": 3, "seed": "t"})
    edith.post(f"{path}/preview")
    trail = api(cast.adam).get("/audit?action=template.generate").json["items"]
    assert [(item["rows"], item["object_id"], item["details"]) for item in reversed(trail)] == [
        (7, path.rpartition("/")[2], {"version": 1, "seed": "s", "format": "csv", "offset": 2}),
        (3, "", {"version": None, "seed": "t", "format": "json", "offset": 0}),
    ]
    assert {item["key_id"] for item in trail} == {cast.edith.key_id}


def test_a_preview_spends_a_request(edith, path):
    before = int(edith.get(path).headers["X-RateLimit-Remaining"])
    assert int(edith.post(f"{path}/preview").headers["X-RateLimit-Remaining"]) == before - 1


def test_numbers_are_written_with_all_their_digits(edith):
    fields = [{"name": "n", "type": "number", "options": {"min": 1, "max": 2, "decimals": 12}}]
    text = edith.post("/generate", json={"fields": fields, "count": 5, "seed": "s"}).text
    shown = edith.post("/preview", json={"fields": fields, "seed": "s"}).text
    digits = [line.partition(":")[2].rstrip("},") for line in text.splitlines() if ":" in line]
    assert all(len(number.partition(".")[2]) == 12 for number in digits)
    assert all(number in shown for number in digits[:3])
    assert all(math.isfinite(float(number)) for number in digits)
