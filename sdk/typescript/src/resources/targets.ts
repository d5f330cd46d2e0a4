import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource, calling } from "./base.js";
import { type Content, blobOf } from "./files.js";

const CONNECTION = "/connections/{connection_id}";
const DOCUMENT = `${CONNECTION}/metadata-document`;
const ENDPOINT = "/endpoints/{endpoint_id}";

/** `client.connections`. */
export class Connections extends Resource {
  /** List the connections of the project. */
  list(query?: { q?: string; type?: string }, how?: Calling): Pages<types.ConnectionOut> {
    return this.list_("/connections", {}, query, how);
  }

  /** Return a connection; its secrets are `********`. */
  get(id: string, how?: Calling): Promise<types.ConnectionOut> {
    return this.get_(CONNECTION, { connection_id: id }, how);
  }

  /** Create a connection and verify it. A connection that fails is saved; its `verification` contains the reason. */
  create(connection: types.ConnectionIn, how?: Creating): Promise<types.ConnectionOut> {
    return this.make_("/connections", {}, connection, how);
  }

  /** Change the given settings. A secret sent back as `********` is kept. */
  update(id: string, changes: types.ConnectionChange, how?: Changing): Promise<types.ConnectionOut> {
    return this.change_("PATCH", CONNECTION, { connection_id: id }, changes, how);
  }

  /** Delete a connection. Throws Conflict `in_use` if other objects use it. */
  delete(id: string, how?: Changing): Promise<types.ConnectionOut> {
    return this.delete_(CONNECTION, { connection_id: id }, how);
  }

  /** Restore a deleted object. */
  restore(id: string, how?: Calling): Promise<types.ConnectionOut> {
    return this.ask_(`${CONNECTION}/restore`, { connection_id: id }, undefined, how);
  }

  /** Verify the connection again, stage by stage. */
  verify(id: string, how?: Calling): Promise<types.VerificationOut> {
    return this.ask_(`${CONNECTION}/verify`, { connection_id: id }, undefined, how);
  }

  /** Return its tables or entity sets, with their columns, keys and relations. */
  metadata(
    id: string,
    query?: { refresh?: boolean; entity?: string; q?: string; limit?: number },
    how?: Calling,
  ): Promise<Record<string, any>> {
    return this.get_(`${CONNECTION}/metadata`, { connection_id: id }, how, query);
  }

  /** Return the uploaded document unchanged. */
  metadataDocument(id: string, how: Calling = {}): Promise<Uint8Array> {
    return this.caller.bytes("GET", DOCUMENT, { parts: { connection_id: id }, ...calling(how) });
  }

  /** Use this `$metadata` or OpenAPI document. */
  uploadMetadataDocument(id: string, document: Content, how: Calling = {}): Promise<types.DocumentOut> {
    const body = blobOf(document, "application/octet-stream");
    return this.caller.json("PUT", DOCUMENT, { parts: { connection_id: id }, body, ...calling(how) });
  }

  /** Remove the document, so that the target's own metadata is used again. */
  deleteMetadataDocument(id: string, how?: Calling): Promise<types.ConnectionOut> {
    return this.delete_(DOCUMENT, { connection_id: id }, how);
  }

  /** Create related templates from the given `entities`. */
  makeTemplates(id: string, request: types.TablesIn, how?: Creating): Promise<types.TablesOut> {
    return this.make_(`${CONNECTION}/templates`, { connection_id: id }, request, how);
  }

  /** Create a dataset from a subset of a `table` and all related rows, with personal columns masked. */
  subset(id: string, request: types.SubsetIn, how?: Creating): Promise<types.SubsetOut> {
    return this.make_(`${CONNECTION}/subsets`, { connection_id: id }, request, how);
  }

  /** Fill the tables of a database: create templates and a dataset, and send `rows` rows to each table. */
  fill(id: string, request: types.FillInput = {}, how?: Creating): Promise<types.FillOut> {
    return this.make_(`${CONNECTION}/fill`, { connection_id: id }, request, how);
  }

  /** Clear the cache of values that were read through the connection. */
  refreshFetched(id: string, how?: Calling): Promise<types.RefreshedOut> {
    return this.ask_(`${CONNECTION}/fetched/refresh`, { connection_id: id }, undefined, how);
  }
}

/** `client.endpoints`. */
export class Endpoints extends Resource {
  /** List the endpoints of the project. */
  list(query?: { q?: string; connection_id?: string }, how?: Calling): Pages<types.EndpointOut> {
    return this.list_("/endpoints", {}, query, how);
  }

  /** An endpoint. */
  get(id: string, how?: Calling): Promise<types.EndpointOut> {
    return this.get_(ENDPOINT, { endpoint_id: id }, how);
  }

  /** Create an endpoint: `name`, `method`, and `url` or `connection_id` with `path`. */
  create(endpoint: types.EndpointIn, how?: Creating): Promise<types.EndpointOut> {
    return this.make_("/endpoints", {}, endpoint, how);
  }

  /** Change the given keys. */
  update(id: string, changes: types.EndpointChange, how?: Changing): Promise<types.EndpointOut> {
    return this.change_("PATCH", ENDPOINT, { endpoint_id: id }, changes, how);
  }

  /** Delete an endpoint. */
  delete(id: string, how?: Changing): Promise<types.EndpointOut> {
    return this.delete_(ENDPOINT, { endpoint_id: id }, how);
  }

  /** Restore a deleted object. */
  restore(id: string, how?: Calling): Promise<types.EndpointOut> {
    return this.ask_(`${ENDPOINT}/restore`, { endpoint_id: id }, undefined, how);
  }
}
