"""Turn a request into a push that can be sent: validate rows, tables and columns, and report all errors together.

For pushes over HTTP, errors in the requests are found before the push is accepted: a request template may refer to
fields that the rows do not have, and put values into headers that are not valid there. A cell depends only on its row
number, so the columns used in headers are generated for every row of the push.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, ParamSpec

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import clock, ids, limits, quotas
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.connections.models import Connection
from webapp.connectors.base import Capabilities
from webapp.connectors.http.channel import Channel
from webapp.connectors.http.request_template import (
    UNFIT_CHARACTERS,
    UNFIT_IN_HEADERS,
    RequestTemplate,
    has_field,
    value_in_header,
)
from webapp.datasets.schemas import DatasetExportInput
from webapp.datasets.services import datasets, rows
from webapp.engine import ENGINE, processor_time
from webapp.engine.budget import MemoryBudgetError
from webapp.engine.placeholders import Placeholder, parse
from webapp.errors import ApiError, ErrorCollector, Fault, did_you_mean, validation_error
from webapp.extensions import allow_writes, db, set_read_only
from webapp.generation.services import external_values, generate, row_makers
from webapp.generation.services import rows as generation_rows
from webapp.generation.services.pins import Pins
from webapp.generation.services.row_makers import RowGenerator, SubmittedRows, TemplateRows
from webapp.generation.services.rows import Recipe
from webapp.pushes.schemas import DatasetPushInput, ExportInput, PushInput, SendingInput, TableInput
from webapp.pushes.services import planning, targets, value_checks
from webapp.pushes.services.mapping import RequestedMapping
from webapp.pushes.services.planning import RequestedTable, TablePlan
from webapp.pushes.services.rows import HIDDEN, TableRows
from webapp.pushes.services.targets import Catalogue, Destination, PathCatalogue
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services import relations
from webapp.row_templates.services.compiled_plans import CompiledTemplate
from webapp.row_templates.services.relations import Edge
from webapp.sources.services import sources

_ENCODING_HINT: Final = (
    "Set header_encoding of the request template to percent or rfc8187, or use another field."
)
_MESSAGE_VALUE_CHARS: Final = 60  # chosen: of a value in a message


class NoControl:
    """The send control of requests that are composed and not sent."""

    def raise_if_stopped(self) -> None:
        """Never stop."""

    def wait(self, seconds: float) -> None:
        """Not called, because nothing is sent."""


def add_request_faults(destination: Destination, tables: Sequence[TablePlan]) -> None:
    """Add the faults of the requests that tables of a push would send to those of the tables. Errors: those of
    connections."""
    if not destination.can.by_row or not destination.has_valid_settings or not tables:
        return
    with targets.open_channel(destination) as channel:
        for table_index, table in enumerate(tables):
            table.faults += request_faults(
                channel, table.rows(table_index), table.request.path, can_generate_rows=not table.faults
            )


def request_faults(
    channel: Channel, rows: TableRows, path: str = "", *, can_generate_rows: bool = True
) -> list[Fault]:
    """Return the errors in the requests of one table. `path` is a prefix for the paths of errors. If the table is not
    `can_generate_rows`, its rows cannot be generated, and checks that need them are skipped."""
    template = channel.create_sender(rows.write_spec(channel), NoControl()).template
    if template is None:
        return []
    if not can_generate_rows:
        return list(
            _unknown_fields(template, rows.columns, lambda name: name.partition(".")[0] in rows.columns, path)
        )
    row = rows.batch(
        np.arange(rows.offset, rows.offset + min(1, rows.count), dtype=np.uint64),
        value_checks.PlaceholderKeys(),
    )
    faults = list(_unknown_fields(template, rows.columns, lambda name: has_field(row, name), path))
    if not faults and template.header_encoding == "none":
        faults = list(_header_faults(template, rows, row.schema, path))
    return faults


def _unknown_fields(
    template: RequestTemplate, names: Sequence[str], known: Callable[[str], bool], path: str
) -> Iterator[Fault]:
    """Yield a fault for each field that the request reads and the rows do not have."""
    for location, name in template.field_locations():
        if not known(name):
            text = f'The request uses "{name[:100]}", but the rows have no such field.'
            hint = (
                did_you_mean(name, names)
                or f"Available fields: {', '.join(names[: limits.MAPPING_FIELDS_NAMED])}."
            )
            yield Fault(f"{path}request_template.{location}", "unknown_field", text, hint)


# --- Values in headers ------------------------------------------------------------------------------------------


def _header_faults(
    template: RequestTemplate, rows: TableRows, schema: pa.Schema, path: str
) -> Iterator[Fault]:
    """Yield a fault for each header, with the first row whose value is not valid in it."""
    placeholders: dict[str, list[Placeholder]] = {}
    for name, text in template.headers.items():
        holes = [hole for hole in parse(text).placeholders if not _is_ascii(hole, rows, schema)]
        generated_key = next(
            (hole.name for hole in holes if _placeholder_column(hole, rows) in rows.from_parent), None
        )
        if generated_key is not None:
            message = f"The header {name} uses {generated_key}, a key that the target creates while the rows are sent."
            yield _header_fault(path, name, f"{message} Its characters cannot be checked in advance.")
        elif holes:
            placeholders[name] = holes
    if placeholders and rows.count > limits.HTTP_HEADER_ROWS:
        for name, holes in placeholders.items():
            message = f"The header {name} uses {holes[0].name}, whose values cannot be checked in {rows.count:,} rows."
            yield _header_fault(
                path, name, f"{message} At most {limits.HTTP_HEADER_ROWS:,} rows can be checked."
            )
        return
    for first, batch in _blocks(
        rows, {_placeholder_column(hole, rows) for holes in placeholders.values() for hole in holes}
    ):
        for name in list(placeholders):
            found = _first_unfit(batch, template.headers[name], placeholders[name])
            if found is not None:
                position, field, value = found
                displayed = HIDDEN if _field_column(field, rows) in rows.sensitive else _quoted(value)
                message = (
                    f"The header {name} cannot contain the value of {field} in row {first + position:,}: "
                    f"{displayed}."
                )
                reason = "The value contains line breaks or other control characters."
                if any(ch > "\xff" for ch in value):
                    reason = "The value contains characters outside Latin-1."
                yield _header_fault(path, name, f"{message} {reason}")
                del placeholders[name]
        if not placeholders:
            return


def _header_fault(path: str, header: str, text: str) -> Fault:
    return Fault(f"{path}request_template.headers.{header}", "invalid_header_value", text, _ENCODING_HINT)


def _placeholder_column(hole: Placeholder, rows: TableRows) -> str:
    return _field_column(hole.name, rows)


def _field_column(name: str, rows: TableRows) -> str:
    """Return the column that contains a field."""
    return name if name in rows.columns else name.partition(".")[0]


def _is_ascii(hole: Placeholder, rows: TableRows, schema: pa.Schema) -> bool:
    """Return whether all values of a placeholder consist of digits and ASCII signs: numbers, dates, times, true and
    false."""
    dtype = schema.field(_placeholder_column(hole, rows)).type
    if hole.filters or rows.spec.get("bad") or _placeholder_column(hole, rows) in rows.from_parent:
        return False
    return bool(
        pa.types.is_integer(dtype)
        or pa.types.is_floating(dtype)
        or pa.types.is_decimal(dtype)
        or pa.types.is_boolean(dtype)
        or pa.types.is_temporal(dtype)
    )


def _blocks(rows: TableRows, columns: set[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the columns of all rows in blocks, each with the number of its first row, from 1."""
    at, step = 0, limits.BLOCK_ROWS
    names = [name for name in rows.columns if name in columns]
    while names and at < rows.count:
        block_rows = np.arange(rows.offset + at, rows.offset + min(at + step, rows.count), dtype=np.uint64)
        try:
            batch = rows.batch(block_rows, value_checks.PlaceholderKeys(), names)
        except MemoryBudgetError:
            if block_rows.size < 2:
                raise
            step = max(1, block_rows.size // limits.BLOCK_STEP)
            continue
        yield at + 1, batch
        at += block_rows.size


def _first_unfit(
    batch: pa.RecordBatch, header: str, holes: Sequence[Placeholder]
) -> tuple[int, str, str] | None:
    """Return the first row whose value is not valid in a header: its position, the field and the value."""
    begins = header.lstrip(" \t").startswith("{{")  # only what the header begins with must not be white space
    found = []
    for at, hole in enumerate(holes):
        texts = pc.utf8_trim(value_in_header(batch, hole), " \t")
        pattern = UNFIT_IN_HEADERS if begins and at == 0 else UNFIT_CHARACTERS
        position = pc.index(pc.match_substring_regex(texts, pattern), pa.scalar(True)).as_py()
        if position >= 0:
            found.append((position, hole.name, texts[position].as_py()))
    return min(found, default=None)


def _quoted(value: str) -> str:
    """Return a value for use in a message: in quotation marks, with control characters escaped."""
    cut = value if len(value) <= _MESSAGE_VALUE_CHARS else f"{value[:_MESSAGE_VALUE_CHARS]}…"
    return f'"{"".join(ch if ch.isprintable() else repr(ch)[1:-1] for ch in cut)}"'


# --- Preparation --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class PreparedPush:
    """A push that is planned and not saved. `push_columns` are columns of its row; `audit_object` and `audit_details`
    are used in the audit entry."""

    push_id: str
    destination: Destination
    tables: list[TablePlan]
    pins: dict[str, Any]
    body: SendingInput
    target: str
    push_columns: dict[str, Any]
    audit_object: tuple[str, str]
    audit_details: dict[str, Any] = field(default_factory=dict)
    uploaded_rows: tuple[str, pa.Table] | None = None
    """Rows that came with the request, and the storage's key for them."""
    skipped: list[dict[str, Any]] = field(default_factory=list)
    """Tables of a dataset that are left out, with the reason: `{name, code, message, hint}`."""

    @property
    def total(self) -> int:
        """Rows of all tables."""
        return sum(table.spec["count"] for table in self.tables)

    @property
    def nested_record_count(self) -> int:
        """Objects in arrays of all tables, which are spent like rows."""
        return sum(
            table.rows(table_index).count_nested_records() for table_index, table in enumerate(self.tables)
        )

    @property
    def largest_table_count(self) -> int:
        """Rows of the largest table."""
        return max(int(table.spec["count"]) for table in self.tables)

    @property
    def connection(self) -> Connection:
        """The connection that its rows go through."""
        return self.destination.connection

    @property
    def can(self) -> Capabilities:
        """The capabilities of the target."""
        return self.destination.can

    @property
    def targets(self) -> list[str]:
        """The names of the tables in the target."""
        return [table.spec["target"] for table in self.tables]

    def faults(self) -> list[Fault]:
        """The errors of the push."""
        return [fault for table in self.tables for fault in table.faults]

    def check(self) -> None:
        """Error: validation_error with every fault."""
        found = self.faults()
        if found:
            raise validation_error(found)


P = ParamSpec("P")


def _read_only(prepare: Callable[P, PreparedPush]) -> Callable[P, PreparedPush]:
    """Run `prepare` in a read-only transaction: it queries the target, which can take long and must not block
    writers."""

    @functools.wraps(prepare)
    def run(*args: P.args, **kwargs: P.kwargs) -> PreparedPush:
        db.session.remove()
        set_read_only()
        try:
            prepared = prepare(*args, **kwargs)
            # The destination is used after this session has ended; fetching external values has started a new one.
            connection = prepared.destination.connection = db.session.merge(prepared.connection)
            db.session.refresh(connection)
            return prepared
        finally:
            db.session.remove()
            allow_writes()

    return run


# --- Of a template ----------------------------------------------------------------------------------------------


@_read_only
def prepare_template(
    actor: Actor, template_id: str, body: PushInput, *, keep: bool = True, path: str | None = None
) -> PreparedPush:
    """Prepare a push of a template's newest version. `keep`: store fetched external values for a worker; `path`: the
    key that names the template in the body, if the URL does not.

    Errors: not_found, forbidden, row_limit_exceeded, read_only_connection, those of connections; validation_error for
    errors outside of the mapping, which then also contains those of the mapping. Otherwise errors of the mapping are in
    `PreparedPush.faults`.
    """
    gathered, template = ErrorCollector(), None
    with gathered.check(path or ""):
        template = tenancy.get(actor, Template, template_id, "push")
    if template is None and path is None:
        gathered.raise_all()
    destination = targets.resolve_destination(actor, body, gathered)
    if template is None:
        gathered.raise_all()
        raise tenancy.not_found("template", template_id)
    template_ref = generate.TemplateRef(template.id, template.version, template.project_id, template.team_id)
    source = _compile_source(template_ref, body, gathered)
    if not gathered:
        with gathered.check():
            source = sources.open_source(actor, source, for_worker=keep)
    count = source.row_count(body.count)
    with gathered.check("count"):
        quotas.check_rows(actor, count)
    recipe = _recipe(actor, source, body, count, gathered, keep)
    maker, requested = (
        TemplateRows(recipe.bound),
        RequestedMapping(body.mapping, body.computed, body.mode, body.key_columns),
    )
    if destination is None:
        gathered.raise_all(planning.field_faults(maker, requested))
    assert destination is not None
    prepared = PreparedPush(
        ids.new("psh"),
        destination,
        [],
        recipe.pins.to_json(),
        body,
        "",
        {
            "project_id": template_ref.project_id,
            "team_id": template_ref.team_id,
            "template_id": template_ref.id,
            "template_version": template_ref.version,
        },
        ("template", template_ref.id),
        {"version": template_ref.version, "seed": recipe.pins.seed, "offset": body.offset},
    )
    table_options = {
        "maker": maker, "count": count, "offset": body.offset, "template_id": template_ref.id,
        "version": template_ref.version,
    }  # fmt: skip
    _plan_single_table(actor, prepared, body, source.name, table_options, gathered)
    own = [(template_ref.id, template_ref.version)]
    edges = [edge for edge in _edges(own) if edge.is_self_reference]
    if not prepared.faults():
        planning.link_tables(prepared.tables, edges, edges, prepared.can)
    return _complete(prepared, gathered)


def _complete(prepared: PreparedPush, gathered: ErrorCollector) -> PreparedPush:
    """Check the requests of a push. Errors: all that were gathered, with the faults of the mapping."""
    with gathered.check():
        add_request_faults(prepared.destination, prepared.tables)
    if gathered:
        gathered.raise_all(prepared.faults())
    return prepared


def _compile_source(
    template_ref: generate.TemplateRef, body: PushInput, gathered: ErrorCollector
) -> CompiledTemplate:
    """Return the compiled template, without the requested locale and related rows if these have faults."""
    with gathered.check():
        return generate.saved_source(template_ref, body.locale, row_counts=body.rows)
    with gathered.check():
        return generate.saved_source(template_ref, None)
    raise gathered.combined_error() or ApiError("internal_error")


def _recipe(
    actor: Actor, source: CompiledTemplate, body: PushInput, count: int, gathered: ErrorCollector, keep: bool
) -> Recipe:
    """Return the recipe of the rows. After an error, no external values are fetched, and the recipe is only good enough
    to check the mapping."""
    options = GenerateInput(
        count=count, seed=body.seed, overrides=body.overrides, offset=body.offset, locale=body.locale, now=body.now,
        rows=body.rows,
    )  # fmt: skip
    fetch = not gathered
    with gathered.check():
        return external_values.build_recipe(actor, source, options, fetch=fetch, for_worker=keep and fetch)
    with gathered.check():
        return external_values.build_recipe(
            actor, source, GenerateInput(count=1, seed=body.seed, rows=body.rows), fetch=False
        )
    raise gathered.combined_error() or ApiError("internal_error")


def _plan_single_table(
    actor: Actor,
    prepared: PreparedPush,
    body: TableInput,
    name: str,
    table_options: Mapping[str, Any],
    gathered: ErrorCollector,
) -> None:
    requested = RequestedMapping(body.mapping, body.computed, body.mode, body.key_columns)
    target = body.target or prepared.destination.operation
    with gathered.check():
        catalogue = targets.catalogue_of(actor, prepared.destination)
        prepared.tables = [
            _plan_table(catalogue, prepared, body, requested, target, name, "target", dict(table_options), 0)
        ]
    if not prepared.tables:
        gathered.raise_all(planning.field_faults(table_options["maker"], requested))
    prepared.target = prepared.tables[0].spec["target"]


def _plan_table(
    catalogue: Catalogue | PathCatalogue,
    prepared: PreparedPush,
    body: SendingInput,
    requested: RequestedMapping,
    target: str | None,
    name: str,
    path: str,
    table_options: dict[str, Any],
    table_index: int,
) -> TablePlan:
    """Map one table to the columns of the target, and refresh the metadata if something is missing there. Error:
    validation_error for a missing table that is not to be created."""
    create = body.create_table and prepared.can.create_table
    if create:
        catalogue.inspect_tables([target] if target else targets.possible_table_names(name))
    for _ in range(2):
        entity = catalogue.entity(target) if target else catalogue.find_by_name(name)
        if entity is None and not create:
            raise validation_error([catalogue.missing_table_fault(path, target or name)])
        where = entity.name if entity else target or generation_rows.slug(name)
        requested_table = RequestedTable(name, where, mapping=requested, entity=entity, **table_options)
        planned = planning.plan_table(requested_table, prepared.can, prepared.push_id, table_index)
        if entity is None or not planned.faults or not catalogue.refresh():
            break
    return planned


def _edges(versions: Sequence[tuple[str, int]]) -> list[Edge]:
    fields = datasets.fields_of(dict(versions))
    return relations.edges_among(relations.find_edges(fields), list(fields))


# --- Of a dataset -----------------------------------------------------------------------------------------------


@_read_only
def prepare_dataset(actor: Actor, dataset_id: str, body: DatasetPushInput) -> PreparedPush:
    """A push of all tables of a dataset's newest version, parents first. Errors as of `prepare_template`, for any
    table."""
    gathered = ErrorCollector()
    dataset = datasets.get(actor, dataset_id, "push")
    version = datasets.version_of(dataset)
    datasets.require_templates(actor, version.spec, "push")
    destination = targets.resolve_destination(actor, body, gathered)
    members = rows.read_table_specs(version.spec, version.pins["templates"])
    gathered.add(_unknown_tables(body, [member.name for member in members]))
    if all(body.targets.get(member.name, member.name) is None for member in members):
        gathered.add(
            [Fault("targets", "nothing_mapped", "All tables are left out. Keep at least one table.")]
        )
    if destination is None:
        gathered.raise_all()
    assert destination is not None
    options = DatasetExportInput(seed=body.seed, now=body.now, format="json")
    skipped: dict[str, ApiError] | None = {} if body.skip_faulty_tables else None
    bundle = rows.bundle_of_version(
        actor, version.spec, (dataset.id, version.number), members, options, skipped
    )
    prepared = PreparedPush(
        ids.new("psh"),
        destination,
        [],
        bundle.pins(),
        body,
        dataset.name,
        {
            "project_id": dataset.project_id,
            "team_id": dataset.team_id,
            "dataset_id": dataset.id,
            "dataset_version": version.number,
        },
        ("dataset", dataset.id),
        {"version": version.number, "seed": bundle.seed, "tables": len(members)},
    )
    with gathered.check("count"):
        quotas.check_rows(actor, max(recipe.count for recipe in bundle.recipes))
    _plan_dataset_tables(actor, prepared, body, bundle, gathered)
    edges = _edges([(member.template_id, member.version) for member in members])
    if skipped is not None and not gathered:
        _skip_faulty_tables(prepared, edges, skipped, {member.template_id: member.name for member in members})
    elif not gathered and not prepared.faults():
        broken = planning.sort_tables(prepared.tables, edges)
        checks = targets.ForeignKeyChecks(prepared.connection)
        planning.link_tables(prepared.tables, edges, broken, prepared.can, checks)
    return _complete(prepared, gathered)


def _skip_faulty_tables(
    prepared: PreparedPush, edges: Sequence[Edge], skipped: Mapping[str, ApiError], names: Mapping[str, str]
) -> None:
    """Leave out the tables that cannot be generated or planned, and those whose rows need a row of such a table.

    A reference to a table that is left out becomes null if its column is nullable. Error: validation_error if no table
    remains.
    """
    checks = targets.ForeignKeyChecks(prepared.connection)
    reasons = {
        name: _skip_reason(error.details.get("fields") or (), error) for name, error in skipped.items()
    }
    reasons |= {item["name"]: item for item in prepared.skipped}
    while True:
        for table in prepared.tables:
            if table.faults:
                reasons[table.request.name] = _skip_reason([fault.as_dict() for fault in table.faults])
        reasons |= planning.tables_without_parents(
            [table for table in prepared.tables if table.request.name not in reasons], edges, names, reasons
        )
        prepared.tables = [table for table in prepared.tables if table.request.name not in reasons]
        if not prepared.tables:
            reported = list(reasons.items())[: limits.MAX_FAULTS]
            raise validation_error(
                [
                    Fault(f"templates.{name}", item["code"], item["message"], item["hint"])
                    for name, item in reported
                ]
            )
        before = [planning.links_of(table) for table in prepared.tables]
        remaining_edges = relations.edges_among(
            edges, [table.request.template_id or "" for table in prepared.tables]
        )
        broken = planning.sort_tables(prepared.tables, remaining_edges)
        planning.link_tables(prepared.tables, remaining_edges, broken, prepared.can, checks)
        _check_first_rows(prepared.tables)
        if not any(table.faults for table in prepared.tables):
            break
        for table, links in zip(prepared.tables, before, strict=True):
            planning.restore_links(table, links)
    prepared.skipped = [{**reasons[name], "name": name} for name in names.values() if name in reasons]


def _skip_reason(faults: Sequence[Mapping[str, Any]], error: ApiError | None = None) -> dict[str, Any]:
    """Return why a table is left out: its first error, or the error of the whole request."""
    if faults:
        first = faults[0]
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return {"code": first["code"], "message": f"{first['message']}{more}", "hint": first.get("hint", "")}
    assert error is not None
    return {"code": error.code, "message": error.message, "hint": error.details.get("hint", "")}


def _check_first_rows(tables: Sequence[TablePlan]) -> None:
    """Generate the first row of each table; what cannot be generated is a fault of the table."""
    for table_index, table in enumerate(tables):
        rows = table.rows(table_index)
        first = np.arange(rows.offset, rows.offset + min(1, rows.count), dtype=np.uint64)
        try:
            with processor_time.table_budget():
                rows.batch(first, value_checks.PlaceholderKeys())
        except ApiError as error:
            found = [Fault(**fault) for fault in error.details.get("fields", ())]
            table.faults += found or [Fault("", error.code, error.message)]


def _plan_dataset_tables(
    actor: Actor,
    prepared: PreparedPush,
    body: DatasetPushInput,
    bundle: rows.Bundle,
    gathered: ErrorCollector,
) -> None:
    catalogue: Catalogue | PathCatalogue | None = None
    with gathered.check():
        found = targets.catalogue_of(actor, prepared.destination)
        if body.create_table and prepared.can.create_table:
            names = [
                item.name for item in bundle.table_specs if body.targets.get(item.name, item.name) is not None
            ]
            spellings = [
                [target] if (target := body.targets.get(name)) else targets.possible_table_names(name)
                for name in names
            ]
            found.inspect_tables(name for names in spellings for name in names)
        catalogue = found
    for index, (member, recipe) in enumerate(zip(bundle.table_specs, bundle.recipes, strict=True)):
        name = member.name
        if name in body.targets and body.targets[name] is None:
            continue
        requested = RequestedMapping(
            body.mappings.get(name, {}),
            body.computed.get(name, {}),
            body.mode,
            body.key_columns.get(name, ()),
            f"mappings.{name}",
            f"computed.{name}",
        )
        table_options = {
            "maker": TemplateRows(recipe.bound),
            "count": recipe.count,
            "template_id": member.template_id,
            "version": member.version,
            "recipe": index,
            "path": f"{name}.",
        }
        planned = None
        if catalogue is not None and body.skip_faulty_tables:
            try:
                planned = _plan_table(
                    catalogue, prepared, body, requested, body.targets.get(name), name, f"targets.{name}",
                    table_options,
                    len(prepared.tables),
                )  # fmt: skip
            except ApiError as error:
                if error.code != "validation_error":
                    raise
                prepared.skipped.append(
                    {"name": name, **_skip_reason(error.details.get("fields") or (), error)}
                )
                continue
        elif catalogue is not None:
            with gathered.check():
                planned = _plan_table(
                    catalogue, prepared, body, requested, body.targets.get(name), name, f"targets.{name}",
                    table_options,
                    len(prepared.tables),
                )  # fmt: skip
        if planned is None:
            gathered.add(planning.field_faults(table_options["maker"], requested))
        else:
            if note := bundle.notes.get(name):
                planned.spec["note"] = note
            prepared.tables.append(planned)


def _unknown_tables(body: DatasetPushInput, known: Sequence[str]) -> list[Fault]:
    requested: dict[str, Mapping[str, Any]] = {
        "targets": body.targets,
        "mappings": body.mappings,
        "computed": body.computed,
        "key_columns": body.key_columns,
    }
    return [
        Fault(
            f"{key}.{name}",
            "unknown_table",
            f'The dataset has no table "{name}".',
            did_you_mean(name, known) or f"Tables of the dataset: {', '.join(known)}.",
        )
        for key, item in requested.items()
        for name in item
        if name not in known
    ]


# --- Of rows in the request -----------------------------------------------------------------------------------


@_read_only
def prepare_rows(actor: Actor, body: ExportInput) -> PreparedPush:
    """A push of rows that came with the request. They are stored when the push is saved.

    Errors as of `prepare_template`.
    """
    assert body.rows is not None
    require_scope(actor, "push")
    gathered = ErrorCollector()
    destination = targets.resolve_destination(actor, body, gathered)
    with gathered.check("rows"):
        quotas.check_rows(actor, len(body.rows))
    table = row_makers.table_of_rows(body.rows)
    push_id, now = ids.new("psh"), clock.now().replace(microsecond=0)
    pins = Pins(seed=push_id, now=now, vocabulary="", engine=ENGINE)
    maker: RowGenerator = SubmittedRows(table, pins.seed, pins.now)
    if destination is None:
        requested = RequestedMapping(body.mapping, body.computed, body.mode, body.key_columns)
        gathered.raise_all(planning.field_faults(maker, requested))
    assert destination is not None
    prepared = PreparedPush(
        push_id,
        destination,
        [],
        pins.to_json(),
        body,
        "",
        tenancy.current_scope(actor),
        ("push", push_id),
        {"given": True},
    )
    key = f"pushes/{actor.workspace_id}/{push_id}/rows.arrow"
    name = body.target or "rows"
    _plan_single_table(
        actor, prepared, body, name, {"maker": maker, "count": len(body.rows), "uploaded_key": key}, gathered
    )
    prepared.push_columns.pop("workspace_id")
    prepared.uploaded_rows = (key, table)
    return _complete(prepared, gathered)
