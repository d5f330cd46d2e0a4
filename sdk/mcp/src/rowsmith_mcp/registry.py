"""The tool registry: what a tool is, and how its plain function becomes a tool of the protocol.

A tool's function takes a `Work` first and then the model's arguments, and returns a dictionary of the
declared shape. The registry adds the API client of the caller, converts errors to text, removes keys, and
limits the size of results.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from rowsmith import Api, ServiceError
from rowsmith_mcp.callers import ToolContext
from rowsmith_mcp.error_text import error_text
from rowsmith_mcp.truncation import TooLarge, compact, fit_to_limit, without_keys


@dataclass(frozen=True)
class Work:
    """The context of a tool: the API client of the caller, and the connection it came through."""

    api: Api
    context: ToolContext


Function = Callable[..., Mapping[str, Any]]


@dataclass(frozen=True)
class Tool:
    """A function with its effects. Tools with `writes` are not listed in read-only mode."""

    function: Function
    title: str
    writes: bool
    annotations: ToolAnnotations


class Registry:
    """Tools of one family, in their listed order."""

    def __init__(self) -> None:
        self.tools: list[Tool] = []

    def reads(
        self, title: str, *, outside: bool = False, writing: bool = False
    ) -> Callable[[Function], Function]:
        """Register a tool that changes nothing. `outside`: it accesses a target; `writing`: only useful for
        callers who may write."""
        hints = ToolAnnotations(
            title=title, read_only_hint=True, destructive_hint=False, open_world_hint=outside
        )
        return self._add(title, writing, hints)

    def makes(self, title: str) -> Callable[[Function], Function]:
        """Register a tool that adds something and deletes nothing."""
        hints = ToolAnnotations(
            title=title,
            read_only_hint=False,
            destructive_hint=False,
            idempotent_hint=False,
            open_world_hint=False,
        )
        return self._add(title, True, hints)

    def changes(
        self, title: str, *, outside: bool = False, idempotent: bool = False
    ) -> Callable[[Function], Function]:
        """Register a tool that changes or ends existing objects. `again`: repeating the call with the same
        arguments has no further effect."""
        hints = ToolAnnotations(
            title=title,
            read_only_hint=False,
            destructive_hint=True,
            idempotent_hint=idempotent,
            open_world_hint=outside,
        )
        return self._add(title, True, hints)

    def _add(self, title: str, writes: bool, hints: ToolAnnotations) -> Callable[[Function], Function]:
        def keep(function: Function) -> Function:
            self.tools.append(Tool(function, title, writes, hints))
            return function

        return keep


def offer(server: MCPServer[Any], tool: Tool, context: ToolContext) -> None:
    """Register a tool with the server."""
    signature = inspect.signature(tool.function, eval_str=True)
    _, *given = signature.parameters.values()

    @functools.wraps(tool.function)
    async def call(**arguments: Any) -> CallToolResult:
        def work() -> dict[str, Any]:
            with context.api() as api:
                return result_of(tool.function(Work(api, context), **arguments), context.caller.key)

        return result(await anyio.to_thread.run_sync(guarded(work, context), abandon_on_cancel=True))

    shape = Annotated[CallToolResult, signature.return_annotation]
    call.__signature__ = signature.replace(parameters=given, return_annotation=shape)  # type: ignore[attr-defined]
    del call.__wrapped__  # otherwise its signature would be used
    call.__annotations__ = {**{parameter.name: parameter.annotation for parameter in given}, "return": shape}
    server.add_tool(
        call,
        name=tool.function.__name__,
        title=tool.title,
        description=inspect.getdoc(tool.function),
        annotations=tool.annotations,
        structured_output=True,
    )


def guarded(work: Callable[[], Any], context: ToolContext) -> Callable[[], Any]:
    """Wrap a function: errors of the service become ToolError, and no text contains the key."""

    def guard() -> Any:
        try:
            return work()
        except ServiceError as error:
            raise ToolError(without_keys(error_text(error), context.caller.key)) from None
        except TooLarge:
            raise ToolError("The result is too large. Request less data.") from None

    return guard


def result_of(answer: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the result without keys and within the size limit."""
    return fit_to_limit(without_keys(answer, key))


def result(result: dict[str, Any]) -> CallToolResult:
    """Return the result twice, as the protocol requires: structured, and as text for clients that only read
    text."""
    return CallToolResult(
        content=[TextContent(type="text", text=compact(result))], structured_content=result, is_error=False
    )
