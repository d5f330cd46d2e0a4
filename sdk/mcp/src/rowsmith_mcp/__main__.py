"""Entry point of `rowsmith-mcp` and `python -m rowsmith_mcp`."""

from __future__ import annotations

import sys

from rowsmith import ServiceError
from rowsmith.wire.address import parse
from rowsmith_mcp import settings


def main() -> int:
    """Run the server. Returns 2 for invalid settings, with the reason on standard error."""
    try:
        given = settings.read(sys.argv[1:])
        address = parse(given.url)
    except (settings.Wrong, ServiceError) as error:
        print(f"rowsmith-mcp: {getattr(error, 'message', '') or error}", file=sys.stderr)
        return 2
    if address.scheme == "http" and not address.loopback:
        print(f"rowsmith-mcp: {address} would send the key unencrypted. Use https.", file=sys.stderr)
        return 2
    if given.http:
        from rowsmith_mcp import web

        scheme = "https" if given.tls_cert else "http"
        print(f"rowsmith-mcp: {scheme}://{given.host}:{given.port}{web.PATH}", file=sys.stderr, flush=True)
        web.serve(given)
        return 0
    from rowsmith_mcp.server import build

    build(given).run("stdio")
    return 0


if __name__ == "__main__":
    sys.exit(main())
