"""Output of the command: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Optional

BAR: Final = 24
"""Width of a progress bar in characters."""
BETWEEN_SECONDS: Final = 0.1
"""Minimum interval between redraws of a progress bar in seconds."""


class Console:
    """Standard output and standard error of a command. With `as_json`, results are printed as JSON."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet

    @property
    def lively(self) -> bool:
        """Return whether output is interactive: standard error is a terminal and `--quiet` is not set."""
        return not self.quiet and sys.stderr.isatty()

    def out(self, text: str) -> None:
        """Print a line of the result."""
        write(text + "\n")

    def note(self, text: str) -> None:
        """Print an informational line that is not part of the result. It is omitted if the result is for a
        program."""
        if not self.quiet:
            sys.stderr.write(clean(text) + "\n")
            sys.stderr.flush()

    def result(self, found: Any, text: Optional[str] = None) -> None:
        """Print an object: as JSON if requested, otherwise as `text`, otherwise as a list of its keys."""
        if self.as_json:
            self.out(json.dumps(found, indent=2, ensure_ascii=False, default=str))
        elif text is not None:
            self.out(text)
        else:
            self.out(pairs(found))

    def rows(self, found: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
        """Print a list: as a JSON array of complete objects, or as a table with these keys."""
        items = list(found)
        if self.as_json:
            self.out(json.dumps(items, indent=2, ensure_ascii=False, default=str))
        elif items:
            self.out(table([[cell(_at(item, name)) for name in columns] for item in items], columns))

    def bar(self, label: str, total: Optional[int] = None, unit: str = "rows") -> Bar:
        """Return a progress bar, which is only visible on a terminal."""
        return Bar(label, total, unit, shown=self.lively)


class Bar:
    """Progress on one line of standard error, which is redrawn and finally cleared."""

    def __init__(self, label: str, total: Optional[int], unit: str, *, shown: bool) -> None:
        self.label, self.total, self.unit, self.shown = label, total, unit, shown
        self.done = 0
        self._told = ""
        self._begun = self._drawn = time.monotonic()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.wipe()

    def add(self, more: int) -> None:
        """Add to the completed amount."""
        self.at(self.done + more)

    def at(self, done: int, total: Optional[int] = None, told: str = "") -> None:
        """Set the completed amount."""
        self.done, self._told = done, told
        self.total = self.total if total is None else total
        now = time.monotonic()
        if self.shown and now - self._drawn >= BETWEEN_SECONDS:
            self._drawn = now
            sys.stderr.write(f"\r\x1b[2K{self.line(now - self._begun)}")
            sys.stderr.flush()

    def line(self, seconds: float) -> str:
        """Return the text after this many seconds."""
        rate = amount(self.done / seconds, self.unit) + "/s" if seconds > 0 else ""
        parts = [clean(self.label)]
        if self.total:
            filled = min(BAR, BAR * self.done // self.total)
            parts.append("[" + "#" * filled + "." * (BAR - filled) + "]")
            parts.append(f"{amount(self.done, '')} of {amount(self.total, self.unit)}")
        else:
            parts.append(amount(self.done, self.unit))
        return "  ".join(part for part in (*parts, rate, clean(self._told)) if part)

    def wipe(self) -> None:
        """Clear the line."""
        if self.shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def write(text: str) -> None:
    """Write text to standard output as UTF-8, whatever the locale."""
    raw(text.encode("utf-8", "surrogateescape"))


def raw(data: bytes) -> None:
    """Write bytes to standard output."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # replaced by an object that only accepts text
        sys.stdout.write(data.decode("utf-8", "replace"))
        sys.stdout.flush()
        return
    buffer.write(data)
    buffer.flush()


def amount(number: float, unit: str) -> str:
    """Format a count or a size: `12,000 rows`, `3.4 MB`."""
    if unit != "B":
        return f"{number:,.0f} {unit}".rstrip()
    for name in ("B", "kB", "MB", "GB"):
        if number < 1000 or name == "GB":
            break
        number /= 1000
    return f"{number:,.0f} {name}" if name == "B" else f"{number:,.1f} {name}"


def table(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> str:
    """Format rows as a table, with columns as wide as their widest cell."""
    heads = [name.rpartition(".")[2].upper() for name in columns]
    widths = [max(len(row[at]) for row in [heads, *rows]) for at in range(len(columns))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [heads, *rows]
    ]
    return "\n".join(lines)


def pairs(found: Mapping[str, Any]) -> str:
    """Format an object with one key per line."""
    width = max((len(name) for name in found), default=0)
    return "\n".join(f"{name.ljust(width)}  {cell(value)}".rstrip() for name, value in found.items())


def cell(value: Any) -> str:
    """Format a value for a table: on one line and without terminal control characters."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return clean(text)


def clean(text: str) -> str:
    """Escape terminal control characters, because names come from other users."""
    return "".join(item if item.isprintable() else item.encode("unicode_escape").decode() for item in text)


_UNSAFE: Final = re.compile(r"(\x1b\[[0-9;:]{0,64}m)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """Return log lines with the terminal's color sequences, but with other control sequences escaped, because
    a program printed them. Line feeds and tabs are kept."""
    return _UNSAFE.sub(lambda found: found[1] or f"\\x{ord(found[0]):02x}", text)


def _at(one: Mapping[str, Any], name: str) -> Any:
    found: Any = one
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
