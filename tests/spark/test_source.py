"""Rows read by Spark are those of one call of generate: in every type, cut anywhere, read again, tried again."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from flask import request

from tests.spark.kinds import EVERY, SPARK
from webapp.engine.formats import FORMATS, write

COUNT = 2_500


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def template(edith):
    """The id of a saved template with every type."""
    created = edith.post("/templates", json={"name": "Orders", "quantity": 7, "fields": EVERY})
    assert created.status_code == 201, created.text
    return created.json["id"]


@pytest.fixture
def read(spark, origin, cast):
    """`read(template="tpl_...", seed="s")`: a reader of Spark with these options."""

    def reader(**options):
        result = spark.read.format("rowsmith")
        if "file" not in options:
            options = {"url": origin, "key": cast.edith.key, **options}
        return result.options(**{name: str(value) for name, value in options.items()})

    return reader


def generated(edith, template, **asked):
    """Return the rows of one generate request as they are in its response."""
    answer = edith.post(f"/templates/{template}/generate", json={**asked, "format": "ndjson"})
    assert answer.status_code == 200, answer.text
    return [orjson.loads(line) for line in answer.data.splitlines()]


def rows(frame):
    """The rows of a frame, in their order, as the service spells them."""
    table = frame.toArrow()
    return [orjson.loads(line) for line in ndjson(table).splitlines()]


def ndjson(table: pa.Table) -> bytes:
    kind = FORMATS["ndjson"]
    blocks = [batch.columns for batch in table.to_batches()]
    return b"".join(write(kind(table.schema, kind.Options(), title="rows"), blocks))


def test_the_schema_is_the_templates(read, template):
    frame = read(template=template).load()
    assert {field.name: field.dataType.simpleString() for field in frame.schema} == SPARK
    assert frame.schema.names == list(SPARK)


def test_rows_are_those_of_one_call_in_any_chunks(read, edith, template):
    expected = generated(edith, template, count=COUNT, seed="s", offset=40)
    options = {"template": template, "rows": COUNT, "seed": "s", "offset": 40}
    for cut in (
        {"partitions": 3, "rows_per_call": 317},
        {"rows_per_partition": 999},
        {"rows_per_partition": COUNT + 1, "rows_per_call": 2_000},
    ):
        frame = read(**options, **cut).load()
        assert rows(frame) == expected, cut


def test_partitions_are_ranges_of_rows(read, template):
    frame = read(template=template, rows=1_000, rows_per_partition=300).load().select("id")
    assert [len(part) for part in frame.rdd.glom().collect()] == [300, 300, 300, 100]
    assert [part[0].id for part in frame.rdd.glom().collect()] == [1, 301, 601, 901]
    frame = read(template=template, rows=1_000, partitions=3).load().select("id")
    assert [len(part) for part in frame.rdd.glom().collect()] == [334, 334, 332]


def test_as_many_rows_as_the_template_says(read, template):
    assert read(template=template).load().count() == 7


def test_without_a_seed_every_action_sees_the_same_table(read, template):
    frame = read(template=template, rows=500, partitions=2).load()
    assert rows(frame) == rows(frame)
    assert rows(frame) != rows(read(template=template, rows=500, partitions=2).load())


def test_the_moment_is_pinned_by_the_load(read, edith, template):
    requests = {"seed": "s", "now": "2031-05-06T07:08:09Z"}
    frame = read(template=template, rows=50, **requests).load()
    assert rows(frame) == generated(edith, template, count=50, **requests)
    assert max(row["moment"] for row in rows(frame)) > "2031-04"


def test_a_seed_with_any_characters_is_returned_unchanged(read, edith, template):
    frame = read(template=template, rows=20, seed="ä 100 %").load()
    assert rows(frame) == generated(edith, template, count=20, seed="ä 100 %")


def test_a_schema_of_ones_own_picks_columns(read, edith, template):
    expected = generated(edith, template, count=30, seed="s")
    frame = read(template=template, rows=30, seed="s").schema("paid boolean, id string").load()
    assert rows(frame) == [{"paid": row["paid"], "id": str(row["id"])} for row in expected]


def test_the_engine_of_this_machine_makes_the_same_rows(read, edith, template, tmp_path):
    result = edith.get(f"/templates/{template}").json
    path = tmp_path / "orders.json"
    path.write_text(json.dumps(result))
    expected = generated(edith, template, count=COUNT, seed="s")
    assert rows(read(file=path, rows=COUNT, seed="s", partitions=3).load()) == expected
    assert read(file=path).load().count() == 7


# --- What fails ---------------------------------------------------------------------------------------------------


def test_a_task_that_failed_is_carried_out_again_and_gives_the_same_rows(app, read, edith, template):
    expected = generated(edith, template, count=1_000, seed="s")
    failed = []

    def fail_once():
        if (
            request.method == "POST"
            and (request.get_json(silent=True) or {}).get("offset") == 500
            and not failed
        ):
            failed.append(True)
            return {"error": {"code": "conflict", "message": "Not now.", "details": {}}}, 409
        return None

    app.before_request_funcs.setdefault(None, []).append(fail_once)
    frame = read(template=template, rows=1_000, seed="s", rows_per_partition=400, rows_per_call=100).load()
    assert rows(frame) == expected
    assert failed


def test_a_task_that_was_killed_is_carried_out_again_and_gives_the_same_rows(read, template, tmp_path):
    frame = read(template=template, rows=40_000, rows_per_partition=20_000, rows_per_call=5_000).load()
    mark = str(tmp_path / "killed")

    def dies_once(part):
        for number, row in enumerate(part):
            yield row
            if number == 15_000:
                try:
                    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)

    frame = frame.select("id", "name", "amount")
    before = frame.collect()
    assert frame.rdd.mapPartitions(dies_once).collect() == before
    assert Path(mark).exists()


def test_a_template_changed_in_the_meantime_is_not_read_further(read, edith, template):
    frame = read(template=template, rows=100).load()
    changed = edith.patch(f"/templates/{template}", json={"fields": EVERY[:-1]})
    assert changed.status_code == 200, changed.text
    assert "changed while it was read (Template-Version); load it again" in refusal(frame.count)


def test_a_folder_changed_in_the_meantime_is_not_read_further(read, file):
    path = file(EVERY)
    frame = read(file=path, rows=100).load()
    file(EVERY[:-1])
    assert "changed while it was read (Files)" in refusal(frame.count)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"template": "tpl_nothing"}, "(not_found, status 404"),
        ({"template": "tpl_x", "key": "rws_wrong"}, "(unauthenticated, status 401"),
        ({"template": "tpl_x", "sed": "1"}, "There is no option sed. Did you mean seed?"),
        ({"template": "tpl_x", "file": "x.json"}, "Set either the option template"),
        ({}, "Set either the option template"),
        ({"file": "/nowhere/x.json"}, "There is no file /nowhere/x.json."),
        (
            {"template": "tpl_x", "rows": "many"},
            "The option rows must be a whole number of at least 1, not 'many'.",
        ),
        ({"template": "tpl_x", "rows": "0"}, "of at least 1"),
        ({"template": "tpl_x", "related_rows": "7"}, "must be JSON"),
        (
            {"template": "tpl_x", "partitions": "2", "rows_per_partition": "2"},
            "either the option partitions or rows_per_partition",
        ),
    ],
)
def test_an_unreadable_file_is_reported_with_a_message(spark, origin, cast, options, expected):
    result = spark.read.format("rowsmith").options(url=origin, **{"key": cast.edith.key, **options})
    assert expected in refusal(result.load)


def test_more_rows_than_a_call_may_have_are_rejected_with_the_limit(read, cast, api, origin):
    mallory = api(cast.mallory)
    created = mallory.post("/templates", json={"name": "T", "fields": [{"name": "id", "type": "row_number"}]})
    frame = read(
        template=created.json["id"], key=cast.mallory.key, rows=200_000, partitions=1, rows_per_call=150_000
    )
    assert "A request can have at most 100,000 rows, not 150,000." in refusal(frame.load().count)


def test_a_missing_column_is_reported(read, template):
    frame = read(template=template).schema("id long, nme string")
    assert "The template has no column nme." in refusal(lambda: frame.load().count())


def test_too_many_partitions_are_reported(read, template):
    frame = read(template=template, rows=10_000_000, rows_per_partition=1)
    assert "set rows_per_partition to 100 or more" in refusal(lambda: frame.load().count())


def refusal(act):
    """The words of an exception of Spark."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as found:
        act()
    return str(found.value)
