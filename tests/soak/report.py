"""A soak's measurements as a page: charts into docs/img, numbers into docs/soak.md.

    .venv/bin/python -m tests.soak.report var/soak

The folder is the one of `./rowsmith soak --out`; what it holds of each stack replaces what the page said before.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from tests.promises.product import STACKS
from tests.soak import charts, sampler
from webapp.paths import ROOT

PAGE: Final = ROOT / "docs" / "soak.md"
IMAGES: Final = ROOT / "docs" / "img"
MARK: Final = "## Measured\n"


def told(folder: Path, stack: str) -> str:
    """The section of one stack; "" where it was not measured."""
    path = folder / stack
    if not (path / "soak.csv").is_file():
        return ""
    rows = sampler.read(path / "soak.csv")
    prefix = f"soak-{stack.partition('+')[0]}-"
    charts.write(rows, IMAGES, prefix)
    done = json.loads((path / "done.json").read_text())
    faults = sum(bool(line) for line in (path / "faults.txt").read_text().splitlines())
    lines = [
        f"### {stack}: {lasted(rows[-1]['seconds'])}",
        "",
        f"{sum(done.values()):,} rounds of work ({', '.join(f'{count:,} {kind}' for kind, count in done.items())}), "
        f"{int(sum(row['requests'] for row in rows)):,} requests, {faults} faults. {times(rows)}",
        "",
        "| component | MB at the start | at the end | median | maximum | growth over the second half | descriptors "
        "| growth |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {item['part']} | {rows[0][item['part'] + '_mb']} | {rows[-1][item['part'] + '_mb']} "
            f"| {item['usual_mb']} | {item['most_mb']} | {item['growth_mb']} "
            f"| {item['usual_fds']} | {item['growth_fds']} |"
            for item in sampler.summary(rows)
        ),
        "",
        *(f"![{chart.heading}](img/{prefix}{chart.name}.svg)\n" for chart in charts.CHARTS),
    ]
    return "\n".join(lines)


def lasted(seconds: float) -> str:
    """How long a run was, for people: a part of an hour is not rounded to one."""
    return f"{seconds / 3600:.1f} hours" if seconds >= 2 * 3600 else f"{seconds / 60:.0f} minutes"


def times(rows: list[dict[str, float]]) -> str:
    """Describe response times and queue lengths in sentences."""
    half, most, live = (sampler.usual(rows, f"{name}_ms") for name in ("median", "slow", "live"))
    return (
        f"The median response time was {half:.0f} ms (95th percentile {most:.0f} ms), and {live:.0f} ms for "
        f"`/health/live`. The queues contained at most {max(row['rings'] for row in rows):.0f} waiting entries, and "
        f"{rows[-1]['rings']:.0f} at the end."
    )


def main(folder: Path) -> None:
    """Replace the part of the page below the mark."""
    head = PAGE.read_text("utf-8").partition(MARK)[0]
    sections = [text for stack in STACKS if (text := told(folder, stack))]
    PAGE.write_text(f"{head}{MARK}\n" + "\n".join(sections), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
