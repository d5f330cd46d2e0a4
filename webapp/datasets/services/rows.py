"""The rows of a dataset: three of each table for a preview, or all of them in one file, parents before their children.

Each table is one recipe with the dataset's seed, so its rows equal those that its template generates with that seed and
the same number of rows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import orjson
from sqlalchemy import select

from webapp import clock, limits, timestamps
from webapp.access.actors import Actor
from webapp.datasets.models import Dataset
from webapp.datasets.schemas import DatasetExportInput, DatasetPreviewInput
from webapp.datasets.services import datasets
from webapp.engine import processor_time
from webapp.engine.errors import SpecError
from webapp.engine.formats.base import Format, Piece
from webapp.engine.formats.multi_table import (
    Keys,
    MultiTableFile,
    Relation,
    Sheets,
    SqlScript,
    Table,
    ZipArchive,
)
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.generation.services import external_values, generate
from webapp.generation.services import rows as generation_rows
from webapp.generation.services.pins import Pins
from webapp.generation.services.rows import Recipe, Stream
from webapp.row_templates.models import Template, TemplateVersion
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services import compiled_plans, related_templates, relations, templates
from webapp.row_templates.services.compiled_plans import Source
from webapp.sources.services import sources


@dataclass(frozen=True, slots=True)
class Member:
    """One table of a dataset: the version of a template, its name and its requested number of rows."""

    place: int
    """Its position in the dataset, from 0."""
    template_id: str
    version: int
    name: str
    count: int | None


def members(spec: Mapping[str, Any], pinned: Mapping[str, int]) -> list[Member]:
    """Return the tables of a dataset's stored spec, in its order; `pinned` are template versions by id."""
    template_ids = [template["template_id"] for template in spec["templates"]]
    versions = select(TemplateVersion).where(TemplateVersion.template_id.in_(template_ids))
    related_templates.check_size(
        versions.where(TemplateVersion.number.in_({pinned[template_id] for template_id in template_ids}))
    )
    statement = select(Template.id, Template.name).where(Template.id.in_(template_ids))
    names = {row[0]: row[1] for row in db.session.execute(statement)}
    return [
        Member(
            index,
            template["template_id"],
            pinned[template["template_id"]],
            template["name"] or names.get(template["template_id"], "rows"),
            template["count"],
        )
        for index, template in enumerate(spec["templates"])
    ]


def sources_of(found: Sequence[Member]) -> list[Source]:
    """Return the recipes of all tables, in the same order. All rows of datasets are generated from these.

    Error: validation_error, with paths such as `templates[1].fields[0]`.
    """
    return [_source(member, found) for member in found]


def _source(member: Member, members: Sequence[Member]) -> Source:
    """Return what the rows of one table are generated from. Error: validation_error."""
    counts = {item.template_id: item.count for item in members if item.count is not None}
    versions = {item.template_id: item.version for item in members}
    with placed(member):
        load = templates.loader(member.template_id, member.version)
        source = compiled_plans.of_version(member.template_id, member.version, None, load, counts, versions)
    return replace(source, name=member.name, quantity=source.plan.rows)


@contextmanager
def placed(member: Member) -> Iterator[None]:
    """Convert errors of one table to errors of the dataset."""
    try:
        yield
    except ApiError as error:
        for fault in error.details.get("fields", ()):
            fault["path"] = f"templates[{member.place}].{fault['path']}".rstrip(".")
        if error.code == "validation_error":
            error.message = f"{member.name}: {error.message}"
        raise


# --- Preview ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Look:
    """The first rows of one table, as JSON, and how many rows it has."""

    member: Member
    rows: bytes
    count: int


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows of each table, and their seed."""

    looks: list[Look]
    seed: str
    warnings: list[dict[str, Any]]


def preview(
    spec: Mapping[str, Any],
    found: Sequence[Member],
    body: DatasetPreviewInput,
    actor: Actor | None = None,
    fetch: bool = False,
) -> Preview:
    """Return three rows of each table of a dataset, in its order; not counted toward the quota. `fetch` as in
    `external_values.recipe`. Errors: validation_error, those of connections."""
    seed = body.seed or spec["seed"]
    looks: list[Look] = []
    left, records = limits.PREVIEW_BYTES, 0
    warnings = list(spec.get("warnings", ()))
    for member, source in zip(found, sources_of(found), strict=True):
        if fetch:
            with placed(member):
                source = sources.open_source(actor, source, whole=False)
        count = member.count or (source.quantity if source.plan.taken is None else source.count(None))
        # A table has no rows if its parents have no children.
        row_count = min(count, limits.PREVIEW_ROWS)
        if member.count is not None:
            row_count = _possible_rows(actor, replace(member, count=row_count), found, seed)[0] or row_count
        requested = GenerateInput(seed=seed, now=_now(spec, body)).model_copy(update={"count": row_count})
        with placed(member):
            recipe = external_values.recipe(
                actor, source, requested, fetch=fetch, anchored=requested.now is None
            )
            warnings += external_values.warnings(source, recipe)
            fitting_rows, records = generate.preview_rows(actor, recipe, recipe.count, records)
            recipe = replace(recipe, count=fitting_rows)
            warnings += generate.cut_warnings(recipe, requested)
            rows = recipe.open().read(left)
        left -= len(rows)
        looks.append(Look(member, rows, count))
        capacity = generate.capacity_warnings(replace(recipe, source=replace(source, quantity=count)))
        warnings += [{**item, "path": f"templates[{member.place}].{item['path']}"} for item in capacity]
    return Preview(looks, seed, warnings)


def sample(
    actor: Actor, spec: Mapping[str, Any], found: Sequence[Member], member: Member, count: int
) -> list[dict[str, Any]]:
    """Return the first rows of one table of a dataset, at most `count`; not counted toward the quota. Values from
    outside are those that are stored. Errors: validation_error, those of connections."""
    source = _source(member, found)
    with placed(member):
        source_spec = source.plan.spec.source
        if (
            source_spec is not None and source_spec.file is not None
        ):  # a file of the workspace is read without an explicit fetch
            source = sources.open_source(actor, source, whole=False)
        rows = member.count or (source.quantity if source.plan.taken is None else source.count(None))
        requested = GenerateInput(seed=spec["seed"], now=_now(spec, DatasetPreviewInput()))
        requested = requested.model_copy(update={"count": min(rows, count)})
        recipe = external_values.recipe(actor, source, requested, fetch=False, anchored=requested.now is None)
        fitting_rows, _ = generate.preview_rows(actor, recipe, recipe.count)
        result: list[dict[str, Any]] = orjson.loads(replace(recipe, count=fitting_rows).open().read())
    return result


def _now(spec: Mapping[str, Any], body: DatasetPreviewInput) -> datetime | None:
    """Return the base of relative dates; None: each table uses its template's anchor."""
    if body.now is not None:
        return body.now
    return timestamps.parse(spec["anchor"]) if spec["anchor"] else None


# Errors that only affect one table, so that the others can continue.
_TABLE_ERRORS: Final = frozenset(
    {"validation_error", "not_found", "target_failed", "target_timeout", "unavailable", "row_limit_exceeded"}
)


# --- Counts ---------------------------------------------------------------------------------------------------


def possible_counts(actor: Actor, dataset: Dataset) -> dict[str, tuple[int, str]]:
    """Return how many rows each table of a dataset can have, up to the requested number, by template; and why not more.

    Parents come first, so that the number of rows of a table's parents is known. A table whose rows cannot be generated
    keeps its count.
    """
    version = datasets.version_of(dataset)
    found = members(version.spec, version.pins["templates"])
    fields = datasets.fields_of({item.template_id: item.version for item in found})
    edges = relations.among(relations.edges(fields), list(fields))
    position = {
        template_id: index
        for index, template_id in enumerate(relations.order(list(fields), edges).template_ids)
    }
    counts: dict[str, tuple[int, str]] = {}
    for member in sorted(found, key=lambda item: position[item.template_id]):
        limited = [replace(item, count=counts.get(item.template_id, (item.count, ""))[0]) for item in found]
        try:
            counts[member.template_id] = _possible_rows(actor, member, limited, version.spec["seed"])
        except ApiError as error:
            if error.code not in _TABLE_ERRORS:
                raise
            counts[member.template_id] = (member.count or 1, "")
    return counts


def _is_only_excess(error: ApiError) -> bool:
    """Return whether a table's only fault is that it has fewer possible rows than requested."""
    faults = error.details.get("fields", ())
    return bool(faults) and all(fault["code"] == "not_enough_values" for fault in faults)


def _possible_rows(
    actor: Actor | None, member: Member, members: Sequence[Member], seed: str
) -> tuple[int, str]:
    """Return how many rows a table can have, up to the requested number, and why not more. Errors: validation_error,
    those of connections."""
    with processor_time.of_one_table():
        one_row = GenerateInput(count=1, seed=seed)
        recipe = external_values.recipe(actor, _source(member, members), one_row, fetch=False)
        requested = member.count or 1
        reason = _excess_reason(recipe, requested)
        if not reason:
            return requested, ""
        low, high = 0, requested  # `low` rows are possible, `high` are not
        while high - low > 1:
            middle = (low + high) // 2
            if _excess_reason(recipe, middle):
                high = middle
            else:
                low = middle
        return low, reason


def _excess_reason(recipe: Recipe, count: int) -> str:
    """Return why a recipe cannot have this many rows; "" if it can."""
    try:
        recipe.bound.check(0, count)
    except SpecError as error:
        return error.faults[0].message
    return ""


# --- Files --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bundle:
    """All tables of a dataset version in one file, determined to the last byte; parents before their children."""

    name: str
    dataset_id: str
    version: int
    seed: str
    now: datetime | None
    members: Sequence[Member]
    recipes: Sequence[Recipe]
    keys: Keys
    notes: Mapping[str, str] = field(default_factory=dict)
    """Why a table has fewer rows than requested, by its name."""

    @property
    def format(self) -> type[Format]:
        """The format of each table."""
        return self.recipes[0].format

    @property
    def count(self) -> int:
        """Rows of all tables."""
        return sum(recipe.count for recipe in self.recipes)

    @property
    def extension(self) -> str:
        """The suffix of the file name."""
        return packed(self.format).extension

    @property
    def file_name(self) -> str:
        """The name of a download: the dataset's name, without characters that file systems do not support."""
        return f"{generation_rows.file_stem(self.name)}.{self.extension}"

    def pins(self) -> dict[str, Any]:
        """Return the pins to store, with which the same bytes can be generated again."""
        tables = [
            {
                **recipe.pins.to_json(),
                "place": member.place,
                "name": member.name,
                "count": member.count,
                "rows": recipe.count,
                **({"note": note} if (note := self.notes.get(member.name)) else {}),
            }
            for member, recipe in zip(self.members, self.recipes, strict=True)
        ]
        result = {
            "seed": self.seed,
            "now": clock.to_text(self.now),
            "engine": self.recipes[0].pins.engine,
            "dataset_id": self.dataset_id,
            "version": self.version,
            "name": self.name,
            "tables": tables,
        }
        snapshot = external_values.snapshot_of_all(recipe.pins for recipe in self.recipes)
        return result if snapshot is None else {**result, "snapshot": snapshot}

    def open(self) -> Stream:
        """Generate the first block; the rest is generated on demand. Error: `validation_error` for values that this
        format does not support."""
        output = _Output(self)
        output.prime()
        return output

    def together(self) -> MultiTableFile:
        """Return the writers of the file. May raise `SpecError`."""
        kind = packed(self.format)
        titles = [member.name for member in self.members]  # a workbook names its sheets itself
        if self.format.name == "sql":
            titles = _distinct_names([generation_rows.slug(name) for name in titles])
        elif self.format.name != "xlsx":
            titles = _distinct_names([generation_rows.file_stem(name) for name in titles])
        tables = [
            Table(title, recipe.bound.schema, recipe.options)
            for title, recipe in zip(titles, self.recipes, strict=True)
        ]
        if kind is SqlScript:
            return SqlScript(tables, self.keys)
        return Sheets(tables) if kind is Sheets else ZipArchive(self.format, tables)


class _Output(Stream):
    """The bytes of a bundle."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        super().__init__()

    def _make(self) -> Generator[Piece]:
        file = self._bundle.together()
        if head := file.start():
            yield head
        for recipe, writer in zip(self._bundle.recipes, file.tables, strict=True):
            yield from self._rows(recipe, writer)
        if tail := file.finish():
            yield tail


def packed(kind: type[Format]) -> type[MultiTableFile]:
    """Write several tables of a format into one file."""
    if kind.name == "sql":
        return SqlScript
    return Sheets if kind.name == "xlsx" else ZipArchive


def content_type(kind: type[Format]) -> str:
    """Return the Content-Type of such a file."""
    media = packed(kind).media_type
    return f"{media}; charset=utf-8" if kind.name == "sql" else media


def headers(stored: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a file, from its stored pins. `X-Now` is only set if all tables have the same moment; the
    vocabulary is set if all tables have the same."""
    vocabularies = {table["vocabulary"] for table in stored["tables"]}
    found = {"X-Dataset-Version": str(stored["version"])}
    shared = _stored_pins(stored["tables"][0]).headers()
    del shared["X-Template-Version"]
    if len(vocabularies) > 1:
        del shared["X-Vocabulary"]
    if stored["now"] is None:
        del shared["X-Now"]
    shared.pop("X-Snapshot", None)
    if "snapshot" in stored:
        found["X-Snapshot"] = stored["snapshot"]
    return {**shared, **found}


def bundle(
    name: str,
    version: tuple[str, int],
    found: Sequence[Member],
    seed: str,
    now: datetime | None,
    body: DatasetExportInput,
    by: Actor | Sequence[Pins],
    skipped: dict[str, ApiError] | None = None,
) -> Bundle:
    """Return the tables of a dataset version (id, number), sorted. `by` is the actor, or the pins of an earlier
    attempt, by table; then the tables are sorted already. With `skipped`, tables whose rows cannot be generated are
    left out and added to it by their names.

    A table with fewer possible rows than requested gets as many as are possible, with a note, and its children refer to
    those.

    Errors: validation_error, with paths such as `templates[1].fields[0]`.
    """
    fields = datasets.fields_of({item.template_id: item.version for item in found})
    edges = relations.among(relations.edges(fields), list(fields))
    if isinstance(by, Actor):
        position = {
            template_id: index
            for index, template_id in enumerate(relations.order(list(fields), edges).template_ids)
        }
        found = sorted(found, key=lambda item: position[item.template_id])
    found = list(found)
    included, recipes, notes = [], [], {}
    for index, member in enumerate(found):
        try:
            try:
                recipe = _recipe(member, found, seed, now, body, by if isinstance(by, Actor) else by[index])
            except ApiError as error:
                if not isinstance(by, Actor) or not _is_only_excess(error):
                    raise
                count, notes[member.name] = _possible_rows(by, member, found, seed)
                if not count:
                    raise
                found[index] = member = replace(member, count=count)
                recipe = _recipe(member, found, seed, now, body, by)
        except ApiError as error:
            if skipped is None or error.code not in _TABLE_ERRORS:
                raise
            skipped[member.name] = error
        else:
            recipes.append(recipe)
            included.append(member)
    if not recipes:
        raise validation_error(
            [Fault("templates", "nothing_to_make", "No table of this dataset can be generated.")]
        )
    remaining = relations.among(edges, [item.template_id for item in included])
    return Bundle(name, *version, seed, now, included, recipes, _keys(included, fields, remaining), notes)


def _recipe(
    member: Member,
    members: Sequence[Member],
    seed: str,
    now: datetime | None,
    body: DatasetExportInput,
    by: Actor | Pins,
) -> Recipe:
    """Return the recipe of one table of a bundle. Errors: validation_error, those of connections."""
    source = _source(member, members)
    with placed(member):
        source = (
            sources.open_source(by, source, keep=True)
            if isinstance(by, Actor)
            else external_values.pinned(source, by)
        )
    count = member.count or (source.quantity if source.plan.taken is None else source.count(None))
    requested = body.of_table(count).model_copy(update={"seed": seed, "now": now})
    with placed(member):
        if isinstance(by, Actor):
            return external_values.recipe(by, source, requested, keep=True, anchored=now is None)
        return generation_rows.recipe(source, requested, present=clock.now(), pins=by, anchored=now is None)


def of_version(
    actor: Actor,
    spec: Mapping[str, Any],
    version: tuple[str, int],
    found: Sequence[Member],
    body: DatasetExportInput,
    skipped: dict[str, ApiError] | None = None,
) -> Bundle:
    """Return the rows of an export of a dataset version. `skipped` and errors as in `bundle`, and those of
    connections."""
    return bundle(
        spec["name"], version, found, body.seed or spec["seed"], _now(spec, body), body, actor, skipped
    )


def from_stored_pins(stored: Mapping[str, Any], body: Mapping[str, Any], kind: str) -> Bundle:
    """Return the bundle of stored pins: the same bytes, even if the dataset or its templates have changed since."""
    requested = DatasetExportInput.model_validate_json(orjson.dumps({**body, "format": kind}))
    tables = stored["tables"]
    found = [
        Member(table["place"], table["template_id"], table["version"], table["name"], table["count"])
        for table in tables
    ]
    pins = [_stored_pins(table) for table in tables]
    now = timestamps.parse(stored["now"]) if stored["now"] else None
    version = (stored["dataset_id"], stored["version"])
    return bundle(stored["name"], version, found, stored["seed"], now, requested, pins)


def _stored_pins(table: Mapping[str, Any]) -> Pins:
    """Return the pins of one stored table."""
    return Pins.from_json({key: value for key, value in table.items() if key in Pins.__dataclass_fields__})


def _keys(found: Sequence[Member], fields: relations.Templates, edges: Sequence[relations.Edge]) -> Keys:
    """Return the keys of the tables, for formats that support them: references to unique fields."""
    position = {member.template_id: at for at, member in enumerate(found)}
    stored = {item: dict(relations.walk(fields[item])) for item in fields}
    unique_references = [
        edge
        for edge in edges
        if (field := stored[edge.parent_template_id].get(edge.parent_field))
        and relations.never_repeats(field)
    ]
    primary = [
        relations.primary_key(
            fields[member.template_id],
            [e.parent_field for e in unique_references if e.parent_template_id == member.template_id],
        )
        for member in found
    ]
    foreign = [
        Relation(position[e.child_template_id], e.child_field, position[e.parent_template_id], e.parent_field)
        for e in unique_references
    ]
    return Keys(primary, foreign)


def _distinct_names(names: Sequence[str]) -> list[str]:
    """Return the names, with a number if a previous name is equal except for case."""
    taken: set[str] = set()
    result = []
    for name in names:
        candidate, number = name, 1
        while candidate.casefold() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.casefold())
        result.append(candidate)
    return result
