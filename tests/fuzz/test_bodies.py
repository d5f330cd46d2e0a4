"""Promise 26 for request bodies: no JSON body, form or query of up to 10 MB makes a process grow by more than 256 MB,
takes it more than 10 s, or ends in an internal error, on any route."""

from __future__ import annotations

import re
import sys
import time

import orjson
import pytest

from webapp import limits
from webapp.engine.data import vocabulary
from webapp.web.routing import declaration_of

GROWN = 256 * limits.MB
SECONDS = 10
SIZE = limits.MAX_BODY_BYTES - 1_000

MEMBERS = 700_000
SHARES = 24


def keys(number: int) -> bytes:
    return b"{" + b",".join(b'"k%d":0' % place for place in range(number)) + b"}"


def repeated(piece: bytes, opened: bytes, closed: bytes, size: int = SIZE) -> bytes:
    return opened + b",".join([piece] * (size // (len(piece) + 1))) + closed


VALUES = {
    "700,000 unknown keys": keys(MEMBERS),
    "millions of numbers": repeated(b"1", b"[", b"]"),
    "millions of fractions": repeated(b".5".rjust(3, b"0"), b"[", b"]"),
    "millions of texts": repeated(b'"ab"', b"[", b"]"),
    "millions of empty objects": repeated(b"{}", b"[", b"]"),
    "millions of empty arrays": repeated(b"[]", b"[", b"]"),
    "objects of one member": repeated(b'{"a":0}', b"[", b"]"),
    "390,000 objects": repeated(b'{"a":1,"b":[]}', b"[", b"]", 390_000 * 7),
    "500 objects of unknown keys": repeated(keys(1_400), b"[", b"]", 6_000_000),
    "nested 60 levels": b'{"a":' * 60 + b"1" + b"}" * 60,
    "nested 500,000 levels": b"[" * 500_000 + b"]" * 500_000,
    "a number of 5,000 digits": b"9" * 5_000,
    "a text of 9 MB of escapes": b'"' + b"\\u0001" * 1_500_000 + b'"',
    "a key of 9 MB": b'{"' + b"x" * 9_000_000 + b'":1}',
    "the same key a million times": b"{" + b",".join([b'"name":1'] * 1_000_000) + b"}",
    "beyond all numbers": b"1e999",
}


def peak() -> int:
    """The largest resident size since `forget`, in bytes."""
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) * 1024


def forget() -> int:
    """Forget the peak, and tell the size now."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return peak()


def bodies(model):
    """Each value as a body, and as the value of each key of a model."""
    for name, value in VALUES.items():
        yield name, value
    for key in model.model_fields:
        for name in (
            "700,000 unknown keys",
            "390,000 objects",
            "500 objects of unknown keys",
            "millions of numbers",
        ):
            yield f"{key}: {name}", b'{"%s":%s}' % (key.encode(), VALUES[name])


def routes(app):
    """(method, address, model) of each model that is the body of a route for programs."""
    found = {}
    for rule in app.url_map.iter_rules():
        declared = declaration_of(app, rule.endpoint)
        if declared is None or declared.body is None or not declared.allows_api_keys:
            continue
        at = re.sub(r"<[^>]+>", "tpl_0000000000000000000000000", rule.rule)
        method = next((item for item in declared.methods if item not in ("GET", "HEAD")), "GET")
        found.setdefault(declared.body, (method, at, declared.body))
    return sorted(found.values(), key=lambda route: route[:2])


@pytest.fixture(autouse=True)
def warm():
    """The vocabulary is loaded before a request is measured: where it is missing, the first use builds it."""
    vocabulary.open_default()


# All routes take longer than one test may.
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of memory is read from /proc")
def test_no_body_of_10_mb_fills_or_occupies_a_process(app, api, cast, share):
    program = api(cast.olivia)
    every, bad = routes(app), []
    assert len(every) > SHARES
    for method, at, model in every[share::SHARES]:
        for name, body in bodies(model):
            before, began = forget(), time.process_time()
            answer = program.open(method, at, data=body, content_type="application/json")
            spent, grown = time.process_time() - began, peak() - before
            if answer.status_code >= 500 or spent > SECONDS or grown > GROWN:
                bad.append(
                    f"{method} {at} {name}: {answer.status_code}, {spent:.1f} s, {grown // limits.MB} MB"
                )
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % n for n in range(1_000_000))),
        ("application/x-www-form-urlencoded", b"&".join([b"a=1"] * 2_000_000)),
        ("application/x-www-form-urlencoded", b"a" + b"[0]" * 3_000_000 + b"=1"),
        ("multipart/form-data; boundary=x", b"".join(
            b'--x\r\nContent-Disposition: form-data; name="a%d"\r\n\r\n1\r\n' % n for n in range(150_000)
        ) + b"--x--\r\n"),
    ],
    ids=["a million pairs", "one name two million times", "a name of a million steps", "150,000 parts"],
)  # fmt: skip
@pytest.mark.parametrize("at", ["/import", "/preview", "/sign-in", "/workspace/files"])
def test_no_form_fills_or_occupies_a_process(app, api, cast, at, kind, body):
    before, began = forget(), time.process_time()
    answer = api(cast.olivia).post(at, data=body, content_type=kind)
    assert answer.status_code < 500
    assert time.process_time() - began < SECONDS
    assert peak() - before < GROWN


def test_a_query_as_long_as_a_request_line_is_answered(api, cast):
    for query in (
        "&".join(["a=1"] * 2_000),
        "q=" + "x" * 8_000,
        "limit=" + "9" * 7_000,
        "cursor=" + "%ff" * 2_000,
    ):
        answer = api(cast.olivia).get(f"/templates?{query}")
        assert answer.status_code == 400, orjson.loads(answer.data)
