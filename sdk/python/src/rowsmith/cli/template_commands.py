"""`templates`: list, show, compare, and store as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowsmith.cli import changes, planning, row_options, template_files
from rowsmith.cli.parser import Branch, mark_as_file, positive
from rowsmith.cli.problems import CHANGES, OK
from rowsmith.cli.template_files import KnownVersions
from rowsmith.cli.work import Work

FOLDER = "templates"


def add(root: Branch) -> None:
    """Add the command to the parser."""
    under = root.branch("templates", "List, show and compare templates; store them as files.")
    made = under.leaf("list", listed, "List the templates of the project.")
    made.add_argument("-s", "--search", metavar="TEXT", help="Only names that contain this text.")
    made = under.leaf(
        "get", get, "Print a template as JSON, in the format of `pull`; with --json, all its keys."
    )
    made.add_argument("template", metavar="TEMPLATE", help="ID or name.")
    made.add_argument("--version", type=positive, metavar="N", help="Show this version.")
    made = under.leaf(
        "import",
        import_,
        "Create templates from a file with rows or a schema.",
        "CSV, JSON, NDJSON, XLSX, SQL, JSON Schema, OpenAPI, Avro, .proto. Several tables become related "
        "templates.",
    )
    mark_as_file(made.add_argument("file", metavar="FILE", help="The file to read."))
    made.add_argument("--format", default="auto", metavar="NAME",
        help="File format. Default: detected automatically.")
    made.add_argument("--look", action="store_true", help="Show what would be created. Nothing is created.")
    made = under.leaf("diff", diff, "Show the changes from one version to another.")
    made.add_argument("template", metavar="TEMPLATE", help="ID or name.")
    made.add_argument(
        "--from", dest="start", type=positive, metavar="N", help="Default: the version before --to."
    )
    made.add_argument("--to", type=positive, metavar="N", help="Default: the newest version.")
    made.add_argument("--exit-code", action="store_true", help="Exit with status 2 if there are changes.")
    made = under.leaf(
        "pull",
        pull,
        "Write templates as files: one file each, with the IDs that seed their columns.",
        "A file that already has a template's ID is updated.",
    )
    made.add_argument(
        "template", metavar="TEMPLATE", nargs="*", help="IDs or names. Default: all templates of the project."
    )
    mark_as_file(made.add_argument("-d", "--dir", metavar="FOLDER", default=FOLDER, help=f"Where to: ./{FOLDER}."))
    made = under.leaf(
        "plan", plan, "Show what files would change. Exit status 0: no changes, 2: changes."
    )
    _files(made)
    made = under.leaf(
        "apply",
        apply,
        "Update the templates from the files: all of them or none.",
        "Changes by others since the pull are not overwritten. Templates without a file stay unchanged.",
    )
    _files(made)
    made.add_argument("--create", action="store_true", help="Create templates that do not exist yet.")
    made.add_argument("--dry-run", action="store_true",
        help="Validate and show the changes only.")
    made.add_argument("--force", action="store_true", help="Overwrite changes by others since the pull.")
    made.add_argument(
        "--no-write",
        action="store_true",
        help="Do not write the assigned IDs to the files.",
    )


def _files(made: Any) -> None:
    message = f"Files, or folders of files. Default: ./{FOLDER}."
    mark_as_file(made.add_argument("file", metavar="FILE", nargs="*", default=[FOLDER], help=message))


def listed(work: Work) -> int:
    """The templates."""
    found = work.api.templates.list(q=work.args.search)
    work.console.rows(found, ["id", "name", "version", "quantity", "updated_at"])
    return OK


def get(work: Work) -> int:
    """A template."""
    args = work.args
    found = work.api.templates.get(row_options.template_id(work, args.template), args.version)
    work.console.result(found, template_files.text_of(found).rstrip("\n"))
    return OK


def import_(work: Work) -> int:
    """Create or change templates from files."""
    args = work.args
    result = work.api.templates.import_file(Path(args.file), format=args.format, save=not args.look)
    if work.console.as_json:
        work.console.result(result)
        return OK
    work.console.rows(result["report"], ["state", "table", "column", "type", "reason"])
    names = ", ".join(
        f"{item['name']} ({item['id']})" if item["id"] else item["name"] for item in result["templates"]
    )
    work.console.note(f"{'Would create' if args.look else 'Created'}: {names}")
    return OK


def diff(work: Work) -> int:
    """Versions compared."""
    args = work.args
    one = row_options.template_id(work, args.template)
    to = args.to or work.api.templates.get(one)["version"]
    found = work.api.templates.diff(one, args.start or max(1, to - 1), to=to)
    told = changes.lines(found)
    work.console.result(found, "\n".join(told) or f"Versions {found['from']} and {found['to']} are the same.")
    return CHANGES if told and args.exit_code else OK


def pull(work: Work) -> int:
    """Write templates to files."""
    args, folder = work.args, Path(work.args.dir)
    wanted: list[Mapping[str, Any]] = [work.template(item) for item in args.template]
    if not args.template:
        wanted = list(work.api.templates.list())
    folder.mkdir(parents=True, exist_ok=True)
    there = [file for file in map(template_files.read_or_none, sorted(folder.glob("*.json"))) if file is not None]
    told, seen = [], KnownVersions(folder)
    for item in wanted:
        path = template_files.path_for(item, folder, there)
        changed = template_files.write(path, item)
        there.append(template_files.File(path, item["id"], {}))
        seen.note(item)
        told.append(
            {"file": str(path), "template_id": item["id"], "version": item["version"], "changed": changed}
        )
    seen.save()
    work.console.rows(told, ["file", "template_id", "version", "changed"])
    return OK


def _steps(work: Work) -> list[planning.Step]:
    files = template_files.read_all([Path(item) for item in work.args.file])
    return planning.plan(work.api, files)


def _show(work: Work, steps: list[planning.Step], done: bool = False) -> None:
    count = {name: sum(step.action == name for step in steps) for name in ("create", "update", "none")}
    if work.console.as_json:
        work.console.result({"steps": [step.told() for step in steps], **count})
        return
    for step in steps:
        if step.action != "none":
            work.console.out("\n".join(step.lines()))
    words = ("created", "updated", "unchanged") if done else ("to create", "to update", "unchanged")
    told = [f"{number} {word}" for number, word in zip(count.values(), words)]
    work.console.out(", ".join(told) + ".")


def plan(work: Work) -> int:
    """Show what files would change."""
    steps = _steps(work)
    _show(work, steps)
    return CHANGES if any(step.action != "none" for step in steps) else OK


def apply(work: Work) -> int:
    """Apply the changes."""
    args, steps = work.args, _steps(work)
    planning.check(work.api, steps, create=args.create, force=args.force)
    if args.dry_run:
        _show(work, steps)
        return OK
    done = planning.apply(work.api, steps)
    if not args.no_write:
        planning.write_files(done)
    same = [(step, step.was) for step in steps if step.action == "none" and step.was is not None]
    planning.record_versions([*done, *same])
    _show(work, steps, done=True)
    return OK
