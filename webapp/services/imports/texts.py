"""Bytes of unknown encoding as text."""

from __future__ import annotations

import codecs
from typing import Final

from webapp.services.imports.shapes import Unreadable

_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_LOOKED: Final = 4_096  # chosen: bytes in which UTF-16 without a mark is looked for


def decoded(raw: bytes) -> tuple[str, str]:
    """The text, and what is to be told of its encoding ("" where it is UTF-8).

    By its mark; else UTF-8; else UTF-16 where every second byte is zero; else Windows-1252, in which every byte but
    five means something. Raises `Unreadable` for what is no text.
    """
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return _plain(raw.decode(encoding, "replace")), ""
    head = raw[:_LOOKED]
    for place, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = head[place::2].count(0)
        if zeros > len(head) // 3 and not head[1 - place :: 2].count(0):
            return _plain(raw.decode(encoding, "replace")), ""
    if head.count(0) > len(head) // 10:
        raise Unreadable("This is no text.", "Send CSV, JSON, SQL or a schema as text, or an XLSX workbook.")
    try:
        return _plain(raw.decode()), ""
    except UnicodeDecodeError:
        text = _plain(raw.decode("cp1252", "replace"))
        return text, "The file is not UTF-8; it was read as Windows-1252."


def _plain(text: str) -> str:
    return text.replace("\0", "") if "\0" in text else text
