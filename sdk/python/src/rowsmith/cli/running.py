"""`run`, `runs`, `logs` and `cancel`: run, follow and cancel scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from rowsmith.cli import console, following
from rowsmith.cli.parser import Branch, natural, positive
from rowsmith.cli.problems import NOT_FOUND, OK, Problem, usage
from rowsmith.cli.work import Work, is_id, parse_assignments

if TYPE_CHECKING:
    from rowsmith.follow import Follower, LogLine

STATES = ("queued", "running", "completed", "failed", "cancelled", "timed_out")


def add(root: Branch) -> None:
    """Add the commands to the parser."""
    made = root.leaf(
        "run",
        run,
        "Run a scenario.",
        "Prints the run's ID. With --follow or --wait, the exit status is 0 if the run completed and 1 "
        "otherwise.",
    )
    made.add_argument("scenario", metavar="SCENARIO", help="ID or name.")
    made.add_argument(
        "-p", "--param", action="append", metavar="NAME=VALUE", help="A parameter. Can be repeated."
    )
    until = made.add_mutually_exclusive_group()
    until.add_argument("--follow", action="store_true", help="Print the program's output until it finishes.")
    until.add_argument("--wait", action="store_true",
        help="Wait until it finishes without printing its output.")
    following.add_options(made)
    made = root.leaf("runs", runs, "List runs, newest first, or show one.")
    made.add_argument("run", metavar="RUN", nargs="?", help="ID of a run.")
    made.add_argument("--scenario", metavar="SCENARIO", help="Only runs of this scenario, by ID or name.")
    made.add_argument("--status", choices=STATES, help="Only runs with this status.")
    made.add_argument("-n", "--limit", type=positive, metavar="N", default=20,
        help="Maximum number of runs. Default: 20.")
    made = root.leaf("logs", logs, "Print the log of a run or a push.")
    made.add_argument("id", metavar="ID", help="A run (run_...) or a push (psh_...).")
    made.add_argument("-f", "--follow", action="store_true", help="Follow the log until the end.")
    made.add_argument(
        "--after", type=natural, metavar="N", default=0, help="With --follow: start after line N."
    )
    made = root.leaf("cancel", cancel, "Cancel a run, a push or an export.")
    made.add_argument(
        "id", metavar="ID", nargs="+", help="A run (run_...), a push (psh_...) or an export (exp_...)."
    )


def run(work: Work) -> int:
    """Run a scenario."""
    args, api = work.args, work.api
    params = parse_assignments(args.param, "--param")
    scenario = args.scenario if is_id(args.scenario, "scn") else work.scenario(args.scenario)["id"]
    begun: Mapping[str, Any] = api.runs.start(scenario, params)
    id = begun["id"]
    if not (args.follow or args.wait):
        work.console.result(begun, id)
        return OK
    work.console.note(id)
    with following.interruptible(work, id, lambda: api.runs.cancel(scenario, id)):
        if args.follow:
            _print_log(work, api.runs.follow_log(scenario, id, timeout=args.timeout))
            found: Mapping[str, Any] = api.runs.get(scenario, id)
        else:
            found = api.runs.wait(scenario, id, timeout=args.timeout)
    return _ended(work, found)


def _ended(work: Work, found: Mapping[str, Any]) -> int:
    code = "" if found["exit_code"] is None else f", exit code {found['exit_code']}"
    message = f"{found['id']}: {found['status']}{code}{following.error_in_brackets(found)}"
    if work.console.as_json:
        work.console.result(found)
    else:
        work.console.note(message)
    return following.outcome(found["status"])


def _print_log(work: Work, follower: Any) -> None:
    with follower:
        for line in follower:
            if work.console.as_json:  # the result is the run, so its output goes to standard error
                work.console.note(line.text)
            else:
                console.write(console.visible(line.text) + "\n")


def runs(work: Work) -> int:
    """List runs, or show one."""
    args = work.args
    if args.run:
        work.console.result(_find(work, args.run))
        return OK
    scenario = work.scenario(args.scenario)["id"] if args.scenario else None
    found = islice(work.api.runs.list(scenario, status=args.status), args.limit)
    work.console.rows(
        found, ["id", "scenario_id", "status", "exit_code", "trigger", "created_at", "duration_ms"]
    )
    return OK


def _find(work: Work, id: str) -> Mapping[str, Any]:
    """Return a run by its ID only. The list of runs provides the scenario that the route needs."""
    if not is_id(id, "run"):
        raise usage(f"{id!r} is not the ID of a run.")
    for item in work.api.runs.list():
        if item["id"] == id:
            return item
    raise Problem("not_found", f"There is no run {id} in this project.", NOT_FOUND)


def logs(work: Work) -> int:
    """Print a log."""
    args, api = work.args, work.api
    if is_id(args.id, "psh"):
        whole: Callable[[], str] = lambda: api.pushes.log(args.id)  # noqa: E731
        follow: Callable[[], Follower[LogLine]] = lambda: api.pushes.follow_log(args.id, after=args.after)  # noqa: E731
    else:
        scenario = _find(work, args.id)["scenario_id"]
        whole = lambda: api.runs.log(scenario, args.id)  # noqa: E731
        follow = lambda: api.runs.follow_log(scenario, args.id, after=args.after)  # noqa: E731
    if args.follow:
        follower = follow()
        with follower:
            for line in follower:
                told = {"number": line.number, "text": line.text}
                if work.console.as_json:
                    work.console.result(told, line.text)
                else:
                    console.write(console.visible(line.text) + "\n")
        return OK
    text = whole()
    if work.console.as_json:
        work.console.result({"id": args.id, "lines": text.removesuffix("\n").split("\n") if text else []})
    else:
        console.write(console.visible(text))
    return OK


def cancel(work: Work) -> int:
    """Cancel them."""
    api = work.api
    ended: list[Mapping[str, Any]] = []
    for id in work.args.id:
        if is_id(id, "psh"):
            ended.append(api.pushes.cancel(id))
        elif is_id(id, "exp"):
            ended.append(api.exports.cancel(id))
        elif is_id(id, "run"):
            ended.append(api.runs.cancel(_find(work, id)["scenario_id"], id))
        else:
            raise usage(f"{id!r} is not the ID of a run, a push or an export.")
    work.console.rows(ended, ["id", "status"])
    return OK
