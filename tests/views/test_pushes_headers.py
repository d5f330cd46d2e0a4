"""Row values in headers: encoded where the template says so, and rejected before the push is accepted otherwise."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from tests.fakes.echo_target import Answer, EchoTarget
from tests.views.speak import faults, make
from tests.views.targets import connection, work  # noqa: F401
from webapp import limits

ROWS = [{"id": 1, "city": "Zürich"}, {"id": 2, "city": "Łódź, 5 €"}, {"id": 3, "city": "大阪"}]


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    """The tests carry out their pushes themselves: a request does not wait for a worker."""
    monkeypatch.setattr(limits, "EXPORT_DB_WAIT_SECONDS", 0.01)


@pytest.fixture
def target():
    with EchoTarget() as result:
        yield result


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def rest(app, cast, target):
    return connection(app, cast, "rest", {"base_url": target.url("/api")})


def sent(edith, rest, rows=ROWS, **template):
    """The answer to rows with their city in a header."""
    template = {"headers": {"X-City": "{{city}}"}, **template}
    return edith.post(
        "/export/rest", json={"connection_id": rest, "rows": rows, "request_template": template}
    )


def headers(target, name) -> list[str]:
    """What arrived, in the order of the rows."""
    return [
        call.headers[name]
        for call in sorted(target.calls(), key=lambda item: int(item.headers["x-rowsmith-row"]))
    ]


def test_a_value_beyond_latin_1_is_rejected_before_the_push_and_names_row_field_and_options(
    edith, target, rest
):
    used = edith.get("/usage").json["rows"]["used"]
    answer = sent(edith, rest)
    assert answer.status_code == 422
    assert faults(answer) == {"request_template.headers.X-City": "invalid_header_value"}
    fault = answer.json["error"]["details"]["fields"][0]
    assert "X-City" in fault["message"]
    assert 'city in row 2: "Łódź, 5 €"' in fault["message"]
    assert "percent" in fault["hint"]
    assert "rfc8187" in fault["hint"]
    assert target.calls() == []
    assert edith.get("/pushes").json["total"] == 0
    assert edith.get("/usage").json["rows"]["used"] == used


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("percent", ["Z%C3%BCrich", "%C5%81%C3%B3d%C5%BA%2C%205%20%E2%82%AC", "%E5%A4%A7%E9%98%AA"]),
        (
            "rfc8187",
            [
                "UTF-8''Z%C3%BCrich",
                "UTF-8''%C5%81%C3%B3d%C5%BA%2C%205%20%E2%82%AC",
                "UTF-8''%E5%A4%A7%E9%98%AA",
            ],
        ),
    ],
)
def test_values_arrive_encoded_as_the_template_says(edith, target, rest, work, encoding, expected):
    template = {"headers": {"X-City": "city*={{city}}; v=1"}, "header_encoding": encoding}
    answer = sent(edith, rest, **template)
    assert answer.status_code == 201, answer.json
    work(answer.json["id"])
    assert edith.get(f"/pushes/{answer.json['id']}").json["counts"]["delivered"] == 3
    assert headers(target, "x-city") == [f"city*={item}; v=1" for item in expected]
    assert [unquote(item.removeprefix("UTF-8''")) for item in expected] == [row["city"] for row in ROWS]


def test_characters_of_latin_1_are_sent_as_they_are(edith, target, rest, work):
    answer = sent(edith, rest, rows=[{"city": "Zürich ½"}, {"city": "  padded "}, {"city": None}])
    assert answer.status_code == 201, answer.json
    work(answer.json["id"])
    assert edith.get(f"/pushes/{answer.json['id']}").json["counts"]["delivered"] == 3
    found = headers(target, "x-city")
    assert [item.encode("latin-1").decode("latin-1") for item in found] == ["Zürich ½", "padded", ""]


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "a\rb", "a\x1bb", "a\x7fb", "\xa0a"])
def test_a_control_character_injects_no_header(edith, target, rest, work, value):
    rows = [{"city": "plain"}, {"city": value}]
    answer = sent(edith, rest, rows=rows)
    assert answer.status_code == 422, answer.json
    assert faults(answer) == {"request_template.headers.X-City": "invalid_header_value"}
    assert "row 2" in answer.json["error"]["message"]
    assert target.calls() == []
    answer = sent(edith, rest, rows=rows, header_encoding="percent")
    work(answer.json["id"])
    assert unquote(headers(target, "x-city")[1]) == value
    assert all("x-admin" not in call.headers for call in target.calls())


def saved(edith, expression, **more):
    fields = [
        {"name": "n", "type": "row_number"},
        {"name": "city", "type": "formula", "options": {"expression": expression}, **more},
    ]
    return f"/templates/{make(edith, name='Cities', fields=fields)['id']}"


def pushed(edith, rest, template, path="push", **body):
    shape = {"headers": {"X-City": "{{city | upper}}", "X-Number": "{{n}}"}}
    return edith.post(
        f"{template}/{path}",
        json={"connection_id": rest, "target": "rows", "request_template": shape, **body},
    )


def test_every_row_of_the_push_is_checked_and_no_other(edith, rest):
    template = saved(edith, '"€" if n == 9500 else "x"')
    assert pushed(edith, rest, template, count=9499, dry_run=True).status_code == 200
    answer = pushed(edith, rest, template, count=9500)
    assert faults(answer) == {"request_template.headers.X-City": "invalid_header_value"}
    assert 'city in row 9,500: "€"' in answer.json["error"]["message"]
    later = pushed(edith, rest, template, count=10, offset=9495)
    assert "city in row 5:" in later.json["error"]["message"], (
        "rows are counted from the first one that is sent"
    )
    assert pushed(edith, rest, template, count=10, offset=9500, dry_run=True).status_code == 200


def test_dry_run_and_plan_show_what_the_push_would_be_rejected_for(edith, rest):
    template = saved(edith, '"ÿ"')  # in capitals it is beyond Latin-1
    result = {"request_template.headers.X-City": "invalid_header_value"}
    assert faults(pushed(edith, rest, template, count=3)) == result
    assert faults(pushed(edith, rest, template, count=3, dry_run=True)) == result
    plan = pushed(edith, rest, template, "push/plan", count=3)
    assert plan.status_code == 200
    assert [fault["path"] for fault in plan.json["tables"][0]["faults"]] == list(result)


def test_the_value_of_a_sensitive_field_is_not_shown(edith, rest):
    template = saved(edith, '"geheim€"', sensitive=True)
    answer = pushed(edith, rest, template, count=3)
    assert answer.status_code == 422
    assert "geheim" not in answer.text
    assert "********" in answer.json["error"]["message"]


def test_more_rows_than_are_checked_need_an_encoding_unless_values_are_numbers(edith, rest, monkeypatch):
    monkeypatch.setattr(limits, "HTTP_HEADER_ROWS", 100)
    template = saved(edith, '"x"')
    answer = pushed(edith, rest, template, count=101)
    assert faults(answer) == {"request_template.headers.X-City": "invalid_header_value"}
    shape = {"headers": {"X-City": "{{city}}"}, "header_encoding": "percent"}
    body = {"connection_id": rest, "count": 101, "dry_run": True}
    assert edith.post(f"{template}/push", json={**body, "request_template": shape}).status_code == 200
    shape = {"headers": {"X-Number": "{{n}}"}}
    assert edith.post(f"{template}/push", json={**body, "request_template": shape}).status_code == 200


def test_a_retry_with_other_values_is_checked(edith, target, rest, work):
    template = saved(edith, '"x"')
    target.on("/api/rows", Answer(422))
    push = pushed(edith, rest, template, count=3).json["id"]
    work(push)
    assert edith.get(f"/pushes/{push}").json["counts"]["failed"] == 3
    answer = edith.post(f"/pushes/{push}/retry", json={"overrides": {"city": "€"}})
    assert faults(answer) == {"request_template.headers.X-City": "invalid_header_value"}
    assert edith.post(f"/pushes/{push}/retry", json={"overrides": {"city": "é"}}).status_code == 201


def test_an_endpoint_has_an_encoding(edith, target, work):
    value = {"name": "Cities", "url": target.url("/cities"), "headers": {"X-City": "{{city}}"}}
    created = edith.post("/endpoints", json=value).json
    assert created["header_encoding"] == "none"
    ask = {"endpoint_id": created["id"], "rows": ROWS}
    assert edith.post("/export/rest", json=ask).status_code == 422
    wrong = edith.patch(f"/endpoints/{created['id']}", json={"header_encoding": "base64"})
    assert faults(wrong) == {"header_encoding": "not_allowed"}
    changed = edith.patch(f"/endpoints/{created['id']}", json={"header_encoding": "percent"}).json
    assert (changed["header_encoding"], changed["headers"]) == ("percent", value["headers"])
    answer = edith.post("/export/rest", json=ask)
    assert answer.status_code == 201, answer.json
    work(answer.json["id"])
    assert headers(target, "x-city")[2] == "%E5%A4%A7%E9%98%AA"


def test_text_of_a_header_itself_is_of_latin_1(edith, target):
    value = {"name": "Cities", "url": target.url("/cities"), "headers": {"X-City": "€ {{city}}"}}
    answer = edith.post("/endpoints", json=value)
    assert answer.status_code == 422
    assert "€" in answer.json["error"]["message"]
    settings = {"base_url": target.url("/api"), "default_headers": {"X-Price": "5 €"}}
    answer = edith.post("/connections", json={"name": "C", "type": "rest", "settings": settings})
    assert answer.status_code == 422, answer.json
