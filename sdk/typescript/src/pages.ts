/** Lists that load their own pages. */

/** Objects per page: the maximum of the service. */
const PAGE = 100;

/** One page as the service returns it. */
export interface Page<T> {
  items: T[];
  next_cursor: string | null;
  total: number;
}

type Query = Record<string, unknown>;

/** All objects of a list. Pages are loaded during iteration (`for await`); each iteration starts again. */
export class Pages<T> implements AsyncIterable<T> {
  readonly #fetch: (query: Query) => Promise<Page<T>>;
  readonly #query: Query;

  constructor(fetch: (query: Query) => Promise<Page<T>>, query: object = {}) {
    this.#fetch = fetch;
    this.#query = { ...query };
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    let cursor: string | undefined;
    for (;;) {
      const page = await this.page(cursor);
      yield* page.items;
      if (!page.next_cursor) return;
      if (page.next_cursor === cursor) throw new Error("The service returned the same cursor twice.");
      cursor = page.next_cursor;
    }
  }

  /** Return one page: the first, or the one of a `next_cursor`. */
  page(cursor?: string): Promise<Page<T>> {
    return this.#fetch({ limit: PAGE, ...this.#query, cursor });
  }

  /** Return all objects. */
  async all(): Promise<T[]> {
    const found: T[] = [];
    for await (const one of this) found.push(one);
    return found;
  }

  /** Return the first object, if there is one. */
  async first(): Promise<T | undefined> {
    return (await this.#fetch({ ...this.#query, limit: 1 })).items[0];
  }

  /** The number of objects. */
  async total(): Promise<number> {
    return (await this.#fetch({ ...this.#query, limit: 1 })).total;
  }
}
