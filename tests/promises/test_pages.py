"""Promise 18: every page has a CSP from `'none'` with nothing unsafe, nosniff, frame-ancestors none, HSTS; a cross-site
write with a cookie is 403; stored script payloads stay inert in every page, log line and file name."""

from __future__ import annotations

import logging
import re

import pytest

from tests.cast import Browser
from tests.promises.inert import running
from tests.promises.world import PAYLOAD, World
from tests.security.matrix import Case
from webapp.web.routing import declaration_of

STREAM = "text/event-stream"
UNSAFE = re.compile(r"unsafe-|\*|data:|blob:|https?:|'nonce-|'sha\d")


@pytest.fixture(scope="module")
def poisoned(world: World) -> World:
    """The world in which every free text is a payload."""
    world.made = world.fill_with_payloads()
    return world


def visit(browser: Browser, case: Case, world: World):
    answer = browser.get(case.address(world.names), buffered=False)
    if answer.mimetype == STREAM:
        answer.close()
    return answer


def pages(world: World) -> list[str]:
    """Addresses of every route that a person reads, and of the objects that were made with payloads."""
    result = world.made
    found = [case.address(world.names) for case in world.reading()]
    own = [f"/{kind}s/{result[kind]}" for kind in ("template", "dataset", "export", "connection", "push")]
    own += [
        f"/connections/{result['connection']}/edit",
        f"/pushes/{result['push']}/rows",
        "/templates?q=%3Cx-canary%3E",
    ]
    own += [
        f"/templates/{result['template']}/push?connection_id={result['connection']}",
        "/docs/search?q=%3Cx-canary%3E",
    ]
    return [*found, *own]


def test_promise_18_every_answer_has_a_csp_from_none_with_nothing_unsafe_nosniff_and_no_frames(poisoned):
    browser, seen = poisoned.person(), 0
    for case in poisoned.reading():
        answer = visit(browser, case, poisoned)
        # A user's file has an additional policy, and browsers apply both.
        policies = answer.headers.getlist("Content-Security-Policy")
        rules = dict(part.strip().partition(" ")[::2] for part in policies[-1].split(";"))
        assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == "'none'", case
        assert not UNSAFE.search(" ".join(policies)), (case, policies)
        assert answer.headers.getlist("X-Content-Type-Options") == ["nosniff"], case
        seen += 1
    assert seen > 100


def test_promise_18_every_answer_over_https_has_hsts(poisoned):
    with poisoned.app.test_client(use_cookies=False) as client:
        for case in poisoned.reading():
            headers = {"Authorization": f"Bearer {poisoned.cast.olivia.key}"}
            answer = client.get(
                case.address(poisoned.names),
                base_url="https://rowsmith.test",
                headers=headers,
                buffered=False,
            )
            found = answer.headers.get("Strict-Transport-Security", "")
            assert re.fullmatch(r"max-age=\d{8,}(; includeSubDomains)?", found), case
            answer.close()


def test_promise_18_a_cross_site_write_with_a_cookie_is_403(poisoned):
    browser, tried = poisoned.person(), 0
    token = browser.csrf()
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Accept": browser.ACCEPT}
    for case in poisoned.writing():
        address = case.address(poisoned.names)
        declared = next(
            declaration_of(poisoned.app, rule.endpoint)
            for rule in poisoned.app.url_map.iter_rules()
            if rule.rule == case.rule and case.method in rule.methods
        )
        if not declared.allows_browsers or case.least == "public":
            continue
        meant = "" if case.method == "POST" else f"{'&' if '?' in address else '?'}_method={case.method}"
        for data in (
            {},
            {"csrf_token": token},
        ):  # a stolen token does not help where the browser names another site
            answer = browser.client.post(f"{address}{meant}", data=data, headers=foreign)
            assert answer.status_code == 403, (case, answer.status_code)
        same_site = browser.client.post(f"{address}{meant}", data={}, headers={"Accept": browser.ACCEPT})
        assert same_site.status_code == 403, (case, "without a token")
        body = browser.client.open(
            address, method=case.method, json={}, headers={"Origin": "https://evil.example"}
        )
        assert body.status_code in (401, 403), (case, body.status_code)
        tried += 1
    assert tried > 60


def test_promise_18_stored_script_payloads_are_inert_in_every_page(poisoned):
    browser, looked, shown = poisoned.person(), 0, 0
    for address in pages(poisoned):
        answer = browser.get(address, buffered=False)
        if answer.mimetype != "text/html":
            answer.close()
            continue
        html = answer.text
        assert running(html) == [], address
        assert "{{49}}" not in html
        looked += 1
        shown += "&lt;x-canary" in html or "&lt;script&gt;" in html
    assert looked > 60
    assert shown > 25, "the payloads are there, as text"


def test_promise_18_payloads_are_inert_in_fragments_for_htmx_too(poisoned):
    browser = poisoned.person()
    for address in pages(poisoned):
        answer = browser.get(address, headers={"HX-Request": "true"}, buffered=False)
        if answer.mimetype == "text/html":
            assert running(answer.text) == [], address
        else:
            answer.close()


def test_promise_18_a_file_is_named_without_what_would_leave_its_header(poisoned):
    program = poisoned.program()
    named = f'a";\\/<script>\x7f{PAYLOAD}'
    fields = [{"name": "n", "type": "row_number"}]
    created = program.post("/templates", json={"name": named.replace("\x7f", "")[:200], "fields": fields})
    assert created.status_code == 201, created.text
    for format in ("csv", "json", "sql", "xlsx"):
        answer = program.post(
            f"/templates/{created.json['id']}/generate", json={"count": 1, "format": format}
        )
        (header,) = answer.headers.getlist("Content-Disposition")
        found = re.fullmatch(r'attachment; filename="([^"\\/<>\x00-\x1f\x7f]+)"', header)
        assert found, header
        assert found[1].endswith(f".{format}")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "broken", ["\r\nSet-Cookie: a=b", "\n2026 ERROR forged line", "\x1b[2Jgone", "\u2028x"]
)
def test_promise_18_a_log_line_is_one_line_with_any_input(poisoned, caplog, broken):
    caplog.set_level(logging.DEBUG)
    client = poisoned.app.test_client(use_cookies=False)
    from urllib.parse import quote

    client.get(f"/templates/{quote(broken)}", headers={"Authorization": f"Bearer {poisoned.cast.olivia.key}"})
    client.get(f"/docs/{quote(broken)}?q={quote(broken)}")
    client.post("/sign-in", data={"email": broken, "password": broken}, headers={"User-Agent": "x"})
    poisoned.program().post("/templates", json={"name": broken, "fields": [{"name": broken, "type": broken}]})
    for record in caplog.records:
        text = record.getMessage()
        assert broken not in text, record
        assert "\x1b" not in text, record
    answer = client.get("/health/live", headers={"X-Request-Id": broken.replace("\r", "").replace("\n", "")})
    assert re.fullmatch(r"[\w.:-]+", answer.headers["X-Request-Id"])
