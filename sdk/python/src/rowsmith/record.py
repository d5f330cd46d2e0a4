"""Objects as the service answers them: dictionaries that remember the head of their answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional, Union


class Record(dict[str, Any]):
    """A dictionary. `etag` is what `if_match` takes, `replayed` says that the answer is an earlier one's."""

    def __init__(
        self, data: Mapping[str, Any], headers: Optional[Mapping[str, str]] = None, status: int = 200
    ) -> None:
        super().__init__(data)
        self.headers: dict[str, str] = {name.lower(): value for name, value in (headers or {}).items()}
        self.status = status

    @property
    def etag(self) -> Optional[str]:
        """The state's name, where the answer had one."""
        return self.headers.get("etag")

    @property
    def request_id(self) -> Optional[str]:
        """The id of the request."""
        return self.headers.get("x-request-id")

    @property
    def replayed(self) -> bool:
        """Whether the request had been carried out before, under the same Idempotency-Key."""
        return self.headers.get("idempotent-replayed") == "true"


IfMatch = Union[str, Mapping[str, Any], None]
"""An ETag, or an object as it was read: act only if it is still so."""


def if_match(given: IfMatch) -> dict[str, str]:
    """The header; ValueError for an object that came without an ETag."""
    if given is None:
        return {}
    tag = given if isinstance(given, str) else getattr(given, "etag", None)
    if not tag:
        raise ValueError("This object came without an ETag; read it with get() first.")
    return {"If-Match": tag}
