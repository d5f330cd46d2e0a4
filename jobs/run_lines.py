"""What a program prints, as lines: any bytes, of any length, with or without a line feed at the end.

A line ends with LF, CR LF or CR (a progress bar is a line each time it is drawn). Bytes that are no UTF-8 become the
replacement character, and so does NUL, which PostgreSQL cannot keep. A line that looks like one of the service's own
(`rowsmith: `) gets `| ` before it; everything else stays as it was printed.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from webapp import limits
from webapp.connectors.redaction import Cutter
from webapp.services.run_end import MARK
from webapp.services.run_logs import COMMANDS

QUOTED: Final = "| "  # begins a line of a program that would look like one of the service's
_OWN: Final = MARK.strip().casefold()
_HEAD: Final = 200  # characters in which a line is looked at closely
_UNSEEN: Final = re.compile(rf"{COMMANDS.pattern}|\s", re.DOTALL)


def quoted(line: str) -> str:
    """A line of a program, with `| ` before one that a reader or a terminal would take for the service's."""
    if line.isascii() and "\x1b" not in line[:_HEAD] and line[:1].isalnum():
        looks = line[: len(_OWN)].casefold()
    else:
        seen = unicodedata.normalize("NFKC", _UNSEEN.sub("", line[:_HEAD]))
        looks = "".join(one for one in seen if unicodedata.category(one)[0] != "C").casefold()
    return QUOTED + line if looks.startswith(_OWN) else line


class Lines:
    """Takes bytes as they come and gives the lines that are whole. `cutter` may be replaced at any time."""

    def __init__(self, cutter: Cutter | None = None) -> None:
        self.cutter = cutter
        self.last = ""
        """The last line that is not blank."""
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that are whole now."""
        data = self._rest + data
        held = b"\r" if data.endswith(b"\r") else b""  # an LF may follow
        if held:
            data = data[:-1]
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *whole, rest = data.split(b"\n")
        made = self._texts(whole)
        while len(rest) >= limits.RUN_LINE_BYTES + self._longest:
            at = self._border(rest)
            made += self._texts([rest[:at]])
            rest = rest[at:]
        self._rest = rest + held
        return made

    def end(self) -> list[str]:
        """What is left when nothing more will come."""
        rest, self._rest = self._rest.removesuffix(b"\r"), b""
        return self._texts([rest]) if rest else []

    @property
    def _longest(self) -> int:
        return self.cutter.longest if self.cutter is not None else 0

    def _border(self, data: bytes) -> int:
        at = limits.RUN_LINE_BYTES
        while at > limits.RUN_LINE_BYTES - 4 and data[at] & 0xC0 == 0x80:  # within a character
            at -= 1
        return self.cutter.border(data, at) if self.cutter is not None else at

    def _texts(self, whole: list[bytes]) -> list[str]:
        if not whole:
            return []
        data = b"\n".join(whole)
        if self.cutter is not None:
            # Line by line: a secret of several lines is cut by its lines, and no cut may swallow a line feed.
            data = b"\n".join([self.cutter.cut(line) for line in whole])
        if any(len(line) > limits.RUN_LINE_BYTES for line in whole):
            data = b"\n".join([part for line in data.split(b"\n") for part in self._parts(line)])
        made = [quoted(one) for one in data.decode("utf-8", "replace").replace("\0", "\ufffd").split("\n")]
        self.last = next((line for line in reversed(made) if line.strip()), self.last)
        return made

    def _parts(self, line: bytes) -> list[bytes]:
        found = []
        while len(line) > limits.RUN_LINE_BYTES:
            at = limits.RUN_LINE_BYTES
            while at > limits.RUN_LINE_BYTES - 4 and line[at] & 0xC0 == 0x80:
                at -= 1
            found.append(line[:at])
            line = line[at:]
        return [*found, line]
