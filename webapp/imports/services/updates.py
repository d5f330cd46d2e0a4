"""Apply a changed schema to the template that was created from it: the differences by column, and the accepted ones.

The base is the result of the last import: a column differs if it leads to something else now. Fields that were edited
since are kept, unless their column is among the accepted ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import select

from webapp.access.actors import Actor
from webapp.errors import Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.imports.models import TemplateImport
from webapp.imports.services import drafts, imports, tables
from webapp.imports.services.imports import SubmittedDocument
from webapp.imports.services.tables import ENTITY_PREFIX, Draft
from webapp.row_templates.models import Template
from webapp.row_templates.services import templates

Field = Mapping[str, Any]
_USER_ATTRIBUTES: Final = ("id", "description", "sensitive", "masking", "hidden")
"""Attributes of a field that users set and imports do not contain."""


@dataclass(frozen=True, slots=True)
class Change:
    """One column that differs. `before` is the template's field, `after` the one that the schema leads to now."""

    column: str
    change: Literal["added", "removed", "changed"]
    before: Field | None
    after: Field | None
    state: str
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """As the API shows it."""
        after = None if self.after is None else _schema_attributes(self.after, {})
        template_id = "" if after is None else str(after["options"].get("template_id", ""))
        if after is not None and template_id.startswith(ENTITY_PREFIX):
            after["options"] = {**after["options"], "template_id": template_id.removeprefix(ENTITY_PREFIX)}
        return {
            "column": self.column,
            "change": self.change,
            "from": None if self.before is None else _schema_attributes(self.before, {}),
            "to": after,
            "state": self.state,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a template with a schema. `applied_columns` are the applied columns; None if none were
    requested."""

    template: dict[str, Any]
    table: str
    format: str
    changes: list[Change]
    report: drafts.Report
    applied_columns: list[str] | None = None

    def as_dict(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "template": self.template,
            "table": self.table,
            "format": self.format,
            "columns": [change.as_dict() for change in self.changes],
            "report": self.report,
            "accepted": self.applied_columns,
        }


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A parsed schema that is compared with a template."""

    draft: Draft
    format: str
    report: drafts.Report
    related_templates: Mapping[str, str]
    """Templates of other tables, by their tables."""
    submitted: SubmittedDocument


def parse_schema(
    actor: Actor, template: Template, submitted: SubmittedDocument, form: str, table: str | None
) -> ParsedSchema:
    """Return the table of a schema that a template represents. Takes seconds: call it before the template is locked.
    Error: validation_error for a file that cannot be read or a table that is not in it, unavailable."""
    last_import = imports.last_import(template)
    statement = (
        select(TemplateImport.entity, TemplateImport.template_id)
        .join(Template, Template.id == TemplateImport.template_id)
        .where(
            Template.workspace_id == actor.workspace_id,
            Template.project_id == template.project_id,
            Template.deleted_at.is_(None),
            Template.id != template.id,
        )
        .order_by(TemplateImport.id)
    )
    imported = [(row[0], row[1]) for row in db.session.execute(statement)]
    spec = templates.version_of(template).spec
    referenced_template_ids = {field["options"].get("template_id") for field in spec["fields"]}
    # A template that this one references represents its table, even if a newer one was imported from that table.
    template_ids_by_table = {
        **dict(imported),
        **{table: item for table, item in imported if item in referenced_template_ids},
    }
    likely_tables = [name for name in (last_import.entity if last_import else "", template.name) if name]
    result = imports.run_in_document_process(
        "compare_document",
        submitted,
        form,
        spec["quantity"],
        table=table,
        likely=likely_tables,
        known=list(template_ids_by_table),
    )
    return ParsedSchema(
        Draft.from_json(result["draft"]), result["format"], result["report"], template_ids_by_table, submitted
    )


def compare(
    actor: Actor, template: Template, schema: ParsedSchema, accept: Sequence[str] | None
) -> Comparison:
    """Return the differences between a locked template and a schema; with `accept`, the columns with these names are
    applied as the next version (commits). Error: validation_error for an unknown column."""
    last_import = imports.last_import(template)
    draft, template_ids_by_table, report = schema.draft, schema.related_templates, schema.report
    name = draft.entity.name
    current = templates.version_of(template).spec["fields"]
    tables_by_template_id = {item: table for table, item in template_ids_by_table.items()}
    base: dict[str, Any]
    if last_import is None:
        base = {item["name"]: _schema_attributes(item, tables_by_template_id) for item in current}
    else:
        base = {
            column: None if item is None else _schema_attributes(item, tables_by_template_id)
            for column, item in last_import.columns.items()
        }
    changes = list(_find_changes(draft, current, base, tables_by_template_id, last_import is not None))
    if accept is None:
        return Comparison(templates.show(template), name, schema.format, changes, report)
    names = [item.column for item in changes]
    faults = [
        Fault(f"accept[{index}]", "unknown_column", f'"{item}" is unchanged.', did_you_mean(item, names))
        for index, item in enumerate(accept)
        if item not in names
    ]
    if faults:
        raise validation_error(faults)
    accepted = [item for item in names if item in set(accept)]
    updated = _apply_changes(
        actor, template, draft, [item for item in changes if item.column in accepted], template_ids_by_table
    )
    # The base of the next comparison: what was not accepted differs then too.
    rejected = set(names) - set(accepted)
    columns = {item.column: item.field for item in draft.columns if item.column not in rejected}
    columns |= {column: item for column, item in base.items() if column in rejected}
    imports.store_result(updated, schema.format, schema.submitted, name, report, columns)
    db.session.commit()
    return Comparison(updated, name, schema.format, changes, report, accepted)


def _schema_attributes(field: Field, tables_by_template_id: Mapping[str, str]) -> dict[str, Any]:
    """Return the attributes of a field that a schema determines; templates by their tables."""
    options = {key: value for key, value in field["options"].items() if value is not None}
    if options.get("template_id") in tables_by_template_id:
        options["template_id"] = ENTITY_PREFIX + tables_by_template_id[options["template_id"]]
    attributes = {"type": field["type"], "options": options}
    for key in ("unique", "percent_blank", "formula", "text_case"):
        if field.get(key):
            attributes[key] = field[key]
    inner = options.get("fields")
    if isinstance(inner, list):
        options["fields"] = [
            {"name": item["name"], **_schema_attributes(item, tables_by_template_id)} for item in inner
        ]
    return attributes


def _find_changes(
    draft: Draft,
    current: Sequence[Field],
    base: Mapping[str, Any],
    tables_by_template_id: Mapping[str, str],
    imported: bool,
) -> Any:
    current_fields = {field["name"]: field for field in current}
    for column in draft.columns:
        new = None if column.field is None else _schema_attributes(column.field, tables_by_template_id)
        if column.column in current_fields:
            is_unchanged = (
                new is None
                or new == _schema_attributes(current_fields[column.column], tables_by_template_id)
                or (imported and new == base.get(column.column))
            )
            if not is_unchanged:
                yield Change(
                    column.column,
                    "changed",
                    current_fields[column.column],
                    column.field,
                    column.state,
                    column.reason,
                )
        elif new is not None and column.column not in base:
            yield Change(column.column, "added", None, column.field, column.state, column.reason)
    schema_columns = {column.column for column in draft.columns if column.field is not None}
    for name in base:
        if name in current_fields and name not in schema_columns:
            yield Change(
                name, "removed", current_fields[name], None, "yellow", "The schema no longer contains it."
            )


def _apply_changes(
    actor: Actor,
    template: Template,
    draft: Draft,
    changes: Sequence[Change],
    template_ids_by_table: Mapping[str, str],
) -> dict[str, Any]:
    """Return the next version with the changes applied; the unchanged template without changes."""
    if not changes:
        return templates.show(template)
    by_name = {item.column: item for item in changes}
    linked_fields = {field["name"]: field for field in tables.linked_fields(draft, template_ids_by_table)}
    fields: list[dict[str, Any]] = []
    for field in templates.version_of(template).spec["fields"]:
        change = by_name.get(field["name"])
        if change is None:
            fields.append(dict(field))
        elif change.change == "changed" and field["name"] in linked_fields:
            fields.append({**linked_fields[field["name"]], **{key: field[key] for key in _USER_ATTRIBUTES}})
    order = [column.column for column in draft.columns]
    for change in changes:
        if change.change == "added" and change.column in linked_fields:
            preceding = set(order[: order.index(change.column)])
            positions = [index + 1 for index, field in enumerate(fields) if field["name"] in preceding]
            fields.insert(max(positions, default=0), linked_fields[change.column])
    return templates.change(actor, template, {"fields": fields})
