"""The engine's error: all faults of a template or request together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.spec import TemplateSpec


class SpecError(Exception):
    """A template or a request for its rows is invalid. ``faults`` is never empty.

    ``partial`` is the part of the template that could be parsed, with a placeholder for each field that could not.
    """

    def __init__(self, faults: Iterable[Fault], partial: TemplateSpec | None = None) -> None:
        self.faults = list(faults)
        self.partial = partial
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in self.faults))
