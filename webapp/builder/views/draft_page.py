"""The builder's page and its parts: a draft as a whole page, or as fragments after a change.

First the parts (other templates and relations, the source of the rows, the columns of the grid), then the page.

The source is a form (generated, a file, a table or a query) with the upload of a file for it. The builder shows it as a
card next to the fields, and the page of masked copies as its first step. The pages show only the column names of a
source, and query a target for them only after the user has requested it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

import flask
import orjson
from flask import Response, render_template, request, url_for
from pydantic import ValidationError

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.builder import forms, services
from webapp.builder.forms import (
    TABS,
    DraftField,
    FieldForm,
    assign_faults,
    draft_fields,
    fault_text,
    is_same_field,
)
from webapp.builder.models import TemplateDraft
from webapp.builder.services import DraftSample
from webapp.connections.services import connections, inspection
from webapp.connectors import KINDS
from webapp.engine.formats import FORMATS
from webapp.engine.invalid_data.settings import Invalid
from webapp.engine.relations.related_plans import SELF
from webapp.engine.source_data import SourceSpec
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import find
from webapp.errors import ApiError, Fault, validation_error
from webapp.files import names
from webapp.files import services as files_services
from webapp.files.models import WorkspaceFile
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import DraftInput
from webapp.row_templates.services import compilation, related_templates, relations, templates
from webapp.row_templates.services.relations import DescribedRelation, FieldGroup
from webapp.sources.services import files, sources
from webapp.web import snippets
from webapp.web.forms.from_model import bind_form, form_class
from webapp.web.inputs import parse
from webapp.web.row_tables import cell

FieldOrForm = FieldForm | DraftField
Choice = tuple[str, str]
"""Value and text of an option of a select."""


class ConnectionTables:
    """Metadata of connections, loaded on demand. `reads_target`: load metadata that has never been read from the target
    now."""

    def __init__(self, actor: Actor, reads_target: bool = False) -> None:
        self._actor, self.reads_target = actor, reads_target
        self._columns_cache: dict[str, Mapping[str, list[str]] | None] = {}

    @cached_property
    def _database_connections(self) -> dict[str, Choice]:
        """Name and type of the project's connections to databases by id, in the order of the names."""
        page = connections.listing(self._actor, limit=limits.PAGE_LIMIT_MAX)
        found = sorted(
            (connection for connection in page.items if connection.type in KINDS),
            key=lambda connection: connection.name.casefold(),
        )
        return {connection.id: (connection.name, connection.type) for connection in found}

    def connections(self, needs: str) -> list[Choice]:
        """List connections that can be queried; ``needs`` is an attribute of `Capabilities`, or empty."""
        supported_kinds = {name for name, kind in KINDS.items() if not needs or getattr(kind.can, needs)}
        return [
            (key, _connection_text(name, kind))
            for key, (name, kind) in self._database_connections.items()
            if kind in supported_kinds
        ]

    def connection(self, connection_id: str) -> str:
        """Return the name of a connection in a select."""
        if connection_id in self._database_connections:
            return _connection_text(*self._database_connections[connection_id])
        return f"{connection_id} (not found)"

    def has_metadata(self, connection_id: str) -> bool:
        """Return whether the tables of a connection are known."""
        return self._columns_of(connection_id) is not None

    def tables(self, connection_id: str, text: str = "") -> list[str]:
        """Return the tables of a connection whose names contain a text; empty if they are not known."""
        search = text.strip().casefold()
        return [name for name in self._columns_of(connection_id) or () if search in name.casefold()]

    def columns(self, connection_id: str, table: str) -> list[str]:
        """Return the columns of a table; empty if they are not known."""
        return (self._columns_of(connection_id) or {}).get(table, [])

    def _columns_of(self, connection_id: str) -> Mapping[str, list[str]] | None:
        if connection_id in self._columns_cache:
            return self._columns_cache[connection_id]
        columns = None
        if connection_id:
            # If it was deleted or its target does not respond, the user types the name.
            with suppress(ApiError):
                found = connections.get(self._actor, connection_id)
                if found.metadata_key is not None or self.reads_target:
                    entities = inspection.metadata(self._actor, found).entities
                    columns = {entity.name: [part.name for part in entity.fields] for entity in entities}
        self._columns_cache[connection_id] = columns
        return columns


def _connection_text(name: str, kind: str) -> str:
    return f"{name} ({KINDS[kind].title})"


GROUP_COLORS: Final = 6  # colours of groups; a seventh group has the first one's again


class PageData:
    """Data for the templates of the builder page, loaded on demand while they are rendered. `reads_target`: see
    `ConnectionTables`."""

    def __init__(
        self, actor: Actor, draft: Mapping[str, Any], template_id: str = "", *, reads_target: bool = False
    ) -> None:
        self._actor, self._draft, self.template_id = actor, draft, template_id
        self.tables = ConnectionTables(actor, reads_target)

    @cached_property
    def _described(self) -> relations.DraftRelations:
        before: Sequence[Mapping[str, Any]] = ()
        if self.template_id:
            try:
                before = templates.show(templates.get(self._actor, self.template_id))["fields"]
            except ApiError:
                return relations.NO_RELATIONS
        return relations.describe_draft(self._actor, self._draft, self.template_id, before)

    def relation(self, row: FieldOrForm) -> DescribedRelation | None:
        """Return the description of a field's relation."""
        return self._described.relations.get(row.id)

    def group(self, row: FieldOrForm) -> FieldGroup | None:
        """Return the group of a field, if it has several fields or a custom name."""
        found = self._described.groups.get(row.id)
        if found is None:
            return FieldGroup(row.group, "", (row.name,)) if row.group else None
        return found if found.color_number or row.group.rpartition("_")[0] not in ("", found.kind) else None

    def group_color(self, shared: FieldGroup) -> int:
        """Return the colour of its group, from 1; 0 for none."""
        return (shared.color_number - 1) % GROUP_COLORS + 1 if shared.color_number else 0

    def groups(self, row: FieldOrForm) -> list[Choice]:
        """List the groups that a field can join, and a new group."""
        kind = row.kind.group_kind if row.kind else None
        if kind is None:
            return []
        found = {group.name: group.members for group in self._described.groups.values() if group.kind == kind}
        candidate, number = kind, 1
        while candidate in found:
            number += 1
            candidate = f"{kind}_{number}"
        return [
            *((name, ", ".join(members)) for name, members in found.items()),
            (candidate, "a new group"),
        ]

    @property
    def unique_labels(self) -> list[str]:
        """Labels of fields that are unique in combination."""
        found = [item.get("unique") for item in _walk(self._draft["fields"])]
        return list(dict.fromkeys(label for label in found if isinstance(label, str)))

    @property
    def names(self) -> list[str]:
        """Names of the draft's fields that formulas can read."""
        found = [str(item.get("name", "")) for item in self._draft["fields"]]
        return [name for name in found if name.isidentifier()]

    @property
    def sourced(self) -> bool:
        """Whether the draft reads its rows from real data."""
        return bool(self._draft.get("source"))

    def sibling_names(self, row: FieldOrForm) -> list[str]:
        """Return the names of the other fields on a row's level."""
        level = _level_of(self._draft["fields"], row.id) or []
        found = [
            str(item.get("name", ""))
            for item in level
            if isinstance(item, Mapping) and item.get("id") != row.id
        ]
        return [name for name in found if name]

    # Other templates

    @cached_property
    def _templates(self) -> dict[str, str]:
        return {
            template_id: name
            for template_id, name in relations.template_names(self._actor).items()
            if template_id != self.template_id
        }

    @cached_property
    def _related_names(self) -> dict[str, tuple[str, list[str]]]:
        return relations.names_of(
            self._actor, [item for _, item in related_templates.find_references(self._draft["fields"])]
        )

    @cached_property
    def _children(self) -> set[str]:
        return relations.children_of(self.template_id, list(self._templates)) if self.template_id else set()

    def template_choices(self, role: str) -> list[Choice]:
        """Return the templates to choose from; for `child`, those that are children by cardinality come first."""
        if role != "child":
            return [(SELF, "This template"), *self._templates.items()]
        fitting = [(key, name) for key, name in self._templates.items() if key in self._children]
        others = [(key, name) for key, name in self._templates.items() if key not in self._children]
        return [*fitting, *((item, f"{name} (no cardinality for this template)") for item, name in others)]

    def template_name(self, template_id: str) -> str:
        """Return the name of a template in a select."""
        if template_id in (SELF, self.template_id):
            return "This template"
        if template_id in self._related_names:
            return self._related_names[template_id][0]
        return f"{template_id} (not found)"

    def field_choices(self, template_id: str) -> list[Choice]:
        """Return the fields of a template to choose from."""
        if template_id in (SELF, self.template_id):
            names = [str(item.get("name", "")) for item in self._draft["fields"]]
        else:
            names = self._related_names.get(template_id, ("", []))[1]
        return [(name, name) for name in names if name]

    # Connections

    def pick(self, field: Any, row: FieldOrForm) -> InspectorSelect:
        """Return the choices of an option that references a template, a connection, or a part of one."""
        kind = field.pick["kind"]
        of = str(row.options_value(field.pick.get("of", "")) or "")
        place = str(row.options_value(field.pick.get("in", "")) or "")
        name_of = {"template": self.template_name, "connection": self.tables.connection}.get(kind, str)
        typed = False
        if kind == "table" and of:
            typed = not self.tables.has_metadata(of) or len(self.tables.tables(of)) > limits.SELECT_TABLES
        elif kind == "column" and of:
            typed = not self.tables.columns(place, of)
        empty = field.pick.get("empty", "choose")
        if kind in ("table", "column") and not of:
            empty = "table first" if kind == "column" else "connection first"
        return InspectorSelect(
            choices=self._choices_for(field.pick, of, place)
            if not typed and (of or "of" not in field.pick)
            else [],
            named=name_of(field.data) if field.data else "",
            empty=empty,
            reloads=kind in ("template", "connection", "table"),
            typed=typed,
            many=typed and kind == "table" and self.tables.has_metadata(of),
        )

    def _choices_for(self, pick: Mapping[str, Any], of: str, place: str) -> list[Choice]:
        match pick["kind"]:
            case "template":
                return self.template_choices(pick["role"])
            case "field":
                return self.field_choices(of)
            case "connection":
                return self.tables.connections(pick["needs"])
            case "table":
                return _as_choices(self.tables.tables(of))
            case _:
                return _as_choices(self.tables.columns(place, of))

    def remove_unknown_names(self, field_id: str) -> None:
        """Remove names from a field's options that do not exist: fields of the template that it references, and tables
        and columns of its connection, if these are known."""
        for item in _walk(self._draft["fields"]):
            if item.get("id") != field_id:
                continue
            options = item["options"]
            kind = find(str(item.get("type", "")))
            picks = form_class(kind.Options).picks if kind else {}
            for name, pick in picks.items():
                of, place = (str(options.get(pick.get(key), "")) for key in ("of", "in"))
                if pick["kind"] not in ("field", "table", "column") or (
                    pick["kind"] != "field" and not self.tables.has_metadata(place or of)
                ):
                    continue
                if options.get(name) not in dict(self._choices_for(pick, of, place)):
                    options.pop(name, None)


@dataclass(frozen=True, slots=True)
class InspectorSelect:
    """A select of the inspector: its choices, how what is chosen is called, what its empty choice says, and whether the
    inspector is drawn again when it changes. `typed`: there is nothing to choose from, it is a box to type in; `many`:
    one that searches."""

    choices: list[Choice]
    named: str
    empty: str
    reloads: bool
    typed: bool
    many: bool


def _as_choices(names: Sequence[str]) -> list[Choice]:
    return [(name, name) for name in names]


def _walk(fields: Any) -> Iterator[Mapping[str, Any]]:
    for item in fields if isinstance(fields, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("options", {}), Mapping):
            yield {"options": {}, **item}
            yield from _walk(item.get("options", {}).get("fields"))


def _level_of(fields: Any, field_id: str) -> list[Any] | None:
    """Return the list of fields that contains the field with this id."""
    level = fields if isinstance(fields, list) else []
    if any(isinstance(item, Mapping) and item.get("id") == field_id for item in level):
        return level
    inner = (item["options"].get("fields") for item in _walk(level))
    return next((found for item in inner if (found := _level_of(item, field_id)) is not None), None)


# --- Source of the rows -------------------------------------------------------------------------------------

_FORMAT_NAMES: Final = "CSV, TSV, JSON, NDJSON, XLSX or Parquet, detected by the file extension."


def save_upload(actor: Actor, request: flask.Request) -> WorkspaceFile:
    """Save the uploaded file of a form. If a file with the same name and content exists, it is used. If the content
    differs, the upload gets the next unused name (`customers (2).csv`), so that templates keep their source unchanged.

    Errors: validation_error if there is no file or it has no rows, payload_too_large, those of `upload`.
    """
    uploaded = next((storage for storage in request.files.getlist("file") if storage.filename), None)
    if uploaded is None:
        raise validation_error(
            [
                Fault(
                    "file",
                    "missing",
                    "The form does not contain a file.",
                    "Choose a file, or drop it on the page.",
                )
            ]
        )
    name = (uploaded.filename or "").replace("\\", "/").rpartition("/")[2]
    if files.file_format(name) is None:
        text = f'The name of "{name}" does not have a known file extension.'
        raise validation_error([Fault("file", "not_readable", text, f"Rows are read from {_FORMAT_NAMES}")])
    digest = hashlib.sha256()
    uploaded.stream.seek(0)
    while piece := uploaded.stream.read(limits.STORAGE_CHUNK_BYTES):
        digest.update(piece)
    uploaded.stream.seek(0)
    sha256 = digest.hexdigest()
    stem, dot, extension = name.rpartition(".")
    for number in range(1, limits.MAX_NAME_ATTEMPTS + 1):
        candidate = names.normalize(name if number == 1 else f"{stem} ({number}){dot}{extension}")
        present: WorkspaceFile | None = None
        try:
            present = files_services.find(actor, candidate)
        except ApiError as error:
            if error.code != "not_found":
                raise
        if present is not None and present.sha256 == sha256:
            return present
        if present is None:
            return files_services.upload(
                actor, candidate, uploaded.stream, content_type=uploaded.mimetype, check=_reject_existing
            )[0]
    text = f'There are {limits.MAX_NAME_ATTEMPTS} files with names like "{name}" already.'
    raise ApiError("conflict", text, {"hint": "Rename yours."})


def _reject_existing(file: WorkspaceFile | None) -> None:
    """Raise `conflict` if another file with the name was stored in the meantime."""
    if file is not None:
        raise ApiError("conflict", "A file with this name was just stored. Try again.")


SOURCE_KINDS: Final = (
    ("", "Generated"),
    ("file", "File"),
    ("table", "Database table"),
    ("query", "Query"),
)


@dataclass
class SourceCard:
    """Context of the template `templates/draft.html`. `submitted`: a source as sent, None without one.
    `reads_target`: databases may be read."""

    actor: Actor
    submitted: Mapping[str, Any] | None
    reads_target: bool = False
    default_kind: str = ""
    error: ApiError | None = None

    @property
    def chosen(self) -> str:
        """The selected kind of source."""
        return forms.source_kind(self.submitted) or self.default_kind

    def value(self, name: str) -> Any:
        """Return the value of a control of the form."""
        value = (self.submitted or {}).get(name)
        return "" if value is None else value

    @property
    def title(self) -> str:
        """The source in a few words; "" for none."""
        if not self.submitted:
            return ""
        if self.submitted.get("file"):
            return str(self.submitted["file"])
        connection = self.tables.connection(str(self.submitted.get("connection_id") or ""))
        return f"{self.submitted.get('table') or 'a query'}, {connection}"

    @cached_property
    def tables(self) -> ConnectionTables:
        """The connections and their tables."""
        return ConnectionTables(self.actor, self.reads_target)

    @property
    def connections(self) -> list[Choice]:
        """The connections that rows can be read from."""
        found = self.tables.connections("tables")
        selected = str(self.value("connection_id"))
        listed = [item for item, _ in found]
        return (
            [*found, (selected, self.tables.connection(selected))]
            if selected and selected not in listed
            else found
        )

    @cached_property
    def files(self) -> list[str]:
        """Files of the workspace with rows, newest first."""
        page = files_services.listing(self.actor, limit=limits.PAGE_LIMIT_MAX)
        return [item.name for item in page.items if files.file_format(item.name) is not None]

    @property
    def table_names(self) -> list[str]:
        """Return the tables of the selected connection, if they are known."""
        return self.tables.tables(str(self.value("connection_id")))[: limits.SELECT_TABLES]

    @cached_property
    def columns(self) -> list[str]:
        """Return the names of the source's columns; empty if they are not known."""
        if not self.submitted:
            return []
        try:
            spec = SourceSpec.model_validate(dict(self.submitted))
            if spec.table is not None:
                return self.tables.columns(spec.connection_id or "", spec.table)
            if spec.query is not None and not self.reads_target:
                return []
            names: list[str] = sources.sample(self.actor, spec, 1).column_names
            return names
        except ValidationError:  # incomplete input; the error is shown when the user saves
            return []
        except ApiError as error:
            self.error = error
            return []


# --- Columns of the grid ------------------------------------------------------------------------------------

# Category of types: family, which has a colour, and icon. Some types have an icon of their own.
_FAMILIES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "number": ("number", "hash"),
        "identity": ("key", "key"),
        "text": ("text", "text"),
        "choice": ("text", "enum"),
        "logic": ("logic", "fx"),
        "structure": ("logic", "code"),
        "external": ("logic", "plug"),
        "person": ("person", "user"),
        "contact": ("person", "mail"),
        "place": ("place", "pin"),
        "finance": ("finance", "card"),
        "government": ("person", "shield"),
        "company": ("finance", "building"),
        "internet": ("text", "globe"),
        "time": ("time", "calendar"),
        "misc": ("text", "text"),
    }
)
_ICONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "phone_number": "phone", "country": "globe", "country_code": "globe", "boolean": "bool", "time": "clock",
        "reference": "link", "product_name": "cart", "sku": "cart", "department_retail": "cart",
    }
)  # fmt: skip
_GROUP_LABELS: Final = {"person": ("One person", "person"), "place": ("One address", "place")}
_CHAR, _HEAD, _NARROWEST, _WIDEST = (
    7.2,
    62,
    76,
    280,
)  # pixels of a character, of the icon and status, of a column


def icon_of(kind: type[FieldType] | None) -> tuple[str, str]:
    """Return the family and the icon of a type."""
    if kind is None:
        return "text", "help"
    family, icon = _FAMILIES.get(kind.category, ("text", "text"))
    return family, _ICONS.get(kind.name, icon)


@dataclass(slots=True)
class FieldLine:
    """One field: its place, its state, its values."""

    place: DraftField
    family: str
    icon: str
    cells: Sequence[Mapping[str, Any]]
    width: int
    changed: bool
    faults: list[Fault]
    waiting: str
    group: str = ""
    group_id: str = ""
    group_family: str = ""
    relation: str = ""

    @property
    def statuses(self) -> list[tuple[str, str]]:
        """Icon and text of what is special about the field."""
        field = self.place.submitted
        found = [
            ("one", "Unique", bool(field.get("unique"))),
            ("shield", "Sensitive", bool(field.get("sensitive"))),
            ("eye-off", "Hidden from output", bool(field.get("hidden"))),
        ]
        return [(icon, text) for icon, text, applies in found if applies]

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers, which are aligned to the right."""
        return any(item["kind"] == "n" for item in self.cells)

    @property
    def sentences(self) -> list[str]:
        """Its errors."""
        return [fault_text(fault) for fault in self.faults]

    @property
    def summary(self) -> str:
        """Its options in a few words."""
        field = self.place.submitted
        found = [f"{key.replace('_', ' ')} {_shortened(value)}" for key, value in self.place.options.items()]
        if field.get("percent_blank"):
            found.append(f"{field['percent_blank']} % blank")
        return ", ".join(found)


def _shortened(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def build_lines(
    draft: Mapping[str, Any],
    sample: DraftSample,
    saved: Mapping[str, Any] | None,
    page_data: PageData | None,
    *,
    nested: bool = False,
) -> list[FieldLine]:
    """Return the fields of the first level, or with `nested` all fields, with their values. `saved` is the template as
    it is saved; None for a new one."""
    found = draft_fields(draft.get("fields"))
    assign_faults(found, sample.faults)
    before = {place.id: place.submitted for place in draft_fields(saved["fields"])} if saved else None
    inner: dict[str, list[Fault]] = {}
    for place in found:
        inner.setdefault(place.top.id, []).extend(place.faults)
    invalid_cells = {
        (place["row"], place["field"].partition(".")[0].partition("[")[0]): place for place in sample.bad
    }
    result = []
    for place in found:
        if place.parent is not None and not nested:
            continue
        faults = place.faults if nested else inner[place.id]
        hidden = place.top.id in sample.empty
        cells = (
            []
            if hidden
            else [_cell(row, number, place, invalid_cells) for number, row in enumerate(sample.rows, 1)]
        )
        family, icon = icon_of(place.kind)
        line = FieldLine(
            place=place,
            family=family,
            icon=icon,
            cells=cells,
            width=_column_width(place, cells),
            changed=before is not None and not is_same_field(place.submitted, before.get(place.id, {})),
            faults=faults,
            waiting=sample.waiting.get(place.top.id, ""),
        )
        shared = page_data.group(place) if page_data else None
        if shared is not None and shared.color_number:
            line.group_id = shared.name
            text, line.group_family = _GROUP_LABELS.get(shared.kind, (f"One {shared.kind}", "finance"))
            line.group = text if shared.name == shared.kind else shared.name.replace("_", " ").capitalize()
        relation = page_data.relation(place) if page_data else None
        line.relation = relation.text if relation else ""
        result.append(line)
    return result


def _cell(
    row: Mapping[str, Any], number: int, place: DraftField, invalid_cells: Mapping[Any, Any]
) -> dict[str, Any]:
    value: Any = row
    for name in place.names:
        value = value.get(name) if isinstance(value, Mapping) else None
    result: dict[str, Any] = cell(value)
    invalid = invalid_cells.get((number, place.name)) if place.parent is None else None
    if invalid is not None:
        original = cell(invalid["good"])
        result |= {"bad": invalid["kind"].replace("_", " "), "good": original["full"] or original["text"]}
    return result


def _column_width(place: DraftField, cells: Sequence[Mapping[str, Any]]) -> int:
    lengths = sorted(len(item["text"]) for item in cells)
    longest = lengths[max(0, len(lengths) * 9 // 10 - 1)] if lengths else 0
    head = max(len(place.name), len(place.label) * 0.85) * _CHAR + _HEAD
    return round(min(_WIDEST, max(_NARROWEST, head, longest * _CHAR + 24)))


def group_headers(columns: Sequence[FieldLine]) -> list[tuple[str, str, int]]:
    """Return the groups of neighbouring columns, such as one person: text, family, number of columns. Columns without a
    group, and groups of one column, have no text."""
    found: list[tuple[str, str, int]] = []
    for line in columns:
        last = found[-1] if found else None
        if line.group_id and last is not None and last[0] == line.group_id:
            found[-1] = (last[0], last[1], last[2] + 1)
        else:
            found.append((line.group_id, line.group_family, 1))
    names = {line.group_id: line.group for line in columns if line.group_id}
    return [(names.get(name, "") if span > 1 else "", family, span) for name, family, span in found]


# --- The page -----------------------------------------------------------------------------------------------

PAGE: Final = "templates/builder.html"
_WITHOUT_ROWS: Final = ("json", "versions", "api")
VIEWS: Final = ("grid", "list", *_WITHOUT_ROWS)
SETTINGS: Final = "settings"
"""The name of the inspector that shows the template's settings instead of a field."""
HINTS: Final = {
    "hidden": "Usable in formulas, hidden from output.",
    "locale": "Overrides the default locale, e.g. de_DE.",
    "invalid": "Share of cells with invalid data, e.g. 0.01. If no kind is selected, all kinds that apply are used.",
    "group": "Fields of one group share one person, place, company, card or row of another template. A field in the"
    " group row follows another column.",
    "unique_together": "Fields with the same label must be unique in combination.",
    "text_case": "Applied to the final text.",
    "formula": "Transforms the generated value, which is available as `this`.",
    "description": "Notes for your team.",
    "column": "The source column of this field. Default: the column with the field's name.",
    "masking": "How source values are masked. Also marks the field as sensitive.",
}


def parse_draft(body: Any) -> DraftInput:
    """Parse the input of a generate call from a draft."""
    return parse(DraftInput, body, strict=False)


@dataclass(slots=True)
class OpenDraft:
    """A draft as a page or a form shows it. Without `row` nothing was changed yet: the draft is the saved template, or
    the beginning of a new one, which the page then contains."""

    actor: Actor
    spec: dict[str, Any]
    template: Template | None = None
    row: TemplateDraft | None = None
    saved: dict[str, Any] | None = None
    faults: list[Fault] = field(default_factory=list)

    @property
    def template_id(self) -> str:
        """The id of the saved template; "" for a new one."""
        return self.template.id if self.template is not None else ""

    @property
    def loaded(self) -> int | None:
        """The version that the draft was started from."""
        if self.row is not None:
            return self.row.loaded_version
        return self.template.version if self.template is not None else None

    @property
    def start(self) -> str:
        """The beginning of a new template as JSON, until it is a draft on the server."""
        return "" if self.row is not None or self.template is not None else orjson.dumps(self.spec).decode()

    def address(self, **more: str) -> str:
        """Return the address of the page."""
        args: dict[str, Any] = {key: value for key, value in more.items() if value}
        if self.template is not None:
            return url_for("templates.show", template_id=self.template.id, **args)
        if self.row is not None:
            return url_for("builder.new", draft=self.row.id, **args)
        known: dict[str, Any] = {
            key: request.args[key] for key in ("names", "name", "starter") if request.args.get(key)
        }
        return url_for("builder.new", **known, **args)

    def link(self, place: DraftField, view: str) -> str:
        """Return the address of the page with a field in the inspector. Fields of a template that is not a draft yet
        get their keys when the page is rendered, so their names are used."""
        return self.address(view=view, field=place.name if self.start else place.key)


def open_draft(
    actor: Actor, template: Template | None, row: TemplateDraft | None, spec: dict[str, Any]
) -> OpenDraft:
    """Return a draft for a page; fields without an id get one. Error: validation_error for too many fields."""
    forms.check_size(spec)
    spec = {**spec, "fields": forms.with_ids(spec.get("fields"))}
    saved = templates.show(template) if template is not None else None
    return OpenDraft(actor, spec, template, row, saved)


def draft_of_template(actor: Actor, template: Template) -> OpenDraft:
    """Return the actor's draft of a saved template. A draft without changes gives way to a newer version."""
    row = services.find_draft(actor, template)
    if row is not None and row.loaded_version != template.version and not services.is_dirty(row):
        row = None
    return open_draft(
        actor, template, row, services.spec_of(row) if row is not None else services.submitted_spec(template)
    )


@dataclass(slots=True)
class ViewState:
    """What a page shows of a draft: which view, which rows, and which field is in the inspector."""

    view: str = ""
    seed: str = "sample"
    field: str = ""  # key of the field in the inspector, or `settings`
    tab: str = "values"
    offset: int = 0
    first: int | None = None  # number of the first column, if the page does not show all
    query: str = ""

    @staticmethod
    def from_request(values: Any) -> ViewState:
        """Read it from the parameters of a page, or from its form."""
        view, tab = values.get("view", ""), values.get("tab", "")
        numbers = {name: values.get(name, "") for name in ("offset", "first")}
        integers = {name: int(text) for name, text in numbers.items() if text.isdecimal() and len(text) < 16}
        return ViewState(
            view=view if view in VIEWS else "",
            seed=values.get("seed", "")[: limits.MAX_SEED_CHARS] or "sample",
            field=values.get("field", ""),
            tab=tab if tab in dict(TABS) else "values",
            offset=integers.get("offset", 0),
            first=integers.get("first"),
            query=values.get("q", ""),
        )


def page_context(
    draft: OpenDraft, state: ViewState, *, rows: bool = True, fetch: bool = False
) -> dict[str, Any]:
    """Return the context of the page's templates."""
    actor, spec = draft.actor, draft.spec
    page_data = PageData(actor, spec, draft.template_id)
    state.field = next(
        (item.key for item in draft_fields(spec["fields"]) if state.field == item.name), state.field
    )
    total = len(spec["fields"])
    if not state.view:
        state.view = "list" if total >= limits.BUILDER_LIST_FROM else "grid"
    if state.offset and not actor.can("generate"):
        state.offset = 0
    count = limits.BUILDER_ROWS if state.view == "grid" else 3
    quantity = spec.get("quantity")
    if isinstance(quantity, int) and 0 < quantity - state.offset < count:
        count = quantity - state.offset
    sample = (
        services.sample(
            actor,
            parse_draft,
            spec,
            draft.template_id,
            seed=state.seed,
            offset=state.offset,
            count=count,
            fetch=fetch,
        )
        if rows and total
        else DraftSample()
    )
    known = draft.saved if draft.template is not None else None
    all_lines = build_lines(spec, sample, known, page_data, nested=state.view == "list")
    place = next((line for line in all_lines if line.place.key == state.field), None)
    first, last = _visible_range(all_lines, state, place)
    faulty = [line for line in all_lines if line.faults]
    return {
        "data": draft.saved,
        "draft": spec,
        "at": draft,
        "shown": state,
        "state": services.describe_state(draft.row),
        "sample": sample,
        "lines": all_lines,
        "columns": all_lines[first:last] if state.view == "grid" else all_lines,
        "first": first,
        "last": last,
        "strips": group_headers(all_lines[first:last]),
        "most": max((len(line.cells) for line in all_lines), default=0)
        or (limits.BUILDER_ROWS if total else 0),
        "faulty": faulty,
        "head_faults": [fault for fault in sample.faults if not fault.path.startswith("fields[")],
        "around": page_data,
        "open_field": inspector_form(draft, state, sample),
        "tabs": TABS,
        "can_write": actor.can("write", draft.template.team_id if draft.template is not None else None),
        "can_generate": actor.can("generate"),
        "formats": FORMATS,
        "quantity": spec.get("quantity") or limits.BUILDER_QUANTITY,
        "hints": HINTS,
        "look": icon_of,
        "key_for": lambda field_id: forms.find_key(spec, field_id),
        **(_text_context(draft, state) if state.view in ("json", "api") else {}),
        **(settings_context(draft) if state.field == SETTINGS else {}),
    }


def _text_context(draft: OpenDraft, state: ViewState) -> dict[str, Any]:
    """Return the context of the views JSON and API."""
    if state.view == "json":
        return {"json_text": orjson.dumps(draft.spec, option=orjson.OPT_INDENT_2).decode()}
    return {"use": snippets.of_template(snippets.origin(), draft.template_id, draft.spec, state.seed)}


def _visible_range(lines: list[Any], state: ViewState, selected: Any) -> tuple[int, int]:
    """Return the index of the first visible column, and of the one after the last."""
    per_page = limits.BUILDER_COLUMNS
    if len(lines) <= per_page:
        return 0, len(lines)
    start = state.first if state.first is not None else lines.index(selected) if selected is not None else 0
    first = min(max(0, start // per_page * per_page), (len(lines) - 1) // per_page * per_page)
    return first, min(len(lines), first + per_page)


def inspector_form(draft: OpenDraft, state: ViewState, sample: DraftSample) -> FieldForm | None:
    """Return the form of the field in the inspector; None if there is none."""
    found = draft_fields(draft.spec["fields"])
    place = next((place for place in found if place.key == state.field), None)
    if place is None:
        return None
    assign_faults(found, sample.faults)
    return FieldForm(place, draft.spec["fields"])


def settings_context(draft: OpenDraft, card: SourceCard | None = None) -> dict[str, Any]:
    """Return the context of the template's settings: invalid data, the source, the locales."""
    invalid, source = (
        item if isinstance(item, dict) else None
        for item in (draft.spec.get("invalid"), draft.spec.get("source"))
    )
    return {
        "invalid": bind_form(Invalid, invalid, prefix=forms.INVALID_PREFIX),
        "source": card or SourceCard(draft.actor, source),
        "source_ways": SOURCE_KINDS,
        "locales": compilation.vocabulary().locales,
    }


def render_page(draft: OpenDraft, state: ViewState, *, status: int = 200, **more: Any) -> Response:
    """Render the whole page."""
    html = render_template(
        PAGE, **{**page_context(draft, state, rows=state.view not in _WITHOUT_ROWS), **more}
    )
    return Response(html, status, mimetype="text/html")


def render_fragments(
    draft: OpenDraft, state: ViewState, *, inspector: bool, status: int = 200, **more: Any
) -> Response:
    """Render what changes on the page after an edit: the table, the state, and with `inspector` the inspector."""
    values = page_context(draft, state, rows=state.view not in _WITHOUT_ROWS)
    html = render_template(
        "templates/changed.html", **{**values, "with_inspector": inspector, "oob": True, **more}
    )
    response = Response(html, status, mimetype="text/html")
    if draft.template is None and draft.row is not None:
        response.headers["HX-Replace-Url"] = draft.address(
            **({"view": state.view} if state.view != "grid" else {})
        )
    return response


def new_spec(fields: list[dict[str, Any]], name: str = "") -> dict[str, Any]:
    """Return the spec of a new template."""
    return {
        "name": name,
        "anchor": clock.to_text(clock.now().replace(microsecond=0)),
        "quantity": limits.BUILDER_QUANTITY,
        "fields": fields,
    }


def draft_of_form(actor: Actor, *, lock: bool = False, create: bool = False) -> OpenDraft:
    """Return the draft that a form of the page was sent for, with the values of its inputs. `create`: it becomes a
    draft on the server, if it is not one yet. Raises not_found, forbidden."""
    form = request.form
    template, row = None, None
    if form.get("template_id"):
        scope = "write" if create else "read"
        template = templates.get(actor, form["template_id"], scope)
        row = services.find_draft(actor, template, lock=lock)
        if (
            row is not None
            and form.get("loaded", "") != str(row.loaded_version)
            and not services.is_dirty(row)
        ):
            if lock or create:  # other requests only read, and a transaction that began so cannot write
                services.discard(row)
            row = None
        spec = (
            services.spec_of(row)
            if row is not None
            else services.submitted_spec(template, _parse_number(form.get("loaded")))
        )
    elif form.get("draft"):
        row = services.get(actor, form["draft"], lock=lock)
        if row.template_id is not None:
            template = templates.get(actor, row.template_id)
        spec = services.spec_of(row)
    else:
        spec = parse_start(form.get("start", ""))
    draft = open_draft(actor, template, row, spec)
    if create and draft.row is None:
        draft.row = services.create_draft(actor, draft.spec, template)
        if template is not None and (number := _parse_number(form.get("loaded"))) is not None:
            draft.row.loaded_version = number
    return draft


def _parse_number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 9 else None


def parse_start(text: str) -> dict[str, Any]:
    """Read the beginning of a new template from the page's form. Raises invalid_request."""
    try:
        found = orjson.loads(text) if text else new_spec([])
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("fields"), list):
        raise ApiError("invalid_request", "The form does not contain the template.")
    return {key: value for key, value in found.items() if key in templates.CHANGEABLE}
