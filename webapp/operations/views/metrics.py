"""/metrics, for Prometheus: there where ROWSMITH_METRICS says so, for those who may."""

from __future__ import annotations

import hmac
from typing import Final

from flask import Blueprint, Response, current_app, g, request

from webapp.config import Settings
from webapp.errors import ApiError
from webapp.monitoring import metrics as operations_metrics
from webapp.net import addresses
from webapp.web.routing import route

bp = Blueprint("metrics", __name__)
FORMAT: Final = "text/plain; version=0.0.4; charset=utf-8"


@route(bp, "/metrics", scope="public", counted=False, people=False, hidden=True)
def metrics() -> Response:
    """Metrics of all processes, and the current state.

    With ROWSMITH_METRICS_TOKEN, that token is required; otherwise from ROWSMITH_METRICS_NETWORKS, or from this machine.
    Programs of runs need the token in any case.
    """
    settings: Settings = current_app.config["SETTINGS"]
    if not settings.metrics:
        raise ApiError("not_found", "Nothing is counted here: the operator has not set ROWSMITH_METRICS.")
    _admit(settings)
    return Response(operations_metrics.text(), content_type=FORMAT)


def _admit(settings: Settings) -> None:
    """Check access. Errors: unauthenticated for a wrong or missing token, forbidden for an address without
    permission."""
    if settings.metrics_token:
        scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
        right = hmac.compare_digest(sent.strip().encode(), settings.metrics_token.encode())
        if scheme.casefold() == "bearer" and right:
            return
        raise ApiError(
            "unauthenticated",
            "Send the token of ROWSMITH_METRICS_TOKEN: `Authorization: Bearer <token>`.",
            {"reason": "unknown" if scheme else "missing"},
            headers={"WWW-Authenticate": 'Bearer realm="rowsmith"'},
        )
    origin: addresses.Origin = request.environ["rowsmith.origin"]
    if settings.metrics_networks:
        if addresses.Proxies(settings.metrics_networks).trusts("" if g.address == "unix" else g.address):
            return
    # A proxy's word on loopback stands for strangers: where there is one, token or networks must say who may. Programs
    # of runs that call ::1 cannot be distinguished from others there, so ::1 has to be in ROWSMITH_METRICS_NETWORKS.
    elif _is_this_machine(origin) and not settings.trusted_proxies:
        return
    raise ApiError(
        "forbidden",
        "This address may not read /metrics: the operator sets ROWSMITH_METRICS_TOKEN or ROWSMITH_METRICS_NETWORKS.",
        {"needs": "operator"},
    )


def _is_this_machine(origin: addresses.Origin) -> bool:
    known = addresses.is_loopback(origin.address) and not addresses.is_run(origin.address)
    return known and origin.address != "::1" and not origin.forwarded
