"""Browsers find an icon also where no page names one."""

from __future__ import annotations


def test_the_icon_is_there_for_anybody(browser):
    found = browser().get("/favicon.ico")
    assert (found.status_code, found.mimetype) == (200, "image/svg+xml")
    assert found.data.startswith(b"<svg")
