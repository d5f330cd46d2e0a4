"""Permissions for webhooks, and for notifications about a user's own work."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp import clock, ids
from webapp.access import actors
from webapp.extensions import db
from webapp.notifications.models import Delivery
from webapp.notifications.services import webhooks

URL = "http://127.0.0.1:9/hook"


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    stored, trashed = (webhooks.create(acme, URL, ["*"])[0] for _ in range(2))
    whole = webhooks.create(acme, URL, ["*"], scope="workspace")[0]
    webhooks.delete(acme, webhooks.get(acme, trashed.id, lock=True))
    now = clock.now()
    sent = Delivery(
        id=ids.new("dlv"),
        webhook_id=stored.id,
        event="export.completed",
        body="{}",
        status="failed",
        ended_at=now,
    )
    db.session.add(sent)
    db.session.commit()
    found = {
        "webhook": stored.id,
        "trashed_webhook": trashed.id,
        "whole_webhook": whole.id,
        "delivery": sent.id,
    }
    db.session.remove()
    return found


ONE, DELIVERY = "/webhooks/{webhook}", "/webhooks/{webhook}/deliveries/{delivery}"
NEW = {"url": URL, "events": ["push.*"]}

CASES = [
    Case("GET", "/webhooks", "editor", scope="write"),
    Case("POST", "/webhooks", "editor", body=NEW, ok=201, scope="write"),
    Case("POST", "/webhooks", "admin", body={**NEW, "scope": "workspace"}, ok=201),
    Case("GET", "/webhooks/<webhook_id>", "editor", url=ONE, scope="write"),
    Case("GET", "/webhooks/<webhook_id>", "admin", url="/webhooks/{whole_webhook}"),
    Case("PATCH", "/webhooks/<webhook_id>", "editor", url=ONE, body={"description": "Other"}, scope="write"),
    Case("PATCH", "/webhooks/<webhook_id>", "admin", url="/webhooks/{whole_webhook}", body={"active": False}),
    Case("DELETE", "/webhooks/<webhook_id>", "editor", url=ONE, scope="write"),
    Case("DELETE", "/webhooks/<webhook_id>", "admin", url="/webhooks/{whole_webhook}"),
    Case(
        "POST", "/webhooks/<webhook_id>/restore", "editor", url="/webhooks/{trashed_webhook}/restore", scope="write",
    ),
    Case("POST", "/webhooks/<webhook_id>/secret", "editor", url=f"{ONE}/secret", ok=201, scope="write"),
    Case("POST", "/webhooks/<webhook_id>/secret", "admin", url="/webhooks/{whole_webhook}/secret", ok=201),
    Case("POST", "/webhooks/<webhook_id>/test", "editor", url=f"{ONE}/test", ok=201, scope="write"),
    Case("GET", "/webhooks/<webhook_id>/deliveries", "editor", url=f"{ONE}/deliveries", scope="write"),
    Case("GET", "/webhooks/<webhook_id>/deliveries", "admin", url="/webhooks/{whole_webhook}/deliveries"),
    Case("GET", "/webhooks/<webhook_id>/deliveries/<delivery_id>", "editor", url=DELIVERY, scope="write"),
    Case(
        "POST", "/webhooks/<webhook_id>/deliveries/<delivery_id>/redeliver", "editor", url=f"{DELIVERY}/redeliver",
        scope="write",
    ),
    # Pages
    Case("GET", "/notices", "anyone", person=True),
    Case("POST", "/me/notices", "anyone", body={"mail": "never", "minutes": "3"}, ok=303, person=True),
]  # fmt: skip
