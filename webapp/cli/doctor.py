"""`./rowsmith doctor`: find problems of this installation, and suggest how to fix them.

Each check is isolated and imports what it needs when it runs, so that incomplete installations can be checked as well:
if packages are missing, the launcher starts this module with any Python.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Final

from webapp.cli.findings import FAIL, OK, WARN, Finding, Installation, run_checks, worst_state

HOME: Final = Path(__file__).resolve().parents[2]
# Modules with CHECKS, and what it means when one cannot be imported.
AREAS: Final = ("webapp.cli.doctor_machine", "webapp.cli.doctor_database", "webapp.cli.doctor_service")
_LABELS: Final = {OK: "ok  ", WARN: "warn", FAIL: "FAIL"}


def run(arguments: argparse.Namespace) -> int:
    """Print the findings. Returns 1 if one of them is a failure."""
    found = run_all_checks(Installation(HOME, arguments.data_dir))
    state = worst_state(found)
    if arguments.json:
        print(json.dumps({"state": state, "findings": [finding.as_json() for finding in found]}, indent=2))
        return 1 if state == FAIL else 0
    width = max(len(finding.name) for finding in found)
    for finding in found:
        print(f"{_LABELS[finding.state]}  {finding.name:<{width}}  {finding.message}")
        if finding.fix:
            print(f"{'':6}{'':<{width}}  fix: {finding.fix}")
    failed, warned = (sum(finding.state == counted for finding in found) for counted in (FAIL, WARN))
    print(f"{failed} failure(s), {warned} warning(s)." if failed or warned else "No problems found.")
    return 1 if state == FAIL else 0


def run_all_checks(installation: Installation) -> list[Finding]:
    """Return all findings about the installation."""
    found: list[Finding] = []
    for area in AREAS:
        try:
            checks = importlib.import_module(area).CHECKS
        except ImportError as error:
            message = f"The {area.rpartition('_')[2]} checks cannot be imported: {error}."
            found.append(Finding(FAIL, "packages", message, "./rowsmith up installs what is missing"))
            continue
        found += run_checks(installation, checks)
    return found


def main() -> int:
    """Entry point for the launcher if packages are missing."""
    from webapp.cli.arguments import parse

    return run(parse(sys.argv[1:])[0])


if __name__ == "__main__":
    sys.exit(main())
