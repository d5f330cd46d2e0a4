"""`./rowsmith audit verify|export|anchor`: verify the integrity of the audit log, and export it."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from typing import Any, Final

import orjson
from sqlalchemy import or_, select

from webapp import clock, limits
from webapp.access.models import Workspace
from webapp.audit.services import seals, search
from webapp.audit.services.seals import FIELDS, VerificationReport, verify
from webapp.audit.services.search import EntryFilter
from webapp.cli import operator
from webapp.cli.datadir import CliError
from webapp.errors import ApiError
from webapp.extensions import db

_TEXT_FILTERS: Final = ("kind", "object_id", "user_id", "key_id", "project_id", "address", "text")


def run(arguments: argparse.Namespace) -> int:
    """Run the action. Returns 1 if `verify` finds an inconsistency."""
    with operator.application_context(arguments.data_dir, running=False):
        if arguments.action == "verify":
            return _verify(arguments)
        if arguments.workspace is None:
            raise CliError(f"Specify the workspace: ./rowsmith audit {arguments.action} WORKSPACE.")
        workspace = operator.find_workspace(arguments.workspace)
        workspace_id = workspace.id
        if arguments.action == "anchor":
            db.session.rollback()  # the read transaction holds SQLite's lock, which writing the entry needs
            seals.accept_chain(workspace_id, clock.now())
            print(f"{workspace_id}: the current head of the chain was saved.")
            return 0
        # Export: one entry per line, as in `GET /audit?format=jsonl`, oldest first.
        filters = {
            "action": arguments.of_action,
            **{name: getattr(arguments, name) for name in _TEXT_FILTERS},
        }
        try:
            times: dict[str, Any] = {
                name: search.parse_time(text)
                for name in ("since", "until")
                if (text := getattr(arguments, name)) is not None
            }
        except ApiError as error:
            raise CliError(error.message) from error
        db.session.rollback()
        for rows in search.iter_entries(workspace_id, EntryFilter(**filters, **times)):
            for row in rows:
                entry = {name: getattr(row, name) for name in FIELDS if name != "workspace_id"}
                entry["at"] = clock.to_text(row.at)
                sys.stdout.buffer.write(orjson.dumps(entry) + b"\n")
        sys.stdout.buffer.flush()
        return 0


def _verify(arguments: argparse.Namespace) -> int:
    if arguments.workspace is None:
        # The entries of workspaces that are being permanently deleted are incomplete.
        since = clock.now() - timedelta(days=limits.RESTORE_DAYS)
        is_listed = or_(Workspace.deleted_at.is_(None), Workspace.deleted_at >= since)
        ids = list(db.session.scalars(select(Workspace.id).where(is_listed).order_by(Workspace.id)))
    else:
        ids = [operator.find_workspace(arguments.workspace).id]
    db.session.rollback()
    head: dict[str, Any] | None = None
    if arguments.head:
        number, _, hash = arguments.head.partition(":")
        if not number.isdigit() or not hash:
            raise CliError(
                f"{arguments.head!r} is not a valid head. Use number and hash as printed by audit "
                "verify, such as 12:5f0c..."
            )
        if len(ids) != 1:
            raise CliError("A head belongs to one workspace: specify the workspace.")
        head = {"number": int(number), "hash": hash}
    reports = [verify(item, head) for item in ids]
    for report in reports:
        for line in report_lines(report):
            print(line)
    return 1 if any(report.mismatches for report in reports) else 0


def report_lines(report: VerificationReport) -> list[str]:
    """Return a report as lines, the first misfit first."""
    counts = (
        f"{_count_text(report.entries, 'entry', 'entries')} in {_count_text(report.seals, 'seal', 'seals')}"
    )
    if report.removed:
        counts += f", {report.removed:,} removed by retention"
    if report.unsealed:
        counts += f", {report.unsealed:,} not sealed yet"
    if report.mismatches:
        lines = [f"{report.workspace_id}: VERIFICATION FAILED ({counts})"]
        for item in report.mismatches:
            location = item.entry_id or f"seal {item.seal}"
            lines.append(f"  {location}: {item.message}")
        return lines
    return (
        [f"{report.workspace_id}: verified ({counts})", f"  head {report.head}"]
        if report.head
        else [f"{report.workspace_id}: verified ({counts})"]
    )


def _count_text(count: int, singular: str, plural: str) -> str:
    return f"{count:,} {singular if count == 1 else plural}"
