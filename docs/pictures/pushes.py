"""Pushes into the demo's database, and its connection."""

from __future__ import annotations

from playwright.sync_api import Page

from pictures.datasets import MADE


def push_form(page: Page, name: str = "Customers") -> None:
    """The form, mapped."""
    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("link", name="Send to…").click()
    choose(page)
    page.wait_for_selector(".mapping")


def choose(page: Page) -> None:
    """The demo's database, whatever other connections there are by now."""
    connection = page.get_by_label("Connection", exact=True)
    shop = connection.locator("option", has_text="Shop database")
    connection.select_option(value=shop.first.get_attribute("value"))
    page.wait_for_load_state("networkidle")  # the form is rendered again, and earlier input is lost


def sent(page: Page, key: str) -> None:
    """Submit the form, and store the URL of the push."""
    page.get_by_role("button", name="Push", exact=True).click()
    page.wait_for_url("**/pushes/psh_*")
    MADE[key] = page.url
    page.locator("#work header .badge", has_text="Completed").wait_for(timeout=120_000)


def pushed(page: Page, key: str) -> None:
    """The page of a push: of a whole dataset, of many rows, of rows that are refused in part. Sent once."""
    if "all" not in MADE:
        page.goto("/datasets")
        page.get_by_role("link", name="Shop", exact=True).click()
        page.wait_for_url("**/datasets/dst_*")
        page.goto(f"{page.url}/push")
        sent(page, "all")
        page.goto("/templates")
        push_form(page)
        page.locator("#count").fill("1300")
        sent(page, "refused")
        page.goto("/templates")
        push_form(page)
        page.goto(f"{page.url.partition('?')[0]}?target=people")
        page.locator("#count").fill("300000")
        sent(page, "many")
    page.goto(MADE[key])


def push_again(page: Page) -> None:
    """A push some of whose rows were refused."""
    pushed(page, "refused")


def push_many(page: Page) -> None:
    """A push of many rows."""
    pushed(page, "many")


def push_rows(page: Page) -> None:
    """Rows that were refused, with their values."""
    pushed(page, "refused")
    page.get_by_role("link", name="With values").click()
    page.wait_for_selector(".vals")
    page.locator("#rows").scroll_into_view_if_needed()


def pushes(page: Page) -> None:
    """The list."""
    pushed(page, "all")
    page.goto("/activity")


def push_dry(page: Page) -> None:
    """A dry run."""
    push_form(page)
    page.locator("[aria-label='Field for state']").select_option("company")
    page.get_by_role("button", name="Dry run").click()
    page.wait_for_selector("#dry pre")
    page.locator("#dry").evaluate(
        "node => window.scrollTo(0, node.getBoundingClientRect().top + scrollY - 64)"
    )


def push_dataset(page: Page) -> None:
    """The form of a whole dataset."""
    page.goto("/datasets")
    page.get_by_role("link", name="Shop", exact=True).click()
    page.wait_for_url("**/datasets/dst_*")
    page.goto(f"{page.url}/push")
    choose(page)
    page.wait_for_selector(".member")


def connection(page: Page) -> None:
    """The database and its tables."""
    page.goto("/connections")
    page.get_by_role("link", name="Shop database").click()
    page.wait_for_selector(".entity")
    page.locator(".entity summary").nth(1).click()
