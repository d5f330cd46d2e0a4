"""Connections to the outside: one file for each kind, drivers imported where they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from webapp.connectors.base import Connector

# Every kind of connection, by its wire name, in the order people are shown.
KINDS: Final[Mapping[str, type[Connector]]] = MappingProxyType({})
