/** Server-sent events, as the HTML standard (section 9.2.6) has them read. */

/** One event: its id (of the latest that had one), its name, its data. */
export interface Event {
  id: string;
  name: string;
  data: string;
}

/** The events of a stream. What stands after the last blank line is no whole event and is dropped. */
export async function* eventsOf(
  pieces: AsyncIterable<Uint8Array>,
  lastId = "",
): AsyncGenerator<Event, void, undefined> {
  let name = "";
  let data: string | undefined;
  for await (const line of linesOf(pieces)) {
    if (line === "") {
      if (data !== undefined) yield { id: lastId, name: name || "message", data };
      name = "";
      data = undefined;
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data = data === undefined ? value : `${data}\n${value}`;
    else if (field === "event") name = value;
    else if (field === "id" && !value.includes("\0")) lastId = value;
  }
}

/** Lines ended by CR, LF or both; a character cut in two by the network is put together again. */
async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  let afterReturn = false;
  for await (const piece of pieces) {
    let text = decoder.decode(piece, { stream: true });
    if (!text) continue;
    if (afterReturn && text.startsWith("\n")) text = text.slice(1);
    afterReturn = text === "" ? false : text.endsWith("\r");
    const lines = (rest + text).split(/\r\n|\r|\n/);
    rest = lines.pop()!;
    yield* lines;
  }
}

/**
 * Whole lines between LFs, as many at once as have come: a step of an iterator for each costs more than the line.
 * Blank ones are left out; the last one, without its end, counts where the stream ended in good order.
 */
export async function* rowsOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string[], void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop()!;
    if (lines.length) yield lines.filter((line) => line.trim());
  }
  rest += decoder.decode();
  if (rest.trim()) yield [rest];
}
