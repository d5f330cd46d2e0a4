"""Customers and orders fetched over REST, joined, and posted as one document.

The service's own API is the source here; any other one is read the same way.

Parameters: CUSTOMERS (50).
"""

import json
import os
from collections import defaultdict

import requests

url = os.environ["SERVICE_API_URL"]
api = requests.Session()
api.headers["X-API-Key"] = os.environ["SERVICE_API_KEY"]
wanted = int(os.environ.get("CUSTOMERS", "50"))


def fetch(name, count):
    """Rows of the template of this name."""
    found = api.get(f"{url}/templates", params={"q": name}, timeout=30).json()["items"]
    template = next(item for item in found if item["name"] == name)
    ask = {"count": count, "seed": "join"}
    return api.post(f"{url}/templates/{template['id']}/generate", json=ask, timeout=60).json()


customers = fetch("Customers", wanted)
orders = fetch("Orders", wanted * 3)

bought = defaultdict(list)
for order in orders:
    bought[order["customer_id"]].append(order["order_number"])
joined = [{"email": customer["email"], "orders": bought[customer["id"]]} for customer in customers]

files = {"file": ("customers.json", json.dumps(joined))}
api.post(f"{url}/workspace/files", data={"name": "joined/customers.json"}, files=files, timeout=60)
print(f"posted {len(joined)} customers")
