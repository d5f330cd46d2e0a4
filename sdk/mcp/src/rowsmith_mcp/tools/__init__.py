"""The tools, one file per family. `ALL` contains all of them in their listed order."""

from __future__ import annotations

from rowsmith_mcp.registry import Tool
from rowsmith_mcp.tools import catalogue, datasets, files, pushes, rows, runs, scenarios, targets, templates

FAMILIES = (catalogue, templates, rows, datasets, targets, pushes, scenarios, runs, files)
ALL: list[Tool] = [tool for family in FAMILIES for tool in family.registry.tools]
