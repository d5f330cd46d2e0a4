"""A model is verified in stages, requests stay within the budget of a run, and other services are detected."""

from __future__ import annotations

import time

import pytest
from pydantic import ValidationError

from tests.fakes import ai_server as quirk
from tests.fakes.ai_server import AiServer
from tests.fakes.echo_target import Answer, redirect
from tests.net.ways import CLOSED, HERE, METADATA, Canary
from webapp.connectors import KINDS
from webapp.connectors.ai.connector import FORMATS, AiChat, AiConnector, AiSettings, Prompt
from webapp.connectors.base import ConnectorError
from webapp.net import session as net
from webapp.net.gate import Gate

LOOPBACK = Gate(["127.0.0.0/8"])
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
PROMPT = Prompt("You write test data.", "Write a word.", SCHEMA)


@pytest.fixture
def server():
    with AiServer() as found:
        yield found


def connector(server: AiServer, gate: Gate = LOOPBACK, **more) -> AiConnector:
    return AiConnector(AiSettings.model_validate(server.settings(**more)), gate)


def ask(server: AiServer, prompt: Prompt = PROMPT, **more) -> str:
    with connector(server, **more).open() as channel:
        return channel.complete(prompt).text


def refused(server: AiServer, **more) -> ConnectorError:
    with pytest.raises(ConnectorError) as error:
        ask(server, **more)
    return error.value


def stages(server: AiServer, **more) -> dict[str, tuple[str, str]]:
    return {stage.name: (stage.code, stage.message) for stage in connector(server, **more).stages()}


# --- Verification -----------------------------------------------------------------------------------------


def test_a_model_that_answers_is_verified_stage_by_stage(server):
    found = list(connector(server).stages())
    assert [(stage.name, stage.ok) for stage in found] == [
        (name, True) for name in ("resolve", "connect", "auth", "permission", "sample")
    ]
    assert found[-1].message == "small answered: ready"
    assert found[-1].response["status"] == 200
    assert '"large"' in found[-1].response["body"]


def test_an_unknown_model_is_reported_with_the_available_ones(server):
    *_, last = connector(server, model="smal").stages()
    assert (last.name, last.code) == ("permission", "no_model")
    assert last.hint == "Did you mean `small`? Available models: small, large."


def test_a_model_with_a_tag_is_known_by_its_plain_name():
    with AiServer(models=("small:latest", "small")) as server:
        server.models = ("small:latest",)
        assert stages(server)["permission"][0] == ""


def test_a_wrong_key_fails_at_auth_and_is_not_repeated():
    with AiServer(key="sk-right") as server:
        result = connector(server, api_key="sk-wrong-key")
        result.redact = lambda text: text.replace("sk-wrong-key", "********")
        *_, last = result.stages()
        assert (last.name, last.code) == ("auth", "auth_failed")
        assert "Incorrect API key" in last.message
        assert "sk-wrong-key" not in last.message
        assert stages(server, api_key="sk-right")["sample"] == ("", "small answered: ready")
        assert server.seen[-1].headers["authorization"] == "Bearer sk-right"


def test_a_server_that_lists_no_models_is_asked_all_the_same(server):
    server.on("/v1/models", Answer(404, "no"))
    found = stages(server)
    assert "does not list its models" in found["permission"][1]
    assert found["sample"][0] == ""


def test_a_missing_model_fails_at_the_sample(server):
    server.on("*", Answer(200, "<html>Sign in</html>", {"Content-Type": "text/html"}))
    *_, last = connector(server).stages()
    assert (last.name, last.code) == ("sample", "bad_answer")
    assert "/v1" in last.hint


def test_a_closed_network_is_never_reached(server):
    *_, last = connector(server, Gate()).stages()
    assert (last.name, last.code) == ("resolve", "not_allowed")
    error = refused(server, gate=Gate())
    assert (error.code, error.reason) == ("target_not_allowed", "not_allowed")
    assert server.opened == 0


def test_no_way_to_write_a_private_address_reaches_this_machine():
    canary, tried = Canary(), 0
    try:
        for address in (*HERE, *CLOSED, *METADATA):
            for host in {address, f"[{address}]"}:
                url = f"http://{host}:{canary.port}/v1"
                try:
                    settings = AiSettings.model_validate(
                        {"base_url": url, "model": "m", "retry": {"retries": 0}}
                    )
                except ValidationError:
                    continue
                tried += 1
                result = AiConnector(settings, Gate())
                assert not all(stage.ok for stage in result.stages())
                with result.open() as channel, pytest.raises(ConnectorError):
                    channel.complete(PROMPT)
        assert canary.count == 0
        assert tried > 60
    finally:
        canary.close()


def test_a_redirect_to_another_host_is_not_followed(server):
    with AiServer() as other:
        server.on("/v1/chat/completions", redirect(other.url("/v1/chat/completions"), 307))
        assert refused(server, api_key="sk-secret").reason == "redirected"
        assert other.seen == []


# --- Asking -----------------------------------------------------------------------------------------------


def test_the_request_is_a_chat_completion_with_a_strict_schema(server):
    assert ask(server, Prompt("system", "user", SCHEMA, 0.5), default_headers={"X-Team": "blue"}) == "ready"
    body = server.asked[0].body
    assert body == {
        "model": "small",
        "messages": [{"role": "system", "content": "system"}, {"role": "user", "content": "user"}],
        "stream": False,
        "temperature": 0.5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
        },
    }
    assert server.seen[0].headers["x-team"] == "blue"
    assert "authorization" not in server.seen[0].headers


@pytest.mark.parametrize(
    ("refuses", "requested"),
    [
        ({"json_schema"}, ["json_schema", "json_object", "json_object"]),
        ({"json_schema", "json_object"}, ["json_schema", "json_object", "none", "none"]),
    ],
)
def test_a_rejected_response_format_is_omitted_from_then_on(server, refuses, requested):
    server.refuses = refuses
    with connector(server).open() as channel:
        assert channel.complete(PROMPT).text == "ready"
        assert channel.complete(PROMPT).text == "ready"
        assert channel.chat.usage.calls == len(requested)
    assert [item.format for item in server.asked] == requested


def test_a_request_rejected_in_every_format_says_why_and_is_not_cached(server):
    server.on("/v1/chat/completions", Answer(400, {"error": {"message": "context length exceeded"}}))
    with connector(server).open() as channel:
        with pytest.raises(ConnectorError) as error:
            channel.complete(PROMPT)
        assert (error.value.reason, error.value.details["status"]) == ("rejected", 400)
        assert "context length exceeded" in error.value.message
        assert channel.chat._formats == list(FORMATS)


@pytest.mark.parametrize("form", FORMATS)
def test_a_form_that_the_connection_names_is_the_only_one(server, form):
    ask(server, response_format=form)
    server.refuses = {"json_schema", "json_object"}
    if form != "none":
        assert refused(server, response_format=form).reason == "rejected"
    assert {item.format for item in server.asked} == {form}


def test_a_429_is_retried_after_its_retry_after(server, monkeypatch):
    waited = []
    monkeypatch.setattr(AiChat, "_wait", lambda self, seconds: waited.append(seconds))
    server.quirks = [quirk.throttled(7), quirk.throttled(3)]
    assert ask(server) == "ready"
    assert waited == [7, 3]


def test_a_final_429_is_reported(server):
    server.quirks = [quirk.throttled()] * 3
    error = refused(server)
    assert (error.reason, error.details["status"]) == ("throttled", 429)
    assert len(server.asked) == 3


def test_a_wait_beyond_the_time_limit_of_the_run_is_not_started(server):
    server.quirks = [quirk.throttled(100)]
    with net.open_session(LOOPBACK) as session:
        settings = connector(server).settings
        chat = AiChat(settings, session, str, time.monotonic() + 5)
        with pytest.raises(ConnectorError) as error:
            chat.complete(PROMPT)
    assert (error.value.code, error.value.reason) == ("target_timeout", "timeout")


def test_a_slow_answer_ends_with_its_attempt(server):
    server.quirks = [quirk.slow(60)]
    error = refused(server, retry={"timeout_seconds": 0.2, "retries": 0})
    assert (error.code, error.reason) == ("target_timeout", "timeout")


@pytest.mark.parametrize("what", [quirk.html, quirk.stream])
def test_a_response_that_is_not_a_chat_completion_is_reported_with_its_beginning(server, what):
    server.quirks = [what]
    error = refused(server)
    assert error.reason == "bad_answer"
    assert "Its message:" in error.message
    assert "base_url" in error.hint


@pytest.mark.parametrize(
    ("status", "reason"), [(401, "auth_failed"), (403, "forbidden"), (404, "not_found"), (500, "unavailable")]
)
def test_a_refusal_has_its_reason_and_the_servers_words(server, status, reason):
    server.on("/v1/chat/completions", Answer(status, {"error": {"message": "because of that"}}))
    error = refused(server)
    assert (error.reason, error.details["status"]) == (reason, status)
    assert "because of that" in error.message


def test_parts_of_a_message_are_joined_and_a_refusal_is_an_empty_text(server):
    parts = [{"type": "text", "text": "one "}, {"type": "image"}, {"type": "text", "text": "two"}]
    server.quirks = [lambda chat: server.completion(chat, parts), quirk.nothing]
    with connector(server).open() as channel:
        assert channel.complete(PROMPT).text == "one two"
        assert channel.complete(PROMPT).text == ""


def test_a_truncated_response_is_reported(server):
    server.quirks = [lambda chat: server.completion(chat, "half", "length")]
    with connector(server).open() as channel:
        assert channel.complete(PROMPT).is_complete is False


# --- What it may cost -------------------------------------------------------------------------------------


def test_the_maximum_number_of_calls_includes_retries(server):
    server.quirks = [quirk.throttled()]
    with connector(server, max_calls=3).open() as channel:
        channel.complete(PROMPT)
        channel.complete(PROMPT)
        with pytest.raises(ConnectorError) as error:
            channel.complete(PROMPT)
    assert (error.value.code, error.value.reason) == ("target_failed", "cap_reached")
    assert "3 calls (max_calls)" in error.value.message
    assert "2,000 tokens sent, 200 received" in error.value.message
    assert len(server.asked) == 3


def test_a_run_ends_with_the_call_that_reaches_its_cost(server):
    prices = {"max_cost": 0.05, "price_per_1k_input": 0.02, "price_per_1k_output": 0.1}  # 0.03 a call
    with connector(server, **prices).open() as channel:
        channel.complete(PROMPT)
        channel.complete(PROMPT)
        with pytest.raises(ConnectorError, match=r"cost of 0\.05 .*cost 0\.06") as error:
            channel.complete(PROMPT)
    assert error.value.reason == "cap_reached"


def test_tokens_are_estimated_if_the_server_does_not_count_them(server):
    server.counts_tokens = False
    with connector(server).open() as channel:
        channel.complete(Prompt("s" * 400, "u" * 400))
        assert channel.chat.usage.input_tokens == 201
        assert channel.chat.usage.output_tokens == 2


# --- Settings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "ftp://x"}, {"model": ""}, {"model": " x"}, {"api_key": "with space"}, {"max_cost": 1},
        {"rows_per_request": 0}, {"parallel": 0}, {"max_calls": 0}, {"response_format": "xml"}, {"unknown": 1},
        {"default_headers": {"Host": "x"}},
    ],
)  # fmt: skip
def test_invalid_settings_are_rejected_without_showing_the_key(wrong):
    with pytest.raises(ValidationError) as error:
        AiSettings.model_validate({"base_url": "http://x/v1", "model": "m", **wrong})
    assert "with space" not in str(error.value)


def test_a_model_takes_no_rows():
    assert KINDS["ai"].can.modes == ()
    assert [name for name, kind in KINDS.items() if kind.can.prompts] == ["ai"]
