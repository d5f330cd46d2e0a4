"""`push` and `fill`: send rows of a template to a target, and rows to all tables of a database."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowsmith.cli import following, row_options
from rowsmith.cli.console import clean
from rowsmith.cli.parser import Branch, positive
from rowsmith.cli.problems import OK, usage
from rowsmith.cli.work import Work, is_id, parse_assignments


def add(root: Branch) -> None:
    """Add the command to the parser."""
    made = root.leaf(
        "push",
        push,
        "Send rows of a template to a connection or an endpoint.",
        "With --watch, the exit status is 0 if every row arrived and 1 otherwise.",
    )
    made.add_argument("template", metavar="TEMPLATE", help="ID or name of a saved template.")
    made.add_argument("--to", required=True, metavar="CONNECTION",
        help="ID or name of a connection, or ID of an endpoint.")  # fmt: skip
    made.add_argument(
        "--target", metavar="T",
        help="Table, collection or entity set. Default: the one with the template's name."
    )
    made.add_argument(
        "--watch", action="store_true", help="Show the progress and wait until the push finishes."
    )
    made.add_argument(
        "--dry-run", action="store_true", help="Show what would be sent for three rows. Nothing is sent."
    )
    following.add_options(made)
    row_options.add_rows(made)
    _sending(made.add_argument_group("sending"))
    _add_fill(root)


def _add_fill(root: Branch) -> None:
    made = root.leaf(
        "fill",
        fill,
        "Fill all tables of a database.",
        "Creates a template for each table and a dataset, and sends the rows, parents first. Tables that cannot be "
        "filled are listed with the reason. With --watch, the exit status is 0 if every row arrived and 1 otherwise.",
    )
    made.add_argument("connection", metavar="CONNECTION", help="ID or name of a connection to a database.")
    made.add_argument("--rows", type=positive, metavar="N", help="Rows per table. Default: 1000.")
    made.add_argument(
        "--table", action="append", metavar="TABLE", help="Only this table. Can be repeated. Default: all tables."
    )
    made.add_argument(
        "--row-counts",
        choices=("equal", "proportional", "existing"),
        help="The same number for each table (the default), in proportion to the rows that the tables have, or as many "
        "as each table has.",
    )
    made.add_argument(
        "--existing",
        choices=("add", "use"),
        help="Tables that have rows: add rows (the default), or leave them and use their rows as parents.",
    )
    made.add_argument("--seed", help="The same seed produces the same rows.")
    made.add_argument("--confirm", metavar="NAME", help="The connection's name, if it is marked as prod.")
    made.add_argument(
        "--watch", action="store_true", help="Show the progress and wait until the push finishes."
    )
    made.add_argument(
        "--dry-run", action="store_true", help="Show the plan. Templates are created, no row is sent."
    )
    following.add_options(made)


def _sending(group: Any) -> None:
    group.add_argument("--mode", choices=("insert", "upsert", "update"), help="Default: insert.")
    group.add_argument(
        "--key-column", action="append", metavar="COLUMN",
        help="Column that identifies a row. Can be repeated."
    )
    group.add_argument("--map", action="append", metavar="FIELD=COLUMN",
        help="Column for a field; FIELD= leaves the field out. Can be repeated.")  # fmt: skip
    group.add_argument(
        "--compute", action="append", metavar="COLUMN=FORMULA",
        help="Column calculated with a formula over fields."
    )
    group.add_argument(
        "--on-error", choices=("continue", "stop", "stop_when_all_fail"),
        help="Whether failed rows stop the push."
    )
    group.add_argument(
        "--target-wait-seconds", type=int, metavar="S", help="How long to wait for an unreachable target."
    )
    group.add_argument(
        "--canary", type=positive, metavar="N",
        help="Send N rows first, and the rest only if none was rejected."
    )
    group.add_argument("--confirm", metavar="NAME", help="The connection's name, if it is marked as prod.")
    group.add_argument("--create-table", action="store_true", help="Create the table if it does not exist.")
    group.add_argument("--before-sql", action="append", metavar="SQL",
        help="A statement to run before the rows.")
    group.add_argument("--after-sql", action="append", metavar="SQL",
        help="A statement to run after the rows.")
    group.add_argument(
        "--push-mode", choices=("per_row", "batch"),
        help="Over HTTP: one request per row, or several rows per request."
    )
    group.add_argument(
        "--wrapper-key", metavar="KEY", help="Over HTTP: the key that contains the rows of a batch."
    )
    group.add_argument("--batch-size", type=positive, metavar="N", help="Over HTTP: rows per batch.")
    group.add_argument("--parallel", type=positive, metavar="N",
        help="Over HTTP: number of parallel requests.")
    group.add_argument("--rate-per-second", type=float, metavar="N",
        help="Over HTTP: maximum number of requests per second.")
    group.add_argument("--retry", metavar="JSON", help="Over HTTP: retry settings as JSON, or @FILE.")
    group.add_argument(
        "--request-template", metavar="JSON", help="Over HTTP: the request template as JSON, or @FILE."
    )


def request_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the request without its target."""
    asked: dict[str, Any] = row_options.rows_of(args)
    plain = ("target", "mode", "on_error", "target_wait_seconds", "canary", "confirm", "before_sql",
             "after_sql", "push_mode", "wrapper_key", "batch_size", "parallel", "rate_per_second")  # fmt: skip
    asked.update({name: getattr(args, name) for name in plain if getattr(args, name) is not None})
    if args.key_column:
        asked["key_columns"] = args.key_column
    if args.map:
        asked["mapping"] = {field: column or None for field, column in parse_assignments(args.map, "--map").items()}
    if args.compute:
        asked["computed"] = parse_assignments(args.compute, "--compute")
    if args.create_table:
        asked["create_table"] = True
    for name in ("retry", "request_template"):
        found = row_options.document(args, name, lambda path: Path(path).read_text("utf-8"))
        if found is not None:
            asked[name] = found
    return asked


def push(work: Work) -> int:
    """Send rows, or show what would be sent."""
    args, asked = work.args, request_of(work.args)
    if args.dry_run and args.watch:
        raise usage("--watch cannot be combined with --dry-run, which sends nothing.")
    if is_id(args.to, "end"):
        asked["endpoint_id"] = args.to
    else:
        asked["connection_id"] = work.connection(args.to)["id"] if not is_id(args.to, "con") else args.to
    template = row_options.template_id(work, args.template)
    if args.dry_run:
        return _dry(work, work.api.templates.dry_run(template, **asked))
    begun: Mapping[str, Any] = work.api.templates.push(template, **asked)
    if not args.watch:
        work.console.result(begun, begun["id"])
        return OK
    return watched(work, begun)


def fill(work: Work) -> int:
    """Fill a database, or show the plan."""
    args = work.args
    if args.dry_run and args.watch:
        raise usage("--watch cannot be combined with --dry-run, which sends nothing.")
    asked: dict[str, Any] = {
        name: value
        for name, value in (
            ("rows", args.rows), ("tables", args.table), ("row_counts", args.row_counts), ("existing", args.existing),
            ("seed", args.seed),
            ("confirm", args.confirm),
        )
        if value is not None
    }  # fmt: skip
    connection = args.connection if is_id(args.connection, "con") else work.connection(args.connection)["id"]
    found: Mapping[str, Any] = work.api.connections.fill(connection, dry_run=args.dry_run, **asked)
    for entity in found["skipped"]:
        work.console.note(clean(f"not filled: {entity['table']}: {entity['message']}"))
    if args.dry_run:
        lines = [clean(f"{table['name']}: {table['count']:,} rows") for table in found["plan"]["tables"]]
        work.console.result(found, "\n".join(lines))
        return OK
    if not args.watch:
        work.console.result(found, found["push"]["id"])
        return OK
    return watched(work, found["push"])


def watched(work: Work, begun: Mapping[str, Any]) -> int:
    """Follow a push until it finishes."""
    api, id = work.api, begun["id"]
    work.console.note(f"{id}: {begun['counts']['total']:,} rows into {begun['target']}")
    with following.interruptible(work, id, lambda: api.pushes.cancel(id)), work.console.bar(id) as bar:
        with api.pushes.follow(id, timeout=work.args.timeout) as follower:
            for told in follower:
                _count(bar, told.get("counts") or told)
        found = api.pushes.get(id)
    counts = found["counts"]
    text = f"{found['status']}{following.error_in_brackets(found)}: " + ", ".join(
        f"{counts[name]:,} {name}" for name in ("delivered", "failed", "unknown", "pending") if counts[name]
    )
    work.console.result(found, clean(text).rstrip(": "))
    return following.outcome(found["status"], harmed=bool(counts["failed"] or counts["unknown"]))


def _count(bar: Any, counts: Mapping[str, Any]) -> None:
    bad = [f"{counts[name]:,} {name}" for name in ("failed", "unknown") if counts.get(name)]
    done = int(counts.get("total") or 0) - int(counts.get("pending") or 0)
    bar.at(max(0, done), int(counts.get("total") or 0), ", ".join(bad))


def _dry(work: Work, found: Mapping[str, Any]) -> int:
    lines = [str(statement) for statement in found.get("statements") or found.get("requests") or ()]
    work.console.result(found, "\n".join(lines))
    for misfit in found["misfits"]:
        where = misfit.get("column") or misfit.get("field") or "row"
        work.console.note(f"{where}: {misfit.get('message') or misfit}")
    return OK
