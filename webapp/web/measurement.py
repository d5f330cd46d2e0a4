"""Each request measured: counted for /metrics, and told in the log where that is JSON. Without either nothing is done.

Measured is the time until an answer begins: a stream of rows and a followed log go on after that.
"""

from __future__ import annotations

import logging
import time
from typing import Final

from flask import Flask, Response, g, request

from webapp.config import Settings
from webapp.operations import metrics, process_log

log = logging.getLogger(process_log.REQUESTS)

NO_ROUTE: Final = "none"  # of addresses that lead nowhere: whatever was asked for is no label


def init_app(app: Flask, settings: Settings) -> None:
    """Hang it around everything else."""
    if not settings.metrics and settings.log_format != "json":
        return
    app.before_request_funcs.setdefault(None, []).insert(0, begin)
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
            meter.request(route, request.environ["REQUEST_METHOD"], str(response.status_code), seconds)
        if settings.log_format == "json":
            told = {"route": route, "method": request.method, "status": response.status_code}
            log.info("%s %s", request.method, route, extra={**told, "ms": round(seconds * 1000, 1)})
        return response

    app.after_request_funcs.setdefault(None, []).insert(0, measure)  # runs last


def begin() -> None:
    """Start the clock."""
    g.began = time.perf_counter()
