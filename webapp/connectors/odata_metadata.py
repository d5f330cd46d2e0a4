"""Reads `$metadata`: EDMX of OData V2 (EDM 1 to 3) and V4; V4 in JSON is read beside. One pass of expat, one over
its elements.

Sources: OData V2 "Conceptual Schema Definition File Format"; OData 4.01 CSDL XML; "SAP Annotations for OData 2.0".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from webapp import limits
from webapp.connectors import odata_metadata_json
from webapp.connectors.base import ConnectorError
from webapp.connectors.odata_model import (
    EntitySet,
    Enumeration,
    Navigation,
    Property,
    Service,
    Structured,
)
from webapp.connectors.odata_terms import of_attributes, of_children, term, value_of

_V4: Final = "http://docs.oasis-open.org/odata/ns/edm"
_HINT: Final = (
    "Save what the service answers at $metadata, with Accept: application/xml, and upload that file."
)
_STEP: Final = 65_536


class _Builder(TreeBuilder):
    """A tree with an end to its size and depth."""

    def __init__(self) -> None:
        super().__init__()
        self.count = self.depth = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        """An element begins."""
        self.count += 1
        self.depth += 1
        if self.count > limits.ODATA_DOCUMENT_ELEMENTS or self.depth > limits.MAX_JSON_DEPTH:
            raise _TooMuch
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        """An element ends."""
        self.depth -= 1
        return super().end(tag)


class _TooMuch(Exception):
    """More elements, or deeper, than is read."""


def read(document: bytes) -> Service:
    """The service of a `$metadata` document. Raises `ConnectorError` (reason `bad_document`) that says where."""
    if document[:1_000].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        _fits(document)
        return odata_metadata_json.read(document.removeprefix(b"\xef\xbb\xbf"))
    root = _tree(document)
    if _word(root.tag) not in ("Edmx", "Schema"):
        raise bad_document(f"The document is XML, but its root is {_word(root.tag)[:60]}, not Edmx.")
    schemas = (
        [root] if _word(root.tag) == "Schema" else [one for one in root.iter() if _word(one.tag) == "Schema"]
    )
    if not schemas:
        raise bad_document("The document has no Schema.")
    v4 = any(one.tag.startswith("{" + _V4) for one in schemas) or root.get("Version", "").startswith("4")
    return (_V4Reader if v4 else _V2Reader)(root, schemas).service()


def bad_document(message: str, where: tuple[int, int] | None = None) -> ConnectorError:
    """A document that cannot be read. `where` is line and column, from 1."""
    place = f" (line {where[0]}, column {where[1]})" if where else ""
    details = {"line": where[0], "column": where[1]} if where else {}
    return ConnectorError(f"{message}{place}", reason="bad_document", hint=_HINT, details=details)


def _fits(document: bytes) -> None:
    if len(document) > limits.ODATA_DOCUMENT_BYTES:
        most = limits.ODATA_DOCUMENT_BYTES // limits.MB
        raise bad_document(f"The document has {len(document) // limits.MB} MB; at most {most} MB are read.")


def _tree(document: bytes) -> Element:
    _fits(document)
    parser = DefusedXMLParser(target=_Builder(), forbid_dtd=True)
    try:
        for start in range(0, len(document), _STEP):
            parser.feed(document[start : start + _STEP])
        root: Element = parser.close()
    except ParseError as error:
        line, column = error.position
        said = str(error).partition(":")[0]
        raise bad_document(f"The document is not well-formed XML: {said}", (line, column + 1)) from None
    except DefusedXmlException:
        raise bad_document(
            "The document declares a DTD or entities, which are not read", _position(parser)
        ) from None
    except _TooMuch:
        raise bad_document(
            "The document has too many elements, or too deep ones", _position(parser)
        ) from None
    except (LookupError, ValueError):
        raise bad_document("The document's encoding is not known", (1, 1)) from None
    return root


def _position(parser: Any) -> tuple[int, int]:
    expat = parser.parser
    return expat.CurrentLineNumber, expat.CurrentColumnNumber + 1


def _word(tag: str) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _whole(text: str | None) -> int | None:
    """A facet: None for Max, variable and what is no number."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


class _Reader:
    """What the two versions share."""

    version: Any = "v4"
    nullable_words = ("false", "0")

    def __init__(self, root: Element, schemas: list[Element]) -> None:
        self.schemas = schemas
        self.aliases: dict[str, str] = {}
        for one in root.iter():
            word = _word(one.tag)
            if word in ("Include", "Using", "Schema") and one.get("Alias"):
                self.aliases[one.get("Alias", "")] = one.get("Namespace", "")
        self.found = Service(self.version)
        self.notes: list[tuple[str, Element]] = []

    def service(self) -> Service:
        """All that the schemas say."""
        containers: list[tuple[str, Element]] = []
        for schema in self.schemas:
            namespace = schema.get("Namespace", "")
            for one in schema:
                word = _word(one.tag)
                name = f"{namespace}.{one.get('Name', '')}"
                if word in ("EntityType", "ComplexType"):
                    self.found.types[name] = self._structured(one, name, word == "EntityType")
                elif word == "EnumType":
                    self.found.enums[name] = self._enumeration(one, name)
                elif word == "TypeDefinition":
                    self.found.definitions[name] = self._property(
                        one, one.get("UnderlyingType", "Edm.String")
                    )
                elif word == "Annotations":
                    self.notes.append((one.get("Target", ""), one))
                elif word == "EntityContainer":
                    containers.append((name, one))
                else:
                    self._other(word, name, one)
        for name, one in containers:
            self._container(name, one)
        self._joined()
        self._annotated({name for name, _ in containers})
        return self.found

    def _other(self, word: str, name: str, element: Element) -> None:
        """An element of a schema that one version alone has."""

    def _joined(self) -> None:
        """Called when everything is read."""

    def qualified(self, name: str) -> str:
        """A name with its namespace, aliases resolved."""
        prefix, dot, word = name.rpartition(".")
        return f"{self.aliases.get(prefix, prefix)}{dot}{word}"

    def typed(self, text: str) -> tuple[str, bool]:
        """The type's qualified name, and whether there are many of it."""
        if text.startswith("Collection(") and text.endswith(")"):
            return self.qualified(text[11:-1]), True
        return self.qualified(text), False

    def _structured(self, element: Element, name: str, entity: bool) -> Structured:
        base = element.get("BaseType", "")
        found = Structured(
            name, entity, self.qualified(base) if base else "", element.get("Abstract") == "true",
            element.get("OpenType") == "true", terms=self._terms(element),
        )  # fmt: skip
        for one in element:
            word = _word(one.tag)
            if word == "Property":
                made = self._property(one, one.get("Type", "Edm.String"))
                found.properties[made.name] = made
            elif word == "NavigationProperty":
                way = self._navigation(one)
                found.navigations[way.name] = way
            elif word == "Key":
                found.key = tuple(part.get("Name", "") for part in one)
        return found

    def _property(self, element: Element, declared: str) -> Property:
        get = element.get
        name, many = self.typed(declared)
        if get("CollectionKind", "None") != "None":
            many = True
        return Property(
            get("Name", ""), name, many, get("Nullable", "true") not in self.nullable_words,
            _whole(get("MaxLength")), _whole(get("Precision")), self._scale(get("Scale"), get("Precision")),
            get("DefaultValue"),
            self._terms(element),
        )  # fmt: skip

    def _terms(self, element: Element) -> dict[str, Any]:
        return of_attributes(element.attrib) | (of_children(element, self.aliases) if len(element) else {})

    def _scale(self, text: str | None, precision: str | None) -> int | None:
        return _whole(text)

    def _navigation(self, element: Element) -> Navigation:
        raise NotImplementedError

    def _enumeration(self, element: Element, name: str) -> Enumeration:
        members: dict[str, int] = {}
        for one in element:
            if _word(one.tag) == "Member":
                value = one.get("Value", "")
                digits = value.removeprefix("-").isdecimal() and len(value) < 20
                members[one.get("Name", "")] = int(value) if digits else len(members)
        return Enumeration(name, members, element.get("IsFlags") == "true")

    def _container(self, name: str, element: Element) -> None:
        for one in element:
            if _word(one.tag) == "EntitySet":
                made = EntitySet(
                    one.get("Name", ""), self.qualified(one.get("EntityType", "")), terms=self._terms(one)
                )
                made.bindings = dict(self._bindings(one))
                self.found.sets[made.name] = made

    def _bindings(self, element: Element) -> Iterator[tuple[str, str]]:
        for one in element:
            if _word(one.tag) == "NavigationPropertyBinding":
                path = one.get("Path", "").rpartition("/")
                yield (
                    path[2] if "." in path[0] else one.get("Path", ""),
                    one.get("Target", "").rpartition("/")[2],
                )

    def _annotated(self, containers: set[str]) -> None:
        """Annotations that stand apart from what they speak of."""
        for target, element in self.notes:
            owner, _, path = target.partition("/")
            owner = self.qualified(owner)
            holder: Any = None
            if owner in containers:
                holder = self.found.sets.get(path)
            elif (kind := self.found.types.get(owner)) is not None:
                holder = kind if not path else kind.properties.get(path) or kind.navigations.get(path)
            if holder is None:
                continue
            for one in element:
                if _word(one.tag) == "Annotation" and (word := term(one.get("Term", ""), self.aliases)):
                    holder.terms[word] = value_of(one)


class _V4Reader(_Reader):
    """CSDL XML 4.0 and 4.01."""

    def _scale(self, text: str | None, precision: str | None) -> int | None:
        """None where it is variable; 0 where nothing is said (CSDL, "Scale")."""
        return 0 if text is None and precision is not None else _whole(text)

    def _navigation(self, element: Element) -> Navigation:
        name, many = self.typed(element.get("Type", ""))
        pairs = tuple(
            (one.get("Property", ""), one.get("ReferencedProperty", ""))
            for one in element
            if _word(one.tag) == "ReferentialConstraint"
        )
        return Navigation(
            element.get("Name", ""), name, many, element.get("Nullable", "true") not in self.nullable_words,
            element.get("Partner", ""), element.get("ContainsTarget") == "true", pairs=pairs,
            terms=self._terms(element),
        )  # fmt: skip


class _V2Reader(_Reader):
    """EDM 1 to 3: navigation through associations."""

    version = "v2"

    def __init__(self, root: Element, schemas: list[Element]) -> None:
        super().__init__(root, schemas)
        self.associations: dict[str, Element] = {}
        self.association_sets: list[Element] = []

    def _other(self, word: str, name: str, element: Element) -> None:
        if word == "Association":
            self.associations[name] = element

    def _navigation(self, element: Element) -> Navigation:
        return Navigation(
            element.get("Name", ""), "", relationship=self.qualified(element.get("Relationship", "")),
            role=element.get("ToRole", ""), terms=self._terms(element),
        )  # fmt: skip

    def _container(self, name: str, element: Element) -> None:
        super()._container(name, element)
        self.association_sets += [one for one in element if _word(one.tag) == "AssociationSet"]

    def _joined(self) -> None:
        """Ends, multiplicities and constraints of the associations, put into the navigations."""
        ways: dict[str, list[tuple[str, Navigation]]] = {}
        for kind in self.found.types.values():
            for name, way in list(kind.navigations.items()):
                association = self.associations.get(way.relationship)
                if association is None or not self._ended(way, association):
                    del kind.navigations[name]
                else:
                    ways.setdefault(way.relationship, []).append((kind.name, way))
        for both in ways.values():
            if len(both) == 2:
                (_, one), (_, other) = both
                one.partner, other.partner = other.name, one.name
        for element in self.association_sets:
            self._bound(element, ways, self.found.sets)

    def _ended(self, way: Navigation, association: Element) -> bool:
        for one in association:
            word = _word(one.tag)
            if word == "End" and one.get("Role") == way.role:
                way.type = self.qualified(one.get("Type", ""))
                way.collection = one.get("Multiplicity") == "*"
                way.nullable = one.get("Multiplicity") != "1"
            elif word == "ReferentialConstraint":
                way.pairs = self._pairs(one, way.role)
        return bool(way.type)

    def _pairs(self, constraint: Element, role: str) -> tuple[tuple[str, str], ...]:
        """Own property and property there, where this way leads from the dependent to the principal."""
        ends: dict[str, tuple[str, tuple[str, ...]]] = {
            _word(one.tag): (one.get("Role", ""), tuple(part.get("Name", "") for part in one))
            for one in constraint
        }
        principal, dependent = ends.get("Principal", ("", ())), ends.get("Dependent", ("", ()))
        if principal[0] != role or dependent[0] == role:
            return ()
        return tuple(zip(dependent[1], principal[1], strict=False))

    def _bound(
        self,
        element: Element,
        ways: Mapping[str, list[tuple[str, Navigation]]],
        sets: Mapping[str, EntitySet],
    ) -> None:
        ends = {one.get("Role", ""): one.get("EntitySet", "") for one in element if _word(one.tag) == "End"}
        for owner, way in ways.get(self.qualified(element.get("Association", "")), []):
            target = ends.get(way.role, "")
            near = [name for role, name in ends.items() if role != way.role] or [target]
            for source in near:
                found = sets.get(source)
                if found is not None and target and self._is_a(found.type, owner):
                    found.bindings[way.name] = target

    def _is_a(self, name: str, owner: str) -> bool:
        flat = self.found.types.get(name)
        return flat is not None and any(one.name == owner for one in self.found.lineage(flat))
