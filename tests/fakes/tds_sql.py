"""Run T-SQL in SQLite, as far as the connector uses it: names in brackets, transactions with savepoints, MERGE with
OUTPUT, the catalog views, and SQL Server's error numbers."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Result = tuple[list[str] | None, list[tuple[Any, ...]], int]

_TOKEN = re.compile(
    r"(?P<text>N?'(?:[^']|'')*')|(?P<name>\[(?:[^\]]|\]\])*\]|\"(?:[^\"]|\"\")*\")|(?P<comment>--[^\n]*)"
    r"|(?P<bytes>0x[0-9a-fA-F]*)|(?P<word>[@#\w]+)|(?P<space>\s+)|(?P<sign>.)",
    re.S,
)
_PLAIN_MERGE = re.compile(
    r"MERGE INTO (?P<table>\S+) t USING \((?P<select>SELECT .*)\) s ON \((?P<on>.*?)\) (?P<parts>WHEN .*)$",
    re.S,
)
_SYSTEM = {
    "schemas": "schema_id, name", "objects": "object_id, schema_id, name, type, is_ms_shipped",
    "types": "user_type_id, name",
    "columns": "object_id, column_id, name, system_type_id, max_length, precision, scale, is_nullable, is_identity,"
    " is_computed, default_object_id",
    "default_constraints": "object_id, definition",
    "indexes": "object_id, index_id, name, is_primary_key, is_unique, has_filter, filter_definition",
    "computed_columns": "object_id, column_id, definition",
    "index_columns": "object_id, index_id, column_id, key_ordinal, is_included_column",
    "foreign_keys": "object_id, parent_object_id, referenced_object_id, name",
    "foreign_key_columns": "constraint_object_id, parent_object_id, parent_column_id, referenced_object_id,"
    " referenced_column_id, constraint_column_id",
    "check_constraints": "parent_object_id, name, definition, is_disabled",
}  # fmt: skip


class Refused(Exception):
    def __init__(self, number: int, message: str) -> None:
        self.number = number
        super().__init__(message)


def name_of(token: str) -> str:
    end = "]" if token[0] == "[" else token[0]
    return token[1:-1].replace(end * 2, end)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Database:
    """One connection's view of the files in a folder."""

    def __init__(self, folder: Path, may_write: bool) -> None:
        self._may_write = may_write
        self._own = sqlite3.connect(
            folder / "shop.db", isolation_level=None, check_same_thread=False, timeout=30
        )
        self._own.create_function("CONCAT", -1, lambda *parts: "".join(map(str, parts)), deterministic=True)
        self._own.execute("PRAGMA foreign_keys = ON")
        self._own.execute("PRAGMA journal_mode = WAL")
        self._own.execute("ATTACH ? AS sys", (str(folder / "sys.db"),))
        for schema in ("main", "sys"):
            self._own.execute(f"PRAGMA {schema}.synchronous = OFF")  # no test cuts the power
        for table, columns in _SYSTEM.items():
            self._own.execute(f"CREATE TABLE IF NOT EXISTS sys.{table} ({columns})")

    def close(self) -> None:
        self._own.close()

    def batch(self, text: str) -> Iterator[Result]:
        for statement in _statements(text.replace("'+CAST(N'' AS nvarchar(max))+N'", "")):
            words = " ".join(token for kind, token in statement if kind == "word").upper()
            yield from self._statement(statement, words)

    def _statement(self, tokens: list[tuple[str, str]], words: str) -> Iterator[Result]:
        first = words.partition(" ")[0]
        if first in ("SET", "USE", "DECLARE") or (first == "SELECT" and words == "SELECT FROM @DONE"):
            return
        if first in ("IF", "BEGIN", "SAVE", "ROLLBACK", "COMMIT"):
            self._transaction(words)
            return
        if "SERVERPROPERTY" in words:
            yield ["", ""], [("16.0.1000.6", "dbo")], 1
            return
        if "XACT_STATE" in words:
            yield [""], [(int(self._own.in_transaction),)], 1
            return
        if "HAS_PERMS_BY_NAME" in words:
            yield [""], [(1,)], 1
            return
        if first != "SELECT" and first != "WITH" and not self._may_write:
            raise Refused(
                229, f"The {first} permission was denied on the object 't', database 'shop', schema 'dbo'."
            )
        if first == "MERGE":
            yield self._refusing(lambda: self._merge(tokens))
            return
        text = _sqlite(tokens)
        if first == "CREATE":
            self._refusing(lambda: (self._create(tokens, text), (None, [], 0))[1])
            return
        yield self._refusing(lambda: self._carried_out(text))

    def _transaction(self, words: str) -> None:
        if words.startswith("BEGIN"):
            self._own.execute("BEGIN")
        elif words.startswith("SAVE"):
            self._own.execute("SAVEPOINT rowsmith")
        elif words.endswith("ROWSMITH"):
            self._own.execute("ROLLBACK TO rowsmith")
        elif self._own.in_transaction:
            self._own.execute("COMMIT" if words.startswith("COMMIT") else "ROLLBACK")
        elif not words.startswith("IF"):
            raise Refused(3902, "The request has no corresponding BEGIN TRANSACTION.")

    def _carried_out(self, text: str) -> Result:
        cursor = self._own.execute(text)
        rows = cursor.fetchall()
        names = [item[0] for item in cursor.description] if cursor.description else None
        return names, rows, len(rows) if names else max(cursor.rowcount, 0)

    def _refusing(self, act: Any) -> Result:
        """SQLite's refusals as SQL Server's."""
        try:
            return act()
        except sqlite3.IntegrityError as error:
            message = str(error)
            column = message.rpartition(".")[2]
            if "NOT NULL" in message:
                raise Refused(515, f"Cannot insert the value NULL into column '{column}'.") from None
            if "UNIQUE" in message:
                raise Refused(2627, f"Violation of UNIQUE KEY constraint. {message}") from None
            if "FOREIGN KEY" in message:
                raise Refused(547, "The statement conflicted with the FOREIGN KEY constraint.") from None
            if "length of" in message:
                raise Refused(
                    2628, f"String or binary data would be truncated in table 't'. {message}"
                ) from None
            raise Refused(
                547, f"The INSERT statement conflicted with the CHECK constraint. {message}"
            ) from None
        except sqlite3.OperationalError as error:
            message = str(error)
            number = next(
                (
                    number
                    for word, number in (
                        ("no such table", 208), ("no such column", 207), ("already exists", 2714), ("locked", 1222),
                    )
                    if word in message
                ),
                102,
            )  # fmt: skip
            raise Refused(number, message) from None

    # --- MERGE ---

    def _merge(self, tokens: list[tuple[str, str]]) -> Result:
        text = _sqlite(tokens)
        shape = _PLAIN_MERGE.match(text)
        if shape:  # as a person writes it, for one row
            one = f"FROM ({shape['select']}) AS s"
            query = f"SELECT t.rowid {one}, {shape['table']} AS t WHERE {shape['on']}"
            there = self._own.execute(query).fetchone()
            self._merged(shape["parts"], shape["table"], one, there[0] if there else None)
            return None, [], 1
        shape = re.match(
            r"MERGE INTO (?P<table>.+?) AS t USING \(SELECT .+? FROM \(VALUES (?P<values>.*)\)"
            r" AS v \((?P<columns>.*?)\)\) AS s ON \((?P<on>.*?)\) (?P<parts>WHEN .*) OUTPUT (?P<output>.*) INTO @done",
            text,
            re.S,
        )
        assert shape, "a MERGE that the connector does not write"
        run, table, caught = self._own.execute, shape["table"], []
        names = [item.strip() for item in re.findall(r'"(?:[^"]|"")*"', shape["columns"])]
        run(f"CREATE TEMP TABLE s ({', '.join(names)})")
        try:
            run(f"INSERT INTO s VALUES {shape['values']}")
            if _doubled(names, shape["on"], run):
                raise Refused(
                    8672, "The MERGE statement attempted to UPDATE or DELETE the same row more than once."
                )
            back = shape["output"].replace("inserted.", "t.")
            for (place,) in run("SELECT rowid FROM s ORDER BY rowid").fetchall():
                one = f"FROM (SELECT * FROM temp.s WHERE rowid = {place}) AS s"
                there = run(f"SELECT t.rowid {one}, {table} AS t WHERE {shape['on']}").fetchone()
                row = self._merged(shape["parts"], table, one, there[0] if there else None)
                if row is not None:
                    outer = f"SELECT {back} {one} LEFT JOIN {table} AS t ON t.rowid = {row}"
                    caught.append(run(outer).fetchone())
        finally:
            run("DROP TABLE temp.s")
        return [f"c{place}" for place in range(len(caught[0]) if caught else 1)], caught, len(caught)

    def _merged(self, parts: str, table: str, one: str, there: int | None) -> int | None:
        if there is not None:
            if "MATCHED THEN DELETE" in parts:
                self._own.execute(f"DELETE FROM {table} WHERE rowid = {there}")
                return there
            found = re.search(r"WHEN MATCHED THEN UPDATE SET (.*?)(?: WHEN NOT MATCHED|$)", parts, re.S)
            if not found:
                return None
            names = re.findall(r't\.("(?:[^"]|"")*") = s\.', found[1])
            setting = ", ".join(f"{name} = (SELECT s.{name} {one})" for name in names)
            self._own.execute(f"UPDATE {table} SET {setting} WHERE rowid = {there}")
            return there
        found = re.search(r"WHEN NOT MATCHED THEN INSERT \((.*)\) VALUES \((.*)\)$", parts, re.S)
        if not found:
            return None
        self._own.execute(f"INSERT INTO {table} ({found[1]}) SELECT {found[2]} {one}")
        return int(self._own.execute("SELECT last_insert_rowid()").fetchone()[0])

    # --- CREATE TABLE, and what the catalog then says ---

    def _create(self, tokens: list[tuple[str, str]], text: str) -> None:
        table = next(name_of(token) for kind, token in tokens if kind == "name" and name_of(token) != "dbo")
        written, lines = [], _lines(text)
        number = self._next("objects", "object_id")
        self._own.execute(
            "INSERT INTO sys.schemas SELECT 1, 'dbo' WHERE NOT EXISTS (SELECT 1 FROM sys.schemas)"
        )
        result: list[tuple[str, tuple[Any, ...]]] = [("objects", (number, 1, table, "U", 0))]
        columns: dict[str, int] = {}
        uniques: list[tuple[bool, list[str]]] = []
        for line in lines:
            if line.upper().startswith(("PRIMARY KEY", "FOREIGN KEY")):
                written.append(line)
                names = [name_of(item) for item in re.findall(r'"(?:[^"]|"")*"', line)]
                if line.upper().startswith("PRIMARY"):
                    uniques.insert(0, (True, names))
                else:
                    result += self._foreign(number, columns[names[0]], names[1], names[2])
                continue
            name = re.match(r'"(?:[^"]|"")*"', line)[0]
            columns[name_of(name)] = len(columns) + 1
            written.append(self._column(line, name, number, len(columns), result, uniques))
        for place, (primary, names) in enumerate(uniques, 1):
            result.append(("indexes", (number, place, f"i{place}", int(primary), 1, 0, None)))
            result += [
                ("index_columns", (number, place, columns[item], at, 0)) for at, item in enumerate(names, 1)
            ]
        if any("AUTOINCREMENT" in line for line in written):
            written = [line for line in written if not line.upper().startswith("PRIMARY KEY")]
        self._own.execute(f"CREATE TABLE {quoted(table)} ({', '.join(written)})")
        for place, row in result:
            self._own.execute(f"INSERT INTO sys.{place} VALUES ({', '.join('?' * len(row))})", row)

    def _column(
        self, line: str, name: str, table: int, place: int, told: list[Any], uniques: list[Any]
    ) -> str:
        rest = line[len(name) :].strip()
        kind, sizes = re.match(r"([a-zA-Z_]\w*)\s*(?:\(([^)]*)\))?", rest).groups()
        kind = kind.lower()
        numbers = [int(item) for item in re.findall(r"\d+", sizes or "")]
        wide = 2 if kind.startswith("n") and kind != "numeric" else 1
        length = -1 if sizes == "max" else wide * numbers[0] if numbers and "char" in kind else 8
        precision, scale = (*numbers, 0, 0)[:2] if kind in ("decimal", "numeric") else (0, 0)
        identity = "IDENTITY" in rest.upper()
        nullable = "NOT NULL" not in rest.upper() and not identity
        default = re.search(r"DEFAULT (\S+)", rest)
        constraint = self._next("default_constraints", "object_id") if default else 0
        if default:
            told.append(("default_constraints", (constraint, f"(({default[1]}))")))
        self._own.execute(
            "INSERT INTO sys.types SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM sys.types WHERE user_type_id = ?)",
            (kind, kind, kind),
        )
        row = (
            table,
            place,
            name_of(name),
            kind,
            length,
            precision,
            scale,
            int(nullable),
            int(identity),
            0,
            constraint,
        )
        told.append(("columns", row))
        if re.search(r"\bUNIQUE\b", rest.upper()):
            uniques.append((False, [name_of(name)]))
        check = re.search(r"CHECK \((.*)\)$", rest)
        if check:
            told.append(("check_constraints", (table, f"ck{place}", f"({check[1]})", 0)))
        if identity:
            return f"{name} INTEGER PRIMARY KEY AUTOINCREMENT"
        end = f" CONSTRAINT {quoted('length of ' + name_of(name))} CHECK (length({name}) <= {length // wide})"
        stored = {
            "float": "REAL",
            "decimal": "NUMERIC",
            "bigint": "INTEGER",
            "int": "INTEGER",
            "bit": "INTEGER",
        }
        tail = rest[re.match(r"[a-zA-Z_]\w*\s*(?:\([^)]*\))?", rest).end() :]
        return f"{name} {stored.get(kind, 'BLOB')} {tail}" + (end if length > 0 and "char" in kind else "")

    def _foreign(self, table: int, column: int, other: str, key: str) -> list[tuple[str, tuple[Any, ...]]]:
        (to,) = self._own.execute("SELECT object_id FROM sys.objects WHERE name = ?", (other,)).fetchone()
        query = "SELECT column_id FROM sys.columns WHERE object_id = ? AND name = ?"
        (to_column,) = self._own.execute(query, (to, key)).fetchone()
        number = 1_000_000 + table * 100 + column
        return [
            ("foreign_keys", (number, table, to, f"fk{number}")),
            ("foreign_key_columns", (number, table, column, to, to_column, 1)),
        ]

    def _next(self, table: str, column: str) -> int:
        return self._own.execute(f"SELECT COALESCE(MAX({column}), 0) + 1 FROM sys.{table}").fetchone()[0]


def _doubled(names: list[str], on: str, run: Any) -> bool:
    keys = re.findall(r's\.("(?:[^"]|"")*")', on)
    if not keys:
        return False
    query = f"SELECT 1 FROM temp.s GROUP BY {', '.join(keys)} HAVING COUNT(*) > 1"
    return run(query).fetchone() is not None


def _statements(text: str) -> Iterator[list[tuple[str, str]]]:
    """Tokens of each statement; the second of two that nothing separates begins at its SELECT."""
    found: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        if (kind, token) == ("sign", ";"):
            if any(item != "space" for item, _ in found):
                yield found
            found = []
        elif kind != "comment":
            found.append((kind, " " if kind == "space" else token))
    if any(item != "space" for item, _ in found):
        yield found


def _sqlite(tokens: list[tuple[str, str]]) -> str:
    out = []
    for kind, token in tokens:
        if kind == "text":
            token = token.removeprefix("N")
        elif kind == "name":
            token = quoted(name_of(token))
        elif kind == "bytes":
            token = f"x'{token[2:]}'"
        out.append(token)
    text = "".join(out).strip()
    top = re.match(r"SELECT TOP \((\d+)\) ", text)
    if top:
        text = f"SELECT {text[top.end() :]} LIMIT {top[1]}"
    text = re.sub(r" WITH \((?:HOLDLOCK|READCOMMITTEDLOCK)\)", "", text)
    return text.replace('"dbo".', "")


def _lines(text: str) -> list[str]:
    """Split the column list of a CREATE TABLE at its commas."""
    inner, depth, lines, at = text[text.index("(") + 1 : text.rindex(")")], 0, [], 0
    for match in re.finditer(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[(),]", inner):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if match[0] == "," and not depth:
            lines.append(inner[at : match.start()].strip())
            at = match.end()
    return [*lines, inner[at:].strip()]
