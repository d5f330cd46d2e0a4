"""Pushes that were planned: kept in memory for some minutes, so that exactly what was looked at is sent, once.

A plan belongs to the key it was made with. Its id is also the Idempotency-Key of the push: carried out twice it is
one push, answered twice.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

from rowsmith_mcp.bounds import PLAN_SECONDS, PLANS_OF_ALL, PLANS_OF_ONE

Kind = Literal["template", "dataset"]


class Unknown(Exception):
    """There is no such plan for this key: it never was, it is another's, or its time is over."""


@dataclass(frozen=True)
class Plan:
    """One push as it will be sent. `confirm` is the name that a production connection asks for, or empty."""

    id: str
    owner: str
    kind: Kind
    of_id: str
    version: int
    request: Mapping[str, Any]
    confirm: str
    until: float


def owner_of(key: str, project: str = "") -> str:
    """Whose plans they are, without keeping the key."""
    return hashlib.sha256(f"{key}\n{project}".encode()).hexdigest()


class Plans:
    """All plans of this process. Threads may share it. `clock` gives seconds that only go forward."""

    def __init__(self, clock: Callable[[], float], seconds: float = PLAN_SECONDS) -> None:
        self.seconds = seconds
        self._clock = clock
        self._plans: dict[str, Plan] = {}  # in the order they were made
        self._lock = threading.Lock()

    def keep(
        self, owner: str, kind: Kind, of_id: str, version: int, request: Mapping[str, Any], confirm: str = ""
    ) -> Plan:
        """Remember a push; the oldest of the same owner, then of all, give way."""
        now = self._clock()
        made = Plan(
            f"plan_{secrets.token_hex(12)}", owner, kind, of_id, version, deepcopy(dict(request)), confirm,
            now + self.seconds,
        )  # fmt: skip
        with self._lock:
            self._plans = {name: one for name, one in self._plans.items() if one.until > now}
            own = [name for name, one in self._plans.items() if one.owner == owner]
            for name in own[: max(len(own) - PLANS_OF_ONE + 1, 0)]:
                del self._plans[name]
            while len(self._plans) >= PLANS_OF_ALL:
                del self._plans[next(iter(self._plans))]
            self._plans[made.id] = made
        return made

    def find(self, owner: str, plan_id: str) -> Plan:
        """The plan. Unknown where this owner has none of that id."""
        with self._lock:
            found = self._plans.get(plan_id)
            if found is None or found.owner != owner or found.until <= self._clock():
                raise Unknown
            return found

    def __len__(self) -> int:
        return len(self._plans)
