"""Datasets: several templates that belong together."""

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
        """The datasets of the project; `q` searches names."""
        return self._list("/datasets", {"q": q, "sort": sort})

    def get(self, dataset_id: str, version: Optional[int] = None) -> types.DatasetOut:
        """A dataset as it is now, or as of a version."""
        if version is None:
            return self._get(ONE, dataset_id=dataset_id)  # type: ignore[no-any-return]
        return self._get(ONE + "@v{number}", dataset_id=dataset_id, number=version)  # type: ignore[no-any-return]

    def create(self, *, idempotency_key: Key = None, **dataset: Unpack[types.DatasetIn]) -> types.DatasetOut:
        """Save a dataset: `name`, and `templates` with a `template_id` and perhaps a `count` each."""
        return self._create("/datasets", dataset, idempotency_key)  # type: ignore[no-any-return]

    def update(
        self, dataset_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.DatasetPatch]
    ) -> types.DatasetOut:
        """Make the next version with these parts changed."""
        return self._change("PATCH", ONE, changes, if_match, dataset_id=dataset_id)  # type: ignore[no-any-return]

    def delete(self, dataset_id: str, *, if_match: IfMatch = None) -> types.DatasetOut:
        """Delete a dataset; it can be restored for 30 days."""
        return self._delete(ONE, if_match, dataset_id=dataset_id)  # type: ignore[no-any-return]

    def restore(self, dataset_id: str) -> types.DatasetOut:
        """Take the deletion back."""
        return self._ask(ONE + "/restore", dataset_id=dataset_id)  # type: ignore[no-any-return]

    def versions(self, dataset_id: str) -> Pages[types.DatasetOut]:
        """All versions, the newest first."""
        return self._list(ONE + "/versions", {}, dataset_id=dataset_id)

    def restore_version(
        self, dataset_id: str, version: int, *, idempotency_key: Key = None
    ) -> types.DatasetOut:
        """Make an earlier version the newest."""
        path = ONE + "/versions/{number}/restore"
        return self._create(path, None, idempotency_key, dataset_id=dataset_id, number=version)  # type: ignore[no-any-return]

    def diff(self, dataset_id: str, version: int, *, to: Optional[int] = None) -> types.DatasetDiffOut:
        """What changed from a version to another (the newest)."""
        return self._get(ONE + "@v{number}/diff", {"to": to}, dataset_id=dataset_id, number=version)  # type: ignore[no-any-return]

    def refresh_references(self, dataset_id: str) -> types.DatasetOut:
        """Make a version with the newest versions of its templates."""
        return self._ask(ONE + "/refresh-references", repeatable=False, dataset_id=dataset_id)  # type: ignore[no-any-return]

    def preview(
        self, dataset_id: str, **request: Unpack[types.DatasetPreviewInput]
    ) -> types.DatasetPreviewOut:
        """The first rows of every table, as they fit together; none are spent."""
        return self._ask(ONE + "/preview", request, dataset_id=dataset_id)  # type: ignore[no-any-return]

    def export(
        self, dataset_id: str, *, idempotency_key: Key = None, **request: Unpack[types.DatasetExportInput]
    ) -> types.ExportOut:
        """Have a file of all tables made by a worker; see `api.exports`."""
        return self._create(ONE + "/exports", request, idempotency_key, dataset_id=dataset_id)  # type: ignore[no-any-return]

    def push(
        self, dataset_id: str, *, idempotency_key: Key = None, **request: Unpack[types.DatasetPushInput]
    ) -> types.PushOut:
        """Send all tables to a connection, parents first; see `api.pushes`."""
        return self._create(ONE + "/push", request, idempotency_key, dataset_id=dataset_id)  # type: ignore[no-any-return]

    def dry_run(
        self, dataset_id: str, *, idempotency_key: Key = None, **request: Unpack[types.DatasetPushInput]
    ) -> types.DryRunOut:
        """What a push would send for the first three rows of each table; nothing is sent."""
        body: dict[str, Any] = {**request, "dry_run": True}
        return self._create(ONE + "/push", body, idempotency_key, dataset_id=dataset_id)  # type: ignore[no-any-return]

    def push_plan(self, dataset_id: str, **request: Unpack[types.DatasetPushInput]) -> types.PlanOut:
        """Which field goes into which column of each table."""
        return self._ask(ONE + "/push/plan", request, dataset_id=dataset_id)  # type: ignore[no-any-return]
