"""The starters as data: related tables with their fields, parents first.

A table is the definition of a template; in a `reference`, `template_id` is the name of another table of the starter.
Names of fields are those of the domain, so that rows fit a database that was designed for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

_COMMON: Final = frozenset(
    {"unique", "percent_blank", "prefix", "suffix", "text_case", "hidden", "group", "sensitive"}
)


@dataclass(frozen=True, slots=True)
class Starter:
    """A set of related tables. `family` is the colour of its card, `icon` a name of the sprite."""

    key: str
    name: str
    about: str
    icon: str
    family: str
    tables: tuple[dict[str, Any], ...]

    def table(self, name: str) -> dict[str, Any] | None:
        """Return the definition of a table, or None."""
        return next((table for table in self.tables if table["name"] == name), None)

    def title(self, table: Mapping[str, Any]) -> str:
        """Return what a table is called outside of its starter, such as "Shop customers"."""
        return self.name if "_" in table["name"] else f"{self.name} {table['name']}"

    def parents(self, table: Mapping[str, Any]) -> list[str]:
        """Return the names of the tables that a table refers to, without itself."""
        named = {field["options"].get("template_id") for field in table["fields"]}
        return [other["name"] for other in self.tables if other["name"] in named and other is not table]


def _field(name: str, kind: str, /, **more: Any) -> dict[str, Any]:
    options = {key: value for key, value in more.items() if key not in _COMMON}
    return {
        "name": name,
        "type": kind,
        "options": options,
        **{key: value for key, value in more.items() if key in _COMMON},
    }


def _child_of(name: str, table: str, minimum: int, maximum: int, field: str = "id") -> dict[str, Any]:
    """Return a reference to a table, with the number of child rows for each of its rows."""
    return _field(
        name, "reference", template_id=table, field=field, cardinality={"min": minimum, "max": maximum}
    )


def _reference(name: str, table: str, field: str = "id") -> dict[str, Any]:
    """Return a reference to any row of a table."""
    return _field(name, "reference", template_id=table, field=field)


def _table(name: str, quantity: int, *fields: dict[str, Any], about: str = "") -> dict[str, Any]:
    return {"name": name, "description": about, "quantity": quantity, "fields": list(fields)}


_SHOP = Starter(
    "shop",
    "Shop",
    "Customers, orders, lines, payments",
    "cart",
    "logic",
    (
        _table(
            "customers",
            200,
            _field("id", "row_number"),
            _field("first_name", "first_name"),
            _field("last_name", "last_name"),
            _field("email", "email", unique=True),
            _field("phone", "phone_number", percent_blank=15),
            _field("street", "street_address"),
            _field("city", "city"),
            _field("zip_code", "zip_code"),
            _field("country", "country_code"),
            _field("created_at", "datetime", min="-3y", max="now"),
            about="People with one address each",
        ),
        _table(
            "orders",
            600,
            _field("id", "row_number"),
            _child_of("customer_id", "customers", 0, 6),
            _field("ordered_at", "datetime", min="-180d", max="now"),
            _field("status", "enum", values=["paid", "shipped", "open", "returned"], weights=[50, 30, 15, 5]),
            _field("channel", "enum", values=["web", "app", "store"], weights=[60, 30, 10]),
            about="0 to 6 for each customer",
        ),
        _table(
            "order_lines",
            1800,
            _child_of("order_id", "orders", 1, 5),
            _field("line", "position_in_parent"),
            _field("sku", "sku"),
            _field("product", "product_name"),
            _field("quantity", "number", min=1, max=9),
            _field(
                "unit_price",
                "number",
                min=3,
                max=900,
                decimals=2,
                distribution="lognormal",
                mean=60,
                stddev=55,
            ),
            _field("amount", "formula", expression="quantity * unit_price"),
            about="1 to 5 for each order; amounts follow from quantity and price",
        ),
        _table(
            "payments",
            600,
            _field("id", "uuid"),
            _child_of("order_id", "orders", 1, 1),
            _field("method", "enum", values=["card", "invoice", "wallet"], weights=[70, 20, 10]),
            _field("card_type", "credit_card_type", group="card"),
            _field("card_number", "credit_card_number", group="card", sensitive=True),
            _field("paid_at", "datetime", min="-180d", max="now", percent_blank=12),
            about="One for each order",
        ),
    ),
)
_CRM = Starter(
    "crm",
    "CRM",
    "Accounts, contacts, deals, activities",
    "users",
    "person",
    (
        _table(
            "accounts",
            80,
            _field("id", "row_number"),
            _field("name", "company_name"),
            _field("industry", "industry"),
            _field("website", "url"),
            _field("city", "city"),
            _field("country", "country"),
            _field("employees", "number", min=2, max=20_000, distribution="lognormal", mean=350, stddev=900),
            _field("since", "date", min="-8y", max="now"),
            about="Companies",
        ),
        _table(
            "contacts",
            240,
            _field("id", "row_number"),
            _child_of("account_id", "accounts", 1, 6),
            _field("first_name", "first_name"),
            _field("last_name", "last_name"),
            _field("email", "email", unique=True),
            _field("phone", "phone_number"),
            _field("job_title", "job_title"),
            _field("opted_in", "boolean", probability=0.6),
            about="1 to 6 for each account",
        ),
        _table(
            "deals",
            160,
            _field("id", "row_number"),
            _child_of("account_id", "accounts", 0, 5),
            _field("title", "catch_phrase"),
            _field(
                "stage",
                "enum",
                values=["lead", "qualified", "proposal", "won", "lost"],
                weights=[30, 25, 20, 15, 10],
            ),
            _field(
                "value",
                "number",
                min=500,
                max=500_000,
                decimals=2,
                distribution="lognormal",
                mean=18_000,
                stddev=30_000,
            ),
            _field("closes_on", "date", min="now", max="+120d"),
            about="0 to 5 for each account, most of them small",
        ),
        _table(
            "activities",
            800,
            _field("id", "uuid"),
            _reference("contact_id", "contacts"),
            _field("kind", "enum", values=["call", "mail", "meeting", "note"], weights=[35, 40, 15, 10]),
            _field("at", "datetime", min="-90d", max="now"),
            _field("minutes", "number", min=1, max=90),
            _field("note", "sentences", count=1, percent_blank=40),
            about="Calls, mails and meetings with contacts",
        ),
    ),
)
_PAYMENTS = Starter(
    "payments",
    "Payments",
    "Accounts, cards, transfers, disputes",
    "card",
    "finance",
    (
        _table(
            "accounts",
            150,
            _field("id", "row_number"),
            _field("holder", "name"),
            _field("iban", "iban", sensitive=True, unique=True),
            _field("bic", "bic"),
            _field("currency", "enum", values=["EUR", "USD", "GBP"], weights=[80, 12, 8]),
            _field("opened_on", "date", min="-10y", max="-30d"),
            _field("limit", "number", min=500, max=25_000, step=500),
            about="Bank accounts with correct check digits",
        ),
        _table(
            "cards",
            220,
            _field("id", "row_number"),
            _child_of("account_id", "accounts", 1, 2),
            _field("number", "credit_card_number", group="card", sensitive=True),
            _field("type", "credit_card_type", group="card"),
            _field("expires", "card_expiry", group="card"),
            _field("blocked", "boolean", probability=0.03),
            about="1 or 2 for each account",
        ),
        _table(
            "transfers",
            3000,
            _field("id", "uuid"),
            _child_of("account_id", "accounts", 0, 60),
            _field("booked_at", "datetime", min="-60d", max="now"),
            _field(
                "amount",
                "number",
                min=0.5,
                max=20_000,
                decimals=2,
                distribution="lognormal",
                mean=84,
                stddev=260,
            ),
            _field("direction", "enum", values=["debit", "credit"], weights=[85, 15]),
            _field("counterparty", "company_name"),
            _field("counterparty_iban", "iban", sensitive=True),
            _field("purpose", "sentences", count=1),
            about="Up to 60 for each account; small amounts are frequent",
        ),
        _table(
            "disputes",
            60,
            _field("id", "row_number"),
            _reference("transfer_id", "transfers"),
            _field(
                "reason",
                "enum",
                values=["fraud", "duplicate", "not received", "wrong amount"],
                weights=[35, 20, 30, 15],
            ),
            _field("opened_at", "datetime", min="-45d", max="now"),
            _field("state", "enum", values=["open", "accepted", "rejected"], weights=[40, 35, 25]),
            about="Transfers that customers contest",
        ),
    ),
)
_HR = Starter(
    "hr",
    "HR",
    "Teams, employees, contracts, leave",
    "user",
    "time",
    (
        _table(
            "teams",
            12,
            _field("id", "row_number"),
            _field("name", "department"),
            _field("cost_center", "character_sequence", mask="CC-####"),
            _field("city", "city"),
            about="Departments with a cost center",
        ),
        _table(
            "employees",
            180,
            _field("id", "row_number"),
            _child_of("team_id", "teams", 4, 26),
            _field("first_name", "first_name"),
            _field("last_name", "last_name"),
            _field("email", "company_email", unique=True),
            _field("date_of_birth", "date_of_birth", sensitive=True),
            _field("job_title", "job_title"),
            _field("phone", "phone_number"),
            _field("hired_on", "date", min="-12y", max="-14d"),
            about="4 to 26 in each team",
        ),
        _table(
            "contracts",
            180,
            _field("id", "uuid"),
            _child_of("employee_id", "employees", 1, 1),
            _field(
                "kind", "enum", values=["permanent", "fixed term", "working student"], weights=[80, 14, 6]
            ),
            _field("hours_per_week", "enum", values=["40", "35", "30", "20"], weights=[60, 15, 15, 10]),
            _field(
                "salary",
                "number",
                min=28_000,
                max=190_000,
                sensitive=True,
                distribution="lognormal",
                mean=62_000,
                stddev=21_000,
            ),
            _field("iban", "iban", sensitive=True),
            about="One for each employee",
        ),
        _table(
            "leave",
            700,
            _field("id", "row_number"),
            _child_of("employee_id", "employees", 0, 8),
            _field("kind", "enum", values=["vacation", "sick", "parental", "unpaid"], weights=[70, 24, 4, 2]),
            _field("starts_on", "date", min="-365d", max="+60d"),
            _field("days", "number", min=1, max=20, distribution="lognormal", mean=4, stddev=3),
            _field("approved", "boolean", probability=0.92),
            about="0 to 8 for each employee",
        ),
    ),
)
_IOT = Starter(
    "iot",
    "IoT",
    "Sites, devices, readings as time series",
    "chip",
    "number",
    (
        _table(
            "sites",
            8,
            _field("id", "row_number"),
            _field("name", "city"),
            _field("country", "country"),
            _field("latitude", "latitude"),
            _field("longitude", "longitude"),
            _field("time_zone", "time_zone"),
            about="Places with coordinates and time zone that agree",
        ),
        _table(
            "devices",
            60,
            _field("id", "row_number"),
            _child_of("site_id", "sites", 3, 12),
            _field("serial", "character_sequence", mask="SN-^^####"),
            _field("mac", "mac_address", unique=True),
            _field("firmware", "semver"),
            _field("kind", "enum", values=["temperature", "vibration", "power"], weights=[50, 30, 20]),
            _field("installed_on", "date", min="-4y", max="-10d"),
            about="3 to 12 at each site",
        ),
        _table(
            "readings",
            6000,
            _child_of("device_id", "devices", 60, 140),
            _field("number", "position_in_parent"),
            _field("at", "datetime", min="-1d", max="now"),
            _field(
                "value", "number", min=-20, max=120, decimals=2, distribution="normal", mean=38, stddev=14
            ),
            _field("quality", "enum", values=["good", "uncertain", "bad"], weights=[96, 3, 1]),
            _field("battery_percent", "number", min=5, max=100),
            about="60 to 140 for each device in a day",
        ),
    ),
)
_SAP = Starter(
    "sap-business-partner",
    "SAP business partner",
    "Partners, addresses, banks, roles",
    "building",
    "place",
    (
        _table(
            "A_BusinessPartner",
            100,
            _field("BusinessPartner", "sequence", start=1_000_000, pad=10),
            _field("BusinessPartnerCategory", "enum", values=["1", "2"], weights=[40, 60]),
            _field("BusinessPartnerGrouping", "constant", value="BP02"),
            _field("OrganizationBPName1", "company_name"),
            _field("FirstName", "first_name", percent_blank=60),
            _field("LastName", "last_name", percent_blank=60),
            _field("SearchTerm1", "slug"),
            _field("Language", "enum", values=["EN", "DE", "FR"], weights=[50, 40, 10]),
            _field("CreationDate", "date", min="-6y", max="now"),
            _field("BusinessPartnerIsBlocked", "boolean", probability=0.02),
            about="General data, as of the API for business partners",
        ),
        _table(
            "A_BusinessPartnerAddress",
            140,
            _child_of("BusinessPartner", "A_BusinessPartner", 1, 3, "BusinessPartner"),
            _field("AddressID", "sequence", start=20_000, pad=10),
            _field("StreetName", "street_name"),
            _field("HouseNumber", "street_number"),
            _field("PostalCode", "zip_code"),
            _field("CityName", "city"),
            _field("Country", "country_code"),
            about="1 to 3 for each partner",
        ),
        _table(
            "A_BusinessPartnerBank",
            110,
            _child_of("BusinessPartner", "A_BusinessPartner", 0, 2, "BusinessPartner"),
            _field("BankIdentification", "position_in_parent"),
            _field("BankCountryKey", "constant", value="DE"),
            _field("BankName", "bank_name"),
            _field("SWIFTCode", "bic"),
            _field("IBAN", "iban", countryCode="DE", sensitive=True),
            _field("BankAccountHolderName", "name"),
            about="0 to 2 for each partner",
        ),
        _table(
            "A_BusinessPartnerRole",
            180,
            _child_of("BusinessPartner", "A_BusinessPartner", 1, 3, "BusinessPartner"),
            _field(
                "BusinessPartnerRole",
                "enum",
                values=["FLCU00", "FLCU01", "FLVN00", "FLVN01"],
                weights=[30, 35, 15, 20],
            ),
            _field("ValidFrom", "date", min="-6y", max="now"),
            about="1 to 3 for each partner",
        ),
    ),
)

STARTERS: Final[Mapping[str, Starter]] = MappingProxyType(
    {starter.key: starter for starter in (_SHOP, _CRM, _PAYMENTS, _HR, _IOT, _SAP)}
)
