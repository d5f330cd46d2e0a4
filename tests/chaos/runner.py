"""A real runner for tests that strike it: its programs run in the real sandbox with BOX=real, else in none.

It uses the Python of the tests as its environment, so nothing is downloaded. LEASE_SECONDS replaces the limit of that
name.
"""

from __future__ import annotations

import os

from webapp import limits

for name in ("LEASE_SECONDS", "LEASE_RENEWAL_SECONDS", "RUN_DRAIN_SECONDS"):
    if name in os.environ:
        setattr(limits, name, float(os.environ[name]))

from jobs import worker
from jobs.scenarios import environments
from tests.jobs import running


def main() -> None:
    """Run what comes."""
    if os.environ.get("BOX") == "real":

        def offline(*_: object) -> None:
            raise environments.EnvironmentCreationError("tests reach no package index")

        environments.EnvironmentCache._ensure_common = offline  # skips installing our client
        environments.prepare_base = lambda _settings: None
    else:
        running.bare(setattr)
    worker.main(["--queues", "runs"])


if __name__ == "__main__":
    main()
