"""Annotations of `$metadata`: V4 vocabularies (Core, Common, Validation, Capabilities) and the attributes of sap:."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from xml.etree.ElementTree import Element

from webapp.connectors.odata_model import Terms

# Terms that are read, by their last word; those of other vocabularies that share it are left out.
WANTED: Final = frozenset(
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
_DEPTH: Final = 16  # chosen: records and collections inside one another


def term(name: str, aliases: Mapping[str, str]) -> str:
    """The last word of a term that is read, else empty. `aliases` are the document's."""
    prefix, _, word = name.partition("#")[0].rpartition(".")
    if word not in WANTED:
        return ""
    namespace = aliases.get(prefix, prefix)
    return word if "." not in namespace or namespace.startswith(_VOCABULARIES) else ""


def of_attributes(attributes: Mapping[str, str]) -> Terms:
    """The sap: attributes of an element, and what the server generates (EDM annotation attributes)."""
    found: Terms = {}
    for name, value in attributes.items():
        if name[0] != "{":
            continue
        namespace, _, word = name[1:].partition("}")
        if word == _GENERATED:
            found |= (
                {"Computed": True} if value == "Computed" else {"ComputedDefaultValue": value == "Identity"}
            )
        elif namespace in _SAP:
            if word in _SAP_FLAGS:
                found[word] = value.strip().lower() != "false"
            elif word in _SAP_TEXTS:
                found[_SAP_TEXTS[word]] = value
    return found


def of_children(element: Element, aliases: Mapping[str, str]) -> Terms:
    """The annotations that stand inside an element."""
    found: Terms = {}
    for child in element:
        if child.tag.endswith("}Annotation") and (word := term(child.get("Term", ""), aliases)):
            found[word] = value_of(child)
    return found


def value_of(element: Element, depth: int = 0) -> Any:
    """What an annotation says: text, true, a number, a dict for a record, a list for a collection. Without a value it
    is true, the default of the tagging terms."""
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
                one.get("Property", ""): value_of(one, depth + 1)
                for one in child
                if one.tag.endswith("}PropertyValue")
            }
        if name == "Collection":
            return [_element(one, depth + 1) for one in child]
        if name != "Annotation":
            return _constant(name, child.text or "")
    return True


def _element(one: Element, depth: int) -> Any:
    name = one.tag.rpartition("}")[2]
    if name == "Record":
        holder = Element("holder")
        holder.append(one)
        return value_of(holder, depth)
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
