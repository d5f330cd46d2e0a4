"""Every line of the documentation that installs one of our packages names a file or a folder: none is on a registry."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from webapp.paths import ROOT

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "sdk/*/README.md")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)
COMMAND = re.compile(r"(?:^|[\s`/])(?:pip3?|npm(?: --prefix \S+)?) (?:install|i|ci)\b[^`\n#]*")
OURS = re.compile(r"(?:rowsmith(?:[-_](?:server|mcp|spark))?|@rowsmith/sdk)(?:\[.*\]|[=<>@].*)?")
CHECKOUT = "../rowsmith/"


def lines() -> list[tuple[Path, str]]:
    return [
        (page, found[0].strip("`/ \n"))
        for page in PAGES
        for found in COMMAND.finditer(page.read_text("utf-8"))
    ]


@pytest.mark.parametrize(("page", "line"), lines(), ids=lambda value: str(getattr(value, "name", value)))
def test_an_install_line_names_no_package_that_is_not_on_a_registry(page, line):
    words = shlex.split(line)
    assert not [word for word in words if OURS.fullmatch(word)]
    folders = [word for word in words if word.startswith((".", CHECKOUT)) and not word.startswith(".venv/")]
    for folder in folders:
        assert (ROOT / folder.removeprefix(CHECKOUT)).is_dir(), folder


def test_every_package_has_an_install_line():
    installed = {Path(word).name for _, line in lines() for word in shlex.split(line) if "sdk/" in word}
    assert installed == {path.name for path in (ROOT / "sdk").iterdir() if (path / "README.md").exists()}


@pytest.mark.parametrize(
    "line", ["pip install rowsmith", "npm install @rowsmith/sdk", "pip install 'rowsmith-server[db2]'"]
)
def test_a_line_that_names_a_package_by_its_name_is_found(line):
    (found,) = COMMAND.finditer(line)
    assert [word for word in shlex.split(found[0]) if OURS.fullmatch(word)]


def test_code_samples_only_install_packages_from_a_registry():
    sources = [
        *(ROOT / "webapp").rglob("*.py"),
        *(ROOT / "templates").rglob("*.html"),
        *(ROOT / "sdk").glob("*/src/**/*.py"),
    ]
    assert sources
    named = re.compile(r"(?:pip|npm) (?:install|i) ['\"]?(?:rowsmith|@rowsmith)")
    assert [str(path) for path in sources if named.search(path.read_text("utf-8"))] == []
