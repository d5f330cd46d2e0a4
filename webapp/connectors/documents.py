"""Read metadata documents of OData and OpenAPI in a document process: uploaded ones, and those that a target gave."""

from __future__ import annotations

from typing import IO, Any

import orjson
from pydantic import TypeAdapter

from webapp import document_process, limits
from webapp.connectors import wire
from webapp.connectors.base import ConnectorError
from webapp.connectors.odata_model import Service
from webapp.document_process import DocumentError
from webapp.errors import ApiError

_SERVICE: TypeAdapter[Service] = TypeAdapter(Service)


def metadata(
    kind: str, document: bytes, found_at: str = "", seconds: int = limits.METADATA_CPU_SECONDS
) -> tuple[bytes, int]:
    """The metadata of a document, as JSON of `wire.to_json`, and the number of its entities.

    `kind` is odata or openapi, `found_at` the address that the document came from, `seconds` the processor time that
    reading may take. Raises `ConnectorError` (reason `bad_document`).
    """
    answer = _read("metadata_in_process", document, {"kind": kind, "found_at": found_at}, seconds)
    entities, _, found = answer.partition(b"\n")
    return found, int(entities)


def odata_service(document: bytes) -> Service:
    """The model of an OData service. Raises `ConnectorError` (reason `bad_document`)."""
    return _SERVICE.validate_json(_read("service_in_process", document, {}, limits.METADATA_CPU_SECONDS))


def _read(function: str, document: bytes, arguments: dict[str, Any], seconds: int) -> bytes:
    try:
        answer = document_process.run(f"{__name__}:{function}", document, arguments, seconds)
    except DocumentError as error:
        raise ConnectorError(error.message, reason="bad_document", hint=error.hint) from None
    except ApiError as error:  # too many documents at the moment
        raise ConnectorError(error.message, reason="busy", hint="Try again.", transient=True) from None
    if isinstance(answer, bytes):
        return answer
    raise ConnectorError(**answer)


# --- In the process -----------------------------------------------------------------------------------------


def metadata_in_process(file: IO[bytes], kind: str, found_at: str) -> bytes | dict[str, Any]:
    """See `metadata`; a `ConnectorError` as JSON."""
    from webapp.connectors import odata_entities, odata_metadata, openapi, openapi_document

    try:
        if kind == "odata":
            found = odata_entities.metadata(odata_metadata.read(file.read()))
        else:
            found = openapi.metadata(openapi_document.read(file.read()), found_at)
    except ConnectorError as error:
        return _told(error)
    return f"{len(found.entities)}\n".encode() + orjson.dumps(wire.to_json(found))


def service_in_process(file: IO[bytes]) -> bytes | dict[str, Any]:
    """See `odata_service`; a `ConnectorError` as JSON."""
    from webapp.connectors import odata_metadata

    try:
        return _SERVICE.dump_json(odata_metadata.read(file.read()))
    except ConnectorError as error:
        return _told(error)


def _told(error: ConnectorError) -> dict[str, Any]:
    names = ("message", "code", "reason", "hint", "transient", "details")
    return {name: getattr(error, name) for name in names}
