"""Every page that is taken, by the name of its picture."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

from pictures import builder, datasets, fill, http, pushes, scenarios


def secrets(page: Page) -> None:
    """The list of secrets, one just stored."""
    page.goto("/secrets")
    page.locator("#name").fill("db_password")
    page.locator("#value").fill("not shown")
    page.get_by_role("button", name="Save secret").click()
    page.wait_for_load_state("networkidle")


def trash(page: Page) -> None:
    """Something thrown away."""
    delete_asks(page)
    page.get_by_role("button", name="Delete Thrown away").click()
    page.wait_for_selector("[data-toast]")
    page.goto("/trash")


def delete_asks(page: Page) -> None:
    """The question before something is deleted."""
    page.goto("/templates/new?names=id,name")
    page.locator("input.title").fill("Thrown away")
    page.locator("#save").click()
    page.wait_for_url("**/templates/tpl_*")
    page.goto("/templates")
    page.get_by_role("link", name="Delete Thrown away").first.click()
    page.get_by_role("button", name="Delete Thrown away").wait_for()


def two_factor(page: Page) -> None:
    """A second factor being set up."""
    page.goto("/me/two-factor")
    if not page.locator(".qr").is_visible():  # begun for another picture
        page.get_by_role("button", name="Set up two-factor sign-in").click()
    page.locator(".qr").wait_for()


def leak_report(page: Page) -> None:
    """An export of a masked copy, and what was looked for in it."""
    masked_copy(page)
    page.get_by_role("button", name="Create template").click()
    page.wait_for_url("**/templates/tpl_*")
    page.goto(f"{page.url}#export")
    page.reload()
    page.get_by_role("button", name="Run in background").click()
    page.wait_for_url("**/exports/exp_*")
    page.get_by_role("region", name="Leak check").wait_for(timeout=60_000)


def help_of_keys(page: Page) -> None:
    """The keyboard shortcuts."""
    page.keyboard.press("?")


SCHEMA = """CREATE TABLE customers (id integer PRIMARY KEY, email varchar(120) NOT NULL UNIQUE, country char(2),
  created_at timestamp NOT NULL);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers (id),
  status varchar(9) CHECK (status IN ('new', 'paid', 'shipped')), total numeric(9, 2), tsv_blob bytea);"""
_NAMES = (
    "Ann Lee",
    "Bo Ruiz",
    "Cy Okafor",
    "Dee Novak",
    "Eli Brandt",
    "Fay Costa",
    "Gus Meyer",
    "Hal Ito",
    "Ida Lund",
)
_CITIES = ("Boston", "Denver", "Austin")
PEOPLE = "id,first_name,last_name,email,phone,city,balance\n" + "".join(
    f"{n},{name.replace(' ', ',')},{name.lower().replace(' ', '.')}{n}@corp.test,+1 202 555 0{100 + n},"
    f"{_CITIES[n % 3]},{n * 7 % 50}.50\n"
    for n, name in enumerate(_NAMES * 4, 1)
)


def into_view(page: Page, what: str) -> None:
    """Scroll until it begins under the head of the page."""
    begin = "node => window.scrollTo(0, node.getBoundingClientRect().top + scrollY - 64)"
    page.locator(what).evaluate(begin)


def importing(page: Page) -> None:
    """The result of an import of two tables."""
    page.goto("/import")
    page.locator("textarea").first.fill(SCHEMA)
    page.get_by_role("button", name="Review").click()
    page.locator("#result table").first.wait_for()
    into_view(page, "#result")


def masked_copy(page: Page) -> None:
    """A file dropped, and which of its columns are personal."""
    page.goto("/templates/masked")
    page.locator("input[type=file]").first.set_input_files(
        {"name": "people.csv", "mimeType": "text/csv", "buffer": PEOPLE.encode()}
    )
    page.get_by_role("button", name="Detect personal data").click()
    page.locator("#copy").wait_for()
    page.wait_for_load_state("networkidle")
    into_view(page, "#copy")


def at(path: str) -> Callable[[Page], None]:
    """A page as it opens."""

    def show(page: Page) -> None:
        page.goto(path)

    return show


PAGES: dict[str, Callable[[Page], None]] = {
    "home": at("/"),
    "templates": at("/templates"),
    "new-template": at(
        "/templates/new?names=id,first_name,last_name,email,phone,city,country,price,created_at"
    ),
    "builder": builder.builder,
    "builder-options": builder.open_row,
    "builder-fault": builder.fault,
    "builder-relations": builder.relations,
    "builder-relation": builder.relation,
    "builder-formula": builder.formula,
    "template-version": builder.version,
    "builder-nested": builder.nested,
    "builder-types": builder.picker,
    "builder-rows": builder.grid,
    "builder-json": builder.tab("JSON", "#json-text"),
    "builder-use": builder.tab("API", ".textview pre"),
    "builder-versions": builder.versions,
    "import": importing,
    "masked-copy": masked_copy,
    "leak-report": leak_report,
    "masking-keys": at("/masking/keys"),
    "webhooks": at("/webhooks"),
    "datasets": datasets.datasets,
    "dataset": datasets.dataset,
    "dataset-preview": datasets.dataset_preview,
    "dataset-export": datasets.dataset_export,
    "dataset-use": datasets.dataset_use,
    "new-dataset": datasets.new_dataset,
    "export-dialog": builder.export,
    "export": builder.export_done,
    "activity": pushes.pushes,
    "connections": at("/connections"),
    "new-connection": at("/connections/new"),
    "connection": pushes.connection,
    "fill": fill.form,
    "fill-plan": fill.plan,
    "fill-push": fill.push,
    "scenarios": at("/scenarios"),
    "scenario": scenarios.scenario,
    "scenario-completion": scenarios.completion,
    "scenario-settings": scenarios.settings,
    "scenario-versions": scenarios.versions,
    "new-scenario": at("/scenarios/new"),
    "run": scenarios.run,
    "runs": scenarios.history,
    "secrets": secrets,
    "push-form": pushes.push_form,
    "push-dry-run": pushes.push_dry,
    "push-dataset": pushes.push_dataset,
    "push": pushes.push_many,
    "push-failed": pushes.push_again,
    "push-rows": pushes.push_rows,
    "api-keys": builder.new_key,
    "profile": at("/me"),
    "two-factor": two_factor,
    "usage": at("/usage"),
    "projects": at("/projects"),
    "members": at("/members"),
    "invitations": at("/invitations"),
    "workspace": at("/workspace"),
    "audit": at("/audit"),
    "delete-question": delete_asks,
    "trash": trash,
    "status": at("/status"),
    "docs": at("/docs"),
    "docs-start": at("/docs/guide/start"),
    "docs-api": at("/docs/api"),
    "docs-api-templates": at("/docs/api/templates"),
    "docs-api-operation": at("/docs/api/templates/post-templates"),
    "field-types": at("/docs/field-types"),
    "field-types-number": at("/docs/field-types/number"),
    "not-found": at("/nowhere"),
    "keys": help_of_keys,
    "new-connection-rest": http.new_rest,
    "connection-rest": http.rest,
    "connection-odata": http.odata,
    "endpoints": http.endpoints,
    "endpoint": http.endpoint,
    "endpoint-form": http.endpoint_form,
    "push-http-dry-run": http.push_dry,
    "push-http": http.push,
}
