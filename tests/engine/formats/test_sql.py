from __future__ import annotations

import re

import pyarrow as pa
import pytest

from tests.engine.formats import samples
from tests.engine.formats.samples import FormatError, file
from webapp import limits
from webapp.engine.formats.sql_dialects import DIALECTS
from webapp.engine.formats.sql_format import slug

ALL_DIALECTS = pytest.mark.parametrize("dialect", list(DIALECTS))


def literal(dialect: str, text: str, count: int = 3) -> str:
    """How ``text`` is written, the same in all of many rows."""
    lines = file("sql", {"a": pa.array([text] * count)}, dialect=dialect, rows_per_statement=1).decode()
    found = set(re.findall(r"VALUES \((.*?)\);\n(?=INSERT|\Z)", lines, re.DOTALL))
    assert len(found) == 1
    return found.pop()


def test_statements_hold_the_asked_number_of_rows_of_the_whole_stream():
    table = {"n": pa.array(list(range(7)))}
    want = (
        b'INSERT INTO "order_lines" ("n") VALUES\n(0),\n(1),\n(2);\n'
        b'INSERT INTO "order_lines" ("n") VALUES\n(3),\n(4),\n(5);\n'
        b'INSERT INTO "order_lines" ("n") VALUES\n(6);\n'
    )
    assert file("sql", table, rows_per_statement=3) == want
    assert file("sql", table, [1, 2, 5], rows_per_statement=3) == want


@pytest.mark.parametrize(
    ("dialect", "name"),
    [
        ("ansi", '"select ""me"""'), ("postgresql", '"select ""me"""'), ("mysql", '`select "me"`'),
        ("mssql", '[select "me"]'), ("db2", '"select ""me"""'),
    ],
)  # fmt: skip
def test_names_are_always_quoted(dialect, name):
    text = file("sql", {'select "me"': pa.array([1])}, dialect=dialect, table="my.order").decode()
    assert f"({name})" in text
    quoted = DIALECTS[dialect].quote_name
    assert f"INSERT INTO {quoted('my')}.{quoted('order')} (" in text


def test_quotes_of_the_dialect_inside_a_name_are_doubled():
    assert "(`a``b`)" in file("sql", {"a`b": pa.array([1])}, dialect="mysql").decode()
    assert "([a]]b])" in file("sql", {"a]b": pa.array([1])}, dialect="mssql").decode()


@pytest.mark.parametrize(
    ("dialect", "text", "want"),
    [
        ("ansi", "it's \\ \n", "'it''s \\ \n'"),
        ("postgresql", "it's \\ \n", "'it''s \\ \n'"),
        ("mysql", "it's \\ \r\n\0\x1a", r"'it''s \\ \r\n\0\Z'"),
        ("mssql", "it's é", "N'it''s é'"),
        ("mssql", "a\\\nb", "N'a\\'+CAST(N'' AS nvarchar(max))+N'\nb'"),
        ("mssql", "a\\\r\nb", "N'a\\'+CAST(N'' AS nvarchar(max))+N'\r\nb'"),
        ("oracle", "it's\r\nR&D", "'it''s'||CHR(13)||''||CHR(10)||'R'||CHR(38)||'D'"),
        ("db2", "it's\nR&D", "'it''s'||CHR(10)||'R&D'"),
    ],
)
def test_text_is_escaped_as_the_dialect_reads_it(dialect, text, want):
    assert literal(dialect, text) == want


@pytest.mark.parametrize(("dialect", "most"), [("oracle", 4_000), ("db2", 32_672)])
def test_a_text_too_long_for_a_literal_is_put_together_from_parts(dialect, most):
    fits = "x" * most
    assert literal(dialect, fits) == f"'{fits}'"
    long = "é'" * most
    written = literal(dialect, long)
    parts = re.findall(r"TO_CLOB\('((?:''|[^'])*)'\)", written)
    assert written == "||".join(f"TO_CLOB('{part}')" for part in parts)
    assert "".join(parts).replace("''", "'") == long
    assert max(len(part.replace("''", "'").encode()) for part in parts) <= most


def test_a_long_text_from_a_pool_is_put_together_too():
    texts = pa.array(["short", "y" * 5_000] * 40)
    written = file("sql", {"a": texts.dictionary_encode()}, dialect="oracle")
    assert written == file("sql", {"a": texts}, dialect="oracle")
    assert written.count(b"TO_CLOB") == 40 * 5


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "mysql"])
def test_a_text_with_nul_is_rejected_by_name(dialect):
    table = {"n": pa.array([1, 2, 3] * 20), "bad": pa.array(["a", "b", "c\0"] * 20)}
    with pytest.raises(FormatError) as caught:
        file("sql", table, dialect=dialect)
    fault = caught.value.faults[0]
    assert (fault.path, fault.code) == ("bad", "value_does_not_fit")
    assert "U+0000" in fault.message


@pytest.mark.parametrize(
    ("dialect", "want"),
    [
        ("ansi", "TRUE,'2024-01-31','2024-01-31 01:02:03','2024-01-31 01:02:03+00:00','01:02:03',1.5"),
        ("postgresql", "TRUE,'2024-01-31','2024-01-31 01:02:03','2024-01-31 01:02:03+00:00','01:02:03',1.5"),
        ("mysql", "TRUE,'2024-01-31','2024-01-31 01:02:03','2024-01-31 01:02:03','01:02:03',1.5"),
        ("mssql", "1,'2024-01-31','2024-01-31T01:02:03','2024-01-31T01:02:03+00:00','01:02:03',1.5"),
        ("oracle", "1,DATE '2024-01-31',TIMESTAMP '2024-01-31 01:02:03',"
                   "TIMESTAMP '2024-01-31 01:02:03 +00:00','01:02:03',1.5"),
        ("db2", "1,'2024-01-31','2024-01-31 01:02:03','2024-01-31 01:02:03','01:02:03',1.5"),
    ],
)  # fmt: skip
def test_booleans_dates_and_times_are_literals_of_the_dialect(dialect, want):
    when = samples.STAMPS[0]
    table = {
        "flag": pa.array([True, None]),
        "day": pa.array([when.date(), None]),
        "at": pa.array([when, None], samples.STAMP),
        "instant": pa.array([when, None], samples.INSTANT),
        "clock": pa.array([when.time(), None], samples.CLOCK),
        "float": pa.array([1.5, None]),
    }
    text = file("sql", table, dialect=dialect).decode()
    assert f"({want})" in text
    assert "(NULL,NULL,NULL,NULL,NULL,NULL)" in text


def test_oracle_reads_a_large_double_as_one():
    text = file(
        "sql", {"f": pa.array([1.5, 1e300, None, -1e-7])}, dialect="oracle", rows_per_statement=1
    ).decode()
    assert re.findall(r"VALUES \((.*)\);", text) == ["1.5", "1e+300d", "NULL", "-1e-7d"]


@ALL_DIALECTS
def test_create_table_names_a_type_for_every_column(dialect):
    table = samples.columns({**samples.FLAT, **samples.NESTED}, 3)
    created = file("sql", table, dialect=dialect, create_table=True).decode()
    head = created[created.index("CREATE TABLE") : created.index("INSERT")]
    lines = head.splitlines()[1:-1]
    assert len(lines) == len(table)
    for line, name in zip(lines, table, strict=True):
        assert re.fullmatch(rf"  {re.escape(DIALECTS[dialect].quote_name(name))} [A-Za-z].*", line), line
    assert "CREATE TABLE" not in file("sql", table, dialect=dialect).decode()


@pytest.mark.parametrize(
    ("dialect", "short", "long"),
    [
        ("ansi", "VARCHAR(200)", "VARCHAR(60000)"), ("postgresql", "varchar(200)", "varchar(60000)"),
        ("mysql", "VARCHAR(200)", "LONGTEXT"), ("mssql", "nvarchar(400)", "nvarchar(max)"),
        ("oracle", "VARCHAR2(200 CHAR)", "CLOB"), ("db2", "VARCHAR(200 CODEUNITS32)", "CLOB(2G)"),
    ],
)  # fmt: skip
def test_a_known_longest_text_bounds_the_column(dialect, short, long):
    table = {"s": pa.array(["x"]), "l": pa.array(["x"])}
    metadata = {"s": {b"max_length": b"200"}, "l": {b"max_length": b"60000"}}
    text = file("sql", table, dialect=dialect, create_table=True, metadata=metadata).decode()
    quoted = DIALECTS[dialect].quote_name
    assert f"{quoted('s')} {short},\n" in text
    assert f"{quoted('l')} {long}\n" in text


def test_a_row_too_wide_for_mysql_has_its_texts_outside():
    table = {f"c{n}": pa.array(["x"]) for n in range(70)}
    metadata = {name: {b"max_length": b"200"} for name in table}
    assert b"VARCHAR" not in file("sql", table, dialect="mysql", create_table=True, metadata=metadata)
    assert b"LONGTEXT" not in file("sql", dict(list(table.items())[:60]), dialect="mysql", create_table=True,
                                   metadata=metadata)  # fmt: skip


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Order lines", "order_lines"),
        ("  Größe & Farbe!", "grosse_farbe"),
        ("顧客", "rows"),
        ("x" * 90, "x" * 63),
    ],
)
def test_the_table_is_named_after_the_title(title, name):
    assert slug(title) == name
    assert f'INSERT INTO "{name}" ' in file("sql", {"a": pa.array([1])}, title=title).decode()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"dialect": "oracle", "rows_per_statement": 2}, "at most 1"),
        ({"dialect": "mssql", "rows_per_statement": limits.MSSQL_ROWS_PER_STATEMENT + 1}, "at most 1000"),
        ({"rows_per_statement": 0}, "greater than or equal to 1"),
        ({"dialect": "postgresql", "table": "x" * 64}, "at most 63"),
        ({"table": "a..b"}, "is not a valid name"),
        ({"dialect": "dbase"}, "postgresql"),
        ({"engine": "x"}, "Extra inputs"),
    ],
)
def test_options_that_a_dialect_does_not_support_are_rejected(options, word):
    with pytest.raises(ValueError, match=word):
        samples.FORMATS["sql"].Options(**options)


@pytest.mark.parametrize(
    ("dialect", "names", "faults"),
    [
        ("oracle", ['a"b', "ok"], [('a"b', "name_does_not_fit")]),
        ("mysql", ["x" * 65], [("x" * 65, "name_does_not_fit")]),
        ("postgresql", ["é" * 32], [("é" * 32, "name_does_not_fit")]),
        ("mssql", ["Name", "name"], [("Name", "duplicate_name"), ("name", "duplicate_name")]),
        ("ansi", ["a\0"], [("a\0", "name_does_not_fit")]),
    ],
)
def test_columns_with_names_that_a_dialect_does_not_support_are_rejected_together(dialect, names, faults):
    fmt = samples.FORMATS["sql"]
    schema = pa.schema([(name, pa.int64()) for name in names])
    with pytest.raises(FormatError) as caught:
        fmt(schema, fmt.Options(dialect=dialect), title="x")
    assert [(fault.path, fault.code) for fault in caught.value.faults] == faults


def test_names_that_differ_only_in_case_are_allowed_if_the_dialect_distinguishes_them():
    assert b'("Name", "name")' in file(
        "sql", {"Name": pa.array([1]), "name": pa.array([2])}, dialect="postgresql"
    )


def test_objects_and_arrays_are_columns_where_asked():
    table = {"o": pa.array([{"a": 1, "b": ["x", "y"]}])}
    assert b'("o") VALUES\n(\'{"a":1,"b":["x","y"]}\')' in file("sql", table)
    kind = pa.struct(
        [pa.field("a", pa.int64()), pa.field("b", pa.list_(pa.string()), metadata={b"max_items": b"2"})]
    )
    table = {"o": pa.array([{"a": 1, "b": ["x", "y"]}], kind)}
    assert b'("o.a", "o.b.0", "o.b.1") VALUES\n(1,\'x\',\'y\')' in file("sql", table, arrays="columns")


def test_no_rows_make_no_statement():
    assert file("sql", {"a": pa.array([], pa.int64())}) == b""
