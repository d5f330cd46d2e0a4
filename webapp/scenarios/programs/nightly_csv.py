"""A fresh CSV file every night: what another system takes in the morning.

All files that are in the output folder when the program ends are stored with the run. Download them from its page or
with
GET /workspace/files. To turn the schedule on, open Settings.

Parameters: ROWS (500), TEMPLATE (Customers).
"""

import csv
import os
from datetime import datetime, timezone
from pathlib import Path

from rowsmith import Client

client = Client()
name = os.environ.get("TEMPLATE", "Customers")
rows_wanted = int(os.environ.get("ROWS", "500"))

template = next((item for item in client.get_templates() if item["name"] == name), None)
if template is None:
    raise SystemExit(f"There is no template {name!r} in this project.")

rows = client.generate_from_template_id(template["id"], rows_wanted)
today = datetime.now(timezone.utc).date()
path = Path(os.environ["SERVICE_WORKSPACE_OUTPUTS"]) / f"{name.lower()}-{today}.csv"
with path.open("w", newline="", encoding="utf-8") as file:
    writer = csv.DictWriter(file, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)

print(f"{path.name}: {len(rows)} rows, {path.stat().st_size} bytes")
