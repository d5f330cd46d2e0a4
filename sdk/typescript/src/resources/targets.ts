import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource, calling } from "./base.js";
import { type Content, blobOf } from "./files.js";

const CONNECTION = "/connections/{connection_id}";
const DOCUMENT = `${CONNECTION}/metadata-document`;
const ENDPOINT = "/endpoints/{endpoint_id}";

/** `client.connections`. */
export class Connections extends Resource {
  /** The connections of the project. */
  list(query?: { q?: string; type?: string }, how?: Calling): Pages<types.ConnectionOut> {
    return this.list_("/connections", {}, query, how);
  }

  /** A connection; its secrets are `********`. */
  get(id: string, how?: Calling): Promise<types.ConnectionOut> {
    return this.get_(CONNECTION, { connection_id: id }, how);
  }

  /** Make a connection and verify it; one that fails is kept, and its `verification` says why. */
  create(connection: types.ConnectionIn, how?: Creating): Promise<types.ConnectionOut> {
    return this.make_("/connections", {}, connection, how);
  }

  /** Change these parts; a secret sent back as `********` stays. */
  update(id: string, changes: types.ConnectionChange, how?: Changing): Promise<types.ConnectionOut> {
    return this.change_("PATCH", CONNECTION, { connection_id: id }, changes, how);
  }

  /** Delete a connection. Conflict `in_use` where others need it. */
  delete(id: string, how?: Changing): Promise<types.ConnectionOut> {
    return this.delete_(CONNECTION, { connection_id: id }, how);
  }

  /** Take the deletion back. */
  restore(id: string, how?: Calling): Promise<types.ConnectionOut> {
    return this.ask_(`${CONNECTION}/restore`, { connection_id: id }, undefined, how);
  }

  /** Try it again, stage by stage. */
  verify(id: string, how?: Calling): Promise<types.VerificationOut> {
    return this.ask_(`${CONNECTION}/verify`, { connection_id: id }, undefined, how);
  }

  /** Its tables or entity sets, with their columns, keys and relations. */
  metadata(
    id: string,
    query?: { refresh?: boolean; entity?: string; q?: string; limit?: number },
    how?: Calling,
  ): Promise<Record<string, any>> {
    return this.get_(`${CONNECTION}/metadata`, { connection_id: id }, how, query);
  }

  /** The document that was uploaded, as it was. */
  metadataDocument(id: string, how: Calling = {}): Promise<Uint8Array> {
    return this.caller.bytes("GET", DOCUMENT, { parts: { connection_id: id }, ...calling(how) });
  }

  /** Use this `$metadata` or OpenAPI document. */
  uploadMetadataDocument(id: string, document: Content, how: Calling = {}): Promise<types.DocumentOut> {
    const body = blobOf(document, "application/octet-stream");
    return this.caller.json("PUT", DOCUMENT, { parts: { connection_id: id }, body, ...calling(how) });
  }

  /** Remove the document: what the target tells of itself counts again. */
  deleteMetadataDocument(id: string, how?: Calling): Promise<types.ConnectionOut> {
    return this.delete_(DOCUMENT, { connection_id: id }, how);
  }

  /** A linked template for each of the `entities`. */
  makeTemplates(id: string, request: types.TablesIn, how?: Creating): Promise<types.TablesOut> {
    return this.make_(`${CONNECTION}/templates`, { connection_id: id }, request, how);
  }

  /** A dataset of some rows of a `table` and of all that they are related to, personal columns masked. */
  subset(id: string, request: types.SubsetIn, how?: Creating): Promise<types.SubsetOut> {
    return this.make_(`${CONNECTION}/subsets`, { connection_id: id }, request, how);
  }

  /** Forget the values that were read through it. */
  refreshFetched(id: string, how?: Calling): Promise<types.RefreshedOut> {
    return this.ask_(`${CONNECTION}/fetched/refresh`, { connection_id: id }, undefined, how);
  }
}

/** `client.endpoints`. */
export class Endpoints extends Resource {
  /** The endpoints of the project. */
  list(query?: { q?: string; connection_id?: string }, how?: Calling): Pages<types.EndpointOut> {
    return this.list_("/endpoints", {}, query, how);
  }

  /** An endpoint. */
  get(id: string, how?: Calling): Promise<types.EndpointOut> {
    return this.get_(ENDPOINT, { endpoint_id: id }, how);
  }

  /** Make an endpoint: `name`, `method`, and `url` or `connection_id` with `path`. */
  create(endpoint: types.EndpointIn, how?: Creating): Promise<types.EndpointOut> {
    return this.make_("/endpoints", {}, endpoint, how);
  }

  /** Change these parts. */
  update(id: string, changes: types.EndpointChange, how?: Changing): Promise<types.EndpointOut> {
    return this.change_("PATCH", ENDPOINT, { endpoint_id: id }, changes, how);
  }

  /** Delete an endpoint. */
  delete(id: string, how?: Changing): Promise<types.EndpointOut> {
    return this.delete_(ENDPOINT, { endpoint_id: id }, how);
  }

  /** Take the deletion back. */
  restore(id: string, how?: Calling): Promise<types.EndpointOut> {
    return this.ask_(`${ENDPOINT}/restore`, { endpoint_id: id }, undefined, how);
  }
}
