"""Several tables in one file: read back by the programs that people use, keys and all."""

from __future__ import annotations

import io
import sqlite3
import zipfile

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engine.formats import samples
from webapp import limits
from webapp.engine.formats import FORMATS
from webapp.engine.formats.multi_table import (
    FileTable,
    KeyColumns,
    SqlScript,
    TableReference,
    WorkbookFile,
    ZipArchive,
)
from webapp.engine.formats.sql_dialects import DIALECTS

PEOPLE = {"id": pa.array([1, 2, 3]), "name": pa.array(["Ada", "Bob", None]), "boss": pa.array([None, 1, 2])}
ORDERS = {
    "no": pa.array(["a", "b"]),
    "person": pa.array([3, None]),
    "price": pa.array([1, 2]).cast(pa.decimal128(38, 2)),
}
LINES = {"order": pa.array(["b", "b", "a"]), "fine": pa.array([1, 2, 3]).cast(pa.decimal128(38, 4))}
SHOP = {"people": PEOPLE, "orders": ORDERS, "lines": LINES}
LENGTHS = {"no": {b"max_length": b"10"}, "order": {b"max_length": b"20"}}
KEYS = KeyColumns(
    ["id", "no", None],
    [
        TableReference(0, "boss", 0, "id"),
        TableReference(1, "person", 0, "id"),
        TableReference(2, "order", 1, "no"),
    ],
)


def tables(shop, name, **given):
    options = FORMATS[name].Options(**given)
    return [
        FileTable(title, samples.schema(result, **{k: v for k, v in LENGTHS.items() if k in result}), options)
        for title, result in shop.items()
    ]


def file(together, shop=SHOP):
    """The bytes, each table handed over in blocks of one row."""
    out = together.start()
    for writer, result in zip(together.tables, shop.values(), strict=True):
        out += writer.start()
        for row in range(len(next(iter(result.values())))):
            out += b"".join(writer.write_block([column.slice(row, 1) for column in result.values()]))
        out += b"".join(writer.finish())
    return out + together.finish()


def script(dialect="ansi", shop=SHOP, keys=KEYS, **more):
    value = {"dialect": dialect, "create_table": True, **more}
    return file(SqlScript(tables(shop, "sql", **value), keys), shop).decode()


@pytest.mark.parametrize("name", ["json", "ndjson", "csv", "sql", "xlsx"])
def test_an_archive_contains_the_file_of_each_single_table(name):
    data = file(ZipArchive(FORMATS[name], tables(SHOP, name)))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [f"{title}.{FORMATS[name].extension}" for title in SHOP]
        for title, result in SHOP.items():
            lengths = {key: value for key, value in LENGTHS.items() if key in result}
            alone = samples.file(name, result, cuts=[1, 2], title=title, metadata=lengths)
            assert archive.read(f"{title}.{FORMATS[name].extension}") == alone


def test_an_archive_of_parquet_files_is_read_by_parquet():
    data = file(ZipArchive(FORMATS["parquet"], tables(SHOP, "parquet")))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        found = pq.read_table(io.BytesIO(archive.read("people.parquet")))
    assert found.column("name").to_pylist() == ["Ada", "Bob", None]


def test_a_workbook_has_a_sheet_for_each_table_with_its_own_formats():
    book = openpyxl.load_workbook(io.BytesIO(file(WorkbookFile(tables(SHOP, "xlsx")))))
    assert book.sheetnames == ["people", "orders", "lines"]
    rows = {sheet.title: [[cell.value for cell in row] for row in sheet.iter_rows()] for sheet in book}
    assert rows["people"] == [["id", "name", "boss"], [1, "Ada", None], [2, "Bob", 1], [3, None, 2]]
    assert rows["orders"] == [["no", "person", "price"], ["a", 3, 1], ["b", None, 2]]
    assert [book[s]["C2" if s == "orders" else "B2"].number_format for s in ("orders", "lines")] == [
        "0.00",
        "0.0000",
    ]
    assert book.active.title == "people"


def test_sheets_with_names_that_differ_only_in_case_are_distinguished():
    shop = dict.fromkeys(("Data", "data", "Data (2)", "x" * 40, "x" * 41), PEOPLE)
    book = openpyxl.load_workbook(io.BytesIO(file(WorkbookFile(tables(shop, "xlsx")), shop)))
    assert book.sheetnames == ["Data", "data (2)", "Data (2) (2)", "x" * 31, "x" * 27 + " (2)"]


def test_a_table_that_needs_several_sheets_leaves_the_others_theirs(monkeypatch):
    monkeypatch.setattr(limits, "XLSX_SHEET_ROWS", 3)
    book = openpyxl.load_workbook(io.BytesIO(file(WorkbookFile(tables(SHOP, "xlsx")))))
    assert book.sheetnames == ["people", "people (2)", "orders", "lines", "lines (2)"]


def test_sqlite_loads_the_script_and_holds_its_keys():
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA foreign_keys = ON")
    database.executescript(script())
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    for table, parents in (("people", ["people"]), ("orders", ["people"]), ("lines", ["orders"])):
        assert [row[2] for row in database.execute(f"PRAGMA foreign_key_list({table})")] == parents
    with pytest.raises(sqlite3.IntegrityError):
        database.execute("INSERT INTO lines VALUES ('z', 1)")
    with pytest.raises(sqlite3.IntegrityError):
        database.execute("INSERT INTO people VALUES (1, 'again', NULL)")
    database.close()


def run(connection, text):
    connection.execute(text.replace("CREATE TABLE", "CREATE TEMPORARY TABLE").encode())


@pytest.mark.parametrize("dialect", ["postgresql", "ansi"])
def test_postgresql_loads_the_script_and_holds_its_keys(postgresql, dialect):
    import psycopg

    run(postgresql, script(dialect))
    assert postgresql.execute('SELECT count(*) FROM lines JOIN orders ON no = "order"').fetchone() == (3,)
    with pytest.raises(psycopg.errors.ForeignKeyViolation), postgresql.transaction():
        postgresql.execute("INSERT INTO people VALUES (9, 'x', 77)")
    with pytest.raises(psycopg.errors.ForeignKeyViolation), postgresql.transaction():
        postgresql.execute("DELETE FROM orders")


RING = {
    "a": {"id": pa.array([1, 2]), "b": pa.array([2, 1])},
    "b": {"id": pa.array([1, 2]), "a": pa.array([1, 2])},
}
RING_KEYS = KeyColumns(["id", "id"], [TableReference(0, "b", 1, "id"), TableReference(1, "a", 0, "id")])


def test_postgresql_loads_a_ring_whose_last_key_comes_after_the_rows(postgresql):
    import psycopg

    text = script("postgresql", RING, RING_KEYS)
    assert text.rstrip().endswith('ALTER TABLE "a" ADD FOREIGN KEY ("b") REFERENCES "b" ("id");')
    run(postgresql, text)
    with pytest.raises(psycopg.errors.ForeignKeyViolation), postgresql.transaction():
        postgresql.execute("UPDATE a SET b = 9")


def test_a_dialect_without_alter_lists_the_omitted_keys():
    text = script("ansi", RING, RING_KEYS)
    assert "ALTER" not in text
    assert text.endswith(
        '-- "a": FOREIGN KEY ("b") REFERENCES "b" ("id") would create a circular reference\n'
    )
    database = sqlite3.connect(":memory:")
    database.executescript(text)
    assert [row[2] for row in database.execute("PRAGMA foreign_key_list(b)")] == ["a"]
    database.close()


@pytest.mark.parametrize(("shop", "keys"), [(SHOP, KEYS), (RING, RING_KEYS)])
def test_mariadb_loads_the_script_with_its_keys(mariadb, shop, keys):
    mariadb.execute(script("mysql", shop, keys))
    while mariadb.nextset():
        pass
    mariadb.execute(
        "SELECT count(*) FROM information_schema.referential_constraints WHERE constraint_schema = database()"
    )
    assert mariadb.fetchone() == (len(keys.references),)


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_session_settings_are_written_once_at_the_beginning(dialect):
    text, preamble = script(dialect), DIALECTS[dialect].preamble
    assert text.startswith(f"{preamble}CREATE TABLE")
    assert not preamble or text.count(preamble) == 1


def test_without_create_table_there_are_only_rows():
    text = script(create_table=False)
    assert text.startswith('INSERT INTO "people"')
    assert "KEY" not in text


def test_a_column_that_refers_has_the_type_of_the_one_it_refers_to():
    assert '"order" varchar(10)' in script("postgresql")


@pytest.mark.parametrize("dialect", ["mysql", "mssql", "oracle", "db2"])
def test_no_key_is_on_a_text_without_bound(dialect):
    shop = {"a": {"id": pa.array(["x"])}, "b": {"a": pa.array(["x"])}}
    text = script(dialect, shop, KeyColumns(["id", None], [TableReference(1, "a", 0, "id")]))
    assert "KEY" not in text


def test_no_key_joins_columns_of_two_types_or_columns_that_are_not_there():
    shop = {"a": {"id": pa.array([1])}, "b": {"a": pa.array(["1"])}}
    for relation in (
        TableReference(1, "a", 0, "id"),
        TableReference(1, "hidden", 0, "id"),
        TableReference(1, "a", 0, "hidden"),
    ):
        assert "FOREIGN" not in script("postgresql", shop, KeyColumns(["id", "gone"], [relation]))


def test_a_referenced_column_other_than_the_primary_key_is_unique():
    keys = KeyColumns(["id"], [TableReference(0, "boss", 0, "name")])
    shop = {"p": {"id": pa.array([1]), "name": pa.array(["x"]), "boss": pa.array(["x"])}}
    text = script("postgresql", shop, keys)
    assert '"name" text NOT NULL' in text
    assert 'UNIQUE ("name")' in text
