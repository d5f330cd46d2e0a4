"""Workspace files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from rowsmith.pages import Pages
from rowsmith.record import IfMatch, if_match
from rowsmith.resources.base import Key, Resource
from rowsmith.streams import ByteStream, PathLike, saved
from rowsmith.wire.bodies import Content, Form

if TYPE_CHECKING:
    from rowsmith import types

ONE = "/workspace/files/{name:path}"


class Files(Resource):
    """`api.files`. A file is addressed by its name, which may include folders, or by its ID."""

    def list(
        self,
        *,
        q: Optional[str] = None,
        folder: Optional[str] = None,
        sort: Optional[str] = None,
        run_id: Optional[str] = None,
    ) -> Pages[types.FileOut]:
        """List the files of the project, and those shared with the workspace.

        `folder`: the files below it, at any depth. `run_id`: the files of a run, its uploads and its own
        outputs.
        """
        query = {"q": q, "folder": folder, "sort": sort, "run_id": run_id}
        return self._list("/workspace/files", query)

    def upload(
        self,
        content: Content,
        name: Optional[str] = None,
        *,
        content_type: str = "application/octet-stream",
        if_match: IfMatch = None,
        only_new: bool = False,
        shared: bool = False,
        idempotency_key: Key = None,
    ) -> types.UploadedOut:
        """Upload a file to the project, replacing a file with the same name. The content is read in pieces.

        `content`: bytes, a path (pathlib) or an open binary file. `name` defaults to the file's own name.
        `only_new`: raises VersionConflict if the name exists. `shared`: for the whole workspace.
        """
        own = Path(content).name if isinstance(content, os.PathLike) else getattr(content, "name", None)
        called = name or (Path(own).name if isinstance(own, str) else None)
        if not called:
            raise ValueError("`name` is required, because this content has no file name.")
        fields = {"name": called, **({"shared": "true"} if shared else {})}
        form = Form(fields, content, file_name=called.rpartition("/")[2], content_type=content_type)
        headers = {**_tag(if_match), **({"If-None-Match": "*"} if only_new else {})}
        made: Any = self._caller.json(
            "POST", "/workspace/files", body=form, headers=headers, idempotency_key=idempotency_key or True
        )
        return made

    def read(self, name: str) -> bytes:
        """Return the file's bytes."""
        return self.stream(name).read()

    def stream(self, name: str) -> ByteStream:
        """Stream the file."""
        return ByteStream(self._caller.open("GET", ONE, parts={"name": name}))

    def download(self, name: str, path: PathLike) -> Path:
        """Write the file to `path` atomically. After a broken connection the download is resumed."""
        return saved(
            lambda headers: self._caller.open("GET", ONE, parts={"name": name}, headers=headers),
            path,
            self._caller.retries,
        )

    def delete(self, name: str, *, if_match: IfMatch = None) -> types.FileOut:
        """Delete a file. It can be restored for 30 days."""
        return self._delete(ONE, if_match, name=name)

    def restore(self, file_id: str) -> types.FileOut:
        """Restore a deleted object."""
        return self._ask("/workspace/files/{file_id}/restore", file_id=file_id)


def _tag(given: IfMatch) -> dict[str, str]:
    return if_match(given)
