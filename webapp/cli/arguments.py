"""What `./rowsmith` understands. Standard library only: it is read before anything is installed.

`bootstrap.py` loads this file by its path, so that help and wrong arguments need no installation; the installed
program imports it as `webapp.cli.arguments`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final, NoReturn

PLANS: Final = ("free", "pro", "enterprise")
STACKS: Final = ("sqlite+valkey", "postgresql+redis")  # of the soak

# Name -> one line. The order is the order of `./rowsmith help`.
COMMANDS: Final = {
    "up": "start everything on this machine: web, workers, runners of scenarios, sweeper, Valkey, SQLite",
    "test": "run the checks and the tests; further arguments go to pytest",
    "soak": "hours of mixed load on one stack, with measurements and charts",
    "help": "this list, or one command's options",
    "setup": "make a workspace and its owner, without the demo, and print the owner's sign-in link",
    "sign-in": "print a new one-time sign-in link",
    "key": "make, list or revoke API keys",
    "plan": "show or change the plan and the limits of a workspace",
    "workspace": "list workspaces, or have a deleted one back",
    "vocab": "list, bring back or remove vocabularies: the word lists that versions of templates pin",
    "vault": "show, rotate or drop the keys that seal stored secrets",
    "audit": "verify that the audit trail is whole, or write all of it as JSON lines",
    "backup": "write everything that the service keeps into one file, while it runs",
    "restore": "put a backup in the place of an empty installation, on any database and storage",
    "doctor": "look at this installation: what is wrong, and what mends it",
    "upgrade": "bring the data to this release: backup, migration, doctor, and the way back",
    "release": "what comes before the parts of a release start: assets, then migrate",
    "assets": "fetch the browser code that pages load, by its lock file",
    "migrate": "bring the database of DATABASE_URL to this version's schema",
    "web": "run the web server alone (gunicorn), configured by the environment",
    "worker": "run one worker alone, or with --queues runs a runner, configured by the environment",
    "sweeper": "run the sweeper alone, configured by the environment",
    "lock": "resolve the dependencies anew and write the lock files",
}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence and the way to help."""

    def error(self, message: str) -> NoReturn:
        """Leave with status 2, as argparse does, without the usage block."""
        self.exit(
            2, f"rowsmith: {message}. See: ./rowsmith help {self.prog.partition(' ')[2]}".rstrip() + "\n"
        )


def port(text: str) -> int:
    """A TCP port; 0 means any free one."""
    number = int(text) if text.isdigit() else -1
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return number


def positive(text: str) -> int:
    """A whole number of at least 1."""
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


def hours(text: str) -> float:
    """A time in hours, more than nothing and at most a week."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 168:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours (more than 0, at most 168)")
    return number


def _data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        metavar="D",
        help="folder of database, files and logs (default: ROWSMITH_DATA_DIR or var)",
    )


def _up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=port, default=8000, metavar="N", help="port to serve on (8000; 0: any)"
    )
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="address to serve on (127.0.0.1)")
    _data_dir(parser)
    parser.add_argument(
        "--plan", choices=PLANS, help="put the demo workspace on this plan (first: enterprise)"
    )
    parser.add_argument("--workers", type=positive, metavar="N", help="worker processes")
    parser.add_argument(
        "--runners", type=positive, metavar="N", help="processes that run scenarios, one at a time"
    )


def _test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--all", action="store_true", help="also browser, chaos, soak and API fuzzing (takes many minutes)"
    )


def _soak(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hours", type=hours, default=4.0, metavar="N", help="how long (4); parts of an hour too"
    )
    parser.add_argument("--stack", choices=STACKS, default=STACKS[0], help=f"what to run it on ({STACKS[0]})")
    parser.add_argument(
        "--out", default="var/soak", metavar="D", help="folder of measurements and charts (var/soak)"
    )


def _help(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="?", choices=tuple(COMMANDS), metavar="command")


def _setup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--email", required=True, help="the owner's address, which is their account name")
    parser.add_argument("--workspace", required=True, metavar="NAME", help="what to call the workspace")
    parser.add_argument("--plan", choices=PLANS, default="free", help="its plan (free)")
    parser.add_argument("--project", default="Main", metavar="NAME", help="its first project (Main)")
    _data_dir(parser)


def _sign_in(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "email", nargs="?", help="whom to let in (default: the owner of the oldest workspace)"
    )
    parser.add_argument(
        "--reset-two-factor",
        action="store_true",
        help="first take away their second factor, and end their sessions",
    )
    _data_dir(parser)


def _key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("new", "list", "revoke"), help="what to do")
    parser.add_argument("handle", nargs="?", help="revoke: the part of the key after rws_")
    parser.add_argument("--email", help="new: whose key (default: the owner of the oldest workspace)")
    parser.add_argument("--project", metavar="ID", help="new: its project (default: the oldest)")
    parser.add_argument("--name", default="command line", help="new: what to call it")
    parser.add_argument(
        "--scopes", metavar="A,B", help="new: only these scopes (default: all of its maker's)"
    )
    parser.add_argument(
        "--days", type=positive, metavar="N", help="new: ends after so many days (default: never)"
    )
    _data_dir(parser)


def _workspace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "restore"), help="what to do")
    parser.add_argument("workspace", nargs="?", help="restore: its id or its name")
    _data_dir(parser)


def _plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workspace", nargs="?", help="id or name; without one: list all")
    parser.add_argument("plan", nargs="?", choices=PLANS, help="without one: show")
    own = parser.add_argument_group("an enterprise workspace's own numbers")
    own.add_argument("--requests-per-minute", type=positive, metavar="N")
    own.add_argument("--rows-per-hour", type=positive, metavar="N")
    own.add_argument("--rows-per-generation", type=positive, metavar="N")
    _data_dir(parser)


def _vocab(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "install", "prune"), help="what to do")
    parser.add_argument("id", nargs="?", help="install: which one, as list or an error message names it")
    _data_dir(parser)


def _vault(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "rotate", "drop-old"), help="what to do")
    _data_dir(parser)


def _passphrase(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--passphrase-file", metavar="F", help=f"{what}; the passphrase is the first line of F"
    )


def _backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="file to write (a folder: one with the time in its name is made there)")
    parser.add_argument("--verify", action="store_true", help="write nothing: look whether FILE is whole")
    parser.add_argument("--replace", action="store_true", help="write over a file that is there")
    _passphrase(parser, "put the keys in, sealed")
    parser.add_argument("--include-keys", action="store_true", help="put the keys in, in plain")
    _data_dir(parser)


def _restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the backup")
    parser.add_argument("--force-empty", action="store_true", help="replace all that this installation has")
    _passphrase(parser, "open the keys in the backup")
    parser.add_argument(
        "--without-keys", action="store_true", help="give up stored secrets, whose keys are lost"
    )
    _data_dir(parser)


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    _data_dir(parser)


def _upgrade(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backup", metavar="FILE", help="where the backup goes (default: backups in the data folder)"
    )
    parser.add_argument("--no-backup", action="store_true", help="make none: you have one")
    _data_dir(parser)


def _audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("verify", "export", "anchor"), help="what to do")
    parser.add_argument("workspace", nargs="?", help="id or name (verify without one: all)")
    parser.add_argument(
        "--head", metavar="N:HASH", help="verify: a head that was kept, which must be in the chain"
    )
    wanted = parser.add_argument_group("export: only entries that have all of these")
    for name in ("action", "kind", "object-id", "user-id", "key-id", "project-id", "address", "text"):
        wanted.add_argument(f"--{name}", metavar="X", dest="of_action" if name == "action" else None)
    wanted.add_argument("--since", metavar="TIME", help="at or after it")
    wanted.add_argument("--until", metavar="TIME", help="before it")
    _data_dir(parser)


def _server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=port, metavar="N", help="port (PORT of the environment, or 8000)")
    parser.add_argument("--host", metavar="H", help="address (HOST of the environment, or 127.0.0.1)")
    _data_dir(parser)


def _worker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--queues", metavar="A,B", help="work to do: exports, pushes, parts, runs (default: all but runs)"
    )
    _data_dir(parser)


_OPTIONS: Final = {
    "up": _up,
    "test": _test,
    "soak": _soak,
    "help": _help,
    "setup": _setup,
    "sign-in": _sign_in,
    "key": _key,
    "plan": _plan,
    "workspace": _workspace,
    "vocab": _vocab,
    "vault": _vault,
    "audit": _audit,
    "backup": _backup,
    "restore": _restore,
    "doctor": _doctor,
    "upgrade": _upgrade,
    "web": _server,
    "release": _data_dir,
    "migrate": _data_dir,
    "worker": _worker,
    "sweeper": _data_dir,
}


def parser() -> tuple[Parser, dict[str, Parser]]:
    """The whole parser, and each command's own by its name."""
    whole = Parser(prog="rowsmith", add_help=False)
    whole.add_argument("-h", "--help", action="store_true", help=argparse.SUPPRESS)
    commands = whole.add_subparsers(dest="command", metavar="command", parser_class=Parser)
    each: dict[str, Parser] = {}
    for name, line in COMMANDS.items():
        each[name] = commands.add_parser(
            name, description=line[0].upper() + line[1:] + ".", allow_abbrev=False
        )
        _OPTIONS.get(name, lambda _parser: None)(each[name])
    return whole, each


def parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The arguments, and for `test` what is meant for pytest. Leaves with status 2 and a sentence when wrong."""
    whole, each = parser()
    known, rest = whole.parse_known_args(argv)
    if known.command is None:
        known.command, known.topic = "help", None
    elif rest and known.command != "test":
        each[known.command].error(f"unknown argument {rest[0]!r}")
    return known, rest


def help_text(topic: str | None = None) -> str:
    """The list of commands, or one command's options."""
    _, each = parser()
    if topic:
        return each[topic].format_help()
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{line}" for name, line in COMMANDS.items()]
    return "\n".join(
        [
            "Rowsmith: test data from one template.",
            "",
            "usage: ./rowsmith <command> [options]",
            "",
            *lines,
            "",
            "./rowsmith help <command> lists its options. Settings of the environment: docs/reference/settings.md.",
            "",
        ]
    )
