"""The TypeScript package has the nouns of the Python package, and its methods, and the guide names them."""

from __future__ import annotations

import inspect
import re
import sys

import pytest

from tests.typescript.conftest import PACKAGE
from webapp.paths import ROOT

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))

import rowsmith

# What writes to the disk, reads it, or gives tables of other Python packages.
PYTHON_ALONE = {
    "exports": {"download"},
    "files": {"download"},
    "templates": {"arrow", "dataframe", "importFile", "save"},
}
CLASS = re.compile(r"^export class (\w+) extends Resource \{\n(.*?)^\}", re.M | re.S)
METHOD = re.compile(r"^  (?:async \*?)?(\w+)(?:<.*?>)?\(", re.M)

Methods = dict[str, set[str]]


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


@pytest.fixture(scope="module")
def python() -> Methods:
    with rowsmith.Api("rws_a_b", "http://127.0.0.1:1") as api:
        nouns = {name: type(variable) for name, variable in vars(api).items() if not name.startswith("_")}
    return {
        camel(name): {
            camel(item) for item, _ in inspect.getmembers(kind, inspect.isfunction) if item[0] != "_"
        }
        for name, kind in nouns.items()
    }


@pytest.fixture(scope="module")
def typescript() -> Methods:
    source = PACKAGE / "src"
    texts = [path.read_text("utf-8") for path in (source / "resources").glob("*.ts")]
    classes = {name: set(METHOD.findall(body)) for text in texts for name, body in CLASS.findall(text)}
    client = (source / "client.ts").read_text("utf-8")
    return {name: classes[kind] for name, kind in re.findall(r"^  readonly (\w+): (\w+);", client, re.M)}


def test_both_packages_have_the_same_nouns(python: Methods, typescript: Methods):
    assert set(typescript) == set(python)
    assert {"templates", "apiKeys", "service"} <= set(python)


def test_a_noun_has_the_same_methods_in_both(python: Methods, typescript: Methods):
    for noun, methods in python.items():
        assert typescript[noun] == methods - PYTHON_ALONE.get(noun, set()), noun


def test_the_guide_names_every_noun(typescript: Methods):
    guide = (ROOT / "docs" / "guide" / "typescript.md").read_text("utf-8")
    result = guide.split("The resources are ")[1].split(".")[0]
    assert set(re.findall(r"`(\w+)`", result)) == set(typescript)
