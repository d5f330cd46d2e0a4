"""Charts of a soak: lines over time as SVG files, from the CSV that `sampler` wrote.

    .venv/bin/python -m tests.soak.charts soak.csv FOLDER

Each is a whole SVG file without scripts or outside parts, readable on light and dark paper.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from tests.soak.sampler import GROUPS, read

WIDTH, HEIGHT = 760, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 34, 34
POINTS: Final = 500  # of a line: more points cannot be distinguished at this width
COLOURS: Final = ("#2563eb", "#c2410c", "#15803d", "#7e22ce", "#64748b")
PAPER, INK, RULE = "#ffffff", "#1f2937", "#e5e7eb"


@dataclass(frozen=True)
class Chart:
    """A file's name, its heading with the unit, and column by the line's name."""

    name: str
    heading: str
    lines: dict[str, str]


CHARTS: Final = (
    Chart("memory", "Memory by component, MB", {group: f"{group}_mb" for group in GROUPS}),
    Chart("descriptors", "Open file descriptors by component", {group: f"{group}_fds" for group in GROUPS}),
    Chart(
        "latency",
        "Response time, ms",
        {"live": "live_ms", "median": "median_ms", "95th percentile": "slow_ms"},
    ),
    Chart(
        "queue",
        "Waiting queue entries, and memory of Redis in MB",
        {"entries": "rings", "memory": "redis_mb"},
    ),
)


def draw(rows: Sequence[dict[str, float]], chart: Chart) -> str:
    """One chart as the text of an SVG file."""
    end = max(row["seconds"] for row in rows)
    top = ceiling(max(row[column] for row in rows for column in chart.lines.values()))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(seconds: float, value: float) -> str:
        return f"{LEFT + wide * seconds / end:.1f},{TOP + high * (1 - value / top):.1f}"

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' aria-label="{escape(chart.heading)}" font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{PAPER}"/>',
        f'<text x="{LEFT}" y="20" font-size="14" font-weight="600" fill="{INK}">{escape(chart.heading)}</text>',
    ]
    for part in range(5):
        y = TOP + high * (1 - part / 4)
        out.append(f'<path d="M{LEFT} {y:.1f}H{LEFT + wide}" stroke="{RULE}"/>')
        out.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{INK}">{short(top * part / 4)}</text>'
        )
    for part in range(5):
        x, seconds = LEFT + wide * part / 4, end * part / 4
        out.append(
            f'<text x="{x:.1f}" y="{HEIGHT - 12}" text-anchor="middle" fill="{INK}">{clock(seconds)}</text>'
        )
    step = max(1, len(rows) // POINTS)
    for number, (name, column) in enumerate(chart.lines.items()):
        colour, y = COLOURS[number % len(COLOURS)], TOP + 14 + 18 * number
        points = " ".join(place(row["seconds"], row[column]) for row in rows[::step])
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out.append(f'<path d="M{WIDTH - RIGHT + 14} {y - 4}h18" stroke="{colour}" stroke-width="3"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 38}" y="{y}" fill="{INK}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>", ""])


def ceiling(value: float) -> float:
    """The next number of 1, 2, 4 or 8 times a power of ten: what an axis ends with."""
    power = 10.0 ** math.floor(math.log10(max(value, 1e-9)))
    return next(step * power for step in (1, 2, 4, 8, 10) if step * power >= value * (1 - 1e-9))


def short(value: float) -> str:
    """A number of an axis."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def clock(seconds: float) -> str:
    """A time of an axis: minutes, or hours and minutes."""
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60}:{minutes % 60:02} h"


def write(rows: Sequence[dict[str, float]], folder: Path, prefix: str = "soak-") -> list[Path]:
    """Every chart into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    result = []
    for chart in CHARTS:
        path = folder / f"{prefix}{chart.name}.svg"
        path.write_text(draw(rows, chart))
        result.append(path)
    return result


if __name__ == "__main__":
    for one in write(read(Path(sys.argv[1])), Path(sys.argv[2])):
        print(one)
