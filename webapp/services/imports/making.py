"""Templates from a file or a schema: shown, or saved with their report; several tables as a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from webapp import clock, limits
from webapp.connectors.shape import Entity
from webapp.errors import Fault, validation_error
from webapp.extensions import db
from webapp.models import Template, TemplateImport
from webapp.services import datasets, plans, table_templates
from webapp.services.actors import Actor
from webapp.services.imports import drafts, reading
from webapp.services.imports.shapes import Read, Source, Unreadable
from webapp.services.table_drafts import HERE, Draft


@dataclass(frozen=True, slots=True)
class Made:
    """What an import came to, as the API shows it."""

    format: str
    templates: list[dict[str, Any]]
    dataset: dict[str, Any] | None
    report: drafts.Report


def create(actor: Actor, source: Source, form: str, *, quantity: int, save: bool) -> Made:
    """A template for each table of a file; with `save` they are saved (commits), several of them as a dataset too.

    Columns that cannot be made are red in the report, and text stands for them. Error: validation_error (`unreadable`)
    where nothing of the file can be read.
    """
    read = opened(source, form)
    made = drafts.drafted(read, plans.vocabulary(), quantity)
    told = drafts.report(made, read.problems)
    if not save:
        return Made(read.format, [_shown(one, quantity) for one in made], None, told)
    table_templates.save(actor, made, lambda one: _described(one, source), quantity)
    for one in made:
        assert one.made is not None
        keep(
            one.made,
            read.format,
            source,
            one.entity.name,
            drafts.told_of(told, one.entity.name),
            columns_of(one),
        )
    db.session.commit()
    return Made(read.format, [_saved(one) for one in made], _dataset(actor, source, made), told)


def opened(source: Source, form: str) -> Read:
    """A file as tables. Error: validation_error."""
    try:
        return reading.read(source, form, plans.vocabulary())
    except Unreadable as error:
        path = "file" if source.name else "content"
        raise validation_error([Fault(path, "unreadable", str(error), error.hint)]) from None


def columns_of(draft: Draft) -> dict[str, Any]:
    """By column, the field that its schema leads to."""
    return {one.column: one.field for one in draft.found}


def keep(
    template: dict[str, Any],
    form: str,
    source: Source,
    entity: str,
    report: drafts.Report,
    columns: dict[str, Any],
) -> None:
    """Keeps what an import came to with its template."""
    db.session.add(
        TemplateImport(
            template_id=template["id"],
            version=template["version"],
            format=form,
            source=source.name[: limits.MAX_FILE_NAME_CHARS],
            entity=entity,
            report=report,
            columns=columns,
            created_at=clock.now(),
        )
    )


def last(template: Template) -> TemplateImport | None:
    """The newest import onto a template."""
    statement = select(TemplateImport).where(TemplateImport.template_id == template.id)
    return db.session.scalar(statement.order_by(TemplateImport.id.desc()).limit(1))


def _described(entity: Entity, source: Source) -> str:
    where = f"Rows as in {source.name}" if source.name else "Rows as in the imported text"
    return f"{entity.comment}. {where}" if entity.comment else where


def _shown(draft: Draft, quantity: int) -> dict[str, Any]:
    fields = []
    for one in draft.fields:
        asked = str(one["options"].get("template_id", ""))
        options = {**one["options"], "template_id": asked.removeprefix(HERE)} if asked else one["options"]
        fields.append({**one, "options": options})
    return {"id": None, "name": draft.entity.name, "quantity": quantity, "version": None, "fields": fields}


def _saved(draft: Draft) -> dict[str, Any]:
    assert draft.made is not None
    return {key: draft.made[key] for key in ("id", "name", "quantity", "version", "fields")}


def _dataset(actor: Actor, source: Source, made: Sequence[Draft]) -> dict[str, Any] | None:
    """The dataset of several templates, parents first; None for one, and for more than a dataset takes."""
    if not 1 < len(made) <= limits.MAX_DATASET_TABLES:
        return None
    name = source.stem or f"{made[0].entity.name} and {len(made) - 1} more"
    tables = [
        {"template_id": one.made["id"], "count": None, "name": None} for one in made if one.made is not None
    ]
    return datasets.create(actor, name=name[: limits.MAX_NAME_CHARS], templates=tables)
