"""A program as a text: how large it may be, and whether Python can read it.

Python reads it in a document process: a megabyte of nested brackets takes a second, and can end the reader.
"""

from __future__ import annotations

import sys
import warnings
from typing import IO, Any, Final

from webapp import document_process, limits
from webapp.errors import Fault

_UNKNOWN: Final = {
    "message": "it is too large or nested too deeply to be read in time", "line": None, "column": None,
}  # fmt: skip
_LEVELS: Final = 3_000  # chosen: Python's own parser needs some frames for each level


def size_faults(code: str) -> list[Fault]:
    """What keeps a text from being saved as a program."""
    try:
        size = len(code.encode("utf-8"))
    except UnicodeEncodeError:
        return [Fault("code", "invalid", "The program holds half a character, which no file can have.")]
    if size > limits.MAX_CODE_BYTES:
        text = f"The program has {size:,} bytes; at most {limits.MAX_CODE_BYTES:,} are taken."
        return [Fault("code", "too_long", text, "Put data into a workspace file.")]
    if "\0" in code:
        return [Fault("code", "invalid", "The program holds the character U+0000.")]
    return []


def syntax_fault(code: str) -> Fault | None:
    """What Python will say of a program before it begins; None where it can be read. It is no reason not to save."""
    hint = "It is saved as it stands, and a run of it will end with this error."
    try:
        told = document_process.run(
            "webapp.services.scenario_code:in_process", code.encode(), seconds=limits.SYNTAX_SECONDS
        )
    except document_process.DocumentError:
        told = _UNKNOWN
    if told is None:
        return None
    where = f" (line {told['line']}, column {told['column'] or 1})" if told["line"] else ""
    position = _position(code, told["line"], told["column"]) if told["line"] else None
    text = f"Python cannot read this program: {told['message']}{where}."
    return Fault("code", "syntax_error", text, hint, position)


def in_process(file: IO[bytes]) -> dict[str, Any] | None:
    """What Python says of a program that it cannot read; None where it can. Runs in a document process."""
    sys.setrecursionlimit(_LEVELS)
    warnings.simplefilter("ignore")  # of what will work, though not for ever
    try:
        # Bytes, not text: so a line that says how the file is encoded means here what it means when the program runs.
        compile(file.read(), "main.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        return {"message": error.msg, "line": error.lineno, "column": error.offset}
    except (ValueError, RecursionError) as error:
        return {**_UNKNOWN, "message": str(error) or "it is nested too deeply"}
    return None


def _position(code: str, line: int, column: int | None) -> int:
    """A place in characters from 1, from a line and a column."""
    before = code.splitlines(keepends=True)[: line - 1]
    return sum(map(len, before)) + max(1, column or 1)
