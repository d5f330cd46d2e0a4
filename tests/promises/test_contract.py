"""Promise 21: OpenAPI paths equal the routes; every error has exactly the shape. (What schemathesis finds is looked for
in tests/fuzz.)"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.cast import Program
from webapp.errors import CODES
from webapp.web.routing import declaration_of

JSON = {"Content-Type": "application/json"}


def exact(answer: Any, where: object) -> str:
    """The code of an error whose body has exactly the shape."""
    assert answer.mimetype == "application/json", (where, answer.status_code, answer.mimetype)
    body = json.loads(answer.get_data())
    assert set(body) == {"error"}, where
    assert set(body["error"]) == {"code", "message", "details"}, where
    error = body["error"]
    assert CODES[error["code"]][0] == answer.status_code, (where, error["code"])
    assert isinstance(error["message"], str), where
    assert error["message"].strip(), where
    assert isinstance(error["details"], dict), where
    if error["code"] == "validation_error":
        assert error["details"]["fields"], where
        for field in error["details"]["fields"]:
            assert {"path", "code", "message"} <= set(field) <= {"path", "code", "message", "hint"}, where
    assert re.fullmatch(r"[\w.:-]+", answer.headers["X-Request-Id"]), where
    return error["code"]


def test_promise_21_openapi_paths_equal_the_routes(world):
    document = world.program().get("/openapi.json").json
    result = {
        (method.upper(), path)
        for path, item in document["paths"].items()
        for method in item
        if method in ("get", "put", "post", "delete", "patch")
    }
    routes = set()
    for rule in world.app.url_map.iter_rules():
        declared = declaration_of(world.app, rule.endpoint)
        if declared is not None and declared.allows_api_keys and not declared.hidden:
            path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
            routes |= {(method, path) for method in declared.methods}
    assert result == routes
    assert len(result) > 100


def test_promise_21_every_error_has_exactly_the_shape(world):
    """Call each route of the API without a key, with an invalid key, with a body that is not JSON, with a list, with an
    unknown key, with an unknown query parameter, with an unknown version, and as a user of another workspace."""
    owner, nobody = world.program(), Program(world.app, "")
    stranger, wrong = (
        Program(world.app, world.cast.mallory.key),
        Program(world.app, "rws_aaaaaaaaaaaa_" + "b" * 43),
    )
    codes: dict[str, int] = {}
    for case in world.cases:
        if case.person or case.rule.startswith(("/compat", "/docs", "/sign-in", "/invitations/accept")):
            continue
        address = case.address(world.names)
        mark = "&" if "?" in address else "?"
        tries = [
            nobody.open(case.method, address),
            wrong.open(case.method, address),
            stranger.open(case.method, address, json=case.sent(world.names)),
            owner.open(case.method, f"{address}{mark}no_such_word=1"),
            owner.open(case.method, address, headers={"Api-Version": "1999-01-01"}),
            owner.open(case.method, f"{address}/no/such/place"),
        ]
        if case.method != "GET":
            tries += [
                owner.open(case.method, address, data=b'{"a":', headers=JSON),
                owner.open(case.method, address, data=b"[1]", headers=JSON),
                owner.open(case.method, address, json={"no_such_key": 1}),
                owner.open(case.method, address, data=b"\xff\xfe", headers={"Content-Type": "text/plain"}),
            ]
        for number, answer in enumerate(tries):
            assert answer.status_code < 500 or answer.json["error"]["code"] == "unavailable", (case, number)
            if answer.status_code >= 400:
                code = exact(answer, (case, number))
                codes[code] = codes.get(code, 0) + 1
            else:
                answer.close()
    expected = {"unauthenticated", "not_found", "validation_error", "invalid_request", "unsupported_version"}
    assert expected <= set(codes), codes
    assert sum(codes.values()) > 800


def test_promise_21_an_unknown_method_has_the_error_shape_too(world):
    owner = world.program()
    for case in world.reading():
        if case.person or case.rule.startswith("/compat"):
            continue
        answer = owner.open("PATCH", case.address(world.names), json={})
        if answer.status_code in (404, 405):
            assert exact(answer, case) in ("not_found", "method_not_allowed")
            if answer.status_code == 405:
                assert answer.headers["Allow"]
