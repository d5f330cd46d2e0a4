"""Request models of scenarios, which define validation, forms and documentation."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from webapp import json_input, limits
from webapp.row_templates.schemas import READ_ONLY as ROWS_READ_ONLY
from webapp.row_templates.schemas import Name, RowsInput
from webapp.scenarios.services.environment_variables import RESERVED, RESERVED_PREFIXES

READ_ONLY: Final = ROWS_READ_ONLY | frozenset({"requirements", "lock", "next_run_at"})
"""Keys of a scenario that a client sends back, and that are then ignored."""

Network = Literal["full", "api", "none"]
Code = Annotated[
    str,
    Field(
        min_length=1,
        description=f"The Python program, run as main.py: UTF-8, at most {limits.MAX_CODE_BYTES:,} bytes.",
    ),
]
Description = Annotated[str, Field(max_length=limits.MAX_DESCRIPTION_CHARS)]
Timeout = Annotated[
    int,
    Field(
        ge=limits.MIN_RUN_SECONDS, le=limits.MAX_RUN_SECONDS, description=("Time limit of a run in seconds.")
    ),
]
_TAKEN: Final = "|".join([*(f"{front}.*" for front in RESERVED_PREFIXES), *sorted(RESERVED)])
NAME_PATTERN: Final = f"^(?!(?:{_TAKEN})$)[A-Za-z_][A-Za-z0-9_]*$"
# `run_variables` validates names and values and reports all errors; this schema only documents them.
VARIABLES_SCHEMA: Final = {
    "type": "object",
    "maxProperties": limits.MAX_VARIABLES,
    "propertyNames": {
        "pattern": NAME_PATTERN,
        "maxLength": limits.MAX_VARIABLE_NAME_CHARS,
    },
    "additionalProperties": {"type": "string", "maxLength": limits.MAX_VARIABLE_BYTES},
}
Variables = Annotated[
    dict[str, Any],
    Field(description="Environment variables of every run: text values by name."),
    WithJsonSchema(
        {**VARIABLES_SCHEMA, "description": ("Environment variables of every run: text values by name.")}
    ),
]
Names = Annotated[list[str], Field(max_length=limits.MAX_VARIABLES)]
_SECRETS: Final = "Names of workspace secrets that a run gets as variables with the same names."
_WRITABLE: Final = "Names of workspace secrets that a run may set."
_NETWORK: Final = "`full`: the internet and the API; `api`: only the API; `none`: no network."


class ScheduleInput(json_input.Model):
    """When a scenario runs automatically."""

    model_config = ConfigDict(extra="forbid", strict=True)

    cron: str = Field(
        min_length=1,
        max_length=200,
        description="Five fields: minute, hour, day of month, month, day of week.",
    )
    timezone: str = Field(
        "UTC", max_length=100, description=("A name in the IANA time zone database: `Europe/Berlin`.")
    )
    enabled: bool = True
    params: Annotated[
        dict[str, Any],
        WithJsonSchema({**VARIABLES_SCHEMA, "description": ("Parameters of every scheduled run.")}),
    ] = Field(default_factory=dict)


class _SharedInput(RowsInput):
    read_only = READ_ONLY

    description: Description = ""
    timeout_seconds: Timeout = limits.DEFAULT_RUN_SECONDS
    env: Variables = Field(default_factory=dict)
    secrets: Names = Field(default_factory=list, description=_SECRETS)
    writable_secrets: Names = Field(default_factory=list, description=_WRITABLE)
    network: Network = Field("full", description=_NETWORK)
    schedule: ScheduleInput | None = None


class ScenarioInput(_SharedInput):
    """A new scenario."""

    name: Name
    code: Code


class CodeInput(_SharedInput):
    """A scenario's code, and optional further changes; keys that are left out keep their values."""

    code: Code
    name: Name = ""


class ScenarioPatch(_SharedInput):
    """The properties of a scenario that can be changed; keys that are left out keep their values."""

    name: Name = ""
    code: Code = ""


class CheckInput(RowsInput):
    """An unsaved program."""

    code: Code
    resolve: bool = Field(
        False, description="Also query the package index, as saving does. This can take seconds."
    )
