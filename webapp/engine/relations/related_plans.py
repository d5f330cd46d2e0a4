"""Templates that relate to each other: what a template that is being compiled knows of the others.

A relation reaches another template by its id, or the template itself by ``self``. Of the others only those fields are
compiled that something reads. How many rows each template has is known while a template is compiled: references
choose from them, and a child template with cardinality has as many rows as its parents have children.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from webapp import limits
from webapp.engine.relations.cardinality import ChildCountError, ChildCounts, TooManyRowsError

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.external_values import ExternalResponse
    from webapp.engine.spec import FieldSpec, TemplateSpec
    from webapp.engine.types.relations import Cardinality

SELF = "self"
"""The name by which a template's own fields refer to it."""
_LEVEL, _PATH = "#", "@"


@dataclass(frozen=True, slots=True)
class RelatedTemplate:
    """A template that relations may reach, as of the version that is pinned."""

    name: str
    spec: TemplateSpec
    rows: int
    """Rows it has by itself (its quantity), or was given."""
    vocabulary: Vocabulary
    has_fixed_rows: bool = False
    """Whether ``rows`` was given by a dataset or a request: a child template with cardinality then has exactly this
    number of rows."""
    anchor: datetime | None = None

    def field_names(self) -> list[str]:
        """The names of its fields."""
        return [field.name for field in self.spec.fields]


@dataclass(frozen=True, slots=True)
class TemplateLibrary:
    """The templates around the compiled one. ``own`` is its id, if it has one."""

    others: Mapping[str, RelatedTemplate] = field(default_factory=dict)
    own_id: str = ""
    rows: int = limits.DEFAULT_QUANTITY
    has_fixed_rows: bool = False
    responses: Mapping[str, ExternalResponse] = field(default_factory=dict)
    """External values by the keys of their requests; see ``external_values.py``."""


class RowCountError(ValueError):
    """An impossible number of rows; the message is for users."""


class RelatedPlans:
    """The rows and the owners of every template around the one that is compiled.

    Templates are called by their address: ``""`` is the one that is compiled, others have their ids.
    """

    def __init__(self, spec: TemplateSpec, vocabulary: Vocabulary, library: TemplateLibrary) -> None:
        own = RelatedTemplate(spec.name, spec, library.rows, vocabulary, library.has_fixed_rows)
        self._templates = {**library.others, "": own}
        self._own_id = library.own_id
        self._counts: dict[str, ChildCounts | None] = {}
        self._counting: list[str] = []
        self.nested_fields = 0
        """Fields of all templates that are nested in rows of others."""

    def address(self, template_id: str, here: str) -> str | None:
        """Return the location of ``template_id`` for a field of the template at ``here``; None if it is unknown."""
        if template_id == SELF:
            return here
        if template_id == self._own_id and self._own_id:
            return ""
        return template_id if template_id in self._templates else None

    def nesting_level(self, address: str) -> int:
        """Return how deep a template is nested in rows of other templates: 0 if it is not nested."""
        return int(address.partition(_LEVEL)[2].partition(_PATH)[0] or 0)

    def nested_address(self, address: str, level: int, outer: str, field: str) -> str:
        """Return the address of a template nested ``level`` deep in the rows of the one at ``outer``, in ``field``."""
        base = address.partition(_LEVEL)[0]
        nested = f"{base}{_LEVEL}{level}{_PATH}{outer.partition(_PATH)[2]}/{field}"
        self._templates[nested] = self._templates[base]
        self.nested_fields += len(self._templates[base].spec.fields)
        return nested

    def salt(self, address: str) -> str:
        """Return the salt of a template nested in another's rows, so that two such fields do not show the same values.
        It is empty if its rows are those of the template itself: it is a child, or
        it has children, which would see another parent."""
        base, _, suffix = address.partition(_LEVEL)
        parents = any(self.child_field(other, base) for other in self._templates if _LEVEL not in other)
        return "" if parents or self.parent_field(base) is not None else suffix.partition(_PATH)[2]

    def template(self, address: str) -> RelatedTemplate:
        """The template at ``address``."""
        return self._templates[address]

    def ids(self) -> list[str]:
        """The ids of all templates but the one that is compiled."""
        return [address for address in self._templates if address]

    def parent_field(self, address: str) -> tuple[FieldSpec, Cardinality] | None:
        """The field by which the template's rows are children of another's, and how many each parent has."""
        for spec, _, cardinality in self._parent_fields(address):
            return spec, cardinality
        return None

    def parent_fields(self, address: str) -> list[FieldSpec]:
        """Every field of the template that states a cardinality; more than one is a fault."""
        return [spec for spec, *_ in self._parent_fields(address)]

    def _parent_fields(self, address: str) -> list[tuple[FieldSpec, str, Cardinality]]:
        """The fields that state a cardinality, the templates that they name, and the cardinalities."""
        found = (
            (spec, spec.type.parent_and_cardinality(spec.options))
            for spec in self._templates[address].spec.fields
        )
        return [(spec, *stated) for spec, stated in found if stated is not None]

    def child_field(self, address: str, parent: str) -> FieldSpec | None:
        """The field by which the template's rows are children of those of the template at ``parent``."""
        for spec, template_id, _ in self._parent_fields(address):
            if self.address(template_id, address) == parent.partition(_LEVEL)[0]:
                return spec
        return None

    def row_count(self, address: str) -> int:
        """Rows of a template. Raises `RowCountError`."""
        counts = self.child_counts(address)
        return self._templates[address].rows if counts is None else counts.total

    def child_counts(self, address: str) -> ChildCounts | None:
        """Return the cardinality by which a template's rows are children; None if they are not. Raises
        `RowCountError`."""
        address = address.partition(_LEVEL)[0]
        if address in self._counts:
            return self._counts[address]
        owners = self._parent_fields(address)
        if not owners:
            self._counts[address] = None
            return None
        _, template_id, cardinality = owners[0]
        template = self._templates[address]
        parent = self.address(template_id, address)
        if parent is None:
            raise RowCountError(f'The parent template of "{template.name}" does not exist.')
        if parent == address or parent in self._counting:
            raise RowCountError(f'The number of rows of "{template.name}" depends on itself.')
        self._counting.append(address)
        try:
            parents = self.row_count(parent)
            made = ChildCounts(
                parents, cardinality.spread(), template.rows if template.has_fixed_rows else None
            )
        except ChildCountError as error:
            name = self._templates[parent].name
            text = f'{parents:,} rows of "{name}" must have {error.least:,} to {error.most:,} child rows'
            raise RowCountError(f'{text} of "{template.name}", not {template.rows:,}.') from None
        except TooManyRowsError:
            name = self._templates[parent].name
            text = f'{parents:,} rows of "{name}" have more child rows of "{template.name}"'
            raise RowCountError(f"{text} than are supported.") from None
        finally:
            self._counting.pop()
        self._counts[address] = made
        return made
