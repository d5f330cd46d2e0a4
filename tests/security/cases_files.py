"""Who may do what with workspace files: those of the project Main, and one that is shared with the workspace."""

from __future__ import annotations

import io
from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.access import actors
from webapp.extensions import db
from webapp.files import services as files


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    for name in ("inputs/matrix-kept.csv", "matrix-trashed.csv"):
        files.upload(acme, name, io.BytesIO(b"a,b\n1,2\n"))
    stored = files.find(acme, "inputs/matrix-kept.csv").id
    trashed = files.find(acme, "matrix-trashed.csv", "write", lock=True)
    files.delete(acme, trashed)
    shared, _ = files.upload(acme, "matrix-shared.csv", io.BytesIO(b"a"), shared=True)
    found = {"file": stored, "trashed_file": trashed.id, "shared_file": shared.id}
    db.session.remove()
    return found


NAMED, ONE = "/workspace/files/<path:name>", "/workspace/files/{file}"
SHARED = "/workspace/files/{shared_file}"
CASES = [
    Case("GET", "/workspace/files", "viewer", scope="read"),
    # No case uploads a file: users with permission get an error about the missing file.
    Case("POST", "/workspace/files", "editor", ok=415, scope="write"),
    # The test application has the prepared database but not its storage: users with permission get an error.
    Case("GET", NAMED, "viewer", url=ONE, ok=404, scope="read"),
    Case("DELETE", NAMED, "editor", url=ONE, scope="write"),
    Case("DELETE", NAMED, "editor", url=SHARED, scope="write"),
    Case(
        "POST", "/workspace/files/<workspace_file_id>/restore", "editor",
        url="/workspace/files/{trashed_file}/restore", scope="write",
    ),
    # A page that programs do not have
    Case("GET", "/workspace/file/<workspace_file_id>", "viewer", url="/workspace/file/{file}", person=True),
]  # fmt: skip
