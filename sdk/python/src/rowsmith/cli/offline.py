"""`generate --offline`: generate rows with the engine on this machine, byte for byte the same as the service.

The engine is part of the server. This package does not depend on it: it imports the engine by name when it is
needed, and uses only the function that turns a request into bytes, which the service uses too.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Optional

from rowsmith.cli import template_files
from rowsmith.cli.problems import FAILED, REFUSED, Problem
from rowsmith.error import refusal

PACKAGE = "webapp"
CLONE = "RWS_SERVER"


@dataclass(frozen=True)
class Rows:
    """Rows that are being generated, and the values that reproduce them."""

    pieces: Iterable[bytes]
    headers: Mapping[str, str]


class Server:
    """The server modules that generate rows."""

    def __init__(self) -> None:
        clone = os.environ.get(CLONE, "").strip()
        if clone and clone not in sys.path:
            sys.path.insert(0, clone)
        self.groups = _module(f"{PACKAGE}.engine.groups")
        self.compilation = _module(f"{PACKAGE}.row_templates.services.compilation")
        self.related_templates = _module(f"{PACKAGE}.row_templates.services.related_templates")
        self.compiled_plans = _module(f"{PACKAGE}.row_templates.services.compiled_plans")
        self.rows = _module(f"{PACKAGE}.generation.services.rows")
        self.schemas = _module(f"{PACKAGE}.row_templates.schemas")
        self.timestamps = _module(f"{PACKAGE}.timestamps")
        self.errors = _module(f"{PACKAGE}.errors")


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        text = "--offline needs the server's package, which is not installed in this Python."
        hints = [f"Use the Python of a clone of the server, or name the clone with {CLONE}."]
        if (error.name or "").partition(".")[0] != PACKAGE:
            text = f"The server's package is installed, but its dependency {error.name} is not."
            hints = ["Use the Python that runs the server: .venv/bin/python of its clone."]
        raise Problem("offline_missing", text, FAILED, hints) from error


def rows(path: Path, asked: Mapping[str, Any], vocabulary: Optional[str] = None) -> Rows:
    """Generate the rows of a template file. Raises the service's errors, and `offline_missing` if the engine
    is not installed.

    Related templates are read from the files in the same folder, by ID.
    """
    file = template_files.read(path)
    server = Server()
    try:
        return _generated(server, file, asked, vocabulary)
    except server.errors.ApiError as error:
        raise refusal(error.status, error.as_dict()) from None


def _generated(server: Server, file: template_files.File, asked: Mapping[str, Any], words: Optional[str]) -> Rows:
    ask = _request(server, asked)
    source = _source(server, file, ask, words)
    if source.plan.external_requests or file.body.get("source"):
        text = f"{file.path.name} has external values, which only the service can fetch."
        raise Problem("offline_outside", text, REFUSED)
    present = datetime.now(timezone.utc)
    recipe = server.rows.build_recipe(source, ask, current_time=present)
    output = recipe.open()
    return Rows(_closed(output), recipe.pins.headers())


def _closed(output: Any) -> Iterator[bytes]:
    try:
        yield from output
    finally:
        output.close()


def _request(server: Server, asked: Mapping[str, Any]) -> Any:
    try:
        return server.schemas.GenerateInput.model_validate(asked)
    except ValueError as error:  # pydantic's own exception, which contains all errors
        found = error.errors() if hasattr(error, "errors") else []
        faults = [
            {"path": ".".join(str(part) for part in item["loc"]), "code": "invalid", "message": item["msg"]}
            for item in found
        ]
        told = {
            "code": "validation_error",
            "message": "The request is invalid.",
            "details": {"fields": faults},
        }
        raise refusal(422, {"error": told}) from None


def _source(server: Server, file: template_files.File, ask: Any, words: Optional[str]) -> Any:
    """Compile the template as the service compiles a saved one. Fields without IDs get the groups that saving
    would assign."""
    body, own = file.body, file.id or ""
    versions = server.related_templates.collect_related(body["fields"], own, _related_templates(file.path))
    quantity = body.get("quantity") or server.compiled_plans.limits.DEFAULT_QUANTITY
    library = server.related_templates.build_library(versions, own, quantity, ask.rows)
    server.related_templates.check_row_counts(ask.rows, versions, own)
    told = {key: body.get(key) for key in ("locale", "source", "invalid")}
    spec = server.compilation.parse_fields(body["fields"], name=body["name"], **told)
    if not all(field.get("id") for field in template_files.walk(body["fields"])):
        spec = server.groups.assign(spec)
    plan = server.compilation.compile_template(spec, server.compilation.vocabulary(words), ask.locale, library)
    anchor = server.timestamps.parse(body["anchor"]) if body.get("anchor") else None
    related = server.related_templates.related_pins(versions, library)
    return server.compiled_plans.CompiledTemplate(plan, body["name"], quantity, anchor, file.id, None, related)


def _related_templates(path: Path) -> Any:
    """Read related templates from the files of a folder, as stored versions."""
    files: dict[str, template_files.File] = {}

    def read(ids: Iterable[str]) -> dict[str, Any]:
        if not files:
            every = (template_files.read_or_none(item) for item in sorted(path.parent.glob("*.json")))
            files.update({file.id: file for file in every if file is not None and file.id})
        empty = {"locale": None, "anchor": None, "quantity": 10}
        return {item: (0, {**empty, **files[item].body}, {}) for item in ids if item in files}

    return read
