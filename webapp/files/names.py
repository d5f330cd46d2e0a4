"""Names of workspace files: texts with folders in them, told apart by `/`.

A name is brought to NFC (Unicode Standard Annex 15), so that two texts that look alike because one is composed and
one is not are one name. Case counts: `Data.csv` and `data.csv` are two files, as on the file systems that runs see.
What a name may not be: absolute, a folder (a slash at its end), with an empty part, `.` or `..`, a control character,
a character that turns the direction of a text (it makes `exe.csv` of `vsc.exe`), a backslash, a part that begins or
ends with a space, a part longer than a file system takes, or of the form of a file's id, by which files are found too.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from webapp import limits
from webapp.errors import Fault, validation_error

OUTPUTS: Final = "outputs"
"""The folder of what runs leave behind: `outputs/<run id>/...`. It is not put before later runs."""

_ID: Final = re.compile(r"fil_[0-7][0-9A-HJKMNP-TV-Z]{25}", re.IGNORECASE | re.ASCII)
# Unicode Standard Annex 9: embeddings, overrides, isolates and marks of direction.
_TURNING: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNSEEN: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TOLD_CHARS: Final = 60


def is_id(text: str) -> bool:
    """Whether a text is a file's id and no name: no file may be called so."""
    return _ID.fullmatch(text) is not None


def normal(name: str) -> str:
    """A name as it is stored and compared."""
    return unicodedata.normalize("NFC", name)


def checked(name: str, path: str = "name") -> str:
    """The name as it is stored. Error: validation_error with every fault of it, each a sentence."""
    found = faults(name, path)
    if found:
        raise validation_error(found)
    return normal(name)


def faults(name: str, path: str = "name") -> list[Fault]:
    """What is wrong with a name; nothing for one that can be stored."""
    name = normal(name)
    if not name:
        return [Fault(path, "missing", "A file needs a name.")]
    parts = name.split("/")
    found = [Fault(path, code, text, hint) for code, text, hint in _of_whole(name, parts)]
    for part in dict.fromkeys(parts):
        found += [Fault(path, code, text, hint) for code, text, hint in _of_part(part)]
    return found[: limits.MAX_FAULTS]


_Told = tuple[str, str, str | None]


def _of_whole(name: str, parts: list[str]) -> list[_Told]:
    found: list[_Told] = []
    if len(name) > limits.MAX_FILE_NAME_CHARS:
        most = limits.MAX_FILE_NAME_CHARS
        found.append(
            ("too_long", f"A name may have {most} characters with its folders; this has {len(name)}.", None)
        )
    if name.startswith("/"):
        hint = "Leave the first slash out." if name.strip("/") else None
        found.append(("wrong_form", "A name does not begin with a slash: it starts in the workspace.", hint))
    if name.endswith("/"):
        found.append(
            ("wrong_form", "A name does not end with a slash: it names a file and not a folder.", None)
        )
    if any(not part for part in parts[1:-1]):
        found.append(("wrong_form", "A name has no empty folders: two slashes stand side by side.", None))
    for place, char in enumerate(name, 1):
        if char in _TURNING:
            text = f"The character U+{ord(char):04X} at place {place} turns the direction of what follows."
            found.append(("wrong_form", text, "Leave it out: it can make a name look like another one."))
            break
        if unicodedata.category(char) in _UNSEEN:
            text = f"A name has no control characters; U+{ord(char):04X} stands at place {place}."
            found.append(("wrong_form", text, None))
            break
    if "\\" in name:
        found.append(("wrong_form", "A name has no backslashes.", "Folders are told apart by a slash (/)."))
    if is_id(name):
        found.append(("reserved", "A name may not look like a file's id: files are found by both.", None))
    return found


def _of_part(part: str) -> list[_Told]:
    found: list[_Told] = []
    if part in (".", ".."):
        found.append(
            ("wrong_form", f"`{part}` is no name of a folder or file: a name leads nowhere else.", None)
        )
    if part.strip(" ") != part:
        found.append(
            ("wrong_form", f"`{_brief(part)}` begins or ends with a space, which nobody would see.", None)
        )
    length = len(part.encode("utf-8", "surrogatepass"))
    if length > limits.FILE_PART_BYTES:
        most = limits.FILE_PART_BYTES
        text = (
            f"What stands between two slashes may have {most} bytes in UTF-8; `{_brief(part)}` has {length}."
        )
        found.append(("too_long", text, None))
    return found


def _brief(text: str) -> str:
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return shown if len(shown) <= _TOLD_CHARS else shown[: _TOLD_CHARS - 1] + "…"


def cleaned(name: str) -> str:
    """The nearest name to one that a program chose: what may not stand in a name becomes `_`. It may still be too long
    or empty; `faults` tells."""
    parts = []
    for part in normal(name).split("/"):
        kept = "".join(
            "_" if c in _TURNING or c == "\\" or unicodedata.category(c) in _UNSEEN else c for c in part
        )
        left = len(kept) - len(kept.lstrip(" "))
        right = len(kept) - len(kept.rstrip(" ")) if kept.strip(" ") else 0
        parts.append("_" * left + kept.strip(" ") + "_" * right)
    return normal("/".join(parts))


def folders_of(name: str) -> list[str]:
    """The folders that a name lies in, outermost first: `a/b/c.csv` -> [`a`, `a/b`]."""
    parts = name.split("/")
    return ["/".join(parts[:place]) for place in range(1, len(parts))]


def last_part(name: str) -> str:
    """The name without its folders."""
    return name.rpartition("/")[2]
