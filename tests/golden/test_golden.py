"""The same version, seed and now give the same bytes as when these hashes were written, in any process.

A hash that differs means that outputs made before can no longer be had again. If that is meant, see
`tests/golden/regenerate.py`.

Promise 12 of docs/promises.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.golden import cases
from webapp.engine.plan import ENGINE
from webapp.engine.types.registry import REGISTRY
from webapp.row_templates.services import compilation

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent


def stored(name: str) -> dict[str, Any]:
    return orjson.loads((FOLDER / f"{name}.json").read_bytes())


@pytest.mark.parametrize("name", ["types", *cases.templates()])
def test_hashes_are_of_this_engine_and_vocabulary(name):
    assert (stored(name)["engine"], stored(name)["vocabulary"]) == (ENGINE, compilation.vocabulary().id)


def test_every_field_type_has_a_hash():
    assert set(stored("types")["hashes"]) == {kind.name for kind in REGISTRY}


@pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.name)
def test_a_field_type_makes_what_it_made(kind):
    assert cases.type_hash(kind) == stored("types")["hashes"][kind.name]


@pytest.mark.parametrize("name", cases.templates())
def test_a_template_makes_what_it_made_in_every_format(name):
    assert dict(cases.template_hashes(name)) == stored(name)["hashes"]


def test_another_process_with_another_hash_seed_makes_the_same():
    program = "import sys; from tests.golden import cases; sys.stdout.write(repr(cases.type_hashes()))"
    other = {
        **os.environ,
        "PYTHONHASHSEED": "4711",
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C",
        "TZ": "Asia/Tokyo",
    }
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=other, capture_output=True, text=True, check=True
    )
    assert answer.stdout == repr(stored("types")["hashes"])
