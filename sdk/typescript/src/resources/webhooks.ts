/** Webhooks: URLs that are called when work finishes. */

import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource } from "./base.js";

const WEBHOOK = "/webhooks/{webhook_id}";
const DELIVERY = `${WEBHOOK}/deliveries/{delivery_id}`;

/** Filters of deliveries. */
export interface DeliveryQuery {
  status?: "pending" | "delivered" | "failed";
}

/** `client.webhooks`. */
export class Webhooks extends Resource {
  /** List the webhooks of the project, and for admins those of the workspace; `q` searches descriptions. */
  list(query?: { q?: string }, how?: Calling): Pages<types.WebhookOut> {
    return this.list_("/webhooks", {}, query, how);
  }

  /** Create a webhook. The response contains its `secret`, which is not shown again. */
  create(webhook: types.WebhookIn, how?: Creating): Promise<types.NewWebhookOut> {
    return this.make_("/webhooks", {}, webhook, how);
  }

  /** Return a webhook, without its secret. */
  get(id: string, how?: Calling): Promise<types.WebhookOut> {
    return this.get_(WEBHOOK, { webhook_id: id }, how);
  }

  /** Change its URL, events or description, or turn it on or off (`active`). */
  update(id: string, changes: types.WebhookPatch, how?: Changing): Promise<types.WebhookOut> {
    return this.change_("PATCH", WEBHOOK, { webhook_id: id }, changes, how);
  }

  /** Delete a webhook. */
  delete(id: string, how?: Changing): Promise<types.WebhookOut> {
    return this.delete_(WEBHOOK, { webhook_id: id }, how);
  }

  /** Restore a deleted object. */
  restore(id: string, how?: Calling): Promise<types.WebhookOut> {
    return this.ask_(`${WEBHOOK}/restore`, { webhook_id: id }, undefined, how);
  }

  /** Create a new secret, which is shown only once. The previous secret also signs for one more day. */
  newSecret(id: string, how?: Calling): Promise<types.NewWebhookOut> {
    return this.ask_(`${WEBHOOK}/secret`, { webhook_id: id }, undefined, how, false);
  }

  /** Send a `webhook.test` immediately and return the result. */
  test(id: string, how?: Calling): Promise<types.DeliveryOut> {
    return this.ask_(`${WEBHOOK}/test`, { webhook_id: id }, undefined, how, false);
  }

  /** List deliveries of the last 30 days, newest first. */
  deliveries(id: string, query?: DeliveryQuery, how?: Calling): Pages<types.DeliveryOut> {
    return this.list_(`${WEBHOOK}/deliveries`, { webhook_id: id }, query, how);
  }

  /** One delivery. */
  delivery(id: string, delivery: string, how?: Calling): Promise<types.DeliveryOut> {
    return this.get_(DELIVERY, { webhook_id: id, delivery_id: delivery }, how);
  }

  /** Send a delivery again, with the same ID. */
  redeliver(id: string, delivery: string, how?: Calling): Promise<types.DeliveryOut> {
    return this.ask_(`${DELIVERY}/redeliver`, { webhook_id: id, delivery_id: delivery }, undefined, how, false);
  }
}
