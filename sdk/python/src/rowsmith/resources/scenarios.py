"""Scenarios and their runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

from rowsmith.follow import Follower, LogLine
from rowsmith.pages import Pages
from rowsmith.record import IfMatch
from rowsmith.resources.base import Key, Resource

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rowsmith import types

ONE = "/scenarios/{scenario_id}"
RUN = ONE + "/runs/{run_id}"


class Scenarios(Resource):
    """`api.scenarios`."""

    def list(self, *, q: Optional[str] = None, sort: Optional[str] = None) -> Pages[types.ScenarioOut]:
        """List the scenarios of the project; `q` searches names."""
        return self._list("/scenarios", {"q": q, "sort": sort})

    def get(self, scenario_id: str, version: Optional[int] = None) -> types.ScenarioOut:
        """Return the current scenario, or a version of it."""
        if version is None:
            return self._get(ONE, scenario_id=scenario_id)
        return self._get(ONE + "@v{number}", scenario_id=scenario_id, number=version)

    def create(
        self, *, idempotency_key: Key = None, **scenario: Unpack[types.ScenarioInput]
    ) -> types.ScenarioOut:
        """Create a scenario: `name` and `code`. The program's requirements are resolved immediately."""
        return self._create("/scenarios", scenario, idempotency_key)

    def check(self, code: str, *, resolve: Optional[bool] = None) -> types.CheckOut:
        """Check a program without saving it."""
        body: dict[str, Any] = {"code": code} if resolve is None else {"code": code, "resolve": resolve}
        return self._ask("/scenarios/check", body)

    def replace(
        self, scenario_id: str, code: str, *, if_match: IfMatch = None, **more: Any
    ) -> types.ScenarioOut:
        """Replace the code, which creates a new version. `more` is the same as for `update`."""
        return self._change("PUT", ONE, {"code": code, **more}, if_match, scenario_id=scenario_id)

    def update(
        self, scenario_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.ScenarioPatch]
    ) -> types.ScenarioOut:
        """Change the given keys."""
        return self._change("PATCH", ONE, changes, if_match, scenario_id=scenario_id)

    def refresh_requirements(self, scenario_id: str, *, if_match: IfMatch = None) -> types.ScenarioOut:
        """Resolve the requirements again, which creates a new version."""
        path = ONE + "/refresh-requirements"
        return self._ask(path, repeatable=False, tag=if_match, scenario_id=scenario_id)

    def delete(self, scenario_id: str, *, if_match: IfMatch = None) -> types.ScenarioOut:
        """Delete a scenario. It can be restored for 30 days."""
        return self._delete(ONE, if_match, scenario_id=scenario_id)

    def restore(self, scenario_id: str) -> types.ScenarioOut:
        """Restore a deleted object."""
        return self._ask(ONE + "/restore", scenario_id=scenario_id)

    def versions(self, scenario_id: str) -> Pages[types.ScenarioOut]:
        """List all versions, newest first."""
        return self._list(ONE + "/versions", {}, scenario_id=scenario_id)

    def restore_version(
        self, scenario_id: str, version: int, *, idempotency_key: Key = None
    ) -> types.ScenarioOut:
        """Make an earlier version the newest."""
        path = ONE + "/versions/{number}/restore"
        return self._create(path, None, idempotency_key, scenario_id=scenario_id, number=version)

    def diff(self, scenario_id: str, version: int, *, to: Optional[int] = None) -> types.ScenarioDiffOut:
        """Return the changes from a version to another one (default: the newest)."""
        return self._get(ONE + "@v{number}/diff", {"to": to}, scenario_id=scenario_id, number=version)


class Runs(Resource):
    """`api.runs`."""

    def start(
        self, scenario_id: str, params: Optional[Mapping[str, str]] = None, *, idempotency_key: Key = None
    ) -> types.RunOut:
        """Start a run and return immediately. `params` become environment variables of the program."""
        body = {"params": dict(params or {}), "wait": False}
        return self._create(ONE + "/run", body, idempotency_key, scenario_id=scenario_id)

    def run(
        self,
        scenario_id: str,
        params: Optional[Mapping[str, str]] = None,
        *,
        timeout: Optional[float] = None,
        idempotency_key: Key = None,
    ) -> types.RunOut:
        """Run a scenario and wait until it finishes, however long it takes. Check `status` and `exit_code`."""
        begun = self.start(scenario_id, params, idempotency_key=idempotency_key)
        return self.wait(scenario_id, begun["id"], timeout=timeout)

    def rerun(
        self,
        scenario_id: str,
        run_id: str,
        *,
        version: str = "same",
        params: Optional[Mapping[str, str]] = None,
        idempotency_key: Key = None,
    ) -> types.RunOut:
        """Run the same version again, or the `newest`, with the same or other parameters. Returns
        immediately."""
        body = {"version": version, "params": None if params is None else dict(params)}
        return self._create(RUN + "/rerun", body, idempotency_key, scenario_id=scenario_id, run_id=run_id)

    def list(
        self,
        scenario_id: Optional[str] = None,
        *,
        q: Optional[str] = None,
        status: Optional[str] = None,
        trigger: Optional[str] = None,
        of_id: Optional[str] = None,
        sort: Optional[str] = None,
    ) -> Pages[types.RunOut]:
        """List the runs of a scenario or of the project, newest first; `of_id` lists the re-runs of a run."""
        query = {"q": q, "status": status, "trigger": trigger, "of_id": of_id, "sort": sort}
        if scenario_id is None:
            return self._list("/runs", query)
        return self._list(ONE + "/runs", query, scenario_id=scenario_id)

    def get(self, scenario_id: str, run_id: str) -> types.RunOut:
        """Return the current state of a run."""
        return self._get(RUN, scenario_id=scenario_id, run_id=run_id)

    def cancel(self, scenario_id: str, run_id: str, *, if_match: IfMatch = None) -> types.RunOut:
        """Cancel a run. Raises Conflict `run_finished` if it has finished."""
        return self._delete(RUN, if_match, scenario_id=scenario_id, run_id=run_id)

    def log(self, scenario_id: str, run_id: str) -> str:
        """Return the output of the program so far."""
        return self._text(RUN + "/logs", scenario_id=scenario_id, run_id=run_id)

    def follow_log(
        self, scenario_id: str, run_id: str, *, after: int = 0, timeout: Optional[float] = None
    ) -> Follower[LogLine]:
        """Follow the lines as they are printed, starting after line number `after`, until the run finishes."""
        return self._log(RUN + "/logs", after, timeout, scenario_id=scenario_id, run_id=run_id)

    def follow(
        self, scenario_id: str, run_id: str, *, timeout: Optional[float] = None
    ) -> Follower[dict[str, Any]]:
        """Follow status, lines, rows and resources whenever they change, until the run finishes."""
        return self._progress(RUN + "/events", timeout, scenario_id=scenario_id, run_id=run_id)

    def wait(self, scenario_id: str, run_id: str, *, timeout: Optional[float] = None) -> types.RunOut:
        """Wait until the run has finished and return it, whatever its status. Raises Timeout after `timeout`
        seconds."""
        self.follow(scenario_id, run_id, timeout=timeout).wait()
        return self.get(scenario_id, run_id)
