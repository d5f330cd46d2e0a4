"""Request metrics: each request is counted for /metrics, and logged if the log format is JSON.

The duration ends when the response starts: streams of rows and followed logs continue after that.
"""

from __future__ import annotations

import logging
import time
from typing import Final

from flask import Flask, Response, g, request

from webapp.config import Settings
from webapp.monitoring import metrics, process_log

log = logging.getLogger(process_log.REQUEST_LOGGER)

NO_ROUTE: Final = "none"  # label of requests without a route: their paths would be unbounded


def init_app(app: Flask, settings: Settings) -> None:
    """Measure each request, including all other handlers of the application."""
    if not settings.metrics and settings.log_format != "json":
        return
    app.before_request_funcs.setdefault(None, []).insert(0, start_timer)
    meter = None

    def measure(response: Response) -> Response:
        nonlocal meter
        seconds = time.perf_counter() - g.began
        rule = request.url_rule
        route = rule.rule if rule is not None else NO_ROUTE
        if settings.metrics:
            if meter is None:
                meter = metrics.meter()
            assert meter is not None
            meter.count_request(route, request.environ["REQUEST_METHOD"], str(response.status_code), seconds)
        if settings.log_format == "json":
            fields = {"route": route, "method": request.method, "status": response.status_code}
            log.info("%s %s", request.method, route, extra={**fields, "ms": round(seconds * 1000, 1)})
        return response

    app.after_request_funcs.setdefault(None, []).insert(0, measure)  # runs last


def start_timer() -> None:
    """Store the time at which the request began."""
    g.began = time.perf_counter()
