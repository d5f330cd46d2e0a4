"""Webhooks: addresses that are told of work that ended."""

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
        """The webhooks of the project, and for admins those of the workspace; `q` searches descriptions."""
        return self._list("/webhooks", {"q": q})

    def create(
        self, *, idempotency_key: Key = None, **webhook: Unpack[types.WebhookIn]
    ) -> types.NewWebhookOut:
        """Make a webhook; `secret` of the answer is shown this once."""
        return self._create("/webhooks", webhook, idempotency_key)  # type: ignore[no-any-return]

    def get(self, webhook_id: str) -> types.WebhookOut:
        """A webhook, without its secret."""
        return self._get("/webhooks/{webhook_id}", webhook_id=webhook_id)  # type: ignore[no-any-return]

    def update(
        self, webhook_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.WebhookPatch]
    ) -> types.WebhookOut:
        """Change its address, events or description, or turn it on or off (`active`)."""
        return self._change("PATCH", "/webhooks/{webhook_id}", changes, if_match, webhook_id=webhook_id)  # type: ignore[no-any-return]

    def delete(self, webhook_id: str, *, if_match: IfMatch = None) -> types.WebhookOut:
        """Delete a webhook."""
        return self._delete("/webhooks/{webhook_id}", if_match, webhook_id=webhook_id)  # type: ignore[no-any-return]

    def restore(self, webhook_id: str) -> types.WebhookOut:
        """Take the deletion back."""
        return self._ask("/webhooks/{webhook_id}/restore", webhook_id=webhook_id)  # type: ignore[no-any-return]

    def new_secret(self, webhook_id: str) -> types.NewWebhookOut:
        """Another secret, shown this once; for a day the one before signs too."""
        return self._ask("/webhooks/{webhook_id}/secret", repeatable=False, webhook_id=webhook_id)  # type: ignore[no-any-return]

    def test(self, webhook_id: str) -> types.DeliveryOut:
        """Send a `webhook.test` at once: what became of it."""
        return self._ask("/webhooks/{webhook_id}/test", repeatable=False, webhook_id=webhook_id)  # type: ignore[no-any-return]

    def deliveries(self, webhook_id: str, *, status: Optional[str] = None) -> Pages[types.DeliveryOut]:
        """What was sent in the last 30 days, newest first: all, or those that are pending, delivered or failed."""
        return self._list("/webhooks/{webhook_id}/deliveries", {"status": status}, webhook_id=webhook_id)

    def delivery(self, webhook_id: str, delivery_id: str) -> types.DeliveryOut:
        """One delivery."""
        path = "/webhooks/{webhook_id}/deliveries/{delivery_id}"
        return self._get(path, webhook_id=webhook_id, delivery_id=delivery_id)  # type: ignore[no-any-return]

    def redeliver(self, webhook_id: str, delivery_id: str) -> types.DeliveryOut:
        """Send a delivery again, under the same id."""
        path = "/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver"
        return self._ask(path, repeatable=False, webhook_id=webhook_id, delivery_id=delivery_id)  # type: ignore[no-any-return]
