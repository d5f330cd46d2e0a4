"""The matrix's checks of the audit log: every write that succeeds adds exactly one entry in its workspace."""

from __future__ import annotations

import sqlite3

from webapp.web.routing import declaration_of

_ACTIONS = "SELECT action FROM audit_entries WHERE workspace_id = ? AND action <> 'session.start' ORDER BY id"
# Routes that take no writers' lock, and yet are a use of data that leaves its entry.
OF_DATA = {
    ("POST", "/compat/datamaker"),
    ("POST", "/generate"),
    ("POST", "/templates/<template_id>/generate"),
    ("POST", "/builder/download"),
}
# Calls of the matrix that succeed and change nothing.
NONE = {
    ("POST", "/builder/change"): "a draft, which only its user sees",
    ("POST", "/builder/source/upload"): "a form without a file, drawn again",
    ("POST", "/classify"): "columns are looked at, nothing is kept",
    ("POST", "/connections/<connection_id>/tables"): "a form without a table, drawn again",
    ("POST", "/datasets/<dataset_id>/push/form"): "a form, drawn again",
    ("POST", "/datasets/<dataset_id>/refresh-references"): "there is nothing newer",
    ("POST", "/datasets/new"): "a form, drawn again",
    ("POST", "/endpoints/example"): "an example, which is sent nowhere",
    ("POST", "/export/db"): "a dry run",
    ("POST", "/export/rest"): "a dry run",
    ("POST", "/me/two-factor"): "a secret that is only valid after a code was entered",
    ("POST", "/projects/<project_id>/restore"): "it is not deleted",
    ("POST", "/scenarios/<scenario_id>/edit"): "saved as it was",
    ("POST", "/scenarios/<scenario_id>/refresh-requirements"): "there is nothing newer",
    ("POST", "/session/project"): "the current project is a user's own setting",
    ("POST", "/templates/<template_id>/import"): "a report, nothing is saved",
    ("POST", "/templates/<template_id>/push/form"): "a form, drawn again",
    ("POST", "/templates/masked"): "a form, drawn again",
}
# Calls that change something for those who have something to change.
SOME = {("DELETE", "/me/sessions"), ("POST", "/templates/<template_id>/refresh-references")}
# Calls that do more than one thing.
MORE = {
    ("POST", "/compat/setup/teams"): ["team.create", "project.create"],
    ("POST", "/starters/<key>"): [*["template.create"] * 4, "dataset.create"],
    ("DELETE", "/members/<member_id>"): ["member.remove", "api_key.revoke"],
    ("DELETE", "/pushes/<push_id>"): ["push.cancel", "push.end"],  # a queued push ends immediately
    ("DELETE", "/exports/<export_id>"): ["export.cancel", "export.end"],
    ("DELETE", "/imports/<import_id>"): ["import.cancel"],
    ("DELETE", "/scenarios/<scenario_id>/runs/<run_id>"): ["run.cancel", "run.end"],
}


def actions(connection: sqlite3.Connection, workspace_id: str) -> list[str]:
    """What the trail of a workspace says was done, in order; signing in, as the tests do, left out."""
    return [action for (action,) in connection.execute(_ACTIONS, (workspace_id,))]


def fits(app, case, left: list[str]) -> bool:
    """Whether these are the entries that a call of this case leaves where it succeeds."""
    if case.route in MORE and len(left) > 1:
        return left == MORE[case.route]
    if len(left) == 1:
        return case.route not in NONE and (case.route in OF_DATA or not _reads(app, case))
    return not left and (case.route in NONE or case.route in SOME or _reads(app, case))


def _reads(app, case) -> bool:
    """Whether the route says of itself that it writes nothing."""
    for rule in app.url_map.iter_rules():
        declared = declaration_of(app, rule.endpoint)
        if declared is not None and rule.rule == case.rule and case.method in declared.methods:
            return declared.reads
    raise AssertionError(f"{case} has no route")
