"""Validate names of workspace files, which may include folders separated by `/`.

Names are normalized to NFC (Unicode Standard Annex 15), so that composed and decomposed forms are the same name. Names
are case-sensitive, as on the file systems that runs use: `Data.csv` and `data.csv` are two files.
A name must not be absolute or end with a slash. It must not contain an empty part, `.` or `..`, a backslash, a control
character, or a character that changes the text direction (which can display `vsc.exe` as `exe.csv`). No part may begin
or end with a space or be longer than file systems allow. A name must not have the form of a file id, because files are
also found by id.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from webapp import limits
from webapp.errors import Fault, validation_error

OUTPUTS_FOLDER: Final = "outputs"
"""The folder of run outputs: `outputs/<run id>/...`. Later runs do not receive it."""

_ID: Final = re.compile(r"fil_[0-7][0-9A-HJKMNP-TV-Z]{25}", re.IGNORECASE | re.ASCII)
# Embeddings, overrides, isolates and directional marks (Unicode Standard Annex 9).
_BIDIRECTIONAL: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_CONTROL_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_MESSAGE_CHARS: Final = 60


def is_id(text: str) -> bool:
    """Return whether a text has the form of a file id, which no name may have."""
    return _ID.fullmatch(text) is not None


def normalize(name: str) -> str:
    """Return the normalized form of a name for storing and comparing."""
    return unicodedata.normalize("NFC", name)


def validated(name: str, path: str = "name") -> str:
    """Return the normalized name. Raise validation_error with one message for every problem."""
    found = faults(name, path)
    if found:
        raise validation_error(found)
    return normalize(name)


def faults(name: str, path: str = "name") -> list[Fault]:
    """Return the problems of a name, one message each. The list is empty for a valid name."""
    name = normalize(name)
    if not name:
        return [Fault(path, "missing", "Enter a name for the file.")]
    parts = name.split("/")
    found = []
    limit = limits.MAX_FILE_NAME_CHARS
    if len(name) > limit:
        text = f"A name can have up to {limit} characters, including its folders; this one has {len(name)}."
        found.append(Fault(path, "too_long", text))
    if name.startswith("/"):
        text = "A name must not begin with a slash: it is relative to the workspace."
        hint = "Remove the first slash." if name.strip("/") else None
        found.append(Fault(path, "wrong_form", text, hint))
    if name.endswith("/"):
        text = "A name must not end with a slash: it must be the name of a file."
        found.append(Fault(path, "wrong_form", text))
    if any(not part for part in parts[1:-1]):
        text = "A name must not contain empty folder names: remove the double slash."
        found.append(Fault(path, "wrong_form", text))
    for position, char in enumerate(name, 1):
        if char in _BIDIRECTIONAL:
            text = f"The character U+{ord(char):04X} at position {position} changes the text direction."
            hint = "Remove it: it can make a name look like another one."
            found.append(Fault(path, "wrong_form", text, hint))
            break
        if unicodedata.category(char) in _CONTROL_CATEGORIES:
            text = f"A name must not contain control characters: U+{ord(char):04X} at position {position}."
            found.append(Fault(path, "wrong_form", text))
            break
    if "\\" in name:
        hint = "Separate folders with a slash (/)."
        found.append(Fault(path, "wrong_form", "A name must not contain backslashes.", hint))
    if is_id(name):
        found.append(Fault(path, "reserved", "A name must not look like the ID of a file."))
    limit = limits.FILE_PART_BYTES
    for part in dict.fromkeys(parts):
        if part in (".", ".."):
            text = f"`{part}` is not allowed as the name of a folder or file."
            found.append(Fault(path, "wrong_form", text))
        if part.strip(" ") != part:
            found.append(
                Fault(path, "wrong_form", f"`{_replace_unprintable(part)}` begins or ends with a space.")
            )
        length = len(part.encode("utf-8", "surrogatepass"))
        if length > limit:
            shown = _replace_unprintable(part)
            text = (
                f"The name of a folder or file can have up to {limit} bytes in UTF-8; `{shown}` has {length}."
            )
            found.append(Fault(path, "too_long", text))
    return found[: limits.MAX_FAULTS]


def _replace_unprintable(text: str) -> str:
    printable = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return printable if len(printable) <= _MESSAGE_CHARS else printable[: _MESSAGE_CHARS - 1] + "…"


def sanitize(name: str) -> str:
    """Return the closest valid name to one that a program chose: invalid characters become `_`. The result can still be
    too long or empty, which `faults` reports."""
    parts = []
    for part in normalize(name).split("/"):
        replaced = "".join(
            "_" if c in _BIDIRECTIONAL or c == "\\" or unicodedata.category(c) in _CONTROL_CATEGORIES else c
            for c in part
        )
        left = len(replaced) - len(replaced.lstrip(" "))
        right = len(replaced) - len(replaced.rstrip(" ")) if replaced.strip(" ") else 0
        parts.append("_" * left + replaced.strip(" ") + "_" * right)
    return normalize("/".join(parts))


def parent_folders(name: str) -> list[str]:
    """Return the parent folders of a name, outermost first: `a/b/c.csv` -> [`a`, `a/b`]."""
    parts = name.split("/")
    return ["/".join(parts[:index]) for index in range(1, len(parts))]


def base_name(name: str) -> str:
    """Return the name without its folders."""
    return name.rpartition("/")[2]
