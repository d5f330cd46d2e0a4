"""An OData service: verification, closed metadata, and what a dry run shows."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.connectors import odata_pushes
from tests.connectors.odata_documents import V2
from tests.connectors.odata_pushes import SECRET, SendControl, _shown, connector, rows, states, writing
from tests.fakes.echo_target import Answer
from tests.fakes.odata_rules import Csrf
from webapp.connectors.base import ConnectorError
from webapp.connectors.odata.connector import OdataConnector, OdataSettings
from webapp.net.gate import Gate

target = odata_pushes.target


# --- Dry run ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("auth", "line"),
    [
        ({"type": "basic", "username": "u", "password": SECRET}, "Authorization: Basic ********"),
        ({"type": "bearer", "token": SECRET}, "Authorization: Bearer ********"),
        ({"type": "api-key", "name": "X-Key", "value": SECRET}, "X-Key: ********"),
        (
            {"type": "api-key", "in": "query", "name": "key", "value": SECRET},
            "POST /sap/OrderSet?sap-client=100&key=******** HTTP/1.1",
        ),
    ],
)
def test_a_dry_run_shows_the_exact_request_without_secrets_and_sends_nothing(target, auth, line):
    result = connector(target, auth=auth, sap_client="100")
    text = _shown(result, writing(result, ["Total"]), {"Total": "1.5"})
    assert line in text.replace("%2A", "*").splitlines()
    assert text.endswith('\n\n{"Total":"1.5"}')
    assert f"Host: 127.0.0.1:{target.port}" in text
    assert SECRET not in text
    assert target.seen == []


def test_a_dry_run_reports_what_would_not_be_sent(target):
    result = connector(target)
    assert _shown(result, writing(result, ["Total"]), {"Total": "x"}).startswith("Not sent: Total: 'x'")


# --- Metadata and verification ------------------------------------------------------------------------------


def test_an_uploaded_document_is_used_and_nothing_is_fetched(target):
    with connector(target).open() as channel:
        assert channel.metadata().version == "OData V2"
        assert channel.entity("orderset").name == "OrderSet"
        assert channel.entity("Nothing") is None
    assert target.seen == []


def test_an_inaccessible_metadata_document_is_reported_with_both_remedies(target):
    target.on("/sap*", Csrf("/sap", metadata_401=True))
    with connector(target, None).open() as channel, pytest.raises(ConnectorError) as caught:
        channel.metadata()
    assert caught.value.reason == "metadata_refused"
    assert "same account" in caught.value.hint
    assert "upload" in caught.value.hint


def test_rows_are_sent_by_known_columns_where_the_metadata_is_closed(target):
    target.on("/sap*", Csrf("/sap", metadata_401=True))
    result = writing(connector(target), ["Customer", "Total"])
    outcome = connector(target, None)
    outcome.cached_metadata = OdataConnector.read_document(V2)
    with outcome.open() as channel:
        ended = channel.create_sender(result, SendControl()).send(rows([{"Customer": "1", "Total": "2.5"}]))
    assert states(ended) == {("delivered", ""): 1}
    assert target.effects[0].json == {"Customer": "1", "Total": "2.5"}


def stages(made: OdataConnector) -> list[tuple[str, str]]:
    return [(stage.name, stage.code) for stage in made.stages()]


def test_a_good_service_is_verified_to_its_rows(target):
    target.on("/sap*", Csrf("/sap"))
    target.on("/sap/$metadata", Answer(200, V2, {"Content-Type": "application/xml"}))
    found = list(connector(target, None).stages())
    assert [(stage.name, stage.code) for stage in found] == [
        ("resolve", ""), ("connect", ""), ("tls", ""), ("auth", ""), ("permission", ""), ("sample", "")
    ]  # fmt: skip
    assert "OData V2, 4 entity sets ($metadata)" in found[4].message
    assert "HEAD /sap/: 200" in found[4].message
    assert target.seen[-1].query == {"$top": ["1"]}
    assert (found[-1].response["method"], found[-1].response["status"]) == ("GET", 200)


@pytest.mark.parametrize(
    ("path", "answer", "stage", "code"),
    [
        ("/sap*", Answer(401), "auth", "auth_failed"),
        ("/sap/", Answer(200, "<html>", {"Content-Type": "text/html"}), "auth", "auth_failed"),
        ("/sap/$metadata", Answer(404), "permission", "no_metadata"),
        ("/sap/$metadata", Answer(401), "permission", "metadata_refused"),
        ("/sap/$metadata", Answer(200, "<a"), "permission", "bad_document"),
        ("/sap/*Set", Answer(403), "sample", "no_permission"),
    ],
)
def test_verification_ends_with_the_stage_that_fails(target, path, answer, stage, code):
    target.on("/sap*", Csrf("/sap"))
    target.on("/sap/$metadata", Answer(200, V2, {"Content-Type": "application/xml"}))
    target.on(path, answer)
    assert stages(connector(target, None))[-1] == (stage, code)


def test_a_closed_address_is_not_reached(target):
    outcome = OdataConnector(OdataSettings.model_validate({"service_url": target.url("/sap")}), Gate())
    assert stages(outcome) == [("resolve", "not_allowed")]
    outcome.document = V2
    result = writing(outcome, ["Customer"])
    with outcome.open() as channel, pytest.raises(ConnectorError) as caught:
        channel.create_sender(result, SendControl()).send(rows([{"Customer": "1"}]))
    assert caught.value.code == "target_not_allowed"
    assert target.opened == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"service_url": "ftp://x/"},
        {"service_url": "https://u:p@x/"},
        {"service_url": "https://x/", "odata_version": "v3"},
        {"service_url": "https://x/", "sap_client": "1"},
        {"service_url": "https://x/", "csrf": {"fetch": "x"}},
        {"service_url": "https://x/", "csrf": {"fetch_path": "https://evil.example/"}},
        {"service_url": "https://x/", "csrf": {"fetch_path": "//evil.example/"}},
        {"service_url": "https://x/", "default_headers": {"X": "{{name}}"}},
        {"service_url": "https://x/", "parallel": 0},
        {"service_url": "https://x/", "unknown": 1},
    ],
)
def test_invalid_settings_are_rejected(settings):
    with pytest.raises(ValidationError):
        OdataSettings.model_validate(settings)


def test_a_read_only_connection_takes_no_rows(target):
    outcome = connector(target)
    result = writing(outcome, ["Customer"])
    outcome.read_only = True
    with outcome.open() as channel, pytest.raises(ConnectorError) as caught:
        channel.create_sender(result, SendControl())
    assert caught.value.code == "read_only_connection"
