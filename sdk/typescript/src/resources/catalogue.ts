/** The catalogue of field types, help with choosing, and the state of the service. */

import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { type Calling, type Creating, Resource } from "./base.js";

/** `client.fields`. */
export class Fields extends Resource {
  /** The catalogue, or the types that fit `q`, best first. */
  list(query?: { q?: string }, how?: Calling): Pages<types.FieldTypeOut> {
    return this.list_("/field-types", {}, query, how);
  }

  /** The functions of formulas. */
  async functions(query: { q?: string } = {}, how?: Calling): Promise<types.FunctionOut[]> {
    return (await this.get_("/field-types", {}, how, { ...query, limit: 1 })).functions;
  }

  /** Types for a field of that `name`, with that `description`, with values such as `sample`. */
  suggest(about: types.SuggestIn, how?: Calling): Promise<types.SuggestOut> {
    return this.ask_("/fields/suggest", {}, about, how);
  }

  /** A template from a `description` in words, by a model; with `save` it is kept. */
  describe(request: types.DescribeIn, how?: Creating): Promise<types.DescribedOut> {
    return this.make_("/describe", {}, request, how);
  }
}

/** `client.masking`. */
export class Masking extends Resource {
  /** Which columns of a sample are personal: its `rows`, a workspace `file`, or a `connection_id` and `table`. */
  classify(sample: types.ClassifyIn, how?: Calling): Promise<types.ClassifyOut> {
    return this.ask_("/classify", {}, sample, how);
  }

  /** The versions of the masking key, newest first, without the keys. */
  keys(how?: Calling): Promise<types.MaskingKeysOut> {
    return this.get_("/masking/keys", {}, how);
  }

  /** A new version of the masking key, which masks from now on. */
  rotate(how?: Creating): Promise<types.MaskingKeyOut> {
    return this.make_("/masking/keys/rotate", {}, undefined, how);
  }
}

/** `client.service`. */
export class Service extends Resource {
  /** Whether the service answers. */
  live(how?: Calling): Promise<types.Live> {
    return this.get_("/health/live", {}, how);
  }

  /** Whether all it needs is there. ServerError where not. */
  ready(how?: Calling): Promise<types.ReadyOut> {
    return this.get_("/health/ready", {}, how);
  }

  /** The description of every route. */
  openapi(how?: Calling): Promise<Record<string, any>> {
    return this.get_("/openapi.json", {}, how);
  }
}
