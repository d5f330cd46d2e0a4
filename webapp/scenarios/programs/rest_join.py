# requirements: tenacity
"""Customers and orders fetched over REST, joined, and posted as one document, with retries in plain Python.

The service's own API is the source and the target here; any other one is spoken to in the same way. A request that
meets a busy or a broken server is sent again after a while, one that is refused is not.

Parameters: CUSTOMERS (50).
"""

import json
import os
from collections import defaultdict

import requests
from tenacity import retry, retry_if_exception, stop_after_attempt, wait_exponential

url = os.environ["SERVICE_API_URL"]
api = requests.Session()
api.headers["X-API-Key"] = os.environ["SERVICE_API_KEY"]
wanted = int(os.environ.get("CUSTOMERS", "50"))


def passing(error):
    """Whether what went wrong may go right the next time."""
    if isinstance(error, requests.HTTPError):
        return error.response.status_code in (429, 502, 503, 504)
    return isinstance(error, (requests.ConnectionError, requests.Timeout))


@retry(
    retry=retry_if_exception(passing),
    stop=stop_after_attempt(4),
    wait=wait_exponential(max=8),
    before_sleep=lambda state: print(f"attempt {state.attempt_number} failed, retrying", flush=True),
    reraise=True,
)
def call(method, path, **how):
    """One request, and its answer as JSON."""
    answer = api.request(method, url + path, timeout=60, **how)
    answer.raise_for_status()
    return answer.json()


def fetch(name, count):
    """Rows of the template of this name."""
    found = call("GET", "/templates", params={"q": name})["items"]
    template = next((item for item in found if item["name"] == name), None)
    if template is None:
        raise SystemExit(f"There is no template {name!r} in this project.")
    return call("POST", f"/templates/{template['id']}/generate", json={"count": count, "seed": "join"})


customers = fetch("Customers", wanted)
orders = fetch("Orders", wanted * 3)
print(f"fetched {len(customers)} customers and {len(orders)} orders")

bought = defaultdict(list)
for order in orders:
    bought[order["customer_id"]].append(order)

joined = [
    {
        "email": customer["email"],
        "city": customer["city"],
        "orders": [order["order_number"] for order in bought[customer["id"]]],
        "spent": round(sum(float(order.get("total") or 0) for order in bought[customer["id"]]), 2),
    }
    for customer in customers
    if bought[customer["id"]]
]
joined.sort(key=lambda item: item["spent"], reverse=True)
print(f"joined: {len(joined)} of {len(customers)} customers have ordered")

document = json.dumps(joined, indent=2, ensure_ascii=False)
posted = call(
    "POST",
    "/workspace/files",
    data={"name": "joined/customers.json"},
    files={"file": ("customers.json", document.encode(), "application/json")},
)
print(f"posted {posted['name']}, {posted['size']} bytes")
for item in joined[:3]:
    print(f"  {item['spent']:>10.2f}  {item['email']}")
