"""Response models of several routes that generate rows."""

from __future__ import annotations

from pydantic import Field

from webapp.web.responses import Output


class WholeColumn(Output):
    """Whether real values of the column occur in any row.

    `kind` is none if the masking excludes that and an occurrence would have failed the work; counted if a masked value
    can be another person's real value by chance.

    `distinct` is the number of real values in the column, of which a `share` was checked; `expected` is the number of
    matches that chance explains, null if it is unknown.
    """

    kind: str
    distinct: int
    share: float
    found: int
    expected: float | None


class LeakColumn(Output):
    """One sensitive column.

    The number of checked values, and the number that remained unmasked in their own row, which is always 0, because
    one would have failed the work.
    """

    column: str
    source_column: str
    strategy: str
    key_version: int
    values: int
    survivors: int
    whole_column: WholeColumn


class LeakReport(Output):
    """The result of the leak check for one table. `unmasked`: the columns that have the values of the source."""

    table: str
    columns: list[LeakColumn]
    unmasked: list[str] = Field(default_factory=list)
