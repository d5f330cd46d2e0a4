"""What `./rowsmith` understands. Standard library only: it is read before anything is installed.

`bootstrap.py` loads this file by its path, so that help and wrong arguments need no installation; the installed
program imports it as `webapp.cli.arguments`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final, NoReturn

PLANS: Final = ("free", "pro", "enterprise")

# Name -> one line. The order is the order of `./rowsmith help`.
COMMANDS: Final = {
    "up": "start everything on this machine: web, workers, runners of scenarios, sweeper, Valkey, SQLite",
    "test": "run the checks and the tests; further arguments go to pytest",
    "help": "this list, or one command's options",
    "sign-in": "print a new one-time sign-in link",
    "key": "make, list or revoke API keys",
    "plan": "show or change the plan and the limits of a workspace",
    "vocab": "list, bring back or remove vocabularies: the word lists that versions of templates pin",
    "vault": "show, rotate or drop the keys that seal stored secrets",
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
    parser.add_argument("--runners", type=positive, metavar="N", help="processes that run scenarios, one at a time")


def _test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--all", action="store_true", help="also browser, chaos, soak and API fuzzing (takes many minutes)"
    )


def _help(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="?", choices=tuple(COMMANDS), metavar="command")


def _sign_in(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "email", nargs="?", help="whom to let in (default: the owner of the oldest workspace)"
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
    "help": _help,
    "sign-in": _sign_in,
    "key": _key,
    "plan": _plan,
    "vocab": _vocab,
    "vault": _vault,
    "web": _server,
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
