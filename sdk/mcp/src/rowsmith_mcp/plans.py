"""Planned pushes: kept in memory for some minutes, so that exactly the reviewed rows are sent, once.

A plan belongs to the key that created it. Its ID is also the Idempotency-Key of the push: executing it twice
results in one push with the same response.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

from rowsmith_mcp.limits import PLAN_SECONDS, PLANS_OF_ALL, PLANS_OF_ONE

Kind = Literal["template", "dataset"]


class Unknown(Exception):
    """This key has no such plan: it never existed, belongs to another key, or has expired."""


@dataclass(frozen=True)
class Plan:
    """A push as it will be sent. `confirm` is the name that a production connection requires, or empty."""

    id: str
    owner: str
    kind: Kind
    of_id: str
    version: int
    request: Mapping[str, Any]
    confirm: str
    until: float


def owner_of(key: str, project: str = "") -> str:
    """Return an identifier of the key that does not reveal it."""
    return hashlib.sha256(f"{key}\n{project}".encode()).hexdigest()


class Plans:
    """All plans of this process. Threads may share it. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float], seconds: float = PLAN_SECONDS) -> None:
        self.seconds = seconds
        self._clock = clock
        self._plans: dict[str, Plan] = {}  # in order of creation
        self._lock = threading.Lock()

    def keep(
        self, owner: str, kind: Kind, of_id: str, version: int, request: Mapping[str, Any], confirm: str = ""
    ) -> Plan:
        """Store a push. The oldest plans of the same owner are dropped first, then the oldest of all."""
        now = self._clock()
        result = Plan(
            f"plan_{secrets.token_hex(12)}", owner, kind, of_id, version, deepcopy(dict(request)), confirm,
            now + self.seconds,
        )  # fmt: skip
        with self._lock:
            self._plans = {name: plan for name, plan in self._plans.items() if plan.until > now}
            own = [name for name, plan in self._plans.items() if plan.owner == owner]
            for name in own[: max(len(own) - PLANS_OF_ONE + 1, 0)]:
                del self._plans[name]
            while len(self._plans) >= PLANS_OF_ALL:
                del self._plans[next(iter(self._plans))]
            self._plans[result.id] = result
        return result

    def find(self, owner: str, plan_id: str) -> Plan:
        """Return the plan. Raises Unknown if this owner has no plan with that ID."""
        with self._lock:
            found = self._plans.get(plan_id)
            if found is None or found.owner != owner or found.until <= self._clock():
                raise Unknown
            return found

    def __len__(self) -> int:
        return len(self._plans)
