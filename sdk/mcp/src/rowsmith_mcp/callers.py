"""The caller and their API client."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rowsmith import Api
from rowsmith.wire.address import parse
from rowsmith_mcp import limits
from rowsmith_mcp.plans import Plans, owner_of
from rowsmith_mcp.settings import Settings


@dataclass(frozen=True)
class Caller:
    """A key, and its project if it is not the default one."""

    key: str
    project: str = ""

    def __repr__(self) -> str:
        return f"Caller(project={self.project!r})"  # the key never appears in a log


_present: contextvars.ContextVar[Caller] = contextvars.ContextVar("caller")


def caller_of(headers: Mapping[str, str]) -> Caller | None:
    """Return the caller of a request from its Authorization or X-API-Key header, or None without either."""
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    key = token.strip() if scheme.lower() == "bearer" else ""
    key = key or headers.get("x-api-key", "").strip()
    return Caller(key, headers.get("x-project-id", "").strip()) if key else None


@dataclass(frozen=True)
class ToolContext:
    """The context of tools: the API client of the current caller, and the plans of all callers."""

    settings: Settings
    plans: Plans

    def enter(self, caller: Caller) -> contextvars.Token[Caller]:
        """Set the caller for this context."""
        return _present.set(caller)

    @property
    def caller(self) -> Caller:
        """Return the current caller. Raises LookupError outside of a request."""
        return _present.get()

    @property
    def owner(self) -> str:
        """Return the owner of the plans."""
        return owner_of(self.caller.key, self.caller.project)

    @property
    def url(self) -> str:
        """The address of the service for display."""
        return str(parse(self.settings.url))

    @contextmanager
    def api(self) -> Iterator[Api]:
        """Return an API client for the current caller. Its connections are closed after the call, since
        another call has another key."""
        result = Api(
            self.caller.key,
            self.settings.url,
            self.caller.project or None,
            retries=limits.RETRIES,
            longest_wait=limits.LONGEST_WAIT_SECONDS,
            timeout=limits.CALL_SECONDS,
            total_timeout=limits.TOTAL_SECONDS,
            ca_file=self.settings.ca_file or None,
        )
        with result:
            yield result
