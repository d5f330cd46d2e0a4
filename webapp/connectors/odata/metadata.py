"""Read `$metadata` documents (XML of OData V2, EDM 1 to 3, and V4; JSON of V4), and convert entity sets to metadata.

The document of any version becomes the same model: types, navigation and entity sets. Annotations that are read: V4
vocabularies (Core, Common, Validation, Capabilities) and sap: attributes.

Sources: OData V2 "Conceptual Schema Definition File Format"; OData 4.01 CSDL XML; OData 4.01 CSDL JSON; "SAP
Annotations for OData 2.0".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final, Literal
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser
from pydantic import TypeAdapter

from webapp import limits
from webapp.connectors import metadata_documents
from webapp.connectors.base import ConnectorError
from webapp.connectors.schema import Column, ColumnType, Entity, Metadata, Relation

Version = Literal["v2", "v4"]
Terms = dict[str, Any]
"""Annotations by the last part of their term: `{"Label": "Order", "Computed": True}`."""

DEPTH: Final = 32  # maximum depth of base types; a longer chain is circular


@dataclass(slots=True)
class Property:
    """A property. `type` is a qualified name without Collection(), such as `Edm.String` or `Shop.Address`."""

    name: str
    type: str
    collection: bool = False
    nullable: bool = True
    max_length: int | None = None
    precision: int | None = None
    scale: int | None = None
    default: str | None = None
    terms: Terms = field(default_factory=dict)


@dataclass(slots=True)
class Navigation:
    """A navigation property. `pairs` are own and target property of its referential constraint."""

    name: str
    type: str
    collection: bool = False
    nullable: bool = True
    partner: str = ""
    contains: bool = False
    relationship: str = ""
    """For V2: the association's qualified name, and the role of the target."""
    role: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    terms: Terms = field(default_factory=dict)


@dataclass(slots=True)
class StructuredType:
    """An entity type or a complex type, without inherited members."""

    name: str
    entity: bool
    base: str = ""
    abstract: bool = False
    open: bool = False
    key: tuple[str, ...] = ()
    properties: dict[str, Property] = field(default_factory=dict)
    navigations: dict[str, Navigation] = field(default_factory=dict)
    terms: Terms = field(default_factory=dict)


@dataclass(slots=True)
class Enumeration:
    """An enumeration: names and values of its members."""

    name: str
    members: dict[str, int]
    flags: bool = False


@dataclass(slots=True)
class EntitySet:
    """An entity set. `bindings` are the entity sets that navigation properties lead to, by path."""

    name: str
    type: str
    bindings: dict[str, str] = field(default_factory=dict)
    terms: Terms = field(default_factory=dict)


@dataclass(slots=True)
class Service:
    """A service. Type names are qualified with their namespace, and aliases are resolved."""

    version: Version
    types: dict[str, StructuredType] = field(default_factory=dict)
    enums: dict[str, Enumeration] = field(default_factory=dict)
    definitions: dict[str, Property] = field(default_factory=dict)
    """Type definitions of V4: the Edm type with its facets."""
    sets: dict[str, EntitySet] = field(default_factory=dict)
    _flat: dict[str, StructuredType] = field(default_factory=dict)
    _derived: frozenset[str] | None = None
    _sets_of: dict[str, list[str]] | None = None

    def structured(self, name: str) -> StructuredType | None:
        """Return a type including everything that it inherits; None if the document does not define it."""
        if name not in self._flat:
            defined = self.types.get(name)
            if defined is None:
                return None
            chain = list(self.lineage(defined))
            flat = defined
            if len(chain) > 1:
                flat = StructuredType(
                    defined.name,
                    defined.entity,
                    defined.base,
                    defined.abstract,
                    any(item.open for item in chain),
                )
                for item in reversed(chain):
                    flat.key = item.key or flat.key
                    flat.properties |= item.properties
                    flat.navigations |= item.navigations
                    flat.terms |= item.terms
            self._flat[name] = flat
        return self._flat[name]

    def lineage(self, own: StructuredType) -> Iterator[StructuredType]:
        """Yield a type and its base types."""
        current: StructuredType | None = own
        for _ in range(DEPTH):
            if current is None:
                return
            yield current
            current = self.types.get(current.base) if current.base else None

    def has_derived(self, name: str) -> bool:
        """Return whether the type has derived types or a base type: a row must then declare its type."""
        if self._derived is None:
            bases = {type_.base for type_ in self.types.values() if type_.base}
            self._derived = frozenset(
                bases | {type_.name for type_ in self.types.values() if type_.base in self.types}
            )
        return name in self._derived

    def facets(self, property_: Property) -> Property:
        """Return a property with its type definition, if any, replaced by the underlying type."""
        definition = self.definitions.get(property_.type)
        if definition is None:
            return property_
        return Property(
            property_.name, definition.type, property_.collection, property_.nullable,
            definition.max_length if property_.max_length is None else property_.max_length,
            definition.precision if property_.precision is None else property_.precision,
            definition.scale if property_.scale is None else property_.scale,
            property_.default, definition.terms | property_.terms,
        )  # fmt: skip

    def set_of(self, source: EntitySet | None, navigation: Navigation) -> str:
        """Return the entity set of a navigation: the bound one, or the only one of its type; otherwise ""."""
        if source is not None and (bound := source.bindings.get(navigation.name)):
            return bound if bound in self.sets else ""
        if navigation.contains:
            return ""
        if self._sets_of is None:
            self._sets_of = {}
            for item in self.sets.values():
                self._sets_of.setdefault(item.type, []).append(item.name)
        names = self._sets_of.get(navigation.type, [])
        return names[0] if len(names) == 1 else ""

    def entity_type(self, name: str) -> StructuredType | None:
        """Return the type of an entity set's rows."""
        entity_set = self.sets.get(name)
        return self.structured(entity_set.type) if entity_set else None


def is_creatable(terms: Mapping[str, Any]) -> bool:
    """Return whether clients may send this. Computed, read-only and not creatable values are not sent."""
    if terms.get("Computed") or terms.get("creatable") is False:
        return False
    if str(terms.get("Permissions", "")).rpartition("/")[2] == "Read":
        return False
    return str(terms.get("FieldControl", "")).rpartition("/")[2] not in ("ReadOnly", "Hidden")


# --- Documents ----------------------------------------------------------------------------------------------

_V4: Final = "http://docs.oasis-open.org/odata/ns/edm"
_HINT: Final = (
    "Save the response of the service at $metadata, with Accept: application/xml, and upload that file."
)
_CHUNK_BYTES: Final = 65_536
_SERVICE: Final[TypeAdapter[Service]] = TypeAdapter(Service)


class _Builder(TreeBuilder):
    """Builds a tree of limited size and depth."""

    def __init__(self) -> None:
        super().__init__()
        self.count = self.depth = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        """Start an element."""
        self.count += 1
        self.depth += 1
        if self.count > limits.ODATA_DOCUMENT_ELEMENTS or self.depth > limits.MAX_JSON_DEPTH:
            raise _DocumentTooLarge
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        """End an element."""
        self.depth -= 1
        return super().end(tag)


class _DocumentTooLarge(Exception):
    """The document has more or deeper elements than allowed."""


def read(document: bytes) -> Service:
    """Read a `$metadata` document. Raises `ConnectorError` (reason `bad_document_error`), which names the position."""
    if len(document) > limits.ODATA_DOCUMENT_BYTES:
        limit_mb = limits.ODATA_DOCUMENT_BYTES // limits.MB
        raise bad_document_error(
            f"The document has {len(document) // limits.MB} MB; at most {limit_mb} MB are allowed."
        )
    if document[:1_000].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return _read_json(document.removeprefix(b"\xef\xbb\xbf"))
    parser = DefusedXMLParser(target=_Builder(), forbid_dtd=True)
    try:
        for start in range(0, len(document), _CHUNK_BYTES):
            parser.feed(document[start : start + _CHUNK_BYTES])
        root: Element = parser.close()
    except ParseError as error:
        line, column = error.position
        problem = str(error).partition(":")[0]
        raise bad_document_error(
            f"The document is not well-formed XML: {problem}", (line, column + 1)
        ) from None
    except DefusedXmlException:
        raise bad_document_error(
            "The document declares a DTD or entities, which are not allowed", _position(parser)
        ) from None
    except _DocumentTooLarge:
        raise bad_document_error(
            "The document has too many elements, or is nested too deeply", _position(parser)
        ) from None
    except (LookupError, ValueError):
        raise bad_document_error("The document's encoding is unknown", (1, 1)) from None
    if _local_name(root.tag) not in ("Edmx", "Schema"):
        raise bad_document_error(
            f"The document is XML, but its root is {_local_name(root.tag)[:60]}, not Edmx."
        )
    schemas = (
        [root]
        if _local_name(root.tag) == "Schema"
        else [element for element in root.iter() if _local_name(element.tag) == "Schema"]
    )
    if not schemas:
        raise bad_document_error("The document has no Schema.")
    v4 = any(schema.tag.startswith("{" + _V4) for schema in schemas) or root.get("Version", "").startswith(
        "4"
    )
    return (_V4Reader if v4 else _V2Reader)(root, schemas).service()


def read_safely(document: bytes) -> Service:
    """Read a `$metadata` document in a separate process, with limits on memory and time. Raises as `read`."""
    function = f"{__name__}:service_in_process"
    return _SERVICE.validate_json(
        metadata_documents.run_in_process(function, document, {}, limits.METADATA_CPU_SECONDS)
    )


def service_in_process(file: IO[bytes]) -> bytes | dict[str, Any]:
    """Run by `read_safely` in the separate process."""
    return metadata_documents.result_or_error(lambda: _SERVICE.dump_json(read(file.read())))


def bad_document_error(message: str, where: tuple[int, int] | None = None) -> ConnectorError:
    """Return the error for an invalid document. `where` is line and column, from 1."""
    position = f" (line {where[0]}, column {where[1]})" if where else ""
    details = {"line": where[0], "column": where[1]} if where else {}
    return ConnectorError(f"{message}{position}", reason="bad_document", hint=_HINT, details=details)


def _position(parser: Any) -> tuple[int, int]:
    expat = parser.parser
    return expat.CurrentLineNumber, expat.CurrentColumnNumber + 1


def _local_name(tag: str) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _integer(text: str | None) -> int | None:
    """Return an integer facet; None for Max, variable and invalid numbers."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


class _Reader:
    """Common parts of the readers for V2 and V4."""

    version: Any = "v4"
    nullable_words = ("false", "0")

    def __init__(self, root: Element, schemas: list[Element]) -> None:
        self.schemas = schemas
        self.aliases: dict[str, str] = {}
        for element in root.iter():
            tag = _local_name(element.tag)
            if tag in ("Include", "Using", "Schema") and element.get("Alias"):
                self.aliases[element.get("Alias", "")] = element.get("Namespace", "")
        self.result = Service(self.version)
        self.annotations: list[tuple[str, Element]] = []

    def service(self) -> Service:
        """Read all schemas."""
        containers: list[tuple[str, Element]] = []
        for schema in self.schemas:
            namespace = schema.get("Namespace", "")
            for element in schema:
                tag = _local_name(element.tag)
                name = f"{namespace}.{element.get('Name', '')}"
                if tag in ("EntityType", "ComplexType"):
                    self.result.types[name] = self._structured(element, name, tag == "EntityType")
                elif tag == "EnumType":
                    self.result.enums[name] = self._enumeration(element, name)
                elif tag == "TypeDefinition":
                    self.result.definitions[name] = self._property(
                        element, element.get("UnderlyingType", "Edm.String")
                    )
                elif tag == "Annotations":
                    self.annotations.append((element.get("Target", ""), element))
                elif tag == "EntityContainer":
                    containers.append((name, element))
                else:
                    self._read_other(tag, name, element)
        for name, element in containers:
            self._container(name, element)
        self._finish()
        self._apply_annotations({name for name, _ in containers})
        return self.result

    def _read_other(self, tag: str, name: str, element: Element) -> None:
        """Read an element that only one version has."""

    def _finish(self) -> None:
        """Finish after all elements have been read."""

    def qualified(self, name: str) -> str:
        """Return a qualified name with its alias resolved."""
        prefix, dot, local = name.rpartition(".")
        return f"{self.aliases.get(prefix, prefix)}{dot}{local}"

    def typed(self, text: str) -> tuple[str, bool]:
        """Return a type's qualified name, and whether it is a collection."""
        if text.startswith("Collection(") and text.endswith(")"):
            return self.qualified(text[11:-1]), True
        return self.qualified(text), False

    def _structured(self, element: Element, name: str, entity: bool) -> StructuredType:
        base = element.get("BaseType", "")
        result = StructuredType(
            name, entity, self.qualified(base) if base else "", element.get("Abstract") == "true",
            element.get("OpenType") == "true", terms=self._terms(element),
        )  # fmt: skip
        for item in element:
            tag = _local_name(item.tag)
            if tag == "Property":
                property_ = self._property(item, item.get("Type", "Edm.String"))
                result.properties[property_.name] = property_
            elif tag == "NavigationProperty":
                navigation = self._navigation(item)
                result.navigations[navigation.name] = navigation
            elif tag == "Key":
                result.key = tuple(part.get("Name", "") for part in item)
        return result

    def _property(self, element: Element, declared: str) -> Property:
        get = element.get
        name, is_collection = self.typed(declared)
        if get("CollectionKind", "None") != "None":
            is_collection = True
        return Property(
            get("Name", ""), name, is_collection, get("Nullable", "true") not in self.nullable_words,
            _integer(get("MaxLength")), _integer(get("Precision")), self._scale(get("Scale"), get("Precision")),
            get("DefaultValue"),
            self._terms(element),
        )  # fmt: skip

    def _terms(self, element: Element) -> dict[str, Any]:
        return terms_from_attributes(element.attrib) | (
            terms_from_children(element, self.aliases) if len(element) else {}
        )

    def _scale(self, text: str | None, precision: str | None) -> int | None:
        return _integer(text)

    def _navigation(self, element: Element) -> Navigation:
        raise NotImplementedError

    def _enumeration(self, element: Element, name: str) -> Enumeration:
        members: dict[str, int] = {}
        for item in element:
            if _local_name(item.tag) == "Member":
                value = item.get("Value", "")
                digits = value.removeprefix("-").isdecimal() and len(value) < 20
                members[item.get("Name", "")] = int(value) if digits else len(members)
        return Enumeration(name, members, element.get("IsFlags") == "true")

    def _container(self, name: str, element: Element) -> None:
        for item in element:
            if _local_name(item.tag) == "EntitySet":
                entity_set = EntitySet(
                    item.get("Name", ""), self.qualified(item.get("EntityType", "")), terms=self._terms(item)
                )
                for part in item:
                    if _local_name(part.tag) == "NavigationPropertyBinding":
                        path, target = part.get("Path", ""), part.get("Target", "")
                        before, _, last = path.rpartition("/")
                        entity_set.bindings[last if "." in before else path] = target.rpartition("/")[2]
                self.result.sets[entity_set.name] = entity_set

    def _apply_annotations(self, containers: set[str]) -> None:
        """Apply annotations that are separate from their targets."""
        for target, element in self.annotations:
            owner, _, path = target.partition("/")
            owner = self.qualified(owner)
            annotated: Any = None
            if owner in containers:
                annotated = self.result.sets.get(path)
            elif (kind := self.result.types.get(owner)) is not None:
                annotated = kind if not path else kind.properties.get(path) or kind.navigations.get(path)
            if annotated is None:
                continue
            for item in element:
                if _local_name(item.tag) == "Annotation" and (
                    term_name := supported_term(item.get("Term", ""), self.aliases)
                ):
                    annotated.terms[term_name] = annotation_value(item)


class _V4Reader(_Reader):
    """Reads CSDL XML 4.0 and 4.01."""

    def _scale(self, text: str | None, precision: str | None) -> int | None:
        """Return None for a variable scale, and 0 by default (CSDL, "Scale")."""
        return 0 if text is None and precision is not None else _integer(text)

    def _navigation(self, element: Element) -> Navigation:
        name, is_collection = self.typed(element.get("Type", ""))
        pairs = tuple(
            (item.get("Property", ""), item.get("ReferencedProperty", ""))
            for item in element
            if _local_name(item.tag) == "ReferentialConstraint"
        )
        return Navigation(
            element.get("Name", ""), name, is_collection, element.get("Nullable", "true") not in self.nullable_words,
            element.get("Partner", ""), element.get("ContainsTarget") == "true", pairs=pairs,
            terms=self._terms(element),
        )  # fmt: skip


class _V2Reader(_Reader):
    """Reads EDM 1 to 3, in which navigation uses associations."""

    version = "v2"

    def __init__(self, root: Element, schemas: list[Element]) -> None:
        super().__init__(root, schemas)
        self.associations: dict[str, Element] = {}
        self.association_sets: list[Element] = []

    def _read_other(self, tag: str, name: str, element: Element) -> None:
        if tag == "Association":
            self.associations[name] = element

    def _navigation(self, element: Element) -> Navigation:
        return Navigation(
            element.get("Name", ""), "", relationship=self.qualified(element.get("Relationship", "")),
            role=element.get("ToRole", ""), terms=self._terms(element),
        )  # fmt: skip

    def _container(self, name: str, element: Element) -> None:
        super()._container(name, element)
        self.association_sets += [item for item in element if _local_name(item.tag) == "AssociationSet"]

    def _finish(self) -> None:
        """Copy types, multiplicities and constraints of associations to the navigation properties."""
        navigations: dict[str, list[tuple[str, Navigation]]] = {}
        for kind in self.result.types.values():
            for name, navigation in list(kind.navigations.items()):
                association = self.associations.get(navigation.relationship)
                if association is None or not self._complete_navigation(navigation, association):
                    del kind.navigations[name]
                else:
                    navigations.setdefault(navigation.relationship, []).append((kind.name, navigation))
        for pair in navigations.values():
            if len(pair) == 2:
                (_, one), (_, other) = pair
                one.partner, other.partner = other.name, one.name
        for element in self.association_sets:
            ends = {
                item.get("Role", ""): item.get("EntitySet", "")
                for item in element
                if _local_name(item.tag) == "End"
            }
            for owner, navigation in navigations.get(self.qualified(element.get("Association", "")), []):
                target = ends.get(navigation.role, "")
                sources = [name for role, name in ends.items() if role != navigation.role] or [target]
                for source in sources:
                    entity_set = self.result.sets.get(source)
                    if entity_set is not None and target and self._is_a(entity_set.type, owner):
                        entity_set.bindings[navigation.name] = target

    def _complete_navigation(self, navigation: Navigation, association: Element) -> bool:
        for element in association:
            tag = _local_name(element.tag)
            if tag == "End" and element.get("Role") == navigation.role:
                navigation.type = self.qualified(element.get("Type", ""))
                navigation.collection = element.get("Multiplicity") == "*"
                navigation.nullable = element.get("Multiplicity") != "1"
            elif tag == "ReferentialConstraint":
                ends: dict[str, tuple[str, tuple[str, ...]]] = {
                    _local_name(end.tag): (end.get("Role", ""), tuple(part.get("Name", "") for part in end))
                    for end in element
                }
                principal, dependent = ends.get("Principal", ("", ())), ends.get("Dependent", ("", ()))
                # Only navigation from the dependent to the principal has the constraint.
                is_dependent = principal[0] == navigation.role != dependent[0]
                navigation.pairs = (
                    tuple(zip(dependent[1], principal[1], strict=False)) if is_dependent else ()
                )
        return bool(navigation.type)

    def _is_a(self, name: str, owner: str) -> bool:
        flat = self.result.types.get(name)
        return flat is not None and any(structured.name == owner for structured in self.result.lineage(flat))


_Json = Mapping[str, Any]


def _read_json(document: bytes) -> Service:
    """Read a JSON document. Raises `ConnectorError` (reason `bad_document_error`)."""

    try:
        parsed = json.loads(document)
    except json.JSONDecodeError as error:
        raise bad_document_error(
            f"The document is not JSON: {error.msg}", (error.lineno, error.colno)
        ) from None
    except (UnicodeDecodeError, RecursionError):
        raise bad_document_error(
            "The document is not JSON in UTF-8, or is nested too deeply", (1, 1)
        ) from None
    if not isinstance(parsed, dict) or "$Version" not in parsed:
        raise bad_document_error("The document is JSON without $Version, so it is not OData metadata", (1, 1))
    try:
        return _JsonReader(parsed).service()
    except ConnectorError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise bad_document_error(
            "The document is JSON, but does not follow OData 4.01 CSDL", (1, 1)
        ) from None


class _JsonReader:
    """Reads CSDL JSON 4.01."""

    def __init__(self, document: _Json) -> None:
        self.schemas = {
            name: item for name, item in document.items() if isinstance(item, dict) and name[0] != "$"
        }
        self.aliases = {schema["$Alias"]: name for name, schema in self.schemas.items() if "$Alias" in schema}
        for reference in document.get("$Reference", {}).values():
            for item in reference.get("$Include", ()):
                self.aliases[item.get("$Alias", "")] = item["$Namespace"]
        self.result = Service("v4")

    def service(self) -> Service:
        """Read all schemas."""
        containers = set()
        for namespace, schema in self.schemas.items():
            for member, item in _members(schema):
                name, kind = f"{namespace}.{member}", item.get("$Kind")
                if kind in ("EntityType", "ComplexType"):
                    self.result.types[name] = self._structured(item, name, kind == "EntityType")
                elif kind == "EnumType":
                    members = {
                        key: value for key, value in item.items() if isinstance(value, int) and key[0] != "$"
                    }
                    self.result.enums[name] = Enumeration(name, members, bool(item.get("$IsFlags")))
                elif kind == "TypeDefinition":
                    self.result.definitions[name] = self._property(
                        member, item, item.get("$UnderlyingType", "Edm.String")
                    )
                elif kind == "EntityContainer":
                    containers.add(name)
                    self._container(item)
        for schema in self.schemas.values():
            for target, notes in schema.get("$Annotations", {}).items():
                self._apply_annotations(target, notes, containers)
        return self.result

    def _qualified(self, name: str) -> str:
        prefix, dot, local = name.rpartition(".")
        return f"{self.aliases.get(prefix, prefix)}{dot}{local}"

    def _structured(self, definition: _Json, name: str, entity: bool) -> StructuredType:
        base = definition.get("$BaseType", "")
        key = tuple(
            part if isinstance(part, str) else next(iter(part)) for part in definition.get("$Key", ())
        )
        result = StructuredType(
            name, entity, self._qualified(base) if base else "", bool(definition.get("$Abstract")),
            bool(definition.get("$OpenType")), key, terms=self._terms(definition),
        )  # fmt: skip
        for member, part in _members(definition):
            if part.get("$Kind") == "NavigationProperty":
                result.navigations[member] = Navigation(
                    member, self._qualified(part["$Type"]), bool(part.get("$Collection")),
                    bool(part.get("$Nullable")), str(part.get("$Partner", "")), bool(part.get("$ContainsTarget")),
                    pairs=tuple(
                        (own, other) for own, other in part.get("$ReferentialConstraint", {}).items()
                        if isinstance(other, str) and own[0] not in "@$"
                    ),
                    terms=self._terms(part),
                )  # fmt: skip
            else:
                result.properties[member] = self._property(member, part, part.get("$Type", "Edm.String"))
        return result

    def _property(self, name: str, definition: _Json, declared: str) -> Property:
        precision, scale = _json_integer(definition.get("$Precision")), definition.get("$Scale")
        default = definition.get("$DefaultValue")
        return Property(
            name, self._qualified(declared), bool(definition.get("$Collection")), bool(definition.get("$Nullable")),
            _json_integer(definition.get("$MaxLength")), precision,
            0 if scale is None and precision is not None else _json_integer(scale),
            None if default is None else str(default), self._terms(definition),
        )  # fmt: skip

    def _container(self, container: _Json) -> None:
        for name, item in _members(container):
            if item.get("$Collection") and "$Type" in item:
                bindings = {
                    path: target.rpartition("/")[2]
                    for path, target in item.get("$NavigationPropertyBinding", {}).items()
                }
                entity_set = EntitySet(name, self._qualified(item["$Type"]), bindings, self._terms(item))
                self.result.sets[name] = entity_set

    def _terms(self, one: _Json) -> Terms:
        """Return annotations, which are next to the members as `@Term`."""
        terms: Terms = {}
        for name, value in one.items():
            if name[:1] == "@" and (term_name := supported_term(name[1:], self.aliases)):
                terms[term_name] = value
        return terms

    def _apply_annotations(self, target: str, notes: _Json, containers: set[str]) -> None:
        owner, _, path = target.partition("/")
        owner = self._qualified(owner)
        annotated: Any = self.result.sets.get(path) if owner in containers else None
        if (kind := self.result.types.get(owner)) is not None:
            annotated = kind if not path else kind.properties.get(path) or kind.navigations.get(path)
        if annotated is not None:
            annotated.terms |= self._terms(notes)


def _members(one: _Json) -> Iterator[tuple[str, _Json]]:
    for name, part in one.items():
        if name[:1] not in ("$", "@") and "@" not in name and isinstance(part, dict):
            yield name, part


def _json_integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None


# Terms that are used, by their last part. Terms with the same name in other vocabularies are ignored.
SUPPORTED_TERMS: Final = frozenset(
    "Computed ComputedDefaultValue Immutable Permissions Label Description LongDescription FieldControl ValueList"
    " ValueListWithFixedValues AllowedValues InsertRestrictions UpdateRestrictions"
    " DeleteRestrictions".split()
)
_VOCABULARIES: Final = ("Org.OData.", "com.sap.vocabularies.")
_SAP: Final = ("http://www.sap.com/Protocols/SAPData", "http://www.sap.com/protocols/SAPData")
_SAP_FLAGS: Final = frozenset(
    ("creatable", "updatable", "deletable", "sortable", "filterable", "required-in-filter")
)
_SAP_TEXTS: Final = {
    "label": "Label",
    "value-list": "value-list",
    "display-format": "display-format",
    "unit": "unit",
}
_GENERATED: Final = "StoreGeneratedPattern"
_DEPTH: Final = 16  # maximum depth of nested records and collections


def supported_term(name: str, aliases: Mapping[str, str]) -> str:
    """Return the last part of a used term, otherwise "". `aliases` are those of the document."""
    prefix, _, last = name.partition("#")[0].rpartition(".")
    if last not in SUPPORTED_TERMS:
        return ""
    namespace = aliases.get(prefix, prefix)
    return last if "." not in namespace or namespace.startswith(_VOCABULARIES) else ""


def terms_from_attributes(attributes: Mapping[str, str]) -> Terms:
    """Return the sap: attributes of an element, and what the server generates (EDM annotation attributes)."""
    terms: Terms = {}
    for name, value in attributes.items():
        if name[0] != "{":
            continue
        namespace, _, attribute = name[1:].partition("}")
        if attribute == _GENERATED:
            terms |= (
                {"Computed": True} if value == "Computed" else {"ComputedDefaultValue": value == "Identity"}
            )
        elif namespace in _SAP:
            if attribute in _SAP_FLAGS:
                terms[attribute] = value.strip().lower() != "false"
            elif attribute in _SAP_TEXTS:
                terms[_SAP_TEXTS[attribute]] = value
    return terms


def terms_from_children(element: Element, aliases: Mapping[str, str]) -> Terms:
    """Return the annotations inside an element."""
    terms: Terms = {}
    for child in element:
        if child.tag.endswith("}Annotation") and (
            term_name := supported_term(child.get("Term", ""), aliases)
        ):
            terms[term_name] = annotation_value(child)
    return terms


def annotation_value(element: Element, depth: int = 0) -> Any:
    """Return the value of an annotation: text, boolean, number, a dict for a record, a list for a collection.

    Without a value it is true, the default of tagging terms.
    """
    if depth > _DEPTH:
        return None
    for name, value in element.items():
        if name in (
            "Bool",
            "Int",
            "Decimal",
            "Float",
            "String",
            "EnumMember",
            "Path",
            "PropertyPath",
            "AnnotationPath",
        ):
            return _constant(name, value)
        if name == "NavigationPropertyPath":
            return value
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name == "Record":
            return {
                item.get("Property", ""): annotation_value(item, depth + 1)
                for item in child
                if item.tag.endswith("}PropertyValue")
            }
        if name == "Collection":
            return [_item_value(item, depth + 1) for item in child]
        if name != "Annotation":
            return _constant(name, child.text or "")
    return True


def _item_value(one: Element, depth: int) -> Any:
    name = one.tag.rpartition("}")[2]
    if name == "Record":
        wrapper = Element("holder")
        wrapper.append(one)
        return annotation_value(wrapper, depth)
    return _constant(name, one.text or "")


def _constant(kind: str, value: str) -> Any:
    text = value.strip()
    if kind == "Bool":
        return text.lower() != "false"
    if kind == "Int":
        try:
            return int(text)
        except ValueError:
            return text
    return text


# --- Entity sets --------------------------------------------------------------------------------------------

# Column types for Edm types; below, integers with their bits.
_TYPES: Final[Mapping[str, ColumnType]] = {
    "Edm.String": "text", "Edm.Guid": "uuid", "Edm.Boolean": "boolean", "Edm.Binary": "binary",
    "Edm.Byte": "integer", "Edm.SByte": "integer", "Edm.Int16": "integer", "Edm.Int32": "integer",
    "Edm.Int64": "integer", "Edm.Decimal": "decimal", "Edm.Double": "float", "Edm.Single": "float",
    "Edm.Date": "date", "Edm.DateTime": "timestamp", "Edm.DateTimeOffset": "timestamptz", "Edm.Time": "time",
    "Edm.TimeOfDay": "time", "Edm.Duration": "interval",
}  # fmt: skip
_BITS: Final = {"Edm.Byte": 8, "Edm.SByte": 8, "Edm.Int16": 16, "Edm.Int32": 32, "Edm.Int64": 64}
NAVIGATION: Final = "Navigation("
"""Prefix of `Column.declared` for navigation properties that can be inserted with their row."""


def metadata(service: Service) -> Metadata:
    """Return the metadata of all entity sets."""
    entities = tuple(entity(service, item) for item in service.sets.values())
    return Metadata(
        "odata", f"OData {service.version.upper()}", tuple(item for item in entities if item.fields)
    )


def metadata_in_process(file: IO[bytes], found_at: str) -> bytes | dict[str, Any]:
    """Read a `$metadata` document: see `metadata_documents.metadata`."""
    return metadata_documents.result_or_error(lambda: metadata_documents.dump(metadata(read(file.read()))))


def entity(service: Service, source: EntitySet) -> Entity:
    """Return one entity set, without fields if its type is not in the document."""
    kind = service.structured(source.type)
    if kind is None:
        return Entity(source.name, (source.name,), (), "entity_set")
    # SAP's service builder marks every property as not creatable unless a box is ticked, so a type without any
    # creatable property says nothing about them.
    excluded = _excluded_names(source.terms.get("InsertRestrictions"), "NonInsertableProperties")
    trusts_creatable = any(
        is_creatable(property_.terms) and property_.name not in excluded
        for property_ in kind.properties.values()
    )
    columns = [
        column(service, property_, kind, trusts_creatable)
        for property_ in kind.properties.values()
        if property_.type != "Edm.Stream"
    ]
    navigations = [
        navigation for navigation in kind.navigations.values() if _is_insertable(navigation, source)
    ]
    columns += [_navigation(service, source, navigation) for navigation in navigations]
    return Entity(
        source.name, (source.name,), tuple(columns), "entity_set", kind.key,
        relations=tuple(_relations(service, source, kind)), comment=_label(source.terms) or _label(kind.terms),
    )  # fmt: skip


def _excluded_names(record: Any, key: str) -> frozenset[str]:
    paths = record.get(key) if isinstance(record, dict) else None
    return (
        frozenset(path for path in paths if isinstance(path, str)) if isinstance(paths, list) else frozenset()
    )


def column(
    service: Service, property_: Property, kind: StructuredType, trusts_creatable: bool = True
) -> Column:
    """Return the column for a property."""
    property_ = service.facets(property_)
    column_type = "array" if property_.collection else _type(service, property_)
    key = property_.name in kind.key
    mandatory = str(property_.terms.get("FieldControl", "")).rpartition("/")[2] == "Mandatory"
    # A key that the server may generate can be omitted or sent; a computed property is never sent.
    generated, default = "", property_.default
    if key and (property_.terms.get("ComputedDefaultValue") or not is_creatable(property_.terms)):
        generated = "identity"
    elif not key and trusts_creatable and not is_creatable(property_.terms):
        generated = "computed"
    if default is None and property_.terms.get("ComputedDefaultValue") and not key:
        default = "generated by the service"
    return Column(
        property_.name, column_type, f"Collection({property_.type})" if property_.collection else property_.type,
        nullable=property_.nullable and not key and not mandatory,
        max_length=property_.max_length, precision=property_.precision if column_type == "decimal" else None,
        scale=property_.scale, bits=_BITS.get(property_.type), unsigned=property_.type == "Edm.Byte",
        key=key, unique=kind.key == (property_.name,), generated=generated,
        default=default, choices=_choices(service, property_),
        items=_type(service, property_) if property_.collection else None, comment=_label(property_.terms),
    )  # fmt: skip


def _type(service: Service, property_: Property) -> ColumnType:
    if property_.type in service.enums or (property_.type == "Edm.String" and _choices(service, property_)):
        return "enum"
    if property_.type in service.types or property_.type.startswith(
        ("Edm.Geo", "Edm.Untyped", "Edm.ComplexType")
    ):
        return "json"
    if property_.type == "Edm.DateTime" and property_.terms.get("display-format") == "Date":
        return "date"
    return _TYPES.get(property_.type, "other")


def _choices(service: Service, property_: Property) -> tuple[str, ...]:
    if enumeration := service.enums.get(property_.type):
        return tuple(enumeration.members)
    allowed = property_.terms.get("AllowedValues")
    values = (
        [item.get("Value") for item in allowed if isinstance(item, dict)] if isinstance(allowed, list) else []
    )
    return tuple(str(value) for value in values if isinstance(value, str | int))


def _label(terms: Mapping[str, Any]) -> str:
    label = terms.get("Label") or terms.get("Description") or terms.get("LongDescription")
    return label if isinstance(label, str) else ""


def _is_insertable(navigation: Navigation, source: EntitySet) -> bool:
    excluded = _excluded_names(source.terms.get("InsertRestrictions"), "NonInsertableNavigationProperties")
    return is_creatable(navigation.terms) and navigation.name not in excluded


def _navigation(service: Service, source: EntitySet, navigation: Navigation) -> Column:
    target = service.set_of(source, navigation) or navigation.type
    return Column(
        navigation.name, "array" if navigation.collection else "json", f"{NAVIGATION}{target})",
        items="json" if navigation.collection else None, comment=_label(navigation.terms),
    )  # fmt: skip


def _relations(service: Service, source: EntitySet, kind: StructuredType) -> list[Relation]:
    """Return relations for referential constraints, and for other properties whose values another entity set lists.

    Without a constraint, navigation to a single entity is a relation too: the given key becomes a reference.
    """
    relations = []
    for navigation in kind.navigations.values():
        target = service.set_of(source, navigation)
        target_type = service.structured(navigation.type)
        if navigation.collection or not target or target_type is None:
            continue
        partner = target_type.navigations.get(navigation.partner)
        if navigation.pairs and all(own in kind.properties for own, _ in navigation.pairs):
            own, other = zip(*navigation.pairs, strict=True)
            relations.append(Relation(navigation.name, own, target, other))
        elif (
            not navigation.pairs
            and len(target_type.key) == 1
            and _is_insertable(navigation, source)
            and not (partner and partner.pairs)
        ):
            relations.append(Relation(navigation.name, (navigation.name,), target, target_type.key))
    referencing = {name for relation in relations for name in relation.columns}
    for property_ in kind.properties.values():
        value_list = property_.terms.get("ValueList")
        if (
            property_.name in referencing
            or not isinstance(value_list, dict)
            or not is_creatable(property_.terms)
        ):
            continue
        target = str(value_list.get("CollectionPath", "")).rpartition("/")[2]
        target_type = service.entity_type(target)
        value = _value_property(value_list, property_.name)
        if target_type is not None and value in target_type.properties:
            relations.append(Relation(f"{property_.name} (value list)", (property_.name,), target, (value,)))
    return relations


def _value_property(value_list: Mapping[str, Any], name: str) -> str:
    """Return the property of the value list that supplies the value (Common.ValueListParameterInOut and
    -Out)."""
    parameters = value_list.get("Parameters")
    for item in parameters if isinstance(parameters, list) else ():
        if isinstance(item, dict) and item.get("LocalDataProperty") == name:
            return str(item.get("ValueListProperty", ""))
    return ""
