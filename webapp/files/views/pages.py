"""Workspace files as people see them: folders, one file with the head of its content, and calls to copy."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from flask import Blueprint, Response, current_app, make_response, request
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.errors import ApiError
from webapp.files import names
from webapp.files.models import WorkspaceFile
from webapp.files.services import file_store, files
from webapp.files.views import multipart
from webapp.web import snippets
from webapp.web.forms.page_form import Control, FormSpec, PageForm
from webapp.web.inputs import Input, ListQuery
from webapp.web.responses import problem, reply
from webapp.web.routing import route

bp = Blueprint("workspace_files_pages", __name__)


class UploadForm(Input):
    """The upload form of a folder's page. `multipart.read` parses it."""

    folder: str = Field("", max_length=limits.MAX_FILE_NAME_CHARS)
    file: str
    shared: bool = False


UPLOAD: Final = FormSpec(
    UploadForm,
    {
        "folder": Control(
            "Folder (optional)",
            type="text",
            placeholder="none",
            attributes={"spellcheck": "false", "autocomplete": "off"},
        ),
        "file": Control(
            "Files to upload",
            type="file",
            hint="Choose files, or drop them anywhere on this page. At most "
            f"{limits.MAX_UPLOAD_BYTES // 2**20} MB each; Files with the same name are replaced.",
            attributes={"multiple": True},
        ),
        "shared": Control("Share with the whole workspace", attributes={"value": "true"}),
    },
    codes={"payload_too_large": "file", "quota_exceeded": "file", "conflict": "file"},
)
AsDict = Callable[[WorkspaceFile], Mapping[str, Any]]
LIST: Final = "files/list.html"


def folder(actor: Actor, query: Any, as_dict: AsDict) -> Response:
    """The page of a folder, or of what a search finds in it: folders, files, what they take, and how to send more."""
    return _folder(actor, query, as_dict)


def _folder(actor: Actor, query: Any, as_dict: AsDict, error: ApiError | None = None) -> Response:
    here = files.prefix_of(query.folder).rstrip("/")
    searching = bool((query.q or "").strip())
    page = files.listing(
        actor,
        cursor=query.cursor,
        limit=query.limit,
        q=query.q,
        folder=here,
        sort=query.sort or "name",
        flat=searching,
    )
    inner = [] if searching or query.cursor else files.folders(actor, here)
    used = file_store.usage(actor.workspace_id)
    return reply(
        page.as_dict(as_dict),
        template=LIST,
        block="list",
        query=query,
        here=here,
        crumbs=[(one, names.last_part(one)) for one in names.folders_of(f"{here}/x")] if here else [],
        folders=inner,
        used=used,
        may_share=file_store.may_change_shared(actor),
        most=limits.MAX_WORKSPACE_FILES_BYTES,
        most_of_one=limits.MAX_UPLOAD_BYTES,
        snippets=_calls(here),
        form=_upload_form(actor, here, error),
    )


def _upload_form(actor: Actor, here: str, error: ApiError | None) -> PageForm:
    sent = multipart.form_of(request) if request.method == "POST" else None
    without = [] if file_store.may_change_shared(actor) else ["shared"]
    return UPLOAD.draw({"folder": here}, sent=sent, error=error, without=without, focus="")


def again(actor: Actor, error: ApiError) -> Response:
    """The page of the folder with what was wrong with an upload; for a script only what was wrong."""
    if "HX-Request" in request.headers:
        return problem(error)
    asked = multipart.form_of(request).get("folder", "")[: limits.MAX_FILE_NAME_CHARS].replace("\0", "")
    return make_response(_folder(actor, FileQuery(folder=asked or None), as_dict, error))


@route(bp, "/workspace/file/<workspace_file_id>", scope="read", hidden=True, programs=False)
def show(actor: Actor, workspace_file_id: str) -> Response:
    """One file: what is known of it, and the head of its content."""
    if not names.is_id(workspace_file_id):
        raise files.missing(workspace_file_id)
    file = files.find(actor, workspace_file_id)
    data = as_dict(file)
    here = file.name.rpartition("/")[0]
    return reply(
        data,
        template="files/show.html",
        last=names.last_part(file.name),
        crumbs=[(one, names.last_part(one)) for one in names.folders_of(file.name)],
        here=here,
        may_change=actor.can("write", file.team_id)
        and (bool(file.project_id) or file_store.may_change_shared(actor)),
        head=files.head(file),
        snippets=_calls_of(data),
    )


def removed(count: int) -> str:
    """Return the number of permanently removed files as text."""
    return "1 deleted file was" if count == 1 else f"{count:,} deleted files were"


def _calls(here: str) -> list[tuple[str, str]]:
    """Return code samples for uploading a file to a folder: (language, text)."""
    url = f"{snippets.origin()}/workspace/files"
    name = f"{here}/customers.csv" if here else "customers.csv"
    curl = snippets.curl("POST", url, {}).partition(" \\\n  -H 'Content-Type")[0]
    python = snippets.python("POST", url, then="print(answer.json()['id'])")
    sent = f'"{url}", data={{"name": {name!r}}}, files={{"file": open("customers.csv", "rb")}}'
    return [
        ("curl", f"{curl} \\\n  -F {shlex.quote('name=' + name)} -F file=@customers.csv"),
        ("Python", python.replace(f'"{url}"', sent)),
    ]


def _calls_of(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return code samples for downloading a file: (language, text)."""
    url = f"{snippets.origin()}/workspace/files/{quote(data['name'], safe='/')}"
    last = names.last_part(data["name"])
    save = f'open({last!r}, "wb").write(answer.content)'
    more = f"-o {shlex.quote(last)}"
    in_run = (
        "import os, pathlib\n\n"
        f'path = pathlib.Path(os.environ["SERVICE_WORKSPACE_UPLOADS"], {data["name"]!r})\n'
        "data = path.read_bytes()"
    )
    found = [
        ("curl", snippets.curl("GET", url, more=more)),
        ("Python", snippets.python("GET", url, then=save)),
    ]
    return found if data["name"].startswith(f"{names.OUTPUTS}/") else [*found, ("In a scenario", in_run)]


class FileQuery(ListQuery):
    """Which files. `folder`: those under it, at any depth; `q`: those whose names hold a text; `run_id`: those of a
    run, which are all files outside of `outputs/` (its uploads) and its own outputs.

    `sort`: `name`, `size` or `updated`, backwards with `-`; newest first without.
    """

    folder: Annotated[str, Field(max_length=limits.MAX_FILE_NAME_CHARS)] | None = None
    sort: Literal["name", "-name", "size", "-size", "updated", "-updated"] | None = None
    run_id: str | None = None


def as_dict(file: WorkspaceFile) -> dict[str, Any]:
    """A file as JSON, its download address whole."""
    data = files.as_json(file)
    origin = current_app.config["SETTINGS"].public_url or request.host_url.rstrip("/")
    data["download_url"] = origin + data["download_url"]
    return data
