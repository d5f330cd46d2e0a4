"""Connections that speak HTTP, endpoints, pushes to them; the target is a server of this process."""

from __future__ import annotations

from functools import cache

from playwright.sync_api import Page

from pictures.datasets import MADE, post
from tests.connectors.odata_documents import V2
from tests.fakes.echo_target import Answer, EchoTarget
from tests.fakes.odata_rules import Csrf

_ENDPOINT = {
    "name": "Customers", "method": "PUT", "path": "/customers/{{id}}", "headers": {"X-Country": "{{country}}"},
    "body": {"mail": "{{email}}", "name": "{{first_name}} {{last_name | upper}}"},
}  # fmt: skip


@cache
def target() -> EchoTarget:
    """A target that rejects some rows, each for a different reason."""
    made, bad = (
        EchoTarget(),
        {3: Answer(422, {"error": "no such country"}), 9: Answer(403, {"error": "no role"})},
    )
    bad |= {15: Answer(503), 21: Answer(cut="read")}
    made.on(
        "/api/customers",
        lambda seen: bad.get(int(seen.headers["x-rowsmith-row"]), Answer(201)),
        method="POST",
    )
    made.on("/erp*", Csrf("/erp"))
    made.on("/erp/$metadata", Answer(200, V2, {"Content-Type": "application/xml"}))
    return made


def _connections(page: Page) -> None:
    """Made once."""
    if "rest" in MADE:
        return
    auth = {"type": "bearer", "token": "not-shown-again"}
    rest = {
        "base_url": target().url("/api"),
        "push_path": "/customers",
        "auth": auth,
        "capture": {"id": "$.id"},
    }
    rest |= {"retry": {"retries": 1, "backoff_seconds": [0.1]}}
    MADE["rest"] = post(page, "/connections", {"name": "Customer API", "type": "rest", "settings": rest})
    odata = {"service_url": target().url("/erp")}
    MADE["odata"] = post(page, "/connections", {"name": "ERP orders", "type": "odata", "settings": odata})
    MADE["endpoint"] = post(page, "/endpoints", {**_ENDPOINT, "connection_id": MADE["rest"]})


def new_rest(page: Page) -> None:
    """The form of a REST connection, a kind of authentication chosen."""
    page.goto("/connections/new?type=rest")
    page.get_by_label("Authentication").select_option("oauth2-client-credentials")
    page.wait_for_selector("[name='settings.auth.token_url']")


def rest(page: Page) -> None:
    """A REST connection, and what was answered to its test."""
    _connections(page)
    page.goto(f"/connections/{MADE['rest']}")
    page.get_by_text("Response:").click()


def odata(page: Page) -> None:
    """Entity sets of an OData service."""
    _connections(page)
    page.goto(f"/connections/{MADE['odata']}")
    page.wait_for_selector(".entity")
    page.locator(".entity summary").nth(1).click()


def endpoints(page: Page) -> None:
    """The list."""
    _connections(page)
    page.goto("/endpoints")


def endpoint(page: Page) -> None:
    """One endpoint."""
    _connections(page)
    page.goto(f"/endpoints/{MADE['endpoint']}")


def endpoint_form(page: Page) -> None:
    """The form with its example."""
    endpoint(page)
    page.get_by_role("link", name="Edit and preview").click()
    page.locator("#template_id").select_option(label="Customers")
    page.wait_for_selector("#example pre")


def _form(page: Page) -> None:
    _connections(page)
    page.goto("/templates")
    page.get_by_role("link", name="Customers", exact=True).click()
    page.wait_for_url("**/templates/tpl_*")
    page.goto(f"{page.url}/push?connection_id={MADE['rest']}")
    page.wait_for_selector(".mapping")


def push_dry(page: Page) -> None:
    """The exact requests."""
    _form(page)
    page.get_by_role("button", name="Dry run").click()
    page.wait_for_selector("#dry pre")
    page.locator("#dry").evaluate(
        "node => window.scrollTo(0, node.getBoundingClientRect().top + scrollY - 64)"
    )


def push(page: Page) -> None:
    """A push some of whose rows were refused. Sent once."""
    if "over http" not in MADE:
        _form(page)
        page.locator("#count").fill("400")
        page.get_by_role("button", name="Push", exact=True).click()
        page.wait_for_url("**/pushes/psh_*")
        MADE["over http"] = page.url
        page.locator("#work header .badge", has_text="Completed").wait_for(timeout=120_000)
    page.goto(MADE["over http"])
