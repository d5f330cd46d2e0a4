"""Templates that take their rows from workspace files: masked where they are sensitive, the same bytes every time."""

from __future__ import annotations

import csv
import io
import json
import zipfile

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.views.speak import faults, make, refused, rows_used
from tests.views.uploading import send
from webapp import limits
from webapp.sources.services import files

PEOPLE = [
    {"id": n, "email": f"person.{n}@corp{n % 7}.test", "phone": f"+49 170 {1_000_000 + 7 * n}", "city": "Ulm"}
    for n in range(1, 1_001)
]
FIELDS = [
    {"name": "id", "type": "source_column"},
    {"name": "mail", "type": "email", "column": "email", "sensitive": True},
    {"name": "phone", "type": "phone_number", "masking": {"strategy": "format_preserve"}},
    {"name": "city", "type": "city"},
    {"name": "note", "type": "words"},
]


def as_csv(rows=PEOPLE) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_xlsx(rows=PEOPLE) -> bytes:
    book = openpyxl.Workbook(write_only=True)
    book.create_sheet("About").append(["nothing"])
    sheet = book.create_sheet("People")
    sheet.append(list(rows[0]))
    for row in rows:
        sheet.append(list(row.values()))
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def as_parquet(rows=PEOPLE) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out, row_group_size=300)
    return out.getvalue()


FILES = {
    "people.csv": as_csv,
    "people.json": lambda: json.dumps(PEOPLE, indent=1).encode(),
    "people.ndjson": lambda: "\n".join(map(json.dumps, PEOPLE)).encode(),
    "people.parquet": as_parquet,
    "people.xlsx": as_xlsx,
}


@pytest.fixture(autouse=True)
def small_first_blocks(monkeypatch):
    """A thousand rows are several blocks."""
    monkeypatch.setattr(limits, "BLOCK_ROWS", 300)
    monkeypatch.setattr(limits, "FIRST_BLOCK_ROWS", 100)
    yield
    files.SOURCE_CACHE.clear()


@pytest.fixture
def people(edith):
    """A template over a file of a thousand people."""

    def made(name: str = "people.csv", content: bytes | None = None, fields=FIELDS, **source):
        answer = send(edith, name, FILES[name]() if content is None else content)
        assert answer.status_code in (200, 201), answer.json
        return (
            f"/templates/{make(edith, name='People', fields=fields, source={'file': name, **source})['id']}"
        )

    return made


def generated(edith, path, **body):
    answer = edith.post(f"{path}/generate", json={"seed": "s", **body})
    assert answer.status_code == 200, answer.json
    return answer.json


def exported(edith, path, work, **body):
    answer = edith.post(f"{path}/exports", json={"seed": "s", "format": "json", **body})
    assert answer.status_code == 201, answer.json
    work(answer.json["id"])
    return edith.get(f"/exports/{answer.json['id']}").json


@pytest.mark.parametrize("name", FILES)
def test_rows_of_every_format_are_taken_and_masked(edith, people, name):
    path = people(name, **({"sheet": "People"} if name.endswith("xlsx") else {}))
    result = generated(edith, path)
    assert [int(row["id"]) for row in result] == list(range(1, 1_001))
    assert all(list(row) == ["id", "mail", "phone", "city", "note"] for row in result)
    assert {row["city"] for row in result} == {"Ulm"}
    for row, real in zip(result, PEOPLE, strict=True):
        assert real["email"].split("@")[0] not in row["mail"]
        assert row["phone"].startswith("+49 ")
        assert len(row["phone"]) == len(real["phone"])
        assert row["phone"] != real["phone"]
    assert len({row["mail"] for row in result}) == len({row["phone"] for row in result}) == 1_000
    assert rows_used(edith) == 1_000


def test_the_types_of_a_file_are_kept_and_texts_read_by_the_type_of_the_field(edith, people):
    rows = [{"zip": "01067", "n": "7", "price": "2.50", "born": "2001-02-03", "yes": "true"}]
    fields = [
        {"name": "zip", "type": "source_column"},
        {"name": "n", "type": "number"},
        {"name": "price", "type": "number", "options": {"decimals": 2}},
        {"name": "born", "type": "date"},
        {"name": "yes", "type": "source_column"},
        {"name": "code", "type": "number", "column": "zip"},
    ]
    path = people("typed.csv", as_csv(rows), fields)
    assert generated(edith, path) == [
        {"zip": "01067", "n": 7, "price": 2.5, "born": "2001-02-03", "yes": "true", "code": "01067"}
    ]


def test_a_preview_is_the_head_of_every_generate(edith, people):
    path = people()
    preview = edith.post(f"{path}/preview", json={"seed": "s"}).json
    assert preview["rows"] == generated(edith, path)[:3] == generated(edith, path, count=3)
    assert generated(edith, path, offset=997, count=3) == generated(edith, path)[997:]


def test_more_rows_than_the_source_has_are_rejected(edith, people):
    answer = edith.post(f"{people()}/generate", json={"count": 1_001})
    assert faults(answer) == {"source": "not_enough_rows"}
    limited = people("few.csv", as_csv(), limit=10)
    assert len(generated(edith, limited)) == 10


def test_masking_is_the_same_in_another_template_and_under_another_seed(edith, people):
    first = generated(edith, people())
    again = people("again.csv", as_csv(PEOPLE[::-1]))
    other = edith.post(f"{again}/generate", json={"seed": "t"}).json
    assert [row["phone"] for row in other[::-1]] == [row["phone"] for row in first]
    assert [row["mail"] for row in other[::-1]] == [row["mail"] for row in first]


def test_an_export_has_the_bytes_of_generate_and_the_results_of_the_leak_check(edith, people, work):
    path = people()
    export = exported(edith, path, work)
    assert (export["status"], export["count"], export["rows_done"]) == ("completed", 1_000, 1_000)
    body = edith.get(f"/exports/{export['id']}/download").data
    assert body == edith.post(f"{path}/generate", json={"seed": "s"}).data
    [table] = export["leaks"]
    result = {column["column"]: column for column in table["columns"]}
    assert {name: (item["values"], item["survivors"]) for name, item in result.items()} == {
        "mail": (1_000, 0),
        "phone": (1_000, 0),
    }
    assert result["mail"]["source_column"] == "email"
    assert result["mail"]["whole_column"]["kind"] == "none"
    assert result["phone"]["whole_column"] == {
        **result["phone"]["whole_column"],
        "kind": "counted",
        "distinct": 1_000,
        "share": 1.0,
    }
    assert result["phone"]["whole_column"]["expected"] is not None


def test_its_page_shows_the_leak_report(edith, browser, cast, people, work):
    export = exported(edith, people(), work)
    page = browser(cast.edith).get(f"/exports/{export['id']}").text
    assert "Leak check" in page
    assert "format_preserve" in page


@pytest.mark.usefixtures("small_parts")
def test_parts_are_the_whole_and_their_reports_one(edith, people, parts_of, do, monkeypatch):
    monkeypatch.setattr(limits, "PARTS_FROM_ROWS", 100)
    many = [
        {**PEOPLE[n % 1_000], "id": n, "email": f"p{n}@corp.test", "phone": f"+49 171 {n:07}"}
        for n in range(25_000)
    ]
    path = people("many.csv", as_csv(many))
    ask = {"seed": "s", "format": "csv", "part_rows": 10_000}
    export = edith.post(f"{path}/exports", json=ask).json
    assert export["parts"] == 3
    do(*parts_of(export["id"]))
    export = edith.get(f"/exports/{export['id']}").json
    assert export["status"] == "completed"
    body = edith.get(f"/exports/{export['id']}/download").data
    assert body == edith.post(f"{path}/generate", json={"seed": "s", "format": "csv"}).data
    assert [column["values"] for column in export["leaks"][0]["columns"]] == [25_000, 25_000]


def test_a_file_that_changes_in_between_is_a_clear_error(edith, people, work):
    path = people()
    created = edith.post(f"{path}/exports", json={"seed": "s"}).json
    files.SOURCE_CACHE.clear()
    send(edith, "people.csv", as_csv(PEOPLE[:10]))
    work(created["id"])
    export = edith.get(f"/exports/{created['id']}").json
    assert export["status"] == "failed"
    assert export["error"]["code"] == "conflict"
    assert "people.csv" in export["error"]["message"]
    assert len(generated(edith, path)) == 10


def test_a_planted_survivor_fails_the_run_and_names_the_column(edith, people, work):
    planted = [dict(row, city="Ulm") for row in PEOPLE]
    planted[700]["city"] = f"Ulm, ask {PEOPLE[700]['email'].upper()}"
    path = people("planted.csv", as_csv(planted))
    export = exported(edith, path, work, format="csv")
    assert export["status"] == "failed"
    error = export["error"]
    assert error["code"] == "leak_found"
    assert (error["details"]["column"], error["details"]["found_in"], error["details"]["row"]) == (
        "mail",
        "city",
        701,
    )
    assert PEOPLE[700]["email"] not in json.dumps(error).lower()
    assert export["download_url"] is None
    details = refused(edith.post(f"{path}/generate", json={"count": 1, "offset": 700}), 422, "leak_found")
    assert details["column"] == "mail"


def test_an_unreadable_file_is_reported_with_a_position(edith, people):
    def reason(name, content, **source):
        path = people(name, content, [{"name": "a", "type": "source_column"}], **source)
        answer = edith.post(f"{path}/generate", json={})
        return refused(answer, 422, "validation_error")["fields"][0]["message"]

    assert "row 3 has 1 columns" in reason("odd.csv", b"a,b\n1,2\n3\n")
    assert 'two columns are named "a"' in reason("twice.csv", b"a,a\n1,2\n")
    assert "column 1 has no name" in reason("noname.csv", b",b\n1,2\n")
    assert "it is empty" in reason("empty.csv", b"\n")
    assert "line 2" in reason("bad.ndjson", b'{"a": 1}\n{"a": \n')
    assert "element 2 is not an object" in reason("bad.json", b'[{"a": 1}, 2]')
    assert "is not closed" in reason("cut.json", b'[{"a": 1}')
    assert 'no sheet "Nope"' in reason("book.xlsx", as_xlsx(), sheet="Nope")
    assert "damaged" in reason("broken.xlsx", b"PK no")
    assert "cannot be read" in reason("broken.parquet", b"PAR1 no")
    assert "known file extension" in reason("rows.bin", b"a")


def test_the_unpacked_size_of_a_workbook_is_limited(edith, people, monkeypatch):
    monkeypatch.setattr(limits, "SOURCE_SHEET_BYTES", 10_000)
    path = people("people.xlsx", fields=[{"name": "id", "type": "source_column"}], sheet="People")
    answer = edith.post(f"{path}/generate", json={})
    assert "too large when unpacked" in refused(answer, 422, "validation_error")["fields"][0]["message"]


def test_encodings_and_delimiters_are_detected(edith, people):
    fields = [{"name": "who", "type": "source_column"}]
    for at, raw in enumerate(
        (
            "who;n\nJörg;1\n".encode("cp1252"),
            "who\tn\r\nJörg\t1\r\n".encode("utf-16"),
            b"\xef\xbb\xbf" + "who,n\nJörg,1\n".encode(),
            'who|n\n"Jörg"|"a\nb"\n'.encode(),
        )
    ):
        assert generated(edith, people(f"f{at}.csv", raw, fields)) == [{"who": "Jörg"}]


def test_a_source_that_is_not_there_is_named(edith, people):
    path = f"/templates/{make(edith, fields=FIELDS, source={'file': 'none.csv'})['id']}"
    assert faults(edith.post(f"{path}/generate", json={})) == {"source.file": "unknown_file"}
    answer = edith.post(
        "/templates", json={"name": "T", "fields": FIELDS, "source": {"file": "a", "table": "b"}}
    )
    assert refused(answer, 422, "validation_error")["fields"][0]["path"] == "source"


def test_a_source_can_be_changed_and_taken_away(edith, people):
    path = people()
    changed = edith.patch(path, json={"source": {"file": "other.csv"}}).json
    assert (changed["source"], changed["version"]) == ({"file": "other.csv"}, 2)
    assert edith.patch(path, json={"name": "N"}).json["source"] == {"file": "other.csv"}
    fields = [field for field in FIELDS if field["type"] != "source_column" and "column" not in field]
    assert edith.patch(path, json={"source": None, "fields": fields}).json["source"] is None
    answer = edith.patch(path, json={"fields": FIELDS})
    assert set(faults(answer).values()) == {"no_source"}


def test_another_workspace_sees_no_file_of_ours(edith, people, api, cast):
    people()
    mallory = api(cast.mallory)
    created = mallory.post(
        "/templates", json={"name": "T", "fields": FIELDS, "source": {"file": "people.csv"}}
    )
    assert faults(mallory.post(f"/templates/{created.json['id']}/generate", json={})) == {
        "source.file": "unknown_file"
    }


def test_a_dataset_takes_each_table_from_its_file(edith, people, work):
    one, other = people(), people("people.ndjson")
    tables = [
        {"template_id": path.rpartition("/")[2], "name": name} for path, name in ((one, "a"), (other, "b"))
    ]
    created = edith.post("/datasets", json={"name": "D", "templates": tables}).json
    answer = edith.post(f"/datasets/{created['id']}/exports", json={"format": "csv"})
    work(answer.json["id"])
    export = edith.get(f"/exports/{answer.json['id']}").json
    assert (export["status"], export["count"]) == ("completed", 2_000)
    assert [table["table"] for table in export["leaks"]] == ["a", "b"]
    with zipfile.ZipFile(io.BytesIO(edith.get(f"/exports/{export['id']}/download").data)) as files:
        assert len(files.namelist()) == 2
        assert all(len(files.read(name).splitlines()) == 1_001 for name in files.namelist())
