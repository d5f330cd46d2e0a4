"""Log lines of runs and pushes, and which escape sequences are safe to send to a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# ECMA-48: control sequences, operating system commands, other escapes; and invisible control characters.
CONTROL_SEQUENCES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


_COLOUR: Final = r"\x1b\[[0-9;:]{0,64}m"  # ECMA-48, 8.3.117: select graphic rendition


_UNSAFE: Final = re.compile(rf"({_COLOUR})|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class LogLines:
    """Lines `first` to `last` of a log, counted from 1. Lines contain neither line feeds nor carriage
    returns."""

    first: int
    last: int
    lines: Sequence[str]


def escape_control_sequences(text: str) -> str:
    """Keep colours and escape other control sequences: those that move the cursor, set the title or draw a
    link are shown as text (`\x1b`). Line feeds and tabs are kept."""
    return _UNSAFE.sub(lambda found: found[1] or f"\\x{ord(found[0]):02x}", text)
