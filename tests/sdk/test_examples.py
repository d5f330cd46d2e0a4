"""The examples of the README and the guide run unchanged against the application with the demo workspace, as for a new
user."""

from __future__ import annotations

import os
import re

import pytest

from jobs.pushes import push as job
from tests.sdk.conftest import PACKAGE
from webapp.extensions import db
from webapp.paths import ROOT
from webapp.pushes.views import exports

PAGES = {"README": PACKAGE / "README.md", "guide": ROOT / "docs" / "guide" / "python.md"}


def examples(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGES[page].read_text("utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_run_one_after_the_other(page, client, demo_shop, monkeypatch, tmp_path, capsys):
    def work(push_id: str) -> None:
        job.run(push_id)
        db.session.remove()

    monkeypatch.setattr(exports, "wait_until_finished", work)  # a worker is there
    monkeypatch.chdir(tmp_path)
    found = examples(page)
    assert len(found) >= 4
    names: dict = {"__name__": "example"}
    for number, example in enumerate(found, 1):
        exec(compile(example, f"{page}, example {number}", "exec"), names)
    output = capsys.readouterr().out
    assert "completed" in output
    assert {"README": "'delivered': 100, 'failed': 0", "guide": "orders completed 200"}[page] in output
    names["api"].close()
    assert os.path.getsize(tmp_path / {"README": "customers.csv", "guide": "accounts.csv"}[page]) > 1000
