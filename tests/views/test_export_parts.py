"""Exports in parts: the parts one after another are the one file, each can be had, and what failed is made again."""

from __future__ import annotations

import hashlib
import io

import pyarrow.parquet as pq
import pytest

from jobs import exports
from jobs.lease import NotAvailable
from tests.views.speak import faults, in_parts, make, reference, refused, rows_used
from webapp import limits
from webapp.exports import services as exports_services
from webapp.extensions import redis_client
from webapp.work import jobs_queue

FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "code", "type": "number", "options": {"min": 1, "max": 10_000_000}, "unique": True},
    {"name": "doubled", "type": "formula", "options": {"expression": "code * 2"}},
    {
        "name": "tags",
        "type": "nested",
        "options": {
            "array": True,
            "count": {"min": 0, "max": 3},
            "fields": [{"name": "n", "type": "number"}],
        },
    },
]


pytestmark = pytest.mark.usefixtures("small_parts")


@pytest.fixture
def path(edith):
    return f"/templates/{make(edith, fields=FIELDS)['id']}"


@pytest.mark.parametrize(
    ("format", "more"),
    [
        ("csv", {"csv": {"quote": "all"}}),
        ("json", {}),
        ("ndjson", {}),
        ("sql", {"sql": {"dialect": "postgresql", "create_table": True}}),
        ("sql", {"sql": {"dialect": "oracle"}}),
        ("sql", {"sql": {"rows_per_statement": 625}}),
    ],
)
def test_the_parts_one_after_another_are_the_file_that_generate_gives(
    edith, path, parts_of, do, format, more
):
    ask = {"count": 45_000, "seed": "s", "format": format, "offset": 7, **more}
    export = in_parts(edith, path, **ask)
    assert (export["status"], export["parts"], export["parts_done"], export["part_rows"]) == (
        "queued",
        5,
        0,
        10_000,
    )
    do(*reversed(parts_of(export["id"])))
    whole = edith.post(f"{path}/generate", json=ask)
    export = edith.get(f"/exports/{export['id']}").json
    assert (export["status"], export["rows_done"], export["parts_done"]) == ("completed", 45_000, 5)
    manifest = edith.get(f"/exports/{export['id']}/manifest").json
    assert manifest["concatenates"] is True
    assert [(part["number"], part["offset"], part["rows"]) for part in manifest["parts"]] == [
        (1, 7, 10_000),
        (2, 10_007, 10_000),
        (3, 20_007, 10_000),
        (4, 30_007, 10_000),
        (5, 40_007, 5_000),
    ]
    files = [edith.get(f"/exports/{export['id']}/parts/{part['number']}") for part in manifest["parts"]]
    for part, file in zip(manifest["parts"], files, strict=True):
        assert (part["bytes"], part["sha256"]) == (len(file.data), hashlib.sha256(file.data).hexdigest())
        assert part["download_url"].endswith(f"/exports/{export['id']}/parts/{part['number']}")
    assert b"".join(file.data for file in files) == whole.data
    file = edith.get(f"/exports/{export['id']}/download")
    assert file.data == whole.data
    assert int(file.headers["Content-Length"]) == len(whole.data) == export["bytes"] == manifest["bytes"]
    for name in ("Content-Type", "Content-Disposition", "X-Seed", "X-Now", "X-Template-Version", "X-Engine"):
        assert file.headers[name] == whole.headers[name]


def test_children_and_references_are_those_of_one_file(edith, parts_of, do):
    key = {"name": "id", "type": "row_number"}
    parents = make(edith, name="Parents", fields=[key, {"name": "code", "type": "uuid", "unique": True}])[
        "id"
    ]
    fields = [
        key,
        reference("parent", parents, "code", cardinality={"min": 0, "max": 5}),
        reference("friend", parents, "code"),
    ]
    path = f"/templates/{make(edith, name='Children', fields=fields)['id']}"
    ask = {"count": 25_000, "seed": "s", "format": "csv", "rows": {parents: 30_000}}
    export = in_parts(edith, path, **ask)
    do(*parts_of(export["id"]))
    whole = edith.post(f"{path}/generate", json=ask).data
    assert edith.get(f"/exports/{export['id']}/download").data == whole


@pytest.mark.parametrize("format", ["parquet", "xlsx"])
def test_parts_that_cannot_be_put_together_are_files_of_their_own(edith, path, parts_of, do, format):
    export = in_parts(edith, path, count=25_000, format=format)
    do(*parts_of(export["id"]))
    export = edith.get(f"/exports/{export['id']}").json
    assert (export["status"], export["download_url"]) == ("completed", None)
    refused(edith.get(f"/exports/{export['id']}/download"), 409, "conflict")
    manifest = edith.get(f"/exports/{export['id']}/manifest").json
    assert (manifest["concatenates"], manifest["download_url"]) == (False, None)
    files = [edith.get(f"/exports/{export['id']}/parts/{number}").data for number in (1, 2, 3)]
    if format == "parquet":
        ids = [pq.read_table(io.BytesIO(file)).column("id").to_pylist() for file in files]
        assert [item for part in ids for item in part] == list(range(1, 25_001))
    assert all(file[:2] == files[0][:2] for file in files)


def test_any_range_of_the_whole_reaches_over_the_parts(edith, path, parts_of, do):
    export = in_parts(edith, path, count=25_000)
    do(*parts_of(export["id"]))
    url = f"/exports/{export['id']}/download"
    whole = edith.get(url)
    edge = edith.get(f"/exports/{export['id']}/manifest").json["parts"][0]["bytes"]
    size = len(whole.data)
    for first, last in ((0, 9), (edge - 5, edge + 5), (edge, edge), (0, size - 1), (edge + 1, size - 1)):
        part = edith.get(url, headers={"Range": f"bytes={first}-{last}"})
        assert part.data == whole.data[first : last + 1]
        assert part.status_code == (200 if (first, last) == (0, size - 1) else 206)
    part = edith.get(url, headers={"Range": f"bytes={size - 3}-", "If-Range": whole.headers["ETag"]})
    assert part.data == whole.data[-3:]
    assert edith.get(url, headers={"If-None-Match": whole.headers["ETag"]}).status_code == 304
    refused(edith.get(url, headers={"Range": f"bytes={size}-"}), 416, "invalid_request")
    second = edith.get(f"/exports/{export['id']}/parts/2", headers={"Range": "bytes=0-3"})
    assert (second.status_code, second.data) == (206, whole.data[edge : edge + 4])
    assert second.headers["Content-Type"].endswith("header=absent")
    assert "-0002.csv" in second.headers["Content-Disposition"]


def test_few_rows_are_one_file_with_a_manifest_of_one_part(edith, path, work):
    export = in_parts(edith, path, count=900)
    assert (export["parts"], export["part_rows"], export["parts_done"]) == (None, None, None)
    refused(edith.get(f"/exports/{export['id']}/parts/1"), 404, "not_found")
    work(export["id"])
    export = edith.get(f"/exports/{export['id']}").json
    manifest = edith.get(f"/exports/{export['id']}/manifest").json
    (part,) = manifest["parts"]
    assert (part["number"], part["rows"], part["sha256"]) == (1, 900, export["sha256"])
    assert (
        edith.get(f"/exports/{export['id']}/parts/1").data
        == edith.get(f"/exports/{export['id']}/download").data
    )
    refused(edith.get(f"/exports/{export['id']}/parts/2"), 404, "not_found")


def test_an_impossible_slice_is_rejected(edith, path, monkeypatch):
    def ask(**body):
        return edith.post(f"{path}/exports", json={"count": 45_000, "seed": "s", **body})

    assert faults(ask(part_rows=9_999)) == {"part_rows": "out_of_range"}
    assert faults(ask(part_rows=10_050, format="sql")) == {"part_rows": "not_a_multiple"}
    monkeypatch.setattr(limits, "MAX_PARTS", 4)
    assert faults(ask(part_rows=10_000)) == {"part_rows": "too_small"}
    assert rows_used(edith) == 0
    assert edith.get("/exports").json["total"] == 0
    refused(edith.post(f"{path}/generate", json={"count": 5, "part_rows": 10_000}), 422, "validation_error")


def test_each_part_is_rung_for_and_the_export_itself_is_not(edith, parts_of, app, do, row):
    flat = make(edith, fields=FIELDS[:-1])  # records of arrays would count, too
    export = in_parts(edith, f"/templates/{flat['id']}")
    with app.app_context():
        assert jobs_queue.queued_ids(redis_client(), "part") == set(parts_of(export["id"]))
        assert jobs_queue.queued_ids(redis_client(), "export") == set()
        with pytest.raises(NotAvailable):
            exports.run(export["id"])
    first, *rest = parts_of(export["id"])
    do(first)
    export = edith.get(f"/exports/{export['id']}").json
    assert (export["status"], export["parts_done"], export["rows_done"]) == ("running", 1, 10_000)
    assert export["download_url"] is None
    refused(edith.get(f"/exports/{export['id']}/download"), 404, "not_found")
    assert edith.get(f"/exports/{export['id']}/parts/1").status_code == 200
    refused(edith.get(f"/exports/{export['id']}/parts/2"), 404, "not_found")
    refused(edith.get(f"/exports/{export['id']}/parts/6"), 404, "not_found")
    do(*rest)
    assert rows_used(edith) == 45_000


# --- Pages ------------------------------------------------------------------------------------------------------


def test_the_page_shows_the_parts_a_page_at_a_time(edith, path, parts_of, do, browser, cast, monkeypatch):
    monkeypatch.setattr(limits, "LISTED_PARTS", 2)
    export = in_parts(edith, path)
    do(parts_of(export["id"])[0])
    person = browser(cast.edith)
    shown = person.get(f"/exports/{export['id']}").text
    sha256 = edith.get(f"/exports/{export['id']}/manifest").json["parts"][0]["sha256"]
    assert "1 of 5 made, 10,000 rows each" in shown
    assert sha256 in shown
    assert f"/exports/{export['id']}/parts/1" in shown
    assert f"/exports/{export['id']}/parts/2" not in shown
    assert f"/exports/{export['id']}/parts?first=3" in shown
    assert "30,001" not in shown
    second = person.get(f"/exports/{export['id']}/parts?first=3").text
    assert "3 to 4 of 5" in second
    assert "30,001" in second
    assert "first=1" in second
    assert "first=5" in second
    assert "5 to 5 of 5" in person.get(f"/exports/{export['id']}/parts?first=900").text


def test_a_person_has_the_missing_parts_made_by_a_button(edith, path, parts_of, do, browser, cast):
    export = in_parts(edith, path)
    do(parts_of(export["id"])[0])
    edith.delete(f"/exports/{export['id']}")
    person = browser(cast.edith)
    assert "Retry failed parts" in person.get(f"/exports/{export['id']}").text
    answer = person.submit(f"/exports/{export['id']}/retry")
    assert answer.status_code == 303
    (again,) = [item for item in edith.get("/exports").json["items"] if item["of_id"] == export["id"]]
    assert answer.headers["Location"].endswith(f"/exports/{again['id']}")
    assert export["id"] in person.get(f"/exports/{again['id']}").text


def test_the_export_dialog_offers_parts_for_many_rows(edith, path, browser, cast, monkeypatch):
    person = browser(cast.edith)
    template = path.rpartition("/")[2]
    form = {"template_id": template, "count": "1000", "format": "csv"}
    assert "In parts" not in person.submit("/builder/estimate", form).text
    shown = person.submit("/builder/estimate", {**form, "count": "1001"}).text
    assert f'formaction="{path}/exports"' in shown
    assert 'name="part_rows" value="1000"' in shown
    monkeypatch.setattr(limits, "PARTS_FROM_ROWS", 100_000)
    assert [
        exports_services.suggest_part_rows(count) for count in (100_000, 100_001, 10**8, 10**8 + 1, 10**9)
    ] == [
        None,
        100_000,
        100_000,
        200_000,
        1_000_000,
    ]
    answer = person.submit(f"{path}/exports", {"count": "120000", "format": "sql", "part_rows": "100000"})
    assert answer.status_code == 303, answer.text
    (result,) = edith.get("/exports").json["items"]
    assert (result["part_rows"], result["parts"]) == (100_000, 2)
