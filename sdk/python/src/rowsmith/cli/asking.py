"""The options that say which rows, and the requests that they make."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any, Final, Optional

from rowsmith.cli.parser import natural, positive
from rowsmith.cli.problems import usage
from rowsmith.cli.work import Work, assigned, is_id

FORMATS: Final = ("json", "csv", "sql", "xlsx", "ndjson", "parquet")
TEMPLATE: Final = "Id or name of a template, or a file of one (NAME.json, as `templates pull` writes them)."


def add_rows(made: argparse.ArgumentParser) -> None:
    """Which rows: for `generate` and `push`."""
    group = made.add_argument_group("rows")
    group.add_argument(
        "-n", "--count", type=positive, metavar="N", help="Number of rows; without, the template's quantity."
    )
    group.add_argument("--offset", type=natural, metavar="N", help="Rows to skip.")
    add_values(made, group)
    group.add_argument(
        "--rows",
        action="append",
        metavar="TEMPLATE=N",
        help="Rows of a related template, by its id; once for each.",
    )


def add_values(made: argparse.ArgumentParser, group: Any = None) -> None:
    """What the values hang on: for `preview` too."""
    group = group or made.add_argument_group("rows")
    group.add_argument("--seed", help="Same seed, same rows.")
    group.add_argument(
        "--now", metavar="TIME", help="What relative dates hang on, such as 2026-11-21T12:00:00Z."
    )
    group.add_argument("--locale", metavar="LOCALE", help="Stands in for the template's own, such as de_DE.")
    group.add_argument(
        "--set",
        action="append",
        metavar="FIELD=VALUE",
        help="A fixed value of a field; a number, true, false or null is one, all else is text, and text in double "
        "quotes is text. Once for each.",
    )


def add_format(made: argparse.ArgumentParser) -> None:
    """How rows are written."""
    group = made.add_argument_group("format")
    group.add_argument(
        "-f", "--format", choices=FORMATS, help="Without: by the end of the file's name, else json."
    )
    group.add_argument(
        "--csv-delimiter", metavar="CHAR", help="What stands between columns: , ; | ^ ~ or tab."
    )
    group.add_argument("--csv-quote", choices=("minimal", "all"), help="Quote what must be, or every value.")
    group.add_argument(
        "--csv-escape-formulas",
        action="store_true",
        help="Put a ' before texts that a spreadsheet would run as a formula.",
    )
    group.add_argument("--no-header", action="store_true", help="CSV without a line of names.")
    group.add_argument("--sql-table", metavar="TABLE", help="Its name; without, made of the template's.")
    group.add_argument(
        "--sql-dialect",
        choices=("ansi", "postgresql", "mysql", "mssql", "oracle", "db2"),
        help="Whose SQL is written.",
    )
    group.add_argument("--create-table", action="store_true", help="SQL begins with CREATE TABLE.")
    group.add_argument("--rows-per-statement", type=positive, metavar="N", help="Rows of one INSERT.")
    group.add_argument(
        "--arrays", choices=("json", "columns"), help="Arrays in CSV and XLSX: text in a cell, or columns."
    )


def rows_of(args: argparse.Namespace) -> dict[str, Any]:
    """The part of a request that says which rows."""
    asked = {"count": args.count, "offset": args.offset, **values_of(args)}
    if args.rows:
        asked["rows"] = {}
        for name, value in assigned(args.rows, "--rows").items():
            if not value.isdigit():
                raise usage(f"--rows wants TEMPLATE=N, not {name}={value}.")
            asked["rows"][name] = int(value)
    return {key: value for key, value in asked.items() if value is not None}


def values_of(args: argparse.Namespace) -> dict[str, Any]:
    """The part of a request that says what values hang on."""
    asked = {"seed": args.seed, "now": args.now, "locale": args.locale}
    if args.set:
        asked["overrides"] = {name: value_of(text) for name, text in assigned(args.set, "--set").items()}
    return {key: value for key, value in asked.items() if value is not None}


def format_of(args: argparse.Namespace) -> dict[str, Any]:
    """The part of a request that says how rows are written."""
    tab = {"tab": "\t", "\\t": "\t"}
    csv = {
        "delimiter": tab.get(args.csv_delimiter, args.csv_delimiter),
        "quote": args.csv_quote,
        "header": False if args.no_header else None,
        "escape_formulas": args.csv_escape_formulas or None,
    }
    sql = {
        "table": args.sql_table,
        "dialect": args.sql_dialect,
        "create_table": args.create_table or None,
        "rows_per_statement": args.rows_per_statement,
    }
    asked: dict[str, Any] = {"arrays": args.arrays}
    for name, section in (("csv", csv), ("sql", sql)):
        given = {key: value for key, value in section.items() if value is not None}
        if given:
            asked[name] = given
    return {key: value for key, value in asked.items() if value is not None}


def value_of(text: str) -> Any:
    """A value from the command line: JSON where it is some, else the text as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def names_a_file(text: str) -> bool:
    """Whether a TEMPLATE is meant as a file."""
    return not is_id(text) and text.lower().endswith(".json")


def template_id(work: Work, which: str) -> str:
    """The id of a saved template, by id or name: by id nothing is asked."""
    return which if is_id(which, "tpl") else str(work.template(which)["id"])


def document(args: argparse.Namespace, name: str, read: Callable[[str], Any]) -> Optional[Any]:
    """An option that takes JSON, or `@FILE` with JSON in it."""
    given = getattr(args, name)
    if given is None:
        return None
    text = read(given[1:]) if given.startswith("@") else given
    try:
        return json.loads(text)
    except ValueError as error:
        option = "--" + name.replace("_", "-")
        raise usage(f"{option} wants JSON, or @ and the name of a file of it: {error}") from None
