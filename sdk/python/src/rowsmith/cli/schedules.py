"""`schedules`: repeat exports and pushes at set times."""

from __future__ import annotations

from typing import Any

from rowsmith.cli.parser import Branch
from rowsmith.cli.problems import OK
from rowsmith.cli.work import Work

COLUMNS = ["id", "name", "kind", "cron", "timezone", "enabled", "next_run_at"]
SCHEDULE = "ID of a schedule."


def add(root: Branch) -> None:
    """Add the command to the parser."""
    under = root.branch("schedules", "Repeat exports and pushes at set times.")
    under.leaf("list", listed, "List the schedules of exports and pushes.")
    made = under.leaf("new", new, "Create a schedule that repeats an earlier export or push.")
    made.add_argument("name", metavar="NAME", help="Name of the schedule.")
    made.add_argument("--repeats", metavar="JOB", required=True, help="ID of the export or push to repeat.")
    made.add_argument(
        "--cron",
        metavar="EXPRESSION",
        required=True,
        help="Minute, hour, day of month, month, day of week, such as '0 2 * * *' for every day at 02:00.",
    )
    made.add_argument("--timezone", metavar="ZONE", help="IANA name, such as Europe/Berlin. Default: UTC.")
    made.add_argument("--new-seed", action="store_true", help="Generate other rows each time.")
    made.add_argument(
        "--undo-previous", action="store_true", help="Delete the rows of the previous push before each push."
    )
    made.add_argument("--off", action="store_true", help="Create the schedule without turning it on.")
    made = under.leaf("start", start, "Start a job of a schedule now.")
    made.add_argument("schedule", metavar="SCHEDULE", help=SCHEDULE)
    made = under.leaf("delete", delete, "Delete schedules. Their jobs stay.")
    made.add_argument("schedule", metavar="SCHEDULE", nargs="+", help=SCHEDULE)


def listed(work: Work) -> int:
    """The schedules."""
    work.console.rows(work.api.schedules.list(), COLUMNS)
    return OK


def new(work: Work) -> int:
    """Create one."""
    args = work.args
    asked: dict[str, Any] = {"name": args.name, "repeats": args.repeats, "cron": args.cron}
    if args.timezone:
        asked["timezone"] = args.timezone
    for name, wanted in (("new_seed", args.new_seed), ("undo_previous", args.undo_previous)):
        if wanted:
            asked[name] = True
    if args.off:
        asked["enabled"] = False
    made = work.api.schedules.create(**asked)
    work.console.result(made, made["id"])
    if made["next_run_at"]:
        work.console.note(f"Next: {made['next_run_at']}")
    return OK


def start(work: Work) -> int:
    """Start a job."""
    made = work.api.schedules.start(work.args.schedule)
    work.console.result(made, made["job_id"])
    return OK


def delete(work: Work) -> int:
    """Delete them."""
    gone = [work.api.schedules.delete(item) for item in work.args.schedule]
    work.console.rows(gone, ["id", "name"])
    return OK
