"""The small parts of a workbook (ECMA-376, Office Open XML): styles, relations, the list of sheets."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from webapp import limits

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"

GENERAL, HEADER, DATE, TIMESTAMP, TIME, FIRST_DECIMAL = range(6)
_FORMATS = ("yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss", "hh:mm:ss")
_FIRST_OWN_FORMAT = 164  # ECMA-376, numFmts: smaller numbers are built in


def relations() -> bytes:
    """``_rels/.rels``."""
    return _relationships([("rId1", f"{_OFFICE}/officeDocument", "xl/workbook.xml")])


def workbook_relations(sheets: int) -> bytes:
    """``xl/_rels/workbook.xml.rels`` for so many sheets."""
    links = [(f"rId{n}", f"{_OFFICE}/worksheet", f"worksheets/sheet{n}.xml") for n in range(1, sheets + 1)]
    return _relationships([*links, (f"rId{sheets + 1}", f"{_OFFICE}/styles", "styles.xml")])


def _relationships(links: Sequence[tuple[str, str, str]]) -> bytes:
    items = "".join(
        f'<Relationship Id="{key}" Type="{kind}" Target="{target}"/>' for key, kind, target in links
    )
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{items}</Relationships>'.encode()


def content_types(sheets: int) -> bytes:
    """``[Content_Types].xml`` for so many sheets."""
    parts = [(f"/xl/worksheets/sheet{n}.xml", "worksheet") for n in range(1, sheets + 1)]
    parts += [("/xl/workbook.xml", "sheet.main"), ("/xl/styles.xml", "styles")]
    overrides = "".join(
        f'<Override PartName="{name}" ContentType="{_TYPE}.{kind}+xml"/>' for name, kind in parts
    )
    return (
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>'
    ).encode()


def workbook(names: Sequence[str]) -> bytes:
    """``xl/workbook.xml`` with sheets of these names."""
    sheets = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(names, 1)
    )
    return (
        f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><bookViews><workbookView/></bookViews>'
        f"<sheets>{sheets}</sheets></workbook>"
    ).encode()


def styles(places: Sequence[int]) -> bytes:
    """``xl/styles.xml``: the fixed styles, and one from ``FIRST_DECIMAL`` on for each count of decimal places."""
    codes = [*_FORMATS, *("0." + "0" * count if count else "0" for count in places)]
    formats = "".join(
        f'<numFmt numFmtId="{n}" formatCode="{code}"/>' for n, code in enumerate(codes, _FIRST_OWN_FORMAT)
    )
    cells = "".join(
        f'<xf numFmtId="{n}" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
        for n in range(_FIRST_OWN_FORMAT, _FIRST_OWN_FORMAT + len(codes))
    )
    font = '<sz val="11"/><name val="Calibri"/><family val="2"/>'
    return (
        f'{_HEAD}<styleSheet xmlns="{_MAIN}"><numFmts count="{len(codes)}">{formats}</numFmts>'
        f'<fonts count="2"><font>{font}</font><font><b/>{font}</font></fonts>'
        '<fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
        '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
        f'<cellXfs count="{len(codes) + 2}"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
        f'<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>{cells}</cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    ).encode()


def sheet_head(widths: Sequence[float | None], header: Sequence[str], *, first: bool) -> bytes:
    """A sheet up to its first row of data. ``header``: the column names, escaped; None is the default width."""
    columns = "".join(
        f'<col min="{n}" max="{n}" width="{width}" customWidth="1"/>'
        for n, width in enumerate(widths, 1)
        if width
    )
    cells = "".join(
        f'<c s="{HEADER}" t="inlineStr"><is><t xml:space="preserve">{name}</t></is></c>' for name in header
    )
    selected = ' tabSelected="1"' if first else ""
    return (
        f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView{selected} workbookViewId="0">'
        '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
        f"{f'<cols>{columns}</cols>' if columns else ''}<sheetData><row>{cells}</row>"
    ).encode()


SHEET_TAIL = b"</sheetData></worksheet>"


def sheet_name(title: str, number: int) -> str:
    """A sheet's name out of a title: no ``[]:*?/\\``, no quote at an end, at most 31 characters (Excel's rules)."""
    plain = "".join(" " if sign in "[]:*?/\\" or sign < " " else sign for sign in title)
    tail = f" ({number})" if number > 1 else ""
    room = limits.XLSX_SHEET_NAME_CHARS - len(tail)
    while len(plain.encode("utf-16-le")) // 2 > room:
        plain = plain[:-1]
    plain = plain.strip(" '")
    if not plain or plain.casefold() == "history":  # Excel keeps that name for itself
        plain = f"{plain or 'Sheet'}1"
    return plain + tail
