"""Loaded by schemathesis (schemathesis.toml): waits where the service says so.

The requests that the tool sends without a credential share their address's rate, and a burst of them would be answered
429 where a check looks for 401. Whoever is told to come again later does.
"""

from __future__ import annotations

import time
from typing import Any

from schemathesis.transport.requests import RequestsTransport

_send = RequestsTransport.send
MOST_SECONDS = 61  # a minute's window, and the margin of its answer


def send(self: RequestsTransport, case: Any, **how: Any) -> Any:
    """As the tool sends, and once more after the time that a 429 names."""
    answer = _send(self, case, **how)
    if answer.status_code == 429 and (after := answer.headers.get("retry-after")):
        time.sleep(min(MOST_SECONDS, int(after[0])))
        answer = _send(self, case, **how)
    return answer


RequestsTransport.send = send
