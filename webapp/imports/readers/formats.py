"""Which format a file has, and its reader."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, get_args

import orjson

from webapp.engine.data.vocabulary import Vocabulary
from webapp.imports.readers import (
    avro,
    csv,
    json_rows,
    json_schema,
    mockaroo,
    protobuf,
    sql,
    sql_script,
    workbook,
)
from webapp.imports.readers.base import ParsedFile, Source, UnreadableFileError, decode

Format = Literal[
    "auto", "csv", "json", "ndjson", "xlsx", "sql", "json_schema", "openapi", "avro", "protobuf", "mockaroo"
]
FORMATS: Final[tuple[str, ...]] = get_args(Format)
_ENDINGS: Final = {
    "csv": "csv", "tsv": "csv", "tab": "csv", "xlsx": "xlsx", "xlsm": "xlsx", "sql": "sql", "ddl": "sql",
    "ndjson": "ndjson", "jsonl": "ndjson", "avsc": "avro", "proto": "protobuf",
}  # fmt: skip
_SNIFFED_CHARS: Final = 100_000  # chosen: characters by which the format of a text is found
_ZIP: Final = b"PK\x03\x04"


def read(source: Source, form: str, vocabulary: Vocabulary) -> ParsedFile:
    """Read a file as tables; `form` is one of `FORMATS`. Raises `UnreadableFileError` if nothing of it can be read."""
    if not source.content:
        raise UnreadableFileError("The file is empty.", "Send a file that contains rows or a schema.")
    format_ = detect_format(source) if form == "auto" else form
    if source.content.startswith(_ZIP) and format_ != "xlsx":
        raise UnreadableFileError(
            "The file is a ZIP archive, not a text file.",
            "Extract it and send its files, or send an XLSX workbook.",
        )
    readers: dict[str, Any] = {
        "csv": lambda: csv.read(source), "xlsx": lambda: workbook.read(source), "sql": lambda: sql.read(source),
        "json": lambda: json_rows.read(source, vocabulary), "ndjson": lambda: json_rows.read_lines(source, vocabulary),
        "json_schema": lambda: json_schema.read(source), "openapi": lambda: json_schema.read_openapi(source),
        "avro": lambda: avro.read(source), "protobuf": lambda: protobuf.read(source),
        "mockaroo": lambda: mockaroo.read(source, vocabulary),
    }  # fmt: skip
    result: ParsedFile = readers[format_]()
    if not result.tables:
        raise UnreadableFileError(
            result.problems[0].reason if result.problems else "Nothing in the file can be imported."
        )
    return result


def detect_format(source: Source) -> str:
    """Return the format of a file, by its content, then by its file name extension."""
    if source.content.startswith(_ZIP):
        return "xlsx"
    text, _ = decode(source.content)
    beginning = text[:_SNIFFED_CHARS].lstrip("\ufeff \t\r\n")
    if (
        beginning[:1] in ("{", "[") and _ENDINGS.get(source.extension) != "sql"
    ):  # Informix has comments in braces
        return _detect_json_format(text)
    if source.extension in _ENDINGS:
        return _ENDINGS[source.extension]
    if re.search(r"^[ \t]*(openapi|swagger)\s*:", beginning, re.M):
        return "openapi"
    if re.search(r"^[ \t]*(properties|\$schema)\s*:", beginning, re.M):
        return "json_schema"
    if re.search(r"^[ \t]*message\s+\w+\s*\{", beginning, re.M):
        return "protobuf"
    if sql_script.EMBEDDED_DEFINITION.search(text[:_SNIFFED_CHARS]) or re.search(
        r"\bCREATE\s[\w\s]{0,80}\bTABLE\b", text, re.I
    ):
        return "sql"
    return "csv"


def _detect_json_format(text: str) -> str:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        first, _, rest = text.strip().partition("\n")
        return "ndjson" if rest and _is_object(first) else "json"
    if isinstance(value, list):
        return (
            "avro"
            if value and all(isinstance(item, dict) and item.get("type") == "record" for item in value)
            else "json"
        )
    if not isinstance(value, dict):
        return "json"
    if "openapi" in value or "swagger" in value:
        return "openapi"
    if mockaroo.is_schema_file(value):
        return "mockaroo"
    if value.get("type") == "record" and isinstance(value.get("fields"), list):
        return "avro"
    parts = [value.get(item) for item in ("properties", "$defs", "definitions", "items")]
    has_type = (
        value.get("type") in ("object", "array") or "$schema" in value or "$ref" in value or "allOf" in value
    )
    return (
        "json_schema"
        if "$schema" in value or (has_type and any(isinstance(part, dict) for part in parts))
        else "json"
    )


def _is_object(line: str) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False
