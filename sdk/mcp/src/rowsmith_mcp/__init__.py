"""MCP server based on the Python SDK, with tools for templates, rows, pushes, scenarios and files."""

from rowsmith_mcp._version import __version__

__all__ = ["__version__"]
