"""A picture with at most 256 colours, which has a third of its bytes: what is frequent stays exactly as it was."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Final

from playwright.sync_api import Page

# The browser that took the screenshot also reduces it. Half of the palette are the most frequent colours. The others
# are those with the largest distance from the palette so far, so that a small red icon stays red.
_READ: Final = """
async (picture) => {
  const blob = await (await fetch(`data:image/png;base64,${picture}`)).blob(), image = await createImageBitmap(blob);
  const { width, height } = image, canvas = new OffscreenCanvas(width, height), pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0);
  const pixels = new Uint32Array(pen.getImageData(0, 0, width, height).data.buffer), counts = new Map();
  for (const one of pixels) counts.set(one, (counts.get(one) || 0) + 1);
  const colours = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
  const parts = (one) => [0, 8, 16].map((by) => one >> by & 255);
  const far = (a, b) => parts(a).reduce((sum, part, at) => sum + (part - parts(b)[at]) ** 2, 0);
  const palette = colours.slice(0, 128), rest = colours.slice(128);
  const least = rest.map((one) => Math.min(...palette.map((other) => far(one, other))));
  while (palette.length < Math.min(256, colours.length)) {
    const at = least.indexOf(Math.max(...least)), next = rest[at];
    palette.push(next);
    rest.forEach((one, place) => { least[place] = Math.min(least[place], far(one, next)); });
  }
  const nearest = new Map(palette.map((one, at) => [one, at]));
  for (const one of colours) if (!nearest.has(one)) {
    let best = 0;
    palette.forEach((other, at) => { if (far(one, other) < far(one, palette[best])) best = at; });
    nearest.set(one, best);
  }
  const places = Uint8Array.from(pixels, (one) => nearest.get(one));
  let text = "";
  for (let at = 0; at < places.length; at += 32768) text += String.fromCharCode(...places.subarray(at, at + 32768));
  return { width, height, palette: palette.map(parts), places: btoa(text) };
}
"""


def smaller(page: Page, picture: bytes) -> bytes:
    """A PNG of the same pixels with a palette. `page` is one of about:blank."""
    found = page.evaluate(_READ, base64.b64encode(picture).decode())
    width, height = found["width"], found["height"]
    places = base64.b64decode(found["places"])
    lines = b"".join(b"\0" + places[at : at + width] for at in range(0, len(places), width))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", bytes(part for colour in found["palette"] for part in colour)),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
