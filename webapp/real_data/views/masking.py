"""Masking: which columns of a sample are personal, and the versions of the workspace's masking key."""

from __future__ import annotations

from typing import Annotated, Any, Final

from flask import Blueprint, Response, g, url_for
from pydantic import Field, JsonValue, model_validator

from webapp import limits
from webapp.access.actors import Actor
from webapp.engine.masking import Masking
from webapp.errors import ApiError
from webapp.real_data.services import detection
from webapp.sources.services import masking_keys
from webapp.web.inputs import Input
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("masking", __name__)
KEYS: Final = "masking_keys.html"

_Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]
_TARGET_ERRORS = ("target_failed", "target_timeout", "target_not_allowed", "driver_missing", "unavailable")


class ClassifyIn(Input):
    """A sample: `rows`, a workspace `file` (`sheet` of a workbook), or the `table` of a connection.

    Of a file, the first 1,000 rows are analyzed; of a table, 200. With `rows`, `table` says what a row describes.
    """

    rows: (
        Annotated[list[dict[str, JsonValue]], Field(min_length=1, max_length=limits.CLASSIFY_ROWS)] | None
    ) = None
    file: Annotated[str, Field(min_length=1, max_length=limits.MAX_FILE_NAME_CHARS)] | None = None
    sheet: _Name | None = None
    connection_id: _Name | None = None
    table: _Name | None = None

    @model_validator(mode="after")
    def _one_sample(self) -> ClassifyIn:
        if sum(one is not None for one in (self.rows, self.file, self.connection_id)) != 1:
            raise ValueError("Send one of rows, file and connection_id with table.")
        if self.connection_id is not None and self.table is None:
            raise ValueError("Name the table of the connection.")
        if self.sheet is not None and self.file is None:
            raise ValueError("Only a workbook file has sheets.")
        return self


class ClassifiedOut(Output):
    """One column.

    `kind`: the kind of personal data, or null if none was found. `confidence`: 0 to 1, in the kind or in its absence.
    `type`, `masking` and `options`: proposed values for a field of a template.
    """

    name: str
    kind: str | None
    sensitive: bool
    confidence: float
    reason: str
    type: str | None
    masking: Masking | None
    options: dict[str, JsonValue] | None


class ClassifyOut(Output):
    """The columns, in the sample's order."""

    columns: list[ClassifiedOut]


class MaskingKeyOut(Output):
    """A version of the masking key, without the key."""

    version: int
    created_by: str | None
    created_at: str


class MaskingKeysOut(Output):
    """The versions, newest first. The newest is used unless a field sets `key_version`."""

    items: list[MaskingKeyOut]


@route(bp, "/classify", ["POST"], scope="write", body=ClassifyIn, returns=ClassifyOut, errors=_TARGET_ERRORS)
def look(actor: Actor, body: ClassifyIn) -> Response:
    """Detect personal data in the columns of a sample, and propose how to mask them.

    The detection uses column names and values. Nothing is stored, and the response contains no values.
    """
    if body.rows is not None:
        found = detection.of_rows(body.rows, body.table or "")
    elif body.file is not None:
        found = detection.of_file(actor, body.file, body.sheet)
    else:
        found = detection.of_table(actor, str(body.connection_id), str(body.table))
    return reply({"columns": [detection.as_json(one) for one in found]})


@route(bp, "/masking/keys", scope="secrets", returns=MaskingKeysOut)
def keys(actor: Actor) -> Response:
    """List the versions of the workspace's masking key, newest first. There is none before something was masked."""
    return _shown(actor)


def _shown(actor: Actor, error: ApiError | None = None) -> Response:
    found = masking_keys.listing(actor)
    data = {"items": [masking_keys.as_json(one) for one in found]}
    status = error.status if error is not None else 200
    who = masking_keys.makers(found) if g.face == "person" else {}
    return reply(data, template=KEYS, status=status, who=who, most=limits.MAX_MASKING_KEYS, error=error)


@route(
    bp, "/masking/keys/rotate", ["POST"], scope="secrets", returns=MaskingKeyOut, status=201, idempotent=True,
    errors=("conflict", "unavailable"), on_fault=_shown,
)  # fmt: skip
def rotate(actor: Actor) -> Response:
    """Create a new version of the masking key, which is used from now on.

    New copies will not match earlier ones. To match earlier copies, set `key_version` in a field.
    """
    made: dict[str, Any] = masking_keys.as_json(masking_keys.rotate(actor))
    message = f"New values are masked with version {made['version']}"
    return reply(made, status=201, see=url_for("masking.keys"), flashed=message)


# The results of the leak check, as the API shows them for exports and pushes.
