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
    FileTable,
    KeyColumns,
    MultiTableFile,
    SqlScript,
    TableReference,
    WorkbookFile,
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
from webapp.row_templates.services.compiled_plans import CompiledTemplate
from webapp.sources.services import sources


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table of a dataset: the version of a template, its name and its requested number of rows."""

    index: int
    """Its position in the dataset, from 0."""
    template_id: str
    version: int
    name: str
    count: int | None


def read_table_specs(spec: Mapping[str, Any], pinned: Mapping[str, int]) -> list[TableSpec]:
    """Return the tables of a dataset's stored spec, in its order; `pinned` are template versions by id."""
    template_ids = [template["template_id"] for template in spec["templates"]]
    versions = select(TemplateVersion).where(TemplateVersion.template_id.in_(template_ids))
    related_templates.check_size(
        versions.where(TemplateVersion.number.in_({pinned[template_id] for template_id in template_ids}))
    )
    statement = select(Template.id, Template.name).where(Template.id.in_(template_ids))
    names = {row[0]: row[1] for row in db.session.execute(statement)}
    return [
        TableSpec(
            index,
            template["template_id"],
            pinned[template["template_id"]],
            template["name"] or names.get(template["template_id"], "rows"),
            template["count"],
        )
        for index, template in enumerate(spec["templates"])
    ]


def compile_sources(table_specs: Sequence[TableSpec]) -> list[CompiledTemplate]:
    """Return the recipes of all tables, in the same order. All rows of datasets are generated from these.

    Error: validation_error, with paths such as `templates[1].fields[0]`.
    """
    return [_compile_source(member, table_specs) for member in table_specs]


def _compile_source(member: TableSpec, members: Sequence[TableSpec]) -> CompiledTemplate:
    """Return what the rows of one table are generated from. Error: validation_error."""
    counts = {item.template_id: item.count for item in members if item.count is not None}
    versions = {item.template_id: item.version for item in members}
    with errors_at_table(member):
        load = templates.loader(member.template_id, member.version)
        source = compiled_plans.compile_version(
            member.template_id, member.version, None, load, counts, versions
        )
    return replace(source, name=member.name, quantity=source.plan.rows)


@contextmanager
def errors_at_table(member: TableSpec) -> Iterator[None]:
    """Convert errors of one table to errors of the dataset."""
    try:
        yield
    except ApiError as error:
        for fault in error.details.get("fields", ()):
            fault["path"] = f"templates[{member.index}].{fault['path']}".rstrip(".")
        if error.code == "validation_error":
            error.message = f"{member.name}: {error.message}"
        raise


# --- Preview ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableSample:
    """The first rows of one table, as JSON, and how many rows it has."""

    member: TableSpec
    rows: bytes
    count: int


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows of each table, and their seed."""

    tables: list[TableSample]
    seed: str
    warnings: list[dict[str, Any]]


def preview(
    spec: Mapping[str, Any],
    table_specs: Sequence[TableSpec],
    body: DatasetPreviewInput,
    actor: Actor | None = None,
    fetch: bool = False,
) -> Preview:
    """Return three rows of each table of a dataset, in its order; not counted toward the quota. `fetch` as in
    `external_values.recipe`. Errors: validation_error, those of connections."""
    seed = body.seed or spec["seed"]
    samples: list[TableSample] = []
    remaining_bytes, records = limits.PREVIEW_BYTES, 0
    warnings = list(spec.get("warnings", ()))
    for member, source in zip(table_specs, compile_sources(table_specs), strict=True):
        if fetch:
            with errors_at_table(member):
                source = sources.open_source(actor, source, is_complete=False)
        count = member.count or (
            source.quantity if source.plan.loaded_source is None else source.row_count(None)
        )
        # A table has no rows if its parents have no children.
        row_count = min(count, limits.PREVIEW_ROWS)
        if member.count is not None:
            row_count = (
                _possible_rows(actor, replace(member, count=row_count), table_specs, seed)[0] or row_count
            )
        requested = GenerateInput(seed=seed, now=_now(spec, body)).model_copy(update={"count": row_count})
        with errors_at_table(member):
            recipe = external_values.build_recipe(
                actor, source, requested, fetch=fetch, anchored=requested.now is None
            )
            warnings += external_values.placeholder_warnings(source, recipe)
            fitting_rows, records = generate.limit_preview_rows(actor, recipe, recipe.count, records)
            recipe = replace(recipe, count=fitting_rows)
            warnings += generate.truncation_warnings(recipe, requested)
            rows = recipe.open().read(remaining_bytes)
        remaining_bytes -= len(rows)
        samples.append(TableSample(member, rows, count))
        capacity = generate.capacity_warnings(replace(recipe, source=replace(source, quantity=count)))
        warnings += [{**item, "path": f"templates[{member.index}].{item['path']}"} for item in capacity]
    return Preview(samples, seed, warnings)


def sample(
    actor: Actor, spec: Mapping[str, Any], table_specs: Sequence[TableSpec], member: TableSpec, count: int
) -> list[dict[str, Any]]:
    """Return the first rows of one table of a dataset, at most `count`; not counted toward the quota. Values from
    outside are those that are stored. Errors: validation_error, those of connections."""
    source = _compile_source(member, table_specs)
    with errors_at_table(member):
        source_spec = source.plan.spec.source
        if (
            source_spec is not None and source_spec.file is not None
        ):  # a file of the workspace is read without an explicit fetch
            source = sources.open_source(actor, source, is_complete=False)
        rows = member.count or (
            source.quantity if source.plan.loaded_source is None else source.row_count(None)
        )
        requested = GenerateInput(seed=spec["seed"], now=_now(spec, DatasetPreviewInput()))
        requested = requested.model_copy(update={"count": min(rows, count)})
        recipe = external_values.build_recipe(
            actor, source, requested, fetch=False, anchored=requested.now is None
        )
        fitting_rows, _ = generate.limit_preview_rows(actor, recipe, recipe.count)
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
    table_specs = read_table_specs(version.spec, version.pins["templates"])
    fields = datasets.fields_of({item.template_id: item.version for item in table_specs})
    edges = relations.edges_among(relations.find_edges(fields), list(fields))
    position = {
        template_id: index
        for index, template_id in enumerate(relations.sort_tables(list(fields), edges).template_ids)
    }
    counts: dict[str, tuple[int, str]] = {}
    for member in sorted(table_specs, key=lambda item: position[item.template_id]):
        limited = [
            replace(item, count=counts.get(item.template_id, (item.count, ""))[0]) for item in table_specs
        ]
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
    actor: Actor | None, member: TableSpec, members: Sequence[TableSpec], seed: str
) -> tuple[int, str]:
    """Return how many rows a table can have, up to the requested number, and why not more. Errors: validation_error,
    those of connections."""
    with processor_time.table_budget():
        one_row = GenerateInput(count=1, seed=seed)
        recipe = external_values.build_recipe(actor, _compile_source(member, members), one_row, fetch=False)
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
    table_specs: Sequence[TableSpec]
    recipes: Sequence[Recipe]
    keys: KeyColumns
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
        return file_type(self.format).extension

    @property
    def file_name(self) -> str:
        """The name of a download: the dataset's name, without characters that file systems do not support."""
        return f"{generation_rows.file_stem(self.name)}.{self.extension}"

    def pins(self) -> dict[str, Any]:
        """Return the pins to store, with which the same bytes can be generated again."""
        tables = [
            {
                **recipe.pins.to_json(),
                "place": member.index,
                "name": member.name,
                "count": member.count,
                "rows": recipe.count,
                **({"note": note} if (note := self.notes.get(member.name)) else {}),
            }
            for member, recipe in zip(self.table_specs, self.recipes, strict=True)
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
        output = _BundleStream(self)
        output.generate_first_block()
        return output

    def create_writer(self) -> MultiTableFile:
        """Return the writers of the file. May raise `SpecError`."""
        kind = file_type(self.format)
        titles = [member.name for member in self.table_specs]  # a workbook names its sheets itself
        if self.format.name == "sql":
            titles = _distinct_names([generation_rows.slug(name) for name in titles])
        elif self.format.name != "xlsx":
            titles = _distinct_names([generation_rows.file_stem(name) for name in titles])
        tables = [
            FileTable(title, recipe.bound.schema, recipe.options)
            for title, recipe in zip(titles, self.recipes, strict=True)
        ]
        if kind is SqlScript:
            return SqlScript(tables, self.keys)
        return WorkbookFile(tables) if kind is WorkbookFile else ZipArchive(self.format, tables)


class _BundleStream(Stream):
    """The bytes of a bundle."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        super().__init__()

    def _generate(self) -> Generator[Piece]:
        file = self._bundle.create_writer()
        if head := file.start():
            yield head
        for recipe, writer in zip(self._bundle.recipes, file.tables, strict=True):
            yield from self._encode_rows(recipe, writer)
        if tail := file.finish():
            yield tail


def file_type(kind: type[Format]) -> type[MultiTableFile]:
    """Write several tables of a format into one file."""
    if kind.name == "sql":
        return SqlScript
    return WorkbookFile if kind.name == "xlsx" else ZipArchive


def content_type(kind: type[Format]) -> str:
    """Return the Content-Type of such a file."""
    media = file_type(kind).media_type
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


def build_bundle(
    name: str,
    version: tuple[str, int],
    table_specs: Sequence[TableSpec],
    seed: str,
    now: datetime | None,
    body: DatasetExportInput,
    actor_or_pins: Actor | Sequence[Pins],
    skipped: dict[str, ApiError] | None = None,
) -> Bundle:
    """Return the tables of a dataset version (id, number), sorted. `actor_or_pins` is the actor, or the pins of an
    earlier attempt, by table; then the tables are sorted already. With `skipped`, tables whose rows cannot be generated
    are left out and added to it by their names.

    A table with fewer possible rows than requested gets as many as are possible, with a note, and its children refer to
    those.

    Errors: validation_error, with paths such as `templates[1].fields[0]`.
    """
    fields = datasets.fields_of({item.template_id: item.version for item in table_specs})
    edges = relations.edges_among(relations.find_edges(fields), list(fields))
    if isinstance(actor_or_pins, Actor):
        position = {
            template_id: index
            for index, template_id in enumerate(relations.sort_tables(list(fields), edges).template_ids)
        }
        table_specs = sorted(table_specs, key=lambda item: position[item.template_id])
    table_specs = list(table_specs)
    included, recipes, notes = [], [], {}
    for index, member in enumerate(table_specs):
        try:
            try:
                recipe = _build_recipe(
                    member,
                    table_specs,
                    seed,
                    now,
                    body,
                    actor_or_pins if isinstance(actor_or_pins, Actor) else actor_or_pins[index],
                )
            except ApiError as error:
                if not isinstance(actor_or_pins, Actor) or not _is_only_excess(error):
                    raise
                count, notes[member.name] = _possible_rows(actor_or_pins, member, table_specs, seed)
                if not count:
                    raise
                table_specs[index] = member = replace(member, count=count)
                recipe = _build_recipe(member, table_specs, seed, now, body, actor_or_pins)
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
    remaining = relations.edges_among(edges, [item.template_id for item in included])
    return Bundle(
        name, *version, seed, now, included, recipes, _relation_keys(included, fields, remaining), notes
    )


def _build_recipe(
    member: TableSpec,
    members: Sequence[TableSpec],
    seed: str,
    now: datetime | None,
    body: DatasetExportInput,
    actor_or_pins: Actor | Pins,
) -> Recipe:
    """Return the recipe of one table of a bundle. Errors: validation_error, those of connections."""
    source = _compile_source(member, members)
    with errors_at_table(member):
        source = (
            sources.open_source(actor_or_pins, source, for_worker=True)
            if isinstance(actor_or_pins, Actor)
            else external_values.with_pinned_answers(source, actor_or_pins)
        )
    count = member.count or (source.quantity if source.plan.loaded_source is None else source.row_count(None))
    requested = body.of_table(count).model_copy(update={"seed": seed, "now": now})
    with errors_at_table(member):
        if isinstance(actor_or_pins, Actor):
            return external_values.build_recipe(
                actor_or_pins, source, requested, for_worker=True, anchored=now is None
            )
        return generation_rows.build_recipe(
            source, requested, current_time=clock.now(), pins=actor_or_pins, anchored=now is None
        )


def bundle_of_version(
    actor: Actor,
    spec: Mapping[str, Any],
    version: tuple[str, int],
    table_specs: Sequence[TableSpec],
    body: DatasetExportInput,
    skipped: dict[str, ApiError] | None = None,
) -> Bundle:
    """Return the rows of an export of a dataset version. `skipped` and errors as in `bundle`, and those of
    connections."""
    return build_bundle(
        spec["name"], version, table_specs, body.seed or spec["seed"], _now(spec, body), body, actor, skipped
    )


def bundle_from_pins(stored: Mapping[str, Any], body: Mapping[str, Any], kind: str) -> Bundle:
    """Return the bundle of stored pins: the same bytes, even if the dataset or its templates have changed since."""
    requested = DatasetExportInput.model_validate_json(orjson.dumps({**body, "format": kind}))
    tables = stored["tables"]
    found = [
        TableSpec(table["place"], table["template_id"], table["version"], table["name"], table["count"])
        for table in tables
    ]
    pins = [_stored_pins(table) for table in tables]
    now = timestamps.parse(stored["now"]) if stored["now"] else None
    version = (stored["dataset_id"], stored["version"])
    return build_bundle(stored["name"], version, found, stored["seed"], now, requested, pins)


def _stored_pins(table: Mapping[str, Any]) -> Pins:
    """Return the pins of one stored table."""
    return Pins.from_json({key: value for key, value in table.items() if key in Pins.__dataclass_fields__})


def _relation_keys(
    table_specs: Sequence[TableSpec], fields: relations.Templates, edges: Sequence[relations.Edge]
) -> KeyColumns:
    """Return the keys of the tables, for formats that support them: references to unique fields."""
    position = {member.template_id: at for at, member in enumerate(table_specs)}
    stored = {item: dict(relations.walk(fields[item])) for item in fields}
    unique_references = [
        edge
        for edge in edges
        if (field := stored[edge.parent_template_id].get(edge.parent_field))
        and relations.identifies_rows(field)
    ]
    primary = [
        relations.find_primary_key(
            fields[member.template_id],
            [e.parent_field for e in unique_references if e.parent_template_id == member.template_id],
        )
        for member in table_specs
    ]
    foreign = [
        TableReference(
            position[e.child_template_id], e.child_field, position[e.parent_template_id], e.parent_field
        )
        for e in unique_references
    ]
    return KeyColumns(primary, foreign)


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
