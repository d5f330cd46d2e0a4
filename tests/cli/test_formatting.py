"""`./rowsmith format`: pages, style sheets and scripts by the packages of tools/format."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from webapp.cli import assets, development
from webapp.cli.datadir import CliError
from webapp.paths import ROOT

BEFORE = {
    "page.html": '<p   class="a" >{% if  one %}<b>x</b>{%endif%}</p>\n',
    "style.css": "a{color:red}\n",
    "script.js": "const a = (x)=>{ return x }\n",
}
AFTER = {
    "page.html": '<p class="a">{% if  one %}<b>x</b>{% endif %}</p>\n',
    "style.css": "a {\n  color: red;\n}\n",
    "script.js": "const a = (x) => {\n  return x;\n};\n",
}


@pytest.fixture(scope="module")
def tools() -> Path:
    try:
        return development.ensure_installed()
    except CliError as error:
        pytest.skip(str(error))


def formatted(tools: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [assets.node_path(tools), str(tools / "format.js"), *options]
    files = "\n".join(str(path) for path in sorted(folder.iterdir()))
    return subprocess.run(command, input=files, text=True, capture_output=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in BEFORE.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_check_names_the_files_and_changes_nothing(tools, folder):
    done = formatted(tools, folder, "--check")
    assert done.returncode == 1
    assert all(f"would be formatted: {folder / name}" in done.stdout for name in BEFORE)
    assert contents(folder) == BEFORE


def test_files_are_formatted_once(tools, folder):
    assert formatted(tools, folder).returncode == 0
    assert contents(folder) == AFTER
    again = formatted(tools, folder, "--check")
    assert (again.returncode, again.stdout) == (0, "")


def test_a_template_with_an_error_is_named_and_the_others_are_formatted(tools, folder):
    (folder / "broken.html").write_text("<p><b></p>\n")
    done = formatted(tools, folder)
    assert done.returncode == 1
    assert f"cannot be parsed: {folder / 'broken.html'}" in done.stdout
    assert (folder / "style.css").read_text() == AFTER["style.css"]


def test_no_line_of_pages_style_sheets_and_scripts_is_longer_than_120_characters():
    files = [
        path
        for name in ("templates", "static")
        for path in (ROOT / name).rglob("*")
        if path.suffix in (".html", ".css", ".js") and "vendor" not in path.parts
    ]
    assert len(files) > 100
    lines = [(path, line) for path in files for line in path.read_text().splitlines()]
    assert [(str(path), line) for path, line in lines if len(line) > 120] == []
