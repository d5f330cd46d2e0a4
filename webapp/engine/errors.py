"""What the engine says when it cannot do what was asked: faults, all of them at once."""

from __future__ import annotations

from collections.abc import Iterable

from webapp.errors import Fault


class SpecError(Exception):
    """A template, or a request for rows of it, that cannot be carried out. ``faults`` is never empty."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = list(faults)
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in self.faults))

