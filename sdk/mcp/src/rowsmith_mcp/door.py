"""Who is calling, and their way into the service."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rowsmith import Api
from rowsmith.wire.address import parse
from rowsmith_mcp import bounds
from rowsmith_mcp.plans import Plans, owner_of
from rowsmith_mcp.settings import Settings


@dataclass(frozen=True)
class Caller:
    """A key, and the project it works in where that is not its own."""

    key: str
    project: str = ""

    def __repr__(self) -> str:
        return f"Caller(project={self.project!r})"  # a key is in no log


_present: contextvars.ContextVar[Caller] = contextvars.ContextVar("caller")


def caller_of(headers: Mapping[str, str]) -> Caller | None:
    """The caller of a request by its Authorization or X-API-Key; None where it has neither."""
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    key = token.strip() if scheme.lower() == "bearer" else ""
    key = key or headers.get("x-api-key", "").strip()
    return Caller(key, headers.get("x-project-id", "").strip()) if key else None


@dataclass(frozen=True)
class Door:
    """What tools act through: the service as the present caller, and the plans of all callers."""

    settings: Settings
    plans: Plans

    def enter(self, caller: Caller) -> contextvars.Token[Caller]:
        """From here on, in this context, `caller` is the one who acts."""
        return _present.set(caller)

    @property
    def caller(self) -> Caller:
        """Who acts. LookupError outside of a request."""
        return _present.get()

    @property
    def owner(self) -> str:
        """Whose plans count."""
        return owner_of(self.caller.key, self.caller.project)

    @property
    def url(self) -> str:
        """The address of the service, as people write it."""
        return str(parse(self.settings.url))

    @contextmanager
    def api(self) -> Iterator[Api]:
        """The service as the present caller; its connections end with it, since another call has another key."""
        made = Api(
            self.caller.key,
            self.settings.url,
            self.caller.project or None,
            retries=bounds.RETRIES,
            longest_wait=bounds.LONGEST_WAIT_SECONDS,
            timeout=bounds.CALL_SECONDS,
            total_timeout=bounds.TOTAL_SECONDS,
            ca_file=self.settings.ca_file or None,
        )
        with made:
            yield made
