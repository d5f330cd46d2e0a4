"""Webhooks: URLs that are called when work finishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from rowsmith.pages import Pages
from rowsmith.record import IfMatch
from rowsmith.resources.base import Key, Resource

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rowsmith import types


class Webhooks(Resource):
    """`api.webhooks`."""

    def list(self, *, q: Optional[str] = None) -> Pages[types.WebhookOut]:
        """List the webhooks of the project, and for admins those of the workspace; `q` searches descriptions."""
        return self._list("/webhooks", {"q": q})

    def create(
        self, *, idempotency_key: Key = None, **webhook: Unpack[types.WebhookIn]
    ) -> types.NewWebhookOut:
        """Create a webhook. The response contains its `secret`, which is not shown again."""
        return self._create("/webhooks", webhook, idempotency_key)

    def get(self, webhook_id: str) -> types.WebhookOut:
        """Return a webhook, without its secret."""
        return self._get("/webhooks/{webhook_id}", webhook_id=webhook_id)

    def update(
        self, webhook_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.WebhookPatch]
    ) -> types.WebhookOut:
        """Change its URL, events or description, or turn it on or off (`active`)."""
        return self._change("PATCH", "/webhooks/{webhook_id}", changes, if_match, webhook_id=webhook_id)

    def delete(self, webhook_id: str, *, if_match: IfMatch = None) -> types.WebhookOut:
        """Delete a webhook."""
        return self._delete("/webhooks/{webhook_id}", if_match, webhook_id=webhook_id)

    def restore(self, webhook_id: str) -> types.WebhookOut:
        """Restore a deleted object."""
        return self._ask("/webhooks/{webhook_id}/restore", webhook_id=webhook_id)

    def new_secret(self, webhook_id: str) -> types.NewWebhookOut:
        """Create a new secret, which is shown only once. The previous secret also signs for one more day."""
        return self._ask("/webhooks/{webhook_id}/secret", repeatable=False, webhook_id=webhook_id)

    def test(self, webhook_id: str) -> types.DeliveryOut:
        """Send a `webhook.test` immediately and return the result."""
        return self._ask("/webhooks/{webhook_id}/test", repeatable=False, webhook_id=webhook_id)

    def deliveries(self, webhook_id: str, *, status: Optional[str] = None) -> Pages[types.DeliveryOut]:
        """List deliveries of the last 30 days, newest first: all, or only pending, delivered or failed ones."""
        return self._list("/webhooks/{webhook_id}/deliveries", {"status": status}, webhook_id=webhook_id)

    def delivery(self, webhook_id: str, delivery_id: str) -> types.DeliveryOut:
        """One delivery."""
        path = "/webhooks/{webhook_id}/deliveries/{delivery_id}"
        return self._get(path, webhook_id=webhook_id, delivery_id=delivery_id)

    def redeliver(self, webhook_id: str, delivery_id: str) -> types.DeliveryOut:
        """Send a delivery again, with the same ID."""
        path = "/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver"
        return self._ask(path, repeatable=False, webhook_id=webhook_id, delivery_id=delivery_id)
