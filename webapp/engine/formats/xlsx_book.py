"""The archive of an XLSX workbook: its sheets one after another, of one table or of several."""

from __future__ import annotations

from collections.abc import Sequence

from webapp.engine.formats import xlsx_parts
from webapp.engine.formats.zipstream import ZipStream


class Workbook:
    """``start``; then for each sheet ``open``, ``write`` ... ``close``; then ``finish``. Each gives bytes to send.

    ``places`` are the counts of decimal places of all its columns, rising: styles stand before the first sheet.
    """

    def __init__(self, places: Sequence[int]) -> None:
        self.places = list(places)
        self._zip = ZipStream()
        self._names: dict[str, str] = {}

    def start(self) -> bytes:
        """The parts that do not depend on the sheets."""
        parts = self._zip.whole("_rels/.rels", xlsx_parts.relations())
        return parts + self._zip.whole("xl/styles.xml", xlsx_parts.styles(self.places))

    def open(self, title: str, number: int, widths: Sequence[float | None], header: Sequence[str]) -> bytes:
        """The head of a new sheet: the ``number``-th of a table called ``title``, with escaped column names."""
        name = self._free(title, number)
        first = not self._names
        self._names[name.casefold()] = name
        head = xlsx_parts.sheet_head(widths, header, first=first)
        return self._zip.open(f"xl/worksheets/sheet{len(self._names)}.xml") + self._zip.write(head)

    def _free(self, title: str, number: int) -> str:
        """A name that no sheet has; Excel compares them without case."""
        while (name := xlsx_parts.sheet_name(title, number)).casefold() in self._names:
            number += 1
        return name

    def write(self, text: bytes | memoryview) -> bytes:
        """More of the sheet; what the compressor has ready."""
        return self._zip.write(text)

    def close(self) -> bytes:
        """The end of the sheet."""
        return self._zip.write(xlsx_parts.SHEET_TAIL) + self._zip.close()

    def finish(self) -> bytes:
        """The list of sheets, and the archive's directory."""
        names = list(self._names.values())
        return (
            self._zip.whole("xl/workbook.xml", xlsx_parts.workbook(names))
            + self._zip.whole("xl/_rels/workbook.xml.rels", xlsx_parts.workbook_relations(len(names)))
            + self._zip.whole("[Content_Types].xml", xlsx_parts.content_types(len(names)))
            + self._zip.finish()
        )
