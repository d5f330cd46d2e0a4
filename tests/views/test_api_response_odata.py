"""Values of an OData service: paths below its root, with what every request to it carries."""

from __future__ import annotations

from tests.fakes.echo_target import Answer, EchoTarget
from tests.views.speak import make, refused
from tests.views.targets import connection
from webapp.connectors.odata.connector import OdataConnector, OdataSettings
from webapp.connectors.rest.fetch import FetchChannel
from webapp.net.gate import Gate

NAMES = {"1": "Anna & Co", "2": None}


def answered(seen):
    key = seen.path.rsplit("('", 1)[1].removesuffix("')")
    return (
        Answer(200, {"d": {"Name": NAMES[key]}})
        if key in NAMES
        else Answer(404, {"error": {"code": "NOT_FOUND"}})
    )


def test_values_are_read_below_the_service_root(app, cast, api):
    edith = api(cast.edith)
    with EchoTarget() as target:
        target.on("/erp/CustomerSet*", answered)
        settings = {
            "service_url": target.url("/erp/$metadata"), "sap_client": "100", "language": "EN",
            "auth": {"type": "basic", "username": "u", "password": "very-secret"}, "retry": {"retries": 0},
        }  # fmt: skip
        stored = connection(app, cast, "odata", settings, name="ERP")
        numbers = {"name": "id", "type": "list_sequential", "options": {"values": ["1", "2"]}}
        path = "CustomerSet('{{id}}')?$select=Name"
        options = {"connection_id": stored, "path": path, "extract": "$.d.Name"}
        field = {"name": "customer", "type": "api_response", "options": options}
        saved = make(edith, fields=[numbers, field])
        created = edith.post(f"/templates/{saved['id']}/generate", json={"count": 4, "seed": "s"})
        assert created.json == [{"id": item, "customer": NAMES[item]} for item in ("1", "2")] * 2
        assert {call.path for call in target.calls()} == {"/erp/CustomerSet('1')", "/erp/CustomerSet('2')"}
        for call in target.calls():
            assert (call.query["$select"], call.query["sap-client"]) == (["Name"], ["100"])
            assert call.headers["authorization"].startswith("Basic ")
            assert "x-csrf-token" not in call.headers  # nothing is changed there
        numbers["options"]["values"] = ["3"]
        gone = edith.post("/generate", json={"fields": [numbers, field], "count": 1})
        assert refused(gone, 502, "target_failed")["reason"] == "not_found"


def test_the_channel_says_that_values_can_be_read_from_it():
    settings = OdataSettings.model_validate({"service_url": "http://127.0.0.1:9/erp"})
    with OdataConnector(settings, Gate(["127.0.0.0/8"])).open() as channel:
        assert isinstance(channel, FetchChannel)
        assert OdataConnector.can.fetch
