"""Connections, their tables and their columns, as the builder offers them to pick from.

Tables are those of the metadata that were read last. Nobody's target is asked while a page is drawn; it is once,
where somebody has just picked a connection whose metadata were never read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from webapp import limits
from webapp.connectors import KINDS
from webapp.connectors.shape import Metadata
from webapp.errors import ApiError
from webapp.services import connection_looks, connections
from webapp.services.actors import Actor

Choice = tuple[str, str]
"""Value and text of an option of a select."""


class Tables:
    """What connections hold, looked up when it is asked for. `asks`: metadata that were never read are read now."""

    def __init__(self, actor: Actor, asks: bool = False) -> None:
        self._actor, self.asks = actor, asks
        self._known: dict[str, Mapping[str, list[str]] | None] = {}

    @cached_property
    def _listed(self) -> dict[str, Choice]:
        """Name and type of the project's connections to databases by id, in the order of the names."""
        page = connections.listing(self._actor, limit=limits.PAGE_LIMIT_MAX)
        found = sorted((one for one in page.items if one.type in KINDS), key=lambda one: one.name.casefold())
        return {one.id: (one.name, one.type) for one in found}

    def connections(self, needs: str) -> list[Choice]:
        """Connections that can be asked; ``needs`` is an attribute of `Capabilities`, or empty."""
        fitting = {name for name, kind in KINDS.items() if not needs or getattr(kind.can, needs)}
        return [(one, _text(name, kind)) for one, (name, kind) in self._listed.items() if kind in fitting]

    def connection(self, connection_id: str) -> str:
        """A connection as a select calls it."""
        if connection_id in self._listed:
            return _text(*self._listed[connection_id])
        return f"{connection_id} (not found)"

    def known(self, connection_id: str) -> bool:
        """Whether the tables of a connection are known."""
        return self._columns_of(connection_id) is not None

    def tables(self, connection_id: str, text: str = "") -> list[str]:
        """The tables of a connection whose names hold a text; none where they are not known."""
        wanted = text.strip().casefold()
        return [name for name in self._columns_of(connection_id) or () if wanted in name.casefold()]

    def columns(self, connection_id: str, table: str) -> list[str]:
        """The columns of a table; none where they are not known."""
        return (self._columns_of(connection_id) or {}).get(table, [])

    def _columns_of(self, connection_id: str) -> Mapping[str, list[str]] | None:
        if connection_id not in self._known:
            found = self._metadata(connection_id)
            self._known[connection_id] = (
                None
                if found is None
                else {one.name: [part.name for part in one.fields] for one in found.entities}
            )
        return self._known[connection_id]

    def _metadata(self, connection_id: str) -> Metadata | None:
        if not connection_id:
            return None
        try:
            found = connections.get(self._actor, connection_id)
            if found.metadata_key is None and not self.asks:
                return None
            return connection_looks.metadata(self._actor, found)
        except ApiError:  # it is gone, or its target does not answer: the name is typed
            return None


def _text(name: str, kind: str) -> str:
    return f"{name} ({KINDS[kind].title})"
