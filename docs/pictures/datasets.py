"""Related templates and datasets of them."""

from __future__ import annotations

from playwright.sync_api import Page

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
MADE: dict[str, str] = {}
"""What was made for one picture and is used by others: ids and addresses by name."""


def post(page: Page, path: str, body: dict) -> str:
    """Make something by a program, whose key is made once; its id."""
    if "key" not in MADE:
        page.goto("/api-keys")
        page.locator("#new-key summary").click()
        page.locator("#name").fill("Pictures")
        page.get_by_label("write", exact=True).check()
        page.get_by_role("button", name="Create key").click()
        MADE["key"] = page.locator(".made code").first.text_content() or ""
    answer = page.request.post(path, headers={"Authorization": f"Bearer {MADE['key']}"}, data=body)
    if not answer.ok:
        raise SystemExit(answer.text())
    return answer.json()["id"]


def shop(page: Page) -> str:
    """The address of a dataset of related templates, made once by a program."""
    if "dataset" in MADE:
        return MADE["dataset"]
    for name, quantity, fields in _SHOP:
        made = []
        for field in fields:
            to = field.get("to")
            options = {"template_id": MADE.get(to, to), "field": "id", **field}
            asked = {key: options[key] for key in ("template_id", "field", "cardinality") if key in options}
            made.append({"name": field["name"], "type": "reference", "options": asked} if to else field)
        MADE[name] = post(page, "/templates", {"name": name, "quantity": quantity, "fields": made})
    tables = [
        {"template_id": MADE[name]} for name in ("Buyers", "Purchases", "Purchase lines", "Staff", "Regions")
    ]
    body = {
        "name": "Wholesale",
        "description": "Buyers and what they bought.",
        "seed": "shop",
        "templates": tables,
    }
    MADE["dataset"] = f"/datasets/{post(page, '/datasets', body)}"
    return MADE["dataset"]


def datasets(page: Page) -> None:
    """The list."""
    shop(page)
    page.goto("/datasets")


def dataset(page: Page) -> None:
    """A dataset with its diagram."""
    page.goto(shop(page))
    page.wait_for_selector(".tcard")


def dataset_preview(page: Page) -> None:
    """The rows of one table in the drawer."""
    dataset(page)
    page.locator(".tcard").get_by_role("heading", name="Purchases", exact=True).get_by_role("link").click()
    page.wait_for_selector("#drawer .grid")


def dataset_use(page: Page) -> None:
    """Its use with the API."""
    page.goto(f"{shop(page)}?view=api")


def dataset_export(page: Page) -> None:
    """Its destination."""
    dataset(page)
    page.get_by_role("button", name="Destination").click()
    page.locator("#file-form .formats label", has_text="SQL").click()


def new_dataset(page: Page) -> None:
    """The form of a new one."""
    page.goto("/datasets/new")
    page.get_by_label("Name").fill("Two tables")
    for name in ("Customers", "Orders"):
        page.get_by_label(name).first.check()
