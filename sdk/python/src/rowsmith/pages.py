"""Lists that fetch their own pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, Optional, TypeVar

T = TypeVar("T")
PAGE: Final = 100
"""Objects of one page: as many as the service gives."""

Fetch = Callable[[Mapping[str, object]], Mapping[str, Any]]


class Pages(Generic[T]):
    """All objects of a list, page after page, while they are iterated; each iteration begins anew.

    `total` asks for the first page if none was read yet; `all()` is a plain list.
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
                raise RuntimeError("The service gave the same cursor twice.")
            cursor = following

    def page(self, cursor: Optional[str] = None) -> Mapping[str, Any]:
        """One page as the service answers it: `items`, `next_cursor`, `total`."""
        asked = {"limit": PAGE, **{k: v for k, v in self._query.items() if v is not None}, "cursor": cursor}
        page = self._fetch(asked)
        self._total = page.get("total")
        return page

    @property
    def total(self) -> int:
        """How many there are."""
        if self._total is None:
            self.page()
        return self._total or 0

    def all(self) -> list[T]:
        """All of them."""
        return list(self)

    def first(self) -> Optional[T]:
        """The first, or None."""
        return next(iter(self), None)
