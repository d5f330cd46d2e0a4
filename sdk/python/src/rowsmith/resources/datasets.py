"""Datasets: several related templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from rowsmith.pages import Pages
from rowsmith.record import IfMatch
from rowsmith.resources.base import Key, Resource

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rowsmith import types

ONE = "/datasets/{dataset_id}"


class Datasets(Resource):
    """`api.datasets`."""

    def list(self, *, q: Optional[str] = None, sort: Optional[str] = None) -> Pages[types.DatasetOut]:
        """List the datasets of the project; `q` searches names."""
        return self._list("/datasets", {"q": q, "sort": sort})

    def get(self, dataset_id: str, version: Optional[int] = None) -> types.DatasetOut:
        """Return the current dataset, or a version of it."""
        if version is None:
            return self._get(ONE, dataset_id=dataset_id)
        return self._get(ONE + "@v{number}", dataset_id=dataset_id, number=version)

    def create(self, *, idempotency_key: Key = None, **dataset: Unpack[types.DatasetIn]) -> types.DatasetOut:
        """Save a dataset: `name`, and `templates` with a `template_id` and an optional `count` each."""
        return self._create("/datasets", dataset, idempotency_key)

    def update(
        self, dataset_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.DatasetPatch]
    ) -> types.DatasetOut:
        """Create a new version with these changes."""
        return self._change("PATCH", ONE, changes, if_match, dataset_id=dataset_id)

    def delete(self, dataset_id: str, *, if_match: IfMatch = None) -> types.DatasetOut:
        """Delete a dataset. It can be restored for 30 days."""
        return self._delete(ONE, if_match, dataset_id=dataset_id)

    def restore(self, dataset_id: str) -> types.DatasetOut:
        """Restore a deleted object."""
        return self._ask(ONE + "/restore", dataset_id=dataset_id)

    def versions(self, dataset_id: str) -> Pages[types.DatasetOut]:
        """List all versions, newest first."""
        return self._list(ONE + "/versions", {}, dataset_id=dataset_id)

    def restore_version(
        self, dataset_id: str, version: int, *, idempotency_key: Key = None
    ) -> types.DatasetOut:
        """Make an earlier version the newest."""
        path = ONE + "/versions/{number}/restore"
        return self._create(path, None, idempotency_key, dataset_id=dataset_id, number=version)

    def diff(self, dataset_id: str, version: int, *, to: Optional[int] = None) -> types.DatasetDiffOut:
        """Return the changes from a version to another one (default: the newest)."""
        return self._get(ONE + "@v{number}/diff", {"to": to}, dataset_id=dataset_id, number=version)

    def refresh_references(self, dataset_id: str) -> types.DatasetOut:
        """Create a version with the newest versions of its templates."""
        return self._ask(ONE + "/refresh-references", repeatable=False, dataset_id=dataset_id)

    def preview(
        self, dataset_id: str, **request: Unpack[types.DatasetPreviewInput]
    ) -> types.DatasetPreviewOut:
        """Return the first rows of every table, with matching references. They do not count toward the quota."""
        return self._ask(ONE + "/preview", request, dataset_id=dataset_id)

    def export(
        self, dataset_id: str, *, idempotency_key: Key = None, **request: Unpack[types.DatasetExportInput]
    ) -> types.ExportOut:
        """Create a file with all tables in the background; see `api.exports`."""
        return self._create(ONE + "/exports", request, idempotency_key, dataset_id=dataset_id)

    def push(
        self, dataset_id: str, *, idempotency_key: Key = None, **request: Unpack[types.DatasetPushInput]
    ) -> types.PushOut:
        """Send all tables to a connection, parents first; see `api.pushes`."""
        return self._create(ONE + "/push", request, idempotency_key, dataset_id=dataset_id)

    def dry_run(
        self, dataset_id: str, *, idempotency_key: Key = None, **request: Unpack[types.DatasetPushInput]
    ) -> types.DryRunOut:
        """Return what a push would send for the first three rows of each table. Nothing is sent."""
        body: dict[str, Any] = {**request, "dry_run": True}
        return self._create(ONE + "/push", body, idempotency_key, dataset_id=dataset_id)

    def push_plan(self, dataset_id: str, **request: Unpack[types.DatasetPushInput]) -> types.PlanOut:
        """Return the mapping of fields to columns for each table."""
        return self._ask(ONE + "/push/plan", request, dataset_id=dataset_id)
