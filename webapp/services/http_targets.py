"""What is said of one push, or of an endpoint, in place of the settings of a connection that speaks HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webapp.models import Endpoint

OF_A_PUSH: Final = (
    "push_mode", "wrapper_key", "batch_size", "retry", "request_template", "parallel", "rate_per_second",
)  # fmt: skip
"""Words of a push that are settings of connections which speak HTTP."""


def changed(endpoint: Endpoint | None, ask: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that stand in for the connection's: an endpoint's, and before them those of the push itself."""
    told = {name: ask[name] for name in OF_A_PUSH if ask.get(name) is not None}
    own = dict(endpoint.settings) if endpoint else {}
    if own.pop("operation", None):
        own.pop("request_template")  # the operation says it
    return {**own, **told}
