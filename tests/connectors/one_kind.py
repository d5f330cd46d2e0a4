"""A `kind` fixture for a single kind, for its special features; `session` is defined in the folder's conftest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.conftest import missing
from tests.connectors.kinds import Kind


def only(wanted: type[Kind]) -> Any:
    """To be assigned to `kind` in a test module."""

    @pytest.fixture(name="kind")
    def made(tmp_path: Path) -> Iterator[Kind]:
        if reason := missing(wanted):
            pytest.skip(reason)
        kind = wanted(tmp_path)
        kind.start()
        try:
            yield kind
        finally:
            kind.stop()

    return made
