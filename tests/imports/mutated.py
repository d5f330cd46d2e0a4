"""Documents of every kind that is read, and what a careless or hostile hand makes of them."""

from __future__ import annotations

import io
import json
import zipfile

from hypothesis import strategies as st
from openpyxl import Workbook

from webapp import document_process
from webapp.errors import ApiError
from webapp.row_templates.services import compilation, vocabularies

JSON_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "Order",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer", "minimum": 1, "maximum": 9},
        "when": {"type": "string", "format": "date-time"},
        "state": {"enum": ["open", "done", None]},
        "lines": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"$ref": "#/$defs/Line"}},
        "code": {"type": "string", "pattern": "[A-Z]{2}[0-9]+", "maxLength": 10},
        "of": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/Line"}]},
    },
    "$defs": {"Line": {"allOf": [{"properties": {"price": {"type": "number", "multipleOf": 0.01}}}]}},
}
ORDER = "#/components/schemas/Order"
OPENAPI = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://{host}/v1", "variables": {"host": {"default": "shop.example.org"}}}],
    "paths": {
        "/orders/{id}": {
            "post": {
                "parameters": [{"in": "path", "name": "id", "required": True, "schema": {"type": "string"}}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": ORDER}}}},
                "responses": {"201": {"content": {"application/json": {"schema": {"type": "object"}}}}},
            }
        }
    },
    "components": {"schemas": {"Order": {**JSON_SCHEMA, "properties": {"id": {"type": "integer"}}}}},
}
YAML = """openapi: 3.0.3
info: {title: Shop, version: "1"}
components:
  schemas:
    Base: &base {type: object, properties: {id: {type: integer}}}
    Order:
      <<: *base
      properties:
        when: {type: string, format: date-time}
        rate: {type: number, maximum: 1.5e3, example: 0x1F}
paths: {}
"""
AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "next", "type": ["null", "Order"], "default": None},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
PROTO = """syntax = "proto3";
import "other.proto";
message Order { int64 id = 1; repeated Line lines = 2; oneof x { string a = 3; bytes b = 4; } map<string, int32> m = 5;
  message Line { double price = 1 [deprecated = true]; Order of = 2; } enum State { A = 0; B = 1; } State state = 6; }
"""
SQL = """CREATE TABLE "customers" (id SERIAL PRIMARY KEY, email VARCHAR(120) NOT NULL UNIQUE, age INT
CHECK (age >= 18 AND age < 120), state TEXT DEFAULT 'new' CHECK (state IN ('new', 'old')),
/* a note */ at TIMESTAMPTZ DEFAULT now());
CREATE TABLE orders (id BIGINT, customer_id INT REFERENCES customers (id), total DECIMAL(8,2), PRIMARY KEY (id));
ALTER TABLE orders ADD CONSTRAINT u UNIQUE (customer_id, total); CREATE UNIQUE INDEX i ON orders (total);
COMMENT ON TABLE orders IS 'what was ordered'; CREATE TYPE mood AS ENUM ('a', 'b'); -- the end
"""
CSV = 'id;name;"born on";amount\n1;Ann;01.02.1990;1,50\n2;"Bob ""B""";;2,75\n3;Çelik;03.04.1991;-3\n'
ROWS = [
    {"id": 1, "who": {"name": "Ann", "tags": ["a"]}, "at": "2024-01-01T00:00:00Z"},
    {"id": 2, "who": None},
]
MOCKAROO = {
    "name": "people",
    "columns": [
        {"name": "id", "type": "Row Number"},
        {"name": "born", "type": "Datetime", "min": "01/01/1990", "max": "12/31/2000", "format": "%Y-%m-%d"},
        {"name": "kind", "type": "Custom List", "values": ["a", "b"], "null_percentage": 10},
        {"name": "n", "type": "Number", "min": 1, "max": 9, "decimals": 2, "formula": "this + 1"},
    ],
}
ODATA = """<?xml version="1.0"?><edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">
<edmx:DataServices><Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="S" Alias="s">
<EnumType Name="E"><Member Name="A" Value="1"/></EnumType><TypeDefinition Name="D" UnderlyingType="Edm.Decimal"/>
<EntityType Name="T" BaseType="S.B"><Key><PropertyRef Name="ID"/></Key>
<Property Name="ID" Type="Edm.Guid" Nullable="false"/>
<Property Name="P" Type="Collection(s.E)" MaxLength="10" Scale="2" Precision="9"/>
<NavigationProperty Name="N" Type="S.T" Partner="N">
<ReferentialConstraint Property="ID" ReferencedProperty="ID"/></NavigationProperty>
<Annotation Term="Org.OData.Core.V1.Description" String="x"/></EntityType><EntityType Name="B" Abstract="true"/>
<EntityContainer Name="C"><EntitySet Name="Ts" EntityType="S.T"/></EntityContainer>
<Annotations Target="S.T/P"><Annotation Term="Org.OData.Core.V1.Computed" Bool="true"/></Annotations>
</Schema></edmx:DataServices></edmx:Edmx>"""
ODATA_JSON = {
    "$Version": "4.01",
    "$EntityContainer": "S.C",
    "S": {
        "$Alias": "s",
        "T": {
            "$Kind": "EntityType",
            "$Key": ["ID"],
            "ID": {},
            "N": {"$Kind": "NavigationProperty", "$Type": "S.T"},
        },
        "C": {"$Kind": "EntityContainer", "Ts": {"$Collection": True, "$Type": "S.T"}},
        "$Annotations": {"S.T/ID": {"@Org.OData.Core.V1.Computed": True}},
    },
}
PROGRAM = '''# requirements: tenacity, pandas>=2
# /// script
# requires-python = ">=3.11"
# dependencies = ["requests>=2", "rich ; python_version > '3'"]
# [tool.x]
# y = {z = 1}
# ///
"""What it does."""
import os
print("x")
'''


def workbook() -> bytes:
    book = Workbook()
    for row in (["id", "name", "at"], [1, "Ann", None], [2.5, "=A1+1", True]):
        book.active.append(row)
    stored = io.BytesIO()
    book.save(stored)
    return stored.getvalue()


def parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    stored = io.BytesIO()
    table = pa.table({"id": [1, 2], "name": ["Ann", None], "tags": [["a"], []]})
    pyarrow.parquet.write_table(table, stored)
    return stored.getvalue()


DOCUMENTS = {
    "json_schema": json.dumps(JSON_SCHEMA).encode(),
    "openapi": json.dumps(OPENAPI).encode(),
    "yaml": YAML.encode(),
    "avro": json.dumps(AVRO).encode(),
    "protobuf": PROTO.encode(),
    "sql": SQL.encode(),
    "csv": CSV.encode(),
    "json": json.dumps(ROWS).encode(),
    "ndjson": b"\n".join(json.dumps(row).encode() for row in ROWS),
    "mockaroo": json.dumps(MOCKAROO).encode(),
    "odata": ODATA.encode(),
    "odata_json": json.dumps(ODATA_JSON).encode(),
    "program": PROGRAM.encode(),
    "xlsx": workbook(),
    "parquet": parquet(),
}
PIECES = (
    b"[", b"]", b"{", b"}", b"(", b")", b"<a>", b"</a>", b'"', b"'", b"\\", b"\0", b"\n", b",", b":", b";", b".", b"-",
    b"&a ", b"*a", b"<<: ", b"!!int ", b"? ", b"| \n", b"%", b"\xff", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80",
    b"\\ud800", b"null", b"true",
    b"1e999", b"9" * 40, b"-1", b"0x", b".nan", b'"$ref": "#"', b'"$ref": "#/$defs/Line"', b'"type": ["object", 1]',
    b'"allOf": [{"$ref": "#"}]', b"/*", b"--", b"$$", b"DELIMITER //\n", b"CHECK (a = 1)", b"REFERENCES x",
    b"message M {",
    b"<!DOCTYPE x>", b"&amp;", b"# /// script\n", b"a.b.c = 1\n", b"dependencies = [",
)  # fmt: skip


@st.composite
def mutated(draw, kind: str) -> bytes:
    """A document of a kind, changed in up to six places: cut, doubled, repeated or with a piece put in."""
    document = bytearray(DOCUMENTS[kind])
    for _ in range(draw(st.integers(0, 6))):
        place = draw(st.integers(0, len(document)))
        end = min(len(document), place + draw(st.integers(0, 40)))
        match draw(st.sampled_from(["cut", "put", "repeat", "double", "byte", "end"])):
            case "cut":
                del document[place:end]
            case "put":
                document[place:place] = draw(st.sampled_from(PIECES))
            case "repeat":
                document[place:place] = draw(st.sampled_from(PIECES)) * draw(st.sampled_from([3, 200, 5_000]))
            case "double":
                document[place:place] = document[place:end] * draw(st.sampled_from([1, 2, 300]))
            case "byte" if document:
                document[min(place, len(document) - 1)] = draw(st.integers(0, 255))
            case "end":
                del document[place:]
    return bytes(document)


def repacked(raw: bytes, part: str, content: bytes) -> bytes:
    """A workbook with another part in the place of one."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.namelist():
            new.writestr(item, content if item == part else old.read(item))
    return out.getvalue()


def read(kind: str, document: bytes) -> str:
    """Read a document as the service does, in a document process. Returns the message of its refusal, or ""."""
    from webapp.connectors import metadata_documents
    from webapp.connectors.base import ConnectorError
    from webapp.connectors.odata import metadata as odata_metadata

    compilation.vocabulary()
    folder = str(vocabularies.local_folder())
    try:
        if kind in ("odata", "odata_json"):
            metadata_documents.metadata("odata", document)
            odata_metadata.read_safely(document)
        elif kind == "program":
            document_process.run("webapp.scenarios.services.requirements:in_process", document)
            document_process.run("webapp.scenarios.services.scenarios:in_process", document)
        elif kind == "parquet":
            names = {"name": "x.parquet", "sheet": None, "vocabulary_folder": folder}
            document_process.run("webapp.real_data.detection:in_process", document, names)
        else:
            form = {"yaml": "openapi"}.get(kind, kind)
            arguments = {"name": f"x.{kind}", "form": form, "vocabulary_folder": folder, "rows": 10}
            document_process.run("webapp.imports.services.process:draft_document", document, arguments)
            if kind in ("openapi", "yaml"):
                metadata_documents.metadata("openapi", document)
            elif kind in ("csv", "json", "ndjson", "xlsx"):
                names = {"name": f"x.{kind}", "sheet": None, "vocabulary_folder": folder}
                document_process.run("webapp.real_data.detection:in_process", document, names)
    except (document_process.DocumentError, ConnectorError, ApiError) as error:
        return error.message
    return ""
