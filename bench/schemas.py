"""Measure how many generated rows are valid for public OpenAPI documents and JSON Schemas.

python bench/schemas.py FOLDER [--rows 5] [--only NAME] [--list]

FOLDER contains documents that the caller provides: OpenAPI documents (JSON or YAML), and JSON Schemas. For each
operation of an OpenAPI document a template is drafted, rows are generated, and the body of each request is validated
against the body schema in the document. Each JSON Schema is imported, and its rows are validated against it.
Properties marked `readOnly` are not accepted in a body. The validator is jsonschema-rs, which the product does not
use.

Printed are the share of valid bodies, and the reasons for the others. Operations that have a body, but no template,
count as invalid.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import jsonschema_rs
import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from webapp.connectors.base import ConnectorError
from webapp.connectors.http.request_template import Renderer
from webapp.connectors.json_schema.validation import Document, UnresolvedReferenceError
from webapp.connectors.openapi import document
from webapp.connectors.openapi.connector import request_template_of
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.errors import ApiError
from webapp.imports.readers import formats
from webapp.imports.readers.base import Source, UnreadableFileError
from webapp.imports.services import drafts, tables
from webapp.row_templates.services import compilation

SECONDS: Final = 40  # for one JSON Schema
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
JSON_TYPES: Final = ("application/json", "text/json", "*/*")
FORM: Final = "application/x-www-form-urlencoded"
STORES: Final = (
    "https://json.schemastore.org/",
    "https://www.schemastore.org/",
    "http://json.schemastore.org/",
)


@dataclass
class Result:
    """Bodies of one document, and why the others are not valid."""

    valid: int = 0
    total: int = 0
    bodies: int = 0
    """Of them, generated."""
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def fail(self, reason: str, rows: int, example: str = "") -> None:
        """Count invalid bodies."""
        self.total += rows
        self.reasons[reason] += rows
        self.examples.setdefault(reason, example)


# --- OpenAPI ------------------------------------------------------------------------------------------------


def prepared(whole: Any, version: str) -> Any:
    """Return a document as JSON Schema for requests: `nullable` becomes a type, `readOnly` properties are forbidden."""
    lost: dict[int, set[str]] = {}
    document = Document(whole)

    def target(schema: Any) -> Any:
        for _ in range(20):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            try:
                schema = document.target(schema["$ref"])
            except UnresolvedReferenceError:
                return {}
        return schema if isinstance(schema, dict) else {}

    def locked(schema: Any, depth: int = 0) -> bool:
        found = target(schema)
        parts = found.get("allOf") if isinstance(found.get("allOf"), list) else []
        return found.get("readOnly") is True or (depth < 5 and any(locked(item, depth + 1) for item in parts))

    def names(schema: Any, depth: int = 0) -> set[str]:
        """Return the read-only properties of an object, with those of its parts."""
        found = target(schema)
        if id(found) not in lost:
            properties = found.get("properties") if isinstance(found.get("properties"), dict) else {}
            own = {name for name, item in properties.items() if locked(item)}
            parts = found.get("allOf") if isinstance(found.get("allOf"), list) else []
            lost[id(found)] = own.union(*(names(item, depth + 1) for item in parts if depth < 8))
        return lost[id(found)]

    def walk(value: Any, above: frozenset[str] = frozenset()) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, dict):
            return value
        if above and isinstance(value.get("$ref"), str) and above & set(target(value).get("required") or ()):
            value = target(value)  # a part of an object whose read-only properties other parts define
        gone = above | names(value)
        result = {
            key: item if key in ("enum", "const", "default", "example", "examples")
            else [walk(part, gone) for part in item] if key in ("allOf", "oneOf", "anyOf") and isinstance(item, list)
            else walk(item)
            for key, item in value.items()
        }  # fmt: skip
        if isinstance(value.get("properties"), dict):
            for name in names(value):
                if name in result["properties"]:
                    result["properties"][name] = {"not": {}}
        if isinstance(result.get("required"), list):
            result["required"] = [name for name in result["required"] if name not in gone]
            if not result["required"]:
                del result["required"]
        if isinstance(result.get("required"), bool):
            del result["required"]
        if value.get("nullable") is True and version < "3.1":
            if isinstance(result.get("type"), str):
                result["type"] = [result["type"], "null"]
            if isinstance(result.get("enum"), list) and None not in result["enum"]:
                result["enum"] = [*result["enum"], None]
            if "$ref" in result or "allOf" in result or "oneOf" in result:
                result = {"anyOf": [{"type": "null"}, result]}
        return result

    return walk(whole)


def _loaded(raw: bytes) -> dict[str, Any]:
    """Return a document without the limits of the product."""
    found = orjson.loads(raw) if raw.lstrip()[:1] == b"{" else document.load(raw)
    return found if isinstance(found, dict) else {}


def operations(whole: Mapping[str, Any], document: Document) -> Iterator[tuple[str, Any]]:
    """Yield each operation that has a JSON or form body, with its schema."""
    for path, item in whole.get("paths", {}).items():
        for method in ("post", "put", "patch"):
            operation = item.get(method) if isinstance(item, dict) else None
            if not isinstance(operation, dict):
                continue
            base = f"/paths/{_escaped(path)}/{method}"
            if "swagger" in whole:
                for place, parameter in enumerate(operation.get("parameters") or []):
                    pointer = f"{base}/parameters/{place}"
                    if "$ref" in parameter:
                        pointer = parameter["$ref"][1:]
                        parameter = document.target(parameter["$ref"])
                    if parameter.get("in") == "body":
                        yield f"{method.upper()} {path}", {"$ref": f"urn:document#{pointer}/schema"}
                fields = [
                    parameter
                    for parameter in operation.get("parameters") or []
                    if parameter.get("in") == "formData"
                ]
                consumed = operation.get("consumes") or whole.get("consumes") or [FORM]
                if fields and FORM in consumed and all(entry.get("type") != "file" for entry in fields):
                    plain = {
                        entry["name"]: {key: entry[key] for key in entry if key != "required"}
                        for entry in fields
                    }
                    needed = [entry["name"] for entry in fields if entry.get("required") is True]
                    schema = {"type": "object", "properties": plain}
                    yield f"{method.upper()} {path}", schema | ({"required": needed} if needed else {})
                continue
            body = operation.get("requestBody")
            pointer = base + "/requestBody"
            while isinstance(body, dict) and "$ref" in body:
                pointer = body["$ref"][1:]
                body = document.target(body["$ref"])
            content = body.get("content", {}) if isinstance(body, dict) else {}
            kinds = {str(kind).partition(";")[0].strip().lower(): kind for kind in content}
            json_kinds = [entry for entry in kinds if entry in JSON_TYPES or entry.endswith("+json")]
            chosen = kinds.get(json_kinds[0] if json_kinds else FORM)
            if chosen is not None and content[chosen].get("schema") not in (None, {}):
                pointer = f"{pointer}/content/{_escaped(chosen)}/schema"
                yield f"{method.upper()} {path}", {"$ref": f"urn:document#{pointer}"}


def _escaped(name: str) -> str:
    return quote(str(name).replace("~", "~0").replace("/", "~1"), safe="~")


def of_openapi(whole: dict[str, Any], raw: bytes, rows: int) -> Result:
    """Measure one OpenAPI document."""
    result, words = Result(), compilation.vocabulary()
    version = str(whole.get("openapi") or whole.get("swagger"))
    expected = list(operations(whole, Document(whole)))
    began = time.process_time()
    try:
        entities = {item.name: item for item in document.metadata(document.read(raw), "").entities}
    except ConnectorError as error:
        result.fail(f"document not read: {error.message[:60]}", rows * len(expected))
        return result
    result.seconds = time.process_time() - began
    draft = jsonschema_rs.Draft202012Validator if version >= "3.1" else jsonschema_rs.Draft4Validator
    dialect = jsonschema_rs.Draft202012 if version >= "3.1" else jsonschema_rs.Draft4
    registry = jsonschema_rs.Registry([("urn:document", prepared(whole, version))], draft=dialect)
    for name, schema in expected:
        entity = entities.get(name)
        if entity is None:
            result.fail("operation not offered", rows, name)
            continue
        began = time.process_time()
        try:
            (one,) = tables.make_valid([tables.draft_table(entity, None, [entity], {}, None, words)], words)
            bodies = Renderer(request_template_of(entity), "").render_bodies(_generated(one.fields, rows))
        except (ConnectorError, ApiError, ValueError) as error:
            result.fail(f"not generated: {str(error)[:50]}", rows, name)
            continue
        result.seconds += time.process_time() - began
        try:
            validator = draft(schema, registry=registry, validate_formats=True)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            print(f"  skipped {name}: the validator cannot read its schema: {str(error)[:100]}")
            continue
        _judge(result, validator, [orjson.loads(body) for body in bodies], name)
    return result


# --- JSON Schema --------------------------------------------------------------------------------------------


def of_schema(path: Path, raw: bytes, rows: int, registry: Any) -> Result | None:
    """Measure one JSON Schema; None if the validator cannot read it, or if it only refers to another document."""
    whole, result, words = orjson.loads(raw), Result(), compilation.vocabulary()
    try:
        validator = jsonschema_rs.validator_for(whole, registry=registry, validate_formats=True)
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return None
    began = time.process_time()
    signal.alarm(SECONDS)
    try:
        read = formats.read(Source(raw, path.name), "json_schema", words)
        outcome = drafts.draft_tables(read, words, 100)
        rows_of = {draft.entity.name: (draft, _generated(draft.fields, rows)) for draft in outcome}
    except (UnreadableFileError, ConnectorError, ApiError, ValueError, TimeoutError) as error:
        if "references another one" in str(error):
            return None
        result.fail(f"not read: {str(error)[:60]}", rows, path.name)
        return result
    finally:
        signal.alarm(0)
    result.seconds = time.process_time() - began
    parts = {**whole.get("definitions", {}), **whole.get("$defs", {})}
    alone = any(item in whole for item in ("properties", "items", "$ref", "allOf", "anyOf", "oneOf", "type"))
    for name, (_, batch) in rows_of.items():
        values = [orjson.loads(text) for text in Renderer(_row_of(batch), "").render_bodies(batch)]
        if alone:
            values = [
                value if validator.is_valid(value) or not validator.is_valid([value]) else [value]
                for value in values
            ]
            _judge(result, validator, values, path.name)
            break
        word = "definitions" if name in whole.get("definitions", {}) else "$defs"
        if name in parts:
            part = jsonschema_rs.validator_for(
                {**whole, "$ref": f"#/{word}/{_escaped(name)}"}, registry=registry, validate_formats=True
            )
            _judge(result, part, values, path.name)
    return result


def _row_of(batch: Any) -> Any:
    from webapp.connectors.http.request_template import RequestTemplate

    return RequestTemplate(method="POST")


# --- Both ---------------------------------------------------------------------------------------------------


def _generated(fields: list[dict[str, Any]], rows: int) -> Any:
    import pyarrow as pa

    bound = BoundPlan(compile_plan(parse(fields), compilation.vocabulary()), GenerationContext("bench", NOW))
    faults = bound.row_faults(rows)
    if faults:
        raise ValueError(faults[0].message)
    block = bound.block(0, rows)
    return (
        block
        if isinstance(block, pa.RecordBatch)
        else pa.RecordBatch.from_arrays(list(block), schema=bound.schema)
    )


def _judge(result: Result, validator: Any, bodies: list[Any], name: str) -> None:
    for body in bodies:
        result.total += 1
        result.bodies += 1
        error = next(iter(validator.iter_errors(body)), None)
        if error is None:
            result.valid += 1
            continue
        kind = type(error.kind).__name__.rpartition("_")[2]
        result.reasons[kind] += 1
        where = "/".join(map(str, error.instance_path))
        result.examples.setdefault(kind, f"{name} at {where}: {error.message[:160]}")


def told(name: str, result: Result) -> str:
    """Return the line of one document."""
    share = 100 * result.valid / max(1, result.total)
    return (f"{name:32} {result.valid:6,} of {result.total:6,} valid ({share:5.1f} %), {result.bodies:6,} generated,"
            f" {result.seconds:6.1f} s")  # fmt: skip


def _stop(*_: Any) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def main() -> None:
    """Measure the documents of a folder."""
    signal.signal(signal.SIGALRM, _stop)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument(
        "--only",
        default="",
        help="documents, or with DOCUMENT:OPERATION operations, of this name; several with |",
    )
    parser.add_argument("--list", action="store_true", help="print the reasons of each document")
    request = parser.parse_args()
    expected = request.only.split("|")
    paths = sorted(
        item
        for item in request.folder.iterdir()
        if item.is_file() and any(part in item.name for part in expected)
    )
    results: dict[str, Result] = {"OpenAPI": Result(), "JSON Schema": Result()}
    registry = None
    skipped = schemas = good = 0
    for path in paths:
        raw = path.read_bytes()
        whole = _loaded(raw)
        if "paths" in whole and ("openapi" in whole or "swagger" in whole):
            kind, found = "OpenAPI", of_openapi(whole, raw, request.rows)
            print(told(path.name, found), flush=True)
        else:
            if registry is None:
                registry = _registry(request.folder)
            kind = "JSON Schema"
            one = of_schema(path, raw, request.rows, registry)
            if one is None:
                skipped += 1
                continue
            found = one
            schemas += 1
            good += found.valid == found.total
        if request.list and kind == "JSON Schema":
            print(told(path.name, found), flush=True)
        if request.list and found.reasons:
            for reason, count in found.reasons.most_common(12):
                print(f"    {count:5} {reason}: {found.examples[reason][:230]}", flush=True)
        total = results[kind]
        total.valid += found.valid
        total.total += found.total
        total.bodies += found.bodies
        total.seconds += found.seconds
        total.reasons += found.reasons
        for reason, example in found.examples.items():
            total.examples.setdefault(reason, example)
    for kind, result in results.items():
        if result.total:
            print(told(f"all: {kind}", result))
            for reason, count in result.reasons.most_common(30):
                print(f"  {count:6,} {reason}: {result.examples[reason][:200]}")
    if schemas:
        print(f"{good} of {schemas} JSON Schemas whose rows are all valid; {skipped} only refer to others")


def _registry(folder: Path) -> Any:
    """Return all JSON Schemas of the folder under the addresses by which they refer to each other."""
    found = []
    for path in folder.parent.glob(folder.name.partition("-")[0] + "*/*.json"):
        try:
            whole = orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError:
            continue
        if isinstance(whole, dict):
            found += [(f"{store}{name}", whole) for store in STORES for name in (path.name, path.stem)]
    return jsonschema_rs.Registry(found, retriever=lambda _: {})


if __name__ == "__main__":
    main()
