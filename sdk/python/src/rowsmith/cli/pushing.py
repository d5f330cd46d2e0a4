"""`push`: rows of a template into a connection or an endpoint."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowsmith.cli import asking, following
from rowsmith.cli.console import clean
from rowsmith.cli.parser import Branch, positive
from rowsmith.cli.problems import OK, usage
from rowsmith.cli.work import Work, assigned, is_id


def add(root: Branch) -> None:
    """Hang it under the root."""
    made = root.leaf(
        "push",
        push,
        "Send rows of a template to a connection or an endpoint.",
        "With --watch the status is 0 where every row arrived, and 1 where one did not.",
    )
    made.add_argument("template", metavar="TEMPLATE", help="Id or name of a saved template.")
    made.add_argument("--to", required=True, metavar="CONNECTION", help="Id or name of a connection, or id of an "
                      "endpoint.")  # fmt: skip
    made.add_argument(
        "--target", metavar="T", help="Table, collection or entity set; else that of the template's name."
    )
    made.add_argument(
        "--watch", action="store_true", help="Show the counts as they grow, and wait for the end."
    )
    made.add_argument(
        "--dry-run", action="store_true", help="Show what would be sent of three rows; send nothing."
    )
    following.add_options(made)
    asking.add_rows(made)
    _sending(made.add_argument_group("sending"))


def _sending(group: Any) -> None:
    group.add_argument("--mode", choices=("insert", "upsert", "update"), help="Without: insert.")
    group.add_argument(
        "--key-column", action="append", metavar="COLUMN", help="By which rows are found; once for each."
    )
    group.add_argument("--map", action="append", metavar="FIELD=COLUMN", help="Which column a field goes to; FIELD= "
                       "leaves it out. Once for each.")  # fmt: skip
    group.add_argument(
        "--compute", action="append", metavar="COLUMN=FORMULA", help="A column by a formula over fields."
    )
    group.add_argument(
        "--on-error", choices=("continue", "stop", "stop_when_all_fail"), help="Whether failed rows end the push."
    )
    group.add_argument(
        "--target-wait-seconds", type=int, metavar="S", help="How long to wait for a target that is away."
    )
    group.add_argument(
        "--canary", type=positive, metavar="N", help="So many rows first; the rest if none was refused."
    )
    group.add_argument("--confirm", metavar="NAME", help="The connection's name, where it is marked prod.")
    group.add_argument("--create-table", action="store_true", help="Make the table where it is missing.")
    group.add_argument("--before-sql", action="append", metavar="SQL", help="A statement before the rows.")
    group.add_argument("--after-sql", action="append", metavar="SQL", help="A statement after the rows.")
    group.add_argument(
        "--push-mode", choices=("per_row", "batch"), help="Over HTTP: a request a row, or many rows."
    )
    group.add_argument(
        "--wrapper-key", metavar="KEY", help="Over HTTP: the key that rows of a batch stand under."
    )
    group.add_argument("--batch-size", type=positive, metavar="N", help="Over HTTP: rows of a batch.")
    group.add_argument("--parallel", type=positive, metavar="N", help="Over HTTP: requests side by side.")
    group.add_argument("--rate-per-second", type=float, metavar="N", help="Over HTTP: requests a second.")
    group.add_argument("--retry", metavar="JSON", help="Over HTTP: how often and when; JSON, or @FILE.")
    group.add_argument(
        "--request-template", metavar="JSON", help="Over HTTP: the request of a row; JSON, or @FILE."
    )


def request_of(args: argparse.Namespace) -> dict[str, Any]:
    """The request, but for where it goes."""
    asked: dict[str, Any] = asking.rows_of(args)
    plain = ("target", "mode", "on_error", "target_wait_seconds", "canary", "confirm", "before_sql",
             "after_sql", "push_mode", "wrapper_key", "batch_size", "parallel", "rate_per_second")  # fmt: skip
    asked.update({name: getattr(args, name) for name in plain if getattr(args, name) is not None})
    if args.key_column:
        asked["key_columns"] = args.key_column
    if args.map:
        asked["mapping"] = {field: column or None for field, column in assigned(args.map, "--map").items()}
    if args.compute:
        asked["computed"] = assigned(args.compute, "--compute")
    if args.create_table:
        asked["create_table"] = True
    for name in ("retry", "request_template"):
        found = asking.document(args, name, lambda path: Path(path).read_text("utf-8"))
        if found is not None:
            asked[name] = found
    return asked


def push(work: Work) -> int:
    """Send rows, or show what would be sent."""
    args, asked = work.args, request_of(work.args)
    if args.dry_run and args.watch:
        raise usage("--dry-run sends nothing: there is nothing to watch.")
    if is_id(args.to, "end"):
        asked["endpoint_id"] = args.to
    else:
        asked["connection_id"] = work.connection(args.to)["id"] if not is_id(args.to, "con") else args.to
    template = asking.template_id(work, args.template)
    if args.dry_run:
        return _dry(work, work.api.templates.dry_run(template, **asked))
    begun: Mapping[str, Any] = work.api.templates.push(template, **asked)
    if not args.watch:
        work.console.result(begun, begun["id"])
        return OK
    return watched(work, begun)


def watched(work: Work, begun: Mapping[str, Any]) -> int:
    """Follow a push to its end."""
    api, id = work.api, begun["id"]
    work.console.note(f"{id}: {begun['counts']['total']:,} rows into {begun['target']}")
    with following.interruptible(work, id, lambda: api.pushes.cancel(id)), work.console.bar(id) as bar:
        with api.pushes.follow(id, timeout=work.args.timeout) as follower:
            for told in follower:
                _count(bar, told.get("counts") or told)
        found = api.pushes.get(id)
    counts = found["counts"]
    text = f"{found['status']}{following.why(found)}: " + ", ".join(
        f"{counts[name]:,} {name}" for name in ("delivered", "failed", "unknown", "pending") if counts[name]
    )
    work.console.result(found, clean(text).rstrip(": "))
    return following.outcome(found["status"], harmed=bool(counts["failed"] or counts["unknown"]))


def _count(bar: Any, counts: Mapping[str, Any]) -> None:
    bad = [f"{counts[name]:,} {name}" for name in ("failed", "unknown") if counts.get(name)]
    done = int(counts.get("total") or 0) - int(counts.get("pending") or 0)
    bar.at(max(0, done), int(counts.get("total") or 0), ", ".join(bad))


def _dry(work: Work, found: Mapping[str, Any]) -> int:
    lines = [str(one) for one in found.get("statements") or found.get("requests") or ()]
    work.console.result(found, "\n".join(lines))
    for misfit in found["misfits"]:
        told = misfit.get("message") or misfit
        work.console.note(f"misfit: {misfit.get('column') or misfit.get('field') or ''} {told}".strip())
    return OK
