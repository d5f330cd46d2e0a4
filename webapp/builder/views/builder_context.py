"""Context of the rows in the builder's form: other templates, groups, descriptions of relations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Final

from webapp import limits
from webapp.access.actors import Actor
from webapp.builder.forms.fields import FieldForm, Place
from webapp.connections.services import connections as connections_connections
from webapp.connections.services import inspection
from webapp.connectors import KINDS
from webapp.connectors.schema import Metadata
from webapp.engine.relations.related_plans import SELF
from webapp.engine.types.registry import find
from webapp.errors import ApiError
from webapp.row_templates.services import related_templates, relations, templates
from webapp.row_templates.services.relations import Shared, Told
from webapp.web.forms.from_model import form_class

Named = FieldForm | Place
Choice = tuple[str, str]
"""Value and text of an option of a select."""


class Tables:
    """Metadata of connections, loaded on demand. `asks`: load metadata that has never been read from the target now."""

    def __init__(self, actor: Actor, asks: bool = False) -> None:
        self._actor, self.asks = actor, asks
        self._known: dict[str, Mapping[str, list[str]] | None] = {}

    @cached_property
    def _listed(self) -> dict[str, Choice]:
        """Name and type of the project's connections to databases by id, in the order of the names."""
        page = connections_connections.listing(self._actor, limit=limits.PAGE_LIMIT_MAX)
        found = sorted((one for one in page.items if one.type in KINDS), key=lambda one: one.name.casefold())
        return {one.id: (one.name, one.type) for one in found}

    def connections(self, needs: str) -> list[Choice]:
        """List connections that can be queried; ``needs`` is an attribute of `Capabilities`, or empty."""
        fitting = {name for name, kind in KINDS.items() if not needs or getattr(kind.can, needs)}
        return [(one, _text(name, kind)) for one, (name, kind) in self._listed.items() if kind in fitting]

    def connection(self, connection_id: str) -> str:
        """A connection as a select calls it."""
        if connection_id in self._listed:
            return _text(*self._listed[connection_id])
        return f"{connection_id} (not found)"

    def known(self, connection_id: str) -> bool:
        """Return whether the tables of a connection are known."""
        return self._columns_of(connection_id) is not None

    def tables(self, connection_id: str, text: str = "") -> list[str]:
        """Return the tables of a connection whose names contain a text; empty if they are not known."""
        wanted = text.strip().casefold()
        return [name for name in self._columns_of(connection_id) or () if wanted in name.casefold()]

    def columns(self, connection_id: str, table: str) -> list[str]:
        """Return the columns of a table; empty if they are not known."""
        return (self._columns_of(connection_id) or {}).get(table, [])

    def _columns_of(self, connection_id: str) -> Mapping[str, list[str]] | None:
        if connection_id not in self._known:
            found = self._metadata(connection_id)
            self._known[connection_id] = (
                None
                if found is None
                else {one.name: [part.name for part in one.fields] for one in found.entities}
            )
        return self._known[connection_id]

    def _metadata(self, connection_id: str) -> Metadata | None:
        if not connection_id:
            return None
        try:
            found = connections_connections.get(self._actor, connection_id)
            if found.metadata_key is None and not self.asks:
                return None
            return inspection.metadata(self._actor, found)
        except ApiError:  # it is gone, or its target does not answer: the name is typed
            return None


def _text(name: str, kind: str) -> str:
    return f"{name} ({KINDS[kind].title})"


TONES: Final = 6  # colours of groups; a seventh group has the first one's again


class Around:
    """Data for the templates of the builder page, loaded on demand while they are rendered. `asks`: see `Tables`."""

    def __init__(self, actor: Actor, given: Mapping[str, Any], own: str = "", *, asks: bool = False) -> None:
        self._actor, self._given, self.own = actor, given, own
        self.tables = Tables(actor, asks)

    @cached_property
    def _look(self) -> relations.Look:
        before: Sequence[Mapping[str, Any]] = ()
        if self.own:
            try:
                before = templates.show(templates.get(self._actor, self.own))["fields"]
            except ApiError:
                return relations.NOTHING
        return relations.look(self._actor, self._given, self.own, before)

    def told(self, row: Named) -> Told | None:
        """The relation of a field in words."""
        return self._look.relations.get(row.id)

    def group(self, row: Named) -> Shared | None:
        """Return the group of a field, if it has several fields or a custom name."""
        found = self._look.groups.get(row.id)
        if found is None:
            return Shared(row.group, "", (row.name,)) if row.group else None
        return found if found.tone or row.group.rpartition("_")[0] not in ("", found.kind) else None

    def tone(self, shared: Shared) -> int:
        """Its colour, from 1; 0 for none."""
        return (shared.tone - 1) % TONES + 1 if shared.tone else 0

    def groups(self, row: Named) -> list[Choice]:
        """List the groups that a field can join, and a new group."""
        kind = row.kind.group_kind if row.kind else None
        if kind is None:
            return []
        found = {one.name: one.members for one in self._look.groups.values() if one.kind == kind}
        free = next(name for name in _numbered(kind) if name not in found)
        return [
            *((name, ", ".join(members)) for name, members in found.items()),
            (free, "a new group"),
        ]

    @property
    def words(self) -> list[str]:
        """Words that stand for fields which are unique together."""
        found = [one.get("unique") for one in _walk(self._given["fields"])]
        return list(dict.fromkeys(word for word in found if isinstance(word, str)))

    @property
    def names(self) -> list[str]:
        """Names of the draft's fields that formulas can read."""
        found = [str(one.get("name", "")) for one in self._given["fields"]]
        return [name for name in found if name.isidentifier()]

    @property
    def sourced(self) -> bool:
        """Whether the draft reads its rows from real data."""
        return bool(self._given.get("source"))

    def beside(self, row: Named) -> list[str]:
        """Names of the other fields of a row's level."""
        level = _level(self._given["fields"], row.id) or []
        found = [
            str(one.get("name", "")) for one in level if isinstance(one, Mapping) and one.get("id") != row.id
        ]
        return [name for name in found if name]

    # Other templates

    @cached_property
    def _templates(self) -> dict[str, str]:
        return {one: name for one, name in relations.choices(self._actor).items() if one != self.own}

    @cached_property
    def _reached(self) -> dict[str, tuple[str, list[str]]]:
        return relations.names_of(
            self._actor, [one for _, one in related_templates.reached(self._given["fields"])]
        )

    @cached_property
    def _children(self) -> set[str]:
        return relations.children_of(self.own, list(self._templates)) if self.own else set()

    def template_choices(self, role: str) -> list[Choice]:
        """Templates to pick from; for `child` those first that are children by cardinality."""
        if role != "child":
            return [(SELF, "This template"), *self._templates.items()]
        fitting = [(one, name) for one, name in self._templates.items() if one in self._children]
        others = [(one, name) for one, name in self._templates.items() if one not in self._children]
        return [*fitting, *((one, f"{name} (no cardinality to this)") for one, name in others)]

    def template_name(self, template_id: str) -> str:
        """A template as a select calls it."""
        if template_id in (SELF, self.own):
            return "This template"
        if template_id in self._reached:
            return self._reached[template_id][0]
        return f"{template_id} (not found)"

    def field_choices(self, template_id: str) -> list[Choice]:
        """The fields of a template to pick from."""
        if template_id in (SELF, self.own):
            names = [str(one.get("name", "")) for one in self._given["fields"]]
        else:
            names = self._reached.get(template_id, ("", []))[1]
        return [(name, name) for name in names if name]

    # Connections

    def pick(self, field: Any, row: Named) -> Pick:
        """The choices of an option that refers to a template, a connection, or a part of one."""
        kind = field.pick["kind"]
        of = str(row.options_value(field.pick.get("of", "")) or "")
        place = str(row.options_value(field.pick.get("in", "")) or "")
        named = {"template": self.template_name, "connection": self.tables.connection}.get(kind, str)
        typed = kind in ("table", "column") and bool(of) and not self._has_list(kind, of, place)
        empty = field.pick.get("empty", "choose")
        if kind in ("table", "column") and not of:
            empty = "table first" if kind == "column" else "connection first"
        return Pick(
            choices=self._offered(field.pick, of, place)
            if not typed and (of or "of" not in field.pick)
            else [],
            named=named(field.data) if field.data else "",
            empty=empty,
            again=kind in ("template", "connection", "table"),
            typed=typed,
            many=typed and kind == "table" and self.tables.known(of),
        )

    def _has_list(self, kind: str, of: str, place: str) -> bool:
        if kind == "table":
            return self.tables.known(of) and len(self.tables.tables(of)) <= limits.PICKED_TABLES
        return bool(self.tables.columns(place, of))

    def _offered(self, pick: Mapping[str, Any], of: str, place: str) -> list[Choice]:
        match pick["kind"]:
            case "template":
                return self.template_choices(pick["role"])
            case "field":
                return self.field_choices(of)
            case "connection":
                return self.tables.connections(pick["needs"])
            case "table":
                return _plain(self.tables.tables(of))
            case _:
                return _plain(self.tables.columns(place, of))

    def forget_strangers(self, field_id: str) -> None:
        """Takes out of a field's options the names of fields that the template it refers to does not have, and of
        tables and columns that its connection is known not to have."""
        for one in _walk(self._given["fields"]):
            if one.get("id") != field_id:
                continue
            options = one["options"]
            for name, pick in _picks(one).items():
                of, place = (str(options.get(pick.get(key), "")) for key in ("of", "in"))
                if pick["kind"] not in ("field", "table", "column") or (
                    pick["kind"] != "field" and not self.tables.known(place or of)
                ):
                    continue
                if options.get(name) not in dict(self._offered(pick, of, place)):
                    options.pop(name, None)


@dataclass(frozen=True, slots=True)
class Pick:
    """A select of the inspector: its choices, how what is chosen is called, what its empty choice says, and whether the
    inspector is drawn again when it changes. `typed`: there is nothing to choose from, it is a box to type in; `many`:
    one that searches."""

    choices: list[Choice]
    named: str
    empty: str
    again: bool
    typed: bool
    many: bool


def _plain(names: Sequence[str]) -> list[Choice]:
    return [(name, name) for name in names]


def _picks(field: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    kind = find(str(field.get("type", "")))
    return form_class(kind.Options).picks if kind else {}


def _walk(fields: Any) -> Iterator[Mapping[str, Any]]:
    for one in fields if isinstance(fields, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("options", {}), Mapping):
            yield {"options": {}, **one}
            yield from _walk(one.get("options", {}).get("fields"))


def _level(fields: Any, field_id: str) -> list[Any] | None:
    """Return the list of fields that contains the field with this id."""
    level = fields if isinstance(fields, list) else []
    if any(isinstance(one, Mapping) and one.get("id") == field_id for one in level):
        return level
    inner = (one["options"].get("fields") for one in _walk(level))
    return next((found for one in inner if (found := _level(one, field_id)) is not None), None)


def _numbered(kind: str) -> Iterator[str]:
    yield kind
    for number in count(2):
        yield f"{kind}_{number}"
