"""The common libraries from the real package index, by the lock that is released; a program that requires more."""

from __future__ import annotations

import subprocess

import pytest

from jobs.scenarios.environments import EnvironmentCache, EnvironmentCreationError
from webapp.scenarios.services import requirements
from webapp.scenarios.services.scenarios import syntax_fault

IMPORTS = "import requests, httpx, pandas, faker, yaml, dateutil, rowsmith\n"


@pytest.fixture(scope="module")
def maker(tmp_path_factory):
    return EnvironmentCache(tmp_path_factory.mktemp("environments"))


@pytest.fixture(scope="module")
def common(maker):
    try:
        return maker.ensure(requirements.common_lock(), write_line=print)
    except EnvironmentCreationError as error:
        if error.index_unreachable:
            pytest.skip(f"no package index: {error.reason}")
        raise


def run(place, code):
    done = subprocess.run(
        [place / "bin" / "python", "-c", code], capture_output=True, text=True, env={}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_program_has_the_common_libraries_and_our_client(common):
    code = IMPORTS + "print(pandas.DataFrame({'a': [1, 2]}).a.sum(), faker.Faker().name() != '')"
    assert syntax_fault(code) is None
    assert run(common, code) == "3 True"


def test_the_lock_names_every_common_library_with_hashes_and_no_address():
    lock = requirements.common_lock()
    assert set(requirements.packages_in(lock)) >= set(requirements.COMMON)
    assert "://" not in lock
    assert lock.count("--hash=sha256:") >= len(requirements.packages_in(lock))


def test_a_program_that_requires_more_keeps_the_common_versions(app, maker, common):
    with app.app_context():
        found = requirements.resolve("# requirements: tenacity\n")
    released, own = requirements.packages_in(requirements.common_lock()), requirements.packages_in(found.lock)
    assert {name: own[name] for name in released if name in own} | {"numpy": None} == {
        name: version for name, version in released.items() if name in own
    } | {"numpy": None}
    place = maker.ensure(found.lock, found.environment)
    assert run(place, IMPORTS + "import tenacity; print(tenacity.retry is not None)") == "True"
