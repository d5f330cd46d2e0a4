"""Hooks for schemathesis (schemathesis.toml): wait and retry when the service asks for it.

Requests without credentials share the rate limit of their IP address, and a burst of them would get a 429 where a check
expects a 401. The hook repeats requests that were rate-limited.
"""

from __future__ import annotations

import time
from typing import Any

from schemathesis.transport.requests import RequestsTransport

_send = RequestsTransport.send
MOST_SECONDS = 61  # a minute's window, and the margin of its answer
MOST_TIMES = 5  # requests of other tests at the same address can use up the next window, too


def send(self: RequestsTransport, case: Any, **how: Any) -> Any:
    """As the tool sends, and again after the time that a 429 names."""
    answer = _send(self, case, **how)
    for _ in range(MOST_TIMES):
        after = answer.headers.get("retry-after")
        if answer.status_code != 429 or not after:
            break
        time.sleep(min(MOST_SECONDS, int(after[0])))
        answer = _send(self, case, **how)
    return answer


RequestsTransport.send = send
