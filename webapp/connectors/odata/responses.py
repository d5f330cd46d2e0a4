"""Parse responses of an OData service: errors, and values of created rows."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from webapp import limits
from webapp.connectors.odata.model import Version
from webapp.connectors.odata.values import instant

_DEPTH: Final = 6  # chosen: errors inside errors
_DATE: Final = re.compile(r"/Date\((-?\d{1,16})([+-]\d{1,4})?\)/", re.ASCII)
_TYPED: Final = re.compile(
    r"(?:guid|datetimeoffset|datetime|time|duration|binary|X|[\w.]+)?'((?:[^']|'')*)'|([^']*)"
)
_PARTS: Final = re.compile(r"(?:([\w.]+)=)?((?:[\w.]*'(?:[^']|'')*')|[^,']*)(?:,|$)")
_TAG: Final = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
# Words in errors and their reasons, in order: codes of CAP and SAP, then messages of databases.
_MEANINGS: Final[Sequence[tuple[str, re.Pattern[str]]]] = tuple(
    (reason, re.compile(words, re.IGNORECASE))
    for reason, words in (
        ("not_null", r"not.null constraint|assert_mandatory|assert_not_null|cannot be null|must not be null"),
        ("unique", r"unique.constraint|already exist|duplicate (key|entr|record)|entity_already_exists"),
        (
            "foreign_key",
            r"foreign key constraint|assert_target|assert_reference_integrity|reference integrity",
        ),
        ("too_long", r"too long|exceeds the maximum length|maximum length of"),
        ("out_of_range", r"assert_enum|assert_range|out of range|allowed values"),
        ("wrong_type", r"assert_data_type|assert_format|is not a valid|invalid (value|format)"),
    )
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a service rejected a request. `read` says whether the error is in OData's format."""

    code: str
    message: str
    """Code, message, target and details in one text."""
    read: bool

    def meaning(self) -> str:
        """Return the `base.REASONS` entry for known words, or ""."""
        return next((reason for reason, words in _MEANINGS if self.read and words.search(self.message)), "")


def fault(body: bytes) -> Fault:
    """Parse an error body of V2 or V4 in JSON or XML. Any other body becomes text without tags."""
    text = body.decode("utf-8", "replace").strip()
    found = _json_error(text) if text[:1] == "{" else _xml_error(body) if text[:1] == "<" else None
    if found is None:
        plain = " ".join(_TAG.sub(" ", text).split()) if text[:1] == "<" else text
        return Fault("", plain[: limits.HTTP_BODY_CHARS], False)
    lines = list(dict.fromkeys(_lines(found)))
    return Fault(_word(found.get("code")), "; ".join(lines)[: limits.HTTP_BODY_CHARS], True)


def _json_error(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    error = found.get("error") or found.get("odata.error")
    return error if isinstance(error, Mapping) else None


def _xml_error(body: bytes) -> Mapping[str, Any] | None:
    try:
        root = fromstring(body, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        return None
    if not root.tag.endswith("}error") and root.tag != "error":
        return None
    found = _plain(root)
    return found if isinstance(found, Mapping) else None


def _plain(element: Element, depth: int = 0) -> Any:
    """Convert elements to the JSON of the same error."""
    if depth > _DEPTH or not len(element):
        return (element.text or "").strip()
    found: dict[str, Any] = {}
    for one in element:
        name, value = one.tag.rpartition("}")[2], _plain(one, depth + 1)
        if name in ("errordetail", "detail"):
            found.setdefault("errordetails", []).append(value)
        elif name == "errordetails" and isinstance(value, Mapping):
            found[name] = value.get("errordetails", [])
        else:
            found[name] = value
    return found


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("value", value.get("#text", ""))
    return str(value).strip() if isinstance(value, str | int) else ""


def _lines(error: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield `CODE: message (target)` for an error and its details."""
    message, code = _word(error.get("message")), _word(error.get("code"))
    target = _word(error.get("target")) or _word(error.get("propertyref"))
    if message or code:
        said = f"{code}: {message}" if code and message else code or message
        yield f"{said} ({target})" if target.strip("/") and not target.startswith("/#") else said
    if depth >= _DEPTH:
        return
    inner = error.get("innererror")
    details = [error.get("details"), error.get("errordetails")]
    if isinstance(inner, Mapping):
        details.append(inner.get("errordetails"))
        yield from _lines(inner, depth + 1)
    for some in details:
        for one in some if isinstance(some, list) else ():
            if isinstance(one, Mapping):
                yield from _lines(one, depth + 1)


# --- Keys ---------------------------------------------------------------------------------------------------


def values(body: bytes, version: Version) -> dict[str, Any]:
    """Return the properties of the created row, with dates of V2 as ISO text. Empty if the response contains
    none."""
    try:
        found = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {}
    if isinstance(found, dict) and version == "v2":
        found = found.get("d", {})
        if isinstance(found, dict) and isinstance(found.get("results"), dict):
            found = found["results"]
    if not isinstance(found, dict):
        return {}
    return {
        name: _dated(value) if version == "v2" else value
        for name, value in found.items()
        if "@" not in name and name != "__metadata"
    }


def _dated(value: Any) -> Any:
    found = _DATE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=int(found[1]))  # noqa: DTZ001
    except OverflowError:
        return value
    return instant(moment.replace(tzinfo=dt.UTC) if found[2] else moment)


def key_of(location: str, names: Sequence[str]) -> dict[str, str]:
    """Return the key in `.../Orders(ID=guid'…',Item=2)` as text by name. An unnamed key belongs to the only
    name."""
    said = unquote(location.partition("?")[0].rstrip("/").rpartition("/")[2]) if location else ""
    if not said.endswith(")") or "(" not in said:
        # An apostrophe may contain a slash: search the whole URL for the parentheses.
        said = unquote(location)
    inner = said[said.find("(") + 1 : -1] if said.endswith(")") and "(" in said else ""
    found = {}
    for part in _PARTS.finditer(inner):
        name, value = part[1] or (names[0] if len(names) == 1 else ""), part[2]
        if name in names and value:
            found[name] = _unquoted(value)
    return found


def _unquoted(value: str) -> str:
    found = _TYPED.fullmatch(value)
    if found is not None and found[1] is not None:
        return found[1].replace("''", "'")
    bare = re.fullmatch(r"(-?\d+(?:\.\d+)?)[LlMmDdFf]", value)
    return bare[1] if bare else value
