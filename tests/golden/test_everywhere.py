"""Every type makes what it made in every format, far from the first row, and whatever the machine is set to.

Promise 12 of docs/promises.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.golden import everywhere
from tests.golden.test_golden import EVERY_KIND, ROOT, stored
from webapp.engine.types.registry import REGISTRY

HASHES = stored("everywhere")
# What numpy and Arrow found on this processor beyond the least that they are built for.
FASTER = " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))  # type: ignore[index]

SETTINGS: dict[str, tuple[list[str], dict[str, str]]] = {
    "hash seed, locale and time zone, without assertions, also in a forked process": (
        ["fork"],
        {
            "PYTHONHASHSEED": "4711", "LC_ALL": "C", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu",
            "PYTHONOPTIMIZE": "2", "PYTHONMALLOC": "malloc",
        },
    ),
    "UTF-8 off, one thread, a processor without AVX": (
        ["one-core"],
        {
            "PYTHONHASHSEED": "0", "PYTHONUTF8": "0", "LC_ALL": "POSIX", "TZ": "Pacific/Apia", "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1", "NPY_DISABLE_CPU_FEATURES": FASTER, "ARROW_USER_SIMD_LEVEL": "NONE",
        },
    ),
    "several threads at once, rows cut into other pieces": (["threads", "blocks"], {"OMP_NUM_THREADS": "7"}),
}  # fmt: skip


@pytest.mark.parametrize("engine", everywhere.cases.ENGINES)
def test_hashes_are_of_their_engine_and_vocabulary(engine):
    hashes = stored("everywhere", engine)
    assert (hashes["engine"], hashes["vocabulary"]) == (engine, everywhere.cases.vocabulary_of(engine).id)


def test_every_field_type_has_hashes_for_every_format_and_offset():
    assert set(HASHES["hashes"]) == {kind.name for kind in REGISTRY}
    labels = {*everywhere.cases.FORMATS, *everywhere.FAR}
    assert all(set(result) == labels for result in HASHES["hashes"].values())


@pytest.mark.parametrize(("engine", "kind"), EVERY_KIND, ids=lambda item: getattr(item, "name", item))
def test_a_field_type_makes_what_it_made_in_every_format_and_far_away(engine, kind):
    with everywhere.cases.under(engine):
        assert everywhere.kind_hashes(kind) == stored("everywhere", engine)["hashes"][kind.name]


@pytest.fixture(scope="module")
def wanted():
    """What the platform's settings must not change: the stored hashes."""
    far = {name: result["rows 8100 to 8299"] for name, result in HASHES["hashes"].items()}
    customers = stored("customers")["hashes"]
    return {"types": stored("types")["hashes"], "far": far, "customers": customers}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_machines_settings_change_nothing(name, wanted):
    words, more = SETTINGS[name]
    without = ("PYTHONHASHSEED", "LANG", "LC_ALL", "TZ", "PYTHONPATH")
    remaining = {key: value for key, value in os.environ.items() if key not in without}
    answer = subprocess.run(
        [sys.executable, "-m", "tests.golden.everywhere", *words],
        cwd=ROOT,
        env={**remaining, **more, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr.decode()
    result = json.loads(answer.stdout)
    assert result["types"] == wanted["types"]
    assert result["far"] == wanted["far"]
    assert result["customers"] == {label: wanted["customers"][label] for label in result["customers"]}


def test_the_switched_off_parts_of_the_processor_are_off():
    program = "import numpy, json; print(json.dumps(numpy.show_config(mode='dicts')['SIMD Extensions']))"
    env = {**os.environ, "NPY_DISABLE_CPU_FEATURES": FASTER}
    answer = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True)
    assert not json.loads(answer.stdout).get("found")


def test_the_other_pieces_are_other_pieces(monkeypatch):
    source = everywhere.cases.template_source(everywhere.cases.templates()["customers"])
    bound = everywhere.cases.rows.build_recipe(
        source, everywhere.cases.GenerateInput(count=50), current_time=everywhere.cases.NOW
    ).bound
    before = [len(block[0]) for block in bound.blocks(0, 2_000)]
    monkeypatch.setattr(everywhere.limits, "BLOCK_ROWS", 701)
    monkeypatch.setattr(everywhere.limits, "FIRST_BLOCK_ROWS", 23)
    again = everywhere.cases.rows.build_recipe(
        source, everywhere.cases.GenerateInput(count=50), current_time=everywhere.cases.NOW
    ).bound
    assert [len(block[0]) for block in again.blocks(0, 2_000)][:2] == [23, 701]
    assert before[:2] != [13, 701]
