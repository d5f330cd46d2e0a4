"""With the settings of compose.yaml, the proxy and health checks are accepted, and plain HTTP clients are not."""

from __future__ import annotations

import pytest

from tests.conftest import settings_for
from tests.deploy.test_files import compose, example


@pytest.fixture
def settings(database_url, shared_redis, data_dir):
    network = compose()["x-rowsmith"]["environment"]["TRUSTED_PROXIES"]
    more = {"public_url": example()["PUBLIC_URL"], "trusted_proxies": (network,)}
    return settings_for(database_url, shared_redis, data_dir, **more)


def asked(app, address, host, **headers):
    client = app.test_client()
    return client.get("/fields", headers={"Host": host, **headers}, environ_base={"REMOTE_ADDR": address})


def test_the_proxy_is_believed_that_a_request_came_by_https(app):
    forwarded = {"X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "https"}
    assert (
        asked(app, "172.30.7.9", "data.example.org", **forwarded).status_code == 401
    )  # it wants a key, no more
    assert asked(app, "172.31.0.9", "data.example.org", **forwarded).status_code == 403
    assert asked(app, "172.30.7.9", "data.example.org").status_code == 403


def test_the_health_check_of_the_container_is_answered(app):
    check = compose()["services"]["web"]["healthcheck"]["test"][-1]
    assert "http://127.0.0.1:8000/health/live" in check
    client = app.test_client()
    answer = client.get(
        "/health/live", headers={"Host": "127.0.0.1:8000"}, environ_base={"REMOTE_ADDR": "127.0.0.1"}
    )
    assert answer.status_code == 200
