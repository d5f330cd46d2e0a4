"""The same version, seed and now give the same bytes as when these hashes were written, in any process.

A hash that differs means that outputs made before can no longer be had again. If that is meant, see
`tests/golden/regenerate.py`.

Promise 12 of docs/promises.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.golden import cases
from webapp.engine import ENGINE, ENGINES
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import REGISTRY

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent


NEWEST = max(cases.ENGINES)


def folder_of(engine: int) -> Path:
    """Where the hashes of an engine are. Those of an engine are never edited once it is released."""
    return FOLDER if engine == 1 else FOLDER / f"engine-{engine}"


def stored(name: str, engine: int = NEWEST) -> dict[str, Any]:
    return orjson.loads((folder_of(engine) / f"{name}.json").read_bytes())


def kinds_of(engine: int) -> list[type[FieldType]]:
    """The field types that an engine's hashes name."""
    hashed = stored("types", engine)["hashes"]
    return [kind for kind in REGISTRY if kind.name in hashed]


EVERY_KIND = [(engine, kind) for engine in cases.ENGINES for kind in kinds_of(engine)]
EVERY_TEMPLATE = [(engine, name) for engine in cases.ENGINES for name in cases.templates()]


@pytest.mark.parametrize("engine", cases.ENGINES)
@pytest.mark.parametrize("name", ["types", *cases.templates()])
def test_hashes_are_of_their_engine_and_vocabulary(engine, name):
    words = cases.vocabulary_of(engine)
    hashes = stored(name, engine)
    assert (hashes["engine"], hashes["vocabulary"]) == (engine, words.id) == (words.engine, words.id)


def test_the_newest_hashes_are_of_this_engine():
    assert NEWEST == ENGINE == max(ENGINES)
    assert set(cases.ENGINES) == set(ENGINES)


def test_every_field_type_has_a_hash():
    assert set(stored("types")["hashes"]) == {kind.name for kind in REGISTRY}


@pytest.mark.parametrize(("engine", "kind"), EVERY_KIND, ids=lambda item: getattr(item, "name", item))
def test_a_field_type_makes_what_it_made(engine, kind):
    with cases.under(engine):
        assert cases.type_hash(kind) == stored("types", engine)["hashes"][kind.name]


@pytest.mark.parametrize(("engine", "name"), EVERY_TEMPLATE)
def test_a_template_makes_what_it_made_in_every_format(engine, name):
    with cases.under(engine):
        assert dict(cases.template_hashes(name)) == stored(name, engine)["hashes"]
