"""Measure how much of SQL scripts an import reads: tables, columns with a type, keys, references and checks.

python bench/ddl.py FOLDER [--problems]

Of each `*.sql` file, next to what the import found, how often the script itself mentions it, counted as words outside
comments and texts: an independent count that is a little too high where a script drops a table and creates it again,
or where routines create tables of their own.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from webapp.imports.readers import sql
from webapp.imports.readers.base import Source, UnreadableFileError

SILENT = re.compile(r"--[^\n]*|/\*(?!!).*?\*/|'(?:[^']|'')*'", re.S)
NAME = r"[\"`\[\w@][\w.$\"`\]\[@ -]*?"
MENTIONS = {
    "tables": rf"\bCREATE\s+(?:(?!VIEW\b)\w+\s+){{0,3}}TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{NAME}\s*\(",
    "keys": r"\bPRIMARY\s+KEY\b",
    "references": r"\bREFERENCES\b",
    "checks": r"\bCHECK\s*\(",
}


def main(folder: Path, problems: bool) -> None:
    """Print one line for each file."""
    print(
        f"{'file':34} {'tables':>9} {'keys':>9} {'refs':>9} {'checks':>9} {'columns':>8} {'typeless':>8} told  s"
    )
    for path in sorted(folder.glob("*.sql")):
        raw = path.read_bytes()
        text = SILENT.sub(" ", raw.decode("utf-8", "replace"))
        result = {name: len(re.findall(pattern, text, re.I)) for name, pattern in MENTIONS.items()}
        start = time.perf_counter()
        try:
            read = sql.read(Source(raw, path.name))
        except UnreadableFileError as error:
            print(f"{path.name:34} {0:>4}/{result['tables']:<4} {error}")
            continue
        taken = time.perf_counter() - start
        entities = [item.entity for item in read.tables]
        columns = [column for entity in entities for column in entity.fields]
        typeless = [column for column in columns if column.type == "other"]
        found = {
            "tables": len(entities),
            "keys": sum(bool(entity.keys) for entity in entities),
            "references": sum(len(entity.relations) for entity in entities),
            "checks": sum(len(entity.checks) for entity in entities),
        }
        shown = " ".join(f"{found[name]:>4}/{result[name]:<4}" for name in MENTIONS)
        reds = sum(len(item.rejected_columns) for item in read.tables)
        print(
            f"{path.name:34} {shown} {len(columns):>8} {len(typeless):>8} {len(read.problems)}+{reds} {taken:5.1f}"
        )
        if problems:
            for problem in read.problems:
                print(f"    {problem.table} {problem.column}: {problem.reason}")
            for table in read.tables:
                for name, reason in table.rejected_columns.items():
                    print(f"    {table.entity.name}.{name}: {reason}")
            for declared in sorted({item.declared for item in typeless}):
                print(f"    type: {declared}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--problems" in sys.argv[2:])
