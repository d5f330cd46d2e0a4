"""Who may do what on the pages of pushes."""

from __future__ import annotations

from tests.security.matrix import Case

FORM = {"connection_id": "{push_target}", "create_table": "yes", "do": "plan"}

CASES = [
    Case(
        "GET", "/templates/<template_id>/push", "editor", url="/templates/{push_template}/push", person=True,
    ),
    Case(
        "POST", "/templates/<template_id>/push/form", "editor", url="/templates/{push_template}/push/form", body=FORM,
        person=True,
    ),
    Case(
        "GET", "/datasets/<dataset_id>/push", "editor", url="/datasets/{push_dataset}/push", person=True
    ),
    Case(
        "POST", "/datasets/<dataset_id>/push/form", "editor", url="/datasets/{push_dataset}/push/form", body=FORM,
        person=True,
    ),
    Case("GET", "/destinations", "editor", person=True),
    Case("GET", "/destinations/target", "editor", url="/destinations/target?connection_id={push_target}", person=True),
    Case(
        "GET", "/connections/<connection_id>/targets", "viewer", url="/connections/{push_target}/targets", person=True,
    ),
    Case("GET", "/pushes/<push_id>/failures", "viewer", url="/pushes/{ended_push}/failures", person=True),
    Case(
        "POST", "/pushes/<push_id>/repair", "editor", url="/pushes/{ended_push}/repair", body={"states": "failed"},
        ok=303, person=True,
    ),
    Case(
        "POST", "/pushes/<push_id>/rerun", "editor", url="/pushes/{ended_push}/rerun", body={}, ok=422, person=True,
    ),
]  # fmt: skip
