"""Findings of the doctor, and the installation that it checks. Standard library only, as it also looks at
installations in which nothing else can be imported."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"
NO_SECRET: Final = "".join(map(chr, range(33, 97)))  # placeholder for a missing SECRET_KEY
STATES: Final = (OK, WARN, FAIL)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: its state, what was looked at, a sentence, and what mends it."""

    state: str
    name: str
    told: str
    mend: str = ""

    def as_json(self) -> dict[str, str]:
        """As `--json` prints it."""
        return asdict(self)


@dataclass
class Patient:
    """An installation to check. Unknown values are None."""

    home: Path
    option: str | None = None
    """--data-dir as it was given."""
    known: dict[str, Any] = field(default_factory=dict)
    """What one check hands on to those after it."""

    @cached_property
    def folder(self) -> Path:
        """The data folder."""
        from webapp.cli.datadir import resolve

        return resolve(self.option, os.environ)

    @cached_property
    def env(self) -> dict[str, str]:
        """The environment of a command on the data folder. Raises what datadir raises."""
        from webapp.cli.datadir import DataDir

        return DataDir(self.folder).environment(os.environ)

    @cached_property
    def settings(self) -> Any:
        """The settings; None where they are faulty. Without SECRET_KEY those with another, so that all the rest can be
        looked at."""
        from webapp.config import Settings, SettingsError

        try:
            return Settings.from_env({"SECRET_KEY": NO_SECRET, **self.env})
        except SettingsError:
            return None

    @property
    def at(self) -> str:
        """How a command names the data folder."""
        return f" --data-dir {self.option}" if self.option else ""


Check = Callable[[Patient], Iterable[Finding]]


def looked(patient: Patient, checks: Sequence[tuple[str, Check]]) -> list[Finding]:
    """What some checks find. One that stumbles is a finding itself."""
    found: list[Finding] = []
    for name, check in checks:
        try:
            found += check(patient)
        except Exception as error:  # one failed check must not hide the others
            said = str(error).partition("\n")[0]
            found.append(Finding(FAIL, name, f"This could not be looked at: {type(error).__name__}: {said}"))
    return found


def worst(findings: Iterable[Finding]) -> str:
    """The state of the whole."""
    return max((one.state for one in findings), key=STATES.index, default=OK)
