"""What is printed, and where: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Optional

BAR: Final = 24
"""Characters of a progress bar."""
BETWEEN_SECONDS: Final = 0.1
"""A bar is drawn no more often."""


class Console:
    """Standard output and standard error of one command. `as_json`: results are JSON."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet

    @property
    def lively(self) -> bool:
        """Whether somebody looks on: standard error is a terminal, and nothing asks for silence."""
        return not self.quiet and sys.stderr.isatty()

    def out(self, text: str) -> None:
        """A line of the result."""
        write(text + "\n")

    def note(self, text: str) -> None:
        """A line beside the result: for people, so only where the result is not for a program."""
        if not self.quiet:
            sys.stderr.write(clean(text) + "\n")
            sys.stderr.flush()

    def result(self, found: Any, text: Optional[str] = None) -> None:
        """An object: as JSON where that is asked for, else as `text`, else as a list of its keys."""
        if self.as_json:
            self.out(json.dumps(found, indent=2, ensure_ascii=False, default=str))
        elif text is not None:
            self.out(text)
        else:
            self.out(pairs(found))

    def rows(self, found: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
        """A list: as a JSON array of whole objects, else as a table of these keys."""
        items = list(found)
        if self.as_json:
            self.out(json.dumps(items, indent=2, ensure_ascii=False, default=str))
        elif items:
            self.out(table([[cell(_at(one, name)) for name in columns] for one in items], columns))

    def bar(self, label: str, total: Optional[int] = None, unit: str = "rows") -> Bar:
        """A progress bar, which shows itself on a terminal alone."""
        return Bar(label, total, unit, shown=self.lively)


class Bar:
    """Progress on one line of standard error, drawn over itself and wiped at its end."""

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
        """So much more is done."""
        self.at(self.done + more)

    def at(self, done: int, total: Optional[int] = None, told: str = "") -> None:
        """So much is done."""
        self.done, self._told = done, told
        self.total = self.total if total is None else total
        now = time.monotonic()
        if self.shown and now - self._drawn >= BETWEEN_SECONDS:
            self._drawn = now
            sys.stderr.write(f"\r\x1b[2K{self.line(now - self._begun)}")
            sys.stderr.flush()

    def line(self, seconds: float) -> str:
        """What is drawn after so many seconds."""
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
        """Take it off the screen."""
        if self.shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def write(text: str) -> None:
    """Text to standard output, as UTF-8 whatever the locale says."""
    raw(text.encode("utf-8", "surrogateescape"))


def raw(data: bytes) -> None:
    """Bytes to standard output."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # replaced by something that takes text alone
        sys.stdout.write(data.decode("utf-8", "replace"))
        sys.stdout.flush()
        return
    buffer.write(data)
    buffer.flush()


def amount(number: float, unit: str) -> str:
    """`12,000 rows`, `3.4 MB`."""
    if unit != "B":
        return f"{number:,.0f} {unit}".rstrip()
    for name in ("B", "kB", "MB", "GB"):
        if number < 1000 or name == "GB":
            break
        number /= 1000
    return f"{number:,.0f} {name}" if name == "B" else f"{number:,.1f} {name}"


def table(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> str:
    """Rows under their names, each column as wide as its widest cell."""
    heads = [name.rpartition(".")[2].upper() for name in columns]
    widths = [max(len(row[at]) for row in [heads, *rows]) for at in range(len(columns))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [heads, *rows]
    ]
    return "\n".join(lines)


def pairs(found: Mapping[str, Any]) -> str:
    """An object, a key a line."""
    width = max((len(name) for name in found), default=0)
    return "\n".join(f"{name.ljust(width)}  {cell(value)}".rstrip() for name, value in found.items())


def cell(value: Any) -> str:
    """A value as a table shows it, on one line and without anything that a terminal would act on."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return clean(text)


def clean(text: str) -> str:
    """The text with what a terminal would act on made visible: names come from others."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


_UNSAFE: Final = re.compile(r"(\x1b\[[0-9;:]{0,64}m)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """Lines of a log with the colours of a terminal and without its other commands, which are written out: a program
    printed them. Line feeds and tabs stay."""
    return _UNSAFE.sub(lambda found: found[1] or f"\\x{ord(found[0]):02x}", text)


def _at(one: Mapping[str, Any], name: str) -> Any:
    found: Any = one
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
