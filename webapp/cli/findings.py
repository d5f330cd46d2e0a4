"""Findings of the doctor, and the installation that it checks. Standard library only, so that it can also check
installations with missing packages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"
PLACEHOLDER_SECRET: Final = "".join(map(chr, range(33, 97)))  # placeholder for a missing SECRET_KEY
STATES: Final = (OK, WARN, FAIL)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: its state, the checked item, a sentence, and how to fix it."""

    state: str
    name: str
    message: str
    fix: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the finding as `--json` prints it."""
        return {"state": self.state, "name": self.name, "told": self.message, "mend": self.fix}


@dataclass
class Installation:
    """An installation to check. Unknown values are None."""

    home: Path
    data_dir: str | None = None
    """The value of --data-dir."""
    results: dict[str, Any] = field(default_factory=dict)
    """Results that a check passes on to later checks."""

    @cached_property
    def folder(self) -> Path:
        """The data folder."""
        from webapp.cli.datadir import resolve

        return resolve(self.data_dir, os.environ)

    @cached_property
    def env(self) -> dict[str, str]:
        """The environment of a command on the data folder. Raises what datadir raises."""
        from webapp.cli.datadir import DataDir

        return DataDir(self.folder).environment(os.environ)

    @cached_property
    def settings(self) -> Any:
        """Return the settings; None if they are invalid. If SECRET_KEY is missing, a placeholder is used, so that
        everything else can be checked."""
        from webapp.config import Settings, SettingsError

        try:
            return Settings.from_env({"SECRET_KEY": PLACEHOLDER_SECRET, **self.env})
        except SettingsError:
            return None

    @property
    def data_dir_option(self) -> str:
        """Return the option that selects the data folder in a command."""
        return f" --data-dir {self.data_dir}" if self.data_dir else ""


Check = Callable[[Installation], Iterable[Finding]]


def run_checks(installation: Installation, checks: Sequence[tuple[str, Check]]) -> list[Finding]:
    """Run checks and yield their findings. An exception in a check becomes a finding."""
    found: list[Finding] = []
    for name, check in checks:
        try:
            found += check(installation)
        except Exception as error:  # one failed check must not hide the others
            reason = str(error).partition("\n")[0]
            found.append(Finding(FAIL, name, f"This could not be checked: {type(error).__name__}: {reason}"))
    return found


def worst_state(findings: Iterable[Finding]) -> str:
    """Return the worst state."""
    return max((finding.state for finding in findings), key=STATES.index, default=OK)
