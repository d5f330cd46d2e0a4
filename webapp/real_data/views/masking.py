"""Masking: which columns of a sample are personal, and the versions of the workspace's masking key."""

from __future__ import annotations

from typing import Annotated, Any, Final

from flask import Blueprint, Response, g, url_for
from pydantic import Field, JsonValue, model_validator

from webapp import limits
from webapp.accounts.actors import Actor
from webapp.engine.masking import Masking
from webapp.errors import ApiError
from webapp.real_data.services import detection, masking_keys
from webapp.web.inputs import Input
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("masking", __name__)
KEYS: Final = "masking_keys.html"

_Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]
_TARGET_ERRORS = ("target_failed", "target_timeout", "target_not_allowed", "driver_missing", "unavailable")


class ClassifyIn(Input):
    """A sample: `rows`, or a workspace `file` (`sheet` of a workbook), or the `table` of a connection. Of a file the
    first 1,000 rows are looked at, of a table 200. `table` beside `rows` says what a row stands for."""

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
    """One column. `kind`: of what it tells, null where nothing shows a person. `confidence`: 0 to 1, in the kind, or in
    there being none. `type` and `masking`: what a field of a template may take as it is."""

    name: str
    kind: str | None
    sensitive: bool
    confidence: float
    reason: str
    type: str | None
    masking: Masking | None


class ClassifyOut(Output):
    """The columns, in the sample's order."""

    columns: list[ClassifiedOut]


class MaskingKeyOut(Output):
    """A version of the masking key, without the key."""

    version: int
    created_by: str | None
    created_at: str


class MaskingKeysOut(Output):
    """The versions, newest first. The newest masks, where a field does not say `key_version`."""

    items: list[MaskingKeyOut]


@route(bp, "/classify", ["POST"], scope="write", body=ClassifyIn, returns=ClassifyOut, errors=_TARGET_ERRORS)
def look(actor: Actor, body: ClassifyIn) -> Response:
    """Say which columns of a sample are personal, and propose how to mask them.

    Names of columns and their values are looked at; nothing is stored, and no value is in the answer.
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
    """Make a new version of the masking key, which masks from now on.

    Values are masked otherwise than before: a field that must agree with what was masked earlier says its
    `key_version`.
    """
    made: dict[str, Any] = masking_keys.as_json(masking_keys.rotate(actor))
    told = f"Version {made['version']} masks from now on"
    return reply(made, status=201, see=url_for("masking.keys"), flashed=told)


# What the leak check tells, as the API shows it of exports and pushes.


class WholeColumn(Output):
    """Whether real values of the column stand in any row. `kind` is none where that cannot be by design and one would
    have ended the work; counted where a masked value may be somebody else's real one by chance.

    `distinct` are the column's real values, of which a `share` was looked for; `expected` is the number of coincidences
    that chance explains, null where it is not known.
    """

    kind: str
    distinct: int
    share: float
    found: int
    expected: float | None


class LeakColumn(Output):
    """One sensitive column: how many values were looked at, and how many stood unmasked in their own row (0: one would
    have ended the work)."""

    column: str
    source_column: str
    strategy: str
    key_version: int
    values: int
    survivors: int
    whole_column: WholeColumn


class LeakReport(Output):
    """What the leak check saw of one table."""

    table: str
    columns: list[LeakColumn]
