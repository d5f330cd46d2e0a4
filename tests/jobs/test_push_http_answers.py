"""What a target over HTTP answers, and what becomes of it: keys, messages, waits that it asks for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from jobs.pushes import http
from tests.fakes.echo_target import Answer, busy
from tests.jobs.pushing import rows, table_spec
from tests.jobs.test_push_http import counts, echo, people, pushing  # noqa: F401
from webapp import limits
from webapp.connectors.rest.connector import RestConnector
from webapp.net.gate import Gate
from webapp.pushes.services.ledger import read


@pytest.mark.parametrize("parallel", [1, 8])
def test_all_threads_wait_for_a_target_that_asked_for_it(pushing, echo, parallel):
    pushing.settings = {"parallel": parallel, "retry": {"backoff_seconds": [0]}}
    requests: list[float] = []

    def rule(seen):
        if seen.headers["x-rowsmith-row"] == "10" and not requests:
            requests.append(seen.at)
            return busy(1)
        return Answer(201, delay=0.01)

    echo.on("*", rule)
    done = pushing.do(pushing.push(people(40)))
    assert done.delivered == 40
    within = [call for call in echo.calls() if requests[0] + 0.1 < call.at < requests[0] + 0.95]
    assert within == []


def test_requests_a_second_count_retries(pushing, echo):
    pushing.settings = {"rate_per_second": 50, "retry": {"backoff_seconds": [0]}}
    echo.on("*", *[Answer(503)] * 10, Answer(201))
    done = pushing.do(pushing.push(people(40)))
    assert done.delivered == 40
    moments = sorted(call.at for call in echo.calls())
    assert len(moments) == 50
    # At the target the first may be seen late; without the rate they take a tenth of this.
    assert moments[-1] - moments[0] >= 49 / 50 * 0.7


def test_a_row_says_that_an_earlier_attempt_may_have_arrived(pushing, echo):
    pushing.settings["parallel"] = 1
    echo.on(
        "*", Answer(cut="read"), Answer(201), Answer(cut="read"), Answer(400), Answer(cut="read"), Answer(409)
    )
    push_id = pushing.push(people(3))
    done = pushing.do(push_id)
    assert counts(done) == (1, 1, 1, 0)
    messages = [row.message for row in read.rows(push_id)]
    assert all(
        "An earlier attempt got no response and may have been delivered" in message for message in messages
    )


def test_a_cut_answer_delivers_and_says_that_its_keys_are_lost(pushing, echo):
    pushing.settings = {"parallel": 1, "capture": {"id": "$.id"}}
    echo.on("*", Answer(201, {"id": 1}), Answer(201, {"id": 2}, cut="body"), Answer(201, {"name": "no id"}))
    push_id = pushing.push(people(3, spec={"capture": ["id"]}))
    done = pushing.do(push_id)
    assert counts(done) == (3, 0, 0, 0)
    assert [row.message for row in read.rows(push_id)] == [
        "",
        "The response was truncated. id could not be read.",
        "",
    ]
    assert any("the response contains no id" in line.text for line in read.log_lines(push_id))


def test_children_carry_the_keys_that_their_parents_were_given(pushing, echo):
    pushing.settings["capture"] = {"id": "$.id"}
    keys = {n: 7_000 + n if n <= 60 else f"key-{n}" for n in range(1, 121)}  # numbers first, then texts

    def parent(seen):
        number = int(seen.headers["x-rowsmith-row"])
        return Answer(422) if number == 100 else Answer(201, {"id": keys[number]})

    echo.on("/api/bosses", parent)
    parents = rows(120).drop_columns(["id"])
    children = rows(120, boss=lambda i: i - 1).drop_columns(["id"])
    refer = {"boss": {"table": 0, "column": "id", "field": "boss"}}
    push_id = pushing.push(
        [
            (table_spec("bosses", parents, capture=["id"]), parents),
            (table_spec("staff", children, from_parent=refer), children),
        ],
        parents={"boss": "boss"},
    )
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (238, 2, 0, 0))
    sent = {call.json["name"]: call.json["boss"] for call in echo.calls("/api/staff")}
    assert {f"name {n}": str(key) for n, key in keys.items() if n != 100} == {
        n: str(key) for n, key in sent.items()
    }
    assert [(row.table, row.row, row.code) for row in read.rows(push_id, state="failed")][1:] == [
        (1, 100, "foreign_key")
    ]


def test_keys_that_fit_no_column_of_numbers_are_kept_as_text():
    result = http._key_array
    assert result([1, None, 2]).type == pa.int64()
    assert result([1, 2**63]).to_pylist() == ["1", str(2**63)]
    assert result([True, 1]).to_pylist() == ["True", "1"]
    assert result([1.5, "x", None]).to_pylist() == ["1.5", "x", None]


@pytest.mark.parametrize(
    "body", [{"id": [1]}, {"id": {"a": 1}}, [], 5, None, "text", {"id": None}, b"\xff\x00"]
)
def test_answers_of_any_shape_deliver(pushing, echo, body):
    pushing.settings["capture"] = {"id": "$.id", "odd": "$[?(@.price > 5)].id"}
    echo.on("*", Answer(201, body))
    done = pushing.do(pushing.push(people(2, spec={"capture": ["id", "odd"]})))
    assert counts(done) == (2, 0, 0, 0)


# --- Batches --------------------------------------------------------------------------------------------------


def test_a_rejected_batch_is_reported_once_and_redacts_the_values_of_all_its_rows(pushing, echo, monkeypatch):
    monkeypatch.setattr("webapp.pushes.services.rows.TableRows.sensitive", frozenset({"name"}))
    pushing.settings |= {"push_mode": "batch", "batch_size": 50}
    echo.on("*", Answer(422, "row 7: hidden-name-7 is taken, hidden-name-44 too"))
    push_id = pushing.push(people(50, name=lambda i: f"hidden-name-{i}"))
    assert counts(pushing.do(push_id)) == (0, 50, 0, 0)
    messages = [row.message for row in read.rows(push_id, limit=100)]
    assert messages[0] == "422 Unprocessable Entity: row 7: ******** is taken, ******** too"
    assert set(messages[1:]) == {"Sent together with row 1. See its message."}


def test_a_secret_at_the_end_of_what_is_kept_of_an_answer_is_cut_out_whole(pushing, echo):
    secret = "wholly-secret-value"
    result = RestConnector.Settings.model_validate({"base_url": echo.url("/api")})
    connector = RestConnector(result, Gate(["127.0.0.0/8"]))
    connector.redact = lambda text: text.replace(secret, "********")
    pushing.connect = connector.open
    echo.on("*", Answer(400, "x" * (limits.HTTP_BODY_CHARS - 25) + secret))
    push_id = pushing.push(people(1))
    pushing.do(push_id)
    message = read.rows(push_id)[0].message
    assert "wholly" not in message
    assert len(message) <= limits.HTTP_BODY_CHARS
