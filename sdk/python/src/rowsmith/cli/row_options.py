"""The options that select rows, and the requests that they produce."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any, Final, Optional

from rowsmith.cli.parser import natural, positive
from rowsmith.cli.problems import usage
from rowsmith.cli.work import Work, is_id, parse_assignments

FORMATS: Final = ("json", "csv", "sql", "xlsx", "ndjson", "parquet")
TEMPLATE: Final = (
    "ID or name of a template, or a file from `templates pull`.")


def add_rows(made: argparse.ArgumentParser) -> None:
    """Add the options that select rows, for `generate` and `push`."""
    group = made.add_argument_group("rows")
    group.add_argument(
        "-n", "--count", type=positive, metavar="N", help="Number of rows. Default: the template's quantity."
    )
    group.add_argument("--offset", type=natural, metavar="N", help="Number of rows to skip.")
    add_values(made, group)
    group.add_argument(
        "--rows",
        action="append",
        metavar="TEMPLATE=N",
        help="Rows of a related template, by ID. Can be repeated.",
    )


def add_values(made: argparse.ArgumentParser, group: Any = None) -> None:
    """Add the options that values depend on, which `preview` has too."""
    group = group or made.add_argument_group("rows")
    group.add_argument("--seed", help="Seed. The same seed produces the same rows.")
    group.add_argument(
        "--now", metavar="TIME", help="Time for relative dates, such as 2026-11-21T12:00:00Z."
    )
    group.add_argument("--locale", metavar="LOCALE",
        help="Locale, such as de_DE. Default: the template's.")
    group.add_argument(
        "--set",
        action="append",
        metavar="FIELD=VALUE",
        help=("Fixed value of a field: number, true, false, null or text (in quotes if ambiguous). Can "
              "be repeated."),
    )


def add_format(made: argparse.ArgumentParser) -> None:
    """Add the options for the output format."""
    group = made.add_argument_group("format")
    group.add_argument(
        "-f", "--format", choices=FORMATS,
        help="Output format. Default: from the file name extension, otherwise json."
    )
    group.add_argument(
        "--csv-delimiter", metavar="CHAR", help="Column separator: , ; | ^ ~ or tab."
    )
    group.add_argument("--csv-quote", choices=("minimal", "all"),
        help="Quote only values that need it, or all values.")
    group.add_argument(
        "--csv-escape-formulas",
        action="store_true",
        help="Prefix texts that a spreadsheet would run as a formula with a '.",
    )
    group.add_argument("--no-header", action="store_true", help="CSV without a header line.")
    group.add_argument("--sql-table", metavar="TABLE",
        help="Table name. Default: derived from the template's name.")
    group.add_argument(
        "--sql-dialect",
        choices=("ansi", "postgresql", "mysql", "mssql", "oracle", "db2"),
        help="SQL dialect.",
    )
    group.add_argument("--create-table", action="store_true", help="Start the SQL with CREATE TABLE.")
    group.add_argument("--rows-per-statement", type=positive, metavar="N", help="Rows per INSERT statement.")
    group.add_argument(
        "--arrays", choices=("json", "columns"),
        help="Arrays in CSV and XLSX: as text in one cell, or as columns."
    )


def rows_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the part of a request that selects rows."""
    asked = {"count": args.count, "offset": args.offset, **values_of(args)}
    if args.rows:
        asked["rows"] = {}
        for name, value in parse_assignments(args.rows, "--rows").items():
            if not value.isdigit():
                raise usage(f"--rows requires TEMPLATE=N, not {name}={value}.")
            asked["rows"][name] = int(value)
    return {key: value for key, value in asked.items() if value is not None}


def values_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the part of a request that values depend on."""
    asked = {"seed": args.seed, "now": args.now, "locale": args.locale}
    if args.set:
        asked["overrides"] = {name: value_of(text) for name, text in parse_assignments(args.set, "--set").items()}
    return {key: value for key, value in asked.items() if value is not None}


def format_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the part of a request that sets the output format."""
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
    """Parse a value from the command line: as JSON if it is valid JSON, otherwise as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def names_a_file(text: str) -> bool:
    """Return whether a TEMPLATE argument is a file."""
    return not is_id(text) and text.lower().endswith(".json")


def template_id(work: Work, which: str) -> str:
    """Return the ID of a saved template by ID or name. An ID needs no request."""
    return which if is_id(which, "tpl") else str(work.template(which)["id"])


def document(args: argparse.Namespace, name: str, read: Callable[[str], Any]) -> Optional[Any]:
    """Parse an option that takes JSON, or `@FILE` with a file that contains JSON."""
    given = getattr(args, name)
    if given is None:
        return None
    text = read(given[1:]) if given.startswith("@") else given
    try:
        return json.loads(text)
    except ValueError as error:
        option = "--" + name.replace("_", "-")
        raise usage(f"{option} must be JSON, or @ followed by the name of a JSON file: {error}") from None
