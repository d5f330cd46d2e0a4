/** Server-sent events, parsed according to the HTML standard (section 9.2.6). */

/** One event: its ID (the latest one that was sent), its name, its data. */
export interface Event {
  id: string;
  name: string;
  data: string;
}

/** Yield the events of a stream. An incomplete event after the last blank line is dropped. */
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

/** Yield lines ended by CR, LF or both. Characters that are split between network packets are reassembled. */
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
 * Yield complete lines, in groups as they arrive, because one iterator step per line costs more than the line. Blank
 * lines are dropped. The last line without a line end is only yielded if the stream ended properly.
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
