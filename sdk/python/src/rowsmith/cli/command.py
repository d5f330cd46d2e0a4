"""From command line arguments to an exit status."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Optional

from rowsmith.cli import problems
from rowsmith.cli.console import clean
from rowsmith.cli.parser import build
from rowsmith.cli.problems import Problem
from rowsmith.cli.work import Work
from rowsmith.error import ServiceError


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run a command and return its exit status. docs/reference/rowsmith-command.md lists them."""
    try:
        args = build().parse_args(argv)
    except SystemExit as end:  # help, version, or invalid arguments
        return end.code if isinstance(end.code, int) else problems.USAGE
    if args.act is None:
        args.parser.print_help(sys.stderr)
        return problems.USAGE
    work = Work(args)
    try:
        status: int = args.act(work)
        sys.stdout.flush()
        return status
    except Problem as problem:
        lines = [f"{problem.code}: {problem.message}", *(f"  {hint}" for hint in problem.hints)]
        return _failed(problem, lines, problem.exit, work)
    except ServiceError as error:
        return _failed(error, problems.lines_of(error), problems.exit_of(error), work)
    except BrokenPipeError:
        _forget_output()
        return problems.BROKEN_PIPE
    except OSError as error:
        exit = problems.NOT_FOUND if isinstance(error, FileNotFoundError) else problems.FAILED
        name = f"{error.filename}: " if error.filename else ""
        return _failed(error, [f"file: {name}{error.strerror or error}"], exit, work)
    except KeyboardInterrupt:
        return problems.INTERRUPTED
    finally:
        work.close()


def _failed(error: Exception, lines: Sequence[str], exit: int, work: Work) -> int:
    if work.console.as_json:
        told = json.dumps(problems.as_json(error), ensure_ascii=False, default=str)
    else:
        told = "\n".join(["rowsmith: " + clean(lines[0]), *(clean(line) for line in lines[1:])])
    sys.stderr.write(told + "\n")
    return exit


def _forget_output() -> None:
    """Discard the remaining output, because Python would report an error about it at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # standard output was replaced by an object that is not a file
        pass
