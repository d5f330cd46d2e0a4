"""Who may read the documentation: everybody."""

from __future__ import annotations

from tests.security.matrix import Case

CASES = [
    Case("GET", "/docs", "public"),
    Case("GET", "/docs.md", "public"),
    Case("GET", "/docs/search", "public", url="/docs/search?q=mail"),
    Case("GET", "/docs/field-types", "public"),
    Case("GET", "/docs/img/<name>", "public", url="/docs/img/builder-wide-light.png"),
    Case("GET", "/docs/<path:address>", "public", url="/docs/guide/relations"),
    Case("GET", "/llms.txt", "public"),
]
