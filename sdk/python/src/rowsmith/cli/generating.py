"""`generate` and `preview`: write rows to standard output or to a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from rowsmith.cli import console, offline, row_options, template_files
from rowsmith.cli.downloads import fetched
from rowsmith.cli.parser import Branch, mark_as_file
from rowsmith.cli.problems import OK, usage
from rowsmith.cli.work import Work
from rowsmith.streams import format_of

BINARY: Final = frozenset({"xlsx", "parquet"})
PINS: Final = ("X-Seed", "X-Now", "X-Template-Version", "X-Vocabulary", "X-Engine")
"""Response headers with the values that reproduce the same bytes."""


def add(root: Branch) -> None:
    """Add the commands to the parser."""
    made = root.leaf(
        "generate",
        generate,
        "Generate rows to standard output or to a file.",
        "Rows are written as they arrive.",
    )
    mark_as_file(made.add_argument("template", metavar="TEMPLATE", help=row_options.TEMPLATE))
    output = "Output file. An existing file is replaced."
    mark_as_file(made.add_argument("-o", "--output", metavar="FILE", help=output))
    made.add_argument(
        "--offline", action="store_true",
        help="Generate from a template file with the engine on this machine."
    )
    made.add_argument(
        "--vocabulary", metavar="ID", help="With --offline: the vocabulary of an earlier response."
    )
    row_options.add_rows(made)
    row_options.add_format(made)
    made = root.leaf("preview", preview, "Show the first three rows. They do not count toward the quota.")
    mark_as_file(made.add_argument("template", metavar="TEMPLATE", help=row_options.TEMPLATE))
    row_options.add_values(made)


def generate(work: Work) -> int:
    """Make rows."""
    args = work.args
    asked = {**row_options.rows_of(args), **row_options.format_of(args)}
    asked["format"] = args.format or _by_name(args.output) or "json"
    if args.vocabulary and not args.offline:
        raise usage("--vocabulary requires --offline.")
    if args.output is None and asked["format"] in BINARY and sys.stdout.isatty():
        raise usage(f"{asked['format']} cannot be written to a terminal. Specify a file with -o.")
    if args.offline:
        return _offline(work, asked)
    which = _source(work, args.template)
    if args.output is None:
        return _to_output(work, which, asked)
    api = work.api
    with work.console.bar(args.template, unit="B") as bar:
        told = fetched(
            lambda _: api.templates.stream(which, **asked)._answer,
            Path(args.output),
            api._caller.retries,
            bar,
        )
    return _summary(work, told)


def _to_output(work: Work, which: Any, asked: Mapping[str, Any]) -> int:
    stream = work.api.templates.stream(which, **asked)
    with stream, work.console.bar(work.args.template, unit="B") as bar:
        bar.shown = bar.shown and not sys.stdout.isatty()  # rows on a terminal need no progress bar
        for piece in stream:
            console.raw(piece)
            bar.add(len(piece))
    _pins(work, stream.headers)
    return OK


def _offline(work: Work, asked: Mapping[str, Any]) -> int:
    args = work.args
    if not row_options.names_a_file(args.template):
        raise usage("--offline requires a template file. `rowsmith templates pull` writes template files.")
    made = offline.rows(Path(args.template), asked, args.vocabulary)
    if args.output is None:
        for piece in made.pieces:
            console.raw(piece)
        _pins(work, made.headers)
        return OK
    with work.console.bar(args.template, unit="B") as bar:
        template_files.write_atomically(Path(args.output), _count_text(made.pieces, bar))
    return _summary(work, made.headers)


def _count_text(pieces: Iterable[bytes], bar: console.Bar) -> Iterable[bytes]:
    for piece in pieces:
        yield piece
        bar.add(len(piece))


def _source(work: Work, which: str) -> Any:
    """Return a saved template's ID, or the template in a file."""
    if row_options.names_a_file(which):
        return template_files.read(Path(which)).body
    return row_options.template_id(work, which)


def _by_name(output: Any) -> Any:
    if output is None:
        return None
    try:
        return format_of(output)
    except ValueError as error:
        raise usage(f"{error} (with -f)") from None


def _summary(work: Work, headers: Mapping[str, str]) -> int:
    path = Path(work.args.output)
    if work.console.as_json:
        found = {name.lower(): headers[name] for name in PINS if name in headers}
        told = {name[2:].replace("-", "_"): value for name, value in found.items()}
        work.console.result({"file": str(path), "bytes": path.stat().st_size, **told})
    _pins(work, headers)
    return OK


def _pins(work: Work, headers: Mapping[str, str]) -> None:
    if work.console.lively:
        told = [f"{name[2:].lower()} {headers[name]}" for name in PINS[:3] if headers.get(name)]
        work.console.note(", ".join(told))


def preview(work: Work) -> int:
    """Show the first three rows."""
    which = _source(work, work.args.template)
    found = work.api.templates.preview(which, **row_options.values_of(work.args))
    if work.console.as_json:
        work.console.result(found)
        return OK
    names = list(dict.fromkeys(name for row in found["rows"] for name in row))
    cells = [[console.cell(row.get(name)) for name in names] for row in found["rows"]]
    if cells:
        work.console.out(console.table(cells, [name.replace(".", "·") for name in names]))
    for warning in found["warnings"]:
        work.console.note(f"{warning.get('path') or 'template'}: {warning['message']}")
    return OK
