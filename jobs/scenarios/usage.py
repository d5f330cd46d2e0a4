"""What a run takes while it runs: the most memory, processor time, and points of a chart that never grow too many."""

from __future__ import annotations

from typing import Any

from jobs.sandbox import Usage
from webapp import limits


class Chart:
    """Measures, thinned out: when they become too many every second one goes, and fewer are taken from then on."""

    def __init__(self) -> None:
        self.max_memory = 0
        self.cpu_ms = 0
        self._points: list[list[float]] = []
        self._every = limits.RUN_USAGE_SECONDS
        self._next = 0.0

    def measure(self, seconds: float, usage: Usage) -> None:
        """Take in what is used so many seconds after the start."""
        self.max_memory = max(self.max_memory, usage.max_memory_bytes, usage.memory_bytes)
        self.cpu_ms = max(self.cpu_ms, usage.cpu_ms)
        if seconds < self._next:
            return
        self._points.append([round(seconds, 2), usage.memory_bytes, usage.cpu_ms])
        self._next = seconds + self._every
        if len(self._points) > limits.RUN_USAGE_POINTS:
            self._points = self._points[::2]
            self._every *= 2

    def columns(self) -> dict[str, Any]:
        """As a run's row has it."""
        return {"usage": [*self._points], "max_rss_bytes": self.max_memory, "cpu_ms": self.cpu_ms}
