"""SQL files, run by real databases, create the generated rows."""

from __future__ import annotations

import csv
import datetime as dt
import json
import os
import shutil
import sqlite3
import subprocess
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tests.engine.formats import samples
from webapp.engine.formats.sql_dialects import DIALECTS

ROWS = 150
BIG = Decimal("1e17")
TABLE = 'rowsmith formats\' "test"'


def fitting(table, **kept):
    """``table`` with the named columns narrowed to values for which the given test holds."""
    return {
        name: pa.array(
            [v if v is not None and kept[name](v) else None for v in column.to_pylist()], column.type
        )
        if name in kept
        else column
        for name, column in table.items()
    }


@pytest.fixture(scope="module")
def table():
    numbers = {"n": pa.array(list(range(ROWS)))}
    return {**numbers, **samples.columns({**samples.FLAT, **samples.NESTED}, ROWS)}


def expected(table):
    """Columns as lists, objects and arrays as a JSON reader has them."""
    columns = {name: column.to_pylist() for name, column in table.items()}
    for name in samples.NESTED:
        columns[name] = [value and json.loads(json.dumps(value, default=plain)) for value in columns[name]]
    return columns


def plain(value):
    return float(value) if isinstance(value, Decimal) else value.isoformat()


def since_midnight(value):
    return dt.timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
    )


def columns_of(table, rows):
    return dict(zip(table, map(list, zip(*rows, strict=True)), strict=True))


def assert_nested_equal(got, want):
    for name in samples.NESTED:
        texts = [json.loads(v) if isinstance(v, str) else v for v in got.pop(name)]
        assert texts == want.pop(name), name


def test_sqlite_reads_the_ansi_file(table):
    database = sqlite3.connect(":memory:")
    database.executescript(samples.file("sql", table, create_table=True, table=TABLE).decode())
    rows = database.execute('SELECT * FROM "rowsmith formats\' ""test""" ORDER BY n').fetchall()
    database.close()
    got, want = columns_of(table, rows), expected(table)
    assert_nested_equal(got, want)
    for name in ("n", "whole", "small", "float", "flag", "text", "nothing"):
        assert got.pop(name) == want.pop(name), name
    for name in ("unsigned", "price", "fine"):  # SQLite keeps doubles
        numbers = [None if value is None else float(value) for value in got.pop(name)]
        assert numbers == [None if value is None else float(value) for value in want.pop(name)], name
    for name in ("day", "clock"):
        assert got.pop(name) == [value and value.isoformat() for value in want.pop(name)], name
    for name in ("at", "instant"):
        assert got.pop(name) == [value and value.isoformat(sep=" ") for value in want.pop(name)], name
    assert got == want == {}


def test_postgresql_reads_its_file(table, postgresql):
    postgresql.execute("SET TIME ZONE 'Asia/Tokyo'")
    text = samples.file("sql", table, dialect="postgresql", create_table=True, table=TABLE).decode()
    postgresql.execute(text.replace("CREATE TABLE", "CREATE TEMPORARY TABLE", 1).encode())
    postgresql.execute("SET TIME ZONE 'UTC'")  # Python has no year 10000, where Tokyo is already
    rows = postgresql.execute('SELECT * FROM "rowsmith formats\' ""test""" ORDER BY n').fetchall()
    got, want = columns_of(table, rows), expected(table)
    assert_nested_equal(got, want)
    assert got == want


def test_mariadb_reads_the_mysql_file(table, mariadb):
    table = fitting(table, float=lambda value: value != 5e-324)  # below the smallest double of MariaDB
    mariadb.execute(samples.file("sql", table, dialect="mysql", create_table=True, table=TABLE).decode())
    while mariadb.nextset():
        pass
    mariadb.execute(f"SELECT * FROM `{TABLE}` ORDER BY n")
    got, want = columns_of(table, mariadb.fetchall()), expected(table)
    assert_nested_equal(got, want)
    want["instant"] = [value and value.replace(tzinfo=None) for value in want["instant"]]
    want["clock"] = [value and since_midnight(value) for value in want["clock"]]
    assert got == want


@pytest.mark.parametrize("rows", [10, 500])
@pytest.mark.parametrize("names", ["text text, flag boolean", "text text"])
def test_postgresql_copies_the_csv_file(postgresql, rows, names):
    kinds = {name.split()[0]: samples.FLAT[name.split()[0]] for name in names.split(", ")}
    table = samples.columns(kinds, rows)
    postgresql.execute(f"CREATE TEMPORARY TABLE copied (n serial, {names})")
    with postgresql.cursor().copy(
        f"COPY copied ({', '.join(kinds)}) FROM STDIN (FORMAT csv, HEADER true)"
    ) as copy:
        copy.write(samples.file("csv", table))
    got = postgresql.execute(f"SELECT {', '.join(kinds)} FROM copied ORDER BY n").fetchall()
    assert got == list(zip(*(column.to_pylist() for column in table.values()), strict=True))


# H2 replaces servers that are not available here. It supports their text literals, but not all of their types.
H2_MODES = {
    "ansi": ("REGULAR", []),
    "oracle": ("Oracle", ["float"]),
    "mssql": ("MSSQLServer", ["float", "instant"]),
}


@pytest.fixture
def h2_jar():
    value = os.environ.get("TEST_H2_JAR")
    jars = [Path(value)] if value else sorted(Path.home().glob(".m2/repository/com/h2database/h2/*/h2-*.jar"))
    if not shutil.which("java") or not jars:
        pytest.skip("no Java, or no H2 (TEST_H2_JAR names its jar)")
    return jars[-1]


@pytest.mark.parametrize("dialect", list(H2_MODES))
def test_h2_reads_the_file_in_the_mode_of_its_dialect(dialect, h2_jar, table, tmp_path):
    mode, unknown = H2_MODES[dialect]
    table = {name: column for name, column in table.items() if name not in unknown}
    quoted = DIALECTS[dialect].quote_name
    script, result = tmp_path / "in.sql", tmp_path / "out.csv"
    select = f"SELECT * FROM {quoted('h2')} ORDER BY {quoted('n')}"
    text = samples.file("sql", table, dialect=dialect, create_table=True, table="h2").decode()
    script.write_text(f"{text}CALL CSVWRITE('{result}', '{select}', 'null=@NULL@');\n", "utf-8", newline="")
    command = ["java", "-cp", str(h2_jar), "org.h2.tools.RunScript", "-url", f"jdbc:h2:mem:;MODE={mode}"]
    done = subprocess.run([*command, "-user", "sa", "-script", str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with result.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    got = columns_of(table, [[None if value == "@NULL@" else value for value in row] for row in rows])
    texts = table["text"].to_pylist()
    assert got["text"] == [value or None if dialect == "oracle" else value for value in texts]
    assert got["tags"] == tag_texts(table)
    assert [value and int(value) for value in got["whole"]] == table["whole"].to_pylist()
    assert [value and Decimal(value) for value in got["price"]] == table["price"].to_pylist()
    assert [value and value[:10] for value in got["day"]] == [
        v and v.isoformat() for v in table["day"].to_pylist()
    ]


def tag_texts(table):
    lines = samples.file("ndjson", {"tags": table["tags"]}).decode().splitlines()
    return [None if line == '{"tags":null}' else line.removeprefix('{"tags":')[:-1] for line in lines]
