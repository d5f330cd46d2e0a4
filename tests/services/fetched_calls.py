"""What the tests of values of an API share: a target, a connection to it, and a field of type api_response."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.echo_target import Answer, EchoTarget
from tests.views.speak import refused
from tests.views.targets import connection

QUICK = {"backoff_seconds": [0, 0, 0]}
CODES = {"name": "code", "type": "list_sequential", "options": {"values": ["a", "b", "a"]}}


@pytest.fixture
def target():
    with EchoTarget() as result:
        result.on(
            "/api/codes/*",
            lambda seen: Answer(200, {"name": seen.path[-1:].upper(), "path": seen.path, "n": 7}),
        )
        yield result


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def rest(app, cast, target):
    """The id of a new connection to the target."""

    def do(**settings: Any) -> str:
        more = {name: settings.pop(name) for name in ("read_only",) if name in settings}
        return connection(
            app, cast, "rest", {"base_url": target.url("/api"), "retry": QUICK, **settings}, **more
        )

    return do


def call(
    connection_id: str, path: str = "/codes/{{code}}", extract: str = "$.name", **more: Any
) -> dict[str, Any]:
    common = {name: more.pop(name) for name in ("name", "sensitive") if name in more}
    options = {"connection_id": connection_id, "path": path, "extract": extract, **more}
    return {"name": "value", "type": "api_response", "options": options, **common}


def generated(edith, *fields: Any, **body: Any) -> Any:
    answer = edith.post("/generate", json={"fields": list(fields), "count": 50, "seed": "s", **body})
    assert answer.status_code == 200, answer.json
    return answer


def failed(edith, *fields: Any, status: int = 502, code: str = "target_failed") -> tuple[str, dict[str, Any]]:
    answer = edith.post("/generate", json={"fields": list(fields), "count": 3, "seed": "s"})
    return answer.json["error"]["message"], refused(answer, status, code)
