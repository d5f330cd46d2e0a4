"""When a call is retried, and after how long."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Optional

from rowsmith.error import ConnectionFailed, ServiceError

_NOT_RETRYABLE: Final = frozenset({501})  # it would not be understood the next time either
_NOT_PROCESSED: Final = frozenset({429, 503})  # the service rejects these requests before it acts
_OTHER_CODES: Final = frozenset({"idempotency_in_progress"})  # the first attempt is still in progress


@dataclass(frozen=True)
class Retries:
    """Up to `times` retries after 429, 5xx and failed connections.

    The delay doubles from `first_seconds` to `most_seconds`, with a random variation of up to a quarter. A
    longer Retry-After of the server takes precedence. If it exceeds `longest_seconds`, the error is raised
    immediately with its `retry_after`, and the caller decides.
    """

    times: int = 4
    first_seconds: float = 0.5
    most_seconds: float = 8.0
    longest_seconds: float = 60.0
    sleep: Callable[[float], object] = time.sleep
    chance: Callable[[], float] = random.random

    def wait(self, attempt: int, error: ServiceError, repeatable: bool) -> Optional[float]:
        """Return the seconds until the next attempt after attempt number `attempt` (from 0) failed, or None
        for no retry.

        `repeatable`: the request is safe to repeat.
        """
        if attempt >= self.times or not self._is_retryable(error, repeatable):
            return None
        backoff = min(self.first_seconds * 2**attempt, self.most_seconds) * (0.75 + self.chance() / 2)
        asked = error.retry_after or 0.0
        return None if asked > self.longest_seconds else max(backoff, asked)

    def _is_retryable(self, error: ServiceError, repeatable: bool) -> bool:
        if isinstance(error, ConnectionFailed):
            return repeatable or not error.sent
        if error.code in _OTHER_CODES or error.status == 429:
            return True
        if error.status < 500 or error.status in _NOT_RETRYABLE:
            return False
        return repeatable or error.status in _NOT_PROCESSED


NONE: Final = Retries(times=0)
"""No retries."""
