"""The log as JSON: one object a line, that names the request, the work and the actor."""

from __future__ import annotations

import io
import json
import logging

import pytest

from tests.conftest import close_app, settings_for
from webapp import create_app
from webapp.monitoring import process_log


@pytest.fixture
def written():
    """What is logged, as JSON lines."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(process_log.JsonFormatter())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield lambda: [json.loads(text) for text in stream.getvalue().splitlines()]
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def json_app(database_url, shared_redis, tmp_path):
    created = create_app(settings_for(database_url, shared_redis, tmp_path, log_format="json"))
    yield created
    close_app(created)


def test_a_request_leaves_one_line_with_its_route_and_its_actor(json_app, written, cast):
    headers = {"Authorization": f"Bearer {cast.edith.key}", "X-Request-Id": "mine.1"}
    json_app.test_client().get("/templates/canary", headers=headers)
    (result,) = [item for item in written() if item["logger"] == process_log.REQUEST_LOGGER]
    assert result["ms"] >= 0
    assert result["time"].endswith("Z")
    expected = {
        "level": "INFO",
        "message": "GET /templates/<template_id>",
        "method": "GET",
        "route": "/templates/<template_id>",
        "status": 404,
        "request_id": "mine.1",
        "workspace_id": cast.acme,
        "user_id": cast.edith.user_id,
        "key_id": cast.edith.key_id,
    }
    assert {name: result.get(name) for name in expected} == expected
    assert "canary" not in json.dumps(result)
    assert cast.edith.key not in json.dumps(result)


def test_work_in_hand_is_named_by_every_line_until_it_ends(written):
    process_log.begin_work("export", "exp_1")
    logging.getLogger("jobs.x").warning("a line\nwith two")
    process_log.end_work()
    logging.getLogger("jobs.x").warning("another")
    first, second = written()
    assert (first["export_id"], first["message"]) == ("exp_1", "a line\nwith two")
    assert "export_id" not in second


def test_an_error_carries_its_type_and_its_trace(written):
    try:
        raise ValueError("wrong")
    except ValueError:
        logging.getLogger("x").exception("it failed")
    (result,) = written()
    assert result["error"] == "ValueError"
    assert "ValueError: wrong" in result["trace"]
