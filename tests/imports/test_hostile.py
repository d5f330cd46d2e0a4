"""Files that are not what they should be: an import never fails whole where anything of it can be read."""

from __future__ import annotations

import io
import json
import zipfile

import openpyxl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webapp import limits
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.imports.readers import formats
from webapp.imports.readers.base import Source, UnreadableFileError
from webapp.imports.services import drafts
from webapp.row_templates.services import compilation


def imported(content: str | bytes, name: str = "", form: str = "auto"):
    """The drafts of a file, and the report."""
    raw = content.encode() if isinstance(content, str) else content
    words = compilation.vocabulary()
    read = formats.read(Source(raw, name), form, words)
    result = drafts.draft_tables(read, words, 10)
    for draft in result:
        if not any(field["type"] == "reference" for field in draft.fields):
            compile_plan(parse(draft.fields), words)  # it can be saved
    return result, drafts.report(result, read.problems)


def types(made) -> dict[str, str]:
    """By column, the type of its field."""
    return {item.column: item.field["type"] for item in made[0].columns if item.field}


ROWS = "id;Straße;joined\n1;Müllerweg;01.02.2024\n2;Äcker;28.02.2024\n3;Ösch;03.03.2024\n"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
)
def test_a_csv_of_any_encoding_has_its_names(encoding):
    created, report = imported(ROWS.encode(encoding), "x.csv")
    assert list(types(created)) == ["id", "Straße", "joined"]
    assert types(created)["joined"] == "date"
    assert any("Windows-1252" in row["reason"] for row in report) == (encoding == "cp1252")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter):
    text = ROWS.replace(";", delimiter)
    assert list(types(imported(text, "x.csv")[0])) == ["id", "Straße", "joined"]


def test_the_line_that_names_the_delimiter_is_no_row():
    assert list(types(imported("sep=;\r\na;b\r\n1;2\r\n", "x.csv")[0])) == ["a", "b"]


def test_rows_of_different_lengths_are_padded_and_reported():
    created, report = imported("a,b,c\n1,2,3\n4\n5,6,7,8\n", "x.csv")
    assert list(types(created)) == ["a", "b", "c"]
    assert "different lengths" in report[-1]["reason"]
    assert report[-1]["state"] == "yellow"


def test_duplicate_and_missing_names_are_made_unique_and_reported():
    created, report = imported("name,name,,name\nAnn,Bob,1,Cid\n", "x.csv")
    assert list(types(created)) == ["name", "name_2", "column_3", "name_3"]
    assert [row["state"] for row in report] == ["green", "yellow", "yellow", "yellow"]


def test_a_file_without_names_has_counted_columns():
    created, report = imported("1,2.5,2024-01-01\n2,3.5,2024-01-02\n", "x.csv")
    assert list(types(created)) == ["column_1", "column_2", "column_3"]
    assert {row["state"] for row in report} == {"yellow"}


def test_one_column_is_a_table():
    assert list(types(imported("email\na@example.org\nb@example.org\n", "x.csv")[0])) == ["email"]


def test_names_are_enough_for_a_template():
    created, report = imported("first_name,city\n", "x.csv")
    assert types(created) == {"first_name": "first_name", "city": "city"}
    assert all("no value" in row["reason"] for row in report)


@pytest.mark.parametrize(
    "content", [b"", b"   \n \n", b"\xef\xbb\xbf", b"\0\1\2\3" * 50, b"PK\x03\x04 no zip at all"]
)
def test_nothing_to_read_is_reported_with_a_message(content):
    with pytest.raises(UnreadableFileError) as result:
        imported(content)
    assert str(result.value).endswith(".")


def test_a_huge_cell_and_a_quote_that_never_ends_do_not_stop_the_others():
    huge = "x" * (20 * limits.MB)
    assert list(types(imported(f"a,b\n1,{huge}\n2,y\n", "x.csv")[0])) == ["a", "b"]
    assert list(types(imported('a,b\n1,"never ends\n2,y\n', "x.csv")[0])) == ["a", "b"]


def test_columns_beyond_a_template_are_named_and_left_out():
    created, report = imported(",".join(f"c{place}" for place in range(600)) + "\n", "x.csv")
    assert len(created[0].fields) == limits.MAX_FIELDS
    left = [row for row in report if row["type"] is None]
    assert [row["column"] for row in left] == [f"c{place}" for place in range(500, 600)]
    assert {row["state"] for row in left} == {"red"}


def test_circular_and_dangling_references_only_affect_their_column():
    schema = """{"type": "object", "title": "Node", "properties": {
        "name": {"type": "string"}, "next": {"$ref": "#"}, "bad": {"$ref": "#/nowhere"},
        "far": {"$ref": "https://example.org/other.json"}, "odd": {"type": "quaternion"},
        "loop": {"$ref": "#/$defs/A"}}, "required": ["bad", "odd"],
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}"""
    created, report = imported(schema)
    states = {row["column"]: row["state"] for row in report}
    assert states == {
        "name": "green",
        "next": "green",
        "bad": "red",
        "far": "red",
        "odd": "red",
        "loop": "yellow",
    }
    assert set(types(created)) == {"name", "next", "bad", "odd"}, (
        "optional references that lead nowhere are left out"
    )


def test_a_column_that_no_dialect_reads_does_not_cost_its_table():
    text = "CREATE TABLE a (id INT PRIMARY KEY, odd @@@ 3 ~ NOT NULL, email VARCHAR(80) UNIQUE);"
    text += "CREATE TABLE b (x INT);"
    created, report = imported(text)
    assert types(created) == {"id": "row_number", "odd": "words", "email": "email"}
    assert [row["state"] for row in report if row["table"] == "a"] == ["green", "red", "green"]
    assert created[1].entity.name == "b"


def test_statements_of_others_and_bodies_of_routines_are_passed_over():
    text = """
    CREATE FUNCTION f() RETURNS trigger AS $body$ BEGIN CREATE TABLE no (x int); END; $body$ LANGUAGE plpgsql;
    INSERT INTO t VALUES ('; CREATE TABLE no2 (x int);', 'it''s');
    -- CREATE TABLE no3 (x int);
    CREATE TABLE yes (id serial PRIMARY KEY, note text DEFAULT 'a;b');
    """
    assert [draft.entity.name for draft in imported(text)[0]] == ["yes"]


def test_names_that_are_markup_or_sql_are_names():
    name = "<script>alert(1)</script>'; DROP TABLE x; --"
    created, _ = imported(f'"{name}",b\n1,2\n', "x.csv")
    assert next(iter(types(created))) == name
    created, _ = imported('CREATE TABLE "a""b; DROP TABLE c" ("x y" INT)')
    assert created[0].entity.name == 'a"b; DROP TABLE c'


def test_a_workbook_has_a_table_for_each_sheet():
    book = openpyxl.Workbook()
    book.active.title = "People"
    for row in (["id", "email", "born"], *([place, f"p{place}@example.org", None] for place in range(1, 15))):
        book.active.append(row)
    other = book.create_sheet("Cities")
    other.append(["city"])
    other.append(["Rome"])
    book.create_sheet("Empty")
    stored = io.BytesIO()
    book.save(stored)
    created, _ = imported(stored.getvalue(), "book.xlsx")
    assert [draft.entity.name for draft in created] == ["People", "Cities"]
    assert (
        types(created) == {"id": "row_number", "email": "email", "born": "date_of_birth"}
        or types(created)["id"] == "row_number"
    )


def test_a_workbook_that_unpacks_to_too_much_is_rejected(monkeypatch):
    monkeypatch.setattr(limits, "IMPORT_SHEET_BYTES", 100_000)
    book = openpyxl.Workbook()
    for place in range(20_000):
        book.active.append([place, 1, 2, 3])
    stored = io.BytesIO()
    book.save(stored)
    with pytest.raises(UnreadableFileError, match="unpacked size exceeds"):
        imported(stored.getvalue(), "bomb.xlsx")


def test_a_workbook_with_an_entity_bomb_is_rejected():
    stored = io.BytesIO()
    book = openpyxl.Workbook()
    book.active.append(["a"])
    book.save(stored)
    stored.seek(0)
    bombed = io.BytesIO()
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><worksheet>&b;</worksheet>'
    with zipfile.ZipFile(stored) as old, zipfile.ZipFile(bombed, "w") as new:
        for item in old.namelist():
            new.writestr(item, bomb if "worksheets/" in item else old.read(item))
    with pytest.raises(UnreadableFileError):
        imported(bombed.getvalue(), "bomb.xlsx")


def test_values_of_people_are_not_taken_over():
    rows = "\n".join(f"{name},{name.lower()}@example.org" for name in ("Ada", "Bob") * 30)
    created, _ = imported(f"first_name,email\n{rows}\n", "x.csv")
    assert "Ada" not in str([column.field for column in created[0].columns])


def tried(text: str, form: str):
    """The drafts of a text; None where it was refused in words."""
    try:
        return imported(text, form=form)[0]
    except UnreadableFileError:
        return None


_WILD = st.text(st.characters(codec="utf-8"), max_size=300)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=_WILD, form=st.sampled_from([item for item in formats.FORMATS if item != "xlsx"]))
def test_any_text_in_any_format_is_parsed_or_reported(text, form):
    result = tried(text, form)
    assert result is None or result[0].fields


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "$ref", "fields", "name", "columns", "enum", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=_JSON, form=st.sampled_from(["auto", "json", "json_schema", "openapi", "avro", "mockaroo"]))
def test_any_json_in_any_format_is_parsed_or_reported(value, form):
    result = tried(json.dumps(value), form)
    assert result is None or result[0].fields
