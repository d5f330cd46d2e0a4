"""Promise 21: the running service conforms to `/openapi.json`, checked with generated requests.

Ten minutes of it, as promised; FUZZ_SECONDS makes it shorter or longer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import ROOT, Up, rowsmith

SECONDS = int(os.environ.get("FUZZ_SECONDS", "600"))
# Streams that wait for events, and what would take the key or the plan away under the run.
LEFT_OUT = r"^/(workspace|api-keys|.*/events)"


def test_promise_21_schemathesis_finds_nothing_in_ten_minutes(up: Up):
    key = up.printed(r"(rws_\S+)")
    data = str(up.data)
    # Few rows per request: the tool parses every response, and ten million rows of JSON would take minutes.
    own = ["--requests-per-minute", "60000", "--rows-per-generation", "1000"]
    assert rowsmith("plan", "My workspace", "enterprise", *own, "--data-dir", data).returncode == 0
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"{up.url}/openapi.json"]
    # Every check it has is on without being named; `--checks all` would turn on again what schemathesis.toml turns off.
    command += ["-H", f"Authorization: Bearer {key}", "--no-color", "--max-examples", "100"]
    # One worker: with several, CPython 3.11's own parser can fail under the tool ("recursion depth mismatch").
    command += ["--workers", "1", "--max-time", str(SECONDS), "--exclude-path-regex", LEFT_OUT]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS + 300, check=False
    )
    # What it sends is long; the first words of each line say what was wrong.
    output = "\n".join(line[:200] for line in ran.stdout.splitlines()[-400:])
    assert ran.returncode == 0, output
    assert "Traceback" not in (up.data / "logs" / "web.log").read_text()
