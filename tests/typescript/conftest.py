"""The TypeScript package: its types match the service's, and (in `live`) its own tests run against the service."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from webapp.paths import ROOT

PACKAGE = ROOT / "sdk" / "typescript"


@pytest.fixture(scope="session")
def generate() -> ModuleType:
    """The program that makes the package's types."""
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("typescript_generate", PACKAGE / "tools" / "generate.py")
    created = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(created)
    finally:
        sys.path[:] = before
    return created
