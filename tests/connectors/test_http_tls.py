"""Who a target over HTTPS may be."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.fakes.certificates import Authority
from tests.fakes.echo_target import EchoTarget
from webapp.connectors.rest.connector import RestConnector, RestSettings
from webapp.net.gate import Gate

OPEN = ("127.0.0.0/8",)


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def stages(url, **settings):
    result = RestSettings(base_url=url, **settings)
    return {stage.name: stage for stage in RestConnector(result, Gate(OPEN)).stages()}


def test_a_target_with_a_private_ca_is_verified_with_its_certificate(authority):
    with EchoTarget(authority.server("127.0.0.1")) as target:
        found = stages(target.url("/"), ca_certificate=authority.file.read_text())
        assert found["sample"].ok
        assert found["tls"].ok


def test_without_it_the_certificate_is_not_trusted(authority):
    with EchoTarget(authority.server("127.0.0.1")) as target:
        found = stages(target.url("/"))
        assert (found["tls"].ok, found["tls"].code) == (False, "tls_failed")
        assert target.calls() == []


def test_another_name_is_not_trusted(authority):
    with EchoTarget(authority.server("other.example")) as target:
        found = stages(target.url("/"), ca_certificate=authority.file.read_text())
        assert found["tls"].code == "tls_failed"


def test_any_certificate_is_taken_where_the_check_is_off(authority):
    with EchoTarget(authority.server("other.example")) as target:
        assert stages(target.url("/"), verify_tls=False)["sample"].ok


@pytest.mark.parametrize("text", ["", "x", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"])
def test_an_invalid_certificate_is_rejected(text):
    with pytest.raises(ValidationError):
        RestSettings(base_url="https://a.example", ca_certificate=text)
