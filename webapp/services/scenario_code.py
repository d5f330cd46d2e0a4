"""A program as a text: how large it may be, and whether Python can read it.

Python reads it in a process of its own: a megabyte of nested brackets takes a second, and can end the reader.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Final

from webapp import limits
from webapp.errors import Fault

# Bytes, not text: so a line that says how the file is encoded means here what it means when the program runs.
_READER: Final = """
import json, resource, sys
sys.setrecursionlimit(3000)
resource.setrlimit(resource.RLIMIT_AS, (2 ** 30, 2 ** 30))
told = None
try:
    compile(sys.stdin.buffer.read(), "main.py", "exec", dont_inherit=True)
except SyntaxError as error:
    told = {"message": error.msg, "line": error.lineno, "column": error.offset}
except (ValueError, RecursionError, MemoryError) as error:
    told = {"message": str(error) or "it is nested too deeply", "line": None, "column": None}
print(json.dumps(told))
"""


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
    told = _asked(code)
    if told is None:
        return None
    where = f" (line {told['line']}, column {told['column'] or 1})" if told["line"] else ""
    position = _position(code, told["line"], told["column"]) if told["line"] else None
    text = f"Python cannot read this program: {told['message']}{where}."
    return Fault("code", "syntax_error", text, hint, position)


def _asked(code: str) -> dict[str, Any] | None:
    unknown = {
        "message": "it is too large or nested too deeply to be read in time",
        "line": None,
        "column": None,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-W", "ignore", "-c", _READER],
            input=code.encode(),
            capture_output=True,
            timeout=limits.SYNTAX_SECONDS,
            check=False,
            env={},
        )
    except subprocess.TimeoutExpired:
        return unknown
    return json.loads(done.stdout) if done.returncode == 0 else unknown


def _position(code: str, line: int, column: int | None) -> int:
    """A place in characters from 1, from a line and a column."""
    before = code.splitlines(keepends=True)[: line - 1]
    return sum(map(len, before)) + max(1, column or 1)
