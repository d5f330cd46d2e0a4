"""Create templates from a file or a schema: as a preview, or saved with a report; several tables as a dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from sqlalchemy import select

from webapp import clock, document_process, limits
from webapp.access.actors import Actor
from webapp.datasets.services import datasets
from webapp.extensions import db
from webapp.imports.models import TemplateImport
from webapp.imports.readers.base import Source
from webapp.imports.services import drafts, process
from webapp.imports.services import tables as imports_tables
from webapp.imports.services.tables import ENTITY_PREFIX, Draft
from webapp.row_templates.models import Template
from webapp.row_templates.services import compilation, vocabularies


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import, as the API shows it."""

    format: str
    templates: list[dict[str, Any]]
    dataset: dict[str, Any] | None
    report: drafts.Report
    shown: list[dict[str, Any]]
    """Values of each column of the report, for pages: see `drafts.shown`."""


@dataclass(frozen=True, slots=True)
class SubmittedDocument:
    """The input: a document, and the name of its file, or "" for a text."""

    document: bytes | IO[bytes]
    name: str = ""


def create(
    actor: Actor,
    submitted: SubmittedDocument,
    form: str,
    *,
    quantity: int,
    save: bool,
    types: Sequence[str] = (),
    samples: bool = False,
    worker_options: WorkerOptions | None = None,
    before_saving: Callable[[], None] = lambda: None,
) -> ImportResult:
    """Create a template for each table of a file; with `save` they are saved (commits), several of them as a dataset
    too. `types` are field types that a person chose, by the place of the column in the report; empty ones are those
    that were recognized. With `samples` the result has values to show. `worker_options`: how the document is read by a
    worker. `before_saving` is called before the first template is saved.

    Columns that cannot be converted are red in the report, and become text. Error: validation_error (`unreadable`) if
    nothing of the file can be read, unavailable.
    """
    result = run_in_document_process(
        "draft_document", submitted, form, quantity, worker_options, types=list(types), samples=samples
    )
    template_drafts = [Draft.from_json(draft) for draft in result["drafts"]]
    report = result["report"]
    if not save:
        return ImportResult(
            result["format"],
            [_as_json(draft, quantity) for draft in template_drafts],
            None,
            report,
            result["shown"],
        )
    before_saving()
    seconds = None if worker_options is None else limits.IMPORT_CPU_SECONDS
    description = f"Imported from {submitted.name}" if submitted.name else "Imported from pasted text"
    skipped = imports_tables.save(
        actor,
        template_drafts,
        lambda entity: f"{entity.comment}. {description}" if entity.comment else description,
        quantity,
        seconds=seconds,
    )
    report = report + [
        {"table": item["table"], "column": "", "type": None, "state": "red", "reason": item["message"]}
        for item in skipped
    ]
    template_drafts = [draft for draft in template_drafts if draft.created_template is not None]
    saved = []
    for draft in template_drafts:
        assert draft.created_template is not None
        name = draft.entity.name
        store_result(
            draft.created_template,
            result["format"],
            submitted,
            name,
            drafts.rows_of_table(report, name),
            fields_by_column(draft),
        )
        saved.append(
            {key: draft.created_template[key] for key in ("id", "name", "quantity", "version", "fields")}
        )
    db.session.commit()
    return ImportResult(
        result["format"], saved, _create_dataset(actor, submitted, template_drafts), report, result["shown"]
    )


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Options of a worker that reads a document within larger limits than a request and reports its progress."""

    progress_file: str
    """A file, see `process.draft_document`."""
    on_tick: Callable[[], None]
    """Called about twice a second."""


def run_in_document_process(
    function: str,
    submitted: SubmittedDocument,
    form: str,
    rows: int,
    worker_options: WorkerOptions | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """Run a function of `process` on a document, without holding a database session. Error: validation_error,
    unavailable."""
    compilation.vocabulary()  # the process opens it from disk
    db.session.rollback()
    arguments = {
        "name": submitted.name,
        "form": form,
        "vocabulary_folder": str(vocabularies.local_folder()),
        "rows": rows,
        **extra,
    }
    function_path = f"webapp.imports.services.process:{function}"
    try:
        result: dict[str, Any]
        if worker_options is None:
            result = document_process.run(function_path, submitted.document, arguments)
        else:
            arguments["progress"] = worker_options.progress_file
            result = document_process.run(
                function_path,
                submitted.document,
                arguments,
                limits.IMPORT_CPU_SECONDS,
                limits.IMPORT_SECONDS,
                worker_options.on_tick,
            )
    except document_process.DocumentError as error:
        raise process.unreadable_error(submitted.name, error.message, error.hint) from None
    return result


def fields_by_column(draft: Draft) -> dict[str, Any]:
    """Return the field of each column."""
    return {column.column: column.field for column in draft.columns}


def store_result(
    template: dict[str, Any],
    form: str,
    submitted: SubmittedDocument,
    entity: str,
    report: drafts.Report,
    columns: dict[str, Any],
) -> None:
    """Store the result of an import with its template."""
    db.session.add(
        TemplateImport(
            template_id=template["id"],
            version=template["version"],
            format=form,
            source=submitted.name[: limits.MAX_FILE_NAME_CHARS],
            entity=entity,
            report=report,
            columns=columns,
            created_at=clock.now(),
        )
    )


def last_import(template: Template) -> TemplateImport | None:
    """Return the newest import into a template, or None."""
    statement = select(TemplateImport).where(TemplateImport.template_id == template.id)
    return db.session.scalar(statement.order_by(TemplateImport.id.desc()).limit(1))


def _as_json(draft: Draft, quantity: int) -> dict[str, Any]:
    fields = []
    for field in draft.fields:
        template_id = str(field["options"].get("template_id", ""))
        options = (
            {**field["options"], "template_id": template_id.removeprefix(ENTITY_PREFIX)}
            if template_id
            else field["options"]
        )
        fields.append({**field, "options": options})
    return {
        "id": None,
        "name": draft.entity.name,
        "quantity": draft.rows or quantity,
        "version": None,
        "fields": fields,
    }


def _create_dataset(
    actor: Actor, submitted: SubmittedDocument, template_drafts: Sequence[Draft]
) -> dict[str, Any] | None:
    """Create a dataset of several templates, parents first; return None for one, or for too many."""
    if not 1 < len(template_drafts) <= limits.MAX_DATASET_TABLES:
        return None
    tables = ", ".join(draft.entity.name for draft in template_drafts[:3]) + (
        ", …" if len(template_drafts) > 3 else ""
    )
    name = Source(b"", submitted.name).stem or f"Imported schema ({tables})"
    members = [
        {"template_id": draft.created_template["id"], "count": None, "name": None}
        for draft in template_drafts
        if draft.created_template is not None
    ]
    return datasets.create(actor, name=name[: limits.MAX_NAME_CHARS], templates=members)
