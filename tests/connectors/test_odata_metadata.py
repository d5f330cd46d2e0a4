"""`$metadata` of V2 and V4: read as other readers read it, and refused with a place where it cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.connectors.odata_documents import V2, V4
from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.odata.connector import OdataConnector
from webapp.connectors.schema import Relation

ROOT = Path(__file__).resolve().parents[2]
BOMB = (
    b'<?xml version="1.0"?>\n<!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>\n'
    b"<edmx:Edmx>&b;</edmx:Edmx>"
)


def entity(document: bytes, name: str):
    return next(item for item in OdataConnector.read_document(document).entities if item.name == name)


def column(document: bytes, name: str, of: str):
    return entity(document, of).column(name)


@pytest.mark.parametrize(("document", "version"), [(V2, "OData V2"), (V4, "OData V4")])
def test_the_version_is_detected_from_the_document(document, version):
    assert OdataConnector.read_document(document).version == version


def test_properties_of_v2_become_columns_with_their_facets():
    orders = entity(V2, "OrderSet")
    assert orders.keys == ("Number",)
    assert orders.comment == "Sales order"
    result = {field.name: (field.type, field.declared) for field in orders.fields}
    assert result["Total"] == ("decimal", "Edm.Decimal")
    assert result["Day"] == ("date", "Edm.DateTime")
    assert result["Placed"] == ("timestamp", "Edm.DateTime")
    assert result["Moment"] == ("timestamptz", "Edm.DateTimeOffset")
    assert result["Opens"] == ("time", "Edm.Time")
    assert result["Home"] == ("json", "ERP.Address")
    total, small = orders.column("Total"), orders.column("Small")
    assert (total.precision, total.scale) == (13, 3)
    assert (small.bits, small.unsigned) == (8, True)
    assert orders.column("Customer").max_length == 8
    assert orders.column("Status").default == "N"
    assert orders.column("Number").comment == "Number"


def test_read_only_keys_are_reported_and_generated_keys_can_be_omitted():
    assert column(V2, "Number", "OrderSet").generated == "identity"
    assert column(V2, "Changed", "OrderSet").generated == "computed"
    assert column(V4, "ID", "Orders").generated == "identity"
    assert column(V4, "createdAt", "Orders").generated == "computed"
    assert column(V4, "locked", "Orders").generated == "computed"
    assert not column(V4, "ID", "Orders").required


def test_a_type_of_which_nothing_is_creatable_says_nothing_about_it():
    assert column(V2, "Text", "SilentSet").generated == ""


def test_navigation_of_v2_is_a_column_to_insert_and_a_constraint_is_a_relation():
    orders, items = entity(V2, "OrderSet"), entity(V2, "ItemSet")
    deep, buyer = orders.column("Items"), orders.column("Buyer")
    assert (deep.type, deep.declared, deep.nullable) == ("array", "Navigation(ItemSet)", True)
    assert (buyer.type, buyer.declared) == ("json", "Navigation(CustomerSet)")
    assert orders.relations == (Relation("Buyer", ("Customer",), "CustomerSet", ("Id",)),)
    assert items.keys == ("Number", "Line")
    assert items.relations == ()  # the association has no way from there


def test_v4_has_inheritance_definitions_enums_and_external_annotations():
    orders = entity(V4, "Orders")
    assert orders.keys == ("ID",)
    assert orders.comment == "All orders"
    assert (orders.column("price").type, orders.column("price").precision, orders.column("price").scale) == (
        "decimal",
        11,
        2,
    )
    assert orders.column("price").comment == ""  # the label of a vocabulary that is not ours
    assert (orders.column("exact").precision, orders.column("exact").scale) == (34, None)  # variable
    assert (orders.column("colour").type, orders.column("colour").choices) == ("enum", ("Red", "Green"))
    assert orders.column("state").choices == ("open", "done")
    assert orders.column("name").comment == "Order name"
    assert (orders.column("tags").type, orders.column("tags").items) == ("array", "text")
    assert orders.column("home").type == "json"
    assert orders.column("items").declared == "Navigation(Shop.Item)"


def test_relations_of_v4_come_from_constraints_bindings_and_value_lists():
    assert set(entity(V4, "Orders").relations) == {
        Relation("owner", ("owner_id",), "People", ("id",)),
        Relation("helper", ("helper",), "People", ("id",)),
        Relation("country (value list)", ("country",), "Countries", ("code",)),
    }


CSDL_JSON = {
    "$Version": "4.01",
    "$EntityContainer": "Shop.Container",
    "$Reference": {"https://x/": {"$Include": [{"$Namespace": "Org.OData.Core.V1", "$Alias": "C"}]}},
    "Shop": {
        "$Alias": "S",
        "Colour": {"$Kind": "EnumType", "Red": 1, "Green": 2, "Red@C.Description": "as blood"},
        "Money": {"$Kind": "TypeDefinition", "$UnderlyingType": "Edm.Decimal", "$Precision": 11, "$Scale": 2},
        "Base": {
            "$Kind": "EntityType",
            "$Abstract": True,
            "$Key": ["ID"],
            "ID": {"$Type": "Edm.Guid", "@C.ComputedDefaultValue": True},
        },
        "Order": {
            "$Kind": "EntityType",
            "$BaseType": "S.Base",
            "name": {"$MaxLength": 10},
            "price": {"$Type": "S.Money", "$Nullable": True},
            "exact": {"$Type": "Edm.Decimal", "$Precision": 34, "$Scale": "variable", "$Nullable": True},
            "colour": {"$Type": "S.Colour", "$DefaultValue": "Red"},
            "owner_id": {"$Nullable": True},
            "items": {
                "$Kind": "NavigationProperty",
                "$Collection": True,
                "$Type": "S.Item",
                "$ContainsTarget": True,
            },
            "owner": {
                "$Kind": "NavigationProperty",
                "$Type": "S.Person",
                "$ReferentialConstraint": {"owner_id": "id"},
            },
        },
        "Item": {"$Kind": "EntityType", "$Key": ["pos"], "pos": {"$Type": "Edm.Int32"}},
        "Person": {"$Kind": "EntityType", "$Key": ["id"], "id": {"$MaxLength": 8}},
        "Container": {
            "$Kind": "EntityContainer",
            "Orders": {
                "$Collection": True,
                "$Type": "S.Order",
                "$NavigationPropertyBinding": {"owner": "People"},
            },
            "People": {"$Collection": True, "$Type": "S.Person"},
        },
        "$Annotations": {"S.Order/name": {"@C.Description": "Order name"}},
    },
}


def test_v4_is_also_read_from_json():
    orders = entity(json.dumps(CSDL_JSON).encode(), "Orders")
    assert [(field.name, field.type, field.nullable) for field in orders.fields] == [
        ("ID", "uuid", False),
        ("name", "text", False),
        ("price", "decimal", True),
        ("exact", "decimal", True),
        ("colour", "enum", False),
        ("owner_id", "text", True),
        ("items", "array", True),
        ("owner", "json", True),
    ]
    assert orders.column("ID").generated == "identity"
    assert (orders.column("price").precision, orders.column("price").scale) == (11, 2)
    assert (orders.column("exact").scale, orders.column("colour").choices) == (None, ("Red", "Green"))
    assert orders.column("name").comment == "Order name"
    assert orders.relations == (Relation("owner", ("owner_id",), "People", ("id",)),)


@pytest.mark.parametrize(
    "document",
    [
        b"{",
        b'{"a": 1}',
        b'{"$Version": "4.0", "S": {"T": {"$Kind": "EntityType", "$Key": 5}}}',
        b'{"a":' * 50_000,
    ],
    ids=["cut off", "other", "odd parts", "deep"],
)
def test_json_that_is_no_metadata_is_one_error_too(document):
    with pytest.raises(ConnectorError) as caught:
        OdataConnector.read_document(document)
    assert caught.value.reason == "bad_document"
    assert "line 1" in caught.value.message


# --- Against independent readers -----------------------------------------------------------------------------


def test_v2_is_read_as_pyodata_reads_it():
    model = pytest.importorskip("pyodata.v2.model")
    theirs = model.MetadataBuilder(V2.replace(b"Self.Address", b"ERP.Address")).build()  # it knows no aliases
    ours = {item.name: item for item in OdataConnector.read_document(V2).entities}
    assert {item.name for item in theirs.entity_sets} == set(ours)
    for item in theirs.entity_sets:
        mine, kind = ours[item.name], item.entity_type
        assert {key.name for key in kind.key_proprties} == set(mine.keys)
        for prop in [*kind.key_proprties, *kind.proprties()]:
            found = mine.column(prop.name)
            assert found.declared == prop.typ.name or prop.typ.name == "Address"
            assert found.max_length == prop.max_length
            if prop.typ.name == "Edm.Decimal":
                assert (found.precision, found.scale) == (prop.precision, prop.scale)
        for nav in kind.nav_proprties:
            many = nav.to_role.multiplicity == model.EndRole.MULTIPLICITY_ZERO_OR_MORE
            assert (mine.column(nav.name).type == "array") is many


def test_v4_is_read_as_python_odata_reads_it(tmp_path):
    """In a separate process, because the reader prints to the terminal and uses the network."""
    (tmp_path / "document.xml").write_bytes(V4)
    code = """
import json, sys, warnings
warnings.simplefilter("ignore")
from types import SimpleNamespace
import rich.console
from odata.metadata import MetaData
reader = MetaData.__new__(MetaData)
reader.console, reader.quiet = rich.console.Console(quiet=True), True
reader.service = SimpleNamespace(default_context=SimpleNamespace())
text = open(sys.argv[1], "rb").read()
from lxml import etree as ET
schemas, sets, actions, functions = reader.parse_document(ET.fromstring(text))
print(json.dumps({"sets": {s["name"]: s["schema"]["name"] for s in sets.values()},
  "types": {e["name"]: {p["name"]: [p["type"], p["is_primary_key"], p["is_computed_value"]] for p in e["properties"]}
            for schema in schemas for e in schema["entities"]}}))
"""
    pytest.importorskip("odata.metadata")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "document.xml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    ours = {item.name: item for item in OdataConnector.read_document(V4).entities}
    assert set(theirs["sets"]) == set(ours)
    for name, kind in theirs["sets"].items():
        for prop, (declared, key, computed) in theirs["types"][kind].items():
            found = ours[name].column(prop)
            plain = declared.replace("Shop.Money", "Edm.Decimal").replace("S.Money", "Edm.Decimal")
            assert found.declared.removeprefix("Collection(").rstrip(")") == plain.replace("S.", "Shop.")
            assert found.key is key
            assert not computed or found.generated == "computed"


# --- What cannot be read --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (b"", 1),
        (b"not xml", 1),
        (V2[:2000], None),
        (V2.replace(b"</Schema>", b"</Schemer>"), None),
        (BOMB, 2),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', 1),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', 1),
        (b"<a>" * 100_000, 1),
    ],
    ids=["empty", "text", "cut off", "wrong tag", "bomb", "dtd", "encoding", "deep"],
)
def test_an_invalid_document_is_one_error_with_a_position(document, line):
    with pytest.raises(ConnectorError) as caught:
        OdataConnector.read_document(document)
    assert caught.value.reason == "bad_document"
    assert "line" in caught.value.message
    if line is not None:
        assert caught.value.details["line"] == line


@pytest.mark.parametrize(
    "document", [b"<html><body/></html>", b"<Edmx/>", b"<service/>"], ids=["html", "empty", "service"]
)
def test_xml_that_is_not_metadata_is_rejected(document):
    with pytest.raises(ConnectorError) as caught:
        OdataConnector.read_document(document)
    assert caught.value.reason == "bad_document"


def test_a_document_of_50_mb_is_rejected_without_reading_it():
    with pytest.raises(ConnectorError) as caught:
        OdataConnector.read_document(b" " * (50 * limits.MB))
    assert caught.value.reason == "bad_document"
    assert "at most 32 MB" in caught.value.message


def test_types_in_a_circle_end():
    circle = V4.replace(
        b'<EntityType Name="Base" Abstract="true">', b'<EntityType Name="Base" BaseType="S.Order">'
    )
    assert entity(circle, "Orders").keys == ("ID",)


def test_names_that_lead_nowhere_are_left_out():
    lost = V2.replace(b'EntityType="ERP.Silent"', b'EntityType="ERP.Gone"').replace(
        b'Type="ERP.Customer" Multiplicity', b'Type="ERP.Gone" Multiplicity'
    )
    names = [item.name for item in OdataConnector.read_document(lost).entities]
    assert names == ["OrderSet", "ItemSet", "CustomerSet"]
    assert entity(lost, "OrderSet").relations == ()


def test_the_benchmark_of_large_documents_reads_every_set():
    done = subprocess.run(
        [sys.executable, "bench/odata_metadata.py", "--types", "200"], cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "200 entity sets" in done.stdout


def test_no_column_is_mapped_for_nested_rows_unless_requested():
    from webapp.engine.data import vocabulary
    from webapp.imports.inference import columns

    reported = {
        item.column: item
        for item in columns.infer_columns(entity(V4, "Orders"), None, vocabulary.open_default())
    }
    assert reported["items"].field is reported["helper"].field is None
    assert reported["home"].field is not None
