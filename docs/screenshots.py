"""Pictures of every page into docs/img, light and dark, wide and narrow: `.venv/bin/python docs/screenshots.py`.

Starts the product as a person would (`./rowsmith up`) on a data folder of its own, signs in by the printed link,
does a little work with the demo's templates, takes the pictures and stops it. TEST_CHROMIUM names another browser
than the one on the PATH; words on the command line choose pages by name.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "img"
SIZES = {"wide": (1280, 800), "narrow": (390, 844)}
SCHEMES = ("light", "dark")
MOST_BYTES = 200_000
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--headless", "--disable-background-networking"]


@contextmanager
def running() -> Iterator[str]:
    """The product on a fresh data folder; gives the one-time sign-in link."""
    with tempfile.TemporaryDirectory(prefix="rowsmith-pictures-") as folder:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        command = [str(ROOT / "rowsmith"), "up", "--data-dir", folder, "--port", str(port)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            link = next(m[1] for line in process.stdout if (m := re.search(r"sign in\s+(http\S+)", line)))
            told = threading.Thread(target=lambda: sys.stderr.writelines(process.stdout), daemon=True)
            told.start()  # whatever else it says, a part that dies above all
            yield link
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


def _builder(page: Page, name: str = "Customers") -> None:
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_selector("#preview td")


def _open_row(page: Page) -> None:
    _builder(page)
    page.locator(".row [aria-expanded]").nth(1).click()
    page.get_by_role("button", name="Explain the values").click()
    page.wait_for_selector(".explained")


def _relations(page: Page) -> None:
    _shop(page)
    page.goto(f"/templates/{_made['Purchases']}")
    page.wait_for_selector("#preview td")


def _relation(page: Page) -> None:
    _relations(page)
    page.locator(".row [aria-expanded]").nth(1).click()
    page.wait_for_selector(".panel")


def _formula(page: Page) -> None:
    page.goto("/templates/new?names=price,quantity,total")
    page.locator(".pick").nth(2).click()
    page.get_by_label("Search types").fill("formula")
    page.wait_for_selector("#picker [aria-selected=true]")
    page.keyboard.press("Enter")
    page.wait_for_selector("[name$='.o.expression']")
    page.locator(".row [aria-expanded]").nth(2).click()
    page.locator(".panel textarea").first.fill("round(price * quantity * * 1.19, 2)")
    page.wait_for_selector(".formula .fault mark")
    page.locator(".functions summary").first.click()
    page.get_by_label("Search functions").first.fill("round")


def _version(page: Page) -> None:
    _shop(page)
    page.goto(f"/templates/{_made['Purchases']}@v1")


def _fault(page: Page) -> None:
    page.goto("/templates/new?names=id,email,quantity,price")
    page.locator(".row").nth(2).locator("input[name$='.o.min']").fill("90")
    page.locator(".row").nth(2).locator("input[name$='.o.max']").fill("10")
    page.wait_for_selector("#preview .faults")


def _nested(page: Page) -> None:
    _builder(page, "Order documents")


def _picker(page: Page) -> None:
    _builder(page)
    page.locator(".pick").nth(1).click()
    page.get_by_label("Search types").fill("name")
    page.wait_for_selector("#picker [aria-selected=true]")


def _grid(page: Page) -> None:
    _builder(page)
    page.locator("#grid-count").fill("1000000")
    page.locator("#generate").click()
    page.wait_for_selector("#grid td")
    page.locator("#results").scroll_into_view_if_needed()


def _tab(name: str, ready: str) -> Callable[[Page], None]:
    def show(page: Page) -> None:
        _builder(page)
        page.get_by_role("tab", name=name).click()
        page.wait_for_selector(ready)

    return show


def _versions(page: Page) -> None:
    _builder(page)
    blank = page.locator("[name$='.percent_blank']")
    for field, number in ((-1, "50"), (5, "60")):
        blank.nth(field).fill(number if blank.nth(field).input_value() != number else "25")
    page.locator("#save").click()
    page.wait_for_selector("[data-toast]")
    page.get_by_role("tab", name="Versions").click()
    page.get_by_role("button", name="Compare").first.click()
    page.wait_for_selector("#diff td")
    page.locator("[data-toast] [data-close]").click()


def _export(page: Page) -> None:
    _builder(page)
    page.get_by_role("button", name="Export").click()
    page.locator(".formats label", has_text="SQL").click()
    page.locator("#x-count").fill("250000")
    page.wait_for_selector("#estimate b")


def _export_done(page: Page) -> None:
    _export(page)
    page.get_by_role("button", name="In the background").click()
    page.wait_for_selector("a:has-text('Download')", timeout=60_000)


def _new_key(page: Page) -> None:
    page.goto("/api-keys")
    page.locator("#new-key summary").click()
    page.locator("#name").fill("Nightly build")
    page.get_by_label("read").check()
    page.get_by_label("generate").check()
    page.get_by_role("button", name="Make the key").click()
    page.wait_for_selector(".made")


_KEY = {"name": "id", "type": "row_number"}
_SHOP: tuple[tuple[str, int, list[dict]], ...] = (
    ("Staff", 40, [_KEY, {"name": "name", "type": "name"}, {"name": "manager_id", "to": "self"}]),
    ("Regions", 12, [{"name": "code", "type": "uuid"}, {"name": "country", "type": "country"}]),
    (
        "Buyers",
        50_000,
        [_KEY, {"name": "name", "type": "name"}, {"name": "region", "to": "Regions", "field": "code"}],
    ),
    (
        "Purchases",
        50_000,
        [
            {"name": "id", "type": "uuid"},
            {"name": "buyer_id", "to": "Buyers", "cardinality": {"min": 0, "max": 4}},
            {"name": "sold_by", "to": "Staff"},
            {"name": "at", "type": "datetime"},
        ],
    ),
    (
        "Purchase lines",
        10,
        [
            _KEY,
            {"name": "purchase_id", "to": "Purchases", "cardinality": {"min": 1, "max": 9}},
            {"name": "product", "type": "product_name"},
            {"name": "price", "type": "number", "options": {"min": 1, "max": 90, "decimals": 2}},
        ],
    ),
)
_made: dict[str, str] = {}


def _shop(page: Page) -> str:
    """The address of a dataset of related templates, made once by a program."""
    if "dataset" in _made:
        return _made["dataset"]
    page.goto("/api-keys")
    page.locator("#new-key summary").click()
    page.locator("#name").fill("Pictures")
    page.get_by_role("button", name="Make the key").click()
    headers = {"Authorization": f"Bearer {page.locator('.made code').first.text_content()}"}

    def post(path: str, body: dict) -> str:
        answer = page.request.post(path, headers=headers, data=body)
        if not answer.ok:
            raise SystemExit(answer.text())
        return answer.json()["id"]

    for name, quantity, fields in _SHOP:
        made = []
        for field in fields:
            to = field.get("to")
            options = {"template_id": _made.get(to, to), "field": "id", **field}
            asked = {key: options[key] for key in ("template_id", "field", "cardinality") if key in options}
            made.append({"name": field["name"], "type": "reference", "options": asked} if to else field)
        _made[name] = post("/templates", {"name": name, "quantity": quantity, "fields": made})
    tables = [
        {"template_id": _made[name]} for name in ("Buyers", "Purchases", "Purchase lines", "Staff", "Regions")
    ]
    body = {
        "name": "Wholesale",
        "description": "Buyers and what they bought.",
        "seed": "shop",
        "templates": tables,
    }
    _made["dataset"] = f"/datasets/{post('/datasets', body)}"
    return _made["dataset"]


def _datasets(page: Page) -> None:
    _shop(page)
    page.goto("/datasets")


def _dataset(page: Page) -> None:
    page.goto(_shop(page))
    page.wait_for_selector(".diagram svg")


def _dataset_preview(page: Page) -> None:
    _dataset(page)
    page.locator("#preview-title").evaluate(
        "node => window.scrollTo(0, node.getBoundingClientRect().top + scrollY - 64)"
    )


def _dataset_use(page: Page) -> None:
    _dataset(page)
    page.get_by_text("Use it by program").click()
    page.get_by_text("Use it by program").evaluate(
        "node => window.scrollTo(0, node.getBoundingClientRect().top + scrollY - 160)"
    )


def _dataset_export(page: Page) -> None:
    _dataset(page)
    page.get_by_role("button", name="Export").click()
    page.locator(".formats label", has_text="SQL").click()


def _new_dataset(page: Page) -> None:
    page.goto("/datasets/new")
    page.locator("input.title").fill("Two tables")
    for name in ("Customers", "Orders"):
        page.locator("#add").select_option(label=name)
        page.get_by_role("button", name="Add").click()
        page.wait_for_selector(f".look h3:has-text('{name}')")


def _push_form(page: Page, name: str = "Customers") -> None:
    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("link", name="Push", exact=True).click()
    page.wait_for_selector(".mapping")


def _sent(page: Page, key: str) -> None:
    page.get_by_role("button", name="Push", exact=True).click()
    page.wait_for_url("**/pushes/psh_*")
    _made[key] = page.url
    page.locator("#work header .badge", has_text="completed").wait_for(timeout=120_000)


def _pushed(page: Page, key: str) -> None:
    """The page of a push: of a whole dataset, of many rows, of rows that are refused in part. Sent once."""
    if "all" not in _made:
        page.goto("/datasets")
        page.get_by_role("link", name="Shop", exact=True).click()
        page.get_by_role("link", name="Push", exact=True).click()
        _sent(page, "all")
        page.goto("/templates")
        _push_form(page)
        page.locator("#count").fill("1300")
        _sent(page, "refused")
        page.goto("/templates")
        _push_form(page)
        page.goto(f"{page.url.partition('?')[0]}?target=people")
        page.locator("#count").fill("300000")
        _sent(page, "many")
    page.goto(_made[key])


def _push_again(page: Page) -> None:
    _pushed(page, "refused")


def _push_many(page: Page) -> None:
    _pushed(page, "many")


def _push_rows(page: Page) -> None:
    _pushed(page, "refused")
    page.get_by_role("link", name="With values").click()
    page.wait_for_selector(".vals")
    page.locator("#rows").scroll_into_view_if_needed()


def _pushes(page: Page) -> None:
    _pushed(page, "all")
    page.goto("/pushes")


def _push_dry(page: Page) -> None:
    _push_form(page)
    page.locator("[aria-label='Field for state']").select_option("company")
    page.get_by_role("button", name="Dry run").click()
    page.wait_for_selector("#dry pre")
    page.locator("#dry").evaluate("node => window.scrollTo(0, node.getBoundingClientRect().top + scrollY - 64)")


def _push_dataset(page: Page) -> None:
    page.goto("/datasets")
    page.get_by_role("link", name="Shop", exact=True).click()
    page.get_by_role("link", name="Push", exact=True).click()
    page.wait_for_selector(".member")


def _connection(page: Page) -> None:
    page.goto("/connections")
    page.get_by_role("link", name="Shop database").click()
    page.wait_for_selector(".entity")
    page.locator(".entity summary").nth(1).click()


def _secrets(page: Page) -> None:
    page.goto("/secrets")
    page.locator("#name").fill("db_password")
    page.locator("#value").fill("not shown")
    page.get_by_role("button", name="Store it").click()
    page.wait_for_load_state("networkidle")


def _trash(page: Page) -> None:
    page.goto("/templates/new?names=id,name")
    page.locator("input.title").fill("Thrown away")
    page.locator("#save").click()
    page.wait_for_url("**/templates/tpl_*")
    page.goto("/templates")
    page.get_by_role("button", name="Delete Thrown away").first.click()
    page.wait_for_selector("[data-toast]")
    page.goto("/trash")


def _help_of_keys(page: Page) -> None:
    page.keyboard.press("?")


def _at(path: str) -> Callable[[Page], None]:
    def show(page: Page) -> None:
        page.goto(path)

    return show


PAGES: dict[str, Callable[[Page], None]] = {
    "templates": _at("/templates"),
    "new-template": _at(
        "/templates/new?names=id,first_name,last_name,email,phone,city,country,price,created_at"
    ),
    "builder": _builder,
    "builder-options": _open_row,
    "builder-fault": _fault,
    "builder-relations": _relations,
    "builder-relation": _relation,
    "builder-formula": _formula,
    "template-version": _version,
    "builder-nested": _nested,
    "builder-types": _picker,
    "builder-rows": _grid,
    "builder-json": _tab("JSON", "#json-text"),
    "builder-use": _tab("Use it", "#use pre"),
    "builder-versions": _versions,
    "datasets": _datasets,
    "dataset": _dataset,
    "dataset-preview": _dataset_preview,
    "dataset-export": _dataset_export,
    "dataset-use": _dataset_use,
    "new-dataset": _new_dataset,
    "export-dialog": _export,
    "export": _export_done,
    "exports": _at("/exports"),
    "connections": _at("/connections"),
    "new-connection": _at("/connections/new"),
    "connection": _connection,
    "secrets": _secrets,
    "push-form": _push_form,
    "push-dry-run": _push_dry,
    "push-dataset": _push_dataset,
    "push": _push_many,
    "push-failed": _push_again,
    "push-rows": _push_rows,
    "pushes": _pushes,
    "api-keys": _new_key,
    "profile": _at("/me"),
    "usage": _at("/usage"),
    "projects": _at("/projects"),
    "members": _at("/members"),
    "invitations": _at("/invitations"),
    "workspace": _at("/workspace"),
    "audit": _at("/audit"),
    "trash": _trash,
    "status": _at("/status"),
    "docs": _at("/docs"),
    "field-types": _at("/docs/field-types"),
    "field-types-number": _at("/docs/field-types/number"),
    "not-found": _at("/nowhere"),
    "keys": _help_of_keys,
}


def take(browser: Browser, link: str, wanted: list[str]) -> None:
    """Every picture. A picture larger than it should be is an error."""
    origin = link.split("/sign-in")[0]
    context = browser.new_context(base_url=origin)
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/templates")
    state = context.storage_state()
    for size, (width, height) in SIZES.items():
        for scheme in SCHEMES:
            look = {
                "viewport": {"width": width, "height": height},
                "color_scheme": scheme,
                "base_url": origin,
            }
            context = browser.new_context(storage_state=state, **look)
            stranger = browser.new_context(**look)
            if not wanted or "sign-in" in wanted:
                page = stranger.new_page()
                page.goto("/sign-in")
                shoot(page, f"sign-in-{size}-{scheme}")
            for name, show in PAGES.items():
                if wanted and name not in wanted:
                    continue
                page = context.new_page()
                page.on("dialog", lambda dialog: dialog.accept())
                page.goto("/templates")
                show(page)
                shoot(page, f"{name}-{size}-{scheme}")
                page.close()
            context.close()
            stranger.close()


def shoot(page: Page, name: str) -> None:
    """One picture of what is in view."""
    page.wait_for_load_state("networkidle")
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path, caret="initial")
    length = path.stat().st_size
    print(f"{path.relative_to(ROOT)}  {length / 1000:.0f} kB", flush=True)
    if length > MOST_BYTES:
        raise SystemExit(f"{path.name} has {length:,} bytes; {MOST_BYTES:,} are allowed.")


def main() -> None:
    """Start, take, stop."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("TEST_CHROMIUM") or shutil.which("chromium")
    with running() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        take(browser, link, sys.argv[1:])
        browser.close()


if __name__ == "__main__":
    main()
