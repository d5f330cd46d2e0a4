"""Read OData and OpenAPI metadata documents, uploaded or downloaded from a target, in a separate process.

The kinds' packages have the functions that run in the process. They are named by dotted strings, because the kinds
import this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from webapp import document_process, limits
from webapp.connectors import metadata_json
from webapp.connectors.base import ConnectorError
from webapp.connectors.schema import Metadata
from webapp.document_process import DocumentError
from webapp.errors import ApiError

_READERS: Final = {
    "odata": "webapp.connectors.odata.metadata:metadata_in_process",
    "openapi": "webapp.connectors.openapi.document:metadata_in_process",
}


def metadata(
    kind: str, document: bytes, found_at: str = "", seconds: int = limits.METADATA_CPU_SECONDS
) -> tuple[bytes, int]:
    """Return the metadata of a document as JSON (see `metadata_json.to_json`), and the number of entities.

    `kind` is odata or openapi, `found_at` is the URL that the document came from, and `seconds` limits the
    CPU time. Raises `ConnectorError` (reason `bad_document`).
    """
    answer = run_in_process(_READERS[kind], document, {"found_at": found_at}, seconds)
    entities, _, data = answer.partition(b"\n")
    return data, int(entities)


def run_in_process(function: str, document: bytes, arguments: dict[str, Any], seconds: int) -> bytes:
    """Run a function that returns `answer(...)` in a separate process. Raises the same `ConnectorError`."""
    try:
        result = document_process.run(function, document, arguments, seconds)
    except DocumentError as error:
        raise ConnectorError(error.message, reason="bad_document", hint=error.hint) from None
    except ApiError as error:  # too many documents are being read at the moment
        raise ConnectorError(error.message, reason="busy", hint="Try again.", transient=True) from None
    if isinstance(result, bytes):
        return result
    raise ConnectorError(**result)


# --- In the separate process


def result_or_error(read: Callable[[], bytes]) -> bytes | dict[str, Any]:
    """Return the result of `read`, or the `ConnectorError` that it raises as JSON."""
    try:
        return read()
    except ConnectorError as error:
        return error.to_json()


def dump(found: Metadata) -> bytes:
    """Return metadata in the form that `metadata` expects: the number of entities, then JSON."""
    return f"{len(found.entities)}\n".encode() + orjson.dumps(metadata_json.to_json(found))
