"""Customers and their orders, from two templates into one database, so that every key finds its row.

Each template makes its rows by itself. The program ties them together: it gives both new keys, draws a customer for
each order, and sends parents before children. Run it as often as you like; every run adds to the tables.

Parameters: CUSTOMERS (20), ORDERS (60), CONNECTION (Shop database).
"""

import json
import os
import random
import time

from rowsmith import Client

client = Client()
customers_wanted = int(os.environ.get("CUSTOMERS", "20"))
orders_wanted = int(os.environ.get("ORDERS", "60"))
connection_name = os.environ.get("CONNECTION", "Shop database")


def named(things, name):
    """The one of a list that has this name."""
    for thing in things:
        if thing["name"] == name:
            return thing
    raise SystemExit(f"There is no {name!r} in this project.")


templates = client.get_templates()
connection = named(client.get_connections(), connection_name)

customers = client.generate_from_template_id(named(templates, "Customers")["id"], customers_wanted)
orders = client.generate_from_template_id(named(templates, "Orders")["id"], orders_wanted)
print(f"created {len(customers)} customers and {len(orders)} orders")

# Keys that no earlier run has used: milliseconds, and a place behind them.
first = time.time_ns() // 1_000_000 * 1_000
for place, customer in enumerate(customers):
    customer["id"] = first + place
    name, _, host = customer["email"].partition("@")
    customer["email"] = f"{name}.{first + place}@{host}"  # unique in the table

# One customer in ten is new and has not ordered yet; the others order as often as chance has it.
buyers = customers[: max(1, len(customers) * 9 // 10)]
for place, order in enumerate(orders):
    buyer = random.choice(buyers)
    order["id"] = first + place
    order["customer_id"] = buyer["id"]
    order["customer_email"] = buyer["email"]
    order["order_number"] = f"{order['ordered_at'][:4]}-{first + place}"

known = {customer["id"] for customer in customers}
lost = [order["id"] for order in orders if order["customer_id"] not in known]
if lost:
    raise SystemExit(f"{len(lost)} orders have no customer: {lost[:5]}")

for table, rows in (("customers", customers), ("orders", orders)):
    push = client.export_to_database({"connection_id": connection["id"], "table": table, "rows": rows})
    counts = push["counts"]
    print(f"{table}: {counts['delivered']} delivered, {counts['failed']} failed")
    if counts["failed"]:
        raise SystemExit(f"Not all rows of {table} arrived. See the push {push['id']} for the errors.")

report = {"customers": len(customers), "orders": len(orders), "first_key": first}
(client.outputs / "report.json").write_text(json.dumps(report, indent=2))
print("every order has its customer")
