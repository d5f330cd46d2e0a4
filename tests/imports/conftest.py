"""Who imports in these tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cast import Cast, Program


@pytest.fixture
def edith(api: Callable[..., Program], cast: Cast) -> Program:
    """A program of Edith's, an editor."""
    return api(cast.edith)
