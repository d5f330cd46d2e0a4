"""Who may read the API reference and fetch the Postman collection: everybody."""

from __future__ import annotations

from tests.security.matrix import Case

CASES = [
    Case("GET", "/docs/api", "public"),
    Case("GET", "/docs/api/<slug>", "public", url="/docs/api/templates"),
    Case("GET", "/docs/api/<slug>/<name>", "public", url="/docs/api/templates/get-templates"),
    Case("GET", "/docs/postman.json", "public"),
]
