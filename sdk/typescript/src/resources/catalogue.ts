/** The catalogue of field types, type suggestions, and the state of the service. */

import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { type Calling, type Creating, Resource } from "./base.js";

/** `client.fields`. */
export class Fields extends Resource {
  /**
   * Return the catalogue, or the types that match `q`, best match first. With a `locale`, `lacks` says what it has no
   * values for.
   */
  list(query?: { q?: string; locale?: string }, how?: Calling): Pages<types.FieldTypeOut> {
    return this.list_("/field-types", {}, query, how);
  }

  /** Return the functions of formulas. */
  async functions(query: { q?: string } = {}, how?: Calling): Promise<types.FunctionOut[]> {
    return (await this.get_("/field-types", {}, how, { ...query, limit: 1 })).functions;
  }

  /** Suggest types for a field with this `name`, `description` and `sample` values. */
  suggest(about: types.SuggestIn, how?: Calling): Promise<types.SuggestOut> {
    return this.ask_("/fields/suggest", {}, about, how);
  }

  /** Generate a template from a `description` with an AI model. `save` stores it. */
  describe(request: types.DescribeIn, how?: Creating): Promise<types.DescribedOut> {
    return this.make_("/describe", {}, request, how);
  }
}

/** `client.masking`. */
export class Masking extends Resource {
  /**
   * Detect personal data in the columns of a sample: its `rows`, a workspace `file`, or a `connection_id` and `table`.
   */
  classify(sample: types.ClassifyIn, how?: Calling): Promise<types.ClassifyOut> {
    return this.ask_("/classify", {}, sample, how);
  }

  /** List the versions of the masking key, newest first, without the keys. */
  keys(how?: Calling): Promise<types.MaskingKeysOut> {
    return this.get_("/masking/keys", {}, how);
  }

  /** Create a new version of the masking key, which is used from now on. */
  rotate(how?: Creating): Promise<types.MaskingKeyOut> {
    return this.make_("/masking/keys/rotate", {}, undefined, how);
  }
}

/** `client.service`. */
export class Service extends Resource {
  /** Return whether the service responds. */
  live(how?: Calling): Promise<types.Live> {
    return this.get_("/health/live", {}, how);
  }

  /** Return whether all required components are available. Throws ServerError if not. */
  ready(how?: Calling): Promise<types.ReadyOut> {
    return this.get_("/health/ready", {}, how);
  }

  /** Return the OpenAPI description of all routes. */
  openapi(how?: Calling): Promise<Record<string, any>> {
    return this.get_("/openapi.json", {}, how);
  }
}
