"""MCP server over the Python SDK: what an agent does with templates, rows, pushes, scenarios and files."""

from rowsmith_mcp._version import __version__

__all__ = ["__version__"]
