"""The command tree for argparse. Help, the reference and shell completions are generated from it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Optional

from rowsmith import __version__
from rowsmith.cli.work import Work

Run = Callable[[Work], int]
SERVERS: Final = frozenset(
    "up test sign-in key plan vocab vault release assets migrate web worker sweeper lock backup restore doctor upgrade"
    " audit setup soak workspace format build".split()
)
"""Commands of the server's launcher `./rowsmith`, which is a different program."""
FILE: Final = "file"
"""A positional argument that is a local file, for completions."""


class Parser(argparse.ArgumentParser):
    """A parser that prints errors on one line, like all other errors."""

    def error(self, message: str) -> Any:
        """Exit with status 2."""
        word = re.search(r"invalid choice: '([\w-]+)'", message)
        if word and word[1] in SERVERS and self.prog == "rowsmith":
            message = f"`{word[1]}` is a command of the server: ./rowsmith {word[1]} in its clone."
        self.exit(2, f"rowsmith: {message}\nTry: {self.prog} --help\n")


class Branch:
    """Add a command with subcommands."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser
        self._under = parser.add_subparsers(
            metavar="COMMAND", parser_class=Parser, dest=f"{parser.prog}_command"
        )
        parser.set_defaults(act=None, parser=parser)

    def leaf(self, name: str, run: Run, help: str, more: str = "") -> argparse.ArgumentParser:
        """Add a command. `help` is one sentence; `more` follows it in the command's own help."""
        told = f"{help} {more}".strip()
        made = self._under.add_parser(
            name, help=help, description=told, parents=[common()], allow_abbrev=False
        )
        made.set_defaults(act=run, parser=made)
        return made

    def branch(self, name: str, help: str) -> Branch:
        """Add a command with subcommands."""
        made = self._under.add_parser(
            name, help=help, description=help, parents=[common()], allow_abbrev=False
        )
        return Branch(made)


def common() -> Parser:
    """Return the options of every command, which can be given before or after its name."""
    made = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = made.add_argument_group("global options")
    group.add_argument("--json", action="store_true", help="Print results and errors as JSON.")
    group.add_argument(
        "--quiet", "-q", action="store_true", help="No messages and no progress on standard error."
    )
    group.add_argument(
        "--profile", metavar="NAME", help="Profile stored by `login`. Default: the active profile."
    )
    group.add_argument("--project", metavar="ID", help=("Use another project than the key's."))
    return made


def build() -> Parser:
    """Return the complete tree."""
    from rowsmith.cli import commands

    root = Parser(
        prog="rowsmith",
        description="Test data from one template: rows, files, pushes, scenario runs.",
        parents=[common()],
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"rowsmith {__version__}")
    root.set_defaults(json=False, quiet=False, profile=None, project=None)
    commands.add(Branch(root))
    return root


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the subcommands of a parser, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def summaries(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the help sentence of each subcommand."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {item.dest: item.help or "" for item in action._choices_actions}
    return {}


def options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options of a parser without `--help`."""
    return [
        action for action in parser._actions if action.option_strings and not isinstance(action, argparse._HelpAction)
    ]


def operands(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the positional arguments of a parser."""
    kinds = argparse._SubParsersAction
    return [action for action in parser._actions if not action.option_strings and not isinstance(action, kinds)]


def walk(
    parser: argparse.ArgumentParser, path: Sequence[str] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Yield every command with its full path, the root first."""
    yield tuple(path), parser
    for name, under in subcommands(parser).items():
        yield from walk(under, (*path, name))


def mark_as_file(action: argparse.Action) -> None:
    """Mark an argument as a file name."""
    action.names = FILE  # type: ignore[attr-defined]  # read by the completion of shells


def is_file(action: argparse.Action) -> bool:
    """Return whether an argument is a file name."""
    return getattr(action, "names", None) == FILE


def positive(text: str) -> int:
    """Parse an integer greater than 0."""
    number = _integer(text)
    if number is None or number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, not {text!r}")
    return number


def natural(text: str) -> int:
    """Parse an integer of at least 0."""
    number = _integer(text)
    if number is None or number < 0:
        raise argparse.ArgumentTypeError(f"expected a whole number, not {text!r}")
    return number


def _integer(text: str) -> Optional[int]:
    try:
        return int(text.replace("_", ""))
    except ValueError:
        return None
