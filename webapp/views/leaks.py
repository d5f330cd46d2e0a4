"""What the leak check tells, as the API shows it of exports and pushes."""

from __future__ import annotations

from webapp.views.outputs import Output


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
