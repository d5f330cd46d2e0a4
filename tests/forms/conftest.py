from __future__ import annotations

import pytest
from flask import Flask

from tests.conftest import settings_for
from webapp import create_app


@pytest.fixture(scope="module")
def drawing(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """An application to draw templates with: it reaches neither a database nor a Redis."""
    folder = tmp_path_factory.mktemp("drawing")
    return create_app(settings_for(f"sqlite:///{folder}/none.db", "redis://127.0.0.1:1/0", folder))
