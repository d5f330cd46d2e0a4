/** Webhooks: addresses that are told of work that ended. */

import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource } from "./base.js";

const WEBHOOK = "/webhooks/{webhook_id}";
const DELIVERY = `${WEBHOOK}/deliveries/{delivery_id}`;

/** Which deliveries are wanted. */
export interface DeliveryQuery {
  status?: "pending" | "delivered" | "failed";
}

/** `client.webhooks`. */
export class Webhooks extends Resource {
  /** The webhooks of the project, and for admins those of the workspace; `q` searches descriptions. */
  list(query?: { q?: string }, how?: Calling): Pages<types.WebhookOut> {
    return this.list_("/webhooks", {}, query, how);
  }

  /** Make a webhook; `secret` of the answer is shown this once. */
  create(webhook: types.WebhookIn, how?: Creating): Promise<types.NewWebhookOut> {
    return this.make_("/webhooks", {}, webhook, how);
  }

  /** A webhook, without its secret. */
  get(id: string, how?: Calling): Promise<types.WebhookOut> {
    return this.get_(WEBHOOK, { webhook_id: id }, how);
  }

  /** Change its address, events or description, or turn it on or off (`active`). */
  update(id: string, changes: types.WebhookPatch, how?: Changing): Promise<types.WebhookOut> {
    return this.change_("PATCH", WEBHOOK, { webhook_id: id }, changes, how);
  }

  /** Delete a webhook. */
  delete(id: string, how?: Changing): Promise<types.WebhookOut> {
    return this.delete_(WEBHOOK, { webhook_id: id }, how);
  }

  /** Take the deletion back. */
  restore(id: string, how?: Calling): Promise<types.WebhookOut> {
    return this.ask_(`${WEBHOOK}/restore`, { webhook_id: id }, undefined, how);
  }

  /** Another secret, shown this once; for a day the one before signs too. */
  newSecret(id: string, how?: Calling): Promise<types.NewWebhookOut> {
    return this.ask_(`${WEBHOOK}/secret`, { webhook_id: id }, undefined, how, false);
  }

  /** Send a `webhook.test` at once: what became of it. */
  test(id: string, how?: Calling): Promise<types.DeliveryOut> {
    return this.ask_(`${WEBHOOK}/test`, { webhook_id: id }, undefined, how, false);
  }

  /** What was sent in the last 30 days, newest first. */
  deliveries(id: string, query?: DeliveryQuery, how?: Calling): Pages<types.DeliveryOut> {
    return this.list_(`${WEBHOOK}/deliveries`, { webhook_id: id }, query, how);
  }

  /** One delivery. */
  delivery(id: string, delivery: string, how?: Calling): Promise<types.DeliveryOut> {
    return this.get_(DELIVERY, { webhook_id: id, delivery_id: delivery }, how);
  }

  /** Send a delivery again, under the same id. */
  redeliver(id: string, delivery: string, how?: Calling): Promise<types.DeliveryOut> {
    return this.ask_(`${DELIVERY}/redeliver`, { webhook_id: id, delivery_id: delivery }, undefined, how, false);
  }
}
