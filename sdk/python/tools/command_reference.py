"""Generate the reference of the `rowsmith` command from its argument parser.

.venv/bin/python sdk/python/tools/command_reference.py
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REFERENCE = HERE.parents[2] / "docs" / "reference" / "rowsmith-command.md"

HEAD = """# The command `rowsmith`

Generated from the command's argument parser by `sdk/python/tools/command_reference.py`. Start with the
[guide](../guide/cli.md). The server's launcher `./rowsmith` is [a different command](cli.md).
"""


def page() -> str:
    """Return the whole page."""
    from rowsmith.cli import parser, problems, profiles

    root = parser.build()
    out = [HEAD, "## Global options\n", "You can put these options before or after a command's name.\n"]
    out += [*_table("option", parser.options(parser.common())), ""]
    for path, item in parser.walk(root):
        if path:
            out += _command(path, item)
    out += ["## Exit status\n", "| status | meaning |", "|---|---|"]
    out += [f"| {status} | {meaning} |" for status, meaning in problems.EXITS]
    out += ["", "## Environment\n", "| variable | meaning |", "|---|---|"]
    out += [f"| `{name}` | {meaning} |" for name, meaning in profiles.VARIABLES]
    return "\n".join(out).rstrip() + "\n"


def _command(path: tuple[str, ...], one: argparse.ArgumentParser) -> list[str]:
    from rowsmith.cli import parser as tree

    out = [f"{'#' * (len(path) + 1)} `{' '.join(path)}`\n", f"{one.description}\n"]
    under = tree.summaries(one)
    if under:
        return out
    shared = {name for action in tree.options(tree.common()) for name in action.option_strings}
    options = [action for action in tree.options(one) if not shared & set(action.option_strings)]
    operands = tree.operands(one)
    words = " ".join(_operand(action) for action in operands)
    out.append(f"    rowsmith {' '.join(path)}{' [options]' if options else ''} {words}".rstrip() + "\n")
    if operands or options:
        kind = " or ".join([*(["argument"] if operands else []), *(["option"] if options else [])])
        out += [*_table(kind, [*operands, *options]), ""]
    return out


def _table(kind: str, actions: list[argparse.Action]) -> list[str]:
    rows = [f"| {_named(action)} | {_escaped(action.help or '')} |" for action in actions]
    return [f"| {kind} | meaning |", "|---|---|", *rows]


def _named(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{_metavar(action)}`"
    value = "" if action.nargs == 0 else f" {_metavar(action)}"
    return ", ".join(f"`{_escaped(name + value)}`" for name in action.option_strings)


def _metavar(action: argparse.Action) -> str:
    if action.metavar:
        return str(action.metavar)
    return "|".join(str(choice) for choice in action.choices) if action.choices else action.dest.upper()


def _operand(action: argparse.Action) -> str:
    name = _metavar(action)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}.get(str(action.nargs), name)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent / "src"))
    REFERENCE.write_text(page(), encoding="utf-8")
