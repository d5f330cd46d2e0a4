"""Lists that load their own pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, Optional, TypeVar

T = TypeVar("T")
PAGE: Final = 100
"""Objects per page: the maximum of the service."""

Fetch = Callable[[Mapping[str, object]], Mapping[str, Any]]


class Pages(Generic[T]):
    """All objects of a list. Pages are loaded during iteration; each iteration starts again.

    `total` loads the first page if none was loaded yet; `all()` returns a plain list.
    """

    def __init__(self, fetch: Fetch, query: Mapping[str, object]) -> None:
        self._fetch = fetch
        self._query = dict(query)
        self._total: Optional[int] = None

    def __iter__(self) -> Iterator[T]:
        cursor: Optional[str] = None
        while True:
            page = self.page(cursor)
            yield from page["items"]
            following = page.get("next_cursor")
            if not following:
                return
            if following == cursor:
                raise RuntimeError("The service returned the same cursor twice.")
            cursor = following

    def page(self, cursor: Optional[str] = None) -> Mapping[str, Any]:
        """Return one page as the service returns it: `items`, `next_cursor`, `total`."""
        asked = {"limit": PAGE, **{k: v for k, v in self._query.items() if v is not None}, "cursor": cursor}
        page = self._fetch(asked)
        self._total = page.get("total")
        return page

    @property
    def total(self) -> int:
        """The number of objects."""
        if self._total is None:
            self.page()
        return self._total or 0

    def all(self) -> list[T]:
        """Return all objects."""
        return list(self)

    def first(self) -> Optional[T]:
        """Return the first object, or None."""
        return next(iter(self), None)
