"""Objects as the service returns them: dictionaries that keep the headers of their response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional, Union


class Record(dict[str, Any]):
    """A dictionary. Pass it to `if_match` to use its `etag`. `replayed` says that the response repeats an
    earlier one."""

    def __init__(
        self, data: Mapping[str, Any], headers: Optional[Mapping[str, str]] = None, status: int = 200
    ) -> None:
        super().__init__(data)
        self.headers: dict[str, str] = {name.lower(): value for name, value in (headers or {}).items()}
        self.status = status

    @property
    def etag(self) -> Optional[str]:
        """The ETag of the object, if the response had one."""
        return self.headers.get("etag")

    @property
    def request_id(self) -> Optional[str]:
        """The ID of the request."""
        return self.headers.get("x-request-id")

    @property
    def replayed(self) -> bool:
        """Whether the request had already been processed with the same Idempotency-Key."""
        return self.headers.get("idempotent-replayed") == "true"


IfMatch = Union[str, Mapping[str, Any], None]
"""An ETag, or an object as it was read: act only if the object has not changed."""


def if_match(given: IfMatch) -> dict[str, str]:
    """Return the If-Match header. Raise ValueError for an object without an ETag."""
    if given is None:
        return {}
    tag = given if isinstance(given, str) else getattr(given, "etag", None)
    if not tag:
        raise ValueError("This object has no ETag. Read it with get() first.")
    return {"If-Match": tag}
