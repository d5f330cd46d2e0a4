"""`files`: the files of the workspace."""

from __future__ import annotations

import mimetypes
import os
import sys
from pathlib import Path
from typing import Any

from rowsmith.cli import console
from rowsmith.cli.downloads import fetched
from rowsmith.cli.parser import Branch, mark_as_file
from rowsmith.cli.problems import OK, usage
from rowsmith.cli.work import Work

STANDARD = "-"


def add(root: Branch) -> None:
    """Add the command to the parser."""
    under = root.branch("files", "List, download, upload and delete files of the workspace.")
    made = under.leaf("list", listed, "List the files.")
    made.add_argument("folder", metavar="FOLDER", nargs="?", help="Only files in this folder, at any depth.")
    made.add_argument("-s", "--search", metavar="TEXT", help="Only names that contain this text.")
    made = under.leaf("get", get, "Download a file.")
    made.add_argument("name", metavar="NAME", help="Its name in the workspace, or its ID.")
    mark_as_file(
        made.add_argument(
            "-o", "--output", metavar="FILE",
            help="Local file to write; - is standard output. Default: its own name."
        )
    )
    made = under.leaf("put", put, "Upload files. Files with the same names are replaced.")
    mark_as_file(
        made.add_argument("file", metavar="FILE", nargs="+",
            help="A local file; - is standard input and requires --as.")
    )
    made.add_argument("--as", dest="called", metavar="NAME",
        help="Its name in the workspace, for a single file.")
    made.add_argument("--to", metavar="FOLDER", help="Workspace folder for the files.")
    made.add_argument(
        "--only-new", action="store_true", help="Fail if a file with that name exists."
    )
    made = under.leaf("rm", remove, "Delete files. They can be restored for 30 days.")
    made.add_argument("name", metavar="NAME", nargs="+", help="A file's name in the workspace, or its ID.")


def listed(work: Work) -> int:
    """The files."""
    found = work.api.files.list(q=work.args.search, folder=work.args.folder)
    work.console.rows(found, ["name", "size", "content_type", "updated_at", "id"])
    return OK


def get(work: Work) -> int:
    """Fetch one."""
    name, output = work.args.name, work.args.output
    if output == STANDARD:
        for piece in work.api.files.stream(name):
            console.raw(piece)
        return OK
    path = Path(output or name.rpartition("/")[2])
    caller = work.api._caller
    with work.console.bar(name, unit="B") as bar:
        fetched(
            lambda headers: caller.open(
                "GET", "/workspace/files/{name:path}", parts={"name": name}, headers=headers
            ),
            path,
            caller.retries,
            bar,
        )
    work.console.result({"file": str(path), "size": path.stat().st_size}, str(path))
    return OK


def put(work: Work) -> int:
    """Upload them."""
    args = work.args
    if args.called and len(args.file) > 1:
        raise usage("--as can only be used with a single file.")
    if STANDARD in args.file and not args.called:
        raise usage("Standard input has no name. Specify one with --as.")
    for item in args.file:
        if item != STANDARD and not Path(item).is_file():
            raise FileNotFoundError(2, os.strerror(2), item)
    made = []
    for item in args.file:
        content: Any = sys.stdin.buffer if item == STANDARD else Path(item)
        name = args.called or Path(item).name
        name = f"{args.to.strip('/')}/{name}" if args.to else name
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        made.append(work.api.files.upload(content, name, content_type=kind, only_new=args.only_new))
    work.console.rows(made, ["name", "size", "content_type", "id"])
    return OK


def remove(work: Work) -> int:
    """Delete them."""
    gone = [work.api.files.delete(item) for item in work.args.name]
    work.console.rows(gone, ["name", "size", "id"])
    return OK
