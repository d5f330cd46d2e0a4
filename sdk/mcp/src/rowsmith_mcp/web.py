"""Streamable HTTP. Requests without a key, and requests from web pages of other sites, are rejected."""

from __future__ import annotations

from typing import Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from rowsmith_mcp.callers import caller_of
from rowsmith_mcp.limits import MAX_BODY_BYTES
from rowsmith_mcp.server import build
from rowsmith_mcp.settings import LOOPBACK, Settings

PATH = "/mcp"


class RequireKey:
    """Respond with 401 to requests without a key. The service checks the key at each call."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or caller_of(Headers(scope=scope)) is not None:
            await self._app(scope, receive, send)
            return
        text = "An API key of Rowsmith is required: Authorization: Bearer <key>, or X-API-Key: <key>."
        body = {"error": {"code": "unauthenticated", "message": text, "details": {"reason": "missing"}}}
        await JSONResponse(body, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)


def guard(settings: Settings) -> TransportSecuritySettings:
    """Return the allowed Host and Origin headers (against DNS rebinding): loopback and the configured ones."""
    names = [f"[{name}]" if ":" in name else name for name in LOOPBACK] if settings.host in LOOPBACK else []
    hosts = [*names, *(f"{name}:*" for name in names)]
    for name in settings.hosts:
        hosts += [name, f"{name}:*"] if ":" not in name.rpartition("]")[2] else [name]
    schemes = [f"http://{name}" for name in names]
    origins = [*schemes, *(f"{scheme}:*" for scheme in schemes), *settings.origins]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins
    )


def application(settings: Settings) -> ASGIApp:
    """Return the application. There are no sessions: each request is independent and carries its own key."""
    inner: Any = build(settings).streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        json_response=True,
        transport_security=guard(settings),
        max_request_body_size=MAX_BODY_BYTES,
        host=settings.host,
    )
    inner.add_middleware(RequireKey)
    return inner


def serve(settings: Settings) -> None:
    """Serve until stopped."""
    uvicorn.run(
        application(settings),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
        proxy_headers=False,
    )
