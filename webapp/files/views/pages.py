"""Workspace files as people see them: folders, one file with the head of its content, and calls to copy."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from flask import Blueprint, Response, make_response, request

from webapp import limits
from webapp.accounts.actors import Actor
from webapp.errors import ApiError
from webapp.files import names
from webapp.files.models import WorkspaceFile
from webapp.files.services import file_store, files, preview
from webapp.web import snippets
from webapp.web.responses import problem, reply
from webapp.web.routing import route

bp = Blueprint("workspace_files_pages", __name__)

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
    used = files.usage(actor.workspace_id)
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
        error=error,
    )


def again(actor: Actor, error: ApiError) -> Response:
    """The page of the folder with what was wrong with an upload; for a script only what was wrong."""
    if "HX-Request" in request.headers:
        return problem(error)
    from webapp.files.views.files import FileQuery, as_dict  # which declares the routes around this page

    sent = request.__dict__.get("form") or {}  # a body that could not be read is not read again
    asked = str(sent.get("folder", ""))[: limits.MAX_FILE_NAME_CHARS].replace("\0", "")
    return make_response(_folder(actor, FileQuery(folder=asked or None), as_dict, error))


@route(bp, "/workspace/file/<workspace_file_id>", scope="read", hidden=True, programs=False)
def show(actor: Actor, workspace_file_id: str) -> Response:
    """One file: what is known of it, and the head of its content."""
    from webapp.files.views.files import as_dict

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
        head=preview.head(file),
        snippets=_calls_of(data),
    )


def removed(count: int) -> str:
    """How many deleted files were removed, for people."""
    return "1 deleted file was" if count == 1 else f"{count:,} deleted files were"


def _calls(here: str) -> list[tuple[str, str]]:
    """How a program sends a file into a folder: (language, text)."""
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
    """How a program gets a file: (language, text)."""
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
