"""The command-line arguments of `./rowsmith`. Standard library only, because it is loaded before anything is installed.

`bootstrap.py` loads this file by its path, so that help and invalid arguments need no installation; the installed
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
    "up": "start everything on this machine: web, workers, scenario runners, sweeper, Valkey, SQLite",
    "test": "run the checks and the tests; further arguments go to pytest",
    "soak": "run a load test for hours, with measurements and charts",
    "help": "show this list, or the options of a command",
    "setup": "create a workspace and its owner, without the demo, and print the owner's sign-in link",
    "sign-in": "print a new one-time sign-in link",
    "key": "create, list or revoke API keys",
    "plan": "show or change the plan and the limits of a workspace",
    "workspace": "list workspaces, or restore a deleted one",
    "vocab": "list, install or remove vocabularies: the word lists that template versions pin",
    "vault": "show, rotate or drop the keys that encrypt stored secrets",
    "audit": "verify the audit log, or export it as JSON lines",
    "backup": "back up all data into one file, while the service runs",
    "restore": "restore a backup into an empty installation, on any database and storage",
    "doctor": "check this installation, and suggest fixes",
    "upgrade": "upgrade the data to this release: backup, migration, doctor, and how to roll back",
    "release": "prepare a release before its processes start: assets, then migrate",
    "assets": "install the browser code by its lock file",
    "migrate": "migrate the database of DATABASE_URL to the schema of this version",
    "web": "run only the web server (gunicorn), configured by the environment",
    "worker": "run one worker, or with --queues runs a scenario runner, configured by the environment",
    "sweeper": "run only the sweeper, configured by the environment",
    "format": "format the code: Python, pages, style sheets and scripts",
    "lock": "resolve the dependencies and write the lock files",
    "build": "build the packages of a release, for Python and npm, from the last commit",
}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence with a link to the help."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2, as argparse does, without the usage block."""
        self.exit(
            2, f"rowsmith: {message}. See: ./rowsmith help {self.prog.partition(' ')[2]}".rstrip() + "\n"
        )


def port(text: str) -> int:
    """Parse a TCP port; 0 means any free one."""
    number = int(text) if text.isdigit() else -1
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return number


def positive(text: str) -> int:
    """Parse a whole number of at least 1."""
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


def hours(text: str) -> float:
    """Parse a number of hours: more than 0, at most a week."""
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
        "--port", type=port, metavar="N", help="port to serve on (ROWSMITH_PORT, or 8000; 0: any)"
    )
    parser.add_argument("--host", metavar="H", help="address to serve on (ROWSMITH_HOST, or 127.0.0.1)")
    _data_dir(parser)
    parser.add_argument(
        "--plan", choices=PLANS, help="put the demo workspace on this plan (first: enterprise)"
    )
    parser.add_argument("--workers", type=positive, metavar="N", help="maximum number of worker processes")
    parser.add_argument(
        "--runners", type=positive, metavar="N", help="maximum number of processes that run scenarios"
    )


def _test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--all", action="store_true", help="also browser, chaos, soak and API fuzzing (takes many minutes)"
    )


def _soak(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hours", type=hours, default=4.0, metavar="N", help="duration (4); decimals allowed"
    )
    parser.add_argument("--stack", choices=STACKS, default=STACKS[0], help=f"stack to test ({STACKS[0]})")
    parser.add_argument(
        "--out", default="var/soak", metavar="D", help="folder of measurements and charts (var/soak)"
    )


def _help(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="?", choices=tuple(COMMANDS), metavar="command")


def _setup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--email", required=True, help="the owner's address, which is their account name")
    parser.add_argument("--workspace", required=True, metavar="NAME", help="name of the workspace")
    parser.add_argument("--plan", choices=PLANS, default="free", help="its plan (free)")
    parser.add_argument("--project", default="Main", metavar="NAME", help="its first project (Main)")
    _data_dir(parser)


def _sign_in(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "email", nargs="?", help="user to sign in (default: the owner of the oldest workspace)"
    )
    parser.add_argument(
        "--reset-two-factor",
        action="store_true",
        help="first remove their second factor, and end their sessions",
    )
    _data_dir(parser)


def _key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("new", "list", "revoke"), help="action")
    parser.add_argument("handle", nargs="?", help="revoke: the part of the key after rws_")
    parser.add_argument("--email", help="new: whose key (default: the owner of the oldest workspace)")
    parser.add_argument("--project", metavar="ID", help="new: its project (default: the oldest)")
    parser.add_argument("--name", default="command line", help="new: its name")
    parser.add_argument(
        "--scopes", metavar="A,B", help="new: only these scopes (default: all of its owner's)"
    )
    parser.add_argument(
        "--days", type=positive, metavar="N", help="new: expires after N days (default: never)"
    )
    _data_dir(parser)


def _workspace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "restore"), help="action")
    parser.add_argument("workspace", nargs="?", help="restore: its id or its name")
    _data_dir(parser)


def _plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workspace", nargs="?", help="id or name; without one: list all")
    parser.add_argument("plan", nargs="?", choices=PLANS, help="without one: show")
    own_limits = parser.add_argument_group("limits of an enterprise workspace")
    own_limits.add_argument("--requests-per-minute", type=positive, metavar="N")
    own_limits.add_argument("--rows-per-hour", type=positive, metavar="N")
    own_limits.add_argument("--rows-per-generation", type=positive, metavar="N")
    _data_dir(parser)


def _vocab(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "install", "prune"), help="action")
    parser.add_argument("id", nargs="?", help="install: its id, as shown by list or in an error message")
    _data_dir(parser)


def _vault(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "rotate", "drop-old"), help="action")
    _data_dir(parser)


def _passphrase(parser: argparse.ArgumentParser, purpose: str) -> None:
    parser.add_argument(
        "--passphrase-file", metavar="F", help=f"{purpose}; the passphrase is the first line of F"
    )


def _backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="file to write (for a folder, a file named by the time)")
    parser.add_argument("--verify", action="store_true", help="write nothing: verify FILE")
    parser.add_argument("--replace", action="store_true", help="overwrite an existing file")
    _passphrase(parser, "include the keys, encrypted")
    parser.add_argument("--include-keys", action="store_true", help="include the keys in plain text")
    _data_dir(parser)


def _restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the backup")
    parser.add_argument("--force-empty", action="store_true", help="replace all data of this installation")
    _passphrase(parser, "decrypt the keys in the backup")
    parser.add_argument(
        "--without-keys", action="store_true", help="delete stored secrets whose keys are lost"
    )
    _data_dir(parser)


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    _data_dir(parser)


def _upgrade(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backup", metavar="FILE", help="path of the backup (default: backups in the data folder)"
    )
    parser.add_argument("--no-backup", action="store_true", help="don't create a backup")
    _data_dir(parser)


def _audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("verify", "export", "anchor"), help="action")
    parser.add_argument("workspace", nargs="?", help="id or name (verify without one: all)")
    parser.add_argument("--head", metavar="N:HASH", help="verify: a saved head, which must be in the chain")
    filters = parser.add_argument_group("export: only entries that match all of these")
    for name in ("action", "kind", "object-id", "user-id", "key-id", "project-id", "address", "text"):
        filters.add_argument(f"--{name}", metavar="X", dest="of_action" if name == "action" else None)
    filters.add_argument("--since", metavar="TIME", help="at or after this time")
    filters.add_argument("--until", metavar="TIME", help="before this time")
    _data_dir(parser)


def _server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=port, metavar="N", help="port (PORT of the environment, or 8000)")
    parser.add_argument("--host", metavar="H", help="address (HOST of the environment, or 127.0.0.1)")
    _data_dir(parser)


def _build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="D", help="folder for the packages (dist of the clone)")


def _format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="change nothing: list what is not formatted")


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
    "format": _format,
    "build": _build,
}


def build_parsers() -> tuple[Parser, dict[str, Parser]]:
    """Return the parser, and that of each command by its name."""
    root = Parser(prog="rowsmith", add_help=False)
    root.add_argument("-h", "--help", action="store_true", help=argparse.SUPPRESS)
    commands = root.add_subparsers(dest="command", metavar="command", parser_class=Parser)
    each: dict[str, Parser] = {}
    for name, line in COMMANDS.items():
        each[name] = commands.add_parser(
            name, description=line[0].upper() + line[1:] + ".", allow_abbrev=False
        )
        _OPTIONS.get(name, lambda _parser: None)(each[name])
    return root, each


def parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the arguments; for `test`, also those for pytest. Exit with status 2 and a message if they are invalid."""
    root, each = build_parsers()
    arguments, rest = root.parse_known_args(argv)
    if arguments.command is None:
        arguments.command, arguments.topic = "help", None
    elif rest and arguments.command != "test":
        each[arguments.command].error(f"unknown argument {rest[0]!r}")
    return arguments, rest


def help_text(topic: str | None = None) -> str:
    """Return the list of commands, or the options of one."""
    _, each = build_parsers()
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
