"""What the engine says when it cannot do what was asked: faults, all of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.spec import TemplateSpec


class SpecError(Exception):
    """A template, or a request for rows of it, that cannot be carried out. ``faults`` is never empty.

    ``partial`` is what could be parsed of a template, with a stand-in for each field that could not.
    """

    def __init__(self, faults: Iterable[Fault], partial: TemplateSpec | None = None) -> None:
        self.faults = list(faults)
        self.partial = partial
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in self.faults))
