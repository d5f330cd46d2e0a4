"""Schedules: exports and pushes that are repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from rowsmith.pages import Pages
from rowsmith.record import IfMatch
from rowsmith.resources.base import Key, Resource

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rowsmith import types

ONE = "/schedules/{schedule_id}"


class Schedules(Resource):
    """`api.schedules`."""

    def list(self, *, q: Optional[str] = None) -> Pages[types.JobScheduleOut]:
        """List the schedules of exports and pushes of the project, newest first; `q` searches names."""
        return self._list("/schedules", {"q": q})

    def create(
        self, *, idempotency_key: Key = None, **schedule: Unpack[types.JobScheduleIn]
    ) -> types.JobScheduleOut:
        """Create a schedule: `name`, `cron`, and a `kind` with a `request`, or `repeats` with the ID of a job."""
        return self._create("/schedules", schedule, idempotency_key)

    def get(self, schedule_id: str) -> types.JobScheduleOut:
        """Return a schedule."""
        return self._get(ONE, schedule_id=schedule_id)

    def update(
        self, schedule_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.JobSchedulePatch]
    ) -> types.JobScheduleOut:
        """Change a schedule, or turn it on or off (`enabled`)."""
        return self._change("PATCH", ONE, changes, if_match, schedule_id=schedule_id)

    def delete(self, schedule_id: str, *, if_match: IfMatch = None) -> types.JobScheduleOut:
        """Delete a schedule. Its jobs stay."""
        return self._delete(ONE, if_match, schedule_id=schedule_id)

    def start(self, schedule_id: str, *, idempotency_key: Key = None) -> types.StartedOut:
        """Start a job of a schedule now, in addition to those that are due."""
        return self._create(ONE + "/start", None, idempotency_key, schedule_id=schedule_id)
