"""Who speaks in most tests of this folder, to what, and the worker that does what they ordered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask import Flask

from jobs import export as job
from tests.cast import Cast, Program
from tests.views.speak import make
from webapp.extensions import db


@pytest.fixture
def edith(api: Callable[..., Program], cast: Cast) -> Program:
    """A program of Edith's, an editor."""
    return api(cast.edith)


@pytest.fixture
def path(edith: Program) -> str:
    """The address of a template."""
    return f"/templates/{make(edith)['id']}"


@pytest.fixture
def work(app: Flask) -> Callable[[str], None]:
    """Do an export as a worker would."""

    def do(export_id: str) -> None:
        with app.app_context():
            job.run(export_id)
            db.session.remove()

    return do
