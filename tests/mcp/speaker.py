"""A client of the protocol, run by the tests in the environment that has the package `mcp`.

It reads one line of JSON per request on standard input and writes one line per response. The first line selects the
server: {"command": [...], "env": {...}} or {"url": ..., "headers": {...}}, or one in this process, with a lifetime of
plans in seconds: {"service": ..., "key": ..., "plan_seconds": 0}.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


def transport(where: dict[str, Any]) -> Any:
    """The way to the server."""
    if "url" in where:
        return streamable_http_client(
            where["url"], http_client=httpx2.AsyncClient(headers=where["headers"], timeout=120)
        )
    if "service" in where:
        from rowsmith_mcp.plans import Plans
        from rowsmith_mcp.server import build
        from rowsmith_mcp.settings import Settings

        return build(Settings(where["service"], where["key"]), Plans(time.monotonic, where["plan_seconds"]))
    command, *arguments = where["command"]
    return stdio_client(StdioServerParameters(command=command, args=arguments, env=where["env"]))


async def answer(client: Client, asked: dict[str, Any]) -> Any:
    """The protocol's result as JSON."""
    operation = getattr(client, asked["do"])
    result = await operation(*asked.get("with", []))
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main() -> None:
    where = json.loads(sys.stdin.readline())
    async with Client(transport(where), mode=where.get("mode", "auto")) as client:
        print(json.dumps({"ready": True}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                reported = {"result": await answer(client, json.loads(line))}
            except MCPError as error:
                reported = {"error": {"code": error.error.code, "message": error.error.message}}
            print(json.dumps(reported), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
