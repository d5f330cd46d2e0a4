"""The options of the data source, parsed and validated."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rowsmith.error import ServiceError

ROWS_PER_CALL: Final = 100_000
"""The maximum number of rows per call in every plan of the service."""
MAX_PARTITIONS: Final = 100_000
"""The number of tasks of a stage that Spark's driver handles well."""
NAMES: Final = (
    "template",
    "file",
    "url",
    "key",
    "project",
    "rows",
    "offset",
    "partitions",
    "rows_per_partition",
    "rows_per_call",
    "seed",
    "now",
    "locale",
    "related_rows",
)


@dataclass(frozen=True)
class Options:
    """The options of a read. If `rows` is None, the template's quantity is used."""

    template: str | None = None
    file: str | None = None
    url: str | None = None
    key: str | None = field(default=None, repr=False)
    project: str | None = None
    rows: int | None = None
    offset: int = 0
    partitions: int | None = None
    rows_per_partition: int = ROWS_PER_CALL
    rows_per_call: int = ROWS_PER_CALL
    request: Mapping[str, Any] = field(default_factory=dict)
    """Return `seed`, `now`, `locale` and `rows` of related templates in the format of generate, if given."""


def parse(given: Mapping[str, str]) -> Options:
    """Parse options. Raises ServiceError `bad_option` for the first invalid one."""
    known = {name.lower(): text for name, text in given.items()}
    for name in known:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, 1)
            hint = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(NAMES)}."
            raise _option_error(f"There is no option {name}.{hint}")
    if ("template" in known) == ("file" in known):
        raise _option_error(
            "Set either the option template (ID of a saved template) or file (path of a template file)."
        )
    if "partitions" in known and "rows_per_partition" in known:
        raise _option_error("Set either the option partitions or rows_per_partition.")
    texts = {name: known.get(name) for name in ("template", "file", "url", "key", "project")}
    request: dict[str, Any] = {name: known[name] for name in ("seed", "now", "locale") if name in known}
    if "related_rows" in known:
        request["rows"] = _related(known["related_rows"])
    return Options(
        **texts,
        rows=_parse_integer(known, "rows", 1, None),
        offset=_parse_integer(known, "offset", 0, 0),
        partitions=_parse_integer(known, "partitions", 1, None),
        rows_per_partition=_parse_integer(known, "rows_per_partition", 1, ROWS_PER_CALL),
        rows_per_call=_parse_integer(known, "rows_per_call", 1, ROWS_PER_CALL),
        request=request,
    )


def _parse_integer(known: Mapping[str, str], name: str, least: int, default: Any) -> Any:
    if name not in known:
        return default
    try:
        number = int(known[name].replace("_", ""))
    except ValueError:
        number = least - 1
    if number < least:
        raise _option_error(f"The option {name} must be a whole number of at least {least}, not {known[name]!r}.")
    return number


def _related(text: str) -> dict[str, int]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _option_error('The option related_rows must be JSON: {"tpl_...": 1000000}.')
    return found


def _option_error(text: str) -> ServiceError:
    return ServiceError("bad_option", message=text)
