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
from webapp import ROOT

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
    hours = rows[-1]["seconds"] / 3600
    lines = [
        f"### {stack}: {hours:.1f} hours",
        "",
        f"{sum(done.values()):,} rounds of work ({', '.join(f'{count:,} {kind}' for kind, count in done.items())}), "
        f"{int(sum(row['requests'] for row in rows)):,} requests, {faults} faults.",
        "",
        "| part | memory, MB | most | growth over the second half | descriptors | growth |",
        "|---|---|---|---|---|---|",
        *(
            f"| {one['part']} | {one['usual_mb']} | {one['most_mb']} | {one['growth_mb']} | {one['usual_fds']} "
            f"| {one['growth_fds']} |"
            for one in sampler.summary(rows)
        ),
        "",
        *(f"![{chart.heading}](img/{prefix}{chart.name}.svg)\n" for chart in charts.CHARTS),
    ]
    return "\n".join(lines)


def main(folder: Path) -> None:
    """Write the page anew below its mark."""
    head = PAGE.read_text("utf-8").partition(MARK)[0]
    sections = [text for stack in STACKS if (text := told(folder, stack))]
    PAGE.write_text(f"{head}{MARK}\n" + "\n".join(sections), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
