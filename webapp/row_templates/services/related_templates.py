"""Templates that others reference: find them, pin them when a template is saved, load them when rows are
generated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson
from sqlalchemy import Select, Text, cast, func, select

from webapp import limits
from webapp.access.actors import Actor
from webapp.engine import groups
from webapp.engine.relations.related_plans import SELF, RelatedTemplate, TemplateLibrary
from webapp.engine.spec import ELEMENT, FieldSpec, TemplateSpec
from webapp.engine.types.relations import key_field_name
from webapp.errors import Fault, validation_error
from webapp.extensions import db
from webapp.row_templates.models import Template, TemplateVersion
from webapp.row_templates.services import compilation
from webapp.row_templates.services.compilation import PlanCache
from webapp.row_templates.services.field_ids import children

StoredJson = Mapping[str, Any]
RowCounts = Mapping[str, int]
"""Rows of templates by id, as a dataset or a request states them."""

RELATION_TYPES: Final = frozenset({"reference", "aggregate", "template"})
"""Field types that reach another template, by their option ``template_id``."""


def find_references(fields: Any) -> Iterator[tuple[str, str]]:
    """Yield (path, template id) of every field that references another template; fields as sent or as stored."""
    yield from _references_in(fields, "fields")


def _references_in(fields: Any, path: str, selves: bool = False) -> Iterator[tuple[str, str]]:
    if not isinstance(fields, list):
        return
    for index, field in enumerate(fields):
        yield from _references_of(field, f"{path}[{index}].options", selves)


def _references_of(field: Any, path: str, selves: bool) -> Iterator[tuple[str, str]]:
    options = field.get("options") if isinstance(field, Mapping) else None
    if not isinstance(options, Mapping):
        return
    template_id = options.get("template_id")
    if isinstance(template_id, str) and (selves or template_id != SELF):
        yield f"{path}.template_id", template_id
    yield from _references_in(options.get("fields"), f"{path}.fields", selves)
    yield from _references_of(options.get(ELEMENT), f"{path}.{ELEMENT}.options", selves)


_DELETED_HINT: Final = "It may have been deleted: restore it, or change the field."

StoredVersion = tuple[int, StoredJson, StoredJson]
"""Number, spec and pins of a template's version."""


def newest_versions(actor: Actor, ids: Iterable[str]) -> dict[str, StoredVersion]:
    """Return the newest versions of the templates that the actor may read, without deleted ones."""
    template_ids = list(dict.fromkeys(ids))
    if not template_ids:
        return {}
    statement = select(Template.id, Template.team_id, Template.version).where(
        Template.id.in_(template_ids),
        Template.workspace_id == actor.workspace_id,
        Template.deleted_at.is_(None),
    )
    return _read_versions(
        {
            row.id: row.version
            for row in db.session.execute(statement)
            if actor.role_in(row.team_id) is not None
        }
    )


_VERSIONS: Final[PlanCache[StoredVersion]] = PlanCache(
    limits.TEMPLATES_OF_TABLES, limits.PLAN_CACHE_BYTES // 4
)
"""Versions that others refer to. A version never changes."""


def _read_versions(numbers: Mapping[str, int]) -> dict[str, StoredVersion]:
    """Return these versions of templates, by template."""
    found = {item: cached for item, number in numbers.items() if (cached := _VERSIONS.get((item, number)))}
    unread = {item: number for item, number in numbers.items() if item not in found}
    if unread:
        statement = select(
            TemplateVersion.template_id, TemplateVersion.number, TemplateVersion.spec, TemplateVersion.pins
        ).where(TemplateVersion.template_id.in_(unread), TemplateVersion.number.in_(set(unread.values())))
        check_size(statement)
        for item, number, spec, pins in db.session.execute(statement):
            if unread[item] == number:
                found[item] = number, spec, pins
                _VERSIONS.put((item, number), found[item], len(orjson.dumps(spec)))
    return {item: found[item] for item in numbers if item in found}


def check_size(statement: Select[Any]) -> None:
    """Check that the template versions which a statement selects are not too large to be read together. Error:
    validation_error."""
    length = func.coalesce(func.sum(func.length(cast(TemplateVersion.spec, Text))), 0)
    _check_related_size(
        int(db.session.scalar(statement.with_only_columns(length, maintain_column_froms=True)) or 0)
    )


def _check_related_size(size: int) -> None:
    if size > limits.RELATED_BYTES:
        maximum, actual = limits.RELATED_BYTES // limits.MB, -(-size // limits.MB)
        text = f"The related templates have at least {actual:,} MB of JSON; the limit is {maximum:,} MB."
        raise validation_error([Fault("fields", "too_large", text, "Use fewer or smaller templates.")])


def pinned_versions_reader(
    pins: StoredJson, version_overrides: Mapping[str, int]
) -> Callable[[Iterable[str]], dict[str, StoredVersion]]:
    """Return a function that reads the versions that a version of a template pins, without deleted templates.
    `version_overrides`: versions that a dataset pins, which take precedence."""
    versions = {
        **{item: found["version"] for item, found in pins.get("templates", {}).items()},
        **version_overrides,
    }

    def read(ids: Iterable[str]) -> dict[str, StoredVersion]:
        requested = {item: versions[item] for item in ids if item in versions}
        if not requested:
            return {}
        statement = select(Template.id).where(Template.id.in_(requested), Template.deleted_at.is_(None))
        return _read_versions({item: requested[item] for item in db.session.scalars(statement)})

    return read


def collect_related(
    fields: Any,
    template_id: str,
    read: Callable[[Iterable[str]], dict[str, StoredVersion]],
    locale: str | None = None,
) -> dict[str, StoredVersion]:
    """Return every template that these fields reference, directly or through other templates.

    Error: validation_error with each field that refers to a template that does not exist, and every other fault of
    the fields and of `locale`.
    """
    found: dict[str, StoredVersion] = {}
    known: dict[str, StoredVersion] = {}
    references = list(find_references(fields))
    direct = {item for _, item in references}
    waiting = direct - {template_id}
    size = 0
    while waiting:
        if unknown := waiting - known.keys():
            known |= read(unknown)
            # The pins of a template name all that it reached when it was saved. They are read together, because
            # a chain of references would need a query for each of its templates.
            ahead = {item for key in unknown & known.keys() for item in known[key][2].get("templates", ())}
            known |= read(ahead - known.keys() - {template_id})
        new = {item: known[item] for item in waiting if item in known}
        found.update(new)
        size += sum(len(orjson.dumps(spec)) for _, spec, _ in new.values())
        _check_related_size(size)
        if len(found) > limits.MAX_RELATED:
            text = f"Relations reach more than {limits.MAX_RELATED} templates."
            raise validation_error([Fault("fields", "too_many", text, "Remove some relations.")])
        further = {item for _, spec, _ in new.values() for _, item in find_references(spec["fields"])}
        waiting = further - set(found) - {template_id} - waiting
    missing = [
        Fault(path, "unknown_template", f'There is no template "{item}".', _DELETED_HINT)
        for path, item in references
        if item != template_id and item not in found
    ]
    rejected = missing or _source_faults(references, found, template_id)
    if rejected:
        raise validation_error([*rejected, *compilation.field_faults(fields, locale)])
    return found


def _source_faults(
    references: Iterable[tuple[str, str]], found: Mapping[str, StoredVersion], template_id: str
) -> list[Fault]:
    """Return a fault for each reference to a template with a source: the relation between their rows is unknown."""
    real = {item: spec["name"] for item, (_, spec, _) in found.items() if spec.get("source")}
    direct = [(path, item) for path, item in references if item != template_id and item in real]
    hint = "Reference a template with generated rows, or read the key from a source in this template too."
    direct += [
        ("fields", item) for item in sorted(set(real) - {item for _, item in direct})
    ]  # reached through others
    return [
        Fault(
            path,
            "has_source",
            f'"{real[item]}" reads its rows from real data, which fields cannot reference.',
            hint,
        )
        for path, item in direct
    ]


def reject_self_references(fields: Any, template_id: str) -> None:
    """Raise `validation_error` if fields of a template with a source reference the template itself."""
    found = [
        path for path, item in _references_in(fields, "fields", selves=True) if item in (SELF, template_id)
    ]
    text = "A template with a source cannot reference its own rows, because they are not generated."
    if found:
        hint = "Read the column from the source instead of the reference."
        raise validation_error([Fault(path, "has_source", text, hint) for path in found])


_PARSED: Final[PlanCache[TemplateSpec]] = PlanCache(limits.TEMPLATES_OF_TABLES, limits.PLAN_CACHE_BYTES // 4)
"""Of the versions of templates that others refer to: in a chain of tables, each is needed for all that follow it."""


def build_library(
    versions: Mapping[str, StoredVersion], template_id: str, rows: int, row_counts: RowCounts
) -> TemplateLibrary:
    """Return the related templates for the engine. ``rows`` is the quantity of the template ``template_id``;
    ``row_counts`` overrides every quantity. Raises validation_error for row counts of unrelated templates,
    unavailable."""
    others = {}
    for item, (number, spec, pins) in versions.items():
        vocabulary = compilation.vocabulary(pins.get("vocabulary"))
        key = item, number, vocabulary.engine
        parsed = _PARSED.get(key)
        if parsed is None:
            fields = compilation.parse_fields(spec["fields"], name=spec["name"], locale=spec["locale"])
            parsed = groups.assign(fields, engine=vocabulary.engine)
            _PARSED.put(key, parsed, len(orjson.dumps(spec["fields"])))
        others[item] = RelatedTemplate(
            spec["name"],
            parsed,
            row_counts.get(item, spec["quantity"]),
            vocabulary,
            item in row_counts,
            compilation.anchor_of(spec),
        )
    return TemplateLibrary(others, template_id, row_counts.get(template_id, rows), template_id in row_counts)


def pins_of(versions: Mapping[str, StoredVersion]) -> dict[str, dict[str, int]]:
    """Return the pinned form of these versions."""
    return {
        item: {"version": number, "rows": spec["quantity"]}
        for item, (number, spec, _) in sorted(versions.items())
    }


def check_row_counts(row_counts: RowCounts, related_ids: Iterable[str], template_id: str) -> None:
    """Raise `validation_error` for row counts of templates that are not related to the request."""
    known = {*related_ids, template_id}
    faults = [
        Fault(
            f"rows.{item}",
            "unknown_template",
            f'No field references the template "{item}", directly or indirectly.',
            "Use the ID of a related template.",
        )
        for item in row_counts
        if item not in known
    ]
    if faults:
        raise validation_error(faults)


def related_pins(
    versions: Mapping[str, StoredVersion], library: TemplateLibrary
) -> dict[str, dict[str, int]]:
    """Return version and row count of each related template for the pins: the row counts used in the
    calculation."""
    return {
        item: {"version": number, "rows": library.others[item].rows}
        for item, (number, _, _) in sorted(versions.items())
    }


def all_exist(ids: Collection[str]) -> bool:
    """Return whether none of these templates is deleted."""
    statement = select(Template.id).where(Template.id.in_(ids), Template.deleted_at.is_(None))
    return len(db.session.scalars(statement).all()) == len(ids)


def with_reference_fields(
    fields: list[dict[str, Any]], spec: TemplateSpec, library: TemplateLibrary
) -> list[dict[str, Any]]:
    """Return stored fields with the default field of each reference filled in."""

    def visit(stored: Mapping[str, Any], parsed: FieldSpec) -> None:
        options = stored["options"]
        if stored["type"] == "reference" and options.get("field") is None:
            template_id = options["template_id"]
            parent = (
                spec.fields
                if template_id in (SELF, library.own_id)
                else library.others[template_id].spec.fields
            )
            options["field"] = key_field_name(parent, parsed.name)
        for inner, child in zip(children(stored), parsed.children, strict=False):
            visit(inner, child)

    for stored, parsed in zip(fields, spec.fields, strict=True):
        visit(stored, parsed)
    return fields
