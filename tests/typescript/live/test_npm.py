"""The package's own tests, by Node's runner, with every test of them run against a running service."""

from __future__ import annotations

import re

from tests.typescript.live.conftest import Package


def test_the_package_is_built_and_all_its_tests_pass(package: Package):
    done = package.npm("test")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    counts = dict(re.findall(r"^. (pass|fail|skipped|cancelled) (\d+)$", done.stdout, re.M))
    assert int(counts["pass"]) >= 50
    assert (counts["fail"], counts["skipped"], counts["cancelled"]) == ("0", "0", "0"), done.stdout[-8000:]
