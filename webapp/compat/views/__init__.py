"""`{origin}/compat`: the wire of the hosted service's published clients (PyPI `datamaker-py`, npm
`@automators/datamaker`), so that programs written for them run with only address and key changed.

A translation onto the same services and nothing else: no right is decided here, and nothing outside of this package
knows of it but the list of blueprints and the door in `blueprints.init_app`. The services of `compat` keep what the
clients have and the API proper has not. What the clients send is read from their sources, and what they are answered
fits the OpenAPI document in the npm package; `docs/guide/coming-from-datamaker.md` says what differs.

`routing` translates names and fields, finds out who calls and writes errors, and each other module has the calls of one
group.
"""

from __future__ import annotations

from webapp.compat.views import files, objects, people, plans, routing, sending, targets
from webapp.compat.views.routing import CompatMiddleware, bp

__all__ = [
    "CompatMiddleware",
    "bp",
    "files",
    "objects",
    "people",
    "plans",
    "routing",
    "sending",
    "targets",
]
