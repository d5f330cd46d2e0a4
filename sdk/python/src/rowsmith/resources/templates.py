"""Templates and their versions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from rowsmith.pages import Pages
from rowsmith.record import IfMatch
from rowsmith.resources.base import Key
from rowsmith.resources.generation import Generation
from rowsmith.template import AnyTemplate, as_dict
from rowsmith.wire.bodies import Content, Form

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rowsmith import types

ONE = "/templates/{template_id}"


class Templates(Generation):
    """`api.templates`."""

    def list(self, *, q: Optional[str] = None, sort: Optional[str] = None) -> Pages[types.TemplateOut]:
        """List the templates of the project; `q` searches names."""
        return self._list("/templates", {"q": q, "sort": sort})

    def get(self, template_id: str, version: Optional[int] = None) -> types.TemplateOut:
        """Return the current template, or a version of it."""
        if version is None:
            return self._get(ONE, template_id=template_id)
        return self._get(ONE + "@v{number}", template_id=template_id, number=version)

    def create(self, template: AnyTemplate, *, idempotency_key: Key = None) -> types.TemplateOut:
        """Save a template. Raises ValidationError with all errors."""
        return self._create("/templates", as_dict(template), idempotency_key)

    def update(
        self, template_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.TemplatePatch]
    ) -> types.TemplateOut:
        """Create a new version with these changes."""
        return self._change("PATCH", ONE, changes, if_match, template_id=template_id)

    def import_schema(
        self, *, idempotency_key: Key = None, **request: Unpack[types.ImportIn]
    ) -> types.ImportOut:
        """Create templates from a text, rows or a schema (`content`), or from a workspace file (`file`)."""
        return self._create("/import", request, idempotency_key)

    def start_import(
        self, *, idempotency_key: Key = None, **request: Unpack[types.ImportIn]
    ) -> types.ImportJobOut:
        """Let a worker read a large document. Follow the import with `get_import`."""
        return self._create("/import", {**request, "wait": False}, idempotency_key)

    def get_import(self, import_id: str) -> types.ImportJobOut:
        """Return an import that a worker does: its progress, and its `result` when it is completed."""
        return self._get("/imports/{import_id}", import_id=import_id)

    def cancel_import(self, import_id: str) -> types.ImportJobOut:
        """Cancel an import that has not finished. Templates that it has saved stay."""
        return self._delete("/imports/{import_id}", import_id=import_id)

    def import_file(
        self,
        content: Content,
        name: Optional[str] = None,
        *,
        format: str = "auto",
        save: bool = True,
        idempotency_key: Key = None,
    ) -> types.ImportOut:
        """Create templates from a file: bytes, a path (pathlib) or an open binary file."""
        own = Path(content).name if isinstance(content, os.PathLike) else getattr(content, "name", None)
        called = name or (Path(own).name if isinstance(own, str) else "file")
        fields = {"format": format, "save": "true" if save else "false"}
        form = Form(fields, content, file_name=called)
        made: Any = self._caller.json("POST", "/import", body=form, idempotency_key=idempotency_key or True)
        return made

    def compare_schema(
        self, template_id: str, *, if_match: IfMatch = None, **request: Unpack[types.AgainIn]
    ) -> types.AgainOut:
        """Compare a changed schema with a template. `accept` applies the changes of these columns."""
        again = not request.get("accept")
        return self._ask(ONE + "/import", request, again, if_match, template_id=template_id)

    def delete(self, template_id: str, *, if_match: IfMatch = None) -> types.TemplateOut:
        """Delete a template. It can be restored for 30 days."""
        return self._delete(ONE, if_match, template_id=template_id)

    def restore(self, template_id: str) -> types.TemplateOut:
        """Restore a deleted object."""
        return self._ask(ONE + "/restore", template_id=template_id)

    def versions(self, template_id: str) -> Pages[types.TemplateOut]:
        """List all versions, newest first, each as a complete template."""
        return self._list(ONE + "/versions", {}, template_id=template_id)

    def restore_version(
        self, template_id: str, version: int, *, idempotency_key: Key = None
    ) -> types.TemplateOut:
        """Make an earlier version the newest."""
        path = ONE + "/versions/{number}/restore"
        return self._create(path, None, idempotency_key, template_id=template_id, number=version)

    def diff(
        self, template_id: str, version: int, *, to: Optional[int] = None, seed: Optional[str] = None
    ) -> types.DiffOut:
        """Return the changes from a version to another one (default: the newest)."""
        path, query = ONE + "@v{number}/diff", {"to": to, "seed": seed}
        return self._get(path, query, template_id=template_id, number=version)

    def refresh_references(self, template_id: str) -> types.TemplateOut:
        """Create a version that refers to the newest versions of other templates."""
        return self._ask(ONE + "/refresh-references", repeatable=False, template_id=template_id)

    def export(
        self, template_id: str, *, idempotency_key: Key = None, **request: Unpack[types.TemplateExportInput]
    ) -> types.ExportOut:
        """Create a file in the background; see `api.exports` for waiting and downloading."""
        return self._create(ONE + "/exports", request, idempotency_key, template_id=template_id)

    def push(
        self, template_id: str, *, idempotency_key: Key = None, **request: Unpack[types.PushInput]
    ) -> types.PushOut:
        """Send rows to a connection or an endpoint; see `api.pushes` for waiting."""
        return self._create(ONE + "/push", request, idempotency_key, template_id=template_id)

    def dry_run(
        self, template_id: str, *, idempotency_key: Key = None, **request: Unpack[types.PushInput]
    ) -> types.DryRunOut:
        """Return what a push would send for the first three rows, and possible problems. Nothing is sent."""
        body: dict[str, Any] = {**request, "dry_run": True}
        return self._create(ONE + "/push", body, idempotency_key, template_id=template_id)

    def push_plan(self, template_id: str, **request: Unpack[types.PushInput]) -> types.PlanOut:
        """Return the mapping of fields to columns, and how it was found."""
        return self._ask(ONE + "/push/plan", request, template_id=template_id)
